//! `get_context`: the few memories that matter for a project now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ack_api::text;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::decisions::decide;
use crate::query::bulk;
use crate::support::{Ask, Root, Sql, ids, memory, unreviewed, write_file};

/// A project with a git repository made of files, on a branch.
pub fn project(root: &Root, name: &str, branch: &str) -> PathBuf {
    let folder = root.path().join("work").join(name);
    for part in [".git/objects", ".git/refs/heads"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    let text = format!("ref: refs/heads/{branch}\n");
    write_file(folder.join(".git/HEAD"), text);
    let config = "[core]\n\trepositoryformatversion = 0\n";
    write_file(folder.join(".git/config"), config);
    folder
}

pub fn context(root: &Root, folder: &Path, rest: Value) -> Value {
    let mut arguments = json!({ "project_path": folder });
    for (key, value) in rest.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    root.service().brief(arguments)
}

/// A project's scope, a shared one and a private one.
pub fn three() -> Root {
    let root = Root::new();
    let at = |id: &str, title: &str, day: u32, project: &str, status: &str| {
        let created = format!("2026-01-{day:02}T00:00:00Z");
        let mut rest = json!({ "created_at": created, "status": status });
        if !project.is_empty() {
            rest["project"] = json!(project);
        }
        memory(id, title, rest)
    };
    let approved =
        |id: &str, title: &str, day: u32, project: &str| at(id, title, day, project, "approved");
    let eight = |name: &str, title: &str, project: &str| -> Vec<Value> {
        let one = |n| approved(&format!("{name}{n}"), &format!("{title} {n}0"), n, project);
        (1..=8).map(one).collect()
    };
    let (ledger, branch) = ("ledger-api", "Lock timeout of the payout job");
    let mut own = eight("own", "Ledger note", ledger);
    own.extend([
        approved("own-branch", branch, 1, "Ledger_API"),
        approved("own-nameless", "Nameless note", 2, ""),
        at("own-staged", "Staged lock timeout", 20, ledger, "staging"),
        at("own-rejected", "Rejected lock timeout", 21, ledger, "rejected"),
    ]);
    let writer = bulk(&root, "ledger-api", &own);
    writer.sql("INSERT INTO sessions (id, project, title, started_at) VALUES ('s1', 'ledger-api', 'Old session', '2026-01-01T00:00:00Z'), ('s2', 'ledger-api', 'New session', '2026-01-09T00:00:00Z'),
             ('s3', 'kiosk', 'Not ours', '2026-01-10T00:00:00Z'); INSERT INTO overviews (session, content) VALUES ('s2', 'What was done');
             UPDATE memories SET session = 's1' WHERE id = 'own1'; UPDATE memories SET session = 's2' WHERE id = 'own2'");
    root.manifest("ledger-api", "overviews = \"show\"");
    let mut others = eight("other", "Platform note", "platform");
    others.extend([
        approved("other-sqlx", "sqlx needs offline data in CI", 1, "kiosk"),
        approved("other-own", "About the ledger, kept elsewhere", 9, ledger),
        at("other-staged", "Staged elsewhere", 25, "", "staging"),
    ]);
    bulk(&root, "platform", &others);
    let diary = [
        approved("diary1", "Private sqlx lock timeout", 28, "platform"),
        approved("diary2", "Private note", 28, "ledger-api"),
    ];
    bulk(&root, "diary", &diary);
    root.manifest("diary", "visibility = \"private\"");
    root
}

/// The kinds of the notes of an answer.
fn kinds(answer: &Value) -> Vec<&str> {
    let notes = answer["notes"].as_array().into_iter().flatten();
    notes.map(|note| note["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_project_gets_its_memories_its_sessions_and_cross_project_learnings() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    let answer = context(&root, &folder, json!({}));
    let newest = ["other-own", "own8", "own7", "own6", "own5"];
    assert_eq!(ids(&answer["recent_memories"]), newest);
    // Being recent is no evidence.
    assert_eq!(answer["cross_project_learnings"], json!([]));
    assert_eq!(kinds(&answer), ["nothing_certain"]);
    assert_eq!(ids(&answer["recent_sessions"]), ["s2", "s1"]);
    assert_eq!(answer["recent_sessions"][0]["overview"], "What was done");
    assert_eq!(answer["project"]["name"], "ledger-api");
    assert_eq!(answer["project"]["scope"], "ledger-api");
    assert_eq!(answer["project"]["detected_by"], "scope name `ledger-api`");
    assert_eq!(answer["pending"]["count"], 1);
    assert_eq!(answer["searched"]["scopes"], json!(["ledger-api", "platform"]));
    assert_lacks!(answer, "own-rejected", "other-staged", "diary1", "diary2", "\"Staged");
}

#[test]
fn cached_outlines_are_used_only_while_the_stores_are_unchanged() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    let service = root.service();
    let asked = || service.brief(json!({ "project_path": folder }));
    assert_eq!(service.outlines_bytes(), 0);
    let first = asked();
    assert!(service.outlines_bytes() > 0);
    assert_eq!(asked(), first);
    let store = Connection::open(root.scope_folder("ledger-api").join("memory.db")).unwrap();
    let set = |id: &str, status: &str| {
        let sql = "UPDATE memories SET status = ?1 WHERE id = ?2";
        store.sql_with(sql, [status, id]);
    };
    for status in ["staging", "rejected"] {
        set("own8", status);
        let list = ["other-own", "own7", "own6", "own5", "own4"];
        assert_eq!(ids(&asked()["recent_memories"]), list);
    }
    set("own8", "approved");
    assert_eq!(asked(), first);
    // The only memory of a session.
    set("own2", "staging");
    assert_eq!(ids(&first["recent_sessions"]), ["s2", "s1"]);
    assert_eq!(ids(&asked()["recent_sessions"]), ["s1"]);
    set("own2", "approved");
    assert_eq!(asked(), first);
    let scope = root.scope_folder("ledger-api");
    decide(&scope, "memory.db", "own8", "reject", json!({}));
    assert_lacks!(asked(), "own8");
    // Other words are looked for in the same stores.
    let text = "ref: refs/heads/fix/lock-payout\n";
    write_file(folder.join(".git/HEAD"), text);
    assert_eq!(asked()["recent_memories"][0]["id"], "own-branch");
}

#[test]
fn the_branch_and_the_dependencies_outrank_age_and_a_focus_the_branch() {
    let root = three();
    let folder = project(&root, "ledger-api", "fix/lock-timeout_of-payout");
    let manifest = "[dependencies]\nsqlx = \"0.8\"\ntokio = { version = \"1\" }\n";
    write_file(folder.join("Cargo.toml"), manifest);
    let first = |list: &Value| {
        let text = |field: &str| list[0][field].as_str().unwrap().to_owned();
        text("id") + ": " + &text("why")
    };
    let answer = context(&root, &folder, json!({ "max_memories": 3 }));
    let own = first(&answer["recent_memories"]);
    assert!(own.starts_with("own-branch: matches the branch"), "{own}");
    let other = first(&answer["cross_project_learnings"]);
    let said = "other-sqlx: about what the project uses";
    assert!(other.starts_with(said), "{other}");
    let answer = context(&root, &folder, json!({ "focus": "nameless" }));
    let own = first(&answer["recent_memories"]);
    assert!(own.starts_with("own-nameless: matches the focus"), "{own}");
    // What is recent fills the list.
    assert_eq!(ids(&answer["recent_memories"])[1], "other-own");
    let nothing = context(&root, &folder, json!({ "focus": "zeppelin" }));
    assert_eq!(ids(&nothing["recent_memories"]).len(), 5);
}

#[test]
fn other_projects_can_be_left_out_and_lists_keep_their_length() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    let text = "[dependencies]\nsqlx = \"0.8\"\n";
    write_file(folder.join("Cargo.toml"), text);
    let alone = context(&root, &folder, json!({ "include_cross_project": false }));
    assert_eq!(alone["cross_project_learnings"], json!([]));
    assert_eq!(ids(&alone["recent_memories"]).len(), 5);
    for most in [1, 2, 5, 50] {
        let long = json!({ "max_memories": most, "max_tokens": 20_000 });
        let answer = context(&root, &folder, long);
        for list in ["recent_memories", "cross_project_learnings"] {
            let found = ids(&answer[list]);
            assert!(found.len() <= most, "{list} of {most}: {found:?}");
            let distinct: BTreeSet<&String> = found.iter().collect();
            assert_eq!(distinct.len(), found.len(), "{list} of {most}: {found:?}");
        }
        if most == 50 {
            assert_eq!(ids(&answer["recent_memories"]).len(), 11);
            assert_eq!(ids(&answer["cross_project_learnings"]), ["other-sqlx"]);
        }
    }
}

#[test]
fn an_answer_keeps_within_its_tokens() {
    let root = three();
    let long = |n: usize| {
        let facts = vec![format!("a fact about {n} ").repeat(12); 9];
        let title = format!("Long {n}0 {}", "title words ".repeat(20));
        let project = ["ledger-api", "else"][n % 2];
        let rest = json!({ "project": project, "facts": facts });
        memory(&format!("long{n:02}"), &title, rest)
    };
    bulk(&root, "long", &(0..40).map(long).collect::<Vec<_>>());
    let folder = project(&root, "ledger-api", "fix/lock-timeout");
    for most in [200, 300, 500, 1_000, 2_000, 4_000] {
        for focus in ["", "long title words", "lock timeout"] {
            let asked = json!({ "max_tokens": most, "max_memories": 50, "focus": focus });
            let answer = context(&root, &folder, asked);
            let cost = text::tokens(&answer.to_string());
            assert!(cost <= most, "{cost} of {most} tokens, focus `{focus}`");
            let is_empty = |list: &str| ids(&answer[list]).is_empty();
            assert!(most < 300 || !is_empty("recent_memories"), "{most} `{focus}`: {answer:#}");
            if most >= 1_000 {
                let is_other = focus == "long title words";
                assert_eq!(is_empty("cross_project_learnings"), !is_other);
                assert!(kinds(&answer).contains(&"cut"), "{most}");
            }
        }
    }
}

#[test]
fn a_project_without_a_scope_gets_certain_cross_project_learnings() {
    let root = three();
    let answer = context(&root, &project(&root, "unheard-of", "main"), json!({}));
    assert!(answer["project"].get("scope").is_none());
    assert_eq!(ids(&answer["recent_memories"]), [""; 0]);
    assert_eq!(ids(&answer["cross_project_learnings"]), [""; 0]);
    assert_eq!(kinds(&answer), ["no_current_scope", "nothing_certain"]);
    let kept_elsewhere = context(&root, &project(&root, "kiosk", "main"), json!({}));
    assert_eq!(kept_elsewhere["project"]["scope"], "platform");
    assert_eq!(ids(&kept_elsewhere["recent_memories"]), ["other-sqlx"]);
    let gone = context(&root, &root.path().join("no/such/ledger-api"), json!({}));
    assert_eq!(gone["project"]["scope"], "ledger-api");
    assert!(kinds(&gone).contains(&"not_available"));
}

#[test]
fn a_project_with_only_waiting_memories_is_reported_as_such() {
    let memories =
        [unreviewed("a", "Secret one"), memory("b", "Secret two", json!({ "status": null }))];
    let root = Root::with("ledger-api", &memories);
    let folder = project(&root, "ledger-api", "main");
    let answer = context(&root, &folder, json!({}));
    assert_eq!(answer["recent_memories"], json!([]));
    assert_lacks!(answer.to_string(), "Secret");
    assert_eq!(answer["pending"]["count"], 2);
    assert_eq!(answer["notes"][0]["kind"], "hidden_by_status");
    let by_agent = json!({ "project_path": folder });
    let answer = crate::mcp::Server::initialized(root.path()).call("get_context", by_agent);
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.matches("for review").count(), 1, "{text}");
}

#[test]
fn an_everyday_folder_name_is_not_matched_as_a_project_name() {
    let root = Root::new();
    let tagged = json!({ "project": "til", "concepts": ["empty"] });
    let elsewhere = json!({ "project": "til" });
    let memories = [
        memory("list", "An empty list is falsy", elsewhere.clone()),
        memory("tagged", "Folders without files", tagged),
        memory("kiosk", "The kiosk-web build needs libwoff", elsewhere),
    ];
    root.store("notes", &memories);
    let learnings = |name: &str| {
        let answer = context(&root, &project(&root, name, "main"), json!({}));
        let hits = answer["cross_project_learnings"].clone();
        ids(&hits).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(learnings("empty"), ["tagged"]);
    assert_eq!(learnings("kiosk-web"), ["kiosk"]);
    // A project in which something was learned is a name, whatever the word.
    let own = memory("own", "Pages are blank", json!({ "project": "empty" }));
    root.store("other", &[own]);
    assert_eq!(learnings("empty"), ["list", "tagged"]);
}
