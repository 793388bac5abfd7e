//! What the README's figures come from: `cargo bench --bench latency [-- SIZE …]`.
//!
//! Makes native scopes of 1,000, 10,000 and 100,000 memories (or of the sizes named), starts the real server for each, and
//! measures over its standard input and output as a client does: time from process start to the reply to `tools/list`,
//! the first query (which builds the index), then each tool warm, and the process's memory. Times are in milliseconds,
//! memory in MiB. `node -e 0` is timed beside it where node is installed. Machines are noisy: compare figures of one run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Warm calls of each tool.
const CALLS: usize = 300;

fn main() {
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
        measure(folder.path(), size);
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
    println!(
        "start to tools/list: p50 {:.1}, p99 {:.1}",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99)
    );
    if !node.is_empty() {
        println!("node -e 0 beside it: p50 {:.1}", quantile(&mut node, 0.5));
    }
    let mut exits: Vec<f64> = (0..11).map(|_| Server::start(folder.path()).stop()).collect();
    println!(
        "end of standard input to exit: p50 {:.1}, p99 {:.1}",
        quantile(&mut exits, 0.5),
        quantile(&mut exits, 0.99)
    );
}

fn measure(root: &Path, size: usize) {
    let mut server = Server::start(root);
    server.handshake();
    server.request("tools/list", json!({}));
    let idle = server.memory();
    let started = Instant::now();
    server.call("query_memories", &json!({ "query": "connection refused after deploy" }));
    let first = millis(started.elapsed());
    let after_first = server.memory();
    println!(
        "\n{size} memories: idle {:.1} private, first query {first:.0}, then {:.1} private (peak resident {:.1})",
        idle.0, after_first.0, after_first.1
    );
    let ids: Vec<String> = (0..CALLS).map(|call| id(call * 37 % size)).collect();
    let mut random = Random(7);
    let queries: Vec<String> = (0..CALLS)
        .map(|_| (0..5).map(|_| random.word()).collect::<Vec<_>>().join(" "))
        .collect();
    let cases: [(&str, &str, Arguments<'_>); 6] = [
        ("query, five words", "query_memories", &|call| json!({ "query": queries[call] })),
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
        ("get_memory", "get_memory", &|call| json!({ "id": ids[call], "status": "all" })),
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
        println!(
            "  {label:<18} p50 {:>7.2}  p99 {:>7.2}",
            quantile(&mut times, 0.5),
            quantile(&mut times, 0.99)
        );
    }
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let started = Instant::now();
            server.call("list_scopes", &json!({}));
            millis(started.elapsed())
        })
        .collect();
    println!(
        "  {:<18} p50 {:>7.2}  p99 {:>7.2}",
        "list_scopes",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99)
    );
    let connection = Connection::open(root.join("scopes/bench/memory.db")).unwrap();
    let mut times: Vec<f64> = (0..20)
        .map(|change| {
            insert(&connection, size + change, &mut Random(change as u64 + 99));
            let started = Instant::now();
            server.call("query_memories", &json!({ "query": "connection refused after deploy" }));
            millis(started.elapsed())
        })
        .collect();
    println!(
        "  {:<18} p50 {:>7.2}  p99 {:>7.2}",
        "query after a write",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99)
    );
    let warm = server.memory();
    println!("  memory {:.1} private, peak resident {:.1}", warm.0, warm.1);
    let busy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "list_scopes", "arguments": {} } });
    writeln!(server.input.as_mut().unwrap(), "{busy}").unwrap();
    println!("  end of standard input to exit, with a request under way: {:.1}", server.stop());
}

fn id(number: usize) -> String {
    format!("ack_bench0_2026-01-01_{number:06}")
}

/// Text of realistic length: 20 words of title and facts, about 90 of narrative, words by Zipf's law.
fn store(root: &Path, size: usize) {
    let folder = root.join("scopes/bench");
    std::fs::create_dir_all(&folder).unwrap();
    let connection = Connection::open(folder.join("memory.db")).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        .unwrap();
    connection.execute_batch(ack_memory::import::write::SCHEMA).unwrap();
    connection.execute_batch("BEGIN").unwrap();
    let mut random = Random(42);
    for number in 0..size {
        insert(&connection, number, &mut random);
    }
    connection.execute_batch("COMMIT").unwrap();
}

fn insert(connection: &Connection, number: usize, random: &mut Random) {
    let text = |random: &mut Random, words: usize| (0..words).map(|_| random.word()).collect::<Vec<_>>().join(" ");
    let facts: Vec<String> = (0..3).map(|_| text(random, 9)).collect();
    let tags = [format!("tag{}", random.below(40)), format!("tag{}", random.below(12))];
    connection
        .prepare_cached(
            "INSERT INTO memories (id, project, session, type, title, subtitle, facts, concepts, files, narrative, status, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )
        .unwrap()
        .execute(params![
            id(number),
            format!("project-{}", random.below(8)),
            format!("session-{}", number / 20),
            ["decision", "bugfix", "gotcha", "howto"][random.below(4)],
            format!("{} ERR_{number:05}", text(random, 8)),
            text(random, 10),
            serde_json::to_string(&facts).unwrap(),
            serde_json::to_string(&tags).unwrap(),
            serde_json::to_string(&[format!("src/{}/{}.rs", random.word(), random.word())]).unwrap(),
            text(random, 60 + random.0 as usize % 60),
            if random.below(10) == 0 { "staging" } else { "approved" },
            format!("2025-{:02}-{:02}T10:00:00Z", 1 + random.below(12), 1 + random.below(28)),
        ])
        .unwrap();
}

/// A linear congruential generator (Knuth's MMIX constants), so that every run measures the same data.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    /// A word of a vocabulary of 20,000, by Zipf's law; the frequent ones are words of the trade.
    fn word(&mut self) -> String {
        const WORDS: [&str; 24] = [
            "connection",
            "refused",
            "deploy",
            "timeout",
            "cache",
            "lock",
            "thread",
            "config",
            "build",
            "test",
            "error",
            "retry",
            "index",
            "query",
            "server",
            "client",
            "memory",
            "token",
            "docker",
            "branch",
            "merge",
            "schema",
            "queue",
            "worker",
        ];
        let share = self.next() as f64 / f64::from(u32::MAX >> 1);
        let rank = (20_000f64.powf(share) - 1.0) as usize;
        WORDS.get(rank).map_or_else(|| syllables(rank), |word| (*word).to_owned())
    }
}

/// A pronounceable word of its own for every number.
fn syllables(mut number: usize) -> String {
    const SYLLABLES: [&str; 24] = [
        "ba", "ke", "lo", "mi", "nu", "par", "qui", "ros", "sta", "tem", "ul", "ver", "wan", "xen", "yor", "zil", "cra", "dro", "fen",
        "gal", "hex", "int", "jun", "ork",
    ];
    let mut word = String::new();
    while number > 0 {
        word.push_str(SYLLABLES[number % 24]);
        number /= 24;
    }
    word
}

/// The arguments of a call by its number.
type Arguments<'a> = &'a dyn Fn(usize) -> Value;

struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn start(root: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
            .arg("--root")
            .arg(root)
            .arg("serve")
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self {
            child,
            input,
            output,
            next: 0,
        }
    }

    fn handshake(&mut self) {
        self.request(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } }),
        );
        writeln!(
            self.input.as_mut().unwrap(),
            "{}",
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        )
        .unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn call(&mut self, tool: &str, arguments: &Value) {
        let reply = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_ne!(reply["result"]["isError"], json!(true), "{reply}");
    }

    /// Private memory (what this process alone costs) and the peak of resident memory, in MiB.
    fn memory(&self) -> (f64, f64) {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap_or_default();
        let sum = |text: &str, keys: &[&str]| {
            let kib: f64 = text
                .lines()
                .filter(|line| keys.iter().any(|key| line.starts_with(key)))
                .filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
                .sum();
            kib / 1024.0
        };
        (
            sum(&read("smaps_rollup"), &["Private_Clean", "Private_Dirty"]),
            sum(&read("status"), &["VmHWM"]),
        )
    }

    /// Closes standard input; returns the milliseconds until the process has ended.
    fn stop(&mut self) -> f64 {
        let started = Instant::now();
        self.input = None;
        self.child.wait().unwrap();
        millis(started.elapsed())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn quantile(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    let position = ((times.len() as f64 - 1.0) * share).round() as usize;
    times.get(position).copied().unwrap_or_default()
}
