//! The vocabulary of every other module: the memory record, its curation status, and small value
//! types. It does no I/O.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

/// The curation status of a memory: `staging → approved → promoted`, or `rejected`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Recorded, not reviewed yet.
    #[default]
    Staging,
    /// Reviewed and good to use.
    Approved,
    /// Approved, and useful beyond its own project.
    Promoted,
    /// Reviewed and rejected. Never served.
    Rejected,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Staging, Self::Approved, Self::Promoted, Self::Rejected];

    pub const fn is_served(self) -> bool {
        matches!(self, Self::Approved | Self::Promoted)
    }

    /// Parses a status in any case, with ASCII white space around it. Any other word is `None`, so
    /// that an unknown spelling never counts as an approval.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim_ascii();
        let mut known = Self::ALL.into_iter();
        known.find(|status| word.eq_ignore_ascii_case(status.as_str()))
    }

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

/// The statuses that a request allows. Any other status is left out.
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
    pub const fn allows(self, status: Status) -> bool {
        match status {
            Status::Approved | Status::Promoted => matches!(self, Self::Approved | Self::All),
            Status::Staging => matches!(self, Self::Staging | Self::All),
            Status::Rejected => false,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Staging => "staging",
            Self::All => "all",
        }
    }
}

/// The status of rows in a store without a status column (`unreviewed` in `scope.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unreviewed {
    /// They are not reviewed: hidden unless asked for (the default).
    #[default]
    Staging,
    /// The owner vouches for all of them.
    Approved,
}

impl Unreviewed {
    pub const fn status(self) -> Status {
        match self {
            Self::Staging => Status::Staging,
            Self::Approved => Status::Approved,
        }
    }
}

/// Whether session overviews are shown (`overviews` in `scope.toml`). They are not reviewed. By
/// default they are shown if every memory of the store is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overviews {
    /// They are shown with their sessions.
    Show,
    /// They are never shown.
    Hide,
}

/// Whether other projects may search a scope (`visibility` in `scope.toml`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Searched by every request that names no scope (the default).
    #[default]
    Shared,
    /// Read only if it is the current scope or is named.
    Private,
}

/// One memory of a store, decoded and safe to print. A column that the store lacks is `None` or
/// empty. As JSON, it has no marks that reading adds: so it is published in a bucket. Other
/// versions may add keys; unknown ones are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Stable public id, for instance `ack_abc123_2026-01-04_001` or `obs-123`.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// A second name of that project, if the store has one (a merged worktree).
    #[serde(skip)]
    pub project_alias: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// That session's id in the program that recorded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Calendar date of the session, as stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The type of memory, for instance `decision` or `bugfix`, in the store's own words.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtitle: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concepts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub narrative: Option<String>,
    /// Curation status, decided by the store or by the scope's `unreviewed` policy.
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The day after which its author expects it to be out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_after: Option<Date>,
    /// The reasons against it that applied when a person kept it anyway.
    #[serde(skip)]
    pub kept_despite: Option<String>,
    /// The word by which its author says that it is no longer valid, such as `deprecated`.
    #[serde(skip)]
    pub withdrawn: Option<String>,
    /// The stored status, if it is not a known word. The memory then counts as rejected.
    #[serde(skip)]
    pub unknown_status: Option<String>,
    /// The columns whose value was broken and was read as far as possible.
    #[serde(skip)]
    pub repaired: Vec<&'static str>,
}

impl Memory {
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let title = std::iter::once(&self.title).chain(&self.subtitle);
        title.chain(&self.facts).chain(&self.narrative).map(String::as_str)
    }

    /// Everything in it that a program or a person wrote, including what is usually not text.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        let named = [&self.kind, &self.project, &self.session, &self.session_id, &self.date];
        let lists = self.concepts.iter().chain(&self.files);
        self.texts().chain(named.into_iter().flatten().chain(lists).map(String::as_str))
    }

    #[must_use]
    pub fn without_marks(self) -> Self {
        Self {
            project_alias: None,
            kept_despite: None,
            withdrawn: None,
            unknown_status: None,
            repaired: Vec::new(),
            ..self
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a published memory; `None` if it is invalid, or if it may not be served.
    pub fn parse_published(json: &str) -> Option<Self> {
        let memory: Self = serde_json::from_str(json).ok()?;
        let is_whole = !memory.id.trim().is_empty() && !memory.title.trim().is_empty();
        (is_whole && memory.status.is_served()).then_some(memory)
    }
}

/// The status of a memory, and the one that its `superseded_by` names.
pub type Succession<'a> = (Status, Option<&'a str>);

pub const MAX_SUCCESSORS: usize = 1_024;

/// Whether the memory `id` is superseded by one that the filter allows. A successor that is missing,
/// rejected or hidden by the filter does not count, because then neither would be shown; and an
/// approved memory is superseded only by one that is approved, too. A memory in a cycle of
/// successors is not superseded, and one before a cycle is. Nor is one with more successors than
/// [`MAX_SUCCESSORS`]: they may be a cycle. `lookup` finds a memory; a rejected one may be missing.
pub fn is_superseded<'a>(
    id: &str,
    (status, first): Succession<'a>,
    filter: StatusFilter,
    lookup: impl Fn(&str) -> Option<Succession<'a>>,
) -> bool {
    let Some(first) = first else { return false };
    let filter = if status.is_served() { StatusFilter::Approved } else { filter };
    let mut next = match lookup(first) {
        Some((status, next)) if filter.allows(status) => (first, next),
        _ => return false,
    };
    // Brent's algorithm: in a cycle, the chain comes back to one of the marks.
    let mut mark = "";
    for step in 1..MAX_SUCCESSORS {
        if next.0 == id {
            return false;
        }
        if next.0 == mark {
            return true;
        }
        if step.is_power_of_two() {
            mark = next.0;
        }
        let Some(successor) = next.1 else { return true };
        match lookup(successor) {
            Some((status, after)) if status != Status::Rejected => next = (successor, after),
            _ => return true,
        }
    }
    false
}

/// The rows of one scope that belong to a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectRows {
    /// The folded names of the project in the scope.
    pub names: Vec<String>,
    /// Rows without a project belong to this one.
    pub unnamed: bool,
}

impl ProjectRows {
    /// Whether a row belongs to the project, given the project and the alias that it records.
    pub fn contain(&self, project: &str, alias: &str) -> bool {
        let is_listed = |name: &str| !name.is_empty() && self.names.contains(&fold_name(name));
        is_listed(project) || is_listed(alias) || (project.is_empty() && self.unnamed)
    }

    pub fn contain_memory(&self, memory: &Memory) -> bool {
        let [project, alias] = [&memory.project, &memory.project_alias];
        self.contain(project.as_deref().unwrap_or_default(), alias.as_deref().unwrap_or_default())
    }
}

/// Folds a name for comparison: to lower case, with `-` for `_` and spaces.
pub fn fold_name(name: &str) -> String {
    lower_case(name.trim()).replace(['_', ' '], "-")
}

/// A name in lower case, with composed letters: the file names of a Mac have others.
pub fn lower_case(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfc().flat_map(char::to_lowercase).collect()
}

/// A name as a Mac writes it in the name of a file.
pub fn decomposed(name: &str) -> String {
    name.nfd().collect()
}

/// The longest names, in bytes, that are compared letter by letter. The cost grows with the product
/// of their lengths.
const MAX_COMPARED_BYTES: usize = 200;

/// The candidates most similar to `wanted`, best first. Incomplete if the request is stopped.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
    max: usize,
) -> Vec<String> {
    let folded = fold_name(&crate::text::cut(wanted, MAX_COMPARED_BYTES * 4).0);
    let mut scored: Vec<(f64, &str)> = crate::cancel::guarded(candidates)
        .map(|candidate| {
            let other = fold_name(candidate);
            let is_part =
                !folded.is_empty() && (other.contains(&folded) || folded.contains(&other));
            let mut similarity: f64 = if is_part { 0.9 } else { 0.0 };
            if folded.len().max(other.len()) <= MAX_COMPARED_BYTES {
                let least = if has_swapped_letters(&folded, &other) { 0.8 } else { 0.0 };
                similarity = strsim::jaro_winkler(&folded, &other).max(similarity).max(least);
            }
            (similarity, candidate)
        })
        .filter(|(similarity, _)| *similarity >= 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(max).map(|(_, name)| name.to_owned()).collect()
}

/// Whether two words differ only in two neighbouring letters that are swapped. In short words, the
/// general measure does not find that.
fn has_swapped_letters(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && strsim::osa_distance(one, other) == 1
        && strsim::levenshtein(one, other) == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_of_any_length_replaces_none_of_its_memories() {
        // Memories 0 to `last`, each replaced by the next, and the last one by `back`.
        let superseded = |last: usize, back: Option<usize>| {
            let names: Vec<String> = (0..=last).map(|number| number.to_string()).collect();
            let next = |number: usize| {
                let next = if number == last { back } else { Some(number + 1) };
                Some(names[next?].as_str())
            };
            let lookup = |id: &str| Some((Status::Approved, next(id.parse().unwrap())));
            let all = 0..=last;
            let superseded = all.filter(|number| {
                let filter = StatusFilter::Approved;
                let own = (Status::Approved, next(*number));
                is_superseded(&names[*number], own, filter, lookup)
            });
            superseded.count()
        };
        for length in [2, 3, 31, 32, 33, 34, 64, 100, 1_000, 2_000] {
            assert_eq!(superseded(length - 1, Some(0)), 0, "a cycle of {length}");
        }
        // All but the last one of a chain, and all before a cycle.
        assert_eq!(superseded(900, None), 900);
        assert_eq!(superseded(99, Some(60)), 60);
        assert_eq!(superseded(99, Some(98)), 98);
    }

    #[test]
    fn nearest_names_come_best_first() {
        let names = ["ledger-api", "kiosk-web", "ledger_api_v2"];
        assert_eq!(nearest("Ledger_API", names.into_iter(), 2), ["ledger-api", "ledger_api_v2"]);
        assert!(nearest("zzz", names.into_iter(), 2).is_empty());
        // Two letters of a short word that are swapped.
        assert_eq!(nearest("vmi", ["vim", "vip", "web"].into_iter(), 3), ["vim"]);
    }
}
