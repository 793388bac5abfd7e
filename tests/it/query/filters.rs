//! Filters: by project, file, tag, type, day and session.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{query, root_of, shown_keys, varied};
use crate::support::{Root, memory, result_ids};

#[test]
fn a_filter_costs_no_result_that_exists() {
    let memories = varied(240);
    let root = root_of(&memories);
    let service = root.service();
    let listed = |field: &Value, wanted: &str| {
        field
            .as_array()
            .into_iter()
            .flatten()
            .any(|entry| entry == wanted)
    };
    type Rule<'a> = (Value, Box<dyn Fn(&Value) -> bool + 'a>);
    let rules: Vec<Rule<'_>> = vec![
        (
            json!({ "tags": ["data_base"] }),
            Box::new(|m| listed(&m["concepts"], "Data-Base")),
        ),
        (
            json!({ "tags": ["DATA BASE", "all"] }),
            Box::new(|m| listed(&m["concepts"], "Data-Base")),
        ),
        (
            json!({ "tags": ["build", "data-base"] }),
            Box::new(|_| false),
        ),
        (
            json!({ "tags": ["build", "data-base"], "match_tags": "any" }),
            Box::new(|_| true),
        ),
        (
            json!({ "project": "ledger-api" }),
            Box::new(|m| m["project"] == "Ledger_API"),
        ),
        (
            json!({ "project": " LEDGER API " }),
            Box::new(|m| m["project"] == "Ledger_API"),
        ),
        (
            json!({ "type": "DECISION" }),
            Box::new(|m| m["type"] == "decision"),
        ),
        (
            json!({ "files": "part3/mod.rs" }),
            Box::new(|m| m["files"][0] == "src/part3/mod.rs"),
        ),
        (
            json!({ "files": "SRC/PART3" }),
            Box::new(|m| m["files"][0] == "src/part3/mod.rs"),
        ),
        (
            json!({ "files": ["part[01]/*.rs"] }),
            Box::new(|m| {
                m["files"][0] == "src/part0/mod.rs" || m["files"][0] == "src/part1/mod.rs"
            }),
        ),
        (
            json!({ "files": ["*.py", "src/part2"] }),
            Box::new(|m| m["files"][0] == "src/part2/mod.rs"),
        ),
        (
            json!({ "session": "s4" }),
            Box::new(|m| m["session"] == "s4"),
        ),
        (
            json!({ "since": "2026-03-05", "until": "2026-03-09" }),
            Box::new(|m| ("2026-03-05".."2026-03-10").contains(&m["created_at"].as_str().unwrap())),
        ),
        (
            json!({ "since": "2026-04-28" }),
            Box::new(|m| m["created_at"].as_str().unwrap() >= "2026-04-28"),
        ),
        (
            json!({ "until": "2026-01-01" }),
            Box::new(|m| m["created_at"].as_str().unwrap() < "2026-01-02"),
        ),
        (
            json!({ "project": "kiosk", "type": "bugfix", "tags": "build", "session": "s1", "files": "mod.rs", "since": "2026-01-02" }),
            Box::new(|m| {
                m["project"] == "kiosk"
                    && m["type"] == "bugfix"
                    && listed(&m["concepts"], "build")
                    && m["session"] == "s1"
                    && m["created_at"].as_str().unwrap() >= "2026-01-02"
            }),
        ),
        (
            json!({ "scope": "beta" }),
            Box::new(|m| m["id"].as_str().unwrap()[1..].parse::<usize>().unwrap() % 4 == 0),
        ),
        (json!({ "project": "nowhere" }), Box::new(|_| false)),
    ];
    for (arguments, rule) in &rules {
        let expected: BTreeSet<&str> = memories
            .iter()
            .filter(|(_, m)| rule(m))
            .map(|(_, m)| m["id"].as_str().unwrap())
            .collect();
        for text in [
            None,
            Some(
                "deadlock timeout migration cache index docker lockfile certificate latency queue retry schema",
            ),
        ] {
            for limit in [1usize, 10, 50] {
                let mut arguments = arguments.clone();
                arguments["limit"] = json!(limit);
                arguments["max_tokens"] = json!(20_000);
                if let Some(text) = text {
                    arguments["query"] = json!(text);
                    // By meaning too, most of these would be uncertain, and three would be shown.
                    arguments["mode"] = json!("lexical");
                }
                let answer = query(&service, arguments.clone());
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
fn a_project_is_known_by_the_aliases_of_its_manifest_and_by_its_scope() {
    let root = Root::new();
    root.manifest("ledger-api", "[projects]\n\"Ledger API\" = [\"payments\"]");
    root.store(
        "ledger-api",
        &[
            memory(
                "a",
                "Named by the scope",
                json!({ "project": "ledger-api" }),
            ),
            memory("b", "Named by an alias", json!({ "project": "PAYMENTS" })),
            memory("c", "Named by nothing", json!({})),
            memory("d", "Named by somebody else", json!({ "project": "kiosk" })),
        ],
    );
    root.store(
        "other",
        &[
            memory("e", "Alias elsewhere", json!({ "project": "payments" })),
            memory("f", "Nameless elsewhere", json!({})),
        ],
    );
    let service = root.service();
    let found = |project: &str| {
        result_ids(&query(&service, json!({ "project": project })))
            .into_iter()
            .collect::<BTreeSet<_>>()
    };
    for project in ["ledger-api", "Ledger_API", "ledger api", "payments"] {
        assert_eq!(
            found(project),
            BTreeSet::from(["a", "b", "c", "e"].map(str::to_owned)),
            "{project}"
        );
    }
    assert_eq!(found("other"), BTreeSet::from(["f"].map(str::to_owned)));
}

#[test]
fn a_path_with_brackets_is_matched_literally() {
    let root = Root::new();
    root.store(
        "web",
        &[memory(
            "a",
            "Route parameters",
            json!({ "files": ["app/[id]/page.tsx", "src/routes/{slug}.ts"] }),
        )],
    );
    let service = root.service();
    for file in ["app/[id]/page.tsx", "[id]/page.tsx", "routes/{slug}.ts"] {
        assert_eq!(
            query(&service, json!({ "files": file }))["total"],
            1,
            "{file}"
        );
    }
}

#[test]
fn globs_and_partial_paths_treat_case_the_same() {
    let root = Root::new();
    root.store(
        "web",
        &[memory(
            "a",
            "Read me",
            json!({ "files": ["Docs/README.md"] }),
        )],
    );
    let service = root.service();
    for file in ["docs/readme.md", "readme", "docs/*.md", "*.MD", "README.*"] {
        assert_eq!(
            query(&service, json!({ "files": file }))["total"],
            1,
            "{file}"
        );
    }
}
