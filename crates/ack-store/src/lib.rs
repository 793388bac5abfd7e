//! Reading memory stores: SQLite databases of several programs, opened so that nothing of theirs changes.
//!
//! A [`Store`] hands out [`Snapshot`]s. Everything read from one snapshot belongs to one state of the database. The
//! modules below each know one thing: [`open`] how to open, [`copies`] what is read elsewhere, `image` how a whole store is read
//! without holding back its writer, `idle` what stays open between two reads, `halves` how two threads
//! go through a large table, [`layout`] what is there, [`record`] what a row means, [`read`] the questions that are asked,
//! `links` the one about provenance, [`sessions`] what may be told of sessions, [`outline`] the one that is asked of a whole store
//! before anything of it is indexed, [`projects`] whose memories they are.

pub mod ack;
pub mod claude_mem;
pub mod copies;
mod error;
pub mod glance;
mod halves;
mod idle;
mod image;
pub mod layout;
pub mod links;
pub mod open;
pub mod outline;
pub mod projects;
pub mod read;
pub mod record;
pub mod remedy;
pub mod sessions;
pub mod table_stamp;
pub mod values;
pub mod vfs;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};

use self::copies::{Copy, Files};
pub use self::error::StoreError;
use self::glance::Glance;
use self::layout::Layout;
use self::open::{Beside, Opening, Stamp};
use ack_api::memory::{Overviews, Unreviewed};
use ack_sys::heap;

/// How long a read tries to get at a store that changes under it.
pub const PATIENCE: Duration = Duration::from_secs(4);
/// How long a lock is waited for under which nothing happens, and how long where there is no way around it: a slow disk may
/// need that for an ordinary commit. Whoever asks next waits no longer.
const LOCKED: Duration = Duration::from_millis(250);
const HOPELESS: Duration = Duration::from_secs(1);
/// After so long without being asked for, a lock may be another one.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// How many readings without locks may be disturbed before a copy is made.
const DISTURBANCES: u32 = 3;
/// A reading that takes longer than this and is disturbed would be disturbed again, by the same writer: a copy is made next.
const SLOW: Duration = Duration::from_millis(250);
/// So often an image is tried that a writer spoils.
const IMAGES: u32 = 3;
/// A database of so many bytes is read in less time than it takes to open it once more.
const SMALL: u64 = 1 << 20;
/// The largest database, in bytes, of which a copy is made so soon, or because of a lock.
const COPIED_AT_ONCE: u64 = 256 << 20;
/// The largest value, in bytes, that is read of a row as it is, and what SQLite itself allows.
const VALUE: i32 = 8 << 20;
const ANY_VALUE: i32 = 1_000_000_000;

/// One memory store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    unreviewed: Unreviewed,
    overviews: Option<Overviews>,
    /// Held while files are looked at and while a connection holds locks, see [`open`]. Shared by every store of this
    /// process that names the same file.
    gate: Arc<Mutex<()>>,
    /// The copy that was read last, and of which state it is.
    copy: Mutex<Option<(Stamp, Arc<Copy>)>>,
    layout: Mutex<Option<(LayoutKey, Arc<Layout>)>>,
    lock: Mutex<LockState>,
    /// A value was too large to be read as it is: from now on rows are read with their values cut.
    cut: AtomicBool,
    /// The last inspection whose result the files' metadata vouch for.
    settled: Mutex<Option<Settled>>,
}

/// The state of a store at rest, and how to see that it is still the same.
#[derive(Debug)]
struct Settled {
    stamp: Stamp,
    glance: Glance,
    log: PathBuf,
}

/// What is known of a writer that holds its lock.
#[derive(Debug, Default)]
struct LockState {
    /// The files under the lock, since when they have been seen like this, and when last.
    seen: Option<(Stamp, Instant, Instant)>,
    /// The state that was read last while nobody held a lock.
    free: Option<Stamp>,
    /// When the store was last read beside a lock, unless it has been read without one since.
    beside: Option<Timestamp>,
}

/// A schema is known by the file's identity in the stamp and SQLite's schema cookie; its layout also depends on whether values
/// are cut.
type LayoutKey = (u64, i64, bool);

/// One state of a store, open for reading.
pub struct Snapshot<'a> {
    connection: &'a Connection,
    /// What the database holds.
    pub layout: Arc<Layout>,
    /// The state of the files before the snapshot began.
    pub stamp: Stamp,
    /// How it was opened.
    pub opening: Opening,
    unreviewed: Unreviewed,
    overviews: Option<Overviews>,
    /// Whether [`Self::overviews`], or the store in its place, lets overviews be told; unknown until it is asked.
    vouched: Cell<Option<bool>>,
    path: &'a Path,
    /// Whether the whole store was gone through: what that took of memory is given back with the connection.
    scanned: Cell<bool>,
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
            overviews: None,
            gate,
            copy: Mutex::default(),
            layout: Mutex::default(),
            lock: Mutex::default(),
            cut: AtomicBool::new(false),
            settled: Mutex::default(),
        }
    }

    /// Says whether the overviews of its sessions are told.
    #[must_use]
    pub const fn with_overviews(mut self, overviews: Option<Overviews>) -> Self {
        self.overviews = overviews;
        self
    }

    /// Closes what is open between two reads, and removes the private copy, if there is one and nobody is reading it.
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
        let mut settled = lock(&self.settled);
        if let Some(known) = settled.as_ref()
            && Glance::take(&self.path, Some(&known.log)).as_ref() == Some(&known.glance)
        {
            return Ok(known.stamp.clone());
        }
        *settled = None;
        let real = self.real_path();
        let log = open::beside(&real, "-wal");
        let now = SystemTime::now();
        let before = Glance::take(&self.path, Some(&log)).filter(|glance| glance.is_settled(now));
        let gate = lock(&self.gate);
        let (stamp, _) = open::inspect(&real)?;
        drop(gate);
        if before.is_some() && glance::is_local(&real) && Glance::take(&self.path, Some(&log)) == before {
            *settled = before.map(|glance| Settled {
                stamp: stamp.clone(),
                glance,
                log,
            });
        }
        Ok(stamp)
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

    /// When this store was last read while a writer kept its lock, unless it has been read without one since: what the writer
    /// has not committed is not among the answers.
    pub fn read_beside_lock(&self) -> Option<Timestamp> {
        lock(&self.lock).beside
    }

    fn attempt<T>(
        &self,
        patience: Duration,
        reach: Reach,
        mut read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.try_for(patience, reach, &mut read) {
            Err(error) if is_too_large(&error) && !self.cut.swap(true, Ordering::Relaxed) => self.try_for(patience, reach, &mut read),
            result => result,
        }
    }

    fn try_for<T>(
        &self,
        patience: Duration,
        reach: Reach,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
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
                    if let Some(result) = self.in_place(&path, opening, &stamp, read) {
                        self.was_read(Some(&stamp));
                        *lock(&self.copy) = None;
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
                    if let Some(copy) = self.private_copy(&path, &stamp, Beside::Nothing)? {
                        drop(gate);
                        self.was_read(None);
                        return self.read_copy(&copy, &stamp, read);
                    }
                }
                Opening::Locked | Opening::Kept => {
                    drop(gate);
                    last = Some(StoreError::Locked { path: self.path.clone() });
                    if let Some(result) = self.beside_lock(&path, opening, &stamp, read)? {
                        return result;
                    }
                }
                Opening::Live => match self.live(&path, reach, &stamp, gate, read) {
                    Err(error) if passing(&error) => last = Some(error),
                    result => {
                        self.was_read(None);
                        *lock(&self.copy) = None;
                        return result;
                    }
                },
                // A log without its shared memory is seen for a moment while a writer opens or closes.
                Opening::Copied if attempts < 4 => {}
                Opening::Copied => {
                    if let Some(copy) = self.private_copy(&path, &stamp, Beside::LogOrJournal)? {
                        drop(gate);
                        self.was_read(None);
                        return self.read_copy(&copy, &stamp, read);
                    }
                }
            }
        }
    }

    /// Notes a reading without a lock in the way; of a state that is whole in itself, which one.
    fn was_read(&self, free: Option<&Stamp>) {
        *lock(&self.lock) = LockState {
            free: free.cloned(),
            ..LockState::default()
        };
    }

    /// Reads a database that a writer keeps locked, where that shows what was committed last; `None` as long as it is worth
    /// waiting.
    ///
    /// # Errors
    /// [`StoreError::Locked`] where nothing happens under the lock and nobody can tell what was committed.
    fn beside_lock<T>(
        &self,
        path: &Path,
        opening: Opening,
        stamp: &Stamp,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<Result<T, StoreError>>, StoreError> {
        let mut state = lock(&self.lock);
        let now = Instant::now();
        let known = state.seen.take().filter(|(seen, ..)| seen == stamp);
        let since = known
            .filter(|(_, _, last)| last.elapsed() < FORGOTTEN)
            .map_or(now, |(_, since, _)| since);
        state.seen = Some((stamp.clone(), since, now));
        if since.elapsed() < LOCKED {
            return Ok(None);
        }
        // As long as the database itself is as it was when nobody held a lock, nothing of the change is in it.
        let whole = opening == Opening::Kept || state.free.as_ref().is_some_and(|free| free.same_database(stamp));
        drop(state);
        let result = if whole {
            self.in_place(path, opening, stamp, read)
        } else if stamp.has_journal() && stamp.bytes() <= COPIED_AT_ONCE {
            let gate = lock(&self.gate);
            let copy = self.private_copy(path, stamp, Beside::LogOrJournal)?;
            drop(gate);
            copy.map(|copy| self.read_copy(&copy, stamp, read))
        } else if since.elapsed() < HOPELESS {
            None
        } else {
            return Err(StoreError::Locked { path: self.path.clone() });
        };
        if result.is_some() {
            lock(&self.lock).beside = Some(Timestamp::now());
        }
        Ok(result)
    }

    /// Reads without locks; `None` where the files changed meanwhile.
    fn in_place<T>(
        &self,
        path: &Path,
        opening: Opening,
        stamp: &Stamp,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let open = || open::connect(path, Opening::AtRest).map_err(|error| StoreError::sqlite(&self.path, error));
        let (result, connection) = match idle::take(path, stamp).map_or_else(open, Ok) {
            Ok(connection) => match self.read_from(&connection, None, Opening::AtRest, stamp, read) {
                Ok((value, false)) => (Ok(value), Some(connection)),
                Ok((value, true)) => (Ok(value), None),
                Err(error) => (Err(error), None),
            },
            Err(error) => (Err(error), None),
        };
        let gate = lock(&self.gate);
        let after = open::inspect(path);
        drop(gate);
        // Of a lock that is taken while the database is read nobody can say what happens under it.
        let same = after.is_ok_and(|(after, now)| after == *stamp && (now == Opening::AtRest || opening != Opening::AtRest));
        if !same {
            return None;
        }
        let ended = connection.filter(|connection| connection.execute_batch("COMMIT").is_ok());
        if let Some(connection) = ended {
            idle::put(path, stamp.clone(), connection);
        }
        Some(result)
    }

    /// Reads beside a writer with a log.
    fn live<T>(
        &self,
        path: &Path,
        reach: Reach,
        stamp: &Stamp,
        gate: MutexGuard<'_, ()>,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        if reach == Reach::All
            && stamp.bytes() <= image::LARGEST
            && let Some(image) = (0..IMAGES).find_map(|_| image::read(path))
        {
            drop(gate);
            open::harden(&image).map_err(sqlite)?;
            let result = self.read_from(&image, None, Opening::Live, stamp, read);
            drop(image);
            if stamp.bytes() >= heap::WORTH as u64 {
                heap::give_back();
            }
            return Ok(result?.0);
        }
        let connection = open::connect(path, Opening::Live).map_err(sqlite)?;
        let second = if reach == Reach::All && stamp.bytes() > SMALL {
            open::connect(path, Opening::Live).ok()
        } else {
            None
        };
        let result = self.read_from(&connection, second, Opening::Live, stamp, read);
        drop(connection);
        drop(gate);
        Ok(result?.0)
    }

    fn read_copy<T>(
        &self,
        copy: &Copy,
        stamp: &Stamp,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let read = copy.read(|connection| self.read_from(connection, None, Opening::Copied, stamp, read));
        let (value, _) = read.map_err(|error| StoreError::sqlite(&self.path, error))??;
        Ok(value)
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
        let most = if self.cut.load(Ordering::Relaxed) { ANY_VALUE } else { VALUE };
        for connection in second.iter().chain([connection]) {
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).map_err(sqlite)?;
        }
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
            overviews: self.overviews,
            vouched: Cell::new(None),
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
        let cut = self.cut.load(Ordering::Relaxed);
        let key = (stamp.identity(), cookie, cut);
        let mut cached = lock(&self.layout);
        if let Some((_, layout)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(layout));
        }
        let tables = layout::tables(connection).map_err(sqlite)?;
        let layout = layout::recognise(&tables).ok_or_else(|| StoreError::Foreign {
            path: self.path.clone(),
            tables: tables.into_iter().map(|table| table.name).collect(),
        })?;
        let layout = Arc::new(if cut { layout.with_values_cut() } else { layout });
        *cached = Some((key, Arc::clone(&layout)));
        Ok(layout)
    }

    /// A private copy of the state `stamp`, or `None` when the files changed while they were copied. The caller holds the
    /// gate.
    fn private_copy(&self, path: &Path, stamp: &Stamp, beside: Beside) -> Result<Option<Arc<Copy>>, StoreError> {
        let mut cached = lock(&self.copy);
        if let Some((_, copy)) = cached.as_ref().filter(|(state, _)| state == stamp) {
            return Ok(Some(Arc::clone(copy)));
        }
        let files = Files::copy(path, beside)?;
        let (after, opening) = open::inspect(path)?;
        let steady = match beside {
            Beside::Nothing => after == *stamp && opening != Opening::Locked,
            Beside::LogOrJournal => stamp.spans(&after),
        };
        if !steady {
            return Ok(None);
        }
        let copy = files.open().map_err(|error| StoreError::sqlite(&self.path, error))?;
        let copy = Arc::new(copy);
        *cached = Some((stamp.clone(), Arc::clone(&copy)));
        Ok(Some(copy))
    }
}

/// Whether a value is larger than what is read as it is.
fn is_too_large(error: &StoreError) -> bool {
    matches!(error, StoreError::Sqlite { source, .. } if source.sqlite_error_code() == Some(ErrorCode::TooBig))
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
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
