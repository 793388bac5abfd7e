//! The in-memory index of one scope: an inverted index over analysed text, with the columns that filters need.
//!
//! It is derived from the store and kept in step with it row by row: a row whose fingerprint changed is indexed anew, the
//! rest stays ([`follow`]). Rejected rows are never indexed; only their ids are known, to tell a rejected successor from a
//! missing one. The index orders and filters; what an answer shows is read from SQLite afterwards, status included.
//!
//! A large scope keeps the terms and vectors of its memories in the vector table: of those documents, the first ones, only the
//! columns are here, and [`RemoteDocs`] answers for the rest ([`super::view`]).

mod builder;
pub mod docs;
pub mod follow;
pub mod grow;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use self::docs::{Doc, Docs};
use super::dictionary::Dictionary;
use super::names::{Name, Names};
use super::numbers::{Numbers, hash};
use super::postings::{Posting, Postings};
use super::semantic::{Code, Vectors};
use crate::remote::RemoteDocs;
use ack_api::memory::{self, Status, StatusFilter, Successor};
use ack_api::source::RowKey;

/// Bytes that a short string takes on the heap and in a map, about.
const STRING: usize = 80;

/// Number of a document within one index.
pub type DocId = u32;

/// What decides about a document at a glance: a bit for its status, none where it is dead, and [`SUCCEEDED`].
pub type Mark = u8;
/// The document names a successor; [`Index::is_superseded`] tells whether that one stands in for it.
pub const SUCCEEDED: Mark = 1 << 7;

/// The marks of live documents that a status filter allows: `mark & allowed != 0`.
pub fn allowed(filter: StatusFilter) -> Mark {
    let served = SERVED.iter().enumerate().filter(|(_, status)| filter.allows(**status));
    served.fold(0, |allowed, (place, _)| allowed | 1 << place)
}

/// The statuses that are indexed.
const SERVED: [Status; 3] = [Status::Approved, Status::Promoted, Status::Staging];

fn mark(status: Status, succeeded: bool) -> Mark {
    let place = SERVED.iter().position(|served| *served == status);
    place.map_or(0, |place| 1 << place) | if succeeded { SUCCEEDED } else { 0 }
}

/// The index of one scope.
#[derive(Debug, Default)]
pub struct Index {
    docs: Docs,
    /// The live documents, by their ids and by their rows.
    by_id: Numbers,
    by_row: Numbers,
    rejected: HashSet<Box<str>>,
    terms: Dictionary,
    postings: Vec<Postings>,
    /// What the legs need of each document, beside the rest of it: its mark and its number of tokens.
    marks: Vec<Mark>,
    lengths: Vec<u32>,
    /// The vector of each document from [`Index::first_resident`] on.
    vectors: Vectors,
    /// Where the terms and vectors of the first documents lie, and how many documents these are.
    outside: Option<Outside>,
    names: Names,
    dead: usize,
    /// So many documents came from the vector table; the others were read from the store.
    loaded: usize,
    /// Live documents of each status, and their tokens.
    sizes: HashMap<Status, (u64, u64)>,
    bytes: usize,
    /// Ids that stand twice in the store; the first row is the one that counts.
    pub duplicate_ids: usize,
    /// Rows without an id, which cannot be served.
    pub without_id: usize,
    /// Whether the store says which memories were reviewed.
    pub has_status: bool,
}

/// The vector table that holds the terms and vectors of the first documents of an index.
#[derive(Debug)]
struct Outside {
    searcher: Box<dyn RemoteDocs>,
    documents: DocId,
}

impl Index {
    /// An index of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        self.postings.iter_mut().for_each(Postings::shrink);
        self.postings.shrink_to_fit();
        self.terms.shrink();
        self.docs.shrink();
        self.marks.shrink_to_fit();
        self.lengths.shrink_to_fit();
        self.vectors.shrink();
        self.bytes = self.measure();
    }

    /// Says that everything so far came from the vector table; with a searcher, that terms and vectors are still there.
    pub fn set_loaded(&mut self, searcher: Option<Box<dyn RemoteDocs>>) {
        self.loaded = self.docs.count();
        self.outside = searcher.map(|searcher| {
            self.vectors = Vectors::default();
            Outside {
                searcher,
                documents: DocId::try_from(self.docs.count()).unwrap_or(DocId::MAX),
            }
        });
        self.shrink();
    }

    /// What searches the documents before [`Index::first_resident`].
    pub fn searcher(&self) -> Option<&dyn RemoteDocs> {
        self.outside.as_ref().map(|outside| &*outside.searcher)
    }

    /// The first document whose terms and vector are in memory.
    pub fn first_resident(&self) -> DocId {
        self.outside.as_ref().map_or(0, |outside| outside.documents)
    }

    /// About how many bytes of memory it took when it was built or brought up to date.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn measure(&self) -> usize {
        let postings: usize = self
            .postings
            .iter()
            .map(|list| size_of::<Postings>() + size_of_val(list.as_slice()))
            .sum();
        // Strings lie on the heap, each with an entry in a map or a list.
        let strings = self.terms.bytes() + self.names.bytes() + self.rejected.len() * STRING;
        let documents = self.docs.bytes() + self.by_id.bytes() + self.by_row.bytes() + self.lengths.len() * 5;
        let outside = self.searcher().map_or(0, RemoteDocs::bytes);
        postings + strings + documents + self.vectors.bytes() + outside
    }

    /// Share of the memories that came from the vector table as they are, 0 to 1.
    pub fn coverage(&self) -> f64 {
        let live = |docs: usize| self.docs.iter().take(docs).filter(|(_, doc)| !doc.dead).count();
        let (loaded, all) = (live(self.loaded), live(self.docs.count()));
        #[expect(clippy::cast_precision_loss, reason = "counts of documents")]
        let share = if all == 0 { 1.0 } else { loaded as f64 / all as f64 };
        share
    }

    /// The number of an interned string, if any document has it.
    pub fn lookup(&self, text: &str) -> Option<Name> {
        self.names.lookup(text)
    }

    /// The string behind a number.
    pub fn name(&self, name: Name) -> &str {
        self.names.name(name)
    }

    /// The folded name of a name: what comparisons go by.
    pub fn fold(&self, name: Name) -> Name {
        self.names.fold(name)
    }

    /// See [`Names::spellings`].
    pub fn spellings(&self, folded: Name) -> Vec<&str> {
        self.names.spellings(folded)
    }

    /// See [`Names::counted`].
    pub fn counted(&self, names: impl Iterator<Item = Name>) -> Vec<(&str, u64)> {
        self.names.counted(names)
    }

    /// A document by number, dead ones too.
    pub fn doc(&self, number: DocId) -> Option<&Doc> {
        self.docs.get(number)
    }

    /// Public id of a document.
    pub fn id(&self, number: DocId) -> &str {
        self.docs.id(number)
    }

    /// Tags of a document, as written.
    pub fn tags(&self, number: DocId) -> &[Name] {
        self.docs.tags(number)
    }

    /// Files of a document, as stored.
    pub fn files(&self, number: DocId) -> &[Name] {
        self.docs.files(number)
    }

    /// A live document by its public id.
    pub fn find(&self, id: &str) -> Option<(DocId, &Doc)> {
        let number = self.number(id)?;
        Some((number, self.doc(number)?))
    }

    /// The live document of an id.
    fn number(&self, id: &str) -> Option<DocId> {
        self.by_id.find(hash(id), |number| self.docs.id(number) == id)
    }

    /// The live document of a row.
    fn at(&self, key: RowKey) -> Option<DocId> {
        self.by_row
            .find(hash(&key), |number| self.doc(number).is_some_and(|doc| doc.key == key))
    }

    /// As [`Index::at`], for rows in the order of the store: nearly always the document behind the last one that was found.
    fn next_at(&self, last: &mut Option<DocId>, key: RowKey) -> Option<DocId> {
        let next = last.map_or(0, |last| last + 1);
        let is_it = self.doc(next).is_some_and(|doc| !doc.dead && doc.key == key && key.rowid != 0);
        let found = if is_it { Some(next) } else { self.at(key) };
        *last = found.or(*last);
        found
    }

    /// Whether the store holds a rejected row of this id.
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
        allowed.map(|(number, _)| self.id(number))
    }

    /// How many live documents a filter allows, and how many tokens they have.
    pub fn size(&self, filter: StatusFilter) -> (u64, u64) {
        let allowed = self.sizes.iter().filter(|(status, _)| filter.allows(**status));
        allowed.fold((0, 0), |sum, (_, size)| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Number of documents, dead ones too: document numbers lie below it.
    pub fn capacity(&self) -> usize {
        self.docs.count()
    }

    /// Every indexed word (identifiers apart), for a look at words like a misspelt one.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let outside = self.searcher().into_iter().flat_map(RemoteDocs::terms);
        let terms = self.terms.iter().chain(outside);
        terms.filter(|term| !term.starts_with('='))
    }

    /// Whether a live document that the filter allows holds a term.
    pub fn holds(&self, key: &str, filter: StatusFilter) -> bool {
        let allowed = allowed(filter);
        self.list(key).iter().any(|posting| self.mark(posting >> 8) & allowed != 0)
            || self.searcher().is_some_and(|searcher| searcher.holders(key, filter) > 0)
    }

    /// How many live documents that the filter allows hold a term.
    pub fn document_frequency(&self, key: &str, filter: StatusFilter) -> usize {
        let allowed = allowed(filter);
        let own = self.list(key).iter().filter(|posting| self.mark(**posting >> 8) & allowed != 0);
        own.count() + self.searcher().map_or(0, |searcher| searcher.holders(key, filter))
    }

    /// The mark of a document.
    pub fn mark(&self, doc: DocId) -> Mark {
        self.marks.get(doc as usize).copied().unwrap_or_default()
    }

    /// The number of tokens of every document, dead ones too.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    fn list(&self, key: &str) -> &[Posting] {
        let list = self.terms.find(key).and_then(|term| self.postings.get(term as usize));
        list.map_or(&[], Postings::as_slice)
    }

    /// The documents that hold a term (as [`super::prepare::term_key`] writes it), with the weighted frequency; dead documents too.
    pub fn postings(&self, key: &str) -> impl Iterator<Item = (DocId, f32)> {
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        self.list(key).iter().map(|posting| (posting >> 8, (posting & 0xff) as f32 / 2.0))
    }

    /// The vectors of the documents from [`Index::first_resident`] on, in the order of their numbers.
    pub const fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// The vector of a document, where it is in memory.
    pub fn code(&self, doc: DocId) -> Option<Code> {
        self.vectors.get(doc.checked_sub(self.first_resident())?)
    }

    /// Whether a document in memory has a vector.
    pub fn has_code(&self, doc: DocId) -> bool {
        doc.checked_sub(self.first_resident()).is_some_and(|place| self.vectors.has(place))
    }

    /// The weighted frequency of a term in one document whose terms are in memory.
    pub fn frequency(&self, key: &str, doc: DocId) -> Option<f32> {
        let list = self.list(key);
        let position = list.binary_search_by_key(&doc, |posting| posting >> 8).ok()?;
        #[expect(clippy::cast_precision_loss, reason = "at most 255")]
        list.get(position).map(|posting| (posting & 0xff) as f32 / 2.0)
    }

    /// Whether a newer memory stands in for this one, see [`memory::is_superseded`].
    pub fn is_superseded(&self, doc: DocId, filter: StatusFilter) -> bool {
        memory::is_superseded(self.id(doc), self.docs.successor(doc), filter, |id| match self.find(id) {
            _ if self.rejected.contains(id) => Successor::Rejected,
            Some((number, found)) => Successor::There {
                status: found.status,
                next: self.docs.successor(number),
            },
            None => Successor::Gone,
        })
    }
}

/// What the index keeps of a memory, before it is numbered.
pub struct Entry<'a> {
    /// Where the row lies.
    pub key: RowKey,
    /// Hash of the row.
    pub fingerprint: u64,
    /// Public id.
    pub id: &'a str,
    /// As in [`Doc`].
    pub created: i64,
    /// As in [`Doc`].
    pub updated: i64,
    /// Number of tokens.
    pub length: u32,
    /// Curation status.
    pub status: Status,
    /// Empty where unknown, as the next four.
    pub project: &'a str,
    /// The project's second name.
    pub alias: &'a str,
    /// Session name.
    pub session: &'a str,
    /// Session id.
    pub session_id: &'a str,
    /// Type.
    pub kind: &'a str,
    /// Tags.
    pub tags: Vec<&'a str>,
    /// Files.
    pub files: Vec<&'a str>,
    /// Id of the memory that replaces this one.
    pub superseded_by: Option<&'a str>,
}
