//! Why a store cannot be read, with a stable code and a hint for each case.

use std::path::{Path, PathBuf};

use ack_api::hint::OwnNames;
use ack_api::text::list;
use ack_api::{ErrorCode, Hint, Message};

use crate::decisions::LogProblem;
use crate::hint::{how_opened, io_hint, sqlite_hints};

/// How a store was named. Its user changes the path there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NamedBy {
    /// A path.
    #[default]
    Path,
    /// `--db` or its environment variable.
    Database,
    /// The scope of this name, whose folder contains the store.
    Scope(String),
    /// The manifest of the scope of this name.
    Manifest(String),
}

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file does not exist.
    #[error("Memory database not found: `{}`", path.display())]
    Missing {
        /// The configured path.
        path: PathBuf,
        /// How it was named.
        named: NamedBy,
    },
    /// The file is empty.
    #[error("`{}` is empty: no database was ever written there", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// How it was named.
        named: NamedBy,
    },
    /// The folder contains no notes.
    #[error("`{}` holds no Markdown notes and no store that is known", path.display())]
    NoNotes {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is not one of notes: it has too much in it.
    #[error(
        "`{}` holds more than {max} files and folders, so it is not read as a folder of notes",
        path.display()
    )]
    TooManyFiles {
        /// The folder.
        path: PathBuf,
        /// How many were visited.
        max: usize,
        /// How it was named.
        named: NamedBy,
    },
    /// The folder contains rules that hosts load themselves.
    #[error("`{}` holds instructions for agents, which hosts load themselves", path.display())]
    Instructions {
        /// The folder.
        path: PathBuf,
    },
    /// The file is not an SQLite database.
    #[error("`{}` is not an SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// How it was named.
        named: NamedBy,
    },
    /// The file is neither a graph of server-memory nor a database.
    #[error("`{}` is neither server-memory's JSON lines nor an SQLite database", path.display())]
    NotAGraph {
        /// The file.
        path: PathBuf,
    },
    /// The file holds memories in the form that `import` reads.
    #[error("`{}` is a file to import, not a store", path.display())]
    ImportLines {
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
        /// How it was named.
        named: NamedBy,
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
    /// The decisions about its memories may lack a rejection, so no approval is certain.
    #[error("the decisions in `{}` cannot be relied on: {problem}", path.display())]
    LostDecisions {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        problem: LogProblem,
    },
    /// It is unknown who may decide, so no decision counts.
    #[error("cannot read the signers in `{}`: {source}", path.display())]
    Signers {
        /// The list.
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
            Some(rusqlite::ErrorCode::NotADatabase) => {
                let named = NamedBy::default();
                Self::NotADatabase { path, named }
            }
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
            Self::Missing { path, .. }
            | Self::Empty { path, .. }
            | Self::NoNotes { path }
            | Self::TooManyFiles { path, .. }
            | Self::Instructions { path }
            | Self::NotADatabase { path, .. }
            | Self::NotAGraph { path }
            | Self::ImportLines { path }
            | Self::Foreign { path, .. }
            | Self::Locked { path }
            | Self::Corrupt { path, .. }
            | Self::Unsteady { path, .. }
            | Self::NotAFile { path, .. }
            | Self::NoCopy { path, .. }
            | Self::Io { path, .. }
            | Self::Decisions { path, .. }
            | Self::LostDecisions { path, .. }
            | Self::Signers { path, .. }
            | Self::Sqlite { path, .. } => path,
        }
    }

    /// The stable code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Missing { .. } => ErrorCode::StoreNotFound,
            Self::Empty { .. } | Self::NoNotes { .. } | Self::Instructions { .. } => {
                ErrorCode::StoreEmpty
            }
            Self::NotADatabase { .. } | Self::NotAGraph { .. } | Self::ImportLines { .. } => {
                ErrorCode::StoreNotSqlite
            }
            Self::Foreign { .. } => ErrorCode::StoreForeign,
            Self::Locked { .. } => ErrorCode::StoreLocked,
            Self::Corrupt { .. } => ErrorCode::StoreCorrupt,
            Self::Unsteady { .. } => ErrorCode::StoreUnsteady,
            Self::NotAFile { .. }
            | Self::NoCopy { .. }
            | Self::Io { .. }
            | Self::Decisions { .. }
            | Self::TooManyFiles { .. }
            | Self::LostDecisions { .. }
            | Self::Signers { .. }
            | Self::Sqlite { .. } => ErrorCode::StoreUnreadable,
        }
    }

    /// Adds how the store was named, for the hint.
    #[must_use]
    pub fn named_by(mut self, by: &NamedBy) -> Self {
        if let Self::Missing { named, .. }
        | Self::Empty { named, .. }
        | Self::NotADatabase { named, .. }
        | Self::TooManyFiles { named, .. }
        | Self::Foreign { named, .. } = &mut self
        {
            named.clone_from(by);
        }
        self
    }

    /// What to do next.
    pub fn hints(&self) -> Vec<Hint> {
        let advice = match self {
            Self::Missing { named, .. } => return missing(named),
            Self::Empty { named, .. } => return empty(named),
            Self::NotADatabase { named, .. } => return not_a_database(named),
            Self::Foreign { named, .. } => return foreign(named),
            Self::TooManyFiles { named, .. } => return too_many_files(named),
            Self::NoNotes { .. } => "name a database, or a folder with `.md` files",
            Self::Instructions { .. } => "name a folder of notes instead",
            Self::NotAGraph { .. } => {
                "check the scope's `store` path; restore the file from a backup if it should be server-memory's file"
            }
            Self::ImportLines { .. } => {
                return vec![
                    Hint::command("import FILE --scope NAME", "imports it"),
                    Hint::advice("or name the folder that it is in"),
                ];
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
            Self::Io { source, .. } => {
                return io_hint(source).map_or_else(unreadable, |hint| vec![hint]);
            }
            Self::Decisions { source, .. } => {
                return vec![io_hint(source).unwrap_or(Hint::advice(UNREADABLE_LOG_HINT))];
            }
            Self::Signers { source, .. } => {
                let advice = "make `signers` in scope.toml name a file in the format of \
                              allowed_signers, see ssh-keygen(1)";
                return vec![io_hint(source).unwrap_or(Hint::advice(advice))];
            }
            Self::LostDecisions { .. } => {
                return vec![
                    Hint::advice(
                        "until then this scope serves nothing: restore the file from a copy or \
                         from git",
                    ),
                    Hint::command("review --accept-log", "accepts it as it is"),
                ];
            }
            Self::Sqlite { source, .. } => return sqlite_hints(source).unwrap_or_else(unreadable),
        };
        vec![Hint::advice(advice)]
    }

    /// What to do next, in the words of an agent that has the four tools.
    pub fn hint(&self) -> String {
        ack_api::hint::render(&self.hints(), &OwnNames::Agent).unwrap_or_default()
    }

    /// The error and what to do next, as a message of an answer.
    pub fn as_message(&self) -> Message {
        Message::new(self.to_string()).with_all(self.hints())
    }
}

fn missing(named: &NamedBy) -> Vec<Hint> {
    match named {
        NamedBy::Path => vec![Hint::advice("name an existing database or folder of notes")],
        NamedBy::Database => vec![Hint::advice(CHECK_DB_HINT)],
        NamedBy::Scope(scope) => vec![
            import_into(scope),
            set_store(scope, "names an existing store instead"),
        ],
        NamedBy::Manifest(scope) => vec![
            set_store(scope, "names its new place, if it moved"),
            Hint::command(
                format!("scopes remove {}", quoted(scope)),
                "removes the scope, if it is gone",
            ),
        ],
    }
}

fn empty(named: &NamedBy) -> Vec<Hint> {
    const WAIT: &str = "wait until its program has written to it, or remove the empty file";
    match named {
        NamedBy::Scope(scope) => vec![Hint::command(
            format!("import FILE --scope {}", quoted(scope)),
            "imports memories, once the empty file is removed",
        )],
        NamedBy::Database => vec![Hint::advice(format!("{WAIT}, or {CHECK_DB_HINT}"))],
        NamedBy::Path | NamedBy::Manifest(_) => vec![Hint::advice(WAIT)],
    }
}

fn not_a_database(named: &NamedBy) -> Vec<Hint> {
    const RESTORE: &str = "restore the file from a backup";
    match named {
        NamedBy::Path => vec![Hint::advice("name a database, or a folder of notes")],
        NamedBy::Database => vec![Hint::advice(CHECK_DB_HINT)],
        NamedBy::Scope(_) => vec![Hint::advice(RESTORE)],
        NamedBy::Manifest(scope) => vec![
            Hint::advice(RESTORE),
            set_store(scope, "names another store"),
        ],
    }
}

fn foreign(named: &NamedBy) -> Vec<Hint> {
    let tables = Hint::advice("`schemas/scope.sql` describes the tables that this program reads");
    match named {
        NamedBy::Path | NamedBy::Scope(_) => vec![tables],
        NamedBy::Database => vec![Hint::advice(CHECK_DB_HINT), tables],
        NamedBy::Manifest(scope) => vec![tables, set_store(scope, "names another store")],
    }
}

fn too_many_files(named: &NamedBy) -> Vec<Hint> {
    match named {
        NamedBy::Manifest(scope) => vec![set_store(scope, "names the folder of the notes alone")],
        _ => vec![Hint::advice("name the folder of the notes alone")],
    }
}

fn import_into(scope: &str) -> Hint {
    let command = format!("import FILE --scope {}", quoted(scope));
    Hint::command(command, "imports memories")
}

fn set_store(scope: &str, outcome: &'static str) -> Hint {
    Hint::command(format!("scopes set {} store=PATH", quoted(scope)), outcome)
}

/// What to do if nothing more specific is known.
fn unreadable() -> Vec<Hint> {
    vec![Hint::advice("check the file's permissions"), how_opened()]
}

/// A scope's name, quoted for the shell if necessary.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match name.chars().all(plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// The hint for a single database that cannot be read.
const CHECK_DB_HINT: &str = "check the path that `--db` or `ACK_MEM_DB` names";
/// The hint for a decision log that cannot be read.
const UNREADABLE_LOG_HINT: &str = "until it can be read, this scope serves nothing; make it a regular, \
                            readable file of JSON lines, or restore it";

#[cfg(test)]
mod tests {
    use std::io;

    use nix::libc;

    use super::*;

    fn path() -> PathBuf {
        PathBuf::from("/somewhere/memory.db")
    }

    #[test]
    fn each_failure_of_the_system_has_its_own_next_step() {
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
    #[test]
    fn a_missing_store_has_a_hint_for_the_way_it_was_named() {
        let hint = |named| {
            StoreError::Missing {
                path: path(),
                named,
            }
            .hint()
        };
        let scope = || "my scope".to_owned();
        for (named, has, lacks) in [
            (NamedBy::Database, "--db", "scopes set"),
            (NamedBy::Path, "existing", "scopes set"),
            (
                NamedBy::Scope(scope()),
                "import FILE --scope 'my scope'",
                "NAME",
            ),
            (
                NamedBy::Manifest(scope()),
                "scopes set 'my scope' store=PATH",
                "import",
            ),
            (
                NamedBy::Manifest(scope()),
                "scopes remove 'my scope'",
                "NAME",
            ),
        ] {
            let hint = hint(named.clone());
            assert!(
                hint.contains(has) && !hint.contains(lacks),
                "{named:?}: {hint}"
            );
        }
    }
}
