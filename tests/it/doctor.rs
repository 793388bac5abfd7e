//! `doctor`: what it reports about review and decisions.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{ack, binary, claude_mem, run};
use crate::connect::Home;
use crate::curate::{approved, decide, staged};
use crate::support::{Root, memory, read_text, titled, write_file};
use crate::terminal::Terminal;

/// The findings, each with its subject; a finding may continue the previous one.
fn found(root: &Root) -> Vec<(String, String)> {
    let outcome = ack(root.path(), &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    findings.map(|finding| (text(finding, "subject"), text(finding, "message"))).collect()
}

fn finding_about(root: &Root, subject: &str) -> Option<String> {
    let found = found(root).into_iter();
    let mut found = found.filter(|(about, _)| about == subject);
    found.next().map(|(_, message)| message)
}

#[test]
fn the_doctor_reports_agent_access_if_memories_wait() {
    let root = Root::with("alpha", &[titled("a-1", "Approved")]);
    assert_eq!(finding_about(&root, "alpha").unwrap(), "1 approved");
    assert_eq!(finding_about(&root, "agents"), None, "nothing waits");
    let waiting = json!({ "status": "staging", "created_at": "2026-02-09T08:00:00Z" });
    let waiting = (0..1_200).map(|n| memory(&format!("b-{n}"), "Waits", waiting.clone()));
    let mut memories: Vec<Value> = waiting.collect();
    memories.push(titled("b-x", "Approved"));
    root.store("beta", &memories);
    assert_eq!(
        finding_about(&root, "beta").unwrap(),
        "1 approved, 1,200 unreviewed, the oldest from 2026-02-09"
    );
    assert_eq!(
        finding_about(&root, "agents").unwrap(),
        "see only approved memories (max_status = approved, default)"
    );
    let root = root.let_agents_review();
    assert_eq!(
        finding_about(&root, "agents").unwrap(),
        "may ask for unreviewed memories (max_status = all, config.toml)"
    );
}

#[test]
fn a_problem_of_several_scopes_is_reported_once() {
    let root = Root::new();
    for scope in ["one", "two"] {
        claude_mem(&root.scope_folder(scope).join("claude-mem.db"));
    }
    let output = ack(root.path(), &["scopes"]).ok();
    let found = output.matches("keeps no review status").count();
    assert_eq!(found, 1, "once is enough: {output}");
    assert_contains!(output, "\none, two: the store keeps");
    let output = ack(root.path(), &["query"]).ok();
    let said = "\nnote: one, two: this store keeps no review status";
    assert_contains!(output, said);
    assert_eq!(output.matches("no review status").count(), 1, "{output}");
    // A folder in place of a file that SQLite needs.
    root.store("three", &[titled("t-1", "Three")]);
    fs::remove_file(root.scope_folder("three").join("memory.db")).unwrap();
    std::os::unix::fs::symlink("memory.db", root.scope_folder("three").join("memory.db")).unwrap();
    let report = ack(root.path(), &["doctor", "--json"]).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_lacks!(report["findings"].to_string(), " doctor`");
}

#[test]
fn a_broken_store_is_skipped_in_the_review_and_no_command_to_delete_it_is_suggested() {
    let root = Root::new();
    staged(&root, "good", 2);
    let damaged = root.store("damaged", &[titled("d-1", "One")]);
    let start = fs::read(&damaged).unwrap()[..3_000].to_vec();
    write_file(&damaged, start);
    let garbage = root.scope_folder("garbage").join("memory.db");
    write_file(garbage, [0xA5; 4_096]);
    root.manifest("typo", "visibilty = 'shared'");
    for arguments in [&["review", "--list"][..], &["approve", "--waiting", "--yes"]] {
        let outcome = decide(root.path(), arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for scope in ["damaged", "garbage", "typo"] {
            let note = format!("note: scope `{scope}` is left out: ");
            assert!(outcome.err.contains(&note), "{outcome:?}");
        }
    }
    assert_eq!(approved(root.path()).len(), 2);
    let named = decide(root.path(), &["review", "--list", "--scope", "garbage"]);
    assert_contains!(named.fails(1), "is not an SQLite database");
    let report = ack(root.path(), &["doctor"]).out;
    assert_contains!(report, "scopes remove garbage");
    assert_lacks!(report, "scopes remove damaged");
}

#[test]
fn a_missing_default_scope_is_reported() {
    let root = Root::with("alpha", &[titled("a-1", "One")]);
    let default = |name: &str| {
        let text = format!("default_scope = \"{name}\"\n");
        write_file(root.path().join("config.toml"), text);
        finding_about(&root, "config.toml")
    };
    assert_eq!(
        default("alpah").unwrap(),
        "`default_scope` is `alpah`, which does not exist; did you mean `alpha`?"
    );
    assert_eq!(default("Alpha"), None);
}

#[test]
fn a_damaged_line_of_a_decision_log_costs_that_line_and_is_named() {
    let root = Root::with("alpha", &[titled("a-1", "One"), titled("a-2", "Two")]);
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    write_file(&log, "{\"id\": \"a-1\", \"verdict\": \"rej\n");
    let report = ack(root.path(), &["doctor", "--json"]).out;
    let named = "decisions.jsonl, line 1 cannot be read: ";
    assert_contains!(report, named, "it is about a-1: decide again");
    let findings = report.matches(r#""message": "decisions.jsonl"#);
    assert_eq!(findings.count(), 1, "{report}");
    // Agents are not told which memories wait.
    assert_lacks!(ack(root.path(), &["scopes", "--json"]).ok(), "about a-1");
    let scope = finding_about(&root, "alpha").unwrap();
    assert_eq!(
        scope, "1 approved, 1 unreviewed, the oldest from 2026-01-01",
        "what a lost line may have rejected waits; the rest is as it was"
    );
    // An unknown verdict, and two lines whose line break was lost.
    let unknown = "{\"id\":\"a-2\",\"verdict\":\"bless\"}\n";
    let joined = "{\"id\":\"a-1\",\"dig{\"id\":\"a-2\",\"verdict\":\"reject\"}\n";
    write_file(&log, [unknown, joined, &"{\"id\":\"a-1\"}\n".repeat(5)].concat());
    let report = ack(root.path(), &["doctor", "--json"]).out;
    assert_contains!(
        report,
        "line 1 cannot be read: unknown variant `bless`",
        "it is about a-2: decide again",
        "it is about a-1, a-2: decide again",
        "decisions.jsonl has more lines like these, from line 6 on"
    );
}

#[test]
fn a_damaged_line_is_said_to_hold_back_only_what_it_holds_back() {
    let root = Root::with("alpha", &[titled("a-1", "One"), titled("a-2", "Two")]);
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    decide(root.path(), &["reject", "a-1"]).ok();
    decide(root.path(), &["approve", "a-1"]).ok();
    let text = read_text(&log);
    write_file(&log, format!("{{\"id\": \"a-1\", \"verdict\": \"rej\n<<<<<<< HEAD\n{text}"));
    decide(root.path(), &["review", "--accept-log"]).ok();
    ack(root.path(), &["get", "a-1"]).ok();
    let report = ack(root.path(), &["doctor", "--json"]).out;
    assert_contains!(
        report,
        "decisions.jsonl, line 1 cannot be read: ",
        "it is about a-1, where a later line counts",
        "it names no memory"
    );
    assert_lacks!(report, "waits for review again", "decide again");
    assert_lacks!(ack(root.path(), &["scopes"]).ok(), "wait for review again", "waits for review");
}

#[test]
fn an_unreadable_root_is_not_reported_as_empty() {
    let root = Root::new();
    let text = "a file in the place of the folder";
    write_file(root.path().join("scopes"), text);
    let doctor = ack(root.path(), &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.out);
    assert_contains!(doctor.out, "cannot read");
    let error = ack(root.path(), &["query", "anything"]).fails(1);
    assert_contains!(error, "cannot read");
    assert_lacks!(error, "setup");
}

#[test]
fn an_unreadable_scope_is_not_reported_as_an_empty_queue() {
    let root = Root::new();
    write_file(root.scope_folder("garbage").join("memory.db"), [0xA5; 4_096]);
    for arguments in [&["review", "--list"][..], &["review", "--list", "--json"]] {
        let refused = ack(root.path(), arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_contains!(refused.err, "no scope can be read");
        assert_lacks!(refused.out, "nothing waits");
    }
    // Without any scope, nothing waits.
    let none = ack(Root::new().path(), &["review", "--list"]).ok();
    assert_contains!(none, "nothing is unreviewed");
    let filtered = ["review", "--list", "--type", "gotcha"];
    let none = ack(Root::new().path(), &filtered).ok();
    assert_contains!(none, "nothing unreviewed matches");
}

#[test]
fn a_client_connected_to_other_memories_is_reported() {
    let (home, one, two) = (Home::new(), Root::new(), Root::new());
    for root in [&one, &two] {
        root.store("music", &[titled("m", "Tune it")]);
    }
    home.write(".claude.json", "{}");
    home.write(".config/opencode/opencode.json", "{}");
    let over = |root: &Root, arguments: &[&str]| {
        let mut command = home.prepared(binary());
        command.env("PATH", home.path("bin"));
        command.arg("--root").arg(root.path()).args(arguments);
        run(&mut command)
    };
    over(&one, &["connect", "claude-code", "opencode", "--yes"]).ok();
    assert_contains!(over(&one, &["doctor"]).out, "✓ Claude Code");
    let wrong = over(&two, &["doctor"]).out;
    let [first, second] = [&one, &two].map(|root| root.path().display());
    let served = format!("it serves {first}, not {second}");
    // One starts it by a command and arguments, the other by a list.
    assert_contains!(wrong, "! Claude Code", "! Opencode");
    assert_eq!(wrong.matches(&served).count(), 2, "{wrong}");
    assert_contains!(wrong, format!("ack-memory --root {second} connect claude-code"));
    // Without a command, this is what is shown.
    assert_eq!(over(&two, &[]).out, wrong);
    // A pin, and a single database.
    let pinned = over(&one, &["--pin", "music", "doctor"]).out;
    assert_contains!(pinned, "it serves every scope, not only `music`");
    let store = one.scope_folder("music").join("memory.db");
    let single = over(&one, &["--db", store.to_str().unwrap(), "doctor"]).out;
    assert_contains!(single, "! Claude Code");
    over(&one, &["--pin", "music", "connect", "claude-code", "--yes"]).ok();
    let free = over(&one, &["doctor"]).out;
    assert_contains!(free, "it serves only the scope `music`");
}

#[test]
fn a_file_of_a_client_that_cannot_be_read_is_an_error() {
    let (home, root) = (Home::new(), Root::new());
    root.store("music", &[titled("m", "Tune it")]);
    home.write(".claude.json", "{broken");
    home.write(".codex/config.toml", "model = \"x\"\n");
    home.write(".codex/hooks.json", "[");
    let ours = |arguments: &[&str]| {
        let mut command = home.prepared(binary());
        command.env("PATH", home.path("bin"));
        run(command.arg("--root").arg(root.path()).args(arguments))
    };
    let outcome = ours(&["doctor"]);
    assert_eq!(outcome.code, Some(1));
    let output = outcome.out;
    assert_contains!(
        output,
        "✗ Claude Code",
        "~/.claude.json: it is not valid JSON",
        "- Codex",
        "~/.codex/hooks.json: it is not valid JSON"
    );
    assert_lacks!(output, "connect claude-code"; "it would fail");
    let error = ours(&["connect", "claude-code", "--yes"]).fails(1);
    assert_contains!(error, "the client's own documentation");
    assert_lacks!(error, "configuration.md");
}

/// What `doctor` says about a home, with these memories.
fn report(home: &Home, root: &Root) -> String {
    let mut command = home.prepared(binary());
    command.env("PATH", home.path("bin")).current_dir(home.0.path());
    run(command.arg("--root").arg(root.path()).arg("doctor")).out
}

#[test]
fn a_hook_that_its_client_does_not_run_is_reported() {
    let (home, root) = (Home::new(), Root::new());
    root.store("music", &[titled("m", "Tune it")]);
    let there = root.path().to_str().unwrap();
    home.yes(&["--root", there, "connect", "codex", "claude-code"]);
    let waits = "the session hook waits for your trust";
    let untrusted = report(&home, &root);
    assert_contains!(untrusted, waits, "open `/hooks` in Codex");
    assert_lacks!(untrusted, "Codex        connected, session hook on");
    let plain = home.read(".codex/config.toml");
    let hooks = home.path(".codex/hooks.json");
    let hooks = hooks.to_str().unwrap();
    let state = |event: &str, entry: u32, hook: u32, rest: &str| {
        let key = format!("{hooks}:{event}:{entry}:{hook}");
        let text = format!("{plain}\n[hooks.state.\"{key}\"]\n{rest}\n");
        home.write(".codex/config.toml", &text);
        report(&home, &root)
    };
    let hash = "trusted_hash = \"sha256:5b46\"";
    let trusted = state("session_start", 0, 0, hash);
    assert_lacks!(trusted, waits);
    assert_contains!(trusted, "session hook on");
    // Another event, another place, and an entry without a hash.
    for (event, entry, hook, rest) in [
        ("user_prompt_submit", 0, 0, hash),
        ("session_start", 1, 0, hash),
        ("session_start", 0, 1, hash),
        ("session_start", 0, 0, "enabled = true"),
    ] {
        let report = state(event, entry, hook, rest);
        assert_contains!(report, waits; "{event} {entry} {hook} {rest}");
    }
    let off = state("session_start", 0, 0, &format!("{hash}\nenabled = false"));
    assert_contains!(off, "the session hook is switched off");
    let text = format!("{plain}\n[features]\nhooks = false\n");
    home.write(".codex/config.toml", &text);
    let off = report(&home, &root);
    assert_contains!(off, "the session hook is switched off");
    // After somebody else's, it is the second one.
    home.write(".codex/config.toml", &plain);
    let mut settings = home.json(".codex/hooks.json");
    let other = json!({ "hooks": [{ "type": "command", "command": "other" }] });
    let list = settings["hooks"]["SessionStart"].as_array_mut().unwrap();
    list.insert(0, other);
    home.write(".codex/hooks.json", &settings.to_string());
    assert!(state("session_start", 0, 0, hash).contains(waits));
    assert!(!state("session_start", 1, 0, hash).contains(waits));

    let ignored = "so the session hook in them is ignored";
    home.yes(&["--root", there, "connect", "droid"]);
    assert!(!report(&home, &root).contains(ignored));
    home.write(".factory/hooks.json", "{\"hooks\":{}}");
    assert!(report(&home, &root).contains(ignored));
    let entries = home.json(".factory/settings.json")["hooks"].clone();
    home.write(".factory/hooks.json", &entries.to_string());
    assert!(!report(&home, &root).contains(ignored));

    let claude = "`disableAllHooks` keeps the session hook from running";
    assert!(!report(&home, &root).contains(claude));
    let mut settings = home.json(".claude/settings.json");
    settings["disableAllHooks"] = json!(true);
    home.write(".claude/settings.json", &settings.to_string());
    assert!(report(&home, &root).contains(claude));
}

#[test]
fn what_enters_sessions_without_review_is_reported() {
    let (home, root) = (Home::new(), Root::new());
    root.store("music", &[titled("m", "Tune it")]);
    home.write(".claude.json", "{}");
    home.write(".cursor/mcp.json", "{}");
    assert_lacks!(report(&home, &root), "nobody reviewed");
    // What records and what only answers is not the same as what adds text.
    let worker = "bun /h/.claude/plugins/cache/thedotmack/claude-mem/13.1/scripts/worker.cjs";
    let hook = |event: &str, command: &str| json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } });
    let name = ".claude/settings.json";
    home.write(name, &hook("PostToolUse", worker).to_string());
    assert_lacks!(report(&home, &root), "nobody reviewed");
    let plugins = json!({ "claude-mem@thedotmack": true, "ack-memory@x": true });
    for (settings, said) in [
        (
            hook("SessionStart", worker),
            "a hook of claude-mem in ~/.claude/settings.json adds memories that nobody reviewed",
        ),
        (
            hook("UserPromptSubmit", "/opt/bin/icm hook prompt"),
            "a hook of icm in ~/.claude/settings.json adds memories that nobody reviewed",
        ),
        (
            json!({ "enabledPlugins": plugins }),
            "the plugin claude-mem@thedotmack, enabled in ~/.claude/settings.json, adds",
        ),
    ] {
        home.write(name, &settings.to_string());
        let report = report(&home, &root);
        let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat.matches(said).count(), 1, "{said}: {report}");
        assert_eq!(flat.matches("nobody reviewed").count(), 1, "{report}");
    }
    // Claude Code's own notes.
    home.write(name, "{}");
    let auto_memory = "its auto-memory is on: what it noted about 2 projects";
    home.write(".claude/projects/-a/session.jsonl", "{}");
    assert_lacks!(report(&home, &root), "its auto-memory is on");
    home.write(".claude/projects/-a/memory/MEMORY.md", "- a");
    home.write(".claude/projects/-b/memory/tests.md", "- b");
    assert!(report(&home, &root).contains(auto_memory));
    for settings in [
        json!({ "autoMemoryEnabled": false }),
        json!({ "env": { "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1" } }),
    ] {
        home.write(".claude/settings.json", &settings.to_string());
        assert_lacks!(report(&home, &root), "its auto-memory is on"; "{settings}");
    }
}

#[test]
fn a_missing_rule_against_writing_is_reported() {
    let (home, root) = (Home::new(), Root::new());
    root.store("music", &[titled("m", "Tune it")]);
    let there = root.path().to_str().unwrap();
    let missing = "no rule keeps its file tools from writing below";
    home.write(".claude.json", "{}");
    assert_lacks!(report(&home, &root), missing; "it is not connected");
    home.yes(&["--root", there, "connect", "claude-code"]);
    assert!(!report(&home, &root).contains(missing));
    let mut settings = home.json(".claude/settings.json");
    settings["permissions"]["deny"] = json!(["Edit(~/other/**)"]);
    home.write(".claude/settings.json", &settings.to_string());
    assert!(report(&home, &root).contains(missing));
}

#[test]
fn text_that_remains_after_its_memory_left_is_named() {
    let root = Root::with("alpha", &[titled("a", "Kept")]);
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    let edit = |id: &str| {
        json!({
            "id": id, "digest": format!("sha256:{}", "0".repeat(64)), "verdict": "edit",
            "was": "staging", "edit": { "title": "Words of the person" }, "actor": "human:ana",
            "batch": "b", "time": "2026-01-01T00:00:00Z",
        })
    };
    let said = "keeps edits of 1 memory that left the store";
    write_file(&log, format!("{}\n", edit("a")));
    let out = ack(root.path(), &["doctor"]).out;
    assert_lacks!(out, "keeps edits");
    write_file(&log, format!("{}\n{}\n", edit("a"), edit("gone")));
    let out = ack(root.path(), &["doctor"]).out;
    assert_contains!(out, said, "review --accept-log");
}

#[test]
fn what_the_owner_chose_is_no_warning() {
    let (home, root) = (Home::new(), Root::new());
    home.write(".claude.json", "{}");
    let store = home.path("claude-mem.db");
    drop(claude_mem(&store));
    let store = store.display();
    root.manifest("trusted", &format!("store = '{store}'\nunreviewed = 'approved'\n"));
    let there = root.path().to_str().unwrap();
    home.yes(&["--root", there, "--pin", "trusted", "connect", "claude-code"]);
    let mut settings = home.json(".claude/settings.json");
    settings["disableAllHooks"] = json!(true);
    settings["autoMemoryEnabled"] = json!(false);
    home.write(".claude/settings.json", &settings.to_string());
    let said = report(&home, &root);
    assert_contains!(
        said,
        "count as `approved` (`unreviewed` in scope.toml)",
        "it serves only the scope `trusted`",
        "`disableAllHooks` keeps the session hook from running",
        "nothing is wrong"
    );
}

#[test]
fn a_terminal_shows_the_first_of_many_scopes_and_everything_that_is_wrong() {
    let root = Root::new();
    for number in 0..30 {
        root.store(&format!("scope-{number:02}"), &[titled("m", "Tune it")]);
    }
    write_file(root.scope_folder("zither").join("memory.db"), [7; 5_000]);
    let mut terminal = Terminal::new();
    let shown = terminal.plain(root.path(), &["doctor"]);
    let more = "and 10 more: `ack-memory doctor | less` shows all";
    assert_contains!(shown, "scope-19", more, "✗ zither");
    assert_lacks!(shown, "scope-20");
    let listed = terminal.plain(root.path(), &["scopes"]);
    let more = "and 11 more: `ack-memory scopes | less` shows all";
    assert_contains!(listed, "scope-19", more);
    // The current one is always there.
    let mut command = terminal.command(root.path(), &["scopes"]);
    command.env("ACK_MEM_SCOPE", "scope-28");
    let listed = terminal.run(&mut command, "").out;
    assert_contains!(listed, "scope-28 *", "and 10 more");
    // A pipe gets all of them.
    for command in ["doctor", "scopes"] {
        let listed = ack(root.path(), &[command]).out;
        assert_contains!(listed, "scope-20", "scope-29", "zither");
    }
}
