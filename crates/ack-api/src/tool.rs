//! The four tools, by their own names.

/// One of the four tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// What matters for a project when a session starts.
    GetContext,
    /// Memories by id.
    GetMemory,
    /// The scopes.
    ListScopes,
    /// Search.
    QueryMemories,
}

impl Tool {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 4] = [
        Self::GetContext,
        Self::GetMemory,
        Self::ListScopes,
        Self::QueryMemories,
    ];

    /// Its own name. Agents may know it under another one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetContext => "get_context",
            Self::GetMemory => "get_memory",
            Self::ListScopes => "list_scopes",
            Self::QueryMemories => "query_memories",
        }
    }

    /// The tool with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}
