//! Opens a store without changing a byte of it, or any file next to it.
//!
//! SQLite's read-only mode has side effects: on a WAL database at rest it leaves `-wal` and `-shm`
//! files, it rewrites an existing `-shm`, and its shared lock makes the commit of a
//! rollback-journal writer fail. So the files next to a store decide how it is opened
//! ([`Opening`]), through a file layer that cannot write ([`super::vfs`]). A read without locks is
//! used only if the [`FileState`] is the same afterwards.
//!
//! An inspection opens and closes the files, and closing any descriptor of a file drops every POSIX
//! lock that this process holds on it. So nothing here may run while a connection of this process
//! holds locks on the same database; [`super::Store`] ensures that.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::libc;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::quick_state::FileMetadata;
use super::vfs;
use crate::{StoreError, StoreProblem};
use ack_sys::files;

/// How many times the files are inspected while the database changes.
const MAX_INSPECTIONS: u32 = 16;
/// The page cache of a connection, in KiB (a negative `cache_size`). It is small because a read
/// scans a store once or fetches a few rows.
const CACHE_SIZE_KIB: i32 = -256;
/// The file system may record the same time for two changes that are closer together than this.
pub const CLOCK_TICK: Duration = Duration::from_millis(50);
/// How long SQLite waits for a lock, if it uses locks at all.
const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// How a database is opened for one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Nothing writes: `immutable=1`, no lock and no new file, verified unchanged afterwards.
    AtRest,
    /// A write-ahead log and its shared-memory file are present: `mode=ro` with a read-only
    /// shared-memory file. It sees every committed row and writes nothing.
    Live,
    /// The files are copied to a private temporary folder and read there. This is for a log or a
    /// rollback journal that only a writable folder can process, a log whose writer locks everyone
    /// out, and a database that changes during every read.
    Copied,
    /// A writer holds the lock that lets it change the database, and may be changing it. A shared
    /// lock would make its commit fail, so none is taken.
    Locked,
    /// Files of notes were read into memory, see [`crate::folder`].
    Parsed,
    /// A writer holds that lock, but its journal shows no change in progress: the database is in
    /// its last committed state.
    LastCommit,
}

impl Opening {
    /// The text for `doctor` and `list_scopes`.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::AtRest => "at rest, without locks (immutable=1, verified unchanged)",
            Self::Live => "live write-ahead log (mode=ro, shared memory read-only)",
            Self::Copied => "a private copy (it could not be read in place)",
            Self::Parsed => "its files are read into memory, and again when they change",
            Self::Locked => "not, because a writer holds its lock",
            Self::LastCommit => {
                "between two changes of a writer that keeps its lock (immutable=1, verified unchanged)"
            }
        }
    }
}

/// One state of a database's files. If two are equal, no commit happened between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileState {
    pub(crate) main: FileMetadata,
    /// Change counter and schema cookie of the database header (bytes 24-27 and 40-43).
    counters: [u8; 8],
    log: Option<FileMetadata>,
    /// The log's header, with its salts (bytes 0-31).
    log_header: Vec<u8>,
    /// The wal-index header (bytes 0-95 of `-shm`). It changes with every commit, even if a log is
    /// overwritten in place within one tick of the file system's clock.
    shared_memory: Vec<u8>,
    /// The journal to roll back. With it, the database file contains an unfinished change; without
    /// it, the same file is committed.
    pub(crate) journal: Option<FileMetadata>,
    /// The version of the decision log; 0 without one.
    decisions: u64,
}

impl FileState {
    /// The state of notes in files.
    pub(crate) fn of_notes(version: u64, bytes: u64) -> Self {
        Self {
            main: FileMetadata { length: bytes, inode: version, ..FileMetadata::default() },
            counters: [0; 8],
            log: None,
            log_header: Vec::new(),
            shared_memory: Vec::new(),
            journal: None,
            decisions: 0,
        }
    }

    /// Whether there is neither a log nor a journal.
    pub const fn is_at_rest(&self) -> bool {
        self.log.is_none() && self.journal.is_none() && self.shared_memory.is_empty()
    }

    /// Whether the database file itself is unchanged.
    pub fn same_database(&self, other: &Self) -> bool {
        (&self.main, self.counters) == (&other.main, other.counters)
    }

    /// Whether a copy that was started at `self` and finished at `after` contains one consistent
    /// state. The log may have grown after the copied part, as long as none of it was written into
    /// the database.
    pub fn is_consistent_until(&self, after: &Self) -> bool {
        if self == after {
            return true;
        }
        let same_log = !self.log_header.is_empty() && self.log_header == after.log_header;
        self.main.is_older_than(CLOCK_TICK, SystemTime::now())
            && same_log
            && self.same_database(after)
            && self.journal == after.journal
    }

    /// Whether another commit would change it, however soon it came.
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now();
        self.log.iter().chain([&self.main]).all(|file| file.is_older_than(CLOCK_TICK, now))
    }

    /// The same state together with a version of the decision log.
    #[must_use]
    pub(crate) const fn with_decisions(mut self, version: u64) -> Self {
        self.decisions = version;
        self
    }
}

/// Which files next to a database are copied with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sidecars {
    /// None: the database file is complete.
    None,
    /// The log, or the journal to roll back.
    LogOrJournal,
}

/// What another process is doing to a database, judging by its locks
/// (<https://www.sqlite.org/lockingv3.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterLock {
    /// Nothing, or it only reads.
    None,
    /// RESERVED: it collects changes but has not written to the database yet.
    Reserved,
    /// PENDING or EXCLUSIVE: it changes the database, or is about to.
    Exclusive,
}

/// Inspects a database: the state of its files, and how to open it.
pub fn inspect(path: &Path) -> Result<(FileState, Opening), StoreError> {
    // A writer may merge its log into the database and then remove the log. Reading the database
    // file before that and looking for the log afterwards would miss those changes. So the database
    // file is read again after its sidecars.
    let mut main = DatabaseFile::read(path)?;
    for _ in 0..MAX_INSPECTIONS {
        let found = inspect_sidecars(path, &main)?;
        let again = DatabaseFile::read(path)?;
        if again.metadata == main.metadata && again.header == main.header {
            return Ok(found);
        }
        main = again;
    }
    inspect_sidecars(path, &main)
}

/// Checks that what is beside a database may be read: SQLite says only that it cannot open it.
pub fn check_readable(path: &Path) -> Result<(), StoreError> {
    for suffix in ["-wal", "-shm", "-journal"] {
        let path = sidecar_path(path, suffix);
        if let Err(source) = File::open(&path)
            && source.kind() == std::io::ErrorKind::PermissionDenied
        {
            return Err(StoreProblem::Io(source).at(&path));
        }
    }
    Ok(())
}

struct DatabaseFile {
    file: File,
    metadata: FileMetadata,
    /// Its first 100 bytes, or fewer if it is shorter.
    header: Vec<u8>,
}

impl DatabaseFile {
    fn read(path: &Path) -> Result<Self, StoreError> {
        let io = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => StoreProblem::Missing.at(path),
            _ => StoreProblem::Io(source).at(path),
        };
        if fs::metadata(path).map_err(io)?.is_dir() {
            return Err(StoreProblem::NoNotes.at(path));
        }
        let file = files::open(path).map_err(io)?;
        let metadata = FileMetadata::of(&file.metadata().map_err(io)?);
        let header = read_prefix(&file, 100).map_err(io)?;
        Ok(Self { file, metadata, header })
    }
}

fn inspect_sidecars(path: &Path, main: &DatabaseFile) -> Result<(FileState, Opening), StoreError> {
    let header = &main.header;
    // SQLite opens these without checking their file type.
    for suffix in ["-wal", "-shm", "-journal"] {
        let path = sidecar_path(path, suffix);
        match files::check(&path) {
            Err(source) if source.kind() == std::io::ErrorKind::InvalidInput => {
                return Err(StoreProblem::NotAFile(source).at(&path));
            }
            _ => {}
        }
    }
    let log_path = sidecar_path(path, "-wal");
    let log_metadata = fs::metadata(&log_path).ok();
    let log_length = log_metadata.as_ref().map_or(0, fs::Metadata::len);
    if header.is_empty() && log_length == 0 {
        return Err(StoreProblem::Empty.at(path));
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(StoreProblem::NotADatabase.at(path));
    }
    let journal_path = sidecar_path(path, "-journal");
    let journal = files::read_head(&journal_path, 1).ok();
    let first = journal.as_ref().and_then(|first| first.first());
    let hot = first.is_some_and(|byte| *byte != 0);
    let shared_path = sidecar_path(path, "-shm");
    let uses_log = header.get(18) == Some(&2) || header.get(19) == Some(&2);
    let opening = match (uses_log && log_length > 0, writer_lock(&main.file)) {
        // A writer in exclusive mode needs no shared memory; a file found there may be out of date.
        (true, WriterLock::Exclusive) => Opening::Copied,
        (true, _) if shared_path.exists() => Opening::Live,
        (true, _) => Opening::Copied,
        (false, _) if uses_log && !hot => Opening::AtRest,
        // The writer creates a journal with a valid header before it changes the database file.
        (false, WriterLock::Exclusive) if journal.is_some() && !hot => Opening::LastCommit,
        (false, WriterLock::Exclusive) => Opening::Locked,
        // A journal without a lock was left by a crash. The database needs a rollback to be
        // consistent.
        (false, WriterLock::None) if hot => Opening::Copied,
        // A writer with a RESERVED lock has not touched the database yet.
        (false, WriterLock::None | WriterLock::Reserved) => Opening::AtRest,
    };
    let has_unfinished = hot && matches!(opening, Opening::Locked | Opening::Copied);
    let journal = fs::metadata(journal_path).ok().filter(|_| has_unfinished);
    let log = log_metadata.filter(|_| log_length > 0);
    let log_head = |path: &Path, bytes| match log {
        Some(_) => files::read_head(path, bytes).unwrap_or_default(),
        None => Vec::new(),
    };
    let state = FileState {
        main: main.metadata.clone(),
        counters: counters(header),
        log_header: log_head(&log_path, 32),
        shared_memory: log_head(&shared_path, 96),
        log: log.as_ref().map(FileMetadata::of),
        journal: journal.as_ref().map(FileMetadata::of),
        decisions: 0,
    };
    Ok((state, opening))
}

/// The change counter and the schema cookie in the header of a database.
fn counters(header: &[u8]) -> [u8; 8] {
    let mut counters = [0; 8];
    for (to, from) in [(0..4, 24..28), (4..8, 40..44)] {
        if let (Some(to), Some(from)) = (counters.get_mut(to), header.get(from)) {
            to.copy_from_slice(from);
        }
    }
    counters
}

/// Opens a connection to a live database, or to one at rest. It cannot write, either to the
/// database or through functions that the schema calls.
pub fn connect(path: &Path, opening: Opening) -> rusqlite::Result<Connection> {
    let parameters = match opening {
        Opening::Live => "mode=ro&readonly_shm=1",
        _ => "mode=ro&immutable=1",
    };
    if !vfs::register() {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        let why = "the read-only file layer could not be registered".to_owned();
        return Err(rusqlite::Error::SqliteFailure(code, Some(why)));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags_and_vfs(uri(path, parameters), flags, vfs::NAME)?;
    harden(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Makes a connection trust nothing in the schema and use little memory.
pub fn harden(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // To scan an index, SQLite needs its collation, but nothing is looked up by it
    // ([`super::layout::exact`]).
    connection
        .collation_needed(|connection, name| connection.create_collation(name, |a, b| a.cmp(b)))?;
    connection.pragma_update(None, "cache_size", CACHE_SIZE_KIB)
}

/// Makes a private copy complete: rolls its journal back or merges its log.
pub fn recover(copy: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(uri(copy, "mode=rw"), flags)?;
    harden(&connection)?;
    // No other process reads the copy, and after a crash a new one is made.
    connection
        .execute_batch("PRAGMA locking_mode = exclusive; PRAGMA synchronous = off; PRAGMA schema_version; PRAGMA journal_mode = delete")
}

/// The path of a file that SQLite keeps next to a database.
pub fn sidecar_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Tests SQLite's lock bytes for a writer's locks without locking them. This also detects writers
/// that keep no journal file.
fn writer_lock(file: &File) -> WriterLock {
    const PENDING: libc::off_t = 0x4000_0000;
    const RESERVED: libc::off_t = PENDING + 1;
    const SHARED: libc::off_t = PENDING + 2;
    if forbids_reading(file, PENDING, 1) || forbids_reading(file, SHARED, 510) {
        WriterLock::Exclusive
    } else if forbids_reading(file, RESERVED, 1) {
        WriterLock::Reserved
    } else {
        WriterLock::None
    }
}

/// Whether another process holds a lock that conflicts with one for reading.
fn forbids_reading(file: &File, start: libc::off_t, length: libc::off_t) -> bool {
    let mut probe = libc::flock {
        l_type: lock_constant(libc::F_RDLCK),
        l_whence: lock_constant(libc::SEEK_SET),
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_GETLK(&mut probe)).is_ok()
        && probe.l_type != lock_constant(libc::F_UNLCK)
}

/// A lock's constant as `flock` has it. The constants are `int` on Linux and `short` on macOS.
fn lock_constant(constant: impl TryInto<libc::c_short>) -> libc::c_short {
    constant.try_into().unwrap_or_default()
}

fn read_prefix(mut file: &File, max_bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(max_bytes);
    file.by_ref().take(max_bytes as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The `file:` URI of a path (<https://www.sqlite.org/uri.html>), percent-encoded.
fn uri(path: &Path, parameters: &str) -> String {
    const PLAIN: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    format!("file:{}?{parameters}", percent_encode(bytes, PLAIN))
}
