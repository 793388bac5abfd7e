//! `scopes set` and `remove` at a terminal; databases that are scopes without
//! a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::cli::{Outcome, ack, add_scope, binary, claude_mem, run};
use crate::curate::staged;
use crate::support::{Root, fingerprint, memory};
use crate::terminal::Session;

const MANIFEST: &str = "# Payments, kept by Dana\ndescription = 'Payments'   # shown\n\n\
                        [projects]\nledger-api = [\"ledger\"]\n\
                        # jobs run at night\nledger-jobs = []\n";

/// The arguments of the printed command that undoes the change.
fn undo(output: &str) -> Vec<String> {
    let command = output
        .split("undo: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(command.starts_with("ack-memory --root "), "{command}");
    shell_words(command).into_iter().skip(1).collect()
}

fn shell_words(command: &str) -> Vec<String> {
    let script = format!("for word in {command}; do printf '%s\\n' \"$word\"; done");
    let out = Command::new("sh").args(["-c", &script]).output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    out.lines().map(str::to_owned).collect()
}

/// Runs a printed command unchanged.
fn ack_words(words: &[String]) -> Outcome {
    run(binary().args(words))
}

#[test]
fn scopes_set_changes_the_named_keys_and_its_undo_restores_every_byte() {
    for (assignments, after) in [
        (
            &["visibility=private"] as &[&str],
            MANIFEST.replace("\n[projects]", "visibility = \"private\"\n\n[projects]"),
        ),
        (
            &["description=Money, in cents"],
            MANIFEST.replace("'Payments'", "\"Money, in cents\""),
        ),
        (
            &["description="],
            MANIFEST.replace("description = 'Payments'   # shown\n", ""),
        ),
        (
            &["projects+=web", "overviews=show"],
            MANIFEST.replace("\n[projects]", "overviews = \"show\"\n\n[projects]") + "web = []\n",
        ),
        (
            &["paths=~/src/ledger, /srv/jobs"],
            MANIFEST.replace(
                "\n[projects]",
                "paths = [\"~/src/ledger\", \"/srv/jobs\"]\n\n[projects]",
            ),
        ),
    ] {
        for ends in ["\n", "\r\n"] {
            let root = Root::new();
            root.store("ledger", &[]);
            let (before, after) = (MANIFEST.replace('\n', ends), after.replace('\n', ends));
            root.manifest("ledger", &before);
            let path = root.scope_folder("ledger").join("scope.toml");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let arguments = [&["scopes", "set", "ledger"], assignments].concat();
            let dry = ack(root.path(), &[&arguments[..], &["--dry-run"]].concat()).ok();
            assert!(dry.contains("nothing was written"), "{dry}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
            let output = ack(root.path(), &arguments).ok();
            let now = fs::read_to_string(&path).unwrap();
            if !assignments[0].starts_with("description=") || assignments[0].len() > 12 {
                assert_eq!(now, after, "{assignments:?}");
            } else {
                assert!(!now.contains("Payments'"), "{now}");
            }
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o640
            );
            let again = ack(root.path(), &arguments).ok();
            assert!(again.contains("nothing to change"), "{again}");
            ack_words(&undo(&output)).ok();
            let back = fs::read_to_string(&path).unwrap();
            match assignments[0] {
                // The removed line is then elsewhere, with TOML's usual quotation marks.
                "description=" | "description=Money, in cents" => {
                    assert!(
                        back.contains("\"Payments\"") || back.contains("'Payments'"),
                        "{back}"
                    );
                }
                "projects+=web" => assert!(back.contains("ledger-jobs"), "{back}"),
                _ => assert_eq!(back, before, "{assignments:?}"),
            }
            assert_eq!(
                fs::read_dir(path.parent().unwrap()).unwrap().count(),
                2,
                "nothing is left beside it"
            );
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
        assert!(refused.err.contains(why), "{}", refused.err);
        assert!(
            refused.err.contains("review --scope ours"),
            "{}",
            refused.err
        );
    }
    assert!(!root.scope_folder("ours").join("scope.toml").exists());
    let doctor = ack(root.path(), &["doctor"]).out;
    assert!(
        doctor.contains("agents see none of them until you review\n"),
        "{doctor}"
    );
    assert!(!doctor.contains("unreviewed=approved"), "{doctor}");
    // Another program's store can be trusted.
    claude_mem(&root.scope_folder("theirs").join("claude-mem.db"));
    let doctor = ack(root.path(), &["doctor"]).out;
    let command = "scopes set theirs unreviewed=approved";
    assert!(doctor.contains(command), "{doctor}");
    ack(
        root.path(),
        &["scopes", "set", "theirs", "unreviewed=approved"],
    )
    .ok();
    ack(root.path(), &["scopes", "set", "theirs", "unreviewed="]).ok();
}

#[test]
fn scopes_set_checks_the_result_before_it_writes() {
    let root = Root::new();
    let store = root.store("ledger", &[]);
    let both = format!("store = {store:?}\ntable = \"s3://bucket/prefix\"\nunreviewed = \"x\"\n");
    root.manifest("ledger", "");
    let before = fingerprint(root.path());
    let set = |assignments: &[&str]| {
        ack(
            root.path(),
            &[&["scopes", "set", "ledger"], assignments].concat(),
        )
    };
    for (assignment, expected) in [
        ("paths=~/[", "not a valid glob"),
        ("remotes=foo", "not a git remote"),
        ("=y", "no key before `=`"),
        ("visibility", "is not KEY=VALUE"),
        ("visibility+=x", "not a list"),
    ] {
        let output = set(&[assignment]).fails(2);
        assert!(
            output.contains(expected) && !output.contains("allowed:"),
            "{assignment}: {output}"
        );
    }
    assert_eq!(fingerprint(root.path()), before);
    set(&["projects=a,a,b,a"]).ok();
    let path = root.scope_folder("ledger").join("scope.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "projects = [\"a\", \"b\"]\n");
    // A manifest that cannot be used is not changed into another one.
    let unusable = both.replace("unreviewed = \"x\"\n", "");
    root.manifest("ledger", &unusable);
    let output = set(&["description=x"]).fails(2);
    assert!(output.contains("nothing was written"), "{output}");
    assert_eq!(fs::read_to_string(&path).unwrap(), unusable);
    let output = set(&["table="]).ok();
    assert!(
        output.contains("written"),
        "what mends it is written: {output}"
    );
}

#[test]
fn a_list_over_several_lines_stays_one() {
    let root = Root::new();
    root.store("ledger", &[]);
    let before = "paths = [\n    \"~/src/a\",\n    \"~/src/b\",\n]\n";
    root.manifest("ledger", before);
    ack(
        root.path(),
        &["scopes", "set", "ledger", "paths+=~/src/c,~/src/a"],
    )
    .ok();
    let now = fs::read_to_string(root.scope_folder("ledger").join("scope.toml")).unwrap();
    assert_eq!(now, before.replace("b\",\n", "b\",\n    \"~/src/c\",\n"));
}

#[test]
fn scopes_set_refuses_an_invalid_manifest() {
    let root = Root::new();
    root.store("ledger", &[]);
    root.manifest("ledger", MANIFEST);
    let before = fingerprint(root.path());
    let refused =
        |assignment: &str| ack(root.path(), &["scopes", "set", "ledger", assignment]).fails(2);
    assert!(
        refused("visibilty=private").contains("visibility"),
        "the nearest key"
    );
    assert!(
        refused("visibility=secret").contains("private"),
        "what is allowed"
    );
    assert!(refused("visibility+=private").contains("list"));
    assert!(refused("unreviewed").contains("KEY=VALUE"));
    assert!(refused("paths=[1]").contains("string"));
    assert!(refused("paths=[").contains("TOML"));
    let error = ack(root.path(), &["scopes", "set", "ledgr", "description=x"]).fails(1);
    assert!(error.contains("ledger"), "{error}");
    let error = ack(
        root.path(),
        &["scopes", "set", "ledger", "store=/nowhere/x.db"],
    )
    .fails(1);
    assert!(error.contains("/nowhere/x.db"), "{error}");
    assert_eq!(fingerprint(root.path()), before);

    // A broken manifest can be repaired.
    root.manifest("ledger", "visibility = 'secret'\n");
    ack(
        root.path(),
        &["scopes", "set", "ledger", "visibility=private"],
    )
    .ok();
    root.manifest("ledger", "visibility 'secret'\n");
    let error = ack(
        root.path(),
        &["scopes", "set", "ledger", "visibility=private"],
    )
    .fails(1);
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn a_new_manifest_is_private_and_ends_with_a_newline() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[memory("m", "Tune the xylophone", json!({}))]);
    let root = Root::new();
    root.store("ledger", &[]);
    ack(
        root.path(),
        &["scopes", "set", "ledger", "visibility=private"],
    )
    .ok();
    add_scope(root.path(), "music", &store).ok();
    for scope in ["ledger", "music"] {
        let path = root.scope_folder(scope).join("scope.toml");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    }
}

#[test]
fn one_database_is_one_scope_under_every_path() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[memory("m", "Tune the xylophone", json!({}))]);
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    let hard = elsewhere.path().join("hard.db");
    fs::hard_link(&store, &hard).unwrap();
    let root = Root::new();
    root.store("other", &[]);
    let add = |name: &str, store: &Path| add_scope(root.path(), name, store);
    add("music", &link).ok();
    for path in [&store, &link, &hard, store.parent().unwrap()] {
        let error = add("again", path).fails(2);
        assert!(error.contains("is already scope `music`"), "{error}");
        // What is there is shown. It is not approved without review.
        assert!(error.contains(" scopes --scope music\n"), "{error}");
        assert!(!error.contains("unreviewed"), "{error}");
    }
    let assignment = format!("store={}", hard.display());
    let error = ack(root.path(), &["scopes", "set", "other", &assignment]).fails(2);
    assert!(error.contains("is already scope `music`"), "{error}");
    // A scope's own store belongs to no other scope.
    let assignment = format!("store={}", store.display());
    ack(root.path(), &["scopes", "set", "music", &assignment]).ok();
}

#[test]
fn scopes_remove_removes_the_scope_and_never_a_store() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[memory("m", "Tune the xylophone", json!({}))]);
    let root = Root::new();
    root.store("own", &[memory("o", "Keep the organ", json!({}))]);
    add_scope(root.path(), "music", &store).ok();
    let log = root.scope_folder("music").join("decisions.jsonl");
    fs::write(log, "{\"id\":\"another\"}\n").unwrap();
    let (stores, before) = (fingerprint(elsewhere.path()), fingerprint(root.path()));
    let output = ack(root.path(), &["scopes", "remove", "music"]).ok();
    assert!(output.contains("nothing was changed"), "{output}");
    assert_eq!(fingerprint(root.path()), before);
    let output = ack(root.path(), &["scopes", "remove", "music", "--yes"]).ok();
    assert!(
        output.contains("is left alone") && output.contains("removed"),
        "{output}"
    );
    assert!(!root.path().join("scopes/music").exists());
    let error = ack(root.path(), &["query", "--scope", "music"]).fails(1);
    assert!(error.contains("no scope `music`"), "{error}");
    let back = output.split("undo: ").nth(1).unwrap();
    assert!(
        Command::new("sh")
            .args(["-c", back])
            .status()
            .unwrap()
            .success()
    );
    let answer = ack(root.path(), &["query", "xylophone", "--json"]).json();
    assert_eq!(answer["results"][0]["scope"], "music");
    assert_eq!(fingerprint(elsewhere.path()), stores);

    let before = fingerprint(root.path());
    let error = ack(root.path(), &["scopes", "remove", "own", "--yes"]).fails(2);
    assert!(error.contains("own/memory.db"), "{error}");
    assert_eq!(fingerprint(root.path()), before);

    let target = root.path().join("kept");
    fs::rename(root.path().join("scopes/own"), &target).unwrap();
    std::os::unix::fs::symlink(&target, root.path().join("scopes/own")).unwrap();
    let output = ack(root.path(), &["scopes", "remove", "own", "--yes"]).ok();
    assert!(!root.path().join("scopes/own").is_symlink() && target.join("memory.db").exists());
    let back = output.split("undo: ").nth(1).unwrap();
    assert!(
        Command::new("sh")
            .args(["-c", back])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        ack(root.path(), &["query", "organ", "--json"]).json()["total"],
        1
    );
}

#[test]
fn a_wrong_name_or_store_is_answered_with_the_expected_arguments() {
    let root = Root::new();
    root.store("music", &[memory("o", "Keep the organ", json!({}))]);
    for arguments in [
        &["scopes", "remove", "musik"][..],
        &["scopes", "set", "musik", "visibility=private"],
        &["publish", "musik", "--to-folder", "notes"],
        &["approve", "o", "--scope", "musik"],
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
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let root = Root::new();
    root.store("ledger", &[]);
    root.store("kiosk", &[]);
    let claim = |arguments: &[&str]| {
        let mut command = binary();
        command
            .env("HOME", home.path())
            .current_dir(project.join("deep"));
        run(command.arg("--root").arg(root.path()).args(arguments))
    };
    let output = claim(&["scopes", "set", "kiosk", "paths+=."]).ok();
    assert!(output.contains("written; undo: "), "{output}");
    let text = fs::read_to_string(root.scope_folder("kiosk").join("scope.toml")).unwrap();
    assert_eq!(text, "paths = [\"~/src/shop [[]old[]]\"]\n");
    let answer = claim(&["scopes", "--json"]).json();
    assert_eq!(answer["current_scope"], "kiosk", "{answer}");
    let again = claim(&["scopes", "set", "kiosk", "paths+=."]).ok();
    assert!(again.contains("nothing to change"), "{again}");
}

#[test]
fn a_single_database_takes_unreviewed_and_the_manifest_beside_it() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("claude-mem.db");
    drop(claude_mem(&store));
    let total = |change: &dyn Fn(&mut Command)| {
        let mut command = binary();
        change(&mut command);
        run(command.args(["query", "xylophone", "--json"])).json()["total"].clone()
    };
    let plain = |command: &mut Command| {
        command.arg("--db").arg(&store);
    };
    let with = |unreviewed: &'static str| {
        let store = &store;
        move |command: &mut Command| {
            command
                .arg("--db")
                .arg(store)
                .args(["--unreviewed", unreviewed]);
        }
    };
    assert_eq!(total(&plain), 0);
    assert_eq!(total(&with("approved")), 1);
    let variable = |command: &mut Command| {
        command
            .env("ACK_MEM_DB", &store)
            .args(["--unreviewed", "approved"]);
    };
    assert_eq!(total(&variable), 1);
    fs::write(
        folder.path().join("scope.toml"),
        "unreviewed = 'approved'\n",
    )
    .unwrap();
    assert_eq!(total(&plain), 1);
    assert_eq!(total(&with("staging")), 0);
    let error = run(binary().args(["query", "--unreviewed", "approved"])).fails(2);
    assert!(error.contains("--db"), "{error}");
    // A client starts the server with it, too.
    let home = TempDir::new().unwrap();
    let entry = run(binary()
        .env("HOME", home.path())
        .arg("--db")
        .arg(&store)
        .args(["--unreviewed", "approved", "connect", "codex", "--dry-run"]))
    .ok();
    assert!(
        entry.contains("\"--unreviewed\", \"approved\", \"serve\""),
        "{entry}"
    );
}

#[test]
fn the_database_at_the_root_is_a_scope() {
    let root = Root::new();
    let database = root.path().join("claude-mem.db");
    drop(claude_mem(&database));
    let total = |status: &str| {
        let arguments = [
            "query",
            "xylophone",
            "--scope",
            "claude-mem",
            "--status",
            status,
            "--json",
        ];
        ack(root.path(), &arguments).json()["total"].clone()
    };
    let before = fingerprint(root.path());
    assert_eq!((total("approved"), total("staging")), (json!(0), json!(1)));
    assert_eq!(fingerprint(root.path()), before);
    let error = ack(root.path(), &["scopes", "remove", "claude-mem", "--yes"]).fails(2);
    assert!(error.contains("move that file"), "{error}");

    // Its manifest is among the others, and both stay one scope.
    ack(
        root.path(),
        &["scopes", "set", "claude-mem", "unreviewed=approved"],
    )
    .ok();
    assert_eq!(total("approved"), 1);
    let answer = ack(root.path(), &["scopes", "--json"]).json();
    assert_eq!(answer["scopes"].as_array().unwrap().len(), 1, "{answer}");

    // A scope of that name takes precedence, and the output says so.
    let other = Root::new();
    drop(claude_mem(&other.path().join("claude-mem.db")));
    other.store("Claude_Mem", &[memory("m", "Tune the organ", json!({}))]);
    let answer = ack(other.path(), &["doctor", "--json"]).json();
    let passed = answer["passed_over"].to_string();
    assert!(
        passed.contains("claude-mem.db") && passed.contains("Claude_Mem"),
        "{answer}"
    );
    assert_eq!(
        ack(other.path(), &["query", "organ", "--json"]).json()["total"],
        1
    );
}

#[test]
fn the_error_for_no_scopes_names_the_database_of_claude_mem_and_a_command_that_works() {
    let home = TempDir::new().unwrap();
    let ask = |arguments: &[String]| run(binary().env("HOME", home.path()).args(arguments));
    let query = ["query".to_owned(), "xylophone".to_owned()];
    let error = ask(&query).fails(1);
    assert!(error.contains("ack-memory setup"), "{error}");
    fs::create_dir(home.path().join(".claude-mem")).unwrap();
    drop(claude_mem(&home.path().join(".claude-mem/claude-mem.db")));
    let error = ask(&query).fails(1);
    let command = error
        .split('`')
        .find(|part| part.starts_with("ack-memory scopes add"));
    let words: Vec<String> = shell_words(&command.unwrap().replace('\n', " ")).split_off(1);
    ask(&words).ok();
    let answer = ask(&[
        "query".into(),
        "xylophone".into(),
        "--all".into(),
        "--json".into(),
    ])
    .json();
    assert_eq!(answer["total"], 1);
}

#[test]
fn remove_asks_first() {
    let home = TempDir::new().unwrap();
    fs::create_dir(home.path().join(".claude-mem")).unwrap();
    drop(claude_mem(&home.path().join(".claude-mem/claude-mem.db")));
    let command = |arguments: &[&str]| {
        let mut command = binary();
        command
            .env("HOME", home.path())
            .env("TERM", "xterm")
            .args(arguments);
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
    assert!(
        fs::read_to_string(home.path().join("said"))
            .unwrap()
            .contains("nothing was changed")
    );
    let mut terminal = Session::start(command(&["scopes", "remove", "claude-mem"]));
    terminal.expect("[y/N] ").interrupt();
    assert_eq!(terminal.end().0, Some(130));
    assert!(manifest.exists());
    let mut terminal = Session::start(command(&["scopes", "remove", "claude-mem"]));
    terminal
        .expect("[y/N] ")
        .press("y\n")
        .expect("removed; undo:");
    assert_eq!(terminal.end().0, Some(0));
    assert!(!manifest.exists());
}

#[test]
fn a_store_that_keeps_a_review_status_needs_no_trust() {
    let home = TempDir::new().unwrap();
    let stores = Root::new();
    let store = stores.store("music", &[memory("m", "Tune the xylophone", json!({}))]);
    let usual = home.path().join(".ack-mem/scopes/music");
    fs::create_dir_all(&usual).unwrap();
    fs::copy(&store, usual.join("memory.db")).unwrap();
    let root = Root::new();
    let mut command = binary();
    command
        .env("HOME", home.path())
        .env("PATH", home.path())
        .arg("--root")
        .arg(root.path())
        .arg("setup");
    let mut terminal = Session::start(command);
    terminal.expect("ack-memory: 1 memory, ~/.ack-mem/scopes/music/memory.db");
    terminal.expect("(a)dd, (s)kip").press("\n");
    terminal.expect("scopes add music");
    assert_eq!(terminal.end().0, Some(0));
    let answer = ack(root.path(), &["query", "xylophone", "--json"]).json();
    assert_eq!(answer["results"][0]["scope"], "music");
}

#[test]
fn a_bucket_in_the_place_of_a_store_is_explained() {
    let root = Root::new();
    let address = "s3://acme-memory/platform";
    let table = format!("write `table = \"{address}\"`");
    let words = ["scopes", "add", "team", "--store", address, "--yes"];
    let refused = ack(root.path(), &words);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("is a bucket"), "{}", refused.err);
    assert!(refused.err.contains(&table), "{}", refused.err);
    assert!(refused.err.contains("scopes/team/scope.toml"));
    root.manifest("team", &format!("store = \"{address}\"\n"));
    for words in [&["query", "--scope", "team"][..], &["doctor"]] {
        let output = ack(root.path(), words);
        assert_ne!(output.code, Some(0));
        let output = output.out + &output.err;
        let output = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains(&table), "{output}");
    }
    // Another address is no store either.
    root.manifest("team", "store = \"https://acme.example/notes\"\n");
    let listed = ack(root.path(), &["scopes", "--json"]).json();
    let problem = listed["scopes"][0]["health"]["problems"][0].to_string();
    assert!(
        problem.contains("`store` is a file or a folder on this machine"),
        "{problem}"
    );
}
