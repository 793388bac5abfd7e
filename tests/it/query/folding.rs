//! What is shown as one result, and what a newer memory replaces.

use std::collections::BTreeSet;

use ack_memory::internal::Setting;
use serde_json::json;

use super::shown_keys;
use crate::support::{Ask, Root, memory, result_ids, titled, unreviewed};

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
    for (one, two) in pairs {
        let root = Root::with("alpha", &[titled("a", &text(one)), titled("b", &text(two))]);
        let query = json!({ "query": "nightly build payment gateway" });
        let shown = result_ids(&root.service().find(query));
        assert_eq!(
            shown.len(),
            2,
            "folded into one although they differ: {one} / {two}"
        );
    }
    let memories = [
        titled("a", &text("E0382")),
        titled("b", &text("E0382")),
        titled("c", &text("E0382").to_uppercase()),
        titled("d", &format!("Note: {}", text("E0382"))),
    ];
    root.store("alpha", &memories);
    root.store("beta", &[titled("a", &text("E0382"))]);
    let answer = root.service().find(json!({ "query": "nightly build" }));
    assert_eq!(result_ids(&answer).len(), 2);
    assert_eq!(shown_keys(&answer).len(), 5);
    assert_eq!(answer["total"], 5);
    let found = result_ids(&root.service().find(json!({}))).len();
    assert_eq!(found, 5, "a list of the newest shows everything");
}

#[test]
fn a_memory_takes_the_place_of_all_that_it_contains() {
    let root = Root::new();
    let rules = ["Postgres locks rows in order", "Postgres waits for a lock"];
    let memories = [
        titled("one", rules[0]),
        titled("two", rules[1]),
        memory("both", "Notes of a night", json!({ "facts": rules })),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    for query in [
        "postgres",
        "postgres locks rows",
        "waits for a lock",
        "night",
    ] {
        let answer = service.find(json!({ "query": query }));
        let results = answer["results"].as_array().unwrap();
        let found = results.iter().find(|hit| hit["id"] == "both");
        let found = found.unwrap_or_else(|| panic!("{query}: {answer:#}"));
        let folded = found["also"].as_array().map_or(0, Vec::len) as u64;
        assert_eq!(results.len() as u64, 1, "{query}: {answer:#}");
        assert_eq!(answer["total"], 1 + folded, "{query}: {answer:#}");
    }
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
    let memories = [
        after("a1", "a2", "approved"),
        after("a2", "a3", "approved"),
        titled("a3", "Cache rule a3"),
        after("b1", "b2", "approved"),
        unreviewed("b2", "Cache rule b2"),
        after("c1", "c2", "approved"),
        memory("c2", "Cache rule c2", json!({ "status": "rejected" })),
        after("d1", "d2", "approved"),
        after("d2", "d1", "approved"),
        after("e1", "e1", "approved"),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    let found = |status: &str| {
        let answer = service.find(json!({ "query": "cache rule", "status": status, "limit": 50 }));
        let all: BTreeSet<String> = shown_keys(&answer).into_iter().map(|(_, id)| id).collect();
        (
            all.into_iter().collect::<Vec<_>>().join(" "),
            answer["hidden"]["superseded"].as_u64().unwrap_or(0),
        )
    };
    assert_eq!(found("approved"), ("a3 b1 c1 d1 d2 e1".to_owned(), 2));
    assert_eq!(found("all"), ("a3 b2 c1 d1 d2 e1".to_owned(), 3));
    for id in ["a1", "a2", "b1"] {
        assert_eq!(service.fetch(json!({ "id": id }))["id"], id);
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
    let memories = [
        rule("a", "gone"),
        rule("b", "bad"),
        rejected,
        rule("first", "a"),
    ];
    root.store("alpha", &memories);
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("alpha")))
    });
    for arguments in [
        json!({ "query": "cache" }),
        json!({}),
        json!({ "query": "caching rules", "mode": "semantic" }),
    ] {
        let answer = service.find(arguments);
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
        assert_lacks!(answer.to_string(), "superseded_by"; "what is not there is not named");
    }
    for id in ["a", "b"] {
        let read = service.fetch(json!({ "id": id }));
        assert_eq!(read["id"], id);
        assert!(read.get("superseded_by").is_none(), "{read}");
    }
    let context = service.brief(json!({}));
    let listed = context["recent_memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap());
    let mut listed: Vec<&str> = listed.collect();
    listed.sort_unstable();
    assert_eq!(listed, ["a", "b"], "{context}");
}
