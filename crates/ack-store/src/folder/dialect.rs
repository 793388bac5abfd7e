//! Which program writes the files of a folder, and which of them contain memories.

use std::path::Path;

use super::{listing, note};
use crate::layout::Profile;

/// Which program writes the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's auto-memory: `MEMORY.md` is an index.
    AutoMemory,
    /// Codex: an index of task groups, and a file for each rollout.
    Codex,
    /// Any other folder of Markdown: Open Knowledge Format, basic-memory, Serena, docs/solutions.
    /// Files of JSON lines in it are read too.
    Markdown,
    /// One file of JSON lines.
    ServerMemory,
}

impl Dialect {
    /// The dialect of a folder or a file.
    pub(super) fn of(path: &Path) -> Self {
        let has = |name: &str| path.join(name).exists();
        if path.is_file() {
            Self::ServerMemory
        } else if has("rollout_summaries") || has("memory_summary.md") {
            Self::Codex
        } else if has("MEMORY.md") {
            Self::AutoMemory
        } else {
            Self::Markdown
        }
    }

    /// How its records are read.
    pub(super) const fn profile(self) -> Profile {
        match self {
            Self::AutoMemory => Profile::AutoMemory,
            Self::Codex => Profile::Codex,
            Self::Markdown => Profile::Markdown,
            Self::ServerMemory => Profile::ServerMemory,
        }
    }

    /// Whether a file contains memories, by its path in the folder.
    pub(super) fn holds_memories(self, relative: &Path) -> bool {
        let name = relative.to_string_lossy();
        let is_markdown = listing::is_markdown(relative);
        match self {
            Self::AutoMemory => is_markdown && name != "MEMORY.md",
            Self::Codex => {
                is_markdown && (name == "MEMORY.md" || name.starts_with("rollout_summaries/"))
            }
            Self::Markdown => {
                note::is_json_lines(relative)
                    || is_markdown && !["index.md", "log.md"].contains(&name.as_ref())
            }
            Self::ServerMemory => true,
        }
    }
}
