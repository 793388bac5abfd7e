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
use crate::layout::MemorySource;
use crate::replaced::successor_of;
use crate::values::{self, ListKind};
use crate::{Snapshot, StoreError};
use ack_api::memory::{self, MAX_SUCCESSORS, Memory, Status, StatusFilter};
use ack_api::source::Claim;

/// How many rows one statement reads.
const ROWS_PER_STATEMENT: usize = 500;

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
                rule: self.quick_rule(),
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
            found.extend(self.read_rows(&sql, [id], |row| row.get::<_, i64>(0))?);
        }
        Ok(found)
    }

    /// Whether a row is the chosen one for its id, and no memory that the filter allows replaces
    /// it.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn is_in_force(&self, outline: &Outline, filter: StatusFilter) -> Result<bool, StoreError> {
        let mut known: HashMap<String, (Claim, Memory)> = HashMap::new();
        let mut next = Some(outline.id.clone());
        while let Some(id) = next.take()
            && known.len() <= MAX_SUCCESSORS
            && !known.contains_key(&id)
            && let Some(found) = self.claimed_by_id(&id)?
        {
            if found.1.status != Status::Rejected {
                next = newer_than(&found.1).map(str::to_owned);
            }
            known.insert(id, found);
        }
        let own = known.get(&outline.id);
        if own.is_some_and(|(claim, _)| *claim != Claim::new(outline.status, outline.key)) {
            return Ok(false);
        }
        let first = own.and_then(|(_, memory)| newer_than(memory));
        let find = |id: &str| {
            let known = known.get(id);
            successor_of(known.map(|(_, memory)| (memory.status, newer_than(memory))))
        };
        Ok(!memory::is_superseded(&outline.id, first, filter, find))
    }
}

/// The memory that replaces this one.
fn newer_than(memory: &Memory) -> Option<&str> {
    let successor = memory.superseded_by.as_deref();
    successor.filter(|successor| !successor.is_empty() && *successor != memory.id)
}
