//! The errors of a request, each with a stable code and the next step for the reader.

use std::borrow::Cow;
use std::path::Path;

use ack_api::cancel::Stopped;
use ack_api::memory::{Status, nearest};
use ack_api::{Diagnostic, ErrorBody, ErrorCode, Note, NoteKind, text};
use ack_search::cursor::InvalidCursor;
use ack_search::remote::RemoteError;
use ack_store::StoreError;

use crate::scope::ScopeError;

/// The hint for an agent if there are no scopes.
pub const NO_SCOPES_HINT: &str =
    "go on without memories; if the user asks about them, say that `ack-memory setup` sets them up";

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument has an invalid value.
    #[error("`{argument}` is {value}; allowed: {allowed}")]
    InvalidArgument {
        /// The argument's name.
        argument: String,
        /// The value as given.
        value: String,
        /// The allowed values.
        allowed: String,
        /// The nearest allowed values.
        nearest: Vec<String>,
        /// Corrected arguments, as JSON.
        example: Option<String>,
    },
    /// An argument has a value of another type.
    #[error("`{argument}` must be {wanted}, not {kind}{value}")]
    WrongType {
        /// The argument's name.
        argument: String,
        /// The type that it must have.
        wanted: String,
        /// What kind of value was given: `the string `, or nothing if the value shows it.
        kind: &'static str,
        /// The value as given, as JSON.
        value: String,
        /// Corrected arguments, as JSON.
        example: Option<String>,
    },
    /// A range of days that ends before it begins.
    #[error("`until` ({until}) is before `since` ({since})")]
    EmptyRange {
        /// The first day.
        since: String,
        /// The last day.
        until: String,
    },
    /// The tool has no such argument.
    #[error("{operation} has no argument `{argument}`")]
    UnknownArgument {
        /// The tool or command.
        operation: String,
        /// The argument's name.
        argument: String,
        /// The arguments that it has.
        known: Vec<String>,
    },
    /// A cursor that belongs to no page of this request.
    #[error(transparent)]
    InvalidCursor(#[from] InvalidCursor),
    /// There are no scopes to search.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// An address names another scope than the argument `scope`.
    #[error(
        "`{address}` is the address of a memory in scope `{named}`, and the scope is given as `{scope}`"
    )]
    OtherScope {
        /// The address.
        address: String,
        /// The scope that it names.
        named: String,
        /// The id that it names.
        id: String,
        /// The scope that was given.
        scope: String,
    },
    /// None of the searched scopes contains the id.
    #[error(
        "there is no memory `{id}` in {}{}",
        text::list(scopes),
        unread_scopes_text(unread)
    )]
    MemoryNotFound {
        /// The requested id.
        id: String,
        /// The searched scopes.
        scopes: Vec<String>,
        /// Scopes that could not be read, where it may be.
        unread: Vec<String>,
        /// Similar ids.
        nearest: Vec<String>,
    },
    /// The status filter excludes the memory.
    #[error("memory `{id}` in scope `{scope}` is `{status}`")]
    MemoryNotServed {
        /// The requested id.
        id: String,
        /// The scope that contains it.
        scope: String,
        /// Its status.
        status: Status,
        /// Whether its text changed after a decision about it.
        is_changed: bool,
    },
    /// The memory waits for review, and the owner does not show such memories to agents.
    #[error("memory `{id}` in scope `{scope}` waits for review")]
    MemoryWithheld {
        /// The requested id.
        id: String,
        /// The scope that contains it.
        scope: String,
    },
    /// The owner does not show memories that wait for review to agents.
    #[error("memories that wait for review are not shown to agents here")]
    ReviewWithheld,
    /// The memory's status is unknown to this program.
    #[error("memory `{id}` in scope `{scope}` has {}", unknown_status(word.as_deref()))]
    UnknownStatus {
        /// The requested id.
        id: String,
        /// The scope that contains it.
        scope: String,
        /// Its status, as stored, for a caller that may see what was not approved.
        word: Option<String>,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The vector table of a large scope can no longer be searched.
    #[error("the vector table of scope `{scope}` cannot be searched: {source}")]
    Table {
        /// The scope.
        scope: String,
        /// The reason.
        source: RemoteError,
    },
    /// A defect in this program: a request ended in a panic.
    #[error("internal error while answering {operation}: {message}")]
    Internal {
        /// The tool or command.
        operation: String,
        /// The panic message.
        message: String,
    },
    /// The request was cancelled, or took too long.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Error {
    /// Adds the scopes that could not be read, according to the notes, to a not-found error.
    #[must_use]
    pub(super) fn with_unread_scopes(mut self, notes: &[Note]) -> Self {
        if let Self::MemoryNotFound { unread, .. } = &mut self {
            let closed = notes
                .iter()
                .filter(|note| note.kind == NoteKind::ScopeUnavailable);
            for scope in closed.filter_map(|note| note.scope.as_ref()) {
                if !unread.contains(scope) {
                    unread.push(scope.clone());
                }
            }
        }
        self
    }
    /// An invalid argument without a nearest value.
    pub fn invalid(argument: &str, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::InvalidArgument {
            argument: argument.to_owned(),
            value: value.into(),
            allowed: allowed.into(),
            nearest: Vec::new(),
            example: None,
        }
    }

    /// The stable code, as `docs/tools.md` lists it.
    pub fn code(&self) -> ErrorCode {
        Diagnostic::code(self)
    }

    /// The error body for `--json` and for a person.
    pub fn body(&self) -> ErrorBody {
        Diagnostic::body(self)
    }

    /// The error body for an agent. Hints about what only the owner can do are left out.
    pub fn body_for_agent(&self) -> ErrorBody {
        let mut body = self.body();
        if matches!(self, Self::Scope(ScopeError::NoScopes { .. })) {
            body.hint = Some(NO_SCOPES_HINT.to_owned());
        }
        body
    }
}

impl Diagnostic for Error {
    fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidArgument { .. } | Self::WrongType { .. } | Self::EmptyRange { .. } => {
                ErrorCode::InvalidArgument
            }
            Self::OtherScope { .. } => ErrorCode::InvalidArgument,
            Self::UnknownArgument { .. } => ErrorCode::UnknownArgument,
            Self::InvalidCursor(_) => ErrorCode::InvalidCursor,
            Self::Scope(error) => error.code(),
            Self::MemoryNotFound { .. } => ErrorCode::MemoryNotFound,
            Self::MemoryNotServed { .. }
            | Self::MemoryWithheld { .. }
            | Self::ReviewWithheld
            | Self::UnknownStatus { .. } => ErrorCode::MemoryNotServed,
            Self::Store(error) => error.code(),
            Self::Table { .. } => ErrorCode::IndexFailed,
            Self::Internal { .. } => ErrorCode::InternalError,
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    fn hint(&self) -> Option<Cow<'static, str>> {
        let hint = match self {
            Self::InvalidArgument { .. }
            | Self::WrongType { .. }
            | Self::EmptyRange { .. }
            | Self::UnknownArgument { .. }
            | Self::Stopped(Stopped::Cancelled) => return None,
            Self::InvalidCursor(_) => {
                "leave `cursor` out to start from the first page, and repeat the other arguments unchanged"
            }
            Self::Scope(error) => return error.hint(),
            Self::OtherScope { id, scope, .. } => {
                let hint = format!(
                    "leave `scope` out, because the address names one; or give `{id}` instead of \
                     the address, to look for that id in scope `{scope}`"
                );
                return Some(hint.into());
            }
            Self::MemoryNotFound { .. } => {
                "query_memories finds ids; for an id in a private scope, pass `scope`"
            }
            Self::MemoryNotServed {
                status: Status::Rejected,
                ..
            } => "its curator rejected it, and rejected memories are never served",
            Self::ReviewWithheld => {
                "`max_status = \"all\"` under `[serve]` in config.toml lets agents read them"
            }
            Self::MemoryWithheld { .. } => {
                "agents are shown approved memories only; a person decides about the others"
            }
            Self::UnknownStatus { .. } => {
                "such memories are never served; known words are staging, approved, promoted and rejected"
            }
            Self::MemoryNotServed {
                status: Status::Staging,
                is_changed: true,
                ..
            } => {
                "its text changed after it was decided about, so it waits for review again; pass `status: \"staging\"` or `status: \"all\"` to see it anyway"
            }
            Self::MemoryNotServed {
                status: Status::Staging,
                ..
            } => {
                "nobody has approved it yet; pass `status: \"staging\"` or `status: \"all\"` to see it anyway"
            }
            Self::MemoryNotServed { .. } => {
                "pass `status: \"approved\"` or `status: \"all\"` to see it"
            }
            Self::Store(error) => return Some(error.hint()),
            Self::Table { .. } => {
                "searches work without it; fix the cause and run `ack-memory index` again, with --rebuild if the table is damaged"
            }
            Self::Internal { .. } => {
                "the server keeps running; please report this message with the request that caused it"
            }
            Self::Stopped(Stopped::DeadlineExceeded { .. }) => {
                "ask for less (one scope, fewer ids), or ask again: an index that was being read is kept; `[limits] seconds` in \
                 config.toml allows more time"
            }
        };
        Some(hint.into())
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Scope(error) => error.path(),
            Self::Store(error) => Some(error.path()),
            _ => None,
        }
    }

    fn details(&self, body: &mut ErrorBody) {
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
            Self::WrongType {
                argument,
                wanted,
                value,
                example,
                ..
            } => {
                body.argument = Some(text::line(argument, 100));
                body.value = Some(text::line(value, 200));
                body.allowed = vec![wanted.clone()];
                body.example = example.clone().or_else(|| example_of(argument));
            }
            Self::EmptyRange { since, until } => {
                body.argument = Some("until".to_owned());
                body.value = Some(until.clone());
                body.allowed = vec!["a day not before `since`".to_owned()];
                body.nearest = vec![since.clone()];
                let days = serde_json::json!({ "since": since, "until": since });
                body.example = Some(days.to_string());
            }
            Self::UnknownArgument {
                operation,
                argument,
                known,
            } => {
                body.argument = Some(text::line(argument, 100));
                body.example = Some(self::example(operation));
                body.nearest = nearest(argument, known.iter().map(String::as_str), 2);
                body.allowed.clone_from(known);
            }
            Self::OtherScope { named, scope, .. } => {
                body.argument = Some("scope".to_owned());
                body.value = Some(scope.clone());
                body.allowed = vec![format!("`{named}`, or no `scope`")];
                body.nearest = vec![named.clone()];
            }
            Self::Scope(error) => error.details(body),
            Self::MemoryNotFound { id, nearest, .. } => {
                body.value = Some(text::id(id));
                body.nearest.clone_from(nearest);
            }
            _ => {}
        }
    }
}

/// An unknown status, with its word if the caller may see it.
fn unknown_status(word: Option<&str>) -> String {
    match word {
        Some(word) => format!("the unknown status `{word}`"),
        None => "an unknown status".to_owned(),
    }
}

fn unread_scopes_text(scopes: &[String]) -> String {
    if scopes.is_empty() {
        return String::new();
    }
    format!("; {} could not be read", text::list(scopes))
}

/// Example arguments with a valid value for this one, as JSON.
fn example_of(argument: &str) -> Option<String> {
    let example = match argument {
        "query" | "project" => r#"{"query":"connection refused"}"#,
        // Both are valid if omitted.
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

/// Example arguments for an operation, as JSON.
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
