//! How a store is opened so that nothing beside it, and no byte of it, changes.
//!
//! SQLite's read-only mode is not free of side effects: on a WAL database at rest it leaves `-wal` and `-shm` files
//! behind, it rewrites an existing `-shm`, and its shared lock makes the commit of a rollback-journal writer fail. So a
//! store is opened by what lies beside it at that moment ([`Opening`]), through a file layer that cannot write
//! ([`super::vfs`]), and what was read without locks is used only if the files' [`Stamp`] is the same afterwards.
//!
//! Looking at the files opens and closes them, and closing any descriptor of a file drops every POSIX lock this process
//! holds on it. So nothing here may run while a connection of this process holds locks on the same database;
//! [`super::Store`] sees to that.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::vfs;
use crate::error::StoreError;

/// How often the files are looked at again while the database changes.
const LOOKS: u32 = 16;
/// Pages that a connection keeps, in KiB (a negative `cache_size`): a read goes through a store once, or to a few of its rows.
const CACHE: i32 = -256;
/// How long a read may wait for a lock, where locks are used at all.
const BUSY: Duration = Duration::from_millis(1_500);

/// How a database is opened for one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Nobody writes: `immutable=1`, no lock and no file, verified unchanged afterwards.
    AtRest,
    /// A write-ahead log with its shared-memory file is there: `mode=ro` with a read-only shared-memory file, which
    /// sees every committed row and writes nothing.
    Live,
    /// A log or a rollback journal that only a writable folder could process, or a database that changes under every
    /// read: the files are copied to a private temporary folder and read there.
    Copied,
    /// A writer holds the lock under which it changes the database. It cannot be read now; a shared lock of ours would
    /// make the writer's commit fail, so none is taken.
    Locked,
}

impl Opening {
    /// What `doctor` and `list_scopes` say.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::AtRest => "at rest, without locks (immutable=1, verified unchanged)",
            Self::Live => "live write-ahead log (mode=ro, shared memory read-only)",
            Self::Copied => "a private copy (it could not be read in place)",
            Self::Locked => "not, because a writer holds its lock",
        }
    }
}

/// What tells one state of a database's files from the next. Equal stamps mean that no commit lies between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    main: FileStamp,
    /// Change counter and schema cookie of the database header (bytes 24-27 and 40-43).
    counters: [u8; 8],
    log: Option<FileStamp>,
    /// The log's header, with its salts (bytes 0-31).
    log_header: Vec<u8>,
    /// The wal-index header (bytes 0-95 of `-shm`): it changes with every commit, also where a log is overwritten in
    /// place within one tick of the file system's clock.
    shared_memory: Vec<u8>,
}

impl Stamp {
    /// The identity of the database file: another file under the same name has another one.
    pub const fn identity(&self) -> u64 {
        self.main.identity
    }

    /// The length of the database file, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.main.length
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    modified: Option<std::time::SystemTime>,
    identity: u64,
}

impl FileStamp {
    fn of(metadata: &fs::Metadata) -> Self {
        #[cfg(unix)]
        let identity = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let identity = 0;
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            identity,
        }
    }
}

/// What is copied beside a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: it is complete in itself.
    Nothing,
    /// The log, or the journal that has to be rolled back.
    LogOrJournal,
}

/// What another process does to a database, by the locks it holds (<https://www.sqlite.org/lockingv3.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterLock {
    /// Nothing, or it reads.
    None,
    /// RESERVED: it collects changes and has written none of them to the database.
    Announced,
    /// PENDING or EXCLUSIVE: it changes the database, or is about to.
    Changing,
}

/// The stamp of a database now, and how to open it in that state.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::Empty`], [`StoreError::NotADatabase`] or [`StoreError::Io`].
pub fn inspect(path: &Path) -> Result<(Stamp, Opening), StoreError> {
    // A log is written into the database and then removed: who saw the database before and the log's place afterwards would
    // take this state for the one that was there before the log. So the database is looked at again.
    let mut main = Main::look(path)?;
    for _ in 0..LOOKS {
        let found = beside_it(path, &main)?;
        let again = Main::look(path)?;
        if again.stamp == main.stamp && again.header == main.header {
            return Ok(found);
        }
        main = again;
    }
    beside_it(path, &main)
}

/// The database itself.
struct Main {
    file: File,
    stamp: FileStamp,
    /// Its first 100 bytes, or as many as there are.
    header: Vec<u8>,
}

impl Main {
    fn look(path: &Path) -> Result<Self, StoreError> {
        let io = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
            _ => StoreError::Io {
                path: path.to_owned(),
                source,
            },
        };
        // What is no file is not opened: a pipe would wait for its other end.
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(StoreError::NotADatabase { path: path.to_owned() });
        }
        let file = File::open(path).map_err(io)?;
        let stamp = FileStamp::of(&file.metadata().map_err(io)?);
        let header = beginning(&file, 100).map_err(io)?;
        Ok(Self { file, stamp, header })
    }
}

/// What lies beside a database, and what it makes of it.
fn beside_it(path: &Path, main: &Main) -> Result<(Stamp, Opening), StoreError> {
    let header = &main.header;
    let log_path = beside(path, "-wal");
    let log_file = fs::metadata(&log_path).ok();
    let log_length = log_file.as_ref().map_or(0, fs::Metadata::len);
    if header.is_empty() && log_length == 0 {
        return Err(StoreError::Empty { path: path.to_owned() });
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(StoreError::NotADatabase { path: path.to_owned() });
    }
    let journal = head(&beside(path, "-journal"), 1).is_ok_and(|first| first.first().is_some_and(|byte| *byte != 0));
    let shared_path = beside(path, "-shm");
    let shared_memory = if log_length > 0 {
        head(&shared_path, 96).unwrap_or_default()
    } else {
        Vec::new()
    };
    let uses_log = header.get(18) == Some(&2) || header.get(19) == Some(&2);
    let lock = if uses_log { WriterLock::None } else { writer_lock(&main.file) };
    let opening = match (uses_log && log_length > 0, lock) {
        (true, _) if shared_path.exists() => Opening::Live,
        (true, _) => Opening::Copied,
        (false, WriterLock::Changing) => Opening::Locked,
        // A journal without its writer's lock was left behind by a crash; only a rollback makes sense of the database.
        (false, WriterLock::None) if journal => Opening::Copied,
        // A writer that has only announced itself has not touched the database yet.
        (false, WriterLock::None | WriterLock::Announced) => Opening::AtRest,
    };
    let mut counters = [0; 8];
    for (slot, byte) in counters
        .iter_mut()
        .zip(header.get(24..28).into_iter().chain(header.get(40..44)).flatten())
    {
        *slot = *byte;
    }
    let stamp = Stamp {
        main: main.stamp,
        counters,
        log: log_file.filter(|file| file.len() > 0).as_ref().map(FileStamp::of),
        log_header: if log_length > 0 {
            head(&log_path, 32).unwrap_or_default()
        } else {
            Vec::new()
        },
        shared_memory,
    };
    Ok((stamp, opening))
}

/// Opens a connection in the given way. It cannot write: not to the database, not through a schema's own functions.
///
/// # Errors
/// What SQLite said.
pub fn connect(path: &Path, opening: Opening) -> rusqlite::Result<Connection> {
    let parameters = match opening {
        Opening::AtRest => "mode=ro&immutable=1",
        Opening::Live => "mode=ro&readonly_shm=1",
        // The copy is ours: a journal may have to be rolled back in it.
        Opening::Copied => "mode=rw",
        Opening::Locked => return Err(failure(rusqlite::ffi::SQLITE_BUSY, "a writer holds the lock")),
    };
    let access = if opening == Opening::Copied {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let uri = uri(path, parameters);
    let connection = if opening == Opening::Copied {
        Connection::open_with_flags(uri, flags)?
    } else if vfs::register() {
        Connection::open_with_flags_and_vfs(uri, flags, vfs::NAME)?
    } else {
        return Err(failure(
            rusqlite::ffi::SQLITE_CANTOPEN,
            "the read-only file layer could not be registered",
        ));
    };
    connection.busy_timeout(BUSY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cache_size", CACHE)?;
    if opening != Opening::Copied {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(connection)
}

fn failure(code: i32, message: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some(message.to_owned()))
}

/// Copies a database into a private temporary folder, with what lies beside it and is needed to make sense of it.
///
/// # Errors
/// [`StoreError::Io`]. The caller checks by the stamp that nothing changed meanwhile.
pub fn copy(path: &Path, beside_it: Beside) -> Result<(TempDir, PathBuf), StoreError> {
    let io = |source| StoreError::Io {
        path: path.to_owned(),
        source,
    };
    let folder = tempfile::Builder::new().prefix("ack-memory-").tempdir().map_err(io)?;
    let target = folder.path().join("store.db");
    // The log first: a checkpoint in between then changes the main file, and the stamp shows it.
    let suffixes: &[&str] = if beside_it == Beside::LogOrJournal {
        &["-wal", "-journal"]
    } else {
        &[]
    };
    for suffix in suffixes {
        let source = beside(path, suffix);
        if source.exists() {
            fs::copy(&source, beside(&target, suffix)).map_err(io)?;
        }
    }
    fs::copy(path, &target).map_err(io)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for suffix in ["", "-wal", "-journal"] {
            let file = beside(&target, suffix);
            if file.exists() {
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).map_err(io)?;
            }
        }
    }
    Ok((folder, target))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Looks for a writer's locks on SQLite's lock bytes, without locking. This also sees writers that keep no journal file.
#[cfg(unix)]
fn writer_lock(file: &File) -> WriterLock {
    use nix::libc;
    const PENDING: libc::off_t = 0x4000_0000;
    const RESERVED: libc::off_t = PENDING + 1;
    const SHARED: libc::off_t = PENDING + 2;
    let held = |start: libc::off_t, length: libc::off_t| {
        let mut probe = libc::flock {
            l_type: libc::F_RDLCK.try_into().unwrap_or_default(),
            l_whence: libc::SEEK_SET.try_into().unwrap_or_default(),
            l_start: start,
            l_len: length,
            l_pid: 0,
        };
        nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_GETLK(&mut probe)).is_ok() && i32::from(probe.l_type) != libc::F_UNLCK
    };
    if held(PENDING, 1) || held(SHARED, 510) {
        WriterLock::Changing
    } else if held(RESERVED, 1) {
        WriterLock::Announced
    } else {
        WriterLock::None
    }
}

#[cfg(not(unix))]
fn writer_lock(_file: &File) -> WriterLock {
    WriterLock::None
}

fn head(path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
    beginning(&File::open(path)?, most)
}

fn beginning(mut file: &File, most: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    file.by_ref().take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `file:` URI of a path (<https://www.sqlite.org/uri.html>): every byte that is not plain is percent-encoded.
fn uri(path: &Path, parameters: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_').remove(b'~');
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    #[cfg(not(unix))]
    let text = format!("/{}", path.to_string_lossy().replace('\\', "/"));
    #[cfg(not(unix))]
    let bytes = text.as_bytes();
    format!("file:{}?{parameters}", percent_encode(bytes, PLAIN))
}
