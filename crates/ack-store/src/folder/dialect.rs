//! Which program writes the files of a folder, which of them hold memories, and how a file is cut
//! into memories: a table with a row for each program.

use std::ffi::OsStr;
use std::path::Path;

use ack_sys::files;

use super::front_matter::split;
use super::{instructions, listing, note};
use crate::layout::Profile;

const RESERVED: [&str; 2] = ["index.md", "log.md"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// What Gemini CLI and Qwen Code were told to remember, in a file of instructions.
    AddedMemories,
    /// Claude Code's auto-memory: `MEMORY.md` is an index that may hold memories itself. Gemini CLI
    /// and Qwen Code write the same.
    AutoMemory,
    /// Codex: an index of task groups, a file for each rollout, and notes on request.
    Codex,
    /// Goose: a file for each category.
    Goose,
    Hermes,
    /// The Open Knowledge Format: every folder may have an index and a log, which are not notes.
    Knowledge,
    /// Any other folder of Markdown: basic-memory, Serena, docs/solutions. Files of JSON lines in
    /// it are read too, as in the Open Knowledge Format.
    Markdown,
    /// The memory bank of Cline, Roo Code and Kilo Code: a few long files.
    MemoryBank,
    /// A workspace of OpenClaw, in which most files are no memories.
    OpenClaw,
    ServerMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It is one memory.
    Whole,
    /// It is one memory, below a few lines that say where it comes from.
    Rollout,
    /// Each item of a list and each paragraph.
    Items,
    /// The same, below this heading alone.
    ItemsBelow(&'static str),
    /// Each part below a heading that begins so.
    Groups(&'static str),
    /// The same, and the text above the first one.
    Sections(&'static str),
    /// The parts between lines that say only this. Those between empty lines may have tags.
    Parts(&'static str),
    /// Each entity of a graph.
    Entities,
}

/// What shows that a path is a program's.
enum Sign {
    File,
    /// Its last parts.
    Called(&'static str),
    Holds(&'static str),
    /// Its index names a version of the Open Knowledge Format.
    HoldsKnowledge,
}

use Sign::{Called, File, Holds, HoldsKnowledge};

struct Row {
    dialect: Dialect,
    /// The name that answers show.
    name: &'static str,
    /// The sets of signs of which one has to be there as a whole.
    signs: &'static [&'static [Sign]],
    /// Its files with memories, the first that fits: a path, the beginning of one that ends with
    /// `/`, nothing for every Markdown file, or `*` and the end of a name in the top folder.
    files: &'static [(&'static str, Cut)],
}

/// The first row that fits counts.
const ROWS: [Row; 10] = [
    Row {
        dialect: Dialect::AddedMemories,
        name: "added-memories",
        signs: &[&[File, Called("GEMINI.md")], &[File, Called("QWEN.md")]],
        files: &[
            ("GEMINI.md", Cut::ItemsBelow("## Gemini Added Memories")),
            ("QWEN.md", Cut::ItemsBelow("## Qwen Added Memories")),
        ],
    },
    Row {
        dialect: Dialect::ServerMemory,
        name: "server-memory",
        signs: &[&[File]],
        files: &[("*", Cut::Entities)],
    },
    Row {
        dialect: Dialect::Codex,
        name: "codex",
        signs: &[
            &[Holds("rollout_summaries")],
            &[Holds("memory_summary.md")],
            &[Holds("extensions/ad_hoc/notes")],
        ],
        files: &[
            (note::INDEX, Cut::Groups("# Task Group")),
            ("rollout_summaries/", Cut::Rollout),
            ("extensions/ad_hoc/notes/", Cut::Whole),
        ],
    },
    Row {
        dialect: Dialect::Hermes,
        name: "hermes",
        signs: &[&[Called(".hermes/memories")], &[Called("memories"), Holds("../SOUL.md")]],
        files: &[(note::INDEX, Cut::Parts("§")), ("USER.md", Cut::Parts("§"))],
    },
    Row {
        dialect: Dialect::OpenClaw,
        name: "openclaw",
        signs: &[&[Holds("SOUL.md"), Holds("AGENTS.md")]],
        files: &[(note::INDEX, Cut::Items), ("memory/", Cut::Items)],
    },
    Row {
        dialect: Dialect::Goose,
        name: "goose",
        signs: &[&[Called("goose/memory")], &[Called(".goose/memory")]],
        files: &[("*.txt", Cut::Parts(""))],
    },
    Row {
        dialect: Dialect::AutoMemory,
        name: "auto-memory",
        signs: &[&[Holds(note::INDEX)]],
        files: &[(note::INDEX, Cut::Items), ("", Cut::Whole)],
    },
    Row {
        dialect: Dialect::Knowledge,
        name: "markdown",
        signs: &[&[HoldsKnowledge]],
        files: &[("", Cut::Whole)],
    },
    Row {
        dialect: Dialect::MemoryBank,
        name: "memory-bank",
        signs: &[&[Called("memory-bank")], &[Holds("activeContext.md")]],
        files: &[("", Cut::Sections("## "))],
    },
    Row { dialect: Dialect::Markdown, name: "markdown", signs: &[&[]], files: &[("", Cut::Whole)] },
];

impl Sign {
    fn is_at(&self, path: &Path) -> bool {
        match self {
            File => path.is_file(),
            Called(end) => path.ends_with(end),
            Holds(name) => path.join(name).exists(),
            HoldsKnowledge => is_knowledge(path),
        }
    }
}

impl Dialect {
    pub fn of(path: &Path) -> Self {
        let has_all = |signs: &&[Sign]| signs.iter().all(|sign| sign.is_at(path));
        let row = ROWS.iter().find(|row| row.signs.iter().any(has_all));
        row.map_or(Self::Markdown, |row| row.dialect)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.dialect == self)
    }

    pub(super) const fn is_file(self) -> bool {
        matches!(self, Self::AddedMemories | Self::ServerMemory)
    }

    /// Whether it is a folder in which any Markdown file may be a note.
    pub(super) const fn is_plain(self) -> bool {
        matches!(self, Self::Knowledge | Self::Markdown)
    }

    pub(super) fn profile(self) -> Profile {
        Profile::Notes(self.row().map_or("markdown", |row| row.name))
    }

    /// How a file is cut into memories; `None` if it holds none.
    pub(super) fn cut(self, relative: &Path) -> Option<Cut> {
        let files = self.row()?.files;
        files.iter().find(|(files, _)| self.fits(files, relative)).map(|(_, cut)| *cut)
    }

    fn fits(self, files: &str, relative: &Path) -> bool {
        let name = relative.to_string_lossy();
        if let Some(end) = files.strip_prefix('*') {
            return name.ends_with(end) && !name.contains('/');
        }
        let is_note = self.is_file()
            || listing::is_markdown(relative) && !instructions::is_instructions(relative);
        is_note && (name == files || files.is_empty() || is_below(&name, files))
    }

    pub(super) fn holds_memories(self, relative: &Path) -> bool {
        let is_reserved = |path: &OsStr| RESERVED.iter().any(|name| path == *name);
        match self {
            Self::Knowledge | Self::Markdown if note::is_json_lines(relative) => true,
            Self::Knowledge if relative.file_name().is_some_and(is_reserved) => false,
            Self::Markdown if is_reserved(relative.as_os_str()) => false,
            _ => self.cut(relative).is_some(),
        }
    }

    pub(super) fn enters(self, relative: &Path) -> bool {
        let folder = format!("{}/", relative.to_string_lossy());
        self.row().into_iter().flat_map(|row| row.files).any(|(files, _)| {
            files.is_empty() || is_below(&folder, files) || files.starts_with(&folder)
        })
    }

    /// Whether a file may hold several memories. Each of them counts separately.
    pub(super) fn holds_several(self, relative: &Path) -> bool {
        let cut = self.cut(relative);
        note::is_json_lines(relative) || !matches!(cut, None | Some(Cut::Whole | Cut::Rollout))
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.ends_with('/') && path.starts_with(folder)
}

fn is_knowledge(folder: &Path) -> bool {
    const HEAD_BYTES: u64 = 8 << 10;
    let head = files::read_head(&folder.join("index.md"), HEAD_BYTES);
    head.is_ok_and(|head| {
        let text = String::from_utf8_lossy(&head);
        let (header, _) = split(text.trim_start_matches('\u{feff}'));
        header.text(&["okf_version"]).is_some()
    })
}
