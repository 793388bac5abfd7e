//! The desk's second queue: approved memories that may be out of date are kept, edited, replaced
//! and rejected there, and a memory that a person kept has no mark until there is another reason
//! against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ack_memory::api::decision::Verdict;
use ack_memory::internal::{BriefRequest, MEMORIES_AT_START, Setting};
use serde_json::{Value, json};

use crate::changes::git;
use crate::cli::binary;
use crate::curate::{decide, log};
use crate::desk::{Desk, Session as Page, TIMEOUT};
use crate::stale::{marks, repository};
use crate::support::{Root, Sql, ids, memory, run_sql, sorted_ids, unreviewed, write_file};
use crate::terminal::Session;

/// The ids of the queue, as `review` lists it in a folder.
fn stale_ids(root: &Root, folder: &Path) -> Vec<String> {
    let mut command = binary();
    command.arg("--root").arg(root.path()).arg("-C").arg(folder);
    let listed = crate::cli::run(command.args(["review", "--stale", "--list", "--json"])).json();
    sorted_ids(&listed["stale"])
}

fn marked(root: &Root, folder: &Path) -> Vec<String> {
    let folder = folder.to_owned();
    let service = root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", folder)));
    let marks = marks(&service, "query_memories", json!({}));
    marks.into_iter().map(|(id, _)| id).collect()
}

/// The keys of what can be done about a memory.
fn keys(shown: &Value) -> Vec<&str> {
    let actions = shown["actions"].as_array().unwrap().iter();
    actions.map(|action| action["key"].as_str().unwrap()).collect()
}

#[test]
fn stale_memories_are_decided_by_keys_and_kept_ones_are_marked_again_only_for_new_evidence() {
    let (root, folder) = repository();
    assert_eq!(marked(&root, &folder), ["both", "gone"]);
    let desk = Desk::open_with(&root, &["--stale", "-C", folder.to_str().unwrap()]);
    let session = desk.enter();
    let summary = session.get("/summary");
    assert_eq!(summary["queue"], "approved", "{summary}");
    assert_eq!(summary["head"]["stale"], 2, "{summary}");
    assert_eq!(summary["head"]["waiting"], 0, "{summary}");
    let view = json!({ "queue": "approved" });
    let queue = json!({ "view": view, "count": 9 });
    let queue = session.tell("/queue", queue);
    assert_eq!(queue["total"], 2, "{queue}");
    let none = session.tell("/queue", json!({ "count": 9 }));
    assert_eq!(none["total"], 0, "{none}");
    let card = |number: usize| {
        let ask = json!({ "number": number, "view": view });
        session.tell("/card", ask)
    };
    let cards = [card(0), card(1)];
    let number = |id: &str| {
        let found = cards.iter().position(|card| card["card"]["id"] == id);
        found.unwrap()
    };
    let (gone, both) = (number("gone"), number("both"));
    let shown = &cards[gone];
    assert_eq!(shown["card"]["marks"][0], "not in the working tree: src/refund.rs:10");
    assert_eq!(keys(shown), ["a", "r"]);
    assert_eq!(shown["actions"][0]["label"], "Keep");
    let choose = |number: usize, choice: &Value| {
        let request = json!({ "numbers": [number], "choice": choice, "view": view });
        session.tell("/choose", request);
    };
    choose(gone, &shown["actions"][0]["choice"]);
    choose(both, &json!({ "do": "replace", "by": "there" }));
    let summary = session.get("/summary");
    assert_eq!(summary["recent"][1]["done"], "kept", "{summary}");
    let written = session.get("/write");
    assert_eq!(written["written"], 2, "{written}");
    assert_eq!(marked(&root, &folder), Vec::<String>::new());
    assert_eq!(stale_ids(&root, &folder), Vec::<String>::new());
    // Another reason is another mark.
    let path = root.scope_folder("shop").join("memory.db");
    run_sql(
        path,
        "UPDATE memories SET stale_after = '2026-02-02', reviewed_at = NULL WHERE id = 'gone'",
    );
    // The decision is newer than that day.
    assert_eq!(marked(&root, &folder), Vec::<String>::new());
    let kept = &log(&root, "shop")[0];
    assert_eq!(kept.verdict, Verdict::Approve);
    assert_eq!(kept.despite.as_deref(), Some("not in the working tree: src/refund.rs:10"));
    decide(root.path(), &["undo"]).ok();
    assert_eq!(marked(&root, &folder), ["both", "gone"]);
}

#[test]
fn a_new_reason_marks_a_kept_memory_again() {
    let (root, folder) = repository();
    let mut keep = crate::curate::with_token(root.path(), &["approve", "gone"]);
    crate::cli::run(keep.arg("-C").arg(&folder)).ok();
    assert_eq!(marked(&root, &folder), ["both"]);
    // The text changed: nobody has approved it, so it waits.
    let path = root.scope_folder("shop").join("memory.db");
    let sql = "UPDATE memories SET files = '[\"src/other.rs\"]' WHERE id = 'gone'";
    run_sql(path, sql);
    let mut again = crate::curate::with_token(root.path(), &["approve", "gone"]);
    crate::cli::run(again.arg("-C").arg(&folder)).ok();
    assert_eq!(marked(&root, &folder), ["both", "gone"]);
    let mut keep = crate::curate::with_token(root.path(), &["approve", "gone"]);
    crate::cli::run(keep.arg("-C").arg(&folder)).ok();
    assert_eq!(marked(&root, &folder), ["both"]);
}

#[test]
fn the_stale_queue_is_reviewed_at_a_terminal() {
    let (root, folder) = repository();
    let mut command = binary();
    command
        .env("GIT_AUTHOR_NAME", "ana")
        .arg("--root")
        .arg(root.path())
        .arg("-C")
        .arg(&folder)
        .args(["review", "--stale", "--plain"]);
    let mut session = Session::start(command);
    session.press("p\na\n= there\nq\ny\n");
    let (code, shown) = session.end();
    assert_eq!(code, Some(0), "{shown}");
    for expected in [
        "2 approved memories may be out of date",
        "1/2",
        "`p` does not work here: it is approved already",
        "Kept: ",
        "Replaced: ",
        "Save 2 decisions?",
    ] {
        assert_contains!(shown, expected);
    }
    assert_eq!(marked(&root, &folder), Vec::<String>::new());
    let verdicts: Vec<Verdict> = log(&root, "shop").iter().map(|line| line.verdict).collect();
    assert_eq!(verdicts, [Verdict::Approve, Verdict::Supersede]);
}

#[test]
fn the_stale_queue_fills_while_the_waiting_one_is_reviewed() {
    let (root, folder) = repository();
    let path = root.scope_folder("shop").join("memory.db");
    let waits = unreviewed("w0", "Waits");
    crate::support::insert(&rusqlite::Connection::open(path).unwrap(), &[waits]);
    let desk = Desk::open_with(&root, &["-C", folder.to_str().unwrap()]);
    let session = desk.enter();
    let since = Instant::now();
    loop {
        let summary = session.get("/summary");
        assert_eq!(summary["head"]["waiting"], 1, "{summary}");
        if summary["head"]["stale"] == 2 {
            let text = summary["head"]["text"].as_str().unwrap();
            let said = "\n2 approved memories may be out of date";
            assert!(text.ends_with(said), "{text}");
            break;
        }
        assert!(since.elapsed() < TIMEOUT, "{summary}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_note_past_its_day_that_check_warns_of_is_in_the_stale_queue() {
    let (root, folder) = repository();
    let notes = folder.join("docs/memory");
    fs::create_dir_all(&notes).unwrap();
    let note = |name: &str, day: &str| {
        let text =
            format!("---\ntype: fact\ntitle: {name}\nstale_after: {day}\n---\nText of {name}.\n");
        write_file(notes.join(format!("{name}.md")), text);
    };
    note("past", "2026-01-31");
    note("later", "2999-01-01");
    git(&folder, &["add", "docs"]);
    git(&folder, &["commit", "-qm", "notes"]);
    let mut check = binary();
    check.arg("check").arg(&notes).arg("--json");
    let report = crate::cli::run(&mut check).json();
    let found = report["findings"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!(found[0]["rule"], "past-day");
    let manifest = format!("store = '{}'\nref = 'HEAD'\n", notes.display());
    root.manifest("notes", &manifest);
    assert_eq!(stale_ids(&root, &folder), ["both", "gone", "past"]);
    // Keeping it takes it out of the queue.
    decide(root.path(), &["approve", "past", "--scope", "notes"]).ok();
    assert_eq!(stale_ids(&root, &folder), ["both", "gone"]);
}

#[test]
fn much_changed_files_are_shown_only_to_the_curator() {
    let (root, folder) = repository();
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-qm", "first"]);
    for number in 0..11 {
        let text = format!("fn pay() {{ {number} }}");
        write_file(folder.join("src/pay.rs"), text);
        git(&folder, &["commit", "-qam", "again"]);
    }
    let fields = json!({ "project": "shop", "files": ["src/pay.rs"] });
    crate::support::insert(
        &rusqlite::Connection::open(root.scope_folder("shop").join("memory.db")).unwrap(),
        &[memory("busy", "Payments are final", fields)],
    );
    assert_eq!(marked(&root, &folder), ["both", "gone"]);
    // Everything that names pay.rs changed as often as it.
    assert!(stale_ids(&root, &folder).contains(&"busy".to_owned()));
    let mut keep = crate::curate::with_token(root.path(), &["approve", "busy"]);
    crate::cli::run(keep.arg("-C").arg(&folder)).ok();
    assert!(!stale_ids(&root, &folder).contains(&"busy".to_owned()));
}

/// A project with so many approved memories, and one that waits.
fn project(approved: usize) -> (Root, PathBuf) {
    let root = Root::new();
    let folder = root.path().join("shop");
    fs::create_dir_all(&folder).unwrap();
    let paths = folder.to_str().unwrap();
    let settings = format!("projects = [\"shop\"]\npaths = [{paths:?}]\n");
    root.manifest("alpha", &settings);
    let made = |id: &str, day: usize, status: &str| {
        let title = format!("Lesson {id} of the {}th shelf", day * 7);
        let created = format!("2026-01-{day:02}T00:00:00Z");
        memory(id, &title, json!({ "status": status, "project": "shop", "created_at": created }))
    };
    let mut memories: Vec<Value> =
        (0..approved).map(|n| made(&format!("a{n}"), n + 1, "approved")).collect();
    memories.push(made("new", 20, "staging"));
    memories.push(memory(
        "older",
        "What the new one replaces",
        json!({ "project": "kiosk", "superseded_by": "new", "created_at": "2025-01-01T00:00:00Z" }),
    ));
    memories.push(memory(
        "refused",
        "Rejected anyway",
        json!({ "status": "rejected", "superseded_by": "new" }),
    ));
    let path = root.store("alpha", &memories);
    run_sql(
        path,
        "UPDATE memories SET session = 's1' WHERE id = 'new';
             INSERT INTO sessions (id, title) VALUES ('s1', 'The night of the shelves')",
    );
    (root, folder)
}

/// The ids of the memories that the next session starts with or without, by what changes about them.
fn next_session(session: &Page, changes: &[&str]) -> Vec<String> {
    let answer = session.tell("/session", json!({ "number": 0 }));
    let lines = answer["lines"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let is_wanted = |line: &&Value| changes.contains(&line["change"].as_str().unwrap());
    let wanted = lines.iter().filter(is_wanted).cloned().collect();
    ids(&Value::Array(wanted))
}

#[test]
fn the_next_session_of_another_project_counts_what_is_not_saved_yet() {
    let root = Root::new();
    let lessons = (0..9).map(|n| {
        let (title, word) = (format!("Lesson {n}"), ["tin", "oak", "wax"][n % 3].repeat(n + 1));
        let status = if n < 7 { "approved" } else { "staging" };
        let created = format!("2026-01-0{}T00:00:00Z", n + 1);
        let more = json!({
            "project": "elsewhere", "status": status, "facts": [word], "created_at": created,
        });
        memory(&format!("a{n}"), &title, more)
    });
    root.store("alpha", &lessons.collect::<Vec<_>>());
    let desk = Desk::open(&root);
    let session = desk.enter();
    assert_eq!(next_session(&session, &["leaves"]), ["a1"]);
    let answer = session.tell("/session", json!({ "number": 0 }));
    assert_eq!(answer["project"], "elsewhere");
    assert_contains!(answer["says"].as_str().unwrap(), "Still found by search. Session start: ");
    // The other one that waits is approved, and not saved.
    session.choose(1, json!({ "do": "approve" }));
    assert_eq!(next_session(&session, &["leaves"]), ["a2"]);
    assert_eq!(next_session(&session, &["enters"]), ["a7"]);
    // Nothing of it reaches an agent.
    let started = root
        .service()
        .session_brief(&BriefRequest { own: MEMORIES_AT_START, ..BriefRequest::default() });
    assert_lacks!(format!("{started:?}"), "a7");
}

#[test]
fn a_memory_that_is_approved_and_not_saved_is_a_neighbour_like_a_saved_one() {
    let root = Root::new();
    let staging = |fact: &str| json!({ "status": "staging", "facts": [fact] });
    let memories = [
        memory("w0", "Retries need jitter", staging("Jitter spreads load")),
        memory("w1", "Retries need jitter", staging("Jitter spreads load")),
    ];
    root.store("alpha", &memories);
    let desk = Desk::open(&root);
    let session = desk.enter();
    let near = || session.tell("/near", json!({ "number": 1 }));
    assert_eq!(near(), json!([]));
    session.choose(0, json!({ "do": "approve" }));
    let found = near();
    assert_eq!((&found[0]["id"], &found[0]["held"]), (&json!("w0"), &json!(true)), "{found}");
    assert_eq!(found[0]["label"], "duplicate");
    assert_eq!(keys(&found[0]), ["m", "d", "="]);
    session.get("/back");
    assert_eq!(near(), json!([]), "a decision that was undone is no neighbour");
}

#[test]
fn the_card_shows_hidden_and_displaced_memories_and_the_origin() {
    for (approved, pushed_out) in [(8, true), (3, false)] {
        let (root, folder) = project(approved);
        let desk = Desk::open_with(&root, &["-C", folder.to_str().unwrap()]);
        let session = desk.enter();
        let card = session.card(0);
        assert_eq!(card["actions"][0]["label"], "Approve, hides 1 older", "{card}");
        assert_eq!(card["card"]["session_title"], "The night of the shelves");
        let leaves = next_session(&session, &["leaves"]);
        assert_eq!(leaves == ["a2"], pushed_out, "{leaves:?}");
    }
}

#[test]
fn the_predicted_displaced_memories_are_those_missing_after_approval() {
    let dated = |at: &str| json!({ "project": "shop", "created_at": at });
    let cases = [
        // The newest; as old, but a decision; old; a copy of an existing one.
        ("Shelves are counted at night", "2026-02-20T00:00:00Z", "bugfix"),
        ("Shelves are counted at night", "2024-01-01T00:00:00Z", "decision"),
        ("Shelves are counted at night", "2024-01-01T00:00:00Z", "bugfix"),
        ("Lesson 5 of the shop", "2026-02-20T00:00:00Z", "bugfix"),
    ];
    let mut predicted = Vec::new();
    for (title, created, kind) in cases {
        let (root, folder) = project(0);
        let path = root.scope_folder("alpha").join("memory.db");
        let store = rusqlite::Connection::open(&path).unwrap();
        store.sql("DELETE FROM memories");
        let words = "printer drawer scanner receipt voucher backlight keyboard customs";
        let mut memories: Vec<Value> = (0..)
            .zip(words.split(' '))
            .map(|(n, word): (usize, _)| {
                let title = format!("Lesson {n} of the shop");
                let mut one = memory(&format!("a{n}"), &title, dated("2026-01-01T00:00:00Z"));
                one["created_at"] = json!(format!("2026-01-0{}T00:00:00Z", n + 1));
                one["facts"] = json!([format!("about the {word}")]);
                one
            })
            .collect();
        let mut new = memory("new", title, dated(created));
        (new["status"], new["type"]) = (json!("staging"), json!(kind));
        memories.push(new);
        crate::support::insert(&store, &memories);
        let started = || {
            let service = root.service();
            let brief = service.session_brief(&BriefRequest {
                project_path: Some(folder.to_str().unwrap().to_owned()),
                own: MEMORIES_AT_START,
                ..BriefRequest::default()
            });
            let hits = brief.unwrap().context.recent_memories;
            hits.into_iter().map(|hit| hit.id).collect::<Vec<_>>()
        };
        let desk = Desk::open_with(&root, &["-C", folder.to_str().unwrap()]);
        let session = desk.enter();
        let predicted_after = next_session(&session, &["stays", "enters"]);
        let leaves = next_session(&session, &["leaves"]);
        let before = started();
        store.sql("UPDATE memories SET status = 'approved' WHERE id = 'new'");
        let after = started();
        let gone: Vec<&String> = before.iter().filter(|id| !after.contains(id)).collect();
        assert!(gone.len() <= 1 && before.len() == MEMORIES_AT_START, "{before:?} {after:?}");
        assert_eq!(leaves.iter().collect::<Vec<_>>(), gone, "{title}");
        assert_eq!(predicted_after, after, "{title}");
        predicted.push(gone.first().map(|gone| (*gone).clone()));
    }
    let predicted: Vec<Option<&str>> = predicted.iter().map(Option::as_deref).collect();
    // The third is too old, and a memory that is shown contains the last.
    assert_eq!(predicted, [Some("a2"), Some("a2"), None, None]);
}

#[test]
fn the_list_names_the_nearest_approved_memories() {
    let root = Root::new();
    let keep = json!({ "facts": ["Jitter spreads load"] });
    let first = json!({ "status": "staging", "facts": ["Jitter spreads load"] });
    let memories =
        [memory("keep", "Retries need jitter", keep), memory("w0", "Retries need jitter", first)];
    root.store("alpha", &memories);
    let listed = crate::cli::ack(root.path(), &["review", "--list"]).ok();
    assert_contains!(listed, "  approved: keep  Retries need jitter  (duplicate)");
    let listed = crate::cli::ack(root.path(), &["review", "--list", "--json"]).json();
    assert_eq!(
        listed["waiting"][0]["nearest"],
        json!([{ "id": "keep", "title": "Retries need jitter", "relation": "same" }])
    );
}
