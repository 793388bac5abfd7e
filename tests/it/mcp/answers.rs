//! What an answer carries: structured content, the same as Markdown, and less if a client shows its
//! model both.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Server;
use crate::cli::ack;
use crate::support::{Root, titled};

const LISTED: &str =
    "id title name message next_cursor total current_scope to_id action reason narrative";

/// What an answer's structure contains and its text must contain too: ids, titles, names, numbers,
/// notes and the cursor.
fn texts_of(structured: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    match structured {
        Value::Array(entries) => texts.extend(entries.iter().flat_map(texts_of)),
        Value::Object(members) => {
            for (name, value) in members {
                let is_listed = LISTED.split(' ').any(|listed| listed == name);
                match value {
                    Value::String(text) if is_listed => {
                        texts.extend(text.lines().map(str::to_owned))
                    }
                    Value::Number(number) if is_listed && number.as_u64() != Some(0) => {
                        texts.push(number.to_string());
                    }
                    _ => texts.extend(texts_of(value)),
                }
            }
        }
        _ => {}
    }
    texts
}

#[test]
fn an_answer_has_valid_structured_content_and_the_same_as_markdown() {
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let tools = server.request("tools/list", json!({}));
    let schemas: HashMap<String, jsonschema::Validator> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            let validator = jsonschema::draft202012::new(&tool["outputSchema"]).unwrap();
            (tool["name"].as_str().unwrap().to_owned(), validator)
        })
        .collect();
    let first = "ack_a41f0c_2025-11-24_001";
    let include = ["timeline", "links", "history"];
    let query = |arguments| ("query_memories", arguments);
    for (tool, arguments) in [
        query(json!({ "query": "container killed exit code 137", "explain": true })),
        query(json!({ "query": "zzzzqqqq" })),
        query(json!({ "status": "all", "limit": 50, "detail": "full" })),
        ("get_memory", json!({ "id": first, "include": include })),
        ("get_memory", json!({ "ids": [first, "nothing"] })),
        ("list_scopes", json!({})),
        ("list_scopes", json!({ "scope": "platform" })),
        ("get_context", json!({ "project_path": "/nowhere/ledger-api" })),
    ] {
        let result = server.call(tool, arguments.clone());
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result}");
        let structured = &result["structuredContent"];
        let [content] = result["content"].as_array().unwrap().as_slice() else {
            panic!("{result}")
        };
        assert_eq!(content["type"], "text");
        let text = content["text"].as_str().unwrap();
        for shown in texts_of(structured) {
            assert_contains!(text, &shown; "{tool} {arguments}: {shown} in");
        }
        assert!(text.len() < structured.to_string().len() + 200, "{text}");
        let errors: Vec<String> =
            schemas[tool].iter_errors(structured).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{tool} {arguments}: {errors:?}");
    }
    // Clients that leave `arguments` out mean none.
    for asked in
        [json!({ "name": "list_scopes" }), json!({ "name": "list_scopes", "arguments": null })]
    {
        let answer = server.request("tools/call", asked);
        let scopes = &answer["result"]["structuredContent"]["scopes"];
        assert!(scopes.is_array(), "{answer}");
    }
}

/// A server for a client of this name, in both eras of the protocol.
fn as_client(root: &Root, name: &str) -> (Server, Server) {
    let mut server = Server::start(root.path());
    server.initialize_as("2025-06-18", name);
    let mut stateless = Server::stateless(root.path());
    stateless.name(name);
    (server, stateless)
}

#[test]
fn a_client_that_lets_its_model_read_text_and_structure_gets_the_text_alone() {
    let root = Root::samples();
    for (name, text_alone) in [
        ("copilot-cli", true),
        ("qwen-cli-mcp-client-ack-memory", true),
        ("kimi-code", true),
        ("claude-code", false),
        ("gemini-cli-mcp-client-ack-memory", false),
    ] {
        let (server, stateless) = as_client(&root, name);
        for mut server in [server, stateless] {
            let listed = server.request("tools/list", json!({}));
            for tool in listed["result"]["tools"].as_array().unwrap() {
                let lacks_schema = tool.get("outputSchema").is_none();
                assert_eq!(lacks_schema, text_alone, "{name}: {tool}");
            }
            let result = server.call("query_memories", json!({ "query": "deadlock" }));
            let found = result.get("structuredContent").is_none();
            assert_eq!(found, text_alone, "{name}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_contains!(text, "\n1. "; "{name}");
        }
    }
}

#[test]
fn every_property_of_a_listed_schema_has_a_type() {
    fn untyped(schema: &Value, path: &str, found: &mut Vec<String>) {
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property.get("type").is_none() {
                found.push(path.clone());
            }
            untyped(property, &path, found);
            untyped(&property["items"], &path, found);
        }
    }
    let root = Root::samples();
    let mut server = Server::initialized(root.path());
    let listed = server.request("tools/list", json!({}));
    let mut found = Vec::new();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        for schema in ["inputSchema", "outputSchema"] {
            untyped(&tool[schema], tool["name"].as_str().unwrap(), &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_client_that_shows_text_and_structure_gets_a_line_of_text() {
    let root = Root::samples();
    let calls = [
        ("query_memories", json!({ "query": "deadlock" })),
        ("get_memory", json!({ "id": "ack_a41f0c_2025-11-24_001" })),
        ("list_scopes", json!({})),
        ("get_context", json!({ "project_path": "/nowhere/ledger-api" })),
    ];
    for (name, short) in [
        ("codex-mcp-client", true),
        ("Cline", true),
        ("claude-code", false),
        ("gemini-cli-mcp-client", false),
    ] {
        let (mut server, mut stateless) = as_client(&root, name);
        for (tool, arguments) in &calls {
            for server in [&mut server, &mut stateless] {
                let result = server.call(tool, arguments.clone());
                let text = result["content"][0]["text"].as_str().unwrap();
                let whole = result["structuredContent"].to_string();
                if short {
                    assert_eq!(text, "See the structured content.", "{name} {tool}");
                    assert!(whole.len() > 500, "{name} {tool}: {whole}");
                } else {
                    for shown in texts_of(&result["structuredContent"]) {
                        assert_contains!(text, &shown; "{name} {tool}: {shown} in");
                    }
                }
            }
        }
        // An error has only text.
        let error = server.fail("get_memory", json!({ "id": "nothing" }));
        assert_eq!(error.code, "memory_not_found");
    }
}

#[test]
fn where_every_scope_is_private_the_text_says_why_none_was_searched() {
    let root = Root::with("diary", &[titled("d1", "Connection to home")]);
    root.manifest("diary", "visibility = \"private\"");
    let why = "private: searched only when it is current or named";
    let found =
        Server::initialized(root.path()).call("query_memories", json!({ "query": "connection" }));
    let text = found["content"][0]["text"].as_str().unwrap();
    assert_contains!(text, "no scope could be searched", format!("Not searched: diary ({why})"));
    let said = ack(root.path(), &["query", "connection"]).ok();
    assert_contains!(said, "no scope could be searched", format!("not diary: {why}"));
    for text in [text, &said] {
        assert_lacks!(text, "searched.skipped");
    }
}
