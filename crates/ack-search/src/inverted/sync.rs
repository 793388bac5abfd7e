//! Synchronizes an index with its store, row by row: a row whose fingerprint changed is indexed
//! again, and the rest stays.

use std::thread;

use rustc_hash::FxHashSet as HashSet;

use super::builder::Builder;
use super::docs::INDEXED_STATUSES;
use super::{DocEntry, DocId, Index};
use ack_api::memory::Status;
use ack_api::source::{ListedRow, Records, RowKey, StoredMemory};

/// If more than one in this many documents is dead, the index should be rebuilt.
const REBUILD_DEAD_RATIO: usize = 8;
/// With at most this many dead documents, it never should be.
const MAX_TOLERATED_DEAD: usize = 64;

impl Index {
    /// Builds the index of everything in a snapshot.
    pub fn build<R: Records>(snapshot: &R) -> Result<Self, R::Error> {
        let mut index = Self::default();
        thread::scope(|scope| {
            let mut builder = Builder::new(&mut index, scope);
            snapshot.scan(&mut |row| {
                if row.status == Status::Rejected {
                    builder.index.rejected.insert((row.id)()?.into());
                } else {
                    builder.push(row.read()?);
                }
                Ok(())
            })?;
            builder.finish();
            Ok::<(), R::Error>(())
        })?;
        index.has_status = snapshot.has_status();
        index.finish_loading();
        Ok(index)
    }

    /// Finds what changed since the index was built, from a listing of the rows of `snapshot`. It
    /// does not change the index, so a disturbed snapshot can be read again.
    pub fn changes<R: Records>(&self, listing: Listing, snapshot: &R) -> Result<Changes, R::Error> {
        let mut changes = Changes {
            rejected: listing.rejected,
            has_status: snapshot.has_status(),
            ..Changes::default()
        };
        let mut kept = vec![false; self.docs.count()];
        let mut wanted: Vec<RowKey> = Vec::new();
        let mut last = None;
        for (key, fingerprint, status) in &listing.rows {
            // Nearly every row is unchanged and costs no more than this lookup.
            let doc = self.next_doc_of_row(&mut last, *key);
            let Some(doc) = doc.filter(|doc| self.is_unchanged(*doc, *fingerprint, *status)) else {
                wanted.push(*key);
                continue;
            };
            if self.doc(doc).is_some_and(|known| known.status != *status) {
                changes.decided.push((doc, *status));
            }
            if let Some(is_kept) = kept.get_mut(doc as usize) {
                *is_kept = true;
            }
        }
        let is_gone = |doc: &DocId| kept.get(*doc as usize) == Some(&false);
        changes.gone = self.live().map(|(doc, _)| doc).filter(is_gone).collect();
        // Reading single rows only pays off for a few of them, and rows without a number can only
        // be read by a scan.
        if wanted.len() * 4 > listing.rows.len() || wanted.iter().any(|key| key.rowid == 0) {
            let wanted: HashSet<RowKey> = wanted.into_iter().collect();
            snapshot.scan(&mut |row| {
                if row.status != Status::Rejected && wanted.contains(&row.key) {
                    changes.added.push(row.read()?);
                }
                Ok(())
            })?;
        } else {
            changes.added = snapshot.rows(&wanted)?;
        }
        Ok(changes)
    }

    /// The live document of a row. In the order of the store, it is nearly always the one after the
    /// last one found.
    fn next_doc_of_row(&self, last: &mut Option<DocId>, key: RowKey) -> Option<DocId> {
        let next = last.map_or(0, |last| last + 1);
        let is_next = key.rowid != 0
            && self.docs.is_live(next)
            && self.doc(next).is_some_and(|doc| doc.key == key);
        let found = if is_next { Some(next) } else { self.docs.of_row(key) };
        *last = found.or(*last);
        found
    }

    /// Whether a live document need not be indexed again. A decision changes no word of a memory,
    /// but the frequencies of a table that is searched on disk are those of the statuses in it.
    fn is_unchanged(&self, number: DocId, fingerprint: u64, status: Status) -> bool {
        let is_resident = number >= self.first_resident();
        self.doc(number).is_some_and(|doc| {
            doc.fingerprint == fingerprint && (doc.status == status || is_resident)
        })
    }

    /// Applies changes that [`Index::changes`] found. Returns false and does nothing if so many
    /// documents would be dead that the index should be rebuilt.
    pub fn apply(&mut self, changes: Changes) -> bool {
        // Dead remote documents cost little, and the next build of the table drops them.
        let is_resident = self.remote.is_none();
        let dead = self.docs.count() - self.live().count() + changes.gone.len();
        if is_resident
            && dead * REBUILD_DEAD_RATIO > self.docs.count() + changes.added.len()
            && dead > MAX_TOLERATED_DEAD
        {
            return false;
        }
        self.rejected = changes.rejected;
        self.has_status = changes.has_status;
        // The rows that they count are never in the index, so they are among those added.
        (self.duplicate_ids, self.without_id) = (0, 0);
        changes.gone.into_iter().for_each(|doc| self.docs.delete(doc));
        for (doc, status) in changes.decided {
            self.docs.set_status(doc, status);
        }
        thread::scope(|scope| {
            let mut builder = Builder::new(self, scope);
            changes.added.into_iter().for_each(|row| builder.push(row));
            builder.finish();
        });
        self.measure();
        true
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

/// The key, the hash and the status of every row of a store.
#[derive(Debug, Default)]
pub struct Listing {
    rows: Vec<(RowKey, u64, Status)>,
    rejected: HashSet<Box<str>>,
}

/// The bytes of a row in a written listing: its table, its number, its hash and its status.
const LISTED_ROW_BYTES: usize = 1 + 8 + 8 + 1;

impl Listing {
    /// Lists the rows of a snapshot.
    pub fn read<R: Records>(snapshot: &R) -> Result<Self, R::Error> {
        let mut listing = Self::default();
        for row in snapshot.list()? {
            match row {
                ListedRow::Rejected(id) => {
                    listing.rejected.insert(id.into());
                }
                ListedRow::Present(key, fingerprint, status) => {
                    listing.rows.push((key, fingerprint, status))
                }
            }
        }
        Ok(listing)
    }

    /// The listing as bytes: the number of rows, the rows, and the rejected ids, each ended by a
    /// line feed, which no id contains.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + self.rows.len() * LISTED_ROW_BYTES);
        bytes.extend_from_slice(&(self.rows.len() as u64).to_le_bytes());
        for (key, fingerprint, status) in &self.rows {
            let status = INDEXED_STATUSES.iter().position(|listed| listed == status);
            bytes.push(key.source);
            bytes.extend_from_slice(&key.rowid.to_le_bytes());
            bytes.extend_from_slice(&fingerprint.to_le_bytes());
            bytes.push(status.and_then(|it| u8::try_from(it).ok()).unwrap_or(u8::MAX));
        }
        for id in &self.rejected {
            bytes.extend_from_slice(id.as_bytes());
            bytes.push(b'\n');
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (rows, rejected) = rest.split_at_checked(count.checked_mul(LISTED_ROW_BYTES)?)?;
        let rows = rows.chunks_exact(LISTED_ROW_BYTES).map(|row| {
            let (source, row) = row.split_first()?;
            let (rowid, row) = row.split_first_chunk::<8>()?;
            let (fingerprint, row) = row.split_first_chunk::<8>()?;
            let key = RowKey { source: *source, rowid: i64::from_le_bytes(*rowid) };
            let status = INDEXED_STATUSES.get(usize::from(*row.first()?))?;
            Some((key, u64::from_le_bytes(*fingerprint), *status))
        });
        let rejected = std::str::from_utf8(rejected).ok()?.split_terminator('\n');
        Some(Self {
            rows: rows.collect::<Option<_>>()?,
            rejected: rejected.map(Into::into).collect(),
        })
    }
}

#[derive(Debug, Default)]
pub struct Changes {
    /// The documents whose rows are gone or have changed.
    gone: Vec<DocId>,
    /// The documents of which only the status changed.
    decided: Vec<(DocId, Status)>,
    /// All other rows, also those that do not own their id.
    added: Vec<StoredMemory>,
    rejected: HashSet<Box<str>>,
    has_status: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_survives_being_written() {
        let row = |rowid, status| (RowKey { source: 1, rowid }, 7 << 60, status);
        let listing = Listing {
            rows: vec![row(-3, Status::Staging), row(9, Status::Promoted)],
            rejected: ["a b", ""].into_iter().map(Into::into).collect(),
        };
        let bytes = listing.to_bytes();
        let read = Listing::from_bytes(&bytes).unwrap();
        assert_eq!((read.rows, read.rejected), (listing.rows, listing.rejected));
        assert!(Listing::from_bytes(&bytes[..20]).is_none());
    }
}
