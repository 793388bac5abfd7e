//! Contents of resources and prompts that no tool returns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MemoryHit, Note, RelationKind, ScopeInfo, Searched};
use crate::memory::Status;

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
    /// How many older ones come before these.
    pub offset: u64,
    /// The `offset` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
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
    /// What to look at first. Lines that look like a secret are left out of the memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// How many days ago it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days: Option<i64>,
    /// The ids of other memories that wait in its scope and are much alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<String>,
    /// Approved memories that it repeats, contradicts or resembles, at most three. Those that it
    /// repeats or contradicts come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resembles: Vec<NearEntry>,
    /// What the instructions of the current project (CLAUDE.md, AGENTS.md, rules) say about it, at
    /// most three: the same, or the opposite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionEntry>,
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

    /// The warning in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "looks like it contains a password, a key or a token",
            Self::AddressesAgent => "addresses an agent",
            Self::Hidden => "control or hidden characters were removed from what is shown",
            Self::Repaired => "values were damaged",
        }
    }
}

/// A passage of a project's instructions that is much like a memory, or contradicts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionEntry {
    /// The file, relative to the top of the project.
    pub file: String,
    /// The line where the passage begins, from 1.
    pub line: u64,
    /// How the waiting memory relates to it: `same`, `differs` or `contradicts`.
    pub relation: RelationKind,
    /// What it says.
    pub says: String,
    /// The statements that cannot both be true, if it is contradicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<InstructionConflict>,
}

/// A statement of a waiting memory and one of the instructions, which cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstructionConflict {
    /// What the waiting memory says.
    pub waiting: String,
    /// What the instructions say.
    pub instruction: String,
    /// The same as `instruction`, which replaces this name.
    pub approved: String,
}

/// An approved memory near one that waits for review.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearEntry {
    /// Its id.
    pub id: String,
    /// Its scope.
    pub scope: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: Status,
    /// How the waiting memory relates to it.
    pub relation: RelationKind,
    /// How much content they share, over the whole text: 1 is all, 0 is none.
    pub resemblance: f64,
    /// The statements that cannot both be true, if it is contradicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<ConflictingStatements>,
}

/// Two statements that cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictingStatements {
    /// What the waiting memory says.
    pub waiting: String,
    /// What the approved one says.
    pub approved: String,
}

/// Suggestions for the value of an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many values match.
    pub total: usize,
}
