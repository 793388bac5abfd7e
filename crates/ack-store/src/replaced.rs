//! The memories that a newer one replaces, by the newer one.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use ack_api::memory::{Memory, Status, StatusFilter, is_superseded};

use crate::decisions::Decisions;
use crate::layout::Field;
use crate::record::{self, MemoryTable, StoredRow};
use crate::snapshot::Successions;
use crate::{Snapshot, StoreError};

#[derive(Debug)]
pub(crate) struct Standing {
    pub id: String,
    pub status: Status,
    pub newer: Option<Box<str>>,
}

impl Standing {
    pub fn of(row: &StoredRow<'_>) -> Result<Self, StoreError> {
        let id = row.id()?;
        Ok(Self { status: row.joined.status, newer: row.successor(&id)?, id })
    }

    pub fn of_memory(memory: &Memory) -> Self {
        let newer = memory.superseded_by.as_deref();
        let newer = newer.filter(|newer| !newer.is_empty() && *newer != memory.id);
        Self { id: memory.id.clone(), status: memory.status, newer: newer.map(Box::from) }
    }

    /// Whether a newer memory replaces it, whatever a filter allows.
    pub fn is_replaced<'a>(&self, find: impl Fn(&str) -> Option<&'a Self>) -> bool {
        self.status != Status::Rejected && self.is_replaced_within(StatusFilter::All, find)
    }

    /// Whether a memory that the filter allows replaces it, see [`is_superseded`].
    pub fn is_replaced_within<'a>(
        &self,
        filter: StatusFilter,
        find: impl Fn(&str) -> Option<&'a Self>,
    ) -> bool {
        let succession = |of: &'a Self| (of.status, of.newer.as_deref());
        let own = (self.status, self.newer.as_deref());
        is_superseded(&self.id, own, filter, |id| find(id).map(succession))
    }
}

impl Snapshot<'_> {
    /// The memories that name one of `newer` as their successor, by a decision or in the store, in
    /// the order of their ids. Of several rows with an id, only the one that owns it counts.
    pub fn replaced_by(&self, newer: &HashSet<&str>) -> Result<Vec<Memory>, StoreError> {
        let stored = self.known_or(|known| &mut known.successions, || self.successions())?;
        let mut older = BTreeSet::new();
        for newer in newer {
            older.extend(self.decisions.replaced_by(newer).iter().cloned());
            older.extend(stored.get(*newer).into_iter().flatten().cloned());
        }
        let mut found = Vec::new();
        for id in &older {
            let memory = self.by_id(id)?;
            found.extend(memory.filter(|memory| {
                Standing::of_memory(memory).newer.is_some_and(|id| newer.contains(&*id))
            }));
        }
        Ok(found)
    }

    fn successions(&self) -> Result<Arc<Successions>, StoreError> {
        let mut found = Successions::default();
        for table in self.tables().map(MemoryTable::quick) {
            let Some(column) = table.source.column(Field::SupersededBy) else { continue };
            let named = format!(" WHERE {column} <> ''");
            let sql = table.query(&[Field::SupersededBy], &named);
            table.find(self.connection, &sql, [], |row| {
                found.entry(row.stored_successor()?).or_default().push(row.id()?);
                Ok(None::<()>)
            })?;
        }
        Ok(Arc::new(found))
    }

    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for source in &self.layout.sources {
            ids.extend(self.read_rows(&source.query_fields(&[], ""), [], record::id)?);
        }
        Ok(ids)
    }

    /// This state of the store, read with other decisions.
    #[must_use]
    pub fn with_decisions(&self, decisions: Decisions) -> Snapshot<'_> {
        Snapshot {
            store: self.store,
            connection: self.connection,
            layout: Arc::clone(&self.layout),
            file_state: self.file_state.clone(),
            opening: self.opening,
            decisions: Arc::new(decisions),
            known: None,
            against_approved: self.against_approved.clone(),
            second_connection: Default::default(),
        }
    }
}
