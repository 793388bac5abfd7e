//! Measures the figures of docs/benchmarks.md: `cargo bench --bench latency [-- SIZE …]`.
//!
//! Makes native scopes of 1,000, 10,000 and 100,000 memories (or of the sizes named), starts the
//! real server for each, and measures over its standard input and output as a client does: time
//! from process start to the reply to `tools/list`, the first query (which builds the index), then
//! each tool warm, and the process's memory. Then `index` is run and timed, and a second server
//! answers with the table. For large scopes, a third server searches the table; if it has no
//! indexes, `index` builds them first, timed. The same questions go to plain SQLite FTS5 and to
//! LanceDB's own hybrid query. Last, sessions start in a repository of 50,000 files; with the
//! argument `context`, only this is measured. Times are in milliseconds, memory in MiB. `node -e 0`
//! is timed too if node is installed. Measurements are noisy: compare figures of one run only. The
//! light build (`--no-default-features`) measures what needs no table.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    dead_code,
    reason = "a program that measures and prints, with parts that others use"
)]

mod context;
mod data;
mod fts5;
#[cfg(feature = "table")]
mod lance;
mod server;

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use self::data::{Random, id, insert, scope, store};
use self::server::Server;

/// Warm calls of each tool.
const CALLS: usize = 300;
/// The same for the slower programs that are compared.
const PEER_CALLS: usize = 60;
/// Scopes of up to this many memories are also measured with the whole scope in memory.
const RESIDENT: usize = 200_000;
/// The question of every first query.
const FIRST: &str = "connection refused after deploy";

fn main() {
    if std::env::args().any(|word| word == "context") {
        return context::measure();
    }
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let sizes = if named.is_empty() { vec![1_000, 10_000, 100_000] } else { named };
    println!(
        "ack-memory {}, {} memories a scope, {CALLS} warm calls a tool, ms",
        env!("CARGO_PKG_VERSION"),
        sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
    );
    start_up();
    for size in sizes {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), size);
        let queries = queries();
        // A larger scope is searched in its table; reading it into memory would take too long.
        if size <= RESIDENT {
            println!("\n{size} memories, no table");
            measure(folder.path(), size, &queries);
        }
        over_scopes(size, &queries);
        #[cfg(feature = "table")]
        with_table(folder.path(), size, &queries);
        println!("{size} memories, the same five words elsewhere");
        let scope = folder.path().join("scopes/bench");
        let peers = &queries[..PEER_CALLS];
        fts5::measure(&scope.join("memory.db"), folder.path(), peers);
        #[cfg(feature = "table")]
        lance::measure(&scope.join("lance"), folder.path(), peers);
    }
    context::measure();
}

/// The same number of memories in 20 scopes.
fn over_scopes(size: usize, queries: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let part = size / 20;
    for number in 0..20 {
        let numbers = number * part..(number + 1) * part;
        scope(folder.path(), &format!("bench-{number:02}"), numbers);
    }
    println!("{size} memories in 20 scopes, no table");
    let mut server = Server::start(folder.path());
    server.handshake();
    server.call("query_memories", &json!({ "query": FIRST }));
    for (label, tool) in [("query, five words", "query_memories"), ("list_scopes", "list_scopes")] {
        let mut times: Vec<f64> = queries
            .iter()
            .map(|query| {
                let arguments =
                    if tool == "list_scopes" { json!({}) } else { json!({ "query": query }) };
                let started = Instant::now();
                server.call(tool, &arguments);
                millis(started.elapsed())
            })
            .collect();
        report(label, &mut times);
    }
}

#[cfg(feature = "table")]
fn with_table(root: &Path, size: usize, queries: &[String]) {
    println!("{size} memories, `index`");
    index(root, size, "the table");
    if size <= RESIDENT {
        println!("{size} memories, with the table of `index`");
        measure(root, size, queries);
    }
    if size > 10_000 {
        println!("{size} memories, searched in the table of `index`");
        std::fs::write(root.join("config.toml"), "limits.resident = 10000").unwrap();
        // A table that is too large for memory with any setting has its indexes already.
        if size <= RESIDENT {
            index(root, size, "its indexes, the one on the vectors included");
        }
        measure(root, size, queries);
    }
}

/// From process start to the reply to `tools/list`, without any store.
fn start_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let started = Instant::now();
            let mut server = Server::start(folder.path());
            server.handshake();
            server.request("tools/list", json!({}));
            millis(started.elapsed())
        })
        .collect();
    let mut node: Vec<f64> = (0..11)
        .map_while(|_| {
            let started = Instant::now();
            let done = Command::new("node").args(["-e", "0"]).status().ok()?;
            done.success().then(|| millis(started.elapsed()))
        })
        .collect();
    report("start to tools/list", &mut times);
    if !node.is_empty() {
        report("node -e 0 beside it", &mut node);
    }
    let mut exits: Vec<f64> = (0..11).map(|_| Server::start(folder.path()).stop()).collect();
    report("end of input to exit", &mut exits);
}

/// The questions: five words each.
fn queries() -> Vec<String> {
    let mut random = Random(7);
    (0..CALLS).map(|_| (0..5).map(|_| random.word()).collect::<Vec<_>>().join(" ")).collect()
}

/// Runs `index`, timed.
#[cfg(feature = "table")]
fn index(root: &Path, size: usize, what: &str) {
    let started = Instant::now();
    let done = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
        .arg("--root")
        .arg(root)
        .args(["index", "--all"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "  `index` took {seconds:.1} s for {what}, {:.0} rows a second",
        size as f64 / seconds
    );
}

/// Ids of as many memories as there are calls, all of which agents may read.
fn approved_ids(root: &Path, size: usize) -> Vec<String> {
    let connection = Connection::open(root.join("scopes/bench/memory.db")).unwrap();
    let mut approved = connection
        .prepare("SELECT count(*) FROM memories WHERE id = ?1 AND status = 'approved'")
        .unwrap();
    (0..)
        .map(|call| id(call * 37 % size))
        .filter(|id| approved.query_row([id], |row| row.get(0)).unwrap())
        .take(CALLS)
        .collect()
}

fn measure(root: &Path, size: usize, queries: &[String]) {
    let mut server = Server::start(root);
    server.handshake();
    server.request("tools/list", json!({}));
    let idle = server.memory();
    let started = Instant::now();
    server.call("query_memories", &json!({ "query": FIRST }));
    let first = millis(started.elapsed());
    let after_first = server.memory();
    println!(
        "  idle {:.1} private, first query {first:.0} ms, then {:.1} private (peak resident {:.1})",
        idle.0, after_first.0, after_first.1
    );
    let ids = approved_ids(root, size);
    let cases: [(&str, &str, Arguments<'_>); 8] = [
        ("query, five words", "query_memories", &|call| json!({ "query": queries[call] })),
        (
            "the same, lexical",
            "query_memories",
            &|call| json!({ "query": queries[call], "mode": "lexical" }),
        ),
        (
            "the same, semantic",
            "query_memories",
            &|call| json!({ "query": queries[call], "mode": "semantic" }),
        ),
        (
            "query, identifier",
            "query_memories",
            &|call| json!({ "query": format!("ERR_{:05}", call * 37 % size) }),
        ),
        (
            "query, filtered",
            "query_memories",
            &|call| json!({ "query": queries[call], "tags": ["tag3"], "since": "2025-06-01" }),
        ),
        ("newest", "query_memories", &|_| json!({})),
        ("get_memory", "get_memory", &|call| json!({ "id": ids[call] })),
        ("get_context", "get_context", &|_| json!({ "project_path": "/nowhere/project-3" })),
    ];
    for (label, tool, arguments) in cases {
        let mut times: Vec<f64> = (0..CALLS)
            .map(|call| {
                let started = Instant::now();
                server.call(tool, &arguments(call));
                millis(started.elapsed())
            })
            .collect();
        report(label, &mut times);
    }
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let started = Instant::now();
            server.call("list_scopes", &json!({}));
            millis(started.elapsed())
        })
        .collect();
    report("list_scopes", &mut times);
    let connection = Connection::open(root.join("scopes/bench/memory.db")).unwrap();
    let there: i64 =
        connection.query_row("SELECT count(*) FROM memories", [], |row| row.get(0)).unwrap();
    let there = usize::try_from(there).unwrap();
    let mut times: Vec<f64> = (0..20)
        .map(|change| {
            insert(&connection, there + change, &mut Random(change as u64 + 99));
            let started = Instant::now();
            server.call("query_memories", &json!({ "query": FIRST }));
            millis(started.elapsed())
        })
        .collect();
    report("query after a write", &mut times);
    let mut times: Vec<f64> =
        (0..20).map(|_| context::hook(root, Path::new("/nowhere/project-3"))).collect();
    report("hook session-start", &mut times);
    let warm = server.memory();
    println!("  memory {:.1} private, peak resident {:.1}", warm.0, warm.1);
    let busy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "list_scopes", "arguments": {} } });
    writeln!(server.input.as_mut().unwrap(), "{busy}").unwrap();
    println!("  end of standard input to exit, with a request under way: {:.1}", server.stop());
}

/// The arguments of a call by its number.
type Arguments<'a> = &'a dyn Fn(usize) -> Value;

/// One line of the report.
fn report(label: &str, times: &mut [f64]) {
    println!("  {label:<24} p50 {:>8.2}  p99 {:>8.2}", quantile(times, 0.5), quantile(times, 0.99));
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let position = ((times.len() as f64 - 1.0) * share).round() as usize;
    times.get(position).copied().unwrap_or_default()
}
