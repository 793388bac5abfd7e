//! `decisions = "store"`: a person's decisions are written into the native store, completely or not
//! at all, and by nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::cli::{ack, claude_mem};
use crate::curate::{approved, decide, log, staged, with_token};
use crate::desk::Desk;
use crate::support::{Root, memory};

const IN_STORE: &str = "decisions = \"store\"\n";

/// A scope with memories that wait, whose decisions go into its store.
fn waiting(count: usize) -> Root {
    let root = Root::new();
    staged(&root, "alpha", count);
    root.manifest("alpha", IN_STORE);
    root
}

fn open(root: &Root) -> Connection {
    Connection::open(root.scope_folder("alpha").join("memory.db")).unwrap()
}

/// Every row of a table as text.
fn rows(root: &Root, sql: &str) -> Vec<String> {
    let connection = open(root);
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let cell = |column| format!("{:?}", row.get_ref(column).unwrap());
        Ok((0..columns).map(cell).collect::<Vec<_>>().join("|"))
    };
    let rows = statement.query_map([], row).unwrap();
    rows.map(Result::unwrap).collect()
}

fn memories(root: &Root) -> Vec<String> {
    rows(root, "SELECT * FROM memories ORDER BY id")
}

fn texts(root: &Root, sql: &str) -> Vec<String> {
    let connection = open(root);
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn decisions_are_written_to_the_store_and_undo_restores_every_value() {
    let root = waiting(5);
    open(&root)
        .execute_batch("UPDATE memories SET status = ' Staging', confidence = 0.5, reviewed_at = x'00ff' WHERE id = 'alpha-0000'")
        .unwrap();
    let before = memories(&root);
    let because = [
        "approve",
        "alpha-0000",
        "alpha-0001",
        "--because",
        "read it",
    ];
    decide(root.path(), &because).ok();
    decide(root.path(), &["reject", "alpha-0002"]).ok();
    decide(
        root.path(),
        &["supersede", "alpha-0001", "--by", "alpha-0000"],
    )
    .ok();
    assert_eq!(approved(root.path()), ["alpha-0000"]);
    assert!(!root.scope_folder("alpha").join("decisions.jsonl").exists());
    assert_eq!(
        texts(
            &root,
            "SELECT id || ' ' || status || ' ' || coalesce(reviewed_by, '-') || ' ' || coalesce(superseded_by, '-')
             FROM memories ORDER BY id"
        ),
        [
            "alpha-0000 approved process:ana -",
            "alpha-0001 approved process:ana alpha-0000",
            "alpha-0002 rejected process:ana -",
            "alpha-0003 staging - -",
            "alpha-0004 staging - -",
        ]
    );
    assert_eq!(
        texts(
            &root,
            "SELECT memory_id || ' ' || action || ' ' || previous_status || ' ' || new_status || ' ' || coalesce(reason, '-')
             FROM curation_log ORDER BY rowid"
        ),
        [
            "alpha-0000 approve staging approved read it",
            "alpha-0001 approve staging approved read it",
            "alpha-0002 reject staging rejected -",
            "alpha-0001 supersede approved approved -",
        ]
    );
    let links = "SELECT from_id || ' ' || kind || ' ' || to_id FROM memory_links";
    assert_eq!(texts(&root, links), ["alpha-0000 supersedes alpha-0001"]);
    let output = ack(root.path(), &["get", "alpha-0000", "--include", "history"]).ok();
    assert!(output.contains("read it"), "{output}");
    for left in [2, 1, 0] {
        let output = decide(root.path(), &["undo"]).ok();
        assert!(output.starts_with("undid "), "{output}");
        let named = "SELECT DISTINCT batch FROM curation_undo";
        assert_eq!(texts(&root, named).len(), left);
    }
    assert_eq!(memories(&root), before, "every value is what it was");
    assert_eq!(texts(&root, links), Vec::<String>::new());
    let nothing = decide(root.path(), &["undo"]).fails(1);
    assert!(nothing.contains("nothing to undo"), "{nothing}");
}

#[test]
fn every_verdict_of_a_list_is_written_and_read_back() {
    let root = waiting(6);
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let before = memories(&root);
    let line = |position: usize, more: Value| {
        let mut entry = listed["waiting"][position].clone();
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry.to_string() + "\n"
    };
    let edit =
        json!({ "title": "As a person wrote it", "facts": ["one", "two"], "narrative": "Long" });
    let lines = line(0, json!({ "verdict": "edit", "edit": edit }))
        + &line(1, json!({ "verdict": "promote" }))
        + &line(2, json!({ "verdict": "stage", "until": "2099-01-01" }))
        + &line(3, json!({ "verdict": "merge", "into": "alpha-0001" }))
        + &line(4, json!({ "verdict": "withdraw" }));
    let file = root.path().join("lines");
    fs::write(&file, lines).unwrap();
    let output = decide(root.path(), &["review", "--apply", file.to_str().unwrap()]).ok();
    assert!(output.contains("5 decisions"), "{output}");
    assert_eq!(approved(root.path()), ["alpha-0000", "alpha-0001"]);
    let got = ack(root.path(), &["get", "alpha-0000", "--json"]).json();
    assert_eq!(got["title"], "As a person wrote it");
    assert_eq!(got["facts"], json!(["one", "two"]));
    assert_eq!(got["narrative"], "Long");
    let statuses = texts(&root, "SELECT status FROM memories ORDER BY id");
    let expected = [
        "approved", "promoted", "staging", "rejected", "staging", "staging",
    ];
    assert_eq!(statuses, expected);
    let head = ack(root.path(), &["review", "--list"]).ok();
    assert!(
        head.starts_with("2 memories wait") && head.contains("1 put off"),
        "{head}"
    );
    // The added column stays; its value is removed.
    decide(root.path(), &["undo"]).ok();
    let without_it: Vec<String> = memories(&root)
        .iter()
        .map(|row| row.trim_end_matches("|Null").to_owned())
        .collect();
    let before: Vec<String> = before
        .iter()
        .map(|row| row.trim_end_matches("|Null").to_owned())
        .collect();
    assert_eq!(without_it, before);
}

#[test]
fn a_memory_changed_meanwhile_is_neither_decided_nor_undone() {
    let root = waiting(3);
    let desk = Desk::open(&root);
    let session = desk.enter();
    for number in 0..3 {
        let request = json!({ "numbers": [number], "choice": { "do": "approve" } });
        assert_eq!(desk.ask(&session, "/choose", request).status, 200);
    }
    // One by its text, one by its status alone.
    open(&root)
        .execute_batch(
            "UPDATE memories SET narrative = 'swapped' WHERE id = 'alpha-0000';
             UPDATE memories SET status = 'rejected' WHERE id = 'alpha-0001'",
        )
        .unwrap();
    let written = desk.ask(&session, "/write", json!({})).json();
    assert_eq!(written["written"], 1, "{written}");
    assert_eq!(written["changed"], json!(["alpha-0000", "alpha-0001"]));
    assert_eq!(approved(root.path()), ["alpha-0002"]);
    // Somebody else decided after it: undo leaves that alone.
    open(&root)
        .execute_batch("UPDATE memories SET status = 'rejected' WHERE id = 'alpha-0002'")
        .unwrap();
    let outcome = decide(root.path(), &["undo"]);
    assert!(
        outcome.err.contains("alpha-0002 changed since"),
        "{}",
        outcome.err
    );
    assert!(!outcome.out.contains("waits again"), "{}", outcome.out);
    assert_eq!(approved(root.path()), Vec::<String>::new());
    let status = "SELECT status FROM memories WHERE id = 'alpha-0002'";
    assert_eq!(texts(&root, status), ["rejected"]);
}

#[test]
fn a_dry_run_of_undo_leaves_out_what_undo_leaves_out() {
    let root = waiting(3);
    let ids = ["alpha-0000", "alpha-0001", "alpha-0002"];
    decide(root.path(), &[&["approve"], &ids[..]].concat()).ok();
    let changed = "UPDATE memories SET status = 'rejected' WHERE id = 'alpha-0001'";
    open(&root).execute_batch(changed).unwrap();
    let before = texts(&root, "SELECT status FROM memories ORDER BY id");
    let shown = decide(root.path(), &["undo", "--dry-run"]);
    let left = "alpha-0001 changed since it was decided; it is left as it is";
    assert!(shown.err.contains(left), "{}", shown.err);
    let shown = shown.ok();
    assert!(shown.contains("would undo 2 decisions"), "{shown}");
    assert!(!shown.contains("alpha-0001"), "{shown}");
    let dry = decide(root.path(), &["undo", "--dry-run", "--json"]).json();
    assert_eq!(
        texts(&root, "SELECT status FROM memories ORDER BY id"),
        before
    );
    let done = decide(root.path(), &["undo", "--json"]).json();
    assert_eq!(dry["changed"], json!(["alpha-0001"]));
    for key in [
        "undone",
        "changed",
        "served_again",
        "wait_again",
        "also_rejected",
    ] {
        assert_eq!(dry[key], done[key], "{key}");
    }
}

#[test]
fn the_history_names_the_day_and_the_other_memory_in_either_place() {
    for settings in ["", IN_STORE] {
        let root = waiting(2);
        root.manifest("alpha", settings);
        let until = ["stage", "alpha-0000", "--until", "2099-01-01"];
        decide(root.path(), &[&until[..], &["--because", "later"]].concat()).ok();
        let merge = ["merge", "alpha-0000", "--into", "alpha-0001"];
        decide(root.path(), &["approve", "alpha-0001"]).ok();
        decide(root.path(), &merge).ok();
        let history = ["get", "alpha-0000", "--include", "history"];
        let shown = decide(root.path(), &history).ok();
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [": until 2099-01-01; later", ", into alpha-0001"] {
            assert!(shown.contains(part), "{settings} {part}: {shown}");
        }
        // What was rejected is not named.
        decide(root.path(), &["reject", "alpha-0001"]).ok();
        let shown = decide(root.path(), &history).out;
        assert!(!shown.contains("into alpha-0001"), "{shown}");
    }
}

#[test]
fn a_rule_of_the_store_that_refuses_a_decision_is_named() {
    let root = waiting(1);
    open(&root)
        .execute_batch(
            "CREATE TRIGGER no BEFORE UPDATE OF status ON memories
             BEGIN SELECT RAISE(ABORT, 'only on Mondays'); END",
        )
        .unwrap();
    let refused = decide(root.path(), &["approve", "alpha-0000"]).fails(1);
    for part in [
        "refuses the decision: only on Mondays",
        "the store's own rules",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains("free space"), "{refused}");
}

#[test]
fn a_store_without_decision_columns_is_refused_clearly() {
    let root = Root::new();
    let folder = root.scope_folder("alpha");
    drop(claude_mem(&folder.join("memory.db")));
    let refused = ack(root.path(), &["scopes", "set", "alpha", "decisions=store"]).fails(1);
    assert!(refused.contains("not a native one"), "{refused}");
    assert!(!folder.join("scope.toml").exists());
    root.manifest("alpha", IN_STORE);
    let id = ack(root.path(), &["review", "--list", "--json"]).json()["waiting"][0]["id"].clone();
    let refused = decide(root.path(), &["approve", id.as_str().unwrap()]).fails(1);
    assert!(
        refused.contains("not a native one (claude-mem)") && refused.contains("decisions=log"),
        "{refused}"
    );
    // A folder of notes.
    let notes = Root::new();
    let folder = notes.scope_folder("alpha").join("notes");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("one.md"),
        "---\ntype: note\nid: one\n---\nA note\n",
    )
    .unwrap();
    notes.manifest("alpha", "decisions = \"store\"\nstore = \"notes\"\n");
    let refused = decide(notes.path(), &["approve", "one"]).fails(1);
    assert!(refused.contains("not a native one"), "{refused}");
    // A native one without a place for the status.
    let bare = Root::new();
    let path = bare.scope_folder("alpha").join("memory.db");
    Connection::open(path)
        .unwrap()
        .execute_batch("CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('one', 'One')")
        .unwrap();
    bare.manifest("alpha", IN_STORE);
    let refused = decide(bare.path(), &["approve", "one"]).fails(1);
    assert!(refused.contains("has no column `status`"), "{refused}");
}

#[test]
fn a_read_only_store_is_left_unchanged() {
    let root = waiting(1);
    // The tests may run as root, whom permissions do not stop, so a journal that cannot be created
    // is used.
    let folder = root.scope_folder("alpha");
    fs::create_dir(folder.join("memory.db-journal")).unwrap();
    let refused = decide(root.path(), &["approve", "alpha-0000"]).fails(1);
    assert!(!refused.is_empty());
    fs::remove_dir(folder.join("memory.db-journal")).unwrap();
    assert_eq!(approved(root.path()), Vec::<String>::new());
    decide(root.path(), &["approve", "alpha-0000"]).ok();
    assert_eq!(approved(root.path()), ["alpha-0000"]);
}

#[test]
fn a_locked_store_is_refused_after_a_timeout() {
    let root = waiting(2);
    let writer = open(&root);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = decide(root.path(), &["approve", "alpha-0000"]).fails(1);
    assert!(
        refused.contains("is locked by another program"),
        "{refused}"
    );
    writer.execute_batch("ROLLBACK").unwrap();
    // A lock that is released in time does no harm.
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let child = with_token(root.path(), &["approve", "alpha-0001"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(700));
    writer
        .execute_batch("UPDATE memories SET status = 'approved' WHERE id = 'alpha-0000'; COMMIT")
        .unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(approved(root.path()), ["alpha-0000", "alpha-0001"]);
}

#[test]
fn two_concurrent_writers_lose_nothing() {
    for journal in ["delete", "wal"] {
        let root = waiting(120);
        open(&root)
            .pragma_update(None, "journal_mode", journal)
            .unwrap();
        let children: Vec<_> = (0..12)
            .map(|writer| {
                let ids = (0..10).map(|n| format!("alpha-{:04}", writer * 10 + n));
                let arguments: Vec<String> =
                    std::iter::once("approve".to_owned()).chain(ids).collect();
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let mut command = with_token(root.path(), &arguments);
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let count = |sql: &str| texts(&root, sql).len();
        assert_eq!(
            count("SELECT id FROM memories WHERE status = 'approved'"),
            120
        );
        assert_eq!(
            count("SELECT memory_id FROM curation_log"),
            120,
            "{journal}"
        );
        assert_eq!(texts(&root, "PRAGMA integrity_check"), ["ok"]);
    }
}

#[test]
fn a_writer_killed_at_any_moment_leaves_all_or_nothing() {
    let root = waiting(400);
    let mut done = BTreeMap::<usize, usize>::new();
    for moment in 0..50_u64 {
        let mut child = with_token(root.path(), &["approve", "--waiting", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(moment * 6));
        let _ = child.kill();
        child.wait().unwrap();
        let seen = ack(root.path(), &["scopes", "--json"]).json();
        let count = seen["scopes"][0]["counts"]["approved"].as_u64().unwrap();
        let count = usize::try_from(count).unwrap();
        *done.entry(count).or_default() += 1;
        let logged = texts(&root, "SELECT memory_id FROM curation_log").len();
        assert_eq!(logged % 400, 0, "half a batch");
        assert_eq!(texts(&root, "PRAGMA integrity_check"), ["ok"]);
        if count > 0 {
            decide(root.path(), &["undo"]).ok();
            open(&root)
                .execute_batch("DELETE FROM curation_log")
                .unwrap();
        }
    }
    let counts: Vec<usize> = done.keys().copied().collect();
    assert_eq!(counts, [0, 400], "{done:?}");
}

/// What the reader says about every memory.
fn read(root: &Root) -> Vec<(String, String, String)> {
    let service = root.service();
    let answer = crate::arguments::call(
        &service,
        "query_memories",
        json!({ "status": "all", "limit": 50 }),
    );
    let answer = answer.unwrap();
    let text = |hit: &Value, key: &str| hit[key].as_str().unwrap_or_default().to_owned();
    let mut seen: Vec<_> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (text(hit, "id"), text(hit, "status"), text(hit, "title")))
        .collect();
    seen.sort();
    seen
}

#[test]
fn the_log_moves_into_the_store_with_the_first_decision() {
    let root = Root::new();
    staged(&root, "alpha", 8);
    open(&root)
        .execute_batch(
            "UPDATE memories SET status = 'approved' WHERE id IN ('alpha-0005', 'alpha-0006')",
        )
        .unwrap();
    decide(root.path(), &["approve", "alpha-0000", "alpha-0001"]).ok();
    decide(root.path(), &["reject", "alpha-0005"]).ok();
    decide(
        root.path(),
        &["supersede", "alpha-0001", "--by", "alpha-0000"],
    )
    .ok();
    decide(root.path(), &["approve", "alpha-0004", "alpha-0003"]).ok();
    let listed = ack(root.path(), &["review", "--list", "--json"]).json();
    let mut entry = listed["waiting"][0].clone();
    entry["verdict"] = json!("edit");
    entry["edit"] = json!({ "title": "Edited" });
    let file = root.path().join("lines");
    fs::write(&file, entry.to_string()).unwrap();
    decide(root.path(), &["review", "--apply", file.to_str().unwrap()]).ok();
    open(&root)
        .execute_batch("UPDATE memories SET narrative = 'swapped' WHERE id = 'alpha-0004'")
        .unwrap();
    let before = read(&root);
    assert!(before.contains(&(
        "alpha-0002".to_owned(),
        "approved".to_owned(),
        "Edited".to_owned()
    )));
    // The switch alone changes nothing for the reader.
    root.manifest("alpha", IN_STORE);
    assert_eq!(read(&root), before);
    decide(root.path(), &["reject", "alpha-0007"]).ok();
    let after = read(&root);
    let left: Vec<_> = before
        .iter()
        .filter(|(id, ..)| id != "alpha-0007")
        .collect();
    assert_eq!(after.iter().collect::<Vec<_>>(), left);
    let folder = root.scope_folder("alpha");
    assert!(!folder.join("decisions.jsonl").exists());
    assert!(folder.join("decisions.settled-1.jsonl").exists());
    assert_eq!(log(&root, "alpha").len(), 0);
    let statuses = texts(
        &root,
        "SELECT id || ' ' || status FROM memories ORDER BY id",
    );
    assert_eq!(
        statuses,
        [
            "alpha-0000 approved",
            "alpha-0001 approved",
            "alpha-0002 approved",
            "alpha-0003 approved",
            "alpha-0004 staging",
            "alpha-0005 rejected",
            "alpha-0006 approved",
            "alpha-0007 rejected",
        ]
    );
    // Batches from the log are undone in the store.
    decide(root.path(), &["undo"]).ok();
    decide(root.path(), &["undo"]).ok();
    let titles = texts(&root, "SELECT title FROM memories WHERE id = 'alpha-0002'");
    assert_ne!(titles, ["Edited"]);
}

#[test]
fn triggers_of_the_owner_keep_running() {
    let root = waiting(1);
    open(&root)
        .execute_batch(
            "CREATE TABLE heard (id TEXT);
             CREATE TRIGGER hear AFTER UPDATE ON memories BEGIN INSERT INTO heard VALUES (new.id); END",
        )
        .unwrap();
    decide(root.path(), &["approve", "alpha-0000"]).ok();
    assert_eq!(texts(&root, "SELECT id FROM heard"), ["alpha-0000"]);
}

#[test]
fn no_decision_is_possible_about_a_duplicate_id() {
    for place in ["log", "store"] {
        let root = Root::new();
        let path = root.scope_folder("alpha").join("memory.db");
        let row = "('twin', 'First twin about retries', 'staging'), ('twin', 'Second twin about retries', 'staging'),
                   ('other', 'Nothing like it', 'staging')";
        Connection::open(&path)
            .unwrap()
            .execute_batch(&format!(
                "CREATE TABLE memories (id TEXT, title TEXT, status TEXT); INSERT INTO memories VALUES {row}"
            ))
            .unwrap();
        root.manifest("alpha", &format!("decisions = \"{place}\"\n"));
        let refused = decide(root.path(), &["reject", "twin"]).fails(1);
        assert!(
            refused.contains("several memories") && refused.contains("`twin`"),
            "{refused}"
        );
        let list = ack(root.path(), &["review", "--list"]).ok();
        assert!(list.contains("! another memory has the same id"), "{list}");
        let desk = Desk::open(&root);
        let session = desk.enter();
        let choose = |number: usize| {
            let request = json!({ "numbers": [number], "choice": { "do": "approve" } });
            desk.ask(&session, "/choose", request).status
        };
        assert_eq!((choose(0), choose(1)), (409, 200));
        let written = desk.ask(&session, "/write", json!({})).json();
        assert_eq!(written["written"], 1, "{written}");
    }
}

#[test]
fn only_commands_run_by_a_person_write() {
    let root = waiting(3);
    let before = crate::support::fingerprint(root.path());
    let mut refused: Command = with_token(root.path(), &["approve", "alpha-0000"]);
    refused.env_remove("ACK_MEM_CURATOR_TOKEN");
    assert_eq!(crate::cli::run(&mut refused).code, Some(1));
    ack(root.path(), &["approve", "alpha-0000", "--dry-run"]).ok();
    ack(root.path(), &["review", "--list"]).ok();
    ack(root.path(), &["query", "lesson"]).ok();
    ack(root.path(), &["undo", "--dry-run"]);
    let mut after = crate::support::fingerprint(root.path());
    after.retain(|path, _| !path.ends_with("curator-token"));
    let names = |all: &BTreeMap<std::path::PathBuf, _>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before));
    let store = root.scope_folder("alpha").join("memory.db");
    assert_eq!(after.get(&store), before.get(&store));
    // Its own rows and those of the owner's program coexist.
    let path = root.scope_folder("alpha").join("memory.db");
    crate::support::insert(
        &Connection::open(path).unwrap(),
        &[memory("late", "Came later", json!({ "status": "staging" }))],
    );
    decide(root.path(), &["approve", "late"]).ok();
    assert_eq!(approved(root.path()), ["late"]);
}
