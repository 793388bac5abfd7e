//! The terms and the vectors of an index's documents.

use super::DocId;
use crate::dictionary::Dictionary;
use crate::postings::{Posting, Postings, pack_posting};
use crate::semantic::{QuantizedVector, Vectors};

/// Documents are added in ascending order.
#[derive(Debug, Default)]
pub struct Contents {
    pub(super) terms: Dictionary,
    postings: Vec<Postings>,
    pub(crate) vectors: Vectors,
}

impl Contents {
    /// Reserves room for the vectors of `additional` more documents.
    pub fn reserve(&mut self, additional: usize, dimension: usize) {
        self.vectors.reserve(additional, dimension);
    }

    pub fn reserve_postings(&mut self, term: u32, additional: usize) {
        if let Some(postings) = self.postings.get_mut(term as usize) {
            postings.reserve_exact(additional);
        }
    }

    /// The number of a term; a new one if the index does not have it.
    pub fn intern_term(&mut self, key: &str) -> u32 {
        let term = self.terms.intern(key);
        if self.postings.len() <= term as usize {
            self.postings.resize_with(self.terms.len(), Postings::default);
        }
        term
    }

    /// Adds a document. Terms are numbers with their weighted frequencies in half units.
    pub fn add(
        &mut self,
        doc: DocId,
        vector: Option<&QuantizedVector>,
        terms: impl Iterator<Item = (u32, u32)>,
    ) {
        for (term, half_units) in terms {
            if let Some(postings) = self.postings.get_mut(term as usize) {
                postings.push(pack_posting(doc, half_units));
            }
        }
        self.vectors.push(vector);
    }

    pub(super) fn posting_list(&self, key: &str) -> &[Posting] {
        let postings = self.terms.find(key).and_then(|term| self.postings.get(term as usize));
        postings.map_or(&[], |postings| postings.as_slice())
    }

    pub(super) fn bytes(&self) -> usize {
        let postings = self.postings.iter();
        let postings =
            postings.map(|postings| size_of::<Postings>() + size_of_val(postings.as_slice()));
        postings.sum::<usize>() + self.terms.bytes() + self.vectors.bytes()
    }

    pub(super) fn shrink(&mut self) {
        self.postings.iter_mut().for_each(Postings::shrink_to_fit);
        self.postings.shrink_to_fit();
        self.terms.shrink();
        self.vectors.shrink();
    }
}
