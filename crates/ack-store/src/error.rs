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

#[derive(Debug)]
pub enum StoreProblem {
    Missing,
    Empty,
    NoNotes,
    /// The folder is not one of notes: it has more in it than this.
    TooManyFiles(usize),
    /// The folder contains rules that hosts load themselves.
    Instructions,
    NotADatabase,
    /// The file is neither a graph of server-memory nor a database.
    NotAGraph,
    /// The file holds memories in the form that `import` reads.
    ImportLines,
    /// None of these tables of the database is one that this program knows.
    Foreign(Vec<String>),
    /// Another program holds a lock for longer than a request may wait.
    Locked,
    Corrupt(Box<rusqlite::Error>),
    /// It changed during every one of so many attempts to read it.
    Unsteady(u32),
    /// A file name that SQLite uses belongs to something that is not a file.
    NotAFile(io::Error),
    /// The store must be read from a private copy in this folder, and the copy failed.
    NoCopy(PathBuf, io::Error),
    Io(io::Error),
    /// The decisions about its memories cannot be read, so no status is certain.
    Decisions(io::Error),
    /// The decisions about its memories may lack a rejection, so no approval is certain.
    LostDecisions(LogProblem),
    /// It is unknown who may decide, so no decision counts.
    Signers(io::Error),
    Sqlite(Box<rusqlite::Error>),
}

impl StoreProblem {
    pub fn at(self, path: &Path) -> StoreError {
        StoreError { path: path.to_owned(), problem: self, named: NamedBy::default() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        use StoreProblem as Problem;
        let path = self.path.display();
        match &self.problem {
            Problem::Missing => write!(to, "Memory database not found: `{path}`"),
            Problem::Empty => write!(to, "`{path}` is empty: no database was ever written there"),
            Problem::NoNotes => {
                write!(to, "`{path}` holds no Markdown notes and no store that is known")
            }
            Problem::TooManyFiles(max) => write!(
                to,
                "`{path}` holds more than {max} files and folders, so it is not read as a folder \
                 of notes"
            ),
            Problem::Instructions => {
                write!(to, "`{path}` holds instructions for agents, which hosts load themselves")
            }
            Problem::NotADatabase => write!(to, "`{path}` is not an SQLite database"),
            Problem::NotAGraph => {
                write!(to, "`{path}` is neither server-memory's JSON lines nor an SQLite database")
            }
            Problem::ImportLines => write!(to, "`{path}` is a file to import, not a store"),
            Problem::Foreign(tables) => write!(
                to,
                "`{path}` holds no memories: none of its tables ({}) is known; a table `memories` \
                 needs an id and a title",
                list(tables)
            ),
            Problem::Locked => write!(to, "`{path}` is locked by another program"),
            Problem::Corrupt(source) => write!(to, "`{path}` is damaged: {source}"),
            Problem::Unsteady(attempts) => {
                write!(to, "`{path}` changed during each of {attempts} attempts to read it")
            }
            Problem::NoCopy(folder, source) => write!(
                to,
                "cannot make a private copy of `{path}` in `{}`: {source}",
                folder.display()
            ),
            Problem::NotAFile(source) | Problem::Io(source) => {
                write!(to, "cannot read `{path}`: {source}")
            }
            Problem::Sqlite(source) => write!(to, "cannot read `{path}`: {source}"),
            Problem::Decisions(source) => {
                write!(to, "cannot read the decisions in `{path}`: {source}")
            }
            Problem::LostDecisions(problem) => {
                write!(to, "the decisions in `{path}` cannot be relied on: {problem}")
            }
            Problem::Signers(source) => {
                write!(to, "cannot read the signers in `{path}`: {source}")
            }
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        use StoreProblem as Problem;
        match &self.problem {
            Problem::Corrupt(source) | Problem::Sqlite(source) => Some(&**source),
            Problem::NotAFile(source)
            | Problem::NoCopy(_, source)
            | Problem::Io(source)
            | Problem::Decisions(source)
            | Problem::Signers(source) => Some(source),
            Problem::LostDecisions(problem) => Some(problem),
            _ => None,
        }
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
        let advice = match (&self.problem, &self.named) {
            (Problem::Missing, By::Path) => "name an existing database or folder of notes",
            (Problem::Missing | Problem::NotADatabase, By::Database) => CHECK_DB,
            (Problem::Missing, By::Scope(scope)) => {
                return vec![
                    import_into(scope, "imports memories"),
                    set_store(scope, "names an existing store instead"),
                ];
            }
            (Problem::Missing, By::Manifest(scope)) => {
                let command = format!("scopes remove {}", quoted(scope));
                return vec![
                    set_store(scope, "names its new place, if it moved"),
                    Hint::command(command, "removes the scope, if it is gone"),
                ];
            }
            (Problem::Empty, By::Scope(scope)) => {
                return vec![import_into(
                    scope,
                    "imports memories, once the empty file is removed",
                )];
            }
            (Problem::Empty, By::Database) => {
                return vec![Hint::advice(format!("{WAIT}, or {CHECK_DB}"))];
            }
            (Problem::Empty, _) => WAIT,
            (Problem::NotADatabase, By::Path) => "name a database, or a folder of notes",
            (Problem::NotADatabase, By::Scope(_)) => RESTORE,
            (Problem::NotADatabase, By::Manifest(scope)) => {
                return vec![Hint::advice(RESTORE), set_store(scope, "names another store")];
            }
            (Problem::Foreign(_), By::Path | By::Scope(_)) => TABLES,
            (Problem::Foreign(_), By::Database) => {
                return vec![Hint::advice(CHECK_DB), Hint::advice(TABLES)];
            }
            (Problem::Foreign(_), By::Manifest(scope)) => {
                return vec![Hint::advice(TABLES), set_store(scope, "names another store")];
            }
            (Problem::TooManyFiles(_), By::Manifest(scope)) => {
                return vec![set_store(scope, "names the folder of the notes alone")];
            }
            (Problem::TooManyFiles(_), _) => "name the folder of the notes alone",
            (Problem::NoNotes, _) => "name a database, or a folder with `.md` files",
            (Problem::Instructions, _) => "name a folder of notes instead",
            (Problem::NotAGraph, _) => {
                "check the scope's `store` path; restore the file from a backup if it should be \
                 server-memory's file"
            }
            (Problem::ImportLines, _) => {
                return vec![
                    Hint::command("import FILE --scope NAME", "imports it"),
                    Hint::advice("or name the folder that it is in"),
                ];
            }
            (Problem::Locked, _) => "try again after the other program has finished writing",
            (Problem::Corrupt(_), _) => {
                "restore it from a backup, or save what can be read with `sqlite3 FILE .recover`"
            }
            (Problem::Unsteady(_), _) => "try again; another program keeps changing it",
            (Problem::NotAFile(_), _) => "move it elsewhere: SQLite needs this file name",
            (Problem::NoCopy(..), _) => {
                "free some space there, or set `TMPDIR` to a writable folder with enough space"
            }
            (Problem::Io(source), _) => {
                return io_hint(source).map_or_else(unreadable, |hint| vec![hint]);
            }
            (Problem::Decisions(source), _) => {
                let advice = "until it can be read, this scope serves nothing; make it a regular, \
                              readable file of JSON lines, or restore it";
                return vec![io_hint(source).unwrap_or(Hint::advice(advice))];
            }
            (Problem::Signers(source), _) => {
                let advice = "make `signers` in scope.toml name a file in the format of \
                              allowed_signers, see ssh-keygen(1)";
                return vec![io_hint(source).unwrap_or(Hint::advice(advice))];
            }
            (Problem::LostDecisions(_), _) => {
                return vec![
                    Hint::advice(
                        "until then this scope serves nothing: restore the file from a copy or \
                         from git",
                    ),
                    Hint::command("review --accept-log", "accepts it as it is"),
                ];
            }
            (Problem::Sqlite(source), _) => return sqlite_hints(source).unwrap_or_else(unreadable),
        };
        vec![Hint::advice(advice)]
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
