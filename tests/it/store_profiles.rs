//! What is read from the stores of several programs, and from stores that lack most columns or have
//! others.

use ack_api::memory::StatusFilter;
use ack_api::{GetRequest, NoteKind, QueryRequest};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::{
    CLAUDE_MEM, assert_neutral, database, every_answer, everything, fetched, get, has_note, hits,
    ids, served, words,
};
use crate::support::Root;

/// An optional column of the native schema, a value, and where `get_memory` shows it.
const COLUMNS: [(&str, &str, &str, &str); 16] = [
    ("project", "'ledger'", "project", r#""ledger""#),
    ("session", "'s-1'", "session", r#""s-1""#),
    ("session_id", "'S1'", "session_id", r#""S1""#),
    ("date", "'2026-01-04'", "date", r#""2026-01-04""#),
    ("type", "'gotcha'", "type", r#""gotcha""#),
    ("subtitle", "'one line'", "subtitle", r#""one line""#),
    ("facts", r#"'["a","b"]'"#, "facts", r#"["a","b"]"#),
    ("concepts", r#"'["x"]'"#, "concepts", r#"["x"]"#),
    ("files", r#"'["src/a.rs"]'"#, "files", r#"["src/a.rs"]"#),
    ("narrative", "'long text'", "narrative", r#""long text""#),
    ("confidence", "0.5", "confidence", "0.5"),
    (
        "reviewed_at",
        "'2026-01-05T00:00:00Z'",
        "reviewed_at",
        r#""2026-01-05T00:00:00Z""#,
    ),
    ("reviewed_by", "'dana'", "reviewed_by", r#""dana""#),
    ("superseded_by", "'m9'", "superseded_by", r#""m9""#),
    (
        "created_at",
        "'2026-01-06T00:00:00Z'",
        "created_at",
        r#""2026-01-06T00:00:00Z""#,
    ),
    (
        "updated_at",
        "1767744000",
        "updated_at",
        r#""2026-01-07T00:00:00Z""#,
    ),
];

#[test]
fn a_store_with_nothing_but_id_and_title_answers_every_tool() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('m1', 'only a marker')",
    );
    let found = service.query_memories(&words("marker")).unwrap();
    assert_eq!(ids(&found), ["m1"]);
    let memory = fetched(&service, "m1");
    let keys: Vec<&String> = memory.as_object().unwrap().keys().collect();
    for key in keys {
        assert!(
            ["id", "title", "scope", "status", "timeline", "notes"].contains(&key.as_str()),
            "`{key}` is invented: {memory}"
        );
    }
    assert_eq!(memory["status"], "staging", "nobody approved it");
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
}

#[test]
fn each_optional_column_alone_is_read_and_no_other_field_is_invented() {
    for (column, value, field, shown) in COLUMNS {
        let sql = format!(
            "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, \"{column}\");
             INSERT INTO memories VALUES ('m1', 'a marker', {value}), ('m9', 'other words', NULL)"
        );
        let (_root, service) = served(&sql);
        let memory = fetched(&service, "m1");
        assert_eq!(
            memory[field],
            serde_json::from_str::<Value>(shown).unwrap(),
            "{column}: {memory}"
        );
        for (_, _, other, _) in COLUMNS {
            let derived = column == "date" && other == "created_at";
            assert!(
                other == field || derived || memory.get(other).is_none(),
                "{column} brought `{other}`: {memory}"
            );
        }
        // A memory whose successor is served is found only by its id.
        let expected: &[&str] = if column == "superseded_by" {
            &[]
        } else {
            &["m1"]
        };
        assert_eq!(
            ids(&service.query_memories(&words("marker")).unwrap()),
            expected,
            "{column}"
        );
    }
}

#[test]
fn a_status_column_alone_decides_what_is_served() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT, title TEXT, status TEXT);
         INSERT INTO memories VALUES ('a', 'marker', 'approved'), ('b', 'marker b', ' Promoted '), ('c', 'marker c', NULL), ('d', 'marker d', ''),
           ('e', 'marker e', 'rejected'), ('f', 'marker f', 'APPROVED?'), ('g', 'marker g', x'ff'), ('h', 'marker h', 1)",
    );
    let by = |status| {
        let mut found: Vec<String> = hits(
            &service,
            &QueryRequest {
                status,
                ..everything()
            },
        )
        .into_iter()
        .map(|hit| hit.id)
        .collect();
        found.sort();
        found.concat()
    };
    assert_eq!(by(None), "ab");
    // A status that is no text at all (a blob, `g`) is unknown: whatever it counts as, it is not
    // approved.
    assert!(by(Some(StatusFilter::Staging)).starts_with("cd"));
    assert!(by(Some(StatusFilter::All)).starts_with("abcd"));
    for id in ["e", "f", "h"] {
        assert_eq!(
            get(&service, id).unwrap_err().code(),
            "memory_not_served",
            "{id}"
        );
    }
}

#[test]
fn unknown_columns_and_tables_are_ignored() {
    let (_root, service) = served(
        "CREATE TABLE something_else (id TEXT, title TEXT, secret TEXT); INSERT INTO something_else VALUES ('x', 'hidden marker', 'hidden');
         CREATE TABLE MEMORIES (embedding BLOB, ID TEXT PRIMARY KEY, \"a \"\" quote\" TEXT, Title TEXT, \"order\" INTEGER, tokens INT GENERATED ALWAYS AS (7) VIRTUAL);
         INSERT INTO memories (embedding, id, title, \"a \"\" quote\") VALUES (zeroblob(1000), 'm1', 'a marker', 'hidden marker');
         CREATE VIEW hidden AS SELECT * FROM memories; CREATE VIRTUAL TABLE memories_fts USING fts5(title, content='memories')",
    );
    assert_eq!(
        ids(&service.query_memories(&words("marker")).unwrap()),
        ["m1"]
    );
    for (name, answer) in every_answer(&service) {
        assert!(
            !answer.to_string().contains("hidden marker"),
            "{name}: {answer}"
        );
    }
}

#[test]
fn a_column_named_rowid_is_not_the_row_number() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, rowid TEXT);
         INSERT INTO memories VALUES ('m1', 'a marker', 'not a number'), ('m2', 'other words', 'not a number'), ('m3', 'third one', NULL)",
    );
    assert_eq!(
        ids(&service.query_memories(&words("marker")).unwrap()),
        ["m1"]
    );
    assert_eq!(hits(&service, &everything()).len(), 3);
    assert_eq!(fetched(&service, "m2")["title"], "other words");
}

#[test]
fn integer_ids_are_served_as_text_and_found_again() {
    for declared in [
        "INTEGER PRIMARY KEY",
        "INTEGER",
        "INT NOT NULL",
        "NUMERIC",
        "",
    ] {
        let sql = format!(
            "CREATE TABLE memories (id {declared}, title TEXT); INSERT INTO memories VALUES (7, 'a marker'), (42, 'another thing')"
        );
        let (_root, service) = served(&sql);
        assert_eq!(
            ids(&service.query_memories(&words("marker")).unwrap()),
            ["7"],
            "id {declared}"
        );
        assert_eq!(hits(&service, &everything()).len(), 2, "id {declared}");
        let memory = get(&service, "42").unwrap_or_else(|error| panic!("id {declared}: {error}"));
        assert_eq!(
            memory.memory.unwrap().memory.title,
            "another thing",
            "id {declared}"
        );
    }
}

#[test]
fn tables_without_row_numbers_are_read() {
    for tail in [
        "WITHOUT ROWID",
        "without rowid",
        "WITHOUT\n  ROWID",
        "STRICT, WITHOUT ROWID",
        "WITHOUT /* really */ ROWID",
        "WITHOUT ROWID -- because (we) can\n",
    ] {
        let sql = format!(
            "CREATE TABLE memories (id TEXT PRIMARY KEY NOT NULL, title TEXT, status TEXT) {tail};
             INSERT INTO memories VALUES ('m2', 'a marker', 'approved'), ('m1', 'another thing', 'approved')"
        );
        let (_root, service) = served(&sql);
        let found = service
            .query_memories(&words("marker"))
            .unwrap_or_else(|error| panic!("{tail}: {error}"));
        assert_eq!(ids(&found), ["m2"], "{tail}");
        assert_eq!(fetched(&service, "m1")["title"], "another thing", "{tail}");
    }
}

#[test]
fn tables_around_the_memories_may_lack_row_numbers_and_columns() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, session TEXT, status TEXT);
         INSERT INTO memories VALUES ('m1', 'a marker', 's1', 'approved'), ('m2', 'the other one', 's1', 'approved');
         CREATE TABLE overviews (session TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID; INSERT INTO overviews VALUES ('s1', 'what it was about');
         CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID; INSERT INTO sessions VALUES ('s1', 'a session');
         CREATE TABLE curation_log (n INTEGER PRIMARY KEY, memory_id TEXT, action TEXT) WITHOUT ROWID; INSERT INTO curation_log VALUES (1, 'm1', 'approve');
         CREATE TABLE memory_links (from_id TEXT, to_id TEXT, PRIMARY KEY (from_id, to_id)) WITHOUT ROWID; INSERT INTO memory_links VALUES ('m1', 'm2')",
    );
    let memory = fetched(&service, "m1");
    assert_eq!(
        memory["session_context"],
        json!({ "title": "a session", "overview": "what it was about", "unreviewed": true })
    );
    assert_eq!(memory["history"][0]["action"], "approve");
    assert_eq!(memory["links"][0]["to_id"], "m2");
    assert_eq!(memory["timeline"]["within"], "session");
}

#[test]
fn every_id_that_is_served_can_be_fetched() {
    let root = Root::new();
    let path = database(
        &root,
        "odd",
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, status TEXT)",
    );
    let raw = [
        "plain".to_owned(),
        "with two  blanks".to_owned(),
        " surrounded ".to_owned(),
        "quote's \"and\" ;--".to_owned(),
        "日本語-001".to_owned(),
        "e\u{301}".to_owned(),
        "new\nline".to_owned(),
        "esc\u{1b}[31mape".to_owned(),
        "bidi\u{202e}id".to_owned(),
        "l".repeat(300),
        "obs-1".to_owned(),
        "%_*?".to_owned(),
    ];
    let connection = Connection::open(path).unwrap();
    for id in &raw {
        connection
            .execute(
                "INSERT INTO memories VALUES (?1, 'title of ' || length(?1), 'approved')",
                [id],
            )
            .unwrap();
    }
    let service = root.service();
    let served = hits(&service, &everything());
    let mut lost = Vec::new();
    for hit in &served {
        let answer = service.get_memory(&GetRequest {
            id: Some(hit.id.clone()),
            ..GetRequest::default()
        });
        match answer {
            Ok(answer) => assert_eq!(answer.memory.unwrap().memory.title, hit.title),
            Err(error) => lost.push(format!("{:?}: {error}", hit.id)),
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
    assert_eq!(served.len(), raw.len());
}

#[test]
fn ids_that_need_cleaning_are_found_in_tables_without_row_numbers_too() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, status TEXT) WITHOUT ROWID;
         INSERT INTO memories VALUES ('esc' || char(27) || '[31mape', 'a marker', 'approved'), (' padded ', 'other words', 'approved')",
    );
    assert_eq!(hits(&service, &everything()).len(), 2);
}

#[test]
fn a_store_in_another_text_encoding_is_read() {
    for encoding in ["UTF-16le", "UTF-16be"] {
        let sql = format!(
            "PRAGMA encoding = '{encoding}'; CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, concepts TEXT);
             INSERT INTO memories VALUES ('mä', 'データ marker', '[\"größe\"]')"
        );
        let (_root, service) = served(&sql);
        let found = service.query_memories(&words("marker")).unwrap();
        assert_eq!(
            (ids(&found), &found.results[0].concepts),
            (vec!["mä".to_owned()], &vec!["größe".to_owned()])
        );
        assert_eq!(fetched(&service, "mä")["title"], "データ marker");
    }
}

#[test]
fn a_schema_change_is_noticed_by_the_next_answer() {
    let root = Root::new();
    let path = database(
        &root,
        "odd",
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT); INSERT INTO memories VALUES ('m1', 'a marker')",
    );
    let service = root.service();
    assert_eq!(
        service
            .query_memories(&QueryRequest::default())
            .unwrap()
            .total,
        0,
        "nobody approved it"
    );
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch(
            "ALTER TABLE memories ADD COLUMN status TEXT; UPDATE memories SET status = 'approved'",
        )
        .unwrap();
    assert_eq!(
        ids(&service.query_memories(&QueryRequest::default()).unwrap()),
        ["m1"]
    );
    other
        .execute_batch("ALTER TABLE memories RENAME COLUMN title TO headline")
        .unwrap();
    assert_eq!(
        service
            .query_memories(&QueryRequest::default())
            .unwrap_err()
            .code(),
        "store_foreign"
    );
    other
        .execute_batch("ALTER TABLE memories RENAME COLUMN headline TO title")
        .unwrap();
    assert_eq!(
        ids(&service.query_memories(&QueryRequest::default()).unwrap()),
        ["m1"]
    );
}

fn claude_mem() -> String {
    format!(
        "{CLAUDE_MEM}
         INSERT INTO sdk_sessions (content_session_id, memory_session_id, project, user_prompt, started_at, started_at_epoch, custom_title)
           VALUES ('c1', 'm1', 'ledger-api', 'SECRETPROMPT what I typed', '2026-01-12T10:00:00Z', 1768212000000, 'Retries'),
                  ('c2', 'm2', 'kiosk-web', 'SECRETPROMPT two', '2026-01-13T10:00:00Z', 1768298400000, NULL);
         INSERT INTO observations (id, memory_session_id, project, type, title, subtitle, facts, narrative, concepts, files_read, files_modified, created_at, created_at_epoch, merged_into_project)
           VALUES (123, 'm1', 'ledger-api', 'bugfix', 'Webhook retries', 'Backoff was linear', '[\"base 2s\"]', 'The long story', '[\"gotcha\"]', '[\"a.rs\",\"b.rs\"]', '[\"b.rs\"]', '2026-01-12T11:00:00Z', 1768215600000, NULL),
                  (124, 'm2', 'kiosk-web', 'decision', 'Offline first', NULL, NULL, NULL, NULL, NULL, NULL, '2026-01-13T11:00:00Z', 1768302000000, NULL),
                  (125, 'm1', 'ledger-api/retry-webhooks', 'feature', 'Worktree work', NULL, NULL, NULL, NULL, NULL, NULL, '2026-01-14T11:00:00Z', 1768388400000, 'ledger-api');
         INSERT INTO session_summaries (id, memory_session_id, project, request, investigated, learned, completed, next_steps, files_edited, notes, created_at, created_at_epoch)
           VALUES (12, 'm1', 'ledger-api', 'Fix the retries', 'the queue', 'linear is wrong', 'exponential', 'watch it', '[\"b.rs\"]', 'none', '2026-01-12T12:00:00Z', 1768219200000);
         INSERT INTO user_prompts (content_session_id, prompt_number, prompt_text, created_at, created_at_epoch) VALUES ('c1', 1, 'SECRETPROMPT raw words', 'x', 1768212000000);
         INSERT INTO tool_uses (tool_use_id, content_session_id, memory_session_id, project, tool_name, tool_input, tool_response) VALUES ('t1', 'c1', 'm1', 'ledger-api', 'Bash', 'SECRETPROMPT in', 'SECRETPROMPT out');
         INSERT INTO pending_messages (content_session_id, message_type, tool_input, tool_response, last_user_message, last_assistant_message, created_at_epoch)
           VALUES ('c1', 'observation', 'SECRETPROMPT', 'SECRETPROMPT', 'SECRETPROMPT', 'SECRETPROMPT', 1768212000000);
         INSERT INTO user_prompts_fts(user_prompts_fts) VALUES ('rebuild'); INSERT INTO observations_fts(observations_fts) VALUES ('rebuild');"
    )
}

#[test]
fn claude_mem_observations_and_summaries_are_memories_with_stable_ids() {
    let (_root, service) = served(&claude_mem());
    let mut found: Vec<String> = hits(&service, &everything())
        .into_iter()
        .map(|hit| hit.id)
        .collect();
    found.sort();
    assert_eq!(found, ["obs-123", "obs-124", "obs-125", "sum-12"]);
    let memory = fetched(&service, "obs-123");
    for (field, value) in [
        ("type", json!("bugfix")),
        ("title", json!("Webhook retries")),
        ("subtitle", json!("Backoff was linear")),
        ("facts", json!(["base 2s"])),
        ("concepts", json!(["gotcha"])),
        ("files", json!(["b.rs", "a.rs"])),
        ("narrative", json!("The long story")),
        ("project", json!("ledger-api")),
        ("session_id", json!("m1")),
        ("created_at", json!("2026-01-12T11:00:00Z")),
        ("status", json!("staging")),
    ] {
        assert_eq!(memory[field], value, "{field}: {memory}");
    }
    assert_eq!(memory["session_context"]["title"], "Retries");
    assert!(
        memory["session_context"]["overview"]
            .as_str()
            .unwrap()
            .contains("linear is wrong"),
        "{memory}"
    );
    let summary = fetched(&service, "sum-12");
    assert_eq!(
        (&summary["title"], &summary["type"]),
        (&json!("Fix the retries"), &json!("session_summary"))
    );
    for part in ["the queue", "linear is wrong", "exponential", "watch it"] {
        assert!(
            summary["narrative"].as_str().unwrap().contains(part),
            "{summary}"
        );
    }
    for id in [
        "obs-12",
        "sum-123",
        "obs-0123",
        "obs-",
        "obs-x",
        "OBS-123",
        "123",
        "obs--123",
        "obs-99999999999999999999",
    ] {
        assert_eq!(
            get(&service, id).unwrap_err().code(),
            "memory_not_found",
            "{id}"
        );
    }
}

#[test]
fn an_unreviewed_store_is_marked_unless_its_owner_vouches_for_it() {
    let root = Root::new();
    database(&root, "cm", &claude_mem());
    let service = root.service();
    let found = service
        .query_memories(&QueryRequest {
            query: Some("webhook retries".to_owned()),
            ..QueryRequest::default()
        })
        .unwrap();
    assert!(found.results.is_empty());
    assert!(found.hidden.unwrap().by_status >= 1);
    assert!(
        has_note(&found, NoteKind::HiddenByStatus) && has_note(&found, NoteKind::NoStatusColumn),
        "{:?}",
        found.notes
    );
    root.manifest("cm", "unreviewed = \"approved\"\n");
    let found = service.query_memories(&QueryRequest::default()).unwrap();
    assert_eq!(found.total, 4);
}

#[test]
fn memories_of_a_merged_worktree_are_found_by_both_names() {
    let (_root, service) = served(&claude_mem());
    let of = |project: &str| {
        let request = QueryRequest {
            project: Some(project.to_owned()),
            ..everything()
        };
        let mut found: Vec<String> = hits(&service, &request)
            .into_iter()
            .map(|hit| hit.id)
            .collect();
        found.sort();
        found
    };
    assert_eq!(of("ledger-api"), ["obs-123", "obs-125", "sum-12"]);
    assert_eq!(of("Ledger_API"), ["obs-123", "obs-125", "sum-12"]);
    assert_eq!(of("ledger-api/retry-webhooks"), ["obs-125"]);
    assert_eq!(of("kiosk-web"), ["obs-124"]);
    assert!(of("kiosk").is_empty());
}

/// Rows of claude-mem with these values, in a store that counts as approved.
fn claude_mem_rows(rows: &str) -> (Root, ack_memory::Service) {
    let sql = format!(
        "{CLAUDE_MEM}
         INSERT INTO sdk_sessions (content_session_id, memory_session_id, project, user_prompt, started_at, started_at_epoch, custom_title)
           VALUES ('c1', 'm1', 'ledger-api/retry', 'x', '2026-01-12T10:00:00Z', 1768212000000, 'Retries'),
                  ('c2', 'm2', 'ledger-apis', 'x', '2026-01-12T10:00:00Z', 1768212000000, 'Other');
         INSERT INTO observations (id, memory_session_id, project, type, title, subtitle, facts, narrative, text, created_at, created_at_epoch) VALUES {rows};"
    );
    let root = Root::new();
    database(&root, "cm", &sql);
    root.manifest("cm", "unreviewed = \"approved\"\noverviews = \"show\"\n");
    let service = root.service();
    (root, service)
}

#[test]
fn a_worktree_that_was_never_merged_belongs_to_its_project() {
    let (root, service) = claude_mem_rows(
        "(1, 'm1', 'ledger-api/retry', 'bugfix', 'Retries back off', NULL, NULL, 'x', NULL, '2026-01-12T11:00:00Z', 1768215600000),
         (2, 'm2', 'ledger-apis', 'bugfix', 'Of another', NULL, NULL, 'x', NULL, '2026-01-12T11:00:00Z', 1768215600000)",
    );
    let of = |project: &str| {
        let request = QueryRequest {
            project: Some(project.to_owned()),
            ..everything()
        };
        ids(&service.query_memories(&request).unwrap())
    };
    for project in ["ledger-api", "ledger-api/retry"] {
        assert_eq!(of(project), ["obs-1"], "{project}");
    }
    let place = crate::context::project(&root, "ledger-api", "main");
    let answer = crate::context::context(&root, &place, json!({}));
    assert_eq!(
        crate::support::ids(&answer["recent_memories"]),
        ["obs-1"],
        "{answer:#}"
    );
    assert_eq!(
        answer["recent_sessions"][0]["title"], "Retries",
        "{answer:#}"
    );
}

#[test]
fn a_memory_that_a_person_saved_has_its_own_first_sentence() {
    let long = "Never run the restore script without --dry-run first. It drops the table.";
    let (_root, service) = claude_mem_rows(&format!(
        "(1, 'm1', 'p', 'discovery', NULL, 'Manual memory', '[]', 'Use the sandbox merchant. Always.', NULL, 'x', 1),
         (2, 'm1', 'p', 'discovery', 'Manual memory', NULL, '[]', NULL, 'Leader is space.', 'x', 1),
         (3, 'm1', 'p', 'discovery', '{}...', 'Manual memory', '[]', '{long}', NULL, 'x', 1),
         (4, 'm1', 'p', 'discovery', 'Rounding', 'Manual memory', '[]', 'Half to even. Never up.', NULL, 'x', 1)",
        &long[..40],
    ));
    for (id, title, subtitle) in [
        ("obs-1", "Use the sandbox merchant.", json!(null)),
        ("obs-2", "Leader is space.", json!(null)),
        (
            "obs-3",
            "Never run the restore script without --dry-run first.",
            json!(null),
        ),
        ("obs-4", "Rounding", json!("Half to even.")),
    ] {
        let memory = fetched(&service, id);
        assert_eq!(
            (&memory["title"], &memory["subtitle"]),
            (&json!(title), &subtitle),
            "{memory}"
        );
    }
}

#[test]
fn rows_without_any_text_are_no_memories() {
    let (root, service) = claude_mem_rows(
        "(1, 'm1', 'p', 'discovery', NULL, NULL, NULL, NULL, NULL, 'x', 1),
         (2, 'm1', 'p', 'discovery', '', ' ', '[]', char(10), '', 'x', 1),
         (3, 'm1', 'p', 'discovery', NULL, NULL, '[\"a fact\"]', NULL, NULL, 'x', 1),
         (4, 'm1', 'p', 'discovery', ' title', NULL, NULL, NULL, NULL, 'x', 1),
         (5, 'm1', 'p', 'discovery', NULL, NULL, NULL, NULL, 'text', 'x', 1)",
    );
    let found = service.query_memories(&everything()).unwrap();
    assert_eq!((found.total, ids(&found).len()), (3, 3));
    let counted = crate::cli::ack(root.path(), &["scopes", "--json"]).json();
    assert_eq!(counted["scopes"][0]["memory_count"], 3, "{counted:#}");
    assert_eq!(
        get(&service, "obs-1").unwrap_err().code(),
        "memory_not_found"
    );
}

#[test]
fn a_database_whose_tables_are_views_is_read() {
    for sql in [
        "CREATE TABLE raw (key TEXT, head TEXT, body TEXT); INSERT INTO raw VALUES ('a', 'Webhook retries', 'back off');
         CREATE VIEW memories AS SELECT key AS id, head AS title, body AS narrative FROM raw;
         CREATE VIEW broken AS SELECT * FROM gone;
         CREATE VIEW observations AS WITH n(id, title) AS (SELECT 1, 'x' UNION ALL SELECT id + 1, title FROM n) SELECT * FROM n;",
        "CREATE TABLE raw (n INTEGER PRIMARY KEY, title TEXT, withdrawn TEXT);
         INSERT INTO raw VALUES (7, 'Webhook retries', NULL);
         CREATE VIEW inner_rows AS WITH RECURSIVE n(id, title) AS (SELECT 1, 'x' UNION ALL SELECT id + 1, title FROM n) SELECT * FROM n;
         CREATE VIEW memories AS SELECT id, title FROM inner_rows;
         CREATE VIEW observations AS SELECT n AS id, title, withdrawn FROM raw;",
        "CREATE TABLE raw (n INTEGER PRIMARY KEY, title TEXT, text TEXT, facts TEXT); INSERT INTO raw VALUES (7, 'Webhook retries', 'x', NULL);
         CREATE VIEW observations AS SELECT n AS id, * FROM raw;",
    ] {
        let (_root, service) = served(sql);
        let found = hits(&service, &everything());
        assert_eq!(found.len(), 1, "{sql}");
        assert_eq!(fetched(&service, &found[0].id)["title"], "Webhook retries");
    }
}

#[test]
fn a_second_database_in_a_scope_is_named() {
    let root = Root::new();
    root.store(
        "team",
        &[crate::support::memory("a", "Webhook retries", json!({}))],
    );
    let service = root.service();
    let problems = || {
        let scopes = crate::cli::ack(root.path(), &["scopes", "--json"]).json();
        scopes["scopes"][0]["health"]["problems"].to_string()
    };
    assert_eq!(problems(), "null");
    let other = root.scope_folder("team").join("claude-mem.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch(&claude_mem())
        .unwrap();
    assert!(
        problems().contains("`claude-mem.db` is in its folder too and is not read"),
        "{}",
        problems()
    );
    assert_eq!(ids(&service.query_memories(&everything()).unwrap()), ["a"]);
    root.manifest("team", "store = \"claude-mem.db\"");
    assert!(!problems().contains("is not read"), "{}", problems());
    assert!(ids(&service.query_memories(&everything()).unwrap()).contains(&"obs-123".to_owned()));
}

#[test]
fn raw_prompts_and_tool_output_are_never_served() {
    let root = Root::new();
    database(&root, "cm", &claude_mem());
    root.manifest(
        "cm",
        "unreviewed = \"approved\"\nprojects = [\"ledger-api\"]\n",
    );
    let service = root.service();
    for query in ["SECRETPROMPT", "raw words", "what I typed", "Bash"] {
        let found = service.query_memories(&words(query)).unwrap();
        assert!(
            found.results.is_empty() && found.total == 0,
            "{query}: {found:?}"
        );
    }
    for (name, answer) in every_answer(&service) {
        assert!(
            !answer.to_string().to_lowercase().contains("secretprompt"),
            "{name}: {answer}"
        );
    }
}

#[test]
fn an_old_claude_mem_store_with_other_names_and_fewer_columns_is_read() {
    let (_root, service) = served(
        "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, claude_session_id TEXT, sdk_session_id TEXT, project TEXT, user_prompt TEXT, started_at_epoch INTEGER);
         INSERT INTO sdk_sessions VALUES (1, 'c1', 'k1', 'ledger-api', 'SECRETPROMPT', 1768212000000);
         CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT, project TEXT, text TEXT, type TEXT, created_at TEXT, created_at_epoch INTEGER);
         INSERT INTO observations VALUES (1, 'k1', 'ledger-api', 'First line is the title' || char(10) || 'the rest', 'bugfix', '2026-01-12T11:00:00Z', 1768215600000)",
    );
    let memory = fetched(&service, "obs-1");
    assert_eq!(memory["title"], "First line is the title");
    assert_eq!(memory["session_id"], "k1");
    assert!(memory["narrative"].as_str().unwrap().ends_with("the rest"));
    assert_eq!(
        ids(&service.query_memories(&words("rest")).unwrap()),
        ["obs-1"]
    );
    for (name, answer) in every_answer(&service) {
        assert!(!answer.to_string().contains("SECRETPROMPT"), "{name}");
    }
}

#[test]
fn a_minimal_claude_mem_store_is_read() {
    let (_root, service) = served(
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO observations \
         VALUES (5, 'a marker')",
    );
    assert_eq!(
        ids(&service.query_memories(&words("marker")).unwrap()),
        ["obs-5"]
    );
    assert_eq!(fetched(&service, "obs-5")["title"], "a marker");
    let (_root, service) = served(
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, sdk_session_id TEXT, request TEXT);
         INSERT INTO session_summaries VALUES (3, 'k1', 'a marker')",
    );
    assert_eq!(
        ids(&service.query_memories(&words("marker")).unwrap()),
        ["sum-3"]
    );
    assert_eq!(fetched(&service, "sum-3")["type"], "session_summary");
}

#[test]
fn claude_mem_three_is_read_with_its_public_ids() {
    let (root, service) = served(
        "CREATE TABLE sessions (id INTEGER PRIMARY KEY, session_id TEXT, project TEXT, title TEXT, created_at_epoch INTEGER);
         INSERT INTO sessions VALUES (1, 's-1', 'ledger-api', 'Retries', 1768212000);
         CREATE TABLE overviews (id INTEGER PRIMARY KEY, session_id TEXT, content TEXT, project TEXT, created_at TEXT, created_at_epoch INTEGER);
         INSERT INTO overviews VALUES (1, 's-1', 'About retries', 'ledger-api', 'x', 1768212000);
         CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, text TEXT, document_id TEXT, keywords TEXT, created_at TEXT, created_at_epoch INTEGER,
           project TEXT, archive_basename TEXT, title TEXT, subtitle TEXT, facts TEXT, concepts TEXT, files_touched TEXT);
         INSERT INTO memories VALUES (1, 's-1', 'The body', 'doc_1', 'k', '2026-01-12T11:00:00Z', 1768215600, 'ledger-api', 'arc', 'Webhook retries', 'sub', 'one fact' || char(10) || 'two, facts', 'retry, gotcha', 'src/a.rs'),
           (2, 's-1', 'Text alone', NULL, NULL, NULL, 1768215601, 'kiosk-web', NULL, NULL, NULL, NULL, NULL, NULL),
           (3, 's-1', 'Empty id', '', NULL, NULL, 1768215602, 'kiosk-web', NULL, 'Third', NULL, NULL, NULL, NULL)",
    );
    let mut found: Vec<String> = hits(&service, &everything())
        .into_iter()
        .map(|hit| hit.id)
        .collect();
    found.sort();
    assert_eq!(found, ["doc_1", "mem-2", "mem-3"]);
    let memory = fetched(&service, "doc_1");
    assert_eq!(memory["facts"], json!(["one fact", "two, facts"]));
    assert_eq!(memory["concepts"], json!(["retry", "gotcha"]));
    assert_eq!(memory["files"], json!(["src/a.rs"]));
    assert_eq!(memory["narrative"], "The body");
    assert_eq!(memory["created_at"], "2026-01-12T11:00:00Z");
    // Nobody reviewed its rows, so its overviews are not approved either.
    assert_eq!(
        memory["session_context"],
        json!({ "title": "Retries", "unreviewed": true })
    );
    root.manifest("odd", "overviews = \"show\"");
    assert_eq!(
        fetched(&root.service(), "doc_1")["session_context"],
        json!({ "title": "Retries", "overview": "About retries", "unreviewed": true })
    );
    assert_eq!(fetched(&service, "mem-2")["title"], "Text alone");
    let request = QueryRequest {
        project: Some("kiosk-web".to_owned()),
        ..everything()
    };
    assert_eq!(hits(&service, &request).len(), 2);
    let scopes = service
        .list_scopes(&ack_api::ListScopesRequest::default())
        .unwrap();
    assert_eq!(scopes.scopes[0].profile.as_deref(), Some("claude-mem-v3"));
}
