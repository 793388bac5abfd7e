//! What a person sees: the real binary at a real terminal of 80 columns.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::cli::{ack, filters};
use crate::support::{Root, fingerprint, memory, read_text, titled, unreviewed, write_file};
use crate::terminal::{Terminal, without_progress};

/// The files a terminal's commands left in its home.
fn recall_files(terminal: &Terminal) -> Vec<std::path::PathBuf> {
    walkdir::WalkDir::new(terminal.home.path())
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.is_file())
        .collect()
}

#[test]
fn output_at_a_terminal_of_80_columns() {
    let root = Root::samples();
    let mut terminal = Terminal::new();
    let mut text = String::new();
    for line in [
        "query sqlx transaction -n 3",
        "query --next",
        "query lock -s ledger-api -l -n 1",
        "query pnpm lockfile -n 1 --explain",
        "query -a -n 2",
        "query pnpm --expect 7be29d-3 -n 1",
        "get 1",
        "get 7be2",
        "get 7be2-2 --include related --include links --include timeline",
        "get 99",
        "scopes",
        "scopes -s platform",
        "context -n 2",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let mut command = terminal.command(root.path(), &arguments);
        if arguments.contains(&"context") {
            command.env("CLAUDE_PROJECT_DIR", "/nowhere/ledger-api");
        }
        let outcome = terminal.run(&mut command, "");
        let marked =
            without_progress(&outcome.out).replace("\u{1b}[4m", "_").replace("\u{1b}[1m", "");
        let plain = anstream::adapter::strip_str(&marked).to_string();
        for line in plain.lines() {
            let width = textwrap::core::display_width(&line.replace('_', ""));
            assert!(width <= 80, "{width} columns: {line}");
        }
        let code = outcome.code.unwrap();
        text += &format!("$ ack-memory {line}\n{plain}[exit {code}]\n\n");
    }
    filters(root.path()).bind(|| insta::assert_snapshot!("terminal", text));
}

#[test]
fn matched_words_are_marked_and_the_title_is_bold() {
    let root = Root::with("music", &[titled("m-1", "Tune the xylophone")]);
    let mut terminal = Terminal::new();
    let output = terminal.ack(root.path(), &["query", "xylophones"]).out;
    let said = "\u{1b}[1mTune the \u{1b}[0m\u{1b}[1m\u{1b}[4mxylophone\u{1b}[0m";
    assert_contains!(output, said);
    let plain = terminal.plain(root.path(), &["query", "xylophones"]);
    assert_contains!(plain, "Tune the xylophone");
    let words = ["query", "xylophones", "--color", "never"];
    let never = terminal.ack(root.path(), &words).out;
    assert_lacks!(plain + &never, "\u{1b}");
}

#[test]
fn numbers_open_the_results_of_the_last_query_at_this_terminal() {
    let root = Root::new();
    let titles = ["Tune", "Oil", "Sell"].map(|verb| format!("{verb} the xylophone"));
    root.store("music", &titles.clone().map(|title| titled(&title[..3], &title)));
    let before = fingerprint(root.path());
    let mut terminal = Terminal::new();
    let none = terminal.ack(root.path(), &["get", "1"]);
    assert_eq!(none.code, Some(1));
    assert_contains!(none.out, "at this terminal; there was");
    let none = terminal.ack(root.path(), &["query", "--next"]);
    assert_eq!(none.code, Some(1));
    assert_contains!(none.out, "`ack-memory query WORDS` searches");

    let page = |terminal: &mut Terminal, arguments: &[&str]| {
        let output = terminal.plain(root.path(), arguments);
        let mut shown: Vec<&String> = titles.iter().collect();
        shown.retain(|title| output.contains(*title));
        assert_eq!(shown.len(), 1, "{output}");
        (shown.remove(0), output)
    };
    let (first, output) = page(&mut terminal, &["query", "xylophone", "-n", "1"]);
    assert_contains!(output, "1 of 3", "next: ack-memory query --next");
    let (second, output) = page(&mut terminal, &["query", "--next"]);
    assert_contains!(output, "result 2 of 3");
    let (third, _) = page(&mut terminal, &["query", "--next"]);
    let end = terminal.ack(root.path(), &["query", "--next"]);
    assert_eq!(end.code, Some(1));
    assert_contains!(end.out, "last page");
    for (number, title) in [("1", first), ("2", second), ("3", third)] {
        assert_eq!(page(&mut terminal, &["get", number]).0, title);
    }
    let beyond = terminal.ack(root.path(), &["get", "4"]);
    assert_eq!(beyond.code, Some(1));
    assert_contains!(beyond.out, "fewer results");

    // Another terminal knows nothing of it, and nobody else may read the files.
    let kept = recall_files(&terminal);
    assert_eq!(kept.len(), 1, "{kept:?}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&kept[0]), 0o600);
    assert_eq!(mode(kept[0].parent().unwrap()), 0o700);
    let mut other = Terminal::new();
    other.home = std::mem::replace(&mut terminal.home, TempDir::new().unwrap());
    assert_eq!(other.ack(root.path(), &["get", "1"]).code, Some(1));

    // A query that is too long ago is forgotten, and one that is damaged.
    let text = read_text(&kept[0]);
    let mut recall: serde_json::Value = serde_json::from_str(&text).unwrap();
    terminal.home = other.home;
    assert_eq!(terminal.ack(root.path(), &["get", "1"]).code, Some(0));
    recall["at"] = json!(recall["at"].as_i64().unwrap() - 25 * 3_600);
    for bad in [recall.to_string(), "{".to_owned(), String::new()] {
        write_file(&kept[0], bad);
        assert_eq!(terminal.ack(root.path(), &["get", "1"]).code, Some(1));
    }
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn a_number_opens_a_shown_result_even_if_unreviewed() {
    let root = Root::with("music", &[unreviewed("m-1", "Xylophone")]);
    let mut terminal = Terminal::new();
    terminal.ack(root.path(), &["query", "xylophone", "--all"]);
    let outcome = terminal.ack(root.path(), &["get", "1"]);
    assert_eq!(outcome.code, Some(0));
    assert_contains!(outcome.out, "Xylophone");
    // A new query, a new list.
    terminal.ack(root.path(), &["query", "xylophone"]);
    assert_eq!(terminal.ack(root.path(), &["get", "1"]).code, Some(1));
}

#[test]
fn an_id_that_a_shell_would_split_is_printed_as_it_can_be_typed() {
    let notes = [("note one", "Xylophone"), ("note two", "Harp")];
    let root = Root::with("music", &notes.map(|(id, title)| titled(id, title)));
    let mut terminal = Terminal::new();
    let said = terminal.ack(root.path(), &["query", "xylophone"]);
    assert_contains!(said.out, "(or 'note");
}

#[test]
fn without_a_terminal_nothing_is_kept_or_wrapped() {
    let root = Root::samples();
    let terminal = Terminal::new();
    let output = crate::cli::run(
        &mut terminal.command(root.path(), &["query", "deadlock", "-l", "-n", "3"]),
    )
    .ok();
    assert_eq!(recall_files(&terminal), Vec::<std::path::PathBuf>::new());
    assert!(output.lines().any(|line| line.chars().count() > 100), "{output}");
    assert_contains!(output, "next page: --cursor ");
}

#[test]
fn the_doctor_reports_the_state_and_the_next_steps() {
    let root = Root::with("ledger", &[titled("m-1", "Deploy rule")]);
    root.store("inbox", &[unreviewed("m-2", "One"), unreviewed("m-3", "Two")]);
    write_file(root.scope_folder("team").join("memory.db"), vec![0xA5; 4096]);
    let mut terminal = Terminal::new();
    let home = terminal.home.path().to_owned();
    let file = |path: &str, text: &str| {
        let path = home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(path, text);
    };
    let this = env!("CARGO_BIN_EXE_ack-memory");
    let claude = json!({ "mcpServers": { "ack-memory": { "command": this, "args": ["serve"] } } });
    file(".claude.json", &claude.to_string());
    let hook = json!({ "type": "command", "command": format!("{this} hook session-start") });
    let hook = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    file(".claude/settings.json", &hook.to_string());
    let content = r#"{ "mcpServers": { "ack-memory": { "command": "/gone/ack-memory" } } }"#;
    file(".gemini/settings.json", content);
    let content = r#"{ "mcpServers": { "ack-memory": { "command": "/bin/sh" } } }"#;
    file(".cursor/mcp.json", content);
    file(".codex/config.toml", "model = \"x\"\n");
    file(".claude-mem/x", "");
    crate::cli::claude_mem(&home.join(".claude-mem/claude-mem.db"));
    let before = fingerprint(&home);
    let mut command = terminal.command(root.path(), &["doctor", "-C", "/"]);
    // No programs of the test machine.
    command.env("PATH", &home);
    let outcome = terminal.run(&mut command, "");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let plain = anstream::adapter::strip_str(&outcome.out).to_string();
    for line in plain.lines() {
        // A path is not broken.
        let fits = textwrap::core::display_width(line) <= 80 || line.contains('/');
        assert!(fits, "{line}");
    }
    let mut settings = filters(root.path());
    for path in [home.canonicalize().unwrap(), home.clone()] {
        settings.add_filter(&regex_of(&path), "[HOME]");
    }
    settings.bind(|| insta::assert_snapshot!("doctor", plain));
    assert_eq!(fingerprint(&home), before, "looking changes nothing");
    // Without the broken scope it succeeds.
    std::fs::remove_dir_all(root.path().join("scopes/team")).unwrap();
    std::fs::remove_dir_all(home.join(".gemini")).unwrap();
    assert_eq!(terminal.ack(root.path(), &["doctor"]).code, Some(0));
}

fn regex_of(path: &Path) -> String {
    path.display().to_string().replace('.', "\\.")
}

#[test]
fn missing_words_are_reported_first_and_contradictions_with_both_memories() {
    let root = Root::samples();
    let mut terminal = Terminal::new();
    let output = terminal.plain(root.path(), &["query", "kafka"]);
    let first = "no approved memory contains a word of the query";
    assert!(output.starts_with(first), "{output}");
    // Only the number of waiting memories is shown, and only once.
    root.store("queue", &[unreviewed("w", "Kafka has a lag")]);
    let output = terminal.plain(root.path(), &["query", "kafka"]);
    assert!(output.starts_with(first), "{output}");
    let said = "\n\n1 unreviewed memory matches: `ack-memory review --for kafka`";
    assert_contains!(output, said);
    assert_lacks!(output, "hidden");
    assert_lacks!(output, "lag", "not approved yet", "try:");
    let output = terminal.plain(root.path(), &["query", "kafka", "--type", "bug"]);
    let first = "no approved memory that passes the filters contains a word of the query";
    assert!(output.starts_with(first), "{output}");
    assert_contains!(output, "No memory has the type \"bug\"; similar: bugfix");
    let scopes = |terminal: &mut Terminal, flag: &str| {
        let output = terminal.plain(root.path(), &["scopes", flag]);
        output.contains("note: ")
    };
    assert!(scopes(&mut terminal, "-v") && !scopes(&mut terminal, "-q"));
    let output = terminal.plain(root.path(), &["query", "pgbouncer prepared statements"]);
    assert_contains!(output, "contradicts 2 (older)", "contradicted by 1 (newer)");
    assert_lacks!(output, "stale"; "once is enough");
}

#[test]
fn a_number_out_of_bounds_is_answered_with_the_bounds_alone() {
    let root = Root::samples();
    let error = ack(root.path(), &["query", "x", "--limit", "0"]).fails(2);
    assert_eq!(error, "error: `--limit` is 0; allowed: 1 to 50\n");
}

#[test]
fn an_exit_code_says_whether_anything_was_found() {
    let root = Root::samples();
    let mut terminal = Terminal::new();
    let mut code = |arguments: &[&str]| terminal.ack(root.path(), arguments).code;
    assert_eq!(code(&["query", "zzzzqqqq"]), Some(0));
    assert_eq!(code(&["query", "zzzzqqqq", "--exit-code"]), Some(1));
    assert_eq!(code(&["query", "docker", "--exit-code"]), Some(0));
    assert_eq!(code(&["get", "nothing", "nobody"]), Some(1));
    let found = code(&["get", "nothing", "ack_a41f0c_2025-11-24_001"]);
    assert_eq!(found, Some(0));
}

#[test]
fn no_line_is_longer_than_a_narrow_terminal() {
    let root = Root::new();
    let long = "a_very_long_id_that_fills_a_line";
    let title = "Tune the xylophone before the concert begins, not in the break";
    let narrative = "The strings of the xylophone are bars of wood, and they\nare tuned by hand.\n\n- short\n- list";
    let memories = [
        memory(long, "Tune it", json!({ "stale_after": "2026-06-01" })),
        memory("m-3", title, json!({ "status": "staging", "type": "gotcha" })),
        memory("m-2", "Oil it", json!({ "narrative": narrative })),
    ];
    root.store("music", &memories);
    let fits = |line: &str, columns: u16| {
        // An id and a path are never broken.
        line.chars().count() <= columns.into() || line.contains(long) || line.contains('/')
    };
    for columns in [20, 40] {
        let mut terminal = Terminal::sized(columns, 200);
        let output = terminal.plain(root.path(), &["query", "it"]);
        assert_contains!(output, "stale: past");
        assert!(output.lines().all(|line| fits(line, columns)), "{output}");
        for (arguments, part) in
            [(&["scopes"][..], "2 approved, 1 unreviewed"), (&["review", "--list"], "approved: ")]
        {
            let output = terminal.plain(root.path(), arguments);
            let joined = output.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(part), "{output}");
            assert!(output.lines().all(|line| fits(line, columns)), "{output}");
        }
    }
}

#[test]
fn quiet_prints_the_answer_alone() {
    let root = Root::new();
    let memories = [
        titled("m-1", "Tune the xylophone"),
        titled("m-2", "Oil the xylophone"),
        unreviewed("m-3", "Sell the xylophone"),
    ];
    root.store("music", &memories);
    let mut terminal = Terminal::new();
    let loud = terminal.plain(root.path(), &["query", "xylophone", "-n", "1"]);
    assert_contains!(loud, "next: ", "1 unreviewed memory matches: ");
    let quiet = terminal.plain(root.path(), &["query", "xylophone", "-n", "1", "-q"]);
    assert_lacks!(quiet, "next:", "open:", "unreviewed", "try:", "note:");
    let nothing = terminal.plain(root.path(), &["query", "-t", "vibraphone", "-q"]);
    assert_contains!(nothing, "nothing found");
    assert_lacks!(nothing, "try:");
}
