//! What goes into a table's operations and comes out of them: the same in a build with vector tables and in one without.

use std::path::PathBuf;

use serde::Serialize;

use crate::query::filter::Condition;
use crate::query::inverted::DocId;
use crate::query::semantic::Code;
use crate::query::view::Verdict;
use ack_api::memory::StatusFilter;

/// What a table says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows of the published version.
    pub rows: u64,
    /// The version.
    pub version: u64,
    /// The encoder of its vectors.
    pub encoder: String,
    /// Whether it is searched itself; otherwise everything in it is held in memory.
    pub searched: bool,
    /// When it was published.
    pub built_at: Option<jiff::Timestamp>,
}

/// How a build is to go.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only say what would be done.
    pub dry_run: bool,
    /// Take nothing from the table that is there.
    pub rebuild: bool,
    /// Folder of the transformer that embeds memories; none: the static encoder alone.
    pub model: Option<PathBuf>,
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
    /// The table was made anew, and why.
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

/// What a table is asked.
pub struct Ask<'a> {
    /// The terms of the query, with their weights.
    pub keys: &'a [(String, f32)],
    /// Those that are identifiers with hardly a holder.
    pub anchors: &'a [String],
    /// The vector of the query.
    pub code: Option<&'a Code>,
    /// The share of the table's memories that may be shown, 0 to 1, about.
    pub share: f32,
    /// What the filters ask for, as far as the table can decide it.
    pub condition: Condition<'a>,
    /// Which statuses may be shown.
    pub status: StatusFilter,
    /// How many times more memories are asked for than are wanted.
    pub widened: usize,
    /// What may become of a memory.
    pub verdict: &'a dyn Fn(DocId) -> Verdict,
}

/// A memory that was found.
pub struct Row {
    /// Which one.
    pub doc: DocId,
    /// Which of the keys it holds, by their places, and their weighted frequencies.
    pub frequencies: Vec<(usize, f32)>,
    /// Its vector.
    pub code: Option<Code>,
}

/// What was found.
pub struct Answer {
    /// The memories, each once, in the order of their numbers.
    pub docs: Vec<DocId>,
    /// These are all that hold a term of the query, and no vector was asked for.
    pub complete: bool,
    /// However many more are asked for, no other one is found.
    pub exhausted: bool,
}
