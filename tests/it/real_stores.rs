//! Stores that other programs wrote, read in place. They are not part of this repository:
//! `ACK_TEST_REAL_STORES` names their folder, and without it these tests do nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ack_api::{ListScopesRequest, QueryRequest};
use ack_memory::Service;
use serde_json::{Value, json};

use crate::store_support::{
    assert_neutral, every_answer, everything, fetched, hits, ids, pages, words,
};
use crate::support::{Root, fingerprint, outside};

/// A root with one scope whose manifest names a store of the outside folder, which is opened in
/// place; with further lines for the manifest.
pub fn in_place(name: &str, more: &str) -> Option<(Root, Service, PathBuf)> {
    let folder = outside("ACK_TEST_REAL_STORES")?.canonicalize().unwrap();
    let store = folder.join(name);
    let root = Root::new();
    root.manifest("real", &format!("store = {}\n{more}\n", json!(store)));
    let service = root.service();
    Some((root, service, store.parent().unwrap().to_owned()))
}

const CLAUDE: &str = "claude-mem/claude-mem.db";
const LIVE: &str = "claude-mem-live/claude-mem.db";

fn count(ids: &BTreeSet<String>, prefix: &str) -> usize {
    ids.iter().filter(|id| id.starts_with(prefix)).count()
}

/// Every id, page by page; no id comes twice.
fn all_ids(service: &Service, request: &QueryRequest) -> BTreeSet<String> {
    let pages = pages(service, request);
    let total = pages[0].total;
    let mut seen = BTreeSet::new();
    for id in pages.iter().flat_map(ids) {
        assert!(seen.insert(id.clone()), "{id} comes twice");
    }
    assert_eq!(seen.len() as u64, total);
    seen
}

#[test]
fn every_row_of_a_closed_claude_mem_store_is_found_once() {
    let Some((_root, service, folder)) = in_place(CLAUDE, "") else {
        return;
    };
    let before = fingerprint(&folder);
    for limit in [7, 50] {
        let request = QueryRequest {
            limit: Some(limit),
            ..everything()
        };
        let seen = all_ids(&service, &request);
        assert_eq!(
            (count(&seen, "obs-"), count(&seen, "sum-")),
            (683, 73),
            "{limit} a page"
        );
        for gone in ["obs-15", "obs-189", "obs-361", "obs-541"] {
            assert!(!seen.contains(gone), "{gone} was deleted");
        }
    }
    // Small answers cut their pages; nothing is lost by that.
    let request = QueryRequest {
        max_tokens: Some(1_500),
        ..everything()
    };
    assert_eq!(all_ids(&service, &request).len(), 683 + 73);
    assert_eq!(fingerprint(&folder), before);
}

#[test]
fn every_row_of_a_running_claude_mem_store_is_found_with_its_log() {
    let Some((_root, service, folder)) = in_place(LIVE, "") else {
        return;
    };
    let before = fingerprint(&folder);
    let seen = all_ids(&service, &everything());
    assert_eq!((count(&seen, "obs-"), count(&seen, "sum-")), (711, 74));
    let in_log: BTreeSet<String> = hits(&service, &words("WAL only"))
        .into_iter()
        .flat_map(|hit| std::iter::once(hit.id).chain(hit.also.into_iter().map(|also| also.id)))
        .collect();
    for number in 688..=715 {
        assert!(
            in_log.contains(&format!("obs-{number}")),
            "obs-{number} is only in the log"
        );
    }
    assert_eq!(fetched(&service, "sum-74")["type"], "session_summary");
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
    assert_eq!(fingerprint(&folder), before);
}

#[test]
fn the_log_of_a_running_store_is_read_without_its_shared_memory_too() {
    let Some(folder) = outside("ACK_TEST_REAL_STORES") else {
        return;
    };
    let root = Root::new();
    let target = root.scope_folder("copied");
    for name in ["claude-mem.db", "claude-mem.db-wal"] {
        std::fs::copy(folder.join("claude-mem-live").join(name), target.join(name)).unwrap();
    }
    let before = fingerprint(root.path());
    assert_eq!(all_ids(&root.service(), &everything()).len(), 711 + 74);
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn the_projects_of_a_claude_mem_store_have_all_their_rows() {
    let Some((_root, service, _)) = in_place(CLAUDE, "") else {
        return;
    };
    for (project, observations, summaries) in [
        // The rows of the merged worktree belong to its project as well.
        ("ledger-api", 197 + 18, 20 + 2),
        ("ledger-api/retry-webhooks", 18, 2),
        ("kiosk-web", 135, 15),
        ("Kiosk_Web", 135, 15),
        ("dotfiles", 134, 15),
        ("ops-runbook", 130, 12),
        ("relay-ex", 69, 9),
        ("nothing", 0, 0),
    ] {
        let request = QueryRequest {
            project: Some(project.to_owned()),
            ..everything()
        };
        let seen = all_ids(&service, &request);
        assert_eq!(
            (count(&seen, "obs-"), count(&seen, "sum-")),
            (observations, summaries),
            "{project}"
        );
    }
    let scopes = service
        .list_scopes(&ListScopesRequest {
            scope: Some("real".to_owned()),
            ..ListScopesRequest::default()
        })
        .unwrap();
    let scope = &scopes.scopes[0];
    assert_eq!(scope.profile.as_deref(), Some("claude-mem"));
    assert_eq!(scope.memory_count, Some(756));
    assert_eq!(scope.counts.unwrap().staging, 756);
    let projects: BTreeSet<&str> = scope.projects.iter().map(String::as_str).collect();
    assert!(
        [
            "ledger-api",
            "kiosk-web",
            "dotfiles",
            "ops-runbook",
            "relay-ex"
        ]
        .iter()
        .all(|project| projects.contains(project))
    );
    assert!(
        scope
            .last_updated
            .as_deref()
            .unwrap()
            .starts_with("2026-11-21"),
        "{:?}",
        scope.last_updated
    );
}

#[test]
fn unusual_rows_are_served_sensibly() {
    let Some((_root, service, _)) = in_place(CLAUDE, "") else {
        return;
    };
    let get = |number: u32| fetched(&service, &format!("obs-{number}"));
    let repaired = |memory: &Value| {
        memory["notes"]
            .as_array()
            .is_some_and(|notes| notes.iter().any(|note| note["kind"] == "repaired_values"))
    };
    for number in 654..=663 {
        let memory = get(number);
        let (title, text) = (
            memory["title"].as_str().unwrap(),
            memory["narrative"].as_str().unwrap(),
        );
        assert!(
            title.len() > 10 && text.starts_with(title.trim_end_matches('…').trim_end()),
            "{memory}"
        );
    }
    for number in 664..=667 {
        let memory = get(number);
        assert_eq!(
            memory["concepts"].as_array().unwrap()[..2],
            [json!("gotcha"), json!("pattern")],
            "{memory}"
        );
        assert_eq!(
            memory["facts"],
            json!(["First fact.", "Second fact."]),
            "{memory}"
        );
    }
    for number in 668..=671 {
        let memory = get(number);
        assert_eq!(memory["concepts"].as_array().unwrap().len(), 2, "{memory}");
        assert_eq!(
            memory["facts"],
            json!(["first fact", "second fact"]),
            "{memory}"
        );
    }
    let memory = get(672);
    assert!(
        memory.get("facts").is_none()
            && memory.get("concepts").is_none()
            && memory.get("files").is_none()
            && !repaired(&memory)
    );
    let memory = get(673);
    assert_eq!(
        (&memory["facts"], &memory["concepts"]),
        (&json!(["cut off in the mid"]), &json!(["how-it-works"]))
    );
    assert!(repaired(&memory));
    let memory = get(674);
    assert_eq!(
        (&memory["facts"], &memory["concepts"]),
        (&json!(["0: facts as an object"]), &json!(["pattern"]))
    );
    assert!(repaired(&memory));
    let memory = get(675);
    assert_eq!(memory["concepts"], json!(["gotcha", "7", "name: nested"]));
    assert_eq!(
        memory["title"],
        "<invoke name=\"x\">a title with markup & \"quotes\"</invoke>"
    );
    let memory = get(676);
    assert!(memory.get("facts").is_none() && memory.get("concepts").is_none());
    assert_eq!(memory["files"], json!(["a.rb", "app/models/bare path.rb"]));
    let memory = get(677);
    assert_eq!(memory["title"], "Empty type and empty title.");
    assert!(memory.get("type").is_none());
    let memory = get(678);
    assert_eq!(memory["title"], "A title with a line break and a tab");
    assert_eq!(
        (&memory["type"], &memory["concepts"]),
        (
            &json!("Custom Type 9"),
            &json!(["how-it-works: explains it", "gotcha:x"])
        )
    );
    let memory = get(679);
    assert_eq!(
        memory["created_at"], "2026-03-01T10:25:25Z",
        "the epoch is right: {memory}"
    );
    assert!(repaired(&memory));
    assert_eq!(get(687)["title"], "The terminal bell is off");
    assert_eq!(get(686)["title"], "火曜日はデプロイしない");
    let memory = get(107);
    assert_eq!(memory["title"], "Bumped Node to 22");
    assert!(memory.get("narrative").is_none());
    for (number, length) in [(14, 24_000), (61, 24_000)] {
        assert!(get(number)["narrative"].as_str().unwrap().len() <= length);
    }
}

#[test]
fn the_context_of_a_project_comes_from_its_rows() {
    let Some((_root, service, _)) = in_place(
        CLAUDE,
        "unreviewed = \"approved\"\nprojects = [\"ledger-api\"]",
    ) else {
        return;
    };
    let answer = service
        .get_context(&ack_api::ContextRequest {
            project_path: Some("/nowhere/ledger-api".to_owned()),
            ..Default::default()
        })
        .unwrap();
    assert_eq!(answer.project.scope.as_deref(), Some("real"));
    assert!(!answer.recent_memories.is_empty() && !answer.recent_sessions.is_empty());
    for hit in &answer.recent_memories {
        assert!(
            hit.project.as_deref().unwrap().starts_with("ledger-api"),
            "{hit:?}"
        );
    }
    for hit in &answer.cross_project_learnings {
        assert_ne!(hit.project.as_deref(), Some("ledger-api"), "{hit:?}");
    }
}
