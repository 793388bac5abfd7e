//! Answers queries about the memories of a store. Each query runs inside one snapshot. Some
//! functions leave out rows that the status filter does not allow; others return them with their
//! status, and the caller decides.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

pub use crate::curated::{CuratedMemory, QueueRows, ReviewDates};
use crate::layout::{Field, exact};
use crate::record::StoredRow;
use crate::rows_by_id::RowsById;
use crate::snapshot::AlteredIds;
use crate::{Snapshot, StoreError, values};
use ack_api::decision::Decision;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::source::{Claim, ListedRow, Records, RowKey, ScannedRow, StoredMemory, Visit};
use ack_api::{Counts, HistoryEntry, text, time};

/// What the history says about a decision that the seal of the log does not know.
const FOREIGN: &str = "not written by ack-memory on this machine";

impl Records for Snapshot<'_> {
    type Error = StoreError;

    fn has_status(&self) -> bool {
        self.layout.has_status()
    }

    fn scan(&self, visit: Visit<'_, StoreError>) -> Result<(), StoreError> {
        self.visit_all(|row| {
            visit(ScannedRow {
                key: row.key,
                status: row.joined.status,
                fingerprint: row.fingerprint()?,
                id: &|| Ok(row.id()?),
                memory: &|| Ok(row.memory()?),
            })
        })
    }

    fn list(&self) -> Result<Vec<ListedRow>, StoreError> {
        self.scan_in_parallel(None, || {
            |row: &StoredRow<'_>| {
                Ok(Some(match row.joined.status {
                    Status::Rejected => ListedRow::Rejected(row.id()?),
                    status => ListedRow::Present(row.key, row.fingerprint()?, status),
                }))
            }
        })
    }

    fn rows(&self, wanted: &[RowKey]) -> Result<Vec<StoredMemory>, StoreError> {
        self.rows_with_keys(wanted, |row| {
            let (fingerprint, memory) = (row.fingerprint()?, row.memory()?);
            Ok(StoredMemory { key: row.key, fingerprint, memory })
        })
    }
}

impl Snapshot<'_> {
    /// The connection, which cannot write. Only `import` uses it, to compare with what it is about
    /// to write; answers use the methods of this type.
    pub const fn connection(&self) -> &Connection {
        self.connection
    }

    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Every memory that may be served, in stored order: its row, hash and status. Of several rows
    /// with an id, the one with the strongest [`Claim`].
    pub fn fingerprints(&self) -> Result<Vec<(RowKey, u64, Status)>, StoreError> {
        let rows = self.scan_in_parallel(None, || {
            |row: &StoredRow<'_>| {
                let status = row.joined.status;
                if status == Status::Rejected {
                    return Ok(None);
                }
                Ok(Some((row.id()?, (row.key, row.fingerprint()?, status))))
            }
        })?;
        let mut chosen = RowsById::default();
        for (id, row) in rows {
            let (key, _, status) = row;
            chosen.add(id, Claim::new(status, key), || Ok(row))?;
        }
        Ok(chosen.into_rows().collect())
    }

    /// Rows that are gone, or whose status is not allowed now, are left out.
    pub fn memories(
        &self,
        wanted: &[(RowKey, &str)],
        filter: StatusFilter,
    ) -> Result<HashMap<String, Memory>, StoreError> {
        let keys: Vec<RowKey> = wanted.iter().map(|(key, _)| *key).collect();
        let mut memories = self.rows_with_keys(&keys, |row| Ok((row.key, row.memory()?)))?;
        // In the meantime, a row number may have been reused for another memory.
        memories.retain(|(key, memory)| {
            filter.allows(memory.status) && wanted.contains(&(*key, memory.id.as_str()))
        });
        Ok(memories.into_iter().map(|(_, memory)| (memory.id.clone(), memory)).collect())
    }

    /// What `read` makes of the rows with these keys.
    fn rows_with_keys<T>(
        &self,
        keys: &[RowKey],
        mut read: impl FnMut(&StoredRow<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::with_capacity(keys.len());
        for table in self.tables() {
            let clauses = format!(" WHERE {} = ?1", table.source.row_number);
            for key in keys.iter().filter(|key| key.source == table.number) {
                found.extend(self.whole_rows(table, &clauses, [key.rowid], &mut read)?);
            }
        }
        Ok(found)
    }

    /// The memory with this id, whatever its status. Of several rows with the id, the one with the
    /// strongest [`Claim`] is returned. Callers check [`Memory::status`] before they show it.
    pub fn by_id(&self, id: &str) -> Result<Option<Memory>, StoreError> {
        Ok(self.claimed_by_id(id)?.map(|(_, memory)| memory))
    }

    pub(crate) fn claimed_by_id(&self, id: &str) -> Result<Option<(Claim, Memory)>, StoreError> {
        Ok(strongest(self.rows_with_id(id, |row| Ok(row.memory()?))?))
    }

    /// What `read` makes of each row with an id, with the row's claim to it.
    pub(crate) fn rows_with_id<T>(
        &self,
        id: &str,
        read: impl Fn(&StoredRow<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<(Claim, T)>, StoreError> {
        let mut found = Vec::new();
        for table in self.tables() {
            if let Some((condition, parameter)) = table.source.id.condition(id) {
                let clauses = format!(" WHERE {condition}");
                let read = |row: &StoredRow<'_>| Ok((row.claim(), read(row)?));
                found.extend(self.whole_rows(table, &clauses, [parameter], read)?);
            }
        }
        if found.is_empty() {
            let altered = self.known_or(|it| &mut it.altered_ids, || self.altered_ids())?;
            let keys = altered.get(id).map_or(&[][..], Vec::as_slice);
            found = self.rows_with_keys(keys, |row| Ok((row.claim(), read(row)?)))?;
        }
        Ok(found)
    }

    fn altered_ids(&self) -> Result<Arc<AlteredIds>, StoreError> {
        let mut altered = AlteredIds::default();
        for table in self.tables() {
            self.find_in_rows(&table.source.query_fields(&[], ""), [], |row| {
                let stored = values::text_of(row.get_ref(1)?);
                let shown = text::id(&stored);
                if shown != stored {
                    let key = RowKey { source: table.number, rowid: row.get(0)? };
                    altered.entry(shown).or_default().push(key);
                }
                Ok(None::<()>)
            })?;
        }
        Ok(Arc::new(altered))
    }

    pub fn counts(&self) -> Result<Counts, StoreError> {
        if !self.decisions.is_empty() || self.holds_back() {
            return self.counts_by_id();
        }
        self.known_or(|it| &mut it.counts, || self.count_statuses())
    }

    fn count_statuses(&self) -> Result<Counts, StoreError> {
        let mut counts = Counts { deleted: self.deleted()?, ..Counts::default() };
        for source in &self.layout.sources {
            let column = source.column(Field::Status);
            let status = exact(column.unwrap_or("NULL"));
            let sql = format!("SELECT {status}, count(*) FROM {} GROUP BY 1", source.table);
            let groups = self.read_rows(&sql, [], |row| {
                let status = match column {
                    None => Some(self.store.unreviewed().status()),
                    Some(_) => values::parse_status(row.get_ref(0)?).ok(),
                };
                Ok((status, row.get::<_, i64>(1)?))
            })?;
            for (status, count) in groups {
                *slot(&mut counts, status) += u64::try_from(count).unwrap_or_default();
            }
        }
        Ok(counts)
    }

    pub(crate) fn deleted(&self) -> Result<u64, StoreError> {
        let Some(sql) = &self.layout.deleted else { return Ok(0) };
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Oldest first: from the store's own log, then from the decision log.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        // If several memories have this id, the history is that of the one that is shown.
        let curated = self.curated(id)?;
        let like = curated.as_ref().and_then(|curated| self.decision_about_content(curated));
        let shown = curated.filter(|curated| curated.has_duplicate_id);
        let mut entries = match &shown {
            // An entry does not tell which of them it is about.
            Some(_) => Vec::new(),
            None => self.stored_history(id)?,
        };
        for (position, decision) in self.decisions.about(id).iter().enumerate() {
            if shown.as_ref().is_none_or(|shown| shown.digest == decision.digest) {
                entries.push(history_entry(decision, id, self.decisions.is_foreign(id, position)));
            }
        }
        entries.extend(like.map(|decision| history_entry(decision, id, false)));
        for entry in &mut entries {
            let Some(into) = entry.into.take() else { continue };
            // A memory that is not served is not named either.
            let other = self.by_id(&into)?;
            let is_served = other.is_some_and(|other| other.status.is_served());
            entry.into = Some(into).filter(|_| is_served);
        }
        Ok(entries)
    }

    /// The decision about another memory with the same content, if that determines the status.
    fn decision_about_content(&self, curated: &CuratedMemory) -> Option<&Decision> {
        let mut lines = self.decisions.about(curated.decided_as.as_deref()?).iter();
        let contents = [Some(&curated.digest), curated.text_digest.as_ref()];
        lines.rfind(|line| contents.contains(&Some(line.text.as_ref().unwrap_or(&line.digest))))
    }

    fn stored_history(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        let Some(source) = &self.layout.log else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT {} FROM {} WHERE {} = ?1 ORDER BY {}, {} LIMIT 200",
            source.columns.join(", "),
            source.table,
            exact(&source.memory),
            exact(&source.columns[5]),
            exact(source.order)
        );
        self.read_rows(&sql, [id], |row| {
            let text = |column| row.get_ref(column).map(|value| values::line(value, 500));
            Ok(HistoryEntry {
                into: None,
                action: text(0)?.unwrap_or_default(),
                previous_status: text(1)?,
                new_status: text(2)?,
                reason: text(3)?,
                actor: text(4)?,
                created_at: values::time_value(row.get_ref(5)?).map(time::to_rfc3339),
            })
        })
    }
}

/// A decision in the history of a memory, which it may be about only by its content.
fn history_entry(decision: &Decision, id: &str, is_foreign: bool) -> HistoryEntry {
    let line = |text: &str| text::line(text, 500);
    let about_other = format!("about `{}`, which has the same text", decision.id);
    let new_status = decision.status();
    HistoryEntry {
        action: decision.verdict.as_str().to_owned(),
        previous_status: Some(decision.was.as_str().to_owned()),
        new_status: new_status.map(|status| status.as_str().to_owned()),
        into: decision.into.as_deref().map(text::id),
        reason: match decision.reason_with_day().as_deref() {
            reason if text::id(&decision.id) == id => reason.map(line),
            Some(reason) => Some(line(&format!("{reason} ({about_other})"))),
            None => Some(line(&about_other)),
        },
        actor: Some(if is_foreign {
            line(&format!("{} ({FOREIGN})", decision.actor))
        } else {
            line(&decision.actor)
        }),
        created_at: decision.time.parse().ok().map(time::to_rfc3339),
    }
}

/// The count of a status; `None` stands for an unknown word.
pub(crate) const fn slot(counts: &mut Counts, status: Option<Status>) -> &mut u64 {
    match status {
        Some(Status::Approved) => &mut counts.approved,
        Some(Status::Promoted) => &mut counts.promoted,
        Some(Status::Staging) => &mut counts.staging,
        Some(Status::Rejected) => &mut counts.rejected,
        None => &mut counts.unknown,
    }
}

/// What has the strongest claim; of equal ones the first.
pub(crate) fn strongest<T>(rows: Vec<(Claim, T)>) -> Option<(Claim, T)> {
    rows.into_iter().reduce(|best, other| if other.0.beats(best.0) { other } else { best })
}
