//! `query_memories`: what is found, in which order, on which page, and how much of it is told.

use std::collections::{BTreeSet, HashMap};

use ack_memory::service::Service;
use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, insert, memory};
use ack_memory::config::Setting;

/// Adds memories to a scope in one transaction.
pub fn bulk(root: &Root, scope: &str, memories: &[Value]) -> Connection {
    let connection = Connection::open(root.scope_folder(scope).join("memory.db")).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; BEGIN")
        .unwrap();
    if !connection.table_exists(None, "memories").unwrap() {
        connection
            .execute_batch(ack_memory::import::write::SCHEMA)
            .unwrap();
    }
    insert(&connection, memories);
    connection.execute_batch("COMMIT").unwrap();
    connection
}

fn query(service: &Service, arguments: Value) -> Value {
    match call(service, "query_memories", arguments.clone()) {
        Ok(answer) => answer,
        Err(error) => panic!("{arguments}: {error}"),
    }
}

fn ids(answer: &Value) -> Vec<String> {
    crate::support::ids(&answer["results"])
}

/// Scope and id of everything a page shows, folded near-duplicates too.
fn shown(answer: &Value) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for hit in answer["results"].as_array().unwrap() {
        for entry in std::iter::once(hit).chain(hit["also"].as_array().into_iter().flatten()) {
            shown.push((
                entry["scope"].as_str().unwrap().to_owned(),
                entry["id"].as_str().unwrap().to_owned(),
            ));
        }
    }
    shown
}

/// Every page of a request, with what happens between two pages.
fn pages(service: &Service, mut arguments: Value, mut between: impl FnMut(usize)) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let answer = query(service, arguments.clone());
        let cursor = answer.get("next_cursor").cloned();
        pages.push(answer);
        assert!(pages.len() < 500, "paging does not end: {arguments}");
        match cursor {
            Some(cursor) => arguments["cursor"] = cursor,
            None => return pages,
        }
        between(pages.len());
    }
}

fn all_shown(pages: &[Value]) -> Vec<(String, String)> {
    pages.iter().flat_map(shown).collect()
}

fn repeated(mut shown: Vec<(String, String)>) -> Vec<(String, String)> {
    shown.sort();
    shown
        .windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0].clone())
        .collect()
}

const WORDS: [&str; 12] = [
    "deadlock",
    "timeout",
    "migration",
    "cache",
    "index",
    "docker",
    "lockfile",
    "certificate",
    "latency",
    "queue",
    "retry",
    "schema",
];

/// `count` memories over two scopes, told apart by their words, some of them near-duplicates.
fn varied(count: usize) -> Vec<(&'static str, Value)> {
    (0..count)
        .map(|n| {
            let title = format!("{} and {} in {}", WORDS[n % 12], WORDS[(n / 3) % 12], WORDS[(n * 7 + 5) % 12]);
            let rest = json!({
                "facts": [format!("{} {} {}", WORDS[(n * 5) % 12], WORDS[(n * n) % 12], WORDS[(n + n / 7) % 12])],
                "concepts": [if n % 2 == 0 { "Data-Base" } else { "build" }, "all"],
                "project": if n % 3 == 0 { "Ledger_API" } else { "kiosk" },
                "type": if n % 5 == 0 { "decision" } else { "bugfix" },
                "files": [format!("src/part{}/mod.rs", n % 4)],
                "session": format!("s{}", n % 6),
                "created_at": format!("2026-{:02}-{:02}T12:00:00Z", 1 + (n / 28) % 12, 1 + n % 28),
            });
            (if n % 4 == 0 { "beta" } else { "alpha" }, memory(&format!("m{n:04}"), &title, rest))
        })
        .collect()
}

fn root_of(memories: &[(&'static str, Value)]) -> Root {
    let root = Root::new();
    for scope in ["alpha", "beta"] {
        let own: Vec<Value> = memories
            .iter()
            .filter(|(name, _)| *name == scope)
            .map(|(_, memory)| memory.clone())
            .collect();
        bulk(&root, scope, &own);
    }
    root
}

#[test]
fn every_page_size_shows_each_match_exactly_once_and_counts_them_all() {
    let memories = varied(120);
    let root = root_of(&memories);
    let service = root.service();
    for arguments in [
        json!({}),
        json!({ "query": "deadlock timeout" }),
        json!({ "query": "migration cache index docker" }),
        json!({ "query": "certificate", "project": "ledger-api" }),
        json!({ "tags": ["data_base"] }),
        json!({ "query": "queue", "tags": ["BUILD", "all"], "type": "Bugfix" }),
    ] {
        let mut sets: Vec<BTreeSet<(String, String)>> = Vec::new();
        for limit in [1, 2, 3, 7, 10, 49, 50] {
            let mut arguments = arguments.clone();
            arguments["limit"] = json!(limit);
            arguments["max_tokens"] = json!(20_000);
            let pages = pages(&service, arguments.clone(), |_| {});
            let total = pages[0]["total"].as_u64().unwrap();
            for (number, page) in pages.iter().enumerate() {
                let count = ids(page).len();
                assert!(count <= limit, "{arguments}: {count}");
                assert!(
                    count == limit || number + 1 == pages.len(),
                    "{arguments}: page {number} holds {count}"
                );
                assert_eq!(page["total"], total, "{arguments}");
            }
            let all = all_shown(&pages);
            assert_eq!(repeated(all.clone()), [], "{arguments}");
            assert_eq!(all.len() as u64, total, "{arguments}");
            sets.push(all.into_iter().collect());
        }
        assert!(
            sets.windows(2).all(|pair| pair[0] == pair[1]),
            "{arguments}"
        );
    }
}

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
                }
                let answer = query(&service, arguments.clone());
                assert_eq!(answer["total"], expected.len(), "{arguments}");
                for (_, id) in shown(&answer) {
                    assert!(expected.contains(id.as_str()), "{arguments}: {id}");
                }
                let distinct = answer["results"].as_array().unwrap().len();
                if text.is_none() {
                    assert_eq!(distinct, limit.min(expected.len()), "{arguments}");
                } else {
                    assert!(
                        distinct == limit || shown(&answer).len() == expected.len(),
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
        ids(&query(&service, json!({ "project": project })))
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
fn a_path_with_brackets_is_found_as_it_stands() {
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
fn globs_and_parts_of_paths_take_case_alike() {
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

#[test]
fn without_words_the_newest_come_first() {
    let memories = varied(60);
    let root = root_of(&memories);
    let answer = query(
        &root.service(),
        json!({ "limit": 50, "max_tokens": 20_000 }),
    );
    let dates: Vec<&str> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["created_at"].as_str().unwrap())
        .collect();
    assert!(dates.windows(2).all(|pair| pair[0] >= pair[1]), "{dates:?}");
    assert!(answer["results"][0].get("score").is_none());
}

#[test]
fn score_decides_then_the_current_project_then_age_then_the_id() {
    let root = Root::new();
    let text = "Rotate the signing key";
    root.store(
        "alpha",
        &[
            memory("old", text, json!({ "created_at": "2025-01-01T00:00:00Z", "facts": ["one"] })),
            memory("new", text, json!({ "created_at": "2026-01-01T00:00:00Z", "facts": ["two"] })),
            memory(
                "mine",
                text,
                json!({ "created_at": "2024-01-01T00:00:00Z", "project": "My_App", "facts": ["six"] }),
            ),
            memory(
                "best",
                text,
                json!({ "created_at": "2020-01-01T00:00:00Z", "facts": ["signing key"] }),
            ),
            memory("twin", text, json!({ "created_at": "2026-01-01T00:00:00Z", "facts": ["ten"] })),
        ],
    );
    root.store(
        "beta",
        &[memory(
            "aaa",
            text,
            json!({ "created_at": "2026-01-01T00:00:00Z", "facts": ["red"] }),
        )],
    );
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("my-app")))
    });
    let answer = query(
        &service,
        json!({ "query": "signing key", "explain": true, "mode": "lexical" }),
    );
    let places: Vec<(String, String)> = shown(&answer).into_iter().collect();
    let expected = [
        ("alpha", "best"),
        ("alpha", "mine"),
        ("alpha", "new"),
        ("alpha", "twin"),
        ("beta", "aaa"),
        ("alpha", "old"),
    ];
    assert_eq!(
        places,
        expected.map(|(scope, id)| (scope.to_owned(), id.to_owned()))
    );
    let newest = query(&service, json!({}));
    assert_ne!(
        ids(&newest)[0],
        "mine",
        "a list of the newest prefers nobody"
    );
}

#[test]
fn the_same_request_gives_the_same_bytes_from_any_service() {
    let memories = varied(150);
    let root = root_of(&memories);
    let (one, two) = (root.service(), root.service());
    for arguments in [
        json!({}),
        json!({ "query": "deadlock timeout", "explain": true }),
        json!({ "query": "deadlok tiemout", "limit": 50 }),
        json!({ "query": "migration", "tags": ["dta-base"] }),
        json!({ "query": "nothing", "project": "kios" }),
    ] {
        let first = query(&one, arguments.clone()).to_string();
        assert_eq!(
            first,
            query(&one, arguments.clone()).to_string(),
            "{arguments}"
        );
        assert_eq!(
            first,
            query(&two, arguments.clone()).to_string(),
            "{arguments}"
        );
    }
}

#[test]
fn a_service_that_followed_changes_answers_like_one_that_starts_after_them() {
    let root = Root::new();
    let writer = bulk(
        &root,
        "alpha",
        &[
            memory(
                "a",
                "Serialization of requests",
                json!({ "concepts": ["SQLite"] }),
            ),
            memory(
                "b",
                "Serialisation of answers",
                json!({ "concepts": ["sqlite"] }),
            ),
            memory("c", "Deploymant checklist", json!({})),
            memory("d", "Deployment checklist", json!({ "status": "staging" })),
        ],
    );
    let old = root.service();
    query(&old, json!({}));
    for change in [
        "DELETE FROM memories WHERE id = 'b'",
        "UPDATE memories SET title = 'Rollout checklist' WHERE id = 'c'",
        "UPDATE memories SET status = 'approved' WHERE id = 'd'",
        "DELETE FROM memories WHERE id = 'a'",
        "INSERT INTO memories (id, title, status, concepts) VALUES ('e', 'Serialization again', 'approved', '[\"sqlite\"]')",
    ] {
        writer.execute_batch(change).unwrap();
        let fresh = root.service();
        for words in [
            "serialisation",
            "serializatoin",
            "deploymant",
            "deploymnt checklist",
            "rollout",
        ] {
            let arguments = json!({ "query": words, "explain": true });
            assert_eq!(
                query(&old, arguments.clone()),
                query(&fresh, arguments),
                "`{words}` after: {change}"
            );
        }
        let arguments = json!({ "tags": ["sqlit"] });
        assert_eq!(
            query(&old, arguments.clone())["suggestions"],
            query(&fresh, arguments)["suggestions"],
            "after: {change}"
        );
        assert_eq!(
            call(&old, "list_scopes", json!({})).unwrap(),
            call(&fresh, "list_scopes", json!({})).unwrap(),
            "after: {change}"
        );
    }
}

#[test]
fn pages_of_the_newest_repeat_nothing_while_rows_come_and_go() {
    let memories = varied(90);
    let root = root_of(&memories);
    let writer = Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap();
    let pages = pages(&root.service(), json!({ "limit": 4 }), |page| {
        insert(
            &writer,
            &[
                memory(
                    &format!("new{page}"),
                    "A new one",
                    json!({ "created_at": "2027-01-01T00:00:00Z" }),
                ),
                memory(
                    &format!("past{page}"),
                    "A late one",
                    json!({ "created_at": "2026-02-10T00:00:00Z" }),
                ),
            ],
        );
        writer
            .execute(
                &format!("DELETE FROM memories WHERE id = 'm{:04}'", page * 5 % 90),
                [],
            )
            .unwrap();
    });
    let all = all_shown(&pages);
    assert_eq!(repeated(all.clone()), []);
    let seen: BTreeSet<String> = all.into_iter().map(|(_, id)| id).collect();
    let lost: Vec<String> = (0..90)
        .map(|n| format!("m{n:04}"))
        .filter(|id| !seen.contains(id))
        .collect();
    let removed: BTreeSet<String> = (1..pages.len())
        .map(|page| format!("m{:04}", page * 5 % 90))
        .collect();
    assert!(lost.iter().all(|id| removed.contains(id)), "lost: {lost:?}");
}

#[test]
fn pages_of_a_search_repeat_and_lose_nothing_while_rows_come_and_go() {
    let root = Root::new();
    let of = |word: &str, n: usize| {
        memory(
            &format!("{word}{n}"),
            &format!("{word} {}", WORDS[n]),
            json!({}),
        )
    };
    let mut memories: Vec<Value> = (0..5)
        .map(|n| of("alder", n))
        .chain((0..9).map(|n| of("birch", n)))
        .collect();
    memories.extend((0..12).map(|n| of("other", n)));
    let writer = bulk(&root, "alpha", &memories);
    // The first page ends among the birches. Then alders become common, so that birches weigh more.
    let pages = pages(
        &root.service(),
        json!({ "query": "alder birch", "limit": 8, "max_tokens": 20_000 }),
        |page| {
            if page == 1 {
                let added: Vec<Value> = (0..40)
                    .map(|n| {
                        memory(
                            &format!("new{n}"),
                            &format!("Note {n}0"),
                            json!({ "narrative": format!("alder {}", "filler ".repeat(n)) }),
                        )
                    })
                    .collect();
                writer.execute_batch("BEGIN").unwrap();
                insert(&writer, &added);
                writer
                    .execute_batch("DELETE FROM memories WHERE id = 'birch8'; COMMIT")
                    .unwrap();
            }
        },
    );
    let all = all_shown(&pages);
    assert_eq!(repeated(all.clone()), []);
    let seen: BTreeSet<String> = all.into_iter().map(|(_, id)| id).collect();
    let lost: Vec<String> = (0..5)
        .map(|n| format!("alder{n}"))
        .chain((0..8).map(|n| format!("birch{n}")))
        .filter(|id| !seen.contains(id))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
}

#[test]
fn a_page_that_ends_with_a_near_duplicate_from_another_scope_goes_on_behind_it() {
    let root = Root::new();
    let twin = "Postgres connections are exhausted when every worker opens its own pool";
    root.store(
        "alpha",
        &[
            memory("a1", twin, json!({ "created_at": "2026-01-04T00:00:00Z" })),
            memory(
                "a2",
                "Postgres connections behind a pool",
                json!({ "facts": ["pool", "postgres connections pool"] }),
            ),
        ],
    );
    root.store(
        "zeta",
        &[
            memory("z1", twin, json!({ "created_at": "2026-01-03T00:00:00Z" })),
            memory("z2", "A pool of threads", json!({})),
        ],
    );
    root.store(
        "beta",
        &[memory(
            "a1",
            twin,
            json!({ "created_at": "2026-01-02T00:00:00Z" }),
        )],
    );
    let service = root.service();
    for words in [
        "postgres connections exhausted pool",
        "pool",
        "postgres pool worker",
    ] {
        for limit in 1..=3 {
            let pages = pages(&service, json!({ "query": words, "limit": limit }), |_| {});
            let all = all_shown(&pages);
            assert_eq!(repeated(all.clone()), [], "`{words}` by {limit}: {all:?}");
            assert_eq!(
                all.len() as u64,
                pages[0]["total"].as_u64().unwrap(),
                "`{words}` by {limit}"
            );
        }
    }
}

fn wordy(count: usize) -> Root {
    let root = Root::new();
    let memories: Vec<Value> = (0..count)
        .map(|n| {
            let narrative = format!("{} ", WORDS[n % 12]).repeat(150) + &"データベースの接続が切れた。".repeat(n % 5);
            memory(
                &format!("ack_wordy_2026-01-{:02}_{n:03}", 1 + n % 28),
                &format!("Connection {} is lost under {} load", WORDS[n % 12], WORDS[(n / 12 + n) % 12]),
                json!({ "subtitle": "What happened and why ".repeat(n % 9), "facts": (0..n % 7).map(|fact| format!("fact {fact} of connection {n}: {}", WORDS[fact])).collect::<Vec<_>>(), "narrative": narrative, "concepts": ["connection", "load"] }),
            )
        })
        .collect();
    bulk(&root, "alpha", &memories);
    root.store("beta", &[memory("b1", "Connection pools", json!({}))]);
    root.store("diary", &[memory("d1", "Connection to home", json!({}))]);
    root.manifest("diary", "visibility = \"private\"");
    root
}

#[test]
fn an_answer_keeps_within_its_tokens_and_the_next_page_goes_on_where_it_was_cut() {
    let root = wordy(60);
    let service = root.service();
    let (mut over, mut wrong) = (Vec::new(), Vec::new());
    for max_tokens in [200, 250, 300, 400, 600, 1_000, 2_000, 4_000] {
        for arguments in [
            json!({}),
            json!({ "query": "connection lost" }),
            json!({ "query": "connection deadlock", "detail": "full", "explain": true, "limit": 50 }),
            json!({ "query": "no such words whatever", "tags": ["conection"], "project": "x" }),
        ] {
            let mut arguments = arguments.clone();
            arguments["max_tokens"] = json!(max_tokens);
            let pages = pages(&service, arguments.clone(), |_| {});
            let mut worst = 0;
            for page in &pages {
                // What a vocabulary in use makes of it: the estimate stands well above that for a cursor.
                let cost = crate::tokens::cost(&page.to_string());
                if cost > max_tokens {
                    worst = worst.max(cost);
                }
                assert!(
                    !page["results"].as_array().unwrap().is_empty() || page["total"] == 0,
                    "{arguments}: an empty page"
                );
            }
            if worst > 0 {
                over.push(format!("up to {worst} tokens for {arguments}"));
            }
            let all = all_shown(&pages);
            let (twice, count) = (repeated(all.clone()).len(), all.len());
            if twice > 0 || count as u64 != pages[0]["total"].as_u64().unwrap() {
                wrong.push(format!(
                    "{count} of {} are shown, {twice} twice: {arguments}",
                    pages[0]["total"]
                ));
            }
        }
    }
    assert!(
        over.is_empty() && wrong.is_empty(),
        "{} answers are too long:\n{}\n{}",
        over.len(),
        over.join("\n"),
        wrong.join("\n")
    );
}

#[test]
fn near_duplicates_are_neither_lost_nor_repeated_where_an_answer_is_cut() {
    let root = Root::new();
    let twin = "Postgres connections are exhausted when every worker of the payment service opens its own pool";
    let mut memories: Vec<Value> = (0..30)
        .map(|n| {
            memory(
                &format!("ack_twin_2026-01-04_{n:03}"),
                twin,
                json!({ "created_at": format!("2026-01-{:02}T00:00:00Z", 30 - n) }),
            )
        })
        .collect();
    memories.extend((0..20).map(|n| {
        memory(
            &format!("ack_solo_{n:03}"),
            &format!(
                "Postgres connections {} {}",
                WORDS[n % 12],
                WORDS[(n + n / 12 + 1) % 12]
            ),
            json!({ "created_at": format!("2026-02-{:02}T00:00:00Z", 1 + n) }),
        )
    }));
    bulk(&root, "alpha", &memories);
    let service = root.service();
    let mut wrong = Vec::new();
    for (words, max_tokens) in [
        ("postgres connections", 200),
        ("postgres connections", 400),
        ("postgres connections", 900),
        ("postgres connections", 20_000),
        ("worker pool", 200),
        ("worker pool", 300),
    ] {
        let pages = pages(
            &service,
            json!({ "query": words, "max_tokens": max_tokens }),
            |_| {},
        );
        let all = all_shown(&pages);
        let (twice, count) = (repeated(all.clone()).len(), all.len());
        if twice > 0 || count as u64 != pages[0]["total"].as_u64().unwrap() {
            wrong.push(format!(
                "{count} of {} are shown, {twice} twice: `{words}` in {max_tokens} tokens",
                pages[0]["total"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.join(
            "
"
        )
    );
}

#[test]
fn a_concise_answer_leaves_out_what_a_full_one_adds() {
    let root = Root::new();
    let facts: Vec<String> = (0..9)
        .map(|n| format!("fact {n} {}", "long ".repeat(100)))
        .collect();
    root.store(
        "alpha",
        &[memory(
            "a",
            "One",
            json!({ "facts": facts, "narrative": "The story", "files": ["src/a.rs"], "session": "s", "confidence": 0.5, "type": "bugfix" }),
        )],
    );
    let service = root.service();
    let concise = &query(&service, json!({}))["results"][0];
    assert_eq!(concise["facts"].as_array().unwrap().len(), 5);
    assert!(
        ["narrative", "files", "session", "confidence"]
            .iter()
            .all(|field| concise.get(field).is_none()),
        "{concise}"
    );
    let full = &query(&service, json!({ "detail": "full", "max_tokens": 20_000 }))["results"][0];
    assert_eq!(full["facts"].as_array().unwrap().len(), 9);
    assert_eq!(
        (
            &full["narrative"],
            &full["files"][0],
            &full["session"],
            &full["confidence"]
        ),
        (
            &json!("The story"),
            &json!("src/a.rs"),
            &json!("s"),
            &json!(0.5)
        )
    );
}

#[test]
fn an_empty_result_says_what_to_try() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "a",
                "Lock order",
                json!({ "project": "ledger-api", "concepts": ["postgres"] }),
            ),
            memory("b", "Unreviewed zeppelin", json!({ "status": "staging" })),
        ],
    );
    let service = root.service();
    insta::assert_json_snapshot!(query(&service, json!({ "query": "nonsense", "project": "ledger-apo", "tags": ["postgress"], "scope": "alpha" })), @r#"
{
  "results": [],
  "total": 0,
  "suggestions": [
    "No memory was learned in project \"ledger-apo\"; like it: ledger-api",
    "No memory has the tag \"postgress\"; like it: postgres",
    "Leave out filters (tags, project, type, files, since, until, session)",
    "Try broader search terms",
    "Leave `scope` out to search every shared scope",
    "Use list_scopes to check available scopes"
  ],
  "searched": {
    "scopes": [
      "alpha"
    ]
  },
  "notes": [
    {
      "kind": "no_word_matches",
      "message": "no approved memory that passes the filters contains a word of the query"
    }
  ]
}
"#);
    let hidden = query(&service, json!({ "query": "zeppelin" }));
    assert_eq!(hidden["hidden"], json!({ "by_status": 1 }));
    assert_eq!(hidden["notes"][0]["kind"], "no_word_matches");
    assert_eq!(hidden["notes"][1]["kind"], "hidden_by_status");
    assert!(
        hidden["suggestions"][0]
            .as_str()
            .unwrap()
            .contains("hidden by their status")
    );
}

#[test]
fn what_a_status_filter_hides_is_counted_and_rejected_memories_are_not() {
    let root = Root::new();
    let with = |id: &str, status: &str| {
        memory(id, &format!("Lock rule {id}"), json!({ "status": status }))
    };
    root.store(
        "alpha",
        &[
            with("a", "approved"),
            with("b", "promoted"),
            with("c", "staging"),
            with("d", "staging"),
            with("e", "rejected"),
            with("f", "nonsense"),
        ],
    );
    let service = root.service();
    let count = |status: &str| {
        let answer = query(&service, json!({ "query": "lock", "status": status }));
        (
            answer["total"].as_u64().unwrap(),
            answer["hidden"]["by_status"].as_u64().unwrap_or(0),
        )
    };
    assert_eq!(
        (count("approved"), count("staging"), count("all")),
        ((2, 2), (2, 2), (4, 0))
    );
}

#[test]
fn near_duplicates_are_folded_and_memories_that_differ_in_a_number_or_a_name_are_not() {
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
        if ids(&answer).len() != 2 {
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
            memory("c", &format!("Note: {}", text("E0382")), json!({})),
        ],
    );
    root.store("beta", &[memory("a", &text("E0382"), json!({}))]);
    let answer = query(&root.service(), json!({ "query": "nightly build" }));
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(shown(&answer).len(), 4);
    assert_eq!(answer["total"], 4);
    assert_eq!(
        ids(&query(&root.service(), json!({}))).len(),
        4,
        "a list of the newest shows everything"
    );
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
        ids(&query(
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
        let all: BTreeSet<String> = shown(&answer).into_iter().map(|(_, id)| id).collect();
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
fn a_memory_whose_successor_is_nowhere_or_was_rejected_stays_visible_in_every_tool() {
    let root = Root::new();
    let rule = |id: &str, newer: &str| {
        memory(
            id,
            &format!("Cache rule {id}"),
            json!({ "superseded_by": newer, "project": "alpha" }),
        )
    };
    let rejected = memory("bad", "Cache rule bad", json!({ "status": "rejected" }));
    // `first` is replaced by `a`, which stands although its own successor is nowhere.
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
        let mut found = ids(&answer);
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
    let told = context["recent_memories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap());
    let mut told: Vec<&str> = told.collect();
    told.sort_unstable();
    assert_eq!(told, ["a", "b"], "{context}");
}

#[test]
fn explain_tells_rank_score_and_terms() {
    let root = root_of(&varied(40));
    let answer = query(
        &root.service(),
        json!({ "query": "deadlock timeout", "explain": true }),
    );
    for (position, hit) in answer["results"].as_array().unwrap().iter().enumerate() {
        let leg = &hit["explanation"]["legs"][0];
        assert_eq!(leg["leg"], "lexical");
        assert!(leg["rank"].as_u64().unwrap() >= 1);
        assert!(hit["explanation"]["rank"].as_u64().unwrap() as usize > position);
        assert_eq!(hit["explanation"]["legs"][1]["leg"], "semantic");
        let fusion = hit["explanation"]["fusion"].as_str().unwrap();
        assert!(
            fusion.contains(&format!("= {:.3}", hit["score"].as_f64().unwrap())),
            "{fusion}: {hit}"
        );
        assert!(!leg["terms"].as_array().unwrap().is_empty());
        assert!(hit["why"].is_string());
    }
    assert!(
        query(&root.service(), json!({ "query": "deadlock" }))["results"][0]
            .get("explanation")
            .is_none()
    );
}

#[test]
fn a_query_of_common_words_alone_and_an_empty_one_say_so() {
    let root = Root::new();
    root.store(
        "alpha",
        &[memory("a", "What to do when it is not there", json!({}))],
    );
    let service = root.service();
    let kinds = |arguments: Value| {
        query(&service, arguments)["notes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|note| note["kind"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(json!({ "query": "what is it" })), ["only_stop_words"]);
    assert_eq!(kinds(json!({ "query": "  " })), ["empty_query"]);
    assert_eq!(
        kinds(json!({ "query": "there", "mode": "hybrid" })),
        ["only_stop_words"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_pages_keep_their_limit_and_show_each_match_once(
        rows in proptest::collection::vec((0..12usize, 0..12usize, 0..3usize, 0..2usize, 0..4usize), 1..40),
        words in proptest::collection::vec(0..12usize, 0..3),
        limit in 1..12usize,
        tokens in prop::sample::select(vec![200usize, 350, 800, 20_000]),
        filter in 0..5usize,
    ) {
        let root = Root::new();
        let mut scopes: HashMap<&str, Vec<Value>> = HashMap::from([("alpha", Vec::new()), ("beta", Vec::new())]);
        for (number, (one, two, length, scope, status)) in rows.iter().enumerate() {
            let title = format!("{} {} the nightly build of the gateway waits for its turn and the next", WORDS[*one], WORDS[*two]);
            let rest = json!({
                "narrative": format!("{} ", WORDS[(one * two) % 12]).repeat(length * 20), "project": WORDS[*one], "type": WORDS[*two],
                "status": (["approved", "staging", "promoted", "rejected"][*status]),
                "created_at": format!("2026-01-{:02}T00:00:00Z", 1 + (one * 5 + two) % 28),
            });
            scopes.get_mut(["alpha", "beta"][*scope]).unwrap().push(memory(&format!("m{number}"), &title, rest));
        }
        scopes.iter().for_each(|(scope, memories)| drop(bulk(&root, scope, memories)));
        let mut arguments = json!({ "limit": limit, "max_tokens": tokens });
        if !words.is_empty() {
            arguments["query"] = json!(words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" "));
        }
        match filter {
            1 => arguments["project"] = json!(WORDS[rows[0].0]),
            2 => arguments["type"] = json!(WORDS[rows[0].1]),
            3 => arguments["status"] = json!("all"),
            4 => arguments["scope"] = json!("beta"),
            _ => {}
        }
        let pages = pages(&root.service(), arguments.clone(), |_| {});
        let all = all_shown(&pages);
        prop_assert_eq!(repeated(all.clone()), []);
        prop_assert_eq!(all.len() as u64, pages[0]["total"].as_u64().unwrap());
        prop_assert!(pages.iter().all(|page| ids(page).len() <= limit));
    }
}

#[test]
fn a_list_begins_with_the_oldest_where_that_is_asked_for_and_goes_on_page_by_page() {
    let root = Root::new();
    let day = |n: usize| format!("2026-{:02}-{:02}T00:00:00Z", 1 + n / 28, 1 + n % 28);
    for (scope, from) in [("alpha", 0), ("beta", 1)] {
        let memories: Vec<Value> = (0..160)
            .map(|n| n * 2 + from)
            .map(|n| {
                memory(
                    &format!("m{n:03}"),
                    &format!("Note {n}"),
                    json!({ "status": "staging", "created_at": day(n) }),
                )
            })
            .collect();
        root.store(scope, &memories);
    }
    root.store(
        "undated",
        &[memory(
            "never",
            "Undated",
            json!({ "status": "staging", "created_at": null }),
        )],
    );
    let service = root.service();
    let mut seen = Vec::new();
    let mut arguments = json!({ "status": "staging", "order": "oldest", "limit": 33 });
    loop {
        let page = call(&service, "query_memories", arguments.clone()).unwrap();
        seen.extend(ids(&page));
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => break,
        }
    }
    let mut expected: Vec<String> = (0..320).map(|n| format!("m{n:03}")).collect();
    expected.push("never".to_owned());
    assert_eq!(seen, expected);
    let newest = call(
        &service,
        "query_memories",
        json!({ "status": "staging", "order": "newest", "limit": 2 }),
    )
    .unwrap();
    assert_eq!(newest["results"][0]["id"], "m319");
    // A cursor of one order is none of the other's.
    arguments["order"] = json!("newest");
    assert_eq!(
        call(&service, "query_memories", arguments)
            .unwrap_err()
            .code(),
        "invalid_cursor"
    );
    let searched = call(
        &service,
        "query_memories",
        json!({ "query": "note 7", "order": "oldest", "status": "all" }),
    )
    .unwrap();
    assert!(
        searched["notes"].to_string().contains("best first"),
        "{}",
        searched["notes"]
    );
}
