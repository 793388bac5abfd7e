//! Scans a large table on two threads, with two connections that see the same state.
//!
//! If nothing writes, any two do, which is verified after the read. If a writer uses a log, no
//! commit may happen between the beginnings of their transactions: `PRAGMA data_version` tells the
//! second connection whether there was one
//! (<https://www.sqlite.org/pragma.html#pragma_data_version>).

use rusqlite::Connection;
use rusqlite::limits::Limit;

use crate::layout::{Field, MemorySource};
use crate::open::{self, Opening};
use crate::record::StoredRow;
use crate::{Snapshot, StoreError};

/// A table with a wider range of row numbers than this is split.
const MIN_PARALLEL_ROWS: i64 = 2_000;

pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

impl Snapshot<'_> {
    /// What a reader makes of the rows of all tables of memories, in stored order. Rows are read
    /// with `fields` by the quick rule, and whole without, or if there are decisions. Each thread
    /// makes a reader of its own.
    pub(super) fn scan_in_parallel<T, R>(
        &self,
        fields: Option<&[Field]>,
        make_reader: impl Fn() -> R + Sync,
    ) -> Result<Vec<T>, StoreError>
    where
        T: Send,
        R: FnMut(&StoredRow<'_>) -> Result<Option<T>, StoreError>,
    {
        let mut found = Vec::new();
        for table in self.tables() {
            let table = if fields.is_some() { table.quick() } else { table };
            let rows = self.split_scan(table.source, |connection, clauses| {
                let mut found = Vec::new();
                let mut read = make_reader();
                let sql = match fields {
                    Some(fields) => table.query(fields, clauses),
                    None => table.source.query(clauses),
                };
                table.find(connection, &sql, [], |row| {
                    found.extend(read(row)?);
                    Ok(None::<()>)
                })?;
                Ok(found)
            })?;
            // Most stores have one table, and its rows may be many megabytes.
            if found.is_empty() {
                found = rows;
            } else {
                found.extend(rows);
            }
        }
        Ok(found)
    }

    /// Runs `scan` on a source and returns the rows in stored order. `scan` gets a connection and
    /// the SQL clauses that follow the table's name. If there is a second connection, it reads the
    /// second half of a large table at the same time.
    pub(super) fn split_scan<T: Send>(
        &self,
        source: &MemorySource,
        scan: impl Fn(&Connection, &str) -> Result<Vec<T>, StoreError> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let row = source.row_number;
        let order = source.stored_order();
        let Some((second, midpoint)) = self.split_in_half(source)? else {
            return scan(self.connection, &order);
        };
        let lower = format!(" WHERE {row} <= {midpoint}{order}");
        let upper = format!(" WHERE {row} > {midpoint}{order}");
        let scan = &scan;
        std::thread::scope(|scope| {
            let upper = scope.spawn(move || {
                let rows = scan(&second, &upper);
                (second, rows)
            });
            let rows = scan(self.connection, &lower);
            let (second, upper) =
                upper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.second_connection.replace(Some(second));
            let mut rows = rows?;
            rows.extend(upper?);
            Ok(rows)
        })
    }

    /// The second connection and the row number to split a source at, if it is large enough.
    fn split_in_half(&self, source: &MemorySource) -> rusqlite::Result<Option<(Connection, i64)>> {
        if self.opening != Opening::AtRest && self.second_connection.borrow().is_none() {
            return Ok(None);
        }
        // SQLite finds one bound alone without reading the rows between.
        let (row, table) = (source.row_number, &source.table);
        let bounds =
            format!("SELECT (SELECT min({row}) FROM {table}), (SELECT max({row}) FROM {table})");
        let bounds = self
            .connection
            .query_row(&bounds, [], |bounds| Ok((bounds.get(0)?, bounds.get(1)?)))?;
        let (Some(first), Some(last)): (Option<i64>, Option<i64>) = bounds else { return Ok(None) };
        if last.saturating_sub(first) < MIN_PARALLEL_ROWS {
            return Ok(None);
        }
        let second = self.second_connection.take().or_else(|| {
            let path = self.path().canonicalize();
            let path = path.unwrap_or_else(|_| self.path().to_owned());
            let second = open::connect(&path, Opening::AtRest).ok()?;
            let max_length = self.connection.limit(Limit::SQLITE_LIMIT_LENGTH).ok()?;
            second.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_length).ok()?;
            Some(second)
        });
        Ok(second.map(|second| (second, first.midpoint(last))))
    }
}
