//! How a build is to go, and what it did.

use std::path::PathBuf;

use ack_search::encoder::Embedder;
use ack_store::Store;
use serde::Serialize;

/// The table to build.
pub struct Target<'a> {
    /// The scope's name.
    pub scope: &'a str,
    /// The folder of the table.
    pub folder: PathBuf,
    /// The store it is derived from.
    pub store: &'a Store,
    /// With more rows than this the table is searched itself and gets indexes.
    pub resident: usize,
}

/// How a build is to go.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Take nothing from the table that is there.
    pub rebuild: bool,
    /// A network that embeds memories beside the static encoder.
    pub embedder: Option<&'a dyn Embedder>,
}

/// What a build did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The scope.
    pub scope: String,
    /// Rows that were added or replaced.
    pub added: usize,
    /// Rows that were taken out: they changed, or are gone from the store, or were rejected.
    pub removed: usize,
    /// Rows that were there already.
    pub kept: usize,
    /// Why the table was rebuilt, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anew: Option<String>,
    /// Version of the table that readers see now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A step of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// So many rows are to be added.
    Begin(usize),
    /// So many more were.
    Added(usize),
    /// The rows are there; indexes are made.
    Indexing,
}
