//! Retrieval for ack-memory: text analysis, the in-memory index, BM25, vectors and their fusion.
//!
//! A search passes through these modules in order:
//! - [`analysis`] splits text into terms, the same way for memories and for queries; [`analyzer`]
//!   turns a memory into the terms and the vector that an index stores;
//! - [`inverted`] is the index of one scope, and [`filter`] evaluates a request's filters on it;
//! - [`query`] is the query after analysis, without the [`period`] that it names;
//! - [`view`] is one scope in one search, including what [`remote`] documents it fetched;
//! - [`spelling`] finds what stands for a word that no memory contains, among words of a similar
//!   shape ([`shapes`]);
//! - [`lexical`] scores words by [`bm25`], [`semantic`] scores vectors, and [`retrieve`] fuses
//!   the two;
//! - [`certainty`] tells what answers a query from what is merely nearest to it;
//! - [`ranking`] makes the order total, [`cursor`] resumes it on the next page, and [`wording`]
//!   tells whether one memory contains another one.
//!
//! This crate does no I/O. The caller reads the records of an answer from the store afterwards and
//! checks their status again. See `docs/retrieval.md` for the design and its measurements.

pub mod analysis;
pub mod analyzer;
pub mod bm25;
pub mod certainty;
pub mod cursor;
pub mod dictionary;
pub mod encoder;
pub mod file_pattern;
pub mod filter;
pub mod identifiers;
pub mod interner;
pub mod inverted;
pub mod lexical;
pub mod period;
pub mod postings;
pub mod query;
pub mod ranking;
pub mod remote;
pub mod retrieve;
pub mod semantic;
pub mod shapes;
pub mod spelling;
pub mod view;
pub mod wording;
