//! One state of a store, and what is known about it.

use std::cell::RefCell;
use std::sync::Arc;

use ack_api::Counts;
use ack_api::queue::Flow;
use ack_api::source::RowKey;
use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use rusqlite::{Connection, Params, Row};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decisions::{Decisions, StatusRule};
use crate::layout::Layout;
use crate::open::{FileState, Opening};
use crate::record::{MemoryTable, StoredRow};
use crate::{Store, StoreError};

/// What takes a scan of the store to find out, kept until the store changes.
#[derive(Debug, Default)]
pub(crate) struct Known {
    state: Option<FileState>,
    pub overviews_shown: Option<bool>,
    pub counts: Option<Counts>,
    pub counts_by_id: Option<Counts>,
    /// Memories in staging with the day until which each is snoozed, which may be past.
    pub snoozed: Option<Arc<[(String, Date)]>>,
    /// With the start of the period that it is about.
    pub flow: Option<(Timestamp, Flow)>,
    pub successions: Option<Arc<Successions>>,
    pub altered_ids: Option<Arc<AlteredIds>>,
}

/// The rows whose id is stored in another form than the one that is shown, by the latter.
pub(crate) type AlteredIds = FxHashMap<String, Vec<RowKey>>;

/// The memories that name each memory as their successor in the store, by the successor's id.
pub(crate) type Successions = FxHashMap<String, Vec<String>>;

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

    pub(crate) fn with_known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        let nothing = Mutex::default();
        let mut known = self.known.unwrap_or(&nothing).lock();
        if known.state.as_ref() != Some(&self.file_state) {
            *known = Known { state: Some(self.file_state.clone()), ..Known::default() };
        }
        look(&mut known)
    }

    /// What `slot` knows, or else what `read` finds.
    pub(crate) fn known_or<T: Clone>(
        &self,
        slot: fn(&mut Known) -> &mut Option<T>,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(value) = self.with_known(|known| slot(known).clone()) {
            return Ok(value);
        }
        let value = read()?;
        self.with_known(|known| *slot(known) = Some(value.clone()));
        Ok(value)
    }
}
