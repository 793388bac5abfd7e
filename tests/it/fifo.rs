//! Named pipes where files are expected: nothing waits for their other end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use serde_json::json;

use crate::cli::binary;
use crate::context::project;
use crate::support::{Root, memory};

/// Longer than any command takes, and than a hook waits for its answer.
const SECONDS: Duration = Duration::from_secs(4);

fn pipe(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(path);
    nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

/// The output of a command, unless it hangs.
#[track_caller]
fn run(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > SECONDS {
            child.kill().unwrap();
            panic!("{command:?} hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// Every entry point to the memories.
const ENTRY_POINTS: [&[&str]; 7] = [
    &["query", "marker"],
    &["get", "m1"],
    &["scopes"],
    &["context"],
    &["doctor"],
    &["hook", "session-start"],
    &["hook", "user-prompt"],
];

fn ask(root: &Root, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = binary();
    command
        .arg("--root")
        .arg(root.path())
        .arg("-C")
        .arg(folder)
        .args(arguments);
    run(command.env("HOME", root.path().join("home")))
}

fn root() -> Root {
    let root = Root::new();
    root.store("one", &[memory("m1", "first marker", json!({}))]);
    root
}

#[test]
fn a_pipe_in_place_of_a_store_file_is_reported() {
    for name in [
        "memory.db-journal",
        "memory.db-shm",
        "memory.db-wal",
        "memory.db",
        "claude-mem.db",
        "scope.toml",
    ] {
        let root = root();
        root.store("two", &[memory("n1", "second marker", json!({}))]);
        if name == "claude-mem.db" {
            std::fs::remove_file(root.scope_folder("one").join("memory.db")).unwrap();
        }
        pipe(&root.scope_folder("one").join(name));
        for arguments in ENTRY_POINTS {
            let output = ask(&root, root.path(), arguments);
            if arguments[0] == "query" {
                let (out, err) = (
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr),
                );
                assert!(
                    out.contains("second marker"),
                    "{name}: the others answer: {out}{err}"
                );
                assert!(
                    out.contains(name) && out.contains("a named pipe"),
                    "{name}: {out}{err}"
                );
            }
        }
    }
}

#[test]
fn a_pipe_as_the_only_database_is_named() {
    let root = root();
    pipe(&root.path().join("claude-mem.db"));
    let error = error_text(&ask(&root, root.path(), &["query", "marker"]));
    assert!(
        error.contains("first marker") && error.contains("a named pipe"),
        "{error}"
    );
    let database = root.path().join("pipe.db");
    pipe(&database);
    let mut command = binary();
    let output = run(command.arg("--db").arg(&database).args(["query", "marker"]));
    let error = self::error_text(&output);
    assert!(
        error.contains("a named pipe") && !error.contains("backup"),
        "{error}"
    );
}

fn error_text(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}

#[test]
fn a_pipe_among_notes_is_skipped_and_reported() {
    let root = root();
    let notes = root.path().join("notes");
    pipe(&notes.join("deep/pipe.md"));
    std::fs::write(notes.join("a.md"), "---\ntitle: second marker\n---\ntext\n").unwrap();
    let folder = root.scope_folder("two");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "store = \"{}\"\nunreviewed = \"approved\"\n",
        notes.display()
    );
    std::fs::write(folder.join("scope.toml"), manifest).unwrap();
    let found = error_text(&ask(&root, root.path(), &["query", "marker"]));
    assert!(found.contains("second marker"), "{found}");
    for arguments in [
        &["scopes", "--json"] as &[&str],
        &["check", notes.to_str().unwrap()],
    ] {
        let error = error_text(&ask(&root, root.path(), arguments));
        assert!(
            error.contains("pipe.md") && error.contains("a named pipe"),
            "{arguments:?}: {error}"
        );
    }
}

#[test]
fn a_pipe_as_the_access_log_is_refused() {
    let root = root();
    let log = root.path().join("log");
    pipe(&log);
    let mut command = binary();
    command
        .args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--no-token",
            "--access-log",
        ])
        .arg(&log)
        .arg("--root")
        .arg(root.path());
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(error_text(&output).contains("a named pipe"), "{output:?}");
}

#[test]
fn a_pipe_in_place_of_settings_is_reported() {
    let root = root();
    pipe(&root.path().join("config.toml"));
    for arguments in ENTRY_POINTS {
        let output = ask(&root, root.path(), arguments);
        // The doctor reports it with its other findings.
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            text.contains("config.toml") && text.contains("a named pipe"),
            "{arguments:?}: {text}"
        );
    }
    let token = root.path().join("token");
    pipe(&token);
    let mut command = binary();
    command
        .args(["serve", "--http", "127.0.0.1:0", "--token-file"])
        .arg(&token);
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(1));
    pipe(&root.path().join("home/.gemini/settings.json"));
    let mut command = binary();
    let output = run(command
        .args(["connect", "gemini", "--yes"])
        .env("HOME", root.path().join("home")));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("a named pipe"),
        "{output:?}"
    );
}

#[test]
fn a_pipe_among_project_files_does_not_block_a_session() {
    for name in [
        ".git",
        ".git/HEAD",
        ".git/config",
        ".git/index",
        ".git/commondir",
        ".git/gitdir",
        ".git/info/exclude",
        ".git/logs/HEAD",
        ".git/sharedindex.0123",
        ".gitignore",
        "HEAD",
        "commondir",
        "sub/.gitignore",
        "sub/HEAD",
        "tracked",
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "requirements.txt",
        "go.mod",
        "composer.json",
        "Gemfile",
        "../../home/.claude/settings.json",
        "../../home/.gitconfig",
        "../../home/.config/git/config",
        "../../home/.config/git/ignore",
    ] {
        let root = root();
        let folder = repository(&root);
        if name == ".git" {
            std::fs::remove_dir_all(folder.join(".git")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        pipe(&folder.join(name));
        for arguments in [
            &["context"] as &[&str],
            &["hook", "session-start"],
            &["query", "marker"],
        ] {
            let output = ask(&root, &folder.join("sub"), arguments);
            assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
            let out = String::from_utf8_lossy(&output.stdout);
            assert!(
                arguments[0] != "query" || out.contains("first marker"),
                "{name} {arguments:?}: {out}"
            );
        }
    }
}

/// A repository with an index that tracks an empty file.
fn repository(root: &Root) -> PathBuf {
    let folder = project(root, "ledger-api", "main");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::write(folder.join("tracked"), "").unwrap();
    for arguments in [&["init", "-q"] as &[&str], &["add", "tracked"]] {
        let status = Command::new("git")
            .current_dir(&folder)
            .args(arguments)
            .env("HOME", root.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("git cannot make an index: this test does without");
        }
    }
    folder
}

#[test]
fn a_linked_worktree_whose_own_folder_holds_a_pipe_is_no_repository() {
    let root = root();
    let folder = root.path().join("work/linked");
    let private = root.path().join("work/main/.git/worktrees/linked");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&private).unwrap();
    std::fs::write(
        folder.join(".git"),
        format!("gitdir: {}\n", private.display()),
    )
    .unwrap();
    pipe(&private.join("HEAD"));
    let output = ask(&root, &folder, &["context"]);
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_file(private.join("HEAD")).unwrap();
    std::fs::write(private.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    pipe(&private.join("commondir"));
    assert!(ask(&root, &folder, &["context"]).status.success());
}
