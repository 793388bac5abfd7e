//! Controls access to a database within this process: many readers, or one writer.
//!
//! Closing any descriptor of a file drops every POSIX lock that the process holds on it. A writer
//! that loses its locks would damage the database. So while one writes, nothing else in this
//! process opens or closes its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::mutex::lock;

/// Access to one database.
#[derive(Debug, Default)]
pub struct AccessLock {
    readers: Mutex<usize>,
    reader_left: Condvar,
}

/// A reader's access.
#[derive(Debug)]
pub struct ReadTurn<'a>(&'a AccessLock);

impl AccessLock {
    /// Access to the database at a path. All stores of this process that name the same file share
    /// it.
    pub fn at(path: &Path) -> Arc<Self> {
        static ALL: OnceLock<Mutex<HashMap<PathBuf, Arc<AccessLock>>>> = OnceLock::new();
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Arc::clone(
            lock(ALL.get_or_init(Mutex::default))
                .entry(key)
                .or_default(),
        )
    }

    /// Waits until nothing writes. A thread that already reads may read again.
    pub fn read(&self) -> ReadTurn<'_> {
        *lock(&self.readers) += 1;
        ReadTurn(self)
    }

    /// Waits until nothing reads. No reader starts while the guard is held.
    pub fn write(&self) -> MutexGuard<'_, usize> {
        self.reader_left
            .wait_while(lock(&self.readers), |readers| *readers > 0)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ReadTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.readers) -= 1;
        self.0.reader_left.notify_one();
    }
}
