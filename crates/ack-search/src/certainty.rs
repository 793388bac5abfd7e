//! Decides whether the results answer a query, or are merely the nearest to it.
//!
//! A result answers it if it contains half of the query, or if it is near enough for what it
//! contains:
//!
//! ```text
//! coverage + COSINE_WEIGHT · cosine ≥ MIN_EVIDENCE
//! ```
//!
//! Coverage is the share of the query's lexical weight that a result contains. The constants are
//! those of the encoder inside the binary; see `docs/retrieval.md` for how they were chosen.

use super::bm25::Bm25Weights;
use super::filter::Filters;
use super::lexical::max_idf;
use super::retrieve::Candidate;
use super::view::View;

/// From this coverage on, a result answers a query whatever its cosine.
const MIN_COVERAGE: f32 = 0.5;
/// The weight of a cosine of 1, relative to full coverage.
const COSINE_WEIGHT: f32 = 2.0;
/// Minimum evidence of results that answer a query.
const MIN_EVIDENCE: f32 = 0.95;
/// Coverage is measured against at most the weight of this many of the rarest words: an answer to a
/// long query need not contain everything.
const MAX_COVERED_WORDS: f32 = 5.0;

/// Whether one of the best results of hybrid retrieval is certain enough to answer the query.
pub fn is_certain(
    views: &[View<'_>],
    bm25: &Bm25Weights,
    filters: &Filters,
    best: &[Candidate],
) -> bool {
    let coverage = best
        .iter()
        .map(|candidate| coverage(views, bm25, filters, candidate))
        .fold(0.0, f32::max);
    if bm25.lacks_code && coverage < 1.0 {
        return false;
    }
    let cosines = best.iter().map(|candidate| candidate.cosine);
    let cosine = cosines.fold(0.0, f32::max);
    coverage >= MIN_COVERAGE || coverage + COSINE_WEIGHT * cosine >= MIN_EVIDENCE
}

fn contains(views: &[View<'_>], candidate: &Candidate, key: &str) -> bool {
    let view = views.get(candidate.scope);
    view.is_some_and(|view| view.frequency(key, candidate.doc).is_some())
}

/// The share of the query's lexical weight that a candidate contains. A required identifier counts
/// as all of it.
fn coverage(
    views: &[View<'_>],
    bm25: &Bm25Weights,
    filters: &Filters,
    candidate: &Candidate,
) -> f32 {
    let contains = |key: &str| contains(views, candidate, key);
    if bm25.required_identifiers.iter().any(|key| contains(key)) {
        return 1.0;
    }
    let (mut matched, mut total) = (0.0, bm25.unknown_weight);
    let words = bm25.terms.iter();
    for term in words.filter(|term| !bm25.pairs.contains(&term.key)) {
        let expansion = bm25.expansions.get(&term.key);
        if contains(&term.key) {
            matched += expansion.map_or(term.weight, |expansion| expansion.covered);
        }
        total += if expansion.is_some() {
            0.0
        } else {
            term.weight
        };
    }
    let max = MAX_COVERED_WORDS * max_idf(views, filters.status);
    matched / total.min(max).max(f32::MIN_POSITIVE)
}
