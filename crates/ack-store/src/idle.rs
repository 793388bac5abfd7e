//! Connections between two reads.
//!
//! To open a database and to read its schema takes longer than to read a page of records. So a connection that holds no lock
//! ([`super::Opening::AtRest`]) is kept for a moment, for the next read of the same state of its files.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::open::Stamp;
use ack_sys::linger::Linger;

/// A connection that nobody reads from.
struct Idle {
    path: PathBuf,
    stamp: Stamp,
    connection: Connection,
}

/// Those of all stores together.
static IDLE: Linger<Idle> = Linger::new(8);

/// A connection to a database in this state. Those to other states of it are closed.
pub fn take(path: &Path, stamp: &Stamp) -> Option<Connection> {
    let fits = |idle: &Idle| idle.path == path && idle.stamp == *stamp;
    let taken = IDLE.take(fits);
    if taken.is_none() {
        forget(path);
    }
    taken.map(|idle| idle.connection)
}

/// Keeps a connection to a database in this state, with no transaction begun.
pub fn put(path: &Path, stamp: Stamp, connection: Connection) {
    IDLE.keep(Idle {
        path: path.to_owned(),
        stamp,
        connection,
    });
}

/// Closes every connection to a database.
pub fn forget(path: &Path) {
    IDLE.retain(|idle| idle.path != path);
}
