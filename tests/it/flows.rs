//! Whole conversations as the skills, agents and commands of other memory servers describe them,
//! held with the set of tools that has their names: the arguments that their texts show, in their
//! order, each call with values from the previous answer.

use serde_json::{Value, json};

use crate::mcp::Server;
use crate::support::{Root, Sql, memory, result_ids, titled};

fn with_surface(root: &Root, set: &str) -> Server {
    Server::with(root.path(), &["--surface", set])
}

fn ids(answer: &Value) -> Vec<String> {
    assert_ne!(answer["isError"], true, "{answer}");
    result_ids(&answer["structuredContent"])
}

fn fetched(answer: &Value) -> Vec<String> {
    assert_ne!(answer["isError"], true, "{answer}");
    crate::support::ids(&answer["structuredContent"]["memories"])
}

fn one(answer: &Value) -> &str {
    assert_ne!(answer["isError"], true, "{answer}");
    answer["structuredContent"]["id"].as_str().unwrap()
}

/// A claude-mem database whose rows all count as approved.
fn observed() -> Root {
    let root = Root::new();
    let path = root.scope_folder("claude-mem").join("claude-mem.db");
    let database = rusqlite::Connection::open(path).unwrap();
    database.sql("CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, started_at TEXT);
             INSERT INTO sdk_sessions VALUES (1, 'one', 'my-project', '2025-11-16T10:00:00Z');
             CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT, title TEXT,
               subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT,
               created_at TEXT, created_at_epoch INTEGER);
             CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT,
               investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, notes TEXT, created_at TEXT, created_at_epoch INTEGER);");
    let rows = [
        (10942, "bugfix", "Fixed auth token expiration", "16T14:15:22"),
        (11130, "discovery", "The session store is redis", "17T15:40:00"),
        (11131, "feature", "Added JWT authentication", "17T15:48:45"),
        (11132, "decision", "Refresh tokens are rotated", "17T16:00:00"),
        (11140, "change", "Renamed the database migration", "18T09:00:00"),
        (11150, "change, later", "A type with a comma in its name", "20T09:00:00"),
    ];
    for (id, kind, title, at) in rows {
        let at = format!("2025-11-{at}Z");
        let epoch = at.parse::<jiff::Timestamp>().unwrap().as_millisecond();
        database.sql_with("INSERT INTO observations VALUES (?1, 'one', 'my-project', ?2, ?3, NULL, '[\"seen once\"]', ?3, '[\"auth\"]', '[]', '[]', ?4, ?5)", rusqlite::params![id, kind, title, at, epoch]);
    }
    root.manifest("claude-mem", "unreviewed = \"approved\"");
    root
}

#[test]
fn claude_mem_search_then_timeline_then_get_observations() {
    let root = observed();
    let mut server = with_surface(&root, "claude-mem");
    let asked = json!({ "query": "authentication", "limit": 20, "project": "my-project" });
    let index = server.call("search", asked);
    assert_eq!(ids(&index)[0], "obs-11131");
    let older = json!({ "query": "authentication", "format": "index", "limit": 30, "project": "my-project" });
    assert_eq!(ids(&server.call("search", older)), ids(&index));
    // The number as their tables show it, with their prefix, as a string, and as we show it.
    for anchor in [json!(11131), json!("11131"), json!("#11131"), json!("obs-11131")] {
        let arguments = json!({ "anchor": anchor, "depth_before": 3, "depth_after": 3, "project": "my-project" });
        let around = server.call("timeline", arguments);
        assert_eq!(one(&around), "obs-11131", "{anchor}");
        let timeline = &around["structuredContent"]["timeline"];
        assert_eq!(timeline["before"][1]["id"], "obs-11130");
        assert_eq!(timeline["after"][0]["id"], "obs-11132");
    }
    let found = server.call(
        "timeline",
        json!({ "query": "authentication", "depth_before": 3, "depth_after": 3, "project": "my-project" }),
    );
    assert_eq!(one(&found), "obs-11131");
    for pick in [
        json!([11131, 10942]),
        json!(["11131", "10942"]),
        json!(["#11131", "#10942"]),
        json!(["obs-11131", 10942]),
    ] {
        let asked = json!({ "ids": pick, "orderBy": "date_desc" });
        let full = server.call("get_observations", asked);
        assert_eq!(fetched(&full), ["obs-11131", "obs-10942"], "{pick}");
        assert_eq!(full["structuredContent"]["missing"], Value::Null, "{full}");
    }
    let limited = json!({ "ids": [11131, 10942, 99], "limit": 10, "project": "my-project" });
    let full = server.call("get_observations", limited);
    assert_eq!(fetched(&full), ["obs-11131", "obs-10942"]);
    assert_eq!(full["structuredContent"]["missing"][0]["id"], "obs-99");
}

#[test]
fn claude_mem_searches_by_types_and_days() {
    let root = observed();
    let mut server = with_surface(&root, "claude-mem");
    let mut sorted = |arguments: Value| {
        let answer = server.call("search", arguments);
        let mut found = ids(&answer);
        found.sort();
        found
    };
    let bugs = json!({ "query": "token", "type": "observations", "obs_type": "bugfix", "limit": 20, "project": "my-project" });
    assert_eq!(sorted(bugs), ["obs-10942"]);
    for several in ["bugfix,decision", "bugfix, decision", "Bugfix,decision,refactor"] {
        let arguments = json!({ "type": "observations", "obs_type": several, "limit": 50, "orderBy": "relevance" });
        assert_eq!(sorted(arguments), ["obs-10942", "obs-11132"], "{several}");
    }
    // A type whose name contains a comma is found by that name, next to those named by its parts.
    let shown = sorted(json!({ "obs_type": "change, later" }));
    assert_eq!(shown, ["obs-11140", "obs-11150"]);
    let shown = sorted(json!({ "obs_type": "refactor,security_note" }));
    assert_eq!(shown, Vec::<String>::new());
    let week = json!({
        "type": "observations", "dateStart": "2025-11-17", "dateEnd": "2025-11-18", "limit": 100, "offset": 0, "project": "my-project",
    });
    assert_eq!(sorted(week), ["obs-11130", "obs-11131", "obs-11132", "obs-11140"]);
    let epochs = json!({ "dateStart": 1_763_251_200_000_i64, "dateEnd": 1_763_337_599_000_i64, "orderBy": "date_asc" });
    assert_eq!(sorted(epochs), ["obs-10942"]);
}

#[test]
fn episodic_memory_search_then_read() {
    let root = Root::new();
    let m_1 = json!({ "project": "web", "session": "one" });
    let m_2 = json!({ "project": "web", "session": "one" });
    let memories = [
        memory("m-1", "Errors of loaders end up in the error boundary", m_1),
        memory("m-2", "Redirects lose the return address", m_2),
    ];
    root.store("notes", &memories);
    let mut server = with_surface(&root, "episodic-memory");
    let arguments = json!({ "query": "error boundary of loaders", "mode": "both", "limit": 10 });
    let found = server.call("search", arguments);
    assert_eq!(ids(&found)[0], "m-1");
    let concepts = json!({ "query": ["loaders", "error boundary"], "limit": 5, "response_format": "json", "include_sidechains": false });
    assert_eq!(ids(&server.call("search", concepts))[0], "m-1");
    for hit in ids(&found) {
        let arguments = json!({ "path": hit, "startLine": 1, "endLine": 100 });
        let read = server.call("read", arguments);
        assert_eq!(one(&read), hit);
        assert!(read["structuredContent"]["timeline"].is_object());
    }
    // One of their paths is not a memory; the answer says what is.
    let path = "/home/me/.config/superpowers/conversation-archive/web/19df92b9.jsonl";
    let wrong = server.fail("read", json!({ "path": path }));
    assert_eq!(wrong.code, "memory_not_found");
    assert!(wrong.hint.unwrap().starts_with("search finds ids"));
}

#[test]
fn siftcoder_search_then_get_why_and_timeline() {
    let root = Root::new();
    let at = |day: u32| json!({ "session": "one", "created_at": format!("2026-04-{day:02}T00:00:00Z"), "type": "decision" });
    let memories = [
        memory("141", "Redis holds the sessions", at(11)),
        memory("142", "Decided to skip the in-memory cache", at(12)),
        memory("143", "The pattern of a paginated query", at(13)),
    ];
    root.store("notes", &memories);
    let mut server = with_surface(&root, "siftcoder");
    let arguments = json!({ "query": "caching strategy: in-memory cache", "k": 5 });
    assert_eq!(ids(&server.call("mem_search", arguments))[0], "142");
    let arguments = json!({ "query": "paginated query", "kind": "pattern", "k": 5 });
    assert_eq!(ids(&server.call("mem_search", arguments))[0], "143");
    let shown = server.call("mem_get", json!({ "ids": [142] }));
    assert_eq!(fetched(&shown), ["142"]);
    for id in [json!("142"), json!(142), json!("summary:142")] {
        assert_eq!(one(&server.call("mem_get", json!({ "id": id }))), "142");
        assert_eq!(one(&server.call("mem_why", json!({ "id": id }))), "142");
        let around = server.call("mem_timeline", json!({ "id": id, "before": 3, "after": 3 }));
        assert_eq!(one(&around), "142");
        let shown = &around["structuredContent"]["timeline"]["after"][0]["id"];
        assert_eq!(*shown, "143");
    }
    let shown = server.call("mem_timeline", json!({ "near_id": 142, "window": 10 }));
    assert_eq!(one(&shown), "142");
    let why = json!({ "kind": "summary", "id": "142", "depth": 3 });
    assert_eq!(one(&server.call("mem_why", why)), "142");
    // Without any id, it says which there are.
    let neither = server.fail("mem_timeline", json!({ "window": 10 }));
    assert_eq!(neither.argument.as_deref(), Some("id"), "{neither:?}");
}

#[test]
fn an_id_that_starts_like_a_number_prefix_is_found() {
    let memories = [
        titled("summary:9", "Kept under the whole id"),
        titled("#12", "Kept with its mark"),
        titled("7", "Kept under a bare number"),
    ];
    let root = Root::with("notes", &memories);
    let mut sift = with_surface(&root, "siftcoder");
    let found = sift.call("mem_get", json!({ "id": "summary:9" }));
    assert_eq!(one(&found), "summary:9");
    let both = sift.call("mem_get", json!({ "ids": ["summary:9", 7, "5"] }));
    assert_eq!(fetched(&both), ["summary:9", "7"]);
    assert_eq!(both["structuredContent"]["missing"][0]["id"], "5");
    let mut mem = with_surface(&root, "claude-mem");
    for given in [json!("7"), json!(7)] {
        let found = mem.call("timeline", json!({ "anchor": given }));
        assert_eq!(one(&found), "7", "{given}");
    }
    let found = mem.call("timeline", json!({ "anchor": "#12" }));
    assert_eq!(one(&found), "#12");
    let unknown = mem.fail("timeline", json!({ "anchor": "#13" }));
    assert_eq!(unknown.code, "memory_not_found");
}

#[test]
fn sifs_search_then_find_related_in_both_generations() {
    let root = Root::new();
    let m_1 = json!({ "files": ["src/auth/session.rs"] });
    let m_2 = json!({ "files": ["src/auth/token.rs"] });
    let memories = [
        memory("m-1", "Sessions are locked while they are renewed", m_1),
        memory("m-2", "The token is checked twice", m_2),
    ];
    root.store("notes", &memories);
    let mut server = with_surface(&root, "sifs");
    for arguments in [
        json!({ "query": "locked sessions", "repo": "/path/to/project", "mode": "hybrid", "top_k": 5 }),
        json!({ "query": "locked sessions", "source": "/path/to/project", "mode": "bm25", "limit": 5, "explain": true }),
        json!({ "query": "locked sessions", "source": null, "profile": null, "mode": "semantic", "limit": 5, "alpha": 0.5, "filter_languages": ["rust"] }),
        json!({ "query": "sessions", "limit": 500, "filter_paths": ["src/auth/session.rs"] }),
    ] {
        let found = server.call("search", arguments);
        assert_eq!(ids(&found)[0], "m-1", "{found}");
    }
    for arguments in [
        json!({ "file_path": "src/auth/session.rs", "line": 42, "repo": "/path/to/project", "top_k": 5 }),
        json!({ "file_path": "src/auth/session.rs", "line": 42, "source": "/path/to/project", "limit": 5 }),
    ] {
        assert_eq!(ids(&server.call("find_related", arguments)), ["m-1"]);
    }
    let whole = server.call("get_memory", json!({ "id": "m-1" }));
    assert_eq!(one(&whole), "m-1");
    let twice = server.fail("search", json!({ "query": "x", "limit": 5, "top_k": 6 }));
    assert_contains!(twice.message, "say the same");
}
