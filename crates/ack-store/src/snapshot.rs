//! One state of a store.

use std::cell::RefCell;
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::{Connection, Params, Row};
use rustc_hash::FxHashSet;

use crate::decisions::{Decisions, StatusRule};
use crate::known::Known;
use crate::layout::Layout;
use crate::open::{FileState, Opening};
use crate::record::{MemoryTable, StoredRow};
use crate::{Store, StoreError};

pub struct Snapshot<'a> {
    pub(crate) store: &'a Store,
    pub(crate) connection: &'a Connection,
    pub layout: Arc<Layout>,
    pub file_state: FileState,
    pub opening: Opening,
    pub decisions: Arc<Decisions>,
    /// The memories that contradict one that a person approved, where that holds them back.
    pub(crate) against_approved: FxHashSet<String>,
    /// What was found out about this state; `None` if its decisions are not those of the store.
    pub(crate) known: Option<&'a Mutex<Known>>,
    /// See [`crate::parallel_scan`].
    pub(crate) second_connection: RefCell<Option<Connection>>,
}

impl Snapshot<'_> {
    pub(crate) fn rule(&self) -> StatusRule<'_> {
        StatusRule {
            unreviewed: self.store.unreviewed(),
            decisions: &self.decisions,
            are_notes: self.layout.profile.is_notes(),
            flags: Some(&self.store.flags),
            against_approved: &self.against_approved,
        }
    }

    /// Whether rows without a status are approved, unless they are flagged.
    pub(crate) fn holds_back(&self) -> bool {
        self.tables().any(|table| table.holds_back())
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = MemoryTable<'_>> {
        let numbered = (0u8..).zip(&self.layout.sources);
        numbered.map(|(number, source)| MemoryTable { number, source, rule: self.rule() })
    }

    /// Visits every row, whole and in stored order.
    pub(crate) fn visit_all(
        &self,
        mut visit: impl FnMut(&StoredRow<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for table in self.tables() {
            let sql = table.source.query(&table.source.stored_order());
            table.find(self.connection, &sql, [], |row| {
                visit(row)?;
                Ok(None::<()>)
            })?;
        }
        Ok(())
    }

    /// What `read` makes of the whole rows that `clauses` select.
    pub(crate) fn whole_rows<T>(
        &self,
        table: MemoryTable<'_>,
        clauses: &str,
        parameters: impl Params,
        mut read: impl FnMut(&StoredRow<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        let sql = table.source.query(clauses);
        table.find(self.connection, &sql, parameters, |row| {
            found.push(read(row)?);
            Ok(None::<()>)
        })?;
        Ok(found)
    }

    pub(crate) fn read_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(parameters, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The first thing that `find` finds in the rows of a query. The rows after it are not read.
    pub(crate) fn find_in_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        mut find: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            if let Some(found) = find(row)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}
