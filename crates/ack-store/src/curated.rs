//! Memories with the data for a decision about them, and the review queue.

use std::collections::BTreeSet;

use ack_api::memory::{Memory, Status, StatusFilter, is_superseded};
use ack_api::source::Claim;
use ack_api::text;
use ack_api::{Counts, Warning};
use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Row, ToSql};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::decisions::{Digests, JoinedStatus, digests};
use super::layout::MemorySource;
use super::replaced::successor_of;
use super::rows_by_id::RowsById;
use super::{Snapshot, record};
use crate::StoreError;

/// A memory with the data for a decision about it.
#[derive(Debug, Clone)]
pub struct CuratedMemory {
    /// The memory, with its effective status.
    pub memory: Memory,
    /// The digest of its content.
    pub digest: String,
    /// The digest without the title, if that comes from the name of its file.
    pub text_digest: Option<String>,
    /// Whether the newest decision about it applies.
    pub is_decided: bool,
    /// Whether it changed after the newest decision, or that decision cannot be read.
    pub is_outdated: bool,
    /// The id of another memory with this content, if the decision about that one determines the
    /// status.
    pub decided_as: Option<String>,
    /// It is out of the review queue until this day.
    pub put_off_until: Option<Date>,
    /// Whether its stored text contains characters that are not shown: control characters, or
    /// characters that hide text from a reader.
    pub hides_text: bool,
    /// An approved memory that it is known to contradict: a link says so.
    pub contradicts: Option<String>,
    /// Whether another row has the same id. A decision cannot tell the two apart.
    pub has_duplicate_id: bool,
}

impl CuratedMemory {
    /// What a person should look at first.
    pub fn warnings(&self) -> Vec<Warning> {
        ack_flags::of(&self.memory, self.hides_text)
    }

    /// Whether nobody but a person who looked at it approves it.
    pub fn is_flagged(&self) -> bool {
        self.contradicts.is_some() || self.warnings().into_iter().any(Warning::is_flag)
    }

    /// Whether it is out of the review queue on a day.
    pub fn is_put_off(&self, today: Date) -> bool {
        self.put_off_until.is_some_and(|until| today < until)
    }
}

/// What the statistics of the review queue need to know about a memory.
#[derive(Debug, Clone, Copy)]
pub struct ReviewDates {
    /// The effective status.
    pub status: Status,
    /// When it was written.
    pub created: Option<Timestamp>,
    /// When it was reviewed.
    pub reviewed: Option<Timestamp>,
}

/// The review queue of a store.
#[derive(Debug, Default)]
pub struct QueueRows {
    /// The dates of every memory, with the day until which it is put off.
    pub dates: Vec<(ReviewDates, Option<Date>)>,
    /// The memories that wait, in stored order.
    pub waiting: Vec<CuratedMemory>,
    /// The ids that several rows have.
    pub duplicate_ids: HashSet<String>,
    /// Memories that agents see only until they see a newer one: the newer one's id and the older
    /// one's.
    pub replaced: Vec<(String, String)>,
    /// How many of those that wait, and are not put off, a newer memory replaces.
    pub waiting_replaced: u64,
}

/// A row with the decision about it. It is decoded on demand.
struct JoinedRow<'a> {
    snapshot: &'a Snapshot<'a>,
    source: &'a MemorySource,
    row: &'a Row<'a>,
    joined: JoinedStatus<'a>,
    claim: Claim,
}

impl JoinedRow<'_> {
    fn curated(&self) -> Result<CuratedMemory, StoreError> {
        let Self {
            snapshot,
            source,
            row,
            joined,
            ..
        } = self;
        let read = || {
            let Digests { whole, text } = digests(row, source)?;
            Ok(CuratedMemory {
                memory: record::memory(row, source, snapshot.rule())?,
                digest: whole,
                text_digest: text,
                is_decided: joined.decision.is_some(),
                is_outdated: joined.is_outdated,
                decided_as: joined.exclusion.map(|it| text::id(it.id())),
                put_off_until: joined.put_off_until(),
                hides_text: record::hides_text(row)?,
                contradicts: None,
                has_duplicate_id: false,
            })
        };
        snapshot.map_sqlite(read())
    }

    fn review_dates(&self) -> Result<(ReviewDates, Option<Date>), StoreError> {
        let read = || {
            Ok((
                record::review_dates(self.row, &self.joined)?,
                self.joined.put_off_until(),
            ))
        };
        self.snapshot.map_sqlite(read())
    }

    /// Its status, and its id with that of the memory that replaces it.
    fn status_and_successor(&self) -> Result<StatusAndSuccessor, StoreError> {
        let id = self.snapshot.map_sqlite(record::id(self.row))?;
        let successor = record::successor(self.row, self.joined.decision);
        let successor = self.snapshot.map_sqlite(successor)?;
        let successor = successor.filter(|newer| *newer != id);
        Ok(StatusAndSuccessor {
            status: self.joined.status,
            replaced: successor.map(|newer| (id, newer)),
        })
    }

    /// The memory, if its status is wanted.
    fn with_status(
        &self,
        has_status: &dyn Fn(Status) -> bool,
    ) -> Result<Option<Box<CuratedMemory>>, StoreError> {
        if !has_status(self.joined.status) {
            return Ok(None);
        }
        Ok(Some(Box::new(self.curated()?)))
    }
}

/// What decides whether a newer memory replaces a row.
struct StatusAndSuccessor {
    status: Status,
    /// Its id and that of its successor, if it has one.
    replaced: Option<(String, String)>,
}

impl StatusAndSuccessor {
    /// Whether a newer memory replaces it. A served memory is replaced only by one that is served,
    /// a waiting one also by one that waits.
    fn is_replaced<'a>(&self, find: impl Fn(&str) -> Option<&'a Self>) -> bool {
        let Some((id, newer)) = &self.replaced else {
            return false;
        };
        let filter = match self.status {
            Status::Rejected => return false,
            Status::Staging => StatusFilter::All,
            Status::Approved | Status::Promoted => StatusFilter::Approved,
        };
        is_superseded(id, Some(newer), filter, |id| {
            let next = |other: &'a Self| other.replaced.as_ref().map(|(_, newer)| newer.as_str());
            successor_of(find(id).map(|other| (other.status, next(other))))
        })
    }
}

/// The callback for each row.
type Visit<'a> = &'a mut dyn FnMut(&JoinedRow<'_>) -> Result<(), StoreError>;

impl Snapshot<'_> {
    /// The memory with this id, with the data for a decision about it. Of several rows with the id,
    /// the one with the strongest [`Claim`] is used.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn curated(&self, id: &str) -> Result<Option<CuratedMemory>, StoreError> {
        let mut found: Option<(Claim, CuratedMemory)> = None;
        let mut rows = 0;
        for (number, source) in self.sources() {
            let Some((condition, parameter)) = source.id.condition(id) else {
                continue;
            };
            let clauses = format!(" WHERE {condition}");
            self.join_rows((number, source), &clauses, &[&parameter], &mut |row| {
                rows += 1;
                if found.as_ref().is_none_or(|known| row.claim.beats(known.0)) {
                    found = Some((row.claim, row.curated()?));
                }
                Ok(())
            })?;
        }
        Ok(found.map(|(_, curated)| CuratedMemory {
            has_duplicate_id: rows > 1,
            ..curated
        }))
    }

    /// Visits the memories of some statuses with the data for a decision about each, in stored
    /// order. Of several rows with the same id, only the one with the strongest [`Claim`] is
    /// visited.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn visit_curated(
        &self,
        has_status: &dyn Fn(Status) -> bool,
        visit: &mut dyn FnMut(CuratedMemory),
    ) -> Result<(), StoreError> {
        let chosen = self.strongest_rows(&|row| row.with_status(has_status))?;
        let curated = chosen.into_rows().flatten();
        curated.for_each(|curated| visit(*curated));
        Ok(())
    }

    /// The memories whose status a decision about one of `ids` determines, because they have its
    /// content: now, or in `after`, which has the same rows and other decisions. The ids are in
    /// order.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn decided_as(
        &self,
        ids: &std::collections::HashSet<&str>,
        after: &Snapshot<'_>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let is_about = |joined: &JoinedStatus<'_>| {
            joined
                .exclusion
                .is_some_and(|it| ids.contains(text::id(it.id()).as_str()))
        };
        let mut found = BTreeSet::new();
        self.scanned.set(true);
        for (number, source) in self.sources() {
            self.join_rows(
                (number, source),
                "",
                &[],
                &mut |JoinedRow { row, joined, .. }| {
                    let is_found = is_about(joined)
                        || is_about(&self.map_sqlite(record::joined(row, source, after.rule()))?);
                    if is_found {
                        found.insert(self.map_sqlite(record::id(row))?);
                    }
                    Ok(())
                },
            )?;
        }
        Ok(found)
    }

    /// The memories that wait for review, and the data for the queue's statistics on a given day.
    /// Of several with the same id, only the one with the strongest [`Claim`] counts.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn queue(&self, today: Date) -> Result<QueueRows, StoreError> {
        let waits = |status| status == Status::Staging;
        let chosen = self.strongest_rows(&|row| {
            Ok((
                row.status_and_successor()?,
                row.review_dates()?,
                row.with_status(&waits)?,
            ))
        })?;
        let find = |id: &str| chosen.get(id).map(|(row, ..)| row);
        let is_replaced =
            |(row, (_, until), _): &&(StatusAndSuccessor, (ReviewDates, Option<Date>), _)| {
                let waits = row.status == Status::Staging && until.is_none_or(|day| day <= today);
                waits && row.is_replaced(find)
            };
        let waiting_replaced = chosen.iter().filter(is_replaced).count() as u64;
        let contradicted = if !self.contradictory()?.is_empty() {
            let waiting = chosen.iter().filter_map(|(.., curated)| curated.as_ref());
            let waiting = waiting.map(|curated| curated.memory.id.as_str());
            self.contradictions(waiting, StatusFilter::Approved)?
        } else {
            Vec::new()
        };
        let mut contradicted: HashMap<String, String> = contradicted
            .into_iter()
            .filter_map(|(id, others)| Some((id, others.into_iter().next()?.id)))
            .collect();
        let (rows, duplicate_ids) = chosen.into_parts();
        let mut queue = QueueRows {
            duplicate_ids,
            waiting_replaced,
            ..QueueRows::default()
        };
        for (row, review_dates, curated) in rows {
            queue.dates.push(review_dates);
            queue.waiting.extend(curated.map(|curated| CuratedMemory {
                contradicts: contradicted.remove(&curated.memory.id),
                ..*curated
            }));
            if row.status.is_served() {
                let replaced = row.replaced.into_iter();
                queue
                    .replaced
                    .extend(replaced.map(|(older, newer)| (newer, older)));
            }
        }
        Ok(queue)
    }

    /// How many memories have each effective status. Of several rows with the same id, only the one
    /// with the strongest [`Claim`] counts, and a row without an id does not.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn counts_by_id(&self) -> Result<Counts, StoreError> {
        let chosen = self.strongest_rows(&|row| {
            let is_known = row.joined.decision.is_some()
                || row.joined.is_outdated
                || self.map_sqlite(record::has_known_status(row.row, row.source))?;
            Ok((row.status_and_successor()?, is_known))
        })?;
        let find = |id: &str| chosen.get(id).map(|(row, _)| row);
        let replaced = chosen.iter().filter(|(row, _)| row.is_replaced(find));
        let mut counts = Counts {
            replaced: replaced.count() as u64,
            deleted: self.deleted()?,
            ..Counts::default()
        };
        for (StatusAndSuccessor { status, .. }, is_known) in chosen.into_rows() {
            *match status {
                _ if !is_known => &mut counts.unknown,
                Status::Approved => &mut counts.approved,
                Status::Promoted => &mut counts.promoted,
                Status::Staging => &mut counts.staging,
                Status::Rejected => &mut counts.rejected,
            } += 1;
        }
        Ok(counts)
    }

    /// Ids that several rows have, in order, at most `max`. Notes are named by their files.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn shared_ids(&self, max: usize) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        let chosen = self.strongest_rows(&|_| Ok(()))?;
        let (_, duplicate_ids) = chosen.into_parts();
        let mut ids: Vec<String> = duplicate_ids.into_iter().collect();
        ids.sort();
        ids.truncate(max);
        let mut files: HashMap<String, Vec<String>> = HashMap::default();
        if self.layout.profile.is_notes() {
            let sql = "SELECT id, source_file FROM memories ORDER BY source_file";
            self.visit_rows(sql, [], |row| {
                let id = text::id(&row.get::<_, String>(0)?);
                if ids.contains(&id) {
                    files.entry(id).or_default().push(row.get(1)?);
                }
                Ok(())
            })?;
        }
        let named = ids.into_iter().map(|id| {
            let files = files.remove(&id).unwrap_or_default();
            (id, files)
        });
        Ok(named.collect())
    }

    /// Reads the chosen row of each id.
    fn strongest_rows<T>(
        &self,
        read: &dyn Fn(&JoinedRow<'_>) -> Result<T, StoreError>,
    ) -> Result<RowsById<T>, StoreError> {
        self.scanned.set(true);
        let mut rows = RowsById::default();
        for (number, source) in self.sources() {
            self.join_rows((number, source), &source.stored_order(), &[], &mut |row| {
                let id = self.map_sqlite(record::id(row.row))?;
                rows.add(id, row.claim, || read(row))
            })?;
        }
        Ok(rows)
    }

    fn join_rows(
        &self,
        (number, source): (u8, &MemorySource),
        clauses: &str,
        parameters: &[&dyn ToSql],
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        let sql = source.query(clauses);
        let mut statement = self.map_sqlite(self.connection.prepare_cached(&sql))?;
        let mut rows = self.map_sqlite(statement.query(parameters))?;
        while let Some(row) = self.map_sqlite(rows.next())? {
            let joined = self.map_sqlite(record::joined(row, source, self.rule()))?;
            let key = self.map_sqlite(record::key(row, number))?;
            visit(&JoinedRow {
                snapshot: self,
                source,
                row,
                joined,
                claim: Claim::new(joined.status, key),
            })?;
        }
        Ok(())
    }
}
