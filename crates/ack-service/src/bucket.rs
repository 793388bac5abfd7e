//! The memories of a scope that are published in a bucket: what follows it, in a build with buckets
//! and in one without.

use std::path::Path;
use std::sync::Arc;

use ack_api::Hint;
use ack_api::remote::RemoteSettings;
#[cfg(feature = "bucket")]
use ack_api::{Diagnostic as _, hint::OwnNames};

#[cfg(feature = "bucket")]
pub use ack_bucket::follow::Remote;

#[cfg(not(feature = "bucket"))]
pub use self::without::Remote;

use crate::config::SettingsError;
/// What to do about a scope of which no local copy may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColdAdvice {
    /// The bucket may not be contacted.
    Fetch,
    /// A version is being fetched, or the bucket does not answer.
    AskAgain,
    /// Asking again does not help.
    Look,
    /// The copy is damaged.
    AskWhenItAnswers,
}

impl ColdAdvice {
    /// What to do next.
    pub fn hints(self) -> Vec<Hint> {
        let look = Hint::command("doctor", "shows every scope");
        match self {
            Self::Fetch => vec![Self::fetched_by()],
            Self::AskAgain => vec![Hint::advice("ask again in a moment"), look],
            Self::Look => vec![look],
            Self::AskWhenItAnswers => vec![Hint::advice("ask again once the bucket answers"), look],
        }
    }

    /// What fetches it.
    pub fn fetched_by() -> Hint {
        Hint::setting("a query without `--offline`", "fetches it")
    }
}

/// Whether a path is the address of a bucket.
pub fn is_bucket(path: &Path) -> bool {
    let path = path.to_string_lossy();
    ["s3://", "gs://", "az://"]
        .iter()
        .any(|scheme| path.starts_with(scheme))
}

/// The memories published at an address, with a local copy in the scope's folder.
#[cfg(feature = "bucket")]
pub fn follow(
    folder: &Path,
    address: &str,
    settings: Option<&RemoteSettings>,
) -> Result<Arc<Remote>, SettingsError> {
    Remote::new(folder, address, settings.cloned().unwrap_or_default())
        .map(Arc::new)
        .map_err(|error| SettingsError::Invalid {
            path: folder.join("scope.toml"),
            message: format!(
                "{error}; {}",
                error.hint_for(&OwnNames::Anyone).unwrap_or_default()
            ),
            line: None,
            nearest: Vec::new(),
            known: Vec::new(),
        })
}

/// A build without buckets cannot follow one.
#[cfg(not(feature = "bucket"))]
pub fn follow(
    folder: &Path,
    _: &str,
    _: Option<&RemoteSettings>,
) -> Result<Arc<Remote>, SettingsError> {
    let path = folder.join("scope.toml");
    Err(SettingsError::LightBuild { path })
}

/// Stand-ins for a build without buckets.
#[cfg(not(feature = "bucket"))]
mod without {
    use std::path::PathBuf;
    use std::sync::Arc;

    use ack_api::remote::{Freshness, WaitPolicy};

    /// A bucket. This build cannot create one.
    #[derive(Debug)]
    pub struct Remote {
        never: std::convert::Infallible,
    }

    impl Remote {
        /// The database.
        pub fn database(&self) -> PathBuf {
            match self.never {}
        }

        /// The folder of the table.
        pub fn table_folder(&self) -> PathBuf {
            match self.never {}
        }

        /// Sets how many memories may be read into memory early.
        pub fn set_resident(&self, _: usize) {
            match self.never {}
        }

        /// Begins to ask the bucket.
        pub fn begin(self: &Arc<Self>) {
            match self.never {}
        }

        /// How up to date the copy is.
        pub fn prepare(self: &Arc<Self>, _: WaitPolicy) -> Freshness {
            match self.never {}
        }

        /// Checks the local copy of the table.
        pub fn check_table(&self) -> bool {
            match self.never {}
        }

        /// Rebuilds the local copy of the records.
        pub fn repair_records(self: &Arc<Self>, _: WaitPolicy) -> bool {
            match self.never {}
        }

        /// The bucket.
        pub fn address(&self) -> String {
            match self.never {}
        }

        /// The bucket and the served version.
        pub fn title(&self) -> String {
            match self.never {}
        }
    }
}
