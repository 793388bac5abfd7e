//! The documents of a scope that are not in memory.
//!
//! A large scope keeps the terms and vectors of its first documents in a vector table. What searches
//! it implements [`RemoteDocs`], so this crate does not depend on the table's library.

use std::error::Error;
use std::fmt;

use ack_api::memory::StatusFilter;

use super::filter::Filters;
use super::postings::DocId;
use super::query::WeightedTerm;
use super::semantic::QuantizedVector;
use super::shapes::ShapePattern;

/// The terms and vectors of documents that are not in memory.
pub trait RemoteDocs: fmt::Debug + Send + Sync {
    /// The terms of these documents whose shape matches a pattern.
    fn terms_like(&self, pattern: ShapePattern) -> Box<dyn Iterator<Item = &str> + '_>;

    fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize;

    fn bytes(&self) -> usize;

    /// Finds the documents that may be among the best.
    fn search(&self, query: &RemoteQuery<'_>) -> Result<RemoteHits, RemoteError>;

    /// Reads the vectors of documents and their frequencies of the given terms.
    fn fetch(&self, docs: &[DocId], terms: &[WeightedTerm]) -> Result<Vec<RemoteDoc>, RemoteError>;
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RemoteError(pub Box<dyn Error + Send + Sync>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    pub rows: u64,
    pub version: u64,
    pub encoder: String,
    /// Whether searches use the table itself; otherwise all of it is held in memory.
    pub searched: bool,
    pub built_at: Option<jiff::Timestamp>,
}

pub struct RemoteQuery<'a> {
    pub terms: &'a [WeightedTerm],
    /// See [`crate::bm25::Bm25Weights::required_identifiers`].
    pub required_identifiers: &'a [String],
    pub vector: Option<&'a QuantizedVector>,
    /// The estimated share of the remote documents that are eligible, from 0 to 1. 0 makes the
    /// table apply `filter` itself.
    pub eligible_share: f32,
    /// The filters that the table can evaluate.
    pub filter: PushdownFilter<'a>,
    pub status: StatusFilter,
    /// Multiplies how many documents the table's indexes are asked for.
    pub widening: usize,
    pub eligibility: &'a dyn Fn(DocId) -> Eligibility,
}

/// The filters that a database can evaluate, in the spellings of one scope. Every memory that
/// passes all filters passes these; the others have to be evaluated afterwards.
#[derive(Debug, Clone)]
pub struct PushdownFilter<'a> {
    pub project: Option<ProjectSpellings<'a>>,
    pub kinds: Option<Vec<&'a str>>,
    pub tags: Vec<Vec<&'a str>>,
    /// The session, the time range, and how tags combine.
    pub filters: &'a Filters,
}

#[derive(Debug, Clone)]
pub struct ProjectSpellings<'a> {
    pub names: Vec<&'a str>,
    /// Whether memories without a project belong to it.
    pub unnamed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eligibility {
    Eligible,
    /// The status filter hides it.
    HiddenByStatus,
    /// A newer memory replaces it.
    Superseded,
    /// It does not exist for this request: it is dead, or another filter excludes it.
    Excluded,
}

pub struct RemoteHits {
    /// The documents, in ascending order and without duplicates.
    pub docs: Vec<DocId>,
    /// Whether these are all documents with a term of the query, and no vector was given.
    pub complete: bool,
    /// Whether a wider query would find no other document.
    pub exhausted: bool,
}

pub struct RemoteDoc {
    pub doc: DocId,
    /// The query's terms that it contains: position in the query and weighted frequency.
    pub frequencies: Vec<(usize, f32)>,
    pub vector: Option<QuantizedVector>,
}

impl RemoteDoc {
    pub(super) fn frequency(&self, term: usize) -> Option<f32> {
        let mut frequencies = self.frequencies.iter();
        frequencies.find(|(number, _)| *number == term).map(|(_, frequency)| *frequency)
    }
}
