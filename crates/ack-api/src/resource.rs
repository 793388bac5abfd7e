//! Contents of resources and prompts that no tool returns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Note, ScopeInfo};

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

/// Something to look at before a memory is approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// It holds what looks like a password, a key or a token.
    Secret,
    /// It gives an agent instructions instead of stating facts.
    AddressesAgent,
    /// It contains invisible characters: control characters, or characters that hide text.
    Hidden,
    /// A value was damaged.
    Repaired,
}

impl Warning {
    /// Whether a person has to look at the memory before it is approved: the default of its store
    /// and a choice for many memories leave it out.
    pub const fn is_flag(self) -> bool {
        !matches!(self, Self::Repaired)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "looks like it contains a password, a key or a token",
            Self::AddressesAgent => "addresses an agent",
            Self::Hidden => "contains control or hidden characters, which are not shown",
            Self::Repaired => "had damaged values",
        }
    }
}
