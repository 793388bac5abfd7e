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
pub mod docs;
pub mod sync;
pub mod writers;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use self::docs::{Doc, DocTable};
use super::dictionary::Dictionary;
use super::id_table::{IdTable, hash};
use super::interner::{Interner, NameId};
use super::postings::{DocId, Posting, Postings, unpack_posting};
use super::semantic::{QuantizedVector, Vectors};
use super::shapes::ShapePattern;
use crate::remote::RemoteDocs;
use ack_api::memory::{self, Status, StatusFilter};
use ack_api::source::RowKey;

/// Estimated bytes of a short string on the heap, with its entry in a map.
const STRING_BYTES: usize = 80;

/// What the legs check first about a document: one bit for its status, none if it is dead, and
/// [`HAS_SUCCESSOR`].
pub type DocFlags = u8;
/// The document names a successor. [`Index::is_superseded`] tells whether the successor replaces
/// it.
pub const HAS_SUCCESSOR: DocFlags = 1 << 7;

/// The flags of live documents that a status filter allows: `flags & allowed != 0`.
pub fn allowed_flags(filter: StatusFilter) -> DocFlags {
    let allowed = INDEXED_STATUSES.iter().enumerate().filter(|(_, status)| filter.allows(**status));
    allowed.fold(0, |flags, (bit, _)| flags | 1 << bit)
}

const INDEXED_STATUSES: [Status; 3] = [Status::Approved, Status::Promoted, Status::Staging];

fn doc_flags(status: Status, has_successor: bool) -> DocFlags {
    let bit = INDEXED_STATUSES.iter().position(|indexed| *indexed == status);
    bit.map_or(0, |bit| 1 << bit) | if has_successor { HAS_SUCCESSOR } else { 0 }
}

#[derive(Debug, Default)]
pub struct Index {
    docs: DocTable,
    /// The live documents, by their ids and by their rows.
    by_id: IdTable,
    by_row: IdTable,
    rejected: HashSet<Box<str>>,
    terms: Dictionary,
    postings: Vec<Postings>,
    /// The flags and the number of tokens of each document. They are separate from its other
    /// columns because the legs read them for every match.
    flags: Vec<DocFlags>,
    lengths: Vec<u32>,
    /// The vector of each resident document.
    vectors: Vectors,
    /// The first documents, if their terms and vectors are not in memory.
    remote: Option<RemotePart>,
    names: Interner,
    dead: usize,
    /// How many documents came from the vector table; the others were read from the store.
    loaded: usize,
    /// Whether the small transformer contributed to most vectors of the table.
    pub is_contextual: bool,
    /// The live documents of each status.
    sizes: HashMap<Status, Size>,
    bytes: usize,
    /// Rows that share their id with another row that has a stronger claim
    /// ([`ack_api::source::Claim`]).
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

/// How large a set of documents is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub documents: u64,
    pub tokens: u64,
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.postings.iter_mut().for_each(Postings::shrink);
        self.postings.shrink_to_fit();
        self.terms.shrink();
        self.docs.shrink();
        self.flags.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.vectors.shrink();
        self.bytes = self.measure();
    }

    /// Records that all documents so far came from the vector table. With `remote`, their terms
    /// and vectors are still there.
    pub fn set_loaded(&mut self, remote: Option<Box<dyn RemoteDocs>>) {
        self.loaded = self.docs.count();
        self.remote = remote.map(|docs| {
            self.vectors = Vectors::default();
            RemotePart { docs, count: DocId::try_from(self.docs.count()).unwrap_or(DocId::MAX) }
        });
        self.shrink();
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

    fn measure(&self) -> usize {
        let postings: usize = self
            .postings
            .iter()
            .map(|postings| size_of::<Postings>() + size_of_val(postings.as_slice()))
            .sum();
        let strings = self.terms.bytes() + self.names.bytes() + self.rejected.len() * STRING_BYTES;
        let documents = self.docs.bytes()
            + self.by_id.bytes()
            + self.by_row.bytes()
            + self.lengths.len() * (size_of::<u32>() + size_of::<DocFlags>());
        let remote = self.remote().map_or(0, RemoteDocs::bytes);
        postings + strings + documents + self.vectors.bytes() + remote
    }

    /// The share of the memories that the vector table has in their current state, from 0 to 1.
    pub fn coverage(&self) -> f64 {
        let live = |docs: usize| self.docs.iter().take(docs).filter(|(_, doc)| !doc.dead).count();
        let (loaded, all) = (live(self.loaded), live(self.docs.count()));
        #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
        let share = if all == 0 { 1.0 } else { loaded as f64 / all as f64 };
        share
    }

    /// The id of a name, if the index has it.
    pub fn lookup(&self, name: &str) -> Option<NameId> {
        self.names.lookup(name)
    }

    /// See [`Interner::with_below`].
    pub fn with_below(&self, name: &str) -> Vec<NameId> {
        self.names.with_below(name)
    }

    pub fn name(&self, name: NameId) -> &str {
        self.names.name(name)
    }

    /// The folded form of a name, which comparisons use.
    pub fn fold(&self, name: NameId) -> NameId {
        self.names.fold(name)
    }

    /// See [`Interner::spellings`].
    pub fn spellings(&self, folded: NameId) -> Vec<&str> {
        self.names.spellings(folded)
    }

    /// See [`Interner::count_spellings`].
    pub fn count_spellings(&self, names: impl Iterator<Item = NameId>) -> Vec<(&str, u64)> {
        self.names.count_spellings(names)
    }

    /// A document, dead or live.
    pub fn doc(&self, doc: DocId) -> Option<&Doc> {
        self.docs.get(doc)
    }

    /// The public id of a document.
    pub fn id(&self, doc: DocId) -> &str {
        self.docs.id(doc)
    }

    /// The tags of a document, as written.
    pub fn tags(&self, doc: DocId) -> &[NameId] {
        self.docs.tags(doc)
    }

    /// The files of a document, as stored.
    pub fn files(&self, doc: DocId) -> &[NameId] {
        self.docs.files(doc)
    }

    /// The live document with a public id.
    pub fn find(&self, id: &str) -> Option<(DocId, &Doc)> {
        let doc = self.doc_with_id(id)?;
        Some((doc, self.doc(doc)?))
    }

    /// Like [`Index::find`], for an id as a person or an agent writes it: its letters may be composed,
    /// and those of the file names of a Mac are not.
    pub fn find_typed(&self, id: &str) -> Option<(DocId, &Doc)> {
        self.find(id).or_else(|| {
            let other: String = match id.is_ascii() {
                true => return None,
                false if is_nfc(id) => id.nfd().collect(),
                false => id.nfc().collect(),
            };
            self.find(&other)
        })
    }

    fn doc_with_id(&self, id: &str) -> Option<DocId> {
        self.by_id.find(hash(id), |doc| self.docs.id(doc) == id)
    }

    /// The live document of a row.
    fn doc_of_row(&self, key: RowKey) -> Option<DocId> {
        self.by_row.find(hash(&key), |doc| self.doc(doc).is_some_and(|doc| doc.key == key))
    }

    /// Like [`Index::doc_of_row`], for rows in the order of the store: there, a row's document is
    /// nearly always the one after the last one found.
    fn next_doc_of_row(&self, last: &mut Option<DocId>, key: RowKey) -> Option<DocId> {
        let next = last.map_or(0, |last| last + 1);
        let next_fits =
            self.doc(next).is_some_and(|doc| !doc.dead && doc.key == key && key.rowid != 0);
        let found = if next_fits { Some(next) } else { self.doc_of_row(key) };
        *last = found.or(*last);
        found
    }

    /// Whether the store has a rejected row with this id.
    pub fn is_rejected(&self, id: &str) -> bool {
        self.rejected.contains(id)
    }

    /// Every live document.
    pub fn live(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        self.docs.iter().filter(|(_, doc)| !doc.dead)
    }

    /// The ids of the live documents that a filter allows.
    pub fn live_ids(&self, filter: StatusFilter) -> impl Iterator<Item = &str> {
        let allowed = self.live().filter(move |(_, doc)| filter.allows(doc.status));
        allowed.map(|(doc, _)| self.id(doc))
    }

    /// How many live documents a filter allows, and how many tokens they have.
    pub fn size(&self, filter: StatusFilter) -> Size {
        let allowed = self.sizes.iter().filter(|(status, _)| filter.allows(**status));
        allowed.fold(Size::default(), |sum, (_, size)| Size {
            documents: sum.documents + size.documents,
            tokens: sum.tokens + size.tokens,
        })
    }

    /// The indexed terms whose shape matches a pattern, in memory or remote.
    pub fn terms_like(&self, pattern: ShapePattern) -> impl Iterator<Item = &str> {
        let remote = self.remote().into_iter();
        let remote = remote.flat_map(move |remote| remote.terms_like(pattern));
        self.terms.matching(pattern).chain(remote)
    }

    /// Whether a live document that the filter allows contains a term.
    pub fn contains_term(&self, key: &str, filter: StatusFilter) -> bool {
        self.resident_docs_with(key, filter).next().is_some()
            || self.remote().is_some_and(|remote| remote.document_frequency(key, filter) > 0)
    }

    /// How many live documents that the filter allows contain a term.
    pub fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize {
        // If the filter allows every document, none has to be looked at.
        let resident = if self.size(filter).documents == self.flags.len() as u64 {
            self.posting_list(key).len()
        } else {
            self.resident_docs_with(key, filter).count()
        };
        resident + self.remote().map_or(0, |remote| remote.document_frequency(key, filter))
    }

    fn resident_docs_with(&self, key: &str, filter: StatusFilter) -> impl Iterator<Item = DocId> {
        let allowed = allowed_flags(filter);
        let docs = self.posting_list(key).iter().map(|posting| unpack_posting(*posting).0);
        docs.filter(move |doc| self.flags(*doc) & allowed != 0)
    }

    pub fn flags(&self, doc: DocId) -> DocFlags {
        self.flags.get(doc as usize).copied().unwrap_or_default()
    }

    /// The number of tokens of every document, dead ones too.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    fn posting_list(&self, key: &str) -> &[Posting] {
        let postings = self.terms.find(key).and_then(|term| self.postings.get(term as usize));
        postings.map_or(&[], Postings::as_slice)
    }

    /// The resident documents that contain a term (see [`crate::analyzer::term_key`]), dead ones
    /// too, with its weighted frequency.
    pub fn postings(&self, key: &str) -> impl Iterator<Item = (DocId, f32)> {
        self.posting_list(key).iter().map(|posting| unpack_posting(*posting))
    }

    /// The vectors of the resident documents, starting with [`Index::first_resident`].
    pub const fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The vector of a resident document.
    pub fn vector(&self, doc: DocId) -> Option<QuantizedVector> {
        self.vectors.get(doc.checked_sub(self.first_resident())?)
    }

    /// Whether [`Index::vector`] returns a vector.
    pub fn has_vector(&self, doc: DocId) -> bool {
        let resident = doc.checked_sub(self.first_resident());
        resident.is_some_and(|resident| self.vectors.has(resident))
    }

    /// The weighted frequency of a term in a resident document.
    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        let list = self.posting_list(key);
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
        memory::is_superseded(self.id(doc), self.docs.successor(doc), filter, lookup)
    }
}

/// A memory as the index stores it, before it has a number.
pub struct DocEntry<'a> {
    pub key: RowKey,
    /// Hash of the row.
    pub fingerprint: u64,
    pub id: &'a str,
    /// As in [`Doc`].
    pub created: i64,
    /// As in [`Doc`].
    pub updated: i64,
    /// Number of tokens.
    pub length: u32,
    pub status: Status,
    /// The project, or the empty string if unknown. The same holds for the next four.
    pub project: &'a str,
    /// The project's second name.
    pub alias: &'a str,
    pub session: &'a str,
    pub session_id: &'a str,
    pub kind: &'a str,
    pub tags: Vec<&'a str>,
    pub files: Vec<&'a str>,
    /// Id of the memory that replaces this one.
    pub superseded_by: Option<&'a str>,
}
