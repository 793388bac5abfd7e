//! `get_context`: the few memories that matter for a project now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ack_api::text;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::arguments::call;
use crate::decisions::decide;
use crate::query::bulk;
use crate::support::{Root, ids, memory};
use ack_memory::internal::Setting;

/// A project with a git repository made of files, on a branch.
pub fn project(root: &Root, name: &str, branch: &str) -> PathBuf {
    let folder = root.path().join("work").join(name);
    for part in [".git/objects", ".git/refs/heads"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::write(
        folder.join(".git/HEAD"),
        format!("ref: refs/heads/{branch}\n"),
    )
    .unwrap();
    std::fs::write(
        folder.join(".git/config"),
        "[core]\n\trepositoryformatversion = 0\n",
    )
    .unwrap();
    folder
}

pub fn context(root: &Root, folder: &Path, rest: Value) -> Value {
    let mut arguments = json!({ "project_path": folder });
    for (key, value) in rest.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    call(&root.service(), "get_context", arguments).unwrap()
}

/// A project's scope, a shared one and a private one.
pub fn three() -> Root {
    let root = Root::new();
    let at = |id: &str, title: &str, day: u32, rest: Value| {
        let mut one = memory(id, title, rest);
        one["created_at"] = json!(format!("2026-01-{day:02}T00:00:00Z"));
        one
    };
    let mut own: Vec<Value> = (1..=8)
        .map(|n| {
            at(
                &format!("own{n}"),
                &format!("Ledger note {n}0"),
                n,
                json!({ "project": "ledger-api" }),
            )
        })
        .collect();
    own.push(at(
        "own-branch",
        "Lock timeout of the payout job",
        1,
        json!({ "project": "Ledger_API" }),
    ));
    own.push(at("own-nameless", "Nameless note", 2, json!({})));
    own.push(at(
        "own-staged",
        "Staged lock timeout",
        20,
        json!({ "status": "staging", "project": "ledger-api" }),
    ));
    own.push(at(
        "own-rejected",
        "Rejected lock timeout",
        21,
        json!({ "status": "rejected", "project": "ledger-api" }),
    ));
    let writer = bulk(&root, "ledger-api", &own);
    writer
        .execute_batch(
            "INSERT INTO sessions (id, project, title, started_at) VALUES ('s1', 'ledger-api', 'Old session', '2026-01-01T00:00:00Z'), ('s2', 'ledger-api', 'New session', '2026-01-09T00:00:00Z'),
             ('s3', 'kiosk', 'Not ours', '2026-01-10T00:00:00Z'); INSERT INTO overviews (session, content) VALUES ('s2', 'What was done');
             UPDATE memories SET session = 's1' WHERE id = 'own1'; UPDATE memories SET session = 's2' WHERE id = 'own2'",
        )
        .unwrap();
    root.manifest("ledger-api", "overviews = \"show\"");
    let mut others: Vec<Value> = (1..=8)
        .map(|n| {
            at(
                &format!("other{n}"),
                &format!("Platform note {n}0"),
                n,
                json!({ "project": "platform" }),
            )
        })
        .collect();
    others.push(at(
        "other-sqlx",
        "sqlx needs offline data in CI",
        1,
        json!({ "project": "kiosk" }),
    ));
    others.push(at(
        "other-own",
        "About the ledger, kept elsewhere",
        9,
        json!({ "project": "ledger-api" }),
    ));
    others.push(at(
        "other-staged",
        "Staged elsewhere",
        25,
        json!({ "status": "staging" }),
    ));
    bulk(&root, "platform", &others);
    bulk(
        &root,
        "diary",
        &[
            at(
                "diary1",
                "Private sqlx lock timeout",
                28,
                json!({ "project": "platform" }),
            ),
            at(
                "diary2",
                "Private note",
                28,
                json!({ "project": "ledger-api" }),
            ),
        ],
    );
    root.manifest("diary", "visibility = \"private\"");
    root
}

#[test]
fn a_project_gets_its_memories_its_sessions_and_cross_project_learnings() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    let answer = context(&root, &folder, json!({}));
    assert_eq!(
        ids(&answer["recent_memories"]),
        ["other-own", "own8", "own7", "own6", "own5"]
    );
    assert_eq!(
        answer["cross_project_learnings"],
        json!([]),
        "being recent is no evidence"
    );
    assert_eq!(answer["notes"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["notes"][0]["kind"], "nothing_certain");
    let sessions: Vec<&str> = answer["recent_sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["id"].as_str().unwrap())
        .collect();
    assert_eq!(sessions, ["s2", "s1"]);
    assert_eq!(answer["recent_sessions"][0]["overview"], "What was done");
    assert_eq!(
        (
            &answer["project"]["name"],
            &answer["project"]["scope"],
            &answer["project"]["detected_by"]
        ),
        (
            &json!("ledger-api"),
            &json!("ledger-api"),
            &json!("scope name `ledger-api`")
        )
    );
    assert_eq!(answer["pending"]["count"], 1);
    assert_eq!(
        answer["searched"]["scopes"],
        json!(["ledger-api", "platform"])
    );
    for hidden in [
        "own-rejected",
        "other-staged",
        "diary1",
        "diary2",
        "\"Staged",
    ] {
        assert!(!answer.to_string().contains(hidden), "{hidden}");
    }
}

#[test]
fn cached_outlines_are_used_only_while_the_stores_are_unchanged() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    let service = root.service();
    let asked = || {
        let arguments = json!({ "project_path": folder });
        call(&service, "get_context", arguments).unwrap()
    };
    let sessions = |answer: &Value| {
        let sessions = answer["recent_sessions"].as_array().unwrap().clone();
        let id = |session: &Value| session["id"].as_str().unwrap().to_owned();
        sessions.iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(service.outlines_bytes(), 0);
    let first = asked();
    assert!(service.outlines_bytes() > 0);
    assert_eq!(asked(), first);
    let store = Connection::open(root.scope_folder("ledger-api").join("memory.db")).unwrap();
    let change = |sql: &str| assert_eq!(store.execute(sql, []).unwrap(), 1, "{sql}");
    for status in ["staging", "rejected"] {
        change(&format!(
            "UPDATE memories SET status = '{status}' WHERE id = 'own8'"
        ));
        let list = ["other-own", "own7", "own6", "own5", "own4"];
        assert_eq!(ids(&asked()["recent_memories"]), list);
    }
    change("UPDATE memories SET status = 'approved' WHERE id = 'own8'");
    assert_eq!(asked(), first);
    // The only memory of a session.
    change("UPDATE memories SET status = 'staging' WHERE id = 'own2'");
    assert_eq!(
        (sessions(&first), sessions(&asked())),
        (vec!["s2".into(), "s1".into()], vec!["s1".into()])
    );
    change("UPDATE memories SET status = 'approved' WHERE id = 'own2'");
    assert_eq!(asked(), first);
    decide(
        &root.scope_folder("ledger-api"),
        "memory.db",
        "own8",
        "reject",
        json!({}),
    );
    assert!(!asked().to_string().contains("own8"));
    // Other words are looked for in the same stores.
    std::fs::write(
        folder.join(".git/HEAD"),
        "ref: refs/heads/fix/lock-payout\n",
    )
    .unwrap();
    assert_eq!(asked()["recent_memories"][0]["id"], "own-branch");
}

#[test]
fn the_branch_and_the_dependencies_outrank_age() {
    let root = three();
    let folder = project(&root, "ledger-api", "fix/lock-timeout_of-payout");
    std::fs::write(
        folder.join("Cargo.toml"),
        "[dependencies]\nsqlx = \"0.8\"\ntokio = { version = \"1\" }\n",
    )
    .unwrap();
    let answer = context(&root, &folder, json!({ "max_memories": 3 }));
    assert_eq!(ids(&answer["recent_memories"])[0], "own-branch");
    assert!(
        answer["recent_memories"][0]["why"]
            .as_str()
            .unwrap()
            .starts_with("matches the branch")
    );
    assert_eq!(ids(&answer["cross_project_learnings"])[0], "other-sqlx");
    assert!(
        answer["cross_project_learnings"][0]["why"]
            .as_str()
            .unwrap()
            .starts_with("about what the project uses")
    );
}

#[test]
fn a_focus_outranks_the_branch() {
    let root = three();
    let folder = project(&root, "ledger-api", "fix/lock-timeout");
    let answer = context(&root, &folder, json!({ "focus": "nameless" }));
    assert_eq!(
        ids(&answer["recent_memories"])[..2],
        ["own-nameless", "other-own"]
    );
    assert!(
        answer["recent_memories"][0]["why"]
            .as_str()
            .unwrap()
            .starts_with("matches the focus")
    );
    let nothing = context(&root, &folder, json!({ "focus": "zeppelin" }));
    assert_eq!(
        ids(&nothing["recent_memories"]).len(),
        5,
        "what is recent fills the list"
    );
}

#[test]
fn other_projects_can_be_left_out_and_lists_keep_their_length() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    std::fs::write(
        folder.join("Cargo.toml"),
        "[dependencies]\nsqlx = \"0.8\"\n",
    )
    .unwrap();
    let alone = context(&root, &folder, json!({ "include_cross_project": false }));
    assert_eq!(alone["cross_project_learnings"], json!([]));
    assert_eq!(ids(&alone["recent_memories"]).len(), 5);
    for most in [1, 2, 5, 50] {
        let answer = context(
            &root,
            &folder,
            json!({ "max_memories": most, "max_tokens": 20_000 }),
        );
        for list in ["recent_memories", "cross_project_learnings"] {
            let found = ids(&answer[list]);
            assert!(found.len() <= most, "{list} of {most}: {found:?}");
            let mut distinct = found.clone();
            distinct.sort_unstable();
            distinct.dedup();
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
    let memories: Vec<Value> = (0..40).map(|n| memory(&format!("long{n:02}"), &format!("Long {n}0 {}", "title words ".repeat(20)), json!({ "project": if n % 2 == 0 { "ledger-api" } else { "else" }, "facts": vec![format!("a fact about {n} ").repeat(12); 9] }))).collect();
    bulk(&root, "long", &memories);
    let folder = project(&root, "ledger-api", "fix/lock-timeout");
    let mut over = Vec::new();
    for max_tokens in [200, 300, 500, 1_000, 2_000, 4_000] {
        for focus in ["", "long title words", "lock timeout"] {
            let answer = context(
                &root,
                &folder,
                json!({ "max_tokens": max_tokens, "max_memories": 50, "focus": focus }),
            );
            let cost = text::tokens(&answer.to_string());
            if cost > max_tokens {
                over.push(format!("{cost} of {max_tokens} tokens, focus `{focus}`"));
            }
            if max_tokens >= 300 {
                assert!(
                    !ids(&answer["recent_memories"]).is_empty(),
                    "{max_tokens} `{focus}`: {answer:#}"
                );
            }
            if max_tokens >= 1_000 {
                assert!(!ids(&answer["recent_memories"]).is_empty());
                assert_eq!(
                    ids(&answer["cross_project_learnings"]).is_empty(),
                    focus != "long title words"
                );
                assert!(
                    answer["notes"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .any(|note| note["kind"] == "cut"),
                    "{max_tokens}"
                );
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

#[test]
fn a_private_scope_answers_only_when_it_is_current() {
    let root = three();
    let diary = project(&root, "diary", "main");
    let private = |folder: &Path| -> BTreeSet<String> {
        let answer = context(
            &root,
            folder,
            json!({ "focus": "private", "max_memories": 50, "max_tokens": 20_000 }),
        );
        let lists = [
            &answer["recent_memories"],
            &answer["cross_project_learnings"],
        ];
        let all = lists.into_iter().flat_map(ids);
        all.filter(|id| id.starts_with("diary")).collect()
    };
    assert_eq!(
        private(&diary),
        BTreeSet::from(["diary1", "diary2"].map(str::to_owned))
    );
    for other in ["platform", "ledger-api", "elsewhere"] {
        assert_eq!(
            private(&project(&root, other, "main")),
            BTreeSet::new(),
            "{other}"
        );
    }
}

#[test]
fn a_project_without_a_scope_gets_certain_cross_project_learnings() {
    let root = three();
    let answer = context(&root, &project(&root, "unheard-of", "main"), json!({}));
    assert!(answer["project"].get("scope").is_none());
    assert_eq!(ids(&answer["recent_memories"]), [""; 0]);
    assert_eq!(ids(&answer["cross_project_learnings"]), [""; 0]);
    let kinds: Vec<&Value> = answer["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| &note["kind"])
        .collect();
    assert_eq!(kinds, ["no_current_scope", "nothing_certain"]);
    let kept_elsewhere = context(&root, &project(&root, "kiosk", "main"), json!({}));
    assert_eq!(kept_elsewhere["project"]["scope"], "platform");
    assert_eq!(ids(&kept_elsewhere["recent_memories"]), ["other-sqlx"]);
    let gone = context(&root, &root.path().join("no/such/ledger-api"), json!({}));
    assert_eq!(gone["project"]["scope"], "ledger-api");
    assert!(
        gone["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| note["kind"] == "not_available")
    );
}

#[test]
fn a_project_with_only_waiting_memories_is_reported_as_such() {
    let root = Root::new();
    root.store(
        "ledger-api",
        &[
            memory("a", "Secret one", json!({ "status": "staging" })),
            memory("b", "Secret two", json!({ "status": null })),
        ],
    );
    let folder = project(&root, "ledger-api", "main");
    let answer = context(&root, &folder, json!({}));
    assert_eq!(answer["recent_memories"], json!([]));
    assert!(!answer.to_string().contains("Secret"));
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
    let elsewhere = |id: &str, title: &str, rest: Value| {
        let mut rest = rest;
        rest["project"] = json!("til");
        memory(id, title, rest)
    };
    root.store(
        "notes",
        &[
            elsewhere("list", "An empty list is falsy", json!({})),
            elsewhere(
                "tagged",
                "Folders without files",
                json!({ "concepts": ["empty"] }),
            ),
            elsewhere("kiosk", "The kiosk-web build needs libwoff", json!({})),
        ],
    );
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

#[test]
fn a_relative_path_and_a_path_inside_a_repository_lead_to_the_project() {
    let root = three();
    let folder = project(&root, "ledger-api", "main");
    std::fs::create_dir_all(folder.join("crates/core")).unwrap();
    let service = root.service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", root.path().join("work")))
    });
    for path in [
        "ledger-api",
        "./ledger-api/crates/core",
        "ledger-api/crates/../crates",
    ] {
        let answer = call(&service, "get_context", json!({ "project_path": path })).unwrap();
        assert_eq!(answer["project"]["scope"], "ledger-api", "{path}");
    }
    let home = root.service_with(|inputs| inputs.home = Some(root.path().join("work")));
    assert_eq!(
        call(
            &home,
            "get_context",
            json!({ "project_path": "~/ledger-api" })
        )
        .unwrap()["project"]["name"],
        "ledger-api"
    );
}
