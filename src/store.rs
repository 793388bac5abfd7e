//! Reading memory stores: SQLite databases of several programs, opened so that nothing of theirs changes.
//!
//! A [`Store`] hands out [`Snapshot`]s. Everything read from one snapshot belongs to one state of the database. The
//! modules below each know one thing: [`open`] how to open, `idle` what stays open between two reads, `halves` how two threads
//! go through a large table, [`layout`] what is there, [`record`] what a row means, [`read`] the questions that are asked,
//! [`outline`] the one that is asked of a whole store before anything of it is indexed.

pub mod ack;
pub mod claude_mem;
mod halves;
mod idle;
pub mod layout;
pub mod open;
pub mod outline;
pub mod read;
pub mod record;
pub mod values;
pub mod vfs;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use self::layout::Layout;
use self::open::{Beside, Opening, Stamp};
use crate::error::StoreError;
use crate::memory::Unreviewed;

/// How long a read tries to get at a store that changes under it.
pub const PATIENCE: Duration = Duration::from_secs(4);
/// How many readings without locks may be disturbed before a copy is made.
const DISTURBANCES: u32 = 3;
/// A reading that takes longer than this and is disturbed would be disturbed again, by the same writer: a copy is made next.
const SLOW: Duration = Duration::from_millis(250);
/// A database of so many bytes is read in less time than it takes to open it once more.
const SMALL: u64 = 1 << 20;
/// The largest database, in bytes, of which a copy is made so soon.
const COPIED_AT_ONCE: u64 = 256 << 20;

/// One memory store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    unreviewed: Unreviewed,
    /// Held while files are looked at and while a connection holds locks, see [`open`]. Shared by every store of this
    /// process that names the same file.
    gate: Arc<Mutex<()>>,
    copy: Mutex<Option<PrivateCopy>>,
    layout: Mutex<Option<(LayoutKey, Arc<Layout>)>>,
}

/// A schema is known by the file's identity in the stamp and SQLite's schema cookie.
type LayoutKey = (u64, i64);

#[derive(Debug)]
struct PrivateCopy {
    stamp: Stamp,
    path: PathBuf,
    /// Removed when the copy is.
    _folder: TempDir,
}

/// One state of a store, open for reading.
pub struct Snapshot<'a> {
    pub(crate) connection: &'a Connection,
    /// What the database holds.
    pub layout: Arc<Layout>,
    /// The state of the files before the snapshot began.
    pub stamp: Stamp,
    /// How it was opened.
    pub opening: Opening,
    pub(crate) unreviewed: Unreviewed,
    pub(crate) path: &'a Path,
    /// Whether the whole store was gone through: what that took of memory is given back with the connection.
    pub(crate) scanned: Cell<bool>,
    /// Beside a writer with a log: another connection that sees the same state, see [`halves`].
    second: RefCell<Option<Connection>>,
}

/// How much of a store a snapshot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Single rows.
    Some,
    /// Every row.
    All,
}

impl Store {
    /// A store at `path`. Nothing is opened yet.
    pub fn new(path: PathBuf, unreviewed: Unreviewed) -> Self {
        let gate = gate(&path);
        Self {
            path,
            unreviewed,
            gate,
            copy: Mutex::new(None),
            layout: Mutex::new(None),
        }
    }

    /// Closes what is open between two reads, and removes the private copy, if there is one and no read is making it at this
    /// moment.
    pub fn close(&self) {
        idle::forget(&self.real_path());
        if let Ok(mut copy) = self.copy.try_lock() {
            *copy = None;
        }
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What rows without a status count as.
    pub const fn unreviewed(&self) -> Unreviewed {
        self.unreviewed
    }

    /// The state of the files now.
    ///
    /// # Errors
    /// When there is no database.
    pub fn stamp(&self) -> Result<Stamp, StoreError> {
        let _gate = lock(&self.gate);
        open::inspect(&self.real_path()).map(|(stamp, _)| stamp)
    }

    /// Where the database lies when every symbolic link is followed: SQLite keeps its log and its journal there.
    fn real_path(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }

    /// Reads one consistent state. `read` may run several times, when the database changes while it is read without
    /// locks; only the result of an undisturbed run is returned.
    ///
    /// # Errors
    /// Why the store cannot be read, or what `read` returned.
    pub fn snapshot<T>(&self, read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.attempt(PATIENCE, Reach::Some, read)
    }

    /// As [`Store::snapshot`], giving up after `patience`.
    ///
    /// # Errors
    /// Why the store cannot be read, or what `read` returned.
    pub fn snapshot_within<T>(
        &self,
        patience: Duration,
        read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.attempt(patience, Reach::Some, read)
    }

    /// As [`Store::snapshot_within`], for going through every row: two threads do, where that is worth it.
    ///
    /// # Errors
    /// Why the store cannot be read, or what `read` returned.
    pub fn whole<T>(&self, patience: Duration, read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.attempt(patience, Reach::All, read)
    }

    fn attempt<T>(
        &self,
        patience: Duration,
        reach: Reach,
        mut read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let path = self.real_path();
        let (mut attempts, mut disturbed) = (0, 0);
        // Why the last attempt failed, for when patience ends.
        let mut last: Option<StoreError> = None;
        loop {
            if attempts > 0 {
                // Reading a large store may itself take longer than anybody waits for a lock; copies are tried before giving up.
                let late = started.elapsed();
                let copies = disturbed > 0 && last.is_none() && late < patience * 2;
                if late > patience && copies {
                    disturbed = DISTURBANCES;
                } else if late > patience {
                    return Err(last.unwrap_or_else(|| StoreError::Unsteady {
                        path: self.path.clone(),
                        attempts,
                    }));
                }
                std::thread::sleep(Duration::from_millis(u64::from(attempts.min(16))));
            }
            attempts += 1;
            let gate = lock(&self.gate);
            let (stamp, opening) = open::inspect(&path)?;
            match opening {
                Opening::AtRest if disturbed < DISTURBANCES => {
                    drop(gate);
                    let began = Instant::now();
                    let (result, connection) = match idle::take(&path, &stamp).map_or_else(|| self.connect(&path, opening), Ok) {
                        Ok(connection) => match self.read_from(&connection, None, opening, &stamp, &mut read) {
                            Ok((value, false)) => (Ok(value), Some(connection)),
                            Ok((value, true)) => (Ok(value), None),
                            Err(error) => (Err(error), None),
                        },
                        Err(error) => (Err(error), None),
                    };
                    let gate = lock(&self.gate);
                    let after = open::inspect(&path);
                    drop(gate);
                    if after.is_ok_and(|(after, opening)| after == stamp && opening == Opening::AtRest) {
                        let ended = connection.filter(|connection| connection.execute_batch("COMMIT").is_ok());
                        if let Some(connection) = ended {
                            idle::put(&path, stamp, connection);
                        }
                        return result;
                    }
                    disturbed += 1;
                    if began.elapsed() > SLOW && stamp.bytes() <= COPIED_AT_ONCE {
                        disturbed = DISTURBANCES;
                    }
                    last = None;
                }
                // It changes faster than it can be read: a copy is made faster than a reading.
                Opening::AtRest => {
                    let Some(copy) = self.private_copy(&path, &stamp, Beside::Nothing)? else {
                        continue;
                    };
                    drop(gate);
                    return self.read_once(&copy, Opening::Copied, reach, &stamp, &mut read);
                }
                Opening::Locked => last = Some(StoreError::Locked { path: self.path.clone() }),
                Opening::Live => match self.read_once(&path, opening, reach, &stamp, &mut read) {
                    Err(error) if passing(&error) => last = Some(error),
                    result => return result,
                },
                // A log without its shared memory is seen for a moment while a writer opens or closes.
                Opening::Copied if attempts < 4 => {}
                Opening::Copied => {
                    let Some(copy) = self.private_copy(&path, &stamp, Beside::LogOrJournal)? else {
                        continue;
                    };
                    drop(gate);
                    return self.read_once(&copy, opening, reach, &stamp, &mut read);
                }
            }
        }
    }

    fn read_once<T>(
        &self,
        path: &Path,
        opening: Opening,
        reach: Reach,
        stamp: &Stamp,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let connection = self.connect(path, opening)?;
        let second = if opening == Opening::Live && reach == Reach::All && stamp.bytes() > SMALL {
            self.connect(path, opening).ok()
        } else {
            None
        };
        let (value, _) = self.read_from(&connection, second, opening, stamp, read)?;
        Ok(value)
    }

    fn connect(&self, path: &Path, opening: Opening) -> Result<Connection, StoreError> {
        open::connect(path, opening).map_err(|error| StoreError::sqlite(&self.path, error))
    }

    /// What `read` returned, and whether it went through the whole store.
    fn read_from<T>(
        &self,
        connection: &Connection,
        second: Option<Connection>,
        opening: Opening,
        stamp: &Stamp,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<(T, bool), StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        let second = second.and_then(halves::Watching::begin);
        connection.execute_batch("BEGIN").map_err(sqlite)?;
        // This reads from the database, and so settles which state is seen.
        let layout = self.layout(connection, stamp)?;
        let snapshot = Snapshot {
            connection,
            layout,
            stamp: stamp.clone(),
            opening,
            unreviewed: self.unreviewed,
            path: &self.path,
            scanned: Cell::new(false),
            second: RefCell::new(second.and_then(halves::Watching::same)),
        };
        Ok((read(&snapshot)?, snapshot.scanned.get()))
    }

    fn layout(&self, connection: &Connection, stamp: &Stamp) -> Result<Arc<Layout>, StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        let cookie: i64 = connection
            .prepare_cached("PRAGMA schema_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(sqlite)?;
        let key = (stamp.identity(), cookie);
        let mut cached = lock(&self.layout);
        if let Some((_, layout)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(layout));
        }
        let tables = layout::tables(connection).map_err(sqlite)?;
        let layout = layout::recognise(&tables).ok_or_else(|| StoreError::Foreign {
            path: self.path.clone(),
            tables: tables.into_iter().map(|table| table.name).collect(),
        })?;
        let layout = Arc::new(layout);
        *cached = Some((key, Arc::clone(&layout)));
        Ok(layout)
    }

    /// The path of a private copy of the state `stamp`, or `None` when the files changed while they were copied. The
    /// caller holds the gate.
    fn private_copy(&self, path: &Path, stamp: &Stamp, beside: Beside) -> Result<Option<PathBuf>, StoreError> {
        let mut cached = lock(&self.copy);
        if let Some(copy) = cached.as_ref().filter(|copy| copy.stamp == *stamp) {
            return Ok(Some(copy.path.clone()));
        }
        let (folder, copy) = open::copy(path, beside)?;
        let (after, opening) = open::inspect(path)?;
        if after != *stamp || opening == Opening::Locked {
            return Ok(None);
        }
        *cached = Some(PrivateCopy {
            stamp: stamp.clone(),
            path: copy.clone(),
            _folder: folder,
        });
        Ok(Some(copy))
    }
}

/// Whether an error comes from a writer that opens, closes or recovers the database at this moment.
fn passing(error: &StoreError) -> bool {
    use rusqlite::ffi;
    const PASSING: [i32; 6] = [
        ffi::SQLITE_BUSY_RECOVERY,
        ffi::SQLITE_READONLY_RECOVERY,
        ffi::SQLITE_READONLY_CANTINIT,
        ffi::SQLITE_READONLY_DIRECTORY,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_PROTOCOL,
    ];
    match error {
        StoreError::Locked { .. } => true,
        StoreError::Sqlite {
            source: rusqlite::Error::SqliteFailure(failure, _),
            ..
        } => PASSING.contains(&failure.extended_code) || failure.extended_code & 0xff == ffi::SQLITE_CANTOPEN,
        _ => false,
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        idle::forget(&self.real_path());
    }
}

fn gate(path: &Path) -> Arc<Mutex<()>> {
    static GATES: OnceLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = OnceLock::new();
    let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Arc::clone(lock(GATES.get_or_init(Mutex::default)).entry(key).or_default())
}

/// Locks a mutex. A panic in another thread leaves these values usable: each is replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
