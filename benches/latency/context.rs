//! A session's start in a repository of 50,000 files, created with git itself.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ack_worktree::changes::Changes;
use ack_worktree::repository::Repository;
use serde_json::json;

use crate::data::store;
use crate::server::Server;
use crate::{millis, report};

/// Files of the repository: 500 folders of 100.
const FILES: usize = 50_000;
/// Calls of each kind.
const CALLS: usize = 60;

/// Makes the repository and 10,000 memories, and measures; three of the files are edited.
pub fn measure() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("project-3");
    repository(&top);
    let (empty, full) = (folder.path().join("empty"), folder.path().join("full"));
    std::fs::create_dir_all(empty.join("scopes")).unwrap();
    store(&full, 10_000);
    println!("\na repository of {FILES} files, three edited");
    let found = Repository::discover(&top, None).unwrap();
    let mut compared = Vec::with_capacity(CALLS);
    let mut seen = 0;
    let mut times: Vec<f64> = (0..CALLS)
        .map(|_| {
            let started = Instant::now();
            let changes = Changes::read(&found, None, Duration::from_millis(10));
            compared.push(changes.compared);
            seen += changes.files.len();
            millis(started.elapsed())
        })
        .collect();
    report("changes, at most 10 ms", &mut times);
    compared.sort_unstable();
    println!(
        "  of these files {} were compared at the median, {:.1} of the 3 edited found",
        compared[CALLS / 2],
        seen as f64 / CALLS as f64
    );
    let mut times: Vec<f64> = (0..CALLS / 4)
        .map(|_| {
            let started = Instant::now();
            assert_eq!(Changes::read(&found, None, Duration::from_secs(60)).compared, FILES);
            millis(started.elapsed())
        })
        .collect();
    report("changes, every file", &mut times);
    let elsewhere = folder.path().join("nowhere/project-3");
    for (label, path) in [("get_context there", &top), ("get_context, no files", &elsewhere)] {
        let mut server = Server::start(&full);
        server.handshake();
        let mut times: Vec<f64> = (0..CALLS)
            .map(|_| {
                let started = Instant::now();
                server.call("get_context", &json!({ "project_path": path }));
                millis(started.elapsed())
            })
            .collect();
        report(label, &mut times);
    }
    for (label, root, path) in [
        ("hook, 10,000 memories", &full, &top),
        ("the same, no files", &full, &elsewhere),
        ("hook, no memories", &empty, &top),
    ] {
        let mut times: Vec<f64> = (0..CALLS / 2).map(|_| hook(root, path)).collect();
        report(label, &mut times);
    }
}

/// From process start to exit.
pub fn hook(root: &Path, project: &Path) -> f64 {
    let sent = json!({ "cwd": project, "hook_event_name": "SessionStart", "source": "startup" });
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ack-memory"))
        .arg("--root")
        .arg(root)
        .args(["hook", "session-start"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(sent.to_string().as_bytes()).unwrap();
    child.wait().unwrap();
    millis(started.elapsed())
}

fn repository(top: &Path) {
    for number in 0..FILES {
        let path = top.join(format!(
            "src/part{:02}/module{:03}/file{:03}.rs",
            number / 2_000,
            number / 100,
            number % 100
        ));
        if number % 100 == 0 {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        std::fs::write(path, format!("// {number}\n")).unwrap();
    }
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.org"])
            .args(arguments)
            .current_dir(top)
            .status();
        assert!(done.unwrap().success(), "git {arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "all"]);
    // Two files are written in place, one is replaced as editors do.
    for edited in ["src/part00/module000/file007.rs", "src/part24/module499/file050.rs"] {
        std::fs::write(top.join(edited), "// edited, and longer\n").unwrap();
    }
    std::thread::sleep(Duration::from_secs(3));
    let replaced = top.join("src/part12/module250/file099.rs");
    std::fs::write(replaced.with_extension("new"), "// replaced, and longer\n").unwrap();
    std::fs::rename(replaced.with_extension("new"), replaced).unwrap();
}
