//! The decision log: decisions count from the next answer on, at every entry point, and only for
//! the content that was decided on.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use ack_api::memory::Unreviewed;
use ack_memory::Service;
use ack_store::{Store, StoreSettings};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::CLAUDE_MEM;
use crate::support::{Ask, Root, Sql, fingerprint, result_ids, run_sql, titled, unreviewed};

/// Appends a decision about a memory's present content.
pub fn decide(folder: &Path, database: &str, id: &str, verdict: &str, rest: Value) {
    let store = Store::with(
        folder.join(database),
        Unreviewed::Staging,
        StoreSettings {
            decisions: Some(folder.join("decisions.jsonl")),
            ..StoreSettings::default()
        },
    );
    let curated = store.snapshot(|snapshot| snapshot.curated(id)).unwrap();
    let curated = curated.unwrap();
    let mut line = json!({
        "id": id, "digest": curated.digest, "verdict": verdict, "was": curated.memory.status,
        "actor": "human:ana", "time": "2026-03-01T10:00:00Z",
    });
    for (key, value) in rest.as_object().unwrap() {
        line[key] = value.clone();
    }
    append(folder, &line.to_string());
}

fn append(folder: &Path, line: &str) {
    let path = folder.join("decisions.jsonl");
    let mut log = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(log, "{line}").unwrap();
}

fn found(service: &Service, arguments: Value) -> Vec<String> {
    result_ids(&service.find(arguments))
}

/// A claude-mem database, which records no status.
fn claude_mem() -> (Root, std::path::PathBuf) {
    let root = Root::new();
    let path = root.scope_folder("cm").join("claude-mem.db");
    let connection = Connection::open(&path).unwrap();
    connection.sql(CLAUDE_MEM);
    connection.sql("PRAGMA foreign_keys = OFF");
    for (id, title) in [(1, "Deploy on Tuesday"), (2, "Deploy at night"), (3, "Deploy by hand")] {
        connection.sql_with("INSERT INTO observations (id, memory_session_id, project, type, title, \
                 narrative, created_at, created_at_epoch) \
                 VALUES (?1, 's1', 'shop', 'decision', ?2, 'Text ' || ?1, '2026-03-01T00:00:00Z', 1772323200000 + ?1)", (id, title));
    }
    (root, path)
}

#[test]
fn a_store_that_records_no_status_shows_exactly_what_was_approved() {
    let (root, path) = claude_mem();
    let folder = root.scope_folder("cm");
    let service = root.service();
    let query = || found(&service, json!({ "query": "deploy" }));
    assert_eq!(query(), Vec::<String>::new());
    decide(&folder, "claude-mem.db", "obs-2", "approve", json!({}));
    let before = fingerprint(&folder);
    assert_eq!(query(), ["obs-2"]);
    let scopes = service.scopes(json!({}));
    assert_eq!(scopes["scopes"][0]["counts"]["approved"], 1, "{scopes:#}");
    let context = service.brief(json!({ "project_path": root.path() }));
    assert_lacks!(context.to_string(), "Tuesday");
    let got = service.fetch(json!({ "id": "obs-2", "include": "history" }));
    assert_eq!(got["status"], "approved");
    assert_eq!(got["history"][0]["actor"], "human:ana", "{got:#}");
    // Another decision, immediately: the very next answer follows it.
    decide(&folder, "claude-mem.db", "obs-2", "reject", json!({}));
    decide(&folder, "claude-mem.db", "obs-3", "promote", json!({}));
    assert_eq!(query(), ["obs-3"]);
    decide(&folder, "claude-mem.db", "obs-2", "withdraw", json!({}));
    let shown = found(&service, json!({ "status": "staging" }));
    assert_eq!(shown, ["obs-2", "obs-1"]);
    assert_eq!(fingerprint(&folder).get(&path), before.get(&path));
}

#[test]
fn text_cannot_be_swapped_under_an_approval() {
    let (root, path) = claude_mem();
    let folder = root.scope_folder("cm");
    let service = root.service();
    decide(&folder, "claude-mem.db", "obs-1", "approve", json!({}));
    assert_eq!(found(&service, json!({})), ["obs-1"]);
    let writer = Connection::open(&path).unwrap();
    writer.sql("PRAGMA foreign_keys = OFF");
    for change in
        "title = 'Deploy on Friday' | subtitle = 'x' | facts = '[\"x\"]' | narrative = 'x' | \
        concepts = '[\"x\"]' | files_modified = '[\"x\"]' | files_read = '[\"x\"]' | \
        type = 'x' | project = 'x' | text = 'x' | title = CAST('Deploy on Tuesday' AS BLOB)"
            .split(" | ")
    {
        writer
            .sql(&format!("SAVEPOINT a; UPDATE observations SET {change} WHERE id = 1; RELEASE a"));
        assert_eq!(found(&service, json!({})), Vec::<String>::new(), "{change}");
        assert!(found(&service, json!({ "status": "staging" })).contains(&"obs-1".to_owned()));
        writer.sql(
            "UPDATE observations SET title = 'Deploy on Tuesday', subtitle = NULL, \
                 facts = NULL, narrative = 'Text 1', concepts = NULL, files_modified = NULL, \
                 files_read = NULL, type = 'decision', project = 'shop', text = NULL WHERE id = 1",
        );
        assert_eq!(found(&service, json!({})), ["obs-1"], "{change}");
    }
    // Changes to anything but the content do not matter.
    writer.sql("UPDATE observations SET discovery_tokens = 9, content_hash = 'x' WHERE id = 1");
    assert_eq!(found(&service, json!({})), ["obs-1"]);
}

#[test]
fn in_a_database_a_rejection_is_about_one_id() {
    let equal = ["a", "b"].map(|id| titled(id, "Retry twice"));
    let root = Root::with("alpha", &equal);
    let folder = root.scope_folder("alpha");
    decide(&folder, "memory.db", "a", "reject", json!({}));
    assert_eq!(found(&root.service(), json!({})), ["b"]);
}

#[test]
fn the_digest_of_a_row_stays_the_same_in_all_versions() {
    // Computed with another program from the description in docs/curation.md.
    const EXPECTED: &str =
        "sha256:3171174605c5180cef20bae0d11355dead3b7e46cc2068a706f0bee9f61cc26b";
    let root = Root::new();
    let path = root.store("alpha", &[titled("a", "Retry twice")]);
    run_sql(
        &path,
        "UPDATE memories SET project = 'red', type = 'bugfix', subtitle = NULL, facts = '[\"Once is too few\"]', \
             concepts = NULL, files = NULL, narrative = 'Because of the proxy.'",
    );
    let store = Store::new(path, Unreviewed::Staging);
    let curated = store.snapshot(|snapshot| snapshot.curated("a")).unwrap();
    assert_eq!(curated.unwrap().digest, EXPECTED);
}

#[test]
fn an_edited_memory_is_found_and_shown_as_it_was_edited() {
    let (root, _) = claude_mem();
    let folder = root.scope_folder("cm");
    let service = root.service();
    let edit = json!({ "edit": {
        "title": "Ship on Wednesday", "facts": ["The window is at noon"], "concepts": ["release"],
    } });
    decide(&folder, "claude-mem.db", "obs-1", "edit", edit);
    assert_eq!(found(&service, json!({ "query": "wednesday" })), ["obs-1"]);
    assert_eq!(found(&service, json!({ "tags": ["release"] })), ["obs-1"]);
    let got = service.fetch(json!({ "id": "obs-1" }));
    assert_eq!(got["title"], "Ship on Wednesday");
    assert_eq!(got["facts"], json!(["The window is at noon"]));
    assert_eq!(got["narrative"], "Text 1");
    let shown = found(&service, json!({ "query": "tuesday", "mode": "lexical" }));
    assert_eq!(shown, Vec::<String>::new());
}

#[test]
fn a_later_rejection_in_the_store_is_respected() {
    let root = Root::new();
    let path = root.store("alpha", &[unreviewed("a", "Retry twice")]);
    let folder = root.scope_folder("alpha");
    let service = root.service();
    decide(&folder, "memory.db", "a", "approve", json!({}));
    assert_eq!(found(&service, json!({})), ["a"]);
    let writer = Connection::open(&path).unwrap();
    writer.sql("UPDATE memories SET status = 'rejected'");
    let shown = found(&service, json!({ "status": "all" }));
    assert_eq!(shown, Vec::<String>::new());
    // A person who sees that and approves it anyway is believed, too.
    decide(&folder, "memory.db", "a", "approve", json!({}));
    assert_eq!(found(&service, json!({})), ["a"]);
}

#[test]
fn a_manifest_that_sends_decisions_elsewhere_is_refused_with_the_way_out() {
    for place in ["store", "log"] {
        let root = Root::with("alpha", &[titled("a", "One")]);
        let settings = format!("description = 'x'\ndecisions = \"{place}\"\n");
        root.manifest("alpha", &settings);
        let shown = crate::cli::ack(root.path(), &["scopes"]).out;
        let said = "line 2: the key `decisions` no longer exists";
        assert_contains!(shown, said, "remove the line", "`decisions.jsonl`");
        // The status that the store has still counts once the line is gone.
        root.manifest("alpha", "description = 'x'\n");
        assert_eq!(crate::curate::approved(root.path()), ["a"]);
    }
}
