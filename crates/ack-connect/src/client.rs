//! The clients: where each keeps its files, and what goes into them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};
use strum::VariantArray as _;

use super::{
    Allowed, Client, ClientFile, ClientPlaces, Extras, FileFormat, Launch, NAME, Part, ours, quoted,
};

/// Seconds that Goose waits for a call: its own default.
const CALL_SECONDS: u32 = 300;

impl Client {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name. Every command line that is read lists them, so the table is not read for it.
    pub const fn name(self) -> &'static str {
        self.into_str()
    }

    pub fn has_settings_folder(self, places: &ClientPlaces) -> bool {
        let row = self.row();
        let server = places.path(&row.server);
        // Claude Code's file may be there before its folder.
        server.is_file()
            || match &row.folder {
                Some(folder) => places.path(folder).is_dir(),
                None => server.parent().is_some_and(Path::is_dir),
            }
    }

    pub fn own_command(self, launch: &Launch) -> Option<String> {
        let own = self.row().own_command.as_ref()?;
        let (binary, arguments) = launch.for_client(self).server();
        let words: Vec<String> = [binary].iter().chain(&arguments).map(|it| quoted(it)).collect();
        Some(format!("{own} {NAME} -- {}", words.join(" ")))
    }

    /// What the user has to do afterwards, with or without hooks.
    pub fn next_step(self, hooks: bool) -> Option<&'static str> {
        let row = self.row();
        row.next_step.as_deref().filter(|_| hooks || row.events.is_empty())
    }

    /// The files that connect it, with what goes into each. `None` if a project is meant and
    /// it has no files for one.
    pub fn files(
        self,
        places: &ClientPlaces,
        launch: &Launch,
        extras: &Extras,
    ) -> Option<Vec<ClientFile>> {
        let (server, settings) = self.paths(places)?;
        let launch = &launch.for_client(self);
        let server_part = self.server(launch, &extras.allowed);
        let server = ClientFile::new(server, self.row().format, vec![server_part], places);
        let mut files = vec![server];
        let mut parts: Vec<Part> = self.words(&extras.allowed).into_iter().collect();
        if self == Self::ClaudeCode {
            let rule = |root: &PathBuf| ours::write_rule(root, &places.home);
            parts.push(Part::Rule {
                path: vec!["permissions", "deny"],
                rule: extras.root.as_ref().and_then(rule),
                former: extras.former_roots.iter().filter_map(rule).collect(),
            });
        }
        let asked = extras.hooks.iter();
        let hooks: Vec<Part> = asked.flat_map(|hook| self.hook(*hook, launch)).collect();
        if matches!(self, Self::Cursor | Self::Copilot) && !hooks.is_empty() {
            parts.push(Part::Required { name: "version", value: json!(1) });
        }
        parts.extend(hooks);
        let Some(path) = settings.filter(|_| !parts.is_empty()) else {
            return Some(files);
        };
        match files.first_mut().filter(|file| file.path == path) {
            Some(file) => file.parts.extend(parts),
            None => files.push(ClientFile::new(path, FileFormat::Json, parts, places)),
        }
        Some(files)
    }

    pub fn hook_file(self, places: &ClientPlaces) -> Option<PathBuf> {
        self.paths(places)?.1
    }

    /// The files that may call its hooks and, for Claude Code, enable plugins: the user's, and
    /// those of the project if there is one.
    pub fn settings_files(self, places: &ClientPlaces) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.hook_file(&places.of_user()).into_iter().collect();
        if let Some(project) = &places.project {
            files.extend(self.hook_file(places));
            if self == Self::ClaudeCode {
                files.push(project.join(".claude/settings.json"));
            }
        }
        files
    }

    fn server(self, launch: &Launch, allowed: &Allowed) -> Part {
        let (command, arguments) = launch.server();
        let value = match self {
            Self::ClaudeCode | Self::VsCode => {
                json!({ "type": "stdio", "command": command, "args": arguments })
            }
            Self::Copilot => {
                json!({ "type": "local", "command": command, "args": arguments, "tools": ["*"] })
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
        let key = self.row().section.as_deref().unwrap_or("mcpServers");
        Part::Member { path: vec![key], name: NAME, value }
    }

    fn words(self, allowed: &Allowed) -> Option<Part> {
        let words = match (self, allowed) {
            (Self::ClaudeCode, Allowed::Server) => vec![format!("mcp__{NAME}")],
            (Self::ClaudeCode, Allowed::Tools(tools)) => {
                tools.iter().map(|tool| format!("mcp__{NAME}__{tool}")).collect()
            }
            _ => return None,
        };
        Some(Part::Words { path: vec!["permissions", "allow"], words })
    }

    /// The file for the server, and the file for hooks and permissions.
    fn paths(self, places: &ClientPlaces) -> Option<(PathBuf, Option<PathBuf>)> {
        let row = self.row();
        let (server, settings) = match &places.project {
            Some(project) => (
                project.join(row.project_server.as_ref()?),
                row.project_hooks.as_ref().map(|path| project.join(path)),
            ),
            None => (places.path(&row.server), row.hooks.as_ref().map(|path| places.path(path))),
        };
        // OpenCode reads both; only the second allows comments.
        let commented = server.with_extension("jsonc");
        if self == Self::OpenCode && commented.is_file() {
            return Some((commented, settings));
        }
        Some((server, settings))
    }
}

impl ClientFile {
    pub fn new(path: PathBuf, format: FileFormat, parts: Vec<Part>, places: &ClientPlaces) -> Self {
        Self {
            path,
            format,
            parts,
            kept_folders: vec![places.home.clone(), places.settings.clone()],
        }
    }

    pub fn calls_hooks(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Entry { .. }))
    }

    pub fn allows(&self) -> bool {
        let trusted = |value: &Value| value.get("trust").is_some();
        self.parts.iter().any(|part| {
            matches!(part, Part::Words { .. })
                || matches!(part, Part::Member { value, .. } if trusted(value))
        })
    }
}

/// A row of the table of clients, `clients.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientRow {
    pub name: String,
    /// The programs whose presence on the PATH says that it is installed.
    pub programs: Vec<String>,
    /// Whether it runs with the PATH of a shell.
    pub runs_in_a_terminal: bool,
    pub server: String,
    pub hooks: Option<String>,
    pub project_server: Option<String>,
    pub project_hooks: Option<String>,
    pub folder: Option<String>,
    pub format: FileFormat,
    /// The key under which its file has servers; `None` for `mcpServers`.
    pub section: Option<String>,
    pub own_command: Option<String>,
    /// What its user has to know before the user's own files are written.
    pub warning: Option<String>,
    /// What its user has to do afterwards. If it has hooks, this is about them.
    pub next_step: Option<String>,
    pub permission: Option<String>,
    /// The events that call each hook which has any effect there.
    pub events: BTreeMap<String, Vec<String>>,
    pub why_not: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Table {
    client: Vec<ClientRow>,
}

/// A test reads it.
static ROWS: LazyLock<Vec<ClientRow>> = LazyLock::new(|| {
    let table = ::toml::from_str::<Table>(include_str!("clients.toml"));
    table.map_or_else(|_| Vec::new(), |table| table.client)
});

impl Client {
    pub fn row(self) -> &'static ClientRow {
        static NONE: LazyLock<ClientRow> = LazyLock::new(ClientRow::default);
        ROWS.get(self as usize).unwrap_or(&NONE)
    }
}

impl ClientPlaces {
    fn path(&self, path: &str) -> PathBuf {
        let home = &self.home;
        let own = |variable: &Option<PathBuf>, usual: &str| {
            variable.clone().unwrap_or_else(|| home.join(usual))
        };
        let (folder, rest) = path.split_once('/').unwrap_or((path, ""));
        let folder = match folder {
            "$settings" => self.settings.clone(),
            "$extensions" => self.settings.join("Code/User/globalStorage"),
            "$config" if cfg!(target_os = "macos") => home.join(".config"),
            "$config" => self.settings.clone(),
            "$claude" => self.claude_folder(),
            "$claude_home" => own(&self.claude, ""),
            "$codex" => own(&self.codex, ".codex"),
            "$copilot" => own(&self.copilot, ".copilot"),
            _ => home.clone(),
        };
        folder.join(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_row_in_the_order_of_the_clients() {
        let table: Table = ::toml::from_str(include_str!("clients.toml")).unwrap();
        assert_eq!(table.client.len(), Client::ALL.len());
        let letters = |name: &str| name.replace('-', "").to_lowercase();
        for (client, row) in Client::ALL.iter().zip(&table.client) {
            assert_eq!(letters(&format!("{client:?}")), letters(&row.name));
            assert_eq!(client.name(), row.name);
            assert_eq!(row.hooks.is_some(), row.events.contains_key("session-start"));
        }
    }
}
