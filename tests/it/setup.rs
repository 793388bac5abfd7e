//! `setup`: from a machine with stores and clients to the first answer.

use serde_json::json;
use std::fs;

use crate::changes::git;
use crate::cli::{binary, claude_mem, run};
use crate::connect::{Home, contents};
use crate::hook::{event, message, start};
use crate::support::write_file;
use crate::terminal::Session;

/// A home with claude-mem's database, notes of Serena and two clients.
fn home() -> Home {
    let home = Home::new();
    home.write(".claude-mem/settings.json", "{}");
    drop(claude_mem(&home.path(".claude-mem/claude-mem.db")));
    home.write("src/shop/.serena/memories/style.md", "Two spaces.");
    for inside in ["HEAD", "objects/x", "refs/x"] {
        home.write(&format!("src/shop/.git/{inside}"), "ref: refs/heads/main\n");
    }
    home.write(".gemini/settings.json", "{}\n");
    home.write(".codeium/windsurf/x", "");
    home
}

#[test]
fn setup_leads_to_a_first_answer_with_a_few_keys() {
    let home = home();
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.expect("claude-mem: 1 memory, ~/.claude-mem/claude-mem.db");
    terminal
        .expect("t  trust 1: agents can use them now")
        .answer("claude-mem [t/r/s/T/R/S] ", "t\n");
    terminal.expect("added: ack-memory scopes add claude-mem --store ");
    terminal.expect("Serena memories: 1 memory").answer("[t/r/s/T/R/S] ", "s\n");
    terminal.expect("gemini: ~/.gemini/settings.json");
    // What one must know comes before the question.
    terminal.expect("trust").expect("[Y/n/d] ").press("d\n");
    terminal.expect("mcpServers").answer("[Y/n/d] ", "y\n");
    terminal.expect("connected: ack-memory connect gemini --yes");
    terminal.expect("windsurf: ").answer("[Y/n/d] ", "n\n");
    terminal.expect("ack-memory query xylophone\r\n");
    terminal.expect("1 memory, the best in scope `claude-mem`: Tune the xylophone");
    terminal.expect("Now ask your agent");
    assert_eq!(terminal.end().0, Some(0));
    assert_contains!(home.read(".gemini/settings.json"), "ack-memory");
    assert!(!home.path(".codeium/windsurf/mcp_config.json").exists());

    // The command that it names works, and a second run changes nothing.
    let found = run(&mut home.in_shop(&["query", "xylophone"])).ok();
    assert_contains!(found, "Tune the xylophone");
    let before = contents(home.0.path());
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.expect("already exists as scope `claude-mem`");
    terminal.expect("Serena memories: 1 memory").answer("[t/r/s/T/R/S] ", "s\n");
    terminal.expect("gemini: already connected");
    terminal.expect("windsurf: ").answer("[Y/n/d] ", "n\n");
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(contents(home.0.path()), before);
}

#[test]
fn scripts_get_safe_defaults_and_one_report() {
    let home = home();
    let before = contents(home.0.path());
    let error = run(&mut home.in_shop(&["setup"])).fails(2);
    assert_contains!(error, "--yes", "--dry-run");
    let plan = run(&mut home.in_shop(&["setup", "--dry-run"])).ok();
    assert_contains!(plan, "would run: ack-memory scopes add claude-mem");
    assert_contains!(plan, "would run: ack-memory connect gemini --yes");
    assert_eq!(contents(home.0.path()), before);

    let answer = run(&mut home.in_shop(&["setup", "--yes", "--json"])).json();
    assert_eq!(answer["stores"][0]["action"], "added");
    assert_eq!(answer["stores"][1]["action"], "added");
    let clients = answer["clients"].to_string();
    assert_eq!(clients.matches("\"connected\"").count(), 2, "{clients}");
    assert_eq!(answer["query"]["approved"], false, "review first: {answer}");
    assert_eq!(answer["failed"].to_string(), "[]");
    let approved = run(&mut home.in_shop(&["query", "xylophone", "--json"])).json();
    assert_eq!(approved["total"], 0);

    let before = contents(home.0.path());
    let again = run(&mut home.in_shop(&["setup", "--yes"])).ok();
    assert_contains!(again, "already exists as", "already connected");
    // The command that makes them visible is printed, and works.
    let trust = again.lines().find(|line| line.contains("scopes set")).unwrap();
    assert_eq!(trust.trim(), "ack-memory scopes set serena-shop unreviewed=approved");
    assert_contains!(again, "ack-memory review");
    assert_eq!(contents(home.0.path()), before);
}

#[test]
fn a_failed_step_is_reported_and_the_others_continue() {
    let home = home();
    home.write(".gemini/settings.json", "{ broken");
    write_file(home.path(".claude-mem/claude-mem.db"), "no database");
    let outcome = run(&mut home.in_shop(&["setup", "--yes"]));
    assert_eq!(outcome.code, Some(1));
    assert_contains!(outcome.out, "not counted: it is not an SQLite database");
    assert_contains!(outcome.out, "connected: ack-memory connect windsurf");
    assert_contains!(outcome.err, "settings.json");
    assert_contains!(outcome.out, "it is not valid JSON (");
    assert_lacks!(outcome.out, "certainty");
    // Finding nothing is no error.
    let empty = Home::new();
    let mut bare = empty.prepared(binary());
    let output = run(bare
        .env("PATH", empty.path("bin"))
        .current_dir(empty.0.path())
        .args(["setup", "--yes"]))
    .ok();
    assert_contains!(output, "none found");
}

#[test]
fn a_word_is_an_answer_and_anything_else_shows_the_answers() {
    let home = home();
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.answer("claude-mem [t/r/s/T/R/S] ", "\u{1b}[A q\n");
    terminal
        .expect("t or Enter: trust, r: review first, s: skip, ")
        .answer("[t/r/s/T/R/S] ", "trust\n");
    // What is typed ahead answers nothing.
    terminal.expect("Serena memories: 1 memory").answer("[t/r/s/T/R/S] ", "skip\ny\n");
    terminal.expect("gemini: ").expect("[Y/n/d] ").press("no\n");
    terminal.expect("windsurf: ").answer("[Y/n/d] ", "N\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0));
    let text = home.read(".ack-mem/scopes/claude-mem/scope.toml");
    assert_contains!(text, "unreviewed = \"approved\"");
    assert!(!home.path(".ack-mem/scopes/serena-shop").exists());
    assert_lacks!(home.read(".gemini/settings.json"), "ack-memory");
    // Long lines are broken between words, and a command so that it can be copied.
    for line in screen.lines().filter(|line| !line.contains(":") || line.contains("added")) {
        assert!(line.len() <= 80, "{line:?}");
    }
    assert_contains!(screen, " \\\n");
}

#[test]
fn trust_in_all_that_follow_says_how_many_each_store_has() {
    let home = home();
    home.write("src/shop/.serena/memories/login.md", "password = hunter2hunter2");
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.answer("claude-mem [t/r/s/T/R/S] ", "T\n").expect("added: ");
    terminal.expect("Serena memories: 2 memories").expect("trusted 1, held back 1 flagged");
    terminal.expect("(1 looks like it has a secret)");
    terminal.expect("--unreviewed approved").expect("gemini: ").answer("[Y/n/d] ", "n\n");
    terminal.expect("windsurf: ").answer("[Y/n/d] ", "n\n");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn without_stores_the_next_steps_are_shown() {
    let empty = Home::new();
    let mut bare = empty.prepared(binary());
    bare.env("PATH", empty.path("bin")).current_dir(empty.0.path());
    let output = run(bare.args(["setup", "--yes"])).ok();
    assert_contains!(
        output,
        "ack-memory demo",
        "ack-memory import FILE",
        "ack-memory scopes add",
        "docs/"
    );
}

/// Comparing each store with each scope would take minutes here.
#[test]
fn the_stores_of_many_projects_are_added() {
    const PROJECTS: usize = 2_500;
    let home = Home::new();
    home.write("src/shop/README.md", "");
    for number in 0..PROJECTS {
        // Two slugs lead to one name.
        let project = format!(".claude/projects/-{}-src-app{}", number % 2, number / 2);
        home.write(&format!("{project}/memory/MEMORY.md"), "- Use pnpm\n");
    }
    let report = run(&mut home.in_shop(&["setup", "--yes", "--json"])).json();
    let stores = report["stores"].as_array().unwrap();
    assert_eq!(stores.len(), PROJECTS);
    assert!(stores.iter().all(|store| store["action"] == "added"));
    let scopes = home.path(".ack-mem/scopes");
    assert_eq!(std::fs::read_dir(&scopes).unwrap().count(), PROJECTS);
    assert!(scopes.join("auto-app7").is_dir() && scopes.join("auto-app7-2").is_dir());
    let again = run(&mut home.in_shop(&["setup", "--yes", "--json"])).json();
    let stores = again["stores"].as_array().unwrap();
    assert!(stores.iter().all(|store| store["action"] == "there"));
}

#[test]
fn setup_says_what_else_enters_sessions_without_review() {
    let home = home();
    let shown = run(&mut home.in_shop(&["setup", "--dry-run"])).ok();
    assert_lacks!(shown, "without review");
    let hook = json!({ "hooks": { "SessionStart": [{ "command": "icm hook start" }] } });
    home.write(".gemini/settings.json", &hook.to_string());
    home.write(".claude/projects/-src-shop/memory/MEMORY.md", "- tabs");
    let shown = run(&mut home.in_shop(&["setup", "--dry-run"])).ok();
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Also in their sessions, without review",
        "claude-code: its auto-memory is on: what it noted about 1 project is in its sessions",
        "gemini: a hook of icm in ~/.gemini/settings.json adds memories that nobody reviewed",
    ] {
        assert!(flat.contains(part), "{part}: {shown}");
    }
    let answer = run(&mut home.in_shop(&["setup", "--dry-run", "--json"])).json();
    let found = answer["unreviewed"].as_array().unwrap().len();
    assert_eq!(found, 2, "{answer}");
}

/// Settings as claude-mem 13.25.3 leaves them, with other people's entries and layout.
const PLUGIN: &str = "{\n    // mine\n    \"enabledPlugins\": { \"claude-mem@thedotmack\": true, \"x@y\": true },\n}\n";
const HOOKS: &str = r#"{
  "version": 1,
  "hooks": {
    "beforeSubmitPrompt": [
      { "command": "\"bun\" \"/h/.claude/plugins/marketplaces/thedotmack/plugin/scripts/worker-service.cjs\" hook cursor session-init" },
      { "command": "\"bun\" \"/h/.claude/plugins/marketplaces/thedotmack/plugin/scripts/worker-service.cjs\" hook cursor context" },
      { "command": "/opt/lint" }
    ],
    "stop": [
      { "command": "\"bun\" \"/h/.claude/plugins/marketplaces/thedotmack/plugin/scripts/worker-service.cjs\" hook cursor summarize" }
    ]
  }
}"#;
const SERVERS: &str = r#"{
  "mcpServers": {
    "claude-mem": { "command": "node", "args": ["/h/.claude/plugins/marketplaces/thedotmack/plugin/scripts/mcp-server.cjs"] },
    "notes": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] },
    "files": { "command": "npx", "args": ["-y", "@x/files"] }
  }
}
"#;
const CODEX: &str = "[plugins.\"claude-mem@thedotmack\"]\nenabled = false\n\n[plugins.\"claude-mem@claude-mem-local\"]\nenabled = true # from npx\n";

/// A home with claude-mem in three clients.
fn gated() -> Home {
    let home = Home::new();
    home.write("src/shop/README.md", "");
    home.write(".claude/settings.json", PLUGIN);
    home.write(".claude/projects/-src-shop/memory/MEMORY.md", "- Use tabs\n");
    home.write(".cursor/hooks.json", HOOKS);
    home.write(".cursor/mcp.json", SERVERS);
    home.write(".codex/config.toml", CODEX);
    home
}

/// Runs `setup` and switches everything off, without connecting anything that is not connected.
fn switch_all_off(home: &Home) {
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.answer("auto-memory [t/r/s/T/R/S] ", "s\n");
    for shown in [
        "-    \"enabledPlugins\": { \"claude-mem@thedotmack\": true",
        "+    \"autoMemoryEnabled\": false",
        "+enabled = false # from npx",
        "-    \"claude-mem\": {",
        "-    \"notes\": {",
        "hook cursor context",
    ] {
        terminal.expect(shown).answer("switch it off? [y/N] ", "y\n");
        terminal.expect("the way back: ack-memory disconnect ");
    }
    for _ in ["claude-code", "codex", "cursor"] {
        terminal.answer("[Y/n/d] ", "n\n");
    }
    assert_eq!(terminal.end().0, Some(0));
}

fn assert_all_off(home: &Home) {
    let settings = home.read(".claude/settings.json");
    for part in ["thedotmack\": false", "\"x@y\": true", "\"autoMemoryEnabled\": false", "// mine"]
    {
        assert_contains!(settings, part);
    }
    let hooks = home.json(".cursor/hooks.json")["hooks"].clone();
    assert_eq!(hooks["beforeSubmitPrompt"][0]["command"], "/opt/lint");
    assert_contains!(hooks["stop"].to_string(), "summarize"; "what records stays");
    let servers = home.json(".cursor/mcp.json")["mcpServers"].clone();
    assert!(servers.get("claude-mem").is_none() && servers.get("notes").is_none());
    assert!(servers.get("files").is_some());
    assert_lacks!(home.read(".codex/config.toml"), "enabled = true");
}

#[test]
fn what_enters_sessions_unreviewed_is_switched_off_and_comes_back_byte_for_byte() {
    let home = gated();
    let all = ["claude-code", "codex", "cursor"];
    let before = contents(home.0.path());
    let connect = || {
        for client in all {
            run(&mut home.in_shop(&["connect", client, "--yes"])).ok();
        }
    };
    // Whatever comes first, and when there is nothing of ours at all.
    let orders: [&[&str]; 3] = [&["off"], &["off", "connect"], &["connect", "off"]];
    for order in orders {
        for step in order {
            match *step {
                "connect" => connect(),
                _ if order.first() == Some(step) => switch_all_off(&home),
                // What is connected already is not asked about.
                _ => {
                    let mut terminal = Session::start(home.in_shop(&["setup"]));
                    terminal.answer("auto-memory [t/r/s/T/R/S] ", "s\n");
                    for _ in 0..6 {
                        terminal.answer("switch it off? [y/N] ", "y\n");
                    }
                    assert_eq!(terminal.end().0, Some(0));
                }
            }
        }
        assert_all_off(&home);
        assert_lacks!(run(&mut home.in_shop(&["doctor"])).out, "nobody reviewed"; "{order:?}");
        for client in all {
            let back = run(&mut home.in_shop(&["disconnect", client, "--yes"]));
            assert_contains!(back.err, "switched on again");
        }
        assert_eq!(home.read(".claude/settings.json"), PLUGIN, "{order:?}");
        assert_eq!(home.read(".cursor/hooks.json"), HOOKS, "{order:?}");
        assert_eq!(home.read(".cursor/mcp.json"), SERVERS, "{order:?}");
        assert_eq!(home.read(".codex/config.toml"), CODEX, "{order:?}");
        assert_eq!(contents(home.0.path()), before, "{order:?}");
    }
}

#[test]
fn enter_and_scripts_leave_on_what_enters_sessions() {
    let home = gated();
    let before = contents(home.0.path());
    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal
        .expect("it also shows them to agents itself, unreviewed")
        .answer("auto-memory [t/r/s/T/R/S] ", "s\n");
    terminal.expect("nobody reviewed, about 1,000").expect("records nothing there either");
    for _ in 0..6 {
        terminal.answer("switch it off? [y/N] ", "\n");
    }
    for _ in 0..3 {
        terminal.answer("[Y/n/d] ", "n\n");
    }
    assert_eq!(terminal.end().0, Some(0));
    assert_eq!(contents(home.0.path()), before);
    let answer = run(&mut home.in_shop(&["setup", "--yes", "--json"])).json();
    let others = answer["unreviewed"].as_array().unwrap();
    assert_eq!(others.len(), 6, "{answer}");
    assert!(others.iter().all(|other| other["action"] == "left_on"));
    assert_contains!(home.read(".claude/settings.json"), "\"claude-mem@thedotmack\": true");
}

#[test]
fn what_somebody_else_switched_off_is_not_switched_on() {
    let home = gated();
    run(&mut home.in_shop(&["connect", "claude-code", "--yes"])).ok();
    let off =
        home.read(".claude/settings.json").replace("thedotmack\": true", "thedotmack\": false");
    home.write(".claude/settings.json", &off);
    run(&mut home.in_shop(&["disconnect", "claude-code", "--yes"])).ok();
    assert_eq!(
        home.read(".claude/settings.json"),
        PLUGIN.replace("thedotmack\": true", "thedotmack\": false")
    );
}

/// A clone of a team's repository: one note is merged, and one is only in the working tree.
fn clone(home: &Home) {
    home.write("origin/docs/memory/index.md", "---\nokf_version: \"0.2\"\n---\n");
    home.write("origin/docs/memory/ci.md", "---\ntype: gotcha\n---\n# Xylophone in CI\n");
    let origin = home.path("origin");
    git(&origin, &["init", "-q", "-b", "trunk"]);
    git(&origin, &["add", "."]);
    git(&origin, &["commit", "-q", "-m", "notes"]);
    fs::create_dir_all(home.path("src")).unwrap();
    git(&home.path("src"), &["clone", "-q", "../origin", "shop"]);
    home.write("src/shop/docs/memory/new.md", "---\ntype: gotcha\n---\n# Xylophone unmerged\n");
}

#[test]
fn a_clone_joins_its_team_with_one_key_and_never_by_itself() {
    let home = Home::new();
    clone(&home);
    let shop = home.path("src/shop");
    let root = home.path(".ack-mem");
    // Nothing of the repository reaches a session; the person reads what to do.
    for memories_elsewhere in [false, true] {
        if memories_elsewhere {
            home.write("line.jsonl", "{\"id\": \"a\", \"title\": \"Elsewhere\"}");
            let import = ["import", "../../line.jsonl", "--scope", "mine"];
            run(&mut home.in_shop(&import)).ok();
        }
        let told = start(&root, &event(&shop, "startup"));
        assert_lacks!(told.out.to_lowercase(), "xylophone");
        let line = message(told).unwrap();
        assert_contains!(line, "notes of its team in `docs/memory`", "setup`, run here");
        let resumed = message(start(&root, &event(&shop, "resume")));
        assert_lacks!(resumed.unwrap_or_default(), "docs/memory");
    }
    let plan = run(&mut home.in_shop(&["setup", "--yes"])).ok();
    assert_contains!(plan, "to join: ack-memory scopes add shop", "--ref origin/trunk");
    assert!(!home.path(".ack-mem/scopes/shop").exists());

    let mut terminal = Session::start(home.in_shop(&["setup"]));
    terminal.answer("[S/j] ", "j\n").expect("added: ");
    assert_eq!(terminal.end().0, Some(0));
    let told = start(&root, &event(&shop, "startup"));
    assert_contains!(told.out, "Xylophone in CI");
    assert_lacks!(told.out, "unmerged"; "git approves what is merged");
    assert_lacks!(message(told).unwrap_or_default(), "before you join");
    let again = run(&mut home.in_shop(&["setup", "--yes"])).ok();
    assert_contains!(again, "already exists as scope `shop`");
}

/// The longest word of the newest title may be one that says nothing.
#[test]
fn the_first_query_is_a_word_that_few_memories_have() {
    let home = Home::new();
    home.write("src/shop/till.rs", "");
    let line = |day: usize, title: &str| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        let memory = json!({ "id": format!("m{day}"), "title": title, "status": "approved",
            "created_at": created });
        format!("{memory}\n")
    };
    let words = "fonts tills queues locks bells lamps crates boats doors gates";
    let mut lines: String = (1..)
        .zip(words.split(' '))
        .map(|(day, what)| line(day, &format!("The {what} work without a network")))
        .collect();
    lines += &line(20, "Without a copy, never restore");
    let file = home.write("notes.jsonl", &lines);
    let import = ["import", "--scope", "notes", file.to_str().unwrap()];
    run(&mut home.in_shop(&import)).ok();
    let report = run(&mut home.in_shop(&["setup", "--yes", "--json"])).json();
    let command = report["query"]["command"].as_str().unwrap();
    assert!(command.ends_with("query restore"), "{report}");
    assert_eq!(report["query"]["total"], 1);
    let ask = "What do our memories say about \"Without a copy, never restore\"?";
    assert_eq!(report["query"]["ask"], ask);
}
