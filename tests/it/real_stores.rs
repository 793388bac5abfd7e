//! Stores that other programs wrote, read in place. They are not part of this repository:
//! `ACK_TEST_REAL_STORES` names their folder, and without it these tests do nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ack_api::QueryRequest;
use ack_memory::Service;
use serde_json::json;

use crate::store_support::{
    assert_neutral, every_answer, everything, fetched, hits, ids, pages, words,
};
use crate::support::{Ask, Root, fingerprint, outside};

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
        let id = format!("obs-{number}");
        assert!(in_log.contains(&id), "{id} is only in the log");
    }
    assert_eq!(fetched(&service, "sum-74")["type"], "session_summary");
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
    assert_eq!(fingerprint(&folder), before);
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
        let request = QueryRequest { project: Some(project.to_owned()), ..everything() };
        let seen = all_ids(&service, &request);
        assert_eq!(count(&seen, "obs-"), observations, "{project}");
        assert_eq!(count(&seen, "sum-"), summaries, "{project}");
    }
    let listed = service.scopes(json!({ "scope": "real" }));
    let scope = &listed["scopes"][0];
    assert_eq!(scope["profile"], "claude-mem");
    assert_eq!(scope["memory_count"], 756);
    assert_eq!(scope["counts"]["staging"], 756);
    for project in "ledger-api kiosk-web dotfiles ops-runbook relay-ex".split(' ') {
        assert!(scope["projects"].as_array().unwrap().contains(&json!(project)));
    }
    let updated = scope["last_updated"].as_str().unwrap();
    assert!(updated.starts_with("2026-11-21"), "{updated}");
}
