//! Going through a large table by two threads.
//!
//! That takes two connections that see the same state. Where nobody writes, any two do, which is verified when all is read.
//! Beside a writer with a log each sees the last commit before its transaction began, so it has to be shown that none came in
//! between. `PRAGMA data_version` tells a connection whether others have committed since it asked last
//! (<https://www.sqlite.org/pragma.html#pragma_data_version>): the second connection asks before the first one begins, and again
//! when it begins itself. The same answer twice means that all three saw one state.

use rusqlite::Connection;
use rusqlite::limits::Limit;

use super::Snapshot;
use super::layout::Source;
use super::open::{self, Opening};
use crate::StoreError;

/// From so many row numbers on a table is read by two threads.
const SHARED: i64 = 2_000;

/// A connection that watches for commits.
pub(super) struct Watching {
    connection: Connection,
    version: i64,
}

impl Watching {
    /// Watches from now on.
    pub(super) fn begin(connection: Connection) -> Option<Self> {
        let version = version(&connection).ok()?;
        Some(Self { connection, version })
    }

    /// Begins to read, if nothing was committed meanwhile.
    pub(super) fn same(self) -> Option<Connection> {
        self.connection.execute_batch("BEGIN").ok()?;
        let version = version(&self.connection).ok()?;
        (version == self.version).then_some(self.connection)
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// What one half of a table is read by.
type Half<T> = (Connection, rusqlite::Result<Vec<T>>);

impl Snapshot<'_> {
    /// What `pass` makes of the rows of a source, in the order in which they were stored. It is given a connection and the
    /// clauses of SQL that go behind the table's name.
    ///
    /// Where there is a second connection, it takes the second half of a large table meanwhile.
    ///
    /// # Errors
    /// What SQLite said.
    pub(super) fn in_halves<T: Send>(
        &self,
        source: &Source,
        pass: impl Fn(&Connection, &str) -> rusqlite::Result<Vec<T>> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let fail = |error| StoreError::sqlite(self.path, error);
        let Some(row) = &source.row_number else {
            return pass(self.connection, "").map_err(fail);
        };
        let order = format!(" ORDER BY {row}");
        let Some((second, middle)) = self.second(source, row).map_err(fail)? else {
            return pass(self.connection, &order).map_err(fail);
        };
        let (before, behind) = (
            format!(" WHERE {row} <= {middle}{order}"),
            format!(" WHERE {row} > {middle}{order}"),
        );
        let pass = &pass;
        std::thread::scope(|scope| {
            let behind = scope.spawn(move || -> Half<T> {
                let made = pass(&second, &behind);
                (second, made)
            });
            let made = pass(self.connection, &before);
            let (second, behind) = behind.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.second.replace(Some(second));
            let mut made = made.map_err(fail)?;
            made.extend(behind.map_err(fail)?);
            Ok(made)
        })
    }

    /// A second connection and the row number that parts a source, where that is worth it.
    fn second(&self, source: &Source, row: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
        if self.opening != Opening::AtRest && self.second.borrow().is_none() {
            return Ok(None);
        }
        let ends = format!("SELECT min({row}), max({row}) FROM {}", source.table);
        let ends = self.connection.query_row(&ends, [], |ends| Ok((ends.get(0)?, ends.get(1)?)))?;
        let (Some(first), Some(last)): (Option<i64>, Option<i64>) = ends else {
            return Ok(None);
        };
        if last.saturating_sub(first) < SHARED {
            return Ok(None);
        }
        let second = self.second.take().or_else(|| {
            let path = self.path.canonicalize().unwrap_or_else(|_| self.path.to_owned());
            let second = open::connect(&path, Opening::AtRest).ok()?;
            let most = self.connection.limit(Limit::SQLITE_LIMIT_LENGTH).ok()?;
            second.set_limit(Limit::SQLITE_LIMIT_LENGTH, most).ok()?;
            Some(second)
        });
        Ok(second.map(|second| (second, first.midpoint(last))))
    }
}
