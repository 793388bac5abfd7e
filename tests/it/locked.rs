//! Stores whose writer keeps its lock, and writers next to busy readers: committed data is returned
//! immediately and with a note, nobody waits for long, and no reader delays a checkpoint.

use ack_api::source::Records;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ack_api::{Note, NoteKind, QueryRequest, QueryResponse};
use ack_memory::Service;
use ack_store::Access;
use serde_json::json;

use crate::store_support::{Other, everything, get, hits, ids, unique_word, words};
use crate::support::{Root, fingerprint, memory, rejected, run_sql, titled};

/// A store in this journal mode, and a service that has read it.
fn read(mode: &str) -> (Root, PathBuf, Service) {
    let root = Root::new();
    let pages = json!({ "narrative": "several pages of its own ".repeat(800) });
    let memories = [
        titled("m1", "first marker"),
        memory("m2", "second marker", pages),
        rejected("m3", "third marker"),
    ];
    let path = root.store("one", &memories);
    let pragma = format!("PRAGMA journal_mode = {mode}");
    run_sql(&path, &pragma);
    let service = root.service();
    assert_eq!(query(&service).total, 2);
    (root, path, service)
}

/// Adds an approved memory, as another process.
fn add(other: &mut Other, id: &str, title: &str) {
    let values = format!("VALUES ('{id}', '{title}', 'approved')");
    other.sql(&format!("INSERT INTO memories (id, title, status) {values}"));
}

/// Whether the notes say once that a store is locked, and which.
#[track_caller]
fn check_locked(notes: &[Note], times: usize) {
    let locks = notes.iter().filter(|note| note.kind == NoteKind::StoreLocked);
    let scopes: Vec<_> = locks.map(|note| note.scope.as_deref()).collect();
    assert_eq!(scopes, vec![Some("one"); times]);
}

/// Asks once, which may wait a little, and then again and by eight threads, which may not.
fn without_delay<T>(others: Duration, ask: impl Fn() -> T + Sync) -> T {
    let started = Instant::now();
    ask();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "the first: {took:?}");
    let started = Instant::now();
    let answer = ask();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(ask()));
        }
    });
    let took = started.elapsed();
    assert!(took < others, "nine others: {took:?}");
    answer
}

fn query(service: &Service) -> QueryResponse {
    let request = QueryRequest { detail: None, ..words("marker torn") };
    service.query_memories(&request).unwrap()
}

fn sorted(answer: &QueryResponse) -> Vec<String> {
    let mut ids = ids(answer);
    ids.sort();
    ids
}

fn query_without_delay(service: &Service) -> QueryResponse {
    without_delay(Duration::from_millis(1_500), || query(service))
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
        let mut results = answer.results.iter();
        assert!(results.all(|hit| !hit.title.contains("torn")), "{mode}");
        check_locked(&answer.notes, 1);
        check_locked(&get(&service, "m1").unwrap().notes, 1);
        let found = get(&service, "m3").unwrap_err().code();
        assert_eq!(found, "memory_not_served", "{mode}");
        assert_eq!(fingerprint(root.path()), before, "{mode}");
        other.sql("ROLLBACK");
        let answer = query(&service);
        assert_eq!(sorted(&answer), ["m1", "m2"], "{mode}");
        check_locked(&answer.notes, 0);
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
        let spilled = std::fs::metadata(&path).unwrap().len();
        assert!(spilled > 400_000, "the writer did not spill");
        for service in [&service, &root.service()] {
            let before = fingerprint(root.path());
            let answer = query_without_delay(service);
            assert_eq!(sorted(&answer), ["m2"], "{mode}");
            check_locked(&answer.notes, 1);
            assert_eq!(answer.results[0].title, "second marker", "{mode}");
            assert_eq!(fingerprint(root.path()), before, "{mode}");
        }
        other.sql("COMMIT");
        let answer = query(&service);
        // Committed, and found at once.
        assert_eq!(sorted(&answer), ["m1", "m2", "m3"], "{mode}");
        check_locked(&answer.notes, 0);
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
        without_delay(Duration::from_secs(1), || {
            assert_eq!(refused().code(), "store_locked");
        });
    }
    other.sql("ROLLBACK");
    assert_eq!(query(&read_before).total, 2);
}

#[test]
fn commits_of_a_writer_that_keeps_its_lock_are_visible() {
    for mode in ["delete", "truncate", "persist"] {
        let (root, path, service) = read(mode);
        let mut other = Other::open(&path);
        other.sql(&format!("PRAGMA journal_mode = {mode}; PRAGMA locking_mode = exclusive"));
        for number in 0..3 {
            let id = format!("n{number}");
            add(&mut other, &id, "another marker");
            let answer = query_without_delay(&service);
            assert!(sorted(&answer).contains(&id), "{mode} {answer:?}");
            check_locked(&answer.notes, 1);
        }
        other.sql("UPDATE memories SET status = 'rejected' WHERE id = 'm1'");
        for service in [&service, &root.service()] {
            let found = sorted(&query_without_delay(service));
            assert!(!found.contains(&"m1".to_owned()), "{mode}");
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
        add(&mut other, "base", "the first row");
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
                let (id, word) = (format!("w{number}"), unique_word(number));
                add(&mut other, &id, &format!("{word} found"));
                let answer = service.query_memories(&words(&word)).unwrap();
                // What is committed is found.
                assert!(ids(&answer).contains(&id), "{open}: {number}");
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
    add(&mut other, "m4", "a marker in the log");
    let log = path.with_extension("db-wal");
    let scopes = service.registry.discover().scopes;
    let mut rows = 0;
    scopes[0]
        .store
        .read(Access::FullScan, Duration::from_secs(4), |snapshot| {
            snapshot.scan(&mut |_| {
                rows += 1;
                // In the middle of the reading: another commit, and a log that is emptied.
                other.sql(&format!(
                    "INSERT INTO memories (id, title) VALUES ('late{rows}', 'late')"
                ));
                assert!(std::fs::metadata(&log).unwrap().len() > 0);
                other.sql("PRAGMA wal_checkpoint(TRUNCATE)");
                let shown = std::fs::metadata(&log).unwrap().len();
                assert_eq!(shown, 0, "the checkpoint was held back");
                Ok(())
            })
        })
        .unwrap();
    assert_eq!(rows, 4, "one state, that of the beginning");
    let found = hits(&service, &everything()).len();
    assert_eq!(found, 3 + 4, "what came meanwhile is found afterwards");
}
