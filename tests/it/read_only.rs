//! Truly read-only: no operation of the server or of a reading subcommand changes a byte, a time or
//! a name under a root.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ack_api::memory::StatusFilter;
use ack_api::{ContextRequest, GetRequest, Include, ListScopesRequest, QueryRequest};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::{CLAUDE_MEM, Other, binary, everything, get, words};
use crate::support::{Root, fingerprint, memory, outside};

/// A root with a scope in every state, and the processes that keep some of them open.
fn every_state() -> (Root, Vec<Other>) {
    let root = Root::new();
    fs::write(
        root.path().join("config.toml"),
        "default_scope = \"rollback\"\n",
    )
    .unwrap();
    let memories = [
        memory(
            "m1",
            "first marker",
            json!({ "session": "s1", "concepts": ["tag"], "superseded_by": "m2" }),
        ),
        memory(
            "m2",
            "second marker",
            json!({ "session": "s1", "narrative": "words ".repeat(3_000) }),
        ),
        memory("m3", "third marker", json!({ "status": "staging" })),
    ];
    let store = |scope: &str, mode: &str| {
        let path = root.store(scope, &memories);
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!("PRAGMA journal_mode = {mode}"))
            .unwrap();
        path
    };
    store("rollback", "delete");
    store("persist", "persist");
    store("wal-at-rest", "wal");
    root.manifest("wal-at-rest", "visibility = \"private\"\n");
    let mut others = Vec::new();
    for (scope, mode, sql, killed) in [
        (
            "wal-killed",
            "wal",
            "INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')",
            true,
        ),
        (
            "wal-live",
            "wal",
            "INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')",
            false,
        ),
        (
            "hot-journal",
            "delete",
            "PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE memories SET title = 'torn', narrative = hex(zeroblob(100000))",
            true,
        ),
        (
            "under-way",
            "delete",
            "BEGIN IMMEDIATE; INSERT INTO memories (id, title, status) VALUES ('m4', 'not committed', 'approved')",
            false,
        ),
        (
            "wal-exclusive",
            "wal",
            "PRAGMA locking_mode = exclusive; INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')",
            false,
        ),
    ] {
        let path = store(scope, mode);
        let mut other = Other::open(&path);
        other.sql(sql);
        if killed {
            other.kill();
        } else {
            others.push(other);
        }
    }
    let alone = store("no-shm", "wal");
    let mut other = Other::open(&alone);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')");
    other.kill();
    fs::remove_file(alone.with_extension("db-shm")).unwrap();
    let claude = root.scope_folder("claude").join("claude-mem.db");
    match outside("ACK_TEST_REAL_STORES") {
        Some(stores) => {
            fs::copy(stores.join("claude-mem/claude-mem.db"), &claude).unwrap();
            let live = root.scope_folder("claude-live");
            for name in ["claude-mem.db", "claude-mem.db-wal", "claude-mem.db-shm"] {
                fs::copy(stores.join("claude-mem-live").join(name), live.join(name)).unwrap();
                // Read-only originals make read-only copies; these could be written.
                let mut permissions = fs::metadata(live.join(name)).unwrap().permissions();
                std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o644);
                fs::set_permissions(live.join(name), permissions).unwrap();
            }
        }
        None => Connection::open(&claude)
            .unwrap()
            .execute_batch(CLAUDE_MEM)
            .unwrap(),
    }
    fs::create_dir(root.scope_folder("rollback").join("lance")).unwrap();
    fs::write(
        root.scope_folder("garbled").join("memory.db"),
        "no database",
    )
    .unwrap();
    fs::write(root.scope_folder("empty").join("memory.db"), "").unwrap();
    (root, others)
}

/// What differs between two fingerprints, by file name.
fn difference<T: PartialEq>(
    before: &std::collections::BTreeMap<PathBuf, T>,
    after: &std::collections::BTreeMap<PathBuf, T>,
) -> Vec<PathBuf> {
    before
        .keys()
        .chain(after.keys())
        .filter(|path| before.get(*path) != after.get(*path))
        .cloned()
        .collect()
}

fn unchanged<T>(root: &Root, what: &str, run: impl FnOnce() -> T) -> T {
    let before = fingerprint(root.path());
    let result = run();
    let changed = difference(&before, &fingerprint(root.path()));
    assert!(changed.is_empty(), "{what} changed {changed:?}");
    result
}

#[test]
fn no_operation_of_the_service_changes_a_byte() {
    let (root, _others) = every_state();
    let service = root.service();
    for _ in 0..2 {
        unchanged(&root, "query_memories", || {
            let request = QueryRequest {
                explain: Some(true),
                ..words("marker")
            };
            assert!(service.query_memories(&request).unwrap().total > 0);
        });
        unchanged(&root, "a list with pages", || {
            let request = QueryRequest {
                limit: Some(2),
                ..everything()
            };
            let page = service.query_memories(&request).unwrap();
            let next = QueryRequest {
                cursor: page.next_cursor,
                ..request
            };
            service.query_memories(&next).unwrap();
        });
        for scope in [
            "rollback",
            "wal-at-rest",
            "wal-killed",
            "wal-live",
            "hot-journal",
            "under-way",
            "wal-exclusive",
            "no-shm",
            "claude",
            "claude-live",
            "garbled",
            "empty",
        ] {
            unchanged(&root, scope, || {
                let request = QueryRequest {
                    scope: Some(scope.to_owned()),
                    ..words("marker")
                };
                let _ = service.query_memories(&request);
                let _ = service.list_scopes(&ListScopesRequest {
                    scope: Some(scope.to_owned()),
                    ..ListScopesRequest::default()
                });
                for id in ["m1", "m4", "obs-1", "sum-1", "nothing"] {
                    let _ = service.get_memory(&GetRequest {
                        id: Some(id.to_owned()),
                        scope: Some(scope.to_owned()),
                        status: Some(StatusFilter::All),
                        include: Some(vec![
                            Include::Timeline,
                            Include::Links,
                            Include::History,
                            Include::Related,
                        ]),
                        ..GetRequest::default()
                    });
                }
            });
        }
        unchanged(&root, "get_memory", || get(&service, "m2").unwrap());
        unchanged(&root, "list_scopes", || {
            service.list_scopes(&ListScopesRequest::default()).unwrap()
        });
        unchanged(&root, "get_context", || {
            service.get_context(&ContextRequest::default()).unwrap()
        });
    }
    unchanged(&root, "the end of the service", || drop(service));
}

/// The subcommands that only read.
const READING: [&[&str]; 13] = [
    &["query", "marker", "--status", "all", "--long", "--explain"],
    &["query"],
    &["query", "marker", "--scope", "wal-killed"],
    &["query", "log", "--scope", "no-shm", "--json"],
    &["query", "marker", "--scope", "hot-journal"],
    &["query", "--scope", "empty"],
    &[
        "get",
        "m1",
        "m2",
        "obs-1",
        "--status",
        "all",
        "--include",
        "timeline",
        "--include",
        "links",
        "--include",
        "history",
    ],
    &["scopes"],
    &["scopes", "--scope", "wal-at-rest", "--json"],
    &["context", "marker"],
    &["doctor"],
    &["doctor", "--json"],
    &["--pin", "wal-live", "query", "log"],
];

#[test]
fn no_reading_subcommand_changes_a_byte() {
    let (root, _others) = every_state();
    for arguments in READING {
        unchanged(&root, &arguments.join(" "), || {
            let output = binary(root.path()).args(arguments).output().unwrap();
            assert!(
                output.status.code().is_some_and(|code| code < 2),
                "{arguments:?}: {output:?}"
            );
        });
    }
    unchanged(&root, "serve", || serve(binary(root.path()).arg("serve")));
}

#[test]
fn a_planned_import_and_a_planned_scope_write_nothing() {
    let (root, _others) = every_state();
    let lines = tempfile::NamedTempFile::new().unwrap();
    fs::write(lines.path(), "{\"id\":\"new-1\",\"title\":\"a new one\"}\n").unwrap();
    let file = lines.path().to_str().unwrap();
    for arguments in [
        vec!["--pin", "rollback", "import", "--dry-run", file],
        vec!["--pin", "brand-new", "import", "--dry-run", file],
        vec!["scopes", "add", "planned", "--store", file],
    ] {
        unchanged(&root, &arguments.join(" "), || {
            binary(root.path()).args(&arguments).output().unwrap()
        });
    }
}

/// A few requests over the protocol, each waited for.
fn serve(command: &mut Command) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| {
        writeln!(
            input,
            "{}",
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        )
        .unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        if method == "initialize" {
            writeln!(
                input,
                "{}",
                json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
            )
            .unwrap();
        }
        answer
    };
    let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    ask(1, "initialize", client);
    ask(2, "tools/list", json!({}));
    for (id, name, arguments) in [
        (
            3,
            "query_memories",
            json!({ "query": "marker", "status": "all" }),
        ),
        (
            4,
            "get_memory",
            json!({ "id": "m2", "include": ["timeline", "links", "history"] }),
        ),
        (5, "list_scopes", json!({})),
        (6, "get_context", json!({})),
    ] {
        let answer = ask(
            id,
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        );
        assert_ne!(answer["result"]["isError"], true, "{name}: {answer}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Runs the binary under `strace` and returns its system calls about files; `None`, with a message,
/// without it.
fn traced(root: &Path, arguments: &[&str]) -> Option<String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-qq",
        "-y",
        "-s",
        "600",
        "-e",
        "trace=%file,%desc",
        "-o",
    ]);
    command
        .arg(log.path())
        .arg(env!("CARGO_BIN_EXE_ack-memory"))
        .args(arguments);
    command.env("ACK_MEM_PATH", root).current_dir("/");
    if arguments == ["serve"] {
        serve(&mut command);
    } else {
        let output = command.output().unwrap();
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{output:?}"
        );
    }
    let log = String::from_utf8_lossy(&fs::read(log.path()).unwrap()).into_owned();
    Some(log)
}

/// The path under the root that a line of `strace` would change, if any.
fn change<'a>(line: &'a str, root: &str) -> Option<&'a str> {
    if !line.contains(root) {
        return None;
    }
    let call = line.split_once(' ').map_or(line, |(first, rest)| {
        if first.bytes().all(|b| b.is_ascii_digit()) {
            rest
        } else {
            line
        }
    });
    let call = call.trim_start();
    let name = call.split('(').next().unwrap_or_default();
    // The first argument of calls on an open file, with its path.
    let on_file = || {
        call.split([',', ')'])
            .next()
            .is_some_and(|first| first.contains(root))
    };
    let changes = match name {
        "open" | "openat" | "openat2" | "creat" => {
            ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "creat("]
                .iter()
                .any(|word| call.contains(word))
        }
        "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" | "ftruncate" | "fallocate"
        | "fchmod" | "fsync" | "fdatasync" | "fsetxattr" => on_file(),
        "mmap" => call.contains("PROT_WRITE") && call.contains("MAP_SHARED"),
        "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat" | "rmdir" | "mkdir"
        | "mkdirat" | "mknod" | "mknodat" | "link" | "linkat" | "symlink" | "symlinkat"
        | "truncate" | "chmod" | "fchmodat" | "chown" | "lchown" | "fchownat" | "utime"
        | "utimes" | "utimensat" | "futimesat" | "setxattr" | "lsetxattr" | "removexattr" => true,
        "fcntl" => {
            call.contains("F_WRLCK") && (call.contains("F_SETLK") || call.contains("F_OFD_SETLK"))
        }
        "flock" => true,
        _ => false,
    };
    changes.then_some(call)
}

#[test]
fn the_binary_makes_no_writing_system_call_under_the_root() {
    let works = Command::new("strace")
        .args(["-qq", "-e", "trace=none", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("strace is not to be had here: this test did nothing");
        return;
    }
    let (root, _others) = every_state();
    let folder = root.path().to_str().unwrap();
    for arguments in READING.into_iter().chain([&["serve"][..]]) {
        let Some(log) = traced(root.path(), arguments) else {
            continue;
        };
        assert!(
            log.contains(folder),
            "{arguments:?}: the trace shows nothing"
        );
        let changes: Vec<&str> = log
            .lines()
            .filter_map(|line| change(line, folder))
            .collect();
        assert!(changes.is_empty(), "{arguments:?}: {changes:#?}");
    }
}

#[test]
fn the_owner_of_a_log_is_unchanged() {
    let root = Root::new();
    let path = root.store("one", &[memory("m1", "a marker", json!({}))]);
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA journal_mode = wal")
        .unwrap();
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m2', 'in the log', 'approved')");
    let beside = [path.with_extension("db-wal"), path.with_extension("db-shm")];
    if beside
        .iter()
        .any(|file| std::os::unix::fs::chown(file, Some(65_534), Some(65_534)).is_err())
    {
        eprintln!("only root can give a file away: this test did nothing");
        return;
    }
    assert_eq!(
        root.service().query_memories(&everything()).unwrap().total,
        2
    );
    for file in beside {
        let metadata = fs::metadata(&file).unwrap();
        assert_eq!(
            std::os::unix::fs::MetadataExt::uid(&metadata),
            65_534,
            "{}",
            file.display()
        );
    }
}

#[test]
fn private_copies_are_removed_when_the_process_ends() {
    let (root, _others) = every_state();
    let temporary = tempfile::tempdir().unwrap();
    for arguments in READING {
        binary(root.path())
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .output()
            .unwrap();
        let left: Vec<_> = fs::read_dir(temporary.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{arguments:?} left {left:?}");
    }
    serve(
        binary(root.path())
            .arg("serve")
            .env("TMPDIR", temporary.path()),
    );
    let left: Vec<_> = fs::read_dir(temporary.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(left.is_empty(), "serve left {left:?}");
}
