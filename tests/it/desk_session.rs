//! A review session at the terminal: no decision is ever lost, and memories that are much alike are
//! decided together.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::cli::{ack, binary};
use crate::curate::{approved, decide, log};
use crate::support::{Root, memory, read_text, run_sql, write_file};
use crate::terminal::Session;

/// `review` of a person, line by line.
pub fn review(root: &Root) -> Command {
    review_with(root, &["--plain"])
}

/// `review` of a person at a terminal.
pub fn review_with(root: &Root, arguments: &[&str]) -> Command {
    let mut command = binary();
    command
        .env("GIT_AUTHOR_NAME", "ana")
        .env("HOME", root.path())
        .env_remove("VISUAL")
        .arg("--root")
        .arg(root.path())
        .arg("review")
        .args(arguments);
    command
}

pub fn waits(id: &str, title: &str, rest: Value) -> Value {
    let mut memory = memory(id, title, rest);
    memory["status"] = json!("staging");
    memory
}

/// Three lessons that have nothing in common, oldest first.
pub fn three() -> Root {
    let lessons = [
        ("w0", "Fonts come from the disk of the kiosk", "2026-01-01"),
        ("w1", "Retries need jitter", "2026-01-02"),
        ("w2", "The lock is held by two writers", "2026-01-03"),
    ];
    let memories = lessons.map(|(id, title, day)| {
        waits(id, title, json!({ "created_at": format!("{day}T00:00:00Z") }))
    });
    Root::with("alpha", &memories)
}

/// The files that decisions were saved to.
pub fn saved(root: &Root) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.path().join("unwritten"));
    let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut saved: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().contains("unwritten-decisions-")).collect();
    saved.sort();
    saved
}

fn verdicts(root: &Root) -> Vec<(String, &'static str)> {
    let log = log(root, "alpha").into_iter();
    log.map(|line| (line.id, line.verdict.as_str())).collect()
}

#[test]
fn a_first_interrupt_asks_and_a_second_saves_the_choices() {
    let root = three();
    let mut session = Session::start(review(&root));
    session.expect("lists them > ").press("a\n").expect("2/3");
    session
        .expect("lists them > ")
        .interrupt()
        .answer("Save 1 decision?", "k\n")
        .answer("2/3", "1\n")
        .expect("3/3")
        .expect("lists them > ")
        .interrupt()
        .expect("Save 2 decisions?")
        .interrupt()
        .expect("2 decisions are not written, and kept: ack-memory --root");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(verdicts(&root), []);
    let files = saved(&root);
    let mode = fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!((files.len(), mode & 0o777), (1, 0o600));
    // The next session names them, and they can be applied.
    let mut session = Session::start(review(&root));
    session.press("q\n");
    let (_, shown) = session.end();
    let said = "note: decisions of an earlier review were not written";
    assert_contains!(shown, said);
    let words = ["review", "--apply", files[0].to_str().unwrap()];
    decide(root.path(), &words).ok();
    let decisions = log(&root, "alpha");
    assert_eq!(verdicts(&root), [("w0".to_owned(), "approve"), ("w1".to_owned(), "reject")]);
    assert_eq!(decisions[1].reason.as_deref(), Some("not true"));
    // What was applied whole is not named again.
    assert_eq!(saved(&root), [] as [PathBuf; 0]);
}

#[test]
fn closing_the_terminal_saves_the_choices() {
    for (signal, expected) in [(Signal::SIGHUP, 129), (Signal::SIGTERM, 143)] {
        let root = three();
        let mut session = Session::start(review(&root));
        session.expect("lists them > ").press("a\n").expect("2/3");
        session.expect("lists them > ").signal(signal);
        let (code, shown) = session.end();
        assert_eq!(code, Some(expected), "{shown}");
        let files = saved(&root);
        assert_eq!(files.len(), 1, "{shown}");
        let words = ["review", "--apply", files[0].to_str().unwrap()];
        decide(root.path(), &words).ok();
        assert_eq!(approved(root.path()), ["w0"]);
        // If nothing was decided, nothing is saved.
        let mut session = Session::start(review(&root));
        session.expect("lists them > ").signal(signal);
        session.end();
        assert_eq!(saved(&root), [] as [PathBuf; 0]);
    }
}

#[test]
fn a_file_keeps_the_decisions_that_could_not_be_applied() {
    let root = three();
    let mut session = Session::start(review(&root));
    session.press("a\n4\nq\ns\n").expect("2 decisions are not written, and kept");
    session.end();
    let ours = saved(&root).remove(0);
    let theirs = root.path().join("list.jsonl");
    fs::copy(&ours, &theirs).unwrap();
    let lines = read_text(&ours);
    let database = root.scope_folder("alpha").join("memory.db");
    for (file, narrative, state) in
        [(&theirs, "New text.", "is unchanged"), (&ours, "Newer text.", "has only these now")]
    {
        write_file(&theirs, &lines);
        let mut session = Session::start(review_with(&root, &["--apply", file.to_str().unwrap()]));
        session.expect("Write 2 decisions?");
        run_sql(
            &database,
            &format!("UPDATE memories SET narrative = '{narrative}' WHERE id = 'w1'"),
        );
        session
            .press("y\n")
            .expect("wrote 1 decision:")
            .expect("w1 changed after you read it: nothing was written about it")
            .expect(&format!("the file {state}"));
        let (code, shown) = session.end();
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(verdicts(&root), [("w0".to_owned(), "approve")]);
        decide(root.path(), &["undo"]).ok();
        fs::remove_file(root.scope_folder("alpha").join("decisions.jsonl")).unwrap();
        let _ = fs::remove_file(root.scope_folder("alpha").join("decisions.seal"));
        run_sql(&database, "UPDATE memories SET narrative = NULL WHERE id = 'w1'");
    }
    assert_eq!(read_text(&theirs), lines);
    assert_eq!(read_text(&ours), lines.lines().last().unwrap().to_owned() + "\n");
}

#[test]
fn after_the_last_card_every_card_can_be_reached_again() {
    let root = three();
    let mut session = Session::start(review(&root));
    session
        .press("a\ns\nr no\n")
        // The card that was skipped comes again.
        .answer("2/3", "p\n")
        .answer("Save 3 decisions?", "what\n")
        .answer("Save 3 decisions?", "k\n")
        // All are decided: the last one.
        .answer("3/3", "u\n")
        .expect("Undone.")
        .answer("2/3", "k\n")
        .expect("1/3")
        .expect("approved; not saved yet")
        .press("r no\n")
        .answer("2/3", "q\n")
        .answer("Save 2 decisions?", "y\n")
        .expect("2 decisions:");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(verdicts(&root), [("w2".to_owned(), "reject"), ("w0".to_owned(), "reject")]);
}

#[test]
fn a_filter_that_fits_nothing_more_does_not_end_the_review() {
    let root = three();
    let mut session = Session::start(review(&root));
    session
        .press("/ nowhere\n")
        .answer("No matches. Enter takes the filter away.", "\n")
        .answer("1/3", "/ typ:x\n")
        .expect("`typ:` is not a filter; did you mean `type:`?")
        .answer("No matches. Enter takes the filter away.", "esc\n")
        .answer("1/3", "/ jitter\n")
        .answer("1/1", "a\n")
        .answer("All of it is decided. Enter goes back.", "\n")
        .answer("1/3", "s\n")
        .answer("3/3", "q\n")
        .answer("Save 1 decision? y or Enter save", "c\n")
        .expect("wrote 1 decision:");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(verdicts(&root), [("w1".to_owned(), "approve")]);
}

#[test]
fn unwritable_decisions_are_saved_and_written_later() {
    let root = three();
    let log = root.scope_folder("alpha").join("decisions.jsonl");
    let mut session = Session::start(review(&root));
    session.press("a\na\n").expect("3/3");
    fs::create_dir(&log).unwrap();
    session
        .press("a\ny\n")
        .expect("Ctrl+C keeps the decisions in a file")
        .expect("Save 3 decisions?");
    fs::remove_dir(&log).unwrap();
    session.press("y\n").expect("undo: ack-memory ");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(approved(root.path()), ["w0", "w1", "w2"]);
}

#[test]
fn an_invalid_edit_keeps_the_text_from_the_editor() {
    let root = three();
    // The first time a mistake, the second time what was meant.
    let editor = root.path().join("editor");
    write_file(
        &editor,
        "if grep -q '^title = Better' \"$1\"; then sed -i 's/^title = .*/title = \"Better\"/' \"$1\"\n\
         else sed -i 's/^title = .*/title = Better/' \"$1\"; fi\n",
    );
    let mut command = review(&root);
    command.env("EDITOR", format!("/bin/sh {}", editor.display()));
    let mut session = Session::start(command);
    session
        .press("e\n")
        .expect("line 1 of the edited memory: ")
        .answer("Edit again, with what you wrote? [y/N]", "y\n")
        .answer("2/3", "q\ny\n")
        .expect("1 decision:");
    session.end();
    assert_contains!(ack(root.path(), &["get", "w0"]).ok(), "Better");
    // What it left cannot be read.
    for (script, said) in [
        ("printf '\\351' >> \"$1\"\n", "what the editor saved cannot be read: "),
        ("rm \"$1\"\n", "No such file"),
    ] {
        write_file(&editor, script);
        let mut command = review(&root);
        command.env("EDITOR", format!("/bin/sh {}", editor.display()));
        let mut session = Session::start(command);
        session.press("e\n").expect(said);
        write_file(
            &editor,
            "LC_ALL=C sed -i 's/^title = .*/title = \"Mended\"/; s/\\xe9//' \"$1\"\n",
        );
        session.answer("Edit again", "y\n").expect("2/2");
        session.press("q\nn\n");
        session.end();
    }
    // An editor that fails is named.
    let mut command = review(&root);
    command.env("EDITOR", "/bin/false");
    let mut session = Session::start(command);
    session
        .press("e\n")
        .expect("the editor `/bin/false` failed")
        .answer("Edit again", "n\n")
        .answer("nothing was changed", "q\n");
    session.end();
}
