//! What was decided about a memory, as answers show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// One entry of the curation log.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// What was done.
    pub action: String,
    /// Status before.
    pub previous_status: Option<String>,
    /// Status after.
    pub new_status: Option<String>,
    /// The memory that took its place, if that one is served.
    pub into: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Who did it.
    pub actor: Option<String>,
    /// When, UTC.
    pub created_at: Option<String>,
}
