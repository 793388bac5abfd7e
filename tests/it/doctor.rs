//! `doctor`: what is said about review and decisions.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{ack, claude_mem};
use crate::curate::{approved, decide, staged};
use crate::support::{Root, memory};

/// What is found about a subject, and goes on below it.
fn found(root: &Root) -> Vec<(String, String)> {
    let outcome = ack(root.path(), &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    findings
        .map(|finding| (text(finding, "subject"), text(finding, "message")))
        .collect()
}

fn said(root: &Root, subject: &str) -> Option<String> {
    let found = found(root).into_iter();
    let mut found = found.filter(|(about, _)| about == subject);
    found.next().map(|(_, message)| message)
}

#[test]
fn the_doctor_says_what_agents_may_ask_for_where_something_waits() {
    let root = Root::new();
    root.store("alpha", &[memory("a-1", "Approved", json!({}))]);
    assert_eq!(said(&root, "alpha").unwrap(), "1 memory");
    assert_eq!(said(&root, "agents"), None, "nothing waits");
    let waiting = json!({ "status": "staging", "created_at": "2026-02-09T08:00:00Z" });
    let waiting = (0..1_200).map(|n| memory(&format!("b-{n}"), "Waits", waiting.clone()));
    let mut memories: Vec<Value> = waiting.collect();
    memories.push(memory("b-x", "Approved", json!({})));
    root.store("beta", &memories);
    assert_eq!(
        said(&root, "beta").unwrap(),
        "1 memory, 1,200 waiting for review since 2026-02-09"
    );
    assert_eq!(
        said(&root, "agents").unwrap(),
        "see approved memories only (max_status = approved, default)"
    );
    let root = root.let_agents_review();
    assert_eq!(
        said(&root, "agents").unwrap(),
        "may ask for what waits for review (max_status = all, config.toml)"
    );
}

#[test]
fn what_several_scopes_have_in_common_is_said_once_and_nobody_is_sent_to_the_doctor_by_it() {
    let root = Root::new();
    for scope in ["one", "two"] {
        claude_mem(&root.scope_folder(scope).join("claude-mem.db"));
    }
    let said = ack(root.path(), &["scopes"]).ok();
    assert_eq!(
        said.matches("keeps no review status").count(),
        1,
        "once is enough: {said}"
    );
    assert!(said.contains("\none, two: the store keeps"), "{said}");
    let said = ack(root.path(), &["query"]).ok();
    assert!(
        said.contains("\nnote: one, two: this store keeps no review status"),
        "{said}"
    );
    assert_eq!(said.matches("no review status").count(), 1, "{said}");
    // A folder in the place of a file that SQLite needs.
    root.store("three", &[memory("t-1", "Three", json!({}))]);
    fs::remove_file(root.scope_folder("three").join("memory.db")).unwrap();
    std::os::unix::fs::symlink("memory.db", root.scope_folder("three").join("memory.db")).unwrap();
    let report = ack(root.path(), &["doctor", "--json"]).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(
        !report["findings"].to_string().contains("ack-memory doctor"),
        "{report:#}"
    );
}

#[test]
fn a_broken_store_is_left_out_of_the_review_and_its_database_is_not_to_be_removed_by_a_command() {
    let root = Root::new();
    staged(&root, "good", 2);
    let damaged = root.store("damaged", &[memory("d-1", "One", json!({}))]);
    let start = fs::read(&damaged).unwrap()[..3_000].to_vec();
    fs::write(&damaged, start).unwrap();
    let garbage = root.scope_folder("garbage").join("memory.db");
    fs::write(garbage, [0xA5; 4_096]).unwrap();
    root.manifest("typo", "visibilty = 'shared'");
    for arguments in [
        &["review", "--list"][..],
        &["approve", "--waiting", "--yes"],
    ] {
        let outcome = decide(root.path(), arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for scope in ["damaged", "garbage", "typo"] {
            let note = format!("note: scope `{scope}` is left out: ");
            assert!(outcome.err.contains(&note), "{outcome:?}");
        }
    }
    assert_eq!(approved(root.path()).len(), 2);
    let named = decide(root.path(), &["review", "--list", "--scope", "garbage"]);
    assert!(named.fails(1).contains("is not an SQLite database"));
    let report = ack(root.path(), &["doctor"]).out;
    assert!(
        report.contains("scopes remove garbage") && !report.contains("scopes remove damaged"),
        "{report}"
    );
}

#[test]
fn a_default_scope_that_is_not_there_is_named() {
    let root = Root::new();
    root.store("alpha", &[memory("a-1", "One", json!({}))]);
    let default = |name: &str| {
        let text = format!("default_scope = \"{name}\"\n");
        fs::write(root.path().join("config.toml"), text).unwrap();
        said(&root, "config.toml")
    };
    assert_eq!(
        default("alpah").unwrap(),
        "`default_scope` is `alpah`, and there is no such scope; did you mean `alpha`?"
    );
    assert_eq!(default("Alpha"), None);
}

#[test]
fn a_damaged_line_of_a_decision_log_costs_that_line_and_is_named() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory("a-1", "One", json!({})),
            memory("a-2", "Two", json!({})),
        ],
    );
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    fs::write(&log, "{\"id\": \"a-1\", \"verdict\": \"rej\n[]\n").unwrap();
    let lines: Vec<String> = found(&root)
        .into_iter()
        .map(|(_, message)| message)
        .filter(|message| message.contains("decisions.jsonl"))
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, message) in (1..).zip(&lines) {
        let named = format!("line {line} of decisions.jsonl is not a decision: ");
        assert!(message.starts_with(&named), "{message}");
    }
    let scope = said(&root, "alpha").unwrap();
    assert_eq!(
        scope, "1 memory, 1 waiting for review since 2026-01-01",
        "what a lost line may have rejected waits; the rest is as it was"
    );
}

#[test]
fn a_root_that_cannot_be_read_is_not_called_empty() {
    let root = Root::new();
    fs::write(
        root.path().join("scopes"),
        "a file in the place of the folder",
    )
    .unwrap();
    let doctor = ack(root.path(), &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.out);
    assert!(doctor.out.contains("cannot read"), "{}", doctor.out);
    let told = ack(root.path(), &["query", "anything"]).fails(1);
    assert!(
        told.contains("cannot read") && !told.contains("setup"),
        "{told}"
    );
}
