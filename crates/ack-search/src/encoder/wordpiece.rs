//! WordPiece, exactly as the teacher's tokenizer cuts text (Schuster and Nakajima 2012; BERT's uncased rules): control
//! characters dropped, accents stripped, lower case, punctuation and ideographs on their own, and each word cut into the
//! longest pieces that the vocabulary knows. No special tokens.
//!
//! Plain ASCII, which nearly all text is, takes a short path; whatever is beyond it goes through the normaliser of the
//! `tokenizers` crate, so that the rules for other scripts are the library's.

use rustc_hash::FxHashMap;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

/// Words longer than this are unknown as a whole, in characters.
const LONGEST: usize = 100;
/// The vocabulary's name of what it does not know.
const UNKNOWN: &str = "[UNK]";

/// A token's number in the vocabulary.
pub type TokenId = u16;

/// A vocabulary: pieces that begin a word, pieces that go on in one.
#[derive(Debug)]
pub struct Vocabulary {
    first: FxHashMap<&'static str, TokenId>,
    inner: FxHashMap<&'static str, TokenId>,
    unknown: TokenId,
    /// Length of the longest piece, in bytes.
    longest: usize,
}

impl Vocabulary {
    /// Reads a vocabulary: one token a line, numbered from 0; `##` marks a piece that goes on in a word.
    pub fn parse(lines: &'static str) -> Self {
        let mut vocabulary = Self {
            first: FxHashMap::default(),
            inner: FxHashMap::default(),
            unknown: 0,
            longest: 0,
        };
        vocabulary.first.reserve(24_000);
        vocabulary.inner.reserve(6_000);
        for (line, id) in lines.split('\n').zip(0..=TokenId::MAX) {
            if line == UNKNOWN {
                vocabulary.unknown = id;
            }
            let (map, piece) = match line.strip_prefix("##") {
                Some(piece) if !piece.is_empty() => (&mut vocabulary.inner, piece),
                _ => (&mut vocabulary.first, line),
            };
            vocabulary.longest = vocabulary.longest.max(piece.len());
            map.insert(piece, id);
        }
        vocabulary
    }

    /// The number of what the vocabulary does not know.
    pub const fn unknown(&self) -> TokenId {
        self.unknown
    }

    /// Appends the tokens of `text`.
    pub fn tokenize(&self, text: &str, tokens: &mut Vec<TokenId>) {
        let mut word = String::new();
        for chunk in text.split([' ', '\t', '\n', '\r']) {
            if chunk.is_ascii() {
                self.ascii(chunk, &mut word, tokens);
            } else {
                self.beyond_ascii(chunk, tokens);
            }
        }
    }

    /// A chunk without white space.
    fn ascii(&self, chunk: &str, word: &mut String, tokens: &mut Vec<TokenId>) {
        word.clear();
        for byte in chunk.bytes() {
            if byte.is_ascii_alphanumeric() {
                word.push(char::from(byte.to_ascii_lowercase()));
            } else if byte.is_ascii_punctuation() {
                self.word(word, tokens);
                word.clear();
                word.push(char::from(byte));
                self.word(word, tokens);
                word.clear();
            }
            // What is left are control characters, which join what stands around them.
        }
        self.word(word, tokens);
    }

    fn beyond_ascii(&self, chunk: &str, tokens: &mut Vec<TokenId>) {
        let mut normal = NormalizedString::from(chunk);
        if BertNormalizer::default().normalize(&mut normal).is_err() {
            return;
        }
        let mut words = PreTokenizedString::from(normal);
        if BertPreTokenizer.pre_tokenize(&mut words).is_err() {
            return;
        }
        for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            self.word(word, tokens);
        }
    }

    /// Cuts a word into the longest pieces known; one unknown piece makes the word unknown.
    fn word(&self, word: &str, tokens: &mut Vec<TokenId>) {
        if word.is_empty() {
            return;
        }
        if let Some(id) = self.first.get(word) {
            tokens.push(*id);
            return;
        }
        let before = tokens.len();
        if word.len() > LONGEST && word.chars().count() > LONGEST {
            tokens.push(self.unknown);
            return;
        }
        let mut rest = word;
        let mut map = &self.first;
        while !rest.is_empty() {
            let longest = rest.floor_char_boundary(self.longest);
            let cuts = rest.char_indices().map(|(start, _)| start).skip(1).chain([rest.len()]);
            let mut found = None;
            if rest.is_ascii() {
                for end in (1..=longest).rev() {
                    if let Some(id) = rest.get(..end).and_then(|piece| map.get(piece)) {
                        found = Some((*id, end));
                        break;
                    }
                }
            } else {
                for end in cuts {
                    if let Some(id) = rest.get(..end).and_then(|piece| map.get(piece)) {
                        found = Some((*id, end));
                    }
                }
            }
            let Some((id, end)) = found else {
                tokens.truncate(before);
                tokens.push(self.unknown);
                return;
            };
            tokens.push(id);
            rest = rest.get(end..).unwrap_or_default();
            map = &self.inner;
        }
    }
}
