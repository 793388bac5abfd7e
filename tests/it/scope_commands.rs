//! `scopes set` and `remove` at a terminal; databases that are scopes without
//! a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::cli::{Outcome, ack, add_scope, binary, claude_mem, run};
use crate::connect::Home;
use crate::curate::{decide, staged};
use crate::support::{Root, fingerprint, read_text, titled, write_file};
use crate::terminal::Session;

const MANIFEST: &str = "# Payments, kept by Dana\ndescription = 'Payments'   # shown\n\n\
                        [projects]\nledger-api = [\"ledger\"]\n\
                        # jobs run at night\nledger-jobs = []\n";

fn undo(output: &str) -> Vec<String> {
    let (_, command) = output.split_once("undo: ").unwrap();
    let command = command.trim_end();
    assert!(command.starts_with("ack-memory --root "), "{command}");
    shell_words(command).into_iter().skip(1).collect()
}

/// The words of a printed command, as a shell reads it.
fn shell_words(command: &str) -> Vec<String> {
    let script = format!("for word in {command}; do printf '%s\\0' \"$word\"; done");
    let out = Command::new("sh").args(["-c", &script]).output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    out.split_terminator('\0').map(str::to_owned).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// `scopes set` for the scope `ledger`.
fn set(root: &Root, assignments: &[&str]) -> Outcome {
    let command = &["scopes", "set", "ledger"][..];
    ack(root.path(), &[command, assignments].concat())
}

/// Runs a printed command unchanged.
fn ack_words(words: &[String]) -> Outcome {
    run(binary().args(words))
}

#[test]
fn scopes_set_keeps_every_comment_at_its_place() {
    let root = Root::with("ledger", &[]);
    let paths = "paths = [\n  \"/a\", # first\n  \"/b\", # second\n]\n# last\n";
    root.manifest("ledger", &format!("# about the file\ndescription = \"d\" # why\n{paths}"));
    set(&root, &["description=", "paths+=/c"]).ok();
    let now = read_text(root.scope_folder("ledger").join("scope.toml"));
    let paths = paths.replace("second\n", "second\n  \"/c\",\n");
    assert_eq!(now, format!("# about the file\n{paths}"));
    set(&root, &["paths="]).ok();
    let now = read_text(root.scope_folder("ledger").join("scope.toml"));
    assert_eq!(now, "# about the file\n# last\n");
}

#[test]
fn scopes_set_changes_the_named_keys_and_its_undo_restores_every_byte() {
    for (assignments, after) in [
        (
            &["visibility=private"] as &[&str],
            MANIFEST.replace("\n[projects]", "visibility = \"private\"\n\n[projects]"),
        ),
        (&["description=Money, in cents"], MANIFEST.replace("'Payments'", "\"Money, in cents\"")),
        (&["description="], MANIFEST.replace("description = 'Payments'   # shown\n", "")),
        (
            &["projects+=web", "overviews=show"],
            MANIFEST.replace("\n[projects]", "overviews = \"show\"\n\n[projects]") + "web = []\n",
        ),
        (
            &["paths=~/src/ledger, /srv/jobs"],
            MANIFEST
                .replace("\n[projects]", "paths = [\"~/src/ledger\", \"/srv/jobs\"]\n\n[projects]"),
        ),
    ] {
        for ends in ["\n", "\r\n"] {
            let root = Root::with("ledger", &[]);
            let (before, after) = (MANIFEST.replace('\n', ends), after.replace('\n', ends));
            root.manifest("ledger", &before);
            let path = root.scope_folder("ledger").join("scope.toml");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let dry = set(&root, &[assignments, &["--dry-run"]].concat()).ok();
            assert_contains!(dry, "nothing was written");
            assert_eq!(read_text(&path), before);
            let output = set(&root, assignments).ok();
            let now = read_text(&path);
            if !assignments[0].starts_with("description=") || assignments[0].len() > 12 {
                assert_eq!(now, after, "{assignments:?}");
            } else {
                assert_lacks!(now, "Payments'");
            }
            assert_eq!(mode(&path), 0o640);
            assert_contains!(set(&root, assignments).ok(), "nothing to change");
            ack_words(&undo(&output)).ok();
            let back = read_text(&path);
            match assignments[0] {
                // The removed line is then elsewhere, with TOML's usual quotation marks.
                "description=" | "description=Money, in cents" => {
                    assert_contains!(back.replace('\'', "\""), "\"Payments\"");
                }
                _ => assert_eq!(back, before, "{assignments:?}"),
            }
            let found = fs::read_dir(path.parent().unwrap()).unwrap().count();
            assert_eq!(found, 2, "nothing is left beside it");
        }
    }
}

#[test]
fn what_is_undone_is_a_table_again_with_its_comments() {
    let table = "\n# who is here\n[projects]  # by name\n# the first\nledger-api = ['ledger']\n";
    for (manifest, assignment) in [
        (format!("description = \"d\"\n{table}"), "projects+=web"),
        (format!("description = \"d\"\n{table}"), "projects=web"),
        (format!("description = \"d\"\n{table}"), "projects="),
        (format!("{table}\n[remote]\nregion = \"eu\"\n"), "projects+=web"),
        (format!("{table}\n[remote]\nregion = \"eu\"\n"), "projects=web, jobs"),
        (format!("[remote]\nregion = \"eu\"\n{table}"), "projects+=web"),
        ("projects.web = []  # the shop\nprojects.jobs = []\n".to_owned(), "projects+=api"),
        ("projects = { web = [],  jobs = [] }  # here\n".to_owned(), "projects=api"),
    ] {
        for ends in ["\n", "\r\n"] {
            let root = Root::with("ledger", &[]);
            let before = manifest.replace('\n', ends);
            root.manifest("ledger", &before);
            let path = root.scope_folder("ledger").join("scope.toml");
            let output = set(&root, &[assignment, "--json"]).json();
            assert_ne!(read_text(&path), before);
            ack_words(&undo(&format!("undo: {}", output["undo"].as_str().unwrap()))).ok();
            assert_eq!(read_text(&path), before, "{assignment}");
        }
    }
}

#[test]
fn a_setting_that_changes_nothing_for_the_store_is_refused_and_not_recommended() {
    let root = Root::new();
    staged(&root, "ours", 1);
    for (assignment, why) in [
        ("unreviewed=approved", "keeps a review status of its own"),
        ("ref=main", "only notes in a git repository"),
    ] {
        let refused = ack(root.path(), &["scopes", "set", "ours", assignment]);
        assert_eq!(refused.code, Some(2), "{}", refused.out);
        assert_contains!(refused.err, why, "review --scope ours");
    }
    assert!(!root.scope_folder("ours").join("scope.toml").exists());
    let doctor = ack(root.path(), &["doctor"]).out;
    assert_contains!(doctor, "agents see none of them until you review\n");
    assert_lacks!(doctor, "unreviewed=approved");
    // Another program's store can be trusted.
    claude_mem(&root.scope_folder("theirs").join("claude-mem.db"));
    let doctor = ack(root.path(), &["doctor"]).out;
    assert_contains!(doctor, "scopes set theirs unreviewed=approved");
    let words = ["scopes", "set", "theirs", "unreviewed=approved"];
    ack(root.path(), &words).ok();
    ack(root.path(), &["scopes", "set", "theirs", "unreviewed="]).ok();
}

#[test]
fn scopes_set_checks_the_result_before_it_writes() {
    let root = Root::new();
    let store = root.store("ledger", &[]);
    let both = format!("store = {store:?}\ntable = \"s3://bucket/prefix\"\nunreviewed = \"x\"\n");
    root.manifest("ledger", "");
    let before = fingerprint(root.path());
    for (assignment, expected) in [
        ("paths=~/[", "not a valid glob"),
        ("remotes=foo", "not a git remote"),
        ("=y", "no key before `=`"),
        ("visibility", "is not KEY=VALUE"),
        ("visibility+=x", "not a list"),
    ] {
        let output = set(&root, &[assignment]).fails(2);
        assert_contains!(output, expected; "{assignment}");
        assert_lacks!(output, "allowed:"; "{assignment}");
    }
    for (assignment, expected) in [
        ("paths=[1]", "string"),
        ("paths=[", "TOML"),
        ("visibilty=private", "visibility"),
        ("visibility=secret", "private"),
    ] {
        assert_contains!(set(&root, &[assignment]).fails(2), expected; "{assignment}");
    }
    assert_eq!(fingerprint(root.path()), before);
    set(&root, &["projects=a,a,b,a"]).ok();
    let path = root.scope_folder("ledger").join("scope.toml");
    assert_eq!(read_text(&path), "projects = [\"a\", \"b\"]\n");
    // A manifest that cannot be used is not changed into another one.
    let unusable = both.replace("unreviewed = \"x\"\n", "");
    root.manifest("ledger", &unusable);
    let output = set(&root, &["description=x"]).fails(2);
    assert_contains!(output, "nothing was written");
    assert_eq!(read_text(&path), unusable);
    let output = set(&root, &["table="]).ok();
    assert_contains!(output, "written"; "what mends it is written");
    root.manifest("ledger", "visibility = 'secret'\n");
    set(&root, &["visibility=private"]).ok();
    root.manifest("ledger", "visibility 'secret'\n");
    assert_contains!(set(&root, &["visibility=private"]).fails(1), "line 1");
}

#[test]
fn a_list_over_several_lines_stays_one() {
    let root = Root::with("ledger", &[]);
    let before = "paths = [\n    \"~/src/a\",\n    \"~/src/b\",\n]\n";
    root.manifest("ledger", before);
    set(&root, &["paths+=~/src/c,~/src/a"]).ok();
    let now = read_text(root.scope_folder("ledger").join("scope.toml"));
    assert_eq!(now, before.replace("b\",\n", "b\",\n    \"~/src/c\",\n"));
}

#[test]
fn a_new_manifest_is_private_and_ends_with_a_newline() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m", "Tune the xylophone")]);
    let root = Root::with("ledger", &[]);
    set(&root, &["visibility=private"]).ok();
    add_scope(root.path(), "music", &store).ok();
    for scope in ["ledger", "music"] {
        let path = root.scope_folder(scope).join("scope.toml");
        assert_eq!(mode(&path), 0o600);
        let text = read_text(&path);
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    }
}

#[test]
fn one_database_is_one_scope_under_every_path() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m", "Tune the xylophone")]);
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    let hard = elsewhere.path().join("hard.db");
    fs::hard_link(&store, &hard).unwrap();
    let root = Root::with("other", &[]);
    let add = |name: &str, store: &Path| add_scope(root.path(), name, store);
    add("music", &link).ok();
    for path in [&store, &link, &hard, store.parent().unwrap()] {
        let error = add("again", path).fails(2);
        assert_contains!(error, "is already scope `music`");
        // What is there is shown. It is not approved without review.
        assert_contains!(error, " scopes --scope music\n");
        assert_lacks!(error, "unreviewed");
    }
    let assignment = format!("store={}", hard.display());
    let error = ack(root.path(), &["scopes", "set", "other", &assignment]).fails(2);
    assert_contains!(error, "is already scope `music`");
    // A scope's own store belongs to no other scope.
    let assignment = format!("store={}", store.display());
    ack(root.path(), &["scopes", "set", "music", &assignment]).ok();
}

/// Runs the printed command that undoes the change, as a shell does.
#[test]
fn a_store_whose_decisions_are_kept_elsewhere_is_not_served_without_them() {
    let home = Home::new();
    let (mine, other) = (home.path(".ack-mem"), home.path("r2"));
    let line = r#"{"id":"bad-1","title":"Tune the xylophone"}"#;
    let file = home.write("memories.jsonl", line);
    ack(&mine, &["import", file.to_str().unwrap(), "--scope", "mine"]).ok();
    let store = mine.join("scopes/mine/memory.db");
    let add = |name: &str| add_scope(&other, name, &store);
    decide(&mine, &["reject", "bad-1"]).ok();
    let there = format!("hint: use it where it is: `--root {}`\n", mine.display());
    assert_contains!(add("mine").fails(2), "its decisions are kept in", there);
    let link = home.path("link.db");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    add_scope(&other, "mine", &link).fails(2);
    // A seal whose log is gone, or the settings of a scope.
    let folder = store.parent().unwrap();
    fs::remove_file(folder.join("decisions.jsonl")).unwrap();
    add("mine").fails(2);
    fs::remove_file(folder.join("decisions.seal")).unwrap();
    write_file(folder.join("scope.toml"), "visibility = \"private\"\n");
    add("mine").fails(2);
    fs::remove_file(folder.join("scope.toml")).unwrap();
    // Nor is what may be decided there later added unasked.
    home.run(&["--root", other.to_str().unwrap(), "setup", "--yes"]).ok();
    assert!(!other.join("scopes").exists());

    add("lent").ok();
    write_file(folder.join("scope.toml"), "");
    let assignment = format!("store={}", store.display());
    ack(&other, &["scopes", "set", "lent", &assignment]).fails(2);
    ack(&mine, &["scopes", "set", "mine", &assignment]).ok();
}

#[test]
fn setup_leaves_out_a_database_with_decisions_beside_it() {
    let home = Home::new();
    let store = home.path(".claude-mem/claude-mem.db");
    fs::create_dir_all(store.parent().unwrap()).unwrap();
    drop(claude_mem(&store));
    home.write(".claude-mem/decisions.jsonl", "");
    let out = home.yes(&["setup"]);
    assert_contains!(out, "not counted: its decisions are kept in", "left out");
    let error = home.run(&["scopes", "add", "x", "--store", store.to_str().unwrap()]).fails(2);
    assert_contains!(error, format!("`--db {}`", store.display()));
}

fn run_printed(output: &str) {
    let (_, back) = output.split_once("undo: ").unwrap();
    let status = Command::new("sh").args(["-c", back]).status().unwrap();
    assert!(status.success(), "{back}");
}

#[test]
fn scopes_remove_removes_the_scope_and_never_a_store() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m", "Tune the xylophone")]);
    let root = Root::with("own", &[titled("o", "Keep the organ")]);
    add_scope(root.path(), "music", &store).ok();
    let log = root.scope_folder("music").join("decisions.jsonl");
    write_file(log, "{\"id\":\"another\"}\n");
    let (stores, before) = (fingerprint(elsewhere.path()), fingerprint(root.path()));
    let output = ack(root.path(), &["scopes", "remove", "music"]).ok();
    assert_contains!(output, "nothing was changed");
    assert_eq!(fingerprint(root.path()), before);
    let output = ack(root.path(), &["scopes", "remove", "music", "--yes"]).ok();
    assert_contains!(output, "is left alone", "removed");
    assert!(!root.path().join("scopes/music").exists());
    let error = ack(root.path(), &["query", "--scope", "music"]).fails(1);
    assert_contains!(error, "no scope `music`");
    run_printed(&output);
    let answer = ack(root.path(), &["query", "xylophone", "--json"]).json();
    assert_eq!(answer["results"][0]["scope"], "music");
    assert_eq!(fingerprint(elsewhere.path()), stores);

    let before = fingerprint(root.path());
    let error = ack(root.path(), &["scopes", "remove", "own", "--yes"]).fails(2);
    assert_contains!(error, "own/memory.db");
    assert_eq!(fingerprint(root.path()), before);

    let target = root.path().join("kept");
    fs::rename(root.path().join("scopes/own"), &target).unwrap();
    std::os::unix::fs::symlink(&target, root.path().join("scopes/own")).unwrap();
    let output = ack(root.path(), &["scopes", "remove", "own", "--yes"]).ok();
    assert!(!root.path().join("scopes/own").is_symlink() && target.join("memory.db").exists());
    run_printed(&output);
    let found = &ack(root.path(), &["query", "organ", "--json"]).json()["total"];
    assert_eq!(*found, 1);
}

#[test]
fn a_wrong_name_or_store_is_answered_with_the_expected_arguments() {
    let root = Root::with("music", &[titled("o", "Keep the organ")]);
    for arguments in [
        &["scopes", "-s", "musik"][..],
        &["scopes", "remove", "musik"],
        &["scopes", "set", "musik", "visibility=private"],
        &["publish", "musik", "--to-folder", "notes"],
        &["approve", "o", "--scope", "musik"],
        &["review", "--list", "--scope", "musik"],
    ] {
        let error = ack(root.path(), arguments).fails(1);
        let expected = format!(
            "error: there is no scope `musik`\nnearest: did you mean music?\n\
             hint: `ack-memory --root {} scopes` shows the scopes\n",
            root.path().display()
        );
        assert_eq!(error, expected, "{arguments:?}");
    }
    let error = ack(root.path(), &["scopes", "add", "x", "--store", "/missing"]).fails(1);
    assert_eq!(
        error,
        "error: there is no `/missing`\nhint: name an existing database or folder of notes\n"
    );
}

#[test]
fn a_folder_is_claimed_for_a_scope() {
    let home = TempDir::new().unwrap();
    let project = home.path().join("src/shop [old]");
    fs::create_dir_all(project.join("deep")).unwrap();
    for inside in ["objects", "refs"] {
        fs::create_dir_all(project.join(".git").join(inside)).unwrap();
    }
    write_file(project.join(".git/HEAD"), "ref: refs/heads/main\n");
    let root = Root::with("ledger", &[]);
    root.store("kiosk", &[]);
    let claim = |arguments: &[&str]| {
        let mut command = binary();
        command.env("HOME", home.path()).current_dir(project.join("deep"));
        run(command.arg("--root").arg(root.path()).args(arguments))
    };
    let output = claim(&["scopes", "set", "kiosk", "paths+=."]).ok();
    assert_contains!(output, "written; undo: ");
    let text = read_text(root.scope_folder("kiosk").join("scope.toml"));
    assert_eq!(text, "paths = [\"~/src/shop [[]old[]]\"]\n");
    let answer = claim(&["scopes", "--json"]).json();
    assert_eq!(answer["current_scope"], "kiosk", "{answer}");
    let again = claim(&["scopes", "set", "kiosk", "paths+=."]).ok();
    assert_contains!(again, "nothing to change");
}

#[test]
fn a_single_database_takes_unreviewed_and_the_manifest_beside_it() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("claude-mem.db");
    drop(claude_mem(&store));
    let db = store.to_str().unwrap();
    let total = |command: &mut Command, options: &[&str]| {
        command.args(options);
        run(command.args(["query", "xylophone", "--json"])).json()["total"].clone()
    };
    let approved = ["--db", db, "--unreviewed", "approved"];
    assert_eq!(total(&mut binary(), &approved[..2]), 0);
    assert_eq!(total(&mut binary(), &approved), 1);
    let mut variable = binary();
    variable.env("ACK_MEM_DB", &store);
    assert_eq!(total(&mut variable, &approved[2..]), 1);
    let manifest = folder.path().join("scope.toml");
    write_file(manifest, "unreviewed = 'approved'\n");
    assert_eq!(total(&mut binary(), &approved[..2]), 1);
    let staging = ["--db", db, "--unreviewed", "staging"];
    assert_eq!(total(&mut binary(), &staging), 0);
    let error = run(binary().args(["query", "--unreviewed", "approved"])).fails(2);
    assert_contains!(error, "--db");
    // A client starts the server with it, too.
    let home = TempDir::new().unwrap();
    let connect = ["connect", "codex", "--dry-run"];
    let mut command = binary();
    command.env("HOME", home.path()).args(approved);
    let entry = run(command.args(connect)).ok();
    assert_contains!(entry, "\"--unreviewed\", \"approved\", \"serve\"");
}

#[test]
fn the_database_at_the_root_is_a_scope() {
    let root = Root::new();
    drop(claude_mem(&root.path().join("claude-mem.db")));
    let total = |status: &str| {
        let asked = ["query", "xylophone", "--scope", "claude-mem", "--json"];
        let arguments = [&asked[..], &["--status", status]].concat();
        ack(root.path(), &arguments).json()["total"].clone()
    };
    let before = fingerprint(root.path());
    assert_eq!((total("approved"), total("staging")), (json!(0), json!(1)));
    assert_eq!(fingerprint(root.path()), before);
    let error = ack(root.path(), &["scopes", "remove", "claude-mem", "--yes"]).fails(2);
    assert_contains!(error, "move that file");

    // Its manifest is among the others, and both stay one scope.
    let words = ["scopes", "set", "claude-mem", "unreviewed=approved"];
    ack(root.path(), &words).ok();
    assert_eq!(total("approved"), 1);
    let answer = ack(root.path(), &["scopes", "--json"]).json();
    assert_eq!(answer["scopes"].as_array().unwrap().len(), 1, "{answer}");

    // A scope of that name takes precedence, and the output says so.
    let other = Root::new();
    drop(claude_mem(&other.path().join("claude-mem.db")));
    other.store("Claude_Mem", &[titled("m", "Tune the organ")]);
    let answer = ack(other.path(), &["doctor", "--json"]).json();
    let passed = answer["passed_over"].to_string();
    assert_contains!(passed, "claude-mem.db", "Claude_Mem");
    let found = &ack(other.path(), &["query", "organ", "--json"]).json()["total"];
    assert_eq!(*found, 1);
}

#[test]
fn without_scopes_the_list_is_a_sentence_with_the_next_command() {
    let root = Root::new();
    let listed = ack(root.path(), &["scopes"]).ok();
    assert!(listed.starts_with("no memories yet: there is no scope under"), "{listed}");
    assert_contains!(listed, " setup` finds the stores on this machine");
    assert_lacks!(listed, "note:", "waiting");
    assert_eq!(ack(root.path(), &["scopes", "-q"]).ok(), "no scopes\n");
}

#[test]
fn the_error_for_no_scopes_names_the_database_of_claude_mem_and_a_command_that_works() {
    let home = TempDir::new().unwrap();
    let ask = |arguments: &str| {
        let words = shell_words(arguments);
        run(binary().env("HOME", home.path()).args(words))
    };
    let error = ask("query xylophone").fails(1);
    assert_contains!(error, "ack-memory setup");
    fs::create_dir(home.path().join(".claude-mem")).unwrap();
    drop(claude_mem(&home.path().join(".claude-mem/claude-mem.db")));
    let error = ask("query xylophone").fails(1);
    let mut parts = error.split('`');
    let command = parts.find(|part| part.starts_with("ack-memory scopes add"));
    let command = command.unwrap().replace('\n', " ");
    ask(command.strip_prefix("ack-memory ").unwrap()).ok();
    assert_eq!(ask("query xylophone --all --json").json()["total"], 1);
}

#[test]
fn remove_asks_first() {
    let home = TempDir::new().unwrap();
    fs::create_dir(home.path().join(".claude-mem")).unwrap();
    drop(claude_mem(&home.path().join(".claude-mem/claude-mem.db")));
    let command = |arguments: &[&str]| {
        let mut command = binary();
        command.env("HOME", home.path()).env("TERM", "xterm").args(arguments);
        command
    };
    let manifest = home.path().join(".ack-mem/scopes/claude-mem/scope.toml");
    let store = home.path().join(".claude-mem/claude-mem.db");
    let add = ["scopes", "add", "claude-mem", "--yes", "--store"];
    run(command(&add).arg(store)).ok();
    // The question is shown before it is answered, even if the output goes elsewhere.
    let output = fs::File::create(home.path().join("said")).unwrap();
    let mut terminal = Session::with_output(command(&["scopes", "remove", "claude-mem"]), output);
    terminal.expect("Remove the scope? [y/N] ").press("\n");
    assert_eq!(terminal.end().0, Some(0));
    assert!(manifest.exists());
    assert_contains!(read_text(home.path().join("said")), "nothing was changed");
    let mut terminal = Session::start(command(&["scopes", "remove", "claude-mem"]));
    terminal.expect("[y/N] ").interrupt();
    assert_eq!(terminal.end().0, Some(130));
    assert!(manifest.exists());
    let mut terminal = Session::start(command(&["scopes", "remove", "claude-mem"]));
    terminal.expect("[y/N] ").press("y\n");
    terminal.expect("removed; undo:");
    assert_eq!(terminal.end().0, Some(0));
    assert!(!manifest.exists());
}

#[test]
fn a_bucket_in_the_place_of_a_store_is_explained() {
    let root = Root::new();
    let address = "s3://acme-memory/platform";
    let table = format!("write `table = \"{address}\"`");
    let words = ["scopes", "add", "team", "--store", address, "--yes"];
    let refused = ack(root.path(), &words);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_contains!(refused.err, "is a bucket", &table, "scopes/team/scope.toml");
    root.manifest("team", &format!("store = \"{address}\"\n"));
    for words in [&["query", "--scope", "team"][..], &["doctor"]] {
        let output = ack(root.path(), words);
        assert_ne!(output.code, Some(0));
        let output = output.out + &output.err;
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_contains!(output, &table);
    }
    // Another address is no store either.
    root.manifest("team", "store = \"https://acme.example/notes\"\n");
    let listed = ack(root.path(), &["scopes", "--json"]).json();
    let problem = listed["scopes"][0]["health"]["problems"][0].to_string();
    assert_contains!(problem, "`store` is a file or a folder on this machine");
}
