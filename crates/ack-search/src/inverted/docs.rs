//! What an index knows of its documents, beside their terms: rows of one size, with everything that has a length of its own
//! (ids, tags, files) one behind the other in memory, so that a million documents are three long lists and not millions of
//! short ones.

use rustc_hash::FxHashMap;

use super::{DocId, Entry};
use crate::names::{Name, Names};
use ack_api::memory::Status;
use ack_api::source::RowKey;

/// What filters and order need to know of a memory; its id, tags and files are told by [`Docs`].
#[derive(Debug, Clone, Copy)]
pub struct Doc {
    /// Where the row lies in the store.
    pub key: RowKey,
    /// Hash of the row.
    pub(super) fingerprint: u64,
    /// Milliseconds since 1970; `i64::MIN` where unknown.
    pub created: i64,
    /// Milliseconds since 1970 of the last change; `i64::MIN` where unknown.
    pub updated: i64,
    /// Project, as written; see [`super::Index::name`] and [`super::Index::fold`].
    pub project: Name,
    /// The project's second name, as written.
    pub alias: Name,
    /// Session name.
    pub session: Name,
    /// Session id.
    pub session_id: Name,
    /// Type, as written.
    pub kind: Name,
    /// Curation status when it was indexed.
    pub status: Status,
    /// Replaced, or gone from the store.
    pub dead: bool,
}

/// The documents of an index, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Docs {
    rows: Vec<Doc>,
    ids: String,
    /// Tags and then files of each document.
    names: Vec<Name>,
    ends: Vec<Ends>,
    /// The memory that replaces a document, for the few that have one.
    successors: FxHashMap<DocId, Box<str>>,
}

/// Where a document's parts of the long lists end; they begin where those of the document before end.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    id: u32,
    tags: u32,
    files: u32,
}

impl Docs {
    /// Appends a document, unless the lists are full (4 GiB of ids, as many names).
    pub fn push(&mut self, entry: &Entry<'_>, known: &mut Names) -> Option<DocId> {
        let number = DocId::try_from(self.rows.len()).ok()?;
        let end = |length: usize, more: usize| u32::try_from(length + more).ok();
        let tags = end(self.names.len(), entry.tags.len())?;
        let ends = Ends {
            id: end(self.ids.len(), entry.id.len())?,
            tags,
            files: end(tags as usize, entry.files.len())?,
        };
        self.ids.push_str(entry.id);
        self.names
            .extend(entry.tags.iter().chain(&entry.files).map(|name| known.intern(name)));
        self.ends.push(ends);
        if let Some(newer) = entry.superseded_by.filter(|newer| *newer != entry.id) {
            self.successors.insert(number, newer.into());
        }
        self.rows.push(Doc {
            key: entry.key,
            fingerprint: entry.fingerprint,
            created: entry.created,
            updated: entry.updated,
            project: known.intern(entry.project),
            alias: known.intern(entry.alias),
            session: known.intern(entry.session),
            session_id: known.intern(entry.session_id),
            kind: known.intern(entry.kind),
            status: entry.status,
            dead: false,
        });
        Some(number)
    }

    /// How many there are, dead ones too.
    pub const fn count(&self) -> usize {
        self.rows.len()
    }

    /// A document by number.
    pub fn get(&self, number: DocId) -> Option<&Doc> {
        self.rows.get(number as usize)
    }

    /// A document by number.
    pub fn get_mut(&mut self, number: DocId) -> Option<&mut Doc> {
        self.rows.get_mut(number as usize)
    }

    /// Every document, with its number.
    pub fn iter(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        (0..).zip(self.rows.iter())
    }

    fn ends(&self, number: DocId) -> Option<(Ends, Ends)> {
        let place = number as usize;
        let before = place
            .checked_sub(1)
            .map_or_else(|| Some(Ends::default()), |place| self.ends.get(place).copied());
        before.zip(self.ends.get(place).copied())
    }

    /// Public id of a document; empty where there is none.
    pub fn id(&self, number: DocId) -> &str {
        let span = self.ends(number).map(|(before, own)| before.id as usize..own.id as usize);
        span.and_then(|span| self.ids.get(span)).unwrap_or_default()
    }

    /// Tags of a document, as written.
    pub fn tags(&self, number: DocId) -> &[Name] {
        let span = self.ends(number).map(|(before, own)| before.files as usize..own.tags as usize);
        span.and_then(|span| self.names.get(span)).unwrap_or_default()
    }

    /// Files of a document, as stored.
    pub fn files(&self, number: DocId) -> &[Name] {
        let span = self.ends(number).map(|(_, own)| own.tags as usize..own.files as usize);
        span.and_then(|span| self.names.get(span)).unwrap_or_default()
    }

    /// The id of the memory that replaces a document.
    pub fn successor(&self, number: DocId) -> Option<&str> {
        self.successors.get(&number).map(Box::as_ref)
    }

    /// How many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Doc>()
            + self.ids.capacity()
            + self.names.capacity() * size_of::<Name>()
            + self.ends.capacity() * size_of::<Ends>()
            + self.successors.len() * super::STRING
    }

    /// Gives back memory that growth left over.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.names.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}
