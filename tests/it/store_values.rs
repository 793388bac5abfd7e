//! Broken and hostile values: whatever a row holds, the answer succeeds, says what was repaired and
//! is safe to print.

use ack_api::NoteKind;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::{
    assert_neutral, every_answer, everything, fetched, has_note, hits, served, words,
};
use crate::support::{Root, Sql};

const NATIVE: &str = ack_memory::internal::import::SCHEMA;

/// One row with a value, as SQL, in one column.
fn with(column: &str, value: &str) -> String {
    format!(
        "{NATIVE} INSERT INTO memories (id, title, status) VALUES ('m1', 'a marker', 'approved'); UPDATE memories SET {column} = {value};"
    )
}

/// What `get_memory` shows of one column, and whether the answer says that something was repaired.
fn read(column: &str, value: &str) -> (Value, bool) {
    let (_root, service) = served(&with(column, value));
    let memory = fetched(&service, "m1");
    let repaired = memory["notes"]
        .as_array()
        .is_some_and(|notes| notes.iter().any(|note| note["kind"] == "repaired_values"));
    let found = service.query_memories(&words("marker")).unwrap();
    assert_eq!(found.total, 1, "{column} = {value}");
    let shown = has_note(&found, NoteKind::RepairedValues);
    assert_eq!(shown, repaired, "{column} = {value}: both tools say the same");
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
    (memory[column].clone(), repaired)
}

#[test]
fn malformed_lists_are_read_as_far_as_possible() {
    // A column, its value as SQL, what is shown, and whether the answer says that it was repaired.
    let cases = r#"facts 'just a sentence, with a comma' => ["just a sentence, with a comma"]
facts '["whole", "cut in the mid' => ["whole", "cut in the mid"] repaired
facts 'null' => null
facts '{"why": "as an object", "n": 3}' => ["why: as an object", "n: 3"] repaired
facts '- one' || char(10) || '- two' => ["one", "two"]
facts 'one | two, three' => ["one", "two, three"]
facts 17 => ["17"] repaired
facts '' => null
facts '[' => null repaired
concepts '["a", null, 7, true, {"b": "c"}, ["d", "e"]]' => ["a", "7", "true", "b: c", "d, e"] repaired
concepts 'gotcha|pattern|elixir' => ["gotcha", "pattern", "elixir"]
concepts 'gotcha, pattern ,, elixir,' => ["gotcha", "pattern", "elixir"]
concepts '"pattern"' => ["pattern"]
concepts CAST(x'676f74636861ff' AS TEXT) => ["gotcha\ufffd"] repaired
concepts x'ff00fe' => null repaired
files 'app/models/bare path.rb' => ["app/models/bare path.rb"]
files 'src/a.rs, src/b.rs' => ["src/a.rs", "src/b.rs"]"#;
    for case in cases.lines() {
        let (given, expected) = case.rsplit_once(" => ").unwrap();
        let (column, value) = given.split_once(' ').unwrap();
        let shown = expected.trim_end_matches(" repaired");
        let shown: Value = serde_json::from_str(shown).unwrap();
        let repaired = expected.ends_with(" repaired");
        assert_eq!(read(column, value), (shown, repaired), "{case}");
    }
}

#[test]
fn dates_are_read_from_seconds_milliseconds_and_text_and_impossible_ones_are_reported() {
    let eleven = json!("2026-01-12T11:00:00Z");
    let midnight = json!("2026-01-12T00:00:00Z");
    for (value, expected, repaired) in [
        ("1768215600", &eleven, false),
        ("1768215600000", &eleven, false),
        ("1768215600.5", &eleven, false),
        ("'1768215600000'", &eleven, false),
        ("'2026-01-12'", &midnight, false),
        ("'2026-01-12 11:00:00'", &eleven, false),
        ("'2026-01-12T12:00:00+01:00'", &eleven, false),
        ("'2026-02-30 25:61'", &Value::Null, true),
        ("'soon'", &Value::Null, true),
        ("NULL", &Value::Null, false),
        ("''", &Value::Null, false),
        ("0", &Value::Null, true),
        ("-1", &Value::Null, true),
        ("9223372036854775807", &Value::Null, true),
        ("9e999", &Value::Null, true),
    ] {
        let found = read("created_at", value);
        assert_eq!(found, (expected.clone(), repaired), "created_at = {value}");
    }
}

#[test]
fn the_epoch_wins_over_an_impossible_date() {
    let (_root, service) = served(
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT, created_at TEXT, created_at_epoch INTEGER);
         INSERT INTO observations VALUES (679, 'a marker', '2026-02-30 25:61', 1768215600000)",
    );
    let memory = fetched(&service, "obs-679");
    assert_eq!(memory["created_at"], "2026-01-12T11:00:00Z");
    assert_eq!(memory["notes"][0]["kind"], "repaired_values", "{memory}");
}

#[test]
fn a_row_with_nulls_is_served() {
    let mut sql = NATIVE.to_owned();
    sql.push_str("INSERT INTO memories (id, title, status) VALUES ('m1', '', 'approved'), ('m2', '   ', 'approved'), ('m3', char(27) || '[31m', 'approved');");
    sql.push_str("INSERT INTO memories (id, title, subtitle, status) VALUES ('m4', '', 'the subtitle', 'approved');");
    sql.push_str("INSERT INTO memories (id, title, narrative, status) VALUES ('m5', '', char(10) || 'first line' || char(10) || 'second', 'approved');");
    let (_root, service) = served(&sql);
    for (id, title) in [
        ("m1", "(untitled)"),
        ("m2", "(untitled)"),
        ("m3", "(untitled)"),
        ("m4", "the subtitle"),
        ("m5", "first line"),
    ] {
        assert_eq!(fetched(&service, id)["title"], title, "{id}");
    }
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
}

#[test]
fn long_ids_with_the_same_beginning_are_two_memories() {
    let long = |end: &str| format!("{}{end}", "path/".repeat(60));
    let (_root, service) = served(&format!(
        "CREATE TABLE memories (id TEXT, title TEXT, status TEXT);
         INSERT INTO memories VALUES ('{}', 'first marker', 'approved'), ('{}', 'second marker', 'approved')",
        long("one"),
        long("two")
    ));
    let found = hits(&service, &everything());
    assert_eq!(found.len(), 2, "{found:#?}");
    for hit in &found {
        assert_eq!(fetched(&service, &hit.id)["title"], hit.title.as_str());
    }
    for (end, title) in [("one", "first marker"), ("two", "second marker")] {
        assert_eq!(fetched(&service, &long(end))["title"], title);
    }
}

#[test]
fn rows_without_an_id_are_skipped() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT, title TEXT, status TEXT);
         INSERT INTO memories VALUES (NULL, 'no marker id', 'approved'), ('', 'empty marker id', 'approved'), ('twice', 'first marker', 'approved'), ('twice', 'second marker', 'approved'), ('m1', 'a marker', 'approved'), (x'ff', 'blob marker', 'approved')",
    );
    let found = hits(&service, &everything());
    assert_eq!(found.iter().filter(|hit| hit.id == "m1").count(), 1);
    assert_eq!(found.iter().filter(|hit| hit.id == "twice").count(), 1);
    for hit in &found {
        assert!(!hit.id.is_empty(), "a memory that nobody can ask for: {hit:?}");
    }
    let scopes = service.list_scopes(&ack_api::ListScopesRequest::default()).unwrap();
    assert!(
        scopes.scopes[0]
            .health
            .problems
            .iter()
            .any(|problem| problem.to_string().contains("repeat")),
        "{:?}",
        scopes.scopes[0].health
    );
}

#[test]
fn invalid_utf8_in_every_column_is_repaired_and_reported() {
    for column in "title subtitle narrative facts concepts files project session type".split(' ') {
        let text = "CAST(x'6d61726b657220ff206a756e6b' AS TEXT) || ' marker'";
        let (shown, repaired) = read(column, text);
        assert_contains!(shown.to_string(), "marker \u{fffd} junk"; "{column}");
        assert!(repaired, "{column}");
    }
    // A generated column is a column.
    let generated = "CREATE TABLE memories (id TEXT, title TEXT, word TEXT, status TEXT AS (word));
        INSERT INTO memories VALUES ('m1', 'a marker', 'rejected'), ('m2', 'a marker', 'approved')";
    let (root, service) = served(generated);
    root.manifest("odd", "unreviewed = \"approved\"\n");
    let found = hits(&service, &everything());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].id, "m2");
    // An id or a status that is broken must not make the row reachable or approved by accident.
    let (_root, service) = served(&with("status", "CAST(x'617070726f766564ff' AS TEXT)"));
    assert!(hits(&service, &everything()).is_empty());
}

#[test]
fn an_unknown_collation_hides_no_rows() {
    let root = Root::new();
    let path = root.scope_folder("odd").join("memory.db");
    let writer = Connection::open(&path).unwrap();
    writer
        .create_collation("LENGTH_FIRST", |a: &str, b: &str| {
            a.len().cmp(&b.len()).then_with(|| b.cmp(a))
        })
        .unwrap();
    writer.sql(&NATIVE.replace(" TEXT", " TEXT COLLATE LENGTH_FIRST"));
    writer.sql("
        INSERT INTO memories (id, title, status, session, superseded_by, created_at) VALUES
          ('b2', 'Second marker', 'approved', 's1', NULL, '2026-01-02'),
          ('A1', 'First marker', 'approved', 's1', 'b2', '2026-01-01'),
          ('a1', 'Third marker', 'staging', 's2', NULL, '2026-01-03'),
          ('7', 'Fourth marker', 'promoted', 's1', NULL, '2026-01-04');
        INSERT INTO sessions (id, title, started_at) VALUES
          ('s1', 'The session', '2026-01-01'), ('S1', 'Another session', '2026-01-02');
        INSERT INTO memory_links (from_id, to_id, kind) VALUES ('b2', 'A1', 'derived_from'), ('B2', 'a1', 'related');
        INSERT INTO curation_log (memory_id, action, created_at) VALUES ('b2', 'approve', '2026-01-02'), ('B2', 'reject', '2026-01-03');");
    drop(writer);
    let service = root.service();
    let found = hits(&service, &words("marker"));
    assert_eq!(found.len(), 3, "the one that is superseded stays out");
    for hit in &found {
        assert_eq!(fetched(&service, &hit.id)["title"], json!(hit.title));
    }
    let memory = fetched(&service, "b2");
    assert_eq!(memory["session_context"]["title"], "The session");
    // It is derived from the one that it replaces.
    assert_eq!(memory["links"].as_array().unwrap().len(), 2, "{memory}");
    assert_eq!(memory["history"].as_array().unwrap().len(), 1, "{memory}");
    assert!(crate::store_support::get(&service, "B2").is_err());
}
