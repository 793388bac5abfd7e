//! Finds memories by their files, for a process that asks once and has little time.
//!
//! For most rows, only the lists of files are read. Whether a found row is still in force is
//! checked when its record is read ([`Snapshot::is_in_force`]).

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{FindWords, Outline, OutlineRow, OutlineScan};
use crate::layout::{Field, MemorySource};
use crate::values::{self, ListKind};
use crate::{Snapshot, StoreError, record};
use ack_api::memory::{self, MAX_SUCCESSORS, Status, StatusFilter, Successor};
use ack_api::source::{Claim, RowKey};
use ack_api::text;

/// How many rows one statement reads.
const ROWS_PER_STATEMENT: usize = 500;

/// A memory in a chain of successors.
struct SuccessorRow {
    key: RowKey,
    status: Status,
    successor: Option<String>,
}

impl Snapshot<'_> {
    /// The memories that the filter allows and in whose files `find_words` finds something. A newer
    /// memory may replace some of them.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn outlines_by_files(
        &self,
        filter: StatusFilter,
        find_words: &dyn FindWords,
    ) -> Result<Vec<Outline>, StoreError> {
        if self
            .layout
            .sources
            .iter()
            .any(|source| source.row_number.is_none())
        {
            let all = self.outlines(filter, find_words, Timestamp::UNIX_EPOCH)?;
            return Ok(all.served);
        }
        let mut outlines = Vec::new();
        for (number, source) in self.sources() {
            let scan = OutlineScan {
                number,
                source,
                rule: self.rule(),
                filter,
                find_words,
                today: Date::MIN,
            };
            let mut rows = self.rows_naming_files(source, find_words)?;
            rows.extend(self.rows_with_edited_files(source)?);
            rows.sort_unstable();
            rows.dedup();
            for rows in rows.chunks(ROWS_PER_STATEMENT) {
                let numbers: Vec<String> = rows.iter().map(ToString::to_string).collect();
                let row = source.row_number.unwrap_or_default();
                let clauses = format!(" WHERE {row} IN ({}) ORDER BY {row}", numbers.join(", "));
                let found = self.map_sqlite(scan.rows(self.connection, &clauses))?;
                let found = found.into_iter().map(|OutlineRow { outline, .. }| outline);
                outlines.extend(
                    found.filter(|outline| filter.allows(outline.status) && !outline.id.is_empty()),
                );
            }
        }
        Ok(outlines)
    }

    /// The rows whose stored files match.
    fn rows_naming_files(
        &self,
        source: &MemorySource,
        find_words: &dyn FindWords,
    ) -> Result<Vec<i64>, StoreError> {
        let Some(columns) = source.select_files() else {
            return Ok(Vec::new());
        };
        let names_file = |value: ValueRef<'_>| match value {
            ValueRef::Text(list) | ValueRef::Blob(list) => {
                let entries =
                    || values::parse_list(&String::from_utf8_lossy(list), ListKind::Files).0;
                find_words.in_files(list, &entries) != 0
            }
            _ => false,
        };
        self.scan_in_parallel(source, |connection: &Connection, clauses: &str| {
            let sql = format!("SELECT {columns} FROM {}{clauses}", source.table);
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                if names_file(row.get_ref(1)?) || names_file(row.get_ref(2)?) {
                    found.push(row.get(0)?);
                }
            }
            Ok(found)
        })
    }

    /// The rows whose files a curator changed.
    fn rows_with_edited_files(&self, source: &MemorySource) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        let edited = self.decisions.newest().filter(|decision| {
            let edit = decision.edit.as_ref();
            edit.is_some_and(|edit| edit.files.is_some())
        });
        for decision in edited {
            let Some((condition, id)) = source.id.condition(&decision.id) else {
                continue;
            };
            let row = source.row_number.unwrap_or_default();
            let sql = format!("SELECT {row} FROM {} WHERE {condition}", source.table);
            let mut statement = self.map_sqlite(self.connection.prepare_cached(&sql))?;
            let mut rows = self.map_sqlite(statement.query([id]))?;
            while let Some(row) = self.map_sqlite(rows.next())? {
                found.push(self.map_sqlite(row.get(0))?);
            }
        }
        Ok(found)
    }

    /// Whether a row is the chosen one for its id, and no memory that the filter allows replaces
    /// it.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn is_in_force(&self, outline: &Outline, filter: StatusFilter) -> Result<bool, StoreError> {
        let mut known: HashMap<String, SuccessorRow> = HashMap::new();
        let mut next = Some(outline.id.clone());
        while let Some(id) = next.take()
            && known.len() <= MAX_SUCCESSORS
            && !known.contains_key(&id)
        {
            let Some(found) = self.row_by_id(&id)? else {
                break;
            };
            if found.status != Status::Rejected {
                next.clone_from(&found.successor);
            }
            known.insert(id, found);
        }
        let row = known.get(&outline.id);
        if row.is_some_and(|row| row.key != outline.key) {
            return Ok(false);
        }
        let first = row.and_then(|row| row.successor.as_deref());
        let find = |id: &str| match known.get(id) {
            None => Successor::Missing,
            Some(known) if known.status == Status::Rejected => Successor::Rejected,
            Some(known) => Successor::Present {
                status: known.status,
                next: known.successor.as_deref(),
            },
        };
        Ok(!memory::is_superseded(&outline.id, first, filter, find))
    }

    /// The chosen row for an id.
    fn row_by_id(&self, id: &str) -> Result<Option<SuccessorRow>, StoreError> {
        let mut found: Option<(Claim, SuccessorRow)> = None;
        for (number, source) in self.sources() {
            let Some((condition, parameter)) = source.id.condition(id) else {
                continue;
            };
            let sql = format!(
                "SELECT {} FROM {} WHERE {condition}",
                self.rule()
                    .select_list(source, &[Field::Status, Field::SupersededBy]),
                source.table
            );
            let mut statement = self.map_sqlite(self.connection.prepare_cached(&sql))?;
            let mut rows = self.map_sqlite(statement.query([parameter]))?;
            while let Some(row) = self.map_sqlite(rows.next())? {
                let joined = self.map_sqlite(record::joined(row, source, self.rule()))?;
                let (key, status) = (self.map_sqlite(record::key(row, number))?, joined.status);
                let claim = Claim::new(status, key);
                if found.as_ref().is_some_and(|known| !claim.beats(known.0)) {
                    continue;
                }
                let decided = joined.decision;
                let successor = match decided.and_then(|decision| decision.into.as_deref()) {
                    Some(into) => text::id(into),
                    None => self.map_sqlite(record::successor(row))?,
                };
                let successor = Some(successor).filter(|into| !into.is_empty() && into != id);
                found = Some((
                    claim,
                    SuccessorRow {
                        key,
                        status,
                        successor,
                    },
                ));
            }
        }
        Ok(found.map(|(_, known)| known))
    }
}
