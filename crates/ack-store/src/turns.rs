//! Who of this process has a database open: many that read it, or one that writes to it.
//!
//! Closing any descriptor of a file drops every POSIX lock that the process holds on it. A writer
//! whose locks are dropped under it would damage the database, so while one writes, nobody else of
//! this process opens or closes its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::lock;

/// The turns at one database.
#[derive(Debug, Default)]
pub struct Turns {
    readers: Mutex<usize>,
    left: Condvar,
}

/// The turn of a reader.
#[derive(Debug)]
pub struct Reading<'a>(&'a Turns);

impl Turns {
    /// The turns at a database. All stores of this process that name the same file share them.
    pub fn at(path: &Path) -> Arc<Self> {
        static ALL: OnceLock<Mutex<HashMap<PathBuf, Arc<Turns>>>> = OnceLock::new();
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Arc::clone(
            lock(ALL.get_or_init(Mutex::default))
                .entry(key)
                .or_default(),
        )
    }

    /// Waits until nobody writes. One that reads may read again meanwhile.
    pub fn read(&self) -> Reading<'_> {
        *lock(&self.readers) += 1;
        Reading(self)
    }

    /// Waits until nobody reads; nobody begins to as long as the guard is held.
    pub fn write(&self) -> MutexGuard<'_, usize> {
        self.left
            .wait_while(lock(&self.readers), |readers| *readers > 0)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        *lock(&self.0.readers) -= 1;
        self.0.left.notify_one();
    }
}
