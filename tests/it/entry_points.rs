//! The two transports of `serve`, with generated clients: over HTTP nobody is answered without the
//! token, however close a guess is; standard output carries only the protocol, and each request is
//! answered once, with the memory that it asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::mcp::command;
use crate::support::{Process, Root, http_address, memory};

pub const TOKEN: &str = "A-token-0f-these-tests_4711";
const TIMEOUT: Duration = Duration::from_secs(30);
const MEMORIES: usize = 5;
/// Of these memories, this one was rejected, and this one waits.
const REJECTED: usize = 3;
const STAGING: usize = 4;

fn marker(number: usize) -> String {
    format!("mkq{number}z")
}

fn id(number: usize) -> String {
    format!("guarded-{number}")
}

fn root() -> Root {
    let memories: Vec<Value> = (0..MEMORIES)
        .map(|number| {
            let status = match number {
                REJECTED => "rejected",
                STAGING => "staging",
                _ => "approved",
            };
            let title = format!("Pool {}", marker(number));
            memory(&id(number), &title, json!({ "status": status }))
        })
        .collect();
    Root::with("guarded", &memories)
}

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    }
}

// HTTP.

/// What a stranger sends in place of the token.
#[derive(Debug, Clone)]
enum RequestVariant {
    Nothing,
    Header(String),
    /// The token, but not in its place.
    Elsewhere(&'static str),
}

fn request_variant() -> impl Strategy<Value = RequestVariant> {
    let cut = (0..TOKEN.len()).prop_map(|end| TOKEN[..end].to_owned());
    let more = "[ -~]{1,4}".prop_map(|more| format!("{TOKEN}{more}"));
    let before = "[!-~]{1,4}".prop_map(|before| format!("{before}{TOKEN}"));
    let other = (0..TOKEN.len(), "[!-~]").prop_map(|(place, character)| {
        let mut token = TOKEN.to_owned();
        token.replace_range(place..=place, &character);
        token
    });
    let case = prop_oneof![Just(TOKEN.to_lowercase()), Just(TOKEN.to_uppercase())];
    let token = prop_oneof![cut, more, before, other, case, "[ -~]{0,40}"];
    let wrong = token.prop_filter("the token itself", |token| token.trim() != TOKEN);
    let scheme =
        prop_oneof![4 => Just("Bearer "), 1 => Just("bearer "), 1 => Just("Bearer"), 1 => Just("")];
    prop_oneof![
        1 => Just(RequestVariant::Nothing),
        8 => (scheme, wrong).prop_map(|(scheme, token)| RequestVariant::Header(format!("{scheme}{token}"))),
        1 => Just(RequestVariant::Header(TOKEN.to_owned())),
        1 => Just(RequestVariant::Header(format!("Basic {TOKEN}"))),
        1 => Just(RequestVariant::Header(format!("Basic {}", STANDARD.encode(format!("x:{TOKEN}"))))),
        1 => Just(RequestVariant::Header(format!("Bearer {TOKEN}, Bearer x"))),
        1 => Just(RequestVariant::Elsewhere("X-Authorization")),
        1 => Just(RequestVariant::Elsewhere("Cookie")),
        1 => Just(RequestVariant::Elsewhere("Mcp-Session-Id")),
    ]
}

fn bodies() -> impl Strategy<Value = String> {
    let call = |tool: &str, arguments: Value| {
        (
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    };
    let uri = format!("memory://scope/guarded/memory/{}", id(0));
    let recall = json!({ "name": "recall", "arguments": { "query": "pool" } });
    let requests = [
        ("tools/list", json!({})),
        call("query_memories", json!({ "query": "pool" })),
        call("get_memory", json!({ "id": id(0) })),
        ("resources/read", json!({ "uri": uri })),
        ("prompts/get", recall),
    ];
    let message = |(method, params): (&str, Value)| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    };
    prop_oneof![
        6 => proptest::sample::select(requests.map(message).to_vec()),
        1 => "[ -~]{0,40}",
    ]
}

pub fn http(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{accept}{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no status: {response}"));
    (status, response)
}

#[test]
fn over_http_every_wrong_token_is_refused() {
    let root = root();
    let mut server = command(root.path());
    server
        .args(["--http", "127.0.0.1:0"])
        .env("ACK_MEM_TOKEN", TOKEN)
        .stderr(Stdio::null());
    let mut server = Process(server.spawn().unwrap());
    let address = http_address(&mut server.0);

    let methods = "POST POST POST GET DELETE PUT OPTIONS HEAD"
        .split(' ')
        .collect::<Vec<_>>();
    let methods = proptest::sample::select(methods);
    let paths = "/mcp /mcp /mcp/ / /mcp/../mcp //mcp /MCP"
        .split(' ')
        .collect::<Vec<_>>();
    let paths = proptest::sample::select(paths);
    let in_address = proptest::bool::weighted(0.1);
    let visits = (request_variant(), bodies(), methods, paths, in_address);
    TestRunner::new(config(400))
        .run(&visits, |(variant, body, method, path, in_address)| {
            let headers = match &variant {
                RequestVariant::Nothing => String::new(),
                RequestVariant::Header(value) => format!("Authorization: {value}\r\n"),
                RequestVariant::Elsewhere(name) => format!("{name}: {TOKEN}\r\n"),
            };
            let path = if in_address {
                format!("{path}?token={TOKEN}&access_token={TOKEN}")
            } else {
                path.to_owned()
            };
            let (status, answer) = http(&address, method, &path, &headers, &body);
            prop_assert!(status >= 400, "{}", answer);
            prop_assert!(
                path != "/mcp" || method != "POST" || status == 401,
                "{}",
                answer
            );
            prop_assert!(
                !answer.contains("mkq") && !answer.contains("query_memories"),
                "{}",
                answer
            );
            prop_assert!(!answer.contains(TOKEN), "the token is revealed: {}", answer);
            // A request with the token is answered; otherwise the rest would prove nothing.
            let text = format!("Authorization: Bearer {TOKEN}\r\n");
            let (status, _) = http(&address, "POST", "/mcp", &text, "{}");
            prop_assert!(status != 401);
            Ok(())
        })
        .unwrap();
    let call = json!({ "name": "get_memory", "arguments": { "id": id(0) } });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }).to_string();
    let text = format!("Authorization: Bearer {TOKEN}\r\n");
    let (status, answer) = http(&address, "POST", "/mcp", &text, &body);
    assert!(status == 200 && answer.contains(&marker(0)), "{answer}");
}

// Standard input and output.

#[derive(Debug, Clone)]
enum Line {
    /// `get_memory` of a memory by its number.
    Get(usize),
    Query,
    Failing,
    Notification,
    /// Bytes that are not a request.
    Garbage(Vec<u8>),
    /// A request that ends too soon.
    Cut(usize),
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let garbage = proptest::collection::vec(any::<u8>(), 0..60);
    let text = "[ -~]{0,60}".prop_map(String::into_bytes);
    let values = proptest::sample::select(vec![
        "null",
        "[]",
        "{}",
        "7",
        "\"x\"",
        "[[]]",
        "{\"jsonrpc\":\"2.0\"}",
        "\u{feff}",
    ]);
    let line = prop_oneof![
        4 => (0..=MEMORIES).prop_map(Line::Get),
        2 => Just(Line::Query),
        1 => Just(Line::Failing),
        1 => Just(Line::Notification),
        2 => prop_oneof![garbage, text, values.prop_map(|value| value.as_bytes().to_vec())].prop_map(Line::Garbage),
        1 => (1..60usize).prop_map(Line::Cut),
    ];
    proptest::collection::vec(line, 1..24)
}

/// The line with its end, and whether it has to be answered.
fn written(number: usize, line: &Line) -> (Vec<u8>, bool) {
    let request = |method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }).to_string()
    };
    let call = |name: &str, arguments: Value| {
        request(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
    };
    let (mut bytes, answered) = match line {
        Line::Get(memory) => (
            call("get_memory", json!({ "id": id(*memory) })).into_bytes(),
            true,
        ),
        Line::Query => {
            let all = json!({ "query": "pool", "limit": 50 });
            (call("query_memories", all).into_bytes(), true)
        }
        Line::Failing => (call("no_such_tool", json!({})).into_bytes(), true),
        Line::Notification => {
            let unknown = br#"{"jsonrpc":"2.0","method":"notifications/nobody/knows"}"#;
            (unknown.to_vec(), false)
        }
        Line::Garbage(bytes) => {
            let mut bytes = bytes.clone();
            bytes.retain(|byte| *byte != b'\n');
            (bytes, false)
        }
        Line::Cut(end) => {
            let whole = call("get_memory", json!({ "id": id(0) })).into_bytes();
            (whole[..*end].to_vec(), false)
        }
    };
    bytes.push(b'\n');
    (bytes, answered)
}

/// What the answer to a line has to be.
fn check(line: &Line, answer: &Value) -> Result<(), TestCaseError> {
    let shown = &answer["result"]["structuredContent"];
    let text = answer.to_string();
    prop_assert!(
        !text.contains(&marker(REJECTED)) && !text.contains(&marker(STAGING)),
        "{}",
        text
    );
    match line {
        Line::Get(number @ 0..REJECTED) => {
            prop_assert_eq!(&shown["id"], &id(*number));
            let others = (0..MEMORIES).filter(|other| other != number);
            prop_assert!(
                text.contains(&marker(*number))
                    && others.map(marker).all(|other| !text.contains(&other)),
                "{}",
                text
            );
        }
        Line::Get(_) => prop_assert!(answer["result"]["isError"] == true, "{}", text),
        Line::Query => {
            let results = shown["results"].as_array().unwrap();
            prop_assert_eq!(results.len(), REJECTED);
            prop_assert!(
                results.iter().all(|memory| memory["status"] == "approved"),
                "{}",
                text
            );
        }
        _ => prop_assert!(answer.get("error").is_some(), "{}", text),
    }
    Ok(())
}

#[test]
fn standard_output_has_only_the_protocol_and_each_answer_matches_its_request() {
    let root = root();
    TestRunner::new(config(32))
        .run(&lines(), |lines| {
            let mut server = Process(command(root.path()).stderr(Stdio::null()).spawn().unwrap());
            let mut input = server.0.stdin.take().unwrap();
            let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" } });
            writeln!(
                input,
                "{}",
                json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": client })
            )
            .unwrap();
            writeln!(input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).unwrap();
            let mut owed: Vec<usize> = Vec::new();
            for (number, line) in lines.iter().enumerate() {
                let (bytes, answered) = written(number, line);
                input.write_all(&bytes).unwrap();
                owed.extend(answered.then_some(number));
            }
            let (sender, receiver) = channel();
            let output = BufReader::new(server.0.stdout.take().unwrap());
            std::thread::spawn(move || output.split(b'\n').map_while(Result::ok).try_for_each(|line| sender.send(line)));
            let mut input = Some(input);
            loop {
                // When input ends, running requests may stay unanswered, so input ends only after
                // all expected answers have arrived.
                input = input.filter(|_| !owed.is_empty());
                let line = match receiver.recv_timeout(TIMEOUT) {
                    Ok(line) => String::from_utf8(line).expect("UTF-8"),
                    Err(error) => {
                        prop_assert_eq!(error, RecvTimeoutError::Disconnected, "not answered: {:?}", owed);
                        break;
                    }
                };
                let message: Value = serde_json::from_str(&line).map_err(|error| TestCaseError::fail(format!("{error}: {line}")))?;
                prop_assert_eq!(&message["jsonrpc"], "2.0", "{}", line);
                let one = message.get("result").is_some() != message.get("error").is_some();
                prop_assert!(one || message.get("method").is_some(), "{}", line);
                let Some(number) = message["id"].as_u64().and_then(|id| usize::try_from(id).ok()) else {
                    prop_assert!(message["id"] == "hello" || message.get("result").is_none(), "{}", line);
                    continue;
                };
                let place = owed.iter().position(|owed| *owed == number);
                prop_assert!(place.is_some(), "nobody asked, or it is the second answer: {}", line);
                owed.swap_remove(place.unwrap());
                check(&lines[number], &message)?;
            }
            prop_assert!(owed.is_empty(), "not answered: {:?}", owed);
            Ok(())
        })
        .unwrap();
}
