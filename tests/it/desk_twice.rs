//! Several choices about one memory in a review session: the last one counts, and a file with
//! unwritten decisions decides the same.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::curate::{approved, decide, log};
use crate::desk::Desk;
use crate::desk_session::{review, saved, waits};
use crate::support::{Root, run_sql, titled, write_file};
use crate::terminal::Session;

/// An approved memory, an older one, and four that wait, oldest first.
fn queue() -> Root {
    let waiting = [
        ("w0", "Fonts come from the disk of the kiosk", "fonts"),
        ("w1", "Retries need jitter", "retry"),
        ("w2", "The lock is held by two writers", "lock"),
        ("w3", "Deploys leave at midday", "ops"),
    ];
    let waiting = waiting.into_iter().enumerate().map(|(day, (id, title, tag))| {
        let created = format!("2026-01-0{}T00:00:00Z", day + 1);
        let fact = format!("Seen on {tag}");
        waits(id, title, json!({ "created_at": created, "concepts": [tag], "facts": [fact] }))
    });
    let served = [("keep", "Ports are numbers"), ("old", "The kiosk is dark")];
    let served = served.map(|(id, title)| titled(id, title));
    let memories: Vec<Value> = served.into_iter().chain(waiting).collect();
    Root::with("alpha", &memories)
}

/// Types keys into a review session to its end.
fn sit(root: &Root, keys: &str) -> String {
    let mut session = Session::start(review(root));
    session.press(keys);
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    shown
}

/// Applies the file that the session saved.
fn apply(root: &Root) {
    for file in saved(root) {
        decide(root.path(), &["review", "--apply", file.to_str().unwrap()]).ok();
    }
}

/// The last decision about each memory: what it was, and the other memory.
fn last(root: &Root) -> BTreeMap<String, Value> {
    let lines = log(root, "alpha").into_iter();
    lines
        .map(|line| {
            let said = json!([line.verdict, line.into, line.until, line.edit, line.reason]);
            (line.id, said)
        })
        .collect()
}

fn verdict(root: &Root, id: &str) -> String {
    last(root)[id][0].as_str().unwrap().to_owned()
}

#[test]
fn a_memory_that_was_decided_before_is_replaced_by_the_one_approved_in_its_place() {
    for before in ["a", "p", "h 2w", "r no", "m keep"] {
        for end in ["y", "s"] {
            let root = queue();
            let shown = sit(&root, &format!("{before}\ns\n= w0\nk\nk\nk\nq\n{end}\n"));
            assert_contains!(shown, "Approved in place of another one");
            // The card says so when it is shown again.
            assert_contains!(shown.rsplit("1/4").next().unwrap(), "replaced; not saved yet");
            apply(&root);
            let decided = last(&root);
            assert_eq!(decided["w2"][0], "approve", "{before} {end}: {decided:?}");
            assert_eq!(decided["w0"], json!(["supersede", "w2", null, null, null]));
            assert_eq!(decided.len(), 2, "{before} {end}: {decided:?}");
            assert_eq!(approved(root.path()), ["keep", "old", "w2"], "{before} {end}");
        }
    }
}

#[test]
fn undoing_the_replacement_brings_the_earlier_decision_back() {
    let root = queue();
    sit(&root, "h 2w\ns\n= w0\nz\nq\ny\n");
    assert_eq!(last(&root).keys().collect::<Vec<_>>(), ["w0"]);
    assert_eq!(verdict(&root, "w0"), "stage");
    // A later decision about the replaced memory counts.
    let root = queue();
    sit(&root, "s\ns\n= w0\nk\nk\nk\np\nq\ny\n");
    assert_eq!(verdict(&root, "w0"), "promote");
    assert_eq!(verdict(&root, "w2"), "approve");
    // What it replaced stays replaced.
    let root = queue();
    sit(&root, "= old\n= w0\nq\ny\n");
    assert_eq!(last(&root)["old"][1], "w1");
    assert_eq!(approved(root.path()), ["keep", "w1"]);
}

#[test]
fn a_memory_keeps_what_was_merged_into_it_if_it_is_replaced_and_then_approved_after_all() {
    for end in ["y", "s"] {
        let root = queue();
        sit(&root, &format!("m w2\n= w2\na\nq\n{end}\n"));
        apply(&root);
        let decided = last(&root);
        assert_eq!(decided["w0"][1], "w2", "{end}: {decided:?}");
        let edit =
            json!({ "facts": ["Seen on lock", "Seen on fonts"], "concepts": ["lock", "fonts"] });
        assert_eq!(decided["w2"], json!(["approve", null, null, edit, null]), "{end}");
        assert_eq!(approved(root.path()), ["keep", "old", "w1", "w2"], "{end}");
    }
}

#[test]
fn what_a_person_wrote_stays_until_it_is_rejected() {
    let root = queue();
    let desk = Desk::open(&root);
    let session = desk.enter();
    let edit = |number: usize, edit: Value| {
        session.choose(number, json!({ "do": "edit", "edit": edit }));
    };
    let title = |number: usize| session.card(number)["card"]["title"].clone();
    edit(1, json!({ "title": "Retries need full jitter" }));
    // The card has it, and so the form for the next edit.
    assert_eq!(title(1), "Retries need full jitter");
    edit(1, json!({ "facts": ["Seen twice"] }));
    session.choose(1, json!({ "do": "promote" }));
    edit(2, json!({ "title": "The lock has one writer" }));
    session.choose(2, json!({ "do": "approve" }));
    edit(3, json!({ "title": "Deploys leave at night" }));
    session.choose(3, json!({ "do": "reject" }));
    assert_eq!(title(3), "Deploys leave at midday");
    session.get("/back");
    assert_eq!(title(3), "Deploys leave at night");
    session.choose(3, json!({ "do": "reject" }));
    // What is merged into an edited memory is added to what was written.
    session.choose(0, json!({ "do": "merge", "into": "w1" }));
    session.choose(1, json!({ "do": "promote" }));
    assert_eq!(session.get("/write")["written"], 4);
    let decided = last(&root);
    let written = json!({ "title": "Retries need full jitter",
        "facts": ["Seen twice", "Seen on fonts"], "concepts": ["retry", "fonts"] });
    assert_eq!(decided["w1"], json!(["promote", null, null, written, null]));
    let written = json!({ "title": "The lock has one writer" });
    assert_eq!(decided["w2"], json!(["approve", null, null, written, null]));
    assert_eq!(decided["w3"], json!(["reject", null, null, null, null]));
    let learned = session.get("/closing")["projects"].to_string();
    assert_contains!(learned, "Retries need full jitter", "The lock has one writer");
}

#[test]
fn the_editor_begins_with_what_was_written_before() {
    for end in ["y", "s"] {
        let root = queue();
        let editor = root.path().join("editor");
        write_file(&editor, "sed -i '/^title/s/\"$/!\"/' \"$1\"\n");
        let mut command = review(&root);
        command.env("EDITOR", format!("/bin/sh {}", editor.display()));
        let mut session = Session::start(command);
        session.press(&format!("e\nk\ne\nk\np\nq\n{end}\n"));
        let (code, shown) = session.end();
        assert_eq!(code, Some(0), "{shown}");
        apply(&root);
        let written = json!({ "title": "Fonts come from the disk of the kiosk!!" });
        let expected = json!(["promote", null, null, written, null]);
        assert_eq!(last(&root)["w0"], expected, "{end}: {shown}");
    }
}

#[test]
fn undo_gives_the_earlier_decision_back() {
    let root = queue();
    let shown = sit(&root, "a\nk\nr no\nu\nq\ny\n");
    assert_contains!(shown, "Save 1 decision?");
    assert_eq!(verdict(&root, "w0"), "approve");
}

#[test]
fn nothing_is_merged_into_a_memory_that_is_replaced() {
    let root = queue();
    let shown = sit(&root, "= keep\nm keep\nq\ny\n");
    let said = "`keep` cannot take the place of `w1`: you approved another memory in its place";
    assert_contains!(shown, said);
    assert_eq!(approved(root.path()), ["old", "w0"]);
}

#[test]
fn a_file_with_two_replacements_of_one_memory_can_be_applied() {
    let root = queue();
    let shown = sit(&root, "= keep\n= keep\nq\ns\n");
    assert_contains!(shown, "2 decisions are not written, and kept");
    apply(&root);
    assert_eq!(approved(root.path()), ["old", "w0", "w1"]);
    assert_eq!(last(&root)["keep"][1], "w1");
}

#[test]
fn a_file_can_be_applied_after_a_choice_in_the_middle_was_taken_back() {
    let root = queue();
    let mut desk = Desk::open(&root);
    let session = desk.enter();
    let choose = |number: usize, choice: Value| {
        session.choose(number, choice)["summary"]["recent"][0]["key"].clone()
    };
    choose(1, json!({ "do": "supersede", "older": "w0" }));
    let key = choose(0, json!({ "do": "promote" }));
    choose(2, json!({ "do": "merge", "into": "w0" }));
    session.tell("/back", json!({ "key": key }));
    desk.signal(Signal::SIGTERM);
    apply(&root);
    let decided = last(&root);
    assert_eq!(decided["w2"][1], "w1", "{decided:?}");
    assert_eq!(decided["w0"][1], "w1", "{decided:?}");
    assert_eq!(approved(root.path()), ["keep", "old", "w1"]);
}

#[test]
fn an_earlier_decision_counts_if_the_replacement_is_not_written() {
    let root = queue();
    let mut session = Session::start(review(&root));
    session.press("a\ns\n= w0\nq\n").expect("Save 2 decisions?");
    let database = root.scope_folder("alpha").join("memory.db");
    let said = "UPDATE memories SET narrative = 'New text.' WHERE id = 'w2'";
    run_sql(database, said);
    session.press("y\n").expect("wrote 1 decision:");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(approved(root.path()), ["keep", "old", "w0"]);
}

/// Keys that never end the session, whether they are typed at a card or at the last question.
fn key() -> impl Strategy<Value = String> {
    let id = prop::sample::select(vec!["keep", "old", "w0", "w1", "w2", "w3"]);
    let with_id = (prop::sample::select(vec!["m", "d", "u", "u", "o"]), id);
    prop_oneof![
        3 => prop::sample::select(vec!["a", "p", "r no", "4", "h 2w", "j", "j", "k", "k", "k", "z"])
            .prop_map(str::to_owned),
        3 => with_id.prop_map(|(key, id)| format!("{key} {id}")),
    ]
}

/// How many sessions are tried.
fn cases() -> u32 {
    let asked = std::env::var("ACK_TEST_DESK_CASES").ok();
    asked.map_or(12, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_saved_session_decides_the_same_as_a_written_one(keys in prop::collection::vec(key(), 1..16)) {
        let keys = keys.join("\n");
        let (written, applied) = (queue(), queue());
        sit(&written, &format!("{keys}\nq\ny\n"));
        sit(&applied, &format!("{keys}\nq\ns\n"));
        apply(&applied);
        prop_assert_eq!(last(&written), last(&applied));
        prop_assert_eq!(approved(written.path()), approved(applied.path()));
    }
}
