//! `explain`: what each stage did with a result, and where an expected memory was lost.

use super::search::{Certainty, Page, Search};
use ack_api::memory::Status;
use ack_api::{
    Expected, Explanation, Given, Hint, LegExplanation, MAX_LIMIT, Message, Stage, text,
};
use ack_search::certainty::coverage;
use ack_search::postings::DocId;
use ack_search::retrieve::{Candidate, CandidateSet, MAX_NEAREST, explain_fusion, score_norm};
use ack_search::view::View;

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
        let view = self.views.get(scored.scope);
        let mut legs = Vec::new();
        if let (Some(bm25), Some(view)) = (self.bm25(), view) {
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
                rank: view
                    .is_some_and(|view| view.has_vector(scored.doc))
                    .then(|| ahead(&|other| other.cosine > scored.cosine)),
                score: rounded(scored.cosine),
                coverage: None,
                terms: Vec::new(),
            });
        }
        Explanation {
            rank: rank as u64,
            fusion: self.leg_query().map_or_else(String::new, |question| {
                let frozen = self.bm25().and_then(|bm25| bm25.frozen_norm);
                let best = frozen.unwrap_or_else(|| score_norm(self.bm25(), candidates));
                explain_fusion(question, scored, best)
            }),
            legs,
        }
    }

    pub fn expected(&self, id: &str, page: &Page) -> Expected {
        let mut expected = Expected {
            id: text::id(id),
            scope: None,
            stage: Stage::NotFound,
            message: "none of the searched scopes contains it".into(),
            explanation: None,
        };
        let Some((scope, doc)) = self.first_holder(id, None) else {
            if self.views.iter().any(|view| view.index.is_rejected(&expected.id)) {
                expected.stage = Stage::HiddenByStatus;
                expected.message =
                    "its curator rejected or replaced it, and such memories are never served"
                        .into();
            }
            return expected;
        };
        expected.scope = self.name(scope).map(str::to_owned);
        if let Some(view) = self.views.get(scope)
            && let Some(found) = view.index.doc(doc)
        {
            view.index.id(doc).clone_into(&mut expected.id);
            let fate = self.hidden(view, (doc, found.status));
            let fate = fate.unwrap_or_else(|| self.rank_of(&mut expected, (scope, doc), page));
            (expected.stage, expected.message) = fate;
        }
        expected
    }

    /// The stage before the legs at which a memory was lost, if it was.
    fn hidden(&self, view: &View<'_>, (doc, status): (DocId, Status)) -> Option<(Stage, Message)> {
        let filters = &self.spec.filters;
        if !filters.status.allows(status) {
            let is = match status {
                Status::Staging => "not approved yet",
                other => other.as_str(),
            };
            let searched = filters.status.as_str();
            let message =
                Message::new(format!("it is {is}, and only {searched} memories were searched"));
            let include = Hint::pass([Given::value("status", "all")], "to include it");
            let include = (!self.spec.withholds).then_some(include);
            return Some((Stage::HiddenByStatus, message.with_all(include)));
        }
        if let Some(filter) = view.filter.failed_filter(doc) {
            let message = Message::from("a filter leaves it out");
            return Some((Stage::Filtered, message.with(Hint::omit(filter, "to include it"))));
        }
        let is_superseded = view.index.is_superseded(doc, filters.status);
        is_superseded.then(|| (Stage::Superseded, "a newer memory replaces it".into()))
    }

    /// The stages after the filters: legs, order, folding, page.
    fn rank_of(
        &self,
        expected: &mut Expected,
        doc_key: (usize, DocId),
        page: &Page,
    ) -> (Stage, Message) {
        let found = self.retrieve();
        let is_it = |other: &Candidate| (other.scope, other.doc) == doc_key;
        let Some(scored) = found.candidates.iter().find(|other| is_it(other)).copied() else {
            return (Stage::NotRetrieved, self.why_not_retrieved(&found, doc_key).into());
        };
        let ranked = self.ordered(&found.candidates, None);
        let position = ranked.iter().position(|other| is_it(&other.candidate));
        let rank = position.map_or(0, |position| position + 1);
        expected.explanation = Some(self.explanation(&scored, rank, &found.candidates));
        let same =
            |scope: &str, id: &str| expected.scope.as_deref() == Some(scope) && expected.id == id;
        let hits = || page.hits.iter().map(|hit| &hit.hit);
        let all = ranked.len();
        if hits().any(|hit| same(&hit.scope, &hit.id)) {
            let message = format!("it is in the answer, at place {rank} of {all} before folding");
            return (Stage::Returned, message.into());
        }
        if let Some(hit) = hits().find(|hit| hit.also.iter().any(|it| same(&it.scope, &it.id))) {
            let message = format!("`{}` contains all of it and names it in `also`", hit.id);
            return (Stage::Folded, message.into());
        }
        let message = Message::new(format!("it is at place {rank} of {all}")).with(Hint::NextPage);
        let larger = i64::try_from(rank).ok().filter(|rank| *rank <= i64::from(MAX_LIMIT));
        let larger = larger.map(|rank| Hint::pass([Given::value("limit", rank)], "to reach it"));
        (Stage::BehindPage, message.with_all(larger))
    }

    fn why_not_retrieved(&self, found: &CandidateSet, doc_key: (usize, DocId)) -> String {
        let cosine = format!("{:.2}", self.cosine_of(doc_key));
        let no_term = "it shares no term with the query";
        let nearer =
            format!("{MAX_NEAREST} memories are nearer in meaning (its cosine is {cosine})");
        if self.bm25().is_none() {
            nearer
        } else if !self.has_meaning() {
            no_term.to_owned()
        } else if self.certainty(found) == Certainty::NoWords {
            format!(
                "no memory shares a term with the query, and it is not among the few nearest in \
                 meaning (its cosine is {cosine})"
            )
        } else if self.cosine_of(doc_key) < found.min_cosine {
            format!(
                "{no_term}, and its cosine of {cosine} is below {:.2}, which a memory without a \
                 word of the query needs",
                found.min_cosine
            )
        } else {
            format!("{no_term}, and {nearer}")
        }
    }
}

pub fn rounded(score: f32) -> f64 {
    f64::from((score * 1000.0).round()) / 1000.0
}
