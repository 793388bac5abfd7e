//! Going through a large table by two threads.

use rusqlite::Connection;

use super::Snapshot;
use super::layout::Source;
use super::open::{self, Opening};
use crate::error::StoreError;

/// From so many row numbers on a table is read by two threads.
const SHARED: i64 = 2_000;

impl Snapshot<'_> {
    /// What `pass` makes of the rows of a source, in the order in which they were stored. It is given a connection and the
    /// clauses of SQL that go behind the table's name.
    ///
    /// Where nobody writes, a second connection sees the same state, which is verified when all is read, and takes the second
    /// half of a large table meanwhile. Beside a writer with a log it might see a later one, and one connection takes all.
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
            let behind = scope.spawn(move || pass(&second, &behind));
            let mut made = pass(self.connection, &before).map_err(fail)?;
            match behind.join() {
                Ok(behind) => made.extend(behind.map_err(fail)?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            Ok(made)
        })
    }

    /// A second connection and the row number that parts a source, where that is worth it.
    fn second(&self, source: &Source, row: &str) -> rusqlite::Result<Option<(Connection, i64)>> {
        if self.opening != Opening::AtRest {
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
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.to_owned());
        let second = open::connect(&path, Opening::AtRest).ok();
        Ok(second.map(|second| (second, first.midpoint(last))))
    }
}
