//! The clients: where each keeps its files, and what goes into them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Allowed, Client, ClientFile, ClientPlaces, Extras, FileFormat, Launch, NAME, Part, ours, quoted,
};
use ack_service::config::{ENV_DB, ENV_ROOT};

/// Seconds that Goose waits for a call: its own default.
const CALL_SECONDS: u32 = 300;

impl Client {
    pub const ALL: [Self; 19] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::VsCode,
        Self::Gemini,
        Self::Copilot,
        Self::OpenCode,
        Self::Qwen,
        Self::Cline,
        Self::ClineVsCode,
        Self::Roo,
        Self::Windsurf,
        Self::Zed,
        Self::Amp,
        Self::Kiro,
        Self::Junie,
        Self::Droid,
        Self::Goose,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::OpenCode => "opencode",
            Self::Qwen => "qwen",
            Self::Cline => "cline",
            Self::ClineVsCode => "cline-vscode",
            Self::Roo => "roo",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Amp => "amp",
            Self::Kiro => "kiro",
            Self::Junie => "junie",
            Self::Droid => "droid",
            Self::Goose => "goose",
        }
    }

    /// Whether it runs in a terminal, with the PATH of a shell.
    pub const fn runs_in_a_terminal(self) -> bool {
        matches!(
            self,
            Self::ClaudeCode
                | Self::Codex
                | Self::Gemini
                | Self::Copilot
                | Self::OpenCode
                | Self::Qwen
                | Self::Amp
                | Self::Droid
        )
    }

    pub const fn has_project_settings(self) -> bool {
        self.project_files().is_some()
    }

    pub const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["claude"],
            Self::Codex => &["codex"],
            Self::Cursor => &["cursor", "cursor-agent"],
            Self::VsCode => &["code"],
            Self::Gemini => &["gemini"],
            Self::Copilot => &["copilot"],
            Self::OpenCode => &["opencode"],
            Self::Qwen => &["qwen"],
            Self::Cline => &["cline"],
            Self::Windsurf => &["windsurf"],
            Self::Zed => &["zed", "zeditor"],
            Self::Amp => &["amp"],
            Self::Kiro => &["kiro", "kiro-cli"],
            Self::Junie => &["junie"],
            Self::Droid => &["droid"],
            Self::Goose => &["goose"],
            Self::ClaudeDesktop | Self::ClineVsCode | Self::Roo => &[],
        }
    }

    pub fn has_settings_folder(self, places: &ClientPlaces) -> bool {
        let (server, _) = self.user_files(places);
        let folder = match self {
            // Its settings file is directly in the home folder.
            Self::ClaudeCode if places.claude.is_none() => {
                return server.is_file() || places.home.join(".claude").is_dir();
            }
            Self::Kiro | Self::Junie | Self::ClineVsCode | Self::Roo => {
                server.parent().and_then(Path::parent)
            }
            Self::Cline => return places.home.join(".cline").is_dir(),
            _ => server.parent(),
        };
        folder.is_some_and(Path::is_dir)
    }

    /// Its own command that registers the server, if it has one.
    pub fn own_command(self, launch: &Launch) -> Option<String> {
        let (binary, arguments) = launch.for_client(self).server();
        let call = |before: &[&str]| {
            let words = before
                .iter()
                .map(|word| (*word).to_owned())
                .chain([binary.clone()])
                .chain(arguments.clone());
            words
                .map(|word| quoted(&word))
                .collect::<Vec<_>>()
                .join(" ")
        };
        match self {
            Self::ClaudeCode => Some(call(&[
                "claude", "mcp", "add", "--scope", "user", NAME, "--",
            ])),
            Self::Codex => Some(call(&["codex", "mcp", "add", NAME, "--"])),
            Self::Copilot => Some(call(&["copilot", "mcp", "add", NAME, "--"])),
            _ => None,
        }
    }

    /// What the user has to know before anything is written.
    pub const fn warning(self, here: bool) -> Option<&'static str> {
        match self {
            Self::ClaudeCode if !here => Some(
                "Claude Code writes to ~/.claude.json while it runs: quit it first, or use its \
                 own command, which `--dry-run` shows.",
            ),
            Self::ClaudeDesktop => {
                Some("Claude Desktop may write to this file while it runs: quit it first.")
            }
            Self::Cline | Self::ClineVsCode | Self::Roo if !here => Some(
                "Its editor extension may write to this file while it runs: quit the editor first.",
            ),
            _ => None,
        }
    }

    /// What the user has to do afterwards, with or without hooks.
    pub const fn next_step(self, hooks: bool) -> Option<&'static str> {
        match self {
            Self::Codex if hooks => Some(
                "Codex runs a new or changed hook only once it is trusted. It asks when it next \
                 starts, and /hooks shows the hook in a session. Until then, sessions start \
                 without memories.",
            ),
            Self::Droid if hooks => Some(
                "If Droid has hooks in ~/.factory/hooks.json, it ignores those in settings.json: \
                 move the entry there.",
            ),
            Self::ClaudeDesktop => Some("Claude Desktop reads this file when it starts."),
            Self::Windsurf | Self::Kiro | Self::Junie => Some("It reads this file when it starts."),
            _ => None,
        }
    }

    /// What the permission means to this client, if it has one.
    pub const fn permission(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some(
                "`permissions.allow` lets Claude Code call the tools, which only read, without \
                 asking; without it, `claude -p` refuses every call. --no-allow leaves it out.",
            ),
            Self::Qwen => Some(
                "`trust` lets Qwen Code call the tools, which only read, without asking. \
                 --no-allow leaves it out.",
            ),
            Self::Gemini => Some(
                "`trust` lets Gemini CLI call the tools, which only read, without asking; without \
                 it, `gemini -p` offers none. --no-allow leaves it out.",
            ),
            _ => None,
        }
    }

    /// The files that connect it, with what goes into each. `None` if it has no project settings.
    pub fn files(
        self,
        places: &ClientPlaces,
        launch: &Launch,
        extras: &Extras,
    ) -> Option<Vec<ClientFile>> {
        let (server, settings) = self.paths(places)?;
        let launch = &launch.for_client(self);
        let stays = || {
            let project = places.project.iter().cloned();
            let stays = [places.home.clone(), places.settings.clone()];
            stays.into_iter().chain(project).collect()
        };
        // Files in a project may be committed, except for Claude Code's local settings.
        let shared = places.project.as_ref().map(|_| launch.shared());
        let local = if self == Self::ClaudeCode {
            None
        } else {
            shared.as_ref()
        };
        // The user's own home is no project of somebody else's.
        let project = places.project.clone().filter(|it| *it != places.home);
        let mut files = vec![ClientFile {
            path: server,
            format: match self {
                Self::Codex => FileFormat::Toml,
                Self::Goose => FileFormat::Yaml,
                _ => FileFormat::Json,
            },
            parts: vec![self.server(
                shared.as_ref().unwrap_or(launch),
                &extras.allowed,
                shared.is_some(),
            )],
            project: project.clone(),
            kept_folders: stays(),
        }];
        let mut parts = self.words(&extras.allowed, shared.is_some());
        if self == Self::ClaudeCode {
            let rule = |root: &PathBuf| ours::write_rule(root, &places.home);
            parts.push(Part::Rule {
                path: vec!["permissions", "deny"],
                rule: extras.root.as_ref().and_then(rule),
                former: extras.former_roots.iter().filter_map(rule).collect(),
            });
        }
        let (asked, able) = (extras.hooks, self.hooks());
        let mut hooks = Vec::new();
        for (hook, is_set_up) in [
            ("session-start", asked.session_start && able.session_start),
            ("user-prompt", asked.user_prompt && able.user_prompt),
            ("pre-tool-use", asked.pre_tool_use && able.pre_tool_use),
            ("tool-failure", asked.tool_failure && able.tool_failure),
        ] {
            if is_set_up {
                hooks.extend(self.hook(hook, local.unwrap_or(launch)));
            }
        }
        if matches!(self, Self::Cursor | Self::Copilot) && !hooks.is_empty() {
            parts.push(Part::Required {
                name: "version",
                value: json!(1),
            });
        }
        parts.extend(hooks);
        let Some(path) = settings.filter(|_| !parts.is_empty()) else {
            return Some(files);
        };
        match files.first_mut().filter(|file| file.path == path) {
            Some(file) => file.parts.extend(parts),
            None => files.push(ClientFile {
                path,
                format: FileFormat::Json,
                parts,
                project,
                kept_folders: stays(),
            }),
        }
        Some(files)
    }

    /// The file that calls its hooks, if it has one.
    pub fn hook_file(self, places: &ClientPlaces) -> Option<PathBuf> {
        let (_, settings) = self.paths(places)?;
        settings.filter(|_| self.hooks().session_start)
    }

    /// The files that may call its hooks and, for Claude Code, enable plugins: the user's, and
    /// those of the project if there is one.
    pub fn settings_files(self, places: &ClientPlaces) -> Vec<PathBuf> {
        let user = ClientPlaces {
            project: None,
            ..places.clone()
        };
        let mut files: Vec<PathBuf> = self.hook_file(&user).into_iter().collect();
        if let Some(project) = &places.project {
            files.extend(self.hook_file(places));
            if self == Self::ClaudeCode {
                files.push(project.join(".claude/settings.json"));
            }
        }
        files
    }

    fn server(self, launch: &Launch, allowed: &Allowed, here: bool) -> Part {
        let (command, arguments) = launch.server();
        let value = match self {
            Self::ClaudeCode | Self::VsCode => {
                json!({ "type": "stdio", "command": command, "args": arguments })
            }
            // It shares `.mcp.json` with Claude Code, which does not know `local`.
            Self::Copilot if here => {
                json!({ "type": "stdio", "command": command, "args": arguments, "tools": ["*"] })
            }
            Self::Copilot => {
                json!({ "type": "local", "command": command, "args": arguments, "tools": ["*"] })
            }
            // Codex passes on only the variables named here.
            Self::Codex if here => {
                json!({ "command": command, "args": arguments, "env_vars": [ENV_ROOT, ENV_DB] })
            }
            Self::Gemini | Self::Qwen if *allowed == Allowed::Server => {
                json!({ "command": command, "args": arguments, "trust": true })
            }
            Self::OpenCode => {
                let words: Vec<String> = [command].into_iter().chain(arguments).collect();
                json!({ "type": "local", "command": words, "enabled": true })
            }
            Self::Zed => {
                json!({ "source": "custom", "command": command, "args": arguments, "env": {} })
            }
            Self::Droid => {
                json!({ "type": "stdio", "command": command, "args": arguments, "disabled": false })
            }
            Self::Goose => {
                json!({ "name": NAME, "type": "stdio", "cmd": command, "args": arguments, "enabled": true, "timeout": CALL_SECONDS })
            }
            _ => json!({ "command": command, "args": arguments }),
        };
        let key = match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::OpenCode => "mcp",
            Self::Zed => "context_servers",
            Self::Amp => "amp.mcpServers",
            Self::Goose => "extensions",
            _ => "mcpServers",
        };
        Part::Member {
            path: vec![key],
            name: NAME,
            value,
        }
    }

    /// The permissions that let Claude Code call the tools.
    fn words(self, allowed: &Allowed, here: bool) -> Vec<Part> {
        let words = match (self, allowed) {
            (Self::ClaudeCode, Allowed::Server) => vec![format!("mcp__{NAME}")],
            (Self::ClaudeCode, Allowed::Tools(tools)) => tools
                .iter()
                .map(|tool| format!("mcp__{NAME}__{tool}"))
                .collect(),
            _ => return Vec::new(),
        };
        let rules = Part::Words {
            path: vec!["permissions", "allow"],
            words,
        };
        // Claude Code starts a project's server only after someone has agreed.
        let enabled = here.then(|| Part::Words {
            path: vec!["enabledMcpjsonServers"],
            words: vec![NAME.to_owned()],
        });
        [rules].into_iter().chain(enabled).collect()
    }

    /// The file for the server, and the file for hooks and permissions.
    fn paths(self, places: &ClientPlaces) -> Option<(PathBuf, Option<PathBuf>)> {
        let (server, settings) = match &places.project {
            Some(project) => {
                let (server, settings) = self.project_files()?;
                (project.join(server), settings.map(|it| project.join(it)))
            }
            None => self.user_files(places),
        };
        // OpenCode reads both; only the second allows comments.
        let commented = server.with_extension("jsonc");
        if self == Self::OpenCode && commented.is_file() {
            return Some((commented, settings));
        }
        Some((server, settings))
    }

    const fn project_files(self) -> Option<(&'static str, Option<&'static str>)> {
        Some(match self {
            Self::ClaudeCode => (".mcp.json", Some(".claude/settings.local.json")),
            Self::Codex => (".codex/config.toml", Some(".codex/hooks.json")),
            Self::Cursor => (".cursor/mcp.json", Some(".cursor/hooks.json")),
            Self::VsCode => (".vscode/mcp.json", None),
            Self::Gemini => (".gemini/settings.json", Some(".gemini/settings.json")),
            Self::Copilot => (".mcp.json", Some(".github/hooks/ack-memory.json")),
            Self::OpenCode => ("opencode.json", None),
            Self::Qwen => (".qwen/settings.json", Some(".qwen/settings.json")),
            Self::Roo => (".roo/mcp.json", None),
            Self::Zed => (".zed/settings.json", None),
            Self::Amp => (".amp/settings.json", None),
            Self::Kiro => (".kiro/settings/mcp.json", None),
            Self::Junie => (".junie/mcp/mcp.json", None),
            Self::Droid => (".factory/mcp.json", Some(".factory/settings.json")),
            Self::ClaudeDesktop
            | Self::Cline
            | Self::ClineVsCode
            | Self::Windsurf
            | Self::Goose => return None,
        })
    }

    fn user_files(self, places: &ClientPlaces) -> (PathBuf, Option<PathBuf>) {
        const EXTENSIONS: &str = "Code/User/globalStorage";
        let ClientPlaces { home, settings, .. } = places;
        let dot_config = if cfg!(target_os = "macos") {
            &home.join(".config")
        } else {
            settings
        };
        let own = |variable: &Option<PathBuf>, usual: &str| {
            variable.clone().unwrap_or_else(|| home.join(usual))
        };
        let extension = |path: &str| settings.join(EXTENSIONS).join(path);
        let server = match self {
            Self::ClaudeCode => own(&places.claude, "").join(".claude.json"),
            Self::ClaudeDesktop => settings.join("Claude/claude_desktop_config.json"),
            Self::Codex => own(&places.codex, ".codex").join("config.toml"),
            Self::VsCode => settings.join("Code/User/mcp.json"),
            Self::Copilot => own(&places.copilot, ".copilot").join("mcp-config.json"),
            Self::OpenCode => dot_config.join("opencode/opencode.json"),
            Self::Cline => home.join(".cline/data/settings/cline_mcp_settings.json"),
            Self::ClineVsCode => {
                extension("saoudrizwan.claude-dev/settings/cline_mcp_settings.json")
            }
            Self::Roo => extension("rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => dot_config.join("zed/settings.json"),
            Self::Amp => dot_config.join("amp/settings.json"),
            Self::Goose => dot_config.join("goose/config.yaml"),
            // As in a project.
            Self::Cursor | Self::Gemini | Self::Qwen | Self::Kiro | Self::Junie | Self::Droid => {
                let (server, hooks) = self.project_files().unwrap_or_default();
                return (home.join(server), hooks.map(|hooks| home.join(hooks)));
            }
        };
        let hooks = match self {
            Self::ClaudeCode => Some(places.claude_folder().join("settings.json")),
            Self::Codex => Some(server.with_file_name("hooks.json")),
            Self::Copilot => Some(server.with_file_name("hooks").join("ack-memory.json")),
            _ => None,
        };
        (server, hooks)
    }
}

impl ClientFile {
    /// Whether other people who work on the project read it too.
    pub fn is_shared(&self) -> bool {
        !self.path.ends_with(".claude/settings.local.json")
    }

    pub fn calls_hooks(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Entry { .. }))
    }

    pub fn allows(&self) -> bool {
        let trusted = |value: &Value| value.get("trust").is_some();
        self.parts.iter().any(|part| {
            matches!(part, Part::Words { .. })
                || matches!(part, Part::Member { value, .. } if trusted(value))
        })
    }
}
