//! Private copies of stores: nobody else can read them while they are made, and none outlives its
//! process.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use nix::sys::{signal::Signal, wait::WaitStatus};
use serde_json::json;
use tempfile::TempDir;

use crate::cli::binary;
use crate::mcp::{Server, command};
#[cfg(target_os = "linux")]
use crate::stepped::Stepped;
use crate::store_support::Other;
use crate::support::{Root, memory, run_sql};

/// A store that can only be read from a copy: a log whose shared memory is gone.
fn unfinished(root: &Root, scope: &str, narrative: usize) -> PathBuf {
    let path = root.store(
        scope,
        &[memory(
            "m1",
            "first marker",
            json!({ "narrative": "n".repeat(narrative) }),
        )],
    );
    run_sql(&path, "PRAGMA journal_mode = wal");
    let mut other = Other::open(&path);
    other.sql(
        "INSERT INTO memories (id, title, status) VALUES ('m2', 'marker in the log', 'approved')",
    );
    other.kill();
    fs::remove_file(path.with_extension("db-shm")).unwrap();
    path
}

fn remaining_copies(folder: &Path) -> Vec<PathBuf> {
    let mut left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    left.sort();
    left
}

fn end(child: &mut Child, signal: &str) -> ExitStatus {
    let id = child.id().to_string();
    let killed = Command::new("kill")
        .args([&format!("-{signal}"), &id])
        .status()
        .unwrap();
    assert!(killed.success());
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "SIG{signal} does not end it"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A command over a root that makes its copies in a temporary folder.
#[cfg(target_os = "linux")]
fn stepped(root: &Root, temporary: &TempDir, arguments: &[&str]) -> Stepped {
    let mut command = binary();
    command
        .arg("--root")
        .arg(root.path())
        .args(arguments)
        .env("TMPDIR", temporary.path());
    Stepped::start(&command)
}

/// Ends a process while it makes a copy.
#[cfg(target_os = "linux")]
fn end_while_copying(
    root: &Root,
    temporary: &TempDir,
    arguments: &[&str],
    signal: Signal,
) -> WaitStatus {
    let is_copying = || {
        let folders = remaining_copies(temporary.path());
        let mut folders = folders.iter().map(fs::read_dir);
        folders.any(|files| files.is_ok_and(|mut files| files.next().is_some()))
    };
    let mut process = stepped(root, temporary, arguments);
    assert!(process.run_until(is_copying), "no copy is made");
    process.end(signal)
}

#[test]
#[cfg(target_os = "linux")]
fn a_private_copy_is_readable_only_by_its_owner_while_it_is_made() {
    let root = Root::new();
    unfinished(&root, "one", 100);
    let temporary = tempfile::tempdir().unwrap();
    let mut seen = BTreeSet::new();
    let mut process = stepped(&root, &temporary, &["query", "marker"]);
    process.run_until(|| {
        let entries = walkdir::WalkDir::new(temporary.path()).min_depth(1);
        for entry in entries.into_iter().flatten() {
            if let Ok(metadata) = entry.metadata() {
                seen.insert((entry.depth(), metadata.mode() & 0o777));
            }
        }
        false
    });
    assert!(matches!(process.status(), WaitStatus::Exited(_, 0)));
    let found = seen.into_iter().collect::<Vec<_>>();
    assert_eq!(found, [(1, 0o700), (2, 0o600)]);
}

#[test]
fn a_server_leaves_no_private_copy_however_it_ends() {
    let root = Root::new();
    unfinished(&root, "one", 100);
    for (signal, code) in [
        ("TERM", Some(143)),
        ("INT", Some(130)),
        ("HUP", Some(129)),
        ("KILL", None),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let mut server = command(root.path());
        server.env("TMPDIR", temporary.path());
        let mut server = Server::spawn(server);
        server.initialize("2025-06-18");
        let answer = server.call("query_memories", json!({ "query": "log" }));
        assert_eq!(answer["structuredContent"]["total"], 1, "{answer}");
        let found = remaining_copies(temporary.path());
        assert_eq!(found, Vec::<PathBuf>::new(), "what is open has no name");
        let status = end(server.child(), signal);
        assert_eq!(status.code(), code, "SIG{signal}: {status}");
        let found = remaining_copies(temporary.path());
        assert_eq!(found, Vec::<PathBuf>::new(), "SIG{signal}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_command_removes_its_unfinished_copy() {
    let root = Root::new();
    unfinished(&root, "one", 100);
    for (arguments, signal, code) in [
        (["query", "marker"], Signal::SIGTERM, 143),
        (["query", "marker"], Signal::SIGINT, 130),
        (["hook", "session-start"], Signal::SIGHUP, 129),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let status = end_while_copying(&root, &temporary, &arguments, signal);
        assert!(
            matches!(status, WaitStatus::Exited(_, ended) if ended == code),
            "{arguments:?}: {status:?}"
        );
        let found = remaining_copies(temporary.path());
        assert_eq!(found, Vec::<PathBuf>::new(), "{arguments:?}");
    }
}

#[test]
fn copies_beyond_the_limit_are_read_and_leave_no_file() {
    let root = Root::new();
    let first = unfinished(&root, "one", 100);
    for number in 0..56 {
        let folder = root.scope_folder(&format!("more-{number}"));
        for name in ["memory.db", "memory.db-wal"] {
            fs::copy(first.with_file_name(name), folder.join(name)).unwrap();
        }
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut server = command(root.path());
    server.env("TMPDIR", temporary.path());
    let mut server = Server::spawn(server);
    server.initialize("2025-06-18");
    for _ in 0..2 {
        let answer = server.call("query_memories", json!({ "query": "log" }));
        assert_eq!(answer["structuredContent"]["total"], 57, "{answer}");
    }
    assert_eq!(remaining_copies(temporary.path()), Vec::<PathBuf>::new());
}
