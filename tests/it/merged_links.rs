//! Links to a duplicate lead to the memory that was kept: at answer time, from the decision log, as
//! long as the merge is not undone.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::curate::decide;
use crate::support::{
    Ask, Root, Sql, fingerprint, memory, read_text, run_sql, titled, unreviewed, write_file,
};

/// `kept` and its duplicate `dup`, with links to and from both.
fn root(status: &str) -> Root {
    let root = Root::new().let_agents_review();
    let memories = [
        titled("kept", "Back off with jitter"),
        memory("dup", "Back off and jitter", json!({ "status": status })),
        titled("cause", "The queue was full at noon"),
        titled("after", "Alert on the length of the queue"),
        titled("contrary", "Back off without jitter"),
        unreviewed("waits", "Jitter breaks the tests"),
        titled("old", "Try again at once"),
    ];
    let path = root.store("own", &memories);
    run_sql(
        path,
        "INSERT INTO memory_links (from_id, to_id, kind) VALUES
             ('after', 'dup', 'derived_from'), ('dup', 'cause', 'prompted_by'),
             ('contrary', 'dup', 'contradicts'), ('waits', 'dup', 'related'),
             ('dup', 'kept', 'related'), ('cause', 'kept', 'related'),
             ('dup', 'cause', 'related'), ('dup', 'old', 'supersedes')",
    );
    root
}

/// The links of a memory as `from kind to`, sorted.
fn links(root: &Root, id: &str, more: Value) -> Vec<String> {
    let mut arguments = json!({ "id": id, "include": "links", "depth": 1 });
    for (key, value) in more.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    let answer = root.service().fetch(arguments);
    let links = answer["links"].as_array().cloned().unwrap_or_default();
    let listed = links.iter().map(|link| {
        let part = |name: &str| link[name].as_str().unwrap().to_owned();
        format!("{} {} {}", part("from_id"), part("kind"), part("to_id"))
    });
    let mut listed: Vec<String> = listed.collect();
    listed.sort();
    listed
}

/// For each hit of a search, the memories that contradict it according to the answer.
fn contradicted(root: &Root) -> Vec<String> {
    let answer = root.service().find(json!({ "query": "back off jitter" }));
    let hits = answer["results"].as_array().unwrap().iter();
    let mut contradictions: Vec<String> = hits
        .filter_map(|hit| {
            let others = hit.get("contradicts")?.as_array().unwrap().iter();
            let others: Vec<&Value> = others.map(|other| &other["id"]).collect();
            Some(format!("{} {}", hit["id"].as_str().unwrap(), json!(others)))
        })
        .collect();
    contradictions.sort();
    contradictions
}

const OF_KEPT: [&str; 1] = ["cause related kept"];
const MOVED: [&str; 5] = [
    "after derived_from kept",
    "cause related kept",
    "contrary contradicts kept",
    "kept prompted_by cause",
    "kept related cause",
];

#[test]
fn links_of_a_duplicate_point_to_the_kept_memory() {
    let root = root("staging");
    assert_eq!(links(&root, "kept", json!({})), OF_KEPT);
    assert_eq!(links(&root, "after", json!({})), Vec::<String>::new());
    let before = fingerprint(&root.scope_folder("own"));
    decide(root.path(), &["merge", "dup", "--into", "kept"]).ok();
    let after = fingerprint(&root.scope_folder("own"));
    let store = root.scope_folder("own").join("memory.db");
    assert_eq!(before[&store], after[&store], "the store is not written");
    let succession = "kept supersedes dup".to_owned();
    let moved: Vec<String> = MOVED.map(str::to_owned).into();
    assert_eq!(links(&root, "kept", json!({})), moved);
    let found = links(&root, "after", json!({}));
    assert_eq!(found, ["after derived_from kept"]);
    let of_kind = json!({ "kind": ["prompted_by"] });
    assert_eq!(links(&root, "kept", of_kind), ["kept prompted_by cause"]);
    assert_eq!(links(&root, "after", json!({ "depth": 2 })), moved);
    let all = links(&root, "kept", json!({ "status": "all" }));
    assert!(all.contains(&"waits related kept".to_owned()), "{all:?}");
    assert!(!all.contains(&succession), "{all:?}");
    assert_eq!(
        contradicted(&root),
        ["contrary [\"kept\"]", "kept [\"contrary\"]"]
    );
    decide(root.path(), &["undo"]).ok();
    assert_eq!(links(&root, "kept", json!({})), OF_KEPT);
    assert_eq!(contradicted(&root), Vec::<String>::new());
}

#[test]
fn links_stay_with_a_restored_or_changed_memory() {
    let at_first = ["dup prompted_by cause", "dup related cause"];
    let of_dup = |root: &Root| links(root, "cause", json!({}));
    let root = root("approved");
    let with_kept: Vec<&str> = OF_KEPT.into_iter().chain(at_first).collect();
    assert_eq!(of_dup(&root), with_kept);
    decide(root.path(), &["merge", "dup", "--into", "kept"]).ok();
    let moved = [
        "cause related kept",
        "kept prompted_by cause",
        "kept related cause",
    ];
    assert_eq!(of_dup(&root), moved);
    // It can still be asked for, with its own links.
    let own = links(&root, "dup", json!({}));
    assert!(own.contains(&"dup prompted_by cause".to_owned()), "{own:?}");
    assert!(own.contains(&"dup supersedes old".to_owned()), "{own:?}");
    // Agents see it again where they do not see the other one.
    decide(root.path(), &["reject", "kept"]).ok();
    assert_eq!(of_dup(&root), at_first);
    decide(root.path(), &["undo"]).ok();
    assert_eq!(of_dup(&root), moved);
    let store = Connection::open(root.scope_folder("own").join("memory.db")).unwrap();
    store.sql("UPDATE memories SET title = 'Something else' WHERE id = 'dup'");
    assert_eq!(of_dup(&root), OF_KEPT, "it waits for review again");
    assert_eq!(links(&root, "cause", json!({ "status": "all" })), with_kept);
}

#[test]
fn links_follow_a_chain_of_merges_and_stop_at_a_cycle() {
    let root = root("approved");
    decide(root.path(), &["merge", "dup", "--into", "kept"]).ok();
    decide(root.path(), &["merge", "kept", "--into", "contrary"]).ok();
    let found = links(&root, "after", json!({}));
    assert_eq!(found, ["after derived_from contrary"]);
    let arguments = json!({ "kind": ["derived_from", "related"] });
    let found = links(&root, "contrary", arguments);
    assert_eq!(
        found,
        [
            "after derived_from contrary",
            "cause related contrary",
            "contrary related cause"
        ]
    );
    // What a program wrote by hand may be a cycle: then each is its own.
    let log = root.scope_folder("own").join("decisions.jsonl");
    let text = read_text(&log);
    let of_kept = text
        .lines()
        .rfind(|line| line.contains("\"id\":\"kept\"") && line.contains("\"merge\""))
        .unwrap();
    let cycle = of_kept.replace("\"into\":\"contrary\"", "\"into\":\"dup\"");
    assert_ne!(cycle, of_kept);
    write_file(&log, format!("{text}{cycle}\n"));
    assert_eq!(links(&root, "after", json!({})), ["after derived_from dup"]);
}
