//! Stopping the work of a request that nobody waits for any more.
//!
//! A request runs on one thread from beginning to end, so what tells it to stop belongs to that thread: an adapter runs it
//! [`within`] a [`Flag`], and the service asks [`check`] before each expensive step. What serves every request, an index that
//! is being brought up to date, is finished all the same: a client that gives up early and asks again would otherwise never get
//! an answer.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

thread_local! {
    static CURRENT: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Tells a request to stop. Clones are the same flag.
#[derive(Debug, Clone, Default)]
pub struct Flag(Arc<AtomicBool>);

impl Flag {
    /// The request is to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A flag that is raised when this is dropped: by whoever stops waiting.
#[derive(Debug)]
pub struct OnDrop(pub Flag);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does a request's work on this thread; [`check`] looks at the flag meanwhile.
pub fn within<T>(flag: &Flag, work: impl FnOnce() -> T) -> T {
    /// Takes the flag away however the work ends.
    struct Restore(Option<Flag>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.with(|current| *current.borrow_mut() = self.0.take());
        }
    }
    let _restore = Restore(CURRENT.with(|current| current.borrow_mut().replace(flag.clone())));
    work()
}

/// The flag of this thread's request, for threads that work for it.
pub fn current() -> Option<Flag> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Whether the request of this thread is to go on.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn check() -> Result<(), Error> {
    let cancelled = CURRENT.with(|current| current.borrow().as_ref().is_some_and(Flag::is_cancelled));
    if cancelled { Err(Error::Cancelled) } else { Ok(()) }
}
