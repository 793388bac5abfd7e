//! Connects a client: writes the entries that its configuration files need to start this server and
//! call its hooks.
//!
//! A client is a variant of [`Client::ALL`] and a row of `clients.toml`. [`Client::files`] says where
//! its files are and what goes into them, as a list of [`Part`]s. `parts` adds them to settings and removes them again;
//! `json`, `toml` and `yaml` change the text of a file where the settings differ, and leave every
//! other byte as it was. [`mod@file`] plans, shows, writes and undoes changes. [`ours`] recognises
//! our own entries, [`runner`] a start by `npx` or the like. [`status`] says what a client's files
//! contain, [`unreviewed`] what else puts text into its sessions, and [`switch`] switches that off
//! and on again. Nothing here runs a program.

mod backup;
mod client;
mod error;
pub mod file;
mod hooks;
mod json;
pub mod ours;
mod parts;
pub mod recogniser;
pub mod runner;
pub mod status;
pub mod switch;
mod toml;
pub mod unreviewed;
mod yaml;

pub use self::client::ClientRow;
pub use self::error::ConnectError;
pub use self::hooks::Hook;
pub use ack_api::shell::{quoted, quoted_path};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantArray};

use switch::Switch;

/// The server's name in a client's configuration. Gemini CLI allows no underscore in it.
pub const NAME: &str = "ack-memory";

#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    #[strum(serialize = "vscode")]
    VsCode,
    Gemini,
    Copilot,
    #[strum(serialize = "opencode")]
    OpenCode,
    Qwen,
    Cline,
    /// Cline's extension for VS Code, before it shared files with the command line.
    #[strum(serialize = "cline-vscode")]
    ClineVsCode,
    Roo,
    Windsurf,
    Zed,
    Amp,
    Kiro,
    Junie,
    Droid,
    Goose,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    #[default]
    Json,
    Toml,
    /// YAML, in block style.
    Yaml,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A member of the object or table at `path`, called `name`. If it exists, the keys that start
    /// the server ([`ours::START_KEYS`]) are overwritten; other keys are only added if missing.
    Member { path: Vec<&'static str>, name: &'static str, value: Value },
    /// A hook: an entry of the array at `path`, recognised by the command it runs. It is changed in
    /// place, because Codex identifies a trusted hook by its position.
    Entry { path: Vec<&'static str>, value: Value },
    /// Strings in the list at `path` that name the server or its tools.
    Words { path: Vec<&'static str>, words: Vec<String> },
    /// A rule in the list at `path` that keeps the client from writing below the root of the
    /// memories. It replaces one about a former root.
    Rule { path: Vec<&'static str>, rule: Option<String>, former: Vec<String> },
    /// A member that the file needs and that may exist already. An existing one is left alone, and
    /// it is never removed while others need it.
    Required { name: &'static str, value: Value },
    /// Something else that puts unreviewed text into sessions. It is switched off on request alone,
    /// and comes back when our parts are removed.
    Switch(Switch),
}

impl Part {
    /// The path to the object or list that it goes into, if that may be removed with it.
    fn path(&self) -> Option<&[&'static str]> {
        match self {
            Self::Member { path, .. }
            | Self::Entry { path, .. }
            | Self::Words { path, .. }
            | Self::Rule { path, .. } => Some(path),
            Self::Required { .. } | Self::Switch(_) => None,
        }
    }

    const fn switch(&self) -> Option<&Switch> {
        match self {
            Self::Switch(switch) => Some(switch),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClientFile {
    pub path: PathBuf,
    pub format: FileFormat,
    pub parts: Vec<Part>,
    pub kept_folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, Default)]
pub struct ClientPlaces {
    pub home: PathBuf,
    /// The system's folder for settings (`~/.config`, `~/Library/Application Support`).
    pub settings: PathBuf,
    pub project: Option<PathBuf>,
    pub claude: Option<PathBuf>,
    pub codex: Option<PathBuf>,
    pub copilot: Option<PathBuf>,
}

impl ClientPlaces {
    pub fn claude_folder(&self) -> PathBuf {
        self.claude.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    /// The same, where only the user's files are meant.
    #[must_use]
    pub fn of_user(&self) -> Self {
        Self { project: None, ..self.clone() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// This program, or the package runner that starts it.
    pub binary: PathBuf,
    /// The arguments of the package runner, up to the package.
    pub runner: &'static [&'static str],
    /// The name by which the shell's PATH finds the same program or runner, if it does.
    pub name: Option<&'static str>,
    /// Flags before the command that name places on this machine: root or database.
    pub places: Vec<String>,
    pub flags: Vec<String>,
    pub surface: Option<&'static str>,
}

/// What a client may call without asking its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    Nothing,
    /// These tools. The server also offers tools of other servers, which may do more than read.
    Tools(Vec<String>),
    Server,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extras {
    pub hooks: Vec<Hook>,
    pub allowed: Allowed,
    /// The root of the memories, below which the client's own tools must not write.
    pub root: Option<PathBuf>,
    pub former_roots: Vec<PathBuf>,
}

impl Extras {
    pub fn all() -> Self {
        let hooks = Hook::ALL.into();
        Self { hooks, allowed: Allowed::Server, root: None, former_roots: Vec::new() }
    }
}

impl Launch {
    /// The program by its name alone, to find the files and entries of a client.
    pub fn by_name() -> Self {
        Self { binary: NAME.into(), name: Some(NAME), ..Self::default() }
    }

    pub fn server(&self) -> (String, Vec<String>) {
        let surface = self.surface.into_iter().flat_map(|name| ["--surface", name]);
        let after = ["serve"].into_iter().chain(surface).map(str::to_owned);
        (self.binary.display().to_string(), self.before().chain(after).collect())
    }

    /// The same for one client. A client that runs in a terminal finds the program by its name,
    /// even after a package manager installs the next version elsewhere. Other clients may have a
    /// different PATH.
    #[must_use]
    pub fn for_client(&self, client: Client) -> Self {
        match self.name.filter(|_| client.row().runs_in_a_terminal) {
            Some(name) => Self { binary: name.into(), ..self.clone() },
            None => self.clone(),
        }
    }

    fn before(&self) -> impl Iterator<Item = String> + '_ {
        let runner = self.runner.iter().map(|&word| word.to_owned());
        let places = self.places.iter().cloned();
        runner.chain(places).chain(self.flags.iter().cloned())
    }

    pub fn hook(&self, hook: &str, client: Client) -> String {
        let after = ["hook", hook, "--client", client.name()].map(str::to_owned);
        let words = [self.binary.display().to_string()].into_iter().chain(self.before());
        words.chain(after).map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// What an object in settings holds.
type Members = Map<String, Value>;

fn members(value: &Value) -> Members {
    value.as_object().cloned().unwrap_or_default()
}
