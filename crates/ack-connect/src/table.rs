//! The table of clients, `clients.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

use super::{Client, ClientPlaces, FileFormat};

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
    pub(super) fn row(self) -> &'static ClientRow {
        static NONE: LazyLock<ClientRow> = LazyLock::new(ClientRow::default);
        ROWS.get(self as usize).unwrap_or(&NONE)
    }
}

impl ClientPlaces {
    pub(super) fn path(&self, path: &str) -> PathBuf {
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
