//! The model of generated stores for `leaks`: what a store says of each memory, and what may be
//! served of it. A memory is recognised by its marker, a word in its id and in every field that a
//! store has for it: texts, lists, project, type, session, links, decisions. Its times are in a
//! year that no other memory has. Then the few paths on which a status could change between two
//! reads.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use ack_api::memory::{Status, StatusFilter, Unreviewed};
use ack_store::Store;
use proptest::prelude::*;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::support::{Ask, Root, Sql, result_ids, titled};

pub const SCOPES: [&str; 4] = ["alpha", "beta", "gamma-private", "delta-broken"];
const PRIVATE: usize = 2;
const BROKEN: usize = 3;
/// Sessions of each scope that several memories may share.
const SESSIONS: usize = 4;
/// Which project a memory has: none, one of three, or from there on, one of its own.
const PROJECTS: usize = 6;
/// Numbers that make a request.
pub const BYTES: usize = 16;

/// The values of `status` in a store, and what each counts as; `None` is never served.
pub const STATUSES: [(Option<&str>, Option<Status>); 14] = [
    (Some("approved"), Some(Status::Approved)),
    (Some("promoted"), Some(Status::Promoted)),
    (Some(" Approved "), Some(Status::Approved)),
    (Some("PROMOTED"), Some(Status::Promoted)),
    (Some("staging"), Some(Status::Staging)),
    (Some(" Staging\n"), Some(Status::Staging)),
    (Some(""), Some(Status::Staging)),
    (None, Some(Status::Staging)),
    (Some("rejected"), None),
    (Some("Rejected "), None),
    (Some("REJECTED"), None),
    (Some("approved?"), None),
    (Some("draft"), None),
    (Some("deleted"), None),
];

/// The text in the status column of a memory. One of those that are no status names its memory.
pub fn status_text(status: usize, number: usize) -> Option<String> {
    match STATUSES[status].0 {
        Some("deleted") => Some(format!("Deleted_{}", marker(number))),
        text => text.map(str::to_owned),
    }
}

#[derive(Debug, Clone)]
pub struct PlannedRow {
    pub scope: usize,
    pub status: usize,
    successor: Option<usize>,
    /// A session of its scope, or from [`SESSIONS`] on, one of its own.
    pub session: Option<usize>,
    project: usize,
    has_own_type: bool,
    has_expired: bool,
    day: u32,
}

/// Who asks, and so what an answer may show at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// An agent gets only what was approved, whatever it asks for.
    Agent,
    /// An agent of an owner who lets agents ask for what waits.
    TrustedAgent,
    /// The owner at the command line.
    Owner,
}

impl Caller {
    /// Which memories an answer may show. What lists scopes or the queue shows its owner all that
    /// waits; what chooses memories without a status shows nobody anything that was not approved.
    fn filter(self, tool: &str, arguments: &Value) -> StatusFilter {
        let status = arguments["status"].as_str();
        match (self, tool, status) {
            (Self::Agent, ..) => StatusFilter::Approved,
            (_, "list_scopes" | REVIEW, _) => StatusFilter::All,
            (_, "query_memories" | "get_memory", Some("staging")) => StatusFilter::Staging,
            (_, "query_memories" | "get_memory", Some("all")) => StatusFilter::All,
            _ => StatusFilter::Approved,
        }
    }
}

/// The commands that show what waits.
pub const REVIEW: &str = "review";
/// What chooses memories by itself: prompts, resources, hooks, publishing.
pub const CHOSEN: &str = "chosen";

/// A request, and who makes it.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub caller: Caller,
    pub tool: &'static str,
    pub arguments: &'a Value,
}

/// A line of a decision log.
#[derive(Debug, Clone)]
pub struct Line {
    pub memory: usize,
    verdict: usize,
    was: usize,
    into: usize,
    damage: usize,
}

/// What the store and the decision log say now about a memory.
#[derive(Debug, Clone)]
pub struct StoredRow {
    pub stored: Option<Status>,
    /// The number of the content, which changes when the text changes.
    pub content: usize,
    /// The last line about it, with the content that it was about.
    pub line: Option<(Line, usize)>,
    /// The row was removed.
    pub is_gone: bool,
}

const VERDICTS: [&str; 8] =
    ["approve", "promote", "reject", "stage", "supersede", "merge", "edit", "withdraw"];
const WAS: [Status; 4] = [Status::Approved, Status::Promoted, Status::Staging, Status::Rejected];

/// How a line of the log is damaged. All other numbers leave it whole.
const TORN: usize = 0;
const UNKNOWN_VERDICT: usize = 1;
const OTHER_CONTENT: usize = 2;

impl StoredRow {
    /// The initial content of a store.
    pub fn of(planned: &PlannedRow) -> Self {
        Self { stored: STATUSES[planned.status].1, content: 0, line: None, is_gone: false }
    }

    /// The status that counts, as docs/curation.md says it; `None` is never served.
    fn status(&self) -> Option<Status> {
        if self.is_gone {
            return None;
        }
        let Some((line, content)) = &self.line else {
            return self.stored;
        };
        let verdict = VERDICTS[line.verdict];
        let was = WAS[line.was];
        let is_unreadable = [TORN, UNKNOWN_VERDICT].contains(&line.damage);
        if !is_unreadable && verdict == "withdraw" {
            return self.stored;
        }
        if self.stored.is_none() && (was != Status::Rejected || is_unreadable) {
            return None;
        }
        if is_unreadable || line.damage == OTHER_CONTENT || *content != self.content {
            return self.stored.map(|_| Status::Staging);
        }
        match verdict {
            "approve" | "edit" => Some(Status::Approved),
            "promote" => Some(Status::Promoted),
            "stage" => Some(Status::Staging),
            "reject" => None,
            _ => Some(was).filter(|was| [Status::Approved, Status::Promoted].contains(was)),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub lines: Vec<Line>,
    /// Memories whose text another program changes.
    pub rewritten: Vec<usize>,
    pub memories: Vec<PlannedRow>,
    pub links: Vec<(usize, usize)>,
    pub changes: Vec<(usize, usize)>,
    pub current: Option<usize>,
    pub pinned: Option<usize>,
    /// Rows with the id of another one: the number of that one, and their own.
    pub duplicate_ids: Vec<(usize, usize)>,
}

pub fn plans() -> impl Strategy<Value = Plan> {
    let planned = (
        0..SCOPES.len(),
        0..STATUSES.len(),
        proptest::option::weighted(0.4, 0..24usize),
        proptest::option::of(0..SESSIONS + 3),
        0..PROJECTS,
        (any::<bool>(), proptest::bool::weighted(0.2)),
        1..28u32,
    )
        .prop_map(
            |(scope, status, successor, session, project, (has_own_type, has_expired), day)| {
                PlannedRow {
                    scope,
                    status,
                    successor,
                    session,
                    project,
                    has_own_type,
                    has_expired,
                    day,
                }
            },
        );
    let line = (0..24usize, 0..VERDICTS.len(), 0..WAS.len(), 0..24usize, 0..10usize).prop_map(
        |(memory, verdict, was, into, damage)| Line { memory, verdict, was, into, damage },
    );
    (
        proptest::collection::vec(line, 0..16),
        proptest::collection::vec(0..24usize, 0..4),
        proptest::collection::vec(planned, 4..24),
        proptest::collection::vec((0..24usize, 0..24usize), 0..20),
        proptest::collection::vec((0..24usize, 0..STATUSES.len()), 0..6),
        proptest::option::weighted(0.6, 0..SCOPES.len()),
        proptest::option::weighted(0.25, 0..3usize),
    )
        .prop_map(|(lines, rewritten, memories, links, changes, current, pinned)| Plan {
            lines,
            rewritten,
            memories,
            links,
            changes,
            current,
            pinned,
            duplicate_ids: Vec::new(),
        })
}

/// Letters only, so that equal ones may be folded.
pub fn marker(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    format!("mkq{}{}z", letter(number / 26), letter(number))
}

/// The year of everything that happened to a memory.
fn year(number: usize) -> usize {
    1976 + number
}

/// The project that only this memory has, as its store spells it. Requests spell it `prj-…`.
pub fn own_project(number: usize) -> String {
    format!("Prj_{}", marker(number))
}

/// As [`own_project`], of its tag. Requests write `tag-…`.
pub fn own_tag(number: usize) -> String {
    format!("Tag_{}", marker(number))
}

/// A mark as somebody remembers it who does not know it: it is near one, and is none.
fn near_mark(number: usize) -> String {
    let mut mark = marker(number);
    mark.pop();
    mark
}

/// Like [`marker`], for a session.
fn session_mark(scope: usize, session: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n).unwrap());
    format!("sessq{}{}z", letter(scope), letter(session))
}

/// The session of a memory: one of its scope, or its own.
fn session_id(session: usize, memory: usize) -> String {
    match session {
        ..SESSIONS => format!("session-{session}"),
        _ => format!("Session_{}", marker(memory)),
    }
}

/// Digits that no other memory has.
fn confidence(number: usize) -> f64 {
    format!("0.37{number:02}91").parse().unwrap()
}

pub fn id(number: usize) -> String {
    format!("ack_{}", marker(number))
}

pub fn project_folder(root: &Path, scope: usize) -> std::path::PathBuf {
    root.join("projects").join(format!("p-{}", SCOPES[scope]))
}

/// The memories that a link connects. Most are two of one scope, so that the link can be followed.
fn link_ends(plan: &Plan, position: usize) -> (usize, usize) {
    let (from, to) = plan.links[position];
    if position.is_multiple_of(4) {
        return (from, to);
    }
    let from = from % plan.memories.len();
    let scope = plan.memories[from].scope;
    let rows = plan.memories.iter().enumerate();
    let near = rows.filter(|(_, row)| row.scope == scope);
    let near: Vec<usize> = near.map(|(number, _)| number).collect();
    (from, near[to % near.len()])
}

/// Puts the planned memories into the stores of a root, in place of the existing ones.
pub fn fill(root: &Root, plan: &Plan) {
    for (number, scope) in SCOPES.iter().enumerate() {
        let folder = project_folder(root.path(), number);
        std::fs::create_dir_all(&folder).unwrap();
        let rest = match number {
            PRIVATE => "visibility = \"private\"",
            BROKEN => "visibilty = \"shared\"",
            _ => "",
        };
        let settings = format!("paths = ['{}']\n{rest}\n", folder.display());
        root.manifest(scope, &settings);
        let database = root.scope_folder(scope).join("memory.db");
        let is_new = !database.exists();
        let connection = Connection::open(database).unwrap();
        connection.sql("PRAGMA synchronous = OFF; BEGIN");
        if is_new {
            connection.sql(ack_memory::internal::import::SCHEMA);
        }
        for table in "memories sessions overviews curation_log memory_links".split(' ') {
            connection.sql(&format!("DELETE FROM {table}"));
        }
        let planned = plan.memories.iter().enumerate();
        for (memory, planned) in planned.filter(|(_, planned)| planned.scope == number) {
            let (mark, year) = (marker(memory), year(memory));
            let common = "the nightly deployment of the payment gateway fails because the certificate chain lacks its intermediate";
            connection.sql_with("INSERT INTO memories (id, project, session, type, title, subtitle, facts, files, narrative, status, \
                     reviewed_by, superseded_by, created_at, concepts, session_id, confidence, date, updated_at, \
                     reviewed_at, stale_after) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
                     ?15, ?16, ?17, ?18, ?19, ?20)", params![
                        id(memory),
                        match planned.project {
                            0 => None,
                            1 => Some("red".to_owned()),
                            2 => Some("Blue".to_owned()),
                            3 => Some("other".to_owned()),
                            _ => Some(own_project(memory)),
                        },
                        planned.session.map(|session| session_id(session, memory)),
                        match planned.has_own_type {
                            true => format!("Kind_{mark}"),
                            false => "bugfix".to_owned(),
                        },
                        format!("Title {mark} {common}"),
                        format!("Subtitle {mark}"),
                        json!([format!("Fact {mark}")]).to_string(),
                        json!([format!("src/{mark}.rs")]).to_string(),
                        format!("Narrative {mark} {common}"),
                        status_text(planned.status, memory),
                        format!("reviewer {mark}"),
                        planned.successor.map(id),
                        format!("{year}-03-{:02}T00:00:00Z", planned.day),
                        json!(["tls", "deploy", own_tag(memory)]).to_string(),
                        format!("Agent_session_{mark}"),
                        confidence(memory),
                        format!("{year}-02-{:02}", planned.day),
                        format!("{year}-05-{:02}T00:00:00Z", planned.day),
                        format!("{year}-07-{:02}T00:00:00Z", planned.day),
                        planned.has_expired.then(|| format!("{year}-09-01")),
                    ]);
            connection.sql_with("INSERT INTO curation_log (memory_id, action, previous_status, new_status, reason, actor, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", params![
                        id(memory),
                        format!("Action {mark}"),
                        format!("Before {mark}"),
                        format!("After {mark}"),
                        format!("Reason {mark}"),
                        format!("Actor {mark}"),
                        format!("{year}-10-01T00:00:00Z"),
                    ]);
            if planned.session.is_some_and(|session| session >= SESSIONS) {
                let session = session_id(SESSIONS, memory);
                connection.sql_with("INSERT INTO sessions (id, project, title, started_at, ended_at) VALUES (?1, ?2, ?3, ?4, ?4)", params![
                            session,
                            format!("Prj_{mark}"),
                            format!("Session title {mark} s{mark}"),
                            format!("{year}-02-01T00:00:00Z"),
                        ]);
                connection.sql_with("INSERT INTO overviews (session, project, content, created_at) VALUES (?1, ?2, ?3, ?4)", params![
                            session,
                            format!("Prj_{mark}"),
                            format!("Overview {mark} o{mark}"),
                            format!("{year}-02-01T00:00:00Z"),
                        ]);
            }
        }
        for position in 0..plan.links.len() {
            let (from, to) = link_ends(plan, position);
            let both = format!("{}_{}", marker(from), marker(to));
            let kind = match position % 4 {
                0 => "derived_from".to_owned(),
                1 => "contradicts".to_owned(),
                _ => format!("link_{both}"),
            };
            connection.sql_with("INSERT OR IGNORE INTO memory_links (from_id, to_id, kind, source) VALUES (?1, ?2, ?3, ?4)", params![id(from), id(to), kind, format!("Linker {both}")]);
        }
        for session in 0..SESSIONS {
            let mark = session_mark(number, session);
            let project = [None, Some(format!("p-{scope}"))][session % 2].clone();
            connection.sql_with("INSERT INTO sessions (id, project, title, started_at) VALUES (?1, ?2, ?3, '2026-03-01')", params![format!("session-{session}"), project, format!("Title {mark}")]);
            connection.sql_with(
                "INSERT INTO overviews (session, content) VALUES (?1, ?2)",
                params![format!("session-{session}"), format!("Overview o{mark}")],
            );
        }
        connection.sql("COMMIT");
    }
}

/// A request of any tool, from numbers. It names what memories have in another spelling than their
/// stores, so that repeating it differs from showing it.
pub fn request(bytes: &[u8], plan: &Plan, root: &Root) -> (&'static str, Value) {
    let one = |position: usize, choices: &[Value]| {
        choices[usize::from(bytes[position]) % choices.len()].clone()
    };
    let number = |position: usize| usize::from(bytes[position]) % (plan.memories.len() + 2);
    let some_id = |position: usize| match bytes[position] {
        250.. => json!(format!("ack_{}", near_mark(number(position)))),
        _ => json!(id(number(position))),
    };
    let marked =
        |prefix: &str, position: usize| json!(format!("{prefix}{}", marker(number(position))));
    let near =
        |prefix: &str, position: usize| json!(format!("{prefix}{}", near_mark(number(position))));
    // A kind of link, nearly.
    let near_link = |position: usize| {
        if plan.links.is_empty() {
            return json!("links");
        }
        let (from, to) = link_ends(plan, number(position) % plan.links.len());
        json!(format!("links-{}-{}", near_mark(from), near_mark(to)))
    };
    let no = Value::Null;
    let scopes = [
        [no.clone(), json!("alpha"), json!("Gamma_Private")],
        [no.clone(), json!("beta"), json!("delta-broken")],
        [no.clone(), marked("prj-", 10), near("prj-", 10)],
    ];
    let scope = one(1, &scopes.concat());
    let statuses = ["approved", "staging", "all", "all"].map(Value::from);
    let status = one(2, &[&[no.clone(), no.clone()], &statuses[..]].concat());
    let queries = [
        no.clone(),
        json!("deployment certificate"),
        json!("nightly"),
        some_id(4),
        json!(format!("{} title", marker(number(4)))),
        json!("certificat"),
        near("", 4),
        marked("prj-", 4),
        marked("tag-", 4),
        near("tag-", 4),
        marked("s", 4),
        marked("o", 4),
        json!(format!("session title {}", near_mark(number(4)))),
    ];
    let query = one(3, &queries);
    let mut arguments = match bytes[0] % 8 {
        0..=3 => json!({
            "query": query,
            "like": one(15, &[Value::Null, Value::Null, Value::Null, Value::Null, some_id(4)]),
            "scope": scope,
            "status": status,
            "limit": one(5, &[Value::Null, json!(1), json!(2), json!(50)]),
            "project": one(6, &[Value::Null, Value::Null, Value::Null, json!("red"), json!("other"), json!("nowhere"), marked("prj-", 10), near("prj-", 10)]),
            "tags": one(7, &[Value::Null, Value::Null, Value::Null, json!(["tls"]), json!(["deploy", "no"]), json!([marked("tag-", 10)]), json!([near("tag-", 10)])]),
            "match_tags": one(8, &[Value::Null, json!("any")]),
            "detail": one(8, &[Value::Null, json!("concise"), json!("full")]),
            "files": one(9, &[Value::Null, Value::Null, Value::Null, json!("src/*.rs"), json!("mkq"), near("src/", 10)]),
            "session": one(11, &[Value::Null, Value::Null, Value::Null, Value::Null, json!("session-0"), marked("Session_", 10), near("Session_", 10)]),
            "type": one(12, &[Value::Null, Value::Null, Value::Null, Value::Null, json!("bugfix"), marked("kind-", 10), near("kind-", 10)]),
            "expect": one(13, &[Value::Null, Value::Null, some_id(10)]),
            "mode": one(14, &[Value::Null, Value::Null, json!("lexical"), json!("semantic")]),
            "order": one(12, &[Value::Null, json!("oldest")]),
            "explain": one(5, &[Value::Null, json!(true)]),
            "max_tokens": one(6, &[Value::Null, json!(200), json!(900)]),
        }),
        4 => json!({
            "id": some_id(3), "scope": scope, "status": status,
            "include": one(4, &[Value::Null, json!(["timeline", "links", "history", "related"]), json!(["links"])]),
            "kind": one(5, &[Value::Null, Value::Null, Value::Null, json!(["contradicts"]), json!(["link"]), json!([near_link(10)])]),
            "timeline_within": one(6, &[Value::Null, Value::Null, json!("session"), json!("project"), json!("scope")]),
        }),
        5 => json!({
            "ids": [some_id(3), some_id(4), some_id(5), some_id(6), some_id(7), some_id(8)], "scope": scope, "status": status,
            "include": one(9, &[Value::Null, json!(["timeline", "links", "history", "related"])]),
        }),
        6 => json!({ "scope": scope }),
        _ => json!({
            "project_path": one(3, &[
                Value::Null,
                json!(project_folder(root.path(), usize::from(bytes[4]) % SCOPES.len())),
                json!(root.path().join("projects").join(format!("prj-{}", marker(number(10))))),
            ]),
            "include_cross_project": one(5, &[Value::Null, json!(true), json!(false)]),
            "max_memories": one(6, &[Value::Null, json!(1), json!(50)]),
            "focus": one(7, &[Value::Null, json!("certificate"), some_id(8), marked("tag-", 8), near("", 8)]),
        }),
    };
    let has_like = arguments.get("like").is_some_and(|like| !like.is_null());
    let arguments_given = arguments.as_object_mut().unwrap();
    if has_like {
        for other in ["query", "mode", "order"] {
            arguments_given.remove(other);
        }
    } else if arguments_given.get("query").is_some_and(|query| !query.is_null()) {
        arguments_given.remove("order");
    }
    arguments_given.retain(|_, value| !value.is_null());
    let tool = match bytes[0] % 8 {
        0..=3 => "query_memories",
        4 | 5 => "get_memory",
        6 => "list_scopes",
        _ => "get_context",
    };
    (tool, arguments)
}

/// Whether a request may show a memory at all, as the contract says it.
fn may_show(
    plan: &Plan,
    root: &Root,
    held: &[StoredRow],
    number: usize,
    question: &Question<'_>,
) -> bool {
    let arguments = question.arguments;
    let scope = plan.memories[number].scope;
    let folded = |name: &str| name.to_lowercase().replace(['-', '_'], "");
    let named = arguments["scope"].as_str().map(|name| {
        let known = SCOPES.iter().position(|known| folded(known) == folded(name));
        // The name of a project means the shared scopes that have one.
        known.map_or_else(|| vec![0, 1, PRIVATE], |scope| vec![scope])
    });
    let asked = (0..SCOPES.len())
        .find(|scope| arguments["project_path"] == json!(project_folder(root.path(), *scope)));
    let readable = scope != BROKEN
        && match (plan.pinned, named) {
            (Some(pinned), _) => scope == pinned,
            (None, Some(named)) if named.len() == 1 => named.contains(&scope),
            (None, _) => scope != PRIVATE || asked.or(plan.current) == Some(scope),
        };
    let filter = question.caller.filter(question.tool, arguments);
    let status = held[number].status();
    readable && status.is_some_and(|status| filter.allows(status))
}

/// Takes out of an answer what the contract lets it say about memories of any status: `pending.ids`
/// (ids that wait, which agents get only if their owner lets them ask), the newest and the oldest
/// time in a scope, and for its owner, what is wrong with it.
fn strip(answer: &mut Value, caller: Caller, pending: &mut Vec<String>) {
    match answer {
        Value::Object(fields) => {
            fields.remove("last_updated");
            if caller == Caller::Owner {
                fields.remove("health");
            }
            if let Some(waiting) = fields.get_mut("pending").and_then(Value::as_object_mut) {
                waiting.remove("oldest");
                if caller != Caller::Agent
                    && let Some(Value::Array(ids)) = waiting.remove("ids")
                {
                    pending.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned));
                }
            }
            let values = fields.values_mut();
            values.for_each(|value| strip(value, caller, pending));
        }
        Value::Array(values) => {
            let values = values.iter_mut();
            values.for_each(|value| strip(value, caller, pending));
        }
        Value::String(text) => {
            // An answer inside of a message.
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                *answer = inner;
                strip(answer, caller, pending);
            }
        }
        _ => {}
    }
}

/// Every text in arguments that holds a mark.
fn asked_texts(arguments: &Value, texts: &mut Vec<String>) {
    match arguments {
        Value::String(text) => {
            let text = text.to_lowercase();
            if !text.contains("mkq") {
                return;
            }
            if let Some((_, last)) = text.rsplit_once('/') {
                texts.push(last.to_owned());
            }
            let words = text.split(|character: char| !character.is_alphanumeric());
            texts.extend(words.map(|word| format!("`{word}`")));
            texts.push(text);
        }
        Value::Array(values) => values.iter().for_each(|value| asked_texts(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| asked_texts(value, texts)),
        _ => {}
    }
}

/// An answer without what the caller said itself. No field of a memory holds such a text.
fn without_echo(text: &str, arguments: &Value) -> String {
    let mut asked = Vec::new();
    asked_texts(arguments, &mut asked);
    asked.retain(|text| text.contains("mkq"));
    asked.sort_by_key(|text| std::cmp::Reverse(text.len()));
    asked.iter().fold(text.to_owned(), |text, asked| text.replace(asked, "it"))
}

/// Searches for anything that an answer may not show.
pub fn inspect(
    plan: &Plan,
    root: &Root,
    held: &[StoredRow],
    question: &Question<'_>,
    answer: &mut Value,
) {
    let is_agent = question.caller == Caller::Agent;
    if !is_agent && let Some(suggestions) = answer.get_mut("suggestions").map(Value::take) {
        // Whoever may ask for what waits is told a name there that is near to the one of the
        // filter.
        let all = Question { tool: REVIEW, ..*question };
        inspect(plan, root, held, &all, &mut json!([suggestions]));
    }
    let mut pending = Vec::new();
    strip(answer, question.caller, &mut pending);
    let text = answer.to_string().to_lowercase();
    let notes = missing_links(plan, held, answer);
    let unsaid = notes.iter().fold(text.clone(), |text, note| text.replace(note, "it"));
    let unsaid = without_echo(&unsaid, question.arguments);
    // Those of a whole scope are among what these say.
    let tells_times_of_scopes = ["list_scopes", "get_context", CHOSEN].contains(&question.tool);
    for number in 0..plan.memories.len() {
        let mark = marker(number);
        let twins = plan.duplicate_ids.iter().filter(|(first, _)| *first == number);
        let mut same = twins.map(|(_, twin)| *twin).chain([number]);
        if pending.contains(&id(number)) {
            let mut statuses = same.clone().map(|same| held[same].status());
            let waits = statuses.any(|status| status == Some(Status::Staging));
            let scope = plan.memories[number].scope;
            let is_own = plan.pinned.is_none_or(|pinned| pinned == scope);
            assert!(waits && is_own && scope != BROKEN, "{question:?}: pending {mark}");
        }
        if may_show(plan, root, held, number, question) {
            continue;
        }
        // The id may be that of another row, which may be shown with what belongs to the id.
        let is_id_shown = same.any(|same| may_show(plan, root, held, same, question));
        let mut unsaid = match is_id_shown {
            true => without_shared(&unsaid, number),
            // The links of a duplicate lead to the memory that was kept.
            false if is_merged(&held[number]) => without_links(&unsaid, number),
            false => unsaid.clone(),
        };
        if !is_agent {
            // The word that is no status is why it is not shown.
            unsaid = unsaid.replace(&format!("unknown status `deleted_{mark}`"), "it");
        }
        if question.tool == REVIEW {
            // What the store of an unreviewed memory says, whatever became of the newer one.
            unsaid = unsaid.replace(
                &format!("according to its store, it is replaced by {}", id(number)),
                "it",
            );
        }
        if let Some(place) = unsaid.find(&mark) {
            let from = unsaid[..place].char_indices().rev().nth(60);
            let shown = &unsaid[from.map_or(0, |(from, _)| from)..place + mark.len()];
            panic!("{question:?} shows `{shown}`: {answer:#}");
        }
        let months = if is_id_shown { "-0" } else { "-" };
        let times = format!("{}{months}", year(number));
        if !tells_times_of_scopes {
            assert_lacks!(unsaid, times; "{question:?}, a time of {mark}");
        }
        let confidence = confidence(number).to_string();
        assert_lacks!(unsaid, confidence; "{question:?}, of {mark}");
    }
    let sessions = |scope| (0..SESSIONS).map(move |session| (scope, session));
    for (scope, session) in (0..SCOPES.len()).flat_map(sessions) {
        let rows = plan.memories.iter().enumerate();
        let mut learned =
            rows.filter(|(_, planned)| planned.scope == scope && planned.session == Some(session));
        let mark = session_mark(scope, session);
        if !learned.any(|(number, _)| may_show(plan, root, held, number, question)) {
            assert_lacks!(text, mark; "{question:?}, a session");
        }
        if !is_all_approved(plan, held, scope) {
            assert_lacks!(text, format!("o{mark}"); "{question:?}, an overview");
        }
    }
    for number in 0..plan.memories.len() {
        let overview = format!("overview {}", marker(number));
        assert!(
            is_all_approved(plan, held, plan.memories[number].scope) || !text.contains(&overview),
            "{question:?} shows the `{overview}`: {answer:#}"
        );
    }
}

/// The notes about links to ids that a scope does not have. They name no row of that scope.
fn missing_links(plan: &Plan, held: &[StoredRow], answer: &Value) -> Vec<String> {
    let of_server = &answer["result"]["structuredContent"]["notes"];
    let notes = [&answer["notes"], of_server].into_iter();
    let notes = notes.filter_map(Value::as_array).flatten();
    let about_links = notes.filter_map(|note| {
        let message = note["message"].as_str()?;
        let named = message.strip_suffix(", which this scope does not have")?;
        let (_, named) = named.split_once(" has links to ")?;
        for (number, planned) in plan.memories.iter().enumerate() {
            // The second row of an id does not have the id of its number.
            let has_id = !plan.duplicate_ids.iter().any(|(_, twin)| *twin == number);
            let is_stored = has_id && !held[number].is_gone;
            let is_here = note["scope"] == SCOPES[planned.scope] && is_stored;
            assert!(!is_here || !named.contains(&id(number)), "{message}");
        }
        Some(message.to_lowercase())
    });
    about_links.collect()
}

/// An answer without what belongs to an id, whichever row has it: links and the store's own log.
fn without_shared(text: &str, number: usize) -> String {
    let mark = marker(number);
    let words = ["action ", "before ", "after ", "reason ", "actor ", "ack_"];
    let words = words.iter().map(|word| format!("{word}{mark}"));
    words.fold(without_links(text, number), |text, word| text.replace(&word, "it z"))
}

/// An answer without the kinds and sources of a memory's links.
fn without_links(text: &str, number: usize) -> String {
    let mark = marker(number);
    // The mark is that of the first end of a link, or of the other one.
    let words = ["linker ", "link_", "z_"].map(|word| format!("{word}{mark}"));
    words.iter().fold(text.to_owned(), |text, word| text.replace(word, "it z"))
}

/// Whether the last decision merged a memory into another one.
fn is_merged(row: &StoredRow) -> bool {
    let line = row.line.as_ref().map(|(line, _)| line);
    line.is_some_and(|line| VERDICTS[line.verdict] == "merge")
}

/// Whether every row of a scope's store is approved. A row that is gone does not count any more.
fn is_all_approved(plan: &Plan, held: &[StoredRow], scope: usize) -> bool {
    let rows = plan.memories.iter().enumerate();
    let mut rows = rows.filter(|(number, row)| row.scope == scope && !held[*number].is_gone);
    rows.all(|(number, _)| {
        let status = held[number].status();
        status.is_some_and(|status| StatusFilter::Approved.allows(status))
    })
}

/// The content that nothing has.
const NOTHING: usize = usize::MAX;

/// The row that a line is about, and the digest of its content. If several rows have the id, the
/// decision may be about any of them, whichever is shown.
fn decided_row(plan: &Plan, root: &Root, line: &Line) -> (usize, Option<String>) {
    let number = line.memory;
    let twins = plan.duplicate_ids.iter().filter(|(first, _)| *first == number);
    let rows: Vec<usize> = twins.map(|(_, twin)| *twin).chain([number]).collect();
    let row = rows[line.was % rows.len()];
    let database = root.scope_folder(SCOPES[plan.memories[number].scope]).join("memory.db");
    let put_others = |from: &str, to: &str| {
        let others = "UPDATE memories SET id = ?1 WHERE id = ?2 AND instr(title, ?3) = 0";
        let connection = Connection::open(&database).unwrap();
        connection.sql_with(others, params![to, from, marker(row)]);
    };
    let (id, aside) = (id(number), "put-aside");
    let has_twins = rows.len() > 1;
    if has_twins {
        put_others(&id, aside);
    }
    let store = Store::new(database.clone(), Unreviewed::Staging);
    let curated = store.snapshot(|snapshot| snapshot.curated(&id)).unwrap();
    if has_twins {
        put_others(aside, &id);
    }
    (row, curated.map(|curated| curated.digest))
}

/// Appends lines to the decision logs, and notes what they are about.
pub fn decide(plan: &Plan, root: &Root, held: &mut [StoredRow], lines: &[Line]) {
    // A second row has the id of the first one.
    let has_own_id = |number: usize| {
        number < plan.memories.len() && !plan.duplicate_ids.iter().any(|(_, twin)| *twin == number)
    };
    for line in lines.iter().filter(|line| has_own_id(line.memory)) {
        let number = line.memory;
        let folder = root.scope_folder(SCOPES[plan.memories[number].scope]);
        let (row, digest) = decided_row(plan, root, line);
        let mark = marker(row);
        let verdict = VERDICTS[line.verdict];
        let mut decision = json!({
            "id": id(number),
            "digest": digest.unwrap_or_else(|| format!("sha256:{}", "1".repeat(64))),
            "verdict": if line.damage == UNKNOWN_VERDICT { "bless" } else { verdict },
            "was": WAS[line.was],
            "reason": format!("Because of {mark}"),
            "actor": format!("human:reviewer {mark}"),
            "batch": format!("batch-{mark}"),
            "time": format!("{}-08-01T00:00:00Z", year(row)),
        });
        if ["supersede", "merge"].contains(&verdict) {
            // A memory does not replace itself.
            let into = line.into + if line.into == number { 24 } else { 0 };
            decision["into"] = json!(id(into));
        }
        if verdict == "edit" {
            decision["edit"] = json!({
                "title": format!("Edited title {mark}"), "facts": [format!("Edited fact {mark}")],
                "files": [format!("src/{mark}.rs")], "project": own_project(row),
                "type": format!("Kind_{mark}"), "concepts": ["tls", own_tag(row)],
                "subtitle": format!("Edited subtitle {mark}"), "narrative": format!("Edited narrative {mark}"),
            });
        }
        if line.damage == OTHER_CONTENT {
            decision["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
        }
        let mut text = decision.to_string();
        if line.damage == TORN {
            text.truncate(text.len() - 20);
        }
        let log = folder.join("decisions.jsonl");
        let mut log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        // Another writer's last line may be torn: a line begins on its own.
        writeln!(log, "{text}").unwrap();
        let twins = plan.duplicate_ids.iter().filter(|(first, _)| *first == number);
        for same in twins.map(|(_, twin)| *twin).chain([number]) {
            let content = if same == row { held[same].content } else { NOTHING };
            held[same].line = Some((line.clone(), content));
        }
    }
}

#[test]
fn a_reused_row_number_shows_nothing_of_the_new_memory() {
    let root = Root::new();
    let path = root.store("alpha", &[titled("old", "Lock order"), titled("stays", "Lock timeout")]);
    let service = root.service();
    let found = result_ids(&service.find(json!({ "query": "lock" }))).len();
    assert_eq!(found, 2);
    let writer = Connection::open(&path).unwrap();
    writer.sql("DELETE FROM memories WHERE id = 'old'; INSERT INTO memories (rowid, id, title, status) VALUES (1, 'new', 'Lock secret', 'rejected')");
    let answer = service.find(json!({ "query": "lock", "status": "all" }));
    assert_eq!(result_ids(&answer), ["stays"]);
    assert_lacks!(answer.to_string(), "secret");
}

#[test]
fn a_scope_whose_manifest_cannot_be_read_is_never_read() {
    let root = Root::with("open", &[titled("o1", "Deploy on Tuesday")]);
    for (scope, manifest) in [
        ("typo", "visibilty = \"private\""),
        ("cut", "visibility = \"priv"),
        ("kind", "visibility = 1"),
    ] {
        root.store(scope, &[titled(scope, "Deploy secret")]);
        root.manifest(scope, manifest);
    }
    root.store("link", &[titled("link", "Deploy secret")]);
    std::os::unix::fs::symlink(
        root.path().join("not-mounted/scope.toml"),
        root.scope_folder("link").join("scope.toml"),
    )
    .unwrap();
    root.store("folder", &[titled("folder", "Deploy secret")]);
    std::fs::create_dir(root.scope_folder("folder").join("scope.toml")).unwrap();
    let service = root.service();
    for scope in ["typo", "cut", "kind", "folder", "link"] {
        let found = service.find(json!({ "query": "deploy" }));
        assert_eq!(result_ids(&found), ["o1"]);
        let arguments = json!({ "query": "deploy", "scope": scope });
        service.refused("query_memories", arguments);
        service.refused("get_memory", json!({ "id": scope, "scope": scope }));
    }
}
