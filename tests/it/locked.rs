//! Stores whose writer keeps its lock, and writers next to busy readers: committed data is returned
//! immediately and with a note, nobody waits for long, and no reader delays a checkpoint.

use ack_api::source::Records;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ack_api::{NoteKind, QueryRequest, QueryResponse};
use ack_memory::Service;
use rusqlite::Connection;
use serde_json::json;

use crate::store_support::{Other, everything, get, has_note, hits, ids, unique_word, words};
use crate::support::{Root, fingerprint, memory};

/// A store in this journal mode, and a service that has read it.
fn read(mode: &str) -> (Root, PathBuf, Service) {
    let root = Root::new();
    let path = root.store(
        "one",
        &[
            memory("m1", "first marker", json!({})),
            memory(
                "m2",
                "second marker",
                json!({ "narrative": "several pages of its own ".repeat(800) }),
            ),
            memory("m3", "third marker", json!({ "status": "rejected" })),
        ],
    );
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!("PRAGMA journal_mode = {mode}"))
        .unwrap();
    let service = root.service();
    assert_eq!(query(&service).total, 2);
    (root, path, service)
}

fn query(service: &Service) -> QueryResponse {
    let request = QueryRequest {
        detail: None,
        ..words("marker torn")
    };
    service.query_memories(&request).unwrap()
}

fn sorted(answer: &QueryResponse) -> Vec<String> {
    let mut ids = ids(answer);
    ids.sort();
    ids
}

/// Asks once, which may wait a little, and then again and by eight threads, which may not.
fn query_without_delay(service: &Service) -> QueryResponse {
    let started = Instant::now();
    query(service);
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "the first: {:?}",
        started.elapsed()
    );
    let started = Instant::now();
    let answer = query(service);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| query(service));
        }
    });
    assert!(
        started.elapsed() < Duration::from_millis(1_500),
        "nine others: {:?}",
        started.elapsed()
    );
    answer
}

#[test]
fn a_store_that_was_read_before_it_was_locked_is_answered_with_a_note() {
    for mode in ["delete", "truncate", "persist", "memory", "off"] {
        let (root, path, service) = read(mode);
        let mut other = Other::open(&path);
        other.sql(&format!(
            "PRAGMA journal_mode = {mode}; BEGIN EXCLUSIVE; UPDATE memories SET title = 'torn ' || id, status = 'approved'"
        ));
        let before = fingerprint(root.path());
        let answer = query_without_delay(&service);
        assert_eq!(sorted(&answer), ["m1", "m2"], "{mode}");
        assert!(
            answer.results.iter().all(|hit| !hit.title.contains("torn")),
            "{mode}"
        );
        let locks: Vec<_> = answer
            .notes
            .iter()
            .filter(|note| note.kind == NoteKind::StoreLocked)
            .collect();
        assert_eq!(locks.len(), 1, "{mode}: {:?}", answer.notes);
        assert_eq!(locks[0].scope.as_deref(), Some("one"));
        assert_eq!(
            get(&service, "m1")
                .unwrap()
                .notes
                .iter()
                .filter(|note| note.kind == NoteKind::StoreLocked)
                .count(),
            1
        );
        assert_eq!(
            get(&service, "m3").unwrap_err().code(),
            "memory_not_served",
            "{mode}"
        );
        assert_eq!(fingerprint(root.path()), before, "{mode}");
        other.sql("ROLLBACK");
        let answer = query(&service);
        assert_eq!(sorted(&answer), ["m1", "m2"], "{mode}");
        assert!(
            !has_note(&answer, NoteKind::StoreLocked),
            "{mode}: the lock is gone"
        );
        other.sql("UPDATE memories SET status = 'rejected' WHERE id = 'm1'");
        assert_eq!(sorted(&query(&service)), ["m2"], "{mode}");
    }
}

#[test]
fn uncommitted_pages_in_a_locked_store_are_not_served() {
    for mode in ["delete", "persist"] {
        let (root, path, service) = read(mode);
        let mut other = Other::open(&path);
        other.sql("UPDATE memories SET status = 'rejected' WHERE id = 'm1'");
        other.sql(&format!(
            "PRAGMA journal_mode = {mode}; PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;
             UPDATE memories SET title = 'torn ' || id, status = 'approved', narrative = hex(zeroblob(200000))"
        ));
        assert!(
            std::fs::metadata(&path).unwrap().len() > 400_000,
            "the writer did not spill"
        );
        for service in [&service, &root.service()] {
            let before = fingerprint(root.path());
            let answer = query_without_delay(service);
            assert_eq!(sorted(&answer), ["m2"], "{mode}");
            assert!(
                has_note(&answer, NoteKind::StoreLocked)
                    && answer.results[0].title == "second marker",
                "{mode}"
            );
            assert_eq!(fingerprint(root.path()), before, "{mode}");
        }
        other.sql("COMMIT");
        let answer = query(&service);
        assert_eq!(
            sorted(&answer),
            ["m1", "m2", "m3"],
            "{mode}: committed, found at once: {answer:?}"
        );
        assert!(!has_note(&answer, NoteKind::StoreLocked));
    }
}

#[test]
fn a_lock_with_unknown_commit_state_is_an_error_at_once() {
    let (root, path, read_before) = read("memory");
    let mut other = Other::open(&path);
    // No journal says which of this was there before.
    other.sql("PRAGMA journal_mode = memory; PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN EXCLUSIVE; UPDATE memories SET title = 'torn', narrative = hex(zeroblob(200000))");
    for service in [&read_before, &root.service()] {
        let refused = || service.query_memories(&words("marker")).unwrap_err();
        let started = Instant::now();
        assert_eq!(refused().code(), "store_locked");
        assert!(
            started.elapsed() < Duration::from_secs(2),
            "the first: {:?}",
            started.elapsed()
        );
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| assert_eq!(refused().code(), "store_locked"));
            }
        });
        assert!(
            started.elapsed() < Duration::from_millis(1_000),
            "eight others: {:?}",
            started.elapsed()
        );
    }
    other.sql("ROLLBACK");
    assert_eq!(query(&read_before).total, 2);
}

#[test]
fn commits_of_a_writer_that_keeps_its_lock_are_visible() {
    for mode in ["delete", "truncate", "persist"] {
        let (root, path, service) = read(mode);
        let mut other = Other::open(&path);
        other.sql(&format!(
            "PRAGMA journal_mode = {mode}; PRAGMA locking_mode = exclusive"
        ));
        for number in 0..3 {
            other.sql(&format!(
                "INSERT INTO memories (id, title, status) VALUES ('n{number}', 'another marker', 'approved')"
            ));
            let answer = query_without_delay(&service);
            assert!(
                sorted(&answer).contains(&format!("n{number}")),
                "{mode} {number}: {:?}",
                ids(&answer)
            );
            assert!(has_note(&answer, NoteKind::StoreLocked), "{mode}");
        }
        other.sql("UPDATE memories SET status = 'rejected' WHERE id = 'm1'");
        for service in [&service, &root.service()] {
            assert!(
                !sorted(&query_without_delay(service)).contains(&"m1".to_owned()),
                "{mode}"
            );
        }
    }
}

#[test]
fn many_threads_read_next_to_a_writer_with_an_exclusive_log() {
    for open in [
        "PRAGMA locking_mode = exclusive",
        "SELECT count(*) FROM memories; PRAGMA locking_mode = exclusive",
    ] {
        let (_root, path, service) = read("wal");
        let mut other = Other::open(&path);
        other.sql(open);
        other.sql(
            "INSERT INTO memories (id, title, status) VALUES ('base', 'the first row', 'approved')",
        );
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        let mut asked = 0;
                        while !done.load(std::sync::atomic::Ordering::Relaxed) || asked < 20 {
                            let answer = service.query_memories(&everything()).unwrap();
                            assert!(ids(&answer).contains(&"base".to_owned()));
                            asked += 1;
                        }
                    })
                })
                .collect();
            for number in 0..60 {
                let word = unique_word(number);
                other.sql(&format!(
                    "INSERT INTO memories (id, title, status) VALUES ('w{number}', '{word} found', 'approved')"
                ));
                let answer = service.query_memories(&words(&word)).unwrap();
                assert!(
                    ids(&answer).contains(&format!("w{number}")),
                    "{open}: committed and not found: {number}"
                );
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            for reader in readers {
                reader.join().unwrap();
            }
        });
    }
}

#[test]
fn scanning_a_store_does_not_delay_a_checkpoint() {
    let (_root, path, service) = read("wal");
    let mut other = Other::open(&path);
    other.sql(
        "INSERT INTO memories (id, title, status) VALUES ('m4', 'a marker in the log', 'approved')",
    );
    let log = path.with_extension("db-wal");
    let scopes = service.registry.discover().scopes;
    let mut rows = 0;
    scopes[0]
        .store
        .full_scan(Duration::from_secs(4), |snapshot| {
            snapshot.scan(&mut |_| {
                rows += 1;
                // In the middle of the reading: another commit, and a log that is emptied.
                other.sql(&format!(
                    "INSERT INTO memories (id, title) VALUES ('late{rows}', 'late')"
                ));
                assert!(std::fs::metadata(&log).unwrap().len() > 0);
                other.sql("PRAGMA wal_checkpoint(TRUNCATE)");
                assert_eq!(
                    std::fs::metadata(&log).unwrap().len(),
                    0,
                    "the checkpoint was held back"
                );
                Ok(())
            })
        })
        .unwrap();
    assert_eq!(rows, 4, "one state, that of the beginning");
    let found = hits(&service, &QueryRequest { ..everything() });
    assert_eq!(
        found.len(),
        3 + 4,
        "what came meanwhile is found afterwards"
    );
}
