//! What is shown as one result, and what a newer memory replaces.

use std::collections::BTreeSet;

use ack_memory::internal::Setting;
use serde_json::json;

use super::{query, shown_keys};
use crate::arguments::call;
use crate::support::{Root, memory, result_ids};

#[test]
fn equal_memories_are_folded_and_memories_that_differ_in_a_number_or_a_name_are_not() {
    let root = Root::new();
    let text = |what: &str| {
        format!(
            "The nightly build of the payment gateway fails with {what} because the toolchain image is older than the lock file expects"
        )
    };
    let pairs = [
        ("E0382", "E0383"),
        ("version 1.2.3", "version 1.2.4"),
        ("port 80", "port 81"),
        ("1.5 seconds", "2.5 seconds"),
        ("3 retries", "4 retries"),
        ("useEffect", "useMemo"),
        ("ERR_PNPM_OUTDATED_LOCKFILE", "ERR_PNPM_FROZEN_LOCKFILE"),
        ("--frozen-lockfile", "--no-lockfile"),
        ("tokio::select", "tokio::join"),
        ("src/store/open.rs", "src/store/read.rs"),
        ("SIGKILL", "SIGTERM"),
        ("v2", "v3"),
        ("C", "C++"),
    ];
    let mut folded = Vec::new();
    for (one, two) in pairs {
        let root = Root::new();
        root.store(
            "alpha",
            &[
                memory("a", &text(one), json!({})),
                memory("b", &text(two), json!({})),
            ],
        );
        let answer = query(
            &root.service(),
            json!({ "query": "nightly build payment gateway" }),
        );
        if result_ids(&answer).len() != 2 {
            folded.push(format!("{one} / {two}"));
        }
    }
    assert!(
        folded.is_empty(),
        "folded into one although they differ: {folded:?}"
    );
    root.store(
        "alpha",
        &[
            memory("a", &text("E0382"), json!({})),
            memory("b", &text("E0382"), json!({})),
            memory("c", &text("E0382").to_uppercase(), json!({})),
            memory("d", &format!("Note: {}", text("E0382")), json!({})),
        ],
    );
    root.store("beta", &[memory("a", &text("E0382"), json!({}))]);
    let answer = query(&root.service(), json!({ "query": "nightly build" }));
    assert_eq!(result_ids(&answer).len(), 2);
    assert_eq!(shown_keys(&answer).len(), 5);
    assert_eq!(answer["total"], 5);
    assert_eq!(
        result_ids(&query(&root.service(), json!({}))).len(),
        5,
        "a list of the newest shows everything"
    );
}

#[test]
fn a_memory_takes_the_place_of_all_that_it_contains() {
    let root = Root::new();
    let rules = ["Postgres locks rows in order", "Postgres waits for a lock"];
    root.store(
        "alpha",
        &[
            memory("one", rules[0], json!({})),
            memory("two", rules[1], json!({})),
            memory("both", "Notes of a night", json!({ "facts": rules })),
        ],
    );
    let service = root.service();
    for query in [
        "postgres",
        "postgres locks rows",
        "waits for a lock",
        "night",
    ] {
        let answer = call(&service, "query_memories", json!({ "query": query })).unwrap();
        let results = answer["results"].as_array().unwrap();
        let found = results.iter().find(|hit| hit["id"] == "both");
        let found = found.unwrap_or_else(|| panic!("{query}: {answer:#}"));
        let folded = found["also"].as_array().map_or(0, Vec::len) as u64;
        assert_eq!(results.len() as u64, 1, "{query}: {answer:#}");
        assert_eq!(answer["total"], 1 + folded, "{query}: {answer:#}");
    }
}

#[test]
fn a_memory_that_says_the_opposite_is_not_folded() {
    let root = Root::new();
    let text = |not: &str| {
        format!(
            "Do{not} raise the busy timeout of the ledger database before a migration of the \
             account table runs in production"
        )
    };
    root.store(
        "alpha",
        &[
            memory("a", &text(""), json!({})),
            memory("b", &text(" not"), json!({})),
        ],
    );
    assert_eq!(
        result_ids(&query(
            &root.service(),
            json!({ "query": "busy timeout migration" })
        ))
        .len(),
        2
    );
}

#[test]
fn a_superseded_memory_is_left_out_of_results_and_still_read_by_its_id() {
    let root = Root::new();
    let after = |id: &str, newer: &str, status: &str| {
        memory(
            id,
            &format!("Cache rule {id}"),
            json!({ "superseded_by": newer, "status": status }),
        )
    };
    root.store(
        "alpha",
        &[
            after("a1", "a2", "approved"),
            after("a2", "a3", "approved"),
            memory("a3", "Cache rule a3", json!({})),
            after("b1", "b2", "approved"),
            memory("b2", "Cache rule b2", json!({ "status": "staging" })),
            after("c1", "c2", "approved"),
            memory("c2", "Cache rule c2", json!({ "status": "rejected" })),
            after("d1", "d2", "approved"),
            after("d2", "d1", "approved"),
            after("e1", "e1", "approved"),
        ],
    );
    let service = root.service();
    let found = |status: &str| {
        let answer = query(
            &service,
            json!({ "query": "cache rule", "status": status, "limit": 50 }),
        );
        let all: BTreeSet<String> = shown_keys(&answer).into_iter().map(|(_, id)| id).collect();
        (
            all.into_iter().collect::<Vec<_>>().join(" "),
            answer["hidden"]["superseded"].as_u64().unwrap_or(0),
        )
    };
    assert_eq!(found("approved"), ("a3 b1 c1 d1 d2 e1".to_owned(), 2));
    assert_eq!(found("all"), ("a3 b2 c1 d1 d2 e1".to_owned(), 3));
    for id in ["a1", "a2", "b1"] {
        assert_eq!(
            call(&service, "get_memory", json!({ "id": id })).unwrap()["id"],
            id
        );
    }
}

#[test]
fn a_memory_with_a_missing_or_rejected_successor_stays_visible() {
    let root = Root::new();
    let rule = |id: &str, newer: &str| {
        memory(
            id,
            &format!("Cache rule {id}"),
            json!({ "superseded_by": newer, "project": "alpha" }),
        )
    };
    let rejected = memory("bad", "Cache rule bad", json!({ "status": "rejected" }));
    // `first` is replaced by `a`, which is shown although its own successor does not exist.
    root.store(
        "alpha",
        &[
            rule("a", "gone"),
            rule("b", "bad"),
            rejected,
            rule("first", "a"),
        ],
    );
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("alpha")))
    });
    for arguments in [
        json!({ "query": "cache" }),
        json!({}),
        json!({ "query": "caching rules", "mode": "semantic" }),
    ] {
        let answer = query(&service, arguments);
        let mut found = result_ids(&answer);
        found.extend(
            answer["results"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|hit| {
                    let also = hit["also"].as_array().into_iter().flatten();
                    also.map(|also| also["id"].as_str().unwrap().to_owned())
                }),
        );
        found.sort();
        assert_eq!(found, ["a", "b"], "{answer}");
        assert_eq!(answer["hidden"]["superseded"], 1, "{answer}");
        assert!(
            !answer.to_string().contains("superseded_by"),
            "what is not there is not named: {answer}"
        );
    }
    for id in ["a", "b"] {
        let read = call(&service, "get_memory", json!({ "id": id })).unwrap();
        assert_eq!(read["id"], id);
        assert!(read.get("superseded_by").is_none(), "{read}");
    }
    let context = call(&service, "get_context", json!({})).unwrap();
    let listed = context["recent_memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap());
    let mut listed: Vec<&str> = listed.collect();
    listed.sort_unstable();
    assert_eq!(listed, ["a", "b"], "{context}");
}
