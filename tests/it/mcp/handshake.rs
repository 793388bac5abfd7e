//! How a session begins: every version of the protocol, with a handshake and without one.

use std::time::Duration;

use serde_json::{Value, json};

use super::Server;
use crate::support::Root;

/// The capabilities of the server.
fn offered() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} })
}

#[test]
fn messages_before_the_handshake_do_not_end_the_process() {
    let root = Root::samples();
    for first in [
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        (
            "no/such",
            json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-01-01", "io.modelcontextprotocol/clientCapabilities": {} } }),
        ),
    ] {
        let mut server = Server::start(root.path());
        server.request(first.0, first.1.clone());
        for stray in [
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
            json!({ "jsonrpc": "2.0", "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 9, "result": {} }),
        ] {
            server.write(&stray.to_string());
        }
        server.initialize("2025-11-25");
        assert_eq!(
            server.call("list_scopes", json!({}))["isError"],
            false,
            "after {first:?}"
        );
    }
}

#[test]
fn every_version_with_a_handshake_is_spoken() {
    let root = Root::samples();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut server = Server::start(root.path());
        let hello = server.initialize(version);
        assert_eq!(hello["protocolVersion"], version);
        assert_eq!(hello["serverInfo"]["name"], "ack-memory");
        assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(
            hello["capabilities"],
            offered(),
            "nothing is offered that is not there"
        );
        server.ping();
        let tools = server.request("tools/list", json!({}));
        assert_eq!(
            tools["result"]["tools"].as_array().unwrap().len(),
            4,
            "{version}"
        );
        let all = [
            ("query_memories", json!({ "query": "deadlock" }), "results"),
            (
                "get_memory",
                json!({ "id": "ack_a41f0c_2025-11-24_001" }),
                "title",
            ),
            ("list_scopes", json!({}), "scopes"),
            ("get_context", json!({}), "project"),
        ];
        for (tool, arguments, field) in all {
            let result = server.call(tool, arguments);
            assert_ne!(result["isError"], true, "{version} {tool}: {result}");
            assert!(
                result["structuredContent"].get(field).is_some(),
                "{version} {tool}: {result}"
            );
        }
        let (_, status, _) = server.close();
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn an_unknown_version_is_answered_with_a_known_one() {
    let root = Root::samples();
    let mut server = Server::start(root.path());
    let hello = server.initialize("1999-01-01");
    let version = hello["protocolVersion"].as_str().unwrap();
    assert!(version >= "2025-06-18", "{version}");
    server.ping();
}

#[test]
fn the_stateless_version_needs_no_handshake() {
    let root = Root::samples();
    let mut server = Server::stateless(root.path());
    let discovered = server.request("server/discover", json!({}));
    let discovered = &discovered["result"];
    let versions = discovered["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{discovered}");
    assert_eq!(discovered["capabilities"], offered(), "{discovered}");
    assert!(
        discovered["instructions"]
            .as_str()
            .unwrap()
            .contains("query_memories")
    );
    let tools = server.request("tools/list", json!({}));
    assert_eq!(
        tools["result"]["tools"].as_array().unwrap().len(),
        4,
        "{tools}"
    );
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "deadlock" })),
        ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
        ("list_scopes", json!({})),
        ("get_context", json!({})),
    ] {
        let result = server.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result["structuredContent"].is_object(), "{tool}: {result}");
    }
    assert_eq!(
        server.fail("get_memory", json!({ "id": "nothing" })).code,
        "memory_not_found"
    );
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn early_requests_do_not_end_the_server() {
    let root = Root::samples();
    let mut ended = Vec::new();
    for first in [
        "not json",
        "",
        "{\"jsonrpc\":\"2.0\"}",
        "[1,2]",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5}}",
        "{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":901,\"method\":\"tools/list\",\"params\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"no/such/method\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":903,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":904,\"method\":\"initialize\",\"params\":{}}",
    ] {
        let mut server = Server::start(root.path());
        server.write(first);
        std::thread::sleep(Duration::from_millis(100));
        if let Some(status) = server.child.try_wait().unwrap() {
            ended.push(format!("{first} ended it ({status})"));
            continue;
        }
        server.initialize("2025-06-18");
        server.ping();
    }
    assert!(ended.is_empty(), "{}", ended.join("\n"));
}
