//! One state of a store.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use ack_api::memory::{Overviews, Unreviewed};
use rusqlite::{Connection, Params, Row};
use rustc_hash::FxHashSet;

use crate::StoreError;
use crate::decisions::{Decisions, StatusRule};
use crate::flags::Flags;
use crate::layout::{Layout, MemorySource};
use crate::open::{FileState, Opening};

/// One state of a store, open for reading.
pub struct Snapshot<'a> {
    pub(crate) connection: &'a Connection,
    /// What the database holds.
    pub layout: Arc<Layout>,
    /// The state of the files before the snapshot began.
    pub file_state: FileState,
    /// How it was opened.
    pub opening: Opening,
    pub(crate) unreviewed: Unreviewed,
    /// People's decisions about its memories.
    pub decisions: Arc<Decisions>,
    pub(crate) flags: &'a Flags,
    /// The memories that contradict one that a person approved, where that holds them back.
    pub(crate) against_approved: FxHashSet<String>,
    pub(crate) overviews: Option<Overviews>,
    /// Whether overviews may be shown, by [`Self::overviews`] or by the store itself. Computed on
    /// first use.
    pub(crate) overviews_shown: Cell<Option<bool>>,
    pub(crate) path: &'a Path,
    /// Whether the whole store was scanned. Such a connection is closed, which frees its memory.
    pub(crate) scanned: Cell<bool>,
    /// If a writer has a log: another connection that sees the same state, see
    /// [`crate::parallel_scan`].
    pub(crate) second_connection: RefCell<Option<Connection>>,
}

impl Snapshot<'_> {
    /// What determines the status of a row.
    pub(crate) fn rule(&self) -> StatusRule<'_> {
        StatusRule {
            unreviewed: self.unreviewed,
            decisions: &self.decisions,
            are_notes: self.layout.profile.is_notes(),
            flags: Some(self.flags),
            against_approved: &self.against_approved,
        }
    }

    /// The same for a scan whose rows are read again before they are shown: a row that is held back
    /// has the status of others.
    pub(crate) fn quick_rule(&self) -> StatusRule<'_> {
        StatusRule {
            flags: None,
            ..self.rule()
        }
    }

    /// Whether rows without a status are approved, unless they are flagged.
    pub(crate) fn holds_back(&self) -> bool {
        let rule = self.rule();
        self.layout
            .sources
            .iter()
            .any(|source| rule.holds_back(source))
    }

    /// The tables of memories with their numbers.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (u8, &MemorySource)> {
        (0u8..).zip(self.layout.sources.iter())
    }

    pub(crate) fn map_sqlite<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::sqlite(self.path, error))
    }

    /// What `read` makes of each row of a query.
    pub(crate) fn read_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(parameters, read)?.collect()
        };
        self.map_sqlite(rows())
    }

    /// Passes each row of a query to `visit`.
    pub(crate) fn visit_rows(
        &self,
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let all = self.find_in_rows(sql, parameters, |row| visit(row).map(|()| None::<()>));
        all.map(drop)
    }

    /// The first thing that `find` finds in the rows of a query. The rows after it are not read.
    pub(crate) fn find_in_rows<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        mut find: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        let first = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                if let Some(found) = find(row)? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        self.map_sqlite(first())
    }
}
