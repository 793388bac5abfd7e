//! The columns of an index's documents, apart from their terms.
//!
//! Rows have a fixed size. Everything of variable length (ids, tags, files) is concatenated in one
//! list each, so a million documents are a few long allocations instead of millions of short ones.

use rustc_hash::FxHashMap;

use super::{DocEntry, DocId};
use crate::interner::{Interner, NameId};
use ack_api::memory::Status;
use ack_api::source::{Claim, RowKey};

/// What filters and ordering need to know about a memory. [`DocTable`] has its id, tags and files.
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    pub key: RowKey,
    /// Hash of the row.
    pub(super) fingerprint: u64,
    /// When it was written, in milliseconds since 1970; `i64::MIN` if unknown.
    pub created: i64,
    /// When it was last changed, in milliseconds since 1970; `i64::MIN` if unknown.
    pub updated: i64,
    /// Project, as written; see [`super::Index::name`] and [`super::Index::fold`].
    pub project: NameId,
    /// The project's second name, as written.
    pub alias: NameId,
    pub session: NameId,
    pub session_id: NameId,
    /// Type, as written.
    pub kind: NameId,
    /// Curation status when it was indexed.
    pub status: Status,
    /// Whether it was replaced or is gone from the store.
    pub dead: bool,
}

impl Doc {
    /// The claim of its row to its id.
    pub const fn claim(&self) -> Claim {
        Claim::new(self.status, self.key)
    }
}

/// The documents of an index, by number.
#[derive(Debug, Default)]
pub struct DocTable {
    rows: Vec<Doc>,
    ids: String,
    /// The tags and then the files of each document.
    names: Vec<NameId>,
    ends: Vec<Ends>,
    /// The memory that replaces a document, for the few that have one.
    successors: FxHashMap<DocId, Box<str>>,
}

/// Where a document's parts of the concatenated lists end. They begin where those of the previous
/// document end.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    id: u32,
    tags: u32,
    files: u32,
}

impl DocTable {
    /// Appends a document, or returns `None` if a list is full (4 GiB of ids, 2^32 names).
    pub fn push(&mut self, entry: &DocEntry<'_>, names: &mut Interner) -> Option<DocId> {
        let doc = DocId::try_from(self.rows.len()).ok()?;
        let end = |length: usize, additional: usize| u32::try_from(length + additional).ok();
        let tags = end(self.names.len(), entry.tags.len())?;
        let ends = Ends {
            id: end(self.ids.len(), entry.id.len())?,
            tags,
            files: end(tags as usize, entry.files.len())?,
        };
        self.ids.push_str(entry.id);
        let tags_and_files = entry.tags.iter().chain(&entry.files);
        self.names.extend(tags_and_files.map(|name| names.intern(name)));
        self.ends.push(ends);
        if let Some(successor) = entry.superseded_by.filter(|successor| *successor != entry.id) {
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
            dead: false,
        });
        Some(doc)
    }

    /// The number of documents, dead ones too.
    pub const fn count(&self) -> usize {
        self.rows.len()
    }

    /// A document by number.
    pub fn get(&self, doc: DocId) -> Option<&Doc> {
        self.rows.get(doc as usize)
    }

    /// A document by number.
    pub fn get_mut(&mut self, doc: DocId) -> Option<&mut Doc> {
        self.rows.get_mut(doc as usize)
    }

    /// Every document with its number.
    pub fn iter(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        (0..).zip(self.rows.iter())
    }

    /// The ends of the previous document and of this one.
    fn ends(&self, doc: DocId) -> Option<(Ends, Ends)> {
        let doc = doc as usize;
        let previous = match doc.checked_sub(1) {
            Some(previous) => self.ends.get(previous).copied(),
            None => Some(Ends::default()),
        };
        previous.zip(self.ends.get(doc).copied())
    }

    /// The public id of a document; the empty string if there is no such document.
    pub fn id(&self, doc: DocId) -> &str {
        let span = self.ends(doc).map(|(previous, ends)| previous.id as usize..ends.id as usize);
        span.and_then(|span| self.ids.get(span)).unwrap_or_default()
    }

    /// The tags of a document, as written.
    pub fn tags(&self, doc: DocId) -> &[NameId] {
        let span =
            self.ends(doc).map(|(previous, ends)| previous.files as usize..ends.tags as usize);
        span.and_then(|span| self.names.get(span)).unwrap_or_default()
    }

    /// The files of a document, as stored.
    pub fn files(&self, doc: DocId) -> &[NameId] {
        let span = self.ends(doc).map(|(_, ends)| ends.tags as usize..ends.files as usize);
        span.and_then(|span| self.names.get(span)).unwrap_or_default()
    }

    /// The id of the memory that replaces a document.
    pub fn successor(&self, doc: DocId) -> Option<&str> {
        self.successors.get(&doc).map(Box::as_ref)
    }

    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Doc>()
            + self.ids.capacity()
            + self.names.capacity() * size_of::<NameId>()
            + self.ends.capacity() * size_of::<Ends>()
            + self.successors.len() * super::STRING_BYTES
    }

    /// Releases unused capacity.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
