//! Hints for failures of the file system and of SQLite that have a specific cause.

use std::io;

use rusqlite::ErrorCode;

/// The hint for a full disk. Stores are only read, but some need a private copy.
const NO_SPACE: &str = "there is no space left, or a quota is reached: free some space on that disk; \
                        a store that cannot be read in place is copied to the temporary folder, \
                        which `TMPDIR` sets";
/// The hint for a process or system that has no file descriptors left.
const NO_DESCRIPTORS: &str =
    "too many files are open: close other programs or raise the limit (`ulimit -n`)";
/// The hint for a failing device.
const BROKEN_DEVICE: &str =
    "the disk or network drive reported a failure: check that it is connected and works";

/// The hint for an I/O error with a specific cause.
pub fn io_hint(error: &io::Error) -> Option<&'static str> {
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
    by_kind.or(by_number)
}

/// The hint for an SQLite error with a specific cause.
pub fn sqlite_hint(error: &rusqlite::Error) -> Option<&'static str> {
    match error.sqlite_error_code()? {
        ErrorCode::DiskFull => Some(NO_SPACE),
        ErrorCode::OutOfMemory => Some("the system is out of memory: close other programs"),
        ErrorCode::ConstraintViolation => Some(
            "the store's own rules refuse this (a CHECK, a trigger or a unique index); nothing was changed",
        ),
        ErrorCode::SystemIoFailure => Some(BROKEN_DEVICE),
        ErrorCode::CannotOpen => Some(
            "check the permissions of the file and its folder, and the limit for open files (`ulimit -n`); \
             `ack-memory doctor` shows how each scope was opened",
        ),
        _ => None,
    }
}
