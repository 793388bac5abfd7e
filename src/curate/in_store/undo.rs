//! Undoes decisions in a store: each row gets its old values back, if it still has the values that
//! were written.

use std::collections::BTreeSet;

use ack_api::decision::Decision;
use ack_api::memory::Status;
use ack_store::layout::Field;
use rusqlite::types::Type;
use rusqlite::{Row, params};
use serde_json::Value as Json;

use super::row::{self, Cells, LogLine};
use super::{CurateError, Open, in_transaction};
use crate::curate::Sitting;
use crate::curate::write::Written;
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
        let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'curation_undo'";
        let tables: i64 = connection
            .query_row(table, [], |row| row.get(0))
            .map_err(fail)?;
        if tables == 0 {
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
                actor: written(&after, "reviewed_by"),
                time: written(&after, "reviewed_at"),
            }),
        }
    }
    Ok(batches)
}

/// What a decision wrote into a column, from the JSON of its cells.
fn written(after: &str, column: &str) -> Option<String> {
    let cells: Cells = serde_json::from_str(after).ok()?;
    let cell = cells
        .iter()
        .find(|(name, _)| name.trim_matches('"') == column);
    Some(cell?.1.as_str()?.to_owned())
}

/// Undoes a batch. Leaves alone memories that were changed or decided about later.
///
/// # Errors
/// The store cannot be written. Then nothing was undone.
pub fn take_back(scope: &Scope, batch: &Batch, sitting: &Sitting) -> Result<Written, CurateError> {
    let reason = format!("undo of {}", batch.name);
    in_transaction(scope, |store, _| {
        let mut written = Written::default();
        for id in batch.ids.iter().collect::<BTreeSet<_>>() {
            let entries = about(store, id)?;
            let entries = entries.iter().take_while(|entry| entry.batch == batch.name);
            let line = Line {
                id,
                action: "undo",
                reason: Some(&reason),
                actor: &sitting.actor,
                time: &ack_api::time::show(sitting.now),
            };
            if revert(store, entries, &line)? {
                written.count += 1;
            } else {
                written.changed.push(id.clone());
            }
        }
        Ok(written)
    })
}

/// Undoes every decision about a memory.
pub fn withdraw(store: &Open<'_>, decision: &Decision) -> Result<(), CurateError> {
    let line = Line {
        id: &decision.id,
        action: decision.verdict.as_str(),
        reason: decision.reason.as_deref(),
        actor: &decision.actor,
        time: &decision.time,
    };
    revert(store, about(store, &decision.id)?.iter(), &line)?;
    Ok(())
}

/// The line for `curation_log`.
struct Line<'a> {
    id: &'a str,
    action: &'a str,
    reason: Option<&'a str>,
    actor: &'a str,
    time: &'a str,
}

/// Reverts these decisions, newest first, as long as the row still has the values they wrote.
/// Returns whether any was reverted.
fn revert<'a>(
    store: &Open<'_>,
    entries: impl Iterator<Item = &'a Entry>,
    line: &Line<'_>,
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
            .execute(
                "DELETE FROM curation_undo WHERE number = ?1",
                params![entry.number],
            )
            .map_err(|error| store.failed(error))?;
        is_reverted = true;
    }
    if is_reverted {
        let status_after = row::status(store, line.id)?;
        row::note(
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

/// The memories that waited when this one replaced them.
pub fn replaced_while_waiting(store: &Open<'_>, into: &str) -> Result<Vec<String>, CurateError> {
    let status = store.column(Field::Status, "status")?.to_owned();
    let Some(successor) = store.source.column(Field::SupersededBy).map(str::to_owned) else {
        return Ok(Vec::new());
    };
    store
        .transaction
        .execute_batch(row::UNDO)
        .map_err(|error| store.failed(error))?;
    let sql = "SELECT number, batch, before, after, link, memory_id FROM curation_undo AS entry \
               WHERE action IN ('merge', 'supersede') AND number = \
               (SELECT max(number) FROM curation_undo WHERE memory_id = entry.memory_id)";
    let read = || -> rusqlite::Result<Vec<(Entry, String)>> {
        let mut statement = store.transaction.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((Entry::read(row)?, row.get(5)?)))?;
        rows.collect()
    };
    let entries = read().map_err(|error| store.failed(error))?;
    let text = |cells: &Cells, column: &String| {
        let cell = cells.get(column).and_then(Json::as_str);
        cell.map(str::to_owned)
    };
    let waited = Status::Staging.as_str();
    let replaced = entries.into_iter().filter(|(entry, _)| {
        text(&entry.after, &successor).as_deref() == Some(into)
            && text(&entry.before, &status).as_deref() == Some(waited)
    });
    Ok(replaced.map(|(_, id)| id).collect())
}

/// The decisions about a memory, newest first.
fn about(store: &Open<'_>, id: &str) -> Result<Vec<Entry>, CurateError> {
    store
        .transaction
        .execute_batch(row::UNDO)
        .map_err(|error| store.failed(error))?;
    let sql = "SELECT number, batch, before, after, link FROM curation_undo \
               WHERE memory_id = ?1 ORDER BY number DESC";
    let read = || -> rusqlite::Result<Vec<Entry>> {
        let mut statement = store.transaction.prepare(sql)?;
        let rows = statement.query_map([id], Entry::read)?;
        rows.collect()
    };
    read().map_err(|error| store.failed(error))
}
