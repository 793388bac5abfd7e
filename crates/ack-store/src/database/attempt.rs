//! Reads a store that others write: in place, through SQLite's log, or from a private copy.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_sys::heap;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{Access, Database, MAX_EAGER_COPY_BYTES, Origin};
use crate::copies::{CopyFiles, PrivateCopy};
use crate::open::{self, FileState, Opening, Sidecars};
use crate::{StoreError, StoreProblem, idle_connections};

/// How many disturbed reads without locks are allowed before a copy is made.
const MAX_DISTURBED_READS: u32 = 3;
/// After a longer disturbed read a copy is made: the same writer would disturb it again.
const SLOW_READ: Duration = Duration::from_millis(250);
/// The largest database with a log that is copied into memory before it is scanned: a reader of a log
/// holds back checkpoints for as long as it reads, and the log of many readers may never be merged.
/// A quick pass takes no longer than the copy, so it needs none.
const MAX_IMAGE_BYTES: u64 = 32 << 20;
/// Scanning a smaller database takes less time than opening it a second time.
const MIN_PARALLEL_BYTES: u64 = 1 << 20;

impl Database {
    /// Passes one consistent state to `read`. If the database changes during a read without locks,
    /// `read` runs again; only the result of an undisturbed run is returned.
    pub fn read<T>(
        &self,
        timeout: Duration,
        access: Access,
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
                    if let Some(result) = self.in_place(&path, opening, &state, read) {
                        self.note_unlocked_read(Some(&state));
                        *self.copy.lock() = None;
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
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Option<Result<T, StoreError>> {
        let idle = idle_connections::take(path, state);
        let opened = idle.map_or_else(|| open::connect(path, Opening::AtRest), Ok);
        let (result, connection) = match opened {
            Ok(connection) => match read(Origin::of(&connection, Opening::AtRest, state)) {
                Ok(value) => (Ok(value), Some(connection)),
                Err(error) => (Err(error), None),
            },
            Err(error) => (Err(error.into()), None),
        };
        let gate = self.gate.lock();
        let after = open::inspect(path);
        drop(gate);
        // If a lock was taken during the read, the read may be inconsistent.
        let is_unchanged = after.is_ok_and(|(after, opening_after)| {
            after == *state && (opening_after == Opening::AtRest || opening != Opening::AtRest)
        });
        if !is_unchanged {
            return None;
        }
        if let Some(connection) = connection
            && connection.execute_batch("COMMIT").is_ok()
        {
            idle_connections::put(path, state.clone(), connection);
        }
        Some(result)
    }

    fn live<T>(
        &self,
        path: &Path,
        access: Access,
        state: &FileState,
        gate: MutexGuard<'_, ()>,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if access == Access::FullScan && state.bytes() <= MAX_IMAGE_BYTES {
            let image = image_of(path)?;
            drop(gate);
            let result = read(Origin::of(&image, Opening::Live, state));
            drop(image);
            if state.bytes() >= heap::MIN_RELEASE_BYTES as u64 {
                heap::release();
            }
            return result;
        }
        let connection = open::connect(path, Opening::Live)?;
        let second = if access != Access::Rows && state.bytes() > MIN_PARALLEL_BYTES {
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
        result
    }

    pub(super) fn read_copy<T>(
        &self,
        copy: &PrivateCopy,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        copy.read(|connection| read(Origin::of(connection, Opening::Copied, state)))?
    }

    /// A private copy; `None` if the files changed meanwhile. The caller holds the gate.
    pub(super) fn private_copy(
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
