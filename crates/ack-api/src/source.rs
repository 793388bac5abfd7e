//! The records of a store as an index sees them: where each one is, whether it changed, and what it says. The trait is
//! the seam between searching and reading, so that neither knows how the other works.

use crate::memory::{Memory, Status};

/// Where a record is in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// Which table of the store, counted from 0.
    pub source: u8,
    /// The row number in that table; 0 where the table has none.
    pub rowid: i64,
}

/// A memory with its place in the store.
#[derive(Debug)]
pub struct StoredMemory {
    /// Where it is.
    pub key: RowKey,
    /// Hash of all its values.
    pub fingerprint: u64,
    /// The memory.
    pub memory: Memory,
}

/// One entry in a list of all records.
#[derive(Debug)]
pub enum ListedRow {
    /// A rejected record; its id.
    Rejected(String),
    /// Where the record is, the hash of all its values, and its status.
    There(RowKey, u64, Status),
}

/// One record during a scan. It is decoded only as far as it is asked to.
pub trait Record {
    /// Why the store cannot be read.
    type Error;
    /// Where it is.
    fn key(&self) -> RowKey;
    /// Its status now.
    fn status(&self) -> Status;
    /// Hash of all its values.
    fn fingerprint(&self) -> u64;
    /// Its public id.
    ///
    /// # Errors
    /// Why the store cannot be read.
    fn id(&self) -> Result<String, Self::Error>;
    /// The whole record.
    ///
    /// # Errors
    /// Why the store cannot be read.
    fn memory(&self) -> Result<Memory, Self::Error>;
}

/// Every record of one consistent state of a store.
pub trait Records {
    /// Why the store cannot be read.
    type Error;
    /// Whether the store says which memories were reviewed.
    fn has_status(&self) -> bool;
    /// Visits every record, rejected ones too, in the order in which they were stored.
    ///
    /// # Errors
    /// Why the store cannot be read, or what `visit` returned.
    fn scan(&self, visit: &mut dyn FnMut(&dyn Record<Error = Self::Error>) -> Result<(), Self::Error>) -> Result<(), Self::Error>;
    /// What shows whether a record changed, for every record, in the order in which they were stored.
    ///
    /// # Errors
    /// Why the store cannot be read.
    fn list(&self) -> Result<Vec<ListedRow>, Self::Error>;
    /// Reads the records at the given places, whatever their status. Those that are gone are not in the result.
    ///
    /// # Errors
    /// Why the store cannot be read.
    fn rows(&self, wanted: &[RowKey]) -> Result<Vec<StoredMemory>, Self::Error>;
}
