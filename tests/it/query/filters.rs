//! Filters: by project, file, tag, type, day and session.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{root_of, shown_keys, varied};
use crate::support::{Ask, Root, memory};

#[test]
fn a_filter_costs_no_result_that_exists() {
    let memories = varied(240);
    let root = root_of(&memories);
    let service = root.service();
    let tagged = |m: &Value, tag: &str| m["concepts"].as_array().unwrap().contains(&json!(tag));
    let created = |m: &Value| m["created_at"].as_str().unwrap().to_owned();
    let in_part = |m: &Value, part: u32| m["files"][0] == format!("src/part{part}/mod.rs");
    type Rule<'a> = (Value, &'a dyn Fn(&Value) -> bool);
    let everything = json!({ "project": "kiosk", "type": "bugfix", "tags": "build", "session": "s1", "files": "mod.rs", "since": "2026-01-02" });
    let any = json!({ "tags": ["build", "data-base"], "match_tags": "any" });
    let of_databases = |m: &Value| tagged(m, "Data-Base");
    let of_ledger = |m: &Value| m["project"] == "Ledger_API";
    let first_parts = |m: &Value| in_part(m, 0) || in_part(m, 1);
    let some_days = json!({ "since": "2026-03-05", "until": "2026-03-09" });
    let rules: [Rule<'_>; 18] = [
        (json!({ "tags": ["data_base"] }), &of_databases),
        (json!({ "tags": ["DATA BASE", "all"] }), &of_databases),
        (json!({ "tags": ["build", "data-base"] }), &|_| false),
        (any, &|_| true),
        (json!({ "project": "ledger-api" }), &of_ledger),
        (json!({ "project": " LEDGER API " }), &of_ledger),
        (json!({ "type": "DECISION" }), &|m| m["type"] == "decision"),
        (json!({ "files": "part3/mod.rs" }), &|m| in_part(m, 3)),
        (json!({ "files": "SRC/PART3" }), &|m| in_part(m, 3)),
        (json!({ "files": ["part[01]/*.rs"] }), &first_parts),
        (json!({ "files": ["*.py", "src/part2"] }), &|m| in_part(m, 2)),
        (json!({ "session": "s4" }), &|m| m["session"] == "s4"),
        (some_days, &|m| ("2026-03-05".."2026-03-10").contains(&created(m).as_str())),
        (json!({ "since": "2026-04-28" }), &|m| *created(m) >= *"2026-04-28"),
        (json!({ "until": "2026-01-01" }), &|m| *created(m) < *"2026-01-02"),
        (everything, &|m| {
            m["project"] == "kiosk"
                && m["type"] == "bugfix"
                && tagged(m, "build")
                && m["session"] == "s1"
                && *created(m) >= *"2026-01-02"
        }),
        (json!({ "scope": "beta" }), &|m| {
            m["id"].as_str().unwrap()[1..].parse::<usize>().unwrap() % 4 == 0
        }),
        (json!({ "project": "nowhere" }), &|_| false),
    ];
    let words = "deadlock timeout migration cache index docker lockfile certificate latency queue retry schema";
    for (arguments, rule) in &rules {
        let expected: BTreeSet<&str> = memories
            .iter()
            .filter(|(_, m)| rule(m))
            .map(|(_, m)| m["id"].as_str().unwrap())
            .collect();
        for text in [None, Some(words)] {
            for limit in [1usize, 10, 50] {
                let mut arguments = arguments.clone();
                arguments["limit"] = json!(limit);
                arguments["max_tokens"] = json!(20_000);
                if let Some(text) = text {
                    arguments["query"] = json!(text);
                    // By meaning too, most of these would be uncertain, and three would be shown.
                    arguments["mode"] = json!("lexical");
                }
                let answer = service.find(arguments.clone());
                assert_eq!(answer["total"], expected.len(), "{arguments}");
                for (_, id) in shown_keys(&answer) {
                    assert!(expected.contains(id.as_str()), "{arguments}: {id}");
                }
                let distinct = answer["results"].as_array().unwrap().len();
                if text.is_none() {
                    assert_eq!(distinct, limit.min(expected.len()), "{arguments}");
                } else {
                    assert!(
                        distinct == limit || shown_keys(&answer).len() == expected.len(),
                        "{arguments}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_path_with_brackets_is_matched_literally() {
    let root = Root::new();
    let files = json!({ "files": ["app/[id]/page.tsx", "src/routes/{slug}.ts"] });
    root.store("web", &[memory("a", "Route parameters", files)]);
    let service = root.service();
    for file in ["app/[id]/page.tsx", "[id]/page.tsx", "routes/{slug}.ts"] {
        assert_eq!(service.find(json!({ "files": file }))["total"], 1, "{file}");
    }
}

#[test]
fn globs_and_partial_paths_treat_case_the_same() {
    let root = Root::new();
    let files = json!({ "files": ["Docs/README.md"] });
    root.store("web", &[memory("a", "Read me", files)]);
    let service = root.service();
    for file in ["docs/readme.md", "readme", "docs/*.md", "*.MD", "README.*"] {
        assert_eq!(service.find(json!({ "files": file }))["total"], 1, "{file}");
    }
}
