//! `scopes add`: what it shows, writes and refuses.

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::{ack, add_scope, binary, claude_mem, run};
use crate::support::{Root, fingerprint, memory};

#[test]
fn scopes_add_shows_first_and_writes_with_yes() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[memory("m-1", "Tune the xylophone", json!({}))]);
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
    assert!(
        preview.contains("nothing was written")
            && preview.contains("is an ack store: 1 approved, 0 waiting for review"),
        "{preview}"
    );
    assert!(
        preview.contains(path.to_str().unwrap()) && preview.contains("description = \"Music\""),
        "{preview}"
    );
    assert_eq!(fingerprint(root.path()), before, "a preview writes nothing");
    add(&["--yes"]).ok();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(store.to_str().unwrap()), "{text}");
    let answer = ack(root.path(), &["query", "xylophone", "--json"]).json();
    assert_eq!(answer["results"][0]["scope"], "music");
    let before = fingerprint(root.path());
    assert!(
        add(&["--yes", "--private"])
            .fails(2)
            .contains("not overwritten")
    );
    add(&[]).fails_somehow();
    assert_eq!(fingerprint(root.path()), before, "nothing is overwritten");
    let stores = fingerprint(elsewhere.path());
    assert_eq!(stores, fingerprint(elsewhere.path()));
}

#[test]
fn scopes_add_takes_a_relative_path_or_a_folder_and_leaves_the_store_alone() {
    let elsewhere = Root::new();
    for scope in ["x", "y"] {
        elsewhere.store(scope, &[memory("m-1", "Tune the xylophone", json!({}))]);
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
        let answer = ack(
            root.path(),
            &["query", "xylophone", "--scope", scope, "--json"],
        )
        .json();
        assert_eq!(answer["total"], 1, "{scope}: {answer}");
    }
    assert_eq!(fingerprint(elsewhere.path()), before);
}

#[test]
fn scopes_add_refuses_invalid_names() {
    let elsewhere = Root::new();
    let store = elsewhere.store("x", &[memory("m-1", "Tune the xylophone", json!({}))]);
    let root = Root::new();
    let before = fingerprint(root.path());
    let long = "x".repeat(65);
    for name in [
        "../x",
        "",
        ".",
        "..",
        "a/b",
        "/absolute",
        ".hidden",
        "a b",
        "a\\b",
        "a\nb",
        &long,
    ] {
        let error = add_scope(root.path(), name, &store).fails_somehow();
        assert!(error.contains("name"), "{name:?}: {error}");
    }
    assert_eq!(fingerprint(root.path()), before);
    assert!(!root.path().parent().unwrap().join("x").exists());
}

#[test]
fn scopes_add_refuses_a_name_that_is_taken_in_another_spelling() {
    let root = Root::samples();
    let store = root.path().join("scopes/platform/memory.db");
    let before = fingerprint(root.path());
    for name in ["Ledger_API", "ledger_api", "LEDGER-API"] {
        let error = add_scope(root.path(), name, &store).fails_somehow();
        assert!(error.contains("ledger-api"), "{name}: {error}");
    }
    assert_eq!(fingerprint(root.path()), before);
}

#[test]
fn scopes_add_refuses_a_path_that_is_not_a_store() {
    let root = Root::new();
    let folder = TempDir::new().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let foreign = folder.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE contacts (name TEXT)")
        .unwrap();
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
        assert!(
            error.contains(path.to_str().unwrap()) && error.contains("hint:"),
            "{error}"
        );
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
        let arguments = [
            &[
                "scopes",
                "add",
                name,
                "--yes",
                "--store",
                store.to_str().unwrap(),
            ],
            rest,
        ]
        .concat();
        ack(root.path(), &arguments).ok()
    };
    let output = add("waiting", &[]);
    assert!(
        output.contains("claude-mem store") && output.contains("--unreviewed approved"),
        "{output}"
    );
    let output = add("vouched", &["--unreviewed", "approved"]);
    assert!(
        output.contains("1 approved, 0 waiting for review"),
        "{output}"
    );
    let total = |scope: &str, status: &str| {
        ack(
            root.path(),
            &["query", "--scope", scope, "--status", status, "--json"],
        )
        .json()["total"]
            .clone()
    };
    assert_eq!(total("waiting", "approved"), 0);
    assert_eq!(total("waiting", "staging"), 1);
    assert_eq!(total("vouched", "approved"), 1);
}
