//! Checkpoints next to busy readers: eight servers are queried continuously while a writer commits
//! and checkpoints.
//!
//! A measurement, for a quiet machine: `ACK_TEST_CHECKPOINTS=SECONDS`, with `ACK_TEST_SOAK_BINARY`
//! for a release build.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::json;

use crate::mcp::{Server, command};
use crate::support::{Root, Sql};

const CLIENTS: usize = 8;
const ROWS: usize = 5_000;

#[test]
fn checkpoints_beside_eight_busy_clients() {
    let Some(seconds) = std::env::var("ACK_TEST_CHECKPOINTS")
        .ok()
        .and_then(|value| value.parse().ok())
    else {
        eprintln!("ACK_TEST_CHECKPOINTS names no number of seconds: this test did nothing");
        return;
    };
    let root = Root::new();
    let path = root.store("one", &[]);
    let mut writer = Connection::open(&path).unwrap();
    writer.busy_timeout(Duration::ZERO).unwrap();
    writer.sql(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = normal; PRAGMA wal_autocheckpoint = 0",
    );
    let insert = "INSERT INTO memories (id, title, narrative, status, created_at) VALUES (?1, ?2, ?3, 'approved', '2026-01-01T00:00:00Z')";
    let transaction = writer.transaction().unwrap();
    for row in 0..ROWS {
        let text = format!("narrative {row} ").repeat(60);
        transaction.sql_with(
            insert,
            params![format!("m{row}"), format!("title {row}"), text],
        );
    }
    transaction.commit().unwrap();
    let (done, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut checkpoints, mut busy, mut commits, mut longest) = (0, 0, 0, 0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (done, asked, path) = (&done, &asked, root.path());
            scope.spawn(move || {
                let mut server = match std::env::var_os("ACK_TEST_SOAK_BINARY") {
                    Some(other) => {
                        let ours = command(path);
                        let mut command = Command::new(other);
                        command
                            .args(ours.get_args())
                            .current_dir("/")
                            .env("ACK_MEM_PATH", path);
                        command
                            .stdin(std::process::Stdio::piped())
                            .stdout(std::process::Stdio::piped());
                        Server::spawn(command)
                    }
                    None => Server::spawn(command(path)),
                };
                server.initialize("2025-06-18");
                while !done.load(Ordering::Relaxed) {
                    let query = format!(
                        "title {}",
                        (asked.fetch_add(1, Ordering::Relaxed) + client) % ROWS
                    );
                    server.call("query_memories", json!({ "query": query, "limit": 5 }));
                }
            });
        }
        std::thread::sleep(Duration::from_secs(5));
        let (until, mut last) = (
            Instant::now() + Duration::from_secs(seconds),
            Instant::now(),
        );
        while Instant::now() < until {
            let text = format!("another {commits} ").repeat(60);
            writer.sql_with(insert, params![format!("n{commits}"), "another", text]);
            commits += 1;
            let log = std::fs::metadata(path.with_extension("db-wal")).map_or(0, |log| log.len());
            longest = longest.max(log);
            if last.elapsed() > Duration::from_millis(200) {
                last = Instant::now();
                checkpoints += 1;
                busy += writer
                    .query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| {
                        row.get::<_, i64>(0)
                    })
                    .unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        done.store(true, Ordering::Relaxed);
    });
    println!(
        "{commits} commits, {} requests: {busy} of {checkpoints} checkpoints were busy, the log grew to {:.1} MiB",
        asked.into_inner(),
        longest as f64 / f64::from(1 << 20)
    );
    assert!(
        busy * 2 < checkpoints,
        "readers starve checkpoints: {busy} of {checkpoints}"
    );
}
