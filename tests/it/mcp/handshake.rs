//! How a session begins: every version of the protocol, with a handshake and without one.

use serde_json::{Value, json};

use super::Server;
use crate::support::Root;

/// The capabilities of the server.
fn offered() -> Value {
    json!({ "tools": {}, "resources": {}, "prompts": {} })
}

#[test]
fn messages_before_the_handshake_do_not_end_the_process() {
    let root = Root::samples();
    let old = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1999-01-01", "io.modelcontextprotocol/clientCapabilities": {} } });
    for (method, params) in [
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("no/such", old),
        ("initialize", json!({})),
    ] {
        let mut server = Server::start(root.path());
        server.request(method, params);
        server.initialize("2025-11-25");
        server.ping();
    }
    for first in [
        "not json",
        "",
        r#"{"jsonrpc":"2.0"}"#,
        "[1,2]",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
        r#"{"jsonrpc":"2.0","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":903,"result":{}}"#,
    ] {
        let mut server = Server::start(root.path());
        server.write(first);
        server.initialize("2025-06-18");
        let answer = server.call("list_scopes", json!({}));
        assert_eq!(answer["isError"], false, "after {first}");
    }
}

/// Asks for the list of tools, and calls each.
fn use_tools(server: &mut Server) {
    let tools = server.request("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4, "{tools}");
    for (tool, arguments, field) in [
        ("query_memories", json!({ "query": "deadlock" }), "results"),
        ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" }), "title"),
        ("list_scopes", json!({}), "scopes"),
        ("get_context", json!({}), "project"),
    ] {
        let result = server.call(tool, arguments);
        assert_ne!(result["isError"], true, "{tool}: {result}");
        assert!(result["structuredContent"].get(field).is_some(), "{tool}: {result}");
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
        // Nothing is offered that is not there.
        assert_eq!(hello["capabilities"], offered());
        server.ping();
        use_tools(&mut server);
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
    assert_contains!(discovered["instructions"], "query_memories");
    use_tools(&mut server);
    let missing = server.fail("get_memory", json!({ "id": "nothing" }));
    assert_eq!(missing.code, "memory_not_found");
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}
