//! What is shown as one result, and what a newer memory replaces.

use std::collections::BTreeSet;

use serde_json::json;

use super::shown_keys;
use crate::support::{Ask, Root, memory};

#[test]
fn a_superseded_memory_is_left_out_of_results_and_still_read_by_its_id() {
    let root = Root::new();
    // Each with what comes after it.
    let pairs = "a1 a2 | a2 a3 | a3 | b1 b2 | b2 | c1 c2 | c2 | d1 d2 | d2 d1 | e1 e1 | f1 gone";
    let rule = |pair: &str| {
        let mut ids = pair.split(' ');
        let id = ids.next().unwrap();
        let status = match id {
            "b2" => "staging",
            "c2" => "rejected",
            _ => "approved",
        };
        let rest = json!({ "superseded_by": ids.next(), "status": status });
        memory(id, &format!("Cache rule {id}"), rest)
    };
    root.store("alpha", &pairs.split(" | ").map(rule).collect::<Vec<_>>());
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
    assert_eq!(found("all"), ("a3 b1 b2 c1 d1 d2 e1 f1".to_owned(), 2));
    for id in ["a1", "a2", "b1"] {
        assert_eq!(service.fetch(json!({ "id": id }))["id"], id);
    }
}
