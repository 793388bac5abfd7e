//! Changed files of a working tree, with repositories that git itself made, and how they affect the
//! start of a session.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use ack_worktree::changes::Changes;
use ack_worktree::repository::Repository;
use serde_json::{Value, json};

use crate::cli::run;
use crate::context::context;
use crate::support::{Root, fingerprint, memory, rows, write_file};

/// Time enough for every file of these repositories.
pub const AMPLE_BUDGET: Duration = Duration::from_secs(20);

#[track_caller]
pub fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    for setting in [
        "user.name=Test",
        "user.email=test@example.org",
        "init.defaultBranch=main",
        "core.autocrlf=false",
        "protocol.file.allow=always",
    ] {
        command.args(["-c", setting]);
    }
    command.args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let outcome = run(&mut command);
    assert_eq!(outcome.code, Some(0), "git {arguments:?}: {}", outcome.err);
}

/// Writes a file that is newer than anything written before, by more than a clock tick.
pub fn write(path: &Path, content: &str, seconds: u64) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_file(path, content);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let later = SystemTime::now() + Duration::from_secs(seconds);
    file.set_modified(later).unwrap();
}

/// Changes a file, and its length; see [`write`].
pub fn edit(path: &Path, seconds: u64) {
    write(path, "edited, and longer than it was before\n", seconds);
}

/// A repository with these files in its only commit.
pub fn repository(folder: &Path, files: &[&str]) {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q"]);
    for file in files {
        std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        write_file(folder.join(file), format!("content of {file}\n"));
    }
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "first"]);
}

#[track_caller]
fn check(folder: &Path, expected: &[&str]) {
    let repository = Repository::discover(folder, None).unwrap();
    let changes = Changes::read(&repository, None, AMPLE_BUDGET);
    assert_eq!(changes.files, expected);
    assert_eq!(changes.compared, changes.tracked);
}

#[test]
fn edited_staged_and_deleted_files_are_listed_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let files = "a.rs src/same.rs src/longer.rs src/staged.rs src/gone.rs docs/x.md touched.rs";
    repository(top, &files.split(' ').collect::<Vec<_>>());
    check(top, &[]);
    edit(&top.join("src/longer.rs"), 30);
    write(&top.join("src/same.rs"), "CONTENT of src/same.rs\n", 20);
    write(&top.join("touched.rs"), "content of touched.rs\n", 50);
    write(&top.join("src/staged.rs"), "staged\n", 10);
    write(&top.join("new/added.rs"), "new and staged\n", 9);
    git(top, &["add", "src/staged.rs", "new/added.rs"]);
    write(&top.join("untracked.rs"), "nobody knows it\n", 40);
    std::fs::remove_file(top.join("src/gone.rs")).unwrap();
    let before = fingerprint(top);
    let expected = [
        "untracked.rs",
        "src/longer.rs",
        "src/same.rs",
        "src/staged.rs",
        "new/added.rs",
        "src/gone.rs",
    ];
    check(top, &expected);
    check(&top.join("src"), &expected);
    assert_eq!(fingerprint(top), before, "reading changes nothing");
    git(top, &["add", "-A"]);
    git(top, &["commit", "-q", "-m", "second"]);
    check(top, &[]);
}

#[test]
fn a_clone_and_a_copied_working_tree_have_no_changes() {
    let folder = tempfile::tempdir().unwrap();
    let origin = folder.path().join("origin");
    repository(&origin, &["a.rs", "src/b.rs", "src/deep/c.rs"]);
    git(folder.path(), &["clone", "-q", "origin", "clone"]);
    check(&folder.path().join("clone"), &[]);
    for file in ["a.rs", "src/b.rs", "src/deep/c.rs"] {
        write(&origin.join(file), &format!("content of {file}\n"), 100);
    }
    check(&origin, &[]);
}

#[test]
fn files_that_git_ignores_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["assumed.rs", "sparse/a.rs", "kept.rs"]);
    git(top, &["update-index", "--assume-unchanged", "assumed.rs"]);
    git(top, &["update-index", "--skip-worktree", "sparse/a.rs"]);
    write(&top.join("assumed.rs"), "edited all the same\n", 5);
    std::fs::remove_file(top.join("sparse/a.rs")).unwrap();
    check(top, &[]);
}

#[test]
fn conflicts_come_first() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    repository(top, &["a.rs", "b.rs"]);
    git(top, &["checkout", "-q", "-b", "other"]);
    write_file(top.join("a.rs"), "theirs, which is long\n");
    git(top, &["commit", "-q", "-am", "theirs"]);
    git(top, &["checkout", "-q", "main"]);
    write_file(top.join("a.rs"), "ours\n");
    git(top, &["commit", "-q", "-am", "ours"]);
    let mut merge = Command::new("git");
    let merged = run(merge.args(["merge", "-q", "other"]).current_dir(top));
    assert_ne!(merged.code, Some(0));
    write(&top.join("b.rs"), "edited last\n", 60);
    check(top, &["a.rs", "b.rs"]);
}

#[test]
fn linked_worktrees_bare_layouts_and_submodules_have_an_index_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("main");
    repository(&main, &["src/a.rs", "src/b.rs"]);
    let words = ["worktree", "add", "-q", "../linked", "-b", "feature"];
    git(&main, &words);
    let linked = folder.path().join("linked");
    edit(&linked.join("src/b.rs"), 5);
    check(&linked, &["src/b.rs"]);
    check(&main, &[]);

    let bare = folder.path().join("layout");
    std::fs::create_dir_all(&bare).unwrap();
    git(&bare, &["clone", "-q", "--bare", "../main", ".bare"]);
    let words = ["worktree", "add", "-q", "../work", "main"];
    git(&bare.join(".bare"), &words);
    edit(&bare.join("work/src/a.rs"), 5);
    check(&bare.join("work"), &["src/a.rs"]);

    let outer = folder.path().join("outer");
    repository(&outer, &["o.rs"]);
    git(&outer, &["submodule", "add", "-q", "../main", "inner"]);
    git(&outer, &["commit", "-q", "-m", "submodule"]);
    edit(&outer.join("inner/src/a.rs"), 5);
    check(&outer.join("inner"), &["src/a.rs"]);
    check(&outer, &[]);
}

#[test]
fn every_index_format_is_read_and_a_broken_one_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    for (name, setup) in [
        ("four", &["update-index", "--index-version", "4"][..]),
        ("split", &["update-index", "--split-index"]),
        ("cache", &["update-index", "--untracked-cache"]),
    ] {
        let top = folder.path().join(name);
        repository(&top, &["src/a.rs", "src/b.rs"]);
        git(&top, setup);
        edit(&top.join("src/b.rs"), 5);
        check(&top, &["src/b.rs"]);
    }
    let top = folder.path().join("sha256");
    std::fs::create_dir_all(&top).unwrap();
    git(&top, &["init", "-q", "--object-format=sha256"]);
    repository(&top, &["a.rs", "touched.rs"]);
    write(&top.join("a.rs"), "CONTENT of a.rs\n", 5);
    write(&top.join("touched.rs"), "content of touched.rs\n", 5);
    check(&top, &["a.rs"]);

    let index = folder.path().join("four/.git/index");
    let whole = std::fs::read(&index).unwrap();
    for broken in [
        &b""[..],
        b"DIRC",
        b"no index at all, but long enough to hold one",
        &whole[..whole.len() / 2],
    ] {
        write_file(&index, broken);
        check(&folder.path().join("four"), &[]);
    }
    for at in (0..whole.len()).step_by(3) {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        write_file(&index, broken);
        let repository = Repository::discover(&folder.path().join("four"), None).unwrap();
        let changes = Changes::read(&repository, None, AMPLE_BUDGET);
        assert!(changes.files.len() <= 2, "byte {at}");
    }
}

#[test]
fn with_little_time_recently_changed_folders_are_checked_first() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path();
    let files: Vec<String> =
        (0..3_000).map(|n| format!("part{:02}/file{n:04}.rs", n % 40)).collect();
    repository(top, &files.iter().map(String::as_str).collect::<Vec<_>>());
    // As editors do: a new file takes the place of the old one.
    edit(&top.join("part17/new"), 0);
    std::fs::rename(top.join("part17/new"), top.join("part17/file0017.rs")).unwrap();
    let touched = std::fs::File::open(top.join("part17")).unwrap();
    touched.set_modified(SystemTime::now() + Duration::from_secs(100)).unwrap();
    check(top, &["part17/file0017.rs"]);
    let repository = Repository::discover(top, None).unwrap();
    let none = Changes::read(&repository, None, Duration::ZERO);
    assert_eq!(none.compared, 0);
    assert_eq!(none.tracked, 3_000);
    assert_eq!(none.files.len(), 0);
}

/// A project whose working tree was changed, with memories of its own and of others.
fn changed_project(root: &Root) -> std::path::PathBuf {
    let top = root.path().join("work/ledger-api");
    let files = "src/pay/payout.rs src/pay/mod.rs src/web/mod.rs README.md";
    repository(&top, &files.split(' ').collect::<Vec<_>>());
    let note = |n: u32| {
        let created = json!({ "created_at": format!("2026-01-{}T00:00:00Z", 10 + n) });
        memory(&format!("note{n}"), &format!("Ledger note {n}0"), created)
    };
    let mut own: Vec<Value> = (1..=8).map(note).collect();
    own.extend(rows(
        "id | created_at | title | files | type | concepts | status | superseded_by",
        r#"
        by-path | 2026-01-01T00:00:00Z | Amounts are rounded late | ["/home/kim/ledger-api/src/pay/payout.rs"]
        by-folder | 2026-01-02T00:00:00Z | The module is generated | ["src/pay/mod.rs"]
        other-folder | 2026-01-03T00:00:00Z | Routes are sorted | ["src/web/mod.rs"]
        alike | 2026-01-04T00:00:00Z | Another one | ["src/old_payout.rs"]
        decided | 2026-01-05T00:00:00Z | Money is kept in cents | - | decision
        tagged | 2026-01-06T00:00:00Z | Time zones bite | - | - | ["Gotcha"]
        staged | 2026-01-20T00:00:00Z | Staged payout | ["src/pay/payout.rs"] | - | - | staging
        old-way | 2026-01-20T00:00:00Z | Old payout way | ["src/pay/payout.rs"] | - | - | - | by-path
        "#,
    ));
    root.store("ledger-api", &own);
    let of_others = |lines: &str| rows("id | project | created_at | title | files", lines);
    let others = r#"
        elsewhere | kiosk | 2026-01-01T00:00:00Z | A payout that is sent twice
        unrelated | kiosk | 2026-01-28T00:00:00Z | Something of another kind
        generated | kiosk | 2026-01-27T00:00:00Z | In web/mod.rs lies nothing | ["src/web/mod.rs"]"#;
    root.store("platform", &of_others(others));
    let diary = "private | kiosk | 2026-01-28T00:00:00Z | A private payout";
    root.store("diary", &of_others(diary));
    root.manifest("diary", "visibility = \"private\"");
    edit(&top.join("src/pay/payout.rs"), 20);
    edit(&top.join("src/pay/mod.rs"), 10);
    top
}

/// What a session starts with in a folder.
fn session_start(root: &Root, folder: &Path) -> String {
    crate::hook::start(root.path(), &crate::hook::event(folder, "startup")).ok()
}

pub fn shown_memories(list: &Value) -> Vec<(&str, &str)> {
    let hits = list.as_array().unwrap().iter();
    hits.map(|hit| (hit["id"].as_str().unwrap(), hit["why"].as_str().unwrap())).collect()
}

#[test]
fn memories_about_changed_files_come_first_then_decisions_and_gotchas_then_what_is_recent() {
    let root = Root::new();
    let top = changed_project(&root);
    let answer = context(&root, &top, json!({}));
    assert_eq!(
        shown_memories(&answer["recent_memories"]),
        [
            ("by-path", "about changed files: payout.rs"),
            ("by-folder", "about changed files: pay/mod.rs"),
            ("tagged", "gotcha of this project"),
            ("decided", "decision of this project"),
            ("note8", "recent in this project"),
        ]
    );
    let found = shown_memories(&answer["cross_project_learnings"]);
    assert_eq!(found, [("elsewhere", "about changed files: payout")]);
    assert_lacks!(answer, "\"private\"", "\"staged\"", "\"old-way\"");
    let focus = context(&root, &top, json!({ "focus": "routes" }));
    assert_eq!(shown_memories(&focus["recent_memories"])[0].0, "other-folder");
}

#[test]
fn a_promoted_memory_is_not_repeated_as_cross_project() {
    let root = Root::new();
    let facts = [
        "Terraform keeps a state lock after an aborted run",
        "terraform force-unlock releases the lock",
    ];
    for (scope, id, status, project) in [
        ("ledger-api", "mine", "promoted", "ledger-api"),
        ("shared", "copy", "approved", "platform"),
    ] {
        let rest = json!({ "facts": facts, "status": status, "project": project });
        root.store(scope, &[memory(id, "A state lock survives an aborted run", rest)]);
    }
    let top = root.path().join("work/ledger-api");
    repository(&top, &["notes.md"]);
    let answer = context(&root, &top, json!({}));
    let own = shown_memories(&answer["recent_memories"]);
    assert_eq!(own, [("mine", "recent in this project")]);
    assert_eq!(answer["cross_project_learnings"], json!([]));
}

#[test]
fn a_changed_file_with_an_everyday_name_selects_no_memory() {
    let root = Root::new();
    let top = root.path().join("work/engine");
    let files = "src/store/query.rs src/scope/mod.rs web/Query.tsx notes.md";
    repository(&top, &files.split(' ').collect::<Vec<_>>());
    let slow = |id: &str, n: usize, project: &str| {
        let title = format!("A query of scope {n} was slow on machine {}", n * 7);
        memory(&format!("{id}{n}"), &title, json!({ "project": project }))
    };
    let of_engine = |id: &str, title: &str, files: &[&str]| {
        memory(id, title, json!({ "project": "engine", "files": files }))
    };
    let mut own: Vec<Value> = (1..=12).map(|n| slow("slow", n, "engine")).collect();
    own.extend([
        of_engine("in-files", "Rows are read lazily", &["src/store/query.rs"]),
        of_engine("in-text", "The cut in query.rs is at a row", &[]),
        of_engine("other-file", "Pages are numbered", &["src/sub_query.rs", "query.rst"]),
    ]);
    root.store("engine", &own);
    let others: Vec<Value> = (21..=28).map(|n| slow("other", n, "kiosk")).collect();
    root.store("kiosk", &others);
    for path in ["src/store/query.rs", "src/scope/mod.rs"] {
        edit(&top.join(path), 20);
    }
    let answer = context(&root, &top, json!({}));
    let about = |list: &str| {
        let chosen = shown_memories(&answer[list]).into_iter();
        let mut chosen: Vec<_> =
            chosen.filter(|(_, why)| why.starts_with("about changed files")).collect();
        chosen.sort_unstable();
        chosen
    };
    let why = "about changed files: query.rs";
    assert_eq!(about("recent_memories"), [("in-files", why), ("in-text", why)]);
    assert_eq!(about("cross_project_learnings"), []);
    let out = session_start(&root, &top);
    assert_eq!(out.matches("about changed files").count(), 2, "{out}");
    assert_contains!(out, &format!("id in-files ({why})"), &format!("id in-text ({why})"));
}
