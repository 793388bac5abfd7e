//! Pages: each match on exactly one of them, whatever their size and whatever changes in between.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{WORDS, all_shown, bulk, pages, repeated, root_of, shown_once, varied};
use crate::support::{Ask, Root, Sql, insert, memory, result_ids, titled};

#[test]
fn every_page_size_shows_each_match_exactly_once_and_counts_them_all() {
    let root = root_of(&varied(120));
    let service = root.service();
    for arguments in [
        json!({}),
        json!({ "query": "deadlock timeout" }),
        json!({ "query": "migration cache index docker" }),
        json!({ "query": "certificate", "project": "ledger-api" }),
        json!({ "tags": ["data_base"] }),
        json!({ "query": "queue", "tags": ["BUILD", "all"], "type": "Bugfix" }),
    ] {
        let mut sets = Vec::new();
        for limit in [1, 2, 3, 7, 10, 49, 50] {
            let mut arguments = arguments.clone();
            arguments["limit"] = json!(limit);
            arguments["max_tokens"] = json!(20_000);
            let pages = pages(&service, arguments.clone(), |_| {});
            for (number, page) in pages.iter().enumerate() {
                let count = result_ids(page).len();
                let is_full = count == limit || (count < limit && number + 1 == pages.len());
                assert!(is_full, "{arguments}: page {number} holds {count}");
                assert_eq!(page["total"], pages[0]["total"], "{arguments}");
            }
            sets.push(shown_once(&pages, &arguments.to_string()));
        }
        assert!(sets.windows(2).all(|pair| pair[0] == pair[1]), "{arguments}");
    }
}

#[test]
fn pages_of_a_list_repeat_nothing_while_rows_change() {
    let root = root_of(&varied(90));
    let writer = Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap();
    let removed = |page: usize| format!("m{:04}", page * 5 % 90);
    let later = json!({ "created_at": "2027-01-01T00:00:00Z" });
    let past = json!({ "created_at": "2026-02-10T00:00:00Z" });
    let pages = pages(&root.service(), json!({ "limit": 4 }), |page| {
        let new = memory(&format!("new{page}"), "A new one", later.clone());
        let late = memory(&format!("past{page}"), "A late one", past.clone());
        insert(&writer, &[new, late]);
        writer.sql_with("DELETE FROM memories WHERE id = ?1", [removed(page)]);
    });
    let all = all_shown(&pages);
    assert_eq!(repeated(all.clone()), []);
    let mut known: BTreeSet<String> = all.into_iter().map(|(_, id)| id).collect();
    known.extend((1..pages.len()).map(removed));
    for n in 0..90 {
        assert!(known.contains(&format!("m{n:04}")), "{n} is lost");
    }
}

#[test]
fn pages_of_a_search_repeat_and_lose_nothing_while_rows_change() {
    let root = Root::new();
    let of = |word: &str, n: usize| titled(&format!("{word}{n}"), &format!("{word} {}", WORDS[n]));
    let some = |word, count| (0..count).map(move |n| of(word, n)).collect::<Vec<_>>();
    let memories = [some("alder", 5), some("birch", 9), some("other", 12)].concat();
    let writer = bulk(&root, "alpha", &memories);
    // The first page ends among the birches. Then alders become common, so that birches weigh more.
    let added = |n: usize| {
        let rest = json!({ "narrative": format!("alder {}", "filler ".repeat(n)) });
        memory(&format!("new{n}"), &format!("Note {n}0"), rest)
    };
    let asked = json!({ "query": "alder birch", "limit": 8, "max_tokens": 20_000 });
    let pages = pages(&root.service(), asked, |page| {
        if page == 1 {
            writer.sql("BEGIN");
            insert(&writer, &(0..40).map(added).collect::<Vec<_>>());
            writer.sql("DELETE FROM memories WHERE id = 'birch8'; COMMIT");
        }
    });
    let all = all_shown(&pages);
    assert_eq!(repeated(all.clone()), []);
    let seen: BTreeSet<String> = all.into_iter().map(|(_, id)| id).collect();
    let alders = (0..5).map(|n| format!("alder{n}"));
    for id in alders.chain((0..8).map(|n| format!("birch{n}"))) {
        assert!(seen.contains(&id), "{id} is lost");
    }
}

#[test]
fn a_page_that_ends_with_a_folded_duplicate_continues_after_it() {
    let root = Root::new();
    let text = "Postgres connections are exhausted when every worker opens its own pool";
    let twin = |id: &str, day: u32| {
        memory(id, text, json!({ "created_at": format!("2026-01-{day:02}T00:00:00Z") }))
    };
    let with_facts =
        |id: &str, title: &str, facts: &[&str]| memory(id, title, json!({ "facts": facts }));
    let behind = "Postgres connections behind a pool";
    let a2 = with_facts("a2", behind, &["pool", "postgres connections pool"]);
    root.store("alpha", &[twin("a1", 4), a2]);
    let z3 = with_facts("z3", "Pools", &[&format!("{text}.")]);
    root.store("zeta", &[twin("z1", 3), titled("z2", "A pool of threads"), z3]);
    root.store("beta", &[twin("a1", 2)]);
    let service = root.service();
    for words in ["postgres connections exhausted pool", "pool", "postgres pool worker"] {
        for limit in 1..=3 {
            let pages = pages(&service, json!({ "query": words, "limit": limit }), |_| {});
            shown_once(&pages, &format!("`{words}` by {limit}"));
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
    root.store("beta", &[titled("b1", "Connection pools")]);
    root.store("diary", &[titled("d1", "Connection to home")]);
    root.manifest("diary", "visibility = \"private\"");
    root
}

#[test]
fn an_answer_stays_within_max_tokens_and_the_next_page_continues() {
    let root = wordy(60);
    let service = root.service();
    for most in [200, 250, 300, 400, 600, 1_000, 2_000, 4_000] {
        for mut arguments in [
            json!({}),
            json!({ "query": "connection lost" }),
            json!({ "query": "connection deadlock", "detail": "full", "explain": true, "limit": 50 }),
            json!({ "query": "no such words whatever", "tags": ["conection"], "project": "x" }),
        ] {
            arguments["max_tokens"] = json!(most);
            let pages = pages(&service, arguments.clone(), |_| {});
            for page in &pages {
                // By a vocabulary in use: the estimate is well above that for a cursor.
                let cost = crate::tokens::cost(&page.to_string());
                assert!(cost <= most, "{cost} tokens for {arguments}");
                let is_empty = result_ids(page).is_empty() && page["total"] != 0;
                assert!(!is_empty, "{arguments}: an empty page");
            }
            shown_once(&pages, &arguments.to_string());
        }
    }
}

#[test]
fn truncation_neither_loses_nor_repeats_near_duplicates() {
    let root = Root::new();
    let twin = "Postgres connections are exhausted when every worker of the payment service opens its own pool";
    let on = |month: u32, day: usize| json!({ "created_at": format!("2026-{month:02}-{day:02}T00:00:00Z") });
    let same = |n: usize| memory(&format!("ack_twin_2026-01-04_{n:03}"), twin, on(1, 30 - n));
    let mut memories: Vec<Value> = (0..30).map(same).collect();
    memories.extend((0..20).map(|n| {
        let words = [WORDS[n % 12], WORDS[(n + n / 12 + 1) % 12]].join(" ");
        memory(&format!("ack_solo_{n:03}"), &format!("Postgres connections {words}"), on(2, 1 + n))
    }));
    memories.push(memory("ack_whole", "Payments", json!({ "facts": [twin] })));
    bulk(&root, "alpha", &memories);
    let service = root.service();
    for (words, max_tokens) in [
        ("postgres connections", 200),
        ("postgres connections", 400),
        ("postgres connections", 900),
        ("postgres connections", 20_000),
        ("worker pool", 200),
        ("worker pool", 300),
    ] {
        let arguments = json!({ "query": words, "max_tokens": max_tokens });
        let pages = pages(&service, arguments, |_| {});
        shown_once(&pages, &format!("`{words}` in {max_tokens} tokens"));
    }
}

#[test]
fn an_oldest_first_list_has_pages() {
    let root = Root::new();
    let day = |n: usize| format!("2026-{:02}-{:02}T00:00:00Z", 1 + n / 28, 1 + n % 28);
    for (scope, from) in [("alpha", 0), ("beta", 1)] {
        let note = |n: usize| {
            let rest = json!({ "status": "staging", "created_at": day(n) });
            memory(&format!("m{n:03}"), &format!("Note {n}"), rest)
        };
        let memories: Vec<Value> = (0..160).map(|n| note(n * 2 + from)).collect();
        root.store(scope, &memories);
    }
    let undated = json!({ "status": "staging", "created_at": null });
    root.store("undated", &[memory("never", "Undated", undated)]);
    let service = root.service();
    let mut arguments = json!({ "status": "staging", "order": "oldest", "limit": 33 });
    let pages = pages(&service, arguments.clone(), |_| {});
    let seen: Vec<String> = pages.iter().flat_map(result_ids).collect();
    let mut expected: Vec<String> = (0..320).map(|n| format!("m{n:03}")).collect();
    expected.push("never".to_owned());
    assert_eq!(seen, expected);
    let newest = service.find(json!({ "status": "staging", "order": "newest", "limit": 2 }));
    assert_eq!(newest["results"][0]["id"], "m319");
    // A cursor of one order is not valid in the other.
    arguments["cursor"] = pages[0]["next_cursor"].clone();
    arguments["order"] = json!("newest");
    let error = service.refused("query_memories", arguments);
    assert_eq!(error.code, "invalid_cursor");
    let searched = service.find(json!({ "query": "note 7", "order": "oldest", "status": "all" }));
    assert_contains!(searched["notes"].to_string(), "ordered by relevance");
}
