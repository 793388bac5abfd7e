//! Which tools of an upstream server are offered, and when.

use serde_json::json;

use super::{OURS, Site, TIMEOUT, find, listed, names, text};
use crate::mcp::Server;

#[test]
fn read_only_tools_are_offered_under_configured_names() {
    let tools = r#"echo = "page_echo", writes = "page_writes", destroys = "page_destroys", silent = "page_silent", liar = "page_liar", shapeless = "page_shapeless", union = "page_union", gone = "page_gone""#;
    let site = Site::new("plain", tools, "");
    let mut server = site.serve();
    let all = listed(&mut server);
    let names: Vec<&str> = all.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, [&OURS[..], &["page_echo", "page_union"]].concat());
    let echo = find(&all, "page_echo");
    assert_eq!(echo["description"], "From the upstream server page: Says it again.");
    let schema = json!({
        "type": "object",
        "properties": { "word": { "type": "string", "description": "A word." }, "more": { "type": "integer" } },
        "required": ["word"],
        "additionalProperties": false,
    });
    assert_eq!(echo["inputSchema"], schema);
    assert_eq!(echo["annotations"], json!({ "readOnlyHint": true }));
    // Hosts refuse a whole list over a root that is a union.
    assert!(find(&all, "page_union")["inputSchema"].get("anyOf").is_none());
    // A tool that is not offered says why when it is called anyway.
    let hidden = server.fail("page_writes", json!({}));
    assert_eq!(hidden.code, "upstream_refused");
    assert_eq!(
        hidden.message,
        "`writes` of the upstream server `page` is not offered: it says that it is not read-only"
    );
    // And what can be done about it, which is not the same for all.
    for (tool, reason, hint) in [
        ("page_destroys", "it says that it is destructive", "only read-only tools are offered"),
        ("page_silent", "it does not say that it is read-only", "trust_unannotated = true"),
        (
            "page_liar",
            "the properties of its schema are not schemas",
            "hosts would refuse the whole list",
        ),
        ("page_gone", "it has no such tool", "correct its name under `tools`"),
    ] {
        let refused = server.fail(tool, json!({}));
        assert_eq!(refused.code, "upstream_refused", "{refused:?}");
        assert!(
            refused.message.ends_with(reason) && !refused.message.contains("available"),
            "{refused:?}"
        );
        assert!(refused.hint.as_ref().unwrap().contains(hint), "{refused:?}");
    }
}

#[test]
fn a_tool_without_annotations_is_offered_if_the_owner_trusts_it() {
    let said = r#"silent = "page_silent", writes = "page_writes""#;
    let site = Site::new("plain", said, "trust_unannotated = true");
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_silent"]);
    assert_eq!(text(&server.call("page_silent", json!({}))), "fine");
}

#[test]
fn a_late_server_is_announced() {
    for era in ["2025-06-18", "2026-07-28"] {
        let site = Site::new("late", r#"garbage = "page_garbage""#, "");
        let mut server = if era == "2026-07-28" {
            Server::stateless(site.root.path())
        } else {
            Server::start(site.root.path())
        };
        if era == "2025-06-18" {
            let hello = server.initialize(era);
            let found = &hello["capabilities"]["tools"];
            assert_eq!(*found, json!({ "listChanged": true }));
            assert_contains!(hello["instructions"], "page_garbage");
        } else {
            let arguments = json!({ "notifications": { "toolsListChanged": true } });
            server.send("subscriptions/listen", arguments);
            let acknowledged = server.message(TIMEOUT).unwrap();
            assert_eq!(
                acknowledged["method"], "notifications/subscriptions/acknowledged",
                "{acknowledged}"
            );
        }
        assert_eq!(names(&mut server), OURS, "{era}");
        let answer = server.message(TIMEOUT).unwrap();
        assert_eq!(answer["method"], "notifications/tools/list_changed", "{era}: {answer}");
        assert_eq!(names(&mut server)[4..], ["page_garbage"], "{era}");
    }
}

#[test]
fn tools_that_come_later_are_offered() {
    let said = r#"union = "page_union", later = "page_later""#;
    let site = Site::new("growing", said, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server)[4..], ["page_union"]);
    server.call("page_union", json!({ "a": "x" }));
    let answer = server.message(TIMEOUT).unwrap();
    assert_eq!(answer["method"], "notifications/tools/list_changed", "{answer}");
    assert_eq!(names(&mut server)[4..], ["page_later", "page_union"]);
    assert_eq!(text(&server.call("page_later", json!({}))), "later");
}

#[test]
fn a_server_that_stays_down_is_unlisted() {
    let site = Site::new("broken", r#"echo = "page_echo""#, "");
    let mut server = site.serve();
    assert_eq!(names(&mut server), OURS);
    let away = server.fail("page_echo", json!({ "word": "x" }));
    assert_eq!(away.code, "upstream_unavailable");
    assert_contains!(away.message, "no database at /nowhere", "next attempt in");
    assert_contains!(away.hint.unwrap(), " doctor --upstreams`");
}
