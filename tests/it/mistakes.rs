//! What goes wrong while a person decides: each message says what was wrong, what is allowed and
//! what to do next, and nothing is lost.

use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cli::{ack, binary, run};
use crate::curate::{decide, log, staged};
use crate::support::{Root, memory};
use crate::terminal::{Session, Terminal};

/// Four lessons that wait.
fn lessons(place: &str) -> Root {
    let root = Root::new();
    let titles = [
        ("les-0001", "Use pnpm"),
        ("les-0002", "Retries need jitter"),
        ("les-0003", "The lock is held by two writers"),
        ("les-0104", "Fonts come from the disk"),
    ];
    let memories = (1..).zip(titles).map(|(day, (id, title))| {
        let created = format!("2026-01-0{day}T00:00:00Z");
        memory(
            id,
            title,
            json!({ "status": "staging", "type": "gotcha", "created_at": created }),
        )
    });
    root.store("alpha", &memories.collect::<Vec<Value>>());
    root.manifest("alpha", &format!("decisions = \"{place}\"\n"));
    root
}

/// What a refused command says.
#[track_caller]
fn refused(root: &Root, arguments: &[&str]) -> String {
    let outcome = run(&mut crate::curate::with_token(root.path(), arguments));
    assert_ne!(outcome.code, Some(0), "{arguments:?}: {}", outcome.out);
    assert_eq!(outcome.out, "", "{arguments:?}");
    outcome.err
}

#[track_caller]
fn says(told: &str, words: &[&str]) {
    for word in words {
        assert!(told.contains(word), "{word:?} is not in: {told}");
    }
}

#[test]
fn ids_that_mean_nothing_or_several_memories_are_refused_with_a_hint() {
    let root = lessons("log");
    let told = refused(&root, &["approve", "les-0009"]);
    says(
        &told,
        &["no memory has the id `les-0009`", "did you mean `les-0001`"],
    );
    let told = refused(&root, &["approve", "les-0"]);
    says(
        &told,
        &[
            "begins the ids of several memories",
            "les-0104 in alpha",
            "give more of the id",
        ],
    );
    let many = Root::new();
    let store: Vec<Value> = (10..22)
        .map(|n| memory(&format!("m-{n}"), "Lesson", json!({})))
        .collect();
    many.store("alpha", &store);
    says(&refused(&many, &["reject", "m-"]), &[" and 4 more"]);
    assert!(log(&root, "alpha").is_empty());
}

#[test]
fn a_decision_that_was_made_already_is_named_and_not_written_again() {
    for place in ["log", "store"] {
        let root = lessons(place);
        decide(root.path(), &["approve", "les-0001"]).ok();
        let again = decide(root.path(), &["approve", "les-0001", "les-0002"]);
        says(
            &again.err,
            &["note: les-0001 is approved already (process:ana, "],
        );
        says(&again.out, &["wrote 1 decision:", "approved  les-0002"]);
        let again = decide(root.path(), &["approve", "les-0001"]);
        assert_eq!(
            (again.code, again.out.as_str()),
            (Some(0), "nothing was decided\n")
        );
        let told = decide(root.path(), &["approve", "les-0001", "--json"]).json();
        assert_eq!(
            (&told["written"], &told["decisions"]),
            (&json!(0), &json!([]))
        );
        // With a reason it says something new, and another verdict is another decision.
        decide(
            root.path(),
            &["approve", "les-0001", "--because", "seen twice"],
        )
        .ok();
        says(
            &decide(root.path(), &["promote", "les-0001"]).ok(),
            &["promoted  les-0001"],
        );
        // Each undo goes one command further back, and says what it was.
        for (undone, now) in [
            ("les-0001", ""),
            ("les-0001", ""),
            ("les-0002", "waits again: les-0002"),
        ] {
            let told = decide(root.path(), &["undo"]).ok();
            says(&told, &["undid 1 decision of batch", undone, now]);
        }
        decide(root.path(), &["undo"]).ok();
        says(
            &refused(&root, &["undo"]),
            &["there is nothing to undo", "--include history"],
        );
    }
}

#[test]
fn of_many_decisions_that_were_made_already_only_some_are_named() {
    let root = Root::new();
    staged(&root, "alpha", 25);
    decide(root.path(), &["approve", "--waiting", "--yes"]).ok();
    let ids: Vec<String> = (0..25).map(|number| format!("alpha-{number:04}")).collect();
    let mut words = vec!["approve"];
    words.extend(ids.iter().map(String::as_str));
    let again = decide(root.path(), &words);
    assert_eq!(again.err.matches("is approved already").count(), 20);
    says(&again.err, &["note: and 5 more\n"]);
}

#[test]
fn a_memory_replaces_neither_itself_nor_what_replaced_it() {
    for place in ["log", "store"] {
        let root = lessons(place);
        let told = refused(&root, &["merge", "les-0001", "--into", "les-0001"]);
        says(&told, &["it is the same memory", "name another memory"]);
        decide(root.path(), &["supersede", "les-0001", "--by", "les-0002"]).ok();
        let told = refused(&root, &["supersede", "les-0002", "--by", "les-0001"]);
        says(
            &told,
            &["that memory already replaced it", "name another memory"],
        );
        decide(root.path(), &["supersede", "les-0002", "--by", "les-0003"]).ok();
        let told = refused(&root, &["supersede", "les-0003", "--by", "les-0001"]);
        says(&told, &["that memory already replaced it, through others"]);
        let told = refused(&root, &["supersede", "les-0104", "--by", "les-0001"]);
        says(&told, &["`les-0002` replaced it"]);
        decide(root.path(), &["reject", "les-0104"]).ok();
        let told = refused(&root, &["merge", "les-0003", "--into", "les-0104"]);
        says(&told, &["it was rejected"]);
    }
}

#[test]
fn a_filter_that_fits_nothing_or_everything_decides_nothing_by_itself() {
    let root = lessons("log");
    let told = refused(&root, &["reject", "--type", "decision"]);
    says(&told, &["no pending memory matches", "review --list"]);
    let terminal = Terminal::new();
    let ask = || {
        let command = terminal.command(root.path(), &["reject", "--waiting"]);
        let mut asked = Session::start(command);
        asked.expect("les-0104").expect("Reject 4 memories? [y/N]");
        asked
    };
    for (key, code) in [("n", 0), ("\n", 0), ("\u{3}", 130)] {
        let mut asked = ask();
        asked.press(key).expect("nothing was decided");
        assert_eq!(asked.end().0, Some(code), "{key:?}");
    }
    let mut asked = ask();
    asked.signal(Signal::SIGINT).expect("nothing was decided");
    assert_eq!(asked.end().0, Some(130));
    assert!(log(&root, "alpha").is_empty());
}

#[test]
fn without_a_terminal_nothing_is_decided_and_the_way_for_scripts_is_named() {
    let root = lessons("log");
    for arguments in [
        &["approve", "les-0001"][..],
        &["reject", "--waiting"],
        &["review", "--tty"],
        &["undo"],
    ] {
        let told = ack(root.path(), arguments);
        assert_eq!(told.code, Some(1), "{arguments:?}");
        let words = [
            "nothing was decided",
            "run it in a terminal",
            "ACK_MEM_CURATOR_TOKEN",
        ];
        says(&told.err, &words);
    }
    assert!(log(&root, "alpha").is_empty());
}

/// `review --tty` of a person.
fn review(root: &Root, editor: &str) -> Command {
    let mut command = binary();
    command
        .env("USER", "ana")
        .env("HOME", root.path())
        .env_remove("VISUAL")
        .env("EDITOR", editor)
        .arg("--root")
        .arg(root.path())
        .args(["review", "--tty"]);
    command
}

#[test]
fn an_editor_that_fails_changes_nothing_and_the_sitting_goes_on() {
    let root = lessons("log");
    let mut sitting = Session::start(review(&root, "false"));
    sitting
        .expect("a approve, r reject, e edit")
        .expect("? explains all keys")
        .expect("q ? > ")
        .press("r 2\n")
        .expect("q ? > ")
        .press("e\n")
        .expect("the editor `false` failed")
        .expect("set VISUAL or EDITOR")
        .expect("edit again, with what you wrote? [y/n]")
        .press("n\n")
        .expect("nothing was changed")
        .expect("q ? > ")
        .press("q\n")
        .expect("1 decision: write? [y/n]")
        .press("y\n")
        .expect("rejected  les-0001");
    sitting.end();
    assert_eq!(log(&root, "alpha").len(), 1);
}

#[test]
fn of_two_sittings_the_second_one_is_told_what_the_first_one_decided() {
    for place in ["log", "store"] {
        let root = lessons(place);
        let mut sitting = Session::start(review(&root, "true"));
        sitting
            .expect("q ? > ")
            .press("r\n")
            .expect("q ? > ")
            .press("r\n");
        sitting
            .expect("q ? > ")
            .press("q\n")
            .expect("2 decisions: write?");
        decide(root.path(), &["approve", "les-0001"]).ok();
        sitting
            .press("y\n")
            .expect("wrote 1 decision:")
            .expect("rejected  les-0002")
            .expect("les-0001 changed, or somebody decided about it, since it was read")
            .expect("undo: ");
        sitting.end();
        assert_eq!(
            crate::curate::approved(root.path()),
            ["les-0001"],
            "{place}"
        );
    }
}
