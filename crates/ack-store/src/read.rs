//! Answers queries about the memories of a store. Each query runs inside one snapshot. Some
//! functions leave out rows that the status filter does not allow; others return them with their
//! status, and the caller decides.

use ack_api::source::{Claim, ListedRow, Record, Records, RowKey, StoredMemory, Visit};
use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, Row, ToSql};

pub use super::curated::{CuratedMemory, QueueRows, ReviewDates};
use super::decisions::JoinedStatus;
use super::layout::{Field, MemorySource, exact};
use super::rows_by_id::RowsById;
use super::{Snapshot, record, values};
use crate::StoreError;
use ack_api::decision::Decision;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::text;
use ack_api::time;
use ack_api::{Counts, HistoryEntry};

/// What the history says about a decision that the seal of the log does not know.
const FOREIGN: &str = "not written by ack-memory on this machine";

/// A row during a scan. It is decoded on demand.
struct ScannedRow<'a> {
    key: RowKey,
    joined: JoinedStatus<'a>,
    fingerprint: u64,
    row: &'a Row<'a>,
    source: &'a MemorySource,
    snapshot: &'a Snapshot<'a>,
}

/// Computes the fingerprint of a row.
type Fingerprint<'a> = &'a mut dyn FnMut() -> rusqlite::Result<u64>;

impl Record for ScannedRow<'_> {
    type Error = StoreError;

    fn key(&self) -> RowKey {
        self.key
    }

    fn status(&self) -> Status {
        self.joined.status
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn id(&self) -> Result<String, StoreError> {
        self.snapshot.map_sqlite(record::id(self.row))
    }

    fn memory(&self) -> Result<Memory, StoreError> {
        self.snapshot
            .map_sqlite(record::memory(self.row, self.source, self.snapshot.rule()))
    }
}

impl Records for Snapshot<'_> {
    type Error = StoreError;

    fn has_status(&self) -> bool {
        self.layout.has_status()
    }

    fn scan(&self, visit: Visit<'_, StoreError>) -> Result<(), StoreError> {
        self.scanned.set(true);
        let mut bytes = Vec::new();
        for (number, source) in self.sources() {
            let sql = source.query(&source.stored_order());
            let mut statement = self.map_sqlite(self.connection.prepare_cached(&sql))?;
            let mut rows = self.map_sqlite(statement.query([]))?;
            while let Some(row) = self.map_sqlite(rows.next())? {
                let joined = self.map_sqlite(record::joined(row, source, self.rule()))?;
                let key = self.map_sqlite(record::key(row, number))?;
                let fingerprint = record::fingerprint(row, source, joined.decision, &mut bytes);
                let fingerprint = self.map_sqlite(fingerprint)?;
                visit(&ScannedRow {
                    key,
                    joined,
                    fingerprint,
                    row,
                    source,
                    snapshot: self,
                })?;
            }
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<ListedRow>, StoreError> {
        self.collect_rows(|key, status, row, fingerprint| {
            Ok(Some(match status {
                Status::Rejected => ListedRow::Rejected(record::id(row)?),
                _ => ListedRow::Present(key, fingerprint()?, status),
            }))
        })
    }

    fn rows(&self, wanted: &[RowKey]) -> Result<Vec<StoredMemory>, StoreError> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut bytes = Vec::new();
        for (number, source) in self.sources() {
            let Some(row_number) = &source.row_number else {
                continue;
            };
            let sql = source.query(&format!(" WHERE {row_number} = ?1"));
            for key in wanted.iter().filter(|key| key.source == number) {
                found.extend(self.read_rows(&sql, [key.rowid], |row| {
                    let joined = record::joined(row, source, self.rule())?;
                    Ok(StoredMemory {
                        key: *key,
                        fingerprint: record::fingerprint(row, source, joined.decision, &mut bytes)?,
                        memory: record::memory(row, source, self.rule())?,
                    })
                })?);
            }
        }
        Ok(found)
    }
}

impl Snapshot<'_> {
    /// The connection, which cannot write. Only `import` uses it, to compare with what it is about
    /// to write; answers use the methods of this type.
    pub const fn connection(&self) -> &Connection {
        self.connection
    }

    /// The database file.
    pub const fn path(&self) -> &Path {
        self.path
    }

    /// The key, fingerprint and id of every memory that may be served and has a row number, in
    /// stored order. Of several rows with the same id, the one with the strongest [`Claim`] is
    /// returned.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn fingerprints(&self) -> Result<Vec<(RowKey, u64, Box<str>)>, StoreError> {
        let rows = self.collect_rows(|key, status, row, fingerprint| {
            if status == Status::Rejected || key.rowid == 0 {
                return Ok(None);
            }
            Ok(Some((status, key, fingerprint()?, record::id(row)?)))
        })?;
        let mut chosen = RowsById::default();
        for (status, key, fingerprint, id) in rows {
            let id_text = id.as_str().into();
            let read = || Ok::<_, StoreError>((key, fingerprint, id_text));
            chosen.add(id.clone(), Claim::new(status, key), read)?;
        }
        Ok(chosen.into_rows().collect())
    }

    /// Collects what `make` returns for each row. It gets the row's key, its status, the row
    /// itself, and a function for its fingerprint.
    fn collect_rows<T: Send>(
        &self,
        make: impl Fn(RowKey, Status, &Row<'_>, Fingerprint<'_>) -> rusqlite::Result<Option<T>> + Sync,
    ) -> Result<Vec<T>, StoreError> {
        self.scanned.set(true);
        let mut gathered = Vec::new();
        let rule = self.rule();
        for (number, source) in self.sources() {
            let scan = |connection: &Connection, within: &str| {
                let mut statement = connection.prepare(&source.query(within))?;
                let mut rows = statement.query([])?;
                let (mut produced, mut bytes) = (Vec::new(), Vec::new());
                while let Some(row) = rows.next()? {
                    let joined = record::joined(row, source, rule)?;
                    let key = record::key(row, number)?;
                    produced.extend(make(key, joined.status, row, &mut || {
                        record::fingerprint(row, source, joined.decision, &mut bytes)
                    })?);
                }
                Ok(produced)
            };
            gathered.append(&mut self.scan_in_parallel(source, scan)?);
        }
        Ok(gathered)
    }

    /// Reads the memories with the given keys, in any order. Rows that are gone, or whose status is
    /// not allowed now, are left out.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn memories(
        &self,
        wanted: &[(RowKey, &str)],
        filter: StatusFilter,
    ) -> Result<HashMap<String, Memory>, StoreError> {
        let mut found = HashMap::with_capacity(wanted.len());
        for (number, source) in self.sources() {
            let by_row = source
                .row_number
                .map(|number| source.query(&format!(" WHERE {number} = ?1")));
            for (key, id) in wanted.iter().filter(|(key, _)| key.source == number) {
                let memory = match &by_row {
                    Some(sql) => self.find_in_rows(sql, [key.rowid], |row| {
                        record::memory(row, source, self.rule()).map(Some)
                    })?,
                    None => {
                        let found = self.without_row_number((number, source), id)?;
                        found.map(|(_, memory)| memory)
                    }
                };
                // In the meantime, the row number may have been reused for another memory.
                if let Some(memory) =
                    memory.filter(|memory| memory.id == *id && filter.allows(memory.status))
                {
                    found.insert(memory.id.clone(), memory);
                }
            }
        }
        Ok(found)
    }

    /// The memory with this id, whatever its status. Of several rows with the id, the one with the
    /// strongest [`Claim`] is returned. Callers check [`Memory::status`] before they show it.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn by_id(&self, id: &str) -> Result<Option<Memory>, StoreError> {
        Ok(self.claimed_by_id(id)?.map(|(_, memory)| memory))
    }

    /// Like [`Snapshot::by_id`], with the claim of its row.
    pub(super) fn claimed_by_id(&self, id: &str) -> Result<Option<(Claim, Memory)>, StoreError> {
        let mut found = Vec::new();
        for (number, source) in self.sources() {
            found.extend(match source.row_number {
                Some(_) => self.in_source((number, source), id)?,
                None => self.without_row_number((number, source), id)?,
            });
        }
        Ok(strongest(found.into_iter()))
    }

    /// Finds a row in a table without row numbers. Its indexes are ordered by a collation that only
    /// the writing program may know, so a lookup can miss a row that exists.
    fn without_row_number(
        &self,
        source: (u8, &MemorySource),
        id: &str,
    ) -> Result<Option<(Claim, Memory)>, StoreError> {
        match self.in_source(source, id)? {
            None => self.by_shown_id(source, id),
            found => Ok(found),
        }
    }

    /// Scans a table without row numbers for the row whose displayed id matches (see
    /// [`record::memory`]).
    fn by_shown_id(
        &self,
        source: (u8, &MemorySource),
        id: &str,
    ) -> Result<Option<(Claim, Memory)>, StoreError> {
        self.strongest_row(source, "", &[], |row| Ok(record::id(row)? == id))
    }

    fn in_source(
        &self,
        source: (u8, &MemorySource),
        id: &str,
    ) -> Result<Option<(Claim, Memory)>, StoreError> {
        let Some((condition, parameter)) = source.1.id.condition(id) else {
            return Ok(None);
        };
        let clauses = format!(" WHERE {condition}");
        self.strongest_row(source, &clauses, &[&parameter], |_| Ok(true))
    }

    /// The row with the strongest claim among the matching ones.
    fn strongest_row(
        &self,
        (number, source): (u8, &MemorySource),
        clauses: &str,
        parameters: &[&dyn ToSql],
        matches: impl Fn(&Row<'_>) -> rusqlite::Result<bool>,
    ) -> Result<Option<(Claim, Memory)>, StoreError> {
        let rows = self.read_rows(&source.query(clauses), parameters, |row| {
            if !matches(row)? {
                return Ok(None);
            }
            let memory = record::memory(row, source, self.rule())?;
            Ok(Some((
                Claim::new(memory.status, record::key(row, number)?),
                memory,
            )))
        })?;
        Ok(strongest(rows.into_iter().flatten()))
    }

    /// How many rows have each status.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        if !self.decisions.is_empty() || self.holds_back() {
            return self.counts_by_id();
        }
        let mut counts = Counts {
            deleted: self.deleted()?,
            ..Counts::default()
        };
        for (_, source) in self.sources() {
            let column = source.column(Field::Status);
            let sql = format!(
                "SELECT {}, count(*) FROM {} GROUP BY 1",
                exact(column.unwrap_or("NULL")),
                source.table
            );
            let groups = self.read_rows(&sql, [], |row| {
                let status = match column {
                    None => Some(self.unreviewed.status()),
                    Some(_) => values::parse_status(row.get_ref(0)?).ok(),
                };
                Ok((status, row.get::<_, i64>(1)?))
            })?;
            for (status, count) in groups {
                let slot = match status {
                    Some(Status::Approved) => &mut counts.approved,
                    Some(Status::Promoted) => &mut counts.promoted,
                    Some(Status::Staging) => &mut counts.staging,
                    Some(Status::Rejected) => &mut counts.rejected,
                    None => &mut counts.unknown,
                };
                *slot += u64::try_from(count).unwrap_or_default();
            }
        }
        Ok(counts)
    }

    /// How many rows are left out, because their program marked them as deleted.
    pub(super) fn deleted(&self) -> Result<u64, StoreError> {
        let Some(sql) = &self.layout.deleted else {
            return Ok(0);
        };
        let count: i64 = self.map_sqlite(self.connection.query_row(sql, [], |row| row.get(0)))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// The decisions about a memory, oldest first: from the store's own log, then from the decision
    /// log.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        // If several memories have this id, the history is that of the one that is shown.
        let curated = self.curated(id)?;
        let like = curated
            .as_ref()
            .and_then(|curated| self.decision_about_content(curated));
        let shown = curated.filter(|curated| curated.has_duplicate_id);
        let mut entries = match &shown {
            // An entry does not tell which of them it is about.
            Some(_) => Vec::new(),
            None => self.stored_history(id)?,
        };
        let decisions = self.decisions.about(id).iter().enumerate();
        let decisions = decisions.filter(|(_, decision)| {
            let digest = shown.as_ref().map(|shown| &shown.digest);
            digest.is_none_or(|digest| *digest == decision.digest)
        });
        let decisions = decisions
            .map(|(position, decision)| (decision, self.decisions.is_foreign(id, position)))
            .chain(like.map(|decision| (decision, false)));
        entries.extend(decisions.map(|(decision, is_foreign)| {
            let line = |text: &str| text::line(text, 500);
            let about_other = format!("about `{}`, which has the same text", decision.id);
            HistoryEntry {
                action: decision.verdict.as_str().to_owned(),
                previous_status: Some(decision.was.as_str().to_owned()),
                new_status: decision
                    .verdict
                    .status()
                    .map(|status| status.as_str().to_owned()),
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
        }));
        for entry in &mut entries {
            let Some(into) = entry.into.take() else {
                continue;
            };
            // A memory that is not served is not named either.
            let other = self.by_id(&into)?;
            let is_served = other.is_some_and(|other| other.status.is_served());
            entry.into = Some(into).filter(|_| is_served);
        }
        Ok(entries)
    }

    /// The decision about another memory with the same content, if that determines the status.
    fn decision_about_content(&self, curated: &CuratedMemory) -> Option<&Decision> {
        let lines = self.decisions.about(curated.decided_as.as_deref()?);
        let contents = [Some(&curated.digest), curated.text_digest.as_ref()];
        lines
            .iter()
            .rfind(|line| contents.contains(&Some(line.text.as_ref().unwrap_or(&line.digest))))
    }

    fn stored_history(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        let Some(source) = &self.layout.log else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT {} FROM {} WHERE {} = ?1 ORDER BY {}, {} LIMIT 200",
            source.columns.join(", "),
            source.table,
            exact(&source.memory),
            exact(&source.columns[5]),
            exact(source.order)
        );
        self.read_rows(&sql, [id], |row| {
            let text = |position| -> rusqlite::Result<Option<String>> {
                let (value, _) = values::text_value(row.get_ref(position)?);
                let line = value.map(|value| text::line(&value, 500));
                Ok(line.filter(|line| !line.is_empty()))
            };
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

/// The memory with the strongest claim; of equal ones the first.
fn strongest(memories: impl Iterator<Item = (Claim, Memory)>) -> Option<(Claim, Memory)> {
    memories.reduce(
        |best, other| {
            if other.0.beats(best.0) { other } else { best }
        },
    )
}
