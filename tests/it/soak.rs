//! A long run: eight clients of five servers ask all they can, while a writer writes and an indexer
//! indexes the same scopes. Some requests are hostile: floods, and texts far too long.
//!
//! Checked: every request has exactly one answer, or was cancelled; an answer is about what was
//! asked and shows the requested status; nothing that was rejected or deleted before a request is
//! in its answer; memory is flat after the warm-up, descriptors and threads are bounded; a server
//! does nothing more after cancelled requests.

mod answers;
mod figures;
mod questions;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use self::questions::{Call, Expected, RandomSource, WORDS, ask, id};
use crate::support::{Process, Root, Sql, http_address};

/// How many calls are made, and for how many seconds at most.
const CALLS: &str = "ACK_TEST_SOAK_CALLS";
const SECONDS: &str = "ACK_TEST_SOAK_SECONDS";
/// The program under test, instead of the one that was built with this test: a release build.
const BINARY: &str = "ACK_TEST_SOAK_BINARY";
const DEFAULT_CALLS: usize = 100_000;
const DEFAULT_SECONDS: usize = 3_600;

/// Clients with a process each, and clients of the HTTP server.
const OWN_SERVER_CLIENTS: usize = 4;
const SHARED_SERVER_CLIENTS: usize = 4;
/// Requests that a client has in flight.
const WINDOW: usize = 6;
/// Requests of a flood.
const FLOOD: usize = 300;
/// Memories of a scope.
const ROWS: usize = 200;
/// No answer takes longer, with two scopes' indexes being written to on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const TOKEN: &str = "a-token-of-the-soak";
/// More of these than that is a leak, however slow.
const MAX_DESCRIPTORS: usize = 128;
const MAX_THREADS: usize = 64;

/// What all threads of a run share.
struct Run {
    calls: AtomicUsize,
    answers: AtomicUsize,
    taken_back: AtomicUsize,
    most: usize,
    until: Instant,
    /// The numbers of the memories there are: from, to.
    live: RwLock<(usize, usize)>,
    /// Memories that were rejected or deleted, and how many had been before.
    gone: RwLock<HashMap<usize, usize>>,
    faults: Mutex<Vec<String>>,
    writing: AtomicBool,
}

impl Run {
    /// What leads to the next page of an answer. The memory that `like` names may be gone by then.
    fn next(call: &Call, answer: &Value) -> Option<(Value, String)> {
        let arguments = &call.params["arguments"];
        let next = answer["result"]["structuredContent"]["next_cursor"].as_str()?;
        arguments.get("like").is_none().then(|| (arguments.clone(), next.to_owned()))
    }

    /// Whether one more call may be made.
    fn is_running(&self) -> bool {
        Instant::now() < self.until
            && self.faults.lock().unwrap().len() < 20
            && self.calls.fetch_add(1, Ordering::Relaxed) < self.most
    }

    fn live(&self) -> std::ops::Range<usize> {
        let (from, to) = *self.live.read().unwrap();
        from..to
    }

    fn calls_done(&self) -> usize {
        self.gone.read().unwrap().len()
    }

    fn fault(&self, fault: String) {
        self.faults.lock().unwrap().push(fault);
    }

    /// Compares an answer with what was expected, and against what had gone when its request was
    /// sent.
    fn check(&self, call: &Call, gone: usize, answer: &Value) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        let right = match call.expected {
            Expected::Answer => !failed && answer.get("result").is_some(),
            Expected::Failure => failed,
            Expected::Either => true,
        };
        let text = answer.to_string();
        if !right {
            self.fault(format!(
                "{} {}: {}",
                call.method,
                call.params,
                &text[..text.floor_char_boundary(600)]
            ));
        }
        if text.contains("internal_error") {
            self.fault(format!("{} {}: a defect: {text}", call.method, call.params));
        }
        if failed {
            return;
        }
        for fault in answers::faults(call, answer) {
            self.fault(format!("{} {}: {fault}", call.method, call.params));
        }
        // Ids that were asked for and do not exist are named as such.
        let mut shown = answer["result"]["structuredContent"].clone();
        let text = match shown.as_object_mut() {
            Some(fields) => {
                fields.remove("missing");
                shown.to_string()
            }
            None => text,
        };
        let known = self.gone.read().unwrap();
        for place in text.match_indices("mem-").map(|(place, _)| place) {
            let number = text.get(place + 4..place + 11).and_then(|digits| digits.parse().ok());
            if number.and_then(|number: usize| known.get(&number)).is_some_and(|at| *at < gone) {
                let around = &text[text.floor_char_boundary(place.saturating_sub(200))
                    ..text.floor_char_boundary(place + 60)];
                self.fault(format!(
                    "{} {} shows what had gone before: {around}",
                    call.method, call.params
                ));
            }
        }
    }
}

fn from_environment(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |value| value.parse().unwrap())
}

// The writer and the indexer.

fn insert(connection: &Connection, random: &mut RandomSource, number: usize) {
    let status = answers::STATUSES[number % answers::STATUSES.len()];
    let superseded_by = number.is_multiple_of(17).then(|| id(number + 2));
    let text: Vec<String> = (0..1 + random.roll(4)).map(|_| random.words(12)).collect();
    connection.sql_with("INSERT INTO memories (id, title, narrative, facts, concepts, files, type, project, session, status, superseded_by, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)", params![
                id(number),
                format!("ERR_{number} {}", random.words(4)),
                text.join(". "),
                json!([random.words(6), random.words(5)]).to_string(),
                json!([WORDS[random.roll(6)], WORDS[random.roll(24)]]).to_string(),
                json!([format!("src/part{}/mod.rs", number % 9)]).to_string(),
                ["bugfix", "decision"][number % 2],
                format!("p{}", number % 3),
                format!("s{}", number % 20),
                status,
                superseded_by,
                format!("2026-01-{:02}T00:00:00Z", 1 + number % 28),
            ]);
}

/// Inserts, updates, rejects and deletes rows until the run is over; the stores keep their size.
fn write(run: &Run, stores: Vec<Connection>) {
    let mut random = RandomSource(77);
    let mut turn = 0;
    while run.writing.load(Ordering::Relaxed) {
        turn += 1;
        let live = run.live();
        for (number, connection) in stores.iter().enumerate() {
            connection.sql("BEGIN IMMEDIATE");
            // Even numbers are memories of the first scope, odd ones of the second.
            let next = live.end + number;
            insert(connection, &mut random, next);
            let oldest = id(live.start + number);
            connection.sql_with("DELETE FROM memories WHERE id = ?1", [&oldest]);
            let any = live.start + 2 + random.roll(live.len() - 2);
            let (changed, rejected) = (id(any), id(any + 1));
            let title = format!("ERR_{any} {} changed", random.words(3));
            let update = "UPDATE memories SET title = ?2 WHERE id = ?1";
            connection.sql_with(update, [&changed, &title]);
            if turn % 3 == 0 {
                let update = "UPDATE memories SET status = 'rejected' WHERE id = ?1";
                connection.sql_with(update, [&rejected]);
            }
            let known = connection.changes() > 0 && turn % 3 == 0;
            connection.sql("COMMIT");
            let mut gone = run.gone.write().unwrap();
            for lost in [Some(live.start + number), known.then_some(any + 1)].into_iter().flatten()
            {
                let so_far = gone.len();
                gone.entry(lost).or_insert(so_far);
            }
        }
        *run.live.write().unwrap() = (live.start + stores.len(), live.end + stores.len());
        if turn % 20 == 0 {
            for connection in &stores {
                let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
            }
        }
        std::thread::sleep(Duration::from_millis(150));
    }
}

/// Updates the tables of all scopes repeatedly.
fn index(run: &Run, root: &Path) {
    while run.writing.load(Ordering::Relaxed) {
        let mut command = binary(root);
        let output = command.args(["index", "--all"]).output().unwrap();
        if cfg!(feature = "table") && !output.status.success() {
            run.fault(format!("index: {}", String::from_utf8_lossy(&output.stderr)));
        }
        std::thread::sleep(Duration::from_secs(3));
    }
}

// The clients.

fn binary(root: &Path) -> Command {
    let other = std::env::var_os(BINARY);
    let mut command =
        Command::new(other.unwrap_or_else(|| env!("CARGO_BIN_EXE_ack-memory").into()));
    for (variable, _) in ack_memory::internal::ENVIRONMENT {
        command.env_remove(variable);
    }
    command.arg("--root").arg(root).current_dir(root).env("HOME", root);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A server over standard input and output, with its client.
struct Alone {
    process: Process,
    lines: Receiver<String>,
    /// The protocol without a handshake.
    stateless: bool,
    next: i64,
    /// Requests in flight: what was asked, how many memories had gone, whether it was cancelled.
    waiting: HashMap<i64, (Call, usize, bool)>,
}

impl Alone {
    fn start(root: &Path, stateless: bool) -> Self {
        let mut child = binary(root).arg("serve").stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut client =
            Self { process: Process(child), lines, stateless, next: 0, waiting: HashMap::new() };
        if !stateless {
            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "soak", "version": "0" } });
            client.line(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello }));
            client.lines.recv_timeout(TIMEOUT).unwrap();
            client.line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    fn line(&mut self, message: &Value) {
        let input = self.process.0.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn send(&mut self, run: &Run, mut call: Call, take_back: bool) {
        if self.stateless {
            call.params["_meta"] = meta();
        }
        self.next += 1;
        let id = self.next;
        self.waiting.insert(id, (call.clone(), run.calls_done(), take_back));
        self.line(
            &json!({ "jsonrpc": "2.0", "id": id, "method": call.method, "params": call.params }),
        );
        if take_back {
            run.taken_back.fetch_add(1, Ordering::Relaxed);
            self.line(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
        }
    }

    /// Receives one answer; false if none comes.
    fn take(
        &mut self,
        run: &Run,
        cursor: &mut Option<(Value, String)>,
        patience: Duration,
    ) -> bool {
        let Ok(line) = self.lines.recv_timeout(patience) else {
            return false;
        };
        let answer: Value = serde_json::from_str(&line).unwrap_or_default();
        if answer["jsonrpc"] != "2.0" {
            run.fault(format!("a line on standard output that is no message: {line}"));
            return true;
        }
        let Some((call, gone, _)) = answer["id"].as_i64().and_then(|id| self.waiting.remove(&id))
        else {
            run.fault(format!("an answer to nothing, or the second one: {line}"));
            return true;
        };
        run.check(&call, gone, &answer);
        *cursor = Run::next(&call, &answer).or(cursor.take());
        true
    }

    /// Requests that have to be answered and were not.
    fn open_requests(&self) -> usize {
        self.waiting.values().filter(|(.., taken_back)| !taken_back).count()
    }

    /// More requests at once than a server reads before it has answered some.
    fn flood(&mut self, run: &Run) {
        // The stateless protocol has no `ping`.
        let method = if self.stateless { "server/discover" } else { "ping" };
        for _ in 0..FLOOD {
            let call = Call { method, params: json!({}), expected: Expected::Answer };
            self.send(run, call, false);
        }
    }

    fn work(&mut self, run: &Run, seed: u64) {
        let mut random = RandomSource(seed);
        let mut cursor = None;
        let mut under_way = 0;
        while run.is_running() {
            if random.roll(200) == 0 {
                // Its answer has no id and is no answer to a request.
                self.line(&json!({ "jsonrpc": "2.0", "method": "notifications/no_such_thing", "params": [] }));
            }
            if random.roll(400) == 0 {
                self.flood(run);
            }
            let take_back = random.roll(12) == 0;
            let call = ask(&mut random, run.live(), &mut cursor);
            self.send(run, call, take_back);
            under_way += 1;
            while self.open_requests() >= WINDOW || under_way > 64 {
                if !self.take(run, &mut cursor, TIMEOUT) {
                    run.fault(format!("no answer to {:?}", self.waiting.values().next()));
                    return;
                }
                under_way = self.open_requests();
            }
            // A request that was cancelled is answered at most once; it is not waited for.
            self.waiting.retain(|id, (.., taken_back)| !*taken_back || *id + 2_000 > self.next);
        }
        while self.open_requests() > 0 {
            if !self.take(run, &mut cursor, TIMEOUT) {
                run.fault(format!("no answer to {:?}", self.waiting.values().next()));
                return;
            }
        }
        self.rest(run, &mut random);
    }

    /// Many requests, all cancelled immediately: the server answers the next one soon, and then
    /// does nothing more.
    fn rest(&mut self, run: &Run, random: &mut RandomSource) {
        for _ in 0..40 {
            let arguments = json!({ "query": random.words(200), "limit": 50, "detail": "full", "status": "all" });
            let params = json!({ "name": "query_memories", "arguments": arguments });
            let call = Call { method: "tools/call", params, expected: Expected::Either };
            self.send(run, call, true);
        }
        let call = Call { method: "tools/list", params: json!({}), expected: Expected::Answer };
        self.send(run, call, false);
        while self.open_requests() > 0 {
            if !self.take(run, &mut None, TIMEOUT) {
                run.fault("no answer after forty requests that were taken back".to_owned());
                return;
            }
        }
    }
}

/// A client of the HTTP server: one connection per request, some of which it drops.
fn together(run: &Run, address: &str, seed: u64) {
    let mut random = RandomSource(seed);
    let mut cursor = None;
    while run.is_running() {
        let take_back = random.roll(12) == 0;
        let call = ask(&mut random, run.live(), &mut cursor);
        let gone = run.calls_done();
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": call.method, "params": call.params })
                .to_string();
        let mut stream = answers::post(address, &body);
        if take_back {
            run.taken_back.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let mut response = String::new();
        if let Err(error) = stream.read_to_string(&mut response) {
            run.fault(format!(
                "{} {}: {error} after {} bytes",
                call.method,
                call.params,
                response.len()
            ));
            continue;
        }
        let answers: Vec<Value> = response
            .split(['\r', '\n'])
            .filter_map(|line| {
                serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok()
            })
            .filter(|answer: &Value| answer.get("jsonrpc").is_some())
            .collect();
        match answers.as_slice() {
            [answer] => {
                run.check(&call, gone, answer);
                cursor = Run::next(&call, answer).or(cursor.take());
            }
            _ => run.fault(format!(
                "{} {}: {} answers in {response:?}",
                call.method,
                call.params,
                answers.len()
            )),
        }
    }
}

/// Waits until a process has used no processor time for a second; false if that never happens.
fn comes_to_rest(pid: u32) -> bool {
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        let before = figures::ticks(pid);
        std::thread::sleep(Duration::from_secs(1));
        if figures::ticks(pid) <= before + 2 {
            return true;
        }
    }
    false
}

#[test]
#[ignore = "minutes of work: cargo test --test it soak -- --ignored --nocapture"]
fn eight_clients_a_writer_and_an_indexer_leave_no_trace() {
    let root = Root::new().let_agents_review();
    let mut random = RandomSource(42);
    let stores: Vec<Connection> = ["one", "two"]
        .into_iter()
        .enumerate()
        .map(|(number, scope)| {
            let connection = Connection::open(root.store(scope, &[])).unwrap();
            let journal = ["WAL", "DELETE"][number];
            let setup = format!("PRAGMA journal_mode = {journal}; PRAGMA synchronous = OFF; PRAGMA busy_timeout = 30000; BEGIN");
            connection.sql(&setup);
            (0..ROWS).for_each(|row| insert(&connection, &mut random, 2 * row + number));
            connection.sql("COMMIT");
            connection
        })
        .collect();

    let mut clients: Vec<Alone> =
        (0..OWN_SERVER_CLIENTS).map(|number| Alone::start(root.path(), number % 2 == 1)).collect();
    let http = binary(root.path())
        .args(["serve", "--http", "127.0.0.1:0"])
        .env("ACK_MEM_TOKEN", TOKEN)
        .spawn();
    let mut http = Process(http.unwrap());
    let address = http_address(&mut http.0);
    let mut processes: Vec<(String, u32)> = (1..)
        .zip(&clients)
        .map(|(number, client)| (format!("stdio {number}"), client.process.0.id()))
        .collect();
    processes.push(("http".to_owned(), http.0.id()));

    let seconds = from_environment(SECONDS, DEFAULT_SECONDS);
    let run = Run {
        calls: AtomicUsize::new(0),
        answers: AtomicUsize::new(0),
        taken_back: AtomicUsize::new(0),
        most: from_environment(CALLS, DEFAULT_CALLS),
        until: Instant::now() + Duration::from_secs(seconds as u64),
        live: RwLock::new((0, 2 * ROWS)),
        gone: RwLock::default(),
        faults: Mutex::default(),
        writing: AtomicBool::new(true),
    };
    let started = Instant::now();
    let over = AtomicBool::new(false);
    let figures = std::thread::scope(|scope| {
        let writer = scope.spawn({
            let run = &run;
            move || write(run, stores)
        });
        let indexer = scope.spawn(|| index(&run, root.path()));
        let watch = scope.spawn(|| figures::watch(&processes, &run.answers, &over));
        let alone: Vec<_> = (1u64..)
            .zip(&mut clients)
            .map(|(number, client)| {
                let run = &run;
                scope.spawn(move || client.work(run, number * 1_000_003))
            })
            .collect();
        let together: Vec<_> = (0..SHARED_SERVER_CLIENTS as u64)
            .map(|number| {
                let (run, address) = (&run, address.as_str());
                scope.spawn(move || together(run, address, 7 + number * 1_000_003))
            })
            .collect();
        let ended: Vec<bool> =
            alone.into_iter().chain(together).map(|client| client.join().is_ok()).collect();
        over.store(true, Ordering::Relaxed);
        run.writing.store(false, Ordering::Relaxed);
        let figures = watch.join().unwrap();
        writer.join().unwrap();
        indexer.join().unwrap();
        assert!(ended.iter().all(|ended| *ended), "a client panicked");
        figures
    });
    let calls = run.answers.load(Ordering::Relaxed);
    println!(
        "{calls} answers in {:.0} s, {} requests taken back, {} memories rejected or deleted meanwhile",
        started.elapsed().as_secs_f64(),
        run.taken_back.load(Ordering::Relaxed),
        run.calls_done()
    );
    let mut faults = run.faults.into_inner().unwrap();
    for figures in &figures {
        let (verdict, grown) = figures.verdict();
        println!("{verdict}");
        faults.extend(grown);
        let (descriptors, threads) = figures.maxima();
        if descriptors > MAX_DESCRIPTORS || threads > MAX_THREADS {
            faults.push(format!("{verdict}: {descriptors} descriptors, {threads} threads"));
        }
    }
    for (name, pid) in &processes {
        if !comes_to_rest(*pid) {
            faults.push(format!("{name} works on although nothing is asked"));
        }
    }
    for client in &mut clients {
        drop(client.process.0.stdin.take());
        assert!(client.process.0.wait().unwrap().success());
    }
    drop(http);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(calls > 0);
}
