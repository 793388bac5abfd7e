//! Curation decides, whatever the request: generated stores and generated requests of all four
//! tools, and the few paths on which a status could change between two reads. A memory is recognised
//! by its marker, a word in its id and in all its texts.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use ack_api::memory::{Status, StatusFilter, Unreviewed};
use ack_memory::service::Service;
use ack_store::Store;
use proptest::prelude::*;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::arguments::call;
use crate::support::{Root, memory};
use ack_memory::config::{ENV_SCOPE, Setting};

pub const SCOPES: [&str; 4] = ["alpha", "beta", "gamma-private", "delta-broken"];
const PRIVATE: usize = 2;
const BROKEN: usize = 3;
/// Sessions of each scope.
const SESSIONS: usize = 4;

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

#[derive(Debug, Clone)]
pub struct PlannedRow {
    pub scope: usize,
    pub status: usize,
    successor: Option<usize>,
    pub session: Option<usize>,
    project: usize,
    day: u32,
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

const VERDICTS: [&str; 8] = [
    "approve",
    "promote",
    "reject",
    "stage",
    "supersede",
    "merge",
    "edit",
    "withdraw",
];
const WAS: [Status; 4] = [
    Status::Approved,
    Status::Promoted,
    Status::Staging,
    Status::Rejected,
];

/// How a line of the log is damaged. All other numbers leave it whole.
const TORN: usize = 0;
const UNKNOWN_VERDICT: usize = 1;
const OTHER_CONTENT: usize = 2;

impl StoredRow {
    /// The initial content of a store.
    pub fn of(planned: &PlannedRow) -> Self {
        Self {
            stored: STATUSES[planned.status].1,
            content: 0,
            line: None,
            is_gone: false,
        }
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
    pub requests: Vec<Vec<u8>>,
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
        proptest::option::of(0..SESSIONS),
        0..4usize,
        1..28u32,
    )
        .prop_map(
            |(scope, status, successor, session, project, day)| PlannedRow {
                scope,
                status,
                successor,
                session,
                project,
                day,
            },
        );
    let line = (
        0..24usize,
        0..VERDICTS.len(),
        0..WAS.len(),
        0..24usize,
        0..10usize,
    )
        .prop_map(|(memory, verdict, was, into, damage)| Line {
            memory,
            verdict,
            was,
            into,
            damage,
        });
    (
        proptest::collection::vec(line, 0..16),
        proptest::collection::vec(0..24usize, 0..4),
        proptest::collection::vec(planned, 4..24),
        proptest::collection::vec((0..24usize, 0..24usize), 0..20),
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 10), 6..14),
        proptest::collection::vec((0..24usize, 0..STATUSES.len()), 0..6),
        proptest::option::weighted(0.6, 0..SCOPES.len()),
        proptest::option::weighted(0.25, 0..3usize),
    )
        .prop_map(
            |(lines, rewritten, memories, links, requests, changes, current, pinned)| Plan {
                lines,
                rewritten,
                memories,
                links,
                requests,
                changes,
                current,
                pinned,
                duplicate_ids: Vec::new(),
            },
        )
}

/// Letters only, so that near-duplicates may be folded.
pub fn marker(number: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    format!("mkq{}{}z", letter(number / 26), letter(number))
}

/// Like [`marker`], for a session.
fn session_mark(scope: usize, session: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n).unwrap());
    format!("sessq{}{}z", letter(scope), letter(session))
}

pub fn id(number: usize) -> String {
    format!("ack_{}", marker(number))
}

pub fn project_folder(root: &Path, scope: usize) -> std::path::PathBuf {
    root.join("projects").join(format!("p-{}", SCOPES[scope]))
}

fn build(plan: &Plan) -> Root {
    let root = Root::new();
    fill(&root, plan);
    root
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
        root.manifest(
            scope,
            &format!("paths = ['{}']\n{rest}\n", folder.display()),
        );
        let database = root.scope_folder(scope).join("memory.db");
        let is_new = !database.exists();
        let connection = Connection::open(database).unwrap();
        connection
            .execute_batch("PRAGMA synchronous = OFF; BEGIN")
            .unwrap();
        if is_new {
            connection
                .execute_batch(ack_memory::import::write::SCHEMA)
                .unwrap();
        }
        for table in [
            "memories",
            "sessions",
            "overviews",
            "curation_log",
            "memory_links",
        ] {
            connection
                .execute_batch(&format!("DELETE FROM {table}"))
                .unwrap();
        }
        for (memory, planned) in plan
            .memories
            .iter()
            .enumerate()
            .filter(|(_, planned)| planned.scope == number)
        {
            let mark = marker(memory);
            let common = "the nightly deployment of the payment gateway fails because the certificate chain lacks its intermediate";
            connection
                .execute(
                    "INSERT INTO memories (id, project, session, type, title, subtitle, facts, concepts, files, narrative, status, \
                     reviewed_by, superseded_by, created_at) VALUES (?1, ?2, ?3, 'bugfix', ?4, ?5, ?6, '[\"tls\",\"deploy\"]', ?7, ?8, ?9, ?10, ?11, ?12)",
                    params![
                        id(memory),
                        [None, Some("red"), Some("Blue"), Some("other")][planned.project],
                        planned.session.map(|session| format!("session-{session}")),
                        format!("Title {mark} {common}"),
                        format!("Subtitle {mark}"),
                        json!([format!("Fact {mark}")]).to_string(),
                        json!([format!("src/{mark}.rs")]).to_string(),
                        format!("Narrative {mark} {common}"),
                        STATUSES[planned.status].0,
                        format!("reviewer {mark}"),
                        planned.successor.map(id),
                        format!("2026-03-{:02}T00:00:00Z", planned.day),
                    ],
                )
                .unwrap();
            connection
                .execute(
                    "INSERT INTO curation_log (memory_id, action, reason) VALUES (?1, 'stage', ?2)",
                    params![id(memory), format!("Reason {mark}")],
                )
                .unwrap();
        }
        for (from, to) in &plan.links {
            connection
                .execute(
                    "INSERT OR IGNORE INTO memory_links (from_id, to_id, kind) VALUES (?1, ?2, 'derived_from')",
                    params![id(*from), id(*to)],
                )
                .unwrap();
        }
        for session in 0..SESSIONS {
            let mark = session_mark(number, session);
            let project = [None, Some(format!("p-{scope}"))][session % 2].clone();
            connection
                .execute(
                    "INSERT INTO sessions (id, project, title, started_at) VALUES (?1, ?2, ?3, '2026-03-01')",
                    params![format!("session-{session}"), project, format!("Title {mark}")],
                )
                .unwrap();
            connection
                .execute(
                    "INSERT INTO overviews (session, content) VALUES (?1, ?2)",
                    params![format!("session-{session}"), format!("Overview o{mark}")],
                )
                .unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
    }
}

fn service(plan: &Plan, root: &Root) -> Service {
    root.service_with(|inputs| {
        if let Some(current) = plan.current {
            inputs.project = Some(Setting::flag("-C", project_folder(root.path(), current)));
        }
        inputs.pinned = plan
            .pinned
            .map(|scope| Setting::flag("--pin", SCOPES[scope].to_owned()));
    })
}

/// A request of any tool, from ten numbers.
pub fn request(bytes: &[u8], plan: &Plan, root: &Root) -> (&'static str, Value) {
    let one = |position: usize, choices: &[Value]| {
        choices[usize::from(bytes[position]) % choices.len()].clone()
    };
    let some_id =
        |position: usize| json!(id(usize::from(bytes[position]) % (plan.memories.len() + 2)));
    let scope = one(
        1,
        &[
            Value::Null,
            Value::Null,
            json!("alpha"),
            json!("beta"),
            json!("Gamma_Private"),
            json!("delta-broken"),
        ],
    );
    let status = one(
        2,
        &[
            Value::Null,
            Value::Null,
            json!("approved"),
            json!("staging"),
            json!("all"),
            json!("all"),
        ],
    );
    let mut arguments = match bytes[0] % 8 {
        0..=3 => json!({
            "query": one(3, &[Value::Null, json!("deployment certificate"), json!("nightly"), some_id(4), json!(format!("title {}", marker(usize::from(bytes[4] % 26)))), json!("certificat")]),
            "scope": scope,
            "status": status,
            "limit": one(5, &[Value::Null, json!(1), json!(2), json!(50)]),
            "project": one(6, &[Value::Null, Value::Null, Value::Null, json!("red"), json!("other"), json!("nowhere")]),
            "tags": one(7, &[Value::Null, Value::Null, json!(["tls"]), json!(["deploy", "no"])]),
            "match_tags": one(8, &[Value::Null, json!("any")]),
            "detail": one(8, &[Value::Null, json!("concise"), json!("full")]),
            "files": one(9, &[Value::Null, Value::Null, Value::Null, json!("src/*.rs"), json!("mkq")]),
            "session": one(9, &[Value::Null, Value::Null, json!("session-0")]),
            "explain": one(5, &[Value::Null, json!(true)]),
            "max_tokens": one(6, &[Value::Null, json!(200), json!(900)]),
        }),
        4 => json!({
            "id": some_id(3), "scope": scope, "status": status,
            "include": one(4, &[Value::Null, json!(["timeline", "links", "history", "related"]), json!(["links"])]),
        }),
        5 => json!({
            "ids": [some_id(3), some_id(4), some_id(5), some_id(6), some_id(7), some_id(8)], "scope": scope, "status": status,
            "include": one(9, &[Value::Null, json!(["timeline", "links", "history", "related"])]),
        }),
        6 => json!({ "scope": scope }),
        _ => json!({
            "project_path": one(3, &[Value::Null, json!(project_folder(root.path(), usize::from(bytes[4]) % SCOPES.len()))]),
            "include_cross_project": one(5, &[Value::Null, json!(true), json!(false)]),
            "max_memories": one(6, &[Value::Null, json!(1), json!(50)]),
            "focus": one(7, &[Value::Null, json!("certificate"), some_id(8)]),
        }),
    };
    arguments
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    let tool = [
        "query_memories",
        "query_memories",
        "query_memories",
        "query_memories",
        "get_memory",
        "get_memory",
        "list_scopes",
        "get_context",
    ];
    (tool[usize::from(bytes[0] % 8)], arguments)
}

/// Whether a request may show a memory at all, as the contract says it, and by which status filter.
fn may_show(
    plan: &Plan,
    root: &Root,
    held: &[StoredRow],
    number: usize,
    tool: &str,
    arguments: &Value,
) -> bool {
    let scope = plan.memories[number].scope;
    let named = arguments["scope"].as_str().and_then(|name| {
        SCOPES
            .iter()
            .position(|known| known.replace('-', "") == name.to_lowercase().replace(['-', '_'], ""))
    });
    let asked = (0..SCOPES.len())
        .find(|scope| arguments["project_path"] == json!(project_folder(root.path(), *scope)));
    let readable = scope != BROKEN
        && match (plan.pinned, named) {
            (Some(pinned), _) => scope == pinned,
            (None, Some(named)) => scope == named,
            (None, None) => scope != PRIVATE || asked.or(plan.current) == Some(scope),
        };
    let filter = match (tool, arguments["status"].as_str()) {
        ("query_memories" | "get_memory", Some("staging")) => StatusFilter::Staging,
        ("query_memories" | "get_memory", Some("all")) => StatusFilter::All,
        _ => StatusFilter::Approved,
    };
    readable
        && held[number]
            .status()
            .is_some_and(|status| filter.allows(status))
}

/// Takes `pending.ids` (staging ids, by contract) and `superseded_by` (see the test about it) out
/// of an answer.
fn strip(answer: &mut Value, pending: &mut Vec<String>) {
    match answer {
        Value::Object(fields) => {
            fields.remove("superseded_by");
            if let Some(Value::Array(ids)) = fields
                .get_mut("pending")
                .and_then(|pending| pending.get_mut("ids"))
                .map(Value::take)
            {
                pending.extend(ids.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            fields.values_mut().for_each(|value| strip(value, pending));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| strip(value, pending)),
        _ => {}
    }
}

/// Makes a request, checks its answer, and returns the cursor of the next page.
fn check(
    plan: &Plan,
    root: &Root,
    service: &Service,
    held: &[StoredRow],
    tool: &'static str,
    arguments: &Value,
) -> Option<String> {
    let result = call(service, tool, arguments.clone());
    let failed = result.is_err();
    let mut answer = result.unwrap_or_else(|error| serde_json::to_value(error.body()).unwrap());
    let cursor = answer["next_cursor"].as_str().map(str::to_owned);
    inspect(plan, root, held, tool, arguments, &mut answer);
    let text = answer.to_string().to_lowercase();
    let asked = arguments.to_string();
    if let Some(pinned) = plan.pinned {
        for (number, scope) in SCOPES
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != pinned)
        {
            let named = asked.to_lowercase().replace('_', "-").contains(scope);
            let folder = format!("p-{scope}");
            let elsewhere = text.replace(&folder, "");
            assert!(
                named || !elsewhere.contains(&format!("\"{scope}\"")),
                "{tool} {arguments} names {scope} ({number}): {answer:#}"
            );
        }
        if arguments["scope"].as_str().is_some_and(|name| {
            !name.eq_ignore_ascii_case(&SCOPES[pinned].replace('-', "_")) && name != SCOPES[pinned]
        }) {
            assert!(
                failed && (answer["code"] == "scope_refused" || answer["code"] == "invalid_cursor"),
                "{tool} {arguments} is not refused: {answer:#}"
            );
        }
    }
    cursor
}

/// Searches for anything that an answer may not show.
pub fn inspect(
    plan: &Plan,
    root: &Root,
    held: &[StoredRow],
    tool: &str,
    arguments: &Value,
    answer: &mut Value,
) {
    let mut pending = Vec::new();
    strip(answer, &mut pending);
    let text = answer.to_string().to_lowercase();
    let asked = arguments.to_string();
    for number in 0..plan.memories.len() {
        let mark = marker(number);
        if pending.contains(&id(number)) {
            let same = plan
                .duplicate_ids
                .iter()
                .filter(|(first, _)| *first == number);
            let mut same = same.map(|(_, twin)| *twin).chain([number]);
            assert!(
                same.any(|same| held[same].status() == Some(Status::Staging)),
                "{tool} {arguments}: pending {mark}"
            );
            let scope = plan.memories[number].scope;
            assert!(
                plan.pinned.is_none_or(|pinned| pinned == scope) && scope != BROKEN,
                "{tool} {arguments}: pending {mark}"
            );
        }
        if may_show(plan, root, held, number, tool, arguments) {
            continue;
        }
        // The id may be that of another row, which may be shown.
        let has_twin = plan.duplicate_ids.iter().any(|(first, _)| *first == number);
        let is_named = tool == "get_memory" && asked.contains(&mark);
        let forbidden: Vec<String> = if is_named || has_twin {
            // An error about an id names it.
            [
                "title ",
                "subtitle ",
                "fact ",
                "src/",
                "narrative ",
                "reviewer ",
                "reason ",
            ]
            .iter()
            .map(|field| format!("{field}{mark}"))
            .collect()
        } else {
            vec![mark]
        };
        // A word of the query may be repeated, in the same sentence for every word that no approved
        // memory contains.
        let own = format!("`{}`", marker(number));
        let text = match asked.contains(&marker(number)) {
            true => text.replace(&own, "it"),
            false => text.clone(),
        };
        for forbidden in forbidden {
            assert!(
                !text.contains(&forbidden),
                "{tool} {arguments} shows `{forbidden}`: {answer:#}"
            );
        }
    }
    for (scope, session) in
        (0..SCOPES.len()).flat_map(|scope| (0..SESSIONS).map(move |session| (scope, session)))
    {
        let here = |(_, planned): &(usize, &PlannedRow)| planned.scope == scope;
        let mut learned = plan
            .memories
            .iter()
            .enumerate()
            .filter(here)
            .filter(|(_, planned)| planned.session == Some(session));
        let mark = session_mark(scope, session);
        if !learned.any(|(number, _)| may_show(plan, root, held, number, tool, arguments)) {
            assert!(
                !text.contains(&mark),
                "{tool} {arguments} shows the session `{mark}`: {answer:#}"
            );
        }
        // A row that is gone does not count any more.
        let rows = plan.memories.iter().enumerate().filter(here);
        let mut rows = rows.filter(|(number, _)| !held[*number].is_gone);
        if !rows.all(|(number, _)| {
            held[number]
                .status()
                .is_some_and(|status| StatusFilter::Approved.allows(status))
        }) {
            assert!(
                !text.contains(&format!("o{mark}")),
                "{tool} {arguments} shows the overview `o{mark}`: {answer:#}"
            );
        }
    }
}

/// The content that nothing has.
const NOTHING: usize = usize::MAX;

/// The row that a line is about, and the digest of its content. If several rows have the id, the
/// decision may be about any of them, whichever is shown.
fn decided_row(plan: &Plan, root: &Root, line: &Line) -> (usize, Option<String>) {
    let number = line.memory;
    let twins = plan
        .duplicate_ids
        .iter()
        .filter(|(first, _)| *first == number);
    let rows: Vec<usize> = twins.map(|(_, twin)| *twin).chain([number]).collect();
    let row = rows[line.was % rows.len()];
    let database = root
        .scope_folder(SCOPES[plan.memories[number].scope])
        .join("memory.db");
    let put_others = |from: &str, to: &str| {
        let others = "UPDATE memories SET id = ?1 WHERE id = ?2 AND instr(title, ?3) = 0";
        let connection = Connection::open(&database).unwrap();
        let changed = connection.execute(others, params![to, from, marker(row)]);
        changed.unwrap();
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
            "reason": format!("Reason {mark}"),
            "actor": format!("human:reviewer {mark}"),
            "time": "2026-03-01T00:00:00Z",
        });
        if ["supersede", "merge"].contains(&verdict) {
            // A memory does not replace itself.
            let into = if line.into == number {
                number + 24
            } else {
                line.into
            };
            decision["into"] = json!(id(into));
        }
        if verdict == "edit" {
            decision["edit"] = json!({
                "title": format!("Edited title {mark}"), "facts": [format!("Edited fact {mark}")],
                "files": [format!("src/{mark}.rs")], "project": "red",
            });
        }
        if line.damage == OTHER_CONTENT {
            decision["digest"] = json!(format!("sha256:{}", "0".repeat(64)));
        }
        let mut text = decision.to_string();
        if line.damage == TORN {
            text.truncate(text.len() - 20);
        }
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("decisions.jsonl"))
            .unwrap();
        // Another writer's last line may be torn: a line begins on its own.
        writeln!(log, "{text}").unwrap();
        let twins = plan
            .duplicate_ids
            .iter()
            .filter(|(first, _)| *first == number);
        for same in twins.map(|(_, twin)| *twin).chain([number]) {
            let content = if same == row {
                held[same].content
            } else {
                NOTHING
            };
            held[same].line = Some((line.clone(), content));
        }
    }
}

/// How many plans are tried. The whole run asks for many more.
fn cases() -> u32 {
    let asked = std::env::var("ACK_TEST_CURATION_CASES").ok();
    asked.map_or(64, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_answer_shows_memories_hidden_by_status_or_privacy(plan in plans()) {
        let root = build(&plan);
        let service = service(&plan, &root);
        let mut held: Vec<StoredRow> = plan
            .memories
            .iter()
            .map(StoredRow::of)
            .collect();
        let (before, after) = plan.lines.split_at(plan.lines.len() / 2);
        decide(&plan, &root, &mut held, before);
        let mut asked: Vec<(&'static str, Value)> = Vec::new();
        let mut foreign: Option<String> = None;
        for bytes in &plan.requests {
            let (tool, arguments) = request(bytes, &plan, &root);
            let cursor = check(&plan, &root, &service, &held, tool, &arguments);
            if let Some(cursor) = &cursor {
                let mut next = arguments.clone();
                next["cursor"] = json!(cursor);
                check(&plan, &root, &service, &held, tool, &next);
                asked.push((tool, next));
            }
            if tool == "query_memories" && let Some(foreign) = &foreign {
                let mut next = arguments.clone();
                next["cursor"] = json!(foreign);
                check(&plan, &root, &service, &held, tool, &next);
            }
            foreign = cursor.or(foreign);
            asked.push((tool, arguments));
        }
        // Other programs change statuses while this one runs; every request, every second page
        // holds.
        for (number, status) in plan.changes.iter().filter(|(number, _)| *number < plan.memories.len()) {
            let scope = SCOPES[plan.memories[*number].scope];
            let connection = Connection::open(root.scope_folder(scope).join("memory.db")).unwrap();
            connection.execute("UPDATE memories SET status = ?1 WHERE id = ?2", params![STATUSES[*status].0, id(*number)]).unwrap();
            held[*number].stored = STATUSES[*status].1;
        }
        for number in plan.rewritten.iter().filter(|number| **number < plan.memories.len()) {
            let scope = SCOPES[plan.memories[*number].scope];
            let connection = Connection::open(root.scope_folder(scope).join("memory.db")).unwrap();
            let more = "UPDATE memories SET narrative = narrative || ' and more' WHERE id = ?1";
            connection.execute(more, params![id(*number)]).unwrap();
            held[*number].content += 1;
        }
        decide(&plan, &root, &mut held, after);
        for (tool, arguments) in &asked {
            check(&plan, &root, &service, &held, tool, arguments);
        }
    }
}

fn ids(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .map(|hit| hit["id"].as_str().unwrap())
        .collect()
}

#[test]
fn a_memory_rejected_between_requests_is_no_longer_shown() {
    let root = Root::new();
    let memories: Vec<Value> = (0..6)
        .map(|n| {
            memory(
                &format!("m{n}"),
                &format!("Lock order rule {n}0"),
                json!({ "created_at": format!("2026-01-0{}T00:00:00Z", 9 - n) }),
            )
        })
        .collect();
    let path = root.store("alpha", &memories);
    let service = root.service();
    let first = call(&service, "query_memories", json!({ "limit": 2 })).unwrap();
    assert_eq!(ids(&first), ["m0", "m1"]);
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch("UPDATE memories SET status = 'rejected' WHERE id IN ('m1', 'm2', 'm0')")
        .unwrap();
    let second = call(
        &service,
        "query_memories",
        json!({ "limit": 2, "cursor": first["next_cursor"] }),
    )
    .unwrap();
    assert_eq!(ids(&second), ["m3", "m4"]);
    let refused = call(
        &service,
        "get_memory",
        json!({ "id": "m0", "status": "all" }),
    )
    .unwrap_err();
    assert_eq!(refused.code(), "memory_not_served");
    writer
        .execute_batch("UPDATE memories SET status = 'staging' WHERE id = 'm3'")
        .unwrap();
    assert_eq!(
        call(&service, "get_memory", json!({ "id": "m3" }))
            .unwrap_err()
            .code(),
        "memory_not_served"
    );
    let timeline = call(
        &service,
        "get_memory",
        json!({ "id": "m4", "include": "timeline" }),
    )
    .unwrap();
    assert_eq!(timeline["timeline"]["after"], json!([]));
    writer
        .execute_batch("UPDATE memories SET status = ' Approved' WHERE id = 'm3'")
        .unwrap();
    assert_eq!(
        call(&service, "get_memory", json!({ "id": "m3" })).unwrap()["id"],
        "m3"
    );
}

#[test]
fn a_reused_row_number_shows_nothing_of_the_new_memory() {
    let root = Root::new();
    let path = root.store(
        "alpha",
        &[
            memory("old", "Lock order", json!({})),
            memory("stays", "Lock timeout", json!({})),
        ],
    );
    let service = root.service();
    assert_eq!(
        ids(&call(&service, "query_memories", json!({ "query": "lock" })).unwrap()).len(),
        2
    );
    let writer = Connection::open(&path).unwrap();
    writer
        .execute_batch("DELETE FROM memories WHERE id = 'old'; INSERT INTO memories (rowid, id, title, status) VALUES (1, 'new', 'Lock secret', 'rejected')")
        .unwrap();
    let answer = call(
        &service,
        "query_memories",
        json!({ "query": "lock", "status": "all" }),
    )
    .unwrap();
    assert_eq!(ids(&answer), ["stays"]);
    assert!(!answer.to_string().contains("secret"));
}

#[test]
fn superseded_by_never_names_a_hidden_memory() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory(
                "a",
                "Retry twice",
                json!({ "superseded_by": "secret-staged" }),
            ),
            memory(
                "b",
                "Retry with jitter",
                json!({ "superseded_by": "secret-rejected" }),
            ),
            memory(
                "secret-staged",
                "Retry thrice",
                json!({ "status": "staging" }),
            ),
            memory(
                "secret-rejected",
                "Retry forever",
                json!({ "status": "rejected" }),
            ),
        ],
    );
    let service = root.service();
    let leaks: Vec<String> = [
        ("query_memories", json!({ "query": "retry" })),
        ("query_memories", json!({})),
        ("get_memory", json!({ "id": "a" })),
        (
            "get_memory",
            json!({ "id": "b", "status": "all", "include": ["links", "timeline", "history"] }),
        ),
        ("get_context", json!({})),
    ]
    .into_iter()
    .filter_map(|(tool, arguments)| {
        let mut answer = call(&service, tool, arguments.clone()).unwrap();
        answer.as_object_mut().unwrap().remove("pending");
        let text = answer.to_string();
        let staged = text.contains("secret-staged") && arguments["status"] != "all";
        (staged || text.contains("secret-rejected")).then(|| format!("{tool} {arguments}"))
    })
    .collect();
    assert!(
        leaks.is_empty(),
        "these answers name the id of a memory they may not show: {leaks:#?}"
    );
}

#[test]
fn suggestions_never_name_tags_of_unreviewed_memories() {
    let root = Root::new();
    root.store(
        "alpha",
        &[
            memory("a", "Approved one", json!({ "concepts": ["postgres"] })),
            memory(
                "b",
                "Unreviewed one",
                json!({ "status": "staging", "concepts": ["secret-tag"], "project": "secret-project" }),
            ),
            memory(
                "c",
                "Rejected one",
                json!({ "status": "rejected", "concepts": ["secret-tag-c"], "project": "secret-project-c" }),
            ),
        ],
    );
    let service = root.service();
    let mut server = crate::mcp::Server::initialized(root.path());
    for arguments in [
        json!({ "tags": ["secret_tags"] }),
        json!({ "project": "secret-projekt" }),
        json!({ "query": "unreviewed" }),
    ] {
        let answer = server.call("query_memories", arguments.clone());
        let text = answer.to_string();
        assert!(
            !text.contains("secret-tag")
                && !text.contains("secret-project\"")
                && !text.contains("secret-project,"),
            "{arguments}: {answer:#}"
        );
        assert!(
            !text.contains("similar: secret-project"),
            "{arguments}: {answer:#}"
        );
    }
    let scopes = call(&service, "list_scopes", json!({})).unwrap();
    assert_eq!(
        scopes["scopes"][0]["tags"],
        json!([{ "tag": "postgres", "count": 1 }])
    );
}

#[test]
fn a_private_scope_is_read_only_when_it_is_current_or_named() {
    let root = Root::new();
    root.store("open", &[memory("o1", "Deploy on Tuesday", json!({}))]);
    root.store(
        "diary",
        &[memory(
            "d1",
            "Deploy diary secret",
            json!({ "status": "approved", "project": "open" }),
        )],
    );
    let home = root.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    root.manifest(
        "diary",
        &format!("visibility = \"private\"\npaths = ['{}']", home.display()),
    );
    let elsewhere = root.service();
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "deploy" })),
        (
            "query_memories",
            json!({ "status": "all", "project": "open" }),
        ),
        ("query_memories", json!({ "query": "diary" })),
        ("get_context", json!({})),
        ("list_scopes", json!({})),
        (
            "get_memory",
            json!({ "ids": ["d1", "o1"], "status": "all" }),
        ),
    ] {
        let answer = call(&elsewhere, tool, arguments.clone()).unwrap();
        assert!(
            !answer.to_string().contains("secret"),
            "{tool} {arguments}: {answer:#}"
        );
    }
    assert_eq!(
        call(&elsewhere, "get_memory", json!({ "id": "d1" }))
            .unwrap_err()
            .code(),
        "memory_not_found"
    );
    let unlisted = call(&elsewhere, "list_scopes", json!({})).unwrap();
    assert_eq!(unlisted["scopes"][0]["health"]["state"], "not_read");
    assert!(unlisted["scopes"][0].get("memory_count").is_none());
    assert_eq!(
        call(
            &elsewhere,
            "get_memory",
            json!({ "id": "d1", "scope": "diary" })
        )
        .unwrap()["id"],
        "d1"
    );
    assert_eq!(
        call(&elsewhere, "query_memories", json!({ "scope": "Diary" })).unwrap()["total"],
        1
    );
    let at_home =
        root.service_with(|inputs| inputs.project = Some(Setting::flag("-C", home.clone())));
    assert_eq!(
        call(&at_home, "query_memories", json!({ "query": "deploy" })).unwrap()["total"],
        2
    );
}

#[test]
fn a_scope_whose_manifest_cannot_be_read_is_never_read() {
    let root = Root::new();
    root.store("open", &[memory("o1", "Deploy on Tuesday", json!({}))]);
    for (scope, manifest) in [
        ("typo", "visibilty = \"private\""),
        ("cut", "visibility = \"priv"),
        ("kind", "visibility = 1"),
    ] {
        root.store(scope, &[memory(scope, "Deploy secret", json!({}))]);
        root.manifest(scope, manifest);
    }
    root.store("link", &[memory("link", "Deploy secret", json!({}))]);
    std::os::unix::fs::symlink(
        root.path().join("not-mounted/scope.toml"),
        root.scope_folder("link").join("scope.toml"),
    )
    .unwrap();
    root.store("folder", &[memory("folder", "Deploy secret", json!({}))]);
    std::fs::create_dir(root.scope_folder("folder").join("scope.toml")).unwrap();
    let service = root.service();
    let mut read = Vec::new();
    for scope in ["typo", "cut", "kind", "folder", "link"] {
        for arguments in [
            json!({ "query": "deploy" }),
            json!({ "query": "deploy", "scope": scope }),
        ] {
            let Ok(answer) = call(&service, "query_memories", arguments) else {
                continue;
            };
            if ids(&answer).contains(&scope) {
                read.push(scope);
            }
        }
        if call(
            &service,
            "get_memory",
            json!({ "id": scope, "scope": scope }),
        )
        .is_ok()
        {
            read.push(scope);
        }
    }
    read.dedup();
    assert!(
        read.is_empty(),
        "these scopes were read although nobody knows who may: {read:?}"
    );
}

#[test]
fn a_pinned_server_knows_no_other_scope() {
    let root = Root::new();
    root.store("own", &[memory("o1", "Deploy on Tuesday", json!({}))]);
    root.store("hidden-one", &[memory("h1", "Deploy on Friday", json!({}))]);
    root.store("hidden-two", &[memory("h2", "Deploy at night", json!({}))]);
    root.manifest("hidden-two", "visibility = \"private\"");
    root.manifest("hidden-three", "nonsense = 1");
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("scopes/hidden-four")).unwrap();
    let service = root.service_with(|inputs| {
        inputs.pinned = Some(Setting::variable(ENV_SCOPE, "own".to_owned()))
    });
    let mut answers = Vec::new();
    for (tool, arguments) in [
        ("query_memories", json!({ "query": "deploy" })),
        ("query_memories", json!({ "status": "all" })),
        (
            "query_memories",
            json!({ "query": "nothing like it", "project": "hidden" }),
        ),
        ("query_memories", json!({ "scope": "nowhere" })),
        ("get_memory", json!({ "id": "h1" })),
        ("get_memory", json!({ "id": "o2", "scope": "own" })),
        ("list_scopes", json!({})),
        ("list_scopes", json!({ "scope": "own" })),
        ("list_scopes", json!({ "scope": "nowhere" })),
        ("get_context", json!({})),
        (
            "get_context",
            json!({ "project_path": root.scope_folder("hidden-one") }),
        ),
    ] {
        let mut answer = call(&service, tool, arguments.clone())
            .unwrap_or_else(|error| serde_json::to_value(error.body()).unwrap());
        if let Some(project) = answer.get_mut("project") {
            *project = Value::Null;
        }
        let text = answer.to_string();
        if text.contains("hidden-") || text.contains("Friday") || text.contains("\"h2\"") {
            answers.push(format!("{tool} {arguments}: {answer:#}"));
        }
    }
    assert!(answers.is_empty(), "{}", answers.join("\n"));
    for scope in [
        "hidden-one",
        "Hidden_Two",
        "hidden-three",
        "../own",
        "own/../own",
        "nowhere",
    ] {
        for tool in ["query_memories", "list_scopes", "get_memory"] {
            let mut arguments = json!({ "scope": scope });
            if tool == "get_memory" {
                arguments["id"] = json!("o1");
            }
            let error = call(&service, tool, arguments).unwrap_err();
            assert_eq!(error.code(), "scope_refused", "{tool} {scope}");
        }
    }
}
