//! Settings: flags, then environment variables, then `config.toml`, then defaults. Each setting is
//! declared once. The effective value remembers its source.

mod error;
pub mod file;
pub mod tools;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use ack_api::memory::{StatusFilter, Unreviewed};
use ack_api::settings::upstream::UpstreamEntry;
use ack_api::settings::{bounded, keys};
use ack_api::uri::file_path;
use ack_sys::files::expand_home;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

pub use self::error::{FULL_BUILD, LIGHT_BUILD, Part, SettingsError};
pub use self::file::{MAX_SETTINGS_BYTES, line_of, load_toml, parse_toml};
use self::tools::ToolsTable;

pub const ENV_ROOT: &str = "ACK_MEM_PATH";
pub const ENV_SCOPE: &str = "ACK_MEM_SCOPE";
pub const ENV_DB: &str = "ACK_MEM_DB";
pub const ENV_PROJECT: &str = "CLAUDE_PROJECT_DIR";
pub const ENV_CURSOR_PROJECT: &str = "CURSOR_PROJECT_DIR";
pub const ENV_WORKSPACE: &str = "WORKSPACE_FOLDER_PATHS";
pub const ENV_TOKEN: &str = "ACK_MEM_TOKEN";

pub const ENV_LOG: &str = "ACK_MEM_LOG";

pub const ENVIRONMENT: [(&str, &str); 8] = [
    (ENV_ROOT, "the scope root (default `~/.ack-mem`)"),
    (ENV_SCOPE, "the current scope, whatever the project is; others can still be named"),
    (
        ENV_DB,
        "a single database, served as the only scope, named after `--pin` or `ACK_MEM_SCOPE` if they \
         are given",
    ),
    (ENV_PROJECT, "the current project's folder, where no `-C` is given"),
    (ENV_CURSOR_PROJECT, "the same, where neither `-C` nor `CLAUDE_PROJECT_DIR` is given"),
    (
        ENV_WORKSPACE,
        "the folders of the editor's workspace, separated by commas, where no project's folder is \
         given; the first that belongs to a scope is the current project's",
    ),
    (ENV_TOKEN, "the bearer token of `serve --http`"),
    (
        ENV_LOG,
        "`1` or `info`: log the resolved settings to standard error, like `-v`; unset, `0` or \
         `off`: do not",
    ),
];

const DEFAULT_TOKENS: u32 = 4_000;
/// Memory for the indexes of all scopes together.
const INDEX_BYTES: usize = 1 << 30;
/// The largest vector table, in memories, that is read into memory.
const DEFAULT_RESIDENT: u32 = 200_000;

const DEFAULT_SECONDS: u32 = 30;

/// The keys of `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// The scope of projects that no manifest claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_scope: Option<String>,
    /// Which memories agents may ask for: `approved` (the default), or `all`, which adds those that
    /// wait for review. The command line shows them either way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_status: Option<MaxStatus>,
    /// Default limits of a request.
    pub limits: Limits,
    /// Which tools agents see.
    pub tools: ToolsTable,
    /// Other MCP servers whose tools are offered too, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream: BTreeMap<String, UpstreamEntry>,
}

/// The part of `config.toml` that every command needs. Only `serve` and `doctor` read what `serve`
/// offers, so a mistake there does not break other commands.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CommonSettings {
    default_scope: Option<String>,
    max_status: Option<MaxStatus>,
    limits: Limits,
    #[serde(rename = "tools")]
    _tools: IgnoredAny,
    #[serde(rename = "upstream")]
    _upstream: IgnoredAny,
}

/// Which memories agents may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MaxStatus {
    /// Approved and promoted ones.
    #[default]
    Approved,
    /// Also those that wait for review, if a request asks for them.
    All,
}

impl MaxStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::All => "all",
        }
    }

    /// The part of a status filter that a caller may use, or `None`. Only agents are limited.
    pub const fn allowed(self, by_agent: bool, requested: StatusFilter) -> Option<StatusFilter> {
        match (self, requested) {
            (Self::Approved, StatusFilter::Staging) if by_agent => None,
            (Self::Approved, StatusFilter::All) if by_agent => Some(StatusFilter::Approved),
            _ => Some(requested),
        }
    }

    /// Whether a caller may not read memories that wait for review.
    pub const fn withholds(self, by_agent: bool) -> bool {
        by_agent && matches!(self, Self::Approved)
    }
}

/// `[limits]` of `config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum tokens of a search, a list or a context, 200 to 20000 (default 4000). Memories by id
    /// get up to 11000.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 200, 20000>"
    )]
    #[schemars(range(min = 200, max = 20000))]
    pub tokens: Option<u32>,
    /// The largest vector table that is read into memory, in memories, 10000 to 16000000 (default
    /// 200000). A larger one is searched on disk, which needs less memory but counts only the best
    /// matches.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::<_, 10_000, 16_000_000>"
    )]
    #[schemars(range(min = 10_000, max = 16_000_000))]
    pub resident: Option<u32>,
    /// Timeout of a client's request in seconds, 1 to 3600 (default 30). Commands have no timeout.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "bounded::<_, 1, 3600>")]
    #[schemars(range(min = 1, max = 3600))]
    pub seconds: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Flag(&'static str),
    Environment(&'static str),
    File,
    Workspace,
    WorkingDirectory,
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(out, "flag {flag}"),
            Self::Environment(variable) => write!(out, "environment {variable}"),
            Self::File => out.write_str("config.toml"),
            Self::Workspace => out.write_str("the client's workspace"),
            Self::WorkingDirectory => out.write_str("working directory"),
            Self::Default => out.write_str("default"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

impl<T> Setting<T> {
    const fn of(value: T, source: Source) -> Self {
        Self { value, source }
    }

    pub const fn flag(name: &'static str, value: T) -> Self {
        Self::of(value, Source::Flag(name))
    }

    pub const fn variable(name: &'static str, value: T) -> Self {
        Self::of(value, Source::Environment(name))
    }

    fn from_file(value: Option<T>, default: T) -> Self {
        match value {
            Some(value) => Self::of(value, Source::File),
            None => Self::of(default, Source::Default),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// `--root` or `ACK_MEM_PATH`.
    pub root: Option<Setting<PathBuf>>,
    /// `--db` or `ACK_MEM_DB`.
    pub db: Option<Setting<PathBuf>>,
    /// `--unreviewed`: how to treat rows of that database that have no status.
    pub unreviewed: Option<Unreviewed>,
    /// `--pin`.
    pub pinned: Option<Setting<String>>,
    /// `ACK_MEM_SCOPE`.
    pub current_scope: Option<Setting<String>>,
    /// `-C` or `CLAUDE_PROJECT_DIR`.
    pub project: Option<Setting<PathBuf>>,
    /// The folders that an editor names, where there is no `project`: `CURSOR_PROJECT_DIR`, then
    /// `WORKSPACE_FOLDER_PATHS`.
    pub workspace: Vec<Setting<PathBuf>>,
    pub home: Option<PathBuf>,
    /// The working directory; empty if it was removed.
    pub working_directory: PathBuf,
}

impl Inputs {
    pub fn needs_working_directory(&self) -> bool {
        let mut paths = [&self.root, &self.db, &self.project].into_iter().flatten();
        paths.any(|path| absolute(&path.value, Path::new(""), self.home.as_deref()).is_relative())
    }
}

/// A path as people and clients write it: with `~`, as a `file://` address, or relative.
pub fn absolute(path: &Path, folder: &Path, home: Option<&Path>) -> PathBuf {
    folder.join(path.to_str().and_then(file_path).unwrap_or_else(|| expand_home(path, home)))
}

#[derive(Debug, Clone)]
pub struct Config {
    pub root: Setting<PathBuf>,
    pub db: Option<Setting<PathBuf>>,
    /// How to treat rows of that database that have no status. Overrides the manifest next to it.
    pub unreviewed: Option<Unreviewed>,
    pub pinned: Option<Setting<String>>,
    /// The scope that is current, whatever the project is. It does not limit requests.
    pub current_scope: Option<Setting<String>>,
    /// The current project's folder; empty if the working directory was removed.
    pub project: Setting<PathBuf>,
    /// Further folders of a client's workspace; see [`Config::with_workspace`].
    pub other_folders: Vec<PathBuf>,
    pub default_scope: Option<Setting<String>>,
    pub tokens: Setting<u32>,
    /// What a request needs is always available; the least recently used are dropped first.
    pub index_bytes: usize,
    pub resident: Setting<u32>,
    pub seconds: Setting<u32>,
    pub max_status: Setting<MaxStatus>,
    pub home: Option<PathBuf>,
    pub file: Option<PathBuf>,
    /// Whether no connection may be opened.
    pub offline: bool,
    pub clock: fn() -> jiff::Timestamp,
    /// The command line of this program for what comes after its name, with this process's flags.
    pub command: fn(&str) -> String,
}

impl Config {
    /// The settings of a scope root: its `config.toml` if there is one, else defaults. Reads
    /// nothing from the environment: there is no home folder, and no current project until
    /// [`Config::with_project`] sets one.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, SettingsError> {
        Self::load(Inputs { root: Some(Setting::flag("--root", root.into())), ..Inputs::default() })
    }

    #[must_use]
    pub fn with_project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Setting::flag("-C", folder.into());
        self
    }

    /// Whether only the working directory says which project is current. Then a client's workspace
    /// says it better, because many clients start servers elsewhere.
    pub const fn wants_workspace(&self) -> bool {
        matches!(self.project.source, Source::WorkingDirectory)
    }

    /// Sets the folders of a client's workspace (the roots of MCP), as paths or `file://`
    /// addresses. The first that belongs to a scope is then the current project; without one, the
    /// first of all. The working directory is looked at last. Changes nothing unless
    /// [`Config::wants_workspace`], or if none is a folder of this machine. When the client's
    /// folders change, call it again on the settings as they were.
    #[must_use]
    pub fn with_workspace(self, folders: impl IntoIterator<Item = String>) -> Self {
        let home = self.home.clone();
        let folders = folders.into_iter().map(|folder| {
            let folder = absolute(folder.as_ref(), Path::new(""), home.as_deref());
            Setting::of(folder, Source::Workspace)
        });
        self.in_workspace(folders)
    }

    fn in_workspace(mut self, folders: impl IntoIterator<Item = Setting<PathBuf>>) -> Self {
        let mut folders = folders.into_iter().filter(|folder| folder.value.is_absolute());
        if self.wants_workspace()
            && let Some(first) = folders.next()
        {
            let working_directory = std::mem::replace(&mut self.project, first);
            let others = folders.chain([working_directory]).map(|folder| folder.value);
            self.other_folders = others.filter(|folder| !folder.as_os_str().is_empty()).collect();
        }
        self
    }

    /// The folders that may be the current project's, most likely first.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.project.value).chain(&self.other_folders).map(PathBuf::as_path)
    }

    /// The scope that this process was given a name of: the pin, or else the current one.
    pub fn named_scope(&self) -> Option<&Setting<String>> {
        self.pinned.as_ref().or(self.current_scope.as_ref())
    }

    pub fn load(inputs: Inputs) -> Result<Self, SettingsError> {
        Self::assemble(inputs, |path| load_toml(path, keys::<ConfigFile>))
    }

    /// The settings as if there were no `config.toml`, for code that diagnoses the file.
    pub fn without_file(inputs: Inputs) -> Result<Self, SettingsError> {
        Self::assemble(inputs, |_| Ok(CommonSettings::default()))
    }

    fn assemble(
        inputs: Inputs,
        read: impl FnOnce(&Path) -> Result<CommonSettings, SettingsError>,
    ) -> Result<Self, SettingsError> {
        let home = inputs.home.as_deref();
        let folder = inputs.working_directory.as_path();
        let absolute =
            |path: Setting<PathBuf>| Setting::of(absolute(&path.value, folder, home), path.source);
        let root = match inputs.root {
            Some(root) => absolute(root),
            None => {
                Setting::of(home.ok_or(SettingsError::NoHome)?.join(".ack-mem"), Source::Default)
            }
        };
        let project = inputs.project.map(absolute).unwrap_or_else(|| {
            Setting::of(inputs.working_directory.clone(), Source::WorkingDirectory)
        });
        let workspace: Vec<_> = inputs.workspace.into_iter().map(absolute).collect();
        let db = inputs.db.map(absolute);
        let path = root.value.join("config.toml");
        let file = path.exists().then_some(path);
        let settings = file.as_deref().map(read).transpose()?.unwrap_or_default();
        let config = Self {
            root,
            db,
            unreviewed: inputs.unreviewed,
            pinned: inputs.pinned,
            current_scope: inputs.current_scope,
            project,
            other_folders: Vec::new(),
            default_scope: settings.default_scope.map(|value| Setting::of(value, Source::File)),
            tokens: Setting::from_file(settings.limits.tokens, DEFAULT_TOKENS),
            index_bytes: INDEX_BYTES,
            resident: Setting::from_file(settings.limits.resident, DEFAULT_RESIDENT),
            seconds: Setting::from_file(settings.limits.seconds, DEFAULT_SECONDS),
            max_status: Setting::from_file(settings.max_status, MaxStatus::default()),
            home: inputs.home,
            offline: false,
            file,
            clock: jiff::Timestamp::now,
            command: |command| format!("ack-memory {command}"),
        };
        Ok(config.in_workspace(workspace))
    }
}
