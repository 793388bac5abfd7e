//! `import`: the real binary writes a native store, whole or not at all.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Outcome, ack, ack_with_input, add_scope, binary, claude_mem};
use crate::support::{Root, Sql, fingerprint, sorted_ids, titled, write_file};

/// Lines as a file, and a root whose folder does not exist yet.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix("ack-test-").tempdir().unwrap();
        Self { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn file(&self, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join("lines.jsonl");
        write_file(&path, content);
        path
    }

    /// Imports lines into the scope `new`. Only the store is looked at here:
    /// tests/it/table.rs is about the table.
    fn import(&self, content: impl AsRef<[u8]>, rest: &[&str]) -> Outcome {
        let file = self.file(content);
        let import = ["import", "--no-index", "--scope", "new"];
        let arguments = [&import[..], &[file.to_str().unwrap()], rest].concat();
        ack(&self.root(), &arguments)
    }

    fn report(&self, content: impl AsRef<[u8]>, rest: &[&str]) -> Value {
        self.import(content, &[rest, &["--json"]].concat()).json()
    }

    /// Imports these lines, all of which are good.
    fn add(&self, values: &[Value], rest: &[&str]) {
        self.import(lines(values), rest).ok();
    }

    fn store(&self) -> Connection {
        Connection::open(self.root().join("scopes/new/memory.db")).unwrap()
    }

    /// Id, title and status of every row, by id.
    fn rows(&self) -> Vec<(String, String, String)> {
        let store = self.store();
        let mut statement =
            store.prepare("SELECT id, title, status FROM memories ORDER BY id").unwrap();
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }
}

/// Imports lines from standard input into a scope.
fn import_into(root: &Path, scope: &str, text: impl AsRef<[u8]>) -> Outcome {
    ack_with_input(root, &["import", "-", "--scope", scope], text.as_ref())
}

/// The names in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

/// The paths of the files and folders in a folder.
fn paths(folder: &Path) -> Vec<PathBuf> {
    fingerprint(folder).into_keys().collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Added, updated, unchanged, refused.
fn counts(report: &Value) -> (u64, u64, u64, usize) {
    let count = |key: &str| report[key].as_u64().unwrap();
    (
        count("added"),
        count("updated"),
        count("unchanged"),
        report["refused"].as_array().unwrap().len(),
    )
}

#[test]
fn an_import_creates_a_scope_whose_memories_wait_for_review_by_default() {
    let case = Case::new();
    let report = case.report(
        lines(&[
            json!({ "id": "a", "title": "Tune the xylophone" }),
            json!({ "id": "b", "title": "Oil the xylophone", "status": "approved" }),
            json!({ "id": "c", "title": "Burn the xylophone", "status": "rejected" }),
            json!({ "id": "d", "title": "Share the xylophone", "status": "promoted" }),
        ]),
        &[],
    );
    assert_eq!(counts(&report), (4, 0, 0, 0));
    assert_eq!(report["created"], true);
    for (status, found) in [("approved", "bd"), ("staging", "a"), ("all", "abd")] {
        let query = ["query", "xylophone", "--status", status, "--json"];
        let answer = ack(&case.root(), &query).json();
        assert_eq!(sorted_ids(&answer["results"]).join(""), found);
    }
    let left = listed(&case.root().join("scopes/new"));
    assert_eq!(left, ["memory.db"], "nothing but the store");
    let count = "SELECT count(*) FROM curation_log WHERE action = 'import'";
    let log = case.store().query_row(count, [], |row| row.get(0));
    assert_eq!(log, Ok(4));
}

#[test]
fn every_field_of_a_line_round_trips() {
    let case = Case::new();
    let line = json!({
        "id": "a", "project": "music", "session": "s", "session_id": "s-1", "date": "2026-01-04", "type": "howto", "title": "Tune the xylophone",
        "subtitle": "Once a year", "facts": ["A is 440 Hz"], "tags": ["tuning"], "files": ["bars.txt"], "body": "Long text", "status": "approved",
        "confidence": 0.5, "reviewed_at": "2026-01-05T00:00:00Z", "reviewed_by": "ines", "created_at": "2026-01-04T10:00:00Z", "updated_at": "2026-01-05T00:00:00Z",
    });
    case.import(lines(std::slice::from_ref(&line)), &[]).ok();
    let got = ack(&case.root(), &["get", "a", "--json"]).json();
    for (key, value) in line.as_object().unwrap() {
        let key = match key.as_str() {
            "tags" => "concepts",
            "body" => "narrative",
            other => other,
        };
        assert_eq!(&got[key], value, "{key}");
    }
}

#[test]
fn a_repeated_import_adds_nothing_and_derived_ids_are_stable() {
    let case = Case::new();
    let text = lines(&[
        json!({ "title": "Undated" }),
        json!({ "title": "Dated", "date": "2026-01-04" }),
        json!({ "title": "Written", "created_at": "2026-01-04T10:00:00+02:00", "facts": ["one"] }),
        json!({ "id": "own", "title": "With its own id" }),
    ]);
    assert_eq!(counts(&case.report(&text, &[])), (4, 0, 0, 0));
    let rows = case.rows();
    let derived = |id: &str| id == "own" || id.starts_with("ack_");
    assert!(rows.iter().all(|(id, ..)| derived(id)), "{rows:?}");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(counts(&case.report(&text, &[])), (0, 0, 4, 0));
    assert_eq!(counts(&case.report(&text, &["--update"])), (0, 0, 4, 0));
    assert_eq!(case.rows(), rows);
    // The same lines elsewhere get the same ids.
    let other = Case::new();
    other.import(&text, &[]).ok();
    assert_eq!(other.rows(), rows);
    // More lines come in addition.
    let more = text + &lines(&[json!({ "title": "One more" })]);
    assert_eq!(counts(&case.report(&more, &[])), (1, 0, 4, 0));
}

#[test]
fn one_bad_line_means_that_nothing_is_written() {
    let case = Case::new();
    let mut all: Vec<Value> =
        (0..1000).map(|number| json!({ "title": format!("Memory {number}") })).collect();
    all[499] = json!({ "title": "x", "status": "active" });
    let text = lines(&all);
    case.file(&text);
    let before = paths(case.folder.path());
    let error = case.import(&text, &[]).fails(1);
    assert_contains!(error, "line 500: `status` is `active`");
    assert_contains!(error, "1 of 1,000 lines was refused", "--skip-refused");
    assert_eq!(paths(case.folder.path()), before, "a folder or file was left");
    let report = case.report(&text, &["--skip-refused"]);
    assert_eq!(counts(&report), (999, 0, 0, 1));
    assert_eq!(report["refused"][0]["line"], 500);
    assert_eq!(case.rows().len(), 999);
    // An existing store is left as it is.
    let before = fingerprint(&case.root());
    let error = case.import("{\"title\":\"Good\"}\n{\"titel\":\"Bad\"}", &[]).fails(1);
    assert_contains!(error, "line 2", "did you mean `title`");
    assert_eq!(fingerprint(&case.root()), before);
}

#[test]
fn each_refused_line_is_reported_with_its_reason() {
    let case = Case::new();
    let text = "{\"title\":\"good\"}\n\nnot json\n{\"title\":\"x\",\"statu\":\"approved\"}\n{\"facts\":[]}\n[1]\n{\"title\":\"x\",\"facts\":\"one\"}\n\
                {\"title\":\"x\",\"confidence\":2}\n{\"title\":\"x\",\"date\":\"2026-02-30\"}\n{\"title\":\"x\",\"created_at\":\"soon\"}\n{\"title\":\"x\",\"id\":\"a\\u0007b\"}\n[null,null,null,null,null,null,\"A list\"]\n";
    let error = case.import(text, &[]).fails(1);
    for (line, parts) in [
        (3, "not a JSON object"),
        (4, "did you mean `status`?"),
        (5, "`title` is missing"),
        (6, "a JSON array, not an object"),
        (7, "`facts`"),
        (8, "`confidence` is 2; allowed is 0 to 1"),
        (9, "`date` is `2026-02-30`"),
        (10, "`created_at` is `soon`"),
        (11, "`id` is `ab`"),
        (12, "a JSON array, not an object"),
    ] {
        let reason = error.lines().find(|text| text.starts_with(&format!("line {line}: ")));
        assert!(
            reason.is_some_and(|reason| reason.contains(parts)),
            "line {line}: {parts} is not in {reason:?}"
        );
    }
    assert_lacks!(error, "line 1:", "line 2:");
}

#[test]
fn a_long_list_of_refusals_is_cut_and_counted() {
    let error = Case::new().import("{}\n".repeat(100), &[]).fails(1);
    let named = error.lines().filter(|line| line.starts_with("line "));
    assert_eq!(named.count(), 20, "{error}");
    assert_contains!(error, "and 80 more");
}

#[test]
fn with_json_an_error_is_nothing_but_the_error_body() {
    let case = Case::new();
    let error = case.import("{}\n", &["--json"]).fails(1);
    let body: ack_api::ErrorBody = serde_json::from_str(&error)
        .unwrap_or_else(|problem| panic!("standard error is no error body ({problem}): {error}"));
    assert_eq!(body.code, "import_refused");
}

#[test]
fn changed_content_is_refused_and_replaced_with_update() {
    let case = Case::new();
    let [one, two] = [json!({ "id": "a", "title": "One" }), json!({ "id": "b", "title": "Two" })];
    case.add(&[one, two.clone()], &[]);
    let changed = lines(&[json!({ "id": "a", "title": "One, corrected" }), two]);
    assert_contains!(case.import(&changed, &[]).fails(1), "line 1", "--update");
    assert_eq!(case.rows()[0].1, "One");
    assert_eq!(counts(&case.report(&changed, &["--update"])), (0, 1, 1, 0));
    assert_eq!(case.rows()[0].1, "One, corrected");
}

#[test]
fn a_dry_run_writes_nothing() {
    let case = Case::new();
    let text = lines(&[json!({ "id": "a", "title": "One" })]);
    case.file(&text);
    let before = paths(case.folder.path());
    let output = case.import(&text, &["--dry-run"]).ok();
    let told = "1 memory would be added, 0 replaced, 0 unchanged; 0 lines refused\n";
    assert!(output.starts_with(told), "{output}");
    assert_eq!(paths(case.folder.path()), before, "a folder or file was left");

    case.import(&text, &[]).ok();
    let before = fingerprint(&case.root());
    let more = lines(&[json!({ "id": "a", "title": "Changed" }), json!({ "title": "More" })]);
    let report = case.report(&more, &["--dry-run", "--update"]);
    assert_eq!(counts(&report), (1, 1, 0, 0));
    assert_eq!(fingerprint(&case.root()), before);
    // Nor does it touch a write-ahead log.
    left_behind(&case.root().join("scopes/new/memory.db"), |connection| {
        connection.sql("PRAGMA journal_mode = WAL; UPDATE memories SET title = 'Two'");
    });
    let before = fingerprint(&case.root());
    let report = case.report(&more, &["--dry-run", "--update"]);
    assert_eq!(counts(&report), (1, 1, 0, 0));
    assert_eq!(fingerprint(&case.root()), before);
}

/// Changes a database like a program that is killed: its write-ahead log stays.
fn left_behind(path: &Path, change: impl FnOnce(&Connection)) {
    let connection = Connection::open(path).unwrap();
    change(&connection);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let (database, content) = (std::fs::read(path).unwrap(), std::fs::read(&log).unwrap());
    assert!(!content.is_empty());
    drop(connection);
    write_file(path, database);
    write_file(&log, content);
}

#[test]
fn a_store_of_another_program_is_refused_and_not_touched() {
    let root = Root::new();
    let path = root.scope_folder("theirs").join("claude-mem.db");
    drop(claude_mem(&path));
    let log = PathBuf::from(format!("{}-wal", path.display()));
    left_behind(&path, |connection| {
        connection.sql("INSERT INTO observations (project, type, title) VALUES ('tunes', 'discovery', 'Another')");
    });
    let before = fingerprint(&root.path().join("scopes"));
    let error = import_into(root.path(), "theirs", "{\"title\":\"One\"}").fails(1);
    assert_contains!(error, "claude-mem store", path.to_str().unwrap());
    assert!(log.exists(), "its write-ahead log is gone");
    assert_eq!(fingerprint(&root.path().join("scopes")), before);
}

#[test]
fn an_import_writes_to_the_store_that_the_manifest_names() {
    let root = Root::new();
    root.manifest("linked", "store = \"elsewhere/store.db\"\n");
    let line = json!({ "title": "Tune the xylophone", "status": "approved" });
    let outcome = import_into(root.path(), "linked", lines(&[line]));
    if outcome.code == Some(0) {
        let query = ["query", "xylophone", "--scope", "linked", "--json"];
        let answer = ack(root.path(), &query).json();
        assert_eq!(answer["total"], 1, "imported, and nobody finds it: {}", outcome.out);
    } else {
        assert!(!root.path().join("scopes/linked/memory.db").exists());
    }
}

#[test]
fn decisions_of_a_curator_survive_an_import() {
    let case = Case::new();
    let text = lines(&[
        json!({ "id": "a", "title": "Will be approved" }),
        json!({ "id": "b", "title": "Will be rejected", "status": "approved" }),
        json!({ "title": "Will be promoted" }),
    ]);
    case.import(&text, &[]).ok();
    case.store().sql("UPDATE memories SET status = 'approved', reviewed_by = 'ines', reviewed_at = '2026-01-05T00:00:00Z' WHERE id = 'a';
             UPDATE memories SET status = 'rejected' WHERE id = 'b';
             UPDATE memories SET status = 'promoted' WHERE title LIKE '%promoted';");
    let decided = case.rows();
    assert_eq!(counts(&case.report(&text, &[])), (0, 0, 3, 0));
    assert_eq!(case.rows(), decided);
    // An update does not restore what was rejected.
    let unsaid = text.replace(",\"status\":\"approved\"", "");
    case.import(&unsaid, &["--update"]).ok();
    assert_eq!(case.rows(), decided);
}

#[test]
fn an_update_that_changes_an_approved_text_waits_unless_the_line_says_its_status() {
    let case = Case::new();
    case.add(&[json!({ "id": "a", "title": "Will be approved" })], &[]);
    let approve = "UPDATE memories SET status = 'approved', reviewed_by = 'ines' WHERE id = 'a'";
    case.store().sql(approve);
    let update = |line: Value| {
        case.import(lines(&[line]), &["--update"]).ok();
        let (_, title, status) = case.rows().remove(0);
        format!("{status}: {title}")
    };
    // What is not content changes nothing about the status.
    let same =
        json!({ "id": "a", "title": "Will be approved", "session": "other", "confidence": 0.9 });
    assert_eq!(update(same), "approved: Will be approved");
    let other = json!({ "id": "a", "title": "With another title" });
    assert_eq!(update(other.clone()), "staging: With another title");
    // The owner vouches for the text of the same line.
    let vouched = json!({ "id": "a", "title": "With a third title", "status": "approved" });
    assert_eq!(update(vouched), "approved: With a third title");
    assert_eq!(update(other), "staging: With another title");
}

#[test]
fn an_update_keeps_fields_that_the_line_does_not_set() {
    let case = Case::new();
    let whole = json!({
        "id": "a", "title": "Whole", "subtitle": "Sub", "project": "shop", "type": "gotcha",
        "session": "s", "session_id": "i", "date": "2026-01-04", "facts": ["one"],
        "concepts": ["two"], "files": ["three.rs"], "narrative": "Long text", "confidence": 0.5,
        "reviewed_by": "ines",
    });
    case.import(lines(&[whole]), &[]).ok();
    let row = || -> Vec<rusqlite::types::Value> {
        let columns = "title, subtitle, project, type, session, session_id, date, facts, concepts, files, narrative, \
                       confidence, reviewed_by, created_at, status";
        let sql = format!("SELECT {columns} FROM memories");
        case.store()
            .query_row(&sql, [], |row| (0..15).map(|column| row.get(column)).collect())
            .unwrap()
    };
    let before = row();
    // Approving by import, with empty values.
    let approved = json!({ "id": "a", "title": "Whole", "status": "approved", "narrative": null, "facts": null });
    let found = counts(&case.report(lines(std::slice::from_ref(&approved)), &["--update"]));
    assert_eq!(found, (0, 1, 0, 0));
    let after = row();
    assert_eq!(after[..14], before[..14]);
    assert_eq!(after[14], "approved".to_owned().into());
    let found = counts(&case.report(lines(&[approved]), &["--update"]));
    assert_eq!(found, (0, 0, 1, 0));
    // Every value in a line counts, even an empty list.
    let emptied = json!({ "id": "a", "title": "Whole", "facts": [], "body": "Short" });
    case.import(lines(&[emptied]), &["--update"]).ok();
    assert_eq!(row()[7].clone(), "[]".to_owned().into());
    assert_eq!(row()[10].clone(), "Short".to_owned().into());
}

// What a file may look like.

#[test]
fn byte_order_marks_carriage_returns_blank_lines_and_no_last_line_end_are_accepted() {
    let case = Case::new();
    let text = "\u{feff}{\"title\":\"One\"}\r\n\r\n   \n\t{\"title\":\"Two\"}  \r\n\n{\"title\":\"Three\"}";
    import_into(&case.root(), "new", text).ok();
    let mut titles: Vec<String> = case.rows().into_iter().map(|(_, title, _)| title).collect();
    titles.sort();
    assert_eq!(titles, ["One", "Three", "Two"]);
}

#[test]
fn an_empty_file_imports_nothing() {
    let case = Case::new();
    for input in ["", "\n \n"] {
        let error = case.import(input, &[]).fails(1);
        assert_contains!(error, "there is no line to import");
    }
    assert!(!case.root().exists(), "a root was made for nothing");
    case.import("{\"title\":\"One\"}", &[]).ok();
    let report = case.report("", &[]);
    assert_eq!(counts(&report), (0, 0, 0, 0));
    assert_eq!(report["created"], false);
}

#[test]
fn bytes_that_are_no_text_and_lines_that_are_too_long_are_refused_by_number() {
    let case = Case::new();
    let mut bytes =
        b"{\"title\":\"One\"}\n{\"title\":\"\xff\xfe\"}\n{\"title\":\"long\",\"body\":\"".to_vec();
    bytes.extend(std::iter::repeat_n(b'a', 9 << 20));
    bytes.extend(b"\"}\n{\"title\":\"Two\"}\n");
    let report = case.report(&bytes, &["--skip-refused"]);
    assert_eq!(counts(&report), (2, 0, 0, 2));
    assert_eq!(
        report["refused"],
        json!([
            { "line": 2, "reason": "not UTF-8" },
            { "line": 3, "reason": "longer than 8 MB" },
        ])
    );
}

#[test]
fn a_repeated_line_counts_once_and_an_id_with_two_contents_is_refused() {
    let case = Case::new();
    let [twice, x] = [json!({ "id": "a", "title": "One" }), json!({ "title": "x" })];
    let report = case.report(lines(&[twice.clone(), twice.clone(), x.clone(), x]), &[]);
    assert_eq!(counts(&report), (2, 0, 0, 0));
    let two = lines(&[twice, json!({ "id": "a", "title": "Two" })]);
    assert_contains!(case.import(two, &["--update"]).fails(1), "line 2", "line 1");
}

#[test]
fn an_unusable_file_or_name_is_reported() {
    let case = Case::new();
    let file = case.file(lines(&[json!({ "title": "One" })]));
    let file = file.to_str().unwrap();
    let import = |scope: &str, file: &str| ack(&case.root(), &["import", "--scope", scope, file]);
    assert_contains!(import("new", "no-such-file.jsonl").fails(1), "no-such-file.jsonl");
    let folder = case.folder.path().to_str().unwrap().to_owned();
    assert!(import("new", &folder).fails(2).contains(&folder));
    for name in ["../x", "a/b", ".x", "..", "a b", ""] {
        let outcome = import(name, file);
        assert!(matches!(outcome.code, Some(1 | 2)), "{name:?}: {outcome:?}");
    }
    assert!(!case.root().exists(), "nothing was made");
    assert!(!case.folder.path().join("x").exists());
    assert_contains!(ack(&case.root(), &["import", file]).fails(2), "--scope");
}

// While other processes use the store.

#[test]
fn two_concurrent_imports_lose_nothing_that_they_report() {
    let case = Case::new();
    let children: Vec<_> = (0..4)
        .map(|number| {
            let text = lines(
                &(0..50)
                    .map(|line| json!({ "id": format!("{number}-{line}"), "title": format!("Memory {line}") }))
                    .collect::<Vec<_>>(),
            );
            let file = case.folder.path().join(format!("lines-{number}.jsonl"));
            write_file(&file, text);
            let child = binary()
                .arg("--root")
                .arg(case.root())
                .args(["import", "--scope", "new", "--json"])
                .arg(&file)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            (number, child)
        })
        .collect();
    let mut reported = Vec::new();
    for (number, child) in children {
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            reported.push(number);
        } else {
            println!("import {number} failed: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let rows = case.rows();
    for number in &reported {
        let there = rows.iter().filter(|(id, ..)| id.starts_with(&format!("{number}-"))).count();
        assert_eq!(there, 50, "import {number} reported success");
    }
    assert_eq!(rows.len(), reported.len() * 50, "a failed import left rows");
    assert!(!reported.is_empty());
}

#[test]
fn a_killed_import_leaves_nothing_or_everything() {
    const ROWS: usize = 20_000;
    let text = lines(
        &(0..ROWS)
            .map(|number| json!({ "id": format!("big-{number}"), "title": format!("Memory {number}"), "body": "words and words ".repeat(20), "status": "approved" }))
            .collect::<Vec<_>>(),
    );
    let whole = Case::new();
    let started = Instant::now();
    whole.import(&text, &[]).ok();
    let took = started.elapsed();
    println!("an import of {ROWS} lines takes {took:?}");
    let mut outcomes = Vec::new();
    for (existing, step) in
        [false, true].into_iter().flat_map(|existing| (1..=8).map(move |step| (existing, step)))
    {
        let case = Case::new();
        let before = usize::from(existing);
        if existing {
            case.add(
                &[json!({ "id": "first", "title": "Memory of before", "status": "approved" })],
                &[],
            );
        }
        let file = case.file(&text);
        let mut child = binary()
            .arg("--root")
            .arg(case.root())
            .args(["import", "--no-index", "--scope", "new"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(took.mul_f64(f64::from(step) / 8.5));
        child.kill().unwrap();
        child.wait().unwrap();
        // A reader first: it must cope with whatever was left.
        let answer = ack(&case.root(), &["query", "--json", "-n", "1"]);
        let total = if existing || answer.code == Some(0) {
            answer.json()["total"].as_u64().unwrap() as usize
        } else {
            0
        };
        outcomes.push((existing, step, total));
        assert!(
            total == before || total == before + ROWS,
            "existing {existing}, step {step}: {total} rows"
        );
        let scopes = case.root().join("scopes");
        if !existing && total == 0 && scopes.exists() {
            // No half-finished scope that a reader would report as broken.
            let doctor = ack(&case.root(), &["doctor"]).out;
            assert_lacks!(doctor, "[unavailable]"; "step {step} left a scope without a store");
        }
        // Running the same command again does the rest.
        case.import(&text, &[]).ok();
        assert_eq!(case.rows().len(), before + ROWS);
        let left = listed(&scopes.join("new"));
        assert_eq!(left, ["memory.db"], "step {step} left files for good");
    }
    println!("{outcomes:?}");
}

#[test]
fn an_import_waits_for_a_reader() {
    let root = Root::new();
    let path = root.store("new", &[titled("a", "Tune the xylophone")]);
    let reader = std::thread::spawn(move || {
        let reader = Connection::open(&path).unwrap();
        reader.sql("BEGIN; SELECT * FROM memories;");
        std::thread::sleep(Duration::from_millis(800));
        reader.sql("COMMIT");
    });
    std::thread::sleep(Duration::from_millis(200));
    // A rollback-journal store cannot be written while somebody reads it: the import waits.
    import_into(root.path(), "new", "{\"title\":\"Oil the xylophone\"}").ok();
    reader.join().unwrap();
}

#[cfg(unix)]
#[test]
fn files_created_by_an_import_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let case = Case::new();
    let line = json!({ "title": "Tune the xylophone" }).to_string();
    case.import(&line, &[]).ok();
    let scope = case.root().join("scopes/new");
    for (path, expected) in [
        (case.root(), 0o700),
        (case.root().join("scopes"), 0o700),
        (scope.clone(), 0o700),
        (scope.join("memory.db"), 0o600),
    ] {
        assert_eq!(mode(&path), expected, "{}", path.display());
    }
    // An existing folder keeps its permissions; the store is private anyway.
    let other = case.root().join("scopes/other");
    std::fs::create_dir(&other).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
    import_into(&case.root(), "other", &line).ok();
    assert_eq!(mode(&other), 0o755);
    assert_eq!(mode(&other.join("memory.db")), 0o600);
    let store = case.root().join("elsewhere.db");
    std::fs::copy(scope.join("memory.db"), &store).unwrap();
    add_scope(&case.root(), "third", &store).ok();
    assert_eq!(mode(&case.root().join("scopes/third")), 0o700);
}
