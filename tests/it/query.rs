//! `query_memories`: what is found, in which order, on which page, and how much of it is shown.

mod filters;
mod folding;
mod pages;
mod shown;

use std::collections::BTreeSet;

use ack_memory::Service;
use ack_memory::internal::Setting;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call_as;
use crate::support::{Ask, Root, Sql, insert, memory, result_ids, titled, unreviewed, write_file};

/// Adds memories to a scope in one transaction.
pub fn bulk(root: &Root, scope: &str, memories: &[Value]) -> Connection {
    let connection = Connection::open(root.scope_folder(scope).join("memory.db")).unwrap();
    connection.sql("PRAGMA synchronous = OFF; BEGIN");
    if !connection.table_exists(None, "memories").unwrap() {
        connection.sql(ack_memory::internal::import::SCHEMA);
    }
    insert(&connection, memories);
    connection.sql("COMMIT");
    connection
}

/// Scope and id of everything a page shows, folded ones too.
fn shown_keys(answer: &Value) -> Vec<(String, String)> {
    let folded = |hit: &Value| hit["also"].as_array().cloned().unwrap_or_default();
    let hits = answer["results"].as_array().unwrap().iter();
    let entries = hits.flat_map(|hit| [vec![hit.clone()], folded(hit)].concat());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries.map(|entry| (text(&entry["scope"]), text(&entry["id"]))).collect()
}

/// Every page of a request, with what happens between two pages.
fn pages(service: &Service, mut arguments: Value, mut between: impl FnMut(usize)) -> Vec<Value> {
    let mut pages = Vec::new();
    loop {
        let answer = service.find(arguments.clone());
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
    pages.iter().flat_map(shown_keys).collect()
}

/// What all pages show: each match once, and as many as the first page counts.
#[track_caller]
fn shown_once(pages: &[Value], what: &str) -> BTreeSet<(String, String)> {
    let all = all_shown(pages);
    assert_eq!(repeated(all.clone()), [], "{what}");
    assert_eq!(pages[0]["total"], all.len(), "{what}");
    all.into_iter().collect()
}

fn repeated(mut shown: Vec<(String, String)>) -> Vec<(String, String)> {
    shown.sort();
    let pairs = shown.windows(2).filter(|pair| pair[0] == pair[1]);
    pairs.map(|pair| pair[0].clone()).collect()
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

/// `count` memories in two scopes with different words, some of them equal.
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
        let own = memories.iter().filter(|(name, _)| *name == scope);
        let own: Vec<Value> = own.map(|(_, memory)| memory.clone()).collect();
        bulk(&root, scope, &own);
    }
    root
}

#[test]
fn without_a_query_the_newest_come_first() {
    let root = root_of(&varied(60));
    let arguments = json!({ "limit": 50, "max_tokens": 20_000 });
    let answer = root.service().find(arguments);
    let results = answer["results"].as_array().unwrap();
    let day = |hit: &Value| std::cmp::Reverse(hit["created_at"].to_string());
    assert!(results.is_sorted_by_key(day));
    assert!(results[0].get("score").is_none());
}

#[test]
fn results_are_ordered_by_score_current_project_age_and_id() {
    let root = Root::new();
    let of = |id: &str, year: u32, fact: &str, project: Option<&str>| {
        let created = format!("{year}-01-01T00:00:00Z");
        let rest = json!({ "created_at": created, "facts": [fact], "project": project });
        memory(id, "Rotate the signing key", rest)
    };
    let memories = [
        of("old", 2025, "one", None),
        of("new", 2026, "two", None),
        of("mine", 2024, "six", Some("My_App")),
        of("best", 2020, "signing key", None),
        of("twin", 2026, "ten", None),
    ];
    root.store("alpha", &memories);
    root.store("beta", &[of("aaa", 2026, "red", None)]);
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("my-app")))
    });
    let arguments = json!({ "query": "signing key", "explain": true, "mode": "lexical" });
    let shown = shown_keys(&service.find(arguments)).into_iter();
    let places: Vec<String> = shown.map(|(scope, id)| format!("{scope}/{id}")).collect();
    let expected = "alpha/best alpha/mine alpha/new alpha/twin beta/aaa alpha/old";
    assert_eq!(places.join(" "), expected);
    // A list of the newest prefers nobody.
    assert_ne!(result_ids(&service.find(json!({})))[0], "mine");
}

#[test]
fn an_incremental_index_answers_like_a_fresh_one() {
    let root = Root::new();
    let tagged = |id: &str, title: &str, tag: &str| memory(id, title, json!({ "concepts": [tag] }));
    let memories = [
        tagged("a", "Serialization of requests", "SQLite"),
        tagged("b", "Serialisation of answers", "sqlite"),
        titled("c", "Deploymant checklist"),
        unreviewed("d", "Deployment checklist"),
    ];
    let writer = bulk(&root, "alpha", &memories);
    let old = root.service();
    old.find(json!({}));
    for change in [
        "DELETE FROM memories WHERE id = 'b'",
        "UPDATE memories SET title = 'Rollout checklist' WHERE id = 'c'",
        "UPDATE memories SET status = 'approved' WHERE id = 'd'",
        "DELETE FROM memories WHERE id = 'a'",
        "INSERT INTO memories (id, title, status, concepts) VALUES ('e', 'Serialization again', 'approved', '[\"sqlite\"]')",
    ] {
        writer.sql(change);
        let fresh = root.service();
        for words in "serialisation | serializatoin | deploymant | deploymnt checklist | rollout"
            .split(" | ")
        {
            let arguments = json!({ "query": words, "explain": true });
            let expected = fresh.find(arguments.clone());
            assert_eq!(old.find(arguments), expected, "`{words}` after: {change}");
        }
        let suggestions =
            |service: &Service| service.find(json!({ "tags": ["sqlit"] }))["suggestions"].clone();
        assert_eq!(suggestions(&old), suggestions(&fresh), "after: {change}");
        let [old, fresh] = [&old, &fresh].map(|service| service.scopes(json!({})));
        assert_eq!(old, fresh, "after: {change}");
    }
}

#[test]
fn a_concise_answer_omits_the_fields_of_a_full_one() {
    let root = Root::new();
    let facts: Vec<String> = (0..9).map(|n| format!("fact {n} {}", "long ".repeat(100))).collect();
    let more = json!({ "narrative": "The story", "files": ["src/a.rs"], "session": "s", "confidence": 0.5 });
    let mut rest = more.clone();
    rest["facts"] = json!(facts);
    root.store("alpha", &[memory("a", "One", rest)]);
    let service = root.service();
    let concise = &service.find(json!({}))["results"][0];
    assert_eq!(concise["facts"].as_array().unwrap().len(), 5);
    let full = &service.find(json!({ "detail": "full", "max_tokens": 20_000 }))["results"][0];
    assert_eq!(full["facts"].as_array().unwrap().len(), 9);
    for (field, value) in more.as_object().unwrap() {
        assert_eq!(concise.get(field), None);
        assert_eq!(&full[field], value);
    }
}

#[test]
fn an_empty_result_has_suggestions() {
    let root = Root::new();
    let first = json!({ "project": "ledger-api", "concepts": ["postgres"] });
    let memories = [memory("a", "Lock order", first), unreviewed("b", "Unreviewed zeppelin")];
    root.store("alpha", &memories);
    let service = root.service();
    insta::assert_json_snapshot!(service.find(json!({ "query": "nonsense", "project": "ledger-apo", "tags": ["postgress"], "scope": "alpha" })), @r#"
{
  "results": [],
  "total": 0,
  "suggestions": [
    "No memory was learned in project \"ledger-apo\"; similar: ledger-api",
    "No memory has the tag \"postgress\"; similar: postgres",
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
    let hidden = service.find(json!({ "query": "zeppelin" }));
    assert_eq!(hidden["hidden"], json!({ "by_status": 1 }));
    assert_eq!(hidden["notes"][0]["kind"], "no_word_matches");
    assert_eq!(hidden["notes"][1]["kind"], "hidden_by_status");
    let said = "1 matching memory is not approved yet; pass `status: \"staging\"` or `status: \"all\"` to see it";
    assert_eq!(hidden["notes"][1]["message"], said);
    // Only waiting memories help.
    assert!(hidden.get("suggestions").is_none(), "{hidden}");
}

#[test]
fn names_that_only_waiting_memories_have_are_found_without_their_text() {
    let root = Root::new();
    let waiting = json!({ "status": "staging", "project": "ledger-api", "concepts": ["neovim"] });
    let memories = [
        memory("a", "Lock order", json!({ "project": "kiosk" })),
        memory("b", "Unreviewed zeppelin", waiting),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    let suggestion = |arguments: Value| {
        let answer = service.find(arguments);
        assert_lacks!(answer.to_string(), "zeppelin");
        answer["suggestions"][0].as_str().unwrap().to_owned()
    };
    let similar = "one that waits for review has a similar name";
    let near = suggestion(json!({ "query": "lock", "project": "ledger-ap" }));
    assert_eq!(near, format!("No memory was learned in project \"ledger-ap\"; {similar}"));
    let same = suggestion(json!({ "query": "lock", "project": "ledger-api" }));
    assert_eq!(same, "Every memory that was learned in project \"ledger-api\" waits for review");
    let tag = suggestion(json!({ "query": "lock", "tags": ["neovmi"] }));
    assert_eq!(tag, format!("No memory has the tag \"neovmi\"; {similar}"));
    // An empty list is not called a list of the newest.
    let none = service.find(json!({ "query": " ", "project": "ledger-ap" }));
    assert!(none.get("notes").is_none(), "{none}");
}

#[test]
fn an_unknown_word_finds_nothing_and_a_missing_word_is_named() {
    let memories = [
        titled("path", "Windows path memory about the worker"),
        titled("tx", "A migration runs in a transaction"),
        titled("pool", "Behind PgBouncer, pooling is by transaction"),
        titled("retry", "Retry the whole transaction"),
    ];
    let root = Root::with("alpha", &memories);
    let service = root.service();
    let found = service.find(json!({ "query": "xyzzy" }));
    assert_eq!(found["results"], json!([]), "{found}");
    assert_eq!(found["notes"][0]["kind"], "no_word_matches");
    let found = service.find(json!({ "query": "kafka transaction" }));
    let first = "no certain match: no approved memory contains `kafka`; these are the nearest";
    assert_eq!(found["notes"][0]["message"], first);
    let output = crate::cli::ack(root.path(), &["query", "kafka", "transaction"]).ok();
    assert!(output.starts_with(&format!("{first}\n")), "{output}");
    let output = crate::cli::ack(root.path(), &["query", "pgbouncr"]).ok();
    let first = "no approved memory contains a word of the query; did you mean `pgbouncer`?\n";
    assert!(output.starts_with(first), "{output}");
}

#[test]
fn the_review_status_is_explained_only_for_scopes_that_hide_a_match() {
    let root = Root::new();
    for (scope, title) in [("vim", "Terminal in vim"), ("web", "Forms in a page")] {
        let notes = root.scope_folder(scope).join("notes");
        std::fs::create_dir_all(&notes).unwrap();
        let note = format!("---\ntitle: {title}\ntype: fact\n---\nText.\n");
        write_file(notes.join("note.md"), note);
        root.manifest(scope, &format!("store = {}\n", json!(notes)));
    }
    let answer = root.service().find(json!({ "query": "terminal" }));
    let notes = answer["notes"].as_array().unwrap().iter();
    let about: Vec<&Value> = notes
        .filter(|note| note["kind"] == "no_status_column")
        .map(|note| &note["scope"])
        .collect();
    assert_eq!(about, [&json!("vim")], "{answer}");
    // An agent that may not ask for waiting memories gets their number, once.
    let mut server = crate::mcp::Server::initialized(root.path());
    let answer = server.call("query_memories", json!({ "query": "terminal" }));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.matches("review").count(), 1, "{text}");
}

#[test]
fn an_unknown_type_is_reported_with_similar_ones() {
    let root = Root::new();
    let second = json!({ "type": "bugle", "status": "staging" });
    let memories = [
        memory("a", "Lock order", json!({ "type": "bugfix" })),
        memory("b", "Lock rule", json!({ "type": "decision" })),
        memory("c", "Lock secret", second),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    let first = |arguments: Value| service.find(arguments)["suggestions"][0].clone();
    let bug = "No memory has the type \"bug\"; similar: bugfix";
    assert_eq!(first(json!({ "type": "bug" })), bug);
    assert_eq!(first(json!({ "query": "lock", "type": "bug" })), bug);
    assert_eq!(
        first(json!({ "type": "zzz, qqq" })),
        "No memory has the type \"zzz\"; types are: bugfix, decision"
    );
    let both = service.find(json!({ "type": "Decision, bug" }));
    assert_eq!(both["total"], 1, "one of the types is enough: {both}");
    let known = first(json!({ "type": "BugFix", "tags": ["none"] }));
    assert_eq!(known, "No memory has the tag \"none\"");
}

#[test]
fn hidden_matches_are_counted_without_rejected_ones() {
    let root = Root::new();
    let with = |id: &str, status: &str| {
        memory(id, &format!("Lock rule {id}"), json!({ "status": status }))
    };
    let memories = [
        with("a", "approved"),
        with("b", "promoted"),
        with("c", "staging"),
        with("d", "staging"),
        with("e", "rejected"),
        with("f", "nonsense"),
    ];
    root.store("alpha", &memories);
    let service = root.service();
    let count = |status: &str| {
        let answer = service.find(json!({ "query": "lock", "status": status }));
        (answer["total"].as_u64().unwrap(), answer["hidden"]["by_status"].as_u64().unwrap_or(0))
    };
    assert_eq!(count("approved"), (2, 2));
    assert_eq!(count("staging"), (2, 2));
    assert_eq!(count("all"), (4, 0));
}

#[test]
fn stop_word_queries_and_empty_queries_get_a_note() {
    let root = Root::with("alpha", &[titled("a", "What to do when it is not there")]);
    let service = root.service();
    let kinds = |arguments: Value| {
        service.find(arguments)["notes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|note| note["kind"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(json!({ "query": "what is it" })), ["only_stop_words"]);
    // As if it were not given.
    assert!(kinds(json!({ "query": "  " })).is_empty());
    let found = kinds(json!({ "query": "there", "mode": "hybrid" }));
    assert_eq!(found, ["only_stop_words"]);
}

#[test]
fn an_agent_that_asks_for_many_results_gets_as_many_and_shorter_ones() {
    let root = Root::new();
    let memories = (0..120).map(|number| {
        let facts = [
            format!("The gateway number {number} retries a payment three times before it gives up"),
            format!("Its {number} timeouts were measured under load in March and again in April"),
            "The runbook names the person who may restart it at night".to_owned(),
        ];
        let rest = json!({
            "facts": facts, "subtitle": "What the outage of the payment gateway taught everybody",
            "concepts": ["payments", "gateway", "retries", "timeouts", "outages"],
            "project": "ledger-api", "type": "discovery",
        });
        memory(
            &format!("obs-{number:05}"),
            &format!("Payment gateway {number} retries too often under load"),
            rest,
        )
    });
    bulk(&root, "alpha", &memories.collect::<Vec<Value>>());
    let service = root.service();
    let page = |limit: u32| {
        let arguments = json!({ "query": "payment gateway retries", "limit": limit });
        let answer = call_as(&service, "query_memories", arguments, true).unwrap();
        let results = answer["results"].as_array().unwrap().clone();
        (results, ack_memory::api::text::tokens(&answer.to_string()))
    };
    let (few, _) = page(5);
    for limit in [10, 25, 35, 50] {
        let (results, tokens) = page(limit);
        assert_eq!(results.len(), limit as usize);
        assert!(tokens <= 4_000.max(limit as usize * 131), "{limit}: {tokens}");
    }
    let (many, _) = page(50);
    let facts = |results: &[Value]| {
        let counts = results.iter().map(|one| one["facts"].as_array().unwrap().len());
        counts.sum::<usize>() * 100 / results.len()
    };
    assert!(facts(&many) < facts(&few), "{many:?}");
    // A token limit holds.
    let arguments = json!({ "query": "payment gateway retries", "limit": 50, "max_tokens": 1_000 });
    let answer = call_as(&service, "query_memories", arguments, true).unwrap();
    assert!(ack_memory::api::text::tokens(&answer.to_string()) <= 1_000);
}
