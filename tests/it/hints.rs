//! What is printed for people to run next: it fits what they did, and acts on the same memories.

use std::path::Path;

use serde_json::Value;

use crate::cli::{ack, binary, claude_mem, run, run_with_input};
use crate::connect::{Home, contents};
use crate::curate::{decide, with_token};
use crate::support::{Root, run_sql, unreviewed, write_file};

/// The commands in a text that act on a root.
fn commands(output: &str) -> Vec<&str> {
    let places = output.match_indices("ack-memory ").map(|(at, _)| &output[at..]);
    let without_root = ["demo", "is ", "0.", "alone", "--help"];
    places
        .filter(|text| !without_root.iter().any(|word| text[11..].starts_with(word)))
        .map(|text| text.lines().next().unwrap())
        .collect()
}

#[track_caller]
fn act_on(root: &Path, output: &str) {
    let flag = format!("ack-memory --root {} ", root.display());
    for command in commands(output) {
        assert!(command.starts_with(&flag), "{command}\n{output}");
    }
}

#[test]
fn every_printed_command_acts_on_the_root_that_was_given() {
    let home = Home::new();
    home.write(".claude-mem/settings.json", "{}");
    drop(claude_mem(&home.path(".claude-mem/claude-mem.db")));
    home.write(".gemini/settings.json", "{}\n");
    let root = home.path("other");
    std::fs::create_dir(&root).unwrap();
    let ours = |arguments: &[&str]| {
        let mut command = home.prepared(binary());
        command.env("PATH", home.path("bin"));
        command.arg("--root").arg(&root).args(arguments);
        run(&mut command)
    };
    let mut seen = 0;
    for arguments in [
        &["query", "x"][..],
        &[],
        &["doctor"],
        &["setup"],
        &["setup", "--dry-run"],
        &["setup", "--yes"],
        &["setup", "--yes", "--json"],
        &[],
        &["query", "xylophone"],
        &["get", "nothing"],
        &["doctor"],
        &["doctor", "--json"],
        &["scopes"],
        &["scopes", "add", "twice", "--store", "~/.claude-mem/claude-mem.db"],
        &["scopes", "set", "claude-mem", "description=x"],
        &["connect", "gemini"],
    ] {
        let outcome = ours(arguments);
        for output in [&outcome.out, &outcome.err] {
            // What `connect` writes is not a command of ours to run.
            let lines = output.lines().filter(|line| !line.starts_with(['+', '-', ' ', '"']));
            let shown: String = match arguments {
                ["connect", ..] => lines.collect::<Vec<_>>().join("\n"),
                _ => output.clone(),
            };
            seen += commands(&shown).len();
            act_on(&root, &shown);
        }
    }
    assert!(seen > 20, "{seen}");
    assert!(!home.path(".ack-mem").exists());
    // The commands that decide work as printed.
    let output = ours(&["doctor"]).out;
    let trust = commands(&output).into_iter().find(|text| text.contains("unreviewed=approved"));
    let words = trust.unwrap().split_whitespace().skip(1);
    let mut command = home.prepared(binary());
    assert_contains!(run(command.args(words)).ok(), "written");
    assert_eq!(ours(&["query", "xylophone", "--json"]).json()["total"], 1);
}

#[test]
fn printed_commands_need_no_flag_for_a_variable_or_the_default_root() {
    let home = Home::new();
    let root = Root::with("music", &[unreviewed("m", "Tune it")]);
    let mut command = home.prepared(binary());
    let output = run(command.env("ACK_MEM_PATH", root.path()).arg("doctor")).out;
    assert_contains!(output, "→ ack-memory review --scope music");
    let mut command = home.prepared(binary());
    let usual = home.path(".ack-mem");
    let error = run(command.arg("--root").arg(usual).args(["query", "x"])).fails(1);
    assert_contains!(error, "`ack-memory setup`");
    // A pin is carried too: without it, the command would find something else.
    let mut command = home.prepared(binary());
    command.arg("--root").arg(root.path()).args(["--pin", "music", "doctor"]);
    let output = run(&mut command).out;
    let flags = format!("ack-memory --root {} --pin music review", root.path().display());
    assert_contains!(output, &flags);
}

#[test]
fn a_nonexistent_root_is_reported_as_missing() {
    let home = Home::new();
    let missing = home.path("nope");
    let ours = |arguments: &[&str]| {
        let mut command = home.prepared(binary());
        run(command.arg("--root").arg(&missing).args(arguments))
    };
    for arguments in [&["query", "x"][..], &["get", "x"]] {
        let error = ours(arguments).fails(1);
        assert_contains!(error, "does not exist");
        act_on(&missing, &error);
    }
    for arguments in [&["doctor"][..], &[], &["scopes"]] {
        let output = ours(arguments).out;
        assert_contains!(output, "does not exist");
        act_on(&missing, &output);
    }
    assert!(contents(home.0.path()).is_empty());
}

#[test]
fn every_command_reports_a_wrong_database_with_a_matching_hint() {
    let folder = tempfile::TempDir::new().unwrap();
    let text = folder.path().join("notes.txt");
    write_file(&text, "no database");
    let foreign = folder.path().join("foreign.db");
    run_sql(&foreign, "CREATE TABLE x (y)");
    for (path, problem) in [
        (folder.path().join("nope.db"), "not found"),
        (text, "is not an SQLite database"),
        (foreign, "no memories"),
    ] {
        for arguments in [&["scopes"][..], &["query", "x"]] {
            let outcome = run(binary().arg("--db").arg(&path).args(arguments));
            assert_eq!(outcome.code, Some(1), "{path:?} {arguments:?}");
            let error = outcome.err;
            assert!(error.contains(problem), "{arguments:?}: {error}");
            let hint = error.lines().find(|line| line.starts_with("hint:")).unwrap();
            assert_contains!(hint, "`--db`"; "{arguments:?}");
            for other in ["scopes set", "import", "NAME"] {
                assert!(!error.contains(other), "{arguments:?}: {error}");
            }
        }
    }
}

#[test]
fn a_scope_whose_store_is_gone_is_named_in_what_to_do() {
    let root = Root::new();
    root.manifest("claude-mem", "store = \"/nowhere/claude-mem.db\"\n");
    root.scope_folder("empty");
    for arguments in [&["query", "x"][..], &["scopes"], &[], &["doctor"]] {
        let outcome = ack(root.path(), arguments);
        let output = outcome.out + &outcome.err;
        assert_lacks!(output, "NAME"; "{arguments:?}");
        let set =
            format!("ack-memory --root {} scopes set claude-mem store=PATH", root.path().display());
        let remove =
            format!("ack-memory --root {} scopes remove claude-mem", root.path().display());
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains(&set) && output.contains(&remove), "{arguments:?}: {output}");
        // A query that no scope can answer names the first of them.
        if arguments.contains(&"query") {
            continue;
        }
        let own = format!("ack-memory --root {} import FILE --scope empty", root.path().display());
        assert_contains!(output, &own; "its own store can be filled");
        let found = output.matches("import FILE").count();
        assert_eq!(found, 1, "and no other: {output}");
    }
}

#[test]
fn every_wrong_usage_exits_with_2_and_is_json_if_that_is_asked_for() {
    let root = Root::with("notes", &[]);
    let store = root.path().join("scopes/notes/memory.db");
    let store = store.to_str().unwrap();
    for (arguments, argument) in [
        (&["query", "--since", "yesterdayy", "x"][..], "--since"),
        (&["query", "--status", "approvd", "x"], "--status"),
        (&["query", "--limit", "99", "x"], "limit"),
        (&["query", "--since", "2026-05-01", "--until", "2026-01-01", "x"], "until"),
        (&["scopes", "set", "notes", "visibilty=private"], "KEY"),
        (&["scopes", "set", "notes", "paths-=x"], "KEY"),
        (&["scopes", "add", "a b", "--store", store], ""),
        (&["add", "x", "--scope", "a b"], ""),
        (&["add", "x", "--type", ""], "--type"),
        (&["index", "--no-such-flag"], "--no-such-flag"),
        (&["connect", "cursor"], "--json"),
        (&["disconnect", "cursor"], "--json"),
        (&["demo"], "--json"),
    ] {
        let outcome = decide(root.path(), &[&["--json"], arguments].concat());
        assert_eq!((outcome.code, &*outcome.out), (Some(2), ""), "{arguments:?}: {outcome:?}");
        let body: Value = serde_json::from_str(&outcome.err)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", outcome.err));
        assert!(body["code"].as_str().unwrap().ends_with("_argument"), "{arguments:?}: {body}");
        assert_eq!(body["argument"].as_str().unwrap_or_default(), argument, "{body}");
        assert_lacks!(body["message"], "\n", "Usage:"; "{arguments:?}");
        for allowed in body["allowed"].as_array().into_iter().flatten() {
            assert_lacks!(allowed, "paths, "; "{arguments:?}");
        }
        // The text that a person gets has the same exit code.
        if argument != "--json" {
            decide(root.path(), arguments).fails(2);
        }
    }
    let nothing = decide(root.path(), &["--json", "approve"]).fails(2);
    assert_lacks!(nothing, "\"value\"");
    let empty = run_with_input(&mut with_token(root.path(), &["add", "-"]), b"").fails(2);
    assert_contains!(empty, "standard input is empty");
    let lists = decide(root.path(), &["list-scopes"]).fails(2);
    assert_contains!(lists, "`ack-memory scopes`");
    let list = decide(root.path(), &["scopes", "set", "notes", "paths-=x"]).fails(2);
    assert_contains!(list, "`paths=A,B` sets the whole list");
    let path = ack(root.path(), &["--json", "config", "path"]).json();
    assert!(path["path"].as_str().unwrap().ends_with("/config.toml"), "{path}");
    let token = ack(root.path(), &["--json", "token", "dana"]).json();
    assert_eq!(token["client"], "dana");
}
