//! Encodes text as a vector, without a model file: the static encoder inside the binary.
//!
//! The encoder is a table with one vector per WordPiece token ([`wordpiece`]). It was trained so
//! that the sum over a text's tokens has the same direction as the text's vector from the sentence
//! transformer all-MiniLM-L6-v2, after that is centred and, if the artifact requires it, projected.
//! The norm of a token's vector is its weight, which depends on the rest of the text (`attention`).
//! See `encoder/MODEL_CARD.md` for the training, the data and the accuracy.

mod attention;
mod language;
mod multilingual;
mod tokens;
pub mod wordpiece;

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use multiversion::multiversion;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::attention::Attention;
use self::multilingual::{Multilingual, is_ideograph, is_katakana};
pub use self::tokens::Token;
use self::tokens::{Row, Tokenizer};
use self::wordpiece::{TokenId, UNKNOWN_TOKEN, Vocabulary};
use super::analysis::is_stop_word;
use super::analysis::letters::plain;
use super::analysis::symbols::camel_case;

/// The artifact that `encoder/export.py` wrote.
static ARTIFACT: &[u8] = include_bytes!("../../../encoder/static.safetensors");

/// How many tokens of a memory are encoded. The rest says little about its subject.
const MAX_MEMORY_TOKENS: usize = 512;
const MAX_QUERY_TOKENS: usize = 256;
/// Increment this when the same artifact produces different vectors or terms: tables with another
/// number are rebuilt.
const ENCODER_VERSION: u64 = 10;
/// A text with this share of known words is known: every text has a few symbols and names.
const MIN_KNOWN_SHARE: f32 = 0.8;
/// Factor for the known share of a query without any known word. See `docs/retrieval.md`.
const SUBWORD_ONLY_FACTOR: f32 = 0.45;
/// The least factor for a query in another language: its words may be names.
const MIN_FOREIGN_FACTOR: f32 = 0.3;
/// At most one in so many tokens of a text in English belongs to another language.
const MIN_ENGLISH_PARTS: usize = 3;
/// Weight of a memory's title, relative to the rest of it.
const TITLE_WEIGHT: f32 = 0.3;
/// The norm of a memory's vector to which a network contributed, as long as the encoder knows all
/// of its words. Cosines of two such vectors are greater than static ones, also those of unrelated
/// texts; with this norm, memories with and without such vectors can be ranked together.
pub const CONTEXTUAL_NORM: f32 = 0.93;

#[derive(Debug)]
pub struct Encoder {
    pub vocabulary: Vocabulary,
    pub dimension: usize,
    /// Row-major: `dimension` components per row, as signed bytes.
    rows: &'static [u8],
    /// By their numbers.
    tokens: Vec<TokenEntry>,
    attention: Attention,
    /// Words and pieces of other languages, in the same space.
    multilingual: Multilingual,
    pub name: String,
}

/// What the table has for a token.
#[derive(Debug, Clone)]
struct TokenEntry {
    row: u32,
    /// The factor of its components; 0 for a token without a row.
    scale: f32,
    start: WordStart,
}

/// What a token says about the word that it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordStart {
    /// It begins a word that the encoder knows.
    Known,
    /// It begins a word that the encoder does not know, such as one in another script.
    Unknown,
    /// It begins no word: punctuation, or the rest of a word.
    None,
}

impl Encoder {
    /// The encoder inside the binary, or `None` if it is damaged (a test ensures that it is not).
    pub fn embedded() -> Option<&'static Self> {
        static ENCODER: OnceLock<Option<Encoder>> = OnceLock::new();
        ENCODER.get_or_init(|| Self::read(ARTIFACT)).as_ref()
    }

    /// Reads an artifact; `None` if a part of it is missing or does not fit the others.
    fn read(artifact: &'static [u8]) -> Option<Self> {
        let (_, header) = SafeTensors::read_metadata(artifact).ok()?;
        let tensors = SafeTensors::deserialize(artifact).ok()?;
        let tensor = |name: &str| tensors.tensor(name).ok();
        let rows = tensor("rows")?;
        let [count, dimension] = *rows.shape() else {
            return None;
        };
        let lines = std::str::from_utf8(tensor("all_vocab")?.data()).ok()?;
        let (tokens_with_rows, _) = tensor("kept")?.data().as_chunks::<2>();
        let row_scales = floats(&tensor("scales")?);
        if tokens_with_rows.len() != count
            || row_scales.len() != count
            || rows.data().len() != count * dimension
        {
            return None;
        }
        let none = TokenEntry { row: 0, scale: 0.0, start: WordStart::None };
        let mut tokens = vec![none; lines.split('\n').count()];
        for ((token, scale), row) in tokens_with_rows.iter().zip(row_scales).zip(0..) {
            if let Some(entry) = tokens.get_mut(usize::from(u16::from_le_bytes(*token))) {
                (entry.row, entry.scale) = (row, scale);
            }
        }
        for (piece, entry) in lines.split('\n').zip(&mut tokens) {
            if piece == UNKNOWN_TOKEN {
                entry.scale = 0.0;
            }
            entry.start = WordStart::of(piece, entry.scale);
        }
        let name = header.metadata().as_ref().and_then(|metadata| metadata.get("name"));
        let attention = floats(&tensor("attention")?);
        Some(Self {
            vocabulary: Vocabulary::parse(lines),
            dimension,
            rows: rows.data(),
            tokens,
            attention: Attention::new(&attention, dimension)?,
            multilingual: Multilingual::embedded(dimension)?,
            name: name.cloned().unwrap_or_default(),
        })
    }

    /// XXH3 hash of the artifacts and of how they are used. Vectors of encoders with different hashes
    /// are not comparable.
    pub fn weights_hash() -> &'static str {
        // It reads the whole artifact, and few processes ask for it.
        static HASH: LazyLock<String> = LazyLock::new(|| {
            let hash = xxh3_64_with_seed(ARTIFACT, ENCODER_VERSION);
            let hash = xxh3_64_with_seed(Multilingual::identity(), hash);
            format!("{hash:016x}")
        });
        &HASH
    }

    /// Appends the tokens of `text` in the English table alone. A word in camel case is followed by
    /// its parts, unless the vocabulary has it as a whole (`JavaScript`).
    pub fn english_tokens(&self, text: &str, tokens: &mut Vec<TokenId>) {
        self.vocabulary.tokenize(&self.with_parts(text), tokens);
    }

    /// Appends the tokens of `text`, of each word in the languages that it may be in.
    pub fn tokenize(&self, text: &str, tokens: &mut Vec<Token>) {
        Tokenizer::new(self, tokens).read(&self.with_parts(text));
    }

    fn has_vector(&self, token: TokenId) -> bool {
        self.row(token).is_some()
    }

    /// A text in which the parts of a word in camel case follow it.
    fn with_parts<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut pairs = text.as_bytes().array_windows();
        if !pairs.any(|[one, other]| one.is_ascii_alphanumeric() && other.is_ascii_uppercase()) {
            return Cow::Borrowed(text);
        }
        let mut extended = String::with_capacity(2 * text.len());
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            let parts = camel_case(word);
            extended += word;
            if parts.len() > 1 && !self.vocabulary.is_word(&word.to_ascii_lowercase()) {
                for part in parts {
                    extended.push(' ');
                    extended += part;
                }
            }
            extended += piece.get(word.len()..).unwrap_or_default();
        }
        Cow::Owned(extended)
    }

    /// The vector of a query; `None` if none of its words is known. Its norm, at most 1, is a
    /// measure of how well its words are known.
    pub fn query(&self, text: &str) -> Option<Vec<f32>> {
        let text = plain(text);
        let mut tokens = Vec::new();
        self.tokenize(&text, &mut tokens);
        tokens::choose(&self.multilingual, &mut [&mut tokens]);
        tokens.truncate(MAX_QUERY_TOKENS);
        let share = self.known_share(&tokens);
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let is_content = |word: &&str| !is_stop_word(&word.to_lowercase());
        let mut content = words.filter(is_content).peekable();
        let has_subwords_only =
            content.peek().is_some() && !content.any(|word| self.is_known(word));
        // Of a text whose script is unknown, the share says already how well its language is known.
        let foreign_share = if share < 1.0 { None } else { self.foreign_share(&text) };
        let factor = foreign_share
            .map_or(1.0, |share| (share / MIN_KNOWN_SHARE).clamp(MIN_FOREIGN_FACTOR, 1.0));
        let factor = if has_subwords_only { factor.min(SUBWORD_ONLY_FACTOR) } else { factor };
        self.encode_tokens(&mut tokens).map(|vector| scaled(vector, share * factor))
    }

    /// The vector of a memory: the weighted vector of the title's tokens plus that of the other
    /// tokens (subtitle, facts, narrative and tags, in this order), with norm 1.
    pub fn memory(&self, title: &mut Vec<Token>, body: &mut Vec<Token>) -> Option<Vec<f32>> {
        tokens::choose(&self.multilingual, &mut [title, body]);
        title.truncate(MAX_MEMORY_TOKENS);
        body.truncate(MAX_MEMORY_TOKENS);
        match (self.encode_tokens(title), self.encode_tokens(body)) {
            (Some(title), Some(mut body)) => {
                body.iter_mut().zip(&title).for_each(|(body, title)| *body += TITLE_WEIGHT * title);
                normalize(body)
            }
            (title, body) => title.or(body),
        }
    }

    /// Whether a word is known as a whole or in long pieces. Shorter ones resemble everything.
    fn is_known(&self, word: &str) -> bool {
        let mut pieces = Vec::new();
        self.vocabulary.tokenize(word, &mut pieces);
        let are_known = pieces.iter().all(|piece| self.has_vector(*piece));
        are_known && is_long_enough(word, pieces.len()) || {
            let mut rows = Vec::new();
            self.multilingual.word(word, &mut rows);
            is_long_enough(word, rows.len()) || word.chars().any(is_ideograph)
        }
    }

    /// Whether one of the tables has a word in lower case as a whole.
    pub fn is_word(&self, word: &str) -> bool {
        self.vocabulary.is_word(word) || self.multilingual.row_of(word).is_some()
    }

    /// The share of known words, relative to [`MIN_KNOWN_SHARE`], at most 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    fn known_share(&self, tokens: &[Token]) -> f32 {
        let word_start = |token: &Token| match token.row() {
            Row::English(token) => Some(self.tokens.get(usize::from(token))?.start),
            Row::Multilingual(_) => Some(WordStart::Known),
        };
        let count =
            |kind| tokens.iter().filter_map(word_start).filter(|start| *start == kind).count();
        let (known, unknown) = (count(WordStart::Known), count(WordStart::Unknown));
        if unknown == 0 {
            return 1.0;
        }
        (known as f32 / (known + unknown) as f32 / MIN_KNOWN_SHARE).min(1.0)
    }

    /// Whether a text is in English, or mostly. The small transformer knows nothing else.
    pub fn is_english(&self, text: &str) -> bool {
        let mut tokens = Vec::new();
        self.tokenize(&plain(text), &mut tokens);
        tokens::choose(&self.multilingual, &mut [&mut tokens]);
        let is_other = |token: &&Token| matches!(token.row(), Row::Multilingual(_));
        MIN_ENGLISH_PARTS * tokens.iter().filter(is_other).count() <= tokens.len()
    }

    /// The static vector of a text with norm 1, plus `weight` times the small transformer's vector
    /// of it. The result has the norm of the static vector: both encoders know the same words. See
    /// [`CONTEXTUAL_NORM`] for a memory's.
    pub fn with_network(
        &self,
        static_vector: &[f32],
        vector: &[f32],
        weight: f32,
    ) -> Option<Vec<f32>> {
        let share = norm(static_vector).min(1.0);
        let unit = normalize(static_vector.to_vec())?;
        let sum = vector.iter().zip(unit).map(|(value, other)| value * weight + other);
        normalize(sum.collect()).map(|vector| scaled(vector, share))
    }

    /// The weight of a word in the vector of a text, about 1 for an ordinary noun; `None` for a
    /// word without its own token.
    pub fn weight(&self, word: &str) -> Option<f32> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let token = if word.bytes().all(is_plain) {
            // A word without its own token need not be split.
            self.vocabulary.token(word)
        } else {
            let mut tokens = Vec::new();
            self.vocabulary.tokenize(word, &mut tokens);
            match *tokens {
                [token] => Some(token),
                _ => None,
            }
        };
        let norm = |row: &[u8]| {
            let values = row.iter().map(|byte| f32::from(byte.cast_signed()));
            values.map(|value| value * value).sum::<f32>().sqrt()
        };
        if let Some((row, scale)) = token.and_then(|token| self.row(token)) {
            return Some(scale * norm(row));
        }
        let mut row = Vec::new();
        let scale = self.multilingual.unpack(self.multilingual.row_of(word)?, &mut row)?;
        Some(scale * norm(&row))
    }

    /// The vector of tokens, with norm 1. Their order does not matter, and this sorts them.
    pub fn encode_tokens(&self, tokens: &mut [Token]) -> Option<Vec<f32>> {
        tokens.sort_unstable();
        let mut rows: Vec<(&[u8], f32)> = Vec::with_capacity(tokens.len());
        let (mut unpacked, mut weights) = (Vec::new(), Vec::new());
        for run in tokens.chunk_by(|a, b| a == b) {
            let Some(token) = run.first() else { continue };
            #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
            let root = (run.len() as f32).sqrt();
            match token.row() {
                Row::English(token) => {
                    rows.extend(self.row(token).map(|(row, scale)| (row, scale * root)));
                }
                Row::Multilingual(row) => {
                    if let Some(scale) = self.multilingual.unpack(row, &mut unpacked) {
                        weights.push(scale * root);
                    }
                }
            }
        }
        rows.extend(unpacked.chunks_exact(self.dimension).zip(weights));
        let mut sum = vec![0f32; self.dimension];
        add_scaled(&mut sum, &rows);
        let subject = self.attention.subject(&sum)?;
        for (row, weight) in &mut rows {
            *weight *= subject.weight(row);
        }
        sum.fill(0.0);
        add_scaled(&mut sum, &rows);
        normalize(sum)
    }

    /// The components of a token and their factor; `None` for a token without a row.
    fn row(&self, token: TokenId) -> Option<(&'static [u8], f32)> {
        let entry = self.tokens.get(usize::from(token)).filter(|entry| entry.scale > 0.0)?;
        let start = entry.row as usize * self.dimension;
        Some((self.rows.get(start..start + self.dimension)?, entry.scale))
    }
}

/// Whether pieces of a word are long enough to mean something.
fn is_long_enough(word: &str, pieces: usize) -> bool {
    let characters = word.chars().count();
    // Two syllables or two and a half letters.
    let half_characters = if word.chars().all(is_katakana) { 4 } else { 5 };
    match pieces {
        0 => false,
        1 => characters > 1,
        count => 2 * characters >= half_characters * count,
    }
}

impl WordStart {
    fn of(piece: &str, scale: f32) -> Self {
        let is_word = !piece.starts_with("##") && piece.chars().all(char::is_alphanumeric);
        if is_word && scale > 0.0 {
            Self::Known
        } else if is_word && !piece.is_ascii() || piece == UNKNOWN_TOKEN {
            Self::Unknown
        } else {
            Self::None
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a norm of about 1")]
fn norm(vector: &[f32]) -> f32 {
    exact_norm(vector) as f32
}

/// The sum of squares in double precision, eight at a time.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn exact_norm(vector: &[f32]) -> f64 {
    let (eights, rest) = vector.as_chunks::<8>();
    let mut sums = [0f64; 8];
    for eight in eights {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += f64::from(*value) * f64::from(*value);
        }
    }
    let rest = rest.iter().map(|value| f64::from(*value) * f64::from(*value));
    (sums.iter().sum::<f64>() + rest.sum::<f64>()).sqrt()
}

/// A vector times a factor. A factor of 1 changes no bit.
fn scaled(mut vector: Vec<f32>, factor: f32) -> Vec<f32> {
    vector.iter_mut().for_each(|value| *value *= factor);
    vector
}

fn normalize(vector: Vec<f32>) -> Option<Vec<f32>> {
    let norm = exact_norm(&vector);
    if norm < 1e-9 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "an inverse of a norm")]
    let factor = (1.0 / norm) as f32;
    Some(scaled(vector, factor))
}

/// Adds rows, each times its factor, in their order; four at a time, so that less is written.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2", "aarch64+neon"))]
fn add_scaled(sum: &mut [f32], rows: &[(&[u8], f32)]) {
    let value = |byte: &u8, factor: f32| f32::from(byte.cast_signed()) * factor;
    let (fours, rest) = rows.as_chunks::<4>();
    for [(a, wa), (b, wb), (c, wc), (d, wd)] in fours {
        for ((((sum, a), b), c), d) in sum.iter_mut().zip(*a).zip(*b).zip(*c).zip(*d) {
            *sum = *sum + value(a, *wa) + value(b, *wb) + value(c, *wc) + value(d, *wd);
        }
    }
    for (row, factor) in rest {
        for (sum, byte) in sum.iter_mut().zip(*row) {
            *sum += value(byte, *factor);
        }
    }
}

fn floats(tensor: &TensorView<'_>) -> Vec<f32> {
    let bytes = tensor.data().chunks_exact(4);
    bytes.filter_map(|four| four.try_into().ok().map(f32::from_le_bytes)).collect()
}
