//! Notes in files, compared with the same memories in SQLite:
//! `cargo bench --no-default-features --bench notes [-- SIZE]`.
//!
//! Writes 10,000 memories (or SIZE) as Markdown files and as rows, starts the real server over
//! each, and measures over its standard input and output: the first query with the files in the
//! system's cache, later queries, and a query right after a file or row changed. Times are
//! milliseconds. Measurements are noisy: compare figures of one run only.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a program that measures and prints, with parts of another one"
)]

#[path = "latency/data.rs"]
mod data;
#[path = "latency/server.rs"]
mod server;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

use self::data::{Random, insert, store};
use self::server::Server;

/// Queries of each kind.
const CALLS: usize = 200;

fn main() {
    let named = std::env::args().find_map(|word| word.parse().ok());
    let size = named.unwrap_or(10_000);
    let rows = tempfile::tempdir().unwrap();
    store(rows.path(), size);
    let database = rows.path().join("scopes/bench/memory.db");
    manifest(rows.path(), "");
    let notes = tempfile::tempdir().unwrap();
    let folder = notes.path().join("notes");
    write_notes(&database, &folder);
    manifest(notes.path(), &format!("store = '{}'\n", folder.display()));
    println!("{size} memories, {CALLS} calls, ms");
    let connection = Connection::open(&database).unwrap();
    let change_row = |call: usize| insert(&connection, size + call, &mut Random(call as u64));
    measure("rows in SQLite", rows.path(), &change_row);
    let change_note = |call: usize| {
        std::fs::write(folder.join("0/changed.md"), format!("# Changed {call}\n")).unwrap();
    };
    measure("notes in files", notes.path(), &change_note);
}

/// Trusts the scope, so that both serve the same memories.
fn manifest(root: &Path, store: &str) {
    let scope = root.join("scopes/bench");
    std::fs::create_dir_all(&scope).unwrap();
    let text = format!("{store}unreviewed = \"approved\"\n");
    std::fs::write(scope.join("scope.toml"), text).unwrap();
}

/// One file for each memory, a hundred in a folder.
fn write_notes(database: &Path, folder: &Path) {
    let connection = Connection::open(database).unwrap();
    connection.execute_batch("UPDATE memories SET status = 'approved'").unwrap();
    let mut statement = connection
        .prepare("SELECT rowid, title, type, project, concepts, facts, narrative FROM memories")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let text = |column: usize| row.get::<_, String>(column).unwrap();
        let number: i64 = row.get(0).unwrap();
        let facts: Vec<String> = serde_json::from_str(&text(5)).unwrap();
        let note = format!(
            "---\ntitle: {}\ntype: {}\nproject: {}\ntags: {}\n---\n- {}\n\n{}\n",
            text(1),
            text(2),
            text(3),
            text(4),
            facts.join("\n- "),
            text(6)
        );
        let folder = folder.join((number / 100).to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{number}.md")), note).unwrap();
    }
}

fn measure(name: &str, root: &Path, change: &dyn Fn(usize)) {
    println!("{name}");
    let mut random = Random(7);
    let queries: Vec<String> =
        (0..CALLS).map(|_| (0..5).map(|_| random.word()).collect::<Vec<_>>().join(" ")).collect();
    let mut firsts: Vec<f64> = (0..5)
        .map(|_| {
            let mut server = Server::start(root);
            server.handshake();
            let arguments = json!({ "query": "connection refused after deploy" });
            time(|| server.call("query_memories", &arguments))
        })
        .collect();
    report("first query", &mut firsts);
    let mut server = Server::start(root);
    server.handshake();
    let mut ask = |query: &String| {
        let arguments = json!({ "query": query });
        time(|| server.call("query_memories", &arguments))
    };
    for query in &queries[..20] {
        ask(query);
    }
    let mut times: Vec<f64> = queries.iter().map(&mut ask).collect();
    report("later queries", &mut times);
    let mut times: Vec<f64> = queries[..20]
        .iter()
        .enumerate()
        .map(|(call, query)| {
            change(call);
            ask(query)
        })
        .collect();
    report("after a change", &mut times);
}

fn time(action: impl FnOnce()) -> f64 {
    let started = Instant::now();
    action();
    millis(started.elapsed())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn report(label: &str, times: &mut [f64]) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    println!("  {label:<16} p50 {:>8.2}  p90 {:>8.2}", at(0.5), at(0.9));
}
