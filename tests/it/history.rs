//! Staged files and the commits of a branch, with repositories that git itself made.

use std::path::Path;
use std::process::Command;

use ack_worktree::changes::Changes;
use ack_worktree::objects::Unknown;
use ack_worktree::repository::Repository;
use serde_json::json;

use crate::changes::{AMPLE_BUDGET, edit, git, repository, shown_memories, write};
use crate::cli::run;
use crate::context::context;
use crate::support::{Root, fingerprint, memory, titled, write_file};

fn changes(folder: &Path) -> Changes {
    Changes::read(&Repository::discover(folder, None).unwrap(), None, AMPLE_BUDGET)
}

/// The changed files, sorted by name.
#[track_caller]
fn check(folder: &Path, expected: &[&str]) {
    let changes = changes(folder);
    assert_eq!(changes.staged_unknown, None);
    assert_eq!(changes.branch_unknown, None);
    let mut files = changes.files;
    files.sort();
    assert_eq!(files, expected);
}

fn commit(top: &Path, files: &[&str], message: &str) {
    for file in files {
        std::fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        write_file(top.join(file), format!("{message}: {file}\n"));
    }
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "-m", message]);
}

/// A repository whose branch `work` has two commits, while `main` went on.
fn branched(top: &Path) {
    repository(top, &["a.rs", "src/b.rs", "src/c.rs", "src/deep/d.rs", "docs/x.md"]);
    git(top, &["checkout", "-q", "-b", "work"]);
    commit(top, &["src/b.rs", "new/e.rs"], "one");
    git(top, &["rm", "-q", "docs/x.md"]);
    git(top, &["mv", "src/deep/d.rs", "src/deep/moved.rs"]);
    git(top, &["commit", "-q", "-m", "two"]);
    git(top, &["checkout", "-q", "main"]);
    commit(top, &["a.rs", "main-only.rs"], "elsewhere");
    git(top, &["checkout", "-q", "work"]);
}

const OF_THE_BRANCH: [&str; 5] =
    ["docs/x.md", "new/e.rs", "src/b.rs", "src/deep/d.rs", "src/deep/moved.rs"];

#[test]
fn staged_renames_count_under_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["a.rs", "src/gone.rs", "src/old.rs", "lib/whole/x.rs", "same.rs"]);
    // It was written long before the last commit.
    write(&top.join("fresh/new.rs"), "new\n", 0);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(9_000);
    let file = std::fs::OpenOptions::new().write(true).open(top.join("fresh/new.rs"));
    file.unwrap().set_modified(old).unwrap();
    git(top, &["add", "fresh/new.rs"]);
    git(top, &["rm", "-q", "src/gone.rs"]);
    git(top, &["mv", "src/old.rs", "src/renamed.rs"]);
    git(top, &["rm", "-q", "-r", "lib"]);
    let before = fingerprint(top);
    check(top, &["fresh/new.rs", "lib/whole/x.rs", "src/gone.rs", "src/old.rs", "src/renamed.rs"]);
    assert_eq!(fingerprint(top), before, "reading changes nothing");
    git(top, &["commit", "-q", "-m", "second"]);
    check(top, &[]);
}

#[test]
fn commits_of_the_branch_count_and_those_of_the_default_branch_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    branched(top);
    check(top, &OF_THE_BRANCH);
    git(top, &["gc", "-q"]);
    git(top, &["pack-refs", "--all"]);
    check(top, &OF_THE_BRANCH);
    // After a merge of the main branch, only the branch's own changes are left.
    git(top, &["merge", "-q", "--no-edit", "main"]);
    check(top, &OF_THE_BRANCH);
    edit(&top.join("a.rs"), 20);
    let first = &changes(top).files[0];
    assert_eq!(first, "a.rs", "what is not committed comes first");
    git(top, &["checkout", "-q", "-f", "main"]);
    check(top, &[]);
}

#[test]
fn the_default_branch_is_compared_with_the_remote_one() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, clone) = (folder.path().join("origin"), folder.path().join("clone"));
    repository(&origin, &["a.rs", "b.rs"]);
    git(folder.path(), &["clone", "-q", "origin", "clone"]);
    check(&clone, &[]);
    commit(&clone, &["a.rs", "c.rs"], "not pushed");
    check(&clone, &["a.rs", "c.rs"]);
    git(&clone, &["checkout", "-q", "-b", "topic"]);
    commit(&clone, &["d.rs"], "topic");
    // It began at the local main branch, which is newer than the remote's.
    check(&clone, &["d.rs"]);
}

#[test]
fn worktrees_detached_heads_and_other_hashes_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("main");
    branched(&top);
    let linked = folder.path().join("linked");
    git(&top, &["checkout", "-q", "--detach"]);
    check(&top, &OF_THE_BRANCH);
    git(&top, &["worktree", "add", "-q", linked.to_str().unwrap(), "work"]);
    check(&linked, &OF_THE_BRANCH);
    let sha256 = folder.path().join("sha256");
    std::fs::create_dir_all(&sha256).unwrap();
    git(&sha256, &["init", "-q", "--object-format=sha256"]);
    commit(&sha256, &["a.rs"], "first");
    git(&sha256, &["checkout", "-q", "-b", "work"]);
    commit(&sha256, &["b.rs"], "second");
    check(&sha256, &["b.rs"]);
    let unborn = folder.path().join("unborn");
    std::fs::create_dir_all(&unborn).unwrap();
    git(&unborn, &["init", "-q"]);
    write_file(unborn.join("a.rs"), "first\n");
    git(&unborn, &["add", "a.rs"]);
    check(&unborn, &["a.rs"]);
}

#[test]
fn unreadable_history_is_a_note_not_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, clone) = (folder.path().join("origin"), folder.path().join("clone"));
    branched(&origin);
    let url = format!("file://{}", origin.display());
    git(&origin, &["checkout", "-q", "main"]);
    let words = format!("clone -q --depth=1 --no-single-branch {url} clone");
    let depth: Vec<&str> = words.split(' ').collect();
    git(folder.path(), &depth);
    git(&clone, &["checkout", "-q", "work"]);
    git(&origin, &["checkout", "-q", "work"]);
    let shallow = changes(&clone);
    assert_eq!(shallow.branch_unknown, Some(Unknown::Shallow));
    assert_eq!(shallow.staged_unknown, None);
    // The objects of the last commit are missing.
    let mut command = Command::new("git");
    let head = run(command.args(["rev-parse", "HEAD"]).current_dir(&origin)).ok();
    let (start, rest) = head.trim().split_at(2);
    std::fs::remove_file(origin.join(".git/objects").join(start).join(rest)).unwrap();
    edit(&origin.join("a.rs"), 20);
    let damaged = changes(&origin);
    assert_eq!(damaged.staged_unknown, Some(Unknown::Unreadable));
    assert_eq!(damaged.branch_unknown, Some(Unknown::Unreadable));
    // The working tree is compared all the same.
    assert_eq!(damaged.files, ["a.rs"]);
    let root = Root::with("origin", &[titled("m", "Anything")]);
    let answer = context(&root, &origin, json!({}));
    assert_contains!(answer["notes"].to_string(), "git's objects cannot be read");
    assert_eq!(answer["recent_memories"][0]["id"], "m");
}

#[test]
fn a_memory_about_a_file_of_the_branch_is_chosen() {
    let root = Root::new();
    let top = root.path().join("work/ledger");
    branched(&top);
    let about = |id: &str, file: &str| {
        let details = json!({ "files": [file], "project": "ledger" });
        memory(id, &format!("About {id}"), details)
    };
    let memories = [
        about("renamed-away", "src/deep/d.rs"),
        about("deleted", "docs/x.md"),
        about("untouched", "src/c.rs"),
    ];
    root.store("ledger", &memories);
    let expected = [
        ("deleted", "about changed files: x.md"),
        ("renamed-away", "about changed files: d.rs"),
        ("untouched", "recent in this project"),
    ];
    // On a busy machine the time limit for comparing may be reached.
    let mut answers = (0..20).map(|_| context(&root, &top, json!({})));
    assert!(answers.any(|answer| shown_memories(&answer["recent_memories"]) == expected));
}
