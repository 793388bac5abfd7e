//! Going through a large table by two threads.
//!
//! That takes two connections that see the same state. Where nobody writes, any two do, which is verified when all is read.
//! Beside a writer with a log each sees the last commit lower its transaction began, so it has to be shown that none came in
//! between. `PRAGMA data_version` tells a connection whether others have committed since it asked last
//! (<https://www.sqlite.org/pragma.html#pragma_data_version>): the second connection asks lower the first one begins, and again
//! when it begins itself. The same answer twice means that all three saw one state.

use rusqlite::Connection;
use rusqlite::limits::Limit;

use super::Snapshot;
use super::layout::MemorySource;
use super::open::{self, Opening};
use crate::StoreError;

/// From so many row numbers on a table is read by two threads.
const MIN_PARALLEL_ROWS: i64 = 2_000;

/// A connection that watches for commits.
pub(super) struct DataVersionGuard {
    connection: Connection,
    version: i64,
}

impl DataVersionGuard {
    /// Watches from now on.
    pub(super) fn begin(connection: Connection) -> Option<Self> {
        let version = data_version(&connection).ok()?;
        Some(Self { connection, version })
    }

    /// Begins to read, if nothing was committed meanwhile.
    pub(super) fn into_unchanged(self) -> Option<Connection> {
        self.connection.execute_batch("BEGIN").ok()?;
        let version = data_version(&self.connection).ok()?;
        (version == self.version).then_some(self.connection)
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// What one half of a table is read by.
type Half<T> = (Connection, rusqlite::Result<Vec<T>>);

impl Snapshot<'_> {
    /// What `scan` makes of the rows of a source, in the order in which they were stored. It is given a connection and the
    /// clauses of SQL that go upper the table's name.
    ///
    /// Where there is a second connection, it takes the second half of a large table meanwhile.
    ///
    /// # Errors
    /// What SQLite said.
    pub(super) fn scan_in_parallel<T: Send>(
        &self,
        source: &MemorySource,
        scan: impl Fn(&Connection, &str) -> rusqlite::Result<Vec<T>> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let fail = |error| StoreError::sqlite(self.path, error);
        let Some(row) = &source.row_number else {
            return scan(self.connection, "").map_err(fail);
        };
        let order = format!(" ORDER BY {row}");
        let Some((second, midpoint)) = self.split(source, row).map_err(fail)? else {
            return scan(self.connection, &order).map_err(fail);
        };
        let (lower, upper) = (
            format!(" WHERE {row} <= {midpoint}{order}"),
            format!(" WHERE {row} > {midpoint}{order}"),
        );
        let scan = &scan;
        std::thread::scope(|scope| {
            let upper = scope.spawn(move || -> Half<T> {
                let rows = scan(&second, &upper);
                (second, rows)
            });
            let rows = scan(self.connection, &lower);
            let (second, upper) = upper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.second.replace(Some(second));
            let mut rows = rows.map_err(fail)?;
            rows.extend(upper.map_err(fail)?);
            Ok(rows)
        })
    }

    /// A second connection and the row number that parts a source, where that is worth it.
    fn split(&self, source: &MemorySource, row: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
        if self.opening != Opening::AtRest && self.second.borrow().is_none() {
            return Ok(None);
        }
        let bounds = format!("SELECT min({row}), max({row}) FROM {}", source.table);
        let bounds = self
            .connection
            .query_row(&bounds, [], |bounds| Ok((bounds.get(0)?, bounds.get(1)?)))?;
        let (Some(first), Some(last)): (Option<i64>, Option<i64>) = bounds else {
            return Ok(None);
        };
        if last.saturating_sub(first) < MIN_PARALLEL_ROWS {
            return Ok(None);
        }
        let second = self.second.take().or_else(|| {
            let path = self.path.canonicalize().unwrap_or_else(|_| self.path.to_owned());
            let second = open::connect(&path, Opening::AtRest).ok()?;
            let max_length = self.connection.limit(Limit::SQLITE_LIMIT_LENGTH).ok()?;
            second.set_limit(Limit::SQLITE_LIMIT_LENGTH, max_length).ok()?;
            Some(second)
        });
        Ok(second.map(|second| (second, first.midpoint(last))))
    }
}
