//! Several rows of one store with one id: every entry point shows the same one of them. A row that
//! agents see comes before one that waits, that one before a rejected one, and the first of several
//! equals before the others. So an approved row is served, and no other one takes its place.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ack_api::memory::{Status, Unreviewed};
use ack_memory::Service;
use ack_memory::internal::BriefRequest;
use ack_store::{Access, READ_TIMEOUT, Store, StoreSettings};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::cli::{ack, ack_with_input};
use crate::context::project;
use crate::support::{Ask, Root, Sql, write_file};

/// A word of the texts of each row.
const MARKS: [&str; 3] = ["quince", "medlar", "damson"];
const STATUSES: [Status; 4] =
    [Status::Staging, Status::Approved, Status::Promoted, Status::Rejected];
/// So many other rows that a changed one is read alone.
const OTHERS: usize = 40;

/// A root with a scope `own`, three of whose rows have the id `twin`, and the project's folder.
fn root() -> (Root, PathBuf) {
    let root = Root::new().let_agents_review();
    let folder = project(&root, "own", "main");
    let path = root.scope_folder("own").join("memory.db");
    let key = "id            TEXT PRIMARY KEY NOT NULL";
    let schema = ack_memory::internal::import::SCHEMA.replacen(key, "id TEXT", 1);
    let store = Connection::open(path).unwrap();
    store.sql(&schema);
    let insert = "INSERT INTO memories (id, project, title, narrative, facts, files, type, status, created_at) \
                  VALUES (?1, 'own', ?2, ?3, ?4, ?5, 'decision', 'approved', ?6)";
    for mark in MARKS {
        store.sql_with(
            insert,
            params![
                "twin",
                format!("Orchard rule {mark}"),
                format!("Because of the {mark}."),
                json!([format!("fact of the {mark}")]).to_string(),
                json!([format!("src/{mark}.rs"), "src/orchard.rs"]).to_string(),
                "2026-02-01",
            ],
        );
    }
    for other in 0..OTHERS {
        let title = format!("Harbour note number {other}");
        let id = format!("other-{other}");
        store.sql_with(insert, params![id, title, "Nothing else.", "[]", "[]", "2026-01-01"]);
    }
    (root, folder)
}

fn open(root: &Root) -> Connection {
    Connection::open(root.scope_folder("own").join("memory.db")).unwrap()
}

/// The rows whose words a text has.
fn marks_in(text: &str) -> Vec<usize> {
    let text = text.to_lowercase();
    (0..MARKS.len()).filter(|row| text.contains(MARKS[*row])).collect()
}

/// The row that owns the id.
fn strongest(statuses: &[Status]) -> usize {
    let place = |status: &Status| match status {
        Status::Approved | Status::Promoted => 0,
        Status::Staging => 1,
        Status::Rejected => 2,
    };
    let mut rows: Vec<usize> = (0..statuses.len()).collect();
    rows.sort_by_key(|row| place(&statuses[*row]));
    rows[0]
}

/// What each entry point shows, with the statuses that it lets through.
fn entry_points(
    service: &Service,
    root: &Root,
    folder: &Path,
) -> Vec<(String, &'static str, String)> {
    let answer_of = |tool: &'static str, arguments: Value| {
        let answer = call(service, tool, arguments);
        // An error is an answer, too.
        answer.map_or_else(|error| error.body().message.clone(), |answer| answer.to_string())
    };
    let mut entry_points = Vec::new();
    for status in ["approved", "staging", "all"] {
        let queries = [
            json!({ "status": status, "limit": 50 }),
            json!({ "status": status, "query": "orchard rule" }),
            json!({ "status": status, "query": "quince medlar damson", "detail": "full" }),
            json!({ "status": status, "files": "src/orchard.rs", "explain": true }),
        ];
        for arguments in queries {
            let entry_point = format!("query_memories {arguments}");
            // The words that were asked for are not an answer.
            let answer = service.find(arguments);
            entry_points.push((entry_point, status, answer["results"].to_string()));
        }
        let include = ["links", "history", "timeline", "related"];
        for arguments in [
            json!({ "status": status, "id": "twin", "include": include }),
            json!({ "status": status, "ids": ["twin", "other-1"] }),
        ] {
            let entry_point = format!("get_memory {arguments}");
            entry_points.push((entry_point, status, answer_of("get_memory", arguments)));
        }
    }
    for focus in ["", "orchard"] {
        let asked = json!({ "project_path": folder, "focus": focus, "max_memories": 50 });
        let entry_point = format!("get_context, focus `{focus}`");
        entry_points.push((entry_point, "approved", answer_of("get_context", asked)));
    }
    let brief = service.session_brief(&BriefRequest {
        project_path: Some(folder.to_str().unwrap().to_owned()),
        own: 50,
        others: 3,
        sessions: true,
    });
    let brief = json!(brief.unwrap().context).to_string();
    entry_points.push(("the start of a session".into(), "approved", brief));
    let store = Store::with(
        root.scope_folder("own").join("memory.db"),
        Unreviewed::Staging,
        StoreSettings {
            decisions: Some(root.scope_folder("own").join("decisions.jsonl")),
            ..StoreSettings::default()
        },
    );
    store
        .snapshot(|snapshot| {
            let one = snapshot.curated("twin")?.unwrap();
            assert!(one.has_duplicate_id);
            entry_points.push(("to decide".into(), "any", one.memory.title));
            let mut all = String::new();
            snapshot
                .visit_curated(&|_| true, &mut |curated| all.push_str(&curated.memory.title))?;
            entry_points.push(("to publish".into(), "any", all));
            let queue = snapshot.queue(jiff::civil::date(2026, 11, 22))?;
            assert!(queue.duplicate_ids.contains("twin"));
            let waiting = queue.waiting.into_iter().map(|waits| waits.memory.title);
            entry_points.push(("the review queue".into(), "staging", waiting.collect()));
            Ok(())
        })
        .unwrap();
    entry_points
}

fn before_an_edit(service: &Service, folder: &Path, row: Option<usize>) -> String {
    let file = row.map_or("src/orchard.rs".to_owned(), |row| format!("src/{}.rs", MARKS[row]));
    let found = service.about_files(folder.to_str(), &[file], 5).unwrap().memories;
    found.iter().map(|hit| format!("{} ", hit.title)).collect()
}

fn check(service: &Service, root: &Root, folder: &Path, statuses: &[Status], when: &str) {
    let row = strongest(statuses);
    let status = statuses[row];
    for (entry_point, filter, answer) in entry_points(service, root, folder) {
        let is_allowed = match filter {
            "approved" => status.is_served(),
            "staging" => status == Status::Staging,
            "all" => status != Status::Rejected,
            _ => true,
        };
        let expected: Vec<usize> = is_allowed.then_some(row).into_iter().collect();
        assert_eq!(marks_in(&answer), expected, "{when}, {statuses:?}, {entry_point}: {answer}");
    }
    let expected: Vec<usize> = status.is_served().then_some(row).into_iter().collect();
    let named = before_an_edit(service, folder, None);
    assert_eq!(marks_in(&named), expected, "{when}, {statuses:?}: {named}");
    for other in 0..MARKS.len() {
        let named = before_an_edit(service, folder, Some(other));
        let expected: Vec<usize> = expected.iter().copied().filter(|row| *row == other).collect();
        assert_eq!(marks_in(&named), expected, "{when}, {statuses:?}: {named}");
    }
}

#[test]
fn every_entry_point_shows_the_same_row_of_a_duplicate_id() {
    let (root, folder) = root();
    let follows = root.service();
    let store = open(&root);
    let mut round = 0;
    for first in STATUSES {
        for second in STATUSES {
            // Not every combination of three: each of the third with many of the others.
            let third = STATUSES[round % STATUSES.len()];
            let statuses = [first, second, third];
            // Rows change one by one, alternately in status and in text, and are queried in
            // between.
            for step in 0..MARKS.len() {
                let row = (step + round) % MARKS.len();
                let sql = "UPDATE memories SET status = ?1 WHERE id = 'twin' AND rowid = ?2";
                let rowid = i64::try_from(row + 1).unwrap();
                store.sql_with(sql, params![statuses[row].as_str(), rowid]);
                if (round + step).is_multiple_of(2) {
                    let sql =
                        "UPDATE memories SET narrative = narrative || ' So.' WHERE rowid = ?1";
                    store.sql_with(sql, [rowid]);
                }
                let query = json!({ "query": "orchard rule" });
                let anew = root.service().find(query.clone());
                assert_eq!(follows.find(query)["results"], anew["results"]);
            }
            check(&follows, &root, &folder, &statuses, "followed");
            check(&root.service(), &root, &folder, &statuses, "read anew");
            round += 1;
        }
    }
}

#[test]
fn a_decision_about_a_duplicate_id_applies_only_to_its_content() {
    let (root, folder) = root();
    let store = open(&root);
    let digest_of = |row: usize| {
        // The others are removed for the moment.
        let rowid = i64::try_from(row + 1).unwrap();
        let set = |from: &str, to: &str| {
            let sql = "UPDATE memories SET id = ?1 WHERE id = ?2 AND rowid <> ?3";
            store.sql_with(sql, params![to, from, rowid]);
        };
        set("twin", "aside");
        let path = root.scope_folder("own").join("memory.db");
        let reader = Store::new(path, Unreviewed::Staging);
        let read = reader.snapshot(|snapshot| snapshot.curated("twin"));
        set("aside", "twin");
        read.unwrap().unwrap().digest
    };
    let digests: Vec<String> = (0..MARKS.len()).map(digest_of).collect();
    let log = root.scope_folder("own").join("decisions.jsonl");
    let service = root.service();
    let mut stored = [Status::Staging; 3];
    for (round, (row, verdict)) in
        [(1, "approve"), (2, "approve"), (0, "reject"), (2, "reject")].into_iter().enumerate()
    {
        stored[round % 3] = Status::Approved;
        for (row, status) in stored.iter().enumerate() {
            let sql = "UPDATE memories SET status = ?1 WHERE rowid = ?2";
            let rowid = i64::try_from(row + 1).unwrap();
            store.sql_with(sql, params![status.as_str(), rowid]);
        }
        let line = json!({
            "id": "twin", "digest": digests[row], "verdict": verdict, "was": "staging",
            "reason": format!("Reason {}", MARKS[row]), "actor": "human:somebody",
            "time": "2026-03-01T00:00:00Z",
        });
        write_file(&log, format!("{line}\n"));
        // It says nothing about the others, which wait until somebody decides about them.
        let mut statuses = [Status::Staging; 3];
        statuses[row] = match verdict {
            "approve" => Status::Approved,
            _ => Status::Rejected,
        };
        check(&service, &root, &folder, &statuses, "decided");
    }
}

#[test]
fn only_the_served_row_names_its_successor() {
    let (root, _) = root();
    let path = root.scope_folder("own").join("memory.db");
    let replaced = |sql: &str| {
        open(&root).sql(sql);
        let store = Store::new(path.clone(), Unreviewed::Staging);
        let newer = HashSet::from(["other-1"]);
        let older =
            store.read(Access::FullScan, READ_TIMEOUT, |snapshot| snapshot.replaced_by(&newer));
        let served = older.unwrap().into_iter().filter(|older| older.status.is_served());
        served.map(|older| older.id).collect::<Vec<_>>()
    };
    assert!(replaced("UPDATE memories SET superseded_by = 'other-1' WHERE rowid = 2").is_empty());
    let found = replaced("UPDATE memories SET status = 'staging' WHERE rowid = 1");
    assert_eq!(found, ["twin"]);
    assert!(
        replaced(
            "UPDATE memories SET superseded_by = 'other-1' WHERE rowid <= 3;
             UPDATE memories SET status = 'rejected' WHERE rowid <= 3"
        )
        .is_empty()
    );
}

#[test]
fn links_and_successors_point_to_the_served_row() {
    let (root, _) = root();
    let store = open(&root);
    store.sql(
        "UPDATE memories SET status = 'rejected' WHERE rowid = 1;
             UPDATE memories SET status = 'staging' WHERE rowid = 2;
             INSERT INTO memory_links (from_id, to_id, kind) VALUES ('other-1', 'twin', 'related');
             UPDATE memories SET superseded_by = 'twin' WHERE id = 'other-2'",
    );
    let service = root.service();
    let linked = json!({ "id": "other-1", "include": "links" });
    let linked = service.fetch(linked);
    assert_eq!(linked["links"][0]["title"], "Orchard rule damson");
    let query = json!({ "query": "harbour note number 2" });
    let listed = |service: &Service| service.find(query.clone());
    assert_lacks!(listed(&service)["results"].to_string(), "other-2\"");
    store.sql("UPDATE memories SET status = 'staging' WHERE rowid = 3");
    assert_contains!(listed(&service)["results"].to_string(), "other-2\"");
    let linked = json!({ "id": "other-1", "include": "links" });
    let linked = service.fetch(linked);
    assert!(linked.get("links").is_none_or(|links| links == &json!([])), "{linked}");
}

#[test]
fn the_approved_row_of_a_duplicate_id_is_shown_with_a_note() {
    let (root, folder) = root();
    open(&root).sql("UPDATE memories SET status = 'staging' WHERE rowid IN (1, 3)");
    let served = |text: &str| assert_eq!(marks_in(text), [1], "{text}");
    served(&ack(root.path(), &["query", "orchard", "--long"]).ok());
    served(&ack(root.path(), &["get", "twin"]).ok());
    served(&ack(root.path(), &["get", "twin", "--status", "all", "--include", "links"]).ok());
    let target = folder.join("published");
    let target = target.to_str().unwrap();
    let command = ["publish", "own", "--to-folder", target, "--yes"];
    ack(root.path(), &command).ok();
    let published = std::fs::read_dir(target).unwrap();
    let published: String =
        published.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok()).collect();
    served(&published);
    let sent = json!({ "hook_event_name": "SessionStart", "source": "startup", "cwd": folder });
    let sent = sent.to_string();
    served(&ack_with_input(root.path(), &["hook", "session-start"], sent.as_bytes()).ok());
    let refused = ack(root.path(), &["reject", "twin", "--dry-run"]);
    assert_ne!(refused.code, Some(0), "{}", refused.out);
    assert_contains!(refused.err, "twin");
    let scopes = ack(root.path(), &["scopes"]).ok();
    let expected = "2 rows repeat the id of another row (`twin`); the first approved one counts";
    assert_contains!(scopes, expected);
    let queue = ack(root.path(), &["review", "--list"]).ok();
    assert!(marks_in(&queue).is_empty(), "{queue}");
}
