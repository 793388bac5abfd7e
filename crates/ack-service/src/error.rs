//! The errors of a request, each with a stable code and the next step for the reader.

use std::path::Path;

use ack_api::cancel::Stopped;
use ack_api::diagnostic::{MAX_MESSAGE_CHARS, chain};
use ack_api::memory::{Status, nearest};
use ack_api::{
    Diagnostic, ErrorBody, ErrorCode, Given, Hint, Note, NoteKind, Reader, Tool, hint, text,
};
use ack_search::cursor::InvalidCursor;
use ack_search::remote::RemoteError;
use ack_store::StoreError;
use serde_json::{Value, json};

use crate::scope::ScopeError;

pub fn without_scopes() -> Vec<Hint> {
    vec![
        Hint::advice("go on without memories, unless the user asks about them"),
        Hint::command("setup", "sets them up"),
    ]
}

pub const UNREVIEWED_WITHHELD: &str = "unreviewed memories are not shown to agents here";

pub fn review_shows() -> Hint {
    Hint::command("review", "shows them")
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{message}")]
    InvalidArgument {
        message: String,
        argument: Box<str>,
        value: Box<str>,
        allowed: Box<str>,
        nearest: Vec<String>,
        /// Corrected arguments, as JSON.
        example: Option<String>,
    },
    #[error("`until` ({until}) is before `since` ({since})")]
    EmptyRange { since: String, until: String },
    #[error("{operation} has no argument `{argument}`")]
    UnknownArgument { operation: String, argument: String, known: Vec<String> },
    #[error(transparent)]
    InvalidCursor(#[from] InvalidCursor),
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(
        "`{address}` is the address of a memory in scope `{named}`, and the scope is given as `{scope}`"
    )]
    OtherScope { address: String, named: String, id: String, scope: String },
    #[error("there is no memory `{id}` in {}{}", text::list(scopes), match unread.as_slice() {
        [] => String::new(),
        unread => format!("; {} could not be read", text::list(unread)),
    })]
    MemoryNotFound {
        id: String,
        scopes: Vec<String>,
        /// Scopes that could not be read, where it may be.
        unread: Vec<String>,
        nearest: Vec<String>,
    },
    #[error("memory `{id}` in scope `{scope}` {}", match .replaced_by {
        Some(newer) => format!("was replaced by `{newer}`"),
        None => format!("is `{status}`"),
    })]
    MemoryNotServed {
        id: String,
        scope: String,
        status: Status,
        is_changed: bool,
        /// The memory that took its place, if that one is served.
        replaced_by: Option<String>,
    },
    /// The memory waits for review, and the owner does not show such memories to agents.
    #[error("memory `{id}` in scope `{scope}` waits for review")]
    MemoryWithheld { id: String, scope: String },
    #[error("memory `{id}` in scope `{scope}` has {}", match word {
        Some(word) => format!("the unknown status `{word}`"),
        None => "an unknown status".to_owned(),
    })]
    UnknownStatus {
        id: String,
        scope: String,
        /// Its status, as stored, for a caller that may see what was not approved.
        word: Option<String>,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the vector table of scope `{scope}` cannot be searched: {source}")]
    Table { scope: String, source: RemoteError },
    /// A defect in this program: a request ended in a panic.
    #[error("internal error while answering {operation}: {message}")]
    Internal { operation: String, message: String },
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Error {
    #[must_use]
    pub fn with_unread_scopes(mut self, notes: &[Note]) -> Self {
        if let Self::MemoryNotFound { unread, .. } = &mut self {
            for note in notes.iter().filter(|note| note.kind == NoteKind::ScopeUnavailable) {
                unread.extend(note.scope.clone().filter(|scope| !unread.contains(scope)));
            }
        }
        self
    }

    /// An invalid argument without a nearest value. Its example is the usual one.
    pub fn invalid(argument: &str, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        let (value, allowed): (String, String) = (value.into(), allowed.into());
        Self::InvalidArgument {
            message: format!("`{argument}` is {value}; allowed: {allowed}"),
            argument: argument.into(),
            value: value.into(),
            allowed: allowed.into(),
            nearest: Vec::new(),
            example: None,
        }
    }

    /// An argument that was not given and is needed.
    pub fn missing(argument: &str, allowed: impl Into<String>) -> Self {
        let mut error = Self::invalid(argument, "missing", allowed);
        if let Self::InvalidArgument { value, .. } = &mut error {
            *value = "".into();
        }
        error
    }

    /// An invalid argument with the nearest values, and corrected arguments.
    #[must_use]
    pub fn corrected(mut self, values: Vec<String>, arguments: Option<Value>) -> Self {
        if let Self::InvalidArgument { nearest, example, .. } = &mut self {
            *nearest = values;
            *example = arguments.map(|arguments| arguments.to_string());
        }
        self
    }

    pub fn code(&self) -> ErrorCode {
        Diagnostic::code(self)
    }

    /// The error body for an agent that has the four tools.
    pub fn body(&self) -> ErrorBody {
        Diagnostic::body(self)
    }

    /// The error body for an agent. Without memories, it goes on.
    pub fn body_for_agent(&self, reader: &dyn Reader) -> ErrorBody {
        let mut body = self.body_for(reader);
        if matches!(self, Self::Scope(ScopeError::NoScopes { .. })) {
            body.hint = hint::render(&without_scopes(), reader);
        }
        body
    }
}

impl Diagnostic for Error {
    fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidArgument { .. } | Self::EmptyRange { .. } | Self::OtherScope { .. } => {
                ErrorCode::InvalidArgument
            }
            Self::UnknownArgument { .. } => ErrorCode::UnknownArgument,
            Self::InvalidCursor(_) => ErrorCode::InvalidCursor,
            Self::Scope(error) => error.code(),
            Self::MemoryNotFound { .. } => ErrorCode::MemoryNotFound,
            Self::MemoryNotServed { .. }
            | Self::MemoryWithheld { .. }
            | Self::UnknownStatus { .. } => ErrorCode::MemoryNotServed,
            Self::Store(error) => error.code(),
            Self::Table { .. } => ErrorCode::IndexFailed,
            Self::Internal { .. } => ErrorCode::InternalError,
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    fn message(&self, reader: &dyn Reader) -> String {
        let own = chain(self);
        let message = match self {
            Self::InvalidArgument { argument, .. } => with_argument(&own, argument, reader),
            Self::EmptyRange { .. } => {
                with_argument(&with_argument(&own, "until", reader), "since", reader)
            }
            Self::UnknownArgument { operation, argument, .. } => {
                with_argument(&with_tool(&own, operation, reader), argument, reader)
            }
            Self::Internal { operation, .. } => with_tool(&own, operation, reader),
            _ => own,
        };
        text::line(&message, MAX_MESSAGE_CHARS)
    }

    fn hints(&self) -> Vec<Hint> {
        match self {
            Self::InvalidCursor(_) => vec![Hint::omit(
                "cursor",
                "to start from the first page, and repeat the other arguments unchanged",
            )],
            Self::Scope(error) => error.hints(),
            Self::OtherScope { id, scope, .. } => vec![
                Hint::omit("scope", "because the address names one"),
                Hint::advice(format!(
                    "or give `{id}` instead of the address, to look for that id in scope `{scope}`"
                )),
            ],
            Self::MemoryNotFound { .. } => vec![
                Hint::call(Tool::QueryMemories, "finds ids"),
                Hint::pass([Given::any("scope")], "for an id in a private scope"),
            ],
            Self::MemoryNotServed { replaced_by: Some(newer), .. } => {
                vec![Hint::advice(format!("ask for `{newer}` instead"))]
            }
            Self::MemoryNotServed { status: Status::Rejected, .. } => vec![Hint::advice(
                "its curator rejected or replaced it, and such memories are never served",
            )],
            Self::MemoryWithheld { .. } => vec![Hint::advice(UNREVIEWED_WITHHELD), review_shows()],
            Self::UnknownStatus { .. } => vec![
                Hint::advice("such memories are never served"),
                Hint::advice(format!(
                    "known words are {}",
                    Status::ALL.map(Status::as_str).join(", ")
                )),
            ],
            Self::MemoryNotServed { status: Status::Staging, is_changed, .. } => {
                let why = if *is_changed {
                    "its text changed after it was decided about, so it waits for review again"
                } else {
                    "nobody has approved it yet"
                };
                let statuses = ["staging", "all"].map(|status| Given::value("status", status));
                vec![Hint::advice(why), Hint::pass(statuses, "to see it anyway")]
            }
            Self::MemoryNotServed { .. } => vec![Hint::omit("status", "to see it")],
            Self::Store(error) => error.hints(),
            Self::Table { .. } => vec![
                Hint::advice("searches work without it; fix the cause"),
                Hint::command(
                    "index",
                    "then builds it again, with --rebuild if the table is damaged",
                ),
            ],
            Self::Internal { .. } => vec![Hint::advice(
                "the server keeps running; please report this message with the request that caused it",
            )],
            Self::Stopped(Stopped::DeadlineExceeded { .. }) => vec![
                Hint::advice(
                    "ask for less (one scope, fewer ids), or ask again: an index that was being read is kept",
                ),
                Hint::setting("`[limits] seconds` in config.toml", "allows more time"),
            ],
            _ => Vec::new(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Scope(error) => error.path(),
            Self::Store(error) => Some(&error.path),
            _ => None,
        }
    }

    fn details(&self, body: &mut ErrorBody) {
        match self {
            Self::InvalidArgument { argument, value, allowed, nearest, example, .. } => {
                body.argument = Some(text::line(argument, 100));
                body.value = Some(text::line(value, 200)).filter(|value| !value.is_empty());
                body.allowed = words(allowed).unwrap_or_else(|| vec![allowed.to_string()]);
                body.nearest.clone_from(nearest);
                body.example = example.clone().or_else(|| example_of(argument));
            }
            Self::EmptyRange { since, until } => {
                body.argument = Some("until".to_owned());
                body.value = Some(until.clone());
                body.allowed = vec![format!("a day not before {since}")];
                body.nearest = vec![since.clone()];
                body.example = Some(json!({ "since": since, "until": since }).to_string());
            }
            Self::UnknownArgument { operation, argument, known } => {
                body.argument = Some(text::line(argument, 100));
                body.example = Some(example(operation).to_owned());
                body.nearest = nearest(argument, known.iter().map(String::as_str), 2);
                body.allowed.clone_from(known);
            }
            Self::OtherScope { named, scope, .. } => {
                body.argument = Some("scope".to_owned());
                body.value = Some(scope.clone());
                body.allowed = vec![format!("`{named}`, or none")];
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

/// The words of a text that lists them, and nothing else.
fn words(allowed: &str) -> Option<Vec<String>> {
    let words = allowed.strip_prefix("one of ").unwrap_or(allowed).split(", ");
    words.map(|word| (!word.contains(' ')).then(|| word.to_owned())).collect()
}

fn with_argument(message: &str, argument: &str, reader: &dyn Reader) -> String {
    match reader.argument(argument, None) {
        Some(name) => message.replacen(&format!("`{argument}`"), &name, 1),
        None => message.to_owned(),
    }
}

fn with_tool(message: &str, operation: &str, reader: &dyn Reader) -> String {
    let name = Tool::from_name(operation).and_then(|tool| reader.tool(tool));
    message.replacen(operation, name.as_deref().unwrap_or(operation), 1)
}

/// Example arguments with a valid value for this one, as JSON.
fn example_of(argument: &str) -> Option<String> {
    Some(String::from(match argument {
        "query" | "project" => r#"{"query":"connection refused"}"#,
        // Both are valid if omitted.
        "scope" => r#"{"scope":null}"#,
        "cursor" => r#"{"cursor":null}"#,
        "tags" => r#"{"tags":["docker"]}"#,
        "files" => r#"{"files":["src/main.rs"]}"#,
        "id" | "ids" => r#"{"id":"ack_abc123_2026-01-04_001"}"#,
        "project_path" => r#"{"project_path":"."}"#,
        _ => return None,
    }))
}

fn example(operation: &str) -> &'static str {
    match operation {
        "get_memory" => r#"{"id":"ack_abc123_2026-01-04_001"}"#,
        "list_scopes" => "{}",
        "recall" => r#"{"query":"connection refused"}"#,
        "get_context" => r#"{"max_memories":5}"#,
        _ => r#"{"query":"connection refused","limit":5}"#,
    }
}
