//! Checks whether the files that a memory cites are in a project's working tree.
//!
//! Nothing outside the tree is accessed: paths that leave it and symbolic links are not followed.
//! What was not checked counts as unknown, never as gone: a check has limits on time and entries.
//! It is cheap enough for every answer: one system call per folder, and one listing of the tree if
//! some files seem to be gone. The number of commits is only for the reviewer.

use std::cell::OnceCell;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use ack_api::text::has_word;
use ack_search::file_pattern::{glob_matches, is_glob, normalize};
use ack_worktree::history::commits_since;
use ack_worktree::objects::Objects;
use ack_worktree::repository::Repository;
use jiff::Timestamp;

use crate::context::files::{ends_with_path, inside, is_absolute};
use crate::scope::resolve::Current;

/// Folders with generated or downloaded content, which is not the project's own.
const SKIPPED_FOLDERS: &str = "\
    .git .hg .venv __pycache__ build dist node_modules out site-packages target vendor venv";
const MAX_DEPTH: usize = 32;
const MAX_CITED: usize = 40;
/// Longer paths are not checked, because no system allows them.
const MAX_PATH_BYTES: usize = 4_096;

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub time: Duration,
    pub entries: usize,
}

impl Bounds {
    pub const ANSWER: Self = Self { time: Duration::from_millis(15), entries: 20_000 };
    pub const REVIEW: Self = Self { time: Duration::from_millis(400), entries: 100_000 };
}

#[derive(Debug, Default)]
struct Listing {
    /// Paths from the top in lower case, with `/`.
    paths: Vec<String>,
    /// Whether everything was listed, except generated folders.
    is_complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    There,
    Gone,
    /// It is outside the working tree, so it was not checked.
    Outside,
    /// A limit was reached, or there is a link or an error on the way.
    Unknown,
}

/// A project's working tree. It is listed once, on first use.
#[derive(Debug)]
pub struct WorkTree {
    top: PathBuf,
    /// The project's folder from the top, without a trailing `/`; empty at the top.
    inner: String,
    /// Other absolute folders by which memories may name the same files, in lower case.
    roots: Vec<String>,
    name: String,
    bounds: Bounds,
    listing: OnceCell<Listing>,
    repository: Option<Repository>,
}

impl WorkTree {
    pub fn of(current: &Current, bounds: Bounds) -> Option<Self> {
        let top = &current.top;
        let repository = current.repository.clone();
        let main = repository.as_ref().map_or(top, |repository| &repository.main);
        let tree = Self::new(top, main, &current.folder, bounds);
        top.is_dir().then_some(Self { repository, ..tree })
    }

    /// Memories may also name its files from `main`, and from the project's `folder` inside it.
    pub fn new(top: &Path, main: &Path, folder: &Path, bounds: Bounds) -> Self {
        let inner = folder.strip_prefix(top).unwrap_or(Path::new(""));
        // Not composed: an entry is looked up as it is written.
        let root = |folder: &Path| {
            normalize(&folder.to_string_lossy()).trim_end_matches('/').to_lowercase()
        };
        let mut roots = vec![root(top), root(main)];
        roots.retain(|root| !root.is_empty());
        roots.dedup();
        let name = main.file_name().unwrap_or_default();
        Self {
            top: top.to_owned(),
            inner: inner.to_string_lossy().into_owned(),
            roots,
            name: name.to_string_lossy().to_lowercase(),
            bounds,
            listing: OnceCell::new(),
            repository: None,
        }
    }

    fn inside(&self, entry: &str) -> Option<String> {
        let entry = normalize(entry);
        if entry.contains("://") {
            return None;
        }
        let folded = entry.to_lowercase();
        if !is_absolute(&folded) {
            return lexical(&entry);
        }
        if folded.len() != entry.len() {
            return None;
        }
        lexical(entry.get(inside(&folded, &self.roots, &self.name)?..)?)
    }

    fn path_state(&self, path: &str) -> FileState {
        let mut here = self.top.clone();
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        if parts.peek().is_none() {
            return FileState::Unknown;
        }
        while let Some(part) = parts.next() {
            here.push(part);
            match fs::symlink_metadata(&here) {
                Ok(_) if parts.peek().is_none() => return FileState::There,
                Ok(metadata) if metadata.is_dir() => {}
                // The target of a link may be outside the tree.
                Ok(metadata) if metadata.is_symlink() => return FileState::Unknown,
                Ok(_) => return FileState::Gone,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return FileState::Gone;
                }
                Err(_) => return FileState::Unknown,
            }
        }
        FileState::Unknown
    }

    /// What an entry may mean: relative to the top, or to the project's folder.
    fn possible_paths(&self, inside: &str) -> impl Iterator<Item = String> + use<> {
        let inner = (!self.inner.is_empty()).then(|| format!("{}/{inside}", self.inner));
        std::iter::once(inside.to_owned()).chain(inner)
    }

    /// Whether the listing has what an entry names, by a glob or the end of a path, in any case.
    fn lists(&self, inside: &str) -> FileState {
        let listing = self.listing.get_or_init(|| list(&self.top, self.bounds));
        let wanted = inside.to_lowercase();
        let wanted = wanted.trim_end_matches('/');
        let is_glob = is_glob(wanted);
        let matches_glob = |path: &str| {
            let mut globs = self.possible_paths(wanted);
            is_glob && globs.any(|glob| glob_matches(&glob, path))
        };
        let is_named = |path: &String| ends_with_path(path, wanted) || matches_glob(path);
        let is_skipped = |part: &str| has_word(SKIPPED_FOLDERS, part);
        if listing.paths.iter().any(is_named) {
            FileState::There
        } else if listing.is_complete && !wanted.split('/').any(is_skipped) {
            FileState::Gone
        } else {
            FileState::Unknown
        }
    }

    /// Looks for the files that a memory cites: paths with or without line numbers, with `/` or
    /// `\`, from the top or from the project's folder; folders; globs; and names or ends of paths,
    /// which may be anywhere in the tree. Checks at most forty entries; the rest are unknown.
    pub fn cited(&self, files: &[String]) -> Vec<FileState> {
        let checked = files.iter().enumerate().map(|(number, entry)| match number {
            0..MAX_CITED => self.check_file(entry),
            _ => FileState::Unknown,
        });
        checked.collect()
    }

    fn check_file(&self, entry: &str) -> FileState {
        if entry.len() > MAX_PATH_BYTES {
            return FileState::Unknown;
        }
        let Some(inside) = self.inside(entry) else {
            return FileState::Outside;
        };
        let paths = self.possible_paths(&inside);
        let states: Vec<FileState> = paths.map(|path| self.path_state(&path)).collect();
        if states.contains(&FileState::There) {
            return FileState::There;
        }
        // A glob without any letters or digits proves nothing.
        let is_bare = is_glob(&inside) && !inside.chars().any(char::is_alphanumeric);
        match self.lists(&inside) {
            FileState::Gone if is_bare || states.contains(&FileState::Unknown) => {
                FileState::Unknown
            }
            state => state,
        }
    }

    /// How many commits changed each file since then; `None` if that cannot be read in time.
    pub fn commits_since(&self, files: &[String], written_at: Timestamp) -> Option<Vec<u32>> {
        let repository = self.repository.as_ref()?;
        let mut objects = Objects::open(repository, Instant::now() + self.bounds.time).ok()?;
        let head = objects.head().ok()??;
        // A file outside the tree counts zero commits, so positions still match the entries.
        let paths = files.iter().map(|entry| {
            let inside = self.inside(entry).unwrap_or_default();
            let is_there = |path: &String| self.path_state(path) == FileState::There;
            self.possible_paths(&inside).find(is_there).unwrap_or(inside)
        });
        let paths: Vec<String> = paths.collect();
        commits_since(&mut objects, head, &paths, written_at.as_second()).ok()
    }
}

/// A relative path without `.` and `..`; `None` if it leaves the folder or is empty.
fn lexical(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Lists a tree level by level, so that a limit cuts off the deepest files.
fn list(top: &Path, bounds: Bounds) -> Listing {
    let end = Instant::now() + bounds.time;
    let mut listing = Listing::default();
    let mut folders = vec![String::new()];
    for _ in 0..MAX_DEPTH {
        let mut below = Vec::new();
        for folder in &folders {
            let Ok(entries) = fs::read_dir(top.join(folder)) else {
                return listing;
            };
            for entry in entries {
                if listing.paths.len() >= bounds.entries || Instant::now() >= end {
                    return listing;
                }
                let Ok(entry) = entry else { return listing };
                let Ok(kind) = entry.file_type() else { return listing };
                let name = entry.file_name();
                // No memory can cite a name that is not UTF-8.
                let Some(name) = name.to_str() else { continue };
                if kind.is_dir() && has_word(SKIPPED_FOLDERS, name) {
                    continue;
                }
                let path = format!("{folder}{name}");
                listing.paths.push(path.to_lowercase());
                if kind.is_dir() {
                    below.push(path + "/");
                }
            }
        }
        if below.is_empty() {
            listing.is_complete = true;
            return listing;
        }
        folders = below;
    }
    listing
}
