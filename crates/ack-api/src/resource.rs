//! Contents of resources and prompts that no tool returns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MemoryHit, Note, RelatedEntry, ScopeInfo, Searched};

/// The resource `memory://scope/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeResource {
    /// The scope as in `list_scopes`.
    pub scope: ScopeInfo,
    /// Its newest approved memories, newest first.
    pub newest: Vec<ResourceEntry>,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A memory that can be read as a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceEntry {
    /// Its address.
    pub uri: String,
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// When it was written, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

/// The memories that the prompt `curate_pending` shows: those that wait for review, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// The memories, as many as fit.
    pub pending: Vec<ReviewItem>,
    /// How many wait for review.
    pub total: u64,
    /// Which scopes were searched.
    pub searched: Searched,
    /// Anything else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A memory that waits for review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewItem {
    /// The full memory.
    #[serde(flatten)]
    pub memory: MemoryHit,
    /// Approved memories it may repeat or contradict, best first (`similarity` 0: no vector).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resembles: Vec<RelatedEntry>,
}

/// Suggestions for the value of an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many values match.
    pub total: usize,
}
