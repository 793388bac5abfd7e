//! `connect`, `disconnect`: clients' files are changed where necessary, and restored.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Outcome, binary, run};
use crate::support::{fingerprint, write_file};

pub const CLIENTS: [&str; 19] = [
    "claude-code",
    "claude-desktop",
    "codex",
    "cursor",
    "vscode",
    "gemini",
    "copilot",
    "opencode",
    "qwen",
    "cline",
    "cline-vscode",
    "roo",
    "windsurf",
    "zed",
    "amp",
    "kiro",
    "junie",
    "droid",
    "goose",
];

/// A separate home for the program and its clients.
pub struct Home(pub TempDir);

impl Home {
    pub fn new() -> Self {
        Self(TempDir::with_prefix("ack-home-").unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(&path, text);
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        run(self.prepared(binary()).args(arguments))
    }

    /// Runs it without questions.
    #[track_caller]
    pub fn yes(&self, arguments: &[&str]) -> String {
        self.run(&[arguments, &["--yes"]].concat()).ok()
    }

    /// A program that finds this home and no other clients of the machine.
    pub fn prepared(&self, mut command: Command) -> Command {
        let variables = "XDG_CONFIG_HOME CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME";
        for variable in variables.split(' ') {
            command.env_remove(variable);
        }
        command.env("HOME", self.0.path()).env("APPDATA", self.path("roaming"));
        command
    }

    /// The same, run in the project `shop`.
    pub fn in_shop(&self, arguments: &[&str]) -> Command {
        let mut command = self.prepared(binary());
        command.env("PATH", self.path("bin")).current_dir(self.path("src/shop")).args(arguments);
        command
    }

    /// Where a client keeps its settings.
    pub fn settings(&self, client: &str) -> &'static str {
        let mac = cfg!(target_os = "macos");
        match client {
            "claude-code" => ".claude.json",
            "claude-desktop" if mac => {
                "Library/Application Support/Claude/claude_desktop_config.json"
            }
            "claude-desktop" => ".config/Claude/claude_desktop_config.json",
            "codex" => ".codex/config.toml",
            "cursor" => ".cursor/mcp.json",
            "vscode" if mac => "Library/Application Support/Code/User/mcp.json",
            "vscode" => ".config/Code/User/mcp.json",
            "copilot" => ".copilot/mcp-config.json",
            "opencode" => ".config/opencode/opencode.json",
            "qwen" => ".qwen/settings.json",
            "cline" => ".cline/data/settings/cline_mcp_settings.json",
            "cline-vscode" if mac => {
                "Library/Application Support/Code/User/globalStorage/\
                 saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
            }
            "cline-vscode" => {
                ".config/Code/User/globalStorage/\
                 saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
            }
            "roo" if mac => {
                "Library/Application Support/Code/User/globalStorage/\
                 rooveterinaryinc.roo-cline/settings/mcp_settings.json"
            }
            "roo" => {
                ".config/Code/User/globalStorage/\
                 rooveterinaryinc.roo-cline/settings/mcp_settings.json"
            }
            "windsurf" => ".codeium/windsurf/mcp_config.json",
            "zed" => ".config/zed/settings.json",
            "amp" => ".config/amp/settings.json",
            "kiro" => ".kiro/settings/mcp.json",
            "junie" => ".junie/mcp/mcp.json",
            "droid" => ".factory/mcp.json",
            "goose" => ".config/goose/config.yaml",
            _ => ".gemini/settings.json",
        }
    }
}

/// The names and bytes of every file.
pub fn contents(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = fingerprint(folder);
    all.retain(|path, _| path.is_file());
    let files = all.into_iter();
    files.map(|(path, (_, _, content))| (path, content)).collect()
}

#[test]
fn every_client_is_connected_and_disconnected_without_a_trace() {
    for client in CLIENTS {
        let home = Home::new();
        let shown = home.run(&["connect", client]).ok();
        assert_contains!(shown, "nothing was written", "ack-memory");
        let shown = home.yes(&["connect", client, "--dry-run"]);
        assert_contains!(shown, "nothing was written");
        assert!(contents(home.0.path()).is_empty(), "{client}");

        let all = ["connect", client, "--prompt-hook", "--edit-hook"];
        home.yes(&all);
        let text = home.read(home.settings(client));
        for part in ["ack-memory", "--root", ".ack-mem", "serve"] {
            assert_contains!(text, part; "{client}");
        }
        let connected = contents(home.0.path());
        assert_contains!(home.yes(&all), "already connected");
        assert_eq!(contents(home.0.path()), connected, "{client}");

        home.yes(&["disconnect", client]);
        let left: Vec<_> = fingerprint(home.0.path()).into_keys().collect();
        // Other programs use `~/.config`, too.
        let config = home.path(".config");
        let is_other = |path: &PathBuf| path == home.0.path() || *path == config;
        assert!(left.iter().all(is_other), "{client}: {left:?}");
        assert!(contents(home.0.path()).is_empty(), "{client}");
        assert_contains!(home.yes(&["disconnect", client]), "not connected");
    }
}

#[test]
fn a_hook_is_omitted_on_request() {
    let home = Home::new();
    home.yes(&["connect", "claude-code", "--no-hook", "--no-allow"]);
    let rule = json!({ "deny": ["Edit(~/.ack-mem/**)"] });
    let found = home.json(".claude/settings.json");
    assert_eq!(found, json!({ "permissions": rule }));
    let events = |flags: &[&str]| {
        home.yes(&[&["connect", "claude-code"], flags].concat());
        let hooks = home.json(".claude/settings.json")["hooks"].clone();
        hooks.as_object().unwrap().len()
    };
    // A session's start, and a subagent's; and a command that failed.
    assert_eq!(events(&["--no-failure-hook"]), 2);
    assert_eq!(events(&[]), 3);
}

#[test]
fn an_ambiguous_file_is_left_alone() {
    for (client, text) in [
        ("claude-code", "{\"mcpServers\": {"),
        ("claude-code", "[]"),
        ("claude-code", "{\"mcpServers\": []}"),
        ("claude-code", "{\"mcpServers\": {}, \"mcpServers\": {}}"),
        ("claude-code", "{'single': 1}"),
        ("claude-code", "{\"mcpServers\": {\"ack-memory\": 5}}"),
        ("gemini", "{\"hooks\": {\"SessionStart\": {}}}"),
        ("codex", "model = "),
        ("codex", "mcp_servers = 5\n"),
        ("codex", "[mcp_servers]\nack-memory = 5\n"),
    ] {
        let home = Home::new();
        home.write(home.settings(client), text);
        let before = contents(home.0.path());
        let error = home.run(&["connect", client, "--yes"]).fails(1);
        assert_contains!(error, "was not changed: "; "{text}");
        assert_eq!(contents(home.0.path()), before, "{text}");
    }
    let home = Home::new();
    let path = home.write(".claude.json", "");
    write_file(&path, b"{\"a\": \"\xff\"}");
    home.run(&["connect", "claude-code", "--yes"]).fails(1);
    // If one of two files cannot be changed, neither is.
    let home = Home::new();
    home.write(".claude/settings.json", "{");
    home.run(&["connect", "claude-code", "--yes"]).fails(1);
    assert!(!home.path(".claude.json").exists());
}

#[test]
fn tools_are_allowed_by_default_and_the_permission_is_removed_on_disconnect() {
    let name = ".claude/settings.json";
    let before =
        "{\n  \"permissions\": { \"allow\": [\"Bash(ls)\"], \"deny\": [\"WebFetch\"] }\n}\n";
    let home = Home::new();
    home.write(name, before);
    home.yes(&["connect", "claude-code", "--no-allow"]);
    assert_eq!(home.json(name)["permissions"]["allow"], json!(["Bash(ls)"]));
    let shown = home.run(&["connect", "claude-code"]);
    assert_contains!(shown.err, "permissions.allow", "--no-allow");
    assert_contains!(shown.out, "mcp__ack-memory");
    home.yes(&["connect", "claude-code", "--surface", "siftcoder"]);
    let found = &home.json(name)["permissions"]["allow"];
    assert_eq!(*found, json!(["Bash(ls)", "mcp__ack-memory"]));
    home.yes(&["disconnect", "claude-code"]);
    assert_eq!(home.read(name), before);

    // A rule that was there before stays there afterwards.
    let own = "{\"permissions\":{\"allow\":[\"mcp__ack-memory\"]}}";
    home.write(name, own);
    home.yes(&["connect", "claude-code"]);
    let found = &home.json(name)["permissions"]["allow"];
    assert_eq!(*found, json!(["mcp__ack-memory"]));
    home.yes(&["disconnect", "claude-code"]);
    assert_eq!(home.read(name), own);

    home.yes(&["connect", "gemini", "--no-allow"]);
    let entry = &home.json(".gemini/settings.json")["mcpServers"]["ack-memory"];
    assert_eq!(entry.get("trust"), None);
}

#[test]
fn tools_of_other_servers_are_not_allowed_with_ours() {
    let home = Home::new();
    let root = home.path("memories");
    let root = root.to_str().unwrap();
    home.yes(&["--root", root, "connect", "claude-code"]);
    let upstream = "[upstream.files]\ncommand = ['files']\ntools = { write_file = 'write_file' }\n";
    home.write("memories/config.toml", upstream);
    let shown = home.run(&["--root", root, "connect", "claude-code", "--yes"]);
    assert_contains!(shown.err, "[upstream]");
    let rules = ["get_context", "get_memory", "list_scopes", "query_memories"]
        .map(|tool| format!("mcp__ack-memory__{tool}"));
    let found = &home.json(".claude/settings.json")["permissions"]["allow"];
    assert_eq!(*found, json!(rules));
    let shown = home.run(&["--root", root, "connect", "gemini", "--yes"]);
    assert_contains!(shown.err, "`trust`");
    let entry = &home.json(".gemini/settings.json")["mcpServers"]["ack-memory"];
    assert_eq!(entry.get("trust"), None);
    home.yes(&["--root", root, "disconnect", "claude-code"]);
    assert!(!home.path(".claude/settings.json").exists());
}

#[test]
fn the_rule_against_writing_follows_the_root_and_goes_with_the_rest() {
    let name = ".claude/settings.json";
    let denied = |home: &Home| home.json(name)["permissions"]["deny"].clone();
    let own = r#"{"permissions":{"deny":["mcp__ack-memory__get_memory","Edit(~/notes/**)"]}}"#;
    for more in [&[][..], &["--no-hook"]] {
        let home = Home::new();
        home.write(name, own);
        let inside = home.path("deep/memories");
        for (root, rule) in [
            ("/first", "Edit(//first/**)"),
            ("/second", "Edit(//second/**)"),
            (inside.to_str().unwrap(), "Edit(~/deep/memories/**)"),
        ] {
            let connect = ["--root", root, "connect", "claude-code"];
            let shown = home.run(&[&connect[..], more, &["--dry-run"]].concat());
            assert!(shown.out.contains(rule), "{shown:?}");
            home.yes(&[&connect[..], more].concat());
            let expected = json!(["mcp__ack-memory__get_memory", "Edit(~/notes/**)", rule]);
            assert_eq!(denied(&home), expected);
            // Nothing to do again.
            let again = home.yes(&[&connect[..], more].concat());
            assert_contains!(again, "already connected");
        }
        // Without the flag: the entry says which root it was.
        home.yes(&["disconnect", "claude-code"]);
        assert_eq!(home.read(name), own);
    }
    // A rule that the user wrote stays.
    let home = Home::new();
    let own = r#"{"permissions":{"deny":["Edit(~/.ack-mem/**)"]}}"#;
    home.write(name, own);
    home.yes(&["connect", "claude-code"]);
    assert_eq!(denied(&home).as_array().unwrap().len(), 1);
    home.yes(&["disconnect", "claude-code"]);
    assert_eq!(home.read(name), own);
    // The home folder contains everything else, too, and a database has no root.
    for place in ["--root", "--db"] {
        let home = Home::new();
        let there = home.0.path().to_str().unwrap().to_owned();
        home.yes(&[place, &there, "connect", "claude-code"]);
        assert_eq!(denied(&home), Value::Null, "{place}");
    }
}

#[test]
fn a_hook_that_does_nothing_in_a_client_is_named() {
    let home = Home::new();
    for (client, prompt, edit) in [
        ("claude-code", false, false),
        ("codex", false, false),
        ("copilot", false, false),
        ("gemini", false, true),
        ("cursor", true, true),
        ("qwen", true, true),
        ("droid", true, true),
        ("zed", true, true),
        ("goose", true, true),
    ] {
        for _ in 0..2 {
            let shown = home.run(&["connect", client, "--prompt-hook", "--edit-hook", "--yes"]);
            let found = shown.err.contains("--prompt-hook does nothing");
            assert_eq!(found, prompt, "{shown:?}");
            let found = shown.err.contains("--edit-hook does nothing");
            assert_eq!(found, edit, "{shown:?}");
        }
        let shown = home.run(&["connect", client]);
        assert_lacks!(shown.err, "does nothing"; "{client}");
    }
    // Droid calls the hook where there is a person.
    assert_contains!(home.read(".factory/settings.json"), "user-prompt");
    assert_contains!(home.read(".copilot/hooks/ack-memory.json"), "pre-tool-use");
}

#[test]
fn the_hooks_of_codex_have_a_name_and_an_existing_one_is_not_changed() {
    let home = Home::new();
    home.yes(&["connect", "codex", "--prompt-hook", "--edit-hook"]);
    let hooks = home.json(".codex/hooks.json");
    for event in "SessionStart SubagentStart UserPromptSubmit PreToolUse".split(' ') {
        let message = hooks["hooks"][event][0]["hooks"][0]["statusMessage"].as_str();
        assert!(message.unwrap().starts_with("ack-memory: "), "{hooks}");
    }
    // As an earlier version wrote it, without a name and a time limit.
    let command = &hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"];
    let old = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    let old = json!({ "hooks": { "SessionStart": old, "SubagentStart": old } });
    home.write(".codex/hooks.json", &old.to_string());
    let again = home.yes(&["connect", "codex"]);
    assert_contains!(again, "already connected");
    assert_eq!(home.json(".codex/hooks.json"), old);
}

#[cfg(unix)]
#[test]
fn a_program_on_the_path_is_configured_by_its_name() {
    let home = Home::new();
    std::fs::create_dir(home.path("bin")).unwrap();
    let link = home.path("bin/ack-memory");
    std::os::unix::fs::symlink(std::env!("CARGO_BIN_EXE_ack-memory"), &link).unwrap();
    let command = |client: &str| {
        let mut connect = home.prepared(binary());
        connect.args(["connect", client, "--yes"]);
        run(connect.env("PATH", home.path("bin"))).ok();
        home.json(home.settings(client))["mcpServers"]["ack-memory"]["command"].clone()
    };
    // A client in a terminal has the shell's PATH, so the name stays valid when the program moves.
    // A client with a window may have another PATH.
    assert_eq!(command("gemini"), "ack-memory");
    assert_eq!(command("cursor"), link.to_str().unwrap());
}

#[test]
fn a_plugin_that_brings_the_same_is_reported() {
    let home = Home::new();
    let connect = |more: &[&str]| {
        let outcome = home.run(&[&["connect", "claude-code"][..], more].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.err
    };
    let text = "{\"enabledPlugins\":{\"ack-memory@team\":true}}";
    home.write(".claude/settings.json", text);
    assert_contains!(connect(&[]), "claude plugin disable ack-memory@team");
    // It contains the server as well, whatever the hooks, and even if everything is connected
    // already.
    assert_contains!(connect(&["--no-hook", "--yes"]), "plugin disable");
    assert_contains!(connect(&["--no-hook", "--yes"]), "plugin disable");
    home.yes(&["disconnect", "claude-code"]);
    let text = "{\"enabledPlugins\":{\"ack-memory@team\":false}}";
    home.write(".claude/settings.json", text);
    assert_lacks!(connect(&["--yes"]), "plugin");
}

/// What goes into the files of each client, with every hook, for a root whose name has a blank.
#[test]
fn a_dry_run_shows_what_to_paste() {
    let home = Home::new();
    let connect = ["--root", "/srv/my memories", "connect"];
    let hooks = ["--dry-run", "--prompt-hook", "--edit-hook"];
    let mut text = String::new();
    for client in CLIENTS {
        let shown = home.run(&[&connect[..], &[client], &hooks].concat());
        text += &format!("$ connect {client}\n{}{}\n", shown.err, shown.out);
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
        settings.bind(|| insta::assert_snapshot!("dry_run", text));
    }
}
