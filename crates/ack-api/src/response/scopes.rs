//! The answer of `list_scopes`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::memory::Visibility;
use crate::{Message, Note};

/// The number of memories by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Approved memories.
    pub approved: u64,
    /// Promoted memories.
    pub promoted: u64,
    /// Undecided memories: unreviewed, or snoozed.
    pub staging: u64,
    /// How many of these are snoozed until a later day.
    #[serde(default, skip_serializing_if = "is_default")]
    pub snoozed: u64,
    /// Rejected memories; never served.
    pub rejected: u64,
    /// Rows with an unknown status; never served.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown: u64,
    /// How many of the approved, promoted and waiting ones a newer memory replaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub replaced: u64,
    /// How many more its program marked as deleted; never read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: u64,
}

impl Counts {
    pub const fn waiting(&self) -> u64 {
        self.staging.saturating_sub(self.snoozed)
    }

    /// `; 3 snoozed; newer ones replace 22 of these; 14 deleted in it are left out`, or nothing.
    pub fn rest_in_words(&self) -> String {
        let mut words = String::new();
        if self.snoozed > 0 {
            words.push_str(&format!("; {} snoozed", self.snoozed));
        }
        if self.replaced > 0 {
            words.push_str(&format!("; newer ones replace {} of these", self.replaced));
        }
        if self.deleted > 0 {
            words.push_str(&format!("; {} deleted in it are left out", self.deleted));
        }
        words
    }
}

/// A tag and how many approved memories have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TagCount {
    /// The tag.
    pub tag: String,
    /// How many memories have it.
    pub count: u64,
}

/// Memories that wait for review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    /// How many memories wait.
    pub count: u64,
    /// When the oldest of them was written, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// A few of their ids, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// How many arrived and were decided recently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<String>,
}

/// The state of a scope's vector table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IndexInfo {
    /// Rows in the table.
    pub rows: u64,
    /// Share of the store's rows in the table, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<f64>,
    /// The encoder that made the vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedder: Option<String>,
    /// When it was built, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_at: Option<String>,
}

/// Whether a scope works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// It works.
    Ok,
    /// It works, with the named problems.
    Degraded,
    /// It does not work.
    Unavailable,
    /// It was not opened: it is private and neither current nor named.
    #[default]
    NotRead,
}

/// The condition of a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Whether it works.
    pub state: HealthState,
    /// How the database was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// What is wrong, and what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Message>,
}

/// One scope of `list_scopes`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeInfo {
    /// Name to pass as `scope`.
    pub name: String,
    /// Its folder; absent for a private scope that is neither current nor named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The database file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Memories that can be read: approved, promoted and staging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_count: Option<u64>,
    /// When the newest of them was written or changed, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// The owner's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who may search it.
    pub visibility: Visibility,
    /// Memories by status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Projects its memories come from, most memories first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<String>,
    /// Tags of its approved memories, most used first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<TagCount>,
    /// Memories that wait for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// The vector table, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexInfo>,
    /// The kind of store: `ack`, `claude-mem` or `claude-mem-v3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The condition of the scope.
    pub health: Health,
}

/// Answer of `list_scopes`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListScopesResponse {
    /// The scopes, by name.
    pub scopes: Vec<ScopeInfo>,
    /// How many there are on all pages, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Pass as `cursor` for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The scope of the current project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_scope: Option<String>,
    /// The rule that found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected_by: Option<String>,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}
