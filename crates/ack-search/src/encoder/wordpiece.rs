//! WordPiece tokenization (Schuster and Nakajima 2012), with the rules of BERT's uncased models, so
//! that the tokens are those of the encoder's teacher.
//!
//! Control characters are dropped, accents are stripped, letters are lower-cased, and punctuation
//! and ideographs are separate words. Each word is split into the longest pieces in the vocabulary.
//! ASCII, which is nearly all text, takes a fast path. The rest goes through `tokenizers`.

use rustc_hash::FxHashMap;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
};

/// The normalizer takes a hundred bytes of memory for each byte, so longer text is normalized piece
/// by piece. A word of that length is unknown anyway.
const MAX_PIECE_BYTES: usize = 4 << 10;
/// Longer words are unknown as a whole.
const MAX_WORD_CHARS: usize = 100;
/// What separates the chunks of a text.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];
pub(super) const UNKNOWN_TOKEN: &str = "[UNK]";

pub type TokenId = u16;

#[derive(Debug)]
pub struct Vocabulary {
    /// The pieces that begin a word, and those that continue one.
    initial: FxHashMap<&'static str, TokenId>,
    continuation: FxHashMap<&'static str, TokenId>,
    unknown: TokenId,
    max_piece_bytes: usize,
}

impl Vocabulary {
    /// One token per line, numbered from 0. `##` marks the pieces that continue a word.
    pub fn parse(lines: &'static str) -> Self {
        let mut vocabulary = Self {
            initial: FxHashMap::default(),
            continuation: FxHashMap::default(),
            unknown: 0,
            max_piece_bytes: 0,
        };
        vocabulary.initial.reserve(24_000);
        vocabulary.continuation.reserve(6_000);
        for (line, id) in lines.split('\n').zip(0..=TokenId::MAX) {
            if line == UNKNOWN_TOKEN {
                vocabulary.unknown = id;
            }
            let (map, piece) = match line.strip_prefix("##") {
                Some(piece) if !piece.is_empty() => (&mut vocabulary.continuation, piece),
                _ => (&mut vocabulary.initial, line),
            };
            vocabulary.max_piece_bytes = vocabulary.max_piece_bytes.max(piece.len());
            map.insert(piece, id);
        }
        vocabulary
    }

    /// The token of a word, in lower case, if the vocabulary has it as a whole.
    pub fn token(&self, word: &str) -> Option<TokenId> {
        self.initial.get(word).copied()
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.initial.contains_key(word)
    }

    pub fn tokenize(&self, text: &str, tokens: &mut Vec<TokenId>) {
        let mut word = String::new();
        for chunk in text.split(WHITE_SPACE) {
            self.tokenize_chunk(chunk, &mut word, tokens);
        }
    }

    /// Appends the tokens of text without white space. `word` is a buffer.
    pub(super) fn tokenize_chunk(&self, chunk: &str, word: &mut String, tokens: &mut Vec<TokenId>) {
        if chunk.is_ascii() {
            self.ascii_chunk(chunk, word, tokens);
            return;
        }
        for piece in pieces(chunk) {
            if piece.is_ascii() {
                self.ascii_chunk(piece, word, tokens);
            } else {
                self.unicode_chunk(piece, tokens);
            }
        }
    }

    /// Tokenizes ASCII text without white space. `word` is a buffer.
    fn ascii_chunk(&self, chunk: &str, word: &mut String, tokens: &mut Vec<TokenId>) {
        word.clear();
        for byte in chunk.bytes() {
            if byte.is_ascii_alphanumeric() {
                word.push(char::from(byte.to_ascii_lowercase()));
            } else if byte.is_ascii_punctuation() {
                self.split_word(word, tokens);
                word.clear();
                word.push(char::from(byte));
                self.split_word(word, tokens);
                word.clear();
            }
            // Control characters are dropped and do not separate words.
        }
        self.split_word(word, tokens);
    }

    fn unicode_chunk(&self, chunk: &str, tokens: &mut Vec<TokenId>) {
        let mut normal = NormalizedString::from(chunk);
        if BertNormalizer::default().normalize(&mut normal).is_err() {
            return;
        }
        let mut words = PreTokenizedString::from(normal);
        if BertPreTokenizer.pre_tokenize(&mut words).is_err() {
            return;
        }
        for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            self.split_word(word, tokens);
        }
    }

    /// Splits a word into the longest known pieces. If one is unknown, so is the word.
    fn split_word(&self, word: &str, tokens: &mut Vec<TokenId>) {
        if word.is_empty() {
            return;
        }
        if let Some(id) = self.initial.get(word) {
            tokens.push(*id);
            return;
        }
        let first_token = tokens.len();
        if word.len() > MAX_WORD_CHARS && word.chars().count() > MAX_WORD_CHARS {
            tokens.push(self.unknown);
            return;
        }
        let mut rest = word;
        let mut pieces = &self.initial;
        while !rest.is_empty() {
            let piece = |end: usize| Some((*pieces.get(rest.get(..end)?)?, end));
            let found = if rest.is_ascii() {
                (1..=rest.len().min(self.max_piece_bytes)).rev().find_map(piece)
            } else {
                let ends = rest.char_indices().map(|(start, _)| start).skip(1).chain([rest.len()]);
                ends.filter_map(piece).last()
            };
            let Some((id, end)) = found else {
                tokens.truncate(first_token);
                tokens.push(self.unknown);
                return;
            };
            tokens.push(id);
            rest = rest.get(end..).unwrap_or_default();
            pieces = &self.continuation;
        }
    }
}

/// A text in pieces, cut before punctuation if possible, because each such character is a word.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.floor_char_boundary(MAX_PIECE_BYTES);
        let whole = end == rest.len();
        let cut = rest
            .get(..end)
            .and_then(|piece| piece.rfind(|c: char| c.is_ascii_punctuation()))
            .filter(|cut| *cut > 0 && !whole);
        let (piece, after) = rest.split_at(cut.unwrap_or(end));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
