//! The options of a build, and what it did.

use std::path::PathBuf;

use crate::extent::Extent;
use crate::indexes::will_search_on_disk;
use ack_contextual::Contextual;
use ack_store::Store;
use serde::Serialize;

pub struct Target<'a> {
    pub scope: &'a str,
    pub folder: PathBuf,
    /// The store it is derived from.
    pub store: &'a Store,
    pub extent: Extent,
    /// If the table has more rows than this, it is searched on disk and gets indexes.
    pub resident: usize,
}

impl Target<'_> {
    /// Whether readers search it on disk, or soon will, if it has this many rows.
    pub(super) fn is_searched(&self, rows: usize) -> bool {
        will_search_on_disk(rows, self.resident)
    }
}

#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Only report what would be done.
    pub dry_run: bool,
    pub rebuild: bool,
    pub encoder: EncoderChoice,
}

/// Up to this many memories, a new table has contextual vectors: that takes about 13 s.
pub const MAX_READ_IN_CONTEXT: usize = 5_000;

/// What makes a memory's vector.
#[derive(Clone, Copy, Default)]
pub enum EncoderChoice {
    /// The one with which the table was begun. For a new table, the small transformer if there are
    /// at most [`MAX_READ_IN_CONTEXT`] memories; otherwise the static encoder.
    #[default]
    Usual,
    Static,
    /// The static encoder and the small transformer.
    Contextual(&'static Contextual),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub scope: String,
    /// Whether the small transformer reads its memories.
    pub contextual: bool,
    /// Rows that were added or replaced.
    pub added: usize,
    /// Rows that were removed: they changed, left the store, or were rejected.
    pub removed: usize,
    pub kept: usize,
    /// Why the table was rebuilt, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild_reason: Option<String>,
    /// The version of the table that readers see now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Begin(usize),
    Added(usize),
    /// All rows are added; indexes are being created.
    Indexing,
}
