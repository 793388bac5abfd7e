//! What the formats of notes say in addition to their text: the headers of Codex, the marks of the
//! Open Knowledge Format, and the lines of server-memory, broken ones too.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{ack, add_scope};
use crate::curate::{approved, decide};
use crate::store_support::write;
use crate::support::{Ask, Root, sorted_ids, write_file};

/// A scope over a store, in which everything waits.
fn serve_notes(store: &Path) -> Root {
    let root = Root::new();
    root.manifest("notes", &format!("store = '{}'", store.display()));
    root
}

fn waiting(root: &Root) -> Vec<Value> {
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    listed["waiting"].as_array().unwrap().clone()
}

fn health(root: &Root) -> Value {
    let scopes = root.service().scopes(json!({}));
    scopes["scopes"][0]["health"].clone()
}

#[test]
fn a_rollout_header_gives_session_day_and_project() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "rollout_summaries/2026-02-11T15-35-19-jqmb-import.md",
        "thread_id: 0194f5a6\nupdated_at: 2026-02-11T15:35:19+00:00\nrollout_path: /tmp/r.jsonl\n\
         cwd: /home/dana/src/ledger-api\ngit_branch: main\n\n# Import in two passes\n\nText.\n",
    );
    write(folder.path(), "MEMORY.md", "");
    let root = serve_notes(folder.path());
    decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
    let id = "rollout_summaries/2026-02-11T15-35-19-jqmb-import";
    let got = ack(root.path(), &["get", id, "--json"]).json();
    for (key, value) in [
        ("title", "Import in two passes"),
        ("project", "ledger-api"),
        ("session_id", "0194f5a6"),
        ("created_at", "2026-02-11T15:35:19Z"),
        ("narrative", "Text."),
    ] {
        assert_eq!(got[key], value, "{key}: {got:#}");
    }
}

#[test]
fn a_task_group_keeps_its_id_if_another_is_inserted() {
    let folder = tempfile::tempdir().unwrap();
    let two = "# Task Group: Ledger import\nRead twice.\n\n# Task Group: Kiosk fonts\nFrom disk.\n";
    write(folder.path(), "MEMORY.md", two);
    write(folder.path(), "memory_summary.md", "");
    let root = serve_notes(folder.path());
    decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
    let ids = ["MEMORY#kiosk-fonts", "MEMORY#ledger-import"];
    assert_eq!(approved(root.path()), ids);
    let three = format!("# Task Group: New\nThe newest.\n\n{two}");
    write(folder.path(), "MEMORY.md", three);
    assert_eq!(approved(root.path()), ids);
    let waits = waiting(&root);
    assert_eq!((waits.len(), &waits[0]["id"]), (1, &json!("MEMORY#new")));
    assert_eq!(waits[0]["marks"], json!([]), "nothing of it changed");
}

#[test]
fn the_card_shows_the_objections_of_the_author() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    let text = "---\nstatus: deprecated\ntype: x\n---\n# Old\n";
    write(inside, "a.md", text);
    let text = "---\nstale_after: 2020-01-01\ntype: x\n---\n# Past\n";
    write(inside, "b.md", text);
    let text = "---\nstatus: stable\ntype: x\n---\n# Good\n";
    write(inside, "c.md", text);
    // Its id comes from its header.
    let text = "---\nid: own\nstatus: Obsolete\n---\n# Renamed\n";
    write(inside, "d.md", text);
    let root = serve_notes(inside);
    let waits = waiting(&root);
    let marks = |id: &str| {
        let card = waits.iter().find(|card| card["id"] == id).unwrap();
        card["marks"].clone()
    };
    assert_eq!(marks("a"), json!(["its header says `deprecated`"]));
    assert_eq!(marks("b"), json!(["past 2020-01-01, the day its author set"]));
    assert_eq!(marks("c"), json!([]));
    assert_eq!(marks("own"), json!(["its header says `Obsolete`"]));
}

#[test]
fn an_approved_note_that_its_author_withdraws_is_marked_until_a_person_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let note =
        |status: &str| format!("---\nid: a\nstatus: {status}\ntype: x\n---\n# Deploy by hand\n");
    write(folder.path(), "a.md", note("stable"));
    let root = serve_notes(folder.path());
    decide(root.path(), &["approve", "a"]).ok();
    let stale = || {
        let found = ack(root.path(), &["query", "deploy", "--json"]).json();
        found["results"][0]["stale"].clone()
    };
    let listed = || ack(root.path(), &["review", "--stale", "--list", "--json"]).json();
    assert_eq!(stale(), Value::Null);
    write(folder.path(), "a.md", note("Deprecated, see b"));
    let mark = "its author marked it deprecated";
    assert_eq!(stale(), mark);
    assert_contains!(listed().to_string(), mark);
    decide(root.path(), &["approve", "a"]).ok();
    assert_eq!(stale(), Value::Null);
    assert!(!listed().to_string().contains(mark));
    let again = decide(root.path(), &["approve", "a"]);
    assert_contains!(again.err, "is approved already");
    // Whoever approves a note that says so, knows it.
    let text = "---\nid: b\nstatus: archived\n---\n# Deploy at night\n";
    write(folder.path(), "b.md", text);
    decide(root.path(), &["approve", "b"]).ok();
    assert_lacks!(listed().to_string(), "marked it archived");
}

#[test]
fn an_id_that_is_no_text_is_not_used_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    write(inside, "list.md", "---\nid: [1, 2]\n---\n# A list\n");
    write(inside, "lines.md", "---\nid:\n- 3\n---\n# Lines\n");
    write(inside, "map.md", "---\nid: {a: 4}\n---\n# A map\n");
    write(inside, "text.md", "---\nid: \"[5]\"\n---\n# Text\n");
    let root = serve_notes(inside);
    let found = sorted_ids(&json!(waiting(&root)));
    assert_eq!(found, ["[5]", "lines", "list", "map"]);
    let problems = health(&root)["problems"].to_string();
    assert_contains!(
        problems,
        "`list.md` has a list as its `id`, where one text belongs; it is not used, so the id is the \
         file's path; write one text, or leave `id` out",
        "`lines.md` has a list as its `id`",
        "`map.md` has a map as its `id`"
    );
    assert_lacks!(problems, "text.md");
}

#[test]
fn broken_lines_of_a_graph_are_reported_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let good =
        r#"{"type":"entity","name":"deploy","entityType":"rule","observations":["on Tuesday"]}"#;
    let deep = "[".repeat(100_000);
    for (line, reason) in [
        (r#"{"type":"entity","name":"torn","entit"#, "invalid JSON at column 37"),
        ("garbage", "invalid JSON at column 1"),
        ("null", "it is neither an entity nor a relation"),
        (r#"{"type":"entity"}"#, "an entity needs a `name`"),
        (r#"{"type":"entity","name":5}"#, "an entity needs a `name`"),
        (r#"{"type":"relation","from":"a"}"#, "a relation needs `from` and `to`"),
        (deep.as_str(), "invalid JSON at column"),
    ] {
        write_file(&file, format!("{good}\n{line}\nnull\n\n"));
        let root = serve_notes(&file);
        let health = health(&root);
        assert_eq!(health["state"], "degraded", "{reason}");
        let problems = health["problems"].to_string();
        let named = format!("`memory.jsonl` line 2 was left out: {reason}");
        assert_contains!(problems, &named; "{named}");
        assert_contains!(problems, " (and 1 more line)");
        assert_eq!(waiting(&root).len(), 1, "{reason}");
    }
    // One object instead of lines.
    let text = r#"{"entities":[{"name":"a","entityType":"b"}],"relations":[]}"#;
    write_file(&file, text);
    let problems = health(&serve_notes(&file))["problems"].to_string();
    assert_contains!(problems, "line 1 was left out");
}

#[test]
fn a_graph_may_be_larger_than_a_note_and_omissions_are_reported_when_it_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let fact = "x".repeat(1 << 20);
    let lines = (0..10).map(|number| {
        let line = json!({
            "type": "entity", "name": format!("e{number}"), "entityType": "t",
            "observations": [fact],
        });
        line.to_string() + "\n"
    });
    write_file(&file, lines.collect::<String>());
    let root = Root::new();
    let added = add_scope(root.path(), "graph", &file).ok();
    let expected = "is a server-memory store: 0 approved, 10 unreviewed\n";
    assert_contains!(added, expected);
    assert_lacks!(added, "note: ");
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(65 << 20).unwrap();
    let added = add_scope(Root::new().path(), "graph", &file).ok();
    let named = "note: `memory.jsonl` is larger than 64 MB and was left out\n";
    assert_contains!(added, named);
}

#[test]
fn a_pipe_or_a_device_is_not_a_notes_store() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("memory.jsonl");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let device = folder.path().join("zero.jsonl");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    let text = folder.path().join("text.jsonl");
    write_file(&text, "e\0n\0t\0i\0t\0y\0\n");
    for (path, reason) in [
        (&pipe, "a named pipe"),
        (&device, "a device"),
        (&text, "is neither server-memory's JSON lines nor an SQLite database"),
    ] {
        let root = Root::new();
        let refused = add_scope(root.path(), "f", path);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert_contains!(refused.err, reason);
        assert!(!root.path().join("scopes/f").exists());
    }
}

#[test]
fn deep_folders_and_conflicting_ids_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path();
    let deep = (0..40).map(|n| format!("d{n}")).collect::<Vec<_>>().join("/");
    write(inside, &format!("{deep}/lost.md"), "# Lost\n");
    write(inside, "esc.md", "# Plain\n");
    write(inside, "esc\u{1b}[31m.md", "# Coloured\n");
    let text = "---\ntitle: \"\\e[31mred\\u202Eevil\\nline\"\n---\nText\n";
    write(inside, "yaml.md", text);
    let root = serve_notes(inside);
    let problems = health(&root)["problems"].to_string();
    let said = "is deeper than 32 folders; its notes are left out";
    assert_contains!(problems, said);
    let named = "1 row repeats the id of another row (`esc`: esc.md, esc.md)";
    assert_contains!(problems, named);
    let waits = waiting(&root);
    let yaml = waits.iter().find(|card| card["id"] == "yaml").unwrap();
    assert_eq!(yaml["title"], "redevil line");
    // All places count alike.
    let counts = root.service().scopes(json!({}));
    assert_eq!(counts["scopes"][0]["counts"]["staging"], waits.len());
    let added = add_scope(Root::new().path(), "again", inside).ok();
    assert_contains!(added, &format!("{} unreviewed", waits.len()));
}
