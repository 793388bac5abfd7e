//! The vocabulary every other module speaks: the memory record, its curation status, and the small value types around
//! them. No input or output happens here.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a memory stands in curation: `staging → approved → promoted`, or `rejected`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Written down, not reviewed yet.
    Staging,
    /// Reviewed and good to use.
    Approved,
    /// Approved, and lifted into a scope that more projects share.
    Promoted,
    /// Reviewed and turned down. Never served.
    Rejected,
}

impl Status {
    /// Reads a status as stores spell it: any case, surrounding blanks (of ASCII) ignored. `None` for any other word, so that a
    /// spelling nobody knows is never mistaken for an approval.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim_ascii();
        [Self::Staging, Self::Approved, Self::Promoted, Self::Rejected]
            .into_iter()
            .find(|status| word.eq_ignore_ascii_case(status.as_str()))
    }

    /// The word used in stores, arguments and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Approved => "approved",
            Self::Promoted => "promoted",
            Self::Rejected => "rejected",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Which statuses a request lets through. An allow-list: what it does not name stays out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatusFilter {
    /// Approved and promoted memories (the default).
    #[default]
    Approved,
    /// Memories that wait for review.
    Staging,
    /// Approved, promoted and staging memories; rejected ones never.
    All,
}

impl StatusFilter {
    /// Whether a memory of this status may be part of the answer.
    pub const fn allows(self, status: Status) -> bool {
        match status {
            Status::Approved | Status::Promoted => matches!(self, Self::Approved | Self::All),
            Status::Staging => matches!(self, Self::Staging | Self::All),
            Status::Rejected => false,
        }
    }

    /// The word used in arguments and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Staging => "staging",
            Self::All => "all",
        }
    }
}

/// What the rows of a store without a status column count as (`unreviewed` in `scope.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unreviewed {
    /// Nobody has reviewed them: they are hidden unless asked for (the default).
    #[default]
    Staging,
    /// The owner vouches for them as they are.
    Approved,
}

impl Unreviewed {
    /// The status such a row gets.
    pub const fn status(self) -> Status {
        match self {
            Self::Staging => Status::Staging,
            Self::Approved => Status::Approved,
        }
    }
}

/// Whether the overviews of sessions are told (`overviews` in `scope.toml`). Nobody reviews them, so somebody has to vouch for
/// them; where the manifest says nothing, a store in which nothing waits for review or was rejected is taken for an owner who does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overviews {
    /// They are told with the sessions that are.
    Show,
    /// They are never told.
    Hide,
}

/// Whether other projects may search a scope (`visibility` in `scope.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Searched by every request that names no scope (the default).
    #[default]
    Shared,
    /// Read only when it is the current scope or is named.
    Private,
}

/// One memory as a store holds it, decoded and made safe to print. A column that the store lacks is `None` or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Stable public id, for instance `ack_abc123_2026-01-04_001` or `obs-123`.
    pub id: String,
    /// The project it was learned in.
    pub project: Option<String>,
    /// A second name of that project, where the store knows one (a merged worktree).
    pub project_alias: Option<String>,
    /// Name of the session it was learned in.
    pub session: Option<String>,
    /// The writing program's id of that session.
    pub session_id: Option<String>,
    /// Calendar date of the session, as stored.
    pub date: Option<String>,
    /// Kind of memory, for instance `decision` or `bugfix`; the store's own word.
    pub kind: Option<String>,
    /// The learning in one line.
    pub title: String,
    /// One line of context.
    pub subtitle: Option<String>,
    /// Short statements.
    pub facts: Vec<String>,
    /// Tags.
    pub concepts: Vec<String>,
    /// Paths of files it is about, as stored.
    pub files: Vec<String>,
    /// The long text.
    pub narrative: Option<String>,
    /// Curation status, decided by the store or by the scope's `unreviewed` policy.
    pub status: Status,
    /// The writer's confidence, 0 to 1.
    pub confidence: Option<f64>,
    /// When it was reviewed.
    pub reviewed_at: Option<Timestamp>,
    /// Who reviewed it.
    pub reviewed_by: Option<String>,
    /// The id of the memory that replaces this one.
    pub superseded_by: Option<String>,
    /// When it was written.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// The stored status, where it is no known word; the memory counts as rejected then.
    pub unknown_status: Option<String>,
    /// Names of columns whose value was broken and was read as far as possible.
    pub repaired: Vec<&'static str>,
}

/// What a store knows of the memory behind a `superseded_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor<'a> {
    /// The store holds no such memory.
    Gone,
    /// It was turned down.
    Rejected,
    /// It is there.
    There {
        /// Its status.
        status: Status,
        /// The memory that replaces it in turn.
        next: Option<&'a str>,
    },
}

/// Whether a newer memory stands in for the memory `id`, whose `superseded_by` is `first`: its successor may be served too.
/// A successor that is not in the store, was rejected or is hidden by the filter does not take its place, or what both say
/// would be lost; and a circle of successors has none.
pub fn is_superseded<'a>(id: &str, first: Option<&'a str>, filter: StatusFilter, look: impl Fn(&str) -> Successor<'a>) -> bool {
    let Some(first) = first else { return false };
    let mut next = match look(first) {
        Successor::Gone | Successor::Rejected => return false,
        Successor::There { status, .. } if !filter.allows(status) => return false,
        Successor::There { next, .. } => (first, next),
    };
    for _ in 0..32 {
        if next.0 == id {
            return false;
        }
        let Some(following) = next.1 else { return true };
        match look(following) {
            Successor::There { next: behind, .. } => next = (following, behind),
            Successor::Gone | Successor::Rejected => return true,
        }
    }
    true
}

/// The rows of one scope that belong to a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRows {
    /// Names that the project stands under, folded.
    pub names: Vec<String>,
    /// Rows that name no project are the project's.
    pub unnamed: bool,
}

impl ProjectRows {
    /// Whether a row is the project's, by the project that it names and that project's second name, as written.
    pub fn hold(&self, project: &str, alias: &str) -> bool {
        let named = |name: &str| !name.is_empty() && self.names.contains(&fold_name(name));
        named(project) || named(alias) || (project.is_empty() && self.unnamed)
    }
}

/// Folds a project, scope or repository name for comparison: lower case, `_` and blanks equal to `-`.
pub fn fold_name(name: &str) -> String {
    name.trim()
        .chars()
        .map(|c| if c == '_' || c == ' ' { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Longest names that are compared letter by letter, in bytes: that takes as long as their lengths multiplied.
const MAX_COMPARED_BYTES: usize = 200;

/// The candidates max like `wanted`, best first, at max `max`, none that is not similar at all. Of a request that is to stop
/// they are incomplete.
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, max: usize) -> Vec<String> {
    let folded = fold_name(&crate::text::cut(wanted, MAX_COMPARED_BYTES * 4).0);
    let mut scored: Vec<(f64, &str)> = crate::cancel::guarded(candidates)
        .map(|candidate| {
            let other = fold_name(candidate);
            let contained = !folded.is_empty() && (other.contains(&folded) || folded.contains(&other));
            let comparable = folded.len() <= MAX_COMPARED_BYTES && other.len() <= MAX_COMPARED_BYTES;
            let similarity = if comparable { strsim::jaro_winkler(&folded, &other) } else { 0.0 };
            (if contained { similarity.max(0.9) } else { similarity }, candidate)
        })
        .filter(|(similarity, _)| *similarity >= 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(max).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_word_is_no_status() {
        assert_eq!(Status::parse(" Approved "), Some(Status::Approved));
        assert_eq!(Status::parse("approved?"), None);
        assert_eq!(Status::parse(""), None);
    }

    #[test]
    fn no_filter_lets_a_rejected_memory_through() {
        for filter in [StatusFilter::Approved, StatusFilter::Staging, StatusFilter::All] {
            assert!(!filter.allows(Status::Rejected));
        }
        assert!(!StatusFilter::Approved.allows(Status::Staging));
        assert!(!StatusFilter::Staging.allows(Status::Promoted));
    }

    #[test]
    fn nearest_names_come_best_first() {
        let names = ["ledger-api", "kiosk-web", "ledger_api_v2"];
        assert_eq!(nearest("Ledger_API", names.into_iter(), 2), ["ledger-api", "ledger_api_v2"]);
        assert!(nearest("zzz", names.into_iter(), 2).is_empty());
    }
}
