//! Adds documents to an index.
//!
//! The two halves of an index are written separately, so two threads can load them at once: a
//! [`ColumnWriter`] takes the columns of each document, a [`ContentWriter`] its terms and its
//! vector. Both must get the same documents.

use rustc_hash::FxHashMap as HashMap;

use super::docs::DocTable;
use super::{DocEntry, DocFlags, DocId, Index, Size, doc_flags};
use crate::dictionary::Dictionary;
use crate::id_table::{IdTable, hash};
use crate::interner::Interner;
use crate::postings::{Postings, pack_posting};
use crate::semantic::{QuantizedVector, Vectors};
use ack_api::memory::Status;
use ack_api::source::RowKey;

/// The largest number of documents: postings have 24 bits for a document.
const MAX_DOCS: usize = 1 << 24;

/// Writes the columns of an index.
pub struct ColumnWriter<'a> {
    docs: &'a mut DocTable,
    names: &'a mut Interner,
    by_id: &'a mut IdTable,
    by_row: &'a mut IdTable,
    flags: &'a mut Vec<DocFlags>,
    lengths: &'a mut Vec<u32>,
    sizes: &'a mut HashMap<Status, Size>,
}

/// Writes the terms and vectors of an index.
pub struct ContentWriter<'a> {
    terms: &'a mut Dictionary,
    postings: &'a mut Vec<Postings>,
    vectors: &'a mut Vectors,
}

impl Index {
    /// The writers of both halves. A document that is added to one must be added to the other.
    pub const fn writers(&mut self) -> (ColumnWriter<'_>, ContentWriter<'_>) {
        let columns = ColumnWriter {
            docs: &mut self.docs,
            names: &mut self.names,
            by_id: &mut self.by_id,
            by_row: &mut self.by_row,
            flags: &mut self.flags,
            lengths: &mut self.lengths,
            sizes: &mut self.sizes,
        };
        let contents = ContentWriter {
            terms: &mut self.terms,
            postings: &mut self.postings,
            vectors: &mut self.vectors,
        };
        (columns, contents)
    }

    /// Adds a memory with its vector and its terms: each as this index's number and the weighted
    /// frequency in half units.
    pub(super) fn add(
        &mut self,
        entry: &DocEntry<'_>,
        vector: Option<&QuantizedVector>,
        terms: impl Iterator<Item = (u32, u32)>,
    ) {
        let (mut columns, mut contents) = self.writers();
        if let Some(doc) = columns.add(entry) {
            contents.add(doc, vector, terms);
        }
    }
}

impl ColumnWriter<'_> {
    /// Reserves room for `additional` more documents.
    pub fn reserve(&mut self, additional: usize) {
        self.lengths.reserve(additional);
        self.flags.reserve(additional);
    }

    /// Adds the columns of a memory and returns its document, or `None` if the index is full.
    pub(super) fn add(&mut self, entry: &DocEntry<'_>) -> Option<DocId> {
        if self.docs.count() >= MAX_DOCS {
            return None;
        }
        let doc = self.docs.push(entry, self.names)?;
        let size = self.sizes.entry(entry.status).or_default();
        size.documents += 1;
        size.tokens += u64::from(entry.length);
        self.flags.push(doc_flags(entry.status, self.docs.successor(doc).is_some()));
        self.lengths.push(entry.length);
        let docs = &*self.docs;
        self.by_id.insert(hash(entry.id), doc, |other| Some(hash(docs.id(other))));
        if entry.key.rowid != 0 {
            let row_hash = |other: DocId| docs.get(other).map(|doc| hash(&doc.key));
            self.by_row.insert(hash(&entry.key), doc, row_hash);
        }
        Some(doc)
    }

    /// Adds the columns of a row of the vector table. If the index already has its id or key, the
    /// row gets no document, and the store decides.
    pub fn add_loaded(&mut self, entry: &DocEntry<'_>) -> Option<DocId> {
        let is_new = entry.key.rowid != 0 && !self.has_id(entry.id) && !self.has_row(entry.key);
        is_new.then(|| self.add(entry))?
    }

    fn has_id(&self, id: &str) -> bool {
        self.by_id.find(hash(id), |doc| self.docs.id(doc) == id).is_some()
    }

    fn has_row(&self, key: RowKey) -> bool {
        let is_row = |doc| self.docs.get(doc).is_some_and(|doc| doc.key == key);
        self.by_row.find(hash(&key), is_row).is_some()
    }
}

impl ContentWriter<'_> {
    /// Reserves room for the vectors of `additional` more documents.
    pub fn reserve(&mut self, additional: usize, dimension: usize) {
        self.vectors.reserve(additional, dimension);
    }

    /// Reserves room for `additional` more documents that contain a term.
    pub fn reserve_postings(&mut self, term: u32, additional: usize) {
        if let Some(postings) = self.postings.get_mut(term as usize) {
            postings.reserve(additional);
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

    /// Adds the vector and the terms of a document: each term's number and its weighted frequency
    /// in half units. Documents must be added in ascending order.
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
}
