//! What an agent reads: how much answers cost as text and as structure, what they say, and what the
//! owner keeps from agents.

use std::path::Path;

use ack_api::text;
use serde_json::{Value, json};

use crate::eval;
use crate::mcp::Server;
use crate::support::{Root, Sql, ids, memory, outside, titled, unreviewed, write_file};
use crate::tokens::cost;

/// Most tokens of ten results and of five as text, and of ten as structure.
const TEN_AS_TEXT: usize = 1_100;
const FIVE_AS_TEXT: usize = 600;
const TEN_AS_JSON: usize = 1_500;

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn structure(result: &Value) -> String {
    result["structuredContent"].to_string()
}

/// Stores that answers are measured over, each with questions.
fn stores() -> Vec<(&'static str, Root, Vec<String>)> {
    let own =
        |questions: &str| -> Vec<String> { questions.split(" | ").map(str::to_owned).collect() };
    let questions = "lock timeout in the payout job | container killed exit code 137 | \
        flaky test in CI | kubernetes config not updated | deadlock";
    let mut stores = vec![("the samples", Root::samples(), own(questions))];
    if let Some(sets) = outside("ACK_TEST_EVALS") {
        for set in ["til-jb", "clippy", "solutions-open"] {
            let folder = sets.join("dev").join(set);
            let questions = eval::lines(&folder.join("queries.jsonl"));
            let questions = questions.iter().step_by(questions.len() / 12);
            let questions = questions.map(|question| question["text"].as_str().unwrap().to_owned());
            let root = eval::build(eval::lines(&folder.join("docs.jsonl")).iter());
            stores.push((set, root, questions.collect()));
        }
    }
    if let Some(real) = outside("ACK_TEST_REAL_STORES") {
        let root = Root::new();
        root.manifest("notes", "unreviewed = \"approved\"\n");
        let store = real.join("claude-mem/claude-mem.db");
        let copy = root.scope_folder("notes").join("claude-mem.db");
        std::fs::copy(store, &copy).unwrap();
        let questions =
            "database is locked | flaky test timeout | how do we deploy | migration failed";
        let all = [own(questions), titles(&copy)].concat();
        stores.push(("a claude-mem database", root, all));
    }
    stores
}

/// Every tenth title of a claude-mem database.
fn titles(path: &Path) -> Vec<String> {
    let store = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT title FROM observations WHERE title <> '' AND id % 10 = 0";
    let mut statement = store.prepare(sql).unwrap();
    let titles = statement.query_map([], |row| row.get(0)).unwrap();
    titles.map(Result::unwrap).collect()
}

/// What one answer costs as text and as structure. Both stay below the estimate that bounds
/// answers, and near it.
fn measured(server: &mut Server, tool: &str, arguments: Value) -> [usize; 2] {
    let result = server.call(tool, arguments.clone());
    let structure = structure(&result);
    let (counted, estimated) = (cost(&structure), text::tokens(&structure));
    assert!(counted <= estimated, "{tool} {arguments}: {counted}");
    [cost(text_of(&result)), counted]
}

#[test]
fn answers_are_as_short_for_real_memories_as_for_samples() {
    let (mut counted, mut estimated) = (0, 0);
    for (store, root, questions) in stores() {
        let mut server = Server::initialized(root.path());
        for question in questions {
            let five = (5, FIVE_AS_TEXT, TEN_AS_JSON / 2);
            for (limit, most_text, most_json) in [(10, TEN_AS_TEXT, TEN_AS_JSON), five] {
                let arguments = json!({ "query": question, "limit": limit });
                let [text, json] = measured(&mut server, "query_memories", arguments.clone());
                let is_short = text <= most_text && json <= most_json;
                assert!(is_short, "{store} {arguments}: {text} as text, {json}");
                let result = server.call("query_memories", arguments);
                counted += json;
                estimated += text::tokens(&structure(&result));
            }
        }
    }
    assert!(estimated * 100 <= counted * 115, "{counted}: {estimated}");
}

/// Prints what the answers cost. The table of the samples in `docs/benchmarks.md` must be correct.
#[test]
fn the_token_cost_tables_are_correct_and_text_costs_no_more_than_structure() {
    let documented = include_str!("../../docs/benchmarks.md");
    let mut compared = 0;
    for (store, root, questions) in stores() {
        let mut server = Server::initialized(root.path());
        println!("\n{store}\n| answer | text | structure |\n|---|---|---|");
        let query = |limit: u32| {
            let asked = |question| json!({ "query": question, "limit": limit });
            questions.iter().map(asked).collect::<Vec<_>>()
        };
        let arguments = json!({ "query": questions[0], "limit": 1 });
        let first = server.call("query_memories", arguments);
        let id = first["structuredContent"]["results"][0]["id"].clone();
        let project = json!({ "project_path": "/nowhere/ledger-api" });
        for (name, tool, calls) in [
            ("ten results", "query_memories", query(10)),
            ("five results", "query_memories", query(5)),
            ("one memory in full", "get_memory", vec![json!({ "id": id })]),
            ("`list_scopes`", "list_scopes", vec![json!({})]),
            ("the context of a project", "get_context", vec![project]),
        ] {
            let count = calls.len();
            let calls = calls.into_iter();
            let costs = calls.map(|call| measured(&mut server, tool, call));
            let sum = costs.fold([0, 0], |sum, cost| [sum[0] + cost[0], sum[1] + cost[1]]);
            let [text, json] = sum.map(|sum| sum / count);
            println!("| {name} | {text} | {json} |");
            assert!(text <= json, "{store}: {name} cost {text} as text, {json}");
            if store == "the samples"
                && let Some(row) = row(documented, name)
            {
                compared += 1;
                for (measured, in_docs) in [text, json].into_iter().zip(row) {
                    let is_near = measured.abs_diff(in_docs) * 100 <= in_docs * 3;
                    assert!(is_near, "{name}: {measured}, documented is {in_docs}");
                }
            }
        }
    }
    assert_eq!(compared, 4, "rows of the samples' table were not found");
}

/// The tokens of an answer as text and as structure, according to the documentation's table
/// for the samples.
fn row(documented: &str, name: &str) -> Option<[usize; 2]> {
    let (_, table) = documented.split_once("| the samples | as text |")?;
    let start = format!("| {name} |");
    let line = table.lines().find(|line| line.starts_with(&start))?;
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let number = |cell: &str| cell.replace(',', "").parse().unwrap();
    Some([number(cells[2]), number(cells[3])])
}

fn contradicting() -> Root {
    let root = Root::new();
    let memories = [
        titled("pool-10", "Pool size is ten"),
        titled("pool-50", "Database connections: fifty are right"),
        unreviewed("draft", "Pool size is seven"),
    ];
    let path = root.store("alpha", &memories);
    let store = rusqlite::Connection::open(path).unwrap();
    for to in ["pool-10", "draft"] {
        store.sql_with(
            "INSERT INTO memory_links (from_id, to_id, kind) VALUES ('pool-50', ?1, 'Contradicts')",
            [to],
        );
    }
    root
}

#[test]
fn the_newer_of_two_contradicting_memories_is_marked() {
    let root = Root::new();
    let at = |id: &str, title: &str, month: u32, rest: Value| {
        let mut rest = rest;
        rest["created_at"] = json!(format!("2026-{month:02}-01T00:00:00Z"));
        rest["project"] = json!("alpha");
        memory(id, title, rest)
    };
    let past = json!({ "stale_after": "2026-03-01" });
    let memories = [
        at("old", "Retry three times", 1, past),
        at("june", "Never retry", 6, json!({})),
        at("july", "Retry ten times", 7, json!({})),
    ];
    let path = root.store("alpha", &memories);
    let store = rusqlite::Connection::open(path).unwrap();
    let links = "INSERT INTO memory_links (from_id, to_id, kind)
         VALUES ('june', 'old', 'contradicts'), ('july', 'old', 'contradicts')";
    store.sql(links);
    drop(store);
    let mut server = Server::initialized(root.path());
    let folder = root.path().join("work/alpha");
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "retry" })),
        ("get_memory", json!({ "ids": ["old", "june"] })),
        ("get_context", json!({ "project_path": folder })),
    ] {
        let answer = server.call(tool, arguments);
        let text = text_of(&answer);
        for output in [
            "! contradicted by july (newer), june (newer)\n",
            "! stale: past 2026-03-01, the day its author set\n",
            "! contradicts old (older)",
        ] {
            assert_contains!(text, output; "{tool}: {output}");
        }
    }
    let got = server.call("get_memory", json!({ "id": "june" }));
    assert_eq!(got["structuredContent"]["contradicts"], json!([{ "id": "old", "age": "older" }]));
    // At a terminal, the other one need not be on the page.
    let output = crate::cli::ack(root.path(), &["get", "old", "june"]).ok();
    assert_contains!(
        output,
        "contradicted by june (newer)",
        "contradicted by july (newer)",
        "contradicts old (older)"
    );
}

#[test]
fn ten_results_of_any_text_stay_short() {
    let texts = [
        ("ascii", "The worker retries the payment on SQLSTATE 40P01 at /srv/app/x.js:10:20. "),
        ("japanese", "メモリ不足でコンテナが強制終了される原因と対処について。"),
        ("signs", "0x7fffd3e8 %2F%3A☃️🧑‍🚀🧑‍🚀 a9f3e2c1b7d4 "),
    ];
    for (name, text) in texts {
        let root = Root::new();
        let memories: Vec<Value> = (0..12)
            .map(|n| {
                let of = |start: usize| -> String {
                    text.repeat(8).chars().skip(n * 3 + start).take(200).collect()
                };
                let facts = json!({ "facts": [of(1), of(2), of(3), of(4)], "project": name });
                memory(&format!("{n}-{name}"), &format!("{n} {}", of(0)), facts)
            })
            .collect();
        crate::query::bulk(&root, "odd", &memories);
        let mut server = Server::initialized(root.path());
        for (limit, most) in [(10, TEN_AS_TEXT), (5, FIVE_AS_TEXT)] {
            let answer = server.call("query_memories", json!({ "limit": limit }));
            let results = answer["structuredContent"]["results"].as_array().unwrap();
            let tokens = cost(text_of(&answer));
            assert_eq!(results.len(), limit, "{name}");
            assert!(tokens <= most, "{name}: {limit} results cost {tokens}");
        }
    }
}

#[test]
fn a_known_contradiction_is_marked_in_both_memories_and_names_none_that_may_not_be_shown() {
    let root = contradicting();
    let mut server = Server::initialized(root.path());
    for (query, id, other) in
        [("pool size ten", "pool-10", "pool-50"), ("fifty", "pool-50", "pool-10")]
    {
        for (tool, arguments) in [
            ("query_memories", json!({ "query": query, "limit": 1 })),
            ("get_memory", json!({ "id": id })),
        ] {
            let result = server.call(tool, arguments);
            let structured = &result["structuredContent"];
            let hit = structured.pointer("/results/0").unwrap_or(structured);
            assert_eq!(hit["id"], id, "{result}");
            assert_eq!(hit["contradicts"], json!([{ "id": other }]), "{result}");
            // Both are of the same day, so neither is the newer one.
            let text = format!("{}\n", text_of(&result));
            assert_contains!(text, &format!("! contradicts {other}\n"));
        }
    }
}

/// Every way in which an agent can ask for waiting memories.
fn asked_for_unreviewed(server: &mut Server) -> Vec<(String, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({ "name": tool, "arguments": arguments }))
    };
    let read = |uri: &str| ("resources/read", json!({ "uri": uri }));
    let include = ["timeline", "links", "related"];
    let with_status = |status: &str| {
        let query = |mut arguments: Value| {
            arguments["status"] = json!(status);
            call("query_memories", arguments)
        };
        let get = |mut arguments: Value| {
            arguments["status"] = json!(status);
            call("get_memory", arguments)
        };
        [
            query(json!({ "query": "zeppelin" })),
            query(json!({ "detail": "full" })),
            query(json!({ "like": "seen" })),
            query(json!({ "query": "x", "expect": "waits" })),
            get(json!({ "id": "waits" })),
            get(json!({ "ids": ["waits"] })),
            get(json!({ "id": "seen", "include": include })),
        ]
    };
    let others = [
        call("list_scopes", json!({ "scope": "alpha" })),
        call("get_context", json!({ "project_path": "/nowhere/alpha" })),
        read("memory://scopes"),
        read("memory://scope/alpha"),
        read("memory://scope/alpha/memory/waits"),
    ];
    let all = [with_status("staging"), with_status("all")].concat().into_iter().chain(others);
    all.map(|(method, params)| (format!("{method} {params}"), server.request(method, params)))
        .collect()
}

#[test]
fn agents_read_unreviewed_memories_only_if_the_owner_allows_it() {
    let root = Root::new();
    let waits = json!({ "status": "staging", "session_id": "s" });
    let seen = memory("seen", "Airship rules", json!({ "session_id": "s" }));
    root.store("alpha", &[seen, memory("waits", "Zeppelin rules", waits)]);
    let configure = |settings: &str| {
        write_file(root.path().join("config.toml"), settings);
        Server::initialized(root.path())
    };
    let mut refused = configure("");
    for (asked, answer) in asked_for_unreviewed(&mut refused) {
        assert_lacks!(answer, "Zeppelin", "pass `status"; "{asked}");
    }
    for arguments in [json!({ "query": "zeppelin", "status": "all" }), json!({ "status": "all" })] {
        let answer = refused.call("query_memories", arguments.clone());
        assert_contains!(text_of(&answer), "1 matching memory waits for review");
        if arguments.get("query").is_none() {
            assert_eq!(answer["structuredContent"]["total"], 1, "{answer}");
        }
    }

    let mut allowed = configure("max_status = \"all\"\n");
    let answers = asked_for_unreviewed(&mut allowed);
    let shows = |(_, answer): &&(String, Value)| answer.to_string().contains("Zeppelin");
    let shown = answers.iter().filter(shows).count();
    assert!(shown >= 11, "{shown}");
    // The command line shows them either way.
    configure("");
    let people = crate::cli::ack(root.path(), &["query", "--all", "zeppelin"]).ok();
    assert_contains!(people, "Zeppelin rules");
}

#[test]
fn a_word_that_no_memory_contains_is_reported_first_with_at_most_three_near_matches() {
    let root = Root::new();
    let pools = (0..8).map(|n| {
        let title = format!("PostgreSQL database server with a pool of {n}0");
        titled(&format!("m{n}"), &title)
    });
    let deploy = "Cron jobs want a service account of their own, an alert when they fail, and a \
                  rollback plan for each deployment";
    let memories: Vec<Value> = pools.chain([titled("deploy", deploy)]).collect();
    crate::query::bulk(&root, "alpha", &memories);
    let mut server = Server::initialized(root.path());
    let mut ask = |query: &str| {
        let result = server.call("query_memories", json!({ "query": query }));
        let answer = &result["structuredContent"];
        let kind = answer["notes"][0]["kind"].as_str().unwrap_or_default();
        (kind.to_owned(), ids(&answer["results"]), text_of(&result).to_owned())
    };
    let (kind, ids, text) = ask("connections");
    assert_eq!((kind.as_str(), ids.len()), ("no_word_matches", 3), "{text}");
    let start = "no approved memory contains a word of the query";
    assert!(text.starts_with(start), "{text}");
    // A similar word is reported as such.
    let (kind, ids, text) = ask("deploymnet");
    assert_eq!(kind, "no_word_matches", "{text}");
    assert_eq!(ids, ["deploy"], "{text}");
    assert_contains!(text, "did you mean `deployment`?");
    // Next to memories that contain a word of the query, it is not evidence.
    let (_, ids, text) = ask("pool deploymnet");
    assert!(!ids.contains(&"deploy".to_owned()), "{text}");
    let (kind, ids, text) = ask("pool");
    assert_eq!((kind.as_str(), ids.len()), ("", 8), "{text}");
}
