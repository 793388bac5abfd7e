//! The memories of a scope that are published in a bucket: what follows it, in a build with buckets
//! and in one without.

use std::path::Path;
use std::sync::Arc;

use ack_api::remote::RemoteSettings;
#[cfg(feature = "bucket")]
use ack_api::{Diagnostic as _, hint::OwnNames};

#[cfg(feature = "bucket")]
pub use ack_bucket::follow::Remote;

#[cfg(not(feature = "bucket"))]
pub use self::without::Remote;

use crate::config::SettingsError;

pub fn is_bucket(path: &Path) -> bool {
    let path = path.to_string_lossy();
    ["s3://", "gs://", "az://"].iter().any(|scheme| path.starts_with(scheme))
}

/// The memories published at an address, with a local copy in the scope's folder.
#[cfg(feature = "bucket")]
pub fn follow(
    folder: &Path,
    address: &str,
    settings: Option<&RemoteSettings>,
) -> Result<Arc<Remote>, SettingsError> {
    let remote = Remote::new(folder, address, settings.cloned().unwrap_or_default());
    remote.map(Arc::new).map_err(|error| {
        let hint = error.hint_for(&OwnNames::Anyone).unwrap_or_default();
        SettingsError::invalid(folder.join("scope.toml"), format!("{error}; {hint}"))
    })
}

#[cfg(not(feature = "bucket"))]
pub fn follow(
    folder: &Path,
    _: &str,
    _: Option<&RemoteSettings>,
) -> Result<Arc<Remote>, SettingsError> {
    Err(SettingsError::LightBuild { path: folder.join("scope.toml") })
}

#[cfg(not(feature = "bucket"))]
mod without {
    use std::path::PathBuf;
    use std::sync::Arc;

    use ack_api::remote::{Freshness, WaitPolicy};

    /// A bucket. This build cannot create one.
    #[derive(Debug)]
    pub enum Remote {}

    impl Remote {
        pub fn database(&self) -> PathBuf {
            match *self {}
        }

        pub fn table_folder(&self) -> PathBuf {
            match *self {}
        }

        pub fn begin(self: &Arc<Self>) {
            match **self {}
        }

        pub fn prepare(self: &Arc<Self>, _: WaitPolicy) -> Freshness {
            match **self {}
        }

        pub fn check_table(&self) -> bool {
            match *self {}
        }

        pub fn repair_records(self: &Arc<Self>, _: WaitPolicy) -> bool {
            match **self {}
        }

        pub fn address(&self) -> String {
            match *self {}
        }

        pub fn title(&self) -> String {
            match *self {}
        }
    }
}
