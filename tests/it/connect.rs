//! `print-config`, `connect`, `disconnect`: clients' files are changed where they must be, and back again.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Outcome, binary, run};
use crate::support::fingerprint;

const CLIENTS: [&str; 6] = ["claude-code", "claude-desktop", "codex", "cursor", "vscode", "gemini"];

/// A home of its own for the program and its clients.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("ack-home-").tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = binary();
        for variable in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"] {
            command.env_remove(variable);
        }
        run(command
            .env("HOME", self.0.path())
            .env("APPDATA", self.path("roaming"))
            .args(arguments))
    }

    /// Where a client's own settings lie.
    fn settings(&self, client: &str) -> &'static str {
        let mac = cfg!(target_os = "macos");
        match client {
            "claude-code" => ".claude.json",
            "claude-desktop" if mac => "Library/Application Support/Claude/claude_desktop_config.json",
            "claude-desktop" => ".config/Claude/claude_desktop_config.json",
            "codex" => ".codex/config.toml",
            "cursor" => ".cursor/mcp.json",
            "vscode" if mac => "Library/Application Support/Code/User/mcp.json",
            "vscode" => ".config/Code/User/mcp.json",
            _ => ".gemini/settings.json",
        }
    }
}

/// The names and bytes of every file.
fn contents(folder: &Path) -> Vec<(PathBuf, u64)> {
    let files = fingerprint(folder).into_iter().filter(|(path, _)| path.is_file());
    files.map(|(path, (_, _, content))| (path, content)).collect()
}

#[test]
fn every_client_is_connected_and_disconnected_without_a_trace() {
    for client in CLIENTS {
        let home = Home::new();
        let shown = home.run(&["connect", client]).ok();
        assert!(shown.contains("nothing was written") && shown.contains("ack-memory"), "{shown}");
        assert!(
            home.run(&["connect", client, "--dry-run", "--yes"])
                .ok()
                .contains("nothing was written")
        );
        assert!(contents(home.0.path()).is_empty(), "{client}");

        home.run(&["connect", client, "--yes", "--prompt-hook"]).ok();
        let text = home.read(home.settings(client));
        for part in ["ack-memory", "--root", ".ack-mem", "serve"] {
            assert!(text.contains(part), "{client}: {text}");
        }
        let connected = contents(home.0.path());
        let again = home.run(&["connect", client, "--yes", "--prompt-hook"]).ok();
        assert!(again.contains("connected already"), "{again}");
        assert_eq!(contents(home.0.path()), connected, "{client}");

        home.run(&["disconnect", client, "--yes"]).ok();
        assert!(contents(home.0.path()).is_empty(), "{client}: {:?}", contents(home.0.path()));
        assert!(home.run(&["disconnect", client, "--yes"]).ok().contains("not connected"));
    }
}

#[test]
fn what_clients_are_told_is_what_they_understand() {
    let home = Home::new();
    for client in CLIENTS {
        home.run(&["--root", "/srv/my memories", "connect", client, "--yes", "--prompt-hook"])
            .ok();
    }
    let binary = std::env!("CARGO_BIN_EXE_ack-memory");
    let arguments = json!(["--root", "/srv/my memories", "serve"]);
    let hook = |hook: &str, client: &str| format!("{binary} --root '/srv/my memories' hook {hook} --client {client}");
    for (client, key) in [("claude-code", "mcpServers"), ("vscode", "servers")] {
        let server = &home.json(home.settings(client))[key]["ack-memory"];
        assert_eq!(
            *server,
            json!({ "type": "stdio", "command": binary, "args": arguments }),
            "{client}"
        );
    }
    for client in ["claude-desktop", "cursor", "gemini"] {
        let server = &home.json(home.settings(client))["mcpServers"]["ack-memory"];
        assert_eq!(*server, json!({ "command": binary, "args": arguments }), "{client}");
    }
    let codex: Value = toml::from_str(&home.read(".codex/config.toml")).unwrap();
    assert_eq!(codex["mcp_servers"]["ack-memory"], json!({ "command": binary, "args": arguments }));
    for (file, client, prompt, seconds) in [
        (".claude/settings.json", "claude-code", "UserPromptSubmit", 10),
        (".codex/hooks.json", "codex", "UserPromptSubmit", 10),
        (".gemini/settings.json", "gemini", "BeforeAgent", 10_000),
    ] {
        let hooks = &home.json(file)["hooks"];
        for (event, name) in [("SessionStart", "session-start"), (prompt, "user-prompt")] {
            let entry = &hooks[event][0]["hooks"][0];
            assert_eq!(entry["type"], "command", "{client}");
            assert_eq!(entry["command"], hook(name, client), "{client}");
            assert_eq!(entry["timeout"], seconds, "{client}");
        }
    }
    let cursor = home.json(".cursor/hooks.json");
    assert_eq!(
        cursor,
        json!({ "version": 1, "hooks": { "sessionStart": [{ "command": hook("session-start", "cursor") }] } })
    );
}

#[test]
fn a_hook_is_left_out_where_it_is_not_wanted() {
    let home = Home::new();
    home.run(&["connect", "claude-code", "--yes", "--no-hook"]).ok();
    assert!(!home.path(".claude/settings.json").exists());
    home.run(&["connect", "claude-code", "--yes"]).ok();
    let hooks = &home.json(".claude/settings.json")["hooks"];
    assert_eq!(hooks.as_object().unwrap().len(), 1, "{hooks}");
}

#[test]
fn comments_order_and_spacing_stay_and_come_back() {
    let jsonc = "// mine\n{\n    \"b\": 1, // why\n    \"mcpServers\": {\n        \"other\": { \"command\": \"x\" }, /* last */\n    },\n    \"a\": [1,2],\n}\n";
    let toml = "# mine\nmodel   = \"m\"  # why\n\n[mcp_servers.other]\ncommand = 'x'\n\n[tui]\ntheme = \"dark\"\n";
    for (client, before, kept) in [
        (
            "gemini",
            jsonc,
            &[
                "// mine\n",
                "\"b\": 1, // why",
                "\"other\": { \"command\": \"x\" }",
                "/* last */",
                "\"a\": [1,2],",
            ][..],
        ),
        (
            "vscode",
            &jsonc.replace("mcpServers", "servers"),
            &["// mine\n", "\"b\": 1, // why", "/* last */"],
        ),
        (
            "codex",
            toml,
            &["# mine\nmodel   = \"m\"  # why\n", "command = 'x'", "[tui]\ntheme = \"dark\""],
        ),
        ("claude-code", "{\"mcpServers\":{},\"x\":1}", &["\"x\":1"]),
        ("cursor", "{}", &[]),
        ("claude-desktop", "", &[]),
    ] {
        let home = Home::new();
        let path = home.write(home.settings(client), before);
        home.run(&["connect", client, "--yes"]).ok();
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(after.contains("ack-memory"), "{after}");
        for part in kept {
            assert!(after.contains(part), "{client}: {part} is not in {after}");
        }
        let copy = path.with_file_name(format!("{}.before-ack-memory", path.file_name().unwrap().to_str().unwrap()));
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), before, "{client}");
        home.run(&["disconnect", client, "--yes"]).ok();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{client}");
        assert!(!copy.exists(), "{client}");
    }
}

#[test]
fn what_was_changed_meanwhile_stays_when_a_client_is_disconnected() {
    let home = Home::new();
    let name = ".claude/settings.json";
    home.write(
        name,
        r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"mine hook"}]}]}}"#,
    );
    home.run(&["connect", "claude-code", "--yes"]).ok();
    let mut settings = home.json(name);
    assert_eq!(settings["hooks"]["SessionStart"].as_array().unwrap().len(), 2);
    settings["model"] = json!("opus");
    home.write(name, &settings.to_string());
    home.run(&["disconnect", "claude-code", "--yes"]).ok();
    let expected = json!({ "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "mine hook" }] }] }, "model": "opus" });
    assert_eq!(home.json(name), expected);
}

#[test]
fn a_second_connection_replaces_the_first() {
    let home = Home::new();
    for root in ["/first", "/second"] {
        home.run(&["--root", root, "connect", "gemini", "--yes"]).ok();
    }
    let text = home.read(".gemini/settings.json");
    assert!(!text.contains("/first"), "{text}");
    assert_eq!(
        home.json(".gemini/settings.json")["hooks"]["SessionStart"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    home.run(&["disconnect", "gemini", "--yes"]).ok();
    assert!(contents(home.0.path()).is_empty());
}

#[test]
fn a_file_that_cannot_be_read_with_certainty_is_left_alone() {
    for (client, text) in [
        ("claude-code", "{\"mcpServers\": {"),
        ("claude-code", "[]"),
        ("claude-code", "{\"mcpServers\": []}"),
        ("claude-code", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        ("claude-code", "{'single': 1}"),
        ("gemini", "{\"hooks\": {\"SessionStart\": {}}}"),
        ("codex", "model = "),
        ("codex", "mcp_servers = 5\n"),
        ("codex", "[mcp_servers]\nack-memory = 5\n"),
    ] {
        let home = Home::new();
        home.write(home.settings(client), text);
        let before = contents(home.0.path());
        let error = home.run(&["connect", client, "--yes"]).fails(1);
        assert!(error.contains("left as it is"), "{text}: {error}");
        assert_eq!(contents(home.0.path()), before, "{text}");
    }
    let home = Home::new();
    let path = home.write(".claude.json", "");
    std::fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
    home.run(&["connect", "claude-code", "--yes"]).fails(1);
    // One file of two that cannot be changed: none is.
    let home = Home::new();
    home.write(".claude/settings.json", "{");
    home.run(&["connect", "claude-code", "--yes"]).fails(1);
    assert!(!home.path(".claude.json").exists());
}

#[test]
fn a_project_can_be_connected_alone() {
    let home = Home::new();
    let project = home.path("work");
    std::fs::create_dir_all(&project).unwrap();
    let there = project.to_str().unwrap();
    for (client, file) in [
        ("claude-code", ".mcp.json"),
        ("codex", ".codex/config.toml"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("gemini", ".gemini/settings.json"),
    ] {
        home.run(&["--project", there, "connect", client, "--here", "--yes"]).ok();
        assert!(project.join(file).is_file(), "{client}");
        home.run(&["--project", there, "disconnect", client, "--here", "--yes"]).ok();
        assert!(contents(home.0.path()).is_empty(), "{client}");
    }
    let error = home.run(&["connect", "claude-desktop", "--here"]).fails(2);
    assert!(error.contains("claude-code, codex"), "{error}");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let real = home.write("dotfiles/claude.json", "{}\n");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, home.path(".claude.json")).unwrap();
    home.run(&["connect", "claude-code", "--yes", "--no-hook"]).ok();
    assert!(home.path(".claude.json").is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(home.read("dotfiles/claude.json").contains("ack-memory"));
}

#[test]
fn print_config_shows_what_to_paste() {
    let home = Home::new();
    let mut text = String::new();
    for client in CLIENTS {
        text += &format!(
            "$ ack-memory print-config {client}\n{}\n",
            home.run(&["--root", "/memories", "print-config", client]).ok()
        );
    }
    assert!(contents(home.0.path()).is_empty());
    let real = home.0.path().canonicalize().unwrap();
    for path in [home.0.path(), real.as_path()] {
        text = text.replace(path.to_str().unwrap(), "[HOME]");
    }
    let text = text.replace(std::env!("CARGO_BIN_EXE_ack-memory"), "[BINARY]");
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_description("generated by tests/it/connect.rs");
    if cfg!(target_os = "linux") {
        settings.bind(|| insta::assert_snapshot!("print_config", text));
    }
}
