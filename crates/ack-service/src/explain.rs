//! `explain`: what each stage did with a result, and where an expected memory was lost.

use super::search::{Certainty, Page, Search};
use ack_api::memory::Status;
use ack_api::{
    Expected, Explanation, Given, Hint, LegExplanation, MAX_LIMIT, Message, Stage, text,
};
use ack_search::certainty::coverage;
use ack_search::postings::DocId;
use ack_search::retrieve;
use ack_search::retrieve::{Candidate, CandidateSet, MAX_NEAREST, Query, explain_fusion};

impl Search<'_> {
    pub fn explanation(
        &self,
        scored: &Candidate,
        rank: usize,
        candidates: &[Candidate],
    ) -> Explanation {
        let ahead = |better: &dyn Fn(&Candidate) -> bool| {
            1 + candidates.iter().filter(|other| better(other)).count() as u64
        };
        let mut legs = Vec::new();
        if let (Some(bm25), Some(view)) = (self.bm25(), self.views.get(scored.scope)) {
            let parts = bm25.explain(view, scored.doc).into_iter();
            legs.push(LegExplanation {
                leg: "lexical".to_owned(),
                rank: (scored.lexical > 0.0)
                    .then(|| ahead(&|other| other.lexical > scored.lexical)),
                score: rounded(scored.lexical),
                coverage: Some(rounded(coverage(view, bm25, scored))),
                terms: parts
                    .map(|(key, part)| format!("{} {part:.2}", key.trim_start_matches('=')))
                    .collect(),
            });
        }
        if self.has_meaning() {
            legs.push(LegExplanation {
                leg: "semantic".to_owned(),
                rank: self.has_vector(scored).then(|| ahead(&|other| other.cosine > scored.cosine)),
                score: rounded(scored.cosine),
                coverage: None,
                terms: Vec::new(),
            });
        }
        Explanation {
            rank: rank as u64,
            fusion: self.leg_query().map_or_else(String::new, |question| {
                explain_fusion(question, scored, self.best_lexical(candidates))
            }),
            legs,
        }
    }

    /// What happened to the memory `id`, which was expected in the answer.
    pub fn expected(&self, id: &str, page: &Page) -> Expected {
        let mut expected = Expected {
            id: text::id(id),
            scope: None,
            stage: Stage::NotFound,
            message: "none of the searched scopes contains it".into(),
            explanation: None,
        };
        let Some((scope, doc)) = self.locate(id) else {
            let safe_id = text::id(id);
            if self.views.iter().any(|view| view.index.is_rejected(&safe_id)) {
                expected.stage = Stage::HiddenByStatus;
                expected.message =
                    "its curator rejected it; rejected memories are never served".into();
            }
            return expected;
        };
        expected.scope = self.name(scope).map(str::to_owned);
        let Some(view) = self.views.get(scope) else {
            return expected;
        };
        let Some(found) = view.index.doc(doc) else {
            return expected;
        };
        view.index.id(doc).clone_into(&mut expected.id);
        let filters = &self.spec.filters;
        if !filters.status.allows(found.status) {
            expected.stage = Stage::HiddenByStatus;
            let status = if found.status == Status::Staging {
                "not approved yet"
            } else {
                found.status.as_str()
            };
            let message = Message::new(format!(
                "it is {status}, and only {} memories were searched",
                filters.status.as_str()
            ));
            let all = [Given::value("status", "all")];
            let include = Hint::pass(all, "to include it");
            expected.message = message.with_all((!self.spec.withholds).then_some(include));
            return expected;
        }
        if let Some(filter) = view.filter.failed_filter(doc) {
            expected.stage = Stage::Filtered;
            let message = Message::from("a filter leaves it out");
            expected.message = message.with(Hint::omit(filter, "to include it"));
            return expected;
        }
        if view.index.is_superseded(doc, filters.status) {
            expected.stage = Stage::Superseded;
            expected.message = "a newer memory replaces it".into();
            return expected;
        }
        self.explain_rank(&mut expected, (scope, doc), page);
        expected
    }

    /// The stages after the filters: legs, order, folding, page.
    fn explain_rank(&self, expected: &mut Expected, doc_key: (usize, DocId), page: &Page) {
        let found = self.retrieve();
        let Some(scored) =
            found.candidates.iter().find(|other| (other.scope, other.doc) == doc_key).copied()
        else {
            expected.stage = Stage::NotRetrieved;
            expected.message = self.why_not_retrieved(&found, doc_key).into();
            return;
        };
        let ranked = self.ordered(&found.candidates, None);
        let position =
            ranked.iter().position(|other| (other.candidate.scope, other.candidate.doc) == doc_key);
        let rank = position.map_or(0, |position| position + 1);
        expected.explanation = Some(self.explanation(&scored, rank, &found.candidates));
        let hits = page.hits.iter();
        let same =
            |scope: &str, id: &str| expected.scope.as_deref() == Some(scope) && expected.id == id;
        if hits.clone().any(|hit| same(&hit.hit.scope, &hit.hit.id)) {
            expected.stage = Stage::Returned;
            expected.message = Message::new(format!(
                "it is in the answer, at place {rank} of {} before folding",
                ranked.len()
            ));
        } else if let Some(hit) =
            hits.clone().find(|hit| hit.hit.also.iter().any(|also| same(&also.scope, &also.id)))
        {
            expected.stage = Stage::Folded;
            expected.message =
                Message::new(format!("`{}` contains all of it and names it in `also`", hit.hit.id));
        } else {
            expected.stage = Stage::BehindPage;
            let message = Message::new(format!("it is at place {rank} of {}", ranked.len()));
            expected.message = message.with(Hint::NextPage);
            let larger = i64::try_from(rank).unwrap_or(i64::MAX);
            if larger <= i64::from(MAX_LIMIT) {
                let larger = [Given::value("limit", larger)];
                expected.message = expected.message.clone().with(Hint::pass(larger, "to reach it"));
            }
        }
    }

    /// Why no leg proposed a memory that passes the filters.
    fn why_not_retrieved(&self, found: &CandidateSet, doc_key: (usize, DocId)) -> String {
        let cosine = format!("{:.2}", self.cosine_of(doc_key));
        let no_term = "it shares no term with the query";
        match self.leg_query() {
            Some(Query::Lexical(_)) => no_term.to_owned(),
            Some(Query::Hybrid(..)) if self.certainty(found) == Certainty::NoWords => format!(
                "no memory shares a term with the query, and it is not among the few nearest in \
                 meaning (its cosine is {cosine})"
            ),
            Some(Query::Hybrid(..)) if self.cosine_of(doc_key) < found.min_cosine => format!(
                "{no_term}, and its cosine of {cosine} is below {:.2}, which a memory without a \
                 word of the query needs",
                found.min_cosine
            ),
            Some(Query::Hybrid(..)) => format!(
                "{no_term}, and {MAX_NEAREST} memories are nearer in meaning (its cosine is \
                 {cosine})"
            ),
            _ => format!("{MAX_NEAREST} memories are nearer in meaning (its cosine is {cosine})"),
        }
    }

    fn best_lexical(&self, candidates: &[Candidate]) -> f32 {
        self.bm25()
            .and_then(|bm25| bm25.frozen_norm)
            .unwrap_or_else(|| retrieve::score_norm(self.bm25(), candidates))
    }
}

/// A score with three decimals, as answers have it.
pub fn rounded(score: f32) -> f64 {
    f64::from((score * 1000.0).round()) / 1000.0
}
