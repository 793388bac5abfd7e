//! Clients that ask faster than they read, never read, send what is far too long, or hold
//! connections without a token: the server's memory stays where it was, and others are answered.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use ack_memory::internal::{TOOLS, Toolset};
use serde_json::{Value, json};

use crate::http::{Http, SECRET};
use crate::mcp::{Server, command};
use crate::query::bulk;
use crate::support::{Ask, Root, memory, titled, write_file};

/// The first message of a client.
fn hello(id: Value) -> String {
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "flood", "version": "0" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": client }).to_string()
        + "\n"
}

/// A request for the list of tools, as a line.
fn tools_list(id: usize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }).to_string() + "\n"
}

/// A call with a list of these many bytes, all elements the same.
fn long_list(element: &str, bytes: usize) -> String {
    let list = element.repeat(bytes / element.len());
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"query_memories","arguments":{{"tags":[{list}0]}}}}}}"#
    )
}

#[track_caller]
fn within(started: Instant, seconds: u64, what: &str) {
    let took = started.elapsed();
    assert!(took < Duration::from_secs(seconds), "{what}: {took:?}");
}

const TIMEOUT: Duration = Duration::from_secs(120);
/// The most memory a server may take in these tests, in MiB: a tenth of what an unbounded queue
/// takes. A debug build maps about 25 for its own code.
const MAX_MEMORY_MIB: u64 = 100;

/// A server over standard input and output whose answers are counted and thrown away.
struct Flooded {
    child: Child,
    input: Option<ChildStdin>,
    answers: Arc<AtomicUsize>,
    last: mpsc::Receiver<String>,
}

impl Flooded {
    fn start(root: &Root) -> Self {
        let mut child = command(root.path()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let answers = Arc::new(AtomicUsize::new(0));
        let (sender, last) = mpsc::sync_channel(1);
        let counted = Arc::clone(&answers);
        std::thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|count| count > 0) {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = sender.try_send(line.clone());
                line.clear();
            }
        });
        let mut server = Self { input: child.stdin.take(), child, answers, last };
        server.write(hello(json!("hello")).as_bytes());
        server.wait(1);
        server.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
        server.last.recv().unwrap();
        server
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    #[track_caller]
    fn wait(&self, answers: usize) {
        let until = Instant::now() + TIMEOUT;
        while self.answers.load(Ordering::Relaxed) < answers {
            assert!(
                Instant::now() < until,
                "{} of {answers} answers",
                self.answers.load(Ordering::Relaxed)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes, and waits for this many more answers.
    #[track_caller]
    fn flood(&mut self, bytes: &[u8], answers: usize) {
        let before = self.answers.load(Ordering::Relaxed);
        self.write(bytes);
        self.wait(before + answers);
    }

    /// The first answer since the last call.
    fn read_answer(&self) -> Value {
        serde_json::from_str(&self.last.recv_timeout(TIMEOUT).unwrap()).unwrap()
    }
}

impl Drop for Flooded {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A figure of a process's memory, in MiB; `None` if the system does not report it.
fn mebibytes(pid: u32, figure: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(figure))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

#[track_caller]
fn stays_small(pid: u32, what: &str) {
    if let (Some(most), Some(own)) = (mebibytes(pid, "VmHWM"), mebibytes(pid, "RssAnon")) {
        println!("{what}: {most} MiB at most, {own} of its own now");
        assert!(
            most < MAX_MEMORY_MIB && own < MAX_MEMORY_MIB / 2,
            "{what}: {most} MiB at most, {own} now"
        );
    }
}

// Standard input.

#[test]
fn excess_requests_wait_in_the_client() {
    let mut server = Flooded::start(&Root::samples());
    for turn in 0..3 {
        let pings: String = (0..20_000)
            .map(|number| {
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}}\n",
                    turn * 20_000 + number
                )
            })
            .collect();
        server.flood(pings.as_bytes(), 20_000);
    }
    stays_small(server.child.id(), "60,000 pings");
    // Lines that are not messages are answered too.
    server.flood("{nope\n".repeat(20_000).as_bytes(), 20_000);
    stays_small(server.child.id(), "20,000 lines that are no message");
    // Large requests are counted by their size.
    let arguments = json!({ "tags": vec!["x"; 15_000] });
    let calls: String = (0..300)
        .map(|number| json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": { "name": "query_memories", "arguments": arguments } }).to_string() + "\n")
        .collect();
    server.flood(calls.as_bytes(), 300);
    stays_small(server.child.id(), "300 calls of 15,000 tags");
}

#[test]
fn requests_with_the_same_id_are_answered_in_turn() {
    let mut server = Flooded::start(&Root::samples());
    server
        .flood("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(500).as_bytes(), 500);
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"list_scopes\"}}\n";
    server.flood(list.repeat(20).as_bytes(), 20);
}

#[test]
fn a_line_with_many_values_takes_little_memory() {
    let mut server = Flooded::start(&Root::samples());
    let line = |element: &str, bytes: usize| long_list(element, bytes) + "\n";
    for element in ["0,", "[],", "{\"a\":0},", "\"\","] {
        server.flood(line(element, 4_000_000).as_bytes(), 1);
        let answer = server.read_answer();
        assert_eq!(answer["error"]["code"], json!(-32600), "{answer}");
        assert_eq!(answer["id"], 7, "{answer}");
        assert_contains!(answer["error"]["message"], "values");
        // Longer than any message: only its ends are kept, and the id is found.
        server.flood(line(element, 15_000_000).as_bytes(), 1);
        let answer = server.read_answer();
        assert_eq!(answer["id"], 7);
        assert_contains!(answer["error"]["message"], "4,194,304 bytes");
    }
    for text in ["[".repeat(4_000_000), "{\"a\":".repeat(800_000), "9".repeat(4_000_000)] {
        server.flood(format!("{text}\n").as_bytes(), 1);
        assert!(server.read_answer()["error"]["code"].is_i64());
    }
    server.flood(line("0,", 1_000).as_bytes(), 1);
    assert_eq!(server.read_answer()["result"]["isError"], true);
    stays_small(server.child.id(), "lines of 4 and 15 MB");
}

#[test]
fn a_client_that_does_not_read_answers_is_not_read_from() {
    let root = Root::samples();
    let mut child = command(root.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The pipe stays open and nobody reads from it.
    let output = child.stdout.take().unwrap();
    let full = Arc::new(AtomicBool::new(false));
    let is_full = Arc::clone(&full);
    let writer = std::thread::spawn(move || {
        input.write_all(hello(json!(0)).as_bytes()).unwrap();
        for id in 1..3_000 {
            // It ends with the server.
            let _ = input.write_all(tools_list(id).as_bytes());
            is_full.store(id > 500, Ordering::Relaxed);
        }
    });
    // The pipes are full: the server reads no more, and the client blocks while writing.
    while !full.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_secs(1));
    stays_small(child.id(), "a client that does not read");
    assert!(!writer.is_finished(), "everything was read although nothing could be answered");
    child.kill().unwrap();
    child.wait().unwrap();
    drop((writer, output));
}

#[test]
fn the_end_of_standard_input_is_noticed_without_reading() {
    let root = Root::samples();
    let mut child = command(root.path()).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = child.stdout.take().unwrap();
    input.write_all(hello(json!(0)).as_bytes()).unwrap();
    // Some 500 kB of answers, which fit into no pipe, and requests that all fit.
    for id in 1..600 {
        input.write_all(tools_list(id).as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_secs(1));
    drop(input);
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            panic!("the server outlives its client");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(output);
}

// Arguments.

#[test]
fn every_text_argument_has_a_length_limit() {
    let root = Root::samples();
    let service = root.service();
    let long = "a long name ".repeat(100_000);
    let mut tried = 0;
    for (tool, name) in ack_memory::internal::tools(&Toolset::default()).iter().zip(TOOLS) {
        assert_eq!(tool.name, name);
        for (argument, schema) in tool.input_schema["properties"].as_object().unwrap() {
            let kind = schema["type"].to_string();
            let value = match () {
                () if kind.contains("integer") || kind.contains("boolean") => continue,
                () if kind.contains("array") => json!([long]),
                () => json!(long),
            };
            let started = Instant::now();
            let error = service.refused(name, json!({ argument: value }));
            let body = json!(error).to_string();
            assert_eq!(error.code, "invalid_argument", "{name} {argument}: {body}");
            assert!(
                body.contains("bytes long") || body.contains("one of"),
                "{name} {argument}: {body}"
            );
            assert!(body.len() < 1_000, "{name} {argument}: {body}");
            within(started, 2, argument);
            tried += 1;
        }
    }
    assert!(tried >= 15, "{tried} arguments");
}

#[test]
fn names_of_resources_and_prompts_are_limited() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let long = "x".repeat(1 << 20);
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let prompt = |name: &str, arguments: Value| {
        ("prompts/get", json!({ "name": name, "arguments": arguments }))
    };
    for (method, params) in [
        read(&format!("memory://scope/{long}")),
        read(&format!("memory://scope/ledger-api/memory/{long}")),
        read(&long),
        prompt("recall", json!({ "query": long })),
        prompt("recall", json!({ "query": "x", "scope": long })),
        prompt(&long, json!({})),
        ("tools/call", json!({ "name": long, "arguments": {} })),
    ] {
        let started = Instant::now();
        let answer = server.request(method, params);
        assert!(answer.get("error").is_some(), "{method}: {answer}");
        assert!(answer.to_string().len() < 2_000, "{method}: {answer}");
        within(started, 5, method);
    }
    server.ping();
}

#[test]
fn an_unknown_name_is_compared_with_each_name_once() {
    let root = Root::new();
    let project = "a-project-of-many-memories-".repeat(7);
    let rest = json!({ "project": project, "concepts": [format!("{project}-tag")] });
    let memories: Vec<Value> = (0..20_000)
        .map(|number| memory(&format!("m{number}"), "One of many", rest.clone()))
        .collect();
    bulk(&root, "many", &memories);
    let service = root.service();
    service.find(json!({ "limit": 1 }));
    let unknown = "another-project-with-as-long-a-name-".repeat(5);
    let started = Instant::now();
    let answer = service.find(json!({ "project": unknown, "tags": vec![unknown; 40] }));
    assert_eq!(answer["results"], json!([]));
    assert_contains!(answer["suggestions"], "No memory was learned in project");
    // Compared with the name of every memory this took half a minute, in a release build.
    within(started, 5, "unknown names");
}

// Requests that are cancelled, and those that take too long.

#[test]
fn a_slow_request_is_answered_by_its_deadline() {
    let root = Root::new();
    write_file(root.path().join("config.toml"), "[limits]\nseconds = 1\n");
    let words: Vec<String> = (0..150).map(|word| format!("word{word}")).collect();
    let words = words.join(" ");
    let memories: Vec<Value> = (0..40_000)
        .map(|number| memory(&format!("m{number}"), &words, json!({ "narrative": words })))
        .collect();
    bulk(&root, "large", &memories);
    root.store("small", &[titled("s1", "A memory of the small scope")]);
    let mut server = Server::initialized(root.path());
    // Its index takes longer than that to read.
    let started = Instant::now();
    let arguments = json!({ "query": "word7", "scope": "large" });
    let error = server.fail("query_memories", arguments);
    assert_eq!(error.code, "deadline_exceeded", "{error:?}");
    assert_contains!(error.message, "1 second");
    assert_contains!(error.hint.unwrap(), "[limits] seconds");
    within(started, 5, "the deadline");
    // Others are answered meanwhile.
    let arguments = json!({ "query": "small", "scope": "small" });
    let answer = server.call("query_memories", arguments);
    assert_eq!(answer["structuredContent"]["results"][0]["id"], "s1");
}

// Over HTTP.

/// Asks with the token on a connection of its own; how long that took.
#[track_caller]
fn ask(http: &Http, body: &str) -> (Duration, String) {
    let started = Instant::now();
    let response = http.raw(&format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {SECRET}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ));
    (started.elapsed(), response)
}

/// A connection with the smallest receive buffer that the system allows.
fn narrow(runtime: &tokio::runtime::Runtime, address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(1_024)?;
        // A server that takes no more connections leaves them waiting.
        tokio::time::timeout(Duration::from_millis(200), socket.connect(address)).await?
    })?;
    stream.into_std()
}

#[test]
fn clients_without_a_token_that_never_read_do_not_block_others() {
    let root = Root::samples();
    let http = Http::start(root.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(400);
    let refused = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".repeat(10);
    let slow = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".to_owned();
    let over = AtomicBool::new(false);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "list_scopes" } }).to_string();
    // A few hundred connections that ask for more than they ever read.
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..300 {
        let Ok(mut stream) = narrow(&runtime, http.address) else {
            continue;
        };
        (0..50).all(|_| stream.write(health.as_bytes()).is_ok());
        held.push(stream);
    }
    std::thread::scope(|scope| {
        let _ends = StopOnDrop(&over);
        // And new ones all the time, some of which never finish their request.
        scope.spawn(|| {
            let mut others = std::collections::VecDeque::new();
            while !over.load(Ordering::Relaxed) {
                let Ok(mut stream) = narrow(&runtime, http.address) else {
                    continue;
                };
                let _ = stream.write([&health, &refused, &slow][others.len() % 3].as_bytes());
                others.push_back(stream);
                if others.len() > 200 {
                    others.pop_front();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let asked: Vec<(Duration, String)> = (0..20).map(|_| ask(&http, &list)).collect();
        over.store(true, Ordering::Relaxed);
        let slowest = asked.iter().map(|(took, _)| *took).max().unwrap();
        println!("{} connections that never read; the slowest answer took {slowest:?}", held.len());
        for (took, response) in &asked {
            assert!(
                response.starts_with("HTTP/1.1 200") && response.contains("ledger-api"),
                "{response}"
            );
            assert!(*took < Duration::from_secs(2), "{took:?}");
        }
    });
    stays_small(http.id(), "hundreds of connections that never read");
    if let Some(descriptors) = descriptors(http.id()) {
        assert!(descriptors < 300, "{descriptors} descriptors");
    }
}

/// Ends a loop of requests, even if its test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn descriptors(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

#[test]
fn a_body_of_very_many_values_is_refused_and_takes_no_memory() {
    let root = Root::samples();
    let http = Http::start(root.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for element in ["0,", "{\"a\":0},", "[],"] {
                    let (_, response) = ask(&http, &long_list(element, 4_000_000));
                    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
                    assert_contains!(response, "values");
                }
            });
        }
    });
    stays_small(http.id(), "bodies of 4 MB");
}
