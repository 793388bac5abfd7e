//! What a call of an upstream tool passes on, and what comes back.

use std::time::Duration;

use serde_json::json;

use super::{Site, listed, names, text, until};
use crate::mcp::Server;

#[test]
fn a_result_is_passed_on_and_labelled() {
    let site = Site::new("plain", r#"echo = "page_echo""#, "");
    // What the protocol does not define is left out.
    let expected = json!({
        "content": [
            { "type": "text", "text": "again", "annotations": { "priority": 1.0 } },
            { "type": "resource_link", "uri": "page://one", "name": "one" },
        ],
        "structuredContent": { "said": "again", "kept": [1, 2.5, null] },
        "isError": false,
        "_meta": { "theirs": 1, "ack-memory/upstream": "page" },
    });
    let mut server = site.serve();
    let found = server.call("page_echo", json!({ "word": "x", "more": 1 }));
    assert_eq!(found, expected);
    let mut stateless = Server::stateless(site.root.path());
    let mut typed = expected;
    typed["resultType"] = json!("complete");
    assert_eq!(stateless.call("page_echo", json!({ "word": "x" })), typed);
}

#[test]
fn an_error_of_the_server_is_passed_on() {
    let site = Site::new("plain", r#"error = "page_error", odd = "page_odd""#, "");
    let mut server = site.serve();
    let asked = json!({ "name": "page_error", "arguments": {} });
    let answer = server.request("tools/call", asked);
    assert_eq!(
        answer["error"],
        json!({ "code": -32050, "message": "not today", "data": { "until": "tomorrow" } })
    );
    let odd = server.fail("page_odd", json!({}));
    assert_eq!(odd.code, "upstream_failed");
    assert_contains!(odd.message, "not a tool result");
}

#[test]
fn requests_of_the_server_are_refused() {
    let site = Site::new("plain", r#"ask = "page_ask""#, "");
    let mut server = site.serve();
    assert_eq!(text(&server.call("page_ask", json!({}))), "refused");
}

#[test]
fn a_cancelled_call_is_cancelled_upstream() {
    let site = Site::new("plain", r#"hang = "page_hang""#, "");
    let mut server = site.serve();
    listed(&mut server);
    let asked = json!({ "name": "page_hang", "arguments": {} });
    let id = server.send("tools/call", asked);
    std::thread::sleep(Duration::from_millis(300));
    server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string());
    until("the call is not taken back", || site.lines("cancelled").len() == 1);
    server.ping();
}

#[test]
fn a_server_with_only_the_newer_protocol_is_supported() {
    let site = Site::new("modern", r#"garbage = "page_garbage""#, "");
    let mut server = site.serve();
    until("it is not listed", || names(&mut server)[4..] == ["page_garbage"]);
    let found = server.call("page_garbage", json!({}));
    assert_eq!(text(&found), "after garbage");
}
