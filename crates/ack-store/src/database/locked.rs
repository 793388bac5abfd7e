//! Reads a store whose writer holds its lock: its last commit, if the database file is unchanged
//! since before the lock, or a journal shows it. Otherwise the caller waits, for a limited time.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Database, MAX_EAGER_COPY_BYTES, Origin};
use crate::open::{FileState, Opening, Sidecars};
use crate::{StoreError, StoreProblem};

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
    /// When it was last read while a writer held its lock, unless it was read unlocked since.
    pub fn read_while_locked(&self) -> Option<Timestamp> {
        self.lock.lock().read_while_locked
    }

    /// Records a read that no lock blocked, with the state if it was read in place.
    pub(super) fn note_unlocked_read(&self, unlocked: Option<&FileState>) {
        *self.lock.lock() = LockState { unlocked: unlocked.cloned(), ..LockState::default() };
    }

    /// Reads the last commit if that is possible. `None` means to wait and try again.
    pub(super) fn try_while_locked<T>(
        &self,
        path: &Path,
        opening: Opening,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<Result<T, StoreError>>, StoreError> {
        let mut lock_state = self.lock.lock();
        let now = Instant::now();
        let known = lock_state.observed.take().filter(|known| known.state == *state);
        let since = known
            .filter(|known| known.last.elapsed() < LOCK_OBSERVATION_TTL)
            .map_or(now, |known| known.since);
        lock_state.observed = Some(LockObservation { state: state.clone(), since, last: now });
        if since.elapsed() < LOCK_TIMEOUT {
            return Ok(None);
        }
        // While the database file is unchanged since before the lock, it holds no uncommitted
        // change.
        let is_committed = opening == Opening::LastCommit
            || lock_state.unlocked.as_ref().is_some_and(|unlocked| unlocked.same_database(state));
        drop(lock_state);
        let result = if is_committed {
            self.in_place(path, opening, state, read)
        } else if state.has_journal() && state.bytes() <= MAX_EAGER_COPY_BYTES {
            let gate = self.gate.lock();
            let copy = self.private_copy(path, state, Sidecars::LogOrJournal)?;
            drop(gate);
            copy.map(|copy| self.read_copy(&copy, state, read))
        } else if since.elapsed() < MAX_LOCK_TIMEOUT {
            None
        } else {
            return Err(StoreProblem::Locked.at(&self.path));
        };
        if result.is_some() {
            self.lock.lock().read_while_locked = Some(Timestamp::now());
        }
        Ok(result)
    }
}
