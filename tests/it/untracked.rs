//! New files of a working tree, which git does not track yet, and those that it ignores.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use ack_worktree::changes::Changes;
use ack_worktree::repository::Repository;
use serde_json::json;

use crate::changes::{AMPLE_BUDGET, edit, git, repository, shown_memories, write};
use crate::cli::run;
use crate::context::context;
use crate::support::{Root, ids, memory, titled, write_file};

fn found(top: &Path, home: Option<&Path>) -> Vec<String> {
    let repository = Repository::discover(top, None).unwrap();
    Changes::read(&repository, home, AMPLE_BUDGET).files
}

#[track_caller]
fn check(top: &Path, expected: &[&str]) {
    assert_eq!(found(top, None), expected);
}

/// The new files according to git itself, with this home folder.
fn by_git(top: &Path, home: &Path) -> Vec<String> {
    let mut command = Command::new("git");
    command.args(["ls-files", "--others", "--exclude-standard"]).current_dir(top);
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env("GIT_CONFIG_NOSYSTEM", "1");
    run(&mut command).ok().lines().map(str::to_owned).collect()
}

#[test]
fn new_files_are_found_anywhere_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["src/deep/below/a.rs", "docs/x.md"]);
    write(&top.join("at_top.rs"), "new\n", 10);
    write(&top.join("src/deep/below/beside.rs"), "new\n", 20);
    write(&top.join("src/between.rs"), "new\n", 30);
    write(&top.join("fresh/one.rs"), "new\n", 40);
    write(&top.join("fresh/part/two.rs"), "new\n", 50);
    edit(&top.join("docs/x.md"), 35);
    let expected = "fresh/part/two.rs fresh/one.rs docs/x.md src/between.rs src/deep/below/beside.rs at_top.rs";
    let expected: Vec<&str> = expected.split(' ').collect();
    check(top, &expected);
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "-m", "second"]);
    check(top, &[]);
}

#[test]
fn files_ignored_by_git_are_never_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (top, home) = (&folder.path().join("work"), &folder.path().join("home"));
    repository(top, &["src/a.rs", "web/b.ts", "gen/kept.rs", "deep/er/c.rs", "Docs/d.md"]);
    let rules = "*.o\n/rooted.rs\nmade/\n!made/never.rs\ngen\nweb/**/snap\n# a comment\n\\#odd.rs\nspace\\ \n*.gen.*\n!special.gen.rs\n";
    for (file, content) in [
        (".gitignore", rules),
        ("web/.gitignore", "*.cache.ts\n!kept.o\n/only_here.ts\n"),
        ("deep/.gitignore", "*.rs\n"),
        ("deep/er/.gitignore", "!told.rs\n"),
        (".git/info/exclude", "private_*\n!special_own.rs\n"),
    ] {
        write_file(top.join(file), content);
    }
    let text = "[core]\n\texcludesFile = ~/own-ignores\n";
    write(&home.join(".gitconfig"), text, 0);
    let text = "own_*\nspecial_own.rs\nDOCS/\n";
    write(&home.join("own-ignores"), text, 0);
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "-m", "rules"]);
    let new = "a.o rooted.rs src/rooted.rs made/x.rs made/never.rs src/made/x.rs gen/new.rs web/kept.o \
               web/other.o web/x/y/snap/z.ts web/t.cache.ts web/only_here.ts web/sub/only_here.ts deep/no.rs \
               deep/er/told.rs deep/er/no.rs #odd.rs private_plan.md own_plan.md special_own.rs x.gen.rs \
               special.gen.rs Docs/new.md";
    for (n, file) in (0..).zip(new.split(' ').chain(["space "])) {
        write(&top.join(file), "new\n", n);
    }
    let mut files = found(top, Some(home));
    files.sort();
    let expected = "Docs/new.md deep/er/told.rs special.gen.rs special_own.rs src/rooted.rs web/kept.o \
                    web/sub/only_here.ts";
    let expected: Vec<&str> = expected.split(' ').collect();
    assert_eq!(files, expected);
    assert_eq!(by_git(top, home), expected, "as git sees it");

    // Without the user's settings, the user's file has no effect; a setting of the repository
    // overrides it.
    assert!(found(top, None).contains(&"own_plan.md".to_owned()));
    git(top, &["config", "core.excludesFile", "/nowhere"]);
    assert!(found(top, Some(home)).contains(&"own_plan.md".to_owned()));
    git(top, &["config", "--unset", "core.excludesFile"]);
    git(top, &["config", "core.ignoreCase", "true"]);
    let files = found(top, Some(home));
    assert!(!files.contains(&"Docs/new.md".to_owned()), "{files:?}");

    // If no file is named, it is the one that git looks for.
    std::fs::remove_file(home.join(".gitconfig")).unwrap();
    write(&home.join(".config/git/ignore"), "*.md\n", 0);
    let files = found(top, Some(home));
    assert!(!files.iter().any(|path| path.ends_with(".md")), "{files:?}");
}

#[test]
fn generated_files_are_skipped_even_if_git_does_not_ignore_them() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["packages/app/a.ts", ".github/workflows/ci.yml"]);
    let generated = "node_modules/left/index.js packages/app/node_modules/left/index.js \
                     packages/app/dist/bundle.js target/debug/build.rs Build/x.c cache/data.bin \
                     cache/CACHEDIR.TAG python/pyvenv.cfg python/lib/x.py other/.git/HEAD other/x.rs .env \
                     .idea/workspace.xml packages/app/a.ts.orig packages/app/a.ts~ server.log";
    for path in generated.split(' ') {
        write(&top.join(path), "new\n", 10);
    }
    write(&top.join(".github/workflows/release.yml"), "new\n", 20);
    std::os::unix::fs::symlink("a.ts", top.join("packages/app/link.ts")).unwrap();
    check(top, &[".github/workflows/release.yml"]);
}

#[test]
fn a_repository_without_a_commit_has_only_new_files() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    git(top, &["init", "-q"]);
    write(&top.join("src/main.rs"), "new\n", 20);
    write(&top.join("Cargo.toml"), "new\n", 10);
    check(top, &["src/main.rs", "Cargo.toml"]);

    // A bare one has no working tree in which anything could be new.
    let bare = tempfile::tempdir().unwrap();
    git(bare.path(), &["init", "-q", "--bare"]);
    check(bare.path(), &[]);
}

#[test]
fn old_new_files_and_large_groups_are_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["a.rs"]);
    write(&top.join("old.rs"), "new once\n", 0);
    let old = std::fs::File::options().write(true).open(top.join("old.rs")).unwrap();
    let days = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
    old.set_modified(days(8)).unwrap();
    check(top, &[]);
    old.set_modified(days(6)).unwrap();
    check(top, &["old.rs"]);
    for n in 0..30 {
        write(&top.join(format!("heap/n{n:02}.rs")), "new\n", n);
    }
    let newest: Vec<String> = (22..30).rev().map(|n| format!("heap/n{n:02}.rs")).collect();
    assert_eq!(found(top, None), newest);
}

#[test]
fn memories_about_a_new_file_are_shown_at_session_start() {
    let root = Root::new();
    let top = root.path().join("work/ledger-api");
    repository(&top, &["src/pay/mod.rs", "notes.md"]);
    let mut own: Vec<_> =
        (1..=8).map(|n| titled(&format!("note{n}"), &format!("Ledger note {n}0"))).collect();
    let refunds =
        json!({ "files": ["src/pay/refund_job.rs"], "created_at": "2020-01-01T00:00:00Z" });
    own.push(memory("refunds", "Refunds are booked twice", refunds));
    root.store("ledger-api", &own);
    // It is older than the others.
    let answer = context(&root, &top, json!({}));
    assert!(!ids(&answer["recent_memories"]).contains(&"refunds".to_owned()));
    write(&top.join("src/pay/refund_job.rs"), "new\n", 10);
    let answer = context(&root, &top, json!({}));
    assert_eq!(
        shown_memories(&answer["recent_memories"])[0],
        ("refunds", "about changed files: refund_job.rs")
    );
    let out = crate::hook::start(root.path(), &crate::hook::event(&top, "startup")).ok();
    assert_contains!(out, "id refunds (about changed files: refund_job.rs)");
}
