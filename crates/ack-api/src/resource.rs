//! What resources and prompts hold beyond the tools' answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MemoryHit, Note, RelatedEntry, ScopeInfo, Searched};

/// The resource `memory://scope/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeResource {
    /// The scope as `list_scopes` tells of it.
    pub scope: ScopeInfo,
    /// Its newest approved memories, newest first.
    pub newest: Vec<ResourceEntry>,
    /// What else to know.
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

/// What the prompt `curate_pending` hands over: memories that wait for review, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    /// The memories, as many as fit.
    pub pending: Vec<ReviewItem>,
    /// How many wait in all.
    pub total: u64,
    /// Where it looked.
    pub searched: Searched,
    /// What else to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A memory that waits for review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewItem {
    /// The memory in full.
    #[serde(flatten)]
    pub memory: MemoryHit,
    /// Approved memories that a search for its title finds, best first: what it may repeat or contradict. `similarity` is
    /// that of the title's vector, 0 where it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resembles: Vec<RelatedEntry>,
}

/// What an argument may be completed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many fit in all.
    pub total: usize,
}
