//! Adding documents to an index. What is known of them and what they say lie apart, so that two threads can add them.

use rustc_hash::FxHashMap as HashMap;

use super::docs::Docs;
use super::{DocId, Entry, Index, Mark, mark};
use crate::dictionary::Dictionary;
use crate::names::Names;
use crate::numbers::{Numbers, hash};
use crate::postings::Postings;
use crate::semantic::{Code, Vectors};
use ack_api::memory::Status;
use ack_api::source::RowKey;

/// What is known of the documents of an index.
pub struct Columns<'a> {
    docs: &'a mut Docs,
    names: &'a mut Names,
    by_id: &'a mut Numbers,
    by_row: &'a mut Numbers,
    marks: &'a mut Vec<Mark>,
    lengths: &'a mut Vec<u32>,
    sizes: &'a mut HashMap<Status, (u64, u64)>,
}

/// What the documents of an index say.
pub struct Contents<'a> {
    terms: &'a mut Dictionary,
    postings: &'a mut Vec<Postings>,
    vectors: &'a mut Vectors,
}

impl Index {
    /// Its two parts. Whoever adds a document to one of them adds it to the other.
    pub const fn parts(&mut self) -> (Columns<'_>, Contents<'_>) {
        let columns = Columns {
            docs: &mut self.docs,
            names: &mut self.names,
            by_id: &mut self.by_id,
            by_row: &mut self.by_row,
            marks: &mut self.marks,
            lengths: &mut self.lengths,
            sizes: &mut self.sizes,
        };
        let contents = Contents {
            terms: &mut self.terms,
            postings: &mut self.postings,
            vectors: &mut self.vectors,
        };
        (columns, contents)
    }

    /// Adds a memory with its vector and its terms as this index numbers them.
    pub(super) fn add(&mut self, entry: &Entry<'_>, code: Option<&Code>, terms: impl Iterator<Item = (u32, u32)>) {
        let (mut columns, mut contents) = self.parts();
        if let Some(number) = columns.add(entry) {
            contents.add(number, code, terms);
        }
    }
}

impl Columns<'_> {
    /// Makes room for so many more documents.
    pub fn expect(&mut self, documents: usize) {
        self.lengths.reserve(documents);
        self.marks.reserve(documents);
    }

    /// Adds what is known of a memory, and tells its number.
    pub(super) fn add(&mut self, entry: &Entry<'_>) -> Option<DocId> {
        // 24 bits are 16 million documents; beyond that a scope is not searched in memory.
        if self.docs.count() >= 1 << 24 {
            return None;
        }
        let number = self.docs.push(entry, self.names)?;
        let size = self.sizes.entry(entry.status).or_default();
        *size = (size.0 + 1, size.1 + u64::from(entry.length));
        self.marks.push(mark(entry.status, self.docs.successor(number).is_some()));
        self.lengths.push(entry.length);
        let docs = &*self.docs;
        self.by_id.insert(hash(entry.id), number, |other| Some(hash(docs.id(other))));
        if entry.key.rowid != 0 {
            let row = |other: DocId| docs.get(other).map(|doc| hash(&doc.key));
            self.by_row.insert(hash(&entry.key), number, row);
        }
        Some(number)
    }

    /// Adds what a row of the vector table tells of a memory. One whose id is known already is left to the store to decide, and
    /// has no number.
    pub fn add_loaded(&mut self, entry: &Entry<'_>) -> Option<DocId> {
        let fresh = entry.key.rowid != 0 && !self.has_id(entry.id) && !self.has_row(entry.key);
        fresh.then(|| self.add(entry))?
    }

    fn has_id(&self, id: &str) -> bool {
        self.by_id.find(hash(id), |number| self.docs.id(number) == id).is_some()
    }

    fn has_row(&self, key: RowKey) -> bool {
        let is = |number| self.docs.get(number).is_some_and(|doc| doc.key == key);
        self.by_row.find(hash(&key), is).is_some()
    }
}

impl Contents<'_> {
    /// Makes room for so many more vectors of a dimension.
    pub fn expect(&mut self, documents: usize, dimension: usize) {
        self.vectors.reserve(documents, dimension);
    }

    /// Makes room for so many more documents that hold a term.
    pub fn expect_postings(&mut self, term: u32, documents: usize) {
        if let Some(list) = self.postings.get_mut(term as usize) {
            list.reserve(documents);
        }
    }

    /// The number of a term, a new one where need be.
    pub fn term(&mut self, key: &str) -> u32 {
        let term = self.terms.number(key);
        if self.postings.len() <= term as usize {
            self.postings.resize_with(self.terms.len(), Postings::default);
        }
        term
    }

    /// Adds what a memory says, in the order of the numbers.
    pub fn add(&mut self, number: DocId, code: Option<&Code>, terms: impl Iterator<Item = (u32, u32)>) {
        for (term, weight) in terms {
            if let Some(list) = self.postings.get_mut(term as usize) {
                list.push(number << 8 | weight.min(255));
            }
        }
        self.vectors.push(code);
    }
}
