//! Connections between two reads.
//!
//! To open a database and to read its schema takes longer than to read a page of records. So a connection that holds no lock
//! ([`super::Opening::AtRest`]) is kept for a moment, for the next read of the same state of its files.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::open::FileState;
use ack_sys::idle_pool::IdlePool;

/// A connection that nobody reads from.
struct IdleConnection {
    path: PathBuf,
    state: FileState,
    connection: Connection,
}

/// Those of all stores together.
static POOL: IdlePool<IdleConnection> = IdlePool::new(8);

/// A connection to a database in this state. Those to other states of it are closed.
pub fn take(path: &Path, state: &FileState) -> Option<Connection> {
    let matches = |idle: &IdleConnection| idle.path == path && idle.state == *state;
    let taken = POOL.take(matches);
    if taken.is_none() {
        forget(path);
    }
    taken.map(|idle| idle.connection)
}

/// Keeps a connection to a database in this state, with no transaction begun.
pub fn put(path: &Path, state: FileState, connection: Connection) {
    POOL.keep(IdleConnection {
        path: path.to_owned(),
        state,
        connection,
    });
}

/// Closes every connection to a database.
pub fn forget(path: &Path) {
    POOL.retain(|idle| idle.path != path);
}
