//! Opening stores in every state that a folder can be in: at rest, under a live writer, after a
//! crash, locked, damaged, missing. The server answers or names the store, within seconds, and no
//! byte under the root changes.

use ack_api::Diagnostic;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::{
    ContextRequest, GetRequest, HealthState, ListScopesRequest, NoteKind, QueryRequest,
    QueryResponse,
};
use ack_memory::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::{
    Other, database, everything, has_note, hits, ids, run_json, unprivileged, within, words,
};
use crate::support::{Root, fingerprint, memory};
use ack_memory::internal::Setting;

/// Longer than any request may take, whatever state a store is in.
const SECONDS: Duration = Duration::from_secs(7);

const WAL: &str = "PRAGMA journal_mode = wal;";

/// A store with three approved memories in scope `one`, in this journal mode, with nobody
/// connected.
fn at_rest(root: &Root, mode: &str) -> PathBuf {
    let path = root.store(
        "one",
        &[
            memory("m1", "first marker", json!({})),
            memory(
                "m2",
                "second marker",
                json!({ "narrative": "A row that takes several pages of its own. ".repeat(480) }),
            ),
            memory("m3", "third marker", json!({})),
        ],
    );
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!("PRAGMA journal_mode = {mode};"))
        .unwrap();
    path
}

fn sidecar(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Ids of everything that is found, in order; asking may change nothing under the root.
fn found(root: &Root, service: &Service) -> Vec<String> {
    let before = fingerprint(root.path());
    let mut found: Vec<String> = within(SECONDS, "a query", || hits(service, &everything()))
        .into_iter()
        .map(|hit| hit.id)
        .collect();
    assert_eq!(fingerprint(root.path()), before, "a file changed");
    found.sort();
    found
}

fn opened(service: &Service, scope: &str) -> String {
    let request = ListScopesRequest {
        scope: Some(scope.to_owned()),
        ..ListScopesRequest::default()
    };
    let answer = service.list_scopes(&request).unwrap();
    answer.scopes[0]
        .health
        .opened
        .clone()
        .unwrap_or_else(|| format!("{:?}", answer.scopes[0].health))
}

/// The code of the error if the only scope cannot be read; the message names the file.
fn refused(root: &Root, service: &Service, path: &Path) -> String {
    let before = fingerprint(root.path());
    let error = within(SECONDS, "a refusal", || {
        service.query_memories(&everything()).unwrap_err()
    });
    let body = error.body();
    assert!(
        body.message
            .contains(path.file_name().unwrap().to_str().unwrap()),
        "the file is not named: {}",
        body.message
    );
    assert!(body.hint.is_some(), "{body:?}");
    assert_eq!(fingerprint(root.path()), before, "a file changed");
    let scopes = service.list_scopes(&ListScopesRequest::default()).unwrap();
    assert_eq!(scopes.scopes[0].health.state, HealthState::Unavailable);
    body.code
}

#[test]
fn a_store_at_rest_is_read_in_every_journal_mode() {
    for mode in ["delete", "truncate", "persist", "wal", "off", "memory"] {
        let root = Root::new();
        at_rest(&root, mode);
        let service = root.service();
        assert_eq!(found(&root, &service), ["m1", "m2", "m3"], "{mode}");
        assert!(
            opened(&service, "one").contains("at rest"),
            "{mode}: {}",
            opened(&service, "one")
        );
    }
}

#[test]
fn an_empty_wal_next_to_a_store_is_accepted() {
    for mode in ["delete", "wal"] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        fs::write(sidecar(&path, "-wal"), "").unwrap();
        assert_eq!(found(&root, &root.service()), ["m1", "m2", "m3"], "{mode}");
        fs::write(sidecar(&path, "-shm"), "").unwrap();
        assert_eq!(found(&root, &root.service()), ["m1", "m2", "m3"], "{mode}");
        fs::write(sidecar(&path, "-journal"), "").unwrap();
        assert_eq!(found(&root, &root.service()), ["m1", "m2", "m3"], "{mode}");
    }
}

#[test]
fn rows_in_the_log_of_a_live_writer_are_found_and_the_log_is_left_alone() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let service = root.service();
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    assert!(
        opened(&service, "one").contains("live"),
        "{}",
        opened(&service, "one")
    );
    other.sql("BEGIN IMMEDIATE; INSERT INTO memories (id, title, status) VALUES ('m5', 'not committed', 'approved')");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    other.sql("COMMIT");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4", "m5"]);
    other.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4", "m5"]);
    other.end();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4", "m5"]);
}

#[test]
fn a_log_without_its_shared_memory_is_read() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
    let copied = Root::new();
    let target = copied.scope_folder("one").join("memory.db");
    fs::copy(&path, &target).unwrap();
    fs::copy(sidecar(&path, "-wal"), sidecar(&target, "-wal")).unwrap();
    let service = copied.service();
    assert_eq!(found(&copied, &service), ["m1", "m2", "m3", "m4"]);
    assert!(
        opened(&service, "one").contains("copy"),
        "{}",
        opened(&service, "one")
    );
    // A shared-memory file without an owner, stale or empty, does not change that.
    for stale in [
        Vec::new(),
        vec![0; 32_768],
        vec![0xff; 32_768],
        fs::read(sidecar(&path, "-shm")).unwrap(),
    ] {
        fs::write(sidecar(&target, "-shm"), &stale).unwrap();
        assert_eq!(
            found(&copied, &copied.service()),
            ["m1", "m2", "m3", "m4"],
            "{} bytes",
            stale.len()
        );
    }
}

#[test]
fn the_wal_of_a_killed_writer_is_read_and_left_in_place() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let service = root.service();
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
    other.sql("BEGIN; UPDATE memories SET title = 'torn', narrative = hex(zeroblob(50000)); INSERT INTO memories (id, title) VALUES ('m5', 'torn')");
    other.kill();
    assert!(sidecar(&path, "-wal").exists() && sidecar(&path, "-shm").exists());
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    assert!(
        service
            .query_memories(&words("torn"))
            .unwrap()
            .results
            .is_empty()
    );
    let mut next = Other::open(&path);
    next.sql(
        "INSERT INTO memories (id, title, status) VALUES ('m6', 'after the crash', 'approved')",
    );
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4", "m6"]);
    next.end();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4", "m6"]);
}

#[test]
fn a_hot_journal_is_rolled_back_in_a_copy_and_not_in_place() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    let service = root.service();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
    let mut other = Other::open(&path);
    // A cache of a few pages makes the writer spill what it did not commit into the database
    // itself.
    other.sql("PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE memories SET title = 'torn ' || id, narrative = hex(zeroblob(200000))");
    let spilled = fs::metadata(&path).unwrap().len();
    other.kill();
    assert!(spilled > 400_000, "the writer did not spill: {spilled}");
    assert!(sidecar(&path, "-journal").exists());
    for service in [service, root.service()] {
        assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
        assert!(
            service
                .query_memories(&words("torn"))
                .unwrap()
                .results
                .is_empty()
        );
        assert_eq!(
            ids(&service.query_memories(&words("second")).unwrap()),
            ["m2"]
        );
        assert!(
            opened(&service, "one").contains("copy"),
            "{}",
            opened(&service, "one")
        );
    }
    // The next writer rolls back; then everything is as before.
    let mut next = Other::open(&path);
    next.sql("UPDATE memories SET title = 'after the crash' WHERE id = 'm1'");
    next.end();
    assert_eq!(
        ids(&root.service().query_memories(&words("crash")).unwrap()),
        ["m1"]
    );
}

fn assert_named(answer: &QueryResponse, scope: &str) {
    assert!(
        answer
            .searched
            .skipped
            .iter()
            .any(|skipped| skipped.scope == scope),
        "{:?}",
        answer.searched
    );
    assert!(!answer.searched.scopes.contains(&scope.to_owned()));
    let note = answer
        .notes
        .iter()
        .find(|note| note.kind == NoteKind::ScopeUnavailable)
        .unwrap();
    assert_eq!(note.scope.as_deref(), Some(scope));
}

#[test]
fn a_running_transaction_does_not_delay_an_answer() {
    for mode in ["delete", "truncate", "persist", "memory", "off", "wal"] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        let service = root.service();
        let mut other = Other::open(&path);
        other.sql(&format!("PRAGMA journal_mode = {mode}"));
        other.sql("BEGIN IMMEDIATE; INSERT INTO memories (id, title, status) VALUES ('m4', 'torn', 'approved')");
        let before = fingerprint(root.path());
        let seen = within(
            Duration::from_secs(1),
            "a query beside a transaction",
            || ids(&service.query_memories(&everything()).unwrap()),
        );
        assert_eq!(fingerprint(root.path()), before, "{mode}");
        assert_eq!(seen.len(), 3, "{mode}: {seen:?}");
        other.sql("COMMIT");
        assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"], "{mode}");
    }
}

#[test]
fn paths_of_every_kind_are_opened() {
    for name in [
        "with space",
        "100%25",
        "what?mode=rw",
        "hash#1",
        "a&b=c",
        "größe-データ",
        "quote'\"",
        "semi;colon",
        "back\\slash",
        "file:x",
        "+plus~",
    ] {
        let root = Root::new();
        for mode in ["delete", "wal"] {
            let path = root.store(name, &[memory("m1", "a marker", json!({}))]);
            Connection::open(&path)
                .unwrap()
                .execute_batch(&format!("PRAGMA journal_mode = {mode}"))
                .unwrap();
            assert_eq!(found(&root, &root.service()), ["m1"], "{name} {mode}");
            let mut other = Other::open(&path);
            other.sql(
                "INSERT INTO memories (id, title, status) VALUES ('m2', 'a marker', 'approved')",
            );
            assert_eq!(
                found(&root, &root.service()),
                ["m1", "m2"],
                "{name} {mode} live"
            );
            drop(other);
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _ = fs::remove_file(sidecar(&path, suffix));
            }
        }
        let elsewhere = root.path().join(format!("{name}.sqlite"));
        Connection::open(&elsewhere)
            .unwrap()
            .execute_batch("CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('e1', 'elsewhere')")
            .unwrap();
        root.manifest(
            name,
            &format!("store = {}\n", json!(format!("../../{name}.sqlite"))),
        );
        assert_eq!(found(&root, &root.service()), ["e1"], "{name} by manifest");
    }
}

#[test]
fn a_link_to_a_store_shows_what_its_log_holds() {
    let root = Root::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("claude-mem.db");
    Connection::open(&real)
        .unwrap()
        .execute_batch(&format!(
            "{WAL} CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO observations VALUES (1, 'at rest')"
        ))
        .unwrap();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    root.manifest("one", &format!("store = {}\n", json!(link)));
    let service = root.service();
    assert_eq!(found(&root, &service), ["obs-1"]);
    let mut other = Other::open(&real);
    other.sql("INSERT INTO observations VALUES (2, 'in the log')");
    let before = fingerprint(elsewhere.path());
    assert_eq!(found(&root, &service), ["obs-1", "obs-2"]);
    other.sql("INSERT INTO observations VALUES (3, 'in the log as well')");
    assert_eq!(found(&root, &root.service()), ["obs-1", "obs-2", "obs-3"]);
    assert_eq!(before.len(), fingerprint(elsewhere.path()).len());
}

#[test]
fn a_link_to_a_store_with_a_hot_journal_shows_what_was_committed() {
    let root = Root::new();
    let real = at_rest(&root, "delete");
    let moved = root.path().join("moved.db");
    fs::rename(&real, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &real).unwrap();
    let real = moved;
    let mut other = Other::open(&real);
    other.sql("PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE memories SET title = 'torn ' || id, narrative = hex(zeroblob(200000))");
    other.kill();
    let service = root.service();
    assert!(
        service
            .query_memories(&words("torn"))
            .unwrap()
            .results
            .is_empty()
    );
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
}

#[test]
fn a_missing_store_is_named_with_its_path_and_how_to_start() {
    let root = Root::new();
    let path = root.scope_folder("one").join("memory.db");
    let service = root.service();
    assert_eq!(refused(&root, &service, &path), "store_not_found");
    let error = service
        .query_memories(&QueryRequest::default())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .to_lowercase()
            .contains("memory database not found"),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("import"));
    at_rest(&root, "delete");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
    fs::remove_file(&path).unwrap();
    assert_eq!(refused(&root, &service, &path), "store_not_found");
}

#[test]
fn empty_foreign_and_corrupt_files_are_distinguished() {
    let root = Root::new();
    let path = root.scope_folder("one").join("memory.db");
    let service = root.service();
    let foreign = |sql: &str| {
        let _ = fs::remove_file(&path);
        database(&root, "one", sql);
        refused(&root, &service, &path)
    };
    assert_eq!(
        foreign("CREATE TABLE notes (id TEXT, title TEXT)"),
        "store_foreign"
    );
    assert_eq!(
        foreign("CREATE TABLE memories (key TEXT, body TEXT)"),
        "store_foreign"
    );
    assert_eq!(foreign("CREATE TABLE x (a); DROP TABLE x"), "store_foreign");
    fs::write(&path, "").unwrap();
    assert_eq!(refused(&root, &service, &path), "store_empty");
    for garbage in [
        &b"x"[..],
        b"hello world, this is no database",
        &[0; 4096],
        &[0xff; 10_000],
        b"SQLite format 3",
    ] {
        fs::write(&path, garbage).unwrap();
        assert_eq!(
            refused(&root, &service, &path),
            "store_not_sqlite",
            "{} bytes",
            garbage.len()
        );
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let code = refused(&root, &service, &path);
    assert!(
        ["store_empty", "store_not_found"].contains(&code.as_str()),
        "{code}"
    );
    fs::remove_dir(&path).unwrap();
    at_rest(&root, "delete");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
}

#[test]
fn a_truncated_store_is_reported_and_answers_again_when_repaired() {
    for mode in ["delete", "wal"] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        root.store("two", &[memory("n1", "the other scope", json!({}))]);
        let whole = fs::read(&path).unwrap();
        let service = root.service();
        assert_eq!(found(&root, &service), ["m1", "m2", "m3", "n1"]);
        for length in [
            1,
            15,
            16,
            18,
            50,
            99,
            100,
            101,
            511,
            512,
            1_024,
            4_095,
            4_096,
            4_097,
            8_192,
            12_288,
            whole.len() / 2,
            whole.len() - 4_096,
            whole.len() - 4_097,
        ] {
            fs::write(&path, &whole[..length]).unwrap();
            let before = fingerprint(root.path());
            let answer = within(SECONDS, "a query of a truncated store", || {
                service.query_memories(&everything()).unwrap()
            });
            assert_eq!(ids(&answer), ["n1"], "{mode} cut to {length}");
            assert_named(&answer, "one");
            assert_eq!(fingerprint(root.path()), before, "{mode} cut to {length}");
            let request = QueryRequest {
                scope: Some("one".to_owned()),
                ..everything()
            };
            let code = service
                .query_memories(&request)
                .unwrap_err()
                .code()
                .to_owned();
            assert!(
                ["store_corrupt", "store_not_sqlite", "store_foreign"].contains(&code.as_str()),
                "{mode} cut to {length}: {code}"
            );
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(
            found(&root, &service),
            ["m1", "m2", "m3", "n1"],
            "{mode} repaired"
        );
    }
}

#[test]
fn a_damaged_page_is_reported_or_read_without_a_crash() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    root.store("two", &[memory("n1", "the other scope", json!({}))]);
    let whole = fs::read(&path).unwrap();
    let service = root.service();
    let mut malformed = 0;
    for page in 0..whole.len() / 4_096 {
        for (offset, fill) in [(0, 0xff), (0, 0x00), (8, 0xff), (100, 0x55), (2_000, 0xff)] {
            let mut damaged = whole.clone();
            let start = page * 4_096 + offset;
            damaged[start..(start + 600).min((page + 1) * 4_096)].fill(fill);
            fs::write(&path, damaged).unwrap();
            let answer = within(SECONDS, "a query of a damaged store", || {
                service.query_memories(&everything()).unwrap()
            });
            assert!(ids(&answer).contains(&"n1".to_owned()), "page {page}");
            let _ = service.list_scopes(&ListScopesRequest::default()).unwrap();
            let request = GetRequest {
                id: Some("m1".to_owned()),
                scope: Some("one".to_owned()),
                ..GetRequest::default()
            };
            if let Err(error) = service.get_memory(&request) {
                let message = error.body().message;
                let repeated = message.matches("malformed").count();
                assert!(repeated <= 1, "{message}");
                malformed += repeated;
            }
        }
    }
    assert!(malformed > 0, "SQLite's word for it is said once");
    fs::write(&path, &whole).unwrap();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "n1"]);
}

#[test]
fn a_replaced_store_is_read_again() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    let service = root.service();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
    let fresh = Root::new();
    let new = fresh.store("one", &[memory("k1", "another store", json!({}))]);
    fs::rename(&new, &path).unwrap();
    assert_eq!(found(&root, &service), ["k1"]);
    fs::remove_file(&path).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO observations VALUES (1, 'now claude-mem')",
        )
        .unwrap();
    assert_eq!(found(&root, &service), ["obs-1"]);
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// Gives every folder and every file under a root a mode.
fn chmod_all(root: &Root, folders: u32, files: u32) {
    for entry in walkdir::WalkDir::new(root.path()) {
        let entry = entry.unwrap();
        let is_folder = entry.file_type().is_dir();
        chmod(entry.path(), if is_folder { folders } else { files });
    }
}

/// Makes everything under a root readable by everybody and writable by nobody.
fn freeze(root: &Root) {
    chmod_all(root, 0o555, 0o444);
}

/// Gives the owner back what [`freeze`] took, so that the folder can be removed.
fn thaw(root: &Root) {
    chmod_all(root, 0o755, 0o644);
}

#[test]
fn read_only_stores_are_read() {
    for state in [
        "rollback",
        "wal at rest",
        "wal live",
        "wal killed",
        "log without shared memory",
        "hot journal",
    ] {
        let root = Root::new();
        let path = at_rest(
            &root,
            if ["rollback", "hot journal"].contains(&state) {
                "delete"
            } else {
                "wal"
            },
        );
        let mut other = Other::open(&path);
        let mut expected = vec!["m1", "m2", "m3"];
        match state {
            "rollback" | "wal at rest" => other.end(),
            "hot journal" => {
                other.sql("PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE memories SET title = 'torn ' || id, narrative = hex(zeroblob(200000))");
                other.kill();
            }
            _ => {
                other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
                expected.push("m4");
                if state == "wal live" {
                    freeze(&root);
                    check_frozen(&root, state, &expected);
                    thaw(&root);
                    continue;
                }
                other.kill();
                if state == "log without shared memory" {
                    fs::remove_file(sidecar(&path, "-shm")).unwrap();
                }
            }
        }
        freeze(&root);
        check_frozen(&root, state, &expected);
        thaw(&root);
    }
}

fn check_frozen(root: &Root, state: &str, expected: &[&str]) {
    let Some(mut command) = unprivileged(root.path()) else {
        return;
    };
    let before = fingerprint(root.path());
    let (code, answer) = run_json(command.args(["query", "--status", "all"]));
    assert_eq!(fingerprint(root.path()), before, "{state}");
    assert_eq!(code, 0, "{state}: {answer}");
    let mut found: Vec<&str> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected, "{state}");
}

#[test]
fn an_unreadable_store_is_reported_with_its_path() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    chmod(root.path(), 0o755);
    for (target, mode) in [
        (path.clone(), 0o000),
        (path.parent().unwrap().to_owned(), 0o000),
    ] {
        let original =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&target).unwrap().permissions());
        chmod(&target, mode);
        let Some(mut command) = unprivileged(root.path()) else {
            chmod(&target, original);
            return;
        };
        let (code, answer) = run_json(command.args(["query", "marker"]));
        chmod(&target, original);
        assert_eq!(code, 1, "{answer}");
        assert!(
            ["store_unreadable", "scope_unusable"].contains(&answer["code"].as_str().unwrap()),
            "{answer}"
        );
        assert!(
            answer["message"].as_str().unwrap().contains("scopes/"),
            "{answer}"
        );
        assert!(
            answer.to_string().to_lowercase().contains("permission"),
            "{answer}"
        );
    }
    let (code, answer): (i32, Value) =
        run_json(unprivileged(root.path()).unwrap().args(["query", "marker"]));
    assert_eq!((code, answer["total"].as_u64()), (0, Some(3)));
}

#[test]
fn a_single_database_is_served_without_a_root() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let service = root.service_with(|inputs| {
        inputs.db = Some(Setting::flag("--db", path.clone()));
        inputs.root = Some(Setting::flag("--root", root.path().join("no such root")));
    });
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    other.end();
    fs::remove_file(&path).unwrap();
    assert_eq!(
        service
            .query_memories(&QueryRequest::default())
            .unwrap_err()
            .code(),
        "store_not_found"
    );
}

#[test]
fn failing_scopes_are_reported_in_every_tool_and_the_others_answer() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    database(&root, "foreign", "CREATE TABLE notes (a)");
    fs::write(
        root.scope_folder("garbled").join("memory.db"),
        "no database",
    )
    .unwrap();
    root.scope_folder("missing");
    root.manifest("missing", "description = \"nothing there yet\"\n");
    let service = root.service();
    let answer = service.query_memories(&words("marker")).unwrap();
    assert_eq!(answer.total, 3);
    let mut skipped: Vec<&str> = answer
        .searched
        .skipped
        .iter()
        .map(|skipped| skipped.scope.as_str())
        .collect();
    skipped.sort_unstable();
    assert_eq!(skipped, ["foreign", "garbled", "missing"]);
    assert!(has_note(&answer, NoteKind::ScopeUnavailable));
    let memory = service
        .get_memory(&ack_api::GetRequest {
            id: Some("m1".to_owned()),
            ..Default::default()
        })
        .unwrap();
    assert_eq!(
        memory
            .notes
            .iter()
            .filter(|note| note.kind == NoteKind::ScopeUnavailable)
            .count(),
        3
    );
    let context = service
        .get_context(&ack_api::ContextRequest::default())
        .unwrap();
    assert_eq!(context.searched.skipped.len(), 3);
    let scopes = service.list_scopes(&ListScopesRequest::default()).unwrap();
    let states: Vec<(String, HealthState)> = scopes
        .scopes
        .into_iter()
        .map(|scope| (scope.name, scope.health.state))
        .collect();
    for (name, state) in states {
        assert_eq!(state == HealthState::Ok, name == "one", "{name}");
    }
    assert!(path.exists());
}

#[test]
fn a_store_locked_after_indexing_does_not_affect_others() {
    let root = Root::new();
    root.store("good", &[memory("good_1", "A zebra rule", json!({}))]);
    let path = root.store("bad", &[memory("bad_1", "Another zebra rule", json!({}))]);
    let service = root.service();
    let query = || {
        service
            .query_memories(&QueryRequest {
                query: Some("zebra".to_owned()),
                ..QueryRequest::default()
            })
            .unwrap()
    };
    assert_eq!(query().total, 2);
    let mut other = Other::open(&path);
    // Without a journal nobody can tell which of this was there before.
    other.sql("PRAGMA journal_mode = memory; PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN EXCLUSIVE; UPDATE memories SET narrative = hex(zeroblob(200000))");
    let answer = query();
    let ids: Vec<&str> = answer.results.iter().map(|hit| hit.id.as_str()).collect();
    assert_eq!(ids, ["good_1"]);
    assert!(
        answer
            .searched
            .skipped
            .iter()
            .any(|skipped| skipped.scope == "bad"),
        "{answer:?}"
    );
    let get = |ids: &[&str]| GetRequest {
        ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        ..GetRequest::default()
    };
    let answer = service.get_memory(&get(&["bad_1", "good_1"])).unwrap();
    assert_eq!(answer.memories[0].memory.id, "good_1");
    assert_eq!(answer.missing[0].id, "bad_1");
    assert!(service.get_context(&ContextRequest::default()).is_ok());
    other.sql("ROLLBACK");
    assert_eq!(query().total, 2);
}
