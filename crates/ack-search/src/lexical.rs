//! Lexical search: BM25 over the indexes of all scopes of a search, as if they were one.
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
use super::bm25::{Bm25Weights, Expansion, WEIGHT_UNIT};
use super::filter::Filters;
use super::identifiers::{self, Related};
use super::plain::plain;
use super::postings::DocId;
use super::quantities::quantities;
use super::query::{QueryTerm, QueryTerms, WeightedTerm};
use super::spelling;
use super::symbols;
use super::versions::{self, names_with_versions};
use super::view::{DocScores, View};
use ack_api::cancel;
use ack_api::memory::StatusFilter;

/// In a longer query, an identifier that more memories contain than this is ordinary vocabulary and
/// not required.
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
    let (mut expansions, mut unmatched_weight) = (BTreeMap::new(), 0.0);
    let mut unknown_weight = 0.0;
    let (mut lacks_code, mut code_parts) = (false, Vec::new());
    let mut corrections = Vec::new();
    let mut required_weight = 0.0;
    // Words with digits that no memory contains which the filter allows.
    let mut absent_codes = Vec::new();
    let related = related_identifiers(views, query, filters);
    let has_stand_in = |key: &str| related.iter().any(|(term, _)| term.key == key);
    for term in &query.terms {
        if cancel::check().is_err() {
            break;
        }
        let key = term.key.clone();
        let has_digit = || key.bytes().any(|byte| byte.is_ascii_digit());
        if !key.starts_with('=') && has_digit() && frequency(&key) == 0 {
            absent_codes.extend((!has_stand_in(&key)).then_some(term));
        } else if is_known(&key) {
            let df = frequency(&key);
            let weight = idf(df) * term.weight;
            if term.specific && (query.is_short || df <= MAX_REQUIRED_DF) {
                required_identifiers.push(key.clone());
                required_weight += weight;
            }
            terms.push(WeightedTerm { key, weight });
        } else if !key.starts_with('=') {
            let similar = spelling::similar_terms(views, &term.word, &key, filters);
            corrections.extend(similar.spelling.map(|right| (term.word.clone(), right)));
            // A word that is misspelt or inflected weighs what the term weighs that it stands for.
            let first = similar.terms.first();
            let same = first.filter(|first| similar.is_misspelt || first.covers == Some(1.0));
            let full = idf(same.map_or(0, |same| frequency(&same.key)));
            unmatched_weight += if first.is_some() { full } else { 0.0 };
            unknown_weight += full;
            for similar in similar.terms {
                let weight = idf(frequency(&similar.key)) * similar.weight;
                let expansion = Expansion {
                    covered: similar.covers.map_or(weight, |share| share * full),
                    is_same_word: similar.covers.is_some(),
                };
                expansions.insert(similar.key.clone(), expansion);
                terms.push(WeightedTerm {
                    key: similar.key,
                    weight,
                });
            }
        }
    }
    let mut pairs = BTreeSet::new();
    let mut hidden_terms = Vec::new();
    for term in absent_codes {
        let full = idf(0);
        unknown_weight += full;
        // It finds memories that the filter hides, which are counted.
        hidden_terms.extend(is_known(&term.key).then(|| term.key.clone()));
        let parts = spelling::name_and_version(views, &term.word, filters);
        let is_whole = !parts.is_empty() && parts.iter().all(|part| part.covers.is_some());
        unmatched_weight += if parts.is_empty() { 0.0 } else { full };
        lacks_code |= term.is_code && !is_whole;
        if term.is_code && is_whole {
            code_parts.push(parts.iter().map(|part| part.key.clone()).collect());
        }
        for part in parts {
            let weight = idf(frequency(&part.key)) * part.weight;
            let covered = part.covers.map_or(weight, |share| share * full);
            let is_same_word = part.covers.is_some();
            if let Some(expansion) = expansions.get_mut(&part.key) {
                // Two versions of one name.
                expansion.covered += covered;
                expansion.is_same_word |= is_same_word;
            } else if !terms.iter().any(|term| term.key == part.key) {
                let expansion = Expansion {
                    covered,
                    is_same_word,
                };
                expansions.insert(part.key.clone(), expansion);
                terms.push(WeightedTerm {
                    key: part.key,
                    weight,
                });
            }
        }
    }
    let words = terms.len();
    for (key, pair) in &query.pairs {
        // A symbol that a memory writes in the same way needs no other one.
        let mut identifiers = terms.iter().filter_map(|term| term.key.strip_prefix('='));
        let is_written = identifiers.any(|name| name.contains(&pair.written));
        if let Some(expansion) = expansions.get_mut(key) {
            // `oauth2` is more than a word that looks like the unknown one of `oauth 2`.
            expansion.is_same_word = true;
        } else if !is_written && is_known(key) {
            pairs.insert(key.clone());
            terms.push(WeightedTerm {
                key: key.clone(),
                weight: idf(frequency(key)) * pair.weight,
            });
        }
    }
    for key in hidden_terms {
        pairs.insert(key.clone());
        terms.push(WeightedTerm {
            key,
            weight: idf(0),
        });
    }
    let mut stand_in_weight = 0.0;
    for (term, found) in related {
        let whole = frequency(&term.key);
        let all = found
            .iter()
            .fold(whole, |sum, it| sum.saturating_add(it.frequency));
        let full = idf(all) * term.weight;
        #[expect(clippy::cast_precision_loss, reason = "at most a few dozen")]
        let factor = match whole {
            0 => STAND_IN_WEIGHT,
            _ => RELATED_WEIGHT / found.len() as f32,
        };
        unknown_weight += if whole == 0 { full } else { 0.0 };
        if whole == 0 && term.specific && (query.is_short || all <= MAX_REQUIRED_DF) {
            stand_in_weight += full;
        }
        for Related { key, share, .. } in found {
            if terms.iter().all(|known| known.key != key) {
                let covered = share * full;
                let is_same_word = true;
                expansions.insert(
                    key.clone(),
                    Expansion {
                        covered,
                        is_same_word,
                    },
                );
                let weight = covered * factor;
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
    let words = terms.iter().take(words);
    let total = words.map(|term| term.weight).sum::<f32>() + stand_in_weight;
    Bm25Weights {
        required_identifiers,
        identifier_share: if total > 0.0 {
            ((required_weight + stand_in_weight) / total).clamp(0.0, 1.0)
        } else {
            0.0
        },
        terms,
        mean_length: mean_length.round(),
        frozen_norm: None,
        expansions,
        pairs,
        corrections,
        lacks_code,
        code_parts,
        unmatched_weight,
        unknown_weight,
    }
}

/// The indexed identifiers that contain one of the query or are contained in it, for each that has
/// any, see [`identifiers`]. One within another one of the query does not count.
fn related_identifiers<'q>(
    views: &[View<'_>],
    query: &'q QueryTerms,
    filters: &Filters,
) -> Vec<(&'q QueryTerm, Vec<Related>)> {
    let is_outermost = |term: &&QueryTerm| {
        let mut others = query.terms.iter();
        identifiers::has_relatives(&term.key)
            && !others.any(|other| other.key != term.key && other.word.contains(&term.word))
    };
    let asked = query.terms.iter().filter(is_outermost);
    let found = asked.take(MAX_RELATED_IDENTIFIERS).map(|term| {
        let related = identifiers::related(views, &term.key, filters);
        (term, related)
    });
    found.filter(|(_, related)| !related.is_empty()).collect()
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
        match plain(text) {
            Cow::Borrowed(text) => self.matching_plain_words(text),
            Cow::Owned(text) => {
                let found = self.matching_plain_words(&text).into_iter();
                found
                    .map(|(weight, word)| (weight, Cow::Owned(word.into_owned())))
                    .collect()
            }
        }
    }

    fn matching_plain_words<'t>(&mut self, text: &'t str) -> Vec<(f32, Cow<'t, str>)> {
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
        self.add_symbols(text, &mut found);
        self.add_quantities(text, &mut found);
        self.add_versions(text, &mut found);
        found
    }

    /// Adds the symbols of a text that match although none of their parts does.
    fn add_symbols<'t>(&self, text: &'t str, found: &mut Vec<(f32, Cow<'t, str>)>) {
        symbols::pairs(text, TextRole::Document, &mut |pair| {
            let key = term_key(TokenKind::Word, &pair.joined);
            let Some(weight) = self.weights.get(key.as_ref()) else {
                return;
            };
            let written = pair.written.to_lowercase();
            if !found.iter().any(|(_, known)| written.contains(&**known)) {
                found.push((*weight, Cow::Owned(written)));
            }
        });
    }

    /// Adds the numbers with units that a text writes as two words.
    fn add_quantities(&self, text: &str, found: &mut Vec<(f32, Cow<'_, str>)>) {
        quantities(text, &mut |joined| {
            let word = joined.to_lowercase();
            let weight = self.weights.get(word.as_str());
            let new = weight.filter(|_| !found.iter().any(|(_, known)| *known == word));
            found.extend(new.map(|weight| (*weight, Cow::Owned(word))));
        });
    }

    /// Adds the names with a version that a text writes as two words and that match although no
    /// part of them does.
    fn add_versions<'t>(&self, text: &'t str, found: &mut Vec<(f32, Cow<'t, str>)>) {
        names_with_versions(text, &mut |joined, written| {
            let key = term_key(versions::kind(&joined), &joined);
            let Some(weight) = self.weights.get(key.as_ref()) else {
                return;
            };
            let written = written
                .trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase();
            if !found.iter().any(|(_, known)| written.contains(&**known)) {
                found.push((*weight, Cow::Owned(written)));
            }
        });
    }

    /// Whether a word of a memory only looks like a word of the query.
    pub fn is_lookalike(&self, word: &str) -> bool {
        let key = term_key(TokenKind::Word, word);
        self.bm25.is_lookalike(key.as_ref())
    }
}
