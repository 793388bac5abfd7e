//! What a person types to name memories: ids, tags, projects. One scan of a few short columns, for
//! shell completion.

use rusqlite::Connection;

use super::decisions::StatusRule;
use super::layout::{Field, MemorySource};
use super::rows_by_id::RowsById;
use super::values::{self, ListKind};
use super::{Snapshot, record};
use crate::StoreError;
use ack_api::memory::Status;
use ack_api::source::{Claim, RowKey};
use ack_api::text;

/// The columns that are read.
const COLUMNS: [Field; 5] = [
    Field::Project,
    Field::ProjectAlias,
    Field::Title,
    Field::Concepts,
    Field::Status,
];
/// The longest title, in bytes: it is shown next to an id, on one line.
const MAX_TITLE_CHARS: usize = 80;

/// The names by which a memory is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// Its title, on one line; empty if the row has none.
    pub title: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its project; empty if the store names none.
    pub project: String,
}

impl Snapshot<'_> {
    /// The labels of all memories with an id, in stored order. Of several with the same id, only
    /// the one with the strongest [`Claim`] is returned.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn labels(&self) -> Result<Vec<Label>, StoreError> {
        let mut labels = RowsById::default();
        let rule = self.rule();
        for (number, source) in self.sources() {
            let read = self.scan_in_parallel(source, |connection, clauses| {
                rows(connection, clauses, (number, source), rule)
            })?;
            for (key, label) in read {
                let claim = Claim::new(label.status, key);
                labels.add(label.id.clone(), claim, || Ok::<_, StoreError>(label))?;
            }
        }
        Ok(labels.into_rows().collect())
    }
}

/// Reads the rows that `clauses` select: SQL that follows the name of the table.
fn rows(
    connection: &Connection,
    clauses: &str,
    (number, source): (u8, &MemorySource),
    rule: StatusRule<'_>,
) -> rusqlite::Result<Vec<(RowKey, Label)>> {
    let mut statement = connection.prepare(&rule.query(source, &COLUMNS, clauses))?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let joined = record::joined(row, source, rule)?;
        let key = record::key(row, number)?;
        if joined
            .decision
            .is_some_and(|decision| decision.edit.is_some())
        {
            let memory = record::memory(row, source, rule)?;
            let label = Label {
                id: memory.id,
                status: memory.status,
                title: text::line(&memory.title, MAX_TITLE_CHARS),
                tags: memory.concepts,
                project: memory.project.or(memory.project_alias).unwrap_or_default(),
            };
            found.push((key, label));
            continue;
        }
        let value = |field: Field| -> rusqlite::Result<String> {
            let (value, _) = values::text_value(row.get_ref(field.position())?);
            Ok(value.unwrap_or_default())
        };
        let project = text::line(&value(Field::Project)?, 200);
        let label = Label {
            id: record::id(row)?,
            status: joined.status,
            title: text::line(&value(Field::Title)?, MAX_TITLE_CHARS),
            tags: values::parse_list(&value(Field::Concepts)?, ListKind::Concepts).0,
            project: if project.is_empty() {
                text::line(&value(Field::ProjectAlias)?, 200)
            } else {
                project
            },
        };
        found.push((key, label));
    }
    Ok(found)
}
