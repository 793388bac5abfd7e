//! Whether memories contain the words of a query, and the messages if none does or if none
//! certainly answers it.

use super::{Hit, Search};
use crate::budget::excerpt::{self, MAX_PAGE_BYTES};
use crate::budget::passage::Question;
use crate::budget::{ShownText, cut_long_text};
use ack_api::memory::{Memory, StatusFilter};
use ack_api::{Detail, MemoryHit};
use ack_search::analysis::{is_specific, is_unspaced};
use ack_search::certainty::{is_covered, is_near};
use ack_search::encoder::Encoder;
use ack_search::lexical::Matcher;
use ack_search::query::QueryTerm;
use ack_search::retrieve::{Candidate, CandidateSet};

/// How many to show if none contains a word of the query, or none certainly answers it.
pub const MAX_NEAREST: usize = 3;

const MAX_MISSING: usize = 3;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Certainty {
    #[default]
    Certain,
    /// They are only the nearest.
    Uncertain,
    /// They are only the nearest, and none contains a word of the query.
    NoWords,
}

fn quoted(word: &str) -> String {
    format!("`{}`", ack_api::text::line(word, 40))
}

/// Keeps the nearest, and those that are as near as the last of these.
pub fn truncate_to_nearest(candidates: &mut Vec<Candidate>) {
    let mut scores: Vec<f32> = candidates.iter().map(|candidate| candidate.score).collect();
    let Some(index) = scores.len().checked_sub(MAX_NEAREST) else {
        return;
    };
    let threshold = *scores.select_nth_unstable_by(index, f32::total_cmp).1;
    candidates.retain(|candidate| candidate.score >= threshold);
}

impl Search<'_> {
    pub fn question(&self) -> Question<'_> {
        let vector = self.query_vector.as_ref().filter(|_| self.is_search());
        Question {
            matcher: self.bm25().map(Matcher::new),
            vector: vector.map(|query| &query.plain),
            left: MAX_PAGE_BYTES,
        }
    }

    /// Chooses what a result shows of its memory's text. Says what that is if it is cut.
    pub fn select_text(
        &self,
        hit: &mut MemoryHit,
        memory: &Memory,
        question: &mut Question<'_>,
    ) -> Option<ShownText> {
        if self.spec.is_proposal {
            return None;
        }
        if self.spec.detail == Detail::Full {
            return cut_long_text(hit, memory, question);
        }
        excerpt::select(hit, memory, question, self.spec.by_agent);
        None
    }

    pub fn certainty(&self, found: &CandidateSet) -> Certainty {
        let candidates = &found.candidates;
        let Some(bm25) = self.bm25() else {
            return Certainty::Certain;
        };
        let vector = self.query_vector.as_ref();
        let is_near = vector.is_some_and(|vector| is_near(bm25, vector, candidates));
        let lacks_words = !candidates.iter().any(|candidate| self.contains_words(candidate));
        let is_misspelt = lacks_words && !bm25.corrections.is_empty();
        if is_near && !is_misspelt {
            Certainty::Certain
        } else if lacks_words {
            Certainty::NoWords
        } else if vector.is_none()
            || is_covered(&self.views, bm25, candidates)
            || !bm25.required_identifiers.is_empty()
            || self.terms().is_some_and(|terms| terms.only_stop_words)
        {
            Certainty::Certain
        } else {
            Certainty::Uncertain
        }
    }

    /// Whether a candidate contains a word of the query.
    pub fn contains_words(&self, candidate: &Candidate) -> bool {
        let (Some(bm25), Some(view)) = (self.bm25(), self.views.get(candidate.scope)) else {
            return true;
        };
        let is_held = || {
            let mut own = bm25.terms.iter().filter(|term| !bm25.lookalikes.contains(&term.key));
            own.any(|term| view.frequency(&term.key, candidate.doc).is_some())
        };
        candidate.lexical > 0.0 && (bm25.lookalikes.is_empty() || is_held())
    }

    /// Whether neither a memory nor the encoder knows any word: its vector is then no evidence.
    pub fn is_gibberish(&self, found: &CandidateSet) -> bool {
        let (Some(terms), Some(encoder)) = (self.terms(), Encoder::embedded()) else {
            return false;
        };
        let is_unknown =
            |term: &QueryTerm| term.word.is_ascii() && encoder.weight(&term.word).is_none();
        self.spec.meaning.is_none()
            && found.candidates.iter().all(|near| near.lexical <= 0.0)
            && terms.terms.iter().all(is_unknown)
    }

    pub fn nothing_certain(&self) -> String {
        let text = self.spec.text.as_deref().unwrap_or_default();
        let mut missing = self.missing_words();
        // A word of another language may be missing because the memories are in English.
        if Encoder::embedded().is_some_and(|encoder| !encoder.is_english(text)) {
            missing.retain(|word| word.contains(|c: char| c.is_ascii_digit()) || is_specific(word));
        }
        if missing.is_empty() || missing.len() > MAX_MISSING {
            return "no certain match; these are the nearest in meaning".to_owned();
        }
        let status = self.status_word();
        let missing: Vec<String> = missing.into_iter().map(quoted).collect();
        let missing = missing.join(" or ");
        format!("no certain match: no {status}memory contains {missing}; these are the nearest")
    }

    fn missing_words(&self) -> Vec<&str> {
        let status = self.spec.filters.status;
        let is_missing = |term: &&QueryTerm| {
            // Of a text without spaces, pairs of characters are no words.
            !term.word.starts_with(is_unspaced)
                && !self.views.iter().any(|view| view.index.contains_term(&term.key, status))
        };
        let terms = self.terms().into_iter().flat_map(|terms| &terms.terms);
        let words: Vec<&str> = terms.filter(is_missing).map(|term| term.word.as_str()).collect();
        // Not the parts of an identifier that is missing itself.
        let is_part = |word: &str| words.iter().any(|other| *other != word && other.contains(word));
        let mut in_full: Vec<&str> = words.iter().copied().filter(|word| !is_part(word)).collect();
        in_full.dedup();
        in_full
    }

    /// The requested status, before the word "memory".
    const fn status_word(&self) -> &'static str {
        match self.spec.filters.status {
            StatusFilter::Approved => "approved ",
            StatusFilter::Staging => "unreviewed ",
            StatusFilter::All => "",
        }
    }

    pub fn no_words(&self, hits: &[Hit]) -> String {
        let which = if self.spec.filters.restricts() { " that passes the filters" } else { "" };
        let status = self.status_word();
        let words = format!("no {status}memory{which} contains a word of the query");
        if hits.is_empty() {
            return words;
        }
        let corrections = self.bm25().into_iter().flat_map(|bm25| &bm25.corrections);
        let corrected: Vec<String> = corrections.map(|(_, right)| quoted(right)).collect();
        let similar = self.similar_words(hits).join(", ");
        if !corrected.is_empty() {
            format!("{words}; did you mean {}?", corrected.join(", "))
        } else if similar.is_empty() {
            format!("{words}; these are the nearest in meaning")
        } else {
            format!("{words}; these are the nearest (similar: {similar})")
        }
    }

    fn similar_words(&self, hits: &[Hit]) -> Vec<String> {
        let mut similar = Vec::new();
        let Some(bm25) = self.bm25().filter(|bm25| !bm25.lookalikes.is_empty()) else {
            return similar;
        };
        let mut matcher = Matcher::new(bm25);
        for Hit { memory, .. } in hits {
            let lists = memory.facts.iter().chain(&memory.concepts);
            let texts = lists.chain(&memory.subtitle).chain(&memory.narrative);
            for text in std::iter::once(&memory.title).chain(texts) {
                for (_, word) in matcher.matching_words(text) {
                    let word = quoted(&word);
                    if similar.len() < MAX_NEAREST && !similar.contains(&word) {
                        similar.push(word);
                    }
                }
            }
        }
        similar
    }
}
