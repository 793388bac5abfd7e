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
use ack_desk::curate::find::Unmatched;
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
    #[error("nothing was decided: {problem}")]
    Curator { problem: &'static str },
    #[error("{0}")]
    Typed(String),
    #[error("{message}")]
    Usage { argument: String, message: String, hints: Vec<Hint>, example: Option<String> },
    #[error("no unreviewed memory matches{}", .0.in_words())]
    NothingWaits(Unmatched),
    #[error("no scope can be read, so it is not known what waits for review")]
    NothingReadable,
    #[error("there is no scope `{name}`")]
    NoScope { name: String, known: Vec<String> },
    #[error("there is no `{}`", path.display())]
    NoStore { path: PathBuf },
    #[error("`{}` holds {holds}, not a store", path.display())]
    NotAStore { path: PathBuf, holds: &'static str },
    #[cfg(feature = "table")]
    #[error("the vector table of scope `{scope}` cannot be built: {source}")]
    Index { scope: String, source: ack_lance::build::BuildError },
    #[error("cannot {action}: --offline allows no connection")]
    Offline { action: &'static str, hint: &'static str },
    #[cfg(not(feature = "table"))]
    #[error("this build of ack-memory has no vector tables")]
    NotBuilt,
    #[error("the editor `{editor}` failed")]
    Editor { editor: String },
    #[error("there was no query at this terminal in the last day")]
    NoLastQuery,
    #[error("that was the last page")]
    LastPage,
    #[error("there is no memory `{number}` and no result with that number")]
    NoSuchNumber { number: String, known: bool },
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

    /// An invalid argument, described in a sentence.
    pub fn usage(argument: &str, message: impl Into<String>) -> Self {
        Self::Usage {
            argument: argument.to_owned(),
            message: message.into(),
            hints: Vec::new(),
            example: None,
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Hint>) -> Self {
        if let Self::Usage { hints, .. } = &mut self {
            hints.push(hint.into());
        }
        self
    }

    /// Adds a command that is allowed: what comes after the program's name.
    #[must_use]
    pub fn with_example(mut self, text: impl Into<String>) -> Self {
        if let Self::Usage { example, .. } | Self::Request(Error::InvalidArgument { example, .. }) =
            &mut self
        {
            *example = Some(command(&text.into()));
        }
        self
    }

    pub fn invalid(argument: &str, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::Request(Error::invalid(argument, value, allowed))
    }

    /// 2 for a usage error, else 1.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Request(
                Error::InvalidArgument { .. }
                | Error::UnknownArgument { .. }
                | Error::OtherScope { .. }
                | Error::InvalidCursor(_),
            )
            | Self::Settings(SettingsError::Invalid { part: Part::Offer, .. })
            | Self::NothingWaits(_)
            | Self::Typed(_)
            | Self::Usage { .. } => 2,
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
            Self::Offline { .. } => ErrorCode::InvalidArgument,
            Self::NoLastQuery | Self::LastPage => ErrorCode::InvalidCursor,
            Self::NoSuchNumber { .. } | Self::AmbiguousId { .. } => ErrorCode::MemoryNotFound,
            Self::Curator { .. } => ErrorCode::DecisionRefused,
            Self::NoScope { .. } => ErrorCode::ScopeNotFound,
            Self::NothingWaits(_)
            | Self::Typed(_)
            | Self::NotAStore { .. }
            | Self::Usage { .. } => ErrorCode::InvalidArgument,
            Self::NothingReadable => ErrorCode::StoreUnreadable,
            Self::NoStore { .. } => ErrorCode::StoreNotFound,
            #[cfg(not(feature = "table"))]
            Self::NotBuilt => ErrorCode::IndexFailed,
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
        let advice = match self {
            Self::Usage { hints, .. } => return hints.clone(),
            #[cfg(feature = "table")]
            Self::Index { source, .. } => return source.hints(),
            Self::NothingWaits(unmatched) => return unmatched.hints(),
            Self::NotAStore { .. } => {
                return vec![Hint::command("import FILE --scope NAME", "imports it")];
            }
            Self::NothingReadable => return vec![Hint::command("doctor", "says what is wrong")],
            Self::NoScope { known, .. } if known.is_empty() => "there is none yet",
            Self::NoScope { .. } => return vec![Hint::command("scopes", "shows the scopes")],
            Self::NoLastQuery => return vec![Hint::command("query WORDS", "searches")],
            Self::LastPage => return vec![Hint::command("query WORDS", "searches again")],
            Self::Offline { hint, .. } => hint,
            #[cfg(not(feature = "table"))]
            Self::NotBuilt => {
                "searches work without one; a build with the default features can build it"
            }
            Self::NoStore { .. } => "name an existing database or folder of notes",
            Self::Editor { .. } => "set VISUAL or EDITOR to another one",
            Self::NoSuchNumber { known: true, .. } => {
                "numbers refer to the last query at this terminal, which had fewer results"
            }
            Self::NoSuchNumber { known: false, .. } => {
                "numbers refer to the last query at this terminal; there was none in the last day"
            }
            Self::AmbiguousId { .. } => "give more characters of the id",
            Self::Curator { .. } => {
                "run it in a terminal; for scripts, put a token of your own (16 characters or more) \
                 into `curator-token` in the root folder and into ACK_MEM_CURATOR_TOKEN"
            }
            Self::Io { source, .. } => {
                let usual = "check that the path exists and is accessible";
                return vec![io_hint(source).unwrap_or(Hint::advice(usual))];
            }
            _ => return Vec::new(),
        };
        vec![Hint::advice(advice)]
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::NoStore { path } | Self::NotAStore { path, .. } => Some(path),
            Self::Io { path, .. } => Some(path.as_path()).filter(|path| path.is_absolute()),
            _ => self.inner().and_then(Diagnostic::path),
        }
    }

    fn details(&self, body: &mut ErrorBody) {
        match self {
            Self::AmbiguousId { found, .. } => {
                body.allowed = found.matches.iter().map(|one| one.id.clone()).collect();
            }
            Self::Usage { argument, example, .. } => {
                body.argument = Some(text::line(argument, 100));
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
