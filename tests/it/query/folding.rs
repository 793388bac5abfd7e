//! What is shown as one result, and what a newer memory replaces.

use std::collections::BTreeSet;

use serde_json::json;

use super::shown_keys;
use crate::support::{Ask, Root, memory, titled, unreviewed};

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
        after("f1", "gone", "approved"),
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
    assert_eq!(found("approved"), ("a3 b1 c1 d1 d2 e1 f1".to_owned(), 2));
    assert_eq!(found("all"), ("a3 b2 c1 d1 d2 e1 f1".to_owned(), 3));
    for id in ["a1", "a2", "b1"] {
        assert_eq!(service.fetch(json!({ "id": id }))["id"], id);
    }
}
