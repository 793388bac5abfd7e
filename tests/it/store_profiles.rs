//! What is read from the stores of several programs, and from stores that lack most columns or have
//! others.

use ack_api::{NoteKind, QueryRequest};
use ack_memory::Service;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::store_support::{
    CLAUDE_MEM, assert_neutral, database, every_answer, everything, fetched, get, has_note, hits,
    ids, served, words,
};
use crate::support::{Root, Sql, run_sql};

/// An optional column of the native schema, a value, and what `get_memory` shows.
const COLUMNS: [(&str, &str, &str); 16] = [
    ("project", "'ledger'", r#""ledger""#),
    ("session", "'s-1'", r#""s-1""#),
    ("session_id", "'S1'", r#""S1""#),
    ("date", "'2026-01-04'", r#""2026-01-04""#),
    ("type", "'gotcha'", r#""gotcha""#),
    ("subtitle", "'one line'", r#""one line""#),
    ("facts", r#"'["a","b"]'"#, r#"["a","b"]"#),
    ("concepts", r#"'["x"]'"#, r#"["x"]"#),
    ("files", r#"'["src/a.rs"]'"#, r#"["src/a.rs"]"#),
    ("narrative", "'long text'", r#""long text""#),
    ("confidence", "0.5", "0.5"),
    ("reviewed_at", "'2026-01-05'", r#""2026-01-05T00:00:00Z""#),
    ("reviewed_by", "'dana'", r#""dana""#),
    ("superseded_by", "'m9'", r#""m9""#),
    ("created_at", "'2026-01-06'", r#""2026-01-06T00:00:00Z""#),
    ("updated_at", "1767744000", r#""2026-01-07T00:00:00Z""#),
];

/// The ids that a word finds.
fn found(service: &Service, word: &str) -> Vec<String> {
    ids(&service.query_memories(&words(word)).unwrap())
}

/// The ids of all memories, sorted; of one project, if it is named.
fn all(service: &Service, project: Option<&str>) -> Vec<String> {
    let mut request = everything();
    request.project = project.map(str::to_owned);
    let found = hits(service, &request).into_iter();
    let mut found: Vec<String> = found.map(|hit| hit.id).collect();
    found.sort();
    found
}

#[test]
fn a_store_with_nothing_but_id_and_title_answers_every_tool() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT, title TEXT); INSERT INTO memories VALUES ('m1', 'only a marker')",
    );
    let found = service.query_memories(&words("marker")).unwrap();
    assert_eq!(ids(&found), ["m1"]);
    let memory = fetched(&service, "m1");
    let known = ["id", "title", "scope", "status", "timeline", "notes"];
    for key in memory.as_object().unwrap().keys() {
        assert!(known.contains(&key.as_str()), "{key}: {memory}");
    }
    assert_eq!(memory["status"], "staging", "nobody approved it");
    for (name, answer) in every_answer(&service) {
        assert_neutral(&name, &answer);
    }
}

#[test]
fn each_optional_column_alone_is_read_and_no_other_field_is_invented() {
    for (column, value, shown) in COLUMNS {
        let sql = format!(
            "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, \"{column}\");
             INSERT INTO memories VALUES ('m1', 'a marker', {value}), ('m9', 'other words', NULL)"
        );
        let (_root, service) = served(&sql);
        let memory = fetched(&service, "m1");
        let shown: Value = serde_json::from_str(shown).unwrap();
        assert_eq!(memory[column], shown, "{column}: {memory}");
        for (other, ..) in COLUMNS {
            let derived = column == "date" && other == "created_at";
            let is_expected = other == column || derived;
            assert!(is_expected || memory.get(other).is_none(), "{column}: {memory}");
        }
        // A memory whose successor is served is found only by its id.
        let expected = usize::from(column != "superseded_by");
        assert_eq!(found(&service, "marker").len(), expected, "{column}");
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
    assert_eq!(found(&service, "marker"), ["m1"]);
    for (name, answer) in every_answer(&service) {
        assert_lacks!(answer.to_string(), "hidden marker"; "{name}");
    }
}

#[test]
fn a_column_named_rowid_is_not_the_row_number() {
    let (_root, service) = served(
        "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT, rowid TEXT);
         INSERT INTO memories VALUES ('m1', 'a marker', 'not a number'), ('m2', 'other words', 'not a number'), ('m3', 'third one', NULL)",
    );
    assert_eq!(found(&service, "marker"), ["m1"]);
    assert_eq!(hits(&service, &everything()).len(), 3);
    assert_eq!(fetched(&service, "m2")["title"], "other words");
}

#[test]
fn integer_ids_are_served_as_text_and_found_again() {
    for declared in ["INTEGER PRIMARY KEY", "INTEGER", "INT NOT NULL", "NUMERIC", ""] {
        let sql = format!(
            "CREATE TABLE memories (id {declared}, title TEXT); INSERT INTO memories VALUES (7, 'a marker'), (42, 'another thing')"
        );
        let (_root, service) = served(&sql);
        assert_eq!(found(&service, "marker"), ["7"], "id {declared}");
        assert_eq!(hits(&service, &everything()).len(), 2, "id {declared}");
        let memory = fetched(&service, "42");
        assert_eq!(memory["title"], "another thing", "id {declared}");
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
fn tables_without_row_numbers_and_views_are_refused_by_name() {
    let root = Root::new();
    database(
        &root,
        "odd",
        "CREATE TABLE memories (id TEXT PRIMARY KEY NOT NULL, title TEXT) WITHOUT ROWID;
         CREATE TABLE raw (n INTEGER PRIMARY KEY, title TEXT);
         CREATE VIEW observations AS SELECT n AS id, title FROM raw",
    );
    let scopes = crate::cli::ack(root.path(), &["scopes", "--json"]).json();
    let error = scopes["scopes"][0]["health"]["problems"].to_string();
    assert!(error.contains("`memories WITHOUT ROWID`, `raw`"), "{scopes:#}");
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
        assert_eq!(ids(&found), vec!["mä".to_owned()]);
        assert_eq!(found.results[0].concepts, vec!["größe".to_owned()]);
        assert_eq!(fetched(&service, "mä")["title"], "データ marker");
    }
}

#[test]
fn a_schema_change_is_noticed_by_the_next_answer() {
    let root = Root::new();
    let sql = "CREATE TABLE memories (id TEXT PRIMARY KEY, title TEXT); INSERT INTO memories VALUES ('m1', 'a marker')";
    let path = database(&root, "odd", sql);
    let service = root.service();
    let list = || service.query_memories(&QueryRequest::default());
    assert_eq!(list().unwrap().total, 0, "nobody approved it");
    let other = Connection::open(&path).unwrap();
    other.sql(
        "ALTER TABLE memories ADD COLUMN status TEXT; UPDATE memories SET status = 'approved'",
    );
    assert_eq!(ids(&list().unwrap()), ["m1"]);
    other.sql("ALTER TABLE memories RENAME COLUMN title TO headline");
    assert_eq!(list().unwrap_err().code(), "store_foreign");
    other.sql("ALTER TABLE memories RENAME COLUMN headline TO title");
    assert_eq!(ids(&list().unwrap()), ["m1"]);
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
    assert_eq!(all(&service, None), ["obs-123", "obs-124", "obs-125", "sum-12"]);
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
    assert_contains!(memory["session_context"]["overview"], "linear is wrong");
    let summary = fetched(&service, "sum-12");
    assert_eq!(summary["title"], "Fix the retries");
    assert_eq!(summary["type"], "session_summary");
    for part in ["the queue", "linear is wrong", "exponential", "watch it"] {
        assert_contains!(summary["narrative"], part);
    }
    let unknown =
        "obs-12 sum-123 obs-0123 obs- obs-x OBS-123 123 obs--123 obs-99999999999999999999";
    for id in unknown.split(' ') {
        let shown = get(&service, id).unwrap_err().code();
        assert_eq!(shown, "memory_not_found", "{id}");
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
    for kind in [NoteKind::HiddenByStatus, NoteKind::NoStatusColumn] {
        assert!(has_note(&found, kind), "{:?}", found.notes);
    }
    root.manifest("cm", "unreviewed = \"approved\"\n");
    let found = service.query_memories(&QueryRequest::default()).unwrap();
    assert_eq!(found.total, 4);
}

#[test]
fn memories_of_a_merged_worktree_are_found_by_both_names() {
    let (_root, service) = served(&claude_mem());
    let of = |project: &str| all(&service, Some(project));
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
    for project in ["ledger-api", "ledger-api/retry"] {
        assert_eq!(all(&service, Some(project)), ["obs-1"], "{project}");
    }
    let place = crate::context::project(&root, "ledger-api", "main");
    let answer = crate::context::context(&root, &place, json!({}));
    let found = crate::support::ids(&answer["recent_memories"]);
    assert_eq!(found, ["obs-1"], "{answer:#}");
    let found = &answer["recent_sessions"][0]["title"];
    assert_eq!(*found, "Retries", "{answer:#}");
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
        ("obs-3", "Never run the restore script without --dry-run first.", json!(null)),
        ("obs-4", "Rounding", json!("Half to even.")),
    ] {
        let memory = fetched(&service, id);
        assert_eq!(memory["title"], json!(title), "{memory}");
        assert_eq!(memory["subtitle"], subtitle, "{memory}");
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
    let shown = get(&service, "obs-1").unwrap_err().code();
    assert_eq!(shown, "memory_not_found");
}

#[test]
fn a_second_database_in_a_scope_is_named() {
    let root = Root::with("team", &[crate::support::titled("a", "Webhook retries")]);
    let service = root.service();
    let problems = || {
        let scopes = crate::cli::ack(root.path(), &["scopes", "--json"]).json();
        scopes["scopes"][0]["health"]["problems"].to_string()
    };
    assert_eq!(problems(), "null");
    let other = root.scope_folder("team").join("claude-mem.db");
    run_sql(&other, &claude_mem());
    let said = "`claude-mem.db` is in its folder too and is not read";
    assert_contains!(problems(), said);
    assert_eq!(ids(&service.query_memories(&everything()).unwrap()), ["a"]);
    root.manifest("team", "store = \"claude-mem.db\"");
    assert_lacks!(problems(), "is not read");
    assert!(ids(&service.query_memories(&everything()).unwrap()).contains(&"obs-123".to_owned()));
}

#[test]
fn raw_prompts_and_tool_output_are_never_served() {
    let root = Root::new();
    database(&root, "cm", &claude_mem());
    let settings = "unreviewed = \"approved\"\nprojects = [\"ledger-api\"]\n";
    root.manifest("cm", settings);
    let service = root.service();
    for query in ["SECRETPROMPT", "raw words", "what I typed", "Bash"] {
        let found = service.query_memories(&words(query)).unwrap();
        assert_eq!((found.results.len(), found.total), (0, 0), "{query}");
    }
    for (name, answer) in every_answer(&service) {
        assert_lacks!(answer.to_string().to_lowercase(), "secretprompt"; "{name}");
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
    assert_eq!(found(&service, "rest"), ["obs-1"]);
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
    assert_eq!(found(&service, "marker"), ["obs-5"]);
    assert_eq!(fetched(&service, "obs-5")["title"], "a marker");
    let (_root, service) = served(
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, sdk_session_id TEXT, request TEXT);
         INSERT INTO session_summaries VALUES (3, 'k1', 'a marker')",
    );
    assert_eq!(found(&service, "marker"), ["sum-3"]);
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
    assert_eq!(all(&service, None), ["doc_1", "mem-2", "mem-3"]);
    let memory = fetched(&service, "doc_1");
    assert_eq!(memory["facts"], json!(["one fact", "two, facts"]));
    assert_eq!(memory["concepts"], json!(["retry", "gotcha"]));
    assert_eq!(memory["files"], json!(["src/a.rs"]));
    assert_eq!(memory["narrative"], "The body");
    assert_eq!(memory["created_at"], "2026-01-12T11:00:00Z");
    // Nobody reviewed its rows, so its overviews are not approved either.
    let context = json!({ "title": "Retries", "unreviewed": true });
    assert_eq!(memory["session_context"], context);
    root.manifest("odd", "overviews = \"show\"");
    let shown = &fetched(&root.service(), "doc_1")["session_context"];
    assert_eq!(shown["overview"], "About retries");
    assert_eq!(shown["unreviewed"], true);
    assert_eq!(fetched(&service, "mem-2")["title"], "Text alone");
    assert_eq!(all(&service, Some("kiosk-web")).len(), 2);
    let scopes = service.list_scopes(&ack_api::ListScopesRequest::default()).unwrap();
    assert_eq!(scopes.scopes[0].profile.as_deref(), Some("claude-mem-v3"));
}
