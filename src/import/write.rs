//! Writes a native store: the only code, with what builds sample scopes, that opens a memory database for writing.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tempfile::TempPath;

use super::line::Row;
use super::{ImportError, Refusal};
use crate::error::Error;
use crate::store::layout::{Profile, recognise, tables};
use crate::time;

/// The native schema.
pub const SCHEMA: &str = include_str!("../../schemas/scope.sql");

/// Columns of `memories` that an import fills, in the order of [`values`].
const COLUMNS: [&str; 19] = [
    "id",
    "project",
    "session",
    "session_id",
    "date",
    "type",
    "title",
    "subtitle",
    "facts",
    "concepts",
    "files",
    "narrative",
    "status",
    "confidence",
    "reviewed_at",
    "reviewed_by",
    "superseded_by",
    "created_at",
    "updated_at",
];

/// The store an import goes to.
pub struct Target {
    path: PathBuf,
    connection: Connection,
    /// A new store is built under another name and appears when it is complete.
    building: Option<TempPath>,
}

/// What an import will do.
#[derive(Debug, Default)]
pub struct Plan {
    /// Rows to add.
    pub added: Vec<Row>,
    /// Rows to replace, with the status each had.
    pub updated: Vec<(Row, String)>,
    /// Rows that are there already.
    pub unchanged: usize,
}

impl Target {
    /// Opens the store in `folder` (or at `existing`), or begins a new one there.
    ///
    /// # Errors
    /// [`ImportError::NotNative`] and others; nothing is written.
    pub fn open(folder: &Path, existing: Option<&Path>) -> Result<Self, Error> {
        let path = existing.map_or_else(|| folder.join("memory.db"), Path::to_owned);
        let sqlite = |source| ImportError::Sqlite {
            path: path.clone(),
            source,
        };
        if path.exists() {
            let connection = Connection::open(&path).map_err(sqlite)?;
            connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(sqlite)?;
            check(&path, &connection)?;
            return Ok(Self {
                path,
                connection,
                building: None,
            });
        }
        let io = |source| Error::Io {
            action: "create",
            path: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(io)?;
        let building = tempfile::Builder::new()
            .prefix(".memory-")
            .suffix(".db")
            .tempfile_in(folder)
            .map_err(io)?
            .into_temp_path();
        let connection = Connection::open(&building).map_err(sqlite)?;
        connection.execute_batch(SCHEMA).map_err(sqlite)?;
        Ok(Self {
            path,
            connection,
            building: Some(building),
        })
    }

    /// The database's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the store is made by this import.
    pub const fn is_new(&self) -> bool {
        self.building.is_some()
    }

    /// Compares rows with what is there.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn plan(&self, rows: Vec<(usize, Row)>, update: bool, refused: &mut Vec<Refusal>) -> Result<Plan, ImportError> {
        let sqlite = |source| ImportError::Sqlite {
            path: self.path.clone(),
            source,
        };
        let mut plan = Plan::default();
        let sql = format!("SELECT {} FROM memories WHERE id = ?1", COLUMNS.join(", "));
        let mut statement = self.connection.prepare(&sql).map_err(sqlite)?;
        for (number, row) in rows {
            let stored = statement
                .query_row([&row.id], |stored| {
                    (0..COLUMNS.len())
                        .map(|column| stored.get::<_, rusqlite::types::Value>(column))
                        .collect::<Result<Vec<_>, _>>()
                })
                .optional()
                .map_err(sqlite)?;
            let Some(stored) = stored else {
                plan.added.push(row);
                continue;
            };
            let wanted = values(&row);
            // An undated line got the time of its first import; and what a curator decided since stays, unless the import
            // is to replace it.
            let differs = COLUMNS
                .iter()
                .zip(stored.iter().zip(&wanted))
                .any(|(column, (stored, wanted))| match *column {
                    "created_at" if !row.dated => false,
                    "status" | "reviewed_at" | "reviewed_by" | "superseded_by" | "updated_at" if !update => false,
                    _ => stored != wanted,
                });
            if !differs {
                plan.unchanged += 1;
            } else if update {
                let status = match stored.get(12) {
                    Some(rusqlite::types::Value::Text(status)) => status.clone(),
                    _ => String::new(),
                };
                plan.updated.push((row, status));
            } else if row.named {
                refused.push(Refusal {
                    line: number,
                    reason: format!("`id` is `{}`, which the store has with other content; --update replaces it", row.id),
                });
            } else {
                plan.unchanged += 1;
            }
        }
        Ok(plan)
    }

    /// Writes the plan in one transaction; a new store then takes its place.
    ///
    /// # Errors
    /// What SQLite or the file system said; nothing is changed then.
    pub fn commit(self, plan: &Plan, now: jiff::Timestamp) -> Result<(), Error> {
        let Self {
            path,
            mut connection,
            building,
        } = self;
        write(&mut connection, plan, now).map_err(|source| ImportError::Sqlite {
            path: path.clone(),
            source,
        })?;
        drop(connection);
        if let Some(building) = building {
            building.persist_noclobber(&path).map_err(|error| Error::Io {
                action: "create",
                path: path.clone(),
                source: error.error,
            })?;
        }
        Ok(())
    }
}

fn write(connection: &mut Connection, plan: &Plan, now: jiff::Timestamp) -> rusqlite::Result<()> {
    let has_log = recognise(&tables(connection)?).is_some_and(|layout| layout.log.is_some());
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let marks: Vec<String> = (1..=COLUMNS.len()).map(|number| format!("?{number}")).collect();
        let mut insert = transaction.prepare(&format!(
            "INSERT INTO memories ({}) VALUES ({})",
            COLUMNS.join(", "),
            marks.join(", ")
        ))?;
        let sets: Vec<String> = COLUMNS
            .iter()
            .zip(&marks)
            .skip(1)
            .map(|(column, mark)| format!("{column} = {mark}"))
            .collect();
        let mut replace = transaction.prepare(&format!("UPDATE memories SET {} WHERE id = ?1", sets.join(", ")))?;
        let mut log = has_log
            .then(|| {
                transaction.prepare(
                    "INSERT INTO curation_log (memory_id, action, previous_status, new_status, reason, actor, created_at) VALUES (?1, 'import', ?2, ?3, NULL, 'ack-memory import', ?4)",
                )
            })
            .transpose()?;
        let now = time::show(now);
        let steps = plan
            .added
            .iter()
            .map(|row| (row, None))
            .chain(plan.updated.iter().map(|(row, status)| (row, Some(status))));
        for (row, previous) in steps {
            let statement = if previous.is_some() { &mut replace } else { &mut insert };
            statement.execute(rusqlite::params_from_iter(values(row)))?;
            if let Some(log) = &mut log {
                log.execute(params![row.id, previous, row.status.as_str(), now])?;
            }
        }
    }
    transaction.commit()
}

fn values(row: &Row) -> Vec<rusqlite::types::Value> {
    use rusqlite::types::Value;
    let line = &row.line;
    let text = |value: &Option<String>| value.clone().map_or(Value::Null, Value::Text);
    let list = |value: &[String]| Value::Text(serde_json::to_string(value).unwrap_or_else(|_| "[]".to_owned()));
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

fn check(path: &Path, connection: &Connection) -> Result<(), Error> {
    let sqlite = |source| ImportError::Sqlite {
        path: path.to_owned(),
        source,
    };
    let tables = tables(connection).map_err(sqlite)?;
    let profile = recognise(&tables).map(|layout| layout.profile);
    if let Some(other) = profile.filter(|profile| *profile != Profile::Ack) {
        return Err(ImportError::NotNative {
            path: path.to_owned(),
            profile: other.as_str(),
        }
        .into());
    }
    let Some(memories) = tables.iter().find(|table| table.name == "memories") else {
        return Err(ImportError::NotNative {
            path: path.to_owned(),
            profile: "foreign",
        }
        .into());
    };
    for column in COLUMNS {
        if memories.column(&[column]).is_none() {
            return Err(ImportError::MissingColumn {
                path: path.to_owned(),
                column,
            }
            .into());
        }
    }
    Ok(())
}
