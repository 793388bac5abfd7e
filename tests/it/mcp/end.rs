//! How a server ends: with its input, by a signal, with a client that stops reading.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Server, large};
use crate::cli::binary;
use crate::support::{Root, write_file};

#[test]
fn the_process_ends_when_standard_input_does() {
    let root = Root::samples();
    let mut worst = Duration::ZERO;
    for asked in [false, true, true] {
        let mut server = Server::initialized(root.path());
        if asked {
            server.call("query_memories", json!({ "query": "deadlock" }));
        }
        let (took, status, messages) = server.close();
        assert_eq!(status.code(), Some(0));
        assert!(messages.is_empty(), "{messages:?}");
        worst = worst.max(took);
    }
    let (took, status, _) = Server::start(root.path()).close();
    assert_eq!(status.code(), Some(0), "closed before the handshake");
    println!("exit after standard input is closed: {worst:?}, before the handshake {took:?}");
    assert!(worst.max(took) < Duration::from_secs(1), "{worst:?} {took:?}");
}

#[test]
fn the_process_ends_in_the_middle_of_a_request() {
    let root = Root::new();
    large(&root, "load", 30_000);
    let mut server = Server::initialized(root.path());
    for _ in 0..12 {
        let asked = json!({ "name": "query_memories", "arguments": { "query": "lock5 word77" } });
        server.send("tools/call", asked);
    }
    std::thread::sleep(Duration::from_millis(50));
    let (took, status, messages) = server.close();
    println!("exit in the middle of building an index: {took:?}, {} answers", messages.len());
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_piped_request_over_a_large_store_is_answered() {
    let root = Root::new();
    large(&root, "load", 20_000);
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "printf", "version": "0" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "query_memories", "arguments": { "query": "lock5 word77" } } }),
    ];
    let requests = root.path().join("requests");
    write_file(&requests, lines.map(|line| line.to_string()).join("\n"));
    // The shell has written everything and is gone before the server reads.
    let line = format!(
        "cat {} | (sleep 0.2; exec {} serve --root {})",
        requests.display(),
        binary().get_program().display(),
        root.path().display()
    );
    let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert_contains!(stdout, "\"id\":2");
}

#[test]
fn requests_before_the_handshake_and_batches_are_refused_clearly() {
    let root = Root::samples();
    let mut server = Server::start(root.path());
    server.raw(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n\
          [{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]\n\
          {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n",
    );
    let (_, status, messages) = server.close();
    assert_eq!(status.code(), Some(0));
    // Answers come in any order.
    let message = |id: Value| {
        let answer = messages.iter().find(|answer| answer["id"] == id);
        let answer = answer.unwrap_or_else(|| panic!("{messages:?}"));
        answer["error"]["message"].as_str().map(str::to_owned)
    };
    assert_eq!(messages.len(), 3, "{messages:?}");
    let first = "the first request of a session is `initialize`";
    assert_eq!(message(json!(1)).as_deref(), Some(first));
    let batch = message(Value::Null).unwrap();
    assert_contains!(batch, "batches are not supported");
    assert_eq!(message(json!(3)), None);
}

#[test]
fn a_terminate_signal_ends_the_process() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let started = Instant::now();
    let status =
        Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    server.child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}
