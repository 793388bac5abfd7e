//! The part of a scope that is not in memory. A large scope keeps the terms and vectors of its first documents in a vector
//! table; what searches that table implements [`RemoteDocs`]. This crate does not know which library that is.

use std::error::Error;
use std::fmt;

use ack_api::memory::StatusFilter;

use crate::filter::Condition;
use crate::inverted::DocId;
use crate::semantic::Code;
use crate::view::Verdict;

/// What holds the terms and vectors of documents that are not in memory.
pub trait RemoteDocs: fmt::Debug + Send + Sync {
    /// Every term of these documents.
    fn terms(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// How many memories that the filter allows hold a term.
    fn holders(&self, key: &str, filter: StatusFilter) -> usize;

    /// How many bytes of memory it takes.
    fn bytes(&self) -> usize;

    /// The documents that are worth a look.
    ///
    /// # Errors
    /// Why they cannot be searched any more.
    fn search(&self, ask: &Ask<'_>) -> Result<Answer, RemoteError>;

    /// Reads the terms and vectors of documents.
    ///
    /// # Errors
    /// Why they cannot be read any more.
    fn fetch(&self, wanted: &[DocId], keys: &[(String, f32)]) -> Result<Vec<Row>, RemoteError>;
}

/// Why documents that are not in memory cannot be searched.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RemoteError(pub Box<dyn Error + Send + Sync>);

/// What a vector table says of itself.
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
