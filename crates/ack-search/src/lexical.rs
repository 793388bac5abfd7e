//! Lexical search: BM25 over the indexes of all scopes of a search, as if they were one.
//!
//! Each term of the query counts separately (OR). The score is Okapi BM25 (Robertson and Zaragoza,
//! "The Probabilistic Relevance Framework", 2009) over weighted frequencies. Document frequencies
//! and the mean length cover all scopes of the request and the memories that the status filter
//! allows. So scores of different scopes are comparable, and an unreviewed memory changes nothing.
//! See `docs/retrieval.md` for the constants.

use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

use super::analysis::letters::plain;
use super::analysis::numbers::joined_words;
use super::analysis::{self, TextRole, TokenKind, symbols};
use super::analyzer::term_key;
use super::bm25::{Bm25Weights, WEIGHT_UNIT};
use super::filter::Filters;
use super::identifiers::{self, Related};
use super::postings::DocId;
use super::query::{QueryTerm, QueryTerms, WeightedTerm, joined_key};
use super::spelling::{self, Similar};
use super::view::{View, document_frequency};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// In a longer query, an identifier that more memories contain is ordinary vocabulary.
const MAX_REQUIRED_DF: u32 = 2;
/// The weight of a word that one memory in ten contains.
const MIN_RARE_WEIGHT: f32 = 2.3;
/// This many of the rarest terms are searched even if they are common.
const MIN_RARE_TERMS: usize = 3;
/// How many identifiers of a query are also searched in longer ones and by their parts.
const MAX_RELATED_IDENTIFIERS: usize = 8;
/// The weight of all identifiers together that contain one of the query or are contained in it,
/// relative to that one. It is so small because a memory with the whole identifier comes first.
const RELATED_WEIGHT: f32 = 0.15;
/// The weight of each of them if no memory has the whole one.
const STAND_IN_WEIGHT: f32 = 0.8;
/// In a smaller scope, every term is searched.
const MIN_DOCS_FOR_RARE_TERMS: u64 = 10_000;

/// The weights of a query's terms. A word that no memory contains is replaced by up to three similar
/// terms, in case it is misspelt or cut off.
pub fn bm25_weights(views: &[View<'_>], query: &QueryTerms, filters: &Filters) -> Bm25Weights {
    let status = filters.status;
    let related = related_identifiers(views, query, status);
    let mut weighing = Weighing::new(views, query, status);
    let mut hidden_codes = Vec::new();
    for term in &query.terms {
        if cancel::check().is_err() {
            break;
        }
        let is_identifier = term.key.starts_with('=');
        let has_digit = term.key.bytes().any(|byte| byte.is_ascii_digit());
        let frequency = weighing.frequency(&term.key);
        if !is_identifier && has_digit && frequency == 0 {
            let has_stand_in = related.iter().any(|(known, _)| known.key == term.key);
            if !has_stand_in {
                weighing.weights.total_weight += weighing.idf(0);
                weighing.weights.lacks_code |= term.is_code;
                hidden_codes.push(&term.key);
            }
        } else if weighing.has_term(&term.key) {
            weighing.add_term(term, frequency);
        } else if !is_identifier {
            let similar = spelling::similar_terms(views, &term.word, &term.key, status);
            weighing.add_similar(similar);
        }
    }
    weighing.add_pairs();
    for key in hidden_codes {
        // The same word finds memories that the filter hides, which are counted.
        if weighing.has_term(key) {
            weighing.weights.pairs.insert(key.clone());
            weighing.push(key.clone(), weighing.idf(0));
        }
    }
    for (term, found) in related {
        weighing.add_related(term, found);
    }
    weighing.finish()
}

struct Weighing<'a> {
    weights: Bm25Weights,
    query: &'a QueryTerms,
    views: &'a [View<'a>],
    status: StatusFilter,
    documents: u64,
}

impl<'a> Weighing<'a> {
    fn new(views: &'a [View<'_>], query: &'a QueryTerms, status: StatusFilter) -> Self {
        let sizes = views.iter().map(|view| view.index.size(status));
        let (documents, tokens) = sizes.fold((0, 0), |(documents, tokens), size| {
            (documents + size.documents, tokens + size.tokens)
        });
        #[expect(clippy::cast_precision_loss, reason = "a mean of counts")]
        let mean_length = (tokens as f32 / documents.max(1) as f32).max(1.0).round();
        let weights = Bm25Weights { mean_length, ..Bm25Weights::default() };
        Self { weights, query, views, status, documents }
    }

    fn frequency(&self, key: &str) -> u32 {
        document_frequency(self.views, key, self.status)
    }

    /// Whether any memory contains a term, whatever its status: a word that only unreviewed memories
    /// contain is not misspelt.
    fn has_term(&self, key: &str) -> bool {
        let mut views = self.views.iter();
        views.any(|view| view.index.contains_term(key, StatusFilter::All))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
    fn idf(&self, frequency: u32) -> f32 {
        let (count, frequency) = (self.documents as f32, frequency as f32);
        (1.0 + (count - frequency + 0.5).max(0.5) / (frequency + 0.5)).ln()
    }

    /// Whether a query asks for the memories with a term: its only word, or a specific identifier.
    const fn requires(&self, term: &QueryTerm, frequency: u32) -> bool {
        let is_specific = term.specific && (self.query.is_short || frequency <= MAX_REQUIRED_DF);
        frequency > 0 && (self.query.is_one_word || is_specific)
    }

    fn push(&mut self, key: String, weight: f32) {
        self.weights.terms.push(WeightedTerm { key, weight });
    }

    fn add_term(&mut self, term: &QueryTerm, frequency: u32) {
        let weight = self.idf(frequency) * term.weight;
        self.weights.total_weight += weight;
        if self.requires(term, frequency) {
            self.weights.required_identifiers.push(term.key.clone());
        }
        self.push(term.key.clone(), weight);
    }

    /// Adds what stands for a word that no memory contains.
    fn add_similar(&mut self, similar: Similar) {
        // A word that is misspelt or inflected weighs what the term weighs that it stands for.
        let first = similar.terms.first();
        let same = first.filter(|first| similar.correction.is_some() || first.is_same_word);
        let full = self.idf(same.map_or(0, |same| self.frequency(&same.key)));
        self.weights.total_weight += full;
        self.weights.unmatched_weight += if first.is_some() { full } else { 0.0 };
        self.weights.corrections.extend(similar.correction);
        for term in similar.terms {
            if !term.is_same_word {
                self.weights.lookalikes.insert(term.key.clone());
            }
            let weight = self.idf(self.frequency(&term.key)) * term.weight;
            self.push(term.key, weight);
        }
    }

    /// Adds the pairs of words that memories write as one.
    fn add_pairs(&mut self) {
        for (key, pair) in &self.query.pairs {
            // A symbol that a memory writes in the same way needs no other one.
            let mut terms = self.weights.terms.iter();
            let is_written = terms.any(|term| {
                term.key.strip_prefix('=').is_some_and(|name| name.contains(&pair.written))
            });
            // `oauth2` is more than a word that looks like the unknown one of `oauth 2`.
            let is_searched = self.weights.lookalikes.remove(key);
            if !is_searched && !is_written && self.has_term(key) {
                let weight = self.idf(self.frequency(key)) * pair.weight;
                self.weights.pairs.insert(key.clone());
                self.push(key.clone(), weight);
            }
        }
    }

    /// Adds the identifiers that contain one of the query or that it contains.
    fn add_related(&mut self, term: &QueryTerm, found: Vec<Related>) {
        let whole = self.frequency(&term.key);
        let all = found.iter().fold(whole, |sum, it| sum.saturating_add(it.frequency));
        let full = self.idf(all) * term.weight;
        #[expect(clippy::cast_precision_loss, reason = "at most a few dozen")]
        let mut factor = RELATED_WEIGHT / found.len() as f32;
        if whole == 0 {
            factor = STAND_IN_WEIGHT;
            if self.requires(term, all) {
                let keys = found.iter().map(|related| related.key.clone());
                self.weights.required_identifiers.extend(keys);
            }
        }
        for Related { key, share, .. } in found {
            if !self.weights.terms.iter().any(|known| known.key == key) {
                self.push(key, share * full * factor);
            }
        }
    }

    /// The weights, in the unit that a cursor carries.
    fn finish(self) -> Bm25Weights {
        let mut weights = self.weights;
        // A word that every memory of a large scope contains weighs almost nothing, but still
        // matches. If the query is about an identifier, such a word is only a part of it (`err` of
        // `ERR_00042`) and may weigh 0.
        let mut required = weights.required_identifiers.iter();
        let has_required = required.any(|key| key.starts_with('='));
        let min_units = if has_required { 0.0 } else { 1.0 };
        for term in &mut weights.terms {
            term.weight = (term.weight / WEIGHT_UNIT).round().max(min_units) * WEIGHT_UNIT;
        }
        weights
    }
}

/// The indexed identifiers that contain one of the query or are contained in it, for each that has
/// any, see [`identifiers`]. One within another one of the query does not count.
fn related_identifiers<'q>(
    views: &[View<'_>],
    query: &'q QueryTerms,
    status: StatusFilter,
) -> Vec<(&'q QueryTerm, Vec<Related>)> {
    query
        .terms
        .iter()
        .filter(|term| identifiers::has_relatives(&term.key))
        .filter(|term| {
            let mut others = query.terms.iter();
            !others.any(|other| other.key != term.key && other.word.contains(&term.word))
        })
        .take(MAX_RELATED_IDENTIFIERS)
        .map(|term| (term, identifiers::related(views, &term.key, status)))
        .filter(|(_, related)| !related.is_empty())
        .collect()
}

impl Bm25Weights {
    /// Drops the terms that many memories contain, for a search that only suggests memories. In a
    /// large scope nearly every memory matches such a term, so it selects nothing. The heaviest few
    /// always stay.
    pub fn keep_rare_terms(&mut self, views: &[View<'_>], filters: &Filters) {
        let sizes = views.iter().map(|view| view.index.size(filters.status));
        if sizes.map(|size| size.documents).sum::<u64>() < MIN_DOCS_FOR_RARE_TERMS {
            return;
        }
        let mut weights: Vec<f32> = self.terms.iter().map(|term| term.weight).collect();
        weights.sort_by(|one, other| other.total_cmp(one));
        let always = weights.get(MIN_RARE_TERMS - 1).copied();
        let threshold = always.unwrap_or_default().min(MIN_RARE_WEIGHT);
        self.terms.retain(|term| term.weight >= threshold);
    }

    /// What each term contributes to the score of one document, largest first.
    pub fn explain(&self, view: &View<'_>, doc: DocId) -> Vec<(String, f32)> {
        let length = view.index.docs.lengths().get(doc as usize).copied().unwrap_or_default();
        let contributions = self.terms.iter().filter_map(|term| {
            let frequency = view.frequency(&term.key, doc)?;
            Some((term.key.clone(), self.contribution(term.weight, frequency, length)))
        });
        let mut contributions: Vec<(String, f32)> = contributions.collect();
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
    first_bytes: FxHashSet<u8>,
    /// The weights of words and of identifiers that were looked up before.
    cache: [FxHashMap<Box<str>, Option<f32>>; 2],
}

impl<'a> Matcher<'a> {
    pub fn new(bm25: &'a Bm25Weights) -> Self {
        Self {
            bm25,
            first_bytes: bm25.terms.iter().filter_map(|term| term.key.bytes().next()).collect(),
            weights: bm25.terms.iter().map(|term| (term.key.as_str(), term.weight)).collect(),
            cache: Default::default(),
        }
    }

    /// The distinct words of a text that match, each with its weight.
    pub fn matching_words(&mut self, text: &str) -> Vec<(f32, String)> {
        let text = &*plain(text);
        let Self { weights, first_bytes, cache: [words, identifiers], .. } = self;
        let mut found: Vec<(f32, String)> = Vec::new();
        analysis::tokenize(text, TextRole::Document, &mut |token| {
            let is_word = token.kind == TokenKind::Word;
            let first = token.text.bytes().next();
            if is_word && !first.is_some_and(|byte| first_bytes.contains(&byte)) {
                return;
            }
            let cache = if is_word { &mut *words } else { &mut *identifiers };
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
                found.push((weight, token.text.into_owned()));
            }
        });
        let mut add = |key: Cow<'_, str>, written: &str| {
            let Some(weight) = weights.get(key.as_ref()) else {
                return;
            };
            let written = written.to_lowercase();
            if !found.iter().any(|(_, known)| written.contains(known)) {
                found.push((*weight, written));
            }
        };
        // Symbols, and words that a text writes as two (a number with its unit, a name with its
        // version), that match although none of their parts does.
        symbols::pairs(text, TextRole::Document, &mut |pair| {
            add(term_key(TokenKind::Word, &pair.joined), pair.written);
        });
        joined_words(text, &mut |joined, written| {
            add(joined_key(&joined), written.trim_matches(|c: char| !c.is_alphanumeric()));
        });
        found
    }

    /// Whether a word of a memory only looks like a word of the query.
    pub fn is_lookalike(&self, word: &str) -> bool {
        let key = term_key(TokenKind::Word, word);
        self.bm25.lookalikes.contains(key.as_ref())
    }
}
