//! What a server reads and when: nothing from a store before the first call, and what changed since
//! the last one.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Server;
use crate::support::{Root, read_text, titled, write_file};

#[test]
fn tools_are_listed_before_any_store_is_touched() {
    let root = Root::new();
    let fifo = |folder: &str, name: &str| {
        nix::unistd::mkfifo(
            &root.scope_folder(folder).join(name),
            nix::sys::stat::Mode::from_bits_truncate(0o600),
        )
        .unwrap();
    };
    fifo("pipe", "memory.db");
    fifo("linked", "elsewhere.db");
    root.manifest("linked", "store = \"elsewhere.db\"\n");
    write_file(root.scope_folder("garbage").join("memory.db"), vec![0xA5; 65_536]);
    write_file(root.scope_folder("empty").join("memory.db"), b"");
    root.manifest("broken", "visibility = \"everyone\"\n");
    root.store("good", &[titled("good-1", "A memory about deadlocks")]);
    let started = Instant::now();
    let mut server = Server::initialized(root.path());
    let tools = server.request("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    // And the scopes that are fine still answer, with the others named.
    let result = server.call("query_memories", json!({ "query": "deadlocks" }));
    let answer = &result["structuredContent"];
    assert_eq!(answer["results"][0]["id"], "good-1", "{result}");
    let notes = answer["notes"].as_array().unwrap().iter();
    let mut named: Vec<&str> = notes.filter_map(|note| note["scope"].as_str()).collect();
    named.sort_unstable();
    assert_eq!(named, ["broken", "empty", "garbage", "linked", "pipe"]);
    // Each is named once, there and in the text.
    assert!(answer["searched"].get("skipped").is_none(), "{answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    for scope in named {
        let found = text.matches(&format!("`{scope}`")).count().max(1);
        assert_eq!(found, 1, "{scope}: {text}");
    }
}

#[test]
fn before_the_first_call_only_manifests_and_stores_are_read() {
    let root = Root::samples();
    let log = tempfile::NamedTempFile::new().unwrap();
    let works =
        Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("strace does not work here: this test did nothing");
        return;
    }
    let mut traced = Command::new("strace");
    traced
        .args("-f -qq -e trace=open,openat,openat2,connect,socket -o".split(' '))
        .arg(log.path())
        .arg(env!("CARGO_BIN_EXE_ack-memory"))
        .arg("--root")
        .arg(root.path())
        .arg("serve")
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (variable, _) in ack_memory::internal::ENVIRONMENT {
        traced.env_remove(variable);
    }
    let mut server = Server::spawn(traced);
    server.initialize("2025-06-18");
    server.request("tools/list", json!({}));
    server.ping();
    let root_text = root.path().to_str().unwrap();
    let read = || read_text(log.path());
    let before = read();
    // The instructions say whether people reviewed the memories, and whether any is approved.
    let names =
        "/scopes /scope.toml /memory.db /config.toml dana-private kiosk-web ledger-api platform";
    let allowed = |line: &&str| {
        let path = line.split('"').nth(1).unwrap_or_default();
        let is_named = names.split(' ').any(|end| path.ends_with(end));
        line.contains("O_RDONLY") && is_named
    };
    let touched: Vec<&str> =
        before.lines().filter(|line| line.contains(root_text) && !allowed(line)).collect();
    assert!(touched.is_empty(), "{touched:#?}");
    server.call("query_memories", json!({ "query": "deadlock" }));
    server.call("get_context", json!({}));
    server.close();
    let after = read();
    assert_contains!(after, root_text; "strace saw nothing");
    // And no operation of the server opens for writing, or opens a connection.
    let writes = ["O_RDWR", "O_WRONLY", "O_CREAT"];
    for line in after.lines() {
        let is_write = writes.iter().any(|flag| line.contains(flag));
        assert!(!(is_write && line.contains(root_text)), "{line}");
        assert_lacks!(line, "AF_INET");
    }
}
