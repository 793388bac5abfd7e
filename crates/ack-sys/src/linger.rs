//! What is kept open for a moment, because it is likely to be asked for again: connections between two reads of a store, the
//! files of a table that is searched.
//!
//! What nobody asked for within [`LINGER`] is closed, so that nothing is open beside an idle server: a volume can be
//! unmounted, and what was removed frees its space.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long something stays open that nobody asks for.
const LINGER: Duration = Duration::from_secs(2);

/// Things of one kind that are kept open, a certain number at most.
pub struct Linger<T> {
    most: usize,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// The one that was not asked for for the longest time first.
    kept: Vec<(Instant, T)>,
    /// Whether a thread is there that closes them.
    swept: bool,
}

impl<T: Send + 'static> Linger<T> {
    /// Keeps `most` at most.
    pub const fn new(most: usize) -> Self {
        let state = State {
            kept: Vec::new(),
            swept: false,
        };
        Self {
            most,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the latest that fits.
    pub fn take(&self, fits: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = self.state();
        let place = state.kept.iter().rposition(|(_, kept)| fits(kept))?;
        Some(state.kept.remove(place).1)
    }

    /// What `of` says of the latest about which it says something; that one stays for longer.
    pub fn find<R>(&self, of: impl Fn(&T) -> Option<R>) -> Option<R> {
        let mut state = self.state();
        let (place, found) = state
            .kept
            .iter()
            .enumerate()
            .rev()
            .find_map(|(place, (_, kept))| Some((place, of(kept)?)))?;
        if let Some(latest) = state.kept.get_mut(place..) {
            latest.rotate_left(1);
        }
        if let Some((since, _)) = state.kept.last_mut() {
            *since = Instant::now();
        }
        Some(found)
    }

    /// Keeps something. On Windows, where what is open cannot be replaced, it is closed at once.
    pub fn keep(&'static self, value: T) {
        if cfg!(windows) {
            return;
        }
        let mut state = self.state();
        state.kept.push((Instant::now(), value));
        let surplus = state.kept.len().saturating_sub(self.most);
        let mut closed: Vec<_> = state.kept.drain(..surplus).collect();
        if !state.swept {
            let sweep = move || self.sweep();
            state.swept = thread::Builder::new().name("linger".to_owned()).spawn(sweep).is_ok();
            // Without a thread to close them none is kept.
            if !state.swept {
                closed.append(&mut state.kept);
            }
        }
        drop(state);
        drop(closed);
    }

    /// Closes those that `keep` does not hold on to.
    pub fn retain(&self, keep: impl Fn(&T) -> bool) {
        self.state().kept.retain(|(_, kept)| keep(kept));
    }

    /// Closes what nobody asks for, until nothing is left.
    fn sweep(&self) {
        loop {
            thread::sleep(LINGER / 4);
            let mut state = self.state();
            state.kept.retain(|(since, _)| since.elapsed() < LINGER);
            if state.kept.is_empty() {
                state.kept = Vec::new();
                state.swept = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_found_the_oldest_goes_and_after_a_while_all_do() {
        static KEPT: Linger<(u32, std::sync::Arc<()>)> = Linger::new(3);
        let alive = std::sync::Arc::new(());
        for number in 0..4 {
            KEPT.keep((number, alive.clone()));
        }
        assert!(KEPT.take(|(number, _)| *number == 0).is_none(), "the oldest went");
        // What is asked for stays longer than what is not.
        assert_eq!(KEPT.find(|(number, _)| (*number == 1).then_some(*number)), Some(1));
        KEPT.keep((4, alive.clone()));
        assert!(KEPT.find(|(number, _)| (*number == 2).then_some(())).is_none());
        assert_eq!(KEPT.take(|_| true).map(|(number, _)| number), Some(4), "the latest");
        KEPT.retain(|(number, _)| *number != 3);
        assert_eq!(std::sync::Arc::strong_count(&alive), 2);
        let closed = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(100));
            std::sync::Arc::strong_count(&alive) == 1
        });
        assert!(closed, "closed without being asked for");
        KEPT.keep((5, alive));
        assert!(KEPT.take(|_| true).is_some(), "kept again");
    }
}
