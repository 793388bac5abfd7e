//! How a store is read while others write it: in place, through SQLite's log, or from a private
//! copy.

use std::path::Path;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use ack_sys::heap;

use super::{Database, MAX_EAGER_COPY_BYTES};
use crate::copies::{CopyFiles, PrivateCopy};
use crate::mutex::lock;
use crate::open::{self, FileState, Opening, Sidecars};
use crate::origin::{Access, Origin, ReadResult};
use crate::{StoreError, StoreProblem, idle_connections, image};

/// How many disturbed reads without locks are allowed before a copy is made.
const MAX_DISTURBED_READS: u32 = 3;
/// If a read takes longer than this and is disturbed, the next attempt makes a copy: the same
/// writer would disturb it again.
const SLOW_READ: Duration = Duration::from_millis(250);
/// How many times to read an image that a writer invalidates.
const MAX_IMAGE_ATTEMPTS: u32 = 3;
/// Scanning a smaller database takes less time than opening it a second time.
const MIN_PARALLEL_BYTES: u64 = 1 << 20;

impl Database {
    /// Reads until a read was not disturbed.
    pub(super) fn retry<T>(
        &self,
        timeout: Duration,
        access: Access,
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
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
                Opening::Locked | Opening::LastCommit => {
                    drop(gate);
                    last_error = Some(StoreProblem::Locked.at(&self.path));
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
                        return self.read_copy(&copy, &state, read);
                    }
                }
            }
        }
    }

    /// Reads without locks. `None` if the files changed during the read.
    pub(super) fn in_place<T>(
        &self,
        path: &Path,
        opening: Opening,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let open = || {
            open::connect(path, Opening::AtRest)
                .map_err(|error| StoreError::sqlite(&self.path, error))
        };
        let (result, connection) = match idle_connections::take(path, state).map_or_else(open, Ok) {
            Ok(connection) => match read(Origin::of(&connection, Opening::AtRest, state)) {
                Ok(reading) if reading.has_scanned => (Ok(reading.value), None),
                Ok(reading) => (Ok(reading.value), Some(connection)),
                Err(error) => (Err(error), None),
            },
            Err(error) => (Err(error), None),
        };
        let gate = lock(&self.gate);
        let after = open::inspect(path);
        drop(gate);
        // If a lock was taken during the read, the read may be inconsistent.
        let is_unchanged = after.is_ok_and(|(after, opening_after)| {
            after == *state && (opening_after == Opening::AtRest || opening != Opening::AtRest)
        });
        if !is_unchanged {
            return None;
        }
        let idle_connection =
            connection.filter(|connection| connection.execute_batch("COMMIT").is_ok());
        if let Some(connection) = idle_connection {
            idle_connections::put(path, state.clone(), connection);
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
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let sqlite = |error| StoreError::sqlite(&self.path, error);
        if access == Access::FullScan
            && state.bytes() <= image::MAX_IMAGE_BYTES
            && let Some(image) = (0..MAX_IMAGE_ATTEMPTS).find_map(|_| image::read(path))
        {
            drop(gate);
            open::harden(&image).map_err(sqlite)?;
            let result = read(Origin::of(&image, Opening::Live, state));
            drop(image);
            if state.bytes() >= heap::MIN_RELEASE_BYTES as u64 {
                heap::release();
            }
            return Ok(result?.value);
        }
        let connection = open::connect(path, Opening::Live).map_err(sqlite)?;
        let second = if access == Access::FullScan && state.bytes() > MIN_PARALLEL_BYTES {
            open::connect(path, Opening::Live).ok()
        } else {
            None
        };
        let result = read(Origin {
            second_connection: second,
            ..Origin::of(&connection, Opening::Live, state)
        });
        drop(connection);
        drop(gate);
        Ok(result?.value)
    }

    /// Reads a private copy. No lock was in the way.
    fn read_copy<T>(
        &self,
        copy: &PrivateCopy,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
    ) -> Result<T, StoreError> {
        self.note_unlocked_read(None);
        self.read_copy_despite_lock(copy, state, read)
    }

    /// Reads a private copy of a database whose writer holds its lock.
    pub(super) fn read_copy_despite_lock<T>(
        &self,
        copy: &PrivateCopy,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<ReadResult<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let read = copy.read(|connection| read(Origin::of(connection, Opening::Copied, state)));
        let reading = read.map_err(|error| StoreError::sqlite(&self.path, error))??;
        Ok(reading.value)
    }

    /// A private copy of `state`, or `None` if the files changed during the copy. The caller holds
    /// the gate.
    pub(super) fn private_copy(
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
            Sidecars::LogOrJournal => state.is_consistent_until(&after),
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
