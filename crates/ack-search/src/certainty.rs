//! Decides whether the results answer a query, or are merely the nearest to it.
//!
//! ```text
//! evidence = coverage + PROMINENCE_WEIGHT · prominence
//! ```
//!
//! Coverage is the share of the query's lexical weight that a result contains. Prominence is how
//! far its cosine is above those of the other memories, in standard deviations, relative to what
//! the nearest of as many unrelated memories would have. Neither depends on the scale of an
//! encoder's cosines. See `docs/retrieval.md` for how the constants were chosen.

use super::bm25::Bm25Weights;
use super::filter::Filters;
use super::lexical::max_idf;
use super::remote::Eligibility;
use super::retrieve::Candidate;
use super::view::{DocScores, EligibilityRules, View};
use ack_api::cancel;

/// Minimum evidence of results that answer a query.
const MIN_EVIDENCE: f32 = 0.5;
/// The weight of a prominence of 1, relative to full coverage.
const PROMINENCE_WEIGHT: f32 = 0.3;
/// Coverage is measured against at most the weight of this many of the rarest words: an answer to a
/// long query need not contain everything.
const MAX_COVERED_WORDS: f32 = 5.0;

/// How many memories are sampled to estimate the distribution of the cosines.
const SAMPLE_DOCS: usize = 8_192;
/// If the sample has fewer, all memories are used.
const MIN_SAMPLED_DOCS: f32 = 512.0;

/// Whether one of the best results of hybrid retrieval is certain enough to answer the query.
/// `cosines` are those of each view's documents.
pub fn is_certain(
    views: &[View<'_>],
    bm25: &Bm25Weights,
    cosines: &[DocScores],
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
    // For a scope that is not in memory, only the nearest memories are known.
    coverage >= MIN_EVIDENCE
        || views.iter().any(|view| view.index.remote().is_some())
        || coverage + PROMINENCE_WEIGHT * prominence(views, cosines, filters, best) >= MIN_EVIDENCE
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

/// How far the nearest of the best results is above all memories that may be shown. Their mean and
/// deviation come from a sample.
fn prominence(
    views: &[View<'_>],
    cosines: &[DocScores],
    filters: &Filters,
    best: &[Candidate],
) -> f32 {
    let documents: usize = views.iter().map(|view| view.index.lengths().len()).sum();
    let sample = |step: usize| {
        let (mut count, mut sum, mut squares) = (0.0f32, 0.0f64, 0.0f64);
        for (view, cosines) in views.iter().zip(cosines) {
            let rules = EligibilityRules::new(view, filters);
            for (doc, cosine) in cancel::guarded(cosines.iter().step_by(step)) {
                if view.has_vector(doc) && matches!(rules.check(doc), Eligibility::Eligible) {
                    count += 1.0;
                    sum += f64::from(cosine);
                    squares += f64::from(cosine).powi(2);
                }
            }
        }
        (count, sum, squares)
    };
    let mut step = documents.div_ceil(SAMPLE_DOCS).max(1);
    let (mut count, mut sum, mut squares) = sample(step);
    // Filters may leave too few memories in the sample.
    if step > 1 && count < MIN_SAMPLED_DOCS {
        step = 1;
        (count, sum, squares) = sample(step);
    }
    if count < 2.0 {
        return 0.0;
    }
    let mean = sum / f64::from(count);
    let deviation = (squares / f64::from(count) - mean * mean).max(0.0).sqrt();
    let nearest = best.iter().map(|candidate| candidate.cosine);
    let distance = f64::from(nearest.fold(0.0, f32::max)) - mean;
    // About how many deviations the largest of that many normal values is above their mean.
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let all = count * step as f32;
    let expected = f64::from((2.0 * all.ln()).sqrt());
    #[expect(clippy::cast_possible_truncation, reason = "a small number")]
    let prominence = (distance / (deviation * expected).max(f64::MIN_POSITIVE)) as f32;
    prominence.clamp(0.0, 10.0)
}
