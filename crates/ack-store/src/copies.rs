//! Private copies of databases that cannot be read in place.
//!
//! A copy is readable by its owner alone from its first byte on, whatever the umask: a new file of mode 0600 in a new folder of
//! mode 0700. What its log or journal says is put into it, a few connections are opened, and then its name is taken away: what
//! has no name goes with the process, however that ends. Beyond a number of copies their names stay, so that they take no
//! file descriptors.
//!
//! The folder is locked as long as something in it has a name (`flock`, which ends with the process), and one that nobody
//! holds is removed by whichever of our processes finds it. Folders of other users are left alone.

use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io::{Error, Result};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once, PoisonError, Weak};

use nix::libc;
use rusqlite::Connection;
use tempfile::TempDir;

use super::lock;
use super::open::{Beside, Opening, beside, connect, settle};
use crate::StoreError;
use ack_sys::files;

/// How the names of our folders begin.
const PREFIX: &str = "ack-memory-copies-";
/// So many reads of one copy run at the same time.
const CONNECTIONS: usize = 2;
/// So many copies have no name.
const NAMELESS: usize = 48;
/// Most entries of the temporary folder that are looked at for what dead processes left.
const ENTRIES: usize = 20_000;

/// The folder in use.
static PLACE: Mutex<Weak<Place>> = Mutex::new(Weak::new());
/// Set when the process ends: no more copies are made.
static ENDING: AtomicBool = AtomicBool::new(false);
/// How many copies without a name there are.
static HELD: AtomicUsize = AtomicUsize::new(0);
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Removes every copy that has a name, for good: the process ends.
pub fn end() {
    ENDING.store(true, Ordering::SeqCst);
    if let Some(place) = lock(&PLACE).upgrade() {
        // Somebody may be making a file in it at this moment.
        for _ in 0..50 {
            if fs::remove_dir_all(place.folder.path()).is_ok() || !place.folder.path().exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

/// Removes what processes left that were killed. Once a process is enough.
pub fn sweep() {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().take(ENTRIES).flatten();
        for entry in entries {
            let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            if ours && is_dead(&entry) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    });
}

/// Whether a folder is this user's and no process holds it.
fn is_dead(entry: &DirEntry) -> bool {
    let Ok(metadata) = entry.metadata() else { return false };
    if !metadata.is_dir() || metadata.uid() != nix::unistd::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return false;
    }
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(entry.path());
    folder.is_ok_and(|folder| folder.metadata().is_ok_and(|opened| opened.ino() == metadata.ino()) && folder.try_lock().is_ok())
}

/// A folder for copies.
#[derive(Debug)]
struct Place {
    folder: TempDir,
    /// Held as long as the folder is there.
    _held: File,
}

impl Place {
    fn get() -> Result<Arc<Self>> {
        sweep();
        let mut known = lock(&PLACE);
        if ENDING.load(Ordering::SeqCst) {
            return Err(Error::other("the process ends"));
        }
        if let Some(place) = known.upgrade() {
            return Ok(place);
        }
        let place = Arc::new(Self::make()?);
        *known = Arc::downgrade(&place);
        Ok(place)
    }

    fn make() -> Result<Self> {
        loop {
            let folder = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir()?;
            // Before it was locked, another process may have taken it for one that was left.
            let held = match File::open(folder.path()) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                held => held?,
            };
            if matches!(held.try_lock(), Err(TryLockError::WouldBlock)) {
                continue;
            }
            let opened = held.metadata()?.ino();
            if fs::metadata(folder.path()).is_ok_and(|there| there.ino() == opened) {
                return Ok(Self { folder, _held: held });
            }
        }
    }
}

/// The files of a copy. They go with this.
#[derive(Debug)]
pub struct Files {
    main: PathBuf,
    /// Whether a log or a journal has to be put into it.
    unsettled: bool,
    /// Behind the files, so that it goes after them.
    _place: Arc<Place>,
}

impl Files {
    /// Copies a database, with what lies beside it and is needed to make sense of it.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::NoCopy`]. The caller checks by the stamp that nothing changed meanwhile.
    pub fn copy(path: &Path, what: Beside) -> std::result::Result<Self, StoreError> {
        let no_copy = |source| StoreError::NoCopy {
            path: path.to_owned(),
            folder: std::env::temp_dir(),
            source,
        };
        let place = Place::get().map_err(no_copy)?;
        let name = format!("{}.db", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut copy = Self {
            main: place.folder.path().join(name),
            unsettled: false,
            _place: place,
        };
        // The log first: a checkpoint in between then changes the main file, and the stamp shows it.
        let suffixes: &[&str] = if what == Beside::LogOrJournal {
            &["-wal", "-journal", ""]
        } else {
            &[""]
        };
        for suffix in suffixes {
            let from = beside(path, suffix);
            let mut source = match files::open(&from) {
                Ok(source) => source,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !suffix.is_empty() => continue,
                Err(source) => return Err(StoreError::Io { path: from, source }),
            };
            copy.unsettled |= !suffix.is_empty();
            let target = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(beside(&copy.main, suffix));
            target
                .and_then(|mut target| std::io::copy(&mut source, &mut target))
                .map_err(no_copy)?;
        }
        Ok(copy)
    }

    /// Makes the copy complete in itself and opens it.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn open(self) -> rusqlite::Result<Copy> {
        if self.unsettled {
            settle(&self.main)?;
        }
        let nameless = HELD.fetch_add(1, Ordering::Relaxed) < NAMELESS;
        // This takes it off the count again.
        let mut copy = Copy {
            idle: Mutex::default(),
            returned: Condvar::new(),
            files: Some(self),
        };
        if nameless && let Some(files) = &copy.files {
            let connections: Vec<Connection> = (0..CONNECTIONS).map(|_| files.connect()).collect::<rusqlite::Result<_>>()?;
            copy.idle = Mutex::new(connections);
            copy.files = None;
        }
        Ok(copy)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        connect(&self.main, Opening::AtRest)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-journal", "-shm"] {
            let _ = fs::remove_file(beside(&self.main, suffix));
        }
    }
}

/// A copy that is read. It stays as long as somebody reads it.
#[derive(Debug)]
pub struct Copy {
    /// The connections that nobody reads from, where it has no name.
    idle: Mutex<Vec<Connection>>,
    returned: Condvar,
    /// Where it has a name.
    files: Option<Files>,
}

impl Copy {
    /// Reads from it, once a connection is free.
    ///
    /// # Errors
    /// What SQLite said when it was opened.
    pub fn read<T>(&self, read: impl FnOnce(&Connection) -> T) -> rusqlite::Result<T> {
        if let Some(files) = &self.files {
            return Ok(read(&files.connect()?));
        }
        let mut idle = lock(&self.idle);
        let connection = loop {
            if let Some(connection) = idle.pop() {
                break connection;
            }
            idle = self.returned.wait(idle).unwrap_or_else(PoisonError::into_inner);
        };
        drop(idle);
        let taken = Taken {
            copy: self,
            connection: Some(connection),
        };
        taken.connection.as_ref().map(read).ok_or(rusqlite::Error::InvalidQuery)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is read from; it goes back when this goes, also after a panic.
struct Taken<'a> {
    copy: &'a Copy,
    connection: Option<Connection>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
        lock(&self.copy.idle).push(connection);
        self.copy.returned.notify_one();
    }
}
