//! Private copies of stores: nobody else can read them while they are made, and none outlives its
//! process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::cli::{binary, run};
use crate::mcp::{Server, command};
use crate::store_support::Other;
use crate::support::{Root, run_sql, titled};

/// A store that can only be read from a copy: a log whose shared memory is gone.
fn unfinished(root: &Root, scope: &str) -> PathBuf {
    let path = root.store(scope, &[titled("m1", "first marker")]);
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
    let mut left: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    left
}

fn end(child: &mut Child, signal: &str) -> ExitStatus {
    let id = child.id().to_string();
    let killed = Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap();
    assert!(killed.success());
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "SIG{signal} does not end it");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A command over a root that makes its copies in a temporary folder, under `strace`.
#[cfg(target_os = "linux")]
fn traced(root: &Root, temporary: &TempDir, flags: &[&str], arguments: &[&str]) -> Command {
    let ours = binary();
    // With the widest umask, only the program itself can keep others out.
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$0\" \"$@\"", "strace", "-f", "-qq"])
        .args(flags)
        .arg(ours.get_program())
        .arg("--root")
        .arg(root.path())
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", root.path())
        .env("TMPDIR", temporary.path());
    command
}

#[test]
#[cfg(target_os = "linux")]
fn a_private_copy_is_readable_only_by_its_owner_while_it_is_made() {
    let root = Root::new();
    unfinished(&root, "one");
    let temporary = tempfile::tempdir().unwrap();
    let flags = ["-e", "trace=%file"];
    let mut command = traced(&root, &temporary, &flags, &["query", "marker"]);
    let calls = run(&mut command).err;
    let folder = temporary.path().to_str().unwrap();
    let makes =
        |call: &&str| call.contains(folder) && !call.ends_with("(No such file or directory)");
    let mut made: Vec<&str> = calls
        .lines()
        .filter(makes)
        .filter(|call| call.contains("mkdir") || call.contains("O_CREAT"))
        .map(|call| call.rsplit_once(", ").unwrap().1.split(')').next().unwrap())
        .collect();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made, ["0600", "0700"], "{calls}");
}

#[test]
fn a_server_leaves_no_private_copy_however_it_ends() {
    let root = Root::new();
    unfinished(&root, "one");
    for (signal, code) in
        [("TERM", Some(143)), ("INT", Some(130)), ("HUP", Some(129)), ("KILL", None)]
    {
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
    unfinished(&root, "one");
    // The copy stays there for so long.
    let delay = Duration::from_secs(2);
    let inject = format!("inject=unlink:delay_enter={}:when=1", delay.as_micros());
    for (arguments, signal, code) in [
        (["query", "marker"], "TERM", 143),
        (["query", "marker"], "INT", 130),
        (["hook", "session-start"], "HUP", 129),
    ] {
        let temporary = tempfile::tempdir().unwrap();
        let flags = ["-D", "-o", "/dev/null", "-e", &inject];
        let mut command = traced(&root, &temporary, &flags, &arguments);
        let mut process = command.stdin(Stdio::null()).spawn().unwrap();
        let files = || walkdir::WalkDir::new(temporary.path()).min_depth(2).into_iter().flatten();
        while files().next().is_none() {
            assert!(process.try_wait().unwrap().is_none(), "no copy is made");
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = end(&mut process, signal);
        assert_eq!(status.code(), Some(code), "{arguments:?}");
        assert_eq!(remaining_copies(temporary.path()), Vec::<PathBuf>::new());
    }
}

#[test]
fn copies_beyond_the_limit_are_read_and_leave_no_file() {
    let root = Root::new();
    let first = unfinished(&root, "one");
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
