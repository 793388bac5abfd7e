//! Opening stores in every state that a folder can be in: at rest, under a live writer, after a
//! crash, locked, damaged, missing. The server answers or names the store, within seconds, and no
//! byte under the root changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::{GetRequest, ListScopesRequest, NoteKind, QueryResponse};
use ack_memory::Service;
use serde_json::{Value, json};

use crate::store_support::{
    Other, database, everything, hits, ids, run_json, unprivileged, within, words,
};
use crate::support::{Ask, Root, fingerprint, memory, run_sql, sorted_ids, titled, write_file};

/// Longer than any request may take, whatever state a store is in.
const SECONDS: Duration = Duration::from_secs(7);

/// A row that another process writes.
const INSERT_M4: &str =
    "INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')";

/// A transaction that is not committed: a cache of a few pages makes the writer spill it into the
/// database itself.
const SPILL: &str = "PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; \
    UPDATE memories SET title = 'torn ' || id, narrative = hex(zeroblob(200000))";

/// A store with three approved memories in scope `one`, in this journal mode, with nobody
/// connected.
fn at_rest(root: &Root, mode: &str) -> PathBuf {
    let first = json!({ "narrative": "A row that takes several pages of its own. ".repeat(480) });
    let memories = [
        titled("m1", "first marker"),
        memory("m2", "second marker", first),
        titled("m3", "third marker"),
    ];
    let path = root.store("one", &memories);
    run_sql(&path, &format!("PRAGMA journal_mode = {mode};"));
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
    let answer = service.scopes(json!({ "scope": scope }));
    answer["scopes"][0]["health"]["opened"].to_string()
}

/// The code of the error if the only scope cannot be read; the message names the file.
fn refused(root: &Root, service: &Service, path: &Path) -> String {
    let before = fingerprint(root.path());
    let error = within(SECONDS, "a refusal", || service.query_memories(&everything()).unwrap_err());
    let body = error.body();
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_contains!(body.message, name; "the file is not named");
    assert!(body.hint.is_some(), "{body:?}");
    assert_eq!(fingerprint(root.path()), before, "a file changed");
    let scopes = service.scopes(json!({}));
    assert_eq!(scopes["scopes"][0]["health"]["state"], "unavailable");
    body.code
}

#[test]
fn a_store_at_rest_is_read_in_every_journal_mode() {
    for mode in ["delete", "truncate", "persist", "wal", "off", "memory"] {
        let root = Root::new();
        at_rest(&root, mode);
        let service = root.service();
        assert_eq!(found(&root, &service), ["m1", "m2", "m3"], "{mode}");
        assert_contains!(opened(&service, "one"), "at rest"; "{mode}");
    }
}

#[test]
fn an_empty_wal_next_to_a_store_is_accepted() {
    for mode in ["delete", "wal"] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        for suffix in ["-wal", "-shm", "-journal"] {
            write_file(sidecar(&path, suffix), "");
            let found = found(&root, &root.service());
            assert_eq!(found, ["m1", "m2", "m3"], "{mode} {suffix}");
        }
    }
}

#[test]
fn rows_in_the_log_of_a_live_writer_are_found_and_the_log_is_left_alone() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let service = root.service();
    let mut other = Other::open(&path);
    other.sql(INSERT_M4);
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    assert_contains!(opened(&service, "one"), "live");
    other.sql("BEGIN IMMEDIATE; INSERT INTO memories (id, title, status) VALUES ('m5', 'not committed', 'approved')");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    let five = ["m1", "m2", "m3", "m4", "m5"];
    for sql in ["COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        other.sql(sql);
        assert_eq!(found(&root, &service), five, "{sql}");
    }
    other.end();
    assert_eq!(found(&root, &service), five);
}

#[test]
fn a_log_without_its_shared_memory_is_read() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let mut other = Other::open(&path);
    other.sql(INSERT_M4);
    let copied = Root::new();
    let target = copied.scope_folder("one").join("memory.db");
    fs::copy(&path, &target).unwrap();
    fs::copy(sidecar(&path, "-wal"), sidecar(&target, "-wal")).unwrap();
    let service = copied.service();
    assert_eq!(found(&copied, &service), ["m1", "m2", "m3", "m4"]);
    assert_contains!(opened(&service, "one"), "copy");
    // A shared-memory file without an owner, stale or empty, does not change that.
    for stale in
        [Vec::new(), vec![0; 32_768], vec![0xff; 32_768], fs::read(sidecar(&path, "-shm")).unwrap()]
    {
        write_file(sidecar(&target, "-shm"), &stale);
        let found = found(&copied, &copied.service());
        assert_eq!(found, ["m1", "m2", "m3", "m4"], "{} bytes", stale.len());
    }
}

#[test]
fn the_wal_of_a_killed_writer_is_read_and_left_in_place() {
    let root = Root::new();
    let path = at_rest(&root, "wal");
    let service = root.service();
    let mut other = Other::open(&path);
    other.sql(INSERT_M4);
    other.sql("BEGIN; UPDATE memories SET title = 'torn', narrative = hex(zeroblob(50000)); INSERT INTO memories (id, title) VALUES ('m5', 'torn')");
    other.kill();
    assert!(sidecar(&path, "-wal").exists() && sidecar(&path, "-shm").exists());
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"]);
    assert!(hits(&service, &words("torn")).is_empty());
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
    other.sql(SPILL);
    let spilled = fs::metadata(&path).unwrap().len();
    other.kill();
    assert!(spilled > 400_000, "the writer did not spill: {spilled}");
    assert!(sidecar(&path, "-journal").exists());
    for service in [service, root.service()] {
        assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
        assert!(hits(&service, &words("torn")).is_empty());
        let shown = ids(&service.query_memories(&words("second")).unwrap());
        assert_eq!(shown, ["m2"]);
        assert_contains!(opened(&service, "one"), "copy");
    }
    // The next writer rolls back; then everything is as before.
    let mut next = Other::open(&path);
    next.sql("UPDATE memories SET title = 'after the crash' WHERE id = 'm1'");
    next.end();
    let shown = ids(&root.service().query_memories(&words("crash")).unwrap());
    assert_eq!(shown, ["m1"]);
}

fn assert_named(answer: &QueryResponse, scope: &str) {
    let mut skipped = answer.searched.skipped.iter();
    assert!(skipped.any(|skipped| skipped.scope == scope), "{answer:?}");
    assert!(!answer.searched.scopes.contains(&scope.to_owned()));
    let mut notes = answer.notes.iter();
    let note = notes.find(|note| note.kind == NoteKind::ScopeUnavailable);
    assert_eq!(note.unwrap().scope.as_deref(), Some(scope));
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
        let limit = Duration::from_secs(1);
        let seen = within(limit, "a query beside a transaction", || {
            ids(&service.query_memories(&everything()).unwrap())
        });
        assert_eq!(fingerprint(root.path()), before, "{mode}");
        assert_eq!(seen.len(), 3, "{mode}: {seen:?}");
        other.sql("COMMIT");
        assert_eq!(found(&root, &service), ["m1", "m2", "m3", "m4"], "{mode}");
    }
}

#[test]
fn paths_of_every_kind_are_opened() {
    let names = "with space|100%25|what?mode=rw|hash#1|a&b=c|größe-データ|quote'\"|semi;colon|\
        back\\slash|file:x|+plus~";
    for name in names.split('|') {
        let root = Root::new();
        for mode in ["delete", "wal"] {
            let path = root.store(name, &[titled("m1", "a marker")]);
            run_sql(&path, &format!("PRAGMA journal_mode = {mode}"));
            assert_eq!(found(&root, &root.service()), ["m1"], "{name} {mode}");
            let mut other = Other::open(&path);
            other.sql(INSERT_M4);
            let shown = found(&root, &root.service());
            assert_eq!(shown, ["m1", "m4"], "{name} {mode} live");
            drop(other);
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _ = fs::remove_file(sidecar(&path, suffix));
            }
        }
        let elsewhere = root.path().join(format!("{name}.sqlite"));
        run_sql(
            &elsewhere,
            "CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('e1', 'elsewhere')",
        );
        let settings = format!("store = {}\n", json!(format!("../../{name}.sqlite")));
        root.manifest(name, &settings);
        assert_eq!(found(&root, &root.service()), ["e1"], "{name} by manifest");
    }
}

#[test]
fn a_link_to_a_store_shows_what_its_log_holds() {
    let root = Root::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("claude-mem.db");
    run_sql(
        &real,
        "PRAGMA journal_mode = wal; CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO observations VALUES (1, 'at rest')",
    );
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
fn a_missing_store_is_named_with_its_path_and_how_to_start() {
    let root = Root::new();
    let path = root.scope_folder("one").join("memory.db");
    let service = root.service();
    assert_eq!(refused(&root, &service, &path), "store_not_found");
    let error = service.refused("query_memories", json!({}));
    assert_contains!(error.message.to_lowercase(), "memory database not found");
    assert_contains!(error.hint.unwrap(), "import");
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
    for sql in [
        "CREATE TABLE notes (id TEXT, title TEXT)",
        "CREATE TABLE memories (key TEXT, body TEXT)",
        "CREATE TABLE x (a); DROP TABLE x",
    ] {
        let _ = fs::remove_file(&path);
        database(&root, "one", sql);
        assert_eq!(refused(&root, &service, &path), "store_foreign", "{sql}");
    }
    write_file(&path, "");
    assert_eq!(refused(&root, &service, &path), "store_empty");
    for garbage in [
        &b"x"[..],
        b"hello world, this is no database",
        &[0; 4096],
        &[0xff; 10_000],
        b"SQLite format 3",
    ] {
        write_file(&path, garbage);
        let code = refused(&root, &service, &path);
        assert_eq!(code, "store_not_sqlite", "{} bytes", garbage.len());
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let code = refused(&root, &service, &path);
    assert!(["store_empty", "store_not_found"].contains(&&*code), "{code}");
    fs::remove_dir(&path).unwrap();
    at_rest(&root, "delete");
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
}

#[test]
fn a_truncated_store_is_reported_and_answers_again_when_repaired() {
    for mode in ["delete", "wal"] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        root.store("two", &[titled("n1", "the other scope")]);
        let whole = fs::read(&path).unwrap();
        let service = root.service();
        assert_eq!(found(&root, &service), ["m1", "m2", "m3", "n1"]);
        let (half, size) = (whole.len() / 2, whole.len());
        let small = [1, 15, 16, 18, 50, 99, 100, 101, 511, 512, 1_024, 4_095];
        let large = [4_096, 4_097, 8_192, 12_288, half, size - 4_096, size - 4_097];
        for length in small.into_iter().chain(large) {
            write_file(&path, &whole[..length]);
            let before = fingerprint(root.path());
            let answer = within(SECONDS, "a query of a truncated store", || {
                service.query_memories(&everything()).unwrap()
            });
            assert_eq!(ids(&answer), ["n1"], "{mode} cut to {length}");
            assert_named(&answer, "one");
            assert_eq!(fingerprint(root.path()), before, "{mode} cut to {length}");
            let code =
                service.refused("query_memories", json!({ "scope": "one", "status": "all" })).code;
            assert!(
                ["store_corrupt", "store_not_sqlite", "store_foreign"].contains(&&*code),
                "{mode} cut to {length}: {code}"
            );
        }
        write_file(&path, &whole);
        let found = found(&root, &service);
        assert_eq!(found, ["m1", "m2", "m3", "n1"], "{mode} repaired");
    }
}

#[test]
fn a_damaged_page_is_reported_or_read_without_a_crash() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    root.store("two", &[titled("n1", "the other scope")]);
    let whole = fs::read(&path).unwrap();
    let service = root.service();
    let mut malformed = 0;
    for page in 0..whole.len() / 4_096 {
        for (offset, fill) in [(0, 0xff), (0, 0x00), (8, 0xff), (100, 0x55), (2_000, 0xff)] {
            let mut damaged = whole.clone();
            let start = page * 4_096 + offset;
            damaged[start..(start + 600).min((page + 1) * 4_096)].fill(fill);
            write_file(&path, damaged);
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
    write_file(&path, &whole);
    assert_eq!(found(&root, &service), ["m1", "m2", "m3", "n1"]);
}

#[test]
fn a_replaced_store_is_read_again() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    let service = root.service();
    assert_eq!(found(&root, &service), ["m1", "m2", "m3"]);
    let fresh = Root::new();
    let new = fresh.store("one", &[titled("k1", "another store")]);
    fs::rename(&new, &path).unwrap();
    assert_eq!(found(&root, &service), ["k1"]);
    fs::remove_file(&path).unwrap();
    run_sql(
        &path,
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO observations VALUES (1, 'now claude-mem')",
    );
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

#[test]
fn read_only_stores_are_read() {
    for (state, mode) in [
        ("rollback", "delete"),
        ("hot journal", "delete"),
        ("wal at rest", "wal"),
        ("wal live", "wal"),
        ("wal killed", "wal"),
        ("log without shared memory", "wal"),
    ] {
        let root = Root::new();
        let path = at_rest(&root, mode);
        let mut other = Other::open(&path);
        let mut expected = vec!["m1", "m2", "m3"];
        let mut live = None;
        if state == "rollback" || state == "wal at rest" {
            other.end();
        } else if state == "hot journal" {
            other.sql(SPILL);
            other.kill();
        } else {
            other.sql(INSERT_M4);
            expected.push("m4");
            if state == "wal live" {
                live = Some(other);
            } else {
                other.kill();
            }
        }
        if state == "log without shared memory" {
            fs::remove_file(sidecar(&path, "-shm")).unwrap();
        }
        chmod_all(&root, 0o555, 0o444);
        check_frozen(&root, state, &expected);
        // The owner gets back what was taken, so that the folder can be removed.
        chmod_all(&root, 0o755, 0o644);
        drop(live);
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
    assert_eq!(sorted_ids(&answer["results"]), expected, "{state}");
}

#[test]
fn an_unreadable_store_is_reported_with_its_path() {
    let root = Root::new();
    let path = at_rest(&root, "delete");
    chmod(root.path(), 0o755);
    for target in [&path, path.parent().unwrap()] {
        let permissions = fs::metadata(target).unwrap().permissions();
        let original = std::os::unix::fs::PermissionsExt::mode(&permissions);
        chmod(target, 0o000);
        let Some(mut command) = unprivileged(root.path()) else {
            chmod(target, original);
            return;
        };
        let (code, answer) = run_json(command.args(["query", "marker"]));
        chmod(target, original);
        assert_eq!(code, 1, "{answer}");
        assert!(
            ["store_unreadable", "scope_unusable"].contains(&answer["code"].as_str().unwrap()),
            "{answer}"
        );
        assert_contains!(answer["message"], "scopes/");
        assert_contains!(answer.to_string().to_lowercase(), "permission");
    }
    let (code, answer): (i32, Value) =
        run_json(unprivileged(root.path()).unwrap().args(["query", "marker"]));
    assert_eq!((code, answer["total"].as_u64()), (0, Some(3)));
}
