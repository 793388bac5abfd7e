//! Whether memories contain the words of a query, and the messages if none does or if none
//! certainly answers it.

use super::{Hit, Search};
use ack_api::memory::StatusFilter;
use ack_search::certainty::is_certain;
use ack_search::lexical::Matcher;
use ack_search::query::QueryTerms;
use ack_search::retrieve::{Candidate, CandidateSet, Query};

/// How many memories to show if none contains a word of the query, or none certainly answers it:
/// the nearest in meaning, or by similar words.
pub(super) const NEAREST: usize = 3;

/// Keeps only the nearest candidates.
pub(super) fn keep_nearest(candidates: &mut Vec<Candidate>) {
    if let Some(least) = least_of_nearest(candidates) {
        candidates.retain(|near| near.score >= least);
    }
}

/// The score of the last of the nearest, if there are more candidates.
fn least_of_nearest(candidates: &[Candidate]) -> Option<f32> {
    let mut scores: Vec<f32> = candidates.iter().map(|near| near.score).collect();
    let place = scores.len().checked_sub(NEAREST)?;
    let (_, least, _) = scores.select_nth_unstable_by(place, f32::total_cmp);
    Some(*least)
}

impl Search<'_> {
    /// Whether a candidate has evidence other than words that only look like those of the query.
    pub(super) fn has_evidence(&self, candidate: &Candidate, min_cosine: f32) -> bool {
        candidate.cosine >= min_cosine || self.holds_words(candidate)
    }

    /// Whether this is a hybrid search in which none of the best candidates certainly answers the
    /// query.
    pub(super) fn is_uncertain(&self, found: &CandidateSet) -> bool {
        let Some(Query::Hybrid(bm25, _)) = self.question() else {
            return false;
        };
        let is_asked = |terms: &QueryTerms| !terms.only_stop_words;
        if found.candidates.is_empty() || !self.terms().is_some_and(is_asked) {
            return false;
        }
        let least = least_of_nearest(&found.candidates).unwrap_or(f32::NEG_INFINITY);
        let best = found.candidates.iter().filter(|near| near.score >= least);
        let best: Vec<Candidate> = best.take(2 * NEAREST).copied().collect();
        !best.iter().any(|near| self.session_words(near).is_some())
            && !is_certain(&self.views, bm25, &found.cosines, &self.spec.filters, &best)
    }

    /// Whether a candidate, or its session, contains a word of the query.
    fn holds_words(&self, candidate: &Candidate) -> bool {
        let (Some(bm25), Some(view)) = (self.bm25(), self.views.get(candidate.scope)) else {
            return true;
        };
        let is_held = || {
            let terms = bm25.terms.iter();
            let mut own = terms.filter(|term| !bm25.expansions.contains(&term.key));
            own.any(|term| view.frequency(&term.key, candidate.doc).is_some())
        };
        candidate.lexical > 0.0
            && (bm25.expansions.is_empty() || self.session_words(candidate).is_some() || is_held())
    }

    /// Whether the search has words and no candidate contains any of them.
    pub(in crate::service) fn lacks_words(&self, found: &CandidateSet) -> bool {
        self.terms.is_some()
            && !found
                .candidates
                .iter()
                .any(|candidate| self.holds_words(candidate))
    }

    /// The message if no memory certainly answers the query.
    pub(in crate::service) const fn nothing_certain() -> &'static str {
        "nothing certain; these are the nearest in meaning"
    }

    /// The message if no memory contains a word of the query.
    pub(in crate::service) fn no_words(&self, hits: &[Hit]) -> String {
        let which = match self.spec.filters.restricts() {
            true => " that passes the filters",
            false => "",
        };
        let status = match self.spec.filters.status {
            StatusFilter::Approved => "approved ",
            StatusFilter::Staging => "waiting ",
            StatusFilter::All => "",
        };
        let words = format!("no {status}memory{which} contains a word of the query");
        let similar = self.similar_words(hits);
        match (hits.is_empty(), similar.is_empty()) {
            (true, _) => words,
            (false, true) => format!("{words}; these are the nearest in meaning"),
            (false, false) => {
                format!(
                    "{words}; these are the nearest (similar: {})",
                    similar.join(", ")
                )
            }
        }
    }

    /// Words of the results that look like those of the query.
    fn similar_words(&self, hits: &[Hit]) -> Vec<String> {
        let mut similar = Vec::new();
        let Some(bm25) = self.bm25().filter(|bm25| !bm25.expansions.is_empty()) else {
            return similar;
        };
        let mut matcher = Matcher::new(bm25);
        for Hit { memory, .. } in hits {
            let lists = memory.facts.iter().chain(&memory.concepts);
            let texts = lists.chain(&memory.subtitle).chain(&memory.narrative);
            for text in std::iter::once(&memory.title).chain(texts) {
                for (_, word) in matcher.matching_words(text) {
                    let word = format!("`{}`", ack_api::text::line(&word, 40));
                    if similar.len() < NEAREST && !similar.contains(&word) {
                        similar.push(word);
                    }
                }
            }
        }
        similar
    }
}
