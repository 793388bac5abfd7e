//! Recognises existing memory stores: what a file or folder is, by its content, how many memories
//! it holds, and whether they can be served today.
//!
//! [`survey`] looks in the places where programs keep their stores, and in the current project. It
//! never walks the home folder. [`at`] looks at one path. Neither writes anything. A store is counted
//! as it would be served; one that cannot be read is listed with the reason.

mod places;

use ack_api::Hint;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::memory::Unreviewed;
use ack_api::number::count;
use ack_store::folder::instructions::{is_instructions, is_rule_folder};
use ack_store::folder::{Dialect, is_markdown};
use ack_store::layout::Profile;
use ack_store::{Access, Store, StoreError, StoreProblem};
use ack_sys::files;
use serde::Serialize;

pub use self::places::{StorePlaces, knowledge_folders};
use ack_service::scope::DATABASE_NAMES;

/// How long to wait for a database that changes all the time.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Larger databases are not opened, because a private copy could fill the disk.
const MAX_DATABASE_BYTES: u64 = 4 << 30;
/// Larger files of JSON lines are not counted.
const MAX_LINES_BYTES: u64 = 64 << 20;
const HEAD_BYTES: u64 = 8 << 10;
const SAMPLE_FILES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    AckMemory,
    ClaudeMem,
    /// Claude Code's auto-memory: `MEMORY.md` and a file for each memory.
    AutoMemory,
    /// What a subagent of Claude Code noted.
    AgentMemory,
    KnowledgeFormat,
    Codex,
    /// What Copilot keeps in VS Code.
    Copilot,
    Gemini,
    Qwen,
    Goose,
    /// The memory bank of Cline, Roo Code or Kilo Code.
    MemoryBank,
    Hermes,
    OpenClaw,
    /// `@modelcontextprotocol/server-memory`.
    ServerMemory,
    Serena,
    BasicMemory,
    McpMemoryService,
    /// `docs/solutions` of a repository.
    Solutions,
    ImportLines,
    /// CLAUDE.md, AGENTS.md and the like.
    Instructions,
}

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
    pub const fn title(self) -> &'static str {
        match self {
            Self::AckMemory => "ack-memory",
            Self::ClaudeMem => "claude-mem",
            Self::AutoMemory => "Claude Code auto-memory",
            Self::AgentMemory => "Claude Code agent memory",
            Self::KnowledgeFormat => "Open Knowledge Format",
            Self::Codex => "Codex memories",
            Self::Copilot => "Copilot memories",
            Self::Gemini => "Gemini CLI memories",
            Self::Qwen => "Qwen Code memories",
            Self::Goose => "Goose memories",
            Self::MemoryBank => "memory bank",
            Self::Hermes => "Hermes memories",
            Self::OpenClaw => "OpenClaw memories",
            Self::ServerMemory => "server-memory",
            Self::Serena => "Serena memories",
            Self::BasicMemory => "basic-memory",
            Self::McpMemoryService => "mcp-memory-service",
            Self::Solutions => "docs/solutions",
            Self::ImportLines => "JSON lines",
            Self::Instructions => "instructions for agents",
        }
    }

    pub const fn support(self) -> Support {
        match self {
            Self::ImportLines => Support::Import,
            Self::Instructions => Support::Reference,
            _ => Support::Served,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundStore {
    pub kind: StoreKind,
    pub path: PathBuf,
    /// How many memories it holds; `None` if they were not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memories: Option<u64>,
    /// How many of them are approved; `None` if the store has no review status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl FoundStore {
    fn uncounted(kind: StoreKind, path: &Path) -> Self {
        Self { kind, path: path.to_owned(), memories: None, approved: None, problem: None }
    }

    /// A store, counted if it can be read. `None` if it is a database of another program, or a
    /// folder without notes.
    fn counted(kind: StoreKind, path: &Path) -> Option<Self> {
        let mut found = Self::uncounted(kind, path);
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length > MAX_DATABASE_BYTES {
            found.problem = Some(format!("larger than {} GB", MAX_DATABASE_BYTES >> 30));
            return Some(found);
        }
        let store = Store::new(path.to_owned(), Unreviewed::Staging);
        let read = store.read(Access::Rows, READ_TIMEOUT, |snapshot| {
            let layout = &snapshot.layout;
            Ok((layout.profile, layout.has_status(), snapshot.counts()?))
        });
        store.close();
        match read {
            Ok((profile, has_status, counts)) => {
                let approved = counts.approved + counts.promoted;
                let memories = approved + counts.staging + counts.rejected + counts.unknown;
                found.memories = Some(memories);
                found.approved = (has_status && !profile.is_notes()).then_some(approved);
                found.kind = match profile {
                    Profile::Ack => StoreKind::AckMemory,
                    Profile::ClaudeMem | Profile::ClaudeMemV3 => StoreKind::ClaudeMem,
                    Profile::McpMemoryService => StoreKind::McpMemoryService,
                    Profile::Notes(_) => kind,
                };
            }
            Err(StoreError {
                problem:
                    StoreProblem::Foreign(_) | StoreProblem::NoNotes | StoreProblem::Instructions,
                ..
            }) => return None,
            Err(error) => found.problem = Some(reason(&error)),
        }
        Some(found)
    }

    /// The same, unless it is empty: a program may create a folder before there is a memory.
    fn filled(kind: StoreKind, path: &Path) -> Option<Self> {
        let found = path.exists().then(|| Self::counted(kind, path))??;
        Some(found).filter(|found| found.memories != Some(0))
    }

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

/// The reason without the path, which is shown next to it.
fn reason(error: &StoreError) -> String {
    let path = format!("`{}`", error.path.display());
    let text = error.to_string();
    match text.strip_prefix(&format!("{path} ")) {
        Some(rest) => format!("it {rest}"),
        None => text.replace(&path, "it"),
    }
}

/// The stores on this machine: in the places where programs keep them, and in the current project.
/// Most useful first: stores that can be served, then those that can be imported.
pub fn survey(places: &StorePlaces) -> Vec<FoundStore> {
    let mut found = places::find_stores(places);
    found.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    found.dedup_by(|a, b| a.path == b.path);
    found
}

/// What a file or folder is, by its content; `None` if it is not a known store.
pub fn at(path: &Path) -> Option<FoundStore> {
    if path.is_dir() {
        return folder(path);
    }
    files::check(path).ok()?;
    let start = head(path);
    if start.starts_with("SQLite format 3\0") {
        return FoundStore::counted(StoreKind::AckMemory, path).filter(|it| it.problem.is_none());
    }
    if is_instructions(path) {
        return Some(FoundStore::uncounted(StoreKind::Instructions, path));
    }
    // A long first line is cut off, so only look at its beginning.
    let first = start.lines().find(|line| !line.trim().is_empty())?;
    let has = |member: &str| first.contains(&format!("\"{member}\""));
    if !first.trim_start().starts_with('{') {
        None
    } else if has("type") && (has("entityType") || has("relationType")) {
        FoundStore::counted(StoreKind::ServerMemory, path)
    } else if has("title") {
        let lines = |text: String| text.lines().filter(|line| !line.trim().is_empty()).count();
        let text = files::read_text(path, MAX_LINES_BYTES).ok();
        Some(FoundStore {
            memories: text.map(|text| lines(text) as u64),
            ..FoundStore::uncounted(StoreKind::ImportLines, path)
        })
    } else {
        None
    }
}

fn folder(path: &Path) -> Option<FoundStore> {
    if is_rule_folder(path) {
        return Some(FoundStore::uncounted(StoreKind::Instructions, path));
    }
    let names = DATABASE_NAMES.into_iter().chain(["sqlite_vec.db", "memory.jsonl"]);
    let mut inside = names.map(|name| path.join(name));
    if let Some(found) = inside.find_map(|file| at(&file).filter(|_| file.is_file())) {
        return Some(found);
    }
    FoundStore::counted(notes_kind(path)?, path)
}

fn notes_kind(path: &Path) -> Option<StoreKind> {
    let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
    match Dialect::of(path) {
        Dialect::Codex => return Some(StoreKind::Codex),
        Dialect::AutoMemory => return Some(StoreKind::AutoMemory),
        Dialect::Goose => return Some(StoreKind::Goose),
        Dialect::Hermes => return Some(StoreKind::Hermes),
        Dialect::Knowledge => return Some(StoreKind::KnowledgeFormat),
        Dialect::MemoryBank => return Some(StoreKind::MemoryBank),
        Dialect::OpenClaw => return Some(StoreKind::OpenClaw),
        Dialect::AddedMemories | Dialect::Markdown | Dialect::ServerMemory => {}
    }
    if path.ends_with("memories") && is_in(".serena") {
        return Some(StoreKind::Serena);
    }
    let samples = samples(path);
    let any_has = |keys: &[&str]| samples.iter().any(|head| has_key(head, keys));
    let is_auto_memory = |head: &String| {
        has_key(head, &["metadata", "originSessionId"])
            || ["name", "description", "type"].iter().all(|key| has_key(head, &[key]))
    };
    if path.ends_with("solutions") && any_has(&["problem_type", "root_cause", "symptoms"]) {
        Some(StoreKind::Solutions)
    } else if any_has(&["permalink"]) {
        Some(StoreKind::BasicMemory)
    } else {
        samples.iter().any(is_auto_memory).then_some(StoreKind::AutoMemory)
    }
}

fn samples(path: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(path).max_depth(3).sort_by_file_name();
    let entries = entries.into_iter().flatten().take(SAMPLE_FILES * 10);
    let notes = entries.filter(|entry| entry.file_type().is_file() && is_markdown(entry.path()));
    notes.take(SAMPLE_FILES).map(|entry| head(entry.path())).collect()
}

fn head(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = |file: File| file.take(HEAD_BYTES).read_to_end(&mut bytes);
    let _ = files::open(path).and_then(read);
    String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

/// Whether a text begins with front matter that has one of these keys at the top level.
fn has_key(head: &str, keys: &[&str]) -> bool {
    let mut lines = head.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return false;
    }
    let lines = lines.take_while(|line| line.trim_end() != "---");
    let mut known = lines.filter_map(|line| line.split_once(':'));
    known.any(|(key, _)| keys.contains(&key.trim_matches(['"', '\''])))
}
