//! Writes decisions into a native store, if the owner of a scope sets `decisions = "store"`.
//!
//! One transaction holds the status, who decided it and when, the successor, the edited fields, the
//! entry in `curation_log`, the link, and what `undo` needs ([`undo`]). It takes the write lock
//! first and decides from what it reads under that lock. So concurrent writers lose nothing, and a
//! killed process leaves the store unchanged.
//!
//! The reader still honours the scope's log. The first decision after the switch copies the log
//! into the store and moves the file aside.

mod cells;
mod log;
mod row;
mod undo;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ack_api::decision::{Decision, Verdict};
use ack_store::layout::{Field, Layout, MemorySource, Profile};
use ack_store::read::CuratedMemory;
use ack_store::{Snapshot, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

pub use self::undo::{Batch, batches, dry_run_undo, undo_batch};
use super::CurateError;
use super::log::release;
use super::outcome::{WrittenDecisions, check_single};
use super::side_effects::{self, SideEffects};
use crate::scope::Scope;

/// How long to wait for another writer.
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// A native store in a transaction that holds the write lock.
struct StoreTransaction<'a> {
    transaction: &'a Transaction<'a>,
    path: &'a Path,
    layout: &'a Layout,
    source: &'a MemorySource,
}

/// Like [`super::write::write_with`], for a scope whose decisions go into its store.
///
/// # Errors
/// The same, and: the store is not native, lacks a column, or is locked.
pub fn write_with(
    scope: &Scope,
    ids: &[&str],
    decide: impl FnOnce(&HashMap<String, CuratedMemory>) -> Result<Vec<Decision>, CurateError>,
) -> Result<WrittenDecisions, CurateError> {
    log::move_log_into_store(scope)?;
    in_transaction(scope, |store, snapshot| {
        let now = read(snapshot, ids)?;
        let mut decisions = decide(&now)?;
        check_single(scope, &decisions, &now)?;
        let released = waiting_again(snapshot, &decisions)?;
        decisions.extend_from_slice(&released);
        let side_effects = side_effects::of_decisions(scope, snapshot, &decisions, &released)?;
        for decision in &decisions {
            match decision.verdict {
                Verdict::Withdraw => undo::withdraw(store, decision)?,
                _ => row::apply(store, decision)?,
            }
        }
        Ok(WrittenDecisions {
            decisions,
            side_effects,
        })
    })
}

/// Checks that decisions can be written into the store, without writing.
///
/// # Errors
/// As [`write_with`].
pub fn check(scope: &Scope) -> Result<(), CurateError> {
    in_transaction(scope, |_, _| Ok(()))
}

/// What else would change with these decisions.
///
/// # Errors
/// The store cannot be read.
pub fn dry_run(scope: &Scope, decisions: &[Decision]) -> Result<SideEffects, CurateError> {
    let side_effects = scope.store.snapshot(|snapshot| {
        let released = waiting_again(snapshot, decisions)?;
        let all = [decisions, &released].concat();
        side_effects::of_decisions(scope, snapshot, &all, &released)
    })?;
    Ok(side_effects)
}

/// The memories that wait again because the one that replaced them is rejected now.
fn waiting_again(
    snapshot: &Snapshot<'_>,
    decisions: &[Decision],
) -> Result<Vec<Decision>, StoreError> {
    let decided: HashSet<&str> = decisions.iter().map(|it| it.id.as_str()).collect();
    let rejections = decisions
        .iter()
        .filter(|decision| decision.verdict == Verdict::Reject);
    let rejections: HashMap<&str, &Decision> = rejections
        .map(|decision| (decision.id.as_str(), decision))
        .collect();
    if rejections.is_empty() {
        return Ok(Vec::new());
    }
    let mut released = Vec::new();
    for (id, into) in undo::replaced_while_waiting(snapshot)? {
        let Some(rejection) = rejections.get(into.as_str()) else {
            continue;
        };
        if !decided.contains(id.as_str()) {
            let curated = snapshot
                .curated(&id)?
                .filter(|curated| !curated.has_duplicate_id);
            released.extend(curated.map(|curated| release(rejection, curated)));
        }
    }
    Ok(released)
}

/// The memories with these ids.
fn read(
    snapshot: &Snapshot<'_>,
    ids: &[&str],
) -> Result<HashMap<String, CuratedMemory>, StoreError> {
    let mut now = HashMap::new();
    for id in ids {
        if let Some(curated) = snapshot.curated(id)? {
            now.insert((*id).to_owned(), curated);
        }
    }
    Ok(now)
}

/// Runs `write` under the write lock of a native store, and commits if it succeeds.
fn in_transaction<T>(
    scope: &Scope,
    write: impl FnOnce(&StoreTransaction<'_>, &Snapshot<'_>) -> Result<T, CurateError>,
) -> Result<T, CurateError> {
    let refuse = |profile| CurateError::NotNative {
        scope: scope.name.clone(),
        profile,
    };
    if scope.remote.is_some() {
        return Err(refuse("a copy of what a bucket holds"));
    }
    if !scope.store.path().is_file() {
        // A folder of notes, or no store. The reader says which.
        let profile = scope
            .store
            .snapshot(|snapshot| Ok(snapshot.layout.profile.as_str()))?;
        return Err(refuse(profile));
    }
    scope.store.exclusively(|path| {
        let sqlite = |error| write_error(path, error);
        let mut connection = open(path)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sqlite)?;
        let result = {
            let snapshot = scope.store.snapshot_over(&transaction)?;
            let layout = std::sync::Arc::clone(&snapshot.layout);
            let source = layout
                .sources
                .first()
                .filter(|_| layout.profile == Profile::Ack)
                .ok_or_else(|| refuse(layout.profile.as_str()))?;
            let store = StoreTransaction {
                transaction: &transaction,
                path,
                layout: &layout,
                source,
            };
            store.column(Field::Status, "status")?;
            write(&store, &snapshot)?
        };
        transaction.commit().map_err(sqlite)?;
        Ok(result)
    })
}

fn open(path: &Path) -> Result<Connection, CurateError> {
    let sqlite = |error| write_error(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    connection
        .busy_timeout(WRITE_LOCK_TIMEOUT)
        .map_err(sqlite)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)
        .map_err(sqlite)?;
    if connection.is_readonly("main").map_err(sqlite)? {
        return Err(CurateError::Write {
            path: path.to_owned(),
            source: std::io::ErrorKind::PermissionDenied.into(),
        });
    }
    Ok(connection)
}

/// Converts an SQLite write error.
fn write_error(path: &Path, error: rusqlite::Error) -> CurateError {
    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
        return CurateError::Constraint {
            path: path.to_owned(),
            source: std::io::Error::other(error),
        };
    }
    match StoreError::sqlite(path, error) {
        StoreError::Sqlite { path, source } => CurateError::Write {
            path,
            source: std::io::Error::other(source),
        },
        other => other.into(),
    }
}

impl StoreTransaction<'_> {
    /// The column of a field.
    fn column(&self, field: Field, name: &'static str) -> Result<&str, CurateError> {
        self.source
            .column(field)
            .ok_or_else(|| CurateError::NoColumn {
                path: PathBuf::from(self.path),
                column: name,
            })
    }

    fn write_error(&self, error: rusqlite::Error) -> CurateError {
        write_error(self.path, error)
    }
}
