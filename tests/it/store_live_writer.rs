//! A store that another process writes to all the time: the writer is never disturbed, and what it
//! committed is found by the next request.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ack_api::{ContextRequest, ListScopesRequest, QueryRequest};
use ack_memory::Service;
use serde_json::{Value, json};

use crate::store_support::{Other, everything, get, ids, message, unique_word, words};
use crate::support::{Root, run_sql, titled};

/// What a run of [`beside_writer`] saw.
struct Observation {
    checks: usize,
    requests: usize,
    missing: Vec<String>,
    failures: Vec<String>,
    slowest_request: Duration,
    summary: Value,
}

/// Lets a child process insert rows into a store in this journal mode while the service is asked
/// for them.
fn beside_writer(job: &Value, journal: &str, how_long: Duration) -> Observation {
    let root = Root::new();
    let path = root.store("one", &[titled("base", "a base row")]);
    run_sql(&path, &format!(
            "PRAGMA journal_mode = {journal}; PRAGMA synchronous = off;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})
             INSERT INTO memories (id, title, status, narrative) SELECT 'old-' || i, 'old row ' || i, 'approved', hex(randomblob(300)) FROM n;",
            job["rows"].as_u64().unwrap_or(1)
        ));
    let mut job = job.clone();
    job["job"] = json!("insert");
    job["path"] = json!(path);
    job["setup"] = json!(format!(
        "PRAGMA journal_mode = {journal}; {}",
        job["setup"].as_str().unwrap_or_default()
    ));
    let mut other = Other::start(&job);
    let acknowledged = Arc::new(Mutex::new(0u64));
    let mut lines = other.lines();
    let listener = {
        let acknowledged = Arc::clone(&acknowledged);
        std::thread::spawn(move || {
            while let Some(line) = message(&mut lines) {
                if let Some(summary) = line.strip_prefix("@summary ") {
                    return serde_json::from_str(summary).unwrap();
                }
                let number: u64 = line.trim_start_matches('@').parse().unwrap();
                *acknowledged.lock().unwrap() = number + 1;
            }
            Value::Null
        })
    };
    let service = root.service();
    let mut seen = Observation {
        checks: 0,
        requests: 0,
        missing: Vec::new(),
        failures: Vec::new(),
        slowest_request: Duration::ZERO,
        summary: Value::Null,
    };
    let started = Instant::now();
    while started.elapsed() < how_long {
        let committed = *acknowledged.lock().unwrap();
        if committed == 0 {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        }
        // The newest ones, and some from all over.
        let mut numbers: Vec<u64> = (committed.saturating_sub(8)..committed).collect();
        numbers
            .extend((0..4).map(|part| (committed * part / 4 + seen.requests as u64) % committed));
        let query: Vec<String> = numbers.iter().map(|number| unique_word(*number)).collect();
        let request = QueryRequest {
            status: None,
            detail: None,
            mode: Some(ack_api::Mode::Lexical),
            ..words(&query.join(" "))
        };
        let asked = Instant::now();
        let answer = service.query_memories(&request);
        seen.slowest_request = seen.slowest_request.max(asked.elapsed());
        seen.requests += 1;
        match answer {
            Ok(answer) => {
                let found = ids(&answer);
                for number in numbers {
                    seen.checks += 1;
                    if !found.contains(&format!("row-{number}")) {
                        seen.missing.push(format!("row-{number} of {committed}"));
                    }
                }
            }
            Err(error) => seen.failures.push(error.to_string()),
        }
        let refused = match seen.requests % 40 {
            10 => service.list_scopes(&ListScopesRequest::default()).err(),
            20 => get(&service, "row-0").err(),
            30 => service.get_context(&ContextRequest::default()).err(),
            _ => None,
        };
        let refused = refused.map(|error| error.to_string());
        seen.failures.extend(refused);
    }
    other.stop();
    seen.summary = listener.join().unwrap();
    seen
}

fn assert_undisturbed(seen: &Observation, checks: usize) {
    let text = format!(
        "{} requests, {} checks, missing {:?}, failures {:?}, slowest request {:?}, writer {}",
        seen.requests, seen.checks, seen.missing, seen.failures, seen.slowest_request, seen.summary
    );
    eprintln!("{text}");
    // The writer was neither disturbed nor held up.
    assert_eq!(seen.summary["errors"], json!([]), "{text}");
    assert!(seen.summary["slowest_ms"].as_u64().unwrap() < 2_000, "{text}");
    // Committed rows were found.
    assert!(seen.missing.is_empty(), "{text}");
    assert!(seen.failures.is_empty(), "requests failed: {text}");
    assert!(seen.checks >= checks, "too few checks: {text}");
}

const OBSERVATION_TIME: Duration = Duration::from_secs(4);

#[test]
fn a_wal_writer_is_never_disturbed_and_its_rows_are_found_at_once() {
    let job = json!({ "pause_us": 2_000, "setup": "PRAGMA synchronous = normal" });
    assert_undisturbed(&beside_writer(&job, "wal", OBSERVATION_TIME), 500);
}

#[test]
fn a_writer_that_checkpoints_all_the_time_is_never_disturbed() {
    let job = json!({ "pause_us": 2_000, "setup": "PRAGMA synchronous = normal; PRAGMA wal_autocheckpoint = 2" });
    assert_undisturbed(&beside_writer(&job, "wal", OBSERVATION_TIME), 500);
}

#[test]
fn a_writer_that_opens_and_closes_a_store_with_a_log_is_never_disturbed() {
    let job = json!({ "pause_us": 3_000, "reopen": true, "setup": "PRAGMA synchronous = off" });
    assert_undisturbed(&beside_writer(&job, "wal", OBSERVATION_TIME), 300);
}

#[test]
fn a_writer_with_a_rollback_journal_never_finds_the_store_busy() {
    let job = json!({ "pause_us": 5_000, "setup": "PRAGMA synchronous = normal" });
    assert_undisturbed(&beside_writer(&job, "delete", OBSERVATION_TIME), 300);
}

#[test]
fn a_writer_with_long_transactions_never_finds_the_store_busy() {
    for journal in ["delete", "persist", "memory"] {
        let job = json!({ "pause_us": 1_000, "hold_us": 60_000, "rows": 4_000, "setup": "PRAGMA synchronous = normal" });
        assert_undisturbed(&beside_writer(&job, journal, OBSERVATION_TIME), 20);
    }
}

#[test]
fn a_large_store_that_changes_all_the_time_still_answers() {
    for journal in ["wal", "delete"] {
        let job =
            json!({ "pause_us": 30_000, "rows": 10_000, "setup": "PRAGMA synchronous = normal" });
        // Only that it answers, and correctly: how often depends on the machine.
        assert_undisturbed(&beside_writer(&job, journal, OBSERVATION_TIME), 1);
    }
}

#[test]
fn a_writer_that_opens_and_closes_a_store_with_a_rollback_journal_is_never_disturbed() {
    let job = json!({ "pause_us": 5_000, "reopen": true, "setup": "PRAGMA synchronous = off" });
    assert_undisturbed(&beside_writer(&job, "truncate", OBSERVATION_TIME), 300);
}

fn approved(service: &Service, word: &str) -> Vec<String> {
    let request = QueryRequest { status: None, mode: Some(ack_api::Mode::Lexical), ..words(word) };
    ids(&service.query_memories(&request).unwrap())
}

#[test]
fn every_change_by_another_process_is_in_the_next_answer() {
    for journal in ["wal", "delete", "persist", "truncate", "memory"] {
        let root = Root::new();
        let path = root.store("one", &[titled("base", "a base row")]);
        let service = root.service();
        let mut other = Other::open(&path);
        other.sql(&format!("PRAGMA journal_mode = {journal}"));
        for number in 0..40 {
            let (word, later) = (unique_word(number), unique_word(1_000 + number));
            let id = format!("m{number}");
            let new = format!(
                "INSERT INTO memories (id, title, status) VALUES ('{id}', '{word}', 'staging')"
            );
            let set = |what: &str| format!("UPDATE memories SET {what} WHERE id = '{id}'");
            // A change, and whether the first title and the second one are found then.
            for (sql, first, second) in [
                (new, false, false),
                (set("status = 'approved'"), true, false),
                (set(&format!("title = '{later}'")), false, true),
                (set("status = 'rejected'"), false, false),
                (set("status = 'promoted'"), false, true),
                (format!("DELETE FROM memories WHERE id = '{id}'"), false, false),
            ] {
                other.sql(&sql);
                for (word, is_there) in [(&word, first), (&later, second)] {
                    let expected = vec![id.clone(); usize::from(is_there)];
                    assert_eq!(approved(&service, word), expected, "{journal}: {sql}");
                }
                if sql.contains("rejected") {
                    let unreviewed =
                        QueryRequest { mode: Some(ack_api::Mode::Lexical), ..words(&later) };
                    let found = ids(&service.query_memories(&unreviewed).unwrap());
                    assert!(found.is_empty(), "{journal}: {sql}");
                    let code = get(&service, &id).unwrap_err().code();
                    assert_eq!(code, "memory_not_served", "{journal}: {sql}");
                }
            }
            let code = get(&service, &id).unwrap_err().code();
            assert_eq!(code, "memory_not_found", "{journal} {number}");
        }
        let left = service.query_memories(&everything()).unwrap();
        assert_eq!(left.total, 1, "{journal}");
    }
}

#[test]
fn a_rolled_back_change_never_shows() {
    for journal in ["wal", "delete", "persist"] {
        let root = Root::new();
        let path = root.store("one", &[titled("m1", "steady words")]);
        let service = root.service();
        let mut other = Other::open(&path);
        other.sql(&format!(
            "PRAGMA journal_mode = {journal}; PRAGMA cache_size = 2; PRAGMA cache_spill = 1"
        ));
        for _ in 0..10 {
            other.sql("BEGIN; UPDATE memories SET title = 'torn words'");
            assert_eq!(approved(&service, "steady"), ["m1"], "{journal}");
            assert!(approved(&service, "torn").is_empty(), "{journal}");
            other.sql("ROLLBACK");
            assert_eq!(approved(&service, "steady"), ["m1"], "{journal}");
        }
    }
}
