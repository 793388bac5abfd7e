//! `get_memory`: memories by id, with their context, and the message if one is not returned.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::cli::ack;
use crate::curate::decide;
use crate::query::bulk;
use crate::support::{Ask, Root, Sql, memory, rejected, run_sql, titled, unreviewed, write_file};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(|entry| entry["id"].as_str().unwrap()).collect()
}

/// These arguments, and more of them.
fn and(mut arguments: Value, more: Value) -> Value {
    let more = more.as_object().unwrap().clone();
    arguments.as_object_mut().unwrap().extend(more);
    arguments
}

/// Memories `n0`, `n1`, ….
fn nodes(count: usize) -> Vec<Value> {
    let node = |n| titled(&format!("n{n}"), &format!("Node {n}0"));
    (0..count).map(node).collect()
}

/// What is around a memory: of what, and the ids before and after.
fn sides(answer: &Value) -> (&str, Vec<&str>, Vec<&str>) {
    let timeline = &answer["timeline"];
    let within = timeline["within"].as_str().unwrap();
    (within, names(&timeline["before"]), names(&timeline["after"]))
}

fn link(writer: &Connection, from: &str, to: &str, kind: &str) {
    let sql = "INSERT INTO memory_links VALUES (?1, ?2, ?3, 'tool', 0.5)";
    writer.sql_with(sql, (from, to, kind));
}

#[test]
fn several_ids_are_answered_in_order_once_each_with_missing_ones_listed() {
    let root = Root::new();
    let memories: Vec<Value> = (0..25)
        .map(|n| {
            memory(
                &format!("ack_{n:02}"),
                &format!("Rule {n}0"),
                json!({ "status": if n == 3 { "staging" } else if n == 4 { "rejected" } else { "approved" } }),
            )
        })
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    let twenty: Vec<String> = (5..25).rev().map(|n| format!("ack_{n:02}")).collect();
    let answer = service.fetch(json!({ "ids": twenty }));
    assert_eq!(names(&answer["memories"]), twenty);
    let answer = service
        .fetch(json!({ "ids": ["ack_07", " ack_06 ", "ack_07", "ack_03", "ack_04", "ack_06x"] }));
    assert_eq!(names(&answer["memories"]), ["ack_07", "ack_06"]);
    insta::assert_json_snapshot!(answer["missing"], @r#"
[
  {
    "id": "ack_03",
    "reason": "memory `ack_03` in scope `alpha` is `staging`; nobody has approved it yet; pass `status: \"staging\"` or `status: \"all\"` to see it anyway"
  },
  {
    "id": "ack_04",
    "reason": "memory `ack_04` in scope `alpha` is `rejected`; its curator rejected or replaced it, and such memories are never served"
  },
  {
    "id": "ack_06x",
    "reason": "there is no memory `ack_06x` in `alpha`; query_memories finds ids; pass `scope` for an id in a private scope",
    "nearest": [
      "ack_06",
      "ack_00",
      "ack_01"
    ]
  }
]
"#);
    let one = service.fetch(json!({ "ids": ["ack_01"] }));
    assert_eq!(names(&one["memories"]), ["ack_01"]);
    assert!(one.get("id").is_none());
}

#[test]
fn the_error_for_an_unapproved_memory_shows_a_working_request() {
    let root = Root::new();
    for (id, status) in [
        ("s", "staging"),
        ("a", "approved"),
        ("p", "promoted"),
        ("r", "rejected"),
        ("u", "unheard of"),
    ] {
        let one = memory(id, "A title that stays secret", json!({ "status": status }));
        root.store(&format!("scope-{id}"), &[one]);
    }
    let service = root.service();
    let refused = |id: &str, status: &str| {
        let error = service.refused("get_memory", json!({ "id": id, "status": status }));
        assert_eq!(error.code, "memory_not_served", "{id}");
        assert_lacks!(json!(error), "secret");
        error.hint.unwrap()
    };
    for (id, status) in [("s", "approved"), ("a", "staging"), ("p", "staging")] {
        let hint = refused(id, status);
        let advised = hint.split("status: \"").nth(1);
        let advised = advised.and_then(|rest| rest.split('"').next());
        let advised = advised.unwrap_or_default();
        service.fetch(json!({ "id": id, "status": advised }));
        assert_eq!(hint.contains("nobody has approved"), id == "s", "{hint}");
    }
    for id in ["r", "u"] {
        for status in ["approved", "staging", "all"] {
            let hint = refused(id, status);
            assert_contains!(hint, "never served");
            assert_eq!(hint.contains("curator rejected"), id == "r", "{hint}");
        }
    }
}

#[test]
fn a_memory_changed_after_its_approval_is_refused_with_that_reason() {
    let root = Root::new();
    let store = root.store("team", &[unreviewed("money", "Cents are integers")]);
    decide(root.path(), &["approve", "money"]).ok();
    run_sql(store, "UPDATE memories SET title = 'Cents are floats'");
    let refused = ack(root.path(), &["get", "money"]).fails(1);
    assert_contains!(refused, "changed after it was decided");
}

#[test]
fn an_unknown_id_names_the_nearest_that_may_be_shown() {
    let memories =
        [titled("ack_abc_001", "One"), unreviewed("ack_abc_002", "Two"), titled("zzz", "Three")];
    let root = Root::with("alpha", &memories);
    let service = root.service();
    let near = |arguments: Value| service.refused("get_memory", arguments).nearest;
    assert_eq!(near(json!({ "id": "ack_abc_003" })), ["ack_abc_001"]);
    let found = near(json!({ "id": "ack_abc_003", "status": "all" }));
    assert_eq!(found, ["ack_abc_001", "ack_abc_002"]);
    assert_eq!(near(json!({ "id": "????" })), Vec::<String>::new());
}

#[test]
fn every_id_that_a_search_shows_can_be_fetched() {
    let root = Root::new();
    let long = "x".repeat(300);
    let odd = "two  blanks| blank before|Ünïcode-ß|データ-1|semi;colon'quote\"|tab\there|\
        override\u{202e}here|slash/../dots|%5f_|emoji-👩‍👧|new\nline|esc\u{1b}[31mape|e\u{301}|%_*?";
    let ids = odd.split('|').chain([long.as_str()]);
    let odd: Vec<Value> = ids.map(|id| titled(id, &format!("Odd id {}", id.len()))).collect();
    root.store("alpha", &odd);
    let service = root.service();
    let answer = service.find(json!({ "limit": 50, "max_tokens": 20_000 }));
    assert_eq!(names(&answer["results"]).len(), odd.len());
    for id in names(&answer["results"]) {
        service.fetch(json!({ "id": id }));
    }
}

#[test]
fn an_id_is_found_however_its_letters_are_composed() {
    let root = Root::new();
    root.store("alpha", &["cafe\u{301}.md", "na\u{ef}ve.md"].map(|id| titled(id, "A note")));
    let service = root.service();
    for (asked, stored) in
        [("caf\u{e9}.md", "cafe\u{301}.md"), ("nai\u{308}ve.md", "na\u{ef}ve.md")]
    {
        for id in [asked, stored] {
            assert_eq!(service.fetch(json!({ "id": id }))["id"], stored);
        }
    }
}

#[test]
fn a_timeline_contains_neighbours_of_the_session_project_or_scope() {
    let root = Root::new();
    let at = |id: &str, day: u32, rest: Value| {
        let created = json!({ "created_at": format!("2026-01-{day:02}T00:00:00Z") });
        memory(id, &format!("Note {id}"), and(rest, created))
    };
    let mut memories: Vec<Value> = (1..=9)
        .map(|n| {
            let status = if n == 4 { "staging" } else { "approved" };
            let rest = json!({ "session": "one", "project": "p", "status": status });
            at(&format!("s{n}"), n, rest)
        })
        .collect();
    memories.push(at("p1", 10, json!({ "session": "alone", "project": "P_One" })));
    memories.push(at("q1", 11, json!({ "project": "q" })));
    bulk(&root, "alpha", &memories);
    root.manifest("alpha", "[projects]\np = [\"p-one\"]\nq = []");
    let service = root.service();
    for (id, status, within, before, after) in [
        ("s5", "approved", "session", "s1 s2 s3", "s6 s7 s8"),
        ("s5", "all", "session", "s2 s3 s4", "s6 s7 s8"),
        ("s1", "approved", "session", "", "s2 s3 s5"),
        ("p1", "approved", "project", "s7 s8 s9", ""),
        ("q1", "approved", "scope", "s8 s9 p1", ""),
    ] {
        let answer = service.fetch(json!({ "id": id, "status": status, "include": "timeline" }));
        let (of, earlier, later) = sides(&answer);
        assert_eq!(of, within, "{id} {status}");
        assert_eq!(earlier.join(" "), before, "{id} {status}");
        assert_eq!(later.join(" "), after, "{id} {status}");
    }
}

#[test]
fn a_session_overview_is_shown_only_with_its_first_memory() {
    let root = Root::new();
    let of = |id: &str, session: &str| {
        memory(id, &format!("Note {id}"), json!({ "session": session, "project": "p" }))
    };
    let rows = [of("a1", "one"), of("b1", "two"), of("a2", "one")];
    let writer = bulk(&root, "alpha", &rows);
    writer.sql("INSERT INTO sessions (id, project, title) VALUES ('one', 'p', 'First'), ('two', 'p', 'Second');
             INSERT INTO overviews (session, content) VALUES ('one', 'What was done first'), ('two', 'And then')");
    root.manifest("alpha", "overviews = \"show\"");
    let service = root.service();
    let answer = service.fetch(json!({ "ids": ["a1", "b1", "a2"] }));
    let context_field =
        |number: usize, key: &str| answer["memories"][number]["session_context"][key].clone();
    assert_eq!(
        [context_field(0, "overview"), context_field(1, "overview"), context_field(2, "overview")],
        [json!("What was done first"), json!("And then"), Value::Null]
    );
    assert_eq!(context_field(2, "title"), "First", "the title says which session it was");
    let alone = service.fetch(json!({ "ids": ["a2"] }));
    let overview = &alone["memories"][0]["session_context"]["overview"];
    assert_eq!(overview, "What was done first");
}

#[test]
fn links_are_followed_four_steps_through_cycles_but_not_through_hidden_memories() {
    let root = Root::new();
    let mut memories = nodes(8);
    memories.push(unreviewed("hidden", "Hidden node"));
    memories.push(titled("beyond", "Beyond the hidden node"));
    memories.push(memory("older", "Replaced", json!({ "superseded_by": "n0" })));
    let writer = bulk(&root, "alpha", &memories);
    let links = "n0-n1 n1-n2 n2-n3 n3-n4 n4-n5 n2-n0 n0-n0 n0-hidden hidden-beyond n0-nowhere";
    for (from, to) in links.split(' ').filter_map(|one| one.split_once('-')) {
        link(&writer, from, to, "derived_from");
    }
    let links = |status: &str| {
        let arguments = json!({ "id": "n0", "status": status, "include": ["links"] });
        let answer = root.service().fetch(arguments);
        let links = answer["links"].as_array().unwrap().iter().map(|link| {
            let [from, to] = ["from_id", "to_id"].map(|key| link[key].as_str().unwrap());
            format!("{from}-{to}@{}", link["depth"])
        });
        links.collect::<Vec<_>>().join(" ")
    };
    let expected = "n0-n0@1 n0-n1@1 n2-n0@1 n0-older@1 n1-n2@2 n2-n3@2 n3-n4@3 n4-n5@4";
    assert_eq!(links("approved"), expected);
    assert_eq!(links("all").split(' ').count(), 10);
}

#[test]
fn a_timeline_respects_the_requested_length_and_range() {
    let root = Root::new();
    let memories: Vec<Value> = (0..60)
        .map(|n| {
            let session = (28..=33).contains(&n).then_some("one");
            let rest = json!({
                "project": if n < 50 { "p" } else { "q" },
                "status": if n == 31 { "staging" } else { "approved" },
                "created_at": format!("2026-01-01T00:{n:02}:00Z"),
                "session": session,
            });
            memory(&format!("m{n:02}"), &format!("Note {n}"), rest)
        })
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    let ask = |rest: Value| service.fetch(and(json!({ "id": "m30" }), rest));
    // Asking for neighbours is asking for the timeline.
    let near = ask(json!({ "before": 1, "after": 2 }));
    assert_eq!(sides(&near), ("session", vec!["m29"], vec!["m32", "m33"]));
    let answer = ask(json!({ "timeline_within": "project", "before": 20, "after": 20 }));
    let (within, before, after) = sides(&answer);
    assert_eq!(within, "project", "{after:?}");
    assert_eq!(before.len(), 20, "{after:?}");
    assert_eq!(after.len(), 18, "{after:?}");
    assert_eq!((before[0], before[19]), ("m10", "m29"));
    assert_eq!(after[17], "m49", "the project ends there");
    assert!(!after.contains(&"m31"), "nobody approved it");
    let answer = ask(json!({ "timeline_within": "scope", "before": 0, "after": 20 }));
    let (within, before, after) = sides(&answer);
    assert_eq!((within, before.len(), after[19]), ("scope", 0, "m51"));
    let answer = ask(json!({ "timeline_within": "scope", "after": 20, "status": "all" }));
    let (_, _, after) = sides(&answer);
    assert_eq!((after[0], after.len()), ("m31", 20));
    // An explicit choice is not overridden.
    let lone = service.fetch(json!({ "id": "m40", "timeline_within": "session" }));
    assert_eq!(sides(&lone), ("session", vec![], vec![]));
    assert_contains!(lone["notes"][0]["message"], "belongs to no session");
    for (argument, value) in
        [("before", json!(21)), ("after", json!(-1)), ("timeline_within", json!("day"))]
    {
        let error = service.refused("get_memory", json!({ "id": "m30", argument: value }));
        assert_eq!(error.code, "invalid_argument");
        assert_eq!(error.argument.as_deref(), Some(argument));
    }
}

#[test]
fn links_respect_the_requested_depth_and_kinds_and_report_truncation() {
    let root = Root::new();
    let mut memories = nodes(12);
    memories.push(unreviewed("hidden", "Hidden node"));
    memories.push(rejected("secret", "Secret node"));
    memories.extend((0..130).map(|n| titled(&format!("leaf{n}"), &format!("Leaf {n}0"))));
    memories.push(titled("hub", "Hub"));
    let writer = bulk(&root, "alpha", &memories);
    for n in 0..10 {
        link(&writer, &format!("n{n}"), &format!("n{}", n + 1), "derived_from");
    }
    link(&writer, "n0", "n11", "Imports");
    link(&writer, "n4", "hidden", "derived_from");
    link(&writer, "hidden", "secret", "whispers");
    for n in 0..130 {
        link(&writer, "hub", &format!("leaf{n}"), "derived_from");
    }
    let service = root.service();
    // How many links, how many steps away the farthest is, and the notes.
    let walk = |rest: Value| {
        let answer = service.fetch(and(json!({ "include": ["links"] }), rest));
        let list = answer["links"].as_array().cloned().unwrap_or_default();
        let steps = list.iter().map(|link| link["depth"].as_u64().unwrap());
        let notes = answer["notes"].as_array().cloned().unwrap_or_default();
        (list.len(), steps.max().unwrap_or_default(), notes)
    };
    let (count, deepest, notes) = walk(json!({ "id": "n0" }));
    assert_eq!((count, deepest), (5, 4));
    let said = "followed for 4 steps; there are more";
    assert_contains!(notes[0], said, "pass `depth: 8`");
    let (count, deepest, notes) = walk(json!({ "id": "n0", "depth": 8 }));
    assert_eq!((count, deepest, notes.len()), (9, 8, 1), "{notes:?}");
    // The answer is not called cut off if only hidden memories are left: it does not hint at them.
    let (count, _, notes) = walk(json!({ "id": "n10", "depth": 5 }));
    assert_eq!((count, notes.len()), (5, 1));
    assert_eq!(walk(json!({ "id": "n5", "depth": 6 })), (11, 6, vec![]));
    let found = walk(json!({ "id": "n3", "depth": 1, "kind": ["supersedes"] }));
    assert_eq!(found, (0, 0, vec![]));
    // A kind that only this store has, in any case, alone or among others.
    assert_eq!(walk(json!({ "id": "n0", "kind": ["imports"] })).0, 1);
    let both = json!({ "id": "n0", "kind": "imports, derived_from", "depth": 1 });
    assert_eq!(walk(both).0, 2);
    let (count, _, notes) = walk(json!({ "id": "hub" }));
    assert_eq!(count, 100);
    assert_contains!(notes[0], "only 100 links of `hub`");
    // A kind that only hidden memories have is none.
    for (kind, nearest) in [("derived", vec!["derived_from"]), ("whispers", vec![])] {
        let arguments = json!({ "include": ["links"], "id": "n0", "kind": kind });
        let error = service.refused("get_memory", arguments);
        assert_eq!(error.code, "invalid_argument");
        assert_eq!(error.argument.as_deref(), Some("kind"));
        assert_eq!(error.nearest, nearest);
        let said = "contradicts, derived_from, imports, related, supersedes";
        assert_contains!(error.message, said);
    }
    for depth in [-1, 9] {
        let error = service.refused("get_memory", json!({ "id": "n0", "depth": depth }));
        assert_eq!(error.argument.as_deref(), Some("depth"), "{error:?}");
    }
}

#[test]
fn history_is_listed_oldest_first() {
    let root = Root::new();
    let writer = bulk(&root, "alpha", &[titled("a", "One"), titled("b", "Two")]);
    writer.sql("INSERT INTO curation_log VALUES ('a', 'approve', 'staging', 'approved', 'checked', 'ines', '2026-01-02T00:00:00Z'),
             ('a', 'stage', NULL, 'staging', NULL, 'agent', '2026-01-01T00:00:00Z'), ('b', 'stage', NULL, 'staging', NULL, 'agent', '2026-01-01T00:00:00Z')");
    let answer = root.service().fetch(json!({ "id": "a", "include": ["history"] }));
    let history = json!([
        { "action": "stage", "new_status": "staging", "actor": "agent", "created_at": "2026-01-01T00:00:00Z" },
        { "action": "approve", "previous_status": "staging", "new_status": "approved",
          "reason": "checked", "actor": "ines", "created_at": "2026-01-02T00:00:00Z" },
    ]);
    assert_eq!(answer["history"], history);
}

#[test]
fn an_id_that_is_not_found_may_be_in_a_scope_that_cannot_be_read() {
    let root = Root::with("alpha", &[titled("a1", "One")]);
    root.store("beta", &[titled("b1", "Two")]);
    write_file(root.scope_folder("beta").join("memory.db"), "no database");
    let ask = |arguments| root.service().refused("get_memory", arguments);
    let message = ask(json!({ "id": "b1" })).message;
    assert_eq!(message, "there is no memory `b1` in `alpha`; `beta` could not be read");
    let several = root.service().fetch(json!({ "ids": ["a1", "b1"] }));
    let reason = several["missing"][0]["reason"].as_str().unwrap();
    assert_contains!(reason, "`beta` could not be read");
}

#[test]
fn a_link_to_a_missing_id_is_named_and_one_to_a_hidden_memory_is_not() {
    let root = Root::new();
    let memories = [
        titled("a", "First"),
        titled("b", "Second"),
        unreviewed("waiting", "Third"),
        rejected("rejected", "Fourth"),
    ];
    let writer = bulk(&root, "alpha", &memories);
    for to in ["b", "gone-1", "waiting", "rejected", "gone-2"] {
        link(&writer, "a", to, "related");
    }
    let answer = root.service().fetch(json!({ "id": "a", "include": ["links"] }));
    assert_eq!(answer["links"].as_array().unwrap().len(), 1);
    assert_eq!(
        answer["notes"],
        json!([{
            "kind": "not_available",
            "scope": "alpha",
            "message": "`a` has links to `gone-1`, `gone-2`, which this scope does not have",
        }])
    );
    let without = root.service().fetch(json!({ "id": "a" }));
    assert_eq!(without.get("notes"), None);
}

#[test]
fn an_agent_that_asks_for_unreviewed_memories_is_told_where_a_person_sees_them() {
    let memories = [titled("ok", "Approved zeppelin"), unreviewed("waits", "Waiting zeppelin")];
    let root = Root::with("alpha", &memories);
    let mut server = crate::mcp::Server::initialized(root.path());
    let command = format!("`ack-memory --root {} review` shows them", root.path().display());
    let told = format!("unreviewed memories are not shown to agents here; for the user: {command}");
    let mut asked = |tool: &'static str, arguments: Value| {
        let answer = server.call(tool, arguments);
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        assert_lacks!(text, "Waiting zeppelin");
        assert_eq!(text.matches(&told).count(), 1, "{tool}: {text}");
        text
    };
    for status in ["staging", "all"] {
        for query in ["zeppelin", ""] {
            let given = json!({ "query": query, "status": status });
            let text = asked("query_memories", given);
            assert_contains!(text, "1 matching memory waits for review; unreviewed");
            let found = text.contains("Approved zeppelin");
            assert_eq!(found, status == "all", "{text}");
        }
        let given = json!({ "query": "quasar", "status": status });
        let nothing = asked("query_memories", given);
        assert_lacks!(nothing, "matching");
        let found = nothing.contains("list_scopes");
        assert_eq!(found, status == "all", "{nothing}");
        asked("get_memory", json!({ "id": "waits", "status": status }));
    }
    let all = asked("get_memory", json!({ "id": "ok", "status": "all" }));
    assert_contains!(all, "Approved zeppelin");
    // What is approved does not wait.
    let staging = server.call("get_memory", json!({ "id": "ok", "status": "staging" }));
    assert_eq!(staging["isError"], true, "{staging}");
    let text = staging["content"][0]["text"].as_str().unwrap();
    assert_contains!(text, "is `approved`", "leave `status` out");
    let several = json!({ "ids": ["ok", "waits"], "status": "staging" });
    let several = server.call("get_memory", several);
    let several = &several["structuredContent"];
    assert_eq!(several["missing"].as_array().unwrap().len(), 2, "{several}");
}
