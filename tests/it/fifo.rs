//! Named pipes where files are expected: nothing waits for their other end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;

use crate::changes::git;
use crate::cli::binary;
use crate::context::project;
use crate::support::{Root, titled, write_file};

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
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
    command.arg("--root").arg(root.path()).arg("-C").arg(folder);
    run(command.args(arguments).env("HOME", root.path().join("home")))
}

fn root() -> Root {
    Root::with("one", &[titled("m1", "first marker")])
}

#[test]
fn a_pipe_in_place_of_a_store_file_is_reported() {
    let names = "memory.db-journal memory.db-shm memory.db-wal memory.db claude-mem.db scope.toml";
    for name in names.split(' ') {
        let root = root();
        root.store("two", &[titled("n1", "second marker")]);
        if name == "claude-mem.db" {
            std::fs::remove_file(root.scope_folder("one").join("memory.db")).unwrap();
        }
        pipe(&root.scope_folder("one").join(name));
        for arguments in ENTRY_POINTS {
            let output = ask(&root, root.path(), arguments);
            if arguments[0] == "query" {
                // The others answer.
                let out = String::from_utf8_lossy(&output.stdout);
                assert_contains!(out, "second marker", name, "a named pipe"; "{output:?}");
            }
        }
    }
}

#[test]
fn a_pipe_as_the_only_database_is_named() {
    let root = root();
    pipe(&root.path().join("claude-mem.db"));
    let error = error_text(&ask(&root, root.path(), &["query", "marker"]));
    assert_contains!(error, "first marker", "a named pipe");
    let database = root.path().join("pipe.db");
    pipe(&database);
    let mut command = binary();
    let output = run(command.arg("--db").arg(&database).args(["query", "marker"]));
    let error = error_text(&output);
    assert_contains!(error, "a named pipe");
    assert_lacks!(error, "backup");
}

fn error_text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

#[test]
fn a_pipe_among_notes_is_skipped_and_reported() {
    let root = root();
    let notes = root.path().join("notes");
    pipe(&notes.join("deep/pipe.md"));
    write_file(notes.join("a.md"), "---\ntitle: second marker\n---\ntext\n");
    let manifest = format!("store = {notes:?}\nunreviewed = \"approved\"\n");
    root.manifest("two", &manifest);
    let found = error_text(&ask(&root, root.path(), &["query", "marker"]));
    assert_contains!(found, "second marker");
    for arguments in [&["scopes", "--json"] as &[&str], &["check", notes.to_str().unwrap()]] {
        let error = error_text(&ask(&root, root.path(), arguments));
        assert_contains!(error, "pipe.md", "a named pipe"; "{arguments:?}");
    }
}

#[test]
fn a_pipe_in_place_of_settings_is_reported() {
    let root = root();
    pipe(&root.path().join("config.toml"));
    for arguments in ENTRY_POINTS {
        let output = ask(&root, root.path(), arguments);
        // The doctor reports it with its other findings.
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_contains!(text, "config.toml", "a named pipe"; "{arguments:?}");
    }
    let token = root.path().join("token");
    pipe(&token);
    let mut command = binary();
    command.args(["serve", "--http", "127.0.0.1:0", "--token-file"]).arg(&token);
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(1));
    pipe(&root.path().join("home/.gemini/settings.json"));
    let mut command = binary();
    let output =
        run(command.args(["connect", "gemini", "--yes"]).env("HOME", root.path().join("home")));
    assert_contains!(error_text(&output), "a named pipe");
}

#[test]
fn a_pipe_among_project_files_does_not_block_a_session() {
    let names = ".git .git/HEAD .git/config .git/index .git/commondir .git/gitdir .git/info/exclude \
        .git/logs/HEAD .git/sharedindex.0123 .gitignore HEAD commondir sub/.gitignore sub/HEAD tracked \
        Cargo.toml package.json pyproject.toml requirements.txt go.mod composer.json Gemfile \
        ../../home/.claude/settings.json ../../home/.gitconfig ../../home/.config/git/config \
        ../../home/.config/git/ignore";
    for name in names.split(' ') {
        let root = root();
        let folder = repository(&root);
        if name == ".git" {
            std::fs::remove_dir_all(folder.join(".git")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        pipe(&folder.join(name));
        for arguments in [&["context"] as &[&str], &["hook", "session-start"], &["query", "marker"]]
        {
            let output = ask(&root, &folder.join("sub"), arguments);
            assert!(output.status.success(), "{name} {arguments:?}: {output:?}");
            if arguments[0] == "query" {
                let out = String::from_utf8_lossy(&output.stdout);
                assert_contains!(out, "first marker"; "{name}");
            }
        }
    }
}

/// A repository with an index that tracks an empty file.
fn repository(root: &Root) -> PathBuf {
    let folder = project(root, "ledger-api", "main");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    write_file(folder.join("tracked"), "");
    git(&folder, &["init", "-q"]);
    git(&folder, &["add", "tracked"]);
    folder
}

#[test]
fn a_linked_worktree_whose_own_folder_holds_a_pipe_is_no_repository() {
    let root = root();
    let folder = root.path().join("work/linked");
    let private = root.path().join("work/main/.git/worktrees/linked");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&private).unwrap();
    let text = format!("gitdir: {}\n", private.display());
    write_file(folder.join(".git"), text);
    pipe(&private.join("HEAD"));
    let output = ask(&root, &folder, &["context"]);
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_file(private.join("HEAD")).unwrap();
    write_file(private.join("HEAD"), "ref: refs/heads/main\n");
    pipe(&private.join("commondir"));
    assert!(ask(&root, &folder, &["context"]).status.success());
}
