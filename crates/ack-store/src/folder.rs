//! Serves notes in files: folders of Markdown, and server-memory's file of JSON lines.
//!
//! The files are read into an in-memory database with the native layout. Before each answer the
//! folder is listed, and the rows of files whose metadata changed are replaced. Nothing in the
//! folder is written, and links in it are not followed.
//!
//! A note waits for review until a person decides, whatever status it names, unless the owner names
//! the reference whose files are approved (`reference`).

mod blocks;
pub mod dialect;
mod files;
pub mod front_matter;
mod graph;
mod index;
pub mod instructions;
pub mod lines;
pub mod links;
mod listing;
pub mod markdown;
pub mod note;
pub mod parse;
mod problems;
mod reference;
mod rows;
mod sections;
mod statements;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ack_sys::watch::Watch;
use ack_worktree::committed::{CommittedFolder, ObjectName};
use ack_worktree::objects::{MAX_OBJECT_BYTES, Objects};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};

pub use self::dialect::Dialect;
pub use self::files::max_bytes;
use self::files::{ReadFile, expect_graph, project_of_sessions, read_files};
use self::listing::{FileEntry, Listing};
pub use self::listing::{is_markdown, is_skipped};
use self::note::Note;
use self::reference::Reference;
use self::rows::{Content, FileNotes, RowKey, RowText, Rows, display_path};
use crate::database::Origin;
use crate::open::{FileState, Opening};
use crate::{StoreError, StoreProblem};

/// A request asks for the state of the files and then reads them; the folder is listed once.
pub(crate) const SAME_REQUEST_WINDOW: Duration = Duration::from_millis(50);
const MAX_PROBLEMS: usize = 20;
/// A watched folder is listed again after this time. Writes through a memory-mapped file, or
/// through a hard link created since, cause no event.
const RELIST_INTERVAL: Duration = Duration::from_secs(5);

/// A folder that holds too much is not visited again for so long.
const REFUSAL_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub struct Notes {
    reference: Option<String>,
    loaded: Mutex<Option<LoadedNotes>>,
    /// When the folder was found to hold too much. To find it out takes long.
    refused: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone, Default)]
pub struct NotesReport {
    /// Files that were left out or are damaged.
    pub problems: Vec<String>,
    /// Existing notes that could not be read.
    pub hidden: Vec<String>,
    /// Existing notes that are not served completely: what publishing would remove.
    pub unserved: Vec<String>,
    /// Why the reference cannot be read, in a few words and without a path.
    pub unknown_reference: Option<&'static str>,
}

#[derive(Debug)]
struct LoadedNotes {
    dialect: Dialect,
    files: FxHashMap<OsString, ReadFile>,
    bytes: u64,
    rows: Rows,
    reference: Option<Reference>,
    /// Committed notes that could not be read and may be readable next time.
    missing: Vec<String>,
    project: Option<String>,
    report: Arc<NotesReport>,
    /// Committed notes with content that is not served.
    unfit: Vec<String>,
    version: u64,
    last_listing: Option<LastListing>,
    listed_problems: Vec<String>,
}

#[derive(Debug)]
struct LastListing {
    at: Instant,
    watch: Watch,
    /// Device and inode of the folder: another folder may replace it.
    folder: Option<(u64, u64)>,
}

impl LastListing {
    fn now(watch: Watch, folder: Option<(u64, u64)>) -> Self {
        Self { at: Instant::now(), watch, folder }
    }

    fn is_current(&self, path: &Path) -> bool {
        self.at.elapsed() < RELIST_INTERVAL
            && self.folder == identity(path)
            && !self.watch.has_changed()
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_dir().then(|| (metadata.dev(), metadata.ino()))
}

impl Notes {
    /// Notes that count as approved if they are committed on a reference.
    pub fn with_reference(reference: Option<String>) -> Self {
        Self { reference, ..Self::default() }
    }

    /// Whether a store's path names files of notes and not a database. With a reference, the folder
    /// itself may be missing.
    pub fn are_at(&self, path: &Path) -> bool {
        let extension = path.extension().unwrap_or_default();
        let name = Path::new(path.file_name().unwrap_or_default());
        // A folder with the name of a database is not a folder of notes.
        let is_database = ["db", "sqlite", "sqlite3"].iter().any(|it| extension == *it);
        extension == "jsonl"
            || Dialect::AddedMemories.cut(name).is_some()
            || !is_database && path.is_dir()
            || self.reference.is_some() && !path.exists()
    }

    /// Passes the current state to `read`. The folder is not listed again within `same_request`, or
    /// if it is watched and nothing changed in it.
    pub(crate) fn read<T>(
        &self,
        path: &Path,
        same_request: Duration,
        read: impl FnOnce(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = &ack_sys::files::real_path(path);
        let mut loaded = self.loaded.lock();
        if self.refused.lock().is_some_and(|at| at.elapsed() < REFUSAL_TIME) {
            return Err(StoreProblem::TooManyFiles(listing::MAX_ENTRIES).at(path));
        }
        let dialect = Dialect::of(path);
        // If an update fails halfway, everything is read again next time.
        let mut current = match loaded.take().filter(|loaded| loaded.dialect == dialect) {
            Some(current) => current,
            None => LoadedNotes::empty(path, dialect, self.reference.clone())?,
        };
        if !current.is_current(path, same_request) {
            current.update(path).inspect_err(|error| {
                if matches!(error.problem, StoreProblem::TooManyFiles(_)) {
                    *self.refused.lock() = Some(Instant::now());
                }
            })?;
        }
        let current = loaded.insert(current);
        let state = FileState::of_notes(current.version, current.bytes);
        read(Origin {
            profile: Some(dialect.profile()),
            ..Origin::of(&current.rows.connection, Opening::Parsed, &state)
        })
    }

    pub fn report(&self) -> Arc<NotesReport> {
        let loaded = self.loaded.lock();
        loaded.as_ref().map_or_else(Arc::default, |loaded| Arc::clone(&loaded.report))
    }

    /// The text of the note with an id, exactly as it is served; `None` if it is not available.
    pub fn note_text(&self, path: &Path, id: &str) -> Option<String> {
        self.read(path, SAME_REQUEST_WINDOW, |_| Ok(())).ok()?;
        let loaded = self.loaded.lock();
        let loaded = loaded.as_ref()?;
        let (key, content) = loaded.rows.find(id)?;
        let kind = loaded.reference.as_ref().and_then(Reference::hash_kind);
        let text =
            files::read_if_unchanged(&path.join(&key.relative), content, kind).or_else(|| {
                let Content::Object(name) = content else { return None };
                let (_, mut objects) = loaded.reference.as_ref()?.objects()?;
                Some(objects.blob(name).ok()?.to_vec())
            });
        String::from_utf8(text?).ok()
    }

    pub fn forget(&self) {
        *self.loaded.lock() = None;
    }
}

impl LoadedNotes {
    fn empty(path: &Path, dialect: Dialect, reference: Option<String>) -> rusqlite::Result<Self> {
        let project = (dialect == Dialect::AutoMemory).then(|| project_of_sessions(path)).flatten();
        Ok(Self {
            dialect,
            files: FxHashMap::default(),
            bytes: 0,
            rows: Rows::new(dialect, reference.is_some())?,
            reference: reference.map(Reference::new),
            missing: Vec::new(),
            project,
            report: Arc::default(),
            unfit: Vec::new(),
            version: 0,
            last_listing: None,
            listed_problems: Vec::new(),
        })
    }

    fn is_current(&self, path: &Path, same_request: Duration) -> bool {
        let Some(listed) = &self.last_listing else { return false };
        listed.at.elapsed() < same_request
            || self.missing.is_empty()
                && listed.is_current(path)
                && self.reference.as_ref().is_none_or(|it| it.is_current(path))
    }

    fn update(&mut self, path: &Path) -> Result<(), StoreError> {
        let folder = identity(path);
        let dialect = self.dialect;
        let has_moved = self.reference.as_mut().is_some_and(|it| it.update(path, dialect));
        if has_moved {
            // A note that was served from git's objects may now come from a file that was read long
            // ago.
            self.files.clear();
        }
        let mut listing = self.list(path)?;
        let names = self.reference.as_ref().and_then(Reference::hash_kind);
        let is_known = |entry: &&FileEntry| {
            let known = self.files.get(entry.relative.as_os_str());
            known.is_some_and(|known| {
                !known.is_fresh
                    && known.entry == **entry
                    && (names.is_none() || known.object_names.is_some() || known.problem.is_some())
            })
        };
        let changed: Vec<&FileEntry> =
            listing.files.iter().filter(|entry| !is_known(entry)).collect();
        // If no file is gone, every known and every changed file is listed.
        if changed.is_empty()
            && listing.files.len() == self.files.len()
            && self.version != 0
            && !has_moved
            && self.missing.is_empty()
            && self.listed_problems == listing.problems
        {
            self.last_listing = Some(LastListing::now(listing.watch, folder));
            return Ok(());
        }
        if dialect == Dialect::ServerMemory {
            expect_graph(path)?;
        }
        let mut fresh = FxHashMap::default();
        for (file, notes) in read_files(dialect, path, &changed, names) {
            let relative: OsString = file.entry.relative.clone().into();
            fresh.insert(relative.clone(), notes);
            self.files.insert(relative, file);
        }
        let is_read = self.files.values().all(|file| file.problem.is_none());
        if dialect == Dialect::AddedMemories && is_read && fresh.values().all(Vec::is_empty) {
            return Err(StoreProblem::Instructions.at(path));
        }
        let listed = listing.files.iter().map(|entry| entry.relative.as_os_str());
        let listed: FxHashSet<&OsStr> = listed.collect();
        self.files.retain(|relative, _| listed.contains(relative.as_os_str()));
        let problems = self.update_rows(fresh)?;
        self.report = Arc::new(self.report_of(&listing, problems));
        self.listed_problems = std::mem::take(&mut listing.problems);
        self.bytes = listing.files.iter().map(|entry| entry.length).sum();
        self.version = self.rows.hash();
        if self.files.values().any(|file| file.is_unreadable) {
            listing.watch.stop();
        }
        self.last_listing = Some(LastListing::now(listing.watch, folder));
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Listing, StoreError> {
        let dialect = self.dialect;
        if instructions::is_rule_folder(path) {
            return Err(StoreProblem::Instructions.at(path));
        }
        let committed = self.reference.as_ref().and_then(Reference::committed);
        let is_committed = committed.is_some_and(|committed| committed.has_folder);
        if self.reference.is_some() && !path.exists() {
            // Another branch is checked out.
            return is_committed.then(Listing::default).ok_or(StoreProblem::Missing.at(path));
        }
        let listing = listing::list(path, dialect)?;
        let holds_notes = |file: &FileEntry| {
            !note::is_json_lines(&file.relative)
                || files::starts_with_memory(&path.join(&file.relative))
        };
        if dialect.is_plain() && !is_committed && !listing.files.iter().any(holds_notes) {
            return Err(StoreProblem::NoNotes.at(path));
        }
        Ok(listing)
    }

    /// Brings the rows up to date, and returns what could not be read.
    fn update_rows(
        &mut self,
        mut fresh: FxHashMap<OsString, Vec<Note>>,
    ) -> Result<Vec<String>, StoreError> {
        let nothing = CommittedFolder::default();
        let committed = self.reference.as_ref().and_then(Reference::committed);
        let plan = reference::plan(&self.files, committed.unwrap_or(&nothing));
        let mut committed = CommittedTexts {
            dialect: self.dialect,
            files: &self.files,
            reference: self.reference.as_ref(),
            opened: None,
            missing: Vec::new(),
            unfit: Vec::new(),
        };
        let notes = |key: &RowKey, text: RowText| match text.content {
            Content::Object(id) if text.is_from_git => committed.read(&key.relative, id),
            _ => {
                let notes = fresh.remove(&key.relative)?;
                let file = self.files.get(&key.relative)?;
                Some(FileNotes { notes, problem: file.partial_problem.clone() })
            }
        };
        let mut problems = self.rows.update(&plan, notes, self.project.as_deref())?;
        let CommittedTexts { missing, unfit, .. } = committed;
        problems.extend(missing.iter().chain(&unfit).cloned());
        self.missing = missing;
        self.unfit = unfit;
        Ok(problems)
    }
}

struct CommittedTexts<'a> {
    dialect: Dialect,
    files: &'a FxHashMap<OsString, ReadFile>,
    reference: Option<&'a Reference>,
    opened: Option<Option<(SystemTime, Objects<'a>)>>,
    missing: Vec<String>,
    unfit: Vec<String>,
}

impl CommittedTexts<'_> {
    fn read(&mut self, relative: &OsStr, id: ObjectName) -> Option<FileNotes> {
        let open = || self.reference?.objects();
        let (time, objects) = self.opened.get_or_insert_with(open).as_mut()?;
        let name = display_path(relative);
        if objects.is_too_large(id) {
            self.unfit.push(format!(
                "`{name}` is larger than {} MB as it is committed, and was left out",
                MAX_OBJECT_BYTES >> 20
            ));
            return None;
        }
        let Ok(content) = objects.blob(id) else {
            self.missing.push(format!(
                "`{name}` is committed, and its text cannot be read from git's objects; a partial \
                 clone gets it with `git fetch --refetch --no-filter`, or when the commit is \
                 checked out"
            ));
            return None;
        };
        let here = self.files.get(relative);
        if note::is_lfs_pointer(content) && here.is_some_and(|file| file.problem.is_none()) {
            self.unfit.push(format!(
                "`{name}` is committed as a Git LFS pointer, so its text is not approved; the file \
                 here waits for review"
            ));
            return None;
        }
        if let Some(problem) = note::unreadable_reason(content) {
            self.unfit.push(format!("`{name}` {problem}"));
            return None;
        }
        let (notes, problem) = parse::memories(self.dialect, Path::new(relative), content, *time);
        Some(FileNotes { notes, problem })
    }
}
