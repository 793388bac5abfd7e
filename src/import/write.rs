//! Writes a native store. All checks go through the read-only [`Store`] first. Nothing is opened
//! for writing, and no folder is created, until there is something to write. Apart from this code,
//! only `crate::demo` opens a memory database for writing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::{ImportError, NumberedRow, RefusedLine};
use ack_api::import_line::Row;
use ack_api::memory::{Status, Unreviewed};
use ack_api::time;
use ack_store::decisions::is_content;
use ack_store::layout::{Profile, tables};
use ack_store::profiles::recognise;
use ack_store::{Snapshot, Store, StoreError};
use ack_sys::files::{create_private, make_private};

pub const SCHEMA: &str = include_str!("../../schemas/scope.sql");

/// Columns of `memories` that an import fills, in the order of [`values`].
const COLUMNS: &str = "id, project, session, session_id, date, type, title, subtitle, facts, \
    concepts, files, narrative, status, confidence, reviewed_at, reviewed_by, superseded_by, \
    created_at, updated_at";
/// Columns that a curator or an update fills. They stay as they are if a line does not set them.
const CURATED_COLUMNS: [&str; 5] =
    ["status", "reviewed_at", "reviewed_by", "superseded_by", "updated_at"];
/// The name prefix of folders in which new stores are built. Discovery skips them.
const BUILD_FOLDER_PREFIX: &str = ".import-";

pub struct Target {
    pub path: PathBuf,
    pub is_new: bool,
}

#[derive(Debug, Default)]
pub struct ImportPlan {
    pub added: Vec<Row>,
    /// Each with the status that it has in the store.
    pub updated: Vec<(Row, String)>,
    pub unchanged: usize,
    pub refused: Vec<RefusedLine>,
}

impl Target {
    pub fn new(path: PathBuf) -> Self {
        let is_new = !path.exists();
        Self { path, is_new }
    }

    /// Compares rows with the store, without writing.
    pub fn plan(&self, rows: Vec<NumberedRow>, update: bool) -> Result<ImportPlan, ImportError> {
        if self.is_new {
            let added = rows.into_iter().map(|(_, row)| row).collect();
            return Ok(ImportPlan { added, ..ImportPlan::default() });
        }
        let store = Store::new(self.path.clone(), Unreviewed::default());
        store.snapshot(|snapshot| match check(snapshot)? {
            Some(error) => Ok(Err(error)),
            None => Ok(Ok(compare(snapshot, &rows, update)?)),
        })?
    }

    /// Writes the plan in one transaction. A new store is then moved into place. After an error,
    /// nothing is changed.
    pub fn commit(&self, plan: &ImportPlan, now: jiff::Timestamp) -> Result<(), ImportError> {
        let sqlite = |source| ImportError::Sqlite { path: self.path.clone(), source };
        if !self.is_new {
            let mut connection = Connection::open(&self.path).map_err(sqlite)?;
            connection.busy_timeout(Duration::from_secs(10)).map_err(sqlite)?;
            return write(&mut connection, plan, now).map_err(sqlite);
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let above = folder.parent().unwrap_or(folder);
        let io = |source| ImportError::Io { action: "create", path: self.path.clone(), source };
        make_private(above).map_err(io)?;
        sweep(above);
        // It becomes the scope's folder.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let mut building = tempfile::Builder::new();
        let building = building.prefix(BUILD_FOLDER_PREFIX).permissions(private);
        let building = building.tempdir_in(above).map_err(io)?;
        let file = building.path().join(self.path.file_name().unwrap_or("memory.db".as_ref()));
        // SQLite treats an empty file as a new database.
        create_private(&file).map_err(io)?;
        let mut connection = Connection::open(&file).map_err(sqlite)?;
        connection.execute_batch(SCHEMA).map_err(sqlite)?;
        write(&mut connection, plan, now).map_err(sqlite)?;
        connection.close().map_err(|(_, source)| sqlite(source))?;
        if folder.exists() {
            // Unlike a rename, a hard link fails if another import has created the file meanwhile.
            std::fs::hard_link(&file, &self.path).map_err(io)
        } else {
            std::fs::rename(building.path(), folder).map_err(io)?;
            // The folder now belongs to the scope.
            let _ = building.keep();
            Ok(())
        }
    }
}

fn columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.split(", ")
}

/// Removes what a killed import left behind more than a day ago.
fn sweep(above: &Path) {
    let old = |entry: &std::fs::DirEntry| {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        let name = entry.file_name();
        name.to_string_lossy().starts_with(BUILD_FOLDER_PREFIX)
            && age.is_some_and(|age| age > Duration::from_secs(86_400))
    };
    let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
    for entry in entries.filter(old) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

fn check(snapshot: &Snapshot<'_>) -> Result<Option<ImportError>, StoreError> {
    let path = || snapshot.path().to_owned();
    if snapshot.layout.profile != Profile::Ack {
        return Ok(Some(ImportError::NotNative { path: path(), profile: snapshot.layout.profile }));
    }
    let tables = tables(snapshot.connection())
        .map_err(|error| StoreError::sqlite(snapshot.path(), error))?;
    let missing = |column: &&str| {
        !tables.iter().any(|table| {
            table.name.eq_ignore_ascii_case("memories") && table.column(&[column]).is_some()
        })
    };
    let missing = columns().find(missing);
    Ok(missing.map(|column| ImportError::MissingColumn { path: path(), column }))
}

fn compare(
    snapshot: &Snapshot<'_>,
    rows: &[NumberedRow],
    update: bool,
) -> Result<ImportPlan, StoreError> {
    let sqlite = |error| StoreError::sqlite(snapshot.path(), error);
    let mut plan = ImportPlan::default();
    let sql = format!("SELECT {COLUMNS} FROM memories WHERE id COLLATE BINARY = ?1");
    let mut statement = snapshot.connection().prepare(&sql).map_err(sqlite)?;
    for (number, row) in rows {
        let stored = statement
            .query_row([&row.id], |stored| {
                columns().enumerate().map(|(place, _)| stored.get(place)).collect()
            })
            .optional()
            .map_err(sqlite)?;
        let Some(stored): Option<Vec<Value>> = stored else {
            plan.added.push(row.clone());
            continue;
        };
        let status = match stored.get(12) {
            Some(Value::Text(status)) => status.clone(),
            _ => String::new(),
        };
        let mut adjusted = row.clone();
        let is_served = Status::parse(&status).is_some_and(Status::is_served);
        if update && !row.has_status && is_served && changes_content(row, &stored) {
            // Nobody has approved the text of this line.
            adjusted.given_fields.push("status".to_owned());
            adjusted.status = Status::Staging;
            adjusted.line.status = Some(Status::Staging.as_str().to_owned());
            adjusted.has_status = true;
        }
        if !would_change(&adjusted, &stored, update) {
            plan.unchanged += 1;
        } else if update {
            plan.updated.push((adjusted, status));
        } else if row.has_id {
            let reason = format!(
                "`id` is `{}`, which the store has with other content; --update replaces it",
                row.id
            );
            plan.refused.push(RefusedLine { line: *number, reason });
        } else {
            plan.unchanged += 1;
        }
    }
    Ok(plan)
}

fn would_change(row: &Row, stored: &[Value], update: bool) -> bool {
    columns().zip(stored.iter().zip(values(row))).any(|(column, (stored, wanted))| {
        let is_set = sets_column(row, column);
        let counts = match column {
            // An undated line keeps the time of its first import.
            "created_at" => is_set,
            column if CURATED_COLUMNS.contains(&column) => update && is_set,
            _ => !update || is_set,
        };
        counts && *stored != wanted
    })
}

fn changes_content(row: &Row, stored: &[Value]) -> bool {
    columns().zip(stored.iter().zip(values(row))).any(|(column, (stored, wanted))| {
        is_content(column) && *stored != wanted && sets_column(row, column)
    })
}

fn write(
    connection: &mut Connection,
    plan: &ImportPlan,
    now: jiff::Timestamp,
) -> rusqlite::Result<()> {
    let has_log = recognise(&tables(connection)?).is_some_and(|layout| layout.log.is_some());
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let marks = vec!["?"; columns().count()].join(", ");
        let mut insert =
            transaction.prepare(&format!("INSERT INTO memories ({COLUMNS}) VALUES ({marks})"))?;
        let mut log = has_log
            .then(|| {
                transaction.prepare(
                    "INSERT INTO curation_log (memory_id, action, previous_status, new_status, reason, actor, created_at) \
                     VALUES (?1, 'import', ?2, ?3, NULL, 'ack-memory import', ?4)",
                )
            })
            .transpose()?;
        let now = time::to_rfc3339(now);
        let added = plan.added.iter().map(|row| (row, None));
        let updated = plan.updated.iter().map(|(row, status)| (row, Some(status)));
        for (row, previous) in added.chain(updated) {
            let kept_status = match previous {
                Some(previous) if !row.has_status => previous.as_str(),
                _ => row.status.as_str(),
            };
            if previous.is_some() {
                let set = columns().zip(values(row)).skip(1);
                let set = set.filter(|(column, _)| sets_column(row, column));
                let (columns, mut values): (Vec<&str>, Vec<Value>) = set.unzip();
                values.push(Value::Text(row.id.clone()));
                let set = columns.join(" = ?, ");
                let mut replace = transaction
                    .prepare_cached(&format!("UPDATE memories SET {set} = ? WHERE id = ?"))?;
                replace.execute(rusqlite::params_from_iter(values))?;
            } else {
                insert.execute(rusqlite::params_from_iter(values(row)))?;
            }
            if let Some(log) = &mut log {
                log.execute(params![row.id, previous, kept_status, now])?;
            }
        }
    }
    transaction.commit()
}

/// Whether a line sets a column. Other columns keep their values in the store.
fn sets_column(row: &Row, column: &str) -> bool {
    match column {
        "created_at" => row.has_date,
        column => row.given_fields.iter().any(|field| field == column),
    }
}

fn values(row: &Row) -> Vec<Value> {
    let line = &row.line;
    let text = |value: &Option<String>| value.clone().map_or(Value::Null, Value::Text);
    let list = |value: &[String]| {
        Value::Text(serde_json::to_string(value).unwrap_or_else(|_| "[]".to_owned()))
    };
    vec![
        Value::Text(row.id.clone()),
        text(&line.project),
        text(&line.session),
        text(&line.session_id),
        text(&line.date),
        text(&line.kind),
        Value::Text(line.title.clone()),
        text(&line.subtitle),
        list(&line.facts),
        list(&line.concepts),
        list(&line.files),
        text(&line.narrative),
        Value::Text(row.status.as_str().to_owned()),
        line.confidence.map_or(Value::Null, Value::Real),
        text(&line.reviewed_at),
        text(&line.reviewed_by),
        text(&line.superseded_by),
        text(&line.created_at),
        text(&line.updated_at),
    ]
}
