//! `get_memory`: memories by id, with their context, and the message if one is not returned.

use ack_api::Diagnostic;
use ack_api::text;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::ack;
use crate::curate::decide;
use crate::query::bulk;
use crate::support::{Root, memory};

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|entry| entry["id"].as_str().unwrap())
        .collect()
}

#[test]
fn get_memory_returns_every_stored_field() {
    let root = Root::new();
    let writer = bulk(
        &root,
        "alpha",
        &[memory(
            "ack_x_2026-01-04_001",
            "Lock accounts in id order",
            json!({
                "project": "ledger", "session": "s1", "session_id": "u-1", "date": "2026-01-04", "type": "bugfix", "subtitle": "Both at once", "facts": ["one", "two"],
                "concepts": ["postgres"], "files": ["src/lock.rs"], "narrative": "Line one\nLine two", "status": "promoted", "confidence": 0.9,
                "reviewed_at": "2026-01-05T08:00:00Z", "reviewed_by": "ines", "created_at": "2026-01-04T10:00:00Z", "updated_at": "2026-01-06T10:00:00Z",
            }),
        )],
    );
    writer
        .execute_batch("INSERT INTO sessions (id, title) VALUES ('s1', 'Deadlock hunt'); INSERT INTO overviews (session, content) VALUES ('s1', 'We looked for deadlocks.')")
        .unwrap();
    insta::assert_json_snapshot!(call(&root.service(), "get_memory", json!({ "id": "ack_x_2026-01-04_001" })).unwrap(), @r#"
{
  "id": "ack_x_2026-01-04_001",
  "title": "Lock accounts in id order",
  "subtitle": "Both at once",
  "facts": [
    "one",
    "two"
  ],
  "concepts": [
    "postgres"
  ],
  "project": "ledger",
  "created_at": "2026-01-04T10:00:00Z",
  "scope": "alpha",
  "status": "promoted",
  "type": "bugfix",
  "narrative": "Line one\nLine two",
  "files": [
    "src/lock.rs"
  ],
  "session": "s1",
  "confidence": 0.9,
  "date": "2026-01-04",
  "session_id": "u-1",
  "session_context": {
    "title": "Deadlock hunt",
    "overview": "We looked for deadlocks.",
    "unreviewed": true
  },
  "reviewed_at": "2026-01-05T08:00:00Z",
  "reviewed_by": "ines",
  "updated_at": "2026-01-06T10:00:00Z"
}
"#);
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
    let answer = call(&service, "get_memory", json!({ "ids": twenty })).unwrap();
    assert_eq!(names(&answer["memories"]), twenty);
    let answer = call(
        &service,
        "get_memory",
        json!({ "ids": ["ack_07", " ack_06 ", "ack_07", "ack_03", "ack_04", "ack_06x"] }),
    )
    .unwrap();
    assert_eq!(names(&answer["memories"]), ["ack_07", "ack_06"]);
    insta::assert_json_snapshot!(answer["missing"], @r#"
[
  {
    "id": "ack_03",
    "reason": "memory `ack_03` in scope `alpha` is `staging`; nobody has approved it yet; pass `status: \"staging\"` or `status: \"all\"` to see it anyway"
  },
  {
    "id": "ack_04",
    "reason": "memory `ack_04` in scope `alpha` is `rejected`; its curator rejected it, and rejected memories are never served"
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
    let one = call(&service, "get_memory", json!({ "ids": ["ack_01"] })).unwrap();
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
        root.store(
            &format!("scope-{id}"),
            &[memory(
                id,
                "A title that stays secret",
                json!({ "status": status }),
            )],
        );
    }
    let service = root.service();
    let mut wrong = Vec::new();
    for (id, filter) in [("s", "approved"), ("a", "staging"), ("p", "staging")] {
        let error = call(
            &service,
            "get_memory",
            json!({ "id": id, "status": filter }),
        )
        .unwrap_err();
        assert_eq!(error.code(), "memory_not_served", "{id}");
        let hint = error.hint().unwrap();
        let advised = hint
            .split("status: \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap_or_default()
            .to_owned();
        if let Err(error) = call(
            &service,
            "get_memory",
            json!({ "id": id, "status": advised }),
        ) {
            wrong.push(format!(
                "{id}: status \"{advised}\" was advised, but {error}"
            ));
        }
        if id != "s" && hint.contains("nobody has approved") {
            wrong.push(format!("{id} is approved, and the hint says: {hint}"));
        }
        assert!(!json!(error.body()).to_string().contains("secret"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for id in ["r", "u"] {
        for filter in ["approved", "staging", "all"] {
            let error = call(
                &service,
                "get_memory",
                json!({ "id": id, "status": filter }),
            )
            .unwrap_err();
            assert_eq!(error.code(), "memory_not_served", "{id}");
            let hint = error.hint().unwrap();
            assert!(hint.contains("never served"), "{hint}");
            assert_eq!(hint.contains("curator rejected"), id == "r", "{hint}");
        }
    }
}

#[test]
fn a_memory_changed_after_its_approval_is_refused_with_that_reason() {
    let root = Root::new();
    let store = root.store(
        "team",
        &[memory(
            "money",
            "Cents are integers",
            json!({ "status": "staging" }),
        )],
    );
    decide(root.path(), &["approve", "money"]).ok();
    Connection::open(store)
        .unwrap()
        .execute("UPDATE memories SET title = 'Cents are floats'", [])
        .unwrap();
    let refused = ack(root.path(), &["get", "money"]).fails(1);
    assert!(
        refused.contains("changed after it was decided"),
        "{refused}"
    );
}

#[test]
fn an_unknown_id_names_the_nearest_that_may_be_shown() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory("ack_abc_001", "One", json!({})),
            memory("ack_abc_002", "Two", json!({ "status": "staging" })),
            memory("zzz", "Three", json!({})),
        ],
    );
    let service = root.service();
    let near = |arguments: Value| {
        call(&service, "get_memory", arguments)
            .unwrap_err()
            .body()
            .nearest
    };
    assert_eq!(near(json!({ "id": "ack_abc_003" })), ["ack_abc_001"]);
    assert_eq!(
        near(json!({ "id": "ack_abc_003", "status": "all" })),
        ["ack_abc_001", "ack_abc_002"]
    );
    assert_eq!(near(json!({ "id": "????" })), Vec::<String>::new());
}

#[test]
fn every_id_that_a_search_shows_can_be_fetched() {
    let root = Root::new();
    let odd = [
        "two  blanks",
        " blank before",
        "Ünïcode-ß",
        "データ-1",
        "semi;colon'quote\"",
        "tab\there",
        "override\u{202e}here",
        "slash/../dots",
        "%5f_",
        "emoji-👩‍👧",
    ];
    let mut ids: Vec<String> = odd.iter().map(|id| (*id).to_owned()).collect();
    ids.push("x".repeat(300));
    let memories: Vec<Value> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| memory(id, &format!("Odd id {n}0"), json!({})))
        .collect();
    root.store("alpha", &memories);
    let service = root.service();
    let answer = call(
        &service,
        "query_memories",
        json!({ "limit": 50, "max_tokens": 20_000 }),
    )
    .unwrap();
    assert_eq!(names(&answer["results"]).len(), ids.len());
    let lost: Vec<&str> = names(&answer["results"])
        .into_iter()
        .filter(|id| call(&service, "get_memory", json!({ "id": id })).is_err())
        .collect();
    assert!(lost.is_empty(), "shown and not fetched: {lost:?}");
}

#[test]
fn a_timeline_contains_neighbours_of_the_session_project_or_scope() {
    let root = Root::new();
    let at = |id: &str, day: u32, rest: Value| {
        let mut one = memory(id, &format!("Note {id}"), rest);
        one["created_at"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
        one
    };
    let mut memories: Vec<Value> = (1..=9)
        .map(|n| {
            at(
                &format!("s{n}"),
                n,
                json!({ "session": "one", "project": "p", "status": if n == 4 { "staging" } else { "approved" } }),
            )
        })
        .collect();
    memories.push(at(
        "p1",
        10,
        json!({ "session": "alone", "project": "P_One" }),
    ));
    memories.push(at("q1", 11, json!({ "project": "q" })));
    bulk(&root, "alpha", &memories);
    root.manifest("alpha", "[projects]\np = [\"p-one\"]\nq = []");
    let service = root.service();
    let timeline = |id: &str, status: &str| {
        call(
            &service,
            "get_memory",
            json!({ "id": id, "status": status, "include": "timeline" }),
        )
        .unwrap()["timeline"]
            .clone()
    };
    let five = timeline("s5", "approved");
    assert_eq!(
        (
            five["within"].as_str().unwrap(),
            names(&five["before"]),
            names(&five["after"])
        ),
        ("session", vec!["s1", "s2", "s3"], vec!["s6", "s7", "s8"])
    );
    assert_eq!(names(&timeline("s5", "all")["before"]), ["s2", "s3", "s4"]);
    let first = timeline("s1", "approved");
    assert_eq!(
        (names(&first["before"]).len(), names(&first["after"])),
        (0, vec!["s2", "s3", "s5"])
    );
    let project = timeline("p1", "approved");
    assert_eq!(
        (
            project["within"].as_str().unwrap(),
            names(&project["before"])
        ),
        ("project", vec!["s7", "s8", "s9"])
    );
    let scope = timeline("q1", "approved");
    assert_eq!(
        (scope["within"].as_str().unwrap(), names(&scope["before"])),
        ("scope", vec!["s8", "s9", "p1"])
    );
}

#[test]
fn a_session_overview_is_shown_only_with_its_first_memory() {
    let root = Root::new();
    let of = |id: &str, session: &str| {
        memory(
            id,
            &format!("Note {id}"),
            json!({ "session": session, "project": "p" }),
        )
    };
    let writer = bulk(
        &root,
        "alpha",
        &[of("a1", "one"), of("b1", "two"), of("a2", "one")],
    );
    writer
        .execute_batch(
            "INSERT INTO sessions (id, project, title) VALUES ('one', 'p', 'First'), ('two', 'p', 'Second');
             INSERT INTO overviews (session, content) VALUES ('one', 'What was done first'), ('two', 'And then')",
        )
        .unwrap();
    root.manifest("alpha", "overviews = \"show\"");
    let service = root.service();
    let answer = call(&service, "get_memory", json!({ "ids": ["a1", "b1", "a2"] })).unwrap();
    let context_field =
        |number: usize, key: &str| answer["memories"][number]["session_context"][key].clone();
    assert_eq!(
        [
            context_field(0, "overview"),
            context_field(1, "overview"),
            context_field(2, "overview")
        ],
        [json!("What was done first"), json!("And then"), Value::Null]
    );
    assert_eq!(
        context_field(2, "title"),
        "First",
        "the title says which session it was"
    );
    let alone = call(&service, "get_memory", json!({ "ids": ["a2"] })).unwrap();
    let overview = &alone["memories"][0]["session_context"]["overview"];
    assert_eq!(overview, "What was done first");
}

#[test]
fn links_are_followed_four_steps_through_cycles_but_not_through_hidden_memories() {
    let root = Root::new();
    let mut memories: Vec<Value> = (0..8)
        .map(|n| memory(&format!("n{n}"), &format!("Node {n}0"), json!({})))
        .collect();
    memories.push(memory(
        "hidden",
        "Hidden node",
        json!({ "status": "staging" }),
    ));
    memories.push(memory("beyond", "Beyond the hidden node", json!({})));
    memories.push(memory(
        "older",
        "Replaced",
        json!({ "superseded_by": "n0" }),
    ));
    let writer = bulk(&root, "alpha", &memories);
    for (from, to) in [
        ("n0", "n1"),
        ("n1", "n2"),
        ("n2", "n3"),
        ("n3", "n4"),
        ("n4", "n5"),
        ("n2", "n0"),
        ("n0", "n0"),
        ("n0", "hidden"),
        ("hidden", "beyond"),
        ("n0", "nowhere"),
    ] {
        writer
            .execute(
                "INSERT INTO memory_links VALUES (?1, ?2, 'derived_from', 'tool', 0.5)",
                (from, to),
            )
            .unwrap();
    }
    let links = |status: &str| {
        let answer = call(
            &root.service(),
            "get_memory",
            json!({ "id": "n0", "status": status, "include": ["links"] }),
        )
        .unwrap();
        let list = answer["links"].as_array().unwrap().clone();
        list.iter()
            .map(|link| {
                format!(
                    "{}-{}@{}",
                    link["from_id"].as_str().unwrap(),
                    link["to_id"].as_str().unwrap(),
                    link["depth"]
                )
            })
            .collect::<Vec<_>>()
    };
    let expected = [
        "n0-n0@1",
        "n0-n1@1",
        "n2-n0@1",
        "n0-older@1",
        "n1-n2@2",
        "n2-n3@2",
        "n3-n4@3",
        "n4-n5@4",
    ];
    assert_eq!(links("approved"), expected);
    assert_eq!(links("all").len(), expected.len() + 2);
}

#[test]
fn a_timeline_respects_the_requested_length_and_range() {
    let root = Root::new();
    let memories: Vec<Value> = (0..60)
        .map(|n| {
            let mut one = memory(
                &format!("m{n:02}"),
                &format!("Note {n}"),
                json!({ "project": if n < 50 { "p" } else { "q" }, "status": if n == 31 { "staging" } else { "approved" } }),
            );
            one["created_at"] = json!(format!("2026-01-01T{:02}:{:02}:00Z", n / 60, n % 60));
            if (28..=33).contains(&n) {
                one["session"] = json!("one");
            }
            one
        })
        .collect();
    bulk(&root, "alpha", &memories);
    let service = root.service();
    let ask = |rest: Value| {
        let mut arguments = json!({ "id": "m30" });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        call(&service, "get_memory", arguments).unwrap()
    };
    let sides = |answer: &Value| {
        let timeline = &answer["timeline"];
        let ids = |side: &str| {
            names(&timeline[side])
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        (
            timeline["within"].as_str().unwrap().to_owned(),
            ids("before"),
            ids("after"),
        )
    };
    // Asking for neighbours is asking for the timeline.
    let (within, before, after) = sides(&ask(json!({ "before": 1, "after": 2 })));
    assert_eq!(
        (within.as_str(), before, after),
        (
            "session",
            vec!["m29".to_owned()],
            vec!["m32".to_owned(), "m33".to_owned()]
        )
    );
    let (within, before, after) = sides(&ask(
        json!({ "timeline_within": "project", "before": 20, "after": 20 }),
    ));
    assert_eq!(
        (within.as_str(), before.len(), after.len()),
        ("project", 20, 18),
        "{after:?}"
    );
    assert_eq!((before[0].as_str(), before[19].as_str()), ("m10", "m29"));
    assert_eq!(after.last().unwrap(), "m49", "the project ends there");
    assert!(!after.contains(&"m31".to_owned()), "nobody approved it");
    let (within, before, after) = sides(&ask(
        json!({ "timeline_within": "scope", "before": 0, "after": 20 }),
    ));
    assert_eq!(
        (
            within.as_str(),
            before.len(),
            after.last().unwrap().as_str()
        ),
        ("scope", 0, "m51")
    );
    let (_, _, after) = sides(&ask(
        json!({ "timeline_within": "scope", "after": 20, "status": "all" }),
    ));
    assert_eq!((after[0].as_str(), after.len()), ("m31", 20));
    // An explicit choice is not overridden.
    let lone = call(
        &service,
        "get_memory",
        json!({ "id": "m40", "timeline_within": "session" }),
    )
    .unwrap();
    assert_eq!(sides(&lone), ("session".to_owned(), vec![], vec![]));
    let note = lone["notes"][0]["message"].as_str().unwrap();
    assert!(note.contains("belongs to no session"), "{note}");
    for (arguments, argument) in [
        (json!({ "before": 21 }), "before"),
        (json!({ "after": -1 }), "after"),
        (json!({ "timeline_within": "day" }), "timeline_within"),
    ] {
        let mut with_id = json!({ "id": "m30" });
        with_id
            .as_object_mut()
            .unwrap()
            .extend(arguments.as_object().unwrap().clone());
        let error = call(&service, "get_memory", with_id).unwrap_err().body();
        assert_eq!(
            (error.code.as_str(), error.argument.as_deref()),
            ("invalid_argument", Some(argument))
        );
    }
}

#[test]
fn links_respect_the_requested_depth_and_kinds_and_report_truncation() {
    let root = Root::new();
    let mut memories: Vec<Value> = (0..12)
        .map(|n| memory(&format!("n{n}"), &format!("Node {n}0"), json!({})))
        .collect();
    memories.push(memory(
        "hidden",
        "Hidden node",
        json!({ "status": "staging" }),
    ));
    memories.push(memory(
        "secret",
        "Secret node",
        json!({ "status": "rejected" }),
    ));
    memories
        .extend((0..130).map(|n| memory(&format!("leaf{n}"), &format!("Leaf {n}0"), json!({}))));
    memories.push(memory("hub", "Hub", json!({})));
    let writer = bulk(&root, "alpha", &memories);
    let link = |from: &str, to: &str, kind: &str| {
        writer
            .execute(
                "INSERT INTO memory_links VALUES (?1, ?2, ?3, 'tool', 0.5)",
                (from, to, kind),
            )
            .unwrap();
    };
    for n in 0..10 {
        link(&format!("n{n}"), &format!("n{}", n + 1), "derived_from");
    }
    link("n0", "n11", "Imports");
    link("n4", "hidden", "derived_from");
    link("hidden", "secret", "whispers");
    for n in 0..130 {
        link("hub", &format!("leaf{n}"), "derived_from");
    }
    let service = root.service();
    let ask = |rest: Value| {
        let mut arguments = json!({ "include": ["links"] });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        call(&service, "get_memory", arguments)
    };
    let walk = |rest: Value| {
        let answer = ask(rest).unwrap();
        let list = answer["links"].as_array().cloned().unwrap_or_default();
        let deepest = list
            .iter()
            .map(|link| link["depth"].as_u64().unwrap())
            .max()
            .unwrap_or_default();
        let notes = answer["notes"].as_array().cloned().unwrap_or_default();
        let notes: Vec<String> = notes
            .iter()
            .map(|note| note["message"].as_str().unwrap().to_owned())
            .collect();
        (list.len(), deepest, notes)
    };
    let (count, deepest, notes) = walk(json!({ "id": "n0" }));
    assert_eq!((count, deepest), (5, 4));
    assert!(
        notes[0].contains("followed for 4 steps; there are more")
            && notes[0].contains("pass `depth: 8`"),
        "{notes:?}"
    );
    let (count, deepest, notes) = walk(json!({ "id": "n0", "depth": 8 }));
    assert_eq!((count, deepest, notes.len()), (9, 8, 1), "{notes:?}");
    // The answer is not called cut off if only hidden memories are left: it does not hint at them.
    let (count, _, notes) = walk(json!({ "id": "n10", "depth": 5 }));
    assert_eq!((count, notes.len()), (5, 1));
    let (count, deepest, notes) = walk(json!({ "id": "n5", "depth": 6 }));
    assert_eq!((count, deepest, notes), (11, 6, vec![]));
    let (count, _, notes) = walk(json!({ "id": "n3", "depth": 1, "kind": ["supersedes"] }));
    assert_eq!((count, notes), (0, vec![]));
    // A kind that only this store has, in any case, alone or among others.
    assert_eq!(walk(json!({ "id": "n0", "kind": ["imports"] })).0, 1);
    assert_eq!(
        walk(json!({ "id": "n0", "kind": "imports, derived_from", "depth": 1 })).0,
        2
    );
    let (count, _, notes) = walk(json!({ "id": "hub" }));
    assert_eq!(count, 100);
    assert!(notes[0].contains("only 100 links of `hub`"), "{notes:?}");
    let unknown = ask(json!({ "id": "n0", "kind": "derived" }))
        .unwrap_err()
        .body();
    assert_eq!(
        (unknown.argument.as_deref(), unknown.nearest.as_slice()),
        (Some("kind"), &["derived_from".to_owned()][..])
    );
    let named = unknown.message;
    assert!(
        named.contains("contradicts, derived_from, imports, related, supersedes"),
        "{named}"
    );
    assert!(
        !named.contains("whispers"),
        "a kind that only hidden memories have is none: {named}"
    );
    assert_eq!(
        ask(json!({ "id": "n0", "kind": "whispers" }))
            .unwrap_err()
            .code(),
        "invalid_argument"
    );
    for depth in [-1, 9] {
        let error = ask(json!({ "id": "n0", "depth": depth }))
            .unwrap_err()
            .body();
        assert_eq!(error.argument.as_deref(), Some("depth"), "{error:?}");
    }
}

#[test]
fn history_is_listed_oldest_first() {
    let root = Root::new();
    let writer = bulk(
        &root,
        "alpha",
        &[memory("a", "One", json!({})), memory("b", "Two", json!({}))],
    );
    writer
        .execute_batch(
            "INSERT INTO curation_log VALUES ('a', 'approve', 'staging', 'approved', 'checked', 'ines', '2026-01-02T00:00:00Z'),
             ('a', 'stage', NULL, 'staging', NULL, 'agent', '2026-01-01T00:00:00Z'), ('b', 'stage', NULL, 'staging', NULL, 'agent', '2026-01-01T00:00:00Z')",
        )
        .unwrap();
    let answer = call(
        &root.service(),
        "get_memory",
        json!({ "id": "a", "include": ["history"] }),
    )
    .unwrap();
    insta::assert_json_snapshot!(json!({ "history": answer["history"] }), @r#"
{
  "history": [
    {
      "action": "stage",
      "new_status": "staging",
      "actor": "agent",
      "created_at": "2026-01-01T00:00:00Z"
    },
    {
      "action": "approve",
      "previous_status": "staging",
      "new_status": "approved",
      "reason": "checked",
      "actor": "ines",
      "created_at": "2026-01-02T00:00:00Z"
    }
  ]
}
"#);
}

#[test]
fn an_answer_is_bounded_in_tokens_whatever_is_included() {
    let root = Root::new();
    let memories: Vec<Value> = (0..120)
        .map(|n| {
            memory(
                &format!("m{n:03}"),
                &format!("Memory {n} {}", "with a long title ".repeat(14)),
                json!({ "narrative": "story ".repeat(8_000), "facts": vec!["a long fact ".repeat(60); 30] }),
            )
        })
        .collect();
    let writer = bulk(&root, "alpha", &memories);
    writer.execute_batch("BEGIN").unwrap();
    for n in 1..120 {
        writer
            .execute(
                "INSERT INTO memory_links VALUES ('m000', ?1, 'derived_from', 'tool', 0.5)",
                [format!("m{n:03}")],
            )
            .unwrap();
        writer
            .execute(
                "INSERT INTO curation_log VALUES ('m000', 'review', NULL, NULL, ?1, 'ines', NULL)",
                ["reason ".repeat(70)],
            )
            .unwrap();
    }
    writer.execute_batch("COMMIT").unwrap();
    let service = root.service();
    let mut over = Vec::new();
    for arguments in [
        json!({ "id": "m000" }),
        json!({ "id": "m000", "include": ["links"] }),
        json!({ "id": "m000", "include": ["history"] }),
        json!({ "ids": (0..20).map(|n| format!("m{n:03}")).collect::<Vec<_>>(), "include": ["timeline"] }),
    ] {
        let cost = text::tokens(
            &call(&service, "get_memory", arguments.clone())
                .unwrap()
                .to_string(),
        );
        if cost > 12_500 {
            over.push(format!("{cost} tokens for {arguments}"));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

#[test]
fn an_id_that_is_not_found_may_be_in_a_scope_that_cannot_be_read() {
    let root = Root::new();
    root.store("alpha", &[memory("a1", "One", json!({}))]);
    root.store("beta", &[memory("b1", "Two", json!({}))]);
    std::fs::write(root.scope_folder("beta").join("memory.db"), "no database").unwrap();
    let ask = |arguments| {
        call(&root.service(), "get_memory", arguments)
            .unwrap_err()
            .body()
    };
    let message = ask(json!({ "id": "b1" })).message;
    assert_eq!(
        message,
        "there is no memory `b1` in `alpha`; `beta` could not be read"
    );
    let several = call(
        &root.service(),
        "get_memory",
        json!({ "ids": ["a1", "b1"] }),
    )
    .unwrap();
    let reason = several["missing"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("`beta` could not be read"), "{reason}");
}

#[test]
fn related_memories_are_above_the_search_threshold() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "pool",
                "The connection pool of the database is too small",
                json!({}),
            ),
            memory(
                "pool-2",
                "Raise the size of the database connection pool",
                json!({}),
            ),
            memory(
                "font",
                "Playwright webkit needs libwoff on Debian",
                json!({}),
            ),
        ],
    );
    let service = root.service();
    let related = |id: &str| {
        let answer = call(
            &service,
            "get_memory",
            json!({ "id": id, "include": ["related"] }),
        );
        let answer = answer.unwrap();
        let notes = answer["notes"].as_array().map_or(0, Vec::len);
        let ids = answer["related"].as_array().map_or(Vec::new(), |near| {
            near.iter().map(|near| near["id"].clone()).collect()
        });
        (ids, notes)
    };
    assert_eq!(related("pool"), (vec![json!("pool-2")], 0));
    assert_eq!(related("font"), (Vec::new(), 1));
}

#[test]
fn a_link_to_a_missing_id_is_named_and_one_to_a_hidden_memory_is_not() {
    let root = Root::new();
    let writer = bulk(
        &root,
        "alpha",
        &[
            memory("a", "First", json!({})),
            memory("b", "Second", json!({})),
            memory("waiting", "Third", json!({ "status": "staging" })),
            memory("rejected", "Fourth", json!({ "status": "rejected" })),
        ],
    );
    for to in ["b", "gone-1", "waiting", "rejected", "gone-2"] {
        writer
            .execute(
                "INSERT INTO memory_links VALUES ('a', ?1, 'related', 'tool', 0.5)",
                [to],
            )
            .unwrap();
    }
    let request = json!({ "id": "a", "include": ["links"] });
    let answer = call(&root.service(), "get_memory", request).unwrap();
    assert_eq!(answer["links"].as_array().unwrap().len(), 1);
    assert_eq!(
        answer["notes"],
        json!([{
            "kind": "not_available",
            "scope": "alpha",
            "message": "`a` has links to `gone-1`, `gone-2`, which this scope does not have",
        }])
    );
    let without = call(&root.service(), "get_memory", json!({ "id": "a" })).unwrap();
    assert_eq!(without.get("notes"), None);
}

#[test]
fn an_agent_that_asks_for_unreviewed_memories_is_told_where_a_person_sees_them() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory("ok", "Approved zeppelin", json!({})),
            memory("waits", "Waiting zeppelin", json!({ "status": "staging" })),
        ],
    );
    let mut server = crate::mcp::Server::initialized(root.path());
    let command = format!(
        "`ack-memory --root {} review` shows them",
        root.path().display()
    );
    let told = format!("unreviewed memories are not shown to agents here; for the user: {command}");
    let mut asked = |tool: &'static str, arguments: Value| {
        let answer = server.call(tool, arguments);
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(!text.contains("Waiting zeppelin"), "{text}");
        assert_eq!(text.matches(&told).count(), 1, "{tool}: {text}");
        text
    };
    for status in ["staging", "all"] {
        for query in ["zeppelin", ""] {
            let text = asked(
                "query_memories",
                json!({ "query": query, "status": status }),
            );
            let waiting = "1 matching memory waits for review; unreviewed";
            assert!(text.contains(waiting), "{text}");
            assert_eq!(
                text.contains("Approved zeppelin"),
                status == "all",
                "{text}"
            );
        }
        let nothing = asked(
            "query_memories",
            json!({ "query": "quasar", "status": status }),
        );
        assert!(!nothing.contains("matching"), "{nothing}");
        assert_eq!(
            nothing.contains("list_scopes"),
            status == "all",
            "{nothing}"
        );
        asked("get_memory", json!({ "id": "waits", "status": status }));
    }
    let all = asked("get_memory", json!({ "id": "ok", "status": "all" }));
    assert!(all.contains("Approved zeppelin"), "{all}");
    // What is approved does not wait.
    let staging = server.call("get_memory", json!({ "id": "ok", "status": "staging" }));
    assert_eq!(staging["isError"], true, "{staging}");
    let text = staging["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("is `approved`") && text.contains("leave `status` out"),
        "{text}"
    );
    let several = json!({ "ids": ["ok", "waits"], "status": "staging" });
    let several = server.call("get_memory", several);
    let several = &several["structuredContent"];
    assert_eq!(several["missing"].as_array().unwrap().len(), 2, "{several}");
}
