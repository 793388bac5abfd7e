//! What was decided about a memory, as answers show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One entry of the curation log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// What was done.
    pub action: String,
    /// Status before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_status: Option<String>,
    /// Status after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_status: Option<String>,
    /// The memory that took its place, if that one is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// When, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}
