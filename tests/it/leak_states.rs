//! The states of the large run: stores in which two rows may have one id, and logs over them.

use std::time::Duration;

use rusqlite::{Connection, params};
use serde_json::json;

use crate::curation::{
    BYTES, Plan, SCOPES, STATUSES, StoredRow, fill, id, marker, own_project, own_tag, status_text,
};
use crate::support::{Root, Sql, run_sql};

/// The scope whose rows may share an id.
const TWINS: usize = 1;

/// A small generator: the plan says which states there are, this one what is asked.
pub struct RandomSource(pub u64);

impl RandomSource {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        (0..BYTES).map(|_| self.next().to_le_bytes()[2]).collect()
    }
}

/// A root whose second scope lets two rows have the same id.
pub fn root(plan: &Plan) -> Root {
    let root = Root::new();
    let database = root.scope_folder(SCOPES[TWINS]).join("memory.db");
    let key = "id            TEXT PRIMARY KEY NOT NULL";
    let schema = ack_memory::internal::import::SCHEMA.replacen(key, "id TEXT", 1);
    assert_ne!(schema, ack_memory::internal::import::SCHEMA);
    run_sql(database, &schema);
    fill(&root, plan);
    root
}

pub fn connection(root: &Root, scope: usize) -> Connection {
    let path = root.scope_folder(SCOPES[scope]).join("memory.db");
    let connection = Connection::open(path).unwrap();
    connection.sql("PRAGMA synchronous = OFF");
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection
}

/// Gives some rows a twin: another memory with the same id and its own text. Returns both numbers.
pub fn add_twins(
    plan: &mut Plan,
    held: &mut Vec<StoredRow>,
    root: &Root,
    draws: &mut RandomSource,
) -> Vec<(usize, usize)> {
    let mut twins = Vec::new();
    for number in 0..plan.memories.len() {
        if plan.memories[number].scope != TWINS || draws.below(3) > 0 {
            continue;
        }
        let mut twin = plan.memories[number].clone();
        twin.status = draws.below(STATUSES.len());
        let other = plan.memories.len();
        let mark = marker(other);
        connection(root, TWINS).sql_with("INSERT INTO memories (id, title, narrative, status, project, concepts, type, session_id, reviewed_by) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)", params![
                    id(number),
                    format!("Title {mark} certificate"),
                    format!("Narrative {mark}"),
                    status_text(twin.status, other),
                    own_project(other),
                    json!([own_tag(other)]).to_string(),
                    format!("Kind_{mark}"),
                    format!("Agent_session_{mark}"),
                    format!("reviewer {mark}"),
                ]);
        twin.session = None;
        held.push(StoredRow::of(&twin));
        plan.memories.push(twin);
        twins.push((number, other));
    }
    twins
}

/// The numbers of the rows with the id of one.
pub fn of_id(number: usize, twins: &[(usize, usize)]) -> impl Iterator<Item = usize> {
    let others = twins.iter().filter(move |(first, _)| *first == number);
    let others: Vec<usize> = others.map(|(_, twin)| *twin).collect();
    [number].into_iter().chain(others)
}
