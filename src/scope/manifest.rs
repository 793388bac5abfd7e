//! `scope.toml`: what the owner of a scope says of it.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::project::Projects;
use crate::config::SettingsError;
use ack_api::memory::{Overviews, Unreviewed, Visibility, nearest};
use ack_sys::files;

/// Most bytes of a file of settings.
pub const LARGEST: u64 = 1 << 20;

/// The keys of `scope.toml`. All are optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    /// What the scope is about, in one line; shown by list_scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The projects that belong here: names, or a table of names with their aliases.
    #[serde(skip_serializing_if = "Projects::is_empty")]
    pub projects: Projects,
    /// Folders of those projects; `~` and globs are allowed. The longest match wins. One whose last part is the name of a
    /// project is that project's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Git remotes of those projects, in any spelling, for instance `github.com/org/name`. One whose last part is the name of
    /// a project is that project's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<String>,
    /// `shared` (default): searched from every project. `private`: only when it is current or named.
    pub visibility: Visibility,
    /// A database elsewhere, opened in place; relative to this file, `~` allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<PathBuf>,
    /// What rows of a store without a status column count as: `staging` (default) or `approved`.
    pub unreviewed: Unreviewed,
    /// Whether overviews of sessions, which nobody reviews, are told: `show` or `hide`. Default: `hide` where the store has rows
    /// that are staged or rejected, else `show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overviews: Option<Overviews>,
}

/// The keys, for the nearest one to a misspelt key; `aliases` is one of a project.
pub const KEYS: [&str; 9] = [
    "description",
    "projects",
    "aliases",
    "paths",
    "remotes",
    "visibility",
    "store",
    "unreviewed",
    "overviews",
];

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// [`SettingsError`] when the file cannot be read, is not TOML, or has an unknown key or a value that is not allowed.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        load_toml(path, &KEYS)
    }
}

/// Reads a TOML file into a type that refuses unknown keys; the error names the line, the key and the nearest known one.
///
/// # Errors
/// [`SettingsError::Unreadable`] or [`SettingsError::Invalid`].
pub fn load_toml<T: serde::de::DeserializeOwned>(path: &Path, keys: &[&str]) -> Result<T, SettingsError> {
    let text = files::read_text(path, LARGEST).map_err(|source| SettingsError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| {
        let line = error
            .span()
            .map_or(1, |span| text.get(..span.start).unwrap_or_default().lines().count().max(1));
        let line = match error.span() {
            Some(span) if text.get(..span.start).is_some_and(|before| before.ends_with('\n')) => line + 1,
            _ => line,
        };
        let said = error.message().lines().next().unwrap_or_default().to_owned();
        let key = said.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let near = key.map(|key| nearest(key, keys.iter().copied(), 1)).unwrap_or_default();
        // What stands there, for a message that does not say.
        let there = error
            .span()
            .and_then(|span| text.get(span))
            .map(|there| ack_api::text::line(there, 40))
            .filter(|there| !said.contains(there.as_str()));
        let there = there.map_or_else(String::new, |there| format!(" (`{there}`)"));
        // A message about a value does not name its key.
        let at = text
            .lines()
            .nth(line - 1)
            .and_then(|line| line.split_once('='))
            .map(|(key, _)| key.trim().to_owned());
        let at = at
            .filter(|key| !key.is_empty() && !said.contains(key.as_str()))
            .map_or_else(String::new, |key| format!("`{}`: ", ack_api::text::line(&key, 40)));
        let hint = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        SettingsError::Invalid {
            path: path.to_owned(),
            nearest: near,
            known: keys.iter().map(|key| (*key).to_owned()).collect(),
            message: format!("line {line}: {at}{said}{there}{hint}"),
        }
    })
}

/// The line of the last of some keys, each in the table of the one before; of the nearest one before it that is there, where
/// it stands nowhere.
pub fn line_of(text: &str, path: &[String]) -> usize {
    let Ok(document) = toml_edit::Document::parse(text) else { return 1 };
    let mut table: Option<&dyn toml_edit::TableLike> = Some(document.as_table());
    let mut at = 0;
    for key in path {
        let Some((found, item)) = table.and_then(|table| Some((table.key(key)?, table.get(key)?))) else {
            break;
        };
        if let Some(span) = found.span() {
            at = span.start;
        }
        table = item.as_table_like();
    }
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}
