//! How many instructions the program executes for what people wait for. Counts do not depend on the
//! machine or its load, and repeat within a per cent. `counts.toml` has those of the builds that
//! `tools/check` makes anyway, with LanceDB and without. They are not optimised, so they do not say
//! how fast the program is; they say whether it does more than it did, which is what slips.
//! `UPDATE_COUNTS=1 .ci/run counts` writes the file again.
//!
//! A connection that was idle for two seconds is closed. So on a machine that is very busy, where a
//! question takes longer under valgrind, those over 20 scopes vary by some per cent.
//!
//! Valgrind counts: it is needed, with its tool cachegrind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::query::bulk;
use crate::support::{Root, memory, read_text, write_file};

/// How much a count may grow, or shrink without being written down.
const TOLERANCE: f64 = 0.05;
/// How many calls are made to count one.
const REPEATED: usize = 5;

const WORDS: &str = "connection pool retry deadlock migration certificate cache timeout branch \
    worker queue parser token schema rollback container proxy thread index release latency socket \
    signal build";

/// Memories of a few sentences each.
fn memories(count: usize) -> Vec<Value> {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let word = |n: usize| words[n % words.len()];
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
    // Valgrind is slow.
    write_file(root.path().join("config.toml"), "limits.seconds = 600\n");
    let all = memories(scopes * memories_each);
    for (number, part) in all.chunks(memories_each).enumerate() {
        bulk(&root, &format!("scope{number:04}"), part);
    }
    root
}

/// A server whose instructions are counted.
struct Counted<'a> {
    binary: &'a Path,
    root: &'a Root,
}

impl Counted<'_> {
    /// The instructions of a server that answers these requests, one after the other, and ends.
    fn served(&self, requests: &[&Value]) -> u64 {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(self.binary)
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path())
            .env("ACK_MEM_PATH", self.root.path())
            .env("RAYON_NUM_THREADS", "1")
            .current_dir(self.root.path());
        let mut running = valgrind
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("valgrind is installed");
        let mut input = running.stdin.take().unwrap();
        let mut answers = BufReader::new(running.stdout.take().unwrap());
        let client = json!({ "name": "counts", "version": "1" });
        let parameters =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let initialize = json!({ "method": "initialize", "params": parameters });
        for (id, request) in std::iter::once(&&initialize).chain(requests).enumerate() {
            if *request == &json!("write") {
                self.write();
                continue;
            }
            let mut request = (*request).clone();
            request["jsonrpc"] = json!("2.0");
            request["id"] = json!(id);
            writeln!(input, "{request}").unwrap();
            let mut answer = String::new();
            answers.read_line(&mut answer).unwrap();
            let has_failed = answer.contains("\"error\":") || answer.contains("\"isError\":true");
            assert!(!answer.is_empty() && !has_failed, "{request}: {answer}");
            if id == 0 {
                let initialized =
                    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
                writeln!(input, "{initialized}").unwrap();
            }
        }
        drop(input);
        answers.read_to_end(&mut Vec::new()).unwrap();
        let output = running.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        let counted = text.lines().find_map(|line| line.split_once("I   refs:"));
        counted.unwrap().1.trim().replace(',', "").parse().unwrap()
    }

    /// Changes a memory, as another program does.
    fn write(&self) {
        let store = self.root.path().join("scopes/scope0000/memory.db");
        let store = Connection::open(store).unwrap();
        let change =
            "UPDATE memories SET subtitle = coalesce(subtitle, '') || 'x' WHERE id = 'm00003'";
        assert_eq!(store.execute(change, []).unwrap(), 1);
    }

    /// The instructions of one round of calls by a server that has answered the first question.
    fn next(&self, first: &Value, round: &[&Value]) -> u64 {
        let mut requests = vec![first];
        let once = self.served(&requests);
        requests.extend(round.repeat(REPEATED));
        self.served(&requests).saturating_sub(once) / REPEATED as u64
    }
}

fn tool(name: &str, arguments: Value) -> Value {
    json!({ "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

fn index(binary: &Path, root: &Path) {
    let mut command = Command::new(binary);
    command.args(["index", "--all", "--encoder", "static"]);
    let output = command.env_clear().env("HOME", root).env("ACK_MEM_PATH", root).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn counts_of(binary: &Path, has_table: bool) -> BTreeMap<String, u64> {
    let list = json!({ "method": "tools/list" });
    let question = json!({ "query": "retry after a deadlock in the worker queue" });
    let question = tool("query_memories", question);
    let scopes = tool("list_scopes", json!({}));
    let context = tool("get_context", json!({}));
    let (one, large, twenty, hundred) = (root(1, 200), root(1, 2_000), root(20, 10), root(100, 2));
    let unreviewed = root(1, 200);
    let folder = unreviewed.path().join("scopes/scope0000");
    let store = Connection::open(folder.join("memory.db")).unwrap();
    let forget = "DROP INDEX memories_by_status; ALTER TABLE memories DROP COLUMN status";
    store.execute_batch(forget).unwrap();
    write_file(folder.join("scope.toml"), "unreviewed = \"approved\"\n");
    let on = |root| Counted { binary, root };
    let mut counts = BTreeMap::from([
        ("tools/list", on(&one).served(&[&list])),
        ("tools/list, ten times the memories", on(&large).served(&[&list])),
        ("tools/list, 100 scopes", on(&hundred).served(&[&list])),
        ("first question", on(&one).served(&[&question])),
        ("first question, unreviewed", on(&unreviewed).served(&[&question])),
        ("next question", on(&one).next(&question, &[&question])),
        ("next question, 20 scopes", on(&twenty).next(&question, &[&question])),
        ("next question, 100 scopes", on(&hundred).next(&question, &[&question])),
        ("question after a write", on(&one).next(&question, &[&json!("write"), &question])),
        ("next list_scopes, 100 scopes", on(&hundred).next(&scopes, &[&scopes])),
        ("context of a project, ten times the memories", on(&large).served(&[&context])),
    ]);
    if has_table {
        index(binary, one.path());
        counts.insert("first question with a table", on(&one).served(&[&question]));
    }
    let owned = |(what, count): (&str, u64)| (what.to_owned(), count);
    counts.into_iter().map(owned).collect()
}

#[test]
#[ignore = "needs valgrind: tools/check counts"]
fn counts_of_instructions_are_within_5_percent_of_those_written_down() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/counts.toml");
    let known: BTreeMap<String, BTreeMap<String, u64>> = toml::from_str(&read_text(&file)).unwrap();
    let has_table = cfg!(feature = "table");
    let here = Path::new(env!("CARGO_BIN_EXE_ack-memory"));
    let build = if has_table { "full" } else { "light" };
    let mut builds = vec![(build, counts_of(here, has_table))];
    let light = std::env::var_os("ACK_TEST_LIGHT_BINARY");
    if let Some(light) = light.filter(|_| has_table) {
        builds.push(("light", counts_of(Path::new(&light), false)));
    }
    if std::env::var_os("UPDATE_COUNTS").is_some() {
        let mut counts = known;
        counts.extend(builds.into_iter().map(|(build, counts)| (build.to_owned(), counts)));
        let head = "# Instructions, by `UPDATE_COUNTS=1 .ci/run counts`.\n";
        write_file(&file, format!("{head}{}", toml::to_string(&counts).unwrap()));
        return;
    }
    let mut changed = Vec::new();
    for (build, counts) in builds {
        let known = known.get(build).cloned().unwrap_or_default();
        for (what, count) in &counts {
            let before = known.get(what).copied().unwrap_or_default();
            let ratio = *count as f64 / before.max(1) as f64;
            println!("{build}: {what}: {count} ({ratio:.3})");
            if (ratio - 1.0).abs() > TOLERANCE {
                changed.push(format!("{build}: {what}: {before} -> {count}"));
            }
        }
        assert_eq!(known.len(), counts.len(), "{build}");
    }
    assert!(changed.is_empty(), "{changed:#?}\nIf they may change: UPDATE_COUNTS=1 .ci/run counts");
}
