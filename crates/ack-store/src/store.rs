//! One memory store: how it is read, and how often that is tried.

mod locked;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};

use self::locked::LockState;
use crate::copies::{CopyFiles, PrivateCopy};
use crate::decisions::{DecisionLog, Decisions};
use crate::folder::{self, Notes};
use crate::layout::{self, Layout, Profile};
use crate::open::{self, FileState, Opening, Sidecars};
use crate::quick_state::{self, QuickState};
use crate::{Snapshot, StoreError, idle, image, lock, parallel_scan};
use ack_api::memory::{Overviews, Unreviewed};
use ack_sys::heap;

/// How long a read retries while the store changes under it.
pub const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// How many disturbed reads without locks are allowed before a copy is made.
const MAX_DISTURBED_READS: u32 = 3;
/// If a read takes longer than this and is disturbed, the next attempt makes a copy: the same
/// writer would disturb it again.
const SLOW_READ: Duration = Duration::from_millis(250);
/// How many times to read an image that a writer invalidates.
const MAX_IMAGE_ATTEMPTS: u32 = 3;
/// Scanning a smaller database takes less time than opening it a second time.
const MIN_PARALLEL_BYTES: u64 = 1 << 20;
/// The largest database that is copied after one slow read, or because of a lock.
const MAX_EAGER_COPY_BYTES: u64 = 256 << 20;
/// The largest value that is read whole.
const MAX_VALUE_BYTES: i32 = 8 << 20;
/// The largest value that SQLite itself allows.
const SQLITE_MAX_VALUE_BYTES: i32 = 1_000_000_000;

/// One memory store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    unreviewed: Unreviewed,
    overviews: Option<Overviews>,
    decisions: Option<DecisionLog>,
    notes: Notes,
    /// Held while files are inspected and while a connection holds locks, see [`open`]. All stores
    /// of this process that name the same file share it.
    gate: Arc<Mutex<()>>,
    /// The last private copy and the state it was made from.
    copy: Mutex<Option<(FileState, Arc<PrivateCopy>)>>,
    layout: Mutex<Option<(LayoutKey, Arc<Layout>)>>,
    lock: Mutex<LockState>,
    /// A value was too large to read whole: rows are now read with truncated values.
    truncate_values: AtomicBool,
    /// The last inspection that file metadata can confirm.
    settled: Mutex<Option<SettledState>>,
}

/// The state of a store at rest, and what shows that it has not changed.
#[derive(Debug)]
struct SettledState {
    state: FileState,
    quick: QuickState,
    log: PathBuf,
}

/// Identifies a schema: the database file, SQLite's schema cookie, and whether values are
/// truncated, which changes the layout too.
type LayoutKey = (u64, i64, bool);

/// How much of a store a snapshot reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Some rows.
    Rows,
    /// Every row.
    FullScan,
}

/// Where a snapshot reads from.
struct Origin<'a> {
    connection: &'a Connection,
    /// Another connection that may read half of a large table.
    second: Option<Connection>,
    opening: Opening,
    /// Whose store it is, if its tables do not tell.
    profile: Option<Profile>,
}

impl<'a> Origin<'a> {
    const fn of(connection: &'a Connection, opening: Opening) -> Self {
        Self {
            connection,
            second: None,
            opening,
            profile: None,
        }
    }
}

impl Store {
    /// A store at `path`. Nothing is opened yet.
    pub fn new(path: PathBuf, unreviewed: Unreviewed) -> Self {
        let gate = gate(&path);
        Self {
            path,
            unreviewed,
            overviews: None,
            decisions: None,
            notes: Notes::default(),
            gate,
            copy: Mutex::default(),
            layout: Mutex::default(),
            lock: Mutex::default(),
            truncate_values: AtomicBool::new(false),
            settled: Mutex::default(),
        }
    }

    /// Sets whether session overviews may be shown.
    #[must_use]
    pub const fn with_overviews(mut self, overviews: Option<Overviews>) -> Self {
        self.overviews = overviews;
        self
    }

    /// Joins the store with a decision log, which need not exist.
    #[must_use]
    pub fn with_decisions(mut self, log: PathBuf) -> Self {
        self.decisions = Some(DecisionLog::new(log));
        self
    }

    /// What people decided about its memories.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn decisions(&self) -> Result<Arc<Decisions>, StoreError> {
        self.decisions
            .as_ref()
            .map_or_else(|| Ok(Arc::default()), DecisionLog::read)
    }

    /// The decision log, whether it exists or not.
    pub fn decision_log(&self) -> Option<&Path> {
        self.decisions.as_ref().map(DecisionLog::path)
    }

    /// Closes idle connections and removes the private copy, unless it is being read.
    pub fn close(&self) {
        self.notes.forget();
        idle::forget(&self.real_path());
        if let Ok(mut copy) = self.copy.try_lock() {
            *copy = None;
        }
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The status of rows that have none.
    pub const fn unreviewed(&self) -> Unreviewed {
        self.unreviewed
    }

    /// The state of the files now.
    ///
    /// # Errors
    /// There is no database, or its decision log cannot be read.
    pub fn file_state(&self) -> Result<FileState, StoreError> {
        let version = self.decisions()?.version();
        Ok(self.database_state()?.with_decisions(version))
    }

    /// Files of notes that were left out or are damaged, as of the last read.
    pub fn problems(&self) -> Vec<String> {
        self.notes.problems()
    }

    fn database_state(&self) -> Result<FileState, StoreError> {
        if folder::is_notes(&self.path) {
            return self.notes.read(&self.real_path(), Duration::ZERO, |notes| {
                Ok(FileState::of_notes(notes.version, notes.bytes))
            });
        }
        let mut settled = lock(&self.settled);
        if let Some(known) = settled.as_ref()
            && QuickState::read(&self.path, Some(&known.log)).as_ref() == Some(&known.quick)
        {
            return Ok(known.state.clone());
        }
        *settled = None;
        let real = self.real_path();
        let log = open::sidecar_path(&real, "-wal");
        let now = SystemTime::now();
        let before = QuickState::read(&self.path, Some(&log)).filter(|quick| quick.is_settled(now));
        let gate = lock(&self.gate);
        let (state, _) = open::inspect(&real)?;
        drop(gate);
        if before.is_some()
            && quick_state::is_local(&real)
            && QuickState::read(&self.path, Some(&log)) == before
        {
            *settled = before.map(|quick| SettledState {
                state: state.clone(),
                quick,
                log,
            });
        }
        Ok(state)
    }

    /// The path with every symbolic link resolved: SQLite keeps its log and its journal there.
    fn real_path(&self) -> PathBuf {
        self.path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone())
    }

    /// Reads one consistent state. If the database changes during a read without locks, `read` runs
    /// again; only the result of an undisturbed run is returned.
    ///
    /// # Errors
    /// The store cannot be read, or `read` failed.
    pub fn snapshot<T>(
        &self,
        read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_snapshot(READ_TIMEOUT, Access::Rows, read)
    }

    /// Like [`Store::snapshot`], with a time limit for retries.
    ///
    /// # Errors
    /// The store cannot be read, or `read` failed.
    pub fn snapshot_with_timeout<T>(
        &self,
        timeout: Duration,
        read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_snapshot(timeout, Access::Rows, read)
    }

    /// Like [`Store::snapshot_with_timeout`], for reading every row. Large tables are read on two
    /// threads.
    ///
    /// # Errors
    /// The store cannot be read, or `read` failed.
    pub fn full_scan<T>(
        &self,
        timeout: Duration,
        read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.read_snapshot(timeout, Access::FullScan, read)
    }

    fn read_snapshot<T>(
        &self,
        timeout: Duration,
        access: Access,
        mut read: impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if folder::is_notes(&self.path) {
            return self.read_notes(&mut read);
        }
        match self.retry(timeout, access, &mut read) {
            Err(error)
                if is_too_large(&error) && !self.truncate_values.swap(true, Ordering::Relaxed) =>
            {
                self.retry(timeout, access, &mut read)
            }
            result => result,
        }
    }

    fn read_notes<T>(
        &self,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.notes
            .read(&self.real_path(), folder::SAME_REQUEST, |notes| {
                let state = FileState::of_notes(notes.version, notes.bytes);
                let source = Origin {
                    connection: notes.connection,
                    second: None,
                    opening: Opening::Parsed,
                    profile: Some(notes.profile),
                };
                let result = self.read_from(source, &state, read);
                let ended = notes.connection.execute_batch("COMMIT");
                let (value, _) = result?;
                ended.map_err(|error| StoreError::sqlite(&self.path, error))?;
                Ok(value)
            })
    }

    fn retry<T>(
        &self,
        timeout: Duration,
        access: Access,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let path = self.real_path();
        let (mut attempts, mut disturbances) = (0, 0);
        // Why the last attempt failed, to report on time-out.
        let mut last_error: Option<StoreError> = None;
        loop {
            if attempts > 0 {
                // Reading a large store may take longer than the timeout: try a copy before giving
                // up.
                let elapsed = started.elapsed();
                let may_copy = disturbances > 0 && last_error.is_none() && elapsed < timeout * 2;
                if elapsed > timeout && may_copy {
                    disturbances = MAX_DISTURBED_READS;
                } else if elapsed > timeout {
                    return Err(last_error.unwrap_or_else(|| StoreError::Unsteady {
                        path: self.path.clone(),
                        attempts,
                    }));
                }
                std::thread::sleep(Duration::from_millis(u64::from(attempts.min(16))));
            }
            attempts += 1;
            let gate = lock(&self.gate);
            let (state, opening) = open::inspect(&path)?;
            match opening {
                Opening::AtRest if disturbances < MAX_DISTURBED_READS => {
                    drop(gate);
                    let began = Instant::now();
                    if let Some(result) = self.in_place(&path, opening, &state, read) {
                        self.note_unlocked_read(Some(&state));
                        *lock(&self.copy) = None;
                        return result;
                    }
                    disturbances += 1;
                    if began.elapsed() > SLOW_READ && state.bytes() <= MAX_EAGER_COPY_BYTES {
                        disturbances = MAX_DISTURBED_READS;
                    }
                    last_error = None;
                }
                // It changes faster than it can be read, but copying is faster than reading.
                Opening::AtRest => {
                    if let Some(copy) = self.private_copy(&path, &state, Sidecars::None)? {
                        drop(gate);
                        self.note_unlocked_read(None);
                        return self.read_copy(&copy, &state, read);
                    }
                }
                Opening::Locked | Opening::Kept => {
                    drop(gate);
                    last_error = Some(StoreError::Locked {
                        path: self.path.clone(),
                    });
                    if let Some(result) = self.try_while_locked(&path, opening, &state, read)? {
                        return result;
                    }
                }
                Opening::Live => match self.live(&path, access, &state, gate, read) {
                    Err(error) if is_transient(&error) => last_error = Some(error),
                    result => {
                        self.note_unlocked_read(None);
                        *lock(&self.copy) = None;
                        return result;
                    }
                },
                // While a writer opens or closes, its log is without shared memory for a moment.
                Opening::Copied | Opening::Parsed if attempts < 4 => {}
                Opening::Copied | Opening::Parsed => {
                    if let Some(copy) = self.private_copy(&path, &state, Sidecars::LogOrJournal)? {
                        drop(gate);
                        self.note_unlocked_read(None);
                        return self.read_copy(&copy, &state, read);
                    }
                }
            }
        }
    }

    /// Reads without locks. `None` if the files changed during the read.
    fn in_place<T>(
        &self,
        path: &Path,
        opening: Opening,
        state: &FileState,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let open = || {
            open::connect(path, Opening::AtRest)
                .map_err(|error| StoreError::sqlite(&self.path, error))
        };
        let (result, connection) = match idle::take(path, state).map_or_else(open, Ok) {
            Ok(connection) => {
                match self.read_from(Origin::of(&connection, Opening::AtRest), state, read) {
                    Ok((value, false)) => (Ok(value), Some(connection)),
                    Ok((value, true)) => (Ok(value), None),
                    Err(error) => (Err(error), None),
                }
            }
            Err(error) => (Err(error), None),
        };
        let gate = lock(&self.gate);
        let after = open::inspect(path);
        drop(gate);
        // If a lock was taken during the read, what happened under it is unknown.
        let is_unchanged = after.is_ok_and(|(after, opening_after)| {
            after == *state && (opening_after == Opening::AtRest || opening != Opening::AtRest)
        });
        if !is_unchanged {
            return None;
        }
        let idle_connection =
            connection.filter(|connection| connection.execute_batch("COMMIT").is_ok());
        if let Some(connection) = idle_connection {
            idle::put(path, state.clone(), connection);
        }
        Some(result)
    }

    /// Reads a database whose writer uses a log.
    fn live<T>(
        &self,
        path: &Path,
        access: Access,
        state: &FileState,
        gate: MutexGuard<'_, ()>,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        if access == Access::FullScan
            && state.bytes() <= image::MAX_IMAGE_BYTES
            && let Some(image) = (0..MAX_IMAGE_ATTEMPTS).find_map(|_| image::read(path))
        {
            drop(gate);
            open::harden(&image).map_err(sqlite)?;
            let result = self.read_from(Origin::of(&image, Opening::Live), state, read);
            drop(image);
            if state.bytes() >= heap::MIN_RELEASE_BYTES as u64 {
                heap::release();
            }
            return Ok(result?.0);
        }
        let connection = open::connect(path, Opening::Live).map_err(sqlite)?;
        let second = if access == Access::FullScan && state.bytes() > MIN_PARALLEL_BYTES {
            open::connect(path, Opening::Live).ok()
        } else {
            None
        };
        let result = self.read_from(
            Origin {
                second,
                ..Origin::of(&connection, Opening::Live)
            },
            state,
            read,
        );
        drop(connection);
        drop(gate);
        Ok(result?.0)
    }

    fn read_copy<T>(
        &self,
        copy: &PrivateCopy,
        state: &FileState,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let read = copy.read(|connection| {
            self.read_from(Origin::of(connection, Opening::Copied), state, read)
        });
        let (value, _) = read.map_err(|error| StoreError::sqlite(&self.path, error))??;
        Ok(value)
    }

    /// Returns what `read` returned, and whether it scanned the whole store.
    fn read_from<T>(
        &self,
        origin: Origin<'_>,
        state: &FileState,
        read: &mut impl FnMut(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<(T, bool), StoreError> {
        let Origin {
            connection,
            second,
            opening,
            profile,
        } = origin;
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        let max_length = if self.truncate_values.load(Ordering::Relaxed) {
            SQLITE_MAX_VALUE_BYTES
        } else {
            MAX_VALUE_BYTES
        };
        for connection in second.iter().chain([connection]) {
            connection
                .set_limit(Limit::SQLITE_LIMIT_LENGTH, max_length)
                .map_err(sqlite)?;
        }
        let second = second.and_then(parallel_scan::DataVersionGuard::begin);
        connection.execute_batch("BEGIN").map_err(sqlite)?;
        // This first read fixes the state that the transaction sees.
        let layout = self.layout(connection, state, profile)?;
        let decisions = self.decisions()?;
        let snapshot = Snapshot {
            connection,
            layout,
            file_state: state.clone().with_decisions(decisions.version()),
            opening,
            unreviewed: self.unreviewed,
            decisions,
            overviews: self.overviews,
            overviews_shown: Cell::new(None),
            path: &self.path,
            scanned: Cell::new(false),
            second: RefCell::new(second.and_then(parallel_scan::DataVersionGuard::into_unchanged)),
        };
        Ok((read(&snapshot)?, snapshot.scanned.get()))
    }

    fn layout(
        &self,
        connection: &Connection,
        state: &FileState,
        profile: Option<Profile>,
    ) -> Result<Arc<Layout>, StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        let cookie: i64 = connection
            .prepare_cached("PRAGMA schema_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(sqlite)?;
        let truncate = self.truncate_values.load(Ordering::Relaxed);
        let key = (state.identity(), cookie, truncate);
        let mut cached = lock(&self.layout);
        if let Some((_, layout)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(Arc::clone(layout));
        }
        let tables = layout::tables(connection).map_err(sqlite)?;
        let mut layout = layout::recognise(&tables).ok_or_else(|| StoreError::Foreign {
            path: self.path.clone(),
            tables: tables.into_iter().map(|table| table.name).collect(),
        })?;
        layout.profile = profile.unwrap_or(layout.profile);
        let layout = Arc::new(if truncate {
            layout.with_truncated_values()
        } else {
            layout
        });
        *cached = Some((key, Arc::clone(&layout)));
        Ok(layout)
    }

    /// A private copy of `state`, or `None` if the files changed during the copy. The caller holds
    /// the gate.
    fn private_copy(
        &self,
        path: &Path,
        state: &FileState,
        sidecars: Sidecars,
    ) -> Result<Option<Arc<PrivateCopy>>, StoreError> {
        let mut cached = lock(&self.copy);
        if let Some((_, copy)) = cached.as_ref().filter(|(copied, _)| copied == state) {
            return Ok(Some(Arc::clone(copy)));
        }
        let files = CopyFiles::copy(path, sidecars)?;
        let (after, opening) = open::inspect(path)?;
        let is_unchanged = match sidecars {
            Sidecars::None => after == *state && opening != Opening::Locked,
            Sidecars::LogOrJournal => state.spans(&after),
        };
        if !is_unchanged {
            return Ok(None);
        }
        let copy = files
            .open()
            .map_err(|error| StoreError::sqlite(&self.path, error))?;
        let copy = Arc::new(copy);
        *cached = Some((state.clone(), Arc::clone(&copy)));
        Ok(Some(copy))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        idle::forget(&self.real_path());
    }
}

/// Whether a value is too large to read whole.
fn is_too_large(error: &StoreError) -> bool {
    matches!(error, StoreError::Sqlite { source, .. } if source.sqlite_error_code() == Some(ErrorCode::TooBig))
}

/// Whether an error is due to a writer that is opening, closing or recovering the database.
fn is_transient(error: &StoreError) -> bool {
    use rusqlite::ffi;
    const TRANSIENT: [i32; 6] = [
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
        } => {
            TRANSIENT.contains(&failure.extended_code)
                || failure.extended_code & 0xff == ffi::SQLITE_CANTOPEN
        }
        _ => false,
    }
}

pub(crate) fn gate(path: &Path) -> Arc<Mutex<()>> {
    static GATES: OnceLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = OnceLock::new();
    let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Arc::clone(
        lock(GATES.get_or_init(Mutex::default))
            .entry(key)
            .or_default(),
    )
}
