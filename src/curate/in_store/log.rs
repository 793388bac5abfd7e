//! The log of a scope whose decisions now go into its store: copied into the store, then moved
//! aside.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::Status;
use ack_store::read::CuratedMemory;
use rusqlite::OptionalExtension;

use super::row::{self, LogLine};
use super::{CurateError, StoreTransaction, in_transaction};
use crate::scope::Scope;

/// Copies the log into the store and moves the file aside. The status that the reader sees stays
/// the same: if a process is killed and the file remains, it says what the store says.
///
/// # Errors
/// The log cannot be read or moved, or the store cannot be written.
pub fn move_log_into_store(scope: &Scope) -> Result<(), CurateError> {
    let Some(path) = scope.store.decision_log().filter(|path| path.exists()) else {
        return Ok(());
    };
    let fail = |source| CurateError::Write {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(fail)?;
    file.lock().map_err(fail)?;
    // If the file cannot be moved, stop before anything is written.
    let aside = free_log_path(path);
    fs::hard_link(path, &aside).map_err(fail)?;
    let settled = in_transaction(scope, |store, snapshot| {
        let decisions = std::sync::Arc::clone(&snapshot.decisions);
        for id in decisions.ids() {
            let Some(curated) = snapshot.curated(id)? else {
                continue;
            };
            copy_decisions(store, scope, &curated, decisions.about(id))?;
        }
        Ok(())
    });
    match settled {
        Ok(()) => fs::remove_file(path).map_err(fail),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            Err(error)
        }
    }
}

fn copy_decisions(
    store: &StoreTransaction<'_>,
    scope: &Scope,
    curated: &CuratedMemory,
    lines: &[Decision],
) -> Result<(), CurateError> {
    let last = lines.last();
    if curated.has_duplicate_id {
        return Err(CurateError::DuplicateId {
            id: curated.memory.id.clone(),
            path: scope.store.path().to_owned(),
        });
    }
    if last.is_some_and(|last| last.verdict == Verdict::Withdraw) && !curated.is_outdated {
        return Ok(());
    }
    if is_settled(store, &curated.memory.id, last)? {
        return Ok(());
    }
    let earlier = lines.len().saturating_sub(usize::from(curated.is_decided));
    for line in lines.iter().take(earlier) {
        let after = line.verdict.status().unwrap_or(line.was);
        row::append_log_line(
            store,
            &LogLine {
                id: &line.id,
                action: line.verdict.as_str(),
                statuses: (line.was.as_str(), after.as_str()),
                reason: line.reason_with_day().as_deref(),
                actor: &line.actor,
                time: &line.time,
            },
        )?;
    }
    let status = curated.memory.status;
    if status == Status::Rejected && last.is_none_or(|last| row::status_after(last) != status) {
        // The store's own status is rejected, without a decision.
        return Ok(());
    }
    match last {
        Some(last) if curated.is_decided => row::apply(store, last),
        // It has changed since the decision, or that is unknown, so it waits for review.
        Some(last) => row::apply(
            store,
            &Decision {
                verdict: Verdict::Stage,
                edit: None,
                into: None,
                until: None,
                despite: None,
                reason: Some("changed since it was decided".to_owned()),
                ..last.clone()
            },
        ),
        None => row::set_status(store, &curated.memory.id, Status::Staging),
    }
}

/// Whether the newest decision in the store is this one, which means the process was killed before
/// it could move the file.
fn is_settled(
    store: &StoreTransaction<'_>,
    id: &str,
    last: Option<&Decision>,
) -> Result<bool, CurateError> {
    let Some(last) = last else {
        return Ok(false);
    };
    row::make_tables(store)?;
    let sql = "SELECT batch, action FROM curation_undo WHERE memory_id = ?1 \
               ORDER BY number DESC LIMIT 1";
    let newest: Option<(String, String)> = store
        .transaction
        .query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(|error| store.write_error(error))?;
    let batch = last.batch.as_deref().unwrap_or_default();
    Ok(newest.is_some_and(|(known, action)| known == batch && action == last.verdict.as_str()))
}

/// A free file name next to the log.
fn free_log_path(path: &Path) -> PathBuf {
    let numbered = |number: u32| path.with_file_name(format!("decisions.settled-{number}.jsonl"));
    (1..)
        .map(numbered)
        .find(|path| !path.exists())
        .unwrap_or_else(|| numbered(0))
}
