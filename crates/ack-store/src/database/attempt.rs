//! Reads a store that others write: in place, through SQLite's log, or from a private copy. While a
//! writer holds its lock, that is its last commit, if the database file is unchanged since before
//! the lock, or a journal shows it. Otherwise the caller waits, for a limited time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_sys::heap;
use jiff::Timestamp;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{Access, Database, MAX_EAGER_COPY_BYTES, Origin};
use crate::copies::{CopyFiles, PrivateCopy};
use crate::open::{self, FileState, Opening, Sidecars};
use crate::{StoreError, StoreProblem, idle_connections};

/// How many disturbed reads without locks are allowed before a copy is made.
const MAX_DISTURBED_READS: u32 = 3;
/// After a longer disturbed read, for instance one that builds an index, a copy is made: the same
/// writer would disturb it again.
const SLOW_READ: Duration = Duration::from_millis(250);
/// The largest database with a log that is copied into memory before it is scanned: a reader of a log
/// holds back checkpoints for as long as it reads, and the log of many readers may never be merged.
/// A quick pass takes no longer than the copy, so it needs none.
const MAX_IMAGE_BYTES: u64 = 32 << 20;
/// Scanning a smaller database takes less time than opening it a second time.
const MIN_PARALLEL_BYTES: u64 = 1 << 20;

/// How long to wait for a lock while the files under it do not change.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// How long to wait for such a lock if the store cannot be read in another way. An ordinary commit
/// on a slow disk may take this long. Later requests do not wait again.
const MAX_LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// A lock that was last observed longer ago than this may be a different one.
const LOCK_OBSERVATION_TTL: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct LockState {
    observed: Option<LockObservation>,
    unlocked: Option<FileState>,
    /// When the store was last read while locked, unless it has been read unlocked since.
    read_while_locked: Option<Timestamp>,
}

/// The files under a lock, and how long they have looked like this.
#[derive(Debug)]
struct LockObservation {
    state: FileState,
    since: Instant,
    last: Instant,
}

impl Database {
    /// Passes one consistent state to `read`. If the database changes during a read without locks,
    /// `read` runs again; only the result of an undisturbed run is returned.
    pub fn read<T>(
        &self,
        access: Access,
        timeout: Duration,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let started = Instant::now();
        let path = self.real_path();
        let (mut attempts, mut disturbances) = (0, 0);
        // Why the last attempt failed, to report on timeout.
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
                    let unsteady = || StoreProblem::Unsteady(attempts).at(&self.path);
                    return Err(last_error.unwrap_or_else(unsteady));
                }
                std::thread::sleep(Duration::from_millis(u64::from(attempts.min(16))));
            }
            attempts += 1;
            let gate = self.gate.lock();
            let (state, opening) = open::inspect(&path)?;
            match opening {
                Opening::AtRest if disturbances < MAX_DISTURBED_READS => {
                    drop(gate);
                    let began = Instant::now();
                    if let Some(value) = self.in_place(&path, opening, &state, read)? {
                        self.note_unlocked_read(Some(&state));
                        *self.copy.lock() = None;
                        return Ok(value);
                    }
                    disturbances += 1;
                    if began.elapsed() > SLOW_READ && state.main.length <= MAX_EAGER_COPY_BYTES {
                        disturbances = MAX_DISTURBED_READS;
                    }
                    last_error = None;
                }
                Opening::Locked | Opening::LastCommit => {
                    drop(gate);
                    last_error = Some(StoreProblem::Locked.at(&self.path));
                    if let Some(value) = self.try_while_locked(&path, opening, &state, read)? {
                        return Ok(value);
                    }
                }
                Opening::Live => match self.live(&path, access, &state, gate, read) {
                    Err(error) if is_transient(&error) => {
                        open::check_readable(&path)?;
                        last_error = Some(error);
                    }
                    result => {
                        self.note_unlocked_read(None);
                        *self.copy.lock() = None;
                        return result;
                    }
                },
                // While a writer opens or closes, its log has no shared memory for a moment.
                Opening::Copied | Opening::Parsed if attempts < 4 => {}
                // What is at rest here changes faster than it can be read, but copying is faster.
                Opening::AtRest | Opening::Copied | Opening::Parsed => {
                    let sidecars = match opening {
                        Opening::AtRest => Sidecars::None,
                        _ => Sidecars::LogOrJournal,
                    };
                    let copy = self.private_copy(&path, &state, sidecars)?;
                    drop(gate);
                    if let Some(copy) = copy {
                        self.note_unlocked_read(None);
                        return copy.read(&state, read);
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
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let idle = idle_connections::take(path, state);
        let opened = idle.map_or_else(|| open::connect(path, Opening::AtRest), Ok);
        let result = opened.map_err(StoreError::from).and_then(|connection| {
            let value = read(Origin::of(&connection, Opening::AtRest, state))?;
            Ok((value, connection))
        });
        let gate = self.gate.lock();
        let after = open::inspect(path);
        drop(gate);
        // If a lock was taken during the read, the read may be inconsistent.
        let is_unchanged = after.is_ok_and(|(after, opening_after)| {
            after == *state && (opening_after == Opening::AtRest || opening != Opening::AtRest)
        });
        if !is_unchanged {
            return Ok(None);
        }
        let (value, connection) = result?;
        if connection.execute_batch("COMMIT").is_ok() {
            idle_connections::put(path, state.clone(), connection);
        }
        Ok(Some(value))
    }

    fn live<T>(
        &self,
        path: &Path,
        access: Access,
        state: &FileState,
        gate: MutexGuard<'_, ()>,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if access == Access::FullScan && state.main.length <= MAX_IMAGE_BYTES {
            let image = image_of(path)?;
            drop(gate);
            let result = read(Origin::of(&image, Opening::Live, state));
            drop(image);
            if state.main.length >= heap::MIN_RELEASE_BYTES as u64 {
                heap::release();
            }
            return result;
        }
        let connection = open::connect(path, Opening::Live)?;
        let mut origin = Origin::of(&connection, Opening::Live, state);
        if access != Access::Rows && state.main.length > MIN_PARALLEL_BYTES {
            origin.second_connection = open::connect(path, Opening::Live).ok();
        }
        let result = read(origin);
        drop(connection);
        drop(gate);
        result
    }

    /// A private copy; `None` if the files changed meanwhile. The caller holds the gate.
    fn private_copy(
        &self,
        path: &Path,
        state: &FileState,
        sidecars: Sidecars,
    ) -> Result<Option<Arc<PrivateCopy>>, StoreError> {
        let mut cached = self.copy.lock();
        if let Some((_, copy)) = cached.as_ref().filter(|(copied, _)| copied == state) {
            return Ok(Some(Arc::clone(copy)));
        }
        let files = CopyFiles::copy(path, sidecars)?;
        let (after, opening) = open::inspect(path)?;
        let is_unchanged = match sidecars {
            Sidecars::None => after == *state && opening != Opening::Locked,
            Sidecars::LogOrJournal => state.is_consistent_until(&after),
        };
        if !is_unchanged {
            return Ok(None);
        }
        let copy = Arc::new(files.open()?);
        *cached = PrivateCopy::may_be_kept().then(|| (state.clone(), Arc::clone(&copy)));
        Ok(Some(copy))
    }

    /// When it was last read while a writer held its lock, unless it was read unlocked since.
    pub fn read_while_locked(&self) -> Option<Timestamp> {
        self.lock.lock().read_while_locked
    }

    /// Records a read that no lock blocked, with the state if it was read in place.
    fn note_unlocked_read(&self, unlocked: Option<&FileState>) {
        *self.lock.lock() = LockState { unlocked: unlocked.cloned(), ..LockState::default() };
    }

    /// Reads the last commit if that is possible. `None` means to wait and try again.
    fn try_while_locked<T>(
        &self,
        path: &Path,
        opening: Opening,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut lock_state = self.lock.lock();
        let now = Instant::now();
        let known = lock_state
            .observed
            .take()
            .filter(|known| known.state == *state && known.last.elapsed() < LOCK_OBSERVATION_TTL);
        let since = known.map_or(now, |known| known.since);
        lock_state.observed = Some(LockObservation { state: state.clone(), since, last: now });
        if since.elapsed() < LOCK_TIMEOUT {
            return Ok(None);
        }
        // While the database file is unchanged since before the lock, it holds no uncommitted
        // change.
        let is_committed = opening == Opening::LastCommit
            || lock_state.unlocked.as_ref().is_some_and(|unlocked| unlocked.same_database(state));
        drop(lock_state);
        let value = if is_committed {
            self.in_place(path, opening, state, read)?
        } else if state.journal.is_some() && state.main.length <= MAX_EAGER_COPY_BYTES {
            let gate = self.gate.lock();
            let copy = self.private_copy(path, state, Sidecars::LogOrJournal)?;
            drop(gate);
            copy.map(|copy| copy.read(state, read)).transpose()?
        } else if since.elapsed() < MAX_LOCK_TIMEOUT {
            None
        } else {
            return Err(StoreProblem::Locked.at(&self.path));
        };
        if value.is_some() {
            self.lock.lock().read_while_locked = Some(Timestamp::now());
        }
        Ok(value)
    }
}

fn image_of(path: &Path) -> Result<Connection, StoreError> {
    let source = open::connect(path, Opening::Live)?;
    #[expect(clippy::disallowed_methods, reason = "the image is what is in memory")]
    let mut image = Connection::open_in_memory()?;
    if Backup::new(&source, &mut image)?.step(-1)? != StepResult::Done {
        return Err(StoreProblem::Locked.at(path));
    }
    open::harden(&image)?;
    Ok(image)
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
    match &error.problem {
        StoreProblem::Locked => true,
        StoreProblem::Sqlite(source) => source.sqlite_error().is_some_and(|failure| {
            TRANSIENT.contains(&failure.extended_code)
                || failure.extended_code & 0xff == ffi::SQLITE_CANTOPEN
        }),
        _ => false,
    }
}
