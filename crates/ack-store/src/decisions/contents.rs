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

/// A decision that withholds content. A rejection is the strictest, and then the newest.
#[derive(Debug, Clone)]
struct ExcludedContent {
    is_rejection: bool,
    line: usize,
    id: String,
    successor: Option<String>,
}

impl Contents {
    pub(super) fn of(by_id: &HashMap<String, LoggedDecisions>) -> Self {
        let mut contents = Self::default();
        for (id, decided) in by_id {
            for (content, (line, decision)) in newest_of(decided) {
                let withholds = matches!(
                    decision.verdict,
                    Verdict::Reject | Verdict::Stage | Verdict::Supersede | Verdict::Merge
                );
                // A damaged line may have rejected what an earlier one approved.
                if !withholds && !decided.is_unreadable {
                    continue;
                }
                let successor = decision.into.as_deref().filter(|_| withholds);
                contents.by_digest.entry(content.to_owned()).or_default().push(ExcludedContent {
                    is_rejection: decision.verdict == Verdict::Reject,
                    line,
                    id: id.clone(),
                    successor: successor.map(text::id),
                });
            }
        }
        for excluded in contents.by_digest.values_mut() {
            excluded.sort_by_key(|it| Reverse((it.is_rejection, it.line)));
        }
        contents
    }

    pub fn is_empty(&self) -> bool {
        self.by_digest.is_empty()
    }

    /// What keeps content from being served under this id; `None` if nothing does.
    pub(super) fn exclusion(&self, id: &str, digest: &str) -> Option<Exclusion<'_>> {
        let mut others = self.by_digest.get(digest)?.iter();
        let other = others.find(|it| it.id != id && it.successor.as_deref() != Some(id))?;
        Some(Exclusion { id: &other.id, is_rejection: other.is_rejection })
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
