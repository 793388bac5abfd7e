//! Work that takes long is reported at a terminal, and nowhere else.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::json;

use crate::cli::{ack, ack_with_input};
use crate::support::{Root, Sql, titled, write_file};
use crate::terminal::Terminal;

/// Enough memories that the first search takes longer than half a second on any machine.
fn large(root: &Root) -> PathBuf {
    let path = root.store("large", &[titled("m-0", "The first one")]);
    let connection = Connection::open(&path).unwrap();
    let words = (1..40).map(|n| format!("'word' || (n * {n} % 9973)"));
    let narrative = words.collect::<Vec<_>>().join(" || ' ' || ");
    let sql = format!(
        "WITH RECURSIVE rows(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM rows WHERE n < 60000)
         INSERT INTO memories (id, title, status, created_at, narrative)
         SELECT 'm-' || n, 'Deploy rule ' || n, 'approved', '2026-01-01T00:00:00Z', {narrative}
         FROM rows"
    );
    connection.sql(&sql);
    path
}

#[test]
fn the_first_query_of_a_large_store_shows_progress_at_a_terminal() {
    let root = Root::new();
    large(&root);
    let mut terminal = Terminal::new();
    for arguments in [&["query", "deploy"][..], &["scopes"], &["approve", "--dry-run", "m-x"]] {
        let output = terminal.ack(root.path(), arguments).out;
        let at = output.find("reading memories (").unwrap_or_else(|| {
            panic!("{arguments:?} printed nothing: {output}");
        });
        // The line is erased before the answer is written.
        let answer = output.rfind("\u{1b}[2K").unwrap_or_default();
        assert!(at < answer, "{arguments:?} left a trace: {output:?}");
    }
    let output = terminal.ack(root.path(), &["-q", "query", "deploy"]).out;
    assert_lacks!(output, "reading memories");
    let piped = ack(root.path(), &["query", "deploy"]);
    assert_eq!(piped.code, Some(0), "{}", piped.out);
    assert_eq!(piped.err.as_str(), "", "{}", piped.out);
}

#[test]
fn an_import_shows_progress_only_at_a_terminal() {
    let root = Root::new();
    let lines: String = (0..3_000)
        .map(|n| json!({ "id": format!("m-{n}"), "title": format!("Rule {n}") }).to_string() + "\n")
        .collect();
    let file = root.path().join("lines.jsonl");
    write_file(&file, &lines);
    let file = file.to_str().unwrap();
    let mut terminal = Terminal::new();
    let shown = terminal.ack(root.path(), &["import", file, "-s", "one"]).out;
    assert_contains!(shown, "KiB", "left");
    let expected = "3,000 memories were added, 0 replaced, 0 unchanged; 0 lines refused";
    assert_contains!(shown, expected);
    let piped = ack_with_input(root.path(), &["import", "-", "-s", "two"], lines.as_bytes());
    assert!(piped.out.starts_with(expected), "{}", piped.out);
    assert_eq!(piped.err, "");
}
