//! Why a store cannot be read, with a stable code and a hint for each case.

use std::path::{Path, PathBuf};

use ack_api::ErrorCode;
use ack_api::text::list;

use crate::hint::{io_hint, sqlite_hint};

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file does not exist.
    #[error("Memory database not found: `{}`", path.display())]
    Missing {
        /// The configured path.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("`{}` is empty: no database was ever written there", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The folder contains no notes.
    #[error("`{}` holds no Markdown notes and no store that is known", path.display())]
    NoNotes {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not an SQLite database.
    #[error("`{}` is not an SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is neither a graph of server-memory nor a database.
    #[error("`{}` is neither server-memory's JSON lines nor an SQLite database", path.display())]
    NotAGraph {
        /// The file.
        path: PathBuf,
    },
    /// The database has no table that this program knows.
    #[error("`{}` holds no memories: none of its tables ({}) has an id and a title", path.display(), list(tables))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The tables that exist.
        tables: Vec<String>,
    },
    /// Another program holds a lock for longer than a request may wait.
    #[error("`{}` is locked by another program", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The contents are damaged.
    #[error("`{}` is damaged: {source}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The error from SQLite.
        source: rusqlite::Error,
    },
    /// It changed during every attempt to read it.
    #[error("`{}` changed during each of {attempts} attempts to read it", path.display())]
    Unsteady {
        /// The file.
        path: PathBuf,
        /// How many attempts were made.
        attempts: u32,
    },
    /// A file name that SQLite uses belongs to something that is not a file.
    #[error("cannot read `{}`: {source}", path.display())]
    NotAFile {
        /// The path that is not a file.
        path: PathBuf,
        /// What it is instead.
        source: std::io::Error,
    },
    /// The store must be read from a private copy, and the copy failed.
    #[error("cannot make a private copy of `{}` in `{}`: {source}", path.display(), folder.display())]
    NoCopy {
        /// The file.
        path: PathBuf,
        /// The temporary folder.
        folder: PathBuf,
        /// The error from the system.
        source: std::io::Error,
    },
    /// Any other failure of the file system.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error from the system.
        source: std::io::Error,
    },
    /// The decisions about its memories cannot be read, so no status is certain.
    #[error("cannot read the decisions in `{}`: {source}", path.display())]
    Decisions {
        /// The log.
        path: PathBuf,
        /// The error from the system.
        source: std::io::Error,
    },
    /// Any other failure of SQLite.
    #[error("cannot read `{}`: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error from SQLite.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Turns an SQLite failure on `path` into a case that a person can act on.
    pub fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source },
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Self::Locked { path }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    /// The database.
    pub fn path(&self) -> &Path {
        match self {
            Self::Missing { path }
            | Self::Empty { path }
            | Self::NoNotes { path }
            | Self::NotADatabase { path }
            | Self::NotAGraph { path }
            | Self::Foreign { path, .. }
            | Self::Locked { path }
            | Self::Corrupt { path, .. }
            | Self::Unsteady { path, .. }
            | Self::NotAFile { path, .. }
            | Self::NoCopy { path, .. }
            | Self::Io { path, .. }
            | Self::Decisions { path, .. }
            | Self::Sqlite { path, .. } => path,
        }
    }

    /// The stable code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Missing { .. } => ErrorCode::StoreNotFound,
            Self::Empty { .. } | Self::NoNotes { .. } => ErrorCode::StoreEmpty,
            Self::NotADatabase { .. } | Self::NotAGraph { .. } => ErrorCode::StoreNotSqlite,
            Self::Foreign { .. } => ErrorCode::StoreForeign,
            Self::Locked { .. } => ErrorCode::StoreLocked,
            Self::Corrupt { .. } => ErrorCode::StoreCorrupt,
            Self::Unsteady { .. } => ErrorCode::StoreUnsteady,
            Self::NotAFile { .. }
            | Self::NoCopy { .. }
            | Self::Io { .. }
            | Self::Decisions { .. }
            | Self::Sqlite { .. } => ErrorCode::StoreUnreadable,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "create it with `ack-memory import FILE --scope NAME`, or point the scope at an existing store with `ack-memory scopes set NAME store=PATH`"
            }
            Self::Empty { .. } => {
                "wait until its program writes to it, or import into it with `ack-memory import FILE --scope NAME`"
            }
            Self::NoNotes { .. } => "name a database, or a folder with `.md` files",
            Self::NotADatabase { .. } | Self::NotAGraph { .. } => {
                "check the scope's `store` path; restore the file from a backup if it should be a database"
            }
            Self::Foreign { .. } => {
                "check the scope's `store` path; `schemas/scope.sql` describes the tables that this program reads"
            }
            Self::Locked { .. } => "try again after the other program has finished writing",
            Self::Corrupt { .. } => {
                "restore it from a backup, or save what can be read with `sqlite3 FILE .recover`"
            }
            Self::Unsteady { .. } => "try again; another program keeps changing it",
            Self::NotAFile { .. } => "move it elsewhere: SQLite needs this file name",
            Self::NoCopy { .. } => {
                "free some space there, or set `TMPDIR` to a writable folder with enough space"
            }
            Self::Io { source, .. } => io_hint(source).unwrap_or(UNREADABLE),
            Self::Decisions { source, .. } => io_hint(source).unwrap_or(NO_DECISIONS),
            Self::Sqlite { source, .. } => sqlite_hint(source).unwrap_or(UNREADABLE),
        }
    }
}

/// The hint for a decision log that cannot be read.
const NO_DECISIONS: &str = "until it can be read, this scope serves nothing; make it a regular, \
                            readable file of JSON lines, or restore it";
/// The hint if nothing more specific is known.
const UNREADABLE: &str =
    "check the file's permissions; `ack-memory doctor` shows how each scope was opened";

#[cfg(test)]
mod tests {
    use std::io;

    use nix::libc;

    use super::*;

    #[test]
    fn each_failure_of_the_system_has_its_own_next_step() {
        let path = || PathBuf::from("/somewhere/memory.db");
        for (number, word) in [
            (libc::ENOSPC, "no space left"),
            (libc::EDQUOT, "no space left"),
            (libc::EROFS, "read-only"),
            (libc::EMFILE, "ulimit -n"),
            (libc::ENFILE, "ulimit -n"),
            (libc::EFBIG, "ulimit -f"),
            (libc::EIO, "disk"),
            (libc::EACCES, "permissions"),
        ] {
            let source = io::Error::from_raw_os_error(number);
            let words = source.to_string();
            let error = StoreError::Io {
                path: path(),
                source,
            };
            assert!(error.hint().contains(word), "{words}: {}", error.hint());
        }
        let full = rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
            None,
        );
        assert!(
            StoreError::sqlite(&path(), full)
                .hint()
                .contains("no space left")
        );
    }
}
