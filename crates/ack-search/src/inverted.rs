//! The in-memory index of one scope: an inverted index over analyzed text, with the columns that
//! filters and ordering need.
//!
//! The index is derived from the store and synchronized with it row by row ([`sync`]). It orders
//! and filters; the caller reads what an answer shows from the store. Rejected rows are not
//! indexed: the index keeps only their ids, to say that they were rejected.
//!
//! A large scope keeps the terms and vectors of its first documents in a vector table. The index
//! has only their columns; [`RemoteDocs`] searches the rest. All other documents are *resident*.

mod builder;
pub mod contents;
pub mod docs;
pub mod sync;

use rustc_hash::FxHashSet as HashSet;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use self::contents::Contents;
use self::docs::{Doc, DocTable, INDEXED_STATUSES, Size, allowed_flags};
use super::interner::{Interner, NameId};
use super::postings::{DocId, unpack_posting};
use super::semantic::{QuantizedVector, Vectors};
use super::shapes::ShapePattern;
use crate::remote::RemoteDocs;
use ack_api::memory::{self, Status, StatusFilter};
use ack_api::source::RowKey;

/// Estimated bytes of a short string on the heap, with its entry in a map.
const STRING_BYTES: usize = 80;

#[derive(Debug, Default)]
pub struct Index {
    pub(crate) docs: DocTable,
    /// The vectors in it begin with that of [`Index::first_resident`].
    pub(crate) contents: Contents,
    rejected: HashSet<Box<str>>,
    /// The first documents, if their terms and vectors are not in memory.
    remote: Option<RemotePart>,
    /// How many documents came from the vector table; the others were read from the store.
    loaded: usize,
    /// Whether the small transformer contributed to most vectors of the table.
    pub is_contextual: bool,
    /// The live documents of each of the [`INDEXED_STATUSES`], and the estimated bytes of memory,
    /// when the index was last built or synchronized.
    sizes: [Size; 3],
    bytes: usize,
    /// Rows whose id another row claims more strongly ([`ack_api::source::Claim`]).
    pub duplicate_ids: usize,
    /// Rows without an id, which cannot be served.
    pub without_id: usize,
    /// Whether the store records which memories were reviewed.
    pub has_status: bool,
}

/// The first documents of an index, whose terms and vectors are in a vector table.
#[derive(Debug)]
struct RemotePart {
    docs: Box<dyn RemoteDocs>,
    count: DocId,
}

impl Index {
    /// Both halves of the index, so that two threads can load them at once. A document that is
    /// added to one must be added to the other.
    pub const fn halves(&mut self) -> (&mut DocTable, &mut Contents) {
        (&mut self.docs, &mut self.contents)
    }

    /// Records that all documents so far came from the vector table. With `remote`, their terms
    /// and vectors are still there.
    pub fn set_loaded(&mut self, remote: Option<Box<dyn RemoteDocs>>) {
        self.loaded = self.docs.count();
        self.remote = remote.map(|docs| {
            self.contents.vectors = Vectors::default();
            RemotePart { docs, count: DocId::try_from(self.docs.count()).unwrap_or(DocId::MAX) }
        });
        self.finish_loading();
    }

    /// Releases unused capacity, and measures.
    fn finish_loading(&mut self) {
        self.contents.shrink();
        self.docs.shrink();
        self.measure();
    }

    fn measure(&mut self) {
        self.sizes = self.docs.sizes();
        self.bytes = self.docs.bytes()
            + self.contents.bytes()
            + self.rejected.len() * STRING_BYTES
            + self.remote().map_or(0, RemoteDocs::bytes);
    }

    /// The documents before [`Index::first_resident`].
    pub fn remote(&self) -> Option<&dyn RemoteDocs> {
        self.remote.as_ref().map(|remote| &*remote.docs)
    }

    /// The first document whose terms and vector are in memory.
    pub fn first_resident(&self) -> DocId {
        self.remote.as_ref().map_or(0, |remote| remote.count)
    }

    /// The estimated bytes of memory that the index took when it was last built or synchronized.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The share of the memories that the vector table has in their current state, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
    pub fn coverage(&self) -> f64 {
        let (loaded, all) = (self.docs.live(self.loaded).count(), self.live().count());
        if all == 0 { 1.0 } else { loaded as f64 / all as f64 }
    }

    /// Projects, sessions, types, tags and files.
    pub const fn names(&self) -> &Interner {
        &self.docs.names
    }

    pub fn doc(&self, doc: DocId) -> Option<&Doc> {
        self.docs.get(doc)
    }

    pub fn id(&self, doc: DocId) -> &str {
        self.docs.id(doc)
    }

    pub fn tags(&self, doc: DocId) -> &[NameId] {
        self.docs.tags(doc)
    }

    /// The live document with a public id.
    pub fn find(&self, id: &str) -> Option<(DocId, &Doc)> {
        let doc = self.docs.with_id(id)?;
        Some((doc, self.doc(doc)?))
    }

    /// Like [`Index::find`], for an id as a person or an agent writes it: its letters may be composed,
    /// and those of the file names of a Mac are not.
    pub fn find_typed(&self, id: &str) -> Option<(DocId, &Doc)> {
        self.find(id).or_else(|| {
            if id.is_ascii() {
                return None;
            }
            let is_composed = is_nfc(id);
            self.find(&if is_composed { id.nfd().collect::<String>() } else { id.nfc().collect() })
        })
    }

    pub fn is_rejected(&self, id: &str) -> bool {
        self.rejected.contains(id)
    }

    pub fn live(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        self.docs.live(self.docs.count())
    }

    /// The ids of the live documents that a filter allows.
    pub fn live_ids(&self, filter: StatusFilter) -> impl Iterator<Item = &str> {
        self.live().filter(move |(_, doc)| filter.allows(doc.status)).map(|(doc, _)| self.id(doc))
    }

    /// How many live documents a filter allows, and how many tokens they have.
    pub fn size(&self, filter: StatusFilter) -> Size {
        let sizes = INDEXED_STATUSES.iter().zip(&self.sizes);
        let allowed = sizes.filter(|(status, _)| filter.allows(**status));
        allowed.fold(Size::default(), |sum, (_, size)| Size {
            documents: sum.documents + size.documents,
            tokens: sum.tokens + size.tokens,
        })
    }

    /// The indexed terms whose shape matches a pattern, in memory or remote.
    pub fn terms_like(&self, pattern: ShapePattern) -> impl Iterator<Item = &str> {
        let remote = self.remote().into_iter();
        let remote = remote.flat_map(move |remote| remote.terms_like(pattern));
        self.contents.terms.matching(pattern).chain(remote)
    }

    pub fn contains_term(&self, key: &str, filter: StatusFilter) -> bool {
        self.resident_docs_with(key, filter).next().is_some()
            || self.remote().is_some_and(|remote| remote.document_frequency(key, filter) > 0)
    }

    /// How many live documents that the filter allows contain a term.
    pub fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize {
        // If the filter allows every document, none has to be looked at.
        let resident = if self.size(filter).documents == self.docs.count() as u64 {
            self.contents.posting_list(key).len()
        } else {
            self.resident_docs_with(key, filter).count()
        };
        resident + self.remote().map_or(0, |remote| remote.document_frequency(key, filter))
    }

    fn resident_docs_with(&self, key: &str, filter: StatusFilter) -> impl Iterator<Item = DocId> {
        let allowed = allowed_flags(filter);
        let docs = self.postings(key).map(|(doc, _)| doc);
        docs.filter(move |doc| self.docs.flags(*doc) & allowed != 0)
    }

    /// The resident documents that contain a term (see [`crate::analyzer::term_key`]), dead ones
    /// too, with its weighted frequency.
    pub fn postings(&self, key: &str) -> impl Iterator<Item = (DocId, f32)> {
        self.contents.posting_list(key).iter().map(|posting| unpack_posting(*posting))
    }

    pub fn vector(&self, doc: DocId) -> Option<QuantizedVector> {
        self.contents.vectors.get(doc.checked_sub(self.first_resident())?)
    }

    pub fn has_vector(&self, doc: DocId) -> bool {
        let resident = doc.checked_sub(self.first_resident());
        resident.is_some_and(|resident| self.contents.vectors.has(resident))
    }

    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        let list = self.contents.posting_list(key);
        let position =
            list.binary_search_by_key(&doc, |posting| unpack_posting(*posting).0).ok()?;
        list.get(position).map(|posting| unpack_posting(*posting).1)
    }

    /// Whether a newer memory replaces this one, see [`memory::is_superseded`].
    pub fn is_superseded(&self, doc: DocId, filter: StatusFilter) -> bool {
        let lookup = |id: &str| {
            let (found, row) = self.find(id)?;
            Some((row.status, self.docs.successor(found)))
        };
        self.doc(doc).is_some_and(|row| {
            let own = (row.status, self.docs.successor(doc));
            memory::is_superseded(self.id(doc), own, filter, lookup)
        })
    }
}

/// A memory as the index stores it, before it has a number.
pub struct DocEntry<'a> {
    pub key: RowKey,
    pub fingerprint: u64,
    pub id: &'a str,
    pub created: i64,
    pub updated: i64,
    pub length: u32,
    pub status: Status,
    /// The project, or the empty string if unknown. The same holds for the next four.
    pub project: &'a str,
    pub alias: &'a str,
    pub session: &'a str,
    pub session_id: &'a str,
    pub kind: &'a str,
    pub tags: Vec<&'a str>,
    pub files: Vec<&'a str>,
    pub superseded_by: Option<&'a str>,
}
