//! A store's records as an index sees them. These traits separate searching from reading: neither
//! side knows how the other works.

use crate::memory::{Memory, Status};

/// Identifies a row of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The table's position among the store's tables, from 0.
    pub source: u8,
    /// The row number in that table; 0 if the table has none.
    pub rowid: i64,
}

/// A memory with its row.
#[derive(Debug)]
pub struct StoredMemory {
    /// Its row.
    pub key: RowKey,
    /// A hash of all its values.
    pub fingerprint: u64,
    /// The memory.
    pub memory: Memory,
}

/// One entry in a list of all records.
#[derive(Debug)]
pub enum ListedRow {
    /// The id of a rejected record.
    Rejected(String),
    /// The record's row, the hash of all its values, and its status.
    There(RowKey, u64, Status),
}

/// One record during a scan. It is decoded on demand.
pub trait Record {
    /// Why the store cannot be read.
    type Error;
    /// Its row.
    fn key(&self) -> RowKey;
    /// Its status now.
    fn status(&self) -> Status;
    /// A hash of all its values.
    fn fingerprint(&self) -> u64;
    /// Its public id.
    ///
    /// # Errors
    /// The store cannot be read.
    fn id(&self) -> Result<String, Self::Error>;
    /// The whole record.
    ///
    /// # Errors
    /// The store cannot be read.
    fn memory(&self) -> Result<Memory, Self::Error>;
}

/// What a scan calls for each record.
pub type Visit<'a, E> = &'a mut dyn FnMut(&dyn Record<Error = E>) -> Result<(), E>;

/// Every record of one consistent state of a store.
pub trait Records {
    /// Why the store cannot be read.
    type Error;
    /// Whether the store records a review status.
    fn has_status(&self) -> bool;
    /// Visits every record in stored order, including rejected ones.
    ///
    /// # Errors
    /// The store cannot be read, or `visit` failed.
    fn scan(&self, visit: Visit<'_, Self::Error>) -> Result<(), Self::Error>;
    /// Lists every record in stored order, with what shows whether it changed.
    ///
    /// # Errors
    /// The store cannot be read.
    fn list(&self) -> Result<Vec<ListedRow>, Self::Error>;
    /// Reads the given records, whatever their status. Missing records are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    fn rows(&self, wanted: &[RowKey]) -> Result<Vec<StoredMemory>, Self::Error>;
}
