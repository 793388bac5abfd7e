//! What `connect` and `disconnect` leave unchanged in a file: keys, order, bytes, modes and links.

use serde_json::{Value, json};

use crate::connect::{CLIENTS, Home, contents};

/// The backup of the file.
fn kept(name: &str) -> String {
    format!("{name}.before-ack-memory")
}

#[test]
fn keys_that_a_user_added_to_our_entry_are_kept() {
    for client in ["claude-code", "cursor", "gemini", "copilot", "vscode"] {
        let home = Home::new();
        let name = home.settings(client);
        let key = ["mcpServers", "servers"][usize::from(client == "vscode")];
        home.yes(&["--root", "/first", "connect", client]);
        let mut settings = home.json(name);
        let own = json!({ "env": { "ACK_MEM_LOG": "debug" }, "trust": false, "alwaysLoad": true, "timeout": 5, "tools": ["get_memory"] });
        let entry = settings[key]["ack-memory"].as_object_mut().unwrap();
        entry.extend(own.as_object().unwrap().clone());
        home.write(name, &settings.to_string());
        home.yes(&["--root", "/second", "connect", client]);
        let entry = home.json(name)[key]["ack-memory"].clone();
        for (key, value) in own.as_object().unwrap() {
            assert_eq!(entry[key], *value, "{client}: {key}");
        }
        assert_eq!(entry["args"][1], "/second", "{client}");
    }
    let home = Home::new();
    home.yes(&["--root", "/first", "connect", "codex"]);
    let own = "enabled = false # for now\nstartup_timeout_sec = 3\ntool_timeout_sec = 9\n\n[mcp_servers.ack-memory.env]\nA = \"b\"\n";
    let text = home.read(".codex/config.toml").replace("\n\n", "\n") + own;
    home.write(".codex/config.toml", &text);
    home.yes(&["--root", "/second", "connect", "codex"]);
    assert_eq!(home.read(".codex/config.toml"), text.replace("/first", "/second"));
}

#[test]
fn an_entry_keeps_its_formatting_when_changed() {
    for text in [
        "mcp_servers.ack-memory.command = \"/first/ack-memory\" # mine\nmcp_servers.ack-memory.env = { A = \"b\" }\n",
        "[mcp_servers]\nack-memory = { command = \"/first/ack-memory\", env = { A = \"b\" } }\nother = { command = \"x\" }\n",
        "[mcp_servers.ack-memory]\ncommand = '/first/ack-memory'\nenv.A = \"b\"\n[tui]\n",
    ] {
        let home = Home::new();
        home.write(".codex/config.toml", text);
        home.run(&["connect", "codex", "--yes", "--no-hook"]).ok();
        let after = home.read(".codex/config.toml");
        let entry = toml::from_str::<Value>(&after).unwrap()["mcp_servers"]["ack-memory"].clone();
        assert_eq!(entry["env"], json!({ "A": "b" }), "{after}");
        let this = env!("CARGO_BIN_EXE_ack-memory");
        assert_eq!(entry["command"], this, "{after}");
        assert_eq!(after.contains("# mine"), text.contains("# mine"), "{after}");
        let changed = text.replace("/first/ack-memory", this);
        assert_eq!(after.lines().next(), changed.lines().next());
    }
}

#[test]
fn a_replaced_http_entry_starts_a_local_server() {
    let home = Home::new();
    let http = r#"{"mcpServers":{"ack-memory":{"type":"http","url":"http://127.0.0.1:1/mcp",
        "headers":{"Authorization":"x"},"timeout":5}}}"#;
    for client in ["claude-code", "cursor"] {
        home.write(home.settings(client), http);
        home.run(&["connect", client, "--yes", "--replace"]).ok();
        let entry = home.json(home.settings(client))["mcpServers"]["ack-memory"].clone();
        let keys = entry.as_object().unwrap().keys();
        let mut keys: Vec<&String> = keys.filter(|key| *key != "type").collect();
        keys.sort_unstable();
        assert_eq!(keys, ["args", "command", "timeout"], "{client}: {entry}");
        assert_ne!(entry["type"], "http", "{client}");
    }
    home.write(
        ".codex/config.toml",
        "[mcp_servers.ack-memory]\nurl = \"http://127.0.0.1:1/mcp\"\nbearer_token_env_var = \"T\"\nenabled = true\n",
    );
    home.run(&["connect", "codex", "--yes", "--replace"]).ok();
    let codex: Value = toml::from_str(&home.read(".codex/config.toml")).unwrap();
    let entry = codex["mcp_servers"]["ack-memory"].as_object().unwrap();
    let keys = ["command", "enabled", "url", "bearer_token_env_var"];
    let has = keys.map(|key| entry.contains_key(key));
    assert_eq!(has, [true, true, false, false], "{entry:?}");
}

/// Entries with our name that belong to somebody else, as whole files.
const OTHERS: [(&str, &str, &str); 7] = [
    (
        "claude-code",
        r#"{"mcpServers":{"ack-memory":{"type":"http","url":"http://10.0.0.5:7767/mcp","headers":{"Authorization":"Bearer team-secret"}}}}"#,
        "http://10.0.0.5:7767/mcp",
    ),
    (
        "junie",
        r#"{"mcpServers": {"ack-memory": {"command":"other-thing","env":{"A":"1"}}}}"#,
        "other-thing",
    ),
    (
        "cursor",
        "{\n  // mine\n  \"mcpServers\": {\n    \"ack-memory\": { \"command\": \"other-thing\", \"args\": [\"serve\"] } // theirs\n  }\n}\n",
        "other-thing",
    ),
    (
        "gemini",
        r#"{"mcpServers":{"ack-memory":{"httpUrl":"http://10.0.0.5/mcp"}},"theme":"x"}"#,
        "http://10.0.0.5/mcp",
    ),
    (
        "opencode",
        r#"{"mcp":{"ack-memory":{"type":"local","command":["other-thing"]}}}"#,
        "other-thing",
    ),
    (
        "codex",
        "[mcp_servers.ack-memory] # theirs\ncommand=\"other-thing\"\nenv.A = \"1\"\n",
        "other-thing",
    ),
    (
        "goose",
        "extensions:\n  ack-memory: # theirs\n    type: sse\n    uri: http://10.0.0.5/sse\n",
        "http://10.0.0.5/sse",
    ),
];

#[test]
fn a_foreign_entry_is_neither_overwritten_nor_removed() {
    for (client, before, named) in OTHERS {
        let home = Home::new();
        let name = home.settings(client);
        home.write(name, before);
        for arguments in [&["connect", client, "--yes"][..], &["connect", client]] {
            let error = home.run(arguments).fails(1);
            let replace = format!("ack-memory connect {client} --replace");
            assert_contains!(error, named, "`ack-memory`", replace; "{client}");
        }
        let shown = home.run(&["disconnect", client, "--yes"]);
        assert!(shown.err.contains(named), "{client}: {shown:?}");
        assert!(shown.ok().contains("not connected"), "{client}");
        assert_eq!(home.read(name), before, "{client}");
        assert_eq!(contents(home.0.path()).len(), 1, "{client}");
    }
}

#[test]
fn a_replaced_entry_is_restored_on_disconnect() {
    for (client, before, _) in OTHERS {
        let home = Home::new();
        let name = home.settings(client);
        home.write(name, before);
        home.run(&["connect", client, "--replace"]).ok();
        assert_eq!(home.read(name), before, "{client}: not without a yes");
        home.run(&["connect", client, "--yes", "--replace"]).ok();
        assert_eq!(home.read(&kept(name)), before, "{client}");
        home.yes(&["--root", "/second", "connect", client]);
        assert_eq!(home.read(&kept(name)), before, "{client}");
        home.yes(&["disconnect", client]);
        assert_eq!(home.read(name), before, "{client}");
        assert_eq!(contents(home.0.path()).len(), 1, "{client}");
    }
    // A client rewrote the file meanwhile: the entry comes back, and what was added stays.
    let home = Home::new();
    let name = home.settings("claude-code");
    home.write(name, OTHERS[0].1);
    home.run(&["connect", "claude-code", "--yes", "--replace"]).ok();
    let mut settings = home.json(name);
    settings["numStartups"] = json!(2);
    home.write(name, &serde_json::to_string_pretty(&settings).unwrap());
    home.yes(&["disconnect", "claude-code"]);
    let mut expected: Value = serde_json::from_str(OTHERS[0].1).unwrap();
    expected["numStartups"] = json!(2);
    assert_eq!(home.json(name), expected);
}

#[test]
fn a_file_that_connect_did_not_make_is_never_removed() {
    let ours = |key: &str| {
        json!({ key: { "ack-memory": { "command": "ack-memory", "args": ["serve"] } } }).to_string()
    };
    for (client, before, left) in [
        ("cursor", ours("mcpServers"), "{\"mcpServers\":{}}"),
        ("vscode", ours("servers"), "{\"servers\":{}}"),
        (
            "codex",
            "[mcp_servers.ack-memory]\ncommand = \"ack-memory\"\nargs = [\"serve\"]\n".to_owned(),
            "",
        ),
        (
            "goose",
            "extensions:\n  ack-memory:\n    cmd: ack-memory\n    args: [serve]\n".to_owned(),
            "extensions:\n",
        ),
    ] {
        let home = Home::new();
        let name = home.settings(client);
        home.write(name, &before);
        home.yes(&["disconnect", client]);
        let found = home.read(name).replace(['\n', ' '], "");
        assert_eq!(found, left.replace('\n', ""), "{client}");
        // Nor if connect only changed an existing entry, of which there is a backup.
        home.write(name, &before);
        home.yes(&["connect", client]);
        assert_eq!(home.read(&kept(name)), before, "{client}");
        home.yes(&["disconnect", client]);
        assert!(home.path(name).exists(), "{client}");
    }
    // Existing folders stay, too, and one that was created is removed.
    let home = Home::new();
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    for client in ["cursor", "kiro"] {
        home.yes(&["connect", client]);
        home.yes(&["disconnect", client]);
    }
    assert!(home.path(".cursor").is_dir() && !home.path(".kiro").exists());
}

#[test]
fn settings_added_after_connect_are_kept_unchanged() {
    let json = "{\n  \"theme\": \"x\"\n}\n";
    let after = |text: &str, more: &str| format!("{text}{more}");
    let first = |text: &str| text.replacen('{', "{ \"userKey\": 1,", 1);
    let appended = [
        ("codex", "model=\"o3\"\n", "# later\n"),
        ("codex", "model=\"o3\"\n", "[tui]\ntheme = 'x' # mine\n"),
        ("codex", "model=\"o3\"", "# later\n"),
        ("codex", "# a\n\nmodel=\"o3\"\n# last\n", "\n# later\n"),
        ("goose", "GOOSE_MODEL: x\n", "# later\n"),
        ("goose", "GOOSE_MODEL: x\n", "NEWKEY: 1\n"),
        ("goose", "# goose\nextensions:\n  dev:\n    enabled: true\nGOOSE_MODEL: x\n", "# later\n"),
        ("zed", json, "// later\n"),
        ("gemini", json, "/* later */\n"),
    ];
    for (client, before, more) in appended {
        let home = Home::new();
        let name = home.settings(client);
        home.write(name, before);
        home.yes(&["connect", client]);
        home.write(name, &after(&home.read(name), more));
        home.yes(&["disconnect", client]);
        let line = if before.ends_with('\n') { "" } else { "\n" };
        assert_eq!(home.read(name), format!("{before}{line}{more}"), "{client}");
    }
    for (client, before) in [
        ("gemini", "{\n  // theme\n  \"theme\": \"x\", /* b */\n  \"mcpServers\": {\n  },\n}\n"),
        ("vscode", "{\r\n  \"servers\": {},\r\n  \"inputs\": []\r\n}\r\n"),
        ("cursor", "\u{feff}{ \"mcpServers\": {} }\n"),
        ("droid", "{\"mcpServers\":{}}"),
        ("copilot", "{\"mcpServers\":{\"z\":{\"command\":\"q\"}}}"),
        ("amp", "{\"amp.x\":1}"),
    ] {
        let home = Home::new();
        let name = home.settings(client);
        home.write(name, before);
        home.yes(&["connect", client]);
        home.write(name, &first(&home.read(name)));
        home.yes(&["disconnect", client]);
        // Blanks where our entry was may be others.
        let [left, expected] = [home.read(name), first(before)]
            .map(|text| text.split_whitespace().collect::<String>());
        assert_eq!(left, expected, "{client}");
    }
}

#[test]
fn a_hook_is_replaced_in_place_and_its_neighbours_are_kept() {
    let home = Home::new();
    home.yes(&["--root", "/first", "connect", "codex"]);
    let name = ".codex/hooks.json";
    let mut hooks = home.json(name);
    let list = hooks["hooks"]["SessionStart"].as_array_mut().unwrap();
    let other = |command: &str| json!({ "type": "command", "command": command });
    let own = list[0]["hooks"].as_array_mut().unwrap();
    own.insert(0, other("first"));
    list[0]["matcher"] = json!("startup");
    list.push(json!({ "hooks": [other("last")] }));
    home.write(name, &serde_json::to_string_pretty(&hooks).unwrap());

    home.yes(&["--root", "/second", "connect", "codex"]);
    let changed = hooks.to_string().replace("/first", "/second");
    assert_eq!(home.json(name), changed.parse::<Value>().unwrap());
    let before = contents(home.0.path());
    home.yes(&["--root", "/second", "connect", "codex"]);
    assert_eq!(contents(home.0.path()), before);

    home.yes(&["disconnect", "codex"]);
    let expected = json!({ "hooks": { "SessionStart": [
        { "hooks": [other("first")], "matcher": "startup" },
        { "hooks": [other("last")] },
    ] } });
    assert_eq!(home.json(name), expected);
}

#[test]
fn duplicate_hooks_of_ours_are_merged() {
    let home = Home::new();
    let ours = |root: &str| json!({ "type": "command", "command": format!("/old/ack-memory --root {root} hook session-start") });
    let split = json!({ "type": "command", "command": "/old/ack-memory", "args": ["hook", "session-start"] });
    let hooks = json!({ "hooks": { "SessionStart": [{ "hooks": [split, ours("/b")] }, { "hooks": [ours("/c")] }] } });
    home.write(".claude/settings.json", &hooks.to_string());
    home.yes(&["connect", "claude-code"]);
    let list = home.json(".claude/settings.json")["hooks"]["SessionStart"].clone();
    assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list[0]["hooks"].as_array().unwrap().len(), 1, "{list}");
    assert!(list[0]["hooks"][0].get("args").is_none(), "{list}");
}

#[test]
fn every_byte_is_restored_for_every_line_ending() {
    let jsonc = "// mine\n{\n  \"b\": 1, // why\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }\n  },\n  \"a\": [1,2]\n}";
    let toml = "# mine\nmodel   = \"m\"  # why\nlong = \"\"\"\na\nb\"\"\"\n\n[mcp_servers.other]\ncommand = 'x'";
    let yaml = "# mine\nGOOSE_MODEL:   m  # why\nextensions:\n  # theirs\n  other:\n    cmd: 'x'\n    args:\n    - a\n\n# last\nlong: |\n  extensions:\n    ack";
    let mixed = |text: &str| text.replacen('\n', "\r\n", 3);
    for client in CLIENTS {
        let plain = match client {
            "codex" => toml.to_owned(),
            "goose" => yaml.to_owned(),
            "vscode" => jsonc.replace("mcpServers", "servers"),
            _ => jsonc.to_owned(),
        };
        let marked = format!("\u{feff}{}\r\n", plain.replace('\n', "\r\n"));
        let small = ["", "{}", "{\"mcpServers\":{},\"x\":[1, 2,]}"];
        let small = small.iter().filter(|_| !["codex", "goose"].contains(&client));
        for before in [
            plain.clone(),
            plain.clone() + "\n",
            plain.replace('\n', "\r\n"),
            mixed(&plain),
            marked,
        ]
        .into_iter()
        .chain(small.map(|text| (*text).to_owned()))
        {
            let home = Home::new();
            let name = home.settings(client);
            home.write(name, &before);
            home.run(&["--root", "/first", "connect", client, "--yes", "--prompt-hook"]).ok();
            let after = home.read(name);
            // Every old line is unchanged, apart from commas.
            for line in before
                .trim_end()
                .split_inclusive('\n')
                .map(|line| line.trim_start_matches('\u{feff}'))
                .filter(|_| before.contains('\n'))
            {
                let line = line.trim_end_matches(['}', ']']);
                assert!(after.contains(line.trim_end()), "{client}: {line:?} is not in {after:?}");
            }
            if before.matches('\n').count() == before.matches("\r\n").count()
                && before.contains('\n')
            {
                assert_eq!(
                    after.matches('\n').count(),
                    after.matches("\r\n").count(),
                    "{client}: {after:?}"
                );
            }
            let found = before.starts_with('\u{feff}');
            assert_eq!(found, after.starts_with('\u{feff}'));
            assert_eq!(home.read(&kept(name)), before, "{client}");
            // The backup is the text from before the first connection, however often `connect`
            // runs.
            home.run(&["--root", "/second", "connect", client, "--yes", "--no-hook"]).ok();
            assert_eq!(home.read(&kept(name)), before, "{client}");
            home.yes(&["disconnect", client]);
            assert_eq!(home.read(name), before, "{client}");
            assert_eq!(contents(home.0.path()).len(), 1, "{client}");
        }
    }
}

#[test]
fn without_a_backup_only_our_lines_are_removed() {
    let before = "# mine\r\nmodel = \"m\"\r\n\r\n[mcp_servers.other]\r\ncommand = 'x'\r\n";
    let home = Home::new();
    home.write(".codex/config.toml", before);
    home.yes(&["connect", "codex"]);
    std::fs::remove_file(home.path(&kept(".codex/config.toml"))).unwrap();
    home.yes(&["disconnect", "codex"]);
    assert_eq!(home.read(".codex/config.toml"), before);
}

#[cfg(unix)]
#[test]
fn links_and_file_modes_survive_connect_and_disconnect() {
    use std::os::unix::fs::PermissionsExt;
    for client in ["claude-code", "codex", "gemini"] {
        let home = Home::new();
        let name = home.settings(client);
        let before = if client == "codex" { "model = \"m\"\r\n" } else { "{\r\n}\r\n" };
        let real = home.write("dotfiles/settings", before);
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::create_dir_all(home.path(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&real, home.path(name)).unwrap();
        let mode = || std::fs::metadata(&real).unwrap().permissions().mode() & 0o777;
        home.yes(&["connect", client]);
        assert!(home.path(name).is_symlink(), "{client}");
        assert_eq!(mode(), 0o640, "{client}");
        assert!(home.read("dotfiles/settings").contains("ack-memory"), "{client}");
        home.yes(&["disconnect", client]);
        assert!(home.path(name).is_symlink(), "{client}");
        assert_eq!(mode(), 0o640, "{client}");
        assert_eq!(home.read("dotfiles/settings").as_str(), before, "{client}");
        // The link and what it leads to.
        assert_eq!(contents(home.0.path()).len(), 2, "{client}");
    }
}

#[cfg(unix)]
#[test]
fn an_unwritable_file_is_reported_and_nothing_is_partly_changed() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let path = home.write(".claude/settings.json", "{}\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let error = home.run(&["connect", "claude-code", "--yes"]).fails(1);
    assert_contains!(error, "read-only", "settings.json");
    assert!(!home.path(".claude.json").exists());
    assert_eq!(home.read(".claude/settings.json"), "{}\n");

    // A link to a missing file: in place of the file, and of its folder.
    for link in [".claude/settings.json", ".claude"] {
        let home = Home::new();
        std::fs::create_dir_all(home.path(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(home.path("nowhere/at/all"), home.path(link)).unwrap();
        let error = home.run(&["connect", "claude-code", "--yes"]).fails(1);
        assert_contains!(error, ".claude");
        assert!(!home.path(".claude.json").exists(), "{link}");
        assert!(home.path(link).is_symlink());
    }
}

#[test]
fn a_file_is_as_before_although_a_section_was_null_or_its_last_line_had_no_end() {
    let home = Home::new();
    let name = home.settings("cursor");
    let before = "{\n  \"mcpServers\": null\n}";
    home.write(name, before);
    home.yes(&["connect", "cursor"]);
    let out = home.yes(&["disconnect", "cursor"]);
    assert_eq!(home.read(name), before);
    assert_lacks!(out, "is kept in");
    assert!(!home.path(&format!("{name}.before-ack-memory")).exists());

    let name = home.settings("codex");
    home.write(name, "model = \"o3\"");
    home.yes(&["connect", "codex"]);
    let edited = format!("# mine\n{}", home.read(name));
    home.write(name, &edited);
    let out = home.yes(&["disconnect", "codex"]);
    assert_eq!(home.read(name), "# mine\nmodel = \"o3\"");
    let copy = home.path(&format!("{name}.before-ack-memory"));
    assert_contains!(out, format!("is kept in {}", copy.display()));
    assert!(copy.exists());
}

#[test]
fn yaml_that_is_not_edited_is_refused_in_our_words() {
    for (text, expected, other) in [
        ("a: 1\n---\nb: 2\n", "it holds more than one YAML document", "from_str_multiple"),
        ("extensions: {a: {cmd: x}}\n", "the file is right", "fix that file"),
    ] {
        let home = Home::new();
        let name = home.settings("goose");
        home.write(name, text);
        let error = home.run(&["connect", "goose", "--yes"]).fails(1);
        assert_contains!(error, expected);
        assert_lacks!(error, other);
        assert_eq!(home.read(name), text);
    }
}
