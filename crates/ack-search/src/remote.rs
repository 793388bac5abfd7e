//! The documents of a scope that are not in memory.
//!
//! A large scope keeps the terms and vectors of its first documents in a vector table. The code
//! that searches that table implements [`RemoteDocs`], so this crate does not depend on the table's
//! library.

use std::error::Error;
use std::fmt;

use ack_api::MatchTags;
use ack_api::memory::StatusFilter;

use super::postings::DocId;
use super::query::WeightedTerm;
use super::semantic::QuantizedVector;
use super::shapes::ShapePattern;

/// The terms and vectors of documents that are not in memory.
pub trait RemoteDocs: fmt::Debug + Send + Sync {
    /// The terms of these documents whose shape matches a pattern.
    fn terms_like(&self, pattern: ShapePattern) -> Box<dyn Iterator<Item = &str> + '_>;

    /// How many memories that the filter allows contain a term.
    fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize;

    /// How many bytes of memory it takes.
    fn bytes(&self) -> usize;

    /// Finds the documents that may be among the best.
    ///
    /// # Errors
    /// If the table can no longer be searched.
    fn search(&self, query: &RemoteQuery<'_>) -> Result<RemoteHits, RemoteError>;

    /// Reads the vectors of documents and their frequencies of the given terms.
    ///
    /// # Errors
    /// If the table can no longer be read.
    fn fetch(&self, docs: &[DocId], terms: &[WeightedTerm]) -> Result<Vec<RemoteDoc>, RemoteError>;
}

/// Why documents that are not in memory cannot be searched.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RemoteError(pub Box<dyn Error + Send + Sync>);

/// The published version of a vector table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Rows of the published version.
    pub rows: u64,
    pub version: u64,
    pub encoder: String,
    /// Whether searches use the table itself; otherwise all of it is held in memory.
    pub searched: bool,
    pub built_at: Option<jiff::Timestamp>,
}

/// A search of the remote documents.
pub struct RemoteQuery<'a> {
    pub terms: &'a [WeightedTerm],
    /// Those terms that are rare identifiers, see [`Bm25Weights::required_identifiers`].
    ///
    /// [`Bm25Weights::required_identifiers`]: crate::bm25::Bm25Weights::required_identifiers
    pub required_identifiers: &'a [String],
    pub vector: Option<&'a QuantizedVector>,
    /// The estimated share of the remote documents that are eligible, from 0 to 1. 0 makes the
    /// table apply `filter` itself.
    pub eligible_share: f32,
    /// The filters that the table can evaluate.
    pub filter: PushdownFilter<'a>,
    /// Which statuses may be returned.
    pub status: StatusFilter,
    /// Multiplies how many documents the table's indexes are asked for.
    pub widening: usize,
    /// Tells whether a document may be a candidate.
    pub eligibility: &'a dyn Fn(DocId) -> Eligibility,
}

/// The filters that a database can evaluate, in the spellings of one scope. Every memory that
/// passes all filters passes these; the others have to be evaluated afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushdownFilter<'a> {
    pub project: Option<ProjectSpellings<'a>>,
    /// Spellings of the types.
    pub kinds: Option<Vec<&'a str>>,
    pub tags: Vec<Vec<&'a str>>,
    /// How tags combine.
    pub match_tags: MatchTags,
    /// Session name or id.
    pub session: Option<&'a str>,
    /// First instant, in milliseconds since 1970.
    pub since: Option<i64>,
    /// End of the time range (exclusive), in milliseconds since 1970.
    pub until: Option<i64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectSpellings<'a> {
    pub names: Vec<&'a str>,
    /// Whether memories without a project belong to it.
    pub unnamed: bool,
}

/// Whether a matching document is a candidate and, if not, why.
pub enum Eligibility {
    /// It may be returned.
    Eligible,
    /// The status filter hides it.
    HiddenByStatus,
    /// A newer memory replaces it.
    Superseded,
    /// It does not exist for this request: it is dead, or another filter excludes it.
    Excluded,
}

/// The result of a [`RemoteQuery`].
pub struct RemoteHits {
    /// The documents, in ascending order and without duplicates.
    pub docs: Vec<DocId>,
    /// Whether these are all documents with a term of the query, and no vector was given.
    pub complete: bool,
    /// Whether a wider query would find no other document.
    pub exhausted: bool,
}

/// The terms and the vector of one remote document.
pub struct RemoteDoc {
    pub doc: DocId,
    /// The query's terms that it contains: position in the query and weighted frequency.
    pub frequencies: Vec<(usize, f32)>,
    pub vector: Option<QuantizedVector>,
}
