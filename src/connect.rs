//! Connecting a client: what its configuration files have to hold for it to start this server and to call its hooks.
//!
//! A client is a row of [`Client::ALL`] and says where its files lie and which shape they have ([`Client::files`]); what is
//! put into a file is a list of [`Part`]s. [`mod@json`], [`mod@toml`] and [`mod@yaml`] put parts into a text and take them out again, leaving every
//! other byte as it was; [`mod@file`] plans, shows and writes changes; [`ours`] tells what is ours from what is not. Nothing
//! here runs a program.

mod client;
mod error;
pub mod file;
pub mod json;
pub mod ours;
pub mod status;
pub mod toml;
pub mod yaml;

pub use self::error::ConnectError;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// The name under which the server stands in a client's configuration. Gemini CLI allows no underscore in it.
pub const NAME: &str = "ack-memory";
/// A program that can use the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Gemini CLI.
    Gemini,
    /// GitHub's Copilot CLI.
    Copilot,
    /// OpenCode.
    OpenCode,
    /// Qwen Code.
    Qwen,
    /// Cline.
    Cline,
    /// Cline's extension for VS Code, before it shared the files of the command line.
    ClineVsCode,
    /// Roo Code.
    Roo,
    /// Windsurf.
    Windsurf,
    /// Zed.
    Zed,
    /// Amp.
    Amp,
    /// Kiro.
    Kiro,
    /// JetBrains Junie.
    Junie,
    /// Factory's Droid.
    Droid,
    /// Goose.
    Goose,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are kept where they are.
    Json,
    /// TOML.
    Toml,
    /// YAML, in block form.
    Yaml,
}

/// One thing that stands in a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A member of the object or table at `path`, under `name`. Where it is there already, the keys that start the server are
    /// set ([`ours::STARTS`]), others only where they are missing.
    Member {
        /// Keys that lead to the object.
        path: Vec<&'static str>,
        /// Its own key.
        name: &'static str,
        /// What stands there.
        value: Value,
    },
    /// A hook: an entry of the array at `path`, known by the command it runs. It is changed where it stands, for Codex knows
    /// a hook that was trusted by its place.
    Entry {
        /// Keys that lead to the array.
        path: Vec<&'static str>,
        /// The entry.
        value: Value,
    },
    /// Texts in the list at `path` that name the server or its tools.
    Words {
        /// Keys that lead to the list.
        path: Vec<&'static str>,
        /// The texts.
        words: Vec<String>,
    },
    /// A member that the file needs and that may be there already; it is left alone then, and never taken out while others
    /// need it.
    Needed {
        /// Its key at the top of the file.
        name: &'static str,
        /// What stands there if nothing does.
        value: Value,
    },
}

/// A configuration file and what belongs into it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigFile {
    /// Where it lies.
    pub path: PathBuf,
    /// How it is written.
    pub format: Format,
    /// What belongs into it.
    pub parts: Vec<Part>,
    /// Folders that stay, even if nothing is left in them.
    pub stays: Vec<PathBuf>,
}

/// Where clients keep their files.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The home folder.
    pub home: PathBuf,
    /// The system's folder for settings (`~/.config`, `~/Library/Application Support`, `%APPDATA%`).
    pub settings: PathBuf,
    /// The project's folder, to connect it alone.
    pub project: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex: Option<PathBuf>,
    /// `COPILOT_HOME`.
    pub copilot: Option<PathBuf>,
}

/// How the server and its hooks are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// This program.
    pub binary: PathBuf,
    /// Whether it is the one that its name starts, by the PATH of the shell.
    pub is_on_path: bool,
    /// Flags before the command that name places of this machine: root or database.
    pub places: Vec<String>,
    /// Further flags: the scope.
    pub flags: Vec<String>,
    /// The set of tools that the server offers, where one is named.
    pub surface: Option<&'static str>,
}

/// Which hooks are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hooks {
    /// Memories when a session starts.
    pub session_start: bool,
    /// Memories that a prompt is about.
    pub user_prompt: bool,
    /// Memories about a file before it is edited.
    pub pre_tool_use: bool,
}

/// What a client may call without asking its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// Nothing; the user decides.
    Nothing,
    /// These tools: the server offers others' besides, which may do more than read.
    Tools(Vec<String>),
    /// All that the server offers.
    Server,
}

/// What is set up beside the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The hooks.
    pub hooks: Hooks,
    /// The permission to call the tools.
    pub allowed: Allowed,
}

impl Wanted {
    /// Everything there is, to take it out.
    pub const ALL: Self = Self {
        hooks: Hooks {
            session_start: true,
            user_prompt: true,
            pre_tool_use: true,
        },
        allowed: Allowed::Server,
    };
}

impl Launch {
    /// The same for a file that others read too, on other machines: the program by its name, without a path.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self {
            binary: NAME.into(),
            places: Vec::new(),
            ..self.clone()
        }
    }

    /// The program and arguments that start the server.
    pub fn server(&self) -> (String, Vec<String>) {
        let surface = self
            .surface
            .into_iter()
            .flat_map(|name| ["--surface".to_owned(), name.to_owned()]);
        let arguments = self
            .before()
            .chain(["serve".to_owned()])
            .chain(surface)
            .collect();
        (self.binary.display().to_string(), arguments)
    }

    /// The same for one client. What runs in a terminal finds the program by its name, also after a
    /// package manager has put the next version elsewhere; other programs may have another PATH.
    #[must_use]
    pub fn for_client(&self, client: Client) -> Self {
        if self.is_on_path && client.runs_in_a_terminal() {
            Self {
                binary: NAME.into(),
                ..self.clone()
            }
        } else {
            self.clone()
        }
    }

    fn before(&self) -> impl Iterator<Item = String> + '_ {
        self.places.iter().chain(&self.flags).cloned()
    }

    /// The shell command of a hook.
    pub fn hook(&self, hook: &str, client: Client) -> String {
        let words = [self.binary.display().to_string()]
            .into_iter()
            .chain(self.before())
            .chain(["hook", hook, "--client", client.name()].map(str::to_owned));
        words
            .map(|word| quoted(&word))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A word as the system's shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,~".contains(c);
    // A tilde is expanded where a word begins with it.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('~') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The members of an object as they go into a file.
fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
