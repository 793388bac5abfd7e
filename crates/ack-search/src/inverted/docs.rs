//! The columns of an index's documents: everything apart from their terms and vectors.
//!
//! Rows have a fixed size. Everything of variable length (ids, tags, files) is concatenated in one
//! list each, so a million documents are a few long allocations instead of millions of short ones.

use ack_api::memory::{Status, StatusFilter};
use ack_api::source::{Claim, RowKey};
use rustc_hash::FxHashMap;

use super::{DocEntry, DocId};
use crate::dictionary::{IdTable, SLOT_BYTES, hash};
use crate::interner::{Interner, NameId};

/// The largest number of documents: postings have 24 bits for a document.
const MAX_DOCS: usize = 1 << 24;
/// The statuses of documents. Listings are written with their positions.
pub const INDEXED_STATUSES: [Status; 3] = [Status::Approved, Status::Promoted, Status::Staging];

/// What the legs check first about a document: one bit for its status, none if it is dead (replaced,
/// or gone from the store), and [`HAS_SUCCESSOR`].
pub type DocFlags = u8;
/// The document names a successor. [`Index::is_superseded`](super::Index::is_superseded) tells
/// whether the successor replaces it.
pub const HAS_SUCCESSOR: DocFlags = 1 << 7;

/// The flags of live documents that a status filter allows: `flags & allowed != 0`.
pub fn allowed_flags(filter: StatusFilter) -> DocFlags {
    let allowed = INDEXED_STATUSES.iter().enumerate().filter(|(_, status)| filter.allows(**status));
    allowed.fold(0, |flags, (bit, _)| flags | 1 << bit)
}

fn doc_flags(status: Status, has_successor: bool) -> DocFlags {
    let bit = INDEXED_STATUSES.iter().position(|indexed| *indexed == status);
    bit.map_or(0, |bit| 1 << bit) | if has_successor { HAS_SUCCESSOR } else { 0 }
}

/// What filters and ordering need to know about a memory. [`DocTable`] has its id, tags and files.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    pub key: RowKey,
    pub(super) fingerprint: u64,
    /// When it was written, in milliseconds since 1970; `i64::MIN` if unknown.
    pub created: i64,
    /// When it was last changed, in the same way.
    pub updated: i64,
    /// Project, as written; see [`Interner::fold`].
    pub project: NameId,
    /// The project's second name, as written.
    pub alias: NameId,
    pub session: NameId,
    pub session_id: NameId,
    /// Type, as written.
    pub kind: NameId,
    pub status: Status,
}

impl Doc {
    pub const fn claim(&self) -> Claim {
        Claim::new(self.status, self.key)
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub documents: u64,
    pub tokens: u64,
}

/// The documents of an index, by number, dead ones too.
#[derive(Debug, Default)]
pub struct DocTable {
    rows: Vec<Doc>,
    ids: String,
    /// The tags and then the files of each document.
    tags_and_files: Vec<NameId>,
    ends: Vec<Ends>,
    /// The memory that replaces a document, for the few that have one.
    successors: FxHashMap<DocId, Box<str>>,
    /// The flags and the number of tokens of each document. They are separate from its other
    /// columns because the legs read them for every match.
    flags: Vec<DocFlags>,
    lengths: Vec<u32>,
    /// The live documents, by their ids and by their rows.
    by_id: IdTable,
    by_row: IdTable,
    pub(crate) names: Interner,
}

/// Where a document's parts of the lists end. They begin where those of the previous one end.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    id: u32,
    tags: u32,
    files: u32,
}

impl DocTable {
    pub fn reserve(&mut self, additional: usize) {
        self.lengths.reserve(additional);
        self.flags.reserve(additional);
    }

    /// `None` if a list is full (2^24 documents, 4 GiB of ids, 2^32 names).
    pub(super) fn push(&mut self, entry: &DocEntry<'_>) -> Option<DocId> {
        if self.rows.len() >= MAX_DOCS {
            return None;
        }
        let doc = DocId::try_from(self.rows.len()).ok()?;
        let end = |length: usize, additional: usize| u32::try_from(length + additional).ok();
        let tags = end(self.tags_and_files.len(), entry.tags.len())?;
        let ends = Ends {
            id: end(self.ids.len(), entry.id.len())?,
            tags,
            files: end(tags as usize, entry.files.len())?,
        };
        let names = &mut self.names;
        self.ids.push_str(entry.id);
        let tags_and_files = entry.tags.iter().chain(&entry.files);
        self.tags_and_files.extend(tags_and_files.map(|name| names.intern(name)));
        self.ends.push(ends);
        let successor = entry.superseded_by.filter(|successor| *successor != entry.id);
        if let Some(successor) = successor {
            self.successors.insert(doc, successor.into());
        }
        self.rows.push(Doc {
            key: entry.key,
            fingerprint: entry.fingerprint,
            created: entry.created,
            updated: entry.updated,
            project: names.intern(entry.project),
            alias: names.intern(entry.alias),
            session: names.intern(entry.session),
            session_id: names.intern(entry.session_id),
            kind: names.intern(entry.kind),
            status: entry.status,
        });
        self.flags.push(doc_flags(entry.status, successor.is_some()));
        self.lengths.push(entry.length);
        let Self { ids, ends, rows, by_id, by_row, .. } = self;
        by_id.insert(hash(entry.id), doc, |other| hash(id_at(ids, ends, other)));
        if entry.key.rowid != 0 {
            let row_hash = |other| rows.get(other as usize).map_or(0, |doc: &Doc| hash(&doc.key));
            by_row.insert(hash(&entry.key), doc, row_hash);
        }
        Some(doc)
    }

    /// Adds the columns of a row of the vector table. If the index already has its id or key, the
    /// row gets no document, and the store decides.
    pub fn add_loaded(&mut self, entry: &DocEntry<'_>) -> Option<DocId> {
        let is_known = self.with_id(entry.id).or_else(|| self.of_row(entry.key)).is_some();
        if entry.key.rowid == 0 || is_known {
            return None;
        }
        self.push(entry)
    }

    pub(super) fn delete(&mut self, doc: DocId) {
        let id_hash = hash(self.id(doc));
        self.by_id.remove(id_hash, doc);
        if let Some(row) = self.get(doc) {
            let row_hash = hash(&row.key);
            self.by_row.remove(row_hash, doc);
        }
        self.set_flags(doc, 0);
    }

    pub(super) fn set_status(&mut self, doc: DocId, status: Status) {
        if !self.is_live(doc) {
            return;
        }
        if let Some(row) = self.rows.get_mut(doc as usize) {
            row.status = status;
        }
        self.set_flags(doc, doc_flags(status, self.successors.contains_key(&doc)));
    }

    fn set_flags(&mut self, doc: DocId, flags: DocFlags) {
        if let Some(known) = self.flags.get_mut(doc as usize) {
            *known = flags;
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.rows.len()
    }

    /// The live documents of each of the [`INDEXED_STATUSES`].
    pub(super) fn sizes(&self) -> [Size; 3] {
        let mut sizes = [Size::default(); 3];
        for (flags, length) in self.flags.iter().zip(&self.lengths) {
            for (bit, size) in sizes.iter_mut().enumerate() {
                let counts = u64::from(flags >> bit & 1);
                size.documents += counts;
                size.tokens += counts * u64::from(*length);
            }
        }
        sizes
    }

    pub(super) fn get(&self, doc: DocId) -> Option<&Doc> {
        self.rows.get(doc as usize)
    }

    pub(super) fn with_id(&self, id: &str) -> Option<DocId> {
        self.by_id.find(hash(id), |doc| self.id(doc) == id)
    }

    pub(super) fn of_row(&self, key: RowKey) -> Option<DocId> {
        self.by_row.find(hash(&key), |doc| self.get(doc).is_some_and(|doc| doc.key == key))
    }

    /// The live documents among the first `count`, with their numbers.
    pub(super) fn live(&self, count: usize) -> impl Iterator<Item = (DocId, &Doc)> {
        let rows = (0..).zip(self.rows.iter().zip(&self.flags)).take(count);
        rows.filter(|(_, (_, flags))| **flags & !HAS_SUCCESSOR != 0)
            .map(|(doc, (row, _))| (doc, row))
    }

    pub(crate) fn flags(&self, doc: DocId) -> DocFlags {
        self.flags.get(doc as usize).copied().unwrap_or_default()
    }

    pub(super) fn is_live(&self, doc: DocId) -> bool {
        self.flags(doc) & !HAS_SUCCESSOR != 0
    }

    /// The number of tokens of every document, dead ones too.
    pub(crate) fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The public id of a document; the empty string if there is no such document.
    pub(super) fn id(&self, doc: DocId) -> &str {
        id_at(&self.ids, &self.ends, doc)
    }

    pub(crate) fn tags(&self, doc: DocId) -> &[NameId] {
        let span = ends(&self.ends, doc)
            .map(|(previous, ends)| previous.files as usize..ends.tags as usize);
        span.and_then(|span| self.tags_and_files.get(span)).unwrap_or_default()
    }

    pub(crate) fn files(&self, doc: DocId) -> &[NameId] {
        let span = ends(&self.ends, doc).map(|(_, ends)| ends.tags as usize..ends.files as usize);
        span.and_then(|span| self.tags_and_files.get(span)).unwrap_or_default()
    }

    pub(super) fn successor(&self, doc: DocId) -> Option<&str> {
        self.successors.get(&doc).map(Box::as_ref)
    }

    pub(super) fn bytes(&self) -> usize {
        let row = size_of::<(Doc, Ends, u32, DocFlags)>() + 2 * SLOT_BYTES;
        self.rows.len() * row
            + self.ids.len()
            + self.tags_and_files.len() * size_of::<NameId>()
            + self.successors.len() * super::STRING_BYTES
            + self.names.bytes()
    }

    pub(super) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.tags_and_files.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.flags.shrink_to_fit();
        self.lengths.shrink_to_fit();
    }
}

/// The ends of the document before one, and of that one.
fn ends(ends: &[Ends], doc: DocId) -> Option<(Ends, Ends)> {
    let doc = doc as usize;
    let previous = match doc.checked_sub(1) {
        Some(previous) => ends.get(previous).copied(),
        None => Some(Ends::default()),
    };
    previous.zip(ends.get(doc).copied())
}

fn id_at<'a>(ids: &'a str, all_ends: &[Ends], doc: DocId) -> &'a str {
    let span = ends(all_ends, doc).map(|(previous, ends)| previous.id as usize..ends.id as usize);
    span.and_then(|span| ids.get(span)).unwrap_or_default()
}
