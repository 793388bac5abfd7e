//! A store's records as an index sees them. This separates searching from reading: neither
//! side knows how the other works.

use crate::memory::{Memory, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The table's position among the store's tables, from 0.
    pub source: u8,
    /// The row number in that table; 0 if the table has none.
    pub rowid: i64,
}

/// A row's claim to its id. If several rows of a store share an id, the row with the strongest
/// claim owns it, and the others are ignored everywhere. A row that agents see beats one that waits
/// for review, which beats a rejected one. Among equals, the first in storage order wins. All code
/// that reads rows uses this, so that every entry point shows the same row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    rank: u8,
    key: RowKey,
}

impl Claim {
    pub const fn new(status: Status, key: RowKey) -> Self {
        let rank = match status {
            Status::Approved | Status::Promoted => 0,
            Status::Staging => 1,
            Status::Rejected => 2,
        };
        Self { rank, key }
    }

    pub fn beats(self, other: Self) -> bool {
        (self.rank, self.key) < (other.rank, other.key)
    }
}

#[derive(Debug)]
pub struct StoredMemory {
    pub key: RowKey,
    pub fingerprint: u64,
    pub memory: Memory,
}

impl StoredMemory {
    pub const fn claim(&self) -> Claim {
        Claim::new(self.memory.status, self.key)
    }
}

/// One entry in a list of all records.
#[derive(Debug)]
pub enum ListedRow {
    Rejected(String),
    /// The record's row, the hash of all its values, and its status.
    Present(RowKey, u64, Status),
}

/// One record during a scan. Its text is decoded on demand.
pub struct ScannedRow<'a, E> {
    pub key: RowKey,
    pub status: Status,
    pub fingerprint: u64,
    pub id: &'a dyn Fn() -> Result<String, E>,
    pub memory: &'a dyn Fn() -> Result<Memory, E>,
}

impl<E> ScannedRow<'_, E> {
    pub fn read(&self) -> Result<StoredMemory, E> {
        Ok(StoredMemory { key: self.key, fingerprint: self.fingerprint, memory: (self.memory)()? })
    }
}

pub type Visit<'a, E> = &'a mut dyn FnMut(ScannedRow<'_, E>) -> Result<(), E>;

/// Every record of one consistent state of a store.
pub trait Records {
    type Error;
    fn has_status(&self) -> bool;
    /// Visits every record in stored order, including rejected ones.
    fn scan(&self, visit: Visit<'_, Self::Error>) -> Result<(), Self::Error>;
    /// Lists every record in stored order, with what is needed to tell whether it changed.
    fn list(&self) -> Result<Vec<ListedRow>, Self::Error>;
    /// Reads the given records, whatever their status. Missing records are left out.
    fn rows(&self, wanted: &[RowKey]) -> Result<Vec<StoredMemory>, Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_row_beats_a_waiting_one_and_then_the_first_stored_wins() {
        let claim = |status, source, rowid| Claim::new(status, RowKey { source, rowid });
        let ordered = [
            claim(Status::Promoted, 0, 7),
            claim(Status::Approved, 0, 9),
            claim(Status::Approved, 1, 1),
            claim(Status::Staging, 0, 1),
            claim(Status::Staging, 0, 2),
            claim(Status::Rejected, 0, 0),
        ];
        for (place, one) in ordered.iter().enumerate() {
            for (other_place, other) in ordered.iter().enumerate() {
                assert_eq!(one.beats(*other), place < other_place, "{one:?} {other:?}");
            }
        }
    }
}
