//! Approval does not last for ever: what is marked in answers, what is not, and the curator's second queue.

use std::fs;
use std::path::PathBuf;

use ack_memory::Service;
use ack_memory::internal::Setting;
use serde_json::{Value, json};

use crate::changes::git;
use crate::cli::ack;
use crate::curate::decide;
use crate::mcp::Server;
use crate::support::{Ask, Root, memory, rows, run_sql, write_file};

/// The memories of an answer.
fn hits(answer: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["results", "memories", "recent_memories", "cross_project_learnings"];
    let lists = lists.into_iter();
    lists.filter_map(|list| answer[list].as_array()).flatten()
}

/// The marks of an answer, by id.
pub fn marks(service: &Service, tool: &'static str, arguments: Value) -> Vec<(String, String)> {
    let answer = service.ask(tool, arguments);
    let mut marks: Vec<(String, String)> = hits(&answer)
        .filter_map(|hit| {
            let mark = hit["stale"].as_str()?;
            Some((hit["id"].as_str().unwrap().to_owned(), mark.to_owned()))
        })
        .collect();
    marks.sort();
    marks
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs.map(|(id, mark)| ((*id).to_owned(), (*mark).to_owned())).collect()
}

#[test]
fn an_expired_memory_is_marked_until_a_person_keeps_it() {
    let root = Root::new();
    let dated = |id: &str, title: &str, day: &str| {
        memory(id, title, json!({ "stale_after": day, "project": "p" }))
    };
    let none = json!({ "project": "p" });
    let memories = [
        dated("past", "The pool holds ten connections", "2026-03-01"),
        dated("later", "The gateway retries twice", "2099-01-01"),
        dated("broken", "Migrations run at night", "soon"),
        memory("none", "Locks are taken in order", none),
    ];
    root.store("p", &memories);
    let service = root.service();
    let past = expected(&[("past", "past 2026-03-01, the day its author set")]);
    let every = json!({ "ids": ["past", "later", "broken", "none"] });
    assert_eq!(marks(&service, "query_memories", json!({})), past);
    assert_eq!(marks(&service, "get_memory", every), past);
    let by_folder = json!({ "project_path": root.path().join("work/p") });
    assert_eq!(marks(&service, "get_context", by_folder), past);
    let focused = json!({ "focus": "pool connections" });
    assert_eq!(marks(&service, "get_context", focused), past);
    // In the words of an agent's answer, and of the command line.
    let mut server = Server::initialized(root.path());
    let answer = server.call("query_memories", json!({ "query": "pool connections" }));
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert_contains!(text, "  ! stale: past 2026-03-01, the day its author set");
    let output = ack(root.path(), &["query", "pool"]).ok();
    assert_contains!(output, "stale: past 2026-03-01");
    // The second queue of the curator.
    let listed = ack(root.path(), &["review", "--stale"]).ok();
    let said = "1 approved memory may be out of date\n";
    assert!(listed.starts_with(said), "{listed}");
    assert_contains!(listed, "  ! past 2026-03-01, the day its author set\n");
    let listed = ack(root.path(), &["review", "--stale", "--json"]).json();
    assert_eq!(listed["total"], 1);
    assert_eq!(listed["stale"][0]["id"], "past");
    // Kept by a person.
    decide(root.path(), &["approve", "past"]).ok();
    assert_eq!(marks(&service, "query_memories", json!({})), expected(&[]));
    let listed = ack(root.path(), &["review", "--stale"]).ok();
    assert_contains!(listed, "no approved memory");
}

#[test]
fn a_memory_that_a_newer_approved_one_contradicts_is_marked() {
    let root = Root::new();
    let at = |id: &str, title: &str, status: &str, day: u32| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        memory(id, title, json!({ "status": status, "created_at": created, "project": "p" }))
    };
    let memories = [
        at("old", "The pool holds ten connections", "approved", 1),
        at("new", "The gateway retries twice", "approved", 2),
        at("fine", "Migrations run at night", "approved", 1),
        at("staged", "Locks are taken in order", "staging", 2),
    ];
    let path = root.store("p", &memories);
    run_sql(
        path,
        "INSERT INTO memory_links (from_id, to_id, kind)
             VALUES ('new', 'old', 'contradicts'), ('staged', 'fine', 'contradicts')",
    );
    let service = root.service();
    let newer = json!([{ "id": "new", "age": "newer" }]);
    for (tool, arguments) in [
        ("query_memories", json!({})),
        ("query_memories", json!({ "status": "all" })),
        ("get_memory", json!({ "ids": ["old", "new", "fine"] })),
        ("get_context", json!({ "project_path": root.path().join("work/p") })),
    ] {
        let answer = service.ask(tool, arguments.clone());
        let hits: Vec<&Value> = hits(&answer).collect();
        let of = |id: &str| hits.iter().find(|hit| hit["id"] == id);
        let others = of("old").map(|hit| &hit["contradicts"]);
        assert_eq!(others, Some(&newer), "{tool} {arguments}");
        // What waits for review makes nothing out of date.
        let fine = of("fine").and_then(|hit| hit["contradicts"].as_array());
        let ages = fine.into_iter().flatten().map(|other| &other["age"]);
        assert!(ages.into_iter().all(Value::is_null), "{tool} {arguments}");
        assert_eq!(marks(&service, tool, arguments), expected(&[]));
    }
}

/// A repository with tracked files, and memories about it.
pub fn repository() -> (Root, PathBuf) {
    let root = Root::new();
    let folder = root.path().join("work/shop");
    fs::create_dir_all(folder.join("src")).unwrap();
    write_file(folder.join("src/pay.rs"), "fn pay() {}");
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "-A"]);
    let memories = rows(
        "id | project | title | files",
        r#"
        there | shop | The pool holds ten | ["src/pay.rs:3", "gone.rs"]
        gone | shop | The gateway retries | ["src/refund.rs:10"]
        both | shop | Migrations at night | ["a.rs", "b/*.sql"]
        outside | shop | Locks in order | ["/etc/hosts", "gone.rs"]
        other | elsewhere | Caches are warm | ["src/refund.rs:10"]
        "#,
    );
    root.store("shop", &memories);
    (root, folder)
}

#[test]
fn a_memory_of_the_current_project_whose_files_are_all_gone_is_marked() {
    let (root, folder) = repository();
    let here = |folder: &PathBuf| {
        let folder = folder.clone();
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder)))
    };
    let service = here(&folder);
    let gone = expected(&[
        ("both", "none of its 2 files is in the working tree"),
        ("gone", "not in the working tree: src/refund.rs:10"),
    ]);
    let every = json!({ "ids": ["there", "gone", "both", "outside", "other"] });
    assert_eq!(marks(&service, "query_memories", json!({})), gone);
    assert_eq!(marks(&service, "get_memory", every), gone);
    assert_eq!(marks(&service, "get_context", json!({})), gone);
    // A folder that git does not track is no evidence, nor is being elsewhere.
    let elsewhere = root.path().join("elsewhere");
    let found = marks(&here(&elsewhere), "query_memories", json!({}));
    assert_eq!(found, expected(&[]));
    fs::remove_file(folder.join(".git/index")).unwrap();
    let found = marks(&here(&folder), "query_memories", json!({}));
    assert_eq!(found, expected(&[]));
}
