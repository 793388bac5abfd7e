//! The lexical leg: BM25 over the in-memory indexes of every scope searched, as if they were one.
//!
//! Each word of the query counts on its own (OR), weighted by how rare it is; statistics are taken over all scopes of the
//! request and over the memories that the status filter lets through, so that scores of different scopes compare and an
//! unreviewed memory changes nothing. The score is Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance
//! Framework", 2009) over weighted frequencies, k1 = 1.2, b = 0.75. An identifier that stands in the query as a whole adds
//! its weight once more, multiplied, so that the memory which holds it comes first.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rustc_hash::FxHashMap;

use super::analysis::{self, Kind, Side};
use super::filter::Filters;
use super::inverted::DocId;
use super::prepare::term_key;
use super::view::{Values, View};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// How much more a specific identifier weighs than a word of the same rarity, where it is all that was asked for.
const IDENTIFIER: f32 = 4.0;
/// The same among other words: an error message holds several identifiers, and not each of them is its point.
const AMONG_WORDS: f32 = 1.5;
/// Up to this many words are a question about an identifier.
const BARE: usize = 2;
/// Among other words, an identifier that more memories hold is a word of the trade and no question with one answer.
const FEW_HOLDERS: u32 = 2;
/// The unit of weights.
const UNIT: f32 = 1.0 / 512.0;
/// The unit of the best score: whole multiples of it, so that a cursor carries it exactly.
const TOP_UNIT: f32 = 1.0 / 64.0;
/// Weight of a term that stands in for one that no memory holds.
const STAND_IN: f32 = 0.5;

/// One term of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// As the index writes it.
    pub key: String,
    /// Multiplies its part of the score.
    pub weight: f32,
    /// It is a specific identifier.
    pub specific: bool,
}

/// Whether an identifier is written as a command-line flag in the query: with a dash before it.
fn is_flag(query: &str, identifier: &str) -> bool {
    let lower = query.to_lowercase();
    lower
        .match_indices(identifier)
        .any(|(start, _)| lower.get(..start).is_some_and(|before| before.ends_with('-')))
}

/// A query after analysis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    /// Every distinct term, in a fixed order.
    pub terms: Vec<Term>,
    /// All words were stop words and are searched as they stand.
    pub only_stop_words: bool,
    /// Nothing but an identifier was asked for.
    pub bare: bool,
}

impl Terms {
    /// Analyses the text of a query.
    pub fn parse(query: &str) -> Self {
        let mut weights: BTreeMap<String, (f32, bool)> = BTreeMap::new();
        let mut stops: BTreeMap<String, (f32, bool)> = BTreeMap::new();
        let bare = query.split_whitespace().count() <= BARE;
        let identifier = if bare { IDENTIFIER } else { AMONG_WORDS };
        analysis::tokenize(query, Side::Query, &mut |token| {
            let key = term_key(token.kind, &token.text).into_owned();
            if token.kind == Kind::Word && analysis::is_stop_word(&token.text) {
                stops.insert(key, (1.0, false));
            } else {
                let specific = analysis::is_specific(&token.text) || (token.kind == Kind::Identifier && is_flag(query, &token.text));
                weights.insert(key, if specific { (identifier, true) } else { (1.0, false) });
            }
        });
        let only_stop_words = weights.is_empty() && !stops.is_empty();
        let chosen = if only_stop_words { stops } else { weights };
        Self {
            terms: chosen
                .into_iter()
                .map(|(key, (weight, specific))| Term { key, weight, specific })
                .collect(),
            only_stop_words,
            bare,
        }
    }
}

/// Weight of each term over all scopes, and the mean length of a memory.
#[derive(Debug)]
pub struct Statistics {
    /// Terms with their inverse document frequency (times the term's weight), in the order of the query.
    pub terms: Vec<(String, f32)>,
    mean_length: f32,
    /// The specific identifiers of the query that are a question with one answer: all that was asked for, or held by few.
    pub anchors: Vec<String>,
    /// Their share of the weights, 0 to 1.
    pub identifiers: f32,
    /// The best score of the first page, which fusion divides by; not set until then.
    pub top: Option<f32>,
    /// Terms that stand in for words which no memory holds.
    pub stand_ins: BTreeSet<String>,
    /// What those words would weigh if a memory held them: a memory that holds nothing but stand-ins is no full match.
    pub missed: f32,
}

/// Counts what the score needs: how many memories there are, how long they are, how many hold each term. A term that no
/// memory holds is replaced by terms like it, for a misspelt or cut-off word.
pub fn statistics(views: &[View<'_>], terms: &Terms, filters: &Filters) -> Statistics {
    let (documents, tokens) = views
        .iter()
        .map(|view| view.index.size(filters.status))
        .fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    #[expect(clippy::cast_precision_loss, reason = "a mean of counts")]
    let (count, mean_length) = (documents as f32, (tokens as f32 / (documents.max(1)) as f32).max(1.0));
    let frequency = |key: &str| -> u32 {
        let holding = |view: &View<'_>| view.index.document_frequency(key, filters.status);
        u32::try_from(views.iter().map(holding).sum::<usize>()).unwrap_or(u32::MAX)
    };
    // A word that only unreviewed memories hold is no misspelt one: it counts what the status filter hides.
    let known = |key: &str| views.iter().any(|view| view.index.holds(key, StatusFilter::All));
    #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
    let idf = |df: u32| (1.0 + (count - df as f32 + 0.5).max(0.5) / (df as f32 + 0.5)).ln();
    let mut weighted: Vec<(String, f32)> = Vec::with_capacity(terms.terms.len());
    let mut anchors = Vec::new();
    let (mut stand_ins, mut missed) = (BTreeSet::new(), 0.0);
    let mut specific = 0.0;
    for term in &terms.terms {
        if cancel::check().is_err() {
            break;
        }
        if known(&term.key) {
            let holders = frequency(&term.key);
            let weight = idf(holders) * term.weight;
            if term.specific && (terms.bare || holders <= FEW_HOLDERS) {
                anchors.push(term.key.clone());
                specific += weight;
            }
            weighted.push((term.key.clone(), weight));
        } else if !term.key.starts_with('=') {
            let found = alike(views, &term.key, filters);
            missed += if found.is_empty() { 0.0 } else { idf(0) };
            for like in found {
                let weight = idf(frequency(&like)) * STAND_IN;
                stand_ins.insert(like.clone());
                weighted.push((like, weight));
            }
        }
    }
    // Weights are whole multiples of a small unit, so that a cursor can carry them exactly. A word that every memory of a large
    // scope holds tells next to nothing, and what holds it matches all the same; unless the question is about an identifier, of
    // which such a word is a part: `err` of `ERR_00042`.
    let least = if anchors.is_empty() { 1.0 } else { 0.0 };
    for (_, weight) in &mut weighted {
        *weight = (*weight / UNIT).round().max(least) * UNIT;
    }
    let whole: f32 = weighted.iter().map(|(_, weight)| weight).sum();
    Statistics {
        anchors,
        identifiers: if whole > 0.0 { (specific / whole).clamp(0.0, 1.0) } else { 0.0 },
        terms: weighted,
        mean_length: mean_length.round(),
        top: None,
        stand_ins,
        missed,
    }
}

/// What a term weighs that one memory in reach would hold, by [`statistics`].
pub fn rarest(views: &[View<'_>], status: StatusFilter) -> f32 {
    let documents: u64 = views.iter().map(|view| view.index.size(status).0).sum();
    #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
    let count = documents as f32;
    (1.0 + (count - 0.5).max(0.5) / 1.5).ln()
}

/// At most three known words like an unknown one: one letter differs, or one begins with the other, or with all but one
/// letter of it (the index knows stems: `dployment` meets `deploy`). Words are compared by their stems, and only words of memories that the filter allows count.
fn alike(views: &[View<'_>], key: &str, filters: &Filters) -> Vec<String> {
    let length = key.chars().count();
    if length < 4 || key.bytes().any(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let mask = letters(key);
    let mut found: BTreeSet<(usize, &str)> = BTreeSet::new();
    for view in views {
        for word in cancel::guarded(view.index.words()) {
            // Most words have other letters; that is seen without comparing them.
            let strange = (letters(word) & !mask).count_ones();
            if strange > 1 && !word.starts_with(key) {
                continue;
            }
            let other = word.chars().count();
            if other < 4 || other.abs_diff(length) > 8 {
                continue;
            }
            let cut_off = word.starts_with(key) || (other >= 5 && length - other.min(length) <= other + 1 && key.starts_with(word));
            if cut_off {
                found.insert((1, word));
            } else if length >= 5 && other.abs_diff(length) <= 1 && strsim::osa_distance(word, key) <= 1 {
                found.insert((0, word));
            } else if other >= 5 && length + 1 >= other && length <= other + 5 && begins_alike(key, word, other) {
                found.insert((2, word));
            }
        }
    }
    let held = |word: &&str| views.iter().any(|view| view.index.holds(word, filters.status));
    found
        .into_iter()
        .map(|(_, word)| word)
        .filter(held)
        .take(3)
        .map(str::to_owned)
        .collect()
}

/// The set of a word's bytes, folded into 64 bits.
fn letters(word: &str) -> u64 {
    word.bytes().fold(0, |set, byte| set | 1 << (byte & 63))
}

/// Whether a word begins with another one of `length` characters, one letter apart.
fn begins_alike(word: &str, other: &str, length: usize) -> bool {
    let beginning = |count: usize| word.char_indices().nth(count).and_then(|(end, _)| word.get(..end));
    let alike = |beginning: &str| strsim::osa_distance(beginning, other) <= 1;
    word.chars().next() == other.chars().next() && [length - 1, length, length + 1].into_iter().filter_map(beginning).any(alike)
}

impl Statistics {
    /// The weights, the mean length and the best score in a few characters.
    pub fn freeze(&self, top: f32) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "weights lie below 65536 units; a cast saturates"
        )]
        let units = |value: f32| value as u16;
        let weights = self.terms.iter().map(|(_, weight)| units((weight / UNIT).round()));
        let top = units((top / TOP_UNIT).round());
        let numbers = [units(self.mean_length), top].into_iter().chain(weights);
        STANDARD_NO_PAD.encode(numbers.flat_map(u16::to_be_bytes).collect::<Vec<u8>>())
    }

    /// Takes the weights of [`Statistics::freeze`], where they belong to as many terms.
    pub fn restore(&mut self, frozen: &str) {
        let Ok(bytes) = STANDARD_NO_PAD.decode(frozen) else { return };
        let mut numbers = bytes.chunks_exact(2).map(|pair| {
            f32::from(u16::from_be_bytes([
                pair.first().copied().unwrap_or(0),
                pair.last().copied().unwrap_or(0),
            ]))
        });
        if bytes.len() != 4 + 2 * self.terms.len() {
            return;
        }
        self.mean_length = numbers.next().unwrap_or(1.0).max(1.0);
        self.top = numbers.next().map(|top| top * TOP_UNIT).filter(|top| *top > 0.0);
        for ((_, weight), frozen) in self.terms.iter_mut().zip(numbers) {
            *weight = frozen * UNIT;
        }
    }

    /// What fusion divides lexical scores by, from the best of them: at least what the query's misspelt or unknown words would
    /// have weighed. Rounded up to the unit in which it is frozen.
    pub fn whole(&self, best: f32) -> f32 {
        (best.max(self.missed) / TOP_UNIT).ceil() * TOP_UNIT
    }

    fn part(&self, weight: f32, frequency: f32, length: u32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        let norm = K1 * (1.0 - B + B * length as f32 / self.mean_length);
        weight * frequency * (K1 + 1.0) / (frequency + norm)
    }

    /// The score of every document of a view, dead ones too; 0 for those that hold no term.
    pub fn scores(&self, view: &View<'_>) -> Values {
        view.sum(&self.terms, |weight, frequency, length| self.part(weight, frequency, length))
    }

    /// What each term contributes to the score of one document, largest first.
    pub fn explain(&self, view: &View<'_>, number: DocId) -> Vec<(String, f32)> {
        let length = view.index.lengths().get(number as usize).copied().unwrap_or_default();
        let mut parts: Vec<(String, f32)> = self
            .terms
            .iter()
            .filter_map(|(key, weight)| Some((key.clone(), self.part(*weight, view.frequency(key, number)?, length))))
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        parts
    }
}

/// Finds the words of a text that a query's terms meet, as they are written there; for the answer's `why`. Remembers each
/// word it has seen, so that a word is stemmed once a request.
pub struct Matcher<'a> {
    statistics: &'a Statistics,
    keys: FxHashMap<&'a str, f32>,
    /// The first bytes of the keys of words: a stem begins as its word does.
    first: [bool; 256],
    seen: [FxHashMap<Box<str>, Option<f32>>; 2],
}

impl<'a> Matcher<'a> {
    /// A matcher for the terms of a search.
    pub fn new(statistics: &'a Statistics) -> Self {
        let mut first = [false; 256];
        for (key, _) in &statistics.terms {
            if let Some(known) = key.bytes().next().and_then(|byte| first.get_mut(usize::from(byte))) {
                *known = true;
            }
        }
        Self {
            statistics,
            first,
            keys: statistics.terms.iter().map(|(key, weight)| (key.as_str(), *weight)).collect(),
            seen: Default::default(),
        }
    }

    /// The distinct matching words of a text with the weight of each.
    pub fn matched<'t>(&mut self, text: &'t str) -> Vec<(f32, Cow<'t, str>)> {
        let Self { keys, first, seen, .. } = self;
        let [words, identifiers] = seen;
        let mut found: Vec<(f32, Cow<'t, str>)> = Vec::new();
        analysis::tokenize(text, Side::Document, &mut |token| {
            let begins = token
                .text
                .bytes()
                .next()
                .is_some_and(|byte| first.get(usize::from(byte)).copied().unwrap_or(false));
            if token.kind == Kind::Word && !begins {
                return;
            }
            let seen = if token.kind == Kind::Word { &mut *words } else { &mut *identifiers };
            let weight = match seen.get(token.text.as_ref()) {
                Some(weight) => *weight,
                None => {
                    let weight = keys.get(term_key(token.kind, &token.text).as_ref()).copied();
                    seen.insert(token.text.as_ref().into(), weight);
                    weight
                }
            };
            if let Some(weight) = weight
                && !found.iter().any(|(_, known)| *known == token.text)
            {
                found.push((weight, token.text));
            }
        });
        found
    }
    /// Whether a word of a memory only stands in for one of the query that no memory holds.
    pub fn stands_in(&self, word: &str) -> bool {
        let key = term_key(Kind::Word, word);
        self.statistics.stand_ins.contains(key.as_ref())
    }
}
