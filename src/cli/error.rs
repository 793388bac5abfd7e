//! The errors of a command. Every error of the program ends up here.

use crate::cli::command::command;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::render::{NAME, count, labelled};
use super::screen::Screen;
use ack_api::diagnostic::chain;
use ack_api::memory::nearest;
use ack_api::{Diagnostic, ErrorBody, ErrorCode, Hint, Reader, text};
use ack_store::StoreError;
use ack_store::hint::io_hint;

use crate::import::ImportError;
use crate::mcp::http::ServeError;
use ack_connect::ConnectError;
use ack_desk::curate::CurateError;
use ack_desk::publish::PublishError;
use ack_service::config::{Part, SettingsError};
use ack_service::scope::{Scope, ScopeError};
use ack_service::{Error, IdMatches};

const MAX_LISTED: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Request(#[from] Error),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Curate(CurateError),
    #[error(transparent)]
    Publish(PublishError),
    #[cfg(feature = "bucket")]
    #[error(transparent)]
    Bucket(Box<ack_bucket::BucketError>),
    /// A problem that is described where it is noticed.
    #[error("{message}")]
    Noticed {
        code: ErrorCode,
        exit_code: u8,
        message: String,
        argument: Option<String>,
        path: Option<PathBuf>,
        hints: Vec<Hint>,
        example: Option<String>,
    },
    #[error("there is no scope `{name}`")]
    NoScope { name: String, known: Vec<String> },
    #[cfg(feature = "table")]
    #[error("the vector table of scope `{scope}` cannot be built: {source}")]
    Index { scope: String, source: ack_lance::build::BuildError },
    #[error("{} begin with `{typed}`", count(found.total as u64, "id"))]
    AmbiguousId { typed: String, found: IdMatches },
    #[error("cannot {action} `{}`", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl CliError {
    /// What a failure of the system becomes: what could not be done, and to which file.
    pub fn io(action: &'static str, path: impl AsRef<Path>) -> impl Fn(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io { action, path: path.clone(), source }
    }

    pub fn no_scope(name: &str, scopes: &[Arc<Scope>]) -> Self {
        let known = scopes.iter().map(|scope| scope.name.clone()).collect();
        Self::NoScope { name: name.to_owned(), known }
    }

    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::noticed(code, 1, None, message.into())
    }

    /// An invalid argument, described in a sentence.
    pub fn usage(argument: &str, message: impl Into<String>) -> Self {
        Self::noticed(ErrorCode::InvalidArgument, 2, Some(argument), message.into())
    }

    /// The same about a text that was typed.
    pub fn typed(message: impl Into<String>) -> Self {
        Self::noticed(ErrorCode::InvalidArgument, 2, None, message.into())
    }

    fn noticed(code: ErrorCode, exit_code: u8, argument: Option<&str>, message: String) -> Self {
        Self::Noticed {
            code,
            exit_code,
            message,
            argument: argument.map(|argument| text::line(argument, 100)),
            path: None,
            hints: Vec::new(),
            example: None,
        }
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<Hint>) -> Self {
        self.with_hints([hint.into()])
    }

    #[must_use]
    pub fn with_hints(mut self, more: impl IntoIterator<Item = Hint>) -> Self {
        if let Self::Noticed { hints, .. } = &mut self {
            hints.extend(more);
        }
        self
    }

    #[must_use]
    pub fn at(mut self, place: &Path) -> Self {
        if let Self::Noticed { path, .. } = &mut self {
            *path = Some(place.to_owned());
        }
        self
    }

    /// Adds a command that is allowed: what comes after the program's name.
    #[must_use]
    pub fn with_example(mut self, text: impl Into<String>) -> Self {
        if let Self::Noticed { example, .. }
        | Self::Request(Error::InvalidArgument { example, .. }) = &mut self
        {
            *example = Some(command(&text.into()));
        }
        self
    }

    pub fn invalid(argument: &str, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::Request(Error::invalid(argument, value, allowed))
    }

    pub fn missing(argument: &str, allowed: impl Into<String>) -> Self {
        Self::Request(Error::missing(argument, allowed))
    }

    /// 2 for a usage error, else 1.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Noticed { exit_code, .. } => *exit_code,
            Self::Request(
                Error::InvalidArgument { .. }
                | Error::UnknownArgument { .. }
                | Error::EmptyRange { .. }
                | Error::OtherScope { .. }
                | Error::InvalidCursor(_),
            )
            | Self::Import(ImportError::BadName { .. })
            | Self::Settings(SettingsError::Invalid { part: Part::Offer, .. }) => 2,
            _ => 1,
        }
    }

    pub fn candidates(&self, screen: &Screen) -> String {
        let Self::AmbiguousId { found, .. } = self else {
            return String::new();
        };
        let mut out = String::new();
        for one in &found.matches {
            let (id, title) = (text::line(&one.id, 200), text::line(&one.title, 200));
            out += &labelled("  ", &id, &title, NAME, screen);
        }
        if found.total > found.matches.len() {
            out += &format!("  and {} more\n", found.total - found.matches.len());
        }
        out
    }

    fn inner(&self) -> Option<&dyn Diagnostic> {
        Some(match self {
            Self::Request(error) => error,
            Self::Settings(error) => error,
            Self::Connect(error) => error,
            Self::Import(error) => error,
            Self::Serve(error) => error,
            Self::Curate(error) => error,
            Self::Publish(error) => error,
            #[cfg(feature = "bucket")]
            Self::Bucket(error) => &**error,
            _ => return None,
        })
    }
}

impl From<ScopeError> for CliError {
    fn from(error: ScopeError) -> Self {
        Self::Request(error.into())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::Request(error.into())
    }
}

impl Diagnostic for CliError {
    fn code(&self) -> ErrorCode {
        if let Some(inner) = self.inner() {
            return inner.code();
        }
        match self {
            #[cfg(feature = "table")]
            Self::Index { .. } => ErrorCode::IndexFailed,
            Self::Noticed { code, .. } => *code,
            Self::AmbiguousId { .. } => ErrorCode::MemoryNotFound,
            Self::NoScope { .. } => ErrorCode::ScopeNotFound,
            _ => ErrorCode::IoError,
        }
    }

    fn message(&self, reader: &dyn Reader) -> String {
        self.inner().map_or_else(|| chain(self), |inner| inner.message(reader))
    }

    fn hints(&self) -> Vec<Hint> {
        if let Some(inner) = self.inner() {
            return inner.hints();
        }
        vec![match self {
            Self::Noticed { hints, .. } => return hints.clone(),
            #[cfg(feature = "table")]
            Self::Index { source, .. } => return source.hints(),
            Self::NoScope { known, .. } if known.is_empty() => Hint::advice("there is none yet"),
            Self::NoScope { .. } => Hint::command("scopes", "shows the scopes"),
            Self::AmbiguousId { .. } => Hint::advice("give more characters of the id"),
            Self::Io { source, .. } => {
                let usual = "check that the path exists and is accessible";
                io_hint(source).unwrap_or(Hint::advice(usual))
            }
            _ => return Vec::new(),
        }]
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Noticed { path, .. } => path.as_deref(),
            Self::Io { path, .. } => Some(path.as_path()).filter(|path| path.is_absolute()),
            _ => self.inner().and_then(Diagnostic::path),
        }
    }

    fn details(&self, body: &mut ErrorBody) {
        match self {
            Self::AmbiguousId { found, .. } => {
                body.allowed = found.matches.iter().map(|one| one.id.clone()).collect();
            }
            Self::Noticed { argument, example, .. } => {
                body.argument.clone_from(argument);
                body.example.clone_from(example);
            }
            Self::NoScope { name, known } => {
                body.value = Some(text::line(name, 200));
                body.nearest = nearest(name, known.iter().map(String::as_str), 3);
                body.allowed = known.iter().take(MAX_LISTED).cloned().collect();
            }
            _ => {}
        }
        if let Some(inner) = self.inner() {
            inner.details(body);
        }
    }
}
