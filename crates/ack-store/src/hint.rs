//! Hints for failures of the file system and of SQLite that have a specific cause.

use std::io;

use ack_api::Hint;
use nix::libc::{EIO, EMFILE, ENFILE};
use rusqlite::ErrorCode;

/// Stores are only read, but some need a private copy.
const NO_SPACE: &str = "there is no space left, or a quota is reached: free some space on that disk; \
                        a store that cannot be read in place is copied to the temporary folder, \
                        which `TMPDIR` sets";
const NO_MEMORY: &str = "the system is out of memory: close other programs";
const BROKEN_DEVICE: &str =
    "the disk or network drive reported a failure: check that it is connected and works";

pub fn io_hint(error: &io::Error) -> Option<Hint> {
    use io::ErrorKind as Kind;
    let advice = match (error.kind(), error.raw_os_error()) {
        (Kind::StorageFull | Kind::QuotaExceeded, _) => NO_SPACE,
        (Kind::ReadOnlyFilesystem, _) => {
            "the file system is read-only: use another folder, or mount it for writing"
        }
        (Kind::FileTooLarge, _) => "the file would exceed the size limit: `ulimit -f` shows it",
        (Kind::InvalidInput, _) => "put a regular file in its place, or name another path",
        (Kind::OutOfMemory, _) => NO_MEMORY,
        (Kind::StaleNetworkFileHandle | Kind::TimedOut, _) | (_, Some(EIO)) => BROKEN_DEVICE,
        (_, Some(EMFILE | ENFILE)) => {
            "too many files are open: close other programs or raise the limit (`ulimit -n`)"
        }
        _ => return None,
    };
    Some(Hint::advice(advice))
}

pub fn sqlite_hints(error: &rusqlite::Error) -> Option<Vec<Hint>> {
    let advice = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => NO_SPACE,
        ErrorCode::OutOfMemory => NO_MEMORY,
        ErrorCode::ConstraintViolation => {
            "the store's own rules refuse this (a CHECK, a trigger or a unique index); nothing was changed"
        }
        ErrorCode::SystemIoFailure => BROKEN_DEVICE,
        ErrorCode::CannotOpen => {
            let advice = "check the permissions of the file and its folder, and the limit for \
                          open files (`ulimit -n`)";
            return Some(vec![Hint::advice(advice), how_opened()]);
        }
        _ => return None,
    };
    Some(vec![Hint::advice(advice)])
}

pub fn how_opened() -> Hint {
    Hint::command("doctor", "shows how each scope was opened")
}
