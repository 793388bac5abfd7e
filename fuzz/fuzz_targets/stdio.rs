//! Raw bytes through the framing and the whole server, as a client's process would send them. Input that begins with `h` is
//! what follows a handshake.
//!
//! Checked: the server survives any input; every valid request gets exactly one answer (at most one
//! if it was cancelled, at least one if its id was used again, which the protocol forbids); every
//! line that comes back is JSON-RPC; no answer shows what was rejected.

#![no_main]

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::Duration;

use ack_memory::internal::serve_lines;
use ack_memory_fuzz::{SECRET, service};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;

/// The last request, whose answer says that the server is still there.
const LAST_ID: &str = "the last one";
const TIMEOUT: Duration = Duration::from_secs(20);

/// What is known of an id before the answers come.
#[derive(Default)]
struct SentRequests {
    /// Requests that must be answered.
    requests: usize,
    /// Invalid messages with this id; they may be answered too.
    others: usize,
}

impl SentRequests {
    /// How many answers must come.
    fn open_requests(&self) -> usize {
        self.requests.min(1)
    }
}

fuzz_target!(|data: &[u8]| {
    let (handshake, data) = match data.strip_prefix(b"h") {
        Some(rest) => (true, rest),
        None => (false, data),
    };
    let mut asked: HashMap<Value, SentRequests> = HashMap::new();
    let mut taken_back: HashSet<Value> = HashSet::new();
    let mut unread = 0;
    let mut input = Vec::new();
    if handshake {
        let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "fuzz", "version": "1" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        input.extend_from_slice(format!("{hello}\n{ready}\n").as_bytes());
    }
    input.extend_from_slice(data);
    for line in input.split(|byte| *byte == b'\n') {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        // The server reads some lines that are not JSON: half a character, escaped.
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            unread += usize::from(!line.is_empty());
            continue;
        };
        if value["method"] == "notifications/cancelled" {
            taken_back.insert(value["params"]["requestId"].clone());
        }
        let id = value.get("id").cloned().unwrap_or_default();
        if id == LAST_ID {
            return;
        }
        let known = asked
            .entry(if id.is_string() || id.is_number() {
                id.clone()
            } else {
                Value::Null
            })
            .or_default();
        let request = (id.is_string() || id.is_i64()) && value["jsonrpc"] == "2.0" && value["method"].is_string();
        if request && value.get("result").is_none() && value.get("error").is_none() {
            known.requests += 1;
        } else {
            known.others += 1;
        }
    }
    let answers = runtime().block_on(converse(input, &asked, &taken_back));
    for (id, count) in answers {
        let SentRequests { requests, others } = asked.remove(&id).unwrap_or_default();
        let more = count.saturating_sub(requests + others);
        assert!(
            more <= unread,
            "{count} answers to {requests} requests and {others} other messages with the id {id}"
        );
        unread -= more;
    }
});

/// Sends everything, waits for what must be answered, and returns the number of answers to each id.
async fn converse(mut input: Vec<u8>, asked: &HashMap<Value, SentRequests>, taken_back: &HashSet<Value>) -> HashMap<Value, usize> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    let server = tokio::spawn(serve_lines(service(), reader, writer));
    let (from, mut to) = tokio::io::split(ours);
    let last = json!({ "jsonrpc": "2.0", "id": LAST_ID, "method": "ping" });
    input.extend_from_slice(format!("\n{last}\n").as_bytes());
    let mut answers: HashMap<Value, usize> = HashMap::new();
    let mut lines = BufReader::new(from).lines();
    let reading = async {
        loop {
            let waiting = asked
                .iter()
                .any(|(id, asked)| !taken_back.contains(id) && answers.get(id).copied().unwrap_or_default() < asked.open_requests());
            if !waiting && answers.contains_key(&json!(LAST_ID)) {
                break;
            }
            let line = lines.next_line().await.unwrap().expect("the server is there until its input ends");
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(answer["jsonrpc"], "2.0", "{line}");
            assert!(!line.contains(SECRET) || line.contains("private"), "{line}");
            if answer.get("result").is_some() || answer.get("error").is_some() {
                *answers.entry(answer["id"].clone()).or_default() += 1;
            }
        }
    };
    let both = async { tokio::join!(async { to.write_all(&input).await.unwrap() }, reading) };
    if tokio::time::timeout(TIMEOUT, both).await.is_err() {
        let missing: Vec<&Value> = asked
            .iter()
            .filter(|(id, asked)| answers.get(id).copied().unwrap_or_default() < asked.open_requests())
            .map(|(id, _)| id)
            .collect();
        panic!("no answer to {missing:?} within {TIMEOUT:?}");
    }
    answers.remove(&json!(LAST_ID));
    to.shutdown().await.unwrap();
    drop((to, lines));
    server.await.unwrap().unwrap();
    answers
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .enable_all()
            .build()
            .unwrap()
    })
}
