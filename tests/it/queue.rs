//! The review queue: its statistics, what is staged for later, and when the user is warned about
//! it.

use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};

use crate::cli::ack;
use crate::context::project;
use crate::curate::{approved, decide, log};
use crate::hook::{event, message, start};
use crate::support::{Ask, Root, memory, read_text, run_sql, titled, unreviewed, write_file};
use crate::terminal::{Session, Terminal};

fn days_ago(days: i64) -> String {
    (Timestamp::now() - (days * 24).hours()).to_string()
}

fn waiting(id: &str, days: i64) -> Value {
    let fields = json!({ "status": "staging", "project": "p", "created_at": days_ago(days) });
    memory(id, id, fields)
}

fn reviewed(id: &str, status: &str, created: i64, reviewed: i64) -> Value {
    let fields = json!({
        "status": status, "project": "p",
        "created_at": days_ago(created), "reviewed_at": days_ago(reviewed),
    });
    memory(id, id, fields)
}

/// The head of `review --list`.
fn head(root: &Root) -> String {
    let output = ack(root.path(), &["review", "--list"]).ok();
    output.split("\n\n").next().unwrap().trim().to_owned()
}

#[test]
fn the_queue_header_reports_size_age_and_pace() {
    let root = Root::new();
    let ages = [30, 20, 10, 3, 2, 1];
    let mut memories: Vec<Value> =
        ages.iter().enumerate().map(|(n, days)| waiting(&format!("w{n}"), *days)).collect();
    memories.extend((0..5).map(|n| reviewed(&format!("done{n}"), "approved", 40, 2)));
    memories.push(reviewed("refused", "rejected", 5, 1));
    memories.push(reviewed("long-ago", "approved", 90, 80));
    memories.push(memory("born-approved", "x", json!({ "created_at": days_ago(1) })));
    root.store("alpha", &memories);
    // Four arrived (w3, w4, w5, refused); six were decided; w0 is decided by the log.
    decide(root.path(), &["reject", "w0"]).ok();
    let heading = head(&root);
    assert_eq!(
        heading,
        "5 unreviewed memories; median age 3 days, oldest 20 days\n\
         last 7 days: 4 new, 7 decided; at this pace the rest takes 12 days"
    );
    // A filter selects from them; the numbers stay those of the whole queue.
    let output = ack(root.path(), &["review", "--list", "--project", "nowhere"]).ok();
    assert_lacks!(output, "w1");
    let output = ack(root.path(), &["review", "--list", "--json"]).ok();
    let output: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(output["total"], 5);
}

#[test]
fn a_postponed_memory_leaves_the_queue_until_its_day() {
    let root = Root::new().let_agents_review();
    root.store("alpha", &[waiting("now", 3), waiting("later", 9), waiting("past", 5)]);
    decide(root.path(), &["stage", "later", "--until", "2w"]).ok();
    let in_two_weeks = (Timestamp::now() + (14 * 24).hours()).strftime("%Y-%m-%d").to_string();
    let found = &log(&root, "alpha")[0];
    assert_eq!(found.until.as_deref(), Some(in_two_weeks.as_str()));
    let heading = head(&root);
    let said = "2 unreviewed memories; median age 5 days";
    assert!(heading.starts_with(said), "{heading}");
    assert_contains!(heading, "; 1 snoozed");
    let listed = ack(root.path(), &["review", "--list"]).ok();
    assert_lacks!(listed, "later");
    // Every number of what waits is that of the queue.
    let told = ack(root.path(), &["doctor"]).out;
    assert_contains!(told, "0 approved, 2 unreviewed", "; 1 snoozed");
    let scope = ack(root.path(), &["scopes", "-s", "alpha"]).ok();
    assert_contains!(scope, "2 unreviewed, 0 rejected; 1 snoozed");
    let listed = root.service().scopes(json!({}));
    let listed = &listed["scopes"][0];
    assert_eq!((&listed["pending"]["count"], &listed["counts"]["snoozed"]), (&2.into(), &1.into()));
    assert_lacks!(listed["pending"]["ids"], "later");
    let folder = tempfile::tempdir().unwrap();
    let to = ["publish", "alpha", "--to-folder", folder.path().to_str().unwrap()];
    assert_contains!(ack(root.path(), &to).ok(), "2 wait for review");
    // It is still not approved.
    assert_eq!(approved(root.path()), Vec::<String>::new());
    let staged = ack(root.path(), &["query", "--status", "staging", "--json"]).ok();
    assert_contains!(staged, "\"later\"");
    // A day in the past no longer puts anything off.
    let path = root.scope_folder("alpha").join("decisions.jsonl");
    let text = read_text(&path);
    write_file(&path, text.replace(&in_two_weeks, &days_ago(0)[..10]));
    // What this program wrote is gone; without the seal nobody knows.
    std::fs::remove_file(path.with_extension("seal")).unwrap();
    assert!(head(&root).starts_with("3 unreviewed memories"), "{}", head(&root));
    // Whole queues are snoozed without naming anything, and one whose text changed is back.
    let words = ["stage", "--waiting", "--yes", "--until", "2099-01-01"];
    decide(root.path(), &words).ok();
    let none = ack(root.path(), &["review", "--list"]).ok();
    assert_contains!(none, "nothing is unreviewed");
    let content = "UPDATE memories SET narrative = 'other' WHERE id = 'later'";
    run_sql(root.scope_folder("alpha").join("memory.db"), content);
    let listed = ack(root.path(), &["review", "--list"]).ok();
    assert_contains!(listed, "later");
    assert_lacks!(listed, "past");
    for wrong in ["yesterday", "2020-01-01", "soon"] {
        let refused = decide(root.path(), &["stage", "now", "--until", wrong]);
        assert_eq!(refused.code, Some(2), "{wrong}: {}", refused.err);
    }
}

#[test]
fn the_user_is_warned_about_a_queue_that_grows_too_fast() {
    let warning = |waiting_count: usize, decided: usize| {
        let root = Root::new();
        let mut memories: Vec<Value> =
            (0..waiting_count).map(|n| waiting(&format!("w{n}"), 2)).collect();
        memories.extend((0..decided).map(|n| reviewed(&format!("d{n}"), "approved", 30, 3)));
        memories.push(memory("a", "a", json!({ "project": "p" })));
        root.store("p", &memories);
        let folder = project(&root, "p", "main");
        message(start(root.path(), &event(&folder, "startup")))
    };
    let line = warning(60, 20).unwrap();
    let expected = "ack-memory: 60 memories are unreviewed (last 7 days: 60 new, 20 decided): \
                    `ack-memory --root ";
    assert!(line.starts_with(expected), "{line}");
    assert!(line.ends_with(" review` shows them."), "{line}");
    // Decided fast enough, or a short queue.
    assert_eq!(warning(60, 21), None);
    assert_eq!(warning(50, 0), None);
}

#[test]
fn in_a_folder_of_no_scope_the_user_is_warned_about_all_queues_together() {
    let root = Root::new();
    for scope in ["p", "q"] {
        let fresh = (0..30).map(|n| waiting(&format!("{scope}-w{n}"), 2));
        let mut memories: Vec<Value> = fresh.collect();
        memories.push(reviewed(&format!("{scope}-d"), "approved", 30, 3));
        root.store(scope, &memories);
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let line = message(start(root.path(), &event(elsewhere.path(), "startup"))).unwrap();
    let expected = "60 memories are unreviewed (last 7 days: 60 new, 2 decided)";
    assert_contains!(line, expected);
}

#[test]
fn scopes_and_doctor_report_the_pace_of_the_queue() {
    let root = Root::new();
    let mut memories = vec![waiting("w0", 2), waiting("w1", 30)];
    memories.push(reviewed("done", "approved", 40, 2));
    root.store("alpha", &memories);
    root.store("calm", &[waiting("w2", 30)]);
    let pace = "last 7 days: 1 new, 1 decided";
    let listed = ack(root.path(), &["scopes", "--json"]).json();
    assert_eq!(listed["scopes"][0]["pending"]["pace"], pace);
    assert_eq!(listed["scopes"][1]["pending"]["pace"], Value::Null);
    assert_contains!(ack(root.path(), &["scopes", "--scope", "alpha"]).ok(), pace);
    assert_contains!(ack(root.path(), &["doctor"]).out, pace);
}

/// Memories that wait: two about a lock, one of which is snoozed later, and one about fonts.
fn about_locks() -> Root {
    let root = Root::new();
    let memories = [
        unreviewed("f-1", "Fonts come from the disk of the kiosk"),
        unreviewed("l-1", "A deadlock of two writers is a timeout"),
        unreviewed("l-2", "The xylophone waits for a deadlock"),
        titled("a-1", "A deadlock shows in pg_locks"),
    ];
    root.store("alpha", &memories);
    root
}

#[test]
fn a_review_for_a_question_has_what_matches_the_best_first() {
    let root = about_locks();
    let listed = |arguments: &[&str]| {
        let words = [&["review", "--list", "--json", "--for"], arguments].concat();
        let listed = ack(root.path(), &words).json();
        let ids = listed["waiting"].as_array().unwrap().iter();
        ids.map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["xylophone deadlock"])[0], "l-2");
    assert_eq!(listed(&["deadlock timeout"])[0], "l-1");
    assert!(!listed(&["deadlock"]).contains(&"a-1".to_owned()));
    // An id finds that memory alone, and filters still apply.
    assert_eq!(listed(&["l-2"]), ["l-2"]);
    assert_eq!(listed(&["l-"]).len(), 2);
    assert!(listed(&["deadlock", "--project", "nowhere"]).is_empty());
    decide(root.path(), &["stage", "l-2", "--until", "2w"]).ok();
    assert!(!listed(&["xylophone deadlock"]).contains(&"l-2".to_owned()));
    let mut session = Session::start(crate::desk_session::review(&root));
    session.expect("2 unreviewed memories").press("q\n");
    session.end();
    let mut command = crate::desk_session::review(&root);
    let mut session = Session::start({
        command.args(["--for", "deadlock timeout"]);
        command
    });
    session.expect("A deadlock of two writers").press("q\n");
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn a_person_who_asks_reads_how_many_unreviewed_match_and_what_opens_them() {
    let root = about_locks();
    let mut terminal = Terminal::sized(100, 40);
    let shown = terminal.plain(root.path(), &["query", "deadlock"]);
    let named = "2 unreviewed match: `ack-memory review --for deadlock`";
    assert_contains!(shown, "A deadlock shows in pg_locks", named);
    let listed = ack(root.path(), &["review", "--for", "deadlock", "--list", "--json"]).json();
    assert_eq!(listed["total"], 2);
    let shown = terminal.plain(root.path(), &["query", "why a deadlock", "-s", "alpha"]);
    assert_contains!(shown, "`ack-memory review --for 'why a deadlock' --scope alpha`");
    let shown = terminal.plain(root.path(), &["get", "l-2"]);
    assert_contains!(shown, "1 unreviewed memory matches: `ack-memory review --for l-2`");
    let shown = terminal.plain(root.path(), &["get", "l"]);
    assert_contains!(shown, "2 unreviewed match: `ack-memory review --for l`");
    // A filter that `review` lacks, and another status: as before. A pipe gets no more than before.
    let shown = terminal.plain(root.path(), &["query", "deadlock", "--since", "2020-01-01"]);
    assert_lacks!(shown, "review --for");
    assert_lacks!(terminal.plain(root.path(), &["query", "deadlock", "-a"]), "review --for");
    assert_lacks!(ack(root.path(), &["query", "deadlock"]).ok(), "review --for");
}
