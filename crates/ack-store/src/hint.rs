//! Hints for failures of the file system and of SQLite that have a specific cause.

use std::io;

use ack_api::Hint;
use rusqlite::ErrorCode;

/// Stores are only read, but some need a private copy.
const NO_SPACE: &str = "there is no space left, or a quota is reached: free some space on that disk; \
                        a store that cannot be read in place is copied to the temporary folder, \
                        which `TMPDIR` sets";
const NO_DESCRIPTORS: &str =
    "too many files are open: close other programs or raise the limit (`ulimit -n`)";
const BROKEN_DEVICE: &str =
    "the disk or network drive reported a failure: check that it is connected and works";

pub fn io_hint(error: &io::Error) -> Option<Hint> {
    use io::ErrorKind as Kind;
    let by_kind = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => Some(NO_SPACE),
        Kind::ReadOnlyFilesystem => {
            Some("the file system is read-only: use another folder, or mount it for writing")
        }
        Kind::FileTooLarge => Some("the file would exceed the size limit: `ulimit -f` shows it"),
        Kind::InvalidInput => Some("put a regular file in its place, or name another path"),
        Kind::OutOfMemory => Some("the system is out of memory: close other programs"),
        Kind::StaleNetworkFileHandle | Kind::TimedOut => Some(BROKEN_DEVICE),
        _ => None,
    };
    let by_number = match error.raw_os_error() {
        Some(nix::libc::EMFILE | nix::libc::ENFILE) => Some(NO_DESCRIPTORS),
        Some(nix::libc::EIO) => Some(BROKEN_DEVICE),
        _ => None,
    };
    by_kind.or(by_number).map(Hint::advice)
}

pub fn sqlite_hints(error: &rusqlite::Error) -> Option<Vec<Hint>> {
    let advice = match error.sqlite_error_code()? {
        ErrorCode::DiskFull => NO_SPACE,
        ErrorCode::OutOfMemory => "the system is out of memory: close other programs",
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

/// The command that shows how each scope was opened.
pub fn how_opened() -> Hint {
    Hint::command("doctor", "shows how each scope was opened")
}
