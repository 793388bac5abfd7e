//! Why a store cannot be read, with a stable code and a hint for each case.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use ack_api::hint::OwnNames;
use ack_api::shell::quoted;
use ack_api::text::list;
use ack_api::{ErrorCode, Hint, Message};

use crate::decisions::LogProblem;
use crate::hint::{how_opened, io_hint, sqlite_hints};

/// How a store was named. Its user changes the path there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NamedBy {
    #[default]
    Path,
    /// `--db` or its environment variable.
    Database,
    /// The scope of this name, whose folder contains the store.
    Scope(String),
    Manifest(String),
}

#[derive(Debug)]
pub struct StoreError {
    pub path: PathBuf,
    pub problem: StoreProblem,
    named: NamedBy,
}

/// What is wrong, mostly as the end of a sentence that begins with the path.
#[derive(Debug, thiserror::Error)]
pub enum StoreProblem {
    #[error("is missing")]
    Missing,
    #[error("is empty: no database was ever written there")]
    Empty,
    #[error("holds no Markdown notes and no store that is known")]
    NoNotes,
    #[error("holds more than {0} files and folders, so it is not read as a folder of notes")]
    TooManyFiles(usize),
    #[error("holds instructions for agents, which hosts load themselves")]
    Instructions,
    #[error("is not an SQLite database")]
    NotADatabase,
    #[error("is neither server-memory's JSON lines nor an SQLite database")]
    NotAGraph,
    #[error("is a file to import, not a store")]
    ImportLines,
    #[error(
        "holds no memories: none of its tables ({}) is known; a table `memories` needs an id and a \
         title",
        list(.0)
    )]
    Foreign(Vec<String>),
    /// For longer than a request may wait.
    #[error("is locked by another program")]
    Locked,
    #[error("is damaged: {0}")]
    Corrupt(#[source] Box<rusqlite::Error>),
    #[error("changed during each of {0} attempts to read it")]
    Unsteady(u32),
    /// A file name that SQLite uses belongs to something that is not a file.
    #[error("{0}")]
    NotAFile(#[source] io::Error),
    /// The store must be read from a private copy in this folder, and the copy failed.
    #[error("{1}")]
    NoCopy(PathBuf, #[source] io::Error),
    #[error("{0}")]
    Io(#[source] io::Error),
    /// The decisions about its memories cannot be read, so no status is certain.
    #[error("{0}")]
    Decisions(#[source] io::Error),
    /// The decisions about its memories may lack a rejection, so no approval is certain.
    #[error("{0}")]
    LostDecisions(#[source] LogProblem),
    /// It is unknown who may decide, so no decision counts.
    #[error("{0}")]
    Signers(#[source] io::Error),
    #[error("{0}")]
    Sqlite(#[source] Box<rusqlite::Error>),
}

impl StoreProblem {
    pub fn at(self, path: &Path) -> StoreError {
        StoreError { path: path.to_owned(), problem: self, named: NamedBy::default() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        use StoreProblem as Problem;
        let Self { path, problem, .. } = self;
        let path = path.display();
        match problem {
            Problem::Missing => write!(to, "Memory database not found: `{path}`"),
            Problem::NoCopy(folder, _) => {
                let folder = folder.display();
                write!(to, "cannot make a private copy of `{path}` in `{folder}`: {problem}")
            }
            Problem::NotAFile(_) | Problem::Io(_) | Problem::Sqlite(_) => {
                write!(to, "cannot read `{path}`: {problem}")
            }
            Problem::Decisions(_) => {
                write!(to, "cannot read the decisions in `{path}`: {problem}")
            }
            Problem::LostDecisions(_) => {
                write!(to, "the decisions in `{path}` cannot be relied on: {problem}")
            }
            Problem::Signers(_) => write!(to, "cannot read the signers in `{path}`: {problem}"),
            _ => write!(to, "`{path}` {problem}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// A failure of SQLite while a store is read. [`crate::Store`] adds which one it is.
impl From<rusqlite::Error> for StoreError {
    fn from(source: rusqlite::Error) -> Self {
        Self::sqlite(Path::new(""), source)
    }
}

impl StoreError {
    /// Turns an SQLite failure on `path` into a case that a person can act on.
    pub fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let problem = match source.sqlite_error_code() {
            Some(Code::NotADatabase) => StoreProblem::NotADatabase,
            Some(Code::DatabaseCorrupt) => StoreProblem::Corrupt(source.into()),
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => StoreProblem::Locked,
            _ => StoreProblem::Sqlite(source.into()),
        };
        problem.at(path)
    }

    pub const fn code(&self) -> ErrorCode {
        use StoreProblem as Problem;
        match self.problem {
            Problem::Missing => ErrorCode::StoreNotFound,
            Problem::Empty | Problem::NoNotes | Problem::Instructions => ErrorCode::StoreEmpty,
            Problem::NotADatabase | Problem::NotAGraph | Problem::ImportLines => {
                ErrorCode::StoreNotSqlite
            }
            Problem::Foreign(_) => ErrorCode::StoreForeign,
            Problem::Locked => ErrorCode::StoreLocked,
            Problem::Corrupt(_) => ErrorCode::StoreCorrupt,
            Problem::Unsteady(_) => ErrorCode::StoreUnsteady,
            _ => ErrorCode::StoreUnreadable,
        }
    }

    /// Adds which store it is, if that is not known yet, and how it was named.
    #[must_use]
    pub fn of_store(mut self, path: &Path, named: &NamedBy) -> Self {
        if self.path.as_os_str().is_empty() {
            path.clone_into(&mut self.path);
        }
        self.named.clone_from(named);
        self
    }

    pub fn hints(&self) -> Vec<Hint> {
        use NamedBy as By;
        use StoreProblem as Problem;
        const WAIT: &str = "wait until its program has written to it, or remove the empty file";
        const RESTORE: &str = "restore the file from a backup";
        const CHECK_DB: &str = "check the path that `--db` or `ACK_MEM_DB` names";
        const TABLES: &str = "`schemas/scope.sql` describes the tables that this program reads";
        let advice = |text: &'static str| vec![Hint::advice(text)];
        match (&self.problem, &self.named) {
            (Problem::Missing, By::Path) => advice("name an existing database or folder of notes"),
            (Problem::Missing | Problem::NotADatabase, By::Database) => advice(CHECK_DB),
            (Problem::Missing, By::Scope(scope)) => vec![
                import_into(scope, "imports memories"),
                set_store(scope, "names an existing store instead"),
            ],
            (Problem::Missing, By::Manifest(scope)) => {
                let remove = format!("scopes remove {}", quoted(scope));
                vec![
                    set_store(scope, "names its new place, if it moved"),
                    Hint::command(remove, "removes the scope, if it is gone"),
                ]
            }
            (Problem::Empty, By::Scope(scope)) => {
                vec![import_into(scope, "imports memories, once the empty file is removed")]
            }
            (Problem::Empty, By::Database) => {
                vec![Hint::advice(format!("{WAIT}, or {CHECK_DB}"))]
            }
            (Problem::Empty, _) => advice(WAIT),
            (Problem::NotADatabase, By::Path) => advice("name a database, or a folder of notes"),
            (Problem::NotADatabase, By::Scope(_)) => advice(RESTORE),
            (Problem::NotADatabase, By::Manifest(scope)) => {
                vec![Hint::advice(RESTORE), set_store(scope, "names another store")]
            }
            (Problem::Foreign(_), By::Path | By::Scope(_)) => advice(TABLES),
            (Problem::Foreign(_), By::Database) => {
                vec![Hint::advice(CHECK_DB), Hint::advice(TABLES)]
            }
            (Problem::Foreign(_), By::Manifest(scope)) => {
                vec![Hint::advice(TABLES), set_store(scope, "names another store")]
            }
            (Problem::TooManyFiles(_), By::Manifest(scope)) => {
                vec![set_store(scope, "names the folder of the notes alone")]
            }
            (Problem::TooManyFiles(_), _) => advice("name the folder of the notes alone"),
            (Problem::NoNotes, _) => advice("name a database, or a folder with `.md` files"),
            (Problem::Instructions, _) => advice("name a folder of notes instead"),
            (Problem::NotAGraph, _) => advice(
                "check the scope's `store` path; restore the file from a backup if it should be \
                 server-memory's file",
            ),
            (Problem::ImportLines, _) => vec![
                Hint::command("import FILE --scope NAME", "imports it"),
                Hint::advice("or name the folder that it is in"),
            ],
            (Problem::Locked, _) => {
                advice("try again after the other program has finished writing")
            }
            (Problem::Corrupt(_), _) => advice(
                "restore it from a backup, or save what can be read with `sqlite3 FILE .recover`",
            ),
            (Problem::Unsteady(_), _) => advice("try again; another program keeps changing it"),
            (Problem::NotAFile(_), _) => advice("move it elsewhere: SQLite needs this file name"),
            (Problem::NoCopy(..), _) => advice(
                "free some space there, or set `TMPDIR` to a writable folder with enough space",
            ),
            (Problem::Io(source), _) => io_hint(source).map_or_else(unreadable, |hint| vec![hint]),
            (Problem::Decisions(source), _) => {
                let advice = "until it can be read, this scope serves nothing; make it a regular, \
                              readable file of JSON lines, or restore it";
                vec![io_hint(source).unwrap_or(Hint::advice(advice))]
            }
            (Problem::Signers(source), _) => {
                let advice = "make `signers` in scope.toml name a file in the format of \
                              allowed_signers, see ssh-keygen(1)";
                vec![io_hint(source).unwrap_or(Hint::advice(advice))]
            }
            (Problem::LostDecisions(_), _) => vec![
                Hint::advice(
                    "until then this scope serves nothing: restore the file from a copy or from git",
                ),
                Hint::command("review --accept-log", "accepts it as it is"),
            ],
            (Problem::Sqlite(source), _) => sqlite_hints(source).unwrap_or_else(unreadable),
        }
    }

    /// What to do next, in the words of an agent that has the four tools.
    pub fn hint(&self) -> String {
        ack_api::hint::render(&self.hints(), &OwnNames::Agent).unwrap_or_default()
    }

    pub fn as_message(&self) -> Message {
        Message::new(self.to_string()).with_all(self.hints())
    }
}

fn import_into(scope: &str, outcome: &'static str) -> Hint {
    Hint::command(format!("import FILE --scope {}", quoted(scope)), outcome)
}

fn set_store(scope: &str, outcome: &'static str) -> Hint {
    Hint::command(format!("scopes set {} store=PATH", quoted(scope)), outcome)
}

fn unreadable() -> Vec<Hint> {
    vec![Hint::advice("check the file's permissions"), how_opened()]
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::libc;

    use super::*;

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
            let hint = StoreProblem::Io(source).at(Path::new("memory.db")).hint();
            assert!(hint.contains(word), "{number}: {hint}");
        }
        let full = rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
            None,
        );
        assert!(StoreError::sqlite(Path::new("memory.db"), full).hint().contains("no space left"));
    }
}
