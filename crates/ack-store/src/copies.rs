//! Private copies of databases that cannot be read in place.
//!
//! Only its owner can read a copy, whatever the umask: it is a new file of mode 0600 in a new
//! folder of mode 0700. Once it is open, it is unlinked, so that it disappears with the process,
//! however that ends.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rusqlite::Connection;
use tempfile::TempDir;

use super::database::Origin;
use super::open::{FileState, Opening, Sidecars, connect, recover, sidecar_path};
use crate::{StoreError, StoreProblem};
use ack_sys::files;

const PREFIX: &str = "ack-memory-copies-";
/// How many copies are kept open for the next read. Each holds a file descriptor.
const MAX_KEPT_COPIES: usize = 48;

/// The temporary folder of this process's copies, while there are files in it.
static FOLDER: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
/// Set at shutdown: no more copies are made.
static SHUTTING_DOWN: AtomicBool = AtomicBool::new(false);
static LIVE_COPIES: AtomicUsize = AtomicUsize::new(0);
static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Removes every copy that still has a name. Call this when the process ends.
pub fn shut_down() {
    SHUTTING_DOWN.store(true, Ordering::SeqCst);
    if let Some(folder) = FOLDER.lock().upgrade() {
        // Another thread may be creating a file in it.
        for _ in 0..50 {
            if fs::remove_dir_all(folder.path()).is_ok() || !folder.path().exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

fn folder() -> Result<Arc<TempDir>> {
    let mut known = FOLDER.lock();
    if SHUTTING_DOWN.load(Ordering::SeqCst) {
        return Err(Error::other("the process ends"));
    }
    if let Some(folder) = known.upgrade() {
        return Ok(folder);
    }
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir()?;
    let folder = Arc::new(folder);
    *known = Arc::downgrade(&folder);
    Ok(folder)
}

/// The files of a copy. Dropping this deletes them.
#[derive(Debug)]
pub struct CopyFiles {
    main: PathBuf,
    needs_recovery: bool,
    /// Declared after the files, so that it is dropped after them.
    _folder: Arc<TempDir>,
}

impl CopyFiles {
    /// Copies a database with the sidecars that are needed to read it. The caller compares the file
    /// state to verify that nothing changed meanwhile.
    pub fn copy(path: &Path, sidecars: Sidecars) -> std::result::Result<Self, StoreError> {
        let no_copy = |source| StoreProblem::NoCopy(std::env::temp_dir(), source).at(path);
        let folder = folder().map_err(no_copy)?;
        let name = format!("{}.db", NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut copy =
            Self { main: folder.path().join(name), needs_recovery: false, _folder: folder };
        // The log comes first: a checkpoint in between changes the main file, and the file state
        // shows it.
        let suffixes: &[&str] =
            if sidecars == Sidecars::LogOrJournal { &["-wal", "-journal", ""] } else { &[""] };
        for suffix in suffixes {
            let from = sidecar_path(path, suffix);
            let mut source = match files::open(&from) {
                Ok(source) => source,
                Err(error) if error.kind() == ErrorKind::NotFound && !suffix.is_empty() => continue,
                Err(source) => return Err(StoreProblem::Io(source).at(&from)),
            };
            copy.needs_recovery |= !suffix.is_empty();
            files::create_private(&sidecar_path(&copy.main, suffix))
                .and_then(|mut target| std::io::copy(&mut source, &mut target))
                .map_err(no_copy)?;
        }
        Ok(copy)
    }

    /// Merges the sidecars, opens the copy and unlinks its files.
    pub fn open(self) -> rusqlite::Result<PrivateCopy> {
        if self.needs_recovery {
            recover(&self.main)?;
        }
        let connection = connect(&self.main, Opening::AtRest)?;
        LIVE_COPIES.fetch_add(1, Ordering::Relaxed);
        Ok(PrivateCopy(Mutex::new(connection)))
    }
}

impl Drop for CopyFiles {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-journal", "-shm"] {
            let _ = fs::remove_file(sidecar_path(&self.main, suffix));
        }
    }
}

/// An open copy. It exists as long as this does.
#[derive(Debug)]
pub struct PrivateCopy(Mutex<Connection>);

impl PrivateCopy {
    pub fn may_be_kept() -> bool {
        LIVE_COPIES.load(Ordering::Relaxed) <= MAX_KEPT_COPIES
    }

    pub(crate) fn read<T>(
        &self,
        state: &FileState,
        read: &mut impl FnMut(Origin<'_>) -> std::result::Result<T, StoreError>,
    ) -> std::result::Result<T, StoreError> {
        let connection = self.0.lock();
        // The last reader left its transaction open.
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        read(Origin::of(&connection, Opening::Copied, state))
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        LIVE_COPIES.fetch_sub(1, Ordering::Relaxed);
    }
}
