//! The decisions about content, under whatever id.
//!
//! The id of a note comes from its file, so a copy or another file name gives the same content
//! another id. A person who rejected it rejected the content. Only decisions that hide a memory
//! apply in this way; an approval applies only to the memory that was reviewed.
//!
//! Of several memories with one content, the newest decision about each counts, and the strictest
//! of these applies: as long as one of them is rejected, so is a copy without a decision.

use std::cmp::Reverse;
use std::collections::HashMap;

use ack_api::decision::{Decision, Verdict};
use ack_api::text;

use super::LoggedDecisions;

/// The contents that agents must not see under another id.
#[derive(Debug, Default, Clone)]
pub struct Contents {
    /// What hides each of them, the strictest first.
    by_digest: HashMap<String, Vec<ExcludedContent>>,
}

/// Why content is not served under another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion<'a> {
    /// The newest decision about another memory with the content.
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

/// How strictly content is withheld, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Rejected,
    /// It was put back, replaced or merged.
    Waits,
    /// A damaged line follows the decision.
    Unreadable,
}

/// Where a decision is in the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ExcludedContent {
    strictness: Strictness,
    /// The newest first.
    line: Reverse<usize>,
    id: String,
    /// The position in the list of decisions about this id.
    position: usize,
}

/// The digest that identifies content, whatever the name of its file.
fn content_of(decision: &Decision) -> &str {
    decision.text.as_deref().unwrap_or(&decision.digest)
}

impl Contents {
    /// What the log says about each content.
    pub(super) fn of(by_id: &HashMap<String, LoggedDecisions>) -> Self {
        let mut contents = Self::default();
        for (id, decided) in by_id {
            for (content, (line, position)) in newest_of(decided) {
                let decision = decided.lines.get(position);
                let verdict = decision.map(|decision| decision.verdict);
                let strictness = match verdict.and_then(strictness) {
                    Some(strictness) => strictness,
                    None if decided.is_unreadable => Strictness::Unreadable,
                    None => continue,
                };
                let excluded = contents.by_digest.entry(content.to_owned()).or_default();
                excluded.push(ExcludedContent {
                    strictness,
                    line: Reverse(line),
                    id: id.clone(),
                    position,
                });
            }
        }
        contents.by_digest.values_mut().for_each(|it| it.sort());
        contents
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
        let excluded = self.by_digest.get(digest)?.iter();
        let mut others = excluded.filter(|it| it.id != id);
        others.find_map(|other| {
            if other.strictness == Strictness::Unreadable {
                return Some(Exclusion::Unreadable(&other.id));
            }
            let decision = by_id.get(&other.id)?.lines.get(other.position)?;
            // It is the memory that took the other one's place.
            let is_successor = decision
                .into
                .as_deref()
                .is_some_and(|into| text::id(into) == id);
            (!is_successor).then_some(Exclusion::Decision(decision))
        })
    }
}

/// How strictly a decision withholds content; `None` if it does not.
const fn strictness(verdict: Verdict) -> Option<Strictness> {
    match verdict {
        Verdict::Reject => Some(Strictness::Rejected),
        Verdict::Stage | Verdict::Supersede | Verdict::Merge => Some(Strictness::Waits),
        Verdict::Approve | Verdict::Promote | Verdict::Edit | Verdict::Withdraw => None,
    }
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
