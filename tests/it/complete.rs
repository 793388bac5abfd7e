//! Shell completion: what the program offers, and that real shells insert it.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::cli::{binary, run};
use crate::support::{Root, fingerprint, memory, titled, write_file};
use crate::terminal::Session;

fn root() -> Root {
    let root = Root::new();
    let first = json!({ "concepts": ["retries", "sql"], "project": "ledger" });
    let second = json!({ "status": "staging", "concepts": ["unreviewed"], "project": "secret" });
    let third = json!({ "concepts": ["sql", "sql:locks", "two words", "$(touch x)"] });
    let rest = json!({ "status": "rejected", "concepts": ["wrong"] });
    let memories = [
        memory("ack_7be29d_2026-02-09_001", "Retry with jitter", first),
        memory("ack_7be29d_2026-02-09_002", "Lock rows in one order", third),
        memory("ack_c0ffee_2026-02-10_001", "Waits for review", second),
        memory("ack_bad000_2026-02-10_001", "Was rejected", rest),
    ];
    root.store("ledger-api", &memories);
    root.store("platform", &[titled("plat-1", "Use one runner")]);
    root
}

/// The completions that the program gives bash for the last word.
fn named(root: &Path, words: &[&str]) -> Vec<String> {
    let folder = root.to_str().unwrap();
    let words: Vec<&str> = ["ack-memory", "--root", folder]
        .into_iter()
        .chain(words.iter().copied())
        .collect();
    let answer = run(binary()
        .env("ACK_MEM_COMPLETE", "bash")
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .arg("--")
        .args(&words));
    assert_eq!(answer.err, "", "{words:?}");
    let lines = answer.out.lines().map(str::to_owned);
    // An argument that may be left out leaves room for options.
    lines.filter(|line| !line.starts_with('-')).collect()
}

#[test]
fn scopes_ids_and_tags_are_completed_and_nothing_is_written() {
    let root = root();
    let before = fingerprint(root.path());
    let named = |words: &[&str]| named(root.path(), words);
    assert_eq!(named(&["query", "-s", ""]), ["ledger-api", "platform"]);
    assert_eq!(named(&["query", "--scope=pl"]), Vec::<String>::new());
    assert_eq!(named(&["scopes", "remove", "pl"]), ["platform"]);
    assert_eq!(named(&["--pin", "led"]), ["ledger-api"]);
    // The most frequent tag comes first, without those that a shell would not read as one word.
    assert_eq!(named(&["query", "-t", ""]), ["sql", "retries", "sql:locks"]);
    assert_eq!(named(&["query", "-p", ""]), ["ledger"]);
    assert_eq!(
        named(&["get", "ack_7"]),
        ["ack_7be29d_2026-02-09_001", "ack_7be29d_2026-02-09_002"]
    );
    assert_eq!(
        named(&["get", "7be2"]),
        ["7be29d_2026-02-09_001", "7be29d_2026-02-09_002"]
    );
    assert_eq!(named(&["get", "-s", "platform", "pl"]), ["plat-1"]);
    let found = named(&["query", "--like", "p"]);
    assert_eq!(found, ["plat-1"], "ids of other options");
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn only_decision_commands_complete_unapproved_ids() {
    let root = root();
    let named = |words: &[&str]| named(root.path(), words);
    let unreviewed = ["c0ffee", "bad0", "ack_c", "ack_b"];
    for typed in unreviewed {
        for words in [
            &["get", typed][..],
            &["get", "--all", typed],
            &["query", "--like", typed],
            &["query", "--expect", typed],
        ] {
            assert_eq!(named(words), Vec::<String>::new(), "{words:?}");
        }
    }
    for words in [&["query", "-t", "unrev"], &["query", "-p", "sec"]] {
        assert_eq!(named(words), Vec::<String>::new(), "{words:?}");
    }
    assert_eq!(named(&["approve", "ack"]), ["ack_c0ffee_2026-02-10_001"]);
    assert_eq!(named(&["reject", "c0f"]), ["c0ffee_2026-02-10_001"]);
    let found = named(&["merge", "ack_c0ffee_2026-02-10_001", "--into", "plat"]);
    assert_eq!(found, ["plat-1"]);
}

#[test]
fn completion_prints_nothing_for_unknown_input() {
    let root = root();
    let broken = root.scope_folder("broken").join("memory.db");
    write_file(&broken, "no database");
    root.manifest("worse", "visibility = 7\n");
    let found = named(root.path(), &["get", "plat"]);
    assert_eq!(found, ["plat-1"], "the other scopes are still there");
    for words in [
        &["get", "-s", "nowhere", ""][..],
        &["get", "--pin", "nowhere", ""],
        &["serve", "x"],
    ] {
        assert_eq!(named(root.path(), words), Vec::<String>::new(), "{words:?}");
    }
    write_file(root.path().join("config.toml"), "[serve\n");
    assert_eq!(named(root.path(), &["get", "p"]), Vec::<String>::new());
    let missing = root.path().join("missing");
    assert_eq!(named(&missing, &["get", ""]), Vec::<String>::new());
}

/// A shell at a terminal, in a home of its own, that knows the completions.
fn shell(root: &Root, name: &str, flags: &[&str], prepare: &str) -> Option<Session> {
    // Fish needs the terminal to itself.
    let lent = ["setsid", "--ctty", name];
    let words = if name == "fish" {
        &lent[..]
    } else {
        &lent[2..]
    };
    for program in [words[0], name] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("{program} is not installed: this test did nothing");
            return None;
        }
    }
    let program = Path::new(env!("CARGO_BIN_EXE_ack-memory"));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(program.parent().unwrap().to_owned())
        .chain(std::env::split_paths(&folders));
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args(flags)
        .env("PATH", std::env::join_paths(folders).unwrap())
        .env("HOME", root.path().join("home"))
        .env("ACK_MEM_PATH", root.path())
        .env("TERM", "dumb")
        .env("GIT_AUTHOR_NAME", "ana")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(root.path());
    fs::create_dir_all(root.path().join("home")).unwrap();
    let mut session = Session::start(command);
    session.press(prepare).expect("it is ready");
    Some(session)
}

/// Types commands whose words the shell completes, and looks at what they did.
fn completes(root: &Root, mut session: Session) {
    let (found, named) = (root.path().join("found"), root.path().join("named"));
    session
        .press("ack-memory get plat\t > found\n")
        .press("ack-memory query -s platf\t --json > named\n")
        .press("ack-memory approve ack_c0\t --because tried\n")
        .answer("undo: ack-memory undo", "exit\n");
    let (_, screen) = session.end();
    let found = fs::read_to_string(found).unwrap_or_default();
    assert!(found.contains("Use one runner"), "{found}\n{screen}");
    let named = fs::read_to_string(named).unwrap_or_default();
    assert!(named.contains("\"plat-1\""), "{named}\n{screen}");
    let log = root.scope_folder("ledger-api").join("decisions.jsonl");
    let log = fs::read_to_string(log).unwrap_or_default();
    assert!(log.contains("ack_c0ffee_2026-02-10_001"), "{log}\n{screen}");
}

#[test]
fn bash_completes_at_a_terminal() {
    let root = root();
    let flags = ["--norc", "--noprofile", "-i"];
    let prepare = "source <(ack-memory completions bash); echo it is rea''dy\n";
    if let Some(session) = shell(&root, "bash", &flags, prepare) {
        completes(&root, session);
    }
}

#[test]
fn zsh_completes_at_a_terminal() {
    let root = root();
    let prepare = "autoload -U compinit; compinit -D -u; \
                   source <(ack-memory completions zsh); echo it is rea''dy\n";
    if let Some(session) = shell(&root, "zsh", &["-f", "-i"], prepare) {
        completes(&root, session);
    }
}

#[test]
fn fish_completes_at_a_terminal() {
    let root = root();
    let prepare = "ack-memory completions fish | source; echo it is rea''dy\n";
    if let Some(session) = shell(&root, "fish", &["--no-config", "-i"], prepare) {
        completes(&root, session);
    }
}
