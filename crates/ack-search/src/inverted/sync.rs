//! Synchronizing an index with its store, row by row: a row whose fingerprint changed is indexed
//! again, and the rest stays.

use std::thread;

use rustc_hash::FxHashSet as HashSet;

use super::builder::Builder;
use super::{DocEntry, DocId, Index};
use crate::id_table::hash;
use ack_api::memory::Status;
use ack_api::source::{ListedRow, Records, RowKey, StoredMemory};

/// If more than one in this many documents is dead, the index should be rebuilt.
const REBUILD_DEAD_RATIO: usize = 8;
/// With at most this many dead documents, it never should.
const MAX_TOLERATED_DEAD: usize = 64;

impl Index {
    /// Builds the index of everything in a snapshot.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn build<R: Records>(snapshot: &R) -> Result<Self, R::Error> {
        let mut index = Self::new();
        thread::scope(|scope| {
            let mut builder = Builder::new(&mut index, scope);
            snapshot.scan(&mut |row| {
                if row.status() == Status::Rejected {
                    builder.index.rejected.insert(row.id()?.into());
                    return Ok(());
                }
                let memory = row.memory()?;
                if memory.id.is_empty() {
                    builder.index.without_id += 1;
                } else if builder.has(&memory.id) {
                    builder.index.duplicate_ids += 1;
                } else {
                    builder.push(StoredMemory {
                        key: row.key(),
                        fingerprint: row.fingerprint(),
                        memory,
                    });
                }
                Ok(())
            })?;
            builder.finish();
            Ok::<(), R::Error>(())
        })?;
        index.has_status = snapshot.has_status();
        index.shrink();
        Ok(index)
    }

    /// Finds what changed since the index was built: the rows to add or replace, and the ids that
    /// are gone. It does not change the index, so a disturbed snapshot can be read again.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn changes<R: Records>(&self, snapshot: &R) -> Result<Changes, R::Error> {
        let mut changes = Changes {
            has_status: snapshot.has_status(),
            ..Changes::default()
        };
        let mut seen = SeenDocs::new(self.docs.count());
        let mut added: HashSet<Box<str>> = HashSet::default();
        let mut last = None;
        snapshot.scan(&mut |row| {
            if row.status() == Status::Rejected {
                changes.rejected.insert(row.id()?.into());
                return Ok(());
            }
            // Nearly every row is unchanged and costs no more than this lookup.
            if let Some(doc) = self.next_doc_of_row(&mut last, row.key())
                && self.is_unchanged(doc, row.fingerprint(), row.status())
            {
                seen.insert(doc);
                return Ok(());
            }
            let memory = row.memory()?;
            if memory.id.is_empty() {
                changes.without_id += 1;
                return Ok(());
            }
            let id: Box<str> = memory.id.as_str().into();
            let known = self.doc_with_id(&id);
            let is_first = known.is_none_or(|doc| seen.insert(doc)) && added.insert(id);
            if is_first {
                changes.added.push(StoredMemory {
                    key: row.key(),
                    fingerprint: row.fingerprint(),
                    memory,
                });
            } else {
                changes.duplicate_ids += 1;
            }
            Ok(())
        })?;
        changes.removed = self.unseen_ids(&seen);
        Ok(changes)
    }

    /// As [`Index::changes`], from a listing of `snapshot`'s rows that was read before.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn changes_since<R: Records>(
        &self,
        listing: Listing,
        snapshot: &R,
    ) -> Result<Changes, R::Error> {
        let mut seen = SeenDocs::new(self.docs.count());
        let mut wanted: Vec<RowKey> = Vec::new();
        let mut last = None;
        for (key, fingerprint, status) in &listing.rows {
            let doc = self.next_doc_of_row(&mut last, *key);
            match doc.filter(|doc| self.is_unchanged(*doc, *fingerprint, *status)) {
                Some(doc) => {
                    seen.insert(doc);
                }
                None => wanted.push(*key),
            }
        }
        // Reading single rows only pays for a few of them, and rows without a number can only be
        // read by a scan.
        if wanted.len() * 4 > listing.rows.len() || wanted.iter().any(|key| key.rowid == 0) {
            return self.changes(snapshot);
        }
        let mut changes = Changes {
            has_status: snapshot.has_status(),
            rejected: listing.rejected,
            ..Changes::default()
        };
        let mut added: HashSet<Box<str>> = HashSet::default();
        for row in snapshot.rows(&wanted)? {
            let (key, memory) = (row.key, &row.memory);
            if memory.id.is_empty() {
                changes.without_id += 1;
                continue;
            }
            let id: Box<str> = memory.id.as_str().into();
            // Of several rows with one id the first counts, even if a later one is unchanged.
            let is_later = |doc: DocId| {
                self.doc(doc)
                    .is_some_and(|doc| (doc.key.source, doc.key.rowid) > (key.source, key.rowid))
            };
            let known = self.doc_with_id(&id);
            let is_first =
                known.is_none_or(|doc| seen.insert(doc) || is_later(doc)) && added.insert(id);
            if is_first {
                changes.added.push(row);
            } else {
                changes.duplicate_ids += 1;
            }
        }
        changes.removed = self.unseen_ids(&seen);
        Ok(changes)
    }

    fn is_unchanged(&self, doc: DocId, fingerprint: u64, status: Status) -> bool {
        self.doc(doc)
            .is_some_and(|doc| !doc.dead && doc.fingerprint == fingerprint && doc.status == status)
    }

    /// The ids of live documents that were not seen.
    fn unseen_ids(&self, seen: &SeenDocs) -> Vec<Box<str>> {
        let unseen = self.by_id.iter().filter(|doc| !seen.contains(*doc));
        unseen.map(|doc| self.id(doc).into()).collect()
    }

    /// Applies changes that [`Index::changes`] found. Returns false and does nothing if so many
    /// documents would be dead that the index should be rebuilt instead.
    pub fn apply(&mut self, changes: Changes) -> bool {
        let replaced = |row: &&StoredMemory| self.doc_with_id(&row.memory.id).is_some();
        let dying = changes.removed.len() + changes.added.iter().filter(replaced).count();
        // Dead remote documents cost little, and the next build of the table drops them.
        let is_resident = self.remote.is_none();
        let dead = self.dead + dying;
        if is_resident
            && dead * REBUILD_DEAD_RATIO > self.docs.count() + changes.added.len()
            && dead > MAX_TOLERATED_DEAD
        {
            return false;
        }
        self.rejected = changes.rejected;
        self.duplicate_ids = changes.duplicate_ids;
        self.without_id = changes.without_id;
        self.has_status = changes.has_status;
        for id in changes.removed {
            self.kill(&id);
        }
        thread::scope(|scope| {
            let mut builder = Builder::new(self, scope);
            for row in changes.added {
                builder.index.kill(&row.memory.id);
                builder.push(row);
            }
            builder.finish();
        });
        self.bytes = self.measure();
        true
    }

    /// Marks the document with an id as dead.
    fn kill(&mut self, id: &str) {
        if let Some(number) = self.doc_with_id(id)
            && let Some(doc) = self.docs.get_mut(number)
        {
            doc.dead = true;
            self.by_id.remove(hash(id), number);
            self.by_row.remove(hash(&doc.key), number);
            if let Some(flags) = self.flags.get_mut(number as usize) {
                *flags = 0;
            }
            self.dead += 1;
            if let Some(size) = self.sizes.get_mut(&doc.status) {
                size.documents -= 1;
                let tokens = self
                    .lengths
                    .get(number as usize)
                    .copied()
                    .unwrap_or_default();
                size.tokens -= u64::from(tokens);
            }
        }
    }
}

impl<'a> DocEntry<'a> {
    pub(super) fn of(row: &'a StoredMemory, length: u32) -> Self {
        let memory = &row.memory;
        let millis =
            |time: Option<jiff::Timestamp>| time.map_or(i64::MIN, jiff::Timestamp::as_millisecond);
        Self {
            key: row.key,
            fingerprint: row.fingerprint,
            id: &memory.id,
            created: millis(memory.created_at),
            updated: millis(memory.updated_at),
            length,
            status: memory.status,
            project: memory.project.as_deref().unwrap_or_default(),
            alias: memory.project_alias.as_deref().unwrap_or_default(),
            session: memory.session.as_deref().unwrap_or_default(),
            session_id: memory.session_id.as_deref().unwrap_or_default(),
            kind: memory.kind.as_deref().unwrap_or_default(),
            tags: memory.concepts.iter().map(String::as_str).collect(),
            files: memory.files.iter().map(String::as_str).collect(),
            superseded_by: memory.superseded_by.as_deref(),
        }
    }
}

/// The documents of an index that a store still has.
struct SeenDocs(Vec<bool>);

impl SeenDocs {
    fn new(documents: usize) -> Self {
        Self(vec![false; documents])
    }

    /// Adds a document. Returns whether it was not seen before.
    fn insert(&mut self, doc: DocId) -> bool {
        self.0
            .get_mut(doc as usize)
            .is_some_and(|seen| !std::mem::replace(seen, true))
    }

    fn contains(&self, doc: DocId) -> bool {
        self.0.get(doc as usize).copied().unwrap_or(false)
    }
}

/// The key, the hash and the status of every row of a store.
#[derive(Debug, Default)]
pub struct Listing {
    rows: Vec<(RowKey, u64, Status)>,
    rejected: HashSet<Box<str>>,
}

impl Listing {
    /// Lists the rows of a snapshot.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn read<R: Records>(snapshot: &R) -> Result<Self, R::Error> {
        let mut listing = Self::default();
        for row in snapshot.list()? {
            match row {
                ListedRow::Rejected(id) => {
                    listing.rejected.insert(id.into());
                }
                ListedRow::There(key, fingerprint, status) => {
                    listing.rows.push((key, fingerprint, status))
                }
            }
        }
        Ok(listing)
    }
}

/// What changed in a store since its index was built.
#[derive(Debug, Default)]
pub struct Changes {
    added: Vec<StoredMemory>,
    removed: Vec<Box<str>>,
    rejected: HashSet<Box<str>>,
    duplicate_ids: usize,
    without_id: usize,
    has_status: bool,
}
