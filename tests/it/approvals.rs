//! Only a person's own decision about a memory makes agents see it, and none is lost: what other
//! commands, damaged logs, broken scopes and other people's decisions must not change.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::cli::{ack, run_with_input};
use crate::curate::{approved, decide, log, staged, with_token};
use crate::support::{
    Root, ids, memory, read_text, result_ids, run_sql, titled, unreviewed, write_file,
};
use crate::terminal::Terminal;

fn edit_log(root: &Root, scope: &str, change: impl FnOnce(String) -> Vec<u8>) {
    let path = root.scope_folder(scope).join("decisions.jsonl");
    write_file(&path, change(read_text(&path)));
    // As if it came from another machine.
    let _ = fs::remove_file(path.with_extension("seal"));
}

fn waiting(root: &Root) -> Vec<String> {
    let list = ack(root.path(), &["review", "--list", "--json"]).json();
    ids(&list["waiting"])
}

/// An entry of the list of waiting memories, with a verdict.
fn entry(root: &Root, position: usize, verdict: &str) -> Value {
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let mut entry = listed["waiting"][position].clone();
    entry["verdict"] = json!(verdict);
    entry
}

#[test]
fn a_file_that_is_not_a_decision_log_closes_its_scope() {
    let root = Root::with("alpha", &[titled("a", "Title a")]);
    root.store("beta", &[titled("b", "Title b")]);
    decide(root.path(), &["reject", "a"]).ok();
    let text = read_text(root.scope_folder("alpha").join("decisions.jsonl"));
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n".to_vec();
    for content in [pointer, utf16] {
        edit_log(&root, "alpha", |_| content);
        assert_eq!(approved(root.path()), ["b"]);
        let doctor = ack(root.path(), &["doctor"]);
        assert_eq!(doctor.code, Some(1), "{}", doctor.out);
        assert_contains!(doctor.out, "no line of a decision log");
    }
    edit_log(&root, "alpha", |_| format!("\u{feff}{text}").into_bytes());
    assert_eq!(approved(root.path()), ["b"], "a byte order mark costs nothing");
    assert_eq!(ack(root.path(), &["doctor"]).code, Some(0));
}

#[test]
fn a_waiting_memory_that_absorbs_another_keeps_waiting() {
    let root = Root::new();
    let wait = |id: &str, tag: &str| {
        let rest = json!({ "status": "staging", "concepts": [tag], "facts": [tag] });
        memory(id, &format!("Title {id}"), rest)
    };
    root.store("alpha", &[wait("a", "one"), wait("b", "two")]);
    let plan = ack(root.path(), &["replace", "a", "--by", "b", "--merge", "--dry-run"]).ok();
    assert_contains!(plan, "  b  alpha  Title b");
    decide(root.path(), &["replace", "a", "--by", "b", "--merge"]).ok();
    assert_eq!(approved(root.path()), Vec::<String>::new());
    assert_eq!(waiting(&root), ["b"]);
    // The content that was merged into it is still there once somebody approves it.
    decide(root.path(), &["approve", "b"]).ok();
    let got = ack(root.path(), &["get", "b", "--json"]).json();
    assert_eq!(got["facts"], json!(["two", "one"]));
    assert_eq!(got["concepts"], json!(["two", "one"]));
    decide(root.path(), &["undo"]).ok();
    assert_eq!(waiting(&root), ["b"]);
    decide(root.path(), &["undo"]).ok();
    assert_eq!(waiting(&root), ["a", "b"]);
}

#[test]
fn an_edited_memory_keeps_its_text_with_every_later_decision() {
    let root = Root::new();
    staged(&root, "alpha", 1);
    let mut entry = entry(&root, 0, "edit");
    entry["edit"] = json!({ "title": "Edited" });
    let list = root.path().join("list.jsonl");
    write_file(&list, entry.to_string());
    decide(root.path(), &["review", "--apply", list.to_str().unwrap()]).ok();
    for verdict in ["approve --promote", "stage", "approve"] {
        let words: Vec<&str> = verdict.split(' ').chain(["alpha-0000"]).collect();
        decide(root.path(), &words).ok();
        let last = log(&root, "alpha").pop().unwrap();
        let edit = last.edit.unwrap();
        assert_eq!(edit.title.as_deref(), Some("Edited"), "{verdict}");
    }
    let got = ack(root.path(), &["get", "alpha-0000", "--json"]).json();
    assert_eq!(got["title"], "Edited");
}

#[test]
fn nothing_is_written_if_one_of_several_scopes_is_not_writable() {
    let root = Root::new();
    for scope in ["alpha", "beta", "gamma"] {
        staged(&root, scope, 1);
    }
    // A folder in place of the log cannot be written, whoever runs the test.
    fs::create_dir(root.scope_folder("beta").join("decisions.jsonl")).unwrap();
    let ids = ["approve", "alpha-0000", "beta-0000", "gamma-0000"];
    let outcome = decide(root.path(), &ids);
    assert_ne!(outcome.code, Some(0), "{}", outcome.out);
    assert_eq!(approved(root.path()), Vec::<String>::new());
    assert!(log(&root, "alpha").is_empty());
}

#[test]
fn undo_reverts_only_own_decisions_and_names_them() {
    let root = Root::new();
    staged(&root, "alpha", 2);
    decide(root.path(), &["approve", "alpha-0000"]).ok();
    // A colleague whose clock is ahead.
    edit_log(&root, "alpha", |text| {
        let mut line: Value = serde_json::from_str(text.trim()).unwrap();
        line["actor"] = json!("human:bob");
        line["batch"] = json!("20990101-000000-000-aaaa");
        line["time"] = json!("2099-01-01T00:00:00Z");
        format!("{line}\n").into_bytes()
    });
    let nothing = decide(root.path(), &["undo"]).fails(1);
    assert_contains!(nothing, "human:bob's", "undo 2099");
    decide(root.path(), &["reject", "alpha-0001"]).ok();
    let undone = decide(root.path(), &["undo"]).ok();
    assert_contains!(undone, "process:ana", "alpha-0001  alpha");
    assert_eq!(approved(root.path()), ["alpha-0000"]);
    decide(root.path(), &["undo", "20990101-000000-000-aaaa"]).ok();
    assert_eq!(approved(root.path()), Vec::<String>::new());
}

#[test]
fn duplicate_ids_do_not_block_other_decisions() {
    let root = Root::new();
    let path = root.store("alpha", &[unreviewed("a", "One")]);
    run_sql(
        path,
        "CREATE TABLE copy AS SELECT * FROM memories; DROP TABLE memories;
             ALTER TABLE copy RENAME TO memories;
             INSERT INTO memories (id, title, status) VALUES ('t', 'Twin', 'staging'),
               ('t', 'Other', 'staging')",
    );
    let outcome = decide(root.path(), &["approve", "--waiting", "--yes"]);
    assert_contains!(outcome.err, "note: left out", "`t`");
    outcome.ok();
    assert_eq!(approved(root.path()), ["a"]);
    for dry in [vec![], vec!["--dry-run"]] {
        let arguments = [vec!["replace", "a", "--by", "t", "--merge"], dry].concat();
        assert_ne!(decide(root.path(), &arguments).code, Some(0));
    }
}

#[test]
fn a_number_means_a_result_of_the_last_query() {
    let root = Root::new();
    let wait = |id: &str, title: &str| unreviewed(id, title);
    let memories = [wait("7be2", "Alpha sqlx good"), wait("19f7", "Beta bad advice")];
    root.store("alpha", &memories);
    let mut terminal = Terminal::new();
    terminal.ack(root.path(), &["query", "alpha sqlx", "-a"]).ok();
    let mut command = terminal.command(root.path(), &["approve", "1"]);
    terminal.run(&mut command, "").ok();
    assert_eq!(approved(root.path()), ["7be2"]);
}

#[test]
fn a_number_that_is_also_the_id_of_another_memory_decides_nothing() {
    let root = Root::new();
    root.store(
        "alpha",
        &[unreviewed("2", "Dog"), unreviewed("q1", "Cat food"), unreviewed("q2", "Cat door")],
    );
    let mut terminal = Terminal::new();
    let listed = terminal.ack(root.path(), &["query", "cat", "-a", "--json"]).json();
    let [first, second] = <[String; 2]>::try_from(result_ids(&listed)).unwrap();
    terminal.ack(root.path(), &["query", "cat", "-a"]).ok();
    let mut approve = |id: &str| {
        let mut command = terminal.command(root.path(), &["approve", id]);
        terminal.run(&mut command, "")
    };
    let refused = approve("2");
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    let said = refused.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let address = "memory://scope/alpha/memory/2";
    assert_contains!(said, "`2` is the id of a memory in scope `alpha`", &second, address);
    assert_eq!(approved(root.path()), Vec::<String>::new());
    approve(address).ok();
    assert_eq!(approved(root.path()), ["2"]);
    approve("1").ok();
    assert_eq!(approved(root.path()), ["2", &first]);
}

#[test]
fn only_a_curator_can_see_rejected_memories() {
    let root = Root::new();
    staged(&root, "alpha", 1);
    let words = ["reject", "alpha-0000", "--because", "not true"];
    decide(root.path(), &words).ok();
    let arguments = ["get", "alpha-0000", "--include", "history"];
    assert_contains!(decide(root.path(), &arguments).ok(), "rejected", "not true");
    assert_lacks!(ack(root.path(), &arguments).fails(1), "Lesson 0");
}

#[test]
fn an_applied_list_needs_full_ids_each_once() {
    let root = Root::new();
    staged(&root, "alpha", 1);
    let list = root.path().join("list.jsonl");
    let entry = entry(&root, 0, "approve");
    let with = |key: &str, value: Value| {
        let mut entry = entry.clone();
        entry[key] = value;
        entry.to_string()
    };
    let with_both = |verdict: &str, key: &str, value: Value| {
        let mut entry = entry.clone();
        (entry["verdict"], entry[key]) = (json!(verdict), value);
        entry.to_string()
    };
    for (text, expected) in [
        (with("id", json!("alpha")), "no memory has the id"),
        (format!("{entry}\n{entry}\n"), "line 1 decides about alpha-0000 too"),
        (r#"{"id":"alpha-0000","verdict":"approve"}"#.to_owned(), "`digest` is missing"),
        (with("digest", json!(null)), "`digest` is missing"),
        (with("title", json!("Another one")), "`title` is not the one of alpha-0000"),
        (with_both("edit", "edit", json!({ "title": " " })), "line 1: the title is empty"),
        (with_both("stage", "until", json!("2020-01-01")), "line 1: 2020-01-01 is in the past"),
        (with_both("stage", "until", json!("soon")), "line 1: `soon` is not a day"),
        (String::new(), "a file without entries"),
    ] {
        write_file(&list, text);
        let outcome = decide(root.path(), &["review", "--apply", list.to_str().unwrap()]);
        assert_ne!(outcome.code, Some(0));
        assert_contains!(outcome.err, expected);
    }
    assert!(log(&root, "alpha").is_empty());
    let marked = format!("\u{feff}{entry}\n");
    write_file(&list, &marked);
    decide(root.path(), &["review", "--apply", list.to_str().unwrap()]).ok();
    assert_eq!(approved(root.path()), ["alpha-0000"]);
    decide(root.path(), &["undo"]).ok();
    run_with_input(&mut with_token(root.path(), &["review", "--apply", "-"]), marked.as_bytes())
        .ok();
    assert_eq!(approved(root.path()), ["alpha-0000"]);
}

#[test]
fn a_log_locked_by_another_process_is_an_error_after_a_timeout() {
    let root = Root::new();
    staged(&root, "alpha", 1);
    let path = root.scope_folder("alpha").join("decisions.jsonl");
    let held = fs::File::create(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    held.lock().unwrap();
    let outcome = decide(root.path(), &["approve", "alpha-0000"]);
    assert_ne!(outcome.code, Some(0));
    assert_contains!(outcome.err, "another process is writing");
    held.unlock().unwrap();
    decide(root.path(), &["approve", "alpha-0000"]).ok();
}
