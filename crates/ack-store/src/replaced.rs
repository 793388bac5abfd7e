//! The memories that a newer one replaces, by the newer one.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use ack_api::memory::{Memory, Status, Successor};

use super::decisions::Decisions;
use super::layout::{Field, MemorySource};
use super::{Snapshot, record};
use crate::StoreError;

/// What a store knows about a memory that another one names as its successor: its status, and the
/// memory that replaces it in turn.
pub(super) fn successor_of(known: Option<(Status, Option<&str>)>) -> Successor<'_> {
    match known {
        None => Successor::Missing,
        Some((Status::Rejected, _)) => Successor::Rejected,
        Some((status, next)) => Successor::Present { status, next },
    }
}

impl Snapshot<'_> {
    /// The memories that name one of `newer` as their successor, by a decision or in the store, in
    /// the order of their ids. Of several rows with an id, only the one that owns it counts.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn replaced_by(&self, newer: &HashSet<&str>) -> Result<Vec<Memory>, StoreError> {
        let mut older = BTreeSet::new();
        for newer in newer {
            older.extend(self.decisions.replaced_by(newer).iter().cloned());
        }
        for (_, source) in self.sources() {
            self.stored_successors(source, newer, &mut older)?;
        }
        let mut found = Vec::new();
        for id in &older {
            let names_one = |memory: &Memory| {
                let successor = memory.superseded_by.as_deref();
                successor.is_some_and(|id| id != memory.id && newer.contains(id))
            };
            found.extend(self.by_id(id)?.filter(names_one));
        }
        Ok(found)
    }

    /// Adds the ids of rows that name one of `newer`.
    fn stored_successors(
        &self,
        source: &MemorySource,
        newer: &HashSet<&str>,
        older: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let Some(column) = source.column(Field::SupersededBy) else {
            return Ok(());
        };
        let columns = source.select_only(&[Field::SupersededBy]);
        let table = &source.table;
        let sql = format!("SELECT {columns} FROM {table} WHERE {column} <> ''");
        let ids = self.read_rows(&sql, [], |row| {
            let is_wanted = newer.contains(record::stored_successor(row)?.as_str());
            is_wanted.then(|| record::id(row)).transpose()
        })?;
        older.extend(ids.into_iter().flatten());
        Ok(())
    }

    /// The ids of all rows, in no particular order.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for (_, source) in self.sources() {
            let sql = format!("SELECT {} FROM {}", source.select_only(&[]), source.table);
            ids.extend(self.read_rows(&sql, [], record::id)?);
        }
        Ok(ids)
    }

    /// This state of the store, read with other decisions.
    #[must_use]
    pub fn with_decisions(&self, decisions: Decisions) -> Snapshot<'_> {
        Snapshot {
            connection: self.connection,
            layout: Arc::clone(&self.layout),
            file_state: self.file_state.clone(),
            opening: self.opening,
            unreviewed: self.unreviewed,
            decisions: Arc::new(decisions),
            overviews: self.overviews,
            overviews_shown: self.overviews_shown.clone(),
            flags: self.flags,
            against_approved: self.against_approved.clone(),
            path: self.path,
            scanned: self.scanned.clone(),
            second_connection: Default::default(),
        }
    }
}
