//! Undoes decisions in a store: each row gets its old values back, if it still has the values that
//! were written.

use std::collections::{BTreeMap, BTreeSet};

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::{Memory, Status};
use ack_api::text;
use ack_store::layout::Field;
use ack_store::{Snapshot, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use serde_json::Value as Json;

use super::row::{self, Cells, LogLine};
use super::{CurateError, StoreTransaction, in_transaction, waiting_again};
use crate::curate::ReviewSession;
use crate::curate::outcome::WriteOutcome;
use crate::curate::side_effects;
use crate::scope::Scope;

/// The decisions of a batch that can be undone.
#[derive(Debug)]
pub struct Batch {
    /// Its name.
    pub name: String,
    /// The memories whose newest decision belongs to the batch.
    pub ids: Vec<String>,
    /// Who decided about them, if the store still says it.
    pub actor: Option<String>,
    /// When that was.
    pub time: Option<String>,
}

/// One decision, with what it changed.
struct Entry {
    number: i64,
    batch: String,
    before: Cells,
    after: Cells,
    link: Option<Json>,
}

impl Entry {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let json = |position: usize| -> rusqlite::Result<Option<Json>> {
            let text: Option<String> = row.get(position)?;
            let parse = |text: String| serde_json::from_str(&text);
            text.map(parse).transpose().map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(position, Type::Text, Box::new(error))
            })
        };
        let cells = |position| -> rusqlite::Result<Cells> {
            Ok(match json(position)? {
                Some(Json::Object(cells)) => cells,
                _ => Cells::new(),
            })
        };
        Ok(Self {
            number: row.get(0)?,
            batch: row.get(1)?,
            before: cells(2)?,
            after: cells(3)?,
            link: json(4)?,
        })
    }
}

/// The batches of a store that can be undone, oldest first.
///
/// # Errors
/// The store cannot be read.
pub fn batches(scope: &Scope) -> Result<Vec<Batch>, CurateError> {
    let sql = "SELECT batch, memory_id, after FROM curation_undo AS entry WHERE batch <> '' AND number = \
               (SELECT max(number) FROM curation_undo WHERE memory_id = entry.memory_id) \
               ORDER BY batch, memory_id";
    let found = scope.store.snapshot(|snapshot| {
        let fail = |error| ack_store::StoreError::sqlite(scope.store.path(), error);
        let connection = snapshot.connection();
        if !has_table(connection).map_err(fail)? {
            return Ok(Vec::new());
        }
        let mut statement = connection.prepare(sql).map_err(fail)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(fail)?;
        rows.collect::<rusqlite::Result<Vec<(String, String, String)>>>()
            .map_err(fail)
    })?;
    let mut batches: Vec<Batch> = Vec::new();
    for (name, id, after) in found {
        match batches.last_mut().filter(|batch| batch.name == name) {
            Some(batch) => batch.ids.push(id),
            None => batches.push(Batch {
                name,
                ids: vec![id],
                actor: written_value(&after, "reviewed_by"),
                time: written_value(&after, "reviewed_at"),
            }),
        }
    }
    Ok(batches)
}

/// What a decision wrote into a column, from the JSON of its cells.
fn written_value(after: &str, column: &str) -> Option<String> {
    let cells: Cells = serde_json::from_str(after).ok()?;
    let cell = cells
        .iter()
        .find(|(name, _)| name.trim_matches('"') == column);
    Some(cell?.1.as_str()?.to_owned())
}

/// Undoes a batch, recorded by `withdrawals`. Leaves alone memories that were changed or decided
/// about later.
///
/// # Errors
/// The store cannot be written. Then nothing was undone.
pub fn undo_batch(
    scope: &Scope,
    batch: &Batch,
    withdrawals: &[Decision],
    session: &ReviewSession,
) -> Result<WriteOutcome, CurateError> {
    let reason = format!("undo of {}", batch.name);
    in_transaction(scope, |store, snapshot| {
        row::make_tables(store)?;
        let (mut outcome, released) = plan(scope, snapshot, batch, withdrawals)?;
        let unchanged = |id: &&String| !outcome.changed.contains(id);
        let undone: BTreeSet<&String> = batch.ids.iter().filter(unchanged).collect();
        outcome.count = 0;
        for id in undone {
            let entries = decisions_about(store, id)?;
            let entries = entries.iter().take_while(|entry| entry.batch == batch.name);
            let line = UndoLogLine {
                id,
                action: "undo",
                reason: Some(&reason),
                actor: &session.actor,
                time: &ack_api::time::to_rfc3339(session.now),
            };
            if revert(store, entries, &line)? {
                outcome.count += 1;
            } else {
                outcome.changed.push(id.clone());
            }
        }
        for decision in &released {
            row::apply(store, decision)?;
        }
        Ok(outcome)
    })
}

/// What [`undo_batch`] would do. Writes nothing.
///
/// # Errors
/// The store cannot be read.
pub fn dry_run_undo(
    scope: &Scope,
    batch: &Batch,
    withdrawals: &[Decision],
) -> Result<WriteOutcome, CurateError> {
    let plan = scope
        .store
        .snapshot(|snapshot| plan(scope, snapshot, batch, withdrawals))?;
    Ok(plan.0)
}

/// What undoing a batch does, and the decisions that only follow from it.
fn plan(
    scope: &Scope,
    snapshot: &Snapshot<'_>,
    batch: &Batch,
    withdrawals: &[Decision],
) -> Result<(WriteOutcome, Vec<Decision>), StoreError> {
    let mut after = after(snapshot, batch)?;
    let mut changed = Vec::new();
    for id in batch.ids.iter().collect::<BTreeSet<_>>() {
        if !is_unchanged(snapshot, id)? {
            after.remove(id);
            changed.push(id.clone());
        }
    }
    let released = released(snapshot, withdrawals, &after)?;
    let side_effects = side_effects::of_undo(scope, snapshot, &after, &released)?;
    let outcome = WriteOutcome {
        count: batch.ids.len() - changed.len(),
        changed,
        side_effects,
    };
    Ok((outcome, released))
}

/// The decisions that make memories wait again because the one that replaced them is rejected
/// again.
fn released(
    snapshot: &Snapshot<'_>,
    withdrawals: &[Decision],
    after: &BTreeMap<String, Memory>,
) -> Result<Vec<Decision>, StoreError> {
    let is_rejected =
        |id: &str| after.get(id).map(|memory| memory.status) == Some(Status::Rejected);
    let rejections: Vec<Decision> = withdrawals
        .iter()
        .filter(|withdrawal| withdrawal.was.is_served() && is_rejected(&withdrawal.id))
        .map(|withdrawal| Decision {
            verdict: Verdict::Reject,
            ..withdrawal.clone()
        })
        .collect();
    let mut released = waiting_again(snapshot, &rejections)?;
    released.retain(|decision| !after.contains_key(&decision.id));
    Ok(released)
}

/// The memories of a batch as they are without it.
fn after(snapshot: &Snapshot<'_>, batch: &Batch) -> Result<BTreeMap<String, Memory>, StoreError> {
    let source = snapshot.layout.sources.first();
    let column = |field| source.and_then(|source| source.column(field));
    let mut after = BTreeMap::new();
    for id in &batch.ids {
        let entries = entries(snapshot.connection(), id)
            .map_err(|error| StoreError::sqlite(snapshot.path(), error))?;
        let mut undone = entries
            .iter()
            .take_while(|entry| entry.batch == batch.name)
            .flat_map(|entry| &entry.before);
        let Some(mut memory) = snapshot.by_id(id)? else {
            continue;
        };
        // The values from before the first decision of the batch come last.
        for (name, value) in &mut undone {
            if column(Field::Status) == Some(name) {
                let status = value.as_str().and_then(Status::parse);
                memory.status = status.unwrap_or(Status::Staging);
            } else if column(Field::SupersededBy) == Some(name) {
                memory.superseded_by = value.as_str().map(text::id);
            }
        }
        after.insert(id.clone(), memory);
    }
    Ok(after)
}

/// Whether a row still has the values that the newest decision wrote.
fn is_unchanged(snapshot: &Snapshot<'_>, id: &str) -> Result<bool, StoreError> {
    let fail = |error| StoreError::sqlite(snapshot.path(), error);
    let connection = snapshot.connection();
    let entries = entries(connection, id).map_err(fail)?;
    let (Some(newest), Some(source)) = (entries.first(), snapshot.layout.sources.first()) else {
        return Ok(false);
    };
    let columns: Vec<String> = newest.after.keys().cloned().collect();
    if columns.is_empty() {
        return Ok(false);
    }
    let cells = row::read_cells(connection, source, id, &columns).map_err(fail)?;
    Ok(cells.as_ref() == Some(&newest.after))
}

/// Undoes every decision about a memory.
pub fn withdraw(store: &StoreTransaction<'_>, decision: &Decision) -> Result<(), CurateError> {
    let line = UndoLogLine {
        id: &decision.id,
        action: decision.verdict.as_str(),
        reason: decision.reason.as_deref(),
        actor: &decision.actor,
        time: &decision.time,
    };
    row::make_tables(store)?;
    revert(store, decisions_about(store, &decision.id)?.iter(), &line)?;
    Ok(())
}

/// The line for `curation_log`.
struct UndoLogLine<'a> {
    id: &'a str,
    action: &'a str,
    reason: Option<&'a str>,
    actor: &'a str,
    time: &'a str,
}

/// Reverts these decisions, newest first, as long as the row still has the values they wrote.
/// Returns whether any was reverted.
fn revert<'a>(
    store: &StoreTransaction<'_>,
    entries: impl Iterator<Item = &'a Entry>,
    line: &UndoLogLine<'_>,
) -> Result<bool, CurateError> {
    let mut is_reverted = false;
    let mut status_before = String::new();
    for entry in entries {
        let columns: Vec<String> = entry.after.keys().cloned().collect();
        if columns.is_empty() || row::cells(store, line.id, &columns)? != Some(entry.after.clone())
        {
            break;
        }
        if !is_reverted {
            status_before = row::status(store, line.id)?;
        }
        if !row::restore(store, line.id, &entry.before)? {
            break;
        }
        if let Some(link) = &entry.link {
            row::unlink(store, link)?;
        }
        store
            .transaction
            .prepare_cached("DELETE FROM curation_undo WHERE number = ?1")
            .and_then(|mut statement| statement.execute(params![entry.number]))
            .map_err(|error| store.write_error(error))?;
        is_reverted = true;
    }
    if is_reverted {
        let status_after = row::status(store, line.id)?;
        row::append_log_line(
            store,
            &LogLine {
                id: line.id,
                action: line.action,
                statuses: (&status_before, &status_after),
                reason: line.reason,
                actor: line.actor,
                time: line.time,
            },
        )?;
    }
    Ok(is_reverted)
}

/// The memories that waited when another one replaced them, each with that one's id.
///
/// # Errors
/// The store cannot be read.
pub fn replaced_while_waiting(
    snapshot: &Snapshot<'_>,
) -> Result<Vec<(String, String)>, StoreError> {
    let source = snapshot.layout.sources.first();
    let column = |field| source.and_then(|source| source.column(field));
    let (Some(status), Some(successor)) = (column(Field::Status), column(Field::SupersededBy))
    else {
        return Ok(Vec::new());
    };
    let entries = newest(snapshot, "action IN ('merge', 'supersede')")?;
    let text = |cells: &Cells, column: &str| {
        let cell = cells.get(column).and_then(Json::as_str);
        cell.map(str::to_owned)
    };
    let waited = Status::Staging.as_str();
    let replaced = entries.into_iter().filter_map(|(id, entry)| {
        let was = text(&entry.before, status)?;
        (was == waited).then_some((id, text(&entry.after, successor)?))
    });
    Ok(replaced.collect())
}

/// The newest decision about each memory, for those that fit an SQL condition.
fn newest(snapshot: &Snapshot<'_>, condition: &str) -> Result<Vec<(String, Entry)>, StoreError> {
    let fail = |error| StoreError::sqlite(snapshot.path(), error);
    let connection = snapshot.connection();
    if !has_table(connection).map_err(fail)? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT number, batch, before, after, link, memory_id FROM curation_undo AS entry \
         WHERE {condition} AND number = \
         (SELECT max(number) FROM curation_undo WHERE memory_id = entry.memory_id)"
    );
    let mut statement = connection.prepare(&sql).map_err(fail)?;
    let rows = statement
        .query_map([], |row| Ok((row.get(5)?, Entry::read(row)?)))
        .map_err(fail)?;
    rows.collect::<rusqlite::Result<Vec<_>>>().map_err(fail)
}

/// Whether anything was ever decided in the store.
fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'curation_undo'";
    let tables: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(tables > 0)
}

/// The decisions about a memory, newest first.
fn decisions_about(store: &StoreTransaction<'_>, id: &str) -> Result<Vec<Entry>, CurateError> {
    entries(store.transaction, id).map_err(|error| store.write_error(error))
}

fn entries(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Entry>> {
    let sql = "SELECT number, batch, before, after, link FROM curation_undo \
               WHERE memory_id = ?1 ORDER BY number DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([id], Entry::read)?;
    rows.collect()
}
