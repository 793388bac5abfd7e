//! `scopes add`: what it shows, writes and refuses.

use tempfile::TempDir;

use super::{ack, add_scope, binary, claude_mem, run};
use crate::support::{Root, fingerprint, read_text, run_sql, titled, write_file};

#[test]
fn scopes_add_shows_first_and_writes_with_yes() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m-1", "Tune the xylophone")]);
    let root = Root::new();
    let path = root.path().join("scopes/music/scope.toml");
    let add = |rest: &[&str]| {
        let store = store.to_str().unwrap();
        let arguments = [
            &[
                "scopes",
                "add",
                "music",
                "--store",
                store,
                "--description",
                "Music",
                "--belongs",
                "tunes",
            ],
            rest,
        ]
        .concat();
        ack(root.path(), &arguments)
    };
    let before = fingerprint(root.path());
    let preview = add(&[]).ok();
    let said = "is an ack store: 1 approved, 0 unreviewed";
    assert_contains!(preview, "nothing was written", said);
    assert_contains!(preview, path.to_str().unwrap(), "description = \"Music\"");
    assert_eq!(fingerprint(root.path()), before, "a preview writes nothing");
    add(&["--yes"]).ok();
    assert_contains!(read_text(&path), store.to_str().unwrap());
    let answer = ack(root.path(), &["query", "xylophone", "--json"]).json();
    assert_eq!(answer["results"][0]["scope"], "music");
    let before = fingerprint(root.path());
    // The same once more: which scope has the store, and no advice to add it under another name.
    let error = add(&["--yes", "--private"]).fails(2);
    assert_contains!(error, "is already scope `music`");
    assert_lacks!(error, "another name");
    add(&[]).fails_somehow();
    assert_eq!(fingerprint(root.path()), before, "nothing is overwritten");
    assert_eq!(fingerprint(elsewhere.path()), fingerprint(elsewhere.path()));
}

#[test]
fn scopes_add_takes_a_relative_path_or_a_folder_and_leaves_the_store_alone() {
    let elsewhere = Root::new();
    for scope in ["x", "y"] {
        elsewhere.store(scope, &[titled("m-1", "Tune the xylophone")]);
    }
    let before = fingerprint(elsewhere.path());
    let root = Root::new();
    let add = |name: &str, store: &str| {
        run(binary()
            .current_dir(elsewhere.path().join("scopes"))
            .arg("--root")
            .arg(root.path())
            .args(["scopes", "add", name, "--yes", "--store", store]))
    };
    add("file", "x/memory.db").ok();
    add("folder", "./y").ok();
    for scope in ["file", "folder"] {
        let words = ["query", "xylophone", "--scope", scope, "--json"];
        let answer = ack(root.path(), &words).json();
        assert_eq!(answer["total"], 1, "{scope}: {answer}");
    }
    assert_eq!(fingerprint(elsewhere.path()), before);
}

#[test]
fn scopes_add_writes_paths_that_mean_the_same_from_anywhere() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m-1", "Tune the xylophone")]);
    let root = Root::new();
    let project = TempDir::new().unwrap();
    let add = ["scopes", "add", "music", "--yes", "--path", ".", "--path", "sub", "--path", "~/a"];
    let mut command = binary();
    command.current_dir(project.path()).arg("--root").arg(root.path()).args(add);
    run(command.arg("--store").arg(store)).ok();
    let written = read_text(root.path().join("scopes/music/scope.toml"));
    let project = project.path().canonicalize().unwrap();
    let [project, sub] = [project.clone(), project.join("sub")].map(|it| it.display().to_string());
    assert_contains!(written, format!("\"{project}\""), format!("\"{sub}\""), "\"~/a\"");
    let current = ack(root.path(), &["-C", &project, "query", "xylophone", "--json"]).json();
    assert_eq!(current["searched"]["current_scope"], "music");
}

#[test]
fn scopes_add_prints_json_with_what_it_writes() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m-1", "Tune the xylophone")]);
    let root = Root::new();
    let add = ["--json", "scopes", "add", "music", "--store", store.to_str().unwrap()];
    let path = root.path().join("scopes/music/scope.toml");
    let planned = ack(root.path(), &add).json();
    assert_eq!(planned["written"], false);
    assert!(!path.exists());
    let added = ack(root.path(), &[&add[..], &["--yes"]].concat()).json();
    assert_eq!(added["written"], true);
    assert_eq!(added["path"], path.to_str().unwrap());
    assert_eq!(added["manifest"], read_text(&path));
}

#[test]
fn scopes_add_refuses_invalid_names() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[titled("m-1", "Tune the xylophone")]);
    let root = Root::new();
    let before = fingerprint(root.path());
    let long = "x".repeat(65);
    for name in ["../x", "", ".", "..", "a/b", "/absolute", ".hidden", "a b", "a\\b", "a\nb", &long]
    {
        let error = add_scope(root.path(), name, &store).fails_somehow();
        assert_contains!(error, "name"; "{name:?}");
    }
    assert_eq!(fingerprint(root.path()), before);
    assert!(!root.path().parent().unwrap().join("x").exists());
}

#[test]
fn scopes_add_refuses_a_name_that_is_taken_in_another_spelling() {
    let (root, elsewhere) = (Root::samples(), Root::new());
    let store = elsewhere.store("x", &[]);
    let before = fingerprint(root.path());
    for name in ["Ledger_API", "ledger_api", "LEDGER-API"] {
        let error = add_scope(root.path(), name, &store).fails_somehow();
        assert_contains!(error, "ledger-api"; "{name}");
    }
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn scopes_add_refuses_a_path_that_is_not_a_store() {
    let root = Root::new();
    let folder = TempDir::new().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        write_file(&path, content);
        path
    };
    let foreign = folder.path().join("foreign.db");
    run_sql(&foreign, "CREATE TABLE contacts (name TEXT)");
    let paths = [
        folder.path().join("nothing.db"),
        file("empty.db", b""),
        file("garbage.db", &[0xA5; 4096]),
        foreign,
        folder.path().to_owned(),
    ];
    let before = fingerprint(root.path());
    for path in paths {
        let error = add_scope(root.path(), "new", &path).fails(1);
        assert_contains!(error, path.to_str().unwrap(), "hint:");
    }
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn a_store_without_a_review_status_is_reported_as_such() {
    let folder = TempDir::new().unwrap();
    let root = Root::new();
    let add = |name: &str, rest: &[&str]| {
        let store = folder.path().join(name);
        claude_mem(&store);
        let arguments =
            [&["scopes", "add", name, "--yes", "--store", store.to_str().unwrap()], rest].concat();
        ack(root.path(), &arguments).ok()
    };
    let output = add("waiting", &[]);
    assert_contains!(output, "claude-mem store", "--unreviewed approved");
    let output = add("vouched", &["--unreviewed", "approved"]);
    assert_contains!(output, "1 approved, 0 unreviewed");
    let total = |scope: &str, status: &str| {
        ack(root.path(), &["query", "--scope", scope, "--status", status, "--json"]).json()["total"]
            .clone()
    };
    assert_eq!(total("waiting", "approved"), 0);
    assert_eq!(total("waiting", "staging"), 1);
    assert_eq!(total("vouched", "approved"), 1);
}
