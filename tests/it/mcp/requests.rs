//! Wrong messages, many requests at once, and cancelled ones.

use std::collections::HashMap;

use serde_json::json;

use super::Server;
use crate::support::Root;

#[test]
fn the_server_survives_every_kind_of_invalid_message() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let deep = "[".repeat(20_000);
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(100_000));
    let many = format!(
        r#"{{"jsonrpc":"2.0","id":1000000,"method":"tools/call","params":{{"name":"query_memories","arguments":{{"query":"{}"}}}}}}"#,
        "word ".repeat(200_000)
    );
    let messages: Vec<&str> = vec![
        "not json",
        "",
        "   ",
        "{",
        r#"{"jsonrpc":"2.0","id":5000,"method":"#,
        "null",
        "42",
        r#""text""#,
        "[]",
        r#"[{"jsonrpc":"2.0","id":5001,"method":"ping"},{"jsonrpc":"2.0","id":5002,"method":"ping"}]"#,
        "{}",
        r#"{"jsonrpc":"1.0","id":5003,"method":"ping"}"#,
        r#"{"id":5004,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5005}"#,
        r#"{"jsonrpc":"2.0","id":5006,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":5007,"method":"ping","params":"x"}"#,
        r#"{"jsonrpc":"2.0","id":5008,"method":"tools/call","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":5009,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":5010,"method":"tools/call","params":{"name":5}}"#,
        r#"{"jsonrpc":"2.0","id":5011,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5012,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/nobody/knows"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999999999,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":-1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":5013,"method":"initialize","params":{}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":5014,\"method\":\"ping\"}\r",
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":5015,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":5016,\"method\":\"tools/call\",\"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"\\ud800\"}}}",
        "{\"jsonrpc\":\"2.0\",\"id\":5017,\"method\":\"tools/call\",\"params\":{\"name\":\"query_memories\",\"arguments\":{\"query\":\"\\u0000\\u001b[31m\"}}}",
        &deep,
        &long_id,
        &many,
    ];
    for message in messages {
        println!("{}", message.chars().take(80).collect::<String>());
        server.write(message);
        server.ping();
    }
    server.raw(b"{\"jsonrpc\":\"2.0\",\"id\":6000,\"method\":\"p\xff\xfeing\"}\n\x00\x01\x02\n");
    server.ping();
    let (_, status, _) = server.close();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn two_hundred_calls_at_once_are_each_answered_once() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let ids: Vec<i64> = (0..200)
        .map(|number| {
            let (tool, arguments) = match number % 4 {
                0 => ("query_memories", json!({ "query": "deadlock", "limit": 3 })),
                1 => ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
                2 => ("list_scopes", json!({})),
                _ => ("get_context", json!({ "project_path": "/nowhere/ledger-api" })),
            };
            server.send("tools/call", json!({ "name": tool, "arguments": arguments }))
        })
        .collect();
    let mut first: HashMap<i64, String> = HashMap::new();
    for id in ids {
        let answer = server.answer(id);
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["structuredContent"].to_string();
        let known = first.entry((id - 2) % 4).or_insert_with(|| text.clone());
        assert_eq!(*known, text, "equal calls, different answers");
    }
    server.ping();
    let (_, _, messages) = server.close();
    assert!(messages.is_empty(), "{messages:?}");
}
