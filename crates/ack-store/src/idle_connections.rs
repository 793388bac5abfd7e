//! Keeps connections that hold no lock open for a moment, for the next read of the same state:
//! opening a database and reading its schema takes longer than reading a page of records.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::open::FileState;
use ack_sys::idle_pool::IdlePool;

struct IdleConnection {
    path: PathBuf,
    state: FileState,
    connection: Connection,
}

/// One answer may have memories of as many scopes as it has results.
static POOL: IdlePool<IdleConnection> = IdlePool::new(32);

/// Without one in this state, connections to other states of the database are closed.
pub fn take(path: &Path, state: &FileState) -> Option<Connection> {
    let matches = |idle: &IdleConnection| idle.path == path && idle.state == *state;
    let taken = POOL.take(matches);
    if taken.is_none() {
        forget(path);
    }
    taken.map(|idle| idle.connection)
}

/// Returns a connection to a database in this state. It must have no open transaction.
pub fn put(path: &Path, state: FileState, connection: Connection) {
    POOL.keep(IdleConnection { path: path.to_owned(), state, connection });
}

pub fn forget(path: &Path) {
    POOL.retain(|idle| idle.path != path);
}
