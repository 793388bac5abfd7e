//! Which of a memory's files exist in a working tree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ack_memory::internal::{Bounds, FileState, Setting, WorkTree, current_scope};
use tempfile::TempDir;

use crate::support::{Root, write_file};

fn tree() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(path, text);
    };
    let content = "fn retry_payout() { PayoutJob::run() }\n";
    write("services/pay/src/payout.rs", content);
    write("services/pay/migrations/004_lock.sql", "ALTER TABLE x\n");
    write("app/[id]/page.tsx", "export default 1\n");
    write("README.md", "run with --no-verify\n");
    write("target/debug/built.rs", "fn only_in_target() {}\n");
    folder
}

/// Runs git at midnight of a day of March.
fn git_at(folder: &Path, arguments: &[&str], day: u32) {
    let at = format!("2026-03-{day:02}T00:00:00Z");
    let status = Command::new("git")
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(arguments)
        .env("GIT_COMMITTER_DATE", &at)
        .env("GIT_AUTHOR_DATE", &at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()
        .unwrap();
    assert!(status.success());
}

fn look(folder: &Path, entry: &str) -> FileState {
    let tree = WorkTree::new(folder, folder, &folder.join("services/pay"), Bounds::REVIEW);
    tree.cited(&[entry.to_owned()])[0]
}

#[test]
fn cited_files_are_found_in_every_spelling() {
    let folder = tree();
    let top = folder.path();
    let absolute = top.join("README.md").display().to_string();
    let there = "services/pay/src/payout.rs ./services/pay/src/payout.rs:10-20 \
        services\\pay\\src\\payout.rs#L3 src/payout.rs payout.rs Payout.rs pay/src/payout.rs \
        services/pay/migrations/ migrations services/pay/migrations/*.sql migrations/*.sql **/*.sql \
        *.sql app/[id]/page.tsx services/../README.md target/debug/built.rs";
    let gone = "services/pay/src/refund.rs refund.rs:7 migrations/*.py README.md/x old/";
    let outside = "../outside.rs /etc/passwd a/../../b https://x.org/a.rs ~/x.rs";
    for (entries, expected) in [
        (there, FileState::There),
        (&absolute, FileState::There),
        (gone, FileState::Gone),
        (outside, FileState::Outside),
    ] {
        for entry in entries.split(' ') {
            assert_eq!(look(top, entry), expected, "{entry}");
        }
    }
    // Folders with generated content were not listed.
    for entry in ["**", "", "target/x/built.rs"] {
        assert_ne!(look(top, entry), FileState::Gone, "{entry}");
    }
}

#[test]
fn files_outside_the_tree_are_not_checked_and_not_reported_missing() {
    let folder = tree();
    let outside = tempfile::tempdir().unwrap();
    write_file(outside.path().join("secret.rs"), "fn secret_name() {}");
    symlink(outside.path(), folder.path().join("link")).unwrap();
    symlink("link", folder.path().join("loop")).unwrap();
    symlink("loop/loop", folder.path().join("link2")).unwrap();
    // Its state is unknown, whether or not it exists.
    for entry in ["link/secret.rs", "link/other.rs", "link2/x.rs"] {
        assert_eq!(look(folder.path(), entry), FileState::Unknown, "{entry}");
    }
    assert_eq!(look(folder.path(), "link"), FileState::There);
    assert_eq!(look(folder.path(), "secret.rs"), FileState::Gone);
    for bounds in
        [Bounds { entries: 2, ..Bounds::REVIEW }, Bounds { time: Duration::ZERO, ..Bounds::REVIEW }]
    {
        let bounded = WorkTree::new(folder.path(), folder.path(), folder.path(), bounds);
        let gone = bounded.cited(&["src/refund.rs".to_owned()]);
        assert_eq!(gone[0], FileState::Unknown);
    }
    let many: Vec<String> = (0..100).map(|n| format!("none{n}.rs")).collect();
    let tree = WorkTree::new(folder.path(), folder.path(), folder.path(), Bounds::REVIEW);
    let looked = tree.cited(&many);
    assert_eq!(looked[39], FileState::Gone);
    assert_eq!(looked[40], FileState::Unknown);
}

/// The working tree of a project.
fn tree_of(project: &Path) -> WorkTree {
    let service = Root::new().service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", project.to_owned()));
    });
    let place = &service.config.project.value;
    let current = current_scope(&service.config, &[], Some(place), true).unwrap();
    WorkTree::of(&current, Bounds::REVIEW).unwrap()
}

#[test]
fn commits_to_a_file_since_a_memory_are_counted() {
    let folder = tree();
    let git = |arguments: &[&str], day: u32| git_at(folder.path(), arguments, day);
    git(&["init", "-q", "-b", "main"], 1);
    for (day, text) in [(1, "one"), (10, "two"), (20, "three")] {
        write_file(folder.path().join("services/pay/src/payout.rs"), text);
        write_file(folder.path().join("other.rs"), text.repeat(2));
        git(&["add", "-A"], day);
        git(&["commit", "-q", "-m", text], day);
    }
    let tree = tree_of(&folder.path().join("services/pay"));
    let files = ["src/payout.rs:10", "README.md", "../../other.rs", "none.rs"];
    let files = files.map(str::to_owned);
    for (day, counts) in [("01", [2, 0, 0, 0]), ("15", [1, 0, 0, 0]), ("25", [0; 4])] {
        let made = format!("2026-03-{day}T12:00:00Z").parse().unwrap();
        assert_eq!(tree.commits_since(&files, made), Some(counts.to_vec()));
    }
    let bare = WorkTree::new(folder.path(), folder.path(), folder.path(), Bounds::REVIEW);
    let made = "2026-03-01T00:00:00Z".parse().unwrap();
    assert_eq!(bare.commits_since(&files, made), None);
}
