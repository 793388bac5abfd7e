//! Which of a memory's files and names exist in a working tree.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ack_api::memory::Memory;
use ack_memory::internal::{Bounds, FileState, Setting, WorkTree, current_scope};
use ack_store::Store;
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Root, memory, write_file};

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
    tree.cited(&[entry.to_owned()])[0].state
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
    for bounds in [
        Bounds {
            entries: 2,
            ..Bounds::REVIEW
        },
        Bounds {
            time: Duration::ZERO,
            ..Bounds::REVIEW
        },
    ] {
        let bounded = WorkTree::new(folder.path(), folder.path(), folder.path(), bounds);
        let gone = bounded.cited(&["src/refund.rs".to_owned()]);
        assert_eq!(gone[0].state, FileState::Unknown);
    }
    let many: Vec<String> = (0..100).map(|n| format!("none{n}.rs")).collect();
    let tree = WorkTree::new(folder.path(), folder.path(), folder.path(), Bounds::REVIEW);
    let looked = tree.cited(&many);
    assert_eq!(looked[39].state, FileState::Gone);
    assert_eq!(looked[40].state, FileState::Unknown);
}

#[test]
fn the_names_of_a_memory_are_looked_for_in_the_tree() {
    let folder = tree();
    let root = Root::new();
    let text = "Call `retry_payout` and PayoutJob::run, never refund_job or --no-verify; \
                only_in_target is built. See src/payout.rs and `x`.";
    let memories = [memory("a", "A title", json!({ "narrative": text }))];
    root.store("alpha", &memories);
    let path = root.scope_folder("alpha").join("memory.db");
    let store = Store::new(path, ack_api::memory::Unreviewed::Staging);
    let found = store
        .snapshot(|snapshot| snapshot.by_id("a"))
        .unwrap()
        .unwrap();
    let look = |bounds| {
        let tree = WorkTree::new(folder.path(), folder.path(), folder.path(), bounds);
        let look = tree.names(&found);
        let names = look.names.into_iter().map(|name| (name.name, name.occurs));
        (names.collect::<Vec<_>>(), look.is_complete)
    };
    let named = |name: &str, occurs| (name.to_owned(), occurs);
    let (names, is_complete) = look(Bounds::REVIEW);
    assert_eq!(
        names,
        [
            named("retry_payout", Some(true)),
            named("PayoutJob::run", Some(true)),
            named("refund_job", Some(false)),
            named("--no-verify", Some(true)),
            named("only_in_target", Some(false)),
            named("src/payout.rs", Some(true)),
        ]
    );
    assert!(is_complete);
    let few_bytes = Bounds {
        bytes: 1,
        ..Bounds::REVIEW
    };
    let (names, is_complete) = look(few_bytes);
    assert!(!is_complete);
    assert!(names.contains(&named("refund_job", None)), "{names:?}");
}

/// The working tree of a project.
fn tree_of(project: &Path) -> WorkTree {
    let service = Root::new().service_with(|inputs| {
        inputs.project = Some(Setting::flag("-C", project.to_owned()));
    });
    let place = &service.config.project.value;
    let current = current_scope(&service.config, &[], Some(place)).unwrap();
    WorkTree::of(&current, Bounds::REVIEW).unwrap()
}

#[test]
fn only_names_that_the_history_has_are_lost() {
    let folder = tree();
    let git = |arguments: &[&str], day: u32| git_at(folder.path(), arguments, day);
    git(&["init", "-q"], 1);
    let text = "Call `retry_payout`, never refund_job; ask `psql` on `GitHub` about src/old.rs.";
    let write = |path: &str, text: &str| write_file(folder.path().join(path), text);
    write("services/pay/src/old.rs", "fn refund_job() {}");
    git(&["add", "-A"], 1);
    git(&["commit", "-q", "-m", "one"], 1);
    let lost = |written_at: Option<Timestamp>| {
        let memory = Memory {
            narrative: Some(text.to_owned()),
            created_at: written_at,
            ..Memory::default()
        };
        let tree = tree_of(folder.path());
        tree.lost_names(&tree.names(&memory), &memory)
    };
    let day = |day: u32| format!("2026-03-{day:02}T12:00:00Z").parse().ok();
    git(&["rm", "-q", "services/pay/src/old.rs"], 20);
    assert_eq!(lost(day(5)), Vec::<String>::new(), "not committed yet");
    git(&["commit", "-q", "-m", "two"], 20);
    // A memory may be older than the first commit, or a few hours older than its own.
    for written_at in [day(1), day(5), "2026-02-01T00:00:00Z".parse().ok()] {
        let lost = lost(written_at);
        assert_eq!(lost, ["refund_job", "src/old.rs"], "{written_at:?}");
    }
    assert_eq!(lost(day(25)), Vec::<String>::new(), "written without them");
    assert_eq!(lost(None), Vec::<String>::new());
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
