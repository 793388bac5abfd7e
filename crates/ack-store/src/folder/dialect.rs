//! Which program writes the files of a folder, and which of them contain memories.

use std::path::Path;

use ack_sys::files;

use super::front_matter::split;
use super::{instructions, listing, note};
use crate::layout::Profile;

/// Names of files that are not notes.
const RESERVED: [&str; 2] = ["index.md", "log.md"];

/// Where Codex keeps the notes that it was asked to take.
pub const CODEX_AD_HOC: &str = "extensions/ad_hoc/notes";

/// Which program writes the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's auto-memory: `MEMORY.md` is an index that may hold memories itself.
    AutoMemory,
    /// Codex: an index of task groups, a file for each rollout, and notes on request.
    Codex,
    /// The Open Knowledge Format: every folder may have an index and a log, which are not notes.
    Knowledge,
    /// Any other folder of Markdown: basic-memory, Serena, docs/solutions. Files of JSON lines in
    /// it are read too, as in the Open Knowledge Format.
    Markdown,
    /// One file of JSON lines.
    ServerMemory,
}

impl Dialect {
    pub fn of(path: &Path) -> Self {
        let has = |name: &str| path.join(name).exists();
        if path.is_file() {
            Self::ServerMemory
        } else if ["rollout_summaries", "memory_summary.md", CODEX_AD_HOC]
            .iter()
            .any(|name| has(name))
        {
            Self::Codex
        } else if has(note::INDEX) {
            Self::AutoMemory
        } else if is_knowledge(path) {
            Self::Knowledge
        } else {
            Self::Markdown
        }
    }

    /// Whether it is a folder in which any Markdown file may be a note.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::Knowledge | Self::Markdown)
    }

    pub(super) const fn profile(self) -> Profile {
        match self {
            Self::AutoMemory => Profile::AutoMemory,
            Self::Codex => Profile::Codex,
            Self::Knowledge | Self::Markdown => Profile::Markdown,
            Self::ServerMemory => Profile::ServerMemory,
        }
    }

    pub(super) fn holds_memories(self, relative: &Path) -> bool {
        let name = relative.to_string_lossy();
        let is_markdown =
            listing::is_markdown(relative) && !instructions::is_instructions(relative);
        match self {
            Self::AutoMemory => is_markdown,
            Self::Codex => {
                is_markdown
                    && (name == note::INDEX
                        || name.starts_with("rollout_summaries/")
                        || relative.parent() == Some(Path::new(CODEX_AD_HOC)))
            }
            Self::Knowledge => {
                let file_name = relative.file_name().unwrap_or_default();
                note::is_json_lines(relative)
                    || is_markdown && !RESERVED.iter().any(|reserved| file_name == *reserved)
            }
            Self::Markdown => {
                note::is_json_lines(relative) || is_markdown && !RESERVED.contains(&name.as_ref())
            }
            Self::ServerMemory => true,
        }
    }
}

/// Whether the index of a folder names a version of the Open Knowledge Format.
fn is_knowledge(folder: &Path) -> bool {
    const HEAD_BYTES: u64 = 8 << 10;
    let head = files::read_head(&folder.join("index.md"), HEAD_BYTES);
    head.is_ok_and(|head| {
        let text = String::from_utf8_lossy(&head);
        let (header, _) = split(text.trim_start_matches('\u{feff}'));
        header.text(&["okf_version"]).is_some()
    })
}
