//! Why a client's configuration cannot be changed.

use std::io;
use std::path::{Path, PathBuf};

use ack_api::{Diagnostic, ErrorBody, ErrorCode, Hint};
use ack_store::hint::io_hint;

use super::{Client, NAME};
use ack_service::config::SettingsError;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("`{}` has an entry `{NAME}` that {does}; it was not changed", path.display())]
    OtherEntry { path: PathBuf, does: String, client: &'static str },
    #[error("this program is in a cache, `{}`, from which it may disappear; nothing was written", path.display())]
    Cache { path: PathBuf },
    #[error("`{}` was not changed: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String, hint: Hint },
    #[error("cannot {action} `{}`", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

impl ConnectError {
    /// The same about a client, which a hint then names.
    #[must_use]
    pub fn about(mut self, of: Client) -> Self {
        if let Self::OtherEntry { client, .. } = &mut self {
            *client = of.name();
        }
        self
    }
}

impl Diagnostic for ConnectError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Settings(error) => error.code(),
            Self::OtherEntry { .. } | Self::Cache { .. } | Self::Unusable { .. } => {
                ErrorCode::InvalidSettings
            }
            Self::Io { .. } => ErrorCode::IoError,
        }
    }

    fn hints(&self) -> Vec<Hint> {
        match self {
            Self::Settings(error) => error.hints(),
            Self::OtherEntry { client, .. } => vec![Hint::command(
                format!("connect {client} --replace"),
                "replaces it; the old content is kept next to the file",
            )],
            Self::Cache { .. } => vec![
                Hint::advice(
                    "install it (`npm install --global`, `uv tool install` or `pipx install`)",
                ),
                Hint::command("connect", "then connects the clients"),
            ],
            Self::Unusable { hint, .. } => vec![hint.clone()],
            Self::Io { source, .. } => {
                let usual = Hint::advice("check that the path exists and may be used");
                vec![io_hint(source).unwrap_or(usual)]
            }
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Settings(error) => error.path(),
            Self::Unusable { path, .. } | Self::Cache { path } => Some(path),
            Self::OtherEntry { path, .. } | Self::Io { path, .. } => {
                Some(path.as_path()).filter(|path| path.is_absolute())
            }
        }
    }

    fn details(&self, body: &mut ErrorBody) {
        if let Self::Settings(error) = self {
            error.details(body);
        }
    }
}
