//! Turns memories into what the index stores: terms with weighted frequencies, and the vector.
//!
//! This is the expensive part of reading a store, so an [`Analyzer`] caches the text that it has
//! split.

use std::borrow::Cow;
use std::ops::Range;
use std::thread;

use rustc_hash::FxHashMap as HashMap;

use super::analysis::letters::plain;
use super::analysis::stems::stem;
use super::analysis::{self, TextRole, Token, TokenKind, numbers, symbols};
use super::dictionary::Dictionary;
use super::semantic::QuantizedVector;
use crate::encoder::{Encoder, Token as EncoderToken};
use ack_api::memory::Memory;

// Weights of the fields, in half units.
const TITLE_WEIGHT: u32 = 8;
const FACTS_WEIGHT: u32 = 4;
const TAGS_WEIGHT: u32 = 4;
const SUBTITLE_WEIGHT: u32 = 3;
const BODY_WEIGHT: u32 = 2;
const FILES_WEIGHT: u32 = 2;

/// The largest number of threads that analyze. More would only wait for the thread that reads.
const MAX_THREADS: usize = 4;

/// How many segments and words an analyzer caches.
const MAX_CACHED: usize = 200_000;
const MAX_CACHED_BYTES: usize = 40;
/// [`PackedTerm`] has 24 bits for a term. A larger store is not searched in memory anyway.
const MAX_TERMS: u32 = 1 << 24;

/// A term of a memory: its number in the upper 24 bits, and in the lower 8 its weighted frequency
/// in half units, at most 255.
pub type PackedTerm = u32;

/// The number of a term and its weighted frequency in half units.
pub const fn unpack_term(term: PackedTerm) -> (u32, u32) {
    (term >> 8, term & 0xff)
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct AnalyzedDoc {
    /// Its terms, in ascending order. Their numbers are those of the analyzer's lexicon.
    pub terms: Vec<PackedTerm>,
    pub length: u32,
    /// See [`Encoder::memory`]; `None` without an encoder, or if it knows none of the tokens.
    pub vector: Option<Box<[f32]>>,
}

impl AnalyzedDoc {
    pub fn quantized_vector(&self) -> Option<QuantizedVector> {
        self.vector.as_deref().and_then(QuantizedVector::quantize)
    }
}

/// How the index writes a term: words stemmed, identifiers with a leading `=`.
pub fn term_key(kind: TokenKind, text: &str) -> Cow<'_, str> {
    match kind {
        TokenKind::Word => stem(text),
        TokenKind::Identifier => Cow::Owned(format!("={text}")),
    }
}

/// The terms and the encoder's tokens of a piece of text without white space, as ranges of
/// [`Analyzer::terms`] and [`Analyzer::tokens`]. It fits in 16 bytes, because there are many.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first_term: u32,
    end_term: u32,
    first_token: u32,
    /// More tokens than this can count are more than the encoder reads.
    tokens: u16,
    /// How many of the terms, the last ones, are pairs of [`symbols`].
    pairs: u16,
}

impl Segment {
    const fn terms(self) -> Range<usize> {
        self.first_term as usize..self.end_term as usize
    }

    const fn tokens(self) -> Range<usize> {
        let first = self.first_token as usize;
        first..first + self.tokens as usize
    }

    /// The number of terms without the pairs, which do not make a memory longer.
    fn length(self) -> u32 {
        self.end_term - self.first_term - u32::from(self.pairs)
    }
}

/// It caches how it split each segment, because most occur many times.
#[derive(Debug, Default)]
pub struct Analyzer {
    /// The segments that [`segment_key`] can represent, and the longer ones.
    segments: HashMap<u128, Segment>,
    long_segments: HashMap<Box<str>, Segment>,
    /// The terms and tokens of all cached segments.
    terms: Vec<u32>,
    tokens: Vec<EncoderToken>,
    /// The term of each word, so each is stemmed once. `None` is a stop word.
    words: HashMap<Box<str>, Option<u32>>,
    /// The weighted frequency of each term in the current memory, and the terms that have one.
    frequencies: Vec<u32>,
    current_terms: Vec<u32>,
    /// All terms so far. Their numbers are those in [`AnalyzedDoc::terms`].
    pub lexicon: Dictionary,
}

impl Analyzer {
    /// Analyzes a memory. With an encoder, the result has a vector.
    pub fn analyze(&mut self, memory: &Memory, encoder: Option<&Encoder>) -> AnalyzedDoc {
        let mut title = Vec::with_capacity(64);
        let mut body = Vec::with_capacity(512);
        let mut length = self.field(&memory.title, TITLE_WEIGHT, encoder, &mut title);
        let fields = (memory.subtitle.iter().map(|text| (text, SUBTITLE_WEIGHT)))
            .chain(memory.facts.iter().map(|text| (text, FACTS_WEIGHT)))
            .chain(memory.narrative.iter().map(|text| (text, BODY_WEIGHT)))
            .chain(memory.concepts.iter().map(|text| (text, TAGS_WEIGHT)));
        for (text, weight) in fields {
            length += self.field(text, weight, encoder, &mut body);
        }
        for text in &memory.files {
            // Paths are searched by words only; the encoder does not see them.
            length += self.field(text, FILES_WEIGHT, None, &mut Vec::new());
        }
        self.current_terms.sort_unstable();
        let mut terms: Vec<PackedTerm> = Vec::with_capacity(self.current_terms.len());
        for term in self.current_terms.drain(..) {
            let frequency = self.frequencies.get_mut(term as usize).map_or(0, std::mem::take);
            if term < MAX_TERMS {
                terms.push(term << 8 | frequency.min(255));
            }
        }
        let vector = encoder.and_then(|encoder| encoder.memory(&mut title, &mut body));
        AnalyzedDoc { terms, length, vector: vector.map(Vec::into_boxed_slice) }
    }

    /// Counts the terms of a field with its weight, appends its tokens to `tokens`, and returns the
    /// number of terms.
    fn field(
        &mut self,
        text: &str,
        weight: u32,
        encoder: Option<&Encoder>,
        tokens: &mut Vec<EncoderToken>,
    ) -> u32 {
        let mut length = 0;
        for line in plain(text).lines() {
            let mut previous = "";
            // Both analyses split at these characters, whatever surrounds them.
            for text in line.split([' ', '\t', '\r']).filter(|text| !text.is_empty()) {
                if let Some(joined) = numbers::joined(previous, text) {
                    let segment = self.split(&joined, None);
                    self.count(segment, weight);
                    self.truncate(segment);
                }
                previous = text;
                length += self.segment(text, weight, encoder, tokens);
            }
        }
        length
    }

    /// The same for a segment of a field.
    fn segment(
        &mut self,
        text: &str,
        weight: u32,
        encoder: Option<&Encoder>,
        tokens: &mut Vec<EncoderToken>,
    ) -> u32 {
        let key = segment_key(text);
        let cached = match key {
            Some(key) => self.segments.get(&key),
            None => self.long_segments.get(text),
        };
        let (is_cached, segment) = match cached {
            Some(segment) => (true, *segment),
            None => (false, self.split(text, encoder)),
        };
        self.count(segment, weight);
        let segment_tokens = self.tokens.get(segment.tokens()).unwrap_or_default();
        tokens.extend_from_slice(segment_tokens);
        if !is_cached {
            self.cache(text, key, segment, encoder.is_some());
        }
        segment.length()
    }

    /// Counts the terms of a segment of a field with its weight.
    fn count(&mut self, segment: Segment, weight: u32) {
        for term in self.terms.get(segment.terms()).unwrap_or_default() {
            if self.frequencies.len() <= *term as usize {
                self.frequencies.resize(*term as usize + 1, 0);
            }
            if let Some(frequency) = self.frequencies.get_mut(*term as usize) {
                if *frequency == 0 {
                    self.current_terms.push(*term);
                }
                *frequency += weight;
            }
        }
    }

    fn truncate(&mut self, segment: Segment) {
        self.terms.truncate(segment.terms().start);
        self.tokens.truncate(segment.tokens().start);
    }

    /// Caches a segment that was just split, or drops it. A segment without tokens (of a path) must
    /// not be cached, because it may occur in another field.
    fn cache(&mut self, text: &str, key: Option<u128>, segment: Segment, has_tokens: bool) {
        let has_room = self.segments.len() + self.long_segments.len() < MAX_CACHED;
        match key {
            Some(key) if has_tokens && has_room => {
                self.segments.insert(key, segment);
            }
            None if has_tokens && has_room && text.len() <= MAX_CACHED_BYTES => {
                self.long_segments.insert(text.into(), segment);
            }
            _ => self.truncate(segment),
        }
    }

    /// Splits a segment that is not cached. Its terms and tokens are the last ones.
    fn split(&mut self, text: &str, encoder: Option<&Encoder>) -> Segment {
        let Self { terms, tokens, words, lexicon, .. } = self;
        let (first_term, first_token) = (terms.len(), tokens.len());
        let mut push = |token: Token<'_>, terms: &mut Vec<u32>| {
            if token.kind == TokenKind::Identifier {
                terms.push(lexicon.intern(&term_key(token.kind, &token.text)));
                return;
            }
            let term = words.get(token.text.as_ref()).copied().unwrap_or_else(|| {
                let is_stop_word = analysis::is_stop_word(&token.text);
                let term =
                    (!is_stop_word).then(|| lexicon.intern(&term_key(token.kind, &token.text)));
                if words.len() < MAX_CACHED {
                    words.insert(token.text.into_owned().into(), term);
                }
                term
            });
            terms.extend(term);
        };
        analysis::tokenize(text, TextRole::Document, &mut |token| push(token, terms));
        let first_pair = terms.len();
        symbols::pairs(text, TextRole::Document, &mut |pair| {
            push(Token { kind: TokenKind::Word, text: Cow::Owned(pair.joined) }, terms);
        });
        if let Some(encoder) = encoder {
            encoder.tokenize(text, tokens);
        }
        let index = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let count = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        Segment {
            first_term: index(first_term),
            end_term: index(terms.len()),
            first_token: index(first_token),
            tokens: count(tokens.len() - first_token),
            pairs: count(terms.len() - first_pair),
        }
    }
}

/// A segment of at most 15 bytes as a number: its bytes and its length.
fn segment_key(text: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    let (length, rest) = bytes.split_last_mut()?;
    *length = u8::try_from(text.len()).ok()?;
    rest.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    Some(u128::from_le_bytes(bytes))
}

/// How many threads analyze memories: as many as there are processors, up to a limit.
pub fn analyzer_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}
