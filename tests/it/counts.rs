//! How many instructions the program executes for what people wait for. Counts do not depend on the
//! machine or its load, so a few per cent are seen. `counts.toml` has the counts of the build that
//! `cargo test` makes, because CI has it anyway: they say whether something grew, not how fast it is.
//! `UPDATE_COUNTS=1` writes the file again.
//!
//! Valgrind counts: it is needed, with its tool callgrind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::query::bulk;
use crate::support::{Root, memory, read_text, write_file};

/// How much a count may grow, or shrink without being written down.
const TOLERANCE: f64 = 0.05;
/// How many calls are made to count one.
const REPEATED: usize = 10;

const WORDS: [&str; 24] = [
    "connection",
    "pool",
    "retry",
    "deadlock",
    "migration",
    "certificate",
    "cache",
    "timeout",
    "branch",
    "worker",
    "queue",
    "parser",
    "token",
    "schema",
    "rollback",
    "container",
    "proxy",
    "thread",
    "index",
    "release",
    "latency",
    "socket",
    "signal",
    "build",
];

/// Memories of a few sentences each.
fn memories(count: usize) -> Vec<Value> {
    let word = |n: usize| WORDS[n % WORDS.len()];
    let sentence = |n: usize| {
        format!(
            "the {} of {}{} breaks the {} after a {}",
            word(n),
            word(n / 5),
            n % 211,
            word(n / 11),
            word(n / 3)
        )
    };
    let all = (0..count).map(|n| {
        let rest = json!({
            "facts": [sentence(n * 7 + 1), sentence(n * 13 + 2)], "concepts": [word(n), word(n / 7)],
            "project": format!("p{}", n % 20), "narrative": (0..6).map(|part| sentence(n * 31 + part) + ". ").collect::<String>(),
            "created_at": format!("2026-01-{:02}T00:00:00Z", 1 + n % 28),
        });
        memory(&format!("m{n:05}"), &sentence(n), rest)
    });
    all.collect()
}

/// A root with memories in scopes of the same size.
fn root(scopes: usize, memories_each: usize) -> Root {
    let root = Root::new();
    let all = memories(scopes * memories_each);
    for (number, part) in all.chunks(memories_each).enumerate() {
        bulk(&root, &format!("scope{number:04}"), part);
    }
    root
}

/// The instructions of a run of the program with these arguments. It gets a line of input, and the
/// next one once it has answered with a line.
fn count(root: &Root, arguments: &[&str], lines: &[String]) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_ack-memory"))
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", root.path())
        .env("ACK_MEM_PATH", root.path())
        .env("RAYON_NUM_THREADS", "1")
        .current_dir(root.path());
    let mut running = valgrind
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("valgrind is installed");
    let mut input = running.stdin.take().unwrap();
    let mut answers = BufReader::new(running.stdout.take().unwrap());
    for line in lines {
        writeln!(input, "{line}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        let has_failed = answer.contains("\"error\":") || answer.contains("\"isError\":true");
        assert!(!answer.is_empty() && !has_failed, "{line}: {answer}");
    }
    drop(input);
    answers.read_to_end(&mut Vec::new()).unwrap();
    let output = running.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    collected.unwrap().1.trim().parse().unwrap()
}

/// The instructions of a server that answers these requests, one after the other, and ends.
fn served(root: &Root, requests: &[&Value]) -> u64 {
    let client = json!({ "name": "counts", "version": "1" });
    let parameters =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let initialize =
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters });
    let mut lines = vec![initialize.to_string()];
    for (id, request) in requests.iter().enumerate() {
        let mut request = (*request).clone();
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(id + 1);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let before = if id == 0 {
            format!("{initialized}\n")
        } else {
            String::new()
        };
        lines.push(format!("{before}{request}"));
    }
    count(root, &["serve"], &lines)
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

/// The instructions of one call by a server that has answered `first`, which takes `once`.
fn next(root: &Root, first: &Value, once: u64, call: &Value) -> u64 {
    let mut requests = vec![first];
    requests.extend([call; REPEATED]);
    served(root, &requests).saturating_sub(once) / REPEATED as u64
}

fn index(root: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ack-memory"));
    command.args(["index", "--all", "--encoder", "static"]);
    let output = command
        .env_clear()
        .env("HOME", root)
        .env("ACK_MEM_PATH", root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn measured() -> BTreeMap<String, u64> {
    let list = json!({ "method": "tools/list" });
    let arguments = json!({ "query": "retry after a deadlock in the worker queue" });
    let question = tool("query_memories", arguments);
    let identifier = tool("query_memories", json!({ "query": "pool17" }));
    let scopes = tool("list_scopes", json!({}));
    let start =
        json!({ "session_id": "1", "hook_event_name": "SessionStart", "source": "startup" });
    let start = [start.to_string()];
    let many = root(1, 5_000);
    let (small, large) = (root(1, 50), root(1, 500));
    let (twenty, many_scopes) = (root(20, 25), root(200, 2));
    let list_scopes_next = |root: &Root| next(root, &scopes, served(root, &[&scopes]), &scopes);
    let first = served(&large, &[&question]);
    let first_of_twenty = served(&twenty, &[&question]);
    let mut counts = BTreeMap::from([
        ("tools/list, 50 memories", served(&small, &[&list])),
        ("tools/list, 5,000 memories", served(&many, &[&list])),
        ("tools/list, 200 scopes", served(&many_scopes, &[&list])),
        ("first question", first),
        ("next question", next(&large, &question, first, &question)),
        (
            "next question, 20 scopes",
            next(&twenty, &question, first_of_twenty, &question),
        ),
        (
            "next question for an identifier",
            next(&large, &question, first, &identifier),
        ),
        ("next list_scopes, 20 scopes", list_scopes_next(&twenty)),
        (
            "next list_scopes, 200 scopes",
            list_scopes_next(&many_scopes),
        ),
        (
            "session start, 5,000 memories",
            count(&many, &["hook", "session-start"], &start),
        ),
    ]);
    index(large.path());
    counts.insert("first question with a table", served(&large, &[&question]));
    let owned = |(what, count): (&str, u64)| (what.to_owned(), count);
    counts.into_iter().map(owned).collect()
}

#[test]
#[ignore = "needs valgrind: cargo test --test it counts -- --ignored --nocapture"]
fn counts_of_instructions_are_within_5_percent_of_those_written_down() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/counts.toml");
    let measured = measured();
    if std::env::var_os("UPDATE_COUNTS").is_some() {
        let head =
            "# Instructions, by `UPDATE_COUNTS=1 cargo test --test it counts -- --ignored`.\n";
        write_file(
            &file,
            format!("{head}{}", toml::to_string(&measured).unwrap()),
        );
        return;
    }
    let known: BTreeMap<String, u64> = toml::from_str(&read_text(file)).unwrap();
    let mut changed = Vec::new();
    for (what, count) in &measured {
        let before = known.get(what).copied().unwrap_or_default();
        let ratio = *count as f64 / before.max(1) as f64;
        println!("{what}: {count} ({ratio:.3})");
        if (ratio - 1.0).abs() > TOLERANCE {
            changed.push(format!("{what}: {before} -> {count}"));
        }
    }
    assert!(
        changed.is_empty() && known.len() == measured.len(),
        "{changed:#?}\nIf they may change: UPDATE_COUNTS=1"
    );
}
