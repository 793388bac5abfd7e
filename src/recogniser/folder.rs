//! Recognises folders: the dialects of Markdown notes, and folders that contain a known file.

use std::path::Path;
use std::time::SystemTime;

use ack_store::folder::dialect::CODEX_AD_HOC;
use ack_store::folder::instructions::is_rule_folder;
use ack_store::folder::note::INDEX;
use ack_store::folder::{Dialect, is_markdown, parse};

use super::tally::{Budget, has_key, head, is_named};
use super::{FoundStore, StoreKind, file};
use crate::scope::DATABASE_NAMES;

/// How many files of a folder are read to recognise its notes.
const SAMPLE_FILES: usize = 40;
/// The largest index that is read.
const LARGEST_INDEX: u64 = 16 << 20;
/// File names that belong to the format and are not notes.
const RESERVED: [&str; 2] = ["index.md", "log.md"];

/// What a folder is.
pub fn recognise(path: &Path, budget: &Budget) -> Option<FoundStore> {
    if is_rule_folder(path) {
        return Some(FoundStore::uncounted(StoreKind::Instructions, path));
    }
    let inside = DATABASE_NAMES
        .iter()
        .copied()
        .chain(["sqlite_vec.db", "memory.jsonl"]);
    for name in inside {
        let path = path.join(name);
        if let Some(found) = path.is_file().then(|| file::recognise(&path)).flatten() {
            return Some(found);
        }
    }
    codex(path, budget)
        .or_else(|| knowledge_format(path, budget))
        .or_else(|| serena(path, budget))
        .or_else(|| solutions(path, budget))
        .or_else(|| basic_memory(path, budget))
        .or_else(|| auto_memory(path, budget))
}

/// Claude Code's auto-memory: an index, or notes with its front matter.
pub fn auto_memory(path: &Path, budget: &Budget) -> Option<FoundStore> {
    let index = path.join(INDEX);
    let is_dialect = |head: &str| {
        has_key(head, &["metadata", "originSessionId"])
            || ["name", "description", "type"]
                .iter()
                .all(|key| has_key(head, &[key]))
    };
    (index.is_file() || sample_texts(path).iter().any(|head| is_dialect(head))).then(|| {
        let notes = budget.markdown(path, |path| *path != index);
        let memories = notes.map(|notes| notes + memories_in(&index));
        FoundStore::with_count(StoreKind::AutoMemory, path, memories)
    })
}

/// How many memories an index of auto-memory holds itself.
fn memories_in(index: &Path) -> u64 {
    let text = ack_sys::files::read(index, LARGEST_INDEX).unwrap_or_default();
    let relative = Path::new(INDEX);
    let (notes, _) = parse::read(Dialect::AutoMemory, relative, &text, SystemTime::UNIX_EPOCH);
    notes.len() as u64
}

/// The Open Knowledge Format: an index with the version.
pub fn knowledge_format(path: &Path, budget: &Budget) -> Option<FoundStore> {
    has_key(&head(&path.join("index.md")), &["okf_version"]).then(|| {
        let memories = budget.markdown(path, |path| {
            !RESERVED.iter().any(|name| is_named(path, name)) && has_key(&head(path), &["type"])
        });
        FoundStore::with_count(StoreKind::KnowledgeFormat, path, memories)
    })
}

/// Codex's memories: a summary with its version, or an index of task groups.
pub fn codex(path: &Path, budget: &Budget) -> Option<FoundStore> {
    const GROUP: &str = "# Task Group";
    let summary = head(&path.join("memory_summary.md"));
    let is_index = |text: &str| text.lines().any(|line| line.starts_with(GROUP));
    let index = ack_sys::files::read(&path.join(INDEX), LARGEST_INDEX).unwrap_or_default();
    let index = String::from_utf8_lossy(&index);
    let is_codex = summary.lines().next().map(str::trim) == Some("v1")
        || is_index(&index)
        || path.join(CODEX_AD_HOC).is_dir();
    is_codex.then(|| {
        let groups = index.lines().filter(|line| line.starts_with(GROUP)).count() as u64;
        let folders = ["rollout_summaries", CODEX_AD_HOC].map(|name| path.join(name));
        let folders = folders.iter().filter(|folder| folder.is_dir());
        let notes: Result<u64, String> = folders.map(|it| budget.markdown(it, |_| true)).sum();
        FoundStore::with_count(StoreKind::Codex, path, notes.map(|notes| groups + notes))
    })
}

/// Serena's memories: plain Markdown, recognised by the folder they are in.
pub fn serena(path: &Path, budget: &Budget) -> Option<FoundStore> {
    let project = path.parent().filter(|parent| is_named(parent, ".serena"))?;
    (is_named(path, "memories") && project.is_dir() && path.is_dir())
        .then(|| FoundStore::with_count(StoreKind::Serena, path, budget.markdown(path, |_| true)))
}

/// Serena's memories for all projects.
pub fn global_serena(path: &Path, budget: &Budget) -> Option<FoundStore> {
    let memories = path.is_dir().then(|| budget.markdown(path, |_| true))?;
    // Serena creates the folder before there is a memory.
    (memories != Ok(0)).then(|| FoundStore::with_count(StoreKind::Serena, path, memories))
}

/// Solved problems in a repository, recognised by their front matter.
pub fn solutions(path: &Path, budget: &Budget) -> Option<FoundStore> {
    const KEYS: [&str; 3] = ["problem_type", "root_cause", "symptoms"];
    let is_solution = |path: &Path| has_key(&head(path), &KEYS);
    if !is_named(path, "solutions") || !path.is_dir() {
        return None;
    }
    let memories = budget.markdown(path, is_solution);
    (memories != Ok(0)).then(|| FoundStore::with_count(StoreKind::Solutions, path, memories))
}

/// basic-memory: notes with a permalink.
pub fn basic_memory(path: &Path, budget: &Budget) -> Option<FoundStore> {
    let is_note = |head: &String| has_key(head, &["permalink"]);
    sample_texts(path).iter().any(is_note).then(|| {
        FoundStore::with_count(
            StoreKind::BasicMemory,
            path,
            budget.markdown(path, |_| true),
        )
    })
}

/// The beginnings of some Markdown files in a folder and its subfolders.
fn sample_texts(path: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(path)
        .max_depth(3)
        .sort_by_file_name()
        .into_iter()
        .flatten();
    entries
        .take(SAMPLE_FILES * 10)
        .filter(|entry| entry.file_type().is_file() && is_markdown(entry.path()))
        .take(SAMPLE_FILES)
        .map(|entry| head(entry.path()))
        .collect()
}
