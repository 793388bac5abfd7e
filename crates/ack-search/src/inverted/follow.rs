//! Keeping an index in step with its store, row by row: a row whose fingerprint changed is indexed anew, the rest stays.

use std::thread;

use rustc_hash::FxHashSet as HashSet;

use super::builder::Builder;
use super::{DocId, Entry, Index};
use crate::numbers::hash;
use ack_api::memory::Status;
use ack_api::source::{ListedRow, Records, RowKey, StoredMemory};

/// When more than this share of the documents is dead, the index is built anew.
const DEAD_SHARE: usize = 8;
/// So few of them are never worth it.
const FEW_DEAD: usize = 64;

impl Index {
    /// Builds the index of everything a snapshot holds.
    ///
    /// # Errors
    /// Why the store cannot be read.
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

    /// Reads what changed since the index was made: the rows to add or replace, and the ids that are gone. Nothing is
    /// changed yet, because a snapshot that was disturbed is read again.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn changes<R: Records>(&self, snapshot: &R) -> Result<Changes, R::Error> {
        let mut changes = Changes {
            has_status: snapshot.has_status(),
            ..Changes::default()
        };
        let mut seen = vec![false; self.docs.count()];
        let mut mark = |doc: DocId| seen.get_mut(doc as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        let mut added: HashSet<Box<str>> = HashSet::default();
        let mut last = None;
        snapshot.scan(&mut |row| {
            if row.status() == Status::Rejected {
                changes.rejected.insert(row.id()?.into());
                return Ok(());
            }
            // Nearly every row is as it was, and costs no more than this.
            if let Some(number) = self.next_at(&mut last, row.key())
                && self
                    .doc(number)
                    .is_some_and(|doc| !doc.dead && doc.fingerprint == row.fingerprint() && doc.status == row.status())
            {
                mark(number);
                return Ok(());
            }
            let memory = row.memory()?;
            if memory.id.is_empty() {
                changes.without_id += 1;
                return Ok(());
            }
            let id: Box<str> = memory.id.as_str().into();
            let known = self.number(&id);
            let first = known.is_none_or(&mut mark) && added.insert(id);
            if first {
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
        changes.removed = self.missing(&seen);
        Ok(changes)
    }

    /// As [`Index::changes`], from rows that were listed, perhaps before this index was there. `snapshot` is the one they were
    /// listed in.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn changes_since<R: Records>(&self, listing: Listing, snapshot: &R) -> Result<Changes, R::Error> {
        let mut seen = vec![false; self.docs.count()];
        let mut mark = |doc: DocId| seen.get_mut(doc as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        let same = |number: DocId, fingerprint: u64, status: Status| {
            self.doc(number)
                .is_some_and(|doc| !doc.dead && doc.fingerprint == fingerprint && doc.status == status)
        };
        let mut wanted: Vec<RowKey> = Vec::new();
        let mut last = None;
        for (key, fingerprint, status) in &listing.rows {
            match self.next_at(&mut last, *key).filter(|number| same(*number, *fingerprint, *status)) {
                Some(number) => {
                    mark(number);
                }
                None => wanted.push(*key),
            }
        }
        // Reading row by row pays for few; and rows without a number can only be read one after the other.
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
            // Of rows with one id the first counts, also where a later one is as it was.
            let later = |doc: DocId| {
                self.doc(doc)
                    .is_some_and(|doc| (doc.key.source, doc.key.rowid) > (key.source, key.rowid))
            };
            let known = self.number(&id);
            let first = known.is_none_or(|doc| mark(doc) || later(doc)) && added.insert(id);
            if first {
                changes.added.push(row);
            } else {
                changes.duplicate_ids += 1;
            }
        }
        changes.removed = self.missing(&seen);
        Ok(changes)
    }

    /// The ids of live documents that were not seen.
    fn missing(&self, seen: &[bool]) -> Vec<Box<str>> {
        let unseen = self.by_id.iter().filter(|doc| !seen.get(*doc as usize).copied().unwrap_or(false));
        unseen.map(|doc| self.id(doc).into()).collect()
    }

    /// Applies what [`Index::changes`] found. Returns false, with nothing done, when building anew is the better way.
    pub fn apply(&mut self, changes: Changes) -> bool {
        let dying = changes.removed.len() + changes.added.iter().filter(|row| self.number(&row.memory.id).is_some()).count();
        // What lies in the vector table costs little when it is dead; `index` takes it out.
        let resident = self.outside.is_none();
        let dead = self.dead + dying;
        if resident && dead * DEAD_SHARE > self.docs.count() + changes.added.len() && dead > FEW_DEAD {
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

    fn kill(&mut self, id: &str) {
        if let Some(number) = self.number(id)
            && let Some(doc) = self.docs.get_mut(number)
        {
            doc.dead = true;
            self.by_id.remove(hash(id), number);
            self.by_row.remove(hash(&doc.key), number);
            if let Some(mark) = self.marks.get_mut(number as usize) {
                *mark = 0;
            }
            self.dead += 1;
            if let Some((documents, tokens)) = self.sizes.get_mut(&doc.status) {
                *documents -= 1;
                *tokens -= u64::from(self.lengths.get(number as usize).copied().unwrap_or_default());
            }
        }
    }
}

impl<'a> Entry<'a> {
    pub(super) fn of(row: &'a StoredMemory, length: u32) -> Self {
        let memory = &row.memory;
        let instant = |time: Option<jiff::Timestamp>| time.map_or(i64::MIN, jiff::Timestamp::as_millisecond);
        Self {
            key: row.key,
            fingerprint: row.fingerprint,
            id: &memory.id,
            created: instant(memory.created_at),
            updated: instant(memory.updated_at),
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

/// Every row of a store: where it lies, its hash and its status.
#[derive(Debug, Default)]
pub struct Listing {
    rows: Vec<(RowKey, u64, Status)>,
    rejected: HashSet<Box<str>>,
}

impl Listing {
    /// Lists the rows of a snapshot.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn read<R: Records>(snapshot: &R) -> Result<Self, R::Error> {
        let mut listing = Self::default();
        for row in snapshot.list()? {
            match row {
                ListedRow::Rejected(id) => {
                    listing.rejected.insert(id.into());
                }
                ListedRow::There(key, fingerprint, status) => listing.rows.push((key, fingerprint, status)),
            }
        }
        Ok(listing)
    }
}

/// What changed in a store since its index was made.
#[derive(Debug, Default)]
pub struct Changes {
    added: Vec<StoredMemory>,
    removed: Vec<Box<str>>,
    rejected: HashSet<Box<str>>,
    duplicate_ids: usize,
    without_id: usize,
    has_status: bool,
}
