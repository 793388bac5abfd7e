//! Memories that come back when the one that replaced them is rejected. Commands and the desk
//! announce it, do it, and report it.

use serde_json::{Value, json};

use crate::cli::ack;
use crate::curate::{approved, decide};
use crate::desk::Desk;
use crate::support::{Root, memory, titled, unreviewed};
use crate::terminal::{Session, Terminal};

/// An approved memory that replaced an approved and a waiting one, and an unrelated one.
fn replaced() -> Root {
    let store = [
        titled("older-1", "Use npm"),
        titled("newer-1", "Use pnpm"),
        unreviewed("extra-1", "Use pnpm, please"),
        titled("other-1", "Deploy on Fridays"),
    ];
    let root = Root::with("alpha", &store);
    decide(root.path(), &["replace", "older-1", "--by", "newer-1"]).ok();
    decide(root.path(), &["merge", "extra-1", "--into", "newer-1"]).ok();
    assert_eq!(approved(root.path()), ["newer-1", "other-1"]);
    root
}

fn waits(root: &Root) -> Vec<String> {
    let list = ack(root.path(), &["review", "--list", "--json"]).json();
    crate::support::sorted_ids(&list["waiting"])
}

fn ids_of(answer: &Value, field: &str) -> Vec<String> {
    crate::support::ids(&answer[field])
}

#[test]
fn a_rejection_says_what_is_served_again_and_what_waits_again() {
    let root = replaced();
    let seen = ack(root.path(), &["reject", "newer-1", "--dry-run"]).ok();
    let said = "unreviewed again: extra-1  Use pnpm, please";
    assert_contains!(seen, "served again: older-1  Use npm", said);
    let seen = ack(root.path(), &["reject", "newer-1", "--dry-run", "--json"]).json();
    assert_eq!(ids_of(&seen, "served_again"), ["older-1"], "{seen}");
    assert_eq!(ids_of(&seen, "wait_again"), ["extra-1"], "{seen}");
    let answer = decide(root.path(), &["reject", "newer-1"]).ok();
    let said = "unreviewed again: extra-1  Use pnpm, please";
    assert_contains!(answer, "served again: older-1  Use npm", said);
    assert_eq!(approved(root.path()), ["older-1", "other-1"]);
    assert_eq!(waits(&root), ["extra-1"]);
    // And the way back.
    let seen = decide(root.path(), &["undo", "--dry-run"]).ok();
    assert_contains!(seen, "served again: newer-1");
    let answer = decide(root.path(), &["undo", "--json"]).json();
    assert_eq!(ids_of(&answer, "served_again"), ["newer-1"], "{answer}");
    assert_eq!(approved(root.path()), ["newer-1", "other-1"]);
    assert_eq!(waits(&root), Vec::<String>::new());
}

#[test]
fn what_goes_back_to_the_queue_serves_what_it_replaced() {
    let root = replaced();
    for arguments in [&["stage", "newer-1"][..], &["stage", "newer-1", "--until", "2w"]] {
        let seen = ack(root.path(), &[arguments, &["--dry-run"]].concat()).ok();
        assert_contains!(seen, "served again: older-1");
        let answer = decide(root.path(), &[arguments, &["--json"]].concat()).json();
        assert_eq!(ids_of(&answer, "served_again"), ["older-1"], "{answer}");
        assert_eq!(ids_of(&answer, "wait_again"), Vec::<String>::new());
        assert_eq!(approved(root.path()), ["older-1", "other-1"]);
        decide(root.path(), &["undo"]).ok();
    }
    // Undoing an approval removes a memory, too.
    decide(root.path(), &["stage", "newer-1"]).ok();
    decide(root.path(), &["approve", "newer-1"]).ok();
    assert_eq!(approved(root.path()), ["newer-1", "other-1"]);
    for arguments in [&["undo", "--dry-run", "--json"][..], &["undo", "--json"]] {
        let answer = decide(root.path(), arguments).json();
        assert_eq!(ids_of(&answer, "served_again"), ["older-1"], "{answer}");
        assert_eq!(ids_of(&answer, "wait_again"), ["newer-1"], "{answer}");
    }
    assert_eq!(approved(root.path()), ["older-1", "other-1"]);
}

#[test]
fn an_undone_approval_releases_what_was_merged_since() {
    let store = [unreviewed("kept-1", "Use pnpm"), unreviewed("same-1", "Use pnpm, please")];
    let root = Root::with("alpha", &store);
    decide(root.path(), &["reject", "kept-1"]).ok();
    let approval = decide(root.path(), &["approve", "kept-1", "--json"]).json();
    let batch = approval["batch"].as_str().unwrap();
    decide(root.path(), &["replace", "same-1", "--by", "kept-1", "--merge"]).ok();
    assert_eq!(waits(&root), Vec::<String>::new());
    for arguments in [&["undo", batch, "--dry-run", "--json"][..], &["undo", batch, "--json"]] {
        let answer = decide(root.path(), arguments).json();
        assert_eq!(ids_of(&answer, "wait_again"), ["same-1"], "{answer}");
    }
    assert_eq!(approved(root.path()), Vec::<String>::new());
    assert_eq!(waits(&root), ["same-1"]);
}

#[test]
fn nothing_comes_back_that_was_there_or_stays_away() {
    let store = [
        // Its successor waits, so agents see it all the time.
        memory("seen", "Use npm", json!({ "superseded_by": "waits" })),
        unreviewed("waits", "Use pnpm"),
        // These replace each other.
        memory("one", "Tea", json!({ "superseded_by": "two" })),
        memory("two", "Coffee", json!({ "superseded_by": "one" })),
        // Its successor is rejected in the same command.
        memory("gone", "Left", json!({ "superseded_by": "taken" })),
        titled("taken", "Right"),
        // The host replaced it.
        memory("hosts", "Up", json!({ "superseded_by": "own" })),
        titled("own", "Down"),
    ];
    let root = Root::with("alpha", &store);
    let back = |ids: &[&str]| {
        let answer = ack(root.path(), &[&["reject"], ids, &["--dry-run", "--json"]].concat());
        let answer = answer.json();
        assert_eq!(ids_of(&answer, "wait_again"), Vec::<String>::new());
        ids_of(&answer, "served_again")
    };
    let nothing = Vec::<String>::new();
    assert_eq!(back(&["waits"]), nothing);
    assert_eq!(back(&["one"]), nothing);
    assert_eq!(back(&["taken", "gone"]), nothing);
    assert_eq!(back(&["taken"]), ["gone"]);
    assert_eq!(back(&["own", "taken"]), ["gone", "hosts"]);
    let before = approved(root.path());
    decide(root.path(), &["reject", "own", "taken"]).ok();
    let mut expected = [before, vec!["gone".to_owned(), "hosts".to_owned()]].concat();
    expected.retain(|id| id != "own" && id != "taken");
    expected.sort();
    assert_eq!(approved(root.path()), expected);
}

#[test]
fn the_desk_says_before_and_after_what_comes_back() {
    let store = [unreviewed("first", "Use npm"), unreviewed("second", "Use pnpm")];
    let root = Root::with("alpha", &store);
    decide(root.path(), &["replace", "first", "--by", "second", "--merge"]).ok();
    let desk = Desk::open(&root);
    let session = desk.enter();
    let card = session.card(0);
    let actions = card["actions"].as_array().unwrap();
    let reject = actions.iter().find(|action| action["key"] == "r").unwrap();
    assert_eq!(reject["label"], "Reject, 1 is unreviewed again");
    assert_eq!(reject["side_effects"], json!(["unreviewed again: first  Use npm"]));
    let reject = json!({ "numbers": [0], "choice": { "do": "reject" } });
    session.tell("/choose", reject);
    let written = session.get("/write");
    assert_eq!(written["side_effects"], json!(["unreviewed again: first  Use npm"]));
    drop(desk);
    decide(root.path(), &["undo"]).ok();

    let terminal = Terminal::new();
    let command = terminal.command(root.path(), &["review", "--plain"]);
    let mut review = Session::start(command);
    review.answer("if you reject it, unreviewed again: first  Use npm", "r no\n");
    review
        .expect("Rejected: ")
        .expect("unreviewed again: first Use npm")
        .answer("Save 1 decision?", "y\n");
    review.expect("unreviewed again: first  Use npm");
    review.end();
    assert_eq!(waits(&root), ["first"]);
}
