//! Decides whether a result answers a query, or is merely the nearest to it.
//!
//! A cosine is comparable between questions, languages and stores, if the encoder knows the words of
//! the question. A memory that contains the words of the question is certain, too. See `docs/retrieval.md`.

use super::bm25::Bm25Weights;
use super::retrieve::{Candidate, MIN_COSINE, best_lexical};
use super::semantic::QueryVector;
use super::view::View;

/// A memory with this share of the weight of a query's words contains the query. Another form of a
/// word weighs less than the word.
const MIN_COVERED_SHARE: f32 = 0.5;

/// Whether a candidate is near the question in meaning, and the encoder knows the question.
pub fn is_near(bm25: &Bm25Weights, question: &QueryVector, candidates: &[Candidate]) -> bool {
    let mut cosines = candidates.iter().map(|candidate| candidate.cosine);
    let is_known = question.plain.is_unit();
    is_known && !bm25.lacks_code && cosines.any(|cosine| cosine >= MIN_COSINE)
}

/// Whether the best lexical candidate contains the words of the query, or nearly all by weight.
pub fn is_covered(views: &[View<'_>], bm25: &Bm25Weights, candidates: &[Candidate]) -> bool {
    let best = best_lexical(candidates).and_then(|best| Some((best, views.get(best.scope)?)));
    let covers = |(best, view)| coverage(view, bm25, best) >= MIN_COVERED_SHARE;
    !bm25.lacks_code && best.is_some_and(covers)
}

/// The share of the weight of a query's words that a candidate contains, from 0 to 1.
pub fn coverage(view: &View<'_>, bm25: &Bm25Weights, candidate: &Candidate) -> f32 {
    let words = bm25.terms.iter().filter(|term| !bm25.pairs.contains(&term.key));
    let held = words.filter(|term| view.frequency(&term.key, candidate.doc).is_some());
    let weight: f32 = held.map(|term| term.weight).sum();
    if weight > 0.0 { (weight / bm25.total_weight).min(1.0) } else { 0.0 }
}
