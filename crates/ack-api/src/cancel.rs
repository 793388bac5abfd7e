//! Stopping the work of a request that nobody waits for any more, or that takes too long.
//!
//! A request runs on one thread from beginning to end, so what tells it to stop belongs to that thread: an adapter runs it
//! [`run_with`] a [`CancelFlag`], and the service asks [`check`] before each expensive step. Loops over memories, names and postings run
//! over [`guarded`] items: they end early, and a check behind them turns what is incomplete into an error. What serves every
//! request, an index that is being brought up to date, is finished all the same: a client that gives up early and asks again
//! would otherwise never get an answer.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ErrorCode;

/// So many items of a loop pass between two looks at the flag.
const ITEMS_PER_CHECK: u32 = 256;

/// Why a request stops before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The client went away or took the request back.
    #[error("the request was cancelled")]
    Cancelled,
    /// The request took longer than it may.
    #[error("the request took longer than {} seconds", timeout.as_secs_f32())]
    DeadlineExceeded {
        /// How long it may take.
        timeout: Duration,
    },
}

impl Stopped {
    /// The stable code.
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

/// Tells a request to stop. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag {
    cancelled: Arc<AtomicBool>,
    limit: Option<Deadline>,
}

/// How long a request may take, and when that is over.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    timeout: Duration,
    deadline: Instant,
}

impl CancelFlag {
    /// A flag that is over after `timeout`, whether somebody raises it or not.
    pub fn with_timeout(timeout: Duration) -> Self {
        let deadline = Instant::now() + timeout;
        Self {
            cancelled: Arc::default(),
            limit: Some(Deadline { timeout, deadline }),
        }
    }

    /// How much time is remaining; without a limit none.
    pub fn remaining(&self) -> Duration {
        self.limit
            .map_or(Duration::ZERO, |limit| limit.deadline.saturating_duration_since(Instant::now()))
    }

    /// The request is to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether it is to go on.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_cancelled() {
            return Err(Stopped::Cancelled);
        }
        match self.limit {
            Some(limit) if Instant::now() >= limit.deadline => Err(Stopped::DeadlineExceeded { timeout: limit.timeout }),
            _ => Ok(()),
        }
    }
}

/// A flag that is cancelled when this is dropped: by whoever stops waiting.
#[derive(Debug)]
pub struct CancelOnDrop(pub CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does a request's work on this thread; [`check`] looks at the flag meanwhile.
pub fn run_with<T>(flag: &CancelFlag, work: impl FnOnce() -> T) -> T {
    /// Takes the flag away however the work ends.
    struct Restore(Option<CancelFlag>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _restore = Restore(CURRENT.with(|current| current.borrow_mut().replace(flag.clone())));
    work()
}

/// The flag of this thread's request, for threads that work for it; one that nobody raises where there is none.
pub fn current() -> CancelFlag {
    CURRENT.with(|current| current.borrow().clone()).unwrap_or_default()
}

/// Whether the request of this thread is to go on.
///
/// # Errors
/// [`Stopped`].
pub fn check() -> Result<(), Stopped> {
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), CancelFlag::check))
}

/// The items, until the request of this thread is to stop. They may then be incomplete: [`check`] comes before they are used.
pub fn guarded<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    let flag = current();
    let mut steps = 0;
    items.into_iter().take_while(move |_| {
        steps = (steps + 1) % ITEMS_PER_CHECK;
        steps != 1 || flag.check().is_ok()
    })
}
