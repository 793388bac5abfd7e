//! Reads the files of a folder.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ack_sys::files;
use ack_worktree::committed::ObjectNames;
use ack_worktree::references::HashKind;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use xxhash_rust::xxh3::xxh3_64;

use super::dialect::Dialect;
use super::listing::FileEntry;
use super::note::{self, Note};
use super::rows::Content;
use super::{lines, parse};
use crate::quick_state::SETTLED_AFTER;
use crate::{StoreError, StoreProblem};

pub const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_LINES_BYTES: u64 = 64 << 20;
const MAX_FOLDER_BYTES: u64 = 512 << 20;
const MIN_FILES_PER_THREAD: usize = 64;
/// How much shows what a file of JSON lines holds, or in which folder a session ran.
const HEAD_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone)]
pub struct ReadFile {
    pub entry: FileEntry,
    /// Whether the file may have changed after the read without a change of its metadata.
    pub is_fresh: bool,
    /// `None` if it was left out.
    pub content: Option<Content>,
    /// Git's object names for its content, if they are needed.
    pub object_names: Option<ObjectNames>,
    pub problem: Option<String>,
    pub partial_problem: Option<String>,
    pub is_unreadable: bool,
}

impl ReadFile {
    /// Reads the notes in the file, or says why it is left out. `fits` tells whether it may be read
    /// besides the others.
    fn read(
        &mut self,
        dialect: Dialect,
        root: &Path,
        fits: bool,
        names: Option<HashKind>,
    ) -> Result<Vec<Note>, String> {
        let entry = &self.entry;
        let max_bytes = max_bytes(&entry.relative);
        if entry.length > max_bytes {
            return Err(format!("is larger than {} MB and was left out", max_bytes >> 20));
        }
        if !fits {
            let max = MAX_FOLDER_BYTES >> 20;
            return Err(format!("was left out: the folder holds more than {max} MB"));
        }
        let path = if dialect.is_file() { root.to_owned() } else { root.join(&entry.relative) };
        let begun = SystemTime::now();
        // It may be being replaced at this moment, so it is read again next time.
        (self.is_fresh, self.is_unreadable) = (true, true);
        let content = files::read(&path, max_bytes);
        let content = content.map_err(|error| format!("cannot be read: {error}"))?;
        self.is_unreadable = false;
        self.is_fresh = !entry.metadata.is_older_than(SETTLED_AFTER, begun)
            || content.len() as u64 != entry.length;
        if let Some(problem) = note::unreadable_reason(&content) {
            return Err(problem.to_owned());
        }
        self.object_names = names.and_then(|kind| ObjectNames::compute(kind, &content));
        self.content = Some(match self.object_names {
            Some(names) => Content::Object(names.exact),
            None => Content::Hash(xxh3_64(&content)),
        });
        let (notes, problem) = parse::memories(dialect, &entry.relative, &content, entry.modified);
        self.partial_problem = problem;
        Ok(notes)
    }
}

pub fn read_if_unchanged(
    path: &Path,
    content: Content,
    names: Option<HashKind>,
) -> Option<Vec<u8>> {
    let text = files::read(path, max_bytes(path)).ok()?;
    let is_same = match content {
        Content::Hash(hash) => xxh3_64(&text) == hash,
        Content::Object(name) => ObjectNames::compute(names?, &text)?.exact == name,
    };
    is_same.then_some(text)
}

/// Checks that a file of JSON lines is a graph: any program may have written it.
pub fn expect_graph(path: &Path) -> Result<(), StoreError> {
    let head =
        files::read_head(path, HEAD_BYTES).map_err(|source| StoreProblem::Io(source).at(path))?;
    let head = String::from_utf8_lossy(&head);
    if head.trim().is_empty()
        || ["\"entityType\"", "\"relationType\""].iter().any(|member| head.contains(member))
    {
        return Ok(());
    }
    let is_import = lines::are_memories(&head);
    Err(if is_import { StoreProblem::ImportLines } else { StoreProblem::NotAGraph }.at(path))
}

pub fn max_bytes(path: &Path) -> u64 {
    if note::is_json_lines(path) { MAX_LINES_BYTES } else { MAX_FILE_BYTES }
}

pub fn starts_with_memory(path: &Path) -> bool {
    files::read_head(path, HEAD_BYTES)
        .is_ok_and(|head| lines::are_memories(&String::from_utf8_lossy(&head)))
}

/// Reads files on several threads. With `names`, git's names of their contents are computed too.
pub fn read_files(
    dialect: Dialect,
    root: &Path,
    entries: &[&FileEntry],
    names: Option<HashKind>,
) -> Vec<(ReadFile, Vec<Note>)> {
    let mut left = MAX_FOLDER_BYTES;
    let within = entries.iter().map(|entry| {
        let fits = entry.length <= left;
        left = left.saturating_sub(entry.length);
        (*entry, fits)
    });
    let within: Vec<(&FileEntry, bool)> = within.collect();
    within
        .par_iter()
        .with_min_len(MIN_FILES_PER_THREAD)
        .map(|(entry, fits)| {
            let mut file = ReadFile {
                entry: (*entry).clone(),
                is_fresh: false,
                content: None,
                object_names: None,
                problem: None,
                partial_problem: None,
                is_unreadable: false,
            };
            let notes = file.read(dialect, root, *fits, names).unwrap_or_else(|problem| {
                file.problem = Some(problem);
                Vec::new()
            });
            (file, notes)
        })
        .collect()
}

/// The project of auto-memory: the name of the folder in which its sessions ran. Claude Code keeps
/// their files next to the folder of the notes, and Qwen Code in the folder `chats` there.
pub fn project_of_sessions(path: &Path) -> Option<String> {
    let beside = path.parent()?;
    let folders = [beside.to_owned(), beside.join("chats")].into_iter();
    let mut sessions: Vec<(SystemTime, PathBuf)> = folders
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten())
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    sessions.sort();
    sessions.iter().rev().take(5).find_map(|(_, path)| {
        let head = files::read_head(path, HEAD_BYTES).ok()?;
        String::from_utf8_lossy(&head).lines().find_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            Some(Path::new(value.get("cwd")?.as_str()?).file_name()?.to_string_lossy().into_owned())
        })
    })
}
