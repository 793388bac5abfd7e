//! Pages: each match on exactly one of them, whatever their size and whatever changes in between.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{WORDS, all_shown, bulk, pages, repeated, root_of, varied};
use crate::arguments::call;
use crate::support::{Root, insert, memory, result_ids};

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
                let count = result_ids(page).len();
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
fn pages_of_a_list_repeat_nothing_while_rows_change() {
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
fn pages_of_a_search_repeat_and_lose_nothing_while_rows_change() {
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
fn a_page_that_ends_with_a_folded_duplicate_continues_after_it() {
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
            memory("z3", "Pools", json!({ "facts": [format!("{twin}.")] })),
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
fn an_answer_stays_within_max_tokens_and_the_next_page_continues() {
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
                // By a vocabulary in use: the estimate is well above that for a cursor.
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
fn truncation_neither_loses_nor_repeats_near_duplicates() {
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
    memories.push(memory("ack_whole", "Payments", json!({ "facts": [twin] })));
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
fn an_oldest_first_list_has_pages() {
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
        seen.extend(result_ids(&page));
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
    // A cursor of one order is not valid in the other.
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
        searched["notes"]
            .to_string()
            .contains("ordered by relevance"),
        "{}",
        searched["notes"]
    );
}
