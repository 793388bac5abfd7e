//! Keeps resources open for a short time because they are likely to be needed again: connections to
//! a store, or the files of a table. Unused ones are closed after `IDLE_TIMEOUT`, so that an idle
//! server holds nothing open: volumes can be unmounted, and deleted files free their space.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A pool of open resources of one kind, with a limit on their number.
pub struct IdlePool<T> {
    max: usize,
    state: Mutex<PoolState<T>>,
}

struct PoolState<T> {
    /// The least recently used entry comes first.
    entries: Vec<(Instant, T)>,
    has_sweeper: bool,
}

impl<T: Send + 'static> IdlePool<T> {
    pub const fn new(max: usize) -> Self {
        let state = PoolState { entries: Vec::new(), has_sweeper: false };
        Self { max, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self, matches: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = self.state();
        let index = state.entries.iter().rposition(|(_, entry)| matches(entry))?;
        Some(state.entries.remove(index).1)
    }

    /// The newest result of `select` that is not `None`. Its entry lives longer.
    pub fn find<R>(&self, select: impl Fn(&T) -> Option<R>) -> Option<R> {
        let mut state = self.state();
        let (index, found) = state
            .entries
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, (_, entry))| Some((index, select(entry)?)))?;
        if let Some(latest) = state.entries.get_mut(index..) {
            latest.rotate_left(1);
        }
        if let Some((since, _)) = state.entries.last_mut() {
            *since = Instant::now();
        }
        Some(found)
    }

    pub fn keep(&'static self, value: T) {
        let mut state = self.state();
        state.entries.push((Instant::now(), value));
        let surplus = state.entries.len().saturating_sub(self.max);
        let mut closed: Vec<_> = state.entries.drain(..surplus).collect();
        if !state.has_sweeper {
            let sweep = move || self.sweep();
            state.has_sweeper =
                thread::Builder::new().name("idle-pool".to_owned()).spawn(sweep).is_ok();
            // Without a thread to close them, no entry is kept.
            if !state.has_sweeper {
                closed.append(&mut state.entries);
            }
        }
        drop(state);
        drop(closed);
    }

    /// Closes the entries for which `keep` returns false.
    pub fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.state().entries.retain(|(_, entry)| keep(entry));
    }

    fn sweep(&self) {
        loop {
            thread::sleep(IDLE_TIMEOUT / 4);
            let mut state = self.state();
            state.entries.retain(|(since, _)| since.elapsed() < IDLE_TIMEOUT);
            if state.entries.is_empty() {
                state.entries = Vec::new();
                state.has_sweeper = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_entry_is_reused_and_idle_ones_are_dropped() {
        static POOL: IdlePool<(u32, std::sync::Arc<()>)> = IdlePool::new(3);
        let alive = std::sync::Arc::new(());
        for number in 0..4 {
            POOL.keep((number, alive.clone()));
        }
        assert!(POOL.take(|(number, _)| *number == 0).is_none(), "the oldest went");
        // An entry that is used lives longer.
        assert_eq!(POOL.find(|(number, _)| (*number == 1).then_some(*number)), Some(1));
        POOL.keep((4, alive.clone()));
        assert!(POOL.find(|(number, _)| (*number == 2).then_some(())).is_none());
        assert_eq!(POOL.take(|_| true).map(|(number, _)| number), Some(4), "the latest");
        POOL.retain(|(number, _)| *number != 3);
        assert_eq!(std::sync::Arc::strong_count(&alive), 2);
        let closed = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(100));
            std::sync::Arc::strong_count(&alive) == 1
        });
        assert!(closed, "closed without being asked for");
        POOL.keep((5, alive));
        assert!(POOL.take(|_| true).is_some(), "kept again");
    }
}
