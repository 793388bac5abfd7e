//! Chooses one row for each id: of several with the same id, the row with the strongest [`Claim`].

use std::collections::hash_map::Entry;

use ack_api::source::Claim;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::StoreError;

/// The chosen rows, in stored order of the first row of each id.
#[derive(Debug)]
pub(super) struct RowsById<T> {
    rows: Vec<(Claim, T)>,
    positions: HashMap<String, usize>,
    duplicate_ids: HashSet<String>,
}

impl<T> Default for RowsById<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), positions: HashMap::default(), duplicate_ids: HashSet::default() }
    }
}

impl<T> RowsById<T> {
    /// Reads and adds a row if it has the strongest claim so far. Rows without an id are ignored.
    pub(super) fn add(
        &mut self,
        id: String,
        claim: Claim,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<(), StoreError> {
        if id.is_empty() {
            return Ok(());
        }
        match self.positions.entry(id) {
            Entry::Vacant(vacant) => {
                self.rows.push((claim, read()?));
                vacant.insert(self.rows.len() - 1);
            }
            Entry::Occupied(known) => {
                self.duplicate_ids.insert(known.key().clone());
                if let Some(row) = self.rows.get_mut(*known.get())
                    && claim.beats(row.0)
                {
                    *row = (claim, read()?);
                }
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, id: &str) -> Option<&T> {
        let row = self.rows.get(*self.positions.get(id)?)?;
        Some(&row.1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.rows.iter().map(|(_, row)| row)
    }

    /// The chosen rows, and the ids that several rows share.
    pub(super) fn into_parts(self) -> (impl Iterator<Item = T>, HashSet<String>) {
        (self.rows.into_iter().map(|(_, row)| row), self.duplicate_ids)
    }

    pub(super) fn into_rows(self) -> impl Iterator<Item = T> {
        self.into_parts().0
    }
}
