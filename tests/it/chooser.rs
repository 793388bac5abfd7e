//! One chooser: `get_context` and the session start hook show the same memories in the same order.

use std::path::Path;

use ack_api::{ContextRequest, MemoryHit};
use ack_memory::Service;
use ack_memory::internal::BriefRequest;
use serde_json::json;

use crate::changes::{edit, repository};
use crate::context::project;
use crate::query::bulk;
use crate::support::{Ask, Root, memory, rows, sorted_ids, titled, write_file};

/// The ids and reasons of both lists, as the tool and the hook choose them.
fn choices(service: &Service, folder: &Path, max: usize) -> [Vec<[String; 2]>; 4] {
    let path = Some(folder.display().to_string());
    let tool = service
        .get_context(&ContextRequest {
            project_path: path.clone(),
            max_memories: Some(i64::try_from(max).unwrap()),
            max_tokens: Some(20_000),
            ..ContextRequest::default()
        })
        .unwrap();
    let brief = BriefRequest { project_path: path, own: max, others: max, sessions: true };
    let hook = service.session_brief(&brief).unwrap().context;
    assert_eq!(tool.recent_sessions, hook.recent_sessions);
    assert_eq!(tool.pending, hook.pending);
    let shown = |hits: &[MemoryHit]| {
        let shown = hits.iter().map(|hit| [hit.id.clone(), hit.why.clone().unwrap()]);
        shown.collect()
    };
    [
        shown(&tool.recent_memories),
        shown(&hook.recent_memories),
        shown(&tool.cross_project_learnings),
        shown(&hook.cross_project_learnings),
    ]
}

/// How many memories were chosen; both choose the same.
#[track_caller]
fn check(service: &Service, folder: &Path, max: usize) -> usize {
    let [tool_own, hook_own, tool_others, hook_others] = choices(service, folder, max);
    assert_eq!(tool_own, hook_own, "{}", folder.display());
    assert_eq!(tool_others, hook_others, "{}", folder.display());
    tool_own.len() + tool_others.len()
}

/// A project whose branch and manifest say something.
fn busy(root: &Root, name: &str) -> std::path::PathBuf {
    let folder = project(root, name, "fix/lock-timeout-of-migrations");
    let text = "[dependencies]\nsqlx = \"0.8\"\ntokio = \"1\"\n";
    write_file(folder.join("Cargo.toml"), text);
    folder
}

#[test]
fn both_sources_choose_the_same_from_the_samples() {
    let root = Root::samples();
    for name in ["ledger-api", "kiosk-web", "platform", "unheard-of"] {
        let folder = busy(&root, name);
        for max in [1, 3, 6, 10] {
            // A service that was asked before has indexes, and one that was not has none.
            let warm = root.service();
            let query = ack_api::QueryRequest::default();
            warm.query_memories(&query).unwrap();
            assert_eq!(check(&warm, &folder, max), check(&root.service(), &folder, max));
        }
    }
}

#[test]
fn cross_project_memories_need_evidence() {
    let root = Root::new();
    let memories = rows(
        "project | id | title | facts | concepts | created_at",
        r#"
        kiosk | dependency | sqlx needs offline data
        kiosk | in-passing | Checks are slow | ["a timeout hit once"]
        kiosk | two-words | A job waits | ["it holds a lock until the timeout"]
        kiosk | title-word | Migrations run first
        kiosk | names-us | What ledger expects of its callers
        kiosk | everyday | Time is told in UTC, log it
        kiosk | labelled | Clocks differ | - | ["time"]
        kiosk | language | Rust edition 2024
        kiosk | tagged-language | Editions | - | ["rust"]
        kiosk | habit | Fix the fixture, add a chore
        kiosk | recent | The newest of all | - | - | 2026-06-01T00:00:00Z
        "#,
    );
    bulk(&root, "shared", &memories);
    bulk(&root, "ledger", &[titled("own", "Ours")]);
    let folder = project(&root, "ledger", "fix/PAY-12-lock-timeout-migrations");
    let text = "[dependencies]\nsqlx = \"0.8\"\ntime = \"0.3\"\nlog = \"0.4\"\n";
    write_file(folder.join("Cargo.toml"), text);
    let [_, _, others, _] = choices(&root.service(), &folder, 50);
    let mut ids: Vec<&str> = others.iter().map(|[id, _]| id.as_str()).collect();
    ids.sort_unstable();
    let expected = "dependency labelled names-us tagged-language title-word two-words";
    assert_eq!(ids.join(" "), expected, "{others:?}");
}

#[test]
fn files_match_every_spelling_in_a_memory() {
    let root = Root::new();
    let top = root.path().join("work/ledger");
    repository(&top, &["migrations/004_lock.sql", "src/pay/mod.rs", "src/other.rs"]);
    edit(&top.join("migrations/004_lock.sql"), 20);
    edit(&top.join("src/pay/mod.rs"), 10);
    let about = |id: &str, file: &str| {
        let rest = json!({ "files": [file, "docs/unrelated.md"], "project": "ledger" });
        memory(id, &format!("About {id}"), rest)
    };
    let named = [
        ("folder", "migrations/"),
        ("glob", "migrations/*.sql"),
        ("lines", "migrations/004_lock.sql:10-20"),
        ("anchor", "./migrations/004_lock.sql#L10"),
        ("backslashes", "src\\pay\\mod.rs"),
        ("elsewhere", "/Users/ann/src/ledger/migrations/"),
    ];
    let others = [
        ("other-folder", "old_migrations/"),
        ("other-glob", "*.sql"),
        ("other-file", "src/web/mod.rs"),
        ("other-root", "/srv/kiosk/migrations/"),
    ];
    let memories = named.iter().chain(&others).map(|(id, file)| about(id, file));
    bulk(&root, "ledger", &memories.collect::<Vec<_>>());
    let service = root.service();
    let [_, own, ..] = choices(&service, &top, 10);
    let changed = own.iter().filter(|[_, why]| why.starts_with("about changed files"));
    let mut changed: Vec<&str> = changed.map(|[id, _]| id.as_str()).collect();
    changed.sort_unstable();
    let mut expected = named.map(|(id, _)| id);
    expected.sort_unstable();
    assert_eq!(changed, expected, "{own:?}");
    let found = |file: &str| {
        let answer = service.find(json!({ "files": [file], "limit": 20, "scope": "ledger" }));
        sorted_ids(&answer["results"])
    };
    for file in ["migrations/004_lock.sql", ".\\migrations\\004_lock.sql:7"] {
        let expected = ["anchor", "folder", "glob", "lines", "other-glob"];
        assert_eq!(found(file), expected, "{file}");
    }
    assert_eq!(found("src/pay/mod.rs"), ["backslashes"]);
}
