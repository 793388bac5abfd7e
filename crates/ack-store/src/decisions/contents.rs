//! The decisions about content, under whatever id.
//!
//! The id of a note comes from its file, so a copy or another file name gives the same content
//! another id. A person who rejected it rejected the content. Only decisions that hide a memory
//! apply in this way; an approval applies only to the memory that was reviewed.

use std::collections::HashMap;

use ack_api::decision::{Decision, Verdict};
use ack_api::text;

use super::LoggedDecisions;

/// The contents that agents must not see under another id.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    by_digest: HashMap<String, ExcludedContent>,
}

/// Why content is not served under another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion<'a> {
    /// The newest decision about it.
    Decision(&'a Decision),
    /// A decision about the memory with this id, which had the content, cannot be read.
    Unreadable(&'a str),
}

impl Exclusion<'_> {
    /// The id of the memory that was decided on.
    pub fn id(&self) -> &str {
        match self {
            Self::Decision(decision) => &decision.id,
            Self::Unreadable(id) => id,
        }
    }

    /// Whether the content was rejected.
    pub fn is_rejection(&self) -> bool {
        matches!(self, Self::Decision(decision) if decision.verdict == Verdict::Reject)
    }
}

/// Where a decision is in the log.
#[derive(Debug, Clone)]
struct ExcludedContent {
    id: String,
    /// The position in the list of decisions about this id.
    position: usize,
    is_unreadable: bool,
}

/// The digest that identifies content, whatever the name of its file.
fn content_of(decision: &Decision) -> &str {
    decision.text.as_deref().unwrap_or(&decision.digest)
}

impl Contents {
    /// What the log says about each content.
    pub(super) fn of(by_id: &HashMap<String, LoggedDecisions>) -> Self {
        let mut newest: HashMap<&str, (usize, &str, usize)> = HashMap::new();
        for (id, decided) in by_id {
            for (content, (line, position)) in newest_of(decided) {
                let known = newest.entry(content).or_insert((line, id, position));
                if known.0 < line {
                    *known = (line, id, position);
                }
            }
        }
        let mut contents = Self::default();
        for (content, (_, id, position)) in newest {
            let decision = by_id
                .get(id)
                .and_then(|decided| decided.lines.get(position));
            if decision.is_some_and(|decision| takes_away(decision.verdict)) {
                contents.add(content, id, position, false);
            }
        }
        for (id, decided) in by_id.iter().filter(|(_, decided)| decided.is_unreadable) {
            for (content, (_, position)) in newest_of(decided) {
                if !contents.by_digest.contains_key(content) {
                    contents.add(content, id, position, true);
                }
            }
        }
        contents
    }

    fn add(&mut self, content: &str, id: &str, position: usize, is_unreadable: bool) {
        let excluded = ExcludedContent {
            id: id.to_owned(),
            position,
            is_unreadable,
        };
        self.by_digest.insert(content.to_owned(), excluded);
    }

    /// Whether no content is withheld from agents.
    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// What keeps content from being served under this id; `None` if nothing does.
    pub(super) fn exclusion<'a>(
        &'a self,
        id: &str,
        digest: &str,
        by_id: &'a HashMap<String, LoggedDecisions>,
    ) -> Option<Exclusion<'a>> {
        let excluded = self.by_digest.get(digest).filter(|it| it.id != id)?;
        if excluded.is_unreadable {
            return Some(Exclusion::Unreadable(&excluded.id));
        }
        let decision = by_id.get(&excluded.id)?.lines.get(excluded.position)?;
        // It is the memory that took the other one's place.
        let is_successor = decision
            .into
            .as_deref()
            .is_some_and(|into| text::id(into) == id);
        (!is_successor).then_some(Exclusion::Decision(decision))
    }
}

/// Whether a decision hides a memory from agents.
const fn takes_away(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Reject | Verdict::Stage | Verdict::Supersede | Verdict::Merge
    )
}

/// The newest decision about each content that a memory had: its line in the log, and its position
/// among the decisions about the memory. A `withdraw` cancels all earlier ones.
fn newest_of(decided: &LoggedDecisions) -> HashMap<&str, (usize, usize)> {
    let mut newest = HashMap::new();
    let lines = decided.lines.iter().zip(&decided.numbers);
    for (position, (decision, line)) in lines.enumerate() {
        if decision.verdict == Verdict::Withdraw {
            newest.clear();
        } else {
            newest.insert(content_of(decision), (*line, position));
        }
    }
    newest
}
