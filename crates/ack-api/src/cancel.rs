//! Stops the work of a request that was cancelled or takes too long.
//!
//! A request runs on one thread, so its [`CancelFlag`] belongs to that thread: an adapter calls
//! [`run_with`], and the service calls [`check`] before each expensive step. Loops over memories,
//! names and postings use [`guarded`] items: they end early, and a later check turns the incomplete
//! result into an error. Work that serves every request, such as updating an index, is always
//! finished. Otherwise a client that gives up early and retries would never get an answer.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ErrorCode;

/// How many items of a loop pass between two checks of the flag.
const ITEMS_PER_CHECK: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    #[error("the request was cancelled")]
    Cancelled,
    #[error("the request took longer than {} seconds", timeout.as_secs_f32())]
    DeadlineExceeded { timeout: Duration },
}

impl Stopped {
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Cancelled => ErrorCode::Cancelled,
            Self::DeadlineExceeded { .. } => ErrorCode::DeadlineExceeded,
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<CancelFlag>> = const { RefCell::new(None) };
}

/// Stops a request. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    cancelled: Arc<AtomicBool>,
    limit: Option<Deadline>,
}

#[derive(Debug, Clone, Copy)]
struct Deadline {
    timeout: Duration,
    deadline: Instant,
}

impl CancelFlag {
    /// A flag that stops the request after `timeout`, or earlier if it is cancelled.
    pub fn with_timeout(timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self { cancelled: Arc::default(), limit: Some(Deadline { timeout, deadline }) }
    }

    pub fn remaining(&self) -> Duration {
        let left = |limit: Deadline| limit.deadline.saturating_duration_since(Instant::now());
        self.limit.map_or(Duration::ZERO, left)
    }

    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        match self.limit {
            Some(limit) if Instant::now() >= limit.deadline => {
                Err(Stopped::DeadlineExceeded { timeout: limit.timeout })
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
pub struct CancelOnDrop(pub CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a request's work on this thread. Until it returns, [`check`] uses this flag.
pub fn run_with<T>(flag: &CancelFlag, work: impl FnOnce() -> T) -> T {
    /// Restores the previous flag, even after a panic.
    struct Restore(Option<CancelFlag>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _restore = Restore(CURRENT.with(|current| current.borrow_mut().replace(flag.clone())));
    work()
}

/// The flag of this thread's request, for threads that work for it. Without a request, a flag that
/// is never cancelled.
pub fn current() -> CancelFlag {
    CURRENT.with(|current| current.borrow().clone()).unwrap_or_default()
}

pub fn check() -> Result<(), Stopped> {
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), CancelFlag::check))
}

/// Yields the items until this thread's request is stopped. They may then be incomplete: call
/// [`check`] before using the result.
pub fn guarded<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let flag = current();
    let mut steps = 0;
    items.into_iter().take_while(move |_| {
        steps = (steps + 1) % ITEMS_PER_CHECK;
        steps != 1 || flag.check().is_ok()
    })
}
