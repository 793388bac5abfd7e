//! A database as a source of records: how changes are detected, and how it is read meanwhile.

mod attempt;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ack_sys::disk;
use parking_lot::Mutex;
use rusqlite::Connection;

use self::attempt::LockState;
use crate::copies::PrivateCopy;
use crate::layout::Profile;
use crate::open::{self, FileState, Opening};
use crate::quick_state::QuickState;
use crate::{StoreError, idle_connections};

/// The largest database that is copied after one slow read, or because of a lock.
const MAX_EAGER_COPY_BYTES: u64 = 256 << 20;

/// How much of a store is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Rows,
    /// Every row, in no more time than it takes to read them. Large tables are read on two threads.
    QuickScan,
    /// Every row, in more time, because of what is done with each.
    FullScan,
}

/// One state of a source of records. Notes are rows of an in-memory database.
pub(crate) struct Origin<'a> {
    pub connection: &'a Connection,
    /// Another connection that may read half of a large table.
    pub second_connection: Option<Connection>,
    pub opening: Opening,
    /// The program that wrote it, if its tables do not show it.
    pub profile: Option<Profile>,
    pub state: &'a FileState,
}

impl<'a> Origin<'a> {
    pub const fn of(connection: &'a Connection, opening: Opening, state: &'a FileState) -> Self {
        Self { connection, second_connection: None, opening, profile: None, state }
    }
}

#[derive(Debug)]
pub(crate) struct Database {
    path: PathBuf,
    /// Held while files are inspected and while a connection holds locks, see [`open`]. All
    /// databases of this process that name the same file share it.
    gate: Arc<Mutex<()>>,
    copy: Mutex<Option<(FileState, Arc<PrivateCopy>)>>,
    lock: Mutex<LockState>,
    /// The last inspection, of a database at rest, that file metadata can confirm.
    settled: Mutex<Option<SettledState>>,
}

#[derive(Debug)]
struct SettledState {
    state: FileState,
    quick: QuickState,
    log: PathBuf,
}

impl Database {
    pub fn new(path: PathBuf) -> Self {
        Self {
            gate: gate(&path),
            path,
            copy: Mutex::default(),
            lock: Mutex::default(),
            settled: Mutex::default(),
        }
    }

    /// The path with every symbolic link resolved: SQLite keeps its log and its journal there.
    fn real_path(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }

    pub fn state(&self) -> Result<FileState, StoreError> {
        let mut settled = self.settled.lock();
        if let Some(known) = settled.as_ref()
            && QuickState::read(&self.path, Some(&known.log)).as_ref() == Some(&known.quick)
        {
            return Ok(known.state.clone());
        }
        *settled = None;
        let real = self.real_path();
        let log = open::sidecar_path(&real, "-wal");
        let now = SystemTime::now();
        let before = QuickState::read(&self.path, Some(&log)).filter(|quick| quick.is_settled(now));
        let gate = self.gate.lock();
        let (state, _) = open::inspect(&real)?;
        drop(gate);
        if before.is_some()
            && disk::is_local(&real)
            && QuickState::read(&self.path, Some(&log)) == before
        {
            *settled = before.map(|quick| SettledState { state: state.clone(), quick, log });
        }
        Ok(state)
    }

    /// Closes idle connections and removes the private copy, unless it is being read.
    pub fn close(&self) {
        idle_connections::forget(&self.real_path());
        if let Some(mut copy) = self.copy.try_lock() {
            *copy = None;
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        idle_connections::forget(&self.real_path());
    }
}

fn gate(path: &Path) -> Arc<Mutex<()>> {
    static GATES: Mutex<BTreeMap<PathBuf, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Arc::clone(GATES.lock().entry(key).or_default())
}
