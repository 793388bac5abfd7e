//! What a decision changes in its row and in related tables, and the values from before.

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::memory::Status;
use ack_store::layout::{Field, LinkSource, LogSource, MemorySource};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use serde_json::{Map, Value as Json, json};

use super::cells::{decode, encode};
use super::{CurateError, StoreTransaction};

/// The table of the changes that `undo` reverts. Created with the first decision.
pub const UNDO_TABLE: &str = "CREATE TABLE IF NOT EXISTS curation_undo (
  number INTEGER PRIMARY KEY, batch TEXT NOT NULL, memory_id TEXT NOT NULL, action TEXT NOT NULL,
  before TEXT NOT NULL, after TEXT NOT NULL, link TEXT);
CREATE INDEX IF NOT EXISTS curation_undo_by_memory ON curation_undo (memory_id)";
/// The table of decisions, as in `schemas/scope.sql`.
const LOG_TABLE: &str = "CREATE TABLE IF NOT EXISTS curation_log (
  memory_id TEXT NOT NULL, action TEXT NOT NULL, previous_status TEXT, new_status TEXT,
  reason TEXT, actor TEXT, created_at TEXT);
CREATE INDEX IF NOT EXISTS curation_log_by_memory ON curation_log (memory_id)";

/// Column values, by quoted column name.
pub type Cells = Map<String, Json>;

/// One line for `curation_log`.
pub struct LogLine<'a> {
    /// The memory.
    pub id: &'a str,
    /// What was done.
    pub action: &'a str,
    /// The statuses before and after.
    pub statuses: (&'a str, &'a str),
    /// Why.
    pub reason: Option<&'a str>,
    /// Who did it.
    pub actor: &'a str,
    /// When.
    pub time: &'a str,
}

/// Applies a decision.
pub fn apply(store: &StoreTransaction<'_>, decision: &Decision) -> Result<(), CurateError> {
    make_tables(store)?;
    let status = status_after(decision);
    let mut wanted: Vec<(String, Value)> = Vec::new();
    let mut set = |column: &str, value: Value| wanted.push((column.to_owned(), value));
    set(
        store.column(Field::Status, "status")?,
        text(status.as_str()),
    );
    for (field, value) in [
        (Field::ReviewedAt, &decision.time),
        (Field::ReviewedBy, &decision.actor),
    ] {
        if let Some(column) = store.source.column(field) {
            set(column, text(value));
        }
    }
    for (field, name, value) in [
        (Field::PutOffUntil, "put_off_until", &decision.until),
        (Field::KeptDespite, "kept_despite", &decision.despite),
    ] {
        match store.source.column(field) {
            Some(column) => set(column, value.as_deref().map_or(Value::Null, text)),
            None if value.is_some() => {
                add_column(store, name)?;
                set(
                    &format!("\"{name}\""),
                    value.as_deref().map_or(Value::Null, text),
                );
            }
            None => {}
        }
    }
    if let Some(into) = &decision.into {
        set(
            store.column(Field::SupersededBy, "superseded_by")?,
            text(into),
        );
    } else if let Some(column) = store.source.column(Field::SupersededBy)
        && was_replaced(store, &decision.id)?
    {
        set(column, Value::Null);
    }
    if let Some(edit) = &decision.edit {
        edit_columns(store, edit, &mut set)?;
        if let Some(column) = store.source.column(Field::Updated) {
            set(column, text(&decision.time));
        }
    }
    let columns: Vec<String> = wanted.iter().map(|(column, _)| column.clone()).collect();
    let before = cells(store, &decision.id, &columns)?.unwrap_or_default();
    update(store, &decision.id, wanted)?;
    let after = cells(store, &decision.id, &columns)?.unwrap_or_default();
    let link = decision
        .into
        .as_deref()
        .map(|into| link_successor(store, into, decision))
        .transpose()?
        .flatten();
    append_log_line(
        store,
        &LogLine {
            id: &decision.id,
            action: decision.verdict.as_str(),
            statuses: (decision.was.as_str(), status.as_str()),
            reason: decision.reason_with_day().as_deref(),
            actor: &decision.actor,
            time: &decision.time,
        },
    )?;
    record_undo(store, decision, (&before, &after), link)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// The status that a decision gives its memory.
pub fn status_after(decision: &Decision) -> Status {
    match (decision.verdict, decision.was) {
        // An edit keeps a memory promoted.
        (Verdict::Edit, Status::Promoted) => Status::Promoted,
        (Verdict::Supersede | Verdict::Merge, Status::Approved | Status::Promoted) => decision.was,
        // A memory that was never approved does not become visible when it is replaced.
        (Verdict::Supersede | Verdict::Merge, _) => Status::Rejected,
        (verdict, was) => verdict.status().unwrap_or(was),
    }
}

fn edit_columns(
    store: &StoreTransaction<'_>,
    edit: &Edit,
    set: &mut impl FnMut(&str, Value),
) -> Result<(), CurateError> {
    let texts = [
        (Field::Title, "title", &edit.title),
        (Field::Subtitle, "subtitle", &edit.subtitle),
        (Field::Kind, "type", &edit.kind),
        (Field::Project, "project", &edit.project),
    ];
    for (field, name, value) in texts {
        if let Some(value) = value {
            set(store.column(field, name)?, text(value));
        }
    }
    let lists = [
        (Field::Facts, "facts", &edit.facts),
        (Field::Concepts, "concepts", &edit.concepts),
        (Field::Files, "files", &edit.files),
    ];
    for (field, name, value) in lists {
        if let Some(value) = value {
            let list = serde_json::to_string(value).unwrap_or_else(|_| "[]".to_owned());
            set(store.column(field, name)?, Value::Text(list));
        }
    }
    if let Some(narrative) = &edit.narrative {
        let (_, column) = store
            .source
            .narrative
            .first()
            .ok_or_else(|| CurateError::NoColumn {
                path: store.path.to_owned(),
                column: "narrative",
            })?;
        set(column, text(narrative));
    }
    Ok(())
}

/// Creates the tables that decisions need, if they are missing.
pub fn make_tables(store: &StoreTransaction<'_>) -> Result<(), CurateError> {
    let log = if store.layout.log.is_none() {
        LOG_TABLE
    } else {
        ""
    };
    store
        .transaction
        .execute_batch(&format!("{UNDO_TABLE};{log}"))
        .map_err(|error| store.write_error(error))
}

/// Adds a column that older stores lack.
fn add_column(store: &StoreTransaction<'_>, name: &str) -> Result<(), CurateError> {
    let known = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    let table = store.source.table.trim_matches('"');
    let is_there = store
        .transaction
        .query_row(known, params![table, name], |_| Ok(()))
        .optional()
        .map_err(|error| store.write_error(error))?;
    if is_there.is_some() {
        return Ok(());
    }
    let sql = format!("ALTER TABLE {} ADD COLUMN {name} TEXT", store.source.table);
    store
        .transaction
        .execute_batch(&sql)
        .map_err(|error| store.write_error(error))
}

/// Whether the newest decision replaced the memory with another one.
fn was_replaced(store: &StoreTransaction<'_>, id: &str) -> Result<bool, CurateError> {
    let sql = "SELECT action FROM curation_undo WHERE memory_id = ?1 ORDER BY number DESC LIMIT 1";
    let action: Option<String> = store
        .transaction
        .prepare_cached(sql)
        .and_then(|mut statement| statement.query_row([id], |row| row.get(0)))
        .optional()
        .map_err(|error| store.write_error(error))?;
    let replaces = [Verdict::Supersede.as_str(), Verdict::Merge.as_str()];
    Ok(action.is_some_and(|action| replaces.contains(&action.as_str())))
}

/// The values of some columns of a row, or `None` if the row is gone.
pub fn cells(
    store: &StoreTransaction<'_>,
    id: &str,
    columns: &[String],
) -> Result<Option<Cells>, CurateError> {
    condition(store, id)?;
    read_cells(store.transaction, store.source, id, columns)
        .map_err(|error| store.write_error(error))
}

/// The same, outside a transaction.
pub fn read_cells(
    connection: &Connection,
    source: &MemorySource,
    id: &str,
    columns: &[String],
) -> rusqlite::Result<Option<Cells>> {
    let Some((condition, parameter)) = source.id.condition(id) else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT {} FROM {} WHERE {condition}",
        columns.join(", "),
        source.table
    );
    let read = |row: &rusqlite::Row<'_>| {
        let mut cells = Cells::new();
        for (position, column) in columns.iter().enumerate() {
            cells.insert(column.clone(), encode(row.get_ref(position)?));
        }
        Ok(cells)
    };
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row([parameter], read).optional()
}

fn condition(store: &StoreTransaction<'_>, id: &str) -> Result<(String, Value), CurateError> {
    store
        .source
        .id
        .condition(id)
        .ok_or_else(|| CurateError::NotFound {
            id: id.to_owned(),
            nearest: Vec::new(),
        })
}

fn update(
    store: &StoreTransaction<'_>,
    id: &str,
    wanted: Vec<(String, Value)>,
) -> Result<(), CurateError> {
    let wanted = wanted
        .into_iter()
        .map(|(column, value)| (column, value, false));
    set_columns(store, id, wanted.collect())
}

/// Sets columns of a row. The flag marks values whose bytes are text.
fn set_columns(
    store: &StoreTransaction<'_>,
    id: &str,
    wanted: Vec<(String, Value, bool)>,
) -> Result<(), CurateError> {
    let (condition, parameter) = condition(store, id)?;
    let mut values = vec![parameter];
    let mut sets = Vec::new();
    for (column, value, is_text) in wanted {
        values.push(value);
        let placeholder = format!("?{}", values.len());
        sets.push(if is_text {
            format!("{column} = CAST({placeholder} AS TEXT)")
        } else {
            format!("{column} = {placeholder}")
        });
    }
    let sql = format!(
        "UPDATE {} SET {} WHERE {condition}",
        store.source.table,
        sets.join(", ")
    );
    store
        .transaction
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.execute(params_from_iter(values)))
        .map_err(|error| store.write_error(error))?;
    Ok(())
}

/// Restores values of a row. `false` if they are not values that this program wrote.
pub fn restore(store: &StoreTransaction<'_>, id: &str, cells: &Cells) -> Result<bool, CurateError> {
    let known = |column: &String| {
        let mut columns = store.source.columns.iter().flatten();
        let mut narrative = store.source.narrative.iter();
        columns.any(|known| known == column) || narrative.any(|(_, known)| known == column)
    };
    let mut wanted = Vec::new();
    for (column, value) in cells {
        let Some((value, is_text)) = decode(value).filter(|_| known(column)) else {
            return Ok(false);
        };
        wanted.push((column.clone(), value, is_text));
    }
    set_columns(store, id, wanted)?;
    Ok(true)
}

/// Links a memory with the one that replaces it. Returns the link if it is new.
fn link_successor(
    store: &StoreTransaction<'_>,
    into: &str,
    decision: &Decision,
) -> Result<Option<Json>, CurateError> {
    let Some(LinkSource { table, columns }) = &store.layout.links else {
        return Ok(None);
    };
    let link = json!([into, decision.id, "supersedes"]);
    let sql = format!("SELECT 1 FROM {table} WHERE {}", is_link(columns));
    let is_known = store
        .transaction
        .query_row(&sql, params![into, decision.id, "supersedes"], |_| Ok(()))
        .optional()
        .map_err(|error| store.write_error(error))?;
    if is_known.is_some() {
        return Ok(None);
    }
    let values = [
        Some(into),
        Some(decision.id.as_str()),
        Some("supersedes"),
        Some(decision.actor.as_str()),
        None,
    ];
    insert(store, table, columns, &values)?;
    Ok(Some(link))
}

/// The SQL condition that matches a link by both ends and its kind.
fn is_link([from, to, kind, ..]: &[String; 5]) -> String {
    let kind = if kind == "NULL" { "?3" } else { kind };
    format!("{from} = ?1 AND {to} = ?2 AND {kind} = ?3")
}

/// Removes a link that a decision made.
pub fn unlink(store: &StoreTransaction<'_>, link: &Json) -> Result<(), CurateError> {
    let Some(LinkSource { table, columns }) = &store.layout.links else {
        return Ok(());
    };
    let part = |position: usize| link.get(position).and_then(Json::as_str);
    let sql = format!("DELETE FROM {table} WHERE {}", is_link(columns));
    store
        .transaction
        .execute(&sql, params![part(0), part(1), part(2)])
        .map_err(|error| store.write_error(error))?;
    Ok(())
}

/// Adds a line to `curation_log`.
pub fn append_log_line(
    store: &StoreTransaction<'_>,
    line: &LogLine<'_>,
) -> Result<(), CurateError> {
    let values = [
        Some(line.id),
        Some(line.action),
        Some(line.statuses.0),
        Some(line.statuses.1),
        line.reason,
        Some(line.actor),
        Some(line.time),
    ];
    match &store.layout.log {
        Some(LogSource {
            table,
            memory,
            columns,
            ..
        }) => {
            let all: Vec<String> = std::iter::once(memory.clone())
                .chain(columns.iter().cloned())
                .collect();
            insert(store, table, &all, &values)
        }
        None => {
            let columns = "memory_id action previous_status new_status reason actor created_at";
            let columns: Vec<String> = columns.split(' ').map(str::to_owned).collect();
            insert(store, "curation_log", &columns, &values)
        }
    }
}

/// Inserts a row, without the columns that the table lacks (`NULL`).
fn insert(
    store: &StoreTransaction<'_>,
    table: &str,
    columns: &[String],
    values: &[Option<&str>],
) -> Result<(), CurateError> {
    let present = columns.iter().zip(values);
    let present: Vec<_> = present.filter(|(column, _)| *column != "NULL").collect();
    let names: Vec<&str> = present.iter().map(|(column, _)| column.as_str()).collect();
    let placeholders: Vec<String> = (1..=present.len())
        .map(|number| format!("?{number}"))
        .collect();
    let sql = format!(
        "INSERT OR IGNORE INTO {table} ({}) VALUES ({})",
        names.join(", "),
        placeholders.join(", ")
    );
    let values = present.iter().map(|(_, value)| **value);
    store
        .transaction
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.execute(params_from_iter(values)))
        .map_err(|error| store.write_error(error))?;
    Ok(())
}

/// Stores what `undo` needs.
fn record_undo(
    store: &StoreTransaction<'_>,
    decision: &Decision,
    (before, after): (&Cells, &Cells),
    link: Option<Json>,
) -> Result<(), CurateError> {
    let sql = "INSERT INTO curation_undo (batch, memory_id, action, before, after, link) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let json = |cells: &Cells| Json::Object(cells.clone()).to_string();
    let values = params![
        decision.batch.as_deref().unwrap_or_default(),
        decision.id,
        decision.verdict.as_str(),
        json(before),
        json(after),
        link.map(|link| link.to_string()),
    ];
    store
        .transaction
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(|error| store.write_error(error))?;
    Ok(())
}

/// The present status of a row, as a word.
pub fn status(store: &StoreTransaction<'_>, id: &str) -> Result<String, CurateError> {
    let column = store.column(Field::Status, "status")?.to_owned();
    let cells = cells(store, id, std::slice::from_ref(&column))?;
    let status = cells
        .as_ref()
        .and_then(|cells| cells.get(&column)?.as_str());
    Ok(status.unwrap_or_default().to_owned())
}

/// Sets only the status of a row.
pub fn set_status(
    store: &StoreTransaction<'_>,
    id: &str,
    status: Status,
) -> Result<(), CurateError> {
    let column = store.column(Field::Status, "status")?.to_owned();
    update(store, id, vec![(column, text(status.as_str()))])
}
