//! The decisions about content, under whatever id: a copy, or a new file name, gives the same note
//! another one, and a person who rejected it rejected the content. An approval applies only to the
//! memory that was reviewed.
//!
//! Of several memories with one content, the newest decision about each counts, and the strictest
//! of these applies to a copy without a decision.

use std::cmp::Reverse;
use std::collections::HashMap;

use ack_api::decision::{Decision, Verdict};
use ack_api::text;

use super::LoggedDecisions;

#[derive(Debug, Default, Clone)]
pub struct Contents {
    by_digest: HashMap<String, Vec<ExcludedContent>>,
}

/// Why content is not served under another id: the newest decision about a memory that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exclusion<'a> {
    pub id: &'a str,
    pub is_rejection: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strictness {
    Rejected,
    /// It was put back, replaced or merged.
    Waits,
    /// A damaged line follows the decision.
    Unreadable,
}

/// A decision that withholds content. The strictest is the least, and then the newest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ExcludedContent {
    strictness: Strictness,
    line: Reverse<usize>,
    id: String,
    successor: Option<String>,
}

impl Contents {
    pub(super) fn of(by_id: &HashMap<String, LoggedDecisions>) -> Self {
        let mut contents = Self::default();
        for (id, decided) in by_id {
            for (content, (line, decision)) in newest_of(decided) {
                let strictness = match decision.verdict {
                    Verdict::Reject => Strictness::Rejected,
                    Verdict::Stage | Verdict::Supersede | Verdict::Merge => Strictness::Waits,
                    _ if decided.is_unreadable => Strictness::Unreadable,
                    // It withholds nothing.
                    Verdict::Approve | Verdict::Promote | Verdict::Edit | Verdict::Withdraw => {
                        continue;
                    }
                };
                contents.by_digest.entry(content.to_owned()).or_default().push(ExcludedContent {
                    strictness,
                    line: Reverse(line),
                    id: id.clone(),
                    successor: decision.into.as_deref().map(text::id),
                });
            }
        }
        contents.by_digest.values_mut().for_each(|it| it.sort());
        contents
    }

    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// What keeps content from being served under this id; `None` if nothing does.
    pub(super) fn exclusion(&self, id: &str, digest: &str) -> Option<Exclusion<'_>> {
        let other = self.by_digest.get(digest)?.iter().find(|other| {
            let is_successor = other.strictness != Strictness::Unreadable
                && other.successor.as_deref() == Some(id);
            other.id != id && !is_successor
        })?;
        Some(Exclusion { id: &other.id, is_rejection: other.strictness == Strictness::Rejected })
    }
}

/// The newest decision about each content of a memory, with its line; a `withdraw` cancels them.
fn newest_of(decided: &LoggedDecisions) -> HashMap<&str, (usize, &Decision)> {
    let mut newest = HashMap::new();
    for (decision, line) in decided.lines.iter().zip(&decided.numbers) {
        if decision.verdict == Verdict::Withdraw {
            newest.clear();
        } else {
            // The digest that identifies content, whatever the name of its file.
            let content = decision.text.as_deref().unwrap_or(&decision.digest);
            newest.insert(content, (*line, decision));
        }
    }
    newest
}
