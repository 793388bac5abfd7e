//! What can go wrong, each with a stable code and the next step for whoever reads it.

mod remedy;

use std::path::{Path, PathBuf};

pub use self::remedy::{remedy, sqlite_remedy};
use crate::upstream::UpstreamError;
use ack_api::cancel::Stopped;
use ack_api::memory::Status;
use ack_api::text;
use ack_api::{ErrorBody, ErrorCode};

/// Any failure of an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument has a value that is not allowed.
    #[error("`{argument}` is {value}; allowed: {allowed}")]
    InvalidArgument {
        /// The argument's name.
        argument: String,
        /// The value as it came.
        value: String,
        /// What is allowed.
        allowed: String,
        /// The nearest allowed values.
        nearest: Vec<String>,
        /// Corrected arguments, as JSON.
        example: Option<String>,
    },
    /// An argument that the tool does not have.
    #[error("`{argument}` is no argument of {operation}")]
    UnknownArgument {
        /// The tool or command.
        operation: String,
        /// The argument's name.
        argument: String,
        /// The arguments it has.
        known: Vec<String>,
    },
    /// A cursor that belongs to no page of this request.
    #[error("the cursor does not belong to this request: {reason}")]
    InvalidCursor {
        /// What does not fit.
        reason: &'static str,
    },
    /// A scope nobody knows.
    #[error("there is no scope `{name}`")]
    ScopeNotFound {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
        /// The projects that these scopes list, which may be named as well.
        projects: Vec<String>,
    },
    /// The scope that this server is pinned to. No other is named: who is pinned may know of none.
    #[error("there is no scope `{name}`, which this server is pinned to by {by}")]
    PinNotFound {
        /// The name it is pinned to.
        name: String,
        /// What pins it.
        by: String,
    },
    /// A scope other than the one this server is pinned to.
    #[error("scope `{name}` is refused: this server is pinned to scope `{pinned}`")]
    ScopeRefused {
        /// The name asked for.
        name: String,
        /// The scope it is pinned to.
        pinned: String,
    },
    /// A scope whose manifest is broken, so that nobody knows who may read it.
    #[error("scope `{name}` cannot be read: {reason}")]
    ScopeUnusable {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// An id that none of the scopes searched holds.
    #[error("there is no memory `{id}` in {}", list(scopes))]
    MemoryNotFound {
        /// The id asked for.
        id: String,
        /// Where it was looked for.
        scopes: Vec<String>,
        /// Ids like it.
        nearest: Vec<String>,
    },
    /// A memory that the status filter does not let through.
    #[error("memory `{id}` in scope `{scope}` is `{status}`")]
    MemoryNotServed {
        /// The id asked for.
        id: String,
        /// The scope that holds it.
        scope: String,
        /// Its status.
        status: Status,
    },
    /// A memory whose status is no word this program knows.
    #[error("memory `{id}` in scope `{scope}` has the status `{word}`, which is no known one")]
    UnknownStatus {
        /// The id asked for.
        id: String,
        /// The scope that holds it.
        scope: String,
        /// Its status, as stored.
        word: String,
    },
    /// Nothing to read anywhere.
    #[error("Memory database not found: no scope under `{}`", root.join("scopes").display())]
    NoScopes {
        /// The scope root.
        root: PathBuf,
    },
    /// A store that cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of settings that cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An import that was refused.
    #[error(transparent)]
    Import(#[from] crate::import::ImportError),
    /// A defect in this program: a request ended in a panic.
    #[error("internal error while answering {operation}: {message}")]
    Internal {
        /// The tool or command.
        operation: String,
        /// What the panic said.
        message: String,
    },
    /// A transformer that cannot be used.
    #[error(transparent)]
    Model(#[from] crate::encoder::transformer::ModelError),
    /// A model that cannot be fetched.
    #[error("cannot fetch the model: {0}")]
    Fetch(String),
    /// The vector table of a scope cannot be built.
    #[error("the vector table of scope `{scope}` cannot be built: {source}")]
    Table {
        /// The scope.
        scope: String,
        /// Why.
        source: crate::table::TableError,
    },
    /// The server cannot listen on HTTP.
    #[error(transparent)]
    Serve(#[from] crate::mcp::http::ServeError),
    /// Another MCP server that was to answer.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The request was told to stop, or took longer than it may.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A file or stream that could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why a store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file.
    #[error("Memory database not found: `{}`", path.display())]
    Missing {
        /// The path looked at.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("`{}` is empty: no database was ever written there", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is no SQLite database.
    #[error("`{}` is not an SQLite database", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database with no table this program knows.
    #[error("`{}` holds no memories: none of its tables ({}) has an id and a title", path.display(), list(tables))]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The tables there are.
        tables: Vec<String>,
    },
    /// Another program holds a lock for longer than a request may wait.
    #[error("`{}` is locked by another program", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Damaged contents.
    #[error("`{}` is damaged: {source}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// It changed under every attempt to read it.
    #[error("`{}` changed under every one of {attempts} attempts to read it", path.display())]
    Unsteady {
        /// The file.
        path: PathBuf,
        /// How often it was tried.
        attempts: u32,
    },
    /// Beside the database stands something in the place of a file.
    #[error("cannot read `{}`: {source}", path.display())]
    NotAFile {
        /// What is no file.
        path: PathBuf,
        /// What it is.
        source: std::io::Error,
    },
    /// It has to be read from a private copy, and none can be made.
    #[error("no private copy of `{}` can be made in `{}`: {source}", path.display(), folder.display())]
    NoCopy {
        /// The file.
        path: PathBuf,
        /// The temporary folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Any other failure of the file system.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Any other failure of SQLite.
    #[error("cannot read `{}`: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Sorts an SQLite failure on `path` into the cases a person can act on.
    pub fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::NotADatabase { path },
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, source },
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Self::Locked { path },
            _ => Self::Sqlite { path, source },
        }
    }

    /// The database.
    pub fn path(&self) -> &Path {
        match self {
            Self::Missing { path }
            | Self::Empty { path }
            | Self::NotADatabase { path }
            | Self::Foreign { path, .. }
            | Self::Locked { path }
            | Self::Corrupt { path, .. }
            | Self::Unsteady { path, .. }
            | Self::NotAFile { path, .. }
            | Self::NoCopy { path, .. }
            | Self::Io { path, .. }
            | Self::Sqlite { path, .. } => path,
        }
    }

    /// The stable code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Missing { .. } => ErrorCode::StoreNotFound,
            Self::Empty { .. } => ErrorCode::StoreEmpty,
            Self::NotADatabase { .. } => ErrorCode::StoreNotSqlite,
            Self::Foreign { .. } => ErrorCode::StoreForeign,
            Self::Locked { .. } => ErrorCode::StoreLocked,
            Self::Corrupt { .. } => ErrorCode::StoreCorrupt,
            Self::Unsteady { .. } => ErrorCode::StoreUnsteady,
            Self::NotAFile { .. } | Self::NoCopy { .. } | Self::Io { .. } | Self::Sqlite { .. } => ErrorCode::StoreUnreadable,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "create it with `ack-memory import FILE --scope NAME`, or point the scope at an existing store with `ack-memory scopes add NAME --store PATH`"
            }
            Self::Empty { .. } => "wait until its program has written to it, or import into it with `ack-memory import FILE --scope NAME`",
            Self::NotADatabase { .. } => "check the scope's `store` path; restore the file from a backup if it should be a database",
            Self::Foreign { .. } => "check the scope's `store` path; the tables this program reads are described in schemas/scope.sql",
            Self::Locked { .. } => "try again when the other program has finished its write",
            Self::Corrupt { .. } => "restore it from a backup, or save what can be read with `sqlite3 FILE .recover`",
            Self::Unsteady { .. } => "try again; another program rewrites it without pause",
            Self::NotAFile { .. } => "move it away: SQLite keeps files of its own under this name",
            Self::NoCopy { .. } => "make room there, or set TMPDIR to a folder with room that may be written",
            Self::Io { source, .. } => remedy(source).unwrap_or(UNREADABLE),
            Self::Sqlite { source, .. } => sqlite_remedy(source).unwrap_or(UNREADABLE),
        }
    }
}

/// The next step where a store cannot be read and nothing more is known.
const UNREADABLE: &str = "check the file's permissions; `ack-memory doctor` shows how each scope was opened";
/// Why a file of settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("`{}`: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        message: String,
        /// The keys that are nearest to an unknown one.
        nearest: Vec<String>,
        /// The keys there are.
        known: Vec<String>,
    },
    /// What it says of tools and upstream servers cannot be.
    #[error("`{}`: {message}", path.display())]
    Offer {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line and the key.
        message: String,
        /// The nearest names to one that is not there.
        nearest: Vec<String>,
        /// The names that are allowed.
        known: Vec<String>,
    },
    /// There is no home folder to look in.
    #[error("no home folder was found, so there is no default scope root")]
    NoHome,
}

impl SettingsError {
    /// The file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. } | Self::Invalid { path, .. } | Self::Offer { path, .. } => Some(path),
            Self::NoHome => None,
        }
    }

    /// What is wrong, without the place, which may be nobody's business but the owner's; safe to print.
    pub fn reason(&self) -> String {
        let reason = match self {
            Self::Unreadable { source, .. } => format!("it cannot be read: {source}"),
            Self::Invalid { message, .. } | Self::Offer { message, .. } => message.clone(),
            Self::NoHome => self.to_string(),
        };
        text::line(&reason, 400)
    }

    /// The same as a failure of what `serve` offers.
    pub fn of_offer(self) -> Self {
        match self {
            Self::Invalid {
                path,
                message,
                nearest,
                known,
            } => Self::Offer {
                path,
                message,
                nearest,
                known,
            },
            other => other,
        }
    }
}

impl Error {
    /// An argument with a bad value and no nearest one.
    pub fn invalid(argument: &str, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::InvalidArgument {
            argument: argument.to_owned(),
            value: value.into(),
            allowed: allowed.into(),
            nearest: Vec::new(),
            example: None,
        }
    }

    /// The stable code, as the documentation lists it.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidArgument { .. } => ErrorCode::InvalidArgument,
            Self::UnknownArgument { .. } => ErrorCode::UnknownArgument,
            Self::InvalidCursor { .. } => ErrorCode::InvalidCursor,
            Self::ScopeNotFound { .. } | Self::PinNotFound { .. } => ErrorCode::ScopeNotFound,
            Self::ScopeRefused { .. } => ErrorCode::ScopeRefused,
            Self::ScopeUnusable { .. } => ErrorCode::ScopeUnusable,
            Self::MemoryNotFound { .. } => ErrorCode::MemoryNotFound,
            Self::MemoryNotServed { .. } | Self::UnknownStatus { .. } => ErrorCode::MemoryNotServed,
            Self::NoScopes { .. } => ErrorCode::NoScopes,
            Self::Store(error) => error.code(),
            Self::Settings(_) => ErrorCode::InvalidSettings,
            Self::Import(_) => ErrorCode::ImportRefused,
            Self::Internal { .. } => ErrorCode::InternalError,
            Self::Table { .. } => ErrorCode::IndexFailed,
            Self::Model(_) | Self::Fetch(_) => ErrorCode::ModelUnusable,
            Self::Serve(_) => ErrorCode::CannotServe,
            Self::Upstream(UpstreamError::Unavailable { .. }) => ErrorCode::UpstreamUnavailable,
            Self::Upstream(UpstreamError::Refused { .. }) => ErrorCode::UpstreamRefused,
            Self::Upstream(UpstreamError::TimedOut { .. }) => ErrorCode::UpstreamTimeout,
            Self::Upstream(UpstreamError::Failed { .. }) => ErrorCode::UpstreamFailed,
            Self::Stopped(stopped) => stopped.code(),
            Self::Io { .. } => ErrorCode::IoError,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::InvalidArgument { .. } | Self::UnknownArgument { .. } => return None,
            Self::InvalidCursor { .. } => "leave `cursor` out to start from the first page, and repeat the other arguments unchanged".into(),
            Self::ScopeNotFound { .. } => "list_scopes shows the scopes; leave `scope` out to search every shared one".into(),
            Self::PinNotFound { .. } => "correct the name, or start the server without it".into(),
            Self::ScopeRefused { pinned, .. } => format!("leave `scope` out, or start a server without `--scope {pinned}`"),
            Self::ScopeUnusable { .. } => "correct the file; `ack-memory doctor` shows every scope".into(),
            Self::MemoryNotFound { .. } => "query_memories finds ids; an id of a private scope is found only with `scope` given".into(),
            Self::MemoryNotServed { status: Status::Rejected, .. } => "its curator rejected it, and rejected memories are never served".into(),
            Self::UnknownStatus { .. } => "such memories are never served; known words are staging, approved, promoted and rejected".into(),
            Self::MemoryNotServed { status: Status::Staging, .. } => {
                "nobody has approved it yet; pass `status: \"staging\"` (or \"all\") to see it all the same".into()
            }
            Self::MemoryNotServed { .. } => "pass `status: \"approved\"` or `status: \"all\"` to see it".into(),
            Self::NoScopes { .. } => {
                "start with `ack-memory demo`, import memories with `ack-memory import FILE --scope NAME`, or add an existing store with `ack-memory scopes add NAME --store PATH`".into()
            }
            Self::Store(error) => error.hint().into(),
            Self::Settings(SettingsError::NoHome) => "set ACK_MEM_PATH or pass --root".into(),
            Self::Settings(SettingsError::Unreadable { source, .. }) => {
                remedy(source).unwrap_or("check that the file exists and may be read").into()
            }
            Self::Settings(_) => "correct the file; the README lists its keys".into(),
            Self::Import(error) => error.hint().into(),
            Self::Internal { .. } => "the server goes on; please report this message with the request that caused it".into(),
            Self::Table { source, .. } => source.hint().into(),
            Self::Model(error) => error.hint().into(),
            Self::Fetch(_) => "this needs a network; any copy of the model's `model.safetensors` in a folder does as well".into(),
            Self::Serve(error) => error.hint().into(),
            Self::Upstream(error) => error.hint().into(),
            Self::Stopped(Stopped::Cancelled) => return None,
            Self::Stopped(Stopped::DeadlineExceeded { .. }) => {
                "ask for less (one scope, fewer ids), or ask again: an index that was being read is kept; `[limits] seconds` in config.toml allows more time".into()
            }
            Self::Io { source, .. } => remedy(source).unwrap_or("check that the path exists and may be used").into(),
        })
    }

    /// The body that travels: in a tool's error result and with `--json`.
    pub fn body(&self) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().as_str().to_owned(),
            message: self.chain(),
            hint: self.hint(),
            path: self.path().map(|path| text::line(&path.display().to_string(), 400)),
            argument: None,
            value: None,
            allowed: Vec::new(),
            nearest: Vec::new(),
            example: None,
        };
        match self {
            Self::InvalidArgument {
                argument,
                value,
                allowed,
                nearest,
                example,
            } => {
                body.argument = Some(text::line(argument, 100));
                body.value = Some(text::line(value, 200));
                body.allowed = vec![allowed.clone()];
                body.nearest.clone_from(nearest);
                body.example = example.clone().or_else(|| example_of(argument));
            }
            Self::UnknownArgument {
                operation,
                argument,
                known,
            } => {
                body.argument = Some(text::line(argument, 100));
                body.example = Some(example(operation));
                body.nearest = ack_api::memory::nearest(argument, known.iter().map(String::as_str), 2);
                body.allowed.clone_from(known);
            }
            Self::ScopeNotFound { name, known, projects } => {
                body.value = Some(text::line(name, 200));
                body.nearest = ack_api::memory::nearest(name, known.iter().chain(projects).map(String::as_str), 3);
                body.allowed = known.iter().take(20).cloned().collect();
            }
            Self::PinNotFound { name, .. } => body.value = Some(text::line(name, 200)),
            Self::ScopeRefused { name, pinned } => {
                body.value = Some(text::line(name, 200));
                body.allowed = vec![pinned.clone()];
            }
            Self::MemoryNotFound { id, nearest, .. } => {
                body.value = Some(text::line(id, 200));
                body.nearest.clone_from(nearest);
            }
            Self::Settings(SettingsError::Invalid { nearest, known, .. } | SettingsError::Offer { nearest, known, .. }) => {
                body.nearest.clone_from(nearest);
                body.allowed.clone_from(known);
            }
            _ => {}
        }
        // Names, paths and what libraries said stand in it as they came.
        for field in [&mut body.hint, &mut body.example].into_iter().flatten() {
            *field = text::line(field, 600);
        }
        for entry in body.allowed.iter_mut().chain(&mut body.nearest) {
            *entry = text::line(entry, 300);
        }
        body
    }

    /// The file or folder it is about.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::NoScopes { root } => Some(root),
            Self::Store(error) => Some(error.path()),
            Self::Settings(error) => error.path(),
            Self::Import(error) => error.path(),
            Self::Io { path, .. } => Some(path).filter(|path| path.is_absolute()).map(PathBuf::as_path),
            _ => None,
        }
    }

    /// The message with its causes, on one line and safe to print.
    fn chain(&self) -> String {
        let mut message = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !message.contains(&cause_text) {
                message.push_str(": ");
                message.push_str(&cause_text);
            }
            source = cause.source();
        }
        text::line(&message, 600)
    }
}

/// Arguments in which this one is right, as JSON.
fn example_of(argument: &str) -> Option<String> {
    let example = match argument {
        "query" | "project" => r#"{"query":"connection refused"}"#,
        // Left out, both are right.
        "scope" => r#"{"scope":null}"#,
        "cursor" => r#"{"cursor":null}"#,
        "tags" => r#"{"tags":["docker"]}"#,
        "files" => r#"{"files":["src/main.rs"]}"#,
        "id" | "ids" => r#"{"id":"ack_abc123_2026-01-04_001"}"#,
        "project_path" => r#"{"project_path":"."}"#,
        _ => return None,
    };
    Some(example.to_owned())
}

/// Arguments that an operation takes, as JSON.
fn example(operation: &str) -> String {
    match operation {
        "get_memory" => r#"{"id":"ack_abc123_2026-01-04_001"}"#,
        "list_scopes" | "curate_pending" => "{}",
        "recall" => r#"{"query":"connection refused"}"#,
        "get_context" => r#"{"max_memories":5}"#,
        _ => r#"{"query":"connection refused","limit":5}"#,
    }
    .to_owned()
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = names.iter().take(8).map(|name| format!("`{}`", text::line(name, 80))).collect();
    let more = names.len().saturating_sub(8);
    if more > 0 {
        format!("{} and {more} more", shown.join(", "))
    } else {
        shown.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn each_failure_of_the_system_has_its_own_next_step() {
        use nix::libc;
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
            let system = || io::Error::from_raw_os_error(number);
            let hint = StoreError::Io {
                path: path(),
                source: system(),
            };
            assert!(hint.hint().contains(word), "{}: {}", system(), hint.hint());
            let other = Error::Io {
                action: "write",
                path: path(),
                source: system(),
            };
            assert!(
                number == libc::EACCES || other.hint().is_some_and(|hint| hint.contains(word)),
                "{other}"
            );
            assert_eq!(other.body().path.as_deref(), Some("/somewhere/memory.db"));
        }
        let full = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None);
        assert!(StoreError::sqlite(&path(), full).hint().contains("no space left"));
    }
}
