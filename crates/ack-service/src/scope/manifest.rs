//! `scope.toml`: the owner's configuration of a scope.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::project::{Projects, WrittenProjects};
use crate::config::{SettingsError, load_toml, parse_toml};
use ack_api::memory::{Overviews, Unreviewed, Visibility};
use ack_api::remote::RemoteSettings;
use ack_api::settings;

/// The keys of `scope.toml`. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    /// What the scope is about, in one line; shown by list_scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The projects that belong here: names, or a table of names with their aliases.
    #[serde(skip_serializing_if = "Projects::is_empty")]
    #[schemars(with = "WrittenProjects")]
    pub projects: Projects,
    /// Folders of those projects; `~` and globs are allowed. The longest match wins. A folder whose
    /// last part is the name of a project belongs to that project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Git remotes of those projects, in any spelling, for instance `github.com/org/name`. A remote
    /// whose last part is the name of a project belongs to that project.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<String>,
    /// `shared` (default): searched from every project. `private`: only when it is current or
    /// named.
    pub visibility: Visibility,
    /// A database elsewhere, opened in place; relative to this file, `~` allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<PathBuf>,
    /// Instead of a store, a bucket that memories are published to: `s3://bucket/prefix`, `gs://`
    /// or `az://`. They are fetched and searched on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// For a folder of notes in a git repository: the branch, tag or `HEAD` whose files count as
    /// approved, for instance `origin/main`. Other notes wait for review.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// A file in the format of OpenSSH's `allowed_signers`. Then decisions count only with an SSH
    /// signature of somebody whom it lists, and nothing else approves. Relative to this file, `~`
    /// allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signers: Option<PathBuf>,
    /// What rows of a store without a status column count as: `staging` (default) or `approved`. A
    /// flagged row is approved only by a person.
    pub unreviewed: Unreviewed,
    /// Whether overviews of sessions, which nobody reviews, and their titles are shown: `show` or
    /// `hide`. Default: `hide` if the store has staged or rejected rows, else `show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overviews: Option<Overviews>,
    /// How to reach the bucket in `table`, and how long a fetched copy may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteSettings>,
}

impl Manifest {
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        load_toml(path, settings::keys::<Self>)
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        parse_toml(text, path, settings::keys::<Self>)
    }

    pub fn keys() -> Vec<String> {
        let schema = schemars::schema_for!(Self).to_value();
        let properties = schema.get("properties").and_then(|keys| keys.as_object());
        properties.into_iter().flat_map(|keys| keys.keys().cloned()).collect()
    }
}
