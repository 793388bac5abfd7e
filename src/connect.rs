//! Connecting a client: what its configuration files have to hold for it to start this server and to call its hooks.
//!
//! A client is a row of [`Client::ALL`] and says where its files lie and which shape they have ([`Client::files`]); what is
//! put into a file is a list of [`Part`]s. [`mod@json`] and [`mod@toml`] put parts into a text and take them out again, leaving every
//! other byte as it was; [`mod@file`] plans, shows and writes changes. Nothing here runs a program.

pub mod file;
pub mod json;
pub mod toml;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The name under which the server stands in a client's configuration. Gemini CLI allows no underscore in it.
pub const NAME: &str = "ack-memory";
/// Seconds a host may wait for a hook; it takes a fraction of one.
const HOOK_SECONDS: u32 = 10;

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
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and trailing commas are kept where they are.
    Json,
    /// TOML.
    Toml,
}

/// One thing that stands in a configuration file.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A member of the object or table at `path`, under `name`.
    Member {
        /// Keys that lead to the object.
        path: Vec<&'static str>,
        /// Its own key.
        name: &'static str,
        /// What stands there.
        value: Value,
    },
    /// An entry of the array at `path`. It is known by the command it runs.
    Entry {
        /// Keys that lead to the array.
        path: Vec<&'static str>,
        /// The entry.
        value: Value,
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
}

/// How the server and its hooks are started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// This program.
    pub binary: PathBuf,
    /// Flags before the command: root, database, scope.
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
}

impl Launch {
    /// The program and arguments that start the server.
    pub fn server(&self) -> (String, Vec<String>) {
        let surface = self.surface.into_iter().flat_map(|name| ["--surface".to_owned(), name.to_owned()]);
        let arguments = self.flags.iter().cloned().chain(["serve".to_owned()]).chain(surface).collect();
        (self.binary.display().to_string(), arguments)
    }

    /// The shell command of a hook.
    pub fn hook(&self, hook: &str, client: Client) -> String {
        let words = [self.binary.display().to_string()]
            .into_iter()
            .chain(self.flags.iter().cloned())
            .chain(["hook", hook, "--client", client.name()].map(str::to_owned));
        words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }
}

/// A word as the system's shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,~".contains(c) || (cfg!(windows) && c == '\\');
    // A tilde is expanded where a word begins with it.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('~') {
        word.to_owned()
    } else if cfg!(windows) {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl Client {
    /// Every client.
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::VsCode,
        Self::Gemini,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Gemini => "gemini",
        }
    }

    /// Which hooks it can call: when a session starts, and on a prompt. Cursor's hook on prompts adds nothing to them.
    pub const fn hooks(self) -> Hooks {
        let (session_start, user_prompt) = match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => (true, true),
            Self::Cursor => (true, false),
            Self::ClaudeDesktop | Self::VsCode => (false, false),
        };
        Hooks {
            session_start,
            user_prompt,
        }
    }

    /// The command of its own that registers the server, if it has one.
    pub fn own_command(self, launch: &Launch) -> Option<String> {
        let (binary, arguments) = launch.server();
        let call = |before: &[&str]| {
            let words = before
                .iter()
                .map(|word| (*word).to_owned())
                .chain([binary.clone()])
                .chain(arguments.clone());
            words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::ClaudeCode => Some(call(&["claude", "mcp", "add", "--scope", "user", NAME, "--"])),
            Self::Codex => Some(call(&["codex", "mcp", "add", NAME, "--"])),
            _ => None,
        }
    }

    /// What its user has to know besides.
    pub const fn remark(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("Claude Code writes to ~/.claude.json while it runs: end it before, or use its own command."),
            Self::Codex => Some("Codex runs a new hook only after it was trusted: /hooks in a session shows it."),
            Self::ClaudeDesktop => Some("Claude Desktop reads this file when it starts."),
            Self::Cursor | Self::VsCode | Self::Gemini => None,
        }
    }

    /// The files that connect it, with what belongs into each. `None` where it has no files of a project's own.
    pub fn files(self, places: &Places, launch: &Launch, hooks: Hooks) -> Option<Vec<ConfigFile>> {
        let (server, hook) = self.paths(places)?;
        let (command, arguments) = launch.server();
        let value = match self {
            Self::ClaudeCode | Self::VsCode => json!({ "type": "stdio", "command": command, "args": arguments }),
            _ => json!({ "command": command, "args": arguments }),
        };
        let key = match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            _ => "mcpServers",
        };
        let server = ConfigFile {
            path: server,
            format: if self == Self::Codex { Format::Toml } else { Format::Json },
            parts: vec![Part::Member {
                path: vec![key],
                name: NAME,
                value,
            }],
        };
        let mut files = vec![server];
        let able = self.hooks();
        let mut parts = Vec::new();
        if hooks.session_start && able.session_start {
            parts.push(self.hook("session-start", launch));
        }
        if hooks.user_prompt && able.user_prompt {
            parts.push(self.hook("user-prompt", launch));
        }
        let Some(path) = hook.filter(|_| !parts.is_empty()) else {
            return Some(files);
        };
        if self == Self::Cursor {
            parts.insert(
                0,
                Part::Needed {
                    name: "version",
                    value: json!(1),
                },
            );
        }
        match files.first_mut().filter(|file| file.path == path) {
            Some(file) => file.parts.extend(parts),
            None => files.push(ConfigFile {
                path,
                format: Format::Json,
                parts,
            }),
        }
        Some(files)
    }

    /// The entry of a hook.
    fn hook(self, hook: &str, launch: &Launch) -> Part {
        let command = launch.hook(hook, self);
        let event = match (self, hook) {
            (Self::Cursor, _) => "sessionStart",
            (_, "session-start") => "SessionStart",
            (Self::Gemini, _) => "BeforeAgent",
            _ => "UserPromptSubmit",
        };
        let value = match self {
            Self::Cursor => json!({ "command": command }),
            // Gemini CLI counts milliseconds.
            Self::Gemini => {
                json!({ "hooks": [{ "type": "command", "name": NAME, "command": command, "timeout": HOOK_SECONDS * 1_000 }] })
            }
            _ => json!({ "hooks": [{ "type": "command", "command": command, "timeout": HOOK_SECONDS }] }),
        };
        Part::Entry {
            path: vec!["hooks", event],
            value,
        }
    }

    /// The files that name the server and the hooks.
    fn paths(self, places: &Places) -> Option<(PathBuf, Option<PathBuf>)> {
        let home = |path: &str| places.home.join(path);
        Some(match (self, &places.project) {
            // What names a path of this machine goes into the local settings of a project.
            (Self::ClaudeCode, Some(project)) => (project.join(".mcp.json"), Some(project.join(".claude/settings.local.json"))),
            (Self::ClaudeCode, None) => match &places.claude {
                Some(folder) => (folder.join(".claude.json"), Some(folder.join("settings.json"))),
                None => (home(".claude.json"), Some(home(".claude/settings.json"))),
            },
            (Self::ClaudeDesktop, Some(_)) => return None,
            (Self::ClaudeDesktop, None) => (places.settings.join("Claude/claude_desktop_config.json"), None),
            (Self::Codex, project) => {
                let folder = match (project, &places.codex) {
                    (Some(project), _) => project.join(".codex"),
                    (None, Some(folder)) => folder.clone(),
                    (None, None) => home(".codex"),
                };
                (folder.join("config.toml"), Some(folder.join("hooks.json")))
            }
            (Self::Cursor, project) => {
                let folder = project.as_deref().unwrap_or(&places.home).join(".cursor");
                (folder.join("mcp.json"), Some(folder.join("hooks.json")))
            }
            (Self::VsCode, Some(project)) => (project.join(".vscode/mcp.json"), None),
            (Self::VsCode, None) => (places.settings.join("Code/User/mcp.json"), None),
            (Self::Gemini, project) => {
                let file = project.as_deref().unwrap_or(&places.home).join(".gemini/settings.json");
                (file.clone(), Some(file))
            }
        })
    }
}

/// Whether an entry of an array runs a hook of this program: any version of it, from any place.
pub fn is_ours(entry: &Value) -> bool {
    let ours = |entry: &Value| entry.get("command").and_then(Value::as_str).is_some_and(runs_hook);
    let inner = entry.get("hooks").and_then(Value::as_array);
    ours(entry) || inner.is_some_and(|inner| !inner.is_empty() && inner.iter().all(ours))
}

/// Whether a shell command is `…ack-memory … hook session-start …` or `… hook user-prompt …`.
fn runs_hook(command: &str) -> bool {
    let Some((program, rest)) = command.split_once(" hook ") else {
        return false;
    };
    let hook = rest.split_whitespace().next().unwrap_or_default();
    let named = |word: &str| {
        let name = Path::new(word.trim_matches(['\'', '"'])).file_stem();
        name.is_some_and(|name| name == NAME)
    };
    // A path may hold blanks: its last part still is the program's name.
    ["session-start", "user-prompt"].contains(&hook) && program.split_whitespace().any(named)
}

/// The members of an object as they go into a file.
fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
