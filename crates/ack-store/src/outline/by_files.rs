//! Finds memories by their files, for a process that asks once. For most rows, only the lists of
//! files are read; whether a found row is still in force is checked when its record is read
//! ([`Snapshot::memory_in_force`]).

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::Connection;

use super::{
    FindWords, Outline, OutlineQuery, OutlineScan, ProjectNamePool, bytes_of, in_stored_files,
};
use crate::layout::MemorySource;
use crate::record::MemoryTable;
use crate::replaced::Standing;
use crate::{Snapshot, StoreError};
use ack_api::memory::{MAX_SUCCESSORS, Memory, StatusFilter};
use ack_api::source::{Claim, Records, RowKey};

const ROWS_PER_STATEMENT: usize = 500;

impl Snapshot<'_> {
    /// Newer memories may replace some of them.
    pub fn outlines_by_files(
        &self,
        filter: StatusFilter,
        find_words: &dyn FindWords,
    ) -> Result<Vec<Outline>, StoreError> {
        let no_sessions = HashSet::new();
        let scan = OutlineScan::new(OutlineQuery {
            filter,
            find_words,
            sessions: &no_sessions,
            now: Timestamp::UNIX_EPOCH,
        });
        let mut outlines = Vec::new();
        let mut names = ProjectNamePool::default();
        for table in self.tables().map(MemoryTable::quick) {
            let mut rows = self.rows_naming_files(table.source, find_words)?;
            rows.extend(self.rows_with_edited_files(table.source)?);
            rows.sort_unstable();
            rows.dedup();
            let number = table.source.row_number;
            for rows in rows.chunks(ROWS_PER_STATEMENT) {
                let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
                let rows = rows.join(", ");
                let clauses = format!(" WHERE {number} IN ({rows}) ORDER BY {number}");
                let sql = table.query(&super::COLUMNS, &clauses);
                table.find(self.connection, &sql, [], |row| {
                    let found = scan.outline(row, &mut names)?;
                    let outline = found.map(|found| found.outline);
                    outlines.extend(outline.filter(|it| filter.allows(it.status)));
                    Ok(None::<()>)
                })?;
            }
        }
        Ok(outlines)
    }

    fn rows_naming_files(
        &self,
        source: &MemorySource,
        find_words: &dyn FindWords,
    ) -> Result<Vec<i64>, StoreError> {
        let Some(columns) = source.columns_of_files() else { return Ok(Vec::new()) };
        self.split_scan(source, |connection: &Connection, clauses: &str| {
            let mut statement = connection.prepare(&source.select(&columns, clauses))?;
            let last = statement.column_count();
            let mut rows = statement.query([])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                for column in 1..last {
                    if in_stored_files(find_words, bytes_of(row.get_ref(column)?)) != 0 {
                        found.push(row.get(0)?);
                    }
                }
            }
            Ok(found)
        })
    }

    fn rows_with_edited_files(&self, source: &MemorySource) -> Result<Vec<i64>, StoreError> {
        let mut found = Vec::new();
        for decision in self.decisions.newest() {
            let edited_files = decision.edit.as_ref().and_then(|edit| edit.files.as_ref());
            if edited_files.is_some()
                && let Some((condition, id)) = source.id.condition(&decision.id)
            {
                let sql = source.query_fields(&[], &format!(" WHERE {condition}"));
                found.extend(self.read_rows(&sql, [id], |row| row.get::<_, i64>(0))?);
            }
        }
        Ok(found)
    }

    /// The memory of a row, if the filter allows it, the row is the chosen one for its id, and no
    /// memory that the filter allows replaces it.
    pub fn memory_in_force(
        &self,
        key: RowKey,
        filter: StatusFilter,
    ) -> Result<Option<Memory>, StoreError> {
        let stored = self.rows(&[key])?.pop();
        let Some(memory) = stored.map(|it| it.memory).filter(|it| filter.allows(it.status)) else {
            return Ok(None);
        };
        let mut known: HashMap<String, (Claim, Standing)> = HashMap::new();
        let mut next = Some(memory.id.clone());
        while let Some(id) = next.take()
            && known.len() <= MAX_SUCCESSORS
            && !known.contains_key(&id)
            && let Some((claim, claiming)) = self.claimed_by_id(&id)?
        {
            let standing = Standing::of_memory(&claiming);
            next = standing.newer.as_deref().map(str::to_owned);
            known.insert(id, (claim, standing));
        }
        let find = |id: &str| known.get(id).map(|(_, standing)| standing);
        let is_in_force = known.get(&memory.id).is_none_or(|(claim, own)| {
            *claim == Claim::new(memory.status, key) && !own.is_replaced_within(filter, find)
        });
        Ok(Some(memory).filter(|_| is_in_force))
    }
}
