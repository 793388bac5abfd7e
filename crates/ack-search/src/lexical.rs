//! The lexical leg: BM25 over the indexes of all scopes of a search, as if they were one.
//!
//! Each term of the query counts separately (OR). The score is Okapi BM25 (Robertson and Zaragoza,
//! "The Probabilistic Relevance Framework", 2009) over weighted frequencies. Document frequencies
//! and the mean length cover all scopes of the request and the memories that the status filter
//! allows. So scores of different scopes are comparable, and an unreviewed memory changes nothing.
//! A specific identifier in the query weighs more than a word, so that the memory that contains it
//! comes first.
//!
//! See `docs/retrieval.md` for the constants.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::analysis::{self, TextRole, TokenKind};
use super::analyzer::term_key;
use super::filter::Filters;
use super::inverted::DocId;
use super::spelling;
use super::view::{DocScores, View};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// BM25's saturation of a term's frequency.
const K1: f32 = 1.2;
/// BM25's normalization by length.
const B: f32 = 0.75;

/// Weight of a specific identifier in a short query, relative to a word of the same rarity.
const IDENTIFIER_BOOST: f32 = 4.0;
/// The same in a longer query: an error message contains several identifiers, and not all of them
/// matter.
const IDENTIFIER_BOOST_IN_TEXT: f32 = 1.5;
/// A query of at most this many words is short: an identifier in it is all that it asks for.
const MAX_SHORT_QUERY_WORDS: usize = 2;
/// In a longer query, an identifier that more memories contain than this is ordinary vocabulary and
/// not required.
const MAX_REQUIRED_DF: u32 = 2;
/// Weights are multiples of this unit, so a cursor can carry them exactly.
const WEIGHT_UNIT: f32 = 1.0 / 512.0;
/// The score norm is a multiple of this unit, for the same reason.
const NORM_UNIT: f32 = 1.0 / 64.0;
/// Weight of a similar word, relative to a term of the query.
const EXPANSION_WEIGHT: f32 = 0.5;
/// The same if the word is misspelt.
const CORRECTION_WEIGHT: f32 = 0.8;

/// The weight of a word that one memory in ten contains.
const MIN_RARE_WEIGHT: f32 = 2.3;
/// This many of the rarest terms are searched even if they are common.
const MIN_RARE_TERMS: usize = 3;
/// In a smaller scope, every term is searched.
const MIN_DOCS_FOR_RARE_TERMS: u64 = 10_000;

/// A term of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryTerm {
    /// The term as the index writes it, see [`term_key`].
    pub key: String,
    /// The word as the query writes it, in lower case.
    pub word: String,
    /// Multiplies its inverse document frequency.
    pub weight: f32,
    /// Whether it is an identifier that may ask for one memory: a specific one in a short query
    /// ([`analysis::is_specific`]), a singular one in a longer query ([`analysis::is_singular`]).
    pub specific: bool,
}

/// Whether the query writes an identifier as a command-line flag, with a dash in front.
fn is_flag(query: &str, identifier: &str) -> bool {
    let lower = query.to_lowercase();
    lower.match_indices(identifier).any(|(start, _)| {
        lower
            .get(..start)
            .is_some_and(|before| before.ends_with('-'))
    })
}

/// A query after analysis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTerms {
    /// Every distinct term, in a fixed order.
    pub terms: Vec<QueryTerm>,
    /// Whether all words are stop words. They are then searched anyway.
    pub only_stop_words: bool,
    /// Whether the query has at most two words.
    pub is_short: bool,
}

impl QueryTerms {
    /// Analyzes the text of a query.
    pub fn parse(query: &str) -> Self {
        let mut weights: BTreeMap<String, (f32, bool, String)> = BTreeMap::new();
        let mut stop_words: BTreeMap<String, (f32, bool, String)> = BTreeMap::new();
        let is_short = query.split_whitespace().count() <= MAX_SHORT_QUERY_WORDS;
        analysis::tokenize(query, TextRole::Query, &mut |token| {
            let key = term_key(token.kind, &token.text).into_owned();
            if token.kind == TokenKind::Word && analysis::is_stop_word(&token.text) {
                stop_words.insert(key, (1.0, false, token.text.into_owned()));
            } else {
                let has_shape = if is_short {
                    analysis::is_specific(&token.text)
                } else {
                    analysis::is_singular(&token.text)
                };
                let specific = has_shape
                    || (token.kind == TokenKind::Identifier && is_flag(query, &token.text));
                let boost = match (specific, is_short) {
                    (true, true) => IDENTIFIER_BOOST,
                    (true, false) => IDENTIFIER_BOOST_IN_TEXT,
                    (false, _) => 1.0,
                };
                weights.insert(key, (boost, specific, token.text.into_owned()));
            }
        });
        let only_stop_words = weights.is_empty() && !stop_words.is_empty();
        let terms = if only_stop_words { stop_words } else { weights };
        Self {
            terms: terms
                .into_iter()
                .map(|(key, (weight, specific, word))| QueryTerm {
                    key,
                    word,
                    weight,
                    specific,
                })
                .collect(),
            only_stop_words,
            is_short,
        }
    }
}

/// A term with its weight in BM25: inverse document frequency times [`QueryTerm::weight`].
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedTerm {
    /// The term as the index writes it, see [`term_key`].
    pub key: String,
    /// Its weight.
    pub weight: f32,
}

/// The weights of a query's terms over all scopes of a search, and other inputs of BM25.
#[derive(Debug)]
pub struct Bm25Weights {
    /// The terms that are searched, in the order of the query.
    pub terms: Vec<WeightedTerm>,
    /// The mean number of tokens of a memory.
    mean_length: f32,
    /// The specific identifiers that an answer must contain: those of a short query, or those that
    /// hardly any memory contains.
    pub required_identifiers: Vec<String>,
    /// Their share of the weights, from 0 to 1.
    pub identifier_share: f32,
    /// The first page's [`Bm25Weights::score_norm`], on later pages.
    pub frozen_norm: Option<f32>,
    /// Terms that replace words of the query that no memory contains.
    pub expansions: BTreeSet<String>,
    /// The misspelt words of the query, and their corrections.
    pub corrections: Vec<(String, String)>,
    /// What the replaced words would weigh if a memory contained them. It keeps a memory that
    /// matches only expansions from scoring as a full match.
    pub unmatched_weight: f32,
    /// What all words that no memory contains would weigh.
    pub unknown_weight: f32,
}

/// Computes the weights of a query's terms from the number of memories, their lengths and how many
/// contain each term.
///
/// A word that no memory contains is replaced by up to three similar terms, in case it is misspelt
/// or cut off.
pub fn bm25_weights(views: &[View<'_>], query: &QueryTerms, filters: &Filters) -> Bm25Weights {
    let (documents, tokens) = views
        .iter()
        .map(|view| view.index.size(filters.status))
        .fold((0, 0), |sum, size| {
            (sum.0 + size.documents, sum.1 + size.tokens)
        });
    #[expect(clippy::cast_precision_loss, reason = "a mean of counts")]
    let (count, mean_length) = (
        documents as f32,
        (tokens as f32 / (documents.max(1)) as f32).max(1.0),
    );
    let frequency = |key: &str| -> u32 {
        let in_view = |view: &View<'_>| view.index.document_frequency(key, filters.status);
        u32::try_from(views.iter().map(in_view).sum::<usize>()).unwrap_or(u32::MAX)
    };
    // A word that only unreviewed memories contain is not misspelt, so the status filter does not
    // apply here.
    let is_known = |key: &str| {
        views
            .iter()
            .any(|view| view.index.contains_term(key, StatusFilter::All))
    };
    #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
    let idf = |df: u32| (1.0 + (count - df as f32 + 0.5).max(0.5) / (df as f32 + 0.5)).ln();
    let mut terms: Vec<WeightedTerm> = Vec::with_capacity(query.terms.len());
    let mut required_identifiers = Vec::new();
    let (mut expansions, mut unmatched_weight) = (BTreeSet::new(), 0.0);
    let mut unknown_weight = 0.0;
    let mut corrections = Vec::new();
    let mut required_weight = 0.0;
    for term in &query.terms {
        if cancel::check().is_err() {
            break;
        }
        let key = term.key.clone();
        if is_known(&key) {
            let df = frequency(&key);
            let weight = idf(df) * term.weight;
            if term.specific && (query.is_short || df <= MAX_REQUIRED_DF) {
                required_identifiers.push(key.clone());
                required_weight += weight;
            }
            terms.push(WeightedTerm { key, weight });
        } else if !key.starts_with('=') {
            let similar = spelling::similar_terms(views, &term.word, &key, filters);
            let weight = if similar.is_misspelt {
                CORRECTION_WEIGHT
            } else {
                EXPANSION_WEIGHT
            };
            corrections.extend(similar.spelling.map(|right| (term.word.clone(), right)));
            // A misspelt word weighs what the correct one would.
            let meant = similar.keys.first().filter(|_| similar.is_misspelt);
            let full = idf(meant.map_or(0, |key| frequency(key)));
            unmatched_weight += if similar.keys.is_empty() { 0.0 } else { full };
            unknown_weight += full;
            for key in similar.keys {
                let weight = idf(frequency(&key)) * weight;
                expansions.insert(key.clone());
                terms.push(WeightedTerm { key, weight });
            }
        }
    }
    // A word that every memory of a large scope contains weighs almost nothing, but still matches.
    // If the query is about an identifier, such a word is only a part of it (`err` of `ERR_00042`)
    // and may weigh 0.
    let min_units = if required_identifiers.is_empty() {
        1.0
    } else {
        0.0
    };
    for term in &mut terms {
        term.weight = (term.weight / WEIGHT_UNIT).round().max(min_units) * WEIGHT_UNIT;
    }
    let total: f32 = terms.iter().map(|term| term.weight).sum();
    Bm25Weights {
        required_identifiers,
        identifier_share: if total > 0.0 {
            (required_weight / total).clamp(0.0, 1.0)
        } else {
            0.0
        },
        terms,
        mean_length: mean_length.round(),
        frozen_norm: None,
        expansions,
        corrections,
        unmatched_weight,
        unknown_weight,
    }
}

impl Bm25Weights {
    /// Drops the terms that many memories contain, for a search that only proposes memories to look
    /// at. In a large scope nearly every memory matches such a term, so it selects nothing. The
    /// heaviest few always stay.
    pub fn keep_rare_terms(&mut self, views: &[View<'_>], filters: &Filters) {
        let sizes = views.iter().map(|view| view.index.size(filters.status));
        if sizes.map(|size| size.documents).sum::<u64>() < MIN_DOCS_FOR_RARE_TERMS {
            return;
        }
        let mut weights: Vec<f32> = self.terms.iter().map(|term| term.weight).collect();
        weights.sort_by(|one, other| other.total_cmp(one));
        let always = weights.get(MIN_RARE_TERMS - 1).copied();
        let least = always.unwrap_or_default().min(MIN_RARE_WEIGHT);
        self.terms.retain(|term| term.weight >= least);
    }
}

/// The inverse document frequency of a term that only one memory contains, as in [`bm25_weights`].
pub fn max_idf(views: &[View<'_>], status: StatusFilter) -> f32 {
    let documents: u64 = views
        .iter()
        .map(|view| view.index.size(status).documents)
        .sum();
    #[expect(clippy::cast_precision_loss, reason = "a count of documents")]
    let count = documents as f32;
    (1.0 + (count - 0.5).max(0.5) / 1.5).ln()
}

impl Bm25Weights {
    /// A text in which the misspelt words of the query are corrected.
    pub fn corrected<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.corrections.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut corrected = String::with_capacity(text.len());
        for piece in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric());
            let lower = word.to_lowercase();
            let right = self.corrections.iter().find(|(wrong, _)| *wrong == lower);
            corrected.push_str(right.map_or(word, |(_, right)| right));
            corrected.push_str(piece.get(word.len()..).unwrap_or_default());
        }
        Cow::Owned(corrected)
    }

    /// Encodes the mean length, the score norm and the weights for a cursor, as big-endian 16-bit
    /// numbers.
    pub fn freeze(&self, score_norm: f32) -> Vec<u8> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "weights are below 65536 units; a cast saturates"
        )]
        let units = |value: f32| value as u16;
        let weights = self
            .terms
            .iter()
            .map(|term| units((term.weight / WEIGHT_UNIT).round()));
        let norm = units((score_norm / NORM_UNIT).round());
        let numbers = [units(self.mean_length), norm].into_iter().chain(weights);
        numbers.flat_map(u16::to_be_bytes).collect()
    }

    /// Restores the weights that [`Bm25Weights::freeze`] encoded, so that a later page ranks like
    /// the first one. Weights of another number of terms are ignored.
    pub fn restore(&mut self, frozen: &[u8]) {
        if frozen.len() != 4 + 2 * self.terms.len() {
            return;
        }
        let (pairs, _) = frozen.as_chunks::<2>();
        let mut numbers = pairs
            .iter()
            .map(|pair| f32::from(u16::from_be_bytes(*pair)));
        self.mean_length = numbers.next().unwrap_or(1.0).max(1.0);
        self.frozen_norm = numbers
            .next()
            .map(|norm| norm * NORM_UNIT)
            .filter(|norm| *norm > 0.0);
        for (term, frozen) in self.terms.iter_mut().zip(numbers) {
            term.weight = frozen * WEIGHT_UNIT;
        }
    }

    /// What fusion divides lexical scores by: the best of them, or the weight of the query's
    /// unmatched words if that is more. Rounded up to the unit that a cursor carries.
    pub fn score_norm(&self, best: f32) -> f32 {
        (best.max(self.unmatched_weight) / NORM_UNIT).ceil() * NORM_UNIT
    }

    /// What a term contributes to the score of a document.
    fn contribution(&self, weight: f32, frequency: f32, length: u32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
        let norm = K1 * (1.0 - B + B * length as f32 / self.mean_length);
        weight * frequency * (K1 + 1.0) / (frequency + norm)
    }

    /// The score of every document of a view, dead ones too; 0 for those without any term.
    pub fn scores(&self, view: &View<'_>) -> DocScores {
        view.sum_terms(&self.terms, |weight, frequency, length| {
            self.contribution(weight, frequency, length)
        })
    }

    /// What each term contributes to the score of one document, largest first.
    pub fn explain(&self, view: &View<'_>, doc: DocId) -> Vec<(String, f32)> {
        let length = view
            .index
            .lengths()
            .get(doc as usize)
            .copied()
            .unwrap_or_default();
        let mut contributions: Vec<(String, f32)> = self
            .terms
            .iter()
            .filter_map(|term| {
                let frequency = view.frequency(&term.key, doc)?;
                Some((
                    term.key.clone(),
                    self.contribution(term.weight, frequency, length),
                ))
            })
            .collect();
        contributions.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        contributions
    }
}

/// Finds the words of a text that match a query's terms, as the text spells them, for an answer's
/// `why`. It caches every word, so each is stemmed once per request.
pub struct Matcher<'a> {
    bm25: &'a Bm25Weights,
    weights: FxHashMap<&'a str, f32>,
    /// The first bytes of the terms. A stem begins like its word, so other words cannot match.
    first_bytes: [bool; 256],
    /// The weights of words and of identifiers that were looked up before.
    cache: [FxHashMap<Box<str>, Option<f32>>; 2],
}

impl<'a> Matcher<'a> {
    /// A matcher for the terms of a search.
    pub fn new(bm25: &'a Bm25Weights) -> Self {
        let mut first_bytes = [false; 256];
        for term in &bm25.terms {
            let first = term.key.bytes().next();
            if let Some(slot) = first.and_then(|byte| first_bytes.get_mut(usize::from(byte))) {
                *slot = true;
            }
        }
        Self {
            bm25,
            first_bytes,
            weights: bm25
                .terms
                .iter()
                .map(|term| (term.key.as_str(), term.weight))
                .collect(),
            cache: Default::default(),
        }
    }

    /// The distinct words of a text that match, each with its weight.
    pub fn matching_words<'t>(&mut self, text: &'t str) -> Vec<(f32, Cow<'t, str>)> {
        let Self {
            weights,
            first_bytes,
            cache: [words, identifiers],
            ..
        } = self;
        let mut found: Vec<(f32, Cow<'t, str>)> = Vec::new();
        analysis::tokenize(text, TextRole::Document, &mut |token| {
            let is_word = token.kind == TokenKind::Word;
            let first = token.text.bytes().next();
            let may_match = first
                .is_some_and(|byte| first_bytes.get(usize::from(byte)).copied().unwrap_or(false));
            if is_word && !may_match {
                return;
            }
            let cache = if is_word {
                &mut *words
            } else {
                &mut *identifiers
            };
            let weight = match cache.get(token.text.as_ref()) {
                Some(weight) => *weight,
                None => {
                    let key = term_key(token.kind, &token.text);
                    let weight = weights.get(key.as_ref()).copied();
                    cache.insert(token.text.as_ref().into(), weight);
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

    /// Whether a word of a memory matches only as an expansion.
    pub fn is_expansion(&self, word: &str) -> bool {
        let key = term_key(TokenKind::Word, word);
        self.bm25.expansions.contains(key.as_ref())
    }
}
