//! Truly read-only: no operation of the server or of a reading subcommand changes a byte, a time or
//! a name under a root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::cli::run;
use crate::mcp::Server;
use crate::store_support::{CLAUDE_MEM, Other, binary};
use crate::support::{
    Ask, Root, fingerprint, memory, outside, run_sql, titled, unreviewed, write_file,
};

/// A root with a scope in every state, and the processes that keep some of them open.
fn every_state() -> (Root, Vec<Other>) {
    let root = Root::new();
    let text = "default_scope = \"rollback\"\n";
    write_file(root.path().join("config.toml"), text);
    let replaced = json!({ "session": "s1", "concepts": ["tag"], "superseded_by": "m2" });
    let long = json!({ "session": "s1", "narrative": "words ".repeat(3_000) });
    let memories = [
        memory("m1", "first marker", replaced),
        memory("m2", "second marker", long),
        unreviewed("m3", "third marker"),
    ];
    let store = |scope: &str, mode: &str| {
        let path = root.store(scope, &memories);
        run_sql(&path, &format!("PRAGMA journal_mode = {mode}"));
        path
    };
    store("rollback", "delete");
    store("persist", "persist");
    store("wal-at-rest", "wal");
    root.manifest("wal-at-rest", "visibility = \"private\"\n");
    let mut others = Vec::new();
    let insert = "INSERT INTO memories (id, title, status) VALUES ('m4', 'in the log', 'approved')";
    let under_way = format!("BEGIN IMMEDIATE; {insert}");
    let exclusive = format!("PRAGMA locking_mode = exclusive; {insert}");
    let spilled = "PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; UPDATE memories SET title = 'torn', narrative = hex(zeroblob(100000))";
    for (scope, mode, sql, killed) in [
        ("wal-killed", "wal", insert, true),
        ("wal-live", "wal", insert, false),
        ("hot-journal", "delete", spilled, true),
        ("under-way", "delete", &under_way, false),
        ("wal-exclusive", "wal", &exclusive, false),
        ("no-shm", "wal", insert, true),
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
    let shared = root.scope_folder("no-shm").join("memory.db-shm");
    fs::remove_file(shared).unwrap();
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
        None => run_sql(&claude, CLAUDE_MEM),
    }
    fs::create_dir(root.scope_folder("rollback").join("lance")).unwrap();
    write_file(root.scope_folder("garbled").join("memory.db"), "no database");
    write_file(root.scope_folder("empty").join("memory.db"), "");
    (root, others)
}

/// What differs between two fingerprints, by file name.
fn difference<T: PartialEq>(
    before: &std::collections::BTreeMap<PathBuf, T>,
    after: &std::collections::BTreeMap<PathBuf, T>,
) -> Vec<PathBuf> {
    let paths = before.keys().chain(after.keys());
    let changed = paths.filter(|path| before.get(*path) != after.get(*path));
    changed.cloned().collect()
}

fn unchanged<T>(root: &Root, what: &str, run: impl FnOnce() -> T) -> T {
    let before = fingerprint(root.path());
    let result = run();
    let changed = difference(&before, &fingerprint(root.path()));
    assert!(changed.is_empty(), "{what} changed {changed:?}");
    result
}

/// The subcommands that only read.
const READING: &str = "\
query marker --status all --long --explain
query
query marker --scope wal-killed
query log --scope no-shm --json
query marker --scope hot-journal
query --scope empty
get m1 m2 obs-1 --status all --include timeline --include links --include history
scopes
scopes --scope wal-at-rest --json
context marker
doctor
doctor --json
--pin wal-live query log";

#[test]
fn no_reading_subcommand_changes_a_byte() {
    let (root, _others) = every_state();
    for line in READING.lines() {
        unchanged(&root, line, || {
            let outcome = run(binary(root.path()).args(line.split(' ')));
            assert!(outcome.code.is_some_and(|code| code < 2), "{line}: {outcome:?}");
        });
    }
    unchanged(&root, "serve", || {
        let mut command = binary(root.path());
        command.arg("serve");
        serve(command);
    });
}

#[test]
fn a_planned_import_and_a_planned_scope_write_nothing() {
    let (root, _others) = every_state();
    let lines = tempfile::NamedTempFile::new().unwrap();
    write_file(lines.path(), "{\"id\":\"new-1\",\"title\":\"a new one\"}\n");
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
fn serve(mut command: Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Server::spawn(command);
    server.initialize("2025-06-18");
    server.request("tools/list", json!({}));
    let include = ["timeline", "links", "history"];
    for (name, arguments) in [
        ("query_memories", json!({ "query": "marker", "status": "all" })),
        ("get_memory", json!({ "id": "m2", "include": include })),
        ("list_scopes", json!({})),
        ("get_context", json!({})),
    ] {
        let answer = server.call(name, arguments);
        assert_ne!(answer["isError"], true, "{name}: {answer}");
    }
    let (_, status, _) = server.close();
    assert!(status.success());
}

/// Runs the binary under `strace` and returns its system calls about files.
fn traced(root: &Path, arguments: &str) -> String {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command.args("-f -qq -y -s 600 -e trace=%file,%desc -o".split(' '));
    command.arg(log.path()).arg(env!("CARGO_BIN_EXE_ack-memory")).args(arguments.split(' '));
    command.env("ACK_MEM_PATH", root).current_dir("/");
    if arguments == "serve" {
        serve(command);
    } else {
        let outcome = run(&mut command);
        assert!(outcome.code.is_some_and(|code| code < 2), "{outcome:?}");
    }
    String::from_utf8_lossy(&fs::read(log.path()).unwrap()).into_owned()
}

/// The path under the root that a line of `strace` would change, if any.
fn change<'a>(line: &'a str, root: &str) -> Option<&'a str> {
    if !line.contains(root) {
        return None;
    }
    let call = line.split_once(' ').map_or(line, |(first, rest)| {
        if first.bytes().all(|b| b.is_ascii_digit()) { rest } else { line }
    });
    let call = call.trim_start();
    let name = call.split('(').next().unwrap_or_default();
    // The first argument of calls on an open file, with its path.
    let on_file = || call.split([',', ')']).next().is_some_and(|first| first.contains(root));
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
    let mut works = Command::new("strace");
    let works = works.args(["-qq", "-e", "trace=none", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!("strace is not to be had here: this test did nothing");
        return;
    }
    let (root, _others) = every_state();
    let folder = root.path().to_str().unwrap();
    for line in READING.lines().chain(["serve"]) {
        let log = traced(root.path(), line);
        assert!(log.contains(folder), "{line}: the trace shows nothing");
        let changes = log.lines().filter_map(|line| change(line, folder));
        assert_eq!(changes.collect::<Vec<_>>(), [""; 0], "{line}");
    }
}

#[test]
fn the_owner_of_a_log_is_unchanged() {
    let root = Root::new();
    let path = root.store("one", &[titled("m1", "a marker")]);
    run_sql(&path, "PRAGMA journal_mode = wal");
    let mut other = Other::open(&path);
    other.sql("INSERT INTO memories (id, title, status) VALUES ('m2', 'in the log', 'approved')");
    let beside = [path.with_extension("db-wal"), path.with_extension("db-shm")];
    if beside.iter().any(|file| std::os::unix::fs::chown(file, Some(65_534), Some(65_534)).is_err())
    {
        eprintln!("only root can give a file away: this test did nothing");
        return;
    }
    assert_eq!(root.service().find(json!({ "status": "all" }))["total"], 2);
    for file in beside {
        let metadata = fs::metadata(&file).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&metadata);
        assert_eq!(owner, 65_534, "{}", file.display());
    }
}
