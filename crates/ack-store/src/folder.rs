//! Serves notes in files: folders of Markdown, and server-memory's file of JSON lines.
//!
//! The files are read into an in-memory database with the native layout, so that everything else
//! reads them as it reads any store. Before each answer the folder is listed; files whose metadata
//! changed are read again, and only their rows are replaced. Nothing in the folder is written, and
//! links in it are not followed.
//!
//! No note has a review status of its own that counts: each waits for review until a person
//! decides.

mod front_matter;
mod listing;
mod note;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use ack_sys::watch::Watch;
use rusqlite::{Connection, params};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use self::listing::{FileEntry, Listing};
use self::note::Note;
use crate::layout::Profile;
use crate::{StoreError, lock};
use ack_sys::files;

/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// The most bytes of a folder that are read.
const MAX_FOLDER_BYTES: u64 = 512 << 20;
/// A folder that was listed this recently was listed for the same request, which asks for the state
/// of the files first and then reads.
pub(crate) const SAME_REQUEST: Duration = Duration::from_millis(50);
/// How many files in trouble are named.
const MAX_PROBLEMS: usize = 20;
/// How many threads read files.
const MAX_THREADS: usize = 4;
/// A watched folder is listed again after this time: what is written through a mapping of a file
/// makes no event.
const WATCHED_FOR: Duration = Duration::from_secs(60);
/// How much of a session's file is searched for the folder that it ran in.
const SESSION_HEAD_BYTES: usize = 64 << 10;

/// The tables that hold the notes. `memory_links` is made from the others, see [`RESOLVE_LINKS`].
const SCHEMA: &str = "
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE memories (id TEXT, project TEXT, session_id TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, concepts TEXT,
  files TEXT, narrative TEXT, created_at TEXT, updated_at TEXT, source_file TEXT);
CREATE INDEX memories_id ON memories (id);
CREATE INDEX memories_file ON memories (source_file);
CREATE TABLE note_names (name TEXT, id TEXT, source_file TEXT);
CREATE INDEX note_names_name ON note_names (name);
CREATE INDEX note_names_file ON note_names (source_file);
CREATE TABLE note_links (from_id TEXT, kind TEXT, name TEXT, source_file TEXT);
CREATE INDEX note_links_from ON note_links (from_id);
CREATE INDEX note_links_file ON note_links (source_file);
CREATE TABLE memory_links (from_id TEXT, to_id TEXT, kind TEXT);
CREATE INDEX memory_links_from ON memory_links (from_id);
CREATE INDEX memory_links_to ON memory_links (to_id);
";
/// Finds the notes that links name. A name may have become another note's.
const RESOLVE_LINKS: &str = "
DELETE FROM memory_links;
INSERT INTO memory_links SELECT DISTINCT l.from_id, n.id, l.kind FROM note_links l JOIN note_names n ON n.name = l.name
  WHERE n.id <> l.from_id;
";

/// Which program keeps the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Claude Code's auto-memory: `MEMORY.md` is an index.
    AutoMemory,
    /// Codex: an index of task groups, and a file for each rollout.
    Codex,
    /// Any other folder of Markdown: Open Knowledge Format, basic-memory, Serena, docs/solutions.
    Markdown,
    /// One file of JSON lines.
    ServerMemory,
}

impl Dialect {
    /// The dialect of a folder or a file.
    fn of(path: &Path) -> Self {
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

    const fn profile(self) -> Profile {
        match self {
            Self::AutoMemory => Profile::AutoMemory,
            Self::Codex => Profile::Codex,
            Self::Markdown => Profile::Markdown,
            Self::ServerMemory => Profile::ServerMemory,
        }
    }

    /// Whether a file holds memories, by its path in the folder.
    fn holds_memories(self, relative: &Path) -> bool {
        let name = relative.to_string_lossy();
        match self {
            Self::AutoMemory => name != "MEMORY.md",
            Self::Codex => name == "MEMORY.md" || name.starts_with("rollout_summaries/"),
            Self::Markdown => !["index.md", "log.md"].contains(&name.as_ref()),
            Self::ServerMemory => true,
        }
    }
}

/// Whether a store's path names files of notes and not a database.
pub fn is_notes(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    // A folder where a database is expected is no folder of notes.
    let is_database = ["db", "sqlite", "sqlite3"]
        .iter()
        .any(|database| extension == *database);
    extension == "jsonl" || !is_database && path.is_dir()
}

/// Notes in files, as they were read last.
#[derive(Debug, Default)]
pub struct Notes {
    loaded: Mutex<Option<Loaded>>,
}

/// What was read.
#[derive(Debug)]
struct Loaded {
    dialect: Dialect,
    /// By their paths in the folder. Paths are compared byte by byte, which is faster than by parts.
    files: FxHashMap<OsString, ReadFile>,
    /// The length of all files.
    bytes: u64,
    connection: Connection,
    /// The project of notes that name none.
    project: Option<String>,
    problems: Vec<String>,
    /// A hash of all contents.
    version: u64,
    listed: Option<Listed>,
}

/// When a folder was listed last, and what tells whether it changed since then.
#[derive(Debug)]
struct Listed {
    at: Instant,
    watch: Watch,
    /// Device and inode of the folder: another one may take its place.
    folder: Option<(u64, u64)>,
}

impl Listed {
    fn now(watch: Watch, folder: Option<(u64, u64)>) -> Self {
        let at = Instant::now();
        Self { at, watch, folder }
    }

    /// Whether listing it again would find the same.
    fn is_current(&self, path: &Path, same_request: Duration) -> bool {
        let age = self.at.elapsed();
        age < same_request
            || age < WATCHED_FOR && self.folder == identity(path) && !self.watch.has_changed()
    }
}

/// Device and inode of a folder.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    metadata.is_dir().then(|| (metadata.dev(), metadata.ino()))
}

/// A file as it was read.
#[derive(Debug, Clone)]
struct ReadFile {
    entry: FileEntry,
    /// The file may have changed after it was read without a change of its metadata.
    is_fresh: bool,
    hash: u64,
    problem: Option<String>,
    /// It could not be read.
    is_unread: bool,
}

/// One state of the notes.
pub struct NotesState<'a> {
    /// The database.
    pub connection: &'a Connection,
    /// Whose they are.
    pub profile: Profile,
    /// A hash of all contents.
    pub version: u64,
    /// How many bytes were read.
    pub bytes: u64,
}

impl Notes {
    /// Reads what changed, and passes the present state to `read`. The folder is not listed again if
    /// that was done less than `same_request` ago, or if it is watched and nothing changed in it.
    ///
    /// # Errors
    /// The folder cannot be listed or holds no notes, or `read` failed.
    pub fn read<T>(
        &self,
        path: &Path,
        same_request: Duration,
        read: impl FnOnce(&NotesState<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut loaded = lock(&self.loaded);
        let dialect = Dialect::of(path);
        // What fails in the middle of an update is read anew next time.
        let mut current = match loaded.take().filter(|loaded| loaded.dialect == dialect) {
            Some(current) => current,
            None => {
                Loaded::empty(path, dialect).map_err(|error| StoreError::sqlite(path, error))?
            }
        };
        let is_current = current
            .listed
            .as_ref()
            .is_some_and(|listed| listed.is_current(path, same_request));
        if !is_current {
            current.update(path)?;
        }
        let current = loaded.insert(current);
        read(&NotesState {
            connection: &current.connection,
            profile: dialect.profile(),
            version: current.version,
            bytes: current.bytes,
        })
    }

    /// Files that were left out or are damaged, as of the last read.
    pub fn problems(&self) -> Vec<String> {
        let loaded = lock(&self.loaded);
        loaded
            .as_ref()
            .map(|loaded| loaded.problems.clone())
            .unwrap_or_default()
    }

    /// Forgets what was read.
    pub fn forget(&self) {
        *lock(&self.loaded) = None;
    }
}

impl Loaded {
    #[expect(
        clippy::disallowed_methods,
        reason = "the notes are files, and this database only holds what was read from them"
    )]
    fn empty(path: &Path, dialect: Dialect) -> rusqlite::Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(SCHEMA)?;
        let project = (dialect == Dialect::AutoMemory)
            .then(|| project_of_sessions(path))
            .flatten();
        Ok(Self {
            dialect,
            files: FxHashMap::default(),
            bytes: 0,
            connection,
            project,
            problems: Vec::new(),
            version: 0,
            listed: None,
        })
    }

    /// Brings the rows up to date with the files.
    fn update(&mut self, path: &Path) -> Result<(), StoreError> {
        let folder = identity(path);
        let io = |source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let mut listing =
            listing::list(path, &|relative| self.dialect.holds_memories(relative)).map_err(io)?;
        if self.dialect == Dialect::Markdown && listing.files.is_empty() {
            return Err(StoreError::NoNotes {
                path: path.to_owned(),
            });
        }
        let is_known = |entry: &&FileEntry| {
            let known = self.files.get(entry.relative.as_os_str());
            known.is_some_and(|known| !known.is_fresh && known.entry == **entry)
        };
        let changed: Vec<&FileEntry> = listing
            .files
            .iter()
            .filter(|entry| !is_known(entry))
            .collect();
        // If none is gone, each known file is listed, and so is each that changed.
        if changed.is_empty() && listing.files.len() == self.files.len() && self.version != 0 {
            self.listed = Some(Listed::now(listing.watch, folder));
            return Ok(());
        }
        if self.dialect == Dialect::ServerMemory {
            expect_graph(path)?;
        }
        let read = read_files(self.dialect, path, &changed);
        self.store(read, &listing)
            .map_err(|error| StoreError::sqlite(path, error))?;
        self.set_problems(&listing);
        self.bytes = listing.files.iter().map(|entry| entry.length).sum();
        let mut contents: Vec<(&OsString, u64)> = self
            .files
            .iter()
            .map(|(relative, file)| (relative, file.hash))
            .collect();
        contents.sort_unstable();
        let mut hash = Xxh3::new();
        for (relative, content) in contents {
            hash.update(relative.as_encoded_bytes());
            hash.update(&content.to_ne_bytes());
        }
        self.version = hash.digest().max(1);
        if self.files.values().any(|file| file.is_unread) {
            listing.watch.give_up();
        }
        self.listed = Some(Listed::now(listing.watch, folder));
        Ok(())
    }

    /// Replaces the rows of files that were read, and removes those of files that are gone.
    fn store(
        &mut self,
        read: Vec<(ReadFile, Vec<Note>)>,
        listing: &Listing,
    ) -> rusqlite::Result<()> {
        self.connection
            .execute_batch("PRAGMA query_only = OFF; BEGIN")?;
        let listed: FxHashSet<&OsStr> = listing
            .files
            .iter()
            .map(|entry| entry.relative.as_os_str())
            .collect();
        let is_gone = |relative: &&OsString| !listed.contains(relative.as_os_str());
        let gone: Vec<OsString> = self.files.keys().filter(is_gone).cloned().collect();
        for relative in gone {
            self.files.remove(&relative);
            remove(&self.connection, Path::new(&relative))?;
        }
        for (file, notes) in read {
            let relative = file.entry.relative.clone();
            let known = self.files.insert(relative.clone().into(), file.clone());
            if known.as_ref().is_some_and(|known| known.hash == file.hash) {
                continue;
            }
            if known.is_some() {
                remove(&self.connection, &relative)?;
            }
            for note in &notes {
                add(&self.connection, &relative, note, self.project.as_deref())?;
            }
        }
        self.connection.execute_batch(RESOLVE_LINKS)?;
        self.connection
            .execute_batch("COMMIT; PRAGMA query_only = ON")
    }

    fn set_problems(&mut self, listing: &Listing) {
        let files = self.files.values().filter_map(|file| {
            let name = ack_api::text::line(&file.entry.relative.to_string_lossy(), 120);
            Some(format!("`{name}` {}", file.problem.as_ref()?))
        });
        let mut files: Vec<String> = files.collect();
        files.sort();
        let mut problems: Vec<String> = listing.problems.iter().cloned().chain(files).collect();
        if problems.len() > MAX_PROBLEMS {
            let more = problems.len() - MAX_PROBLEMS;
            problems.truncate(MAX_PROBLEMS);
            problems.push(format!("and {more} more"));
        }
        self.problems = problems;
    }
}

/// Checks that a file of JSON lines is a graph: any program may have written it.
fn expect_graph(path: &Path) -> Result<(), StoreError> {
    use std::io::Read;
    let io = |source| StoreError::Io {
        path: path.to_owned(),
        source,
    };
    let mut head = Vec::new();
    let file = files::open(path).map_err(io)?;
    file.take(SESSION_HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(io)?;
    let head = String::from_utf8_lossy(&head);
    let is_graph = head.trim().is_empty()
        || ["\"entityType\"", "\"relationType\""]
            .iter()
            .any(|member| head.contains(member));
    if is_graph {
        Ok(())
    } else {
        Err(StoreError::NotADatabase {
            path: path.to_owned(),
        })
    }
}

/// Reads files on a few threads.
fn read_files(dialect: Dialect, root: &Path, entries: &[&FileEntry]) -> Vec<(ReadFile, Vec<Note>)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = entries.len().div_ceil(threads.min(MAX_THREADS)).max(64);
    let mut left = MAX_FOLDER_BYTES;
    let within: Vec<(&FileEntry, bool)> = entries
        .iter()
        .map(|entry| {
            let fits = entry.length <= left;
            left = left.saturating_sub(entry.length);
            (*entry, fits)
        })
        .collect();
    std::thread::scope(|scope| {
        let parts: Vec<_> = within
            .chunks(share)
            .map(|part| {
                scope.spawn(move || {
                    let read = part
                        .iter()
                        .map(|(entry, fits)| read_file(dialect, root, entry, *fits));
                    read.collect::<Vec<_>>()
                })
            })
            .collect();
        let mut read = Vec::with_capacity(entries.len());
        for part in parts {
            match part.join() {
                Ok(files) => read.extend(files),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        read
    })
}

fn read_file(
    dialect: Dialect,
    root: &Path,
    entry: &FileEntry,
    fits: bool,
) -> (ReadFile, Vec<Note>) {
    let begun = SystemTime::now();
    let mut file = ReadFile {
        entry: entry.clone(),
        is_fresh: false,
        hash: 0,
        problem: None,
        is_unread: false,
    };
    if entry.length > MAX_FILE_BYTES {
        file.problem = Some(format!(
            "is larger than {} MB and was left out",
            MAX_FILE_BYTES >> 20
        ));
        return (file, Vec::new());
    }
    if !fits {
        file.problem = Some(format!(
            "was left out: the folder holds more than {} MB",
            MAX_FOLDER_BYTES >> 20
        ));
        return (file, Vec::new());
    }
    let path = match dialect {
        Dialect::ServerMemory => root.to_owned(),
        _ => root.join(&entry.relative),
    };
    let content = match files::read(&path, MAX_FILE_BYTES) {
        Ok(content) => content,
        Err(error) => {
            // It may be replaced at this moment: it is read again next time.
            file.is_fresh = true;
            file.is_unread = true;
            file.problem = Some(format!("cannot be read: {error}"));
            return (file, Vec::new());
        }
    };
    file.is_fresh = !entry.is_settled(begun) || content.len() as u64 != entry.length;
    file.hash = xxh3_64(&content).max(1);
    if content.contains(&0) {
        file.problem = Some("is not text and was left out".to_owned());
        return (file, Vec::new());
    }
    let notes = note::read(dialect, &entry.relative, &content, entry.modified);
    (file, notes)
}

fn remove(connection: &Connection, relative: &Path) -> rusqlite::Result<()> {
    let file = relative.to_string_lossy();
    for table in ["memories", "note_names", "note_links"] {
        let sql = format!("DELETE FROM {table} WHERE source_file = ?1");
        connection.prepare_cached(&sql)?.execute([&file])?;
    }
    Ok(())
}

fn add(
    connection: &Connection,
    relative: &Path,
    note: &Note,
    project: Option<&str>,
) -> rusqlite::Result<()> {
    let file = relative.to_string_lossy();
    let list = |values: &[String]| serde_json::to_string(values).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO memories VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            note.id,
            note.project.as_deref().or(project),
            note.session,
            note.kind,
            note.title,
            note.subtitle,
            list(&note.facts),
            list(&note.tags),
            list(&note.files),
            note.text,
            note.created,
            note.updated,
            file,
        ])?;
    for name in &note.names {
        connection
            .prepare_cached("INSERT INTO note_names VALUES (?1, ?2, ?3)")?
            .execute(params![name.to_lowercase(), note.id, file])?;
    }
    for (kind, name) in &note.links {
        connection
            .prepare_cached("INSERT INTO note_links VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![note.id, kind, name.to_lowercase(), file])?;
    }
    Ok(())
}

/// The project of Claude Code's auto-memory: the name of the folder that its sessions ran in. Their
/// files lie next to the folder of the notes.
fn project_of_sessions(path: &Path) -> Option<String> {
    let beside = std::fs::read_dir(path.parent()?).ok()?;
    let mut sessions: Vec<(SystemTime, PathBuf)> = beside
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    sessions.sort();
    sessions.iter().rev().take(5).find_map(|(_, path)| {
        use std::io::Read;
        let mut head = Vec::new();
        let file = files::open(path).ok()?;
        file.take(SESSION_HEAD_BYTES as u64)
            .read_to_end(&mut head)
            .ok()?;
        let head = String::from_utf8_lossy(&head);
        head.lines().find_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            let folder = Path::new(value.get("cwd")?.as_str()?).file_name()?;
            Some(folder.to_string_lossy().into_owned())
        })
    })
}
