//! Recognises existing memory stores: what a file or folder is, by its content, how many memories
//! it holds, and whether they can be served today.
//!
//! [`survey`] looks in the places where programs keep their stores, and in the current project. It
//! never walks the home folder. [`at`] looks at one path. Neither writes anything, and both have
//! limits on time and entries. A store that cannot be counted is listed with the reason. `places`
//! knows where stores are; `file` and `folder` know what they look like.

mod file;
mod folder;
mod places;
pub mod tally;

use ack_api::Hint;
use std::path::{Path, PathBuf};

use ack_api::number::count;
use serde::Serialize;

pub use self::places::StorePlaces;
use self::tally::Budget;

/// Which program or convention a store belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// A native store, `schemas/scope.sql`.
    AckMemory,
    /// claude-mem.
    ClaudeMem,
    /// Claude Code's auto-memory: `MEMORY.md` and a file for each memory.
    AutoMemory,
    /// A folder in the Open Knowledge Format.
    KnowledgeFormat,
    /// Codex's memories.
    Codex,
    /// `@modelcontextprotocol/server-memory`.
    ServerMemory,
    /// Serena's project memories.
    Serena,
    /// basic-memory.
    BasicMemory,
    /// mcp-memory-service.
    McpMemoryService,
    /// `docs/solutions` of a repository.
    Solutions,
    /// JSON lines that `ack-memory import` reads.
    ImportLines,
    /// CLAUDE.md, AGENTS.md and the like.
    Instructions,
}

/// What can be done with a store today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// It can be a scope: `scopes add`.
    Served,
    /// `import` reads it.
    Import,
    /// Hosts load it themselves, so it is never served.
    Reference,
}

impl StoreKind {
    /// Its common name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::AckMemory => "ack-memory",
            Self::ClaudeMem => "claude-mem",
            Self::AutoMemory => "Claude Code auto-memory",
            Self::KnowledgeFormat => "Open Knowledge Format",
            Self::Codex => "Codex memories",
            Self::ServerMemory => "server-memory",
            Self::Serena => "Serena memories",
            Self::BasicMemory => "basic-memory",
            Self::McpMemoryService => "mcp-memory-service",
            Self::Solutions => "docs/solutions",
            Self::ImportLines => "JSON lines",
            Self::Instructions => "instructions for agents",
        }
    }

    /// What can be done with it today.
    pub const fn support(self) -> Support {
        match self {
            Self::ImportLines => Support::Import,
            Self::Instructions => Support::Reference,
            _ => Support::Served,
        }
    }
}

/// A store on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundStore {
    /// The kind of store.
    pub kind: StoreKind,
    /// The database, file or folder.
    pub path: PathBuf,
    /// How many memories it holds; `None` if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memories: Option<u64>,
    /// How many of them are approved; `None` if the store has no review status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<u64>,
    /// Why they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl FoundStore {
    fn uncounted(kind: StoreKind, path: &Path) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            memories: None,
            approved: None,
            problem: None,
        }
    }

    fn with_count(kind: StoreKind, path: &Path, memories: Result<u64, String>) -> Self {
        let (memories, problem) = match memories {
            Ok(memories) => (Some(memories), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            memories,
            problem,
            ..Self::uncounted(kind, path)
        }
    }

    /// What to do with it.
    pub fn advice(&self) -> Hint {
        let what = format!("({})", self.kind.title());
        match self.kind.support() {
            Support::Served => Hint::command("scopes add NAME --store PATH", what),
            Support::Import => Hint::command("import FILE --scope NAME", what),
            Support::Reference => {
                Hint::advice("name a store of memories; hosts load instructions themselves")
            }
        }
    }

    /// Its count in words: `756 memories`, or why it was not counted.
    pub fn count(&self) -> String {
        match (self.memories, &self.problem) {
            (Some(memories), _) => count(memories, "memory"),
            (None, Some(problem)) => format!("not counted: {problem}"),
            (None, None) => "not counted".to_owned(),
        }
    }
}

/// The stores on this machine: in the places where programs keep them, and in the current project.
/// Most useful first: stores that can be served, then recognised ones, then instructions.
pub fn survey(places: &StorePlaces) -> Vec<FoundStore> {
    let budget = Budget::start();
    let mut found = places::find_stores(places, &budget);
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// What a file or folder is, by its content; `None` if it is not a known store.
pub fn at(path: &Path) -> Option<FoundStore> {
    let budget = Budget::start();
    if path.is_dir() {
        folder::recognise(path, &budget)
    } else {
        file::recognise(path)
    }
}
