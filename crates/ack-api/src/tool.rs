//! The four tools, by their own names.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    GetContext,
    GetMemory,
    ListScopes,
    QueryMemories,
}

impl Tool {
    pub const ALL: [Self; 4] =
        [Self::GetContext, Self::GetMemory, Self::ListScopes, Self::QueryMemories];

    /// Its own name. Agents may know it under another one.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetContext => "get_context",
            Self::GetMemory => "get_memory",
            Self::ListScopes => "list_scopes",
            Self::QueryMemories => "query_memories",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}
