//! Memories with the data for a decision about them, the review queue, and how much waits in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ack_api::decision::Edit;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::queue::{Flow, pace_start};
use ack_api::{Counts, Warning, text};
use jiff::Timestamp;
use jiff::civil::Date;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::decisions::{Digests, digests};
use crate::layout::Field;
use crate::read::{slot, strongest};
use crate::record::{MemoryTable, StoredRow, apply_edit, hides};
use crate::replaced::Standing;
use crate::rows_by_id::RowsById;
use crate::{Snapshot, StoreError};

/// How many rows are examined to find an approved one.
const MAX_ROWS: usize = 20_000;

const DATES: [Field; 5] =
    [Field::Status, Field::ReviewedAt, Field::CreatedEpoch, Field::Created, Field::Date];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReviewCounts {
    /// Whether a memory may be served. Rows after it were not examined.
    pub has_approved: bool,
    pub waiting: u64,
    pub is_partial: bool,
}

#[derive(Debug, Clone)]
pub struct CuratedMemory {
    pub memory: Memory,
    pub digest: String,
    /// The digest without the title, if that comes from the name of its file.
    pub text_digest: Option<String>,
    pub is_decided: bool,
    /// Whether it changed after the newest decision, or that decision cannot be read.
    pub is_outdated: bool,
    /// The memory with the same content whose decision determines the status.
    pub decided_as: Option<String>,
    pub put_off_until: Option<Date>,
    /// Its stored texts with control characters, or characters that hide text from a reader.
    pub hiding_texts: Vec<String>,
    /// An approved memory that it is known to contradict: a link says so.
    pub contradicts: Option<String>,
    /// Whether another row has the same id. A decision cannot tell the two apart.
    pub has_duplicate_id: bool,
}

impl CuratedMemory {
    fn of(row: &StoredRow<'_>) -> Result<Self, StoreError> {
        let Digests { whole, text } = digests(row.row, row.source)?;
        Ok(Self {
            memory: row.memory()?,
            digest: whole,
            text_digest: text,
            is_decided: row.joined.decision.is_some(),
            is_outdated: row.joined.is_outdated,
            decided_as: row.joined.exclusion.map(|it| it.id.to_owned()),
            put_off_until: row.joined.put_off_until(),
            hiding_texts: row.hiding_texts()?,
            contradicts: None,
            has_duplicate_id: false,
        })
    }

    /// The memory with the fields that a curator wrote.
    pub fn edited(&self, edit: &Edit) -> Self {
        let mut edited = self.clone();
        apply_edit(edit, &mut edited.memory);
        let Edit { title, subtitle, facts, concepts, files, narrative, kind, project } = edit;
        let texts = [title, subtitle, narrative, kind, project].into_iter().flatten();
        let texts = texts.chain([facts, concepts, files].into_iter().flatten().flatten());
        edited.hiding_texts.extend(texts.filter(|text| hides(text)).cloned());
        edited
    }

    fn with_status(
        row: &StoredRow<'_>,
        has_status: &dyn Fn(Status) -> bool,
    ) -> Result<Option<Box<Self>>, StoreError> {
        has_status(row.joined.status).then(|| Self::of(row).map(Box::new)).transpose()
    }

    pub fn warnings(&self) -> Vec<Warning> {
        ack_flags::of(&self.memory, !self.hiding_texts.is_empty())
    }

    /// A text of the memory with the names of the hidden characters in it.
    pub fn named(&self, shown: &str) -> String {
        let hiding = self.hiding_texts.iter();
        hiding.fold(shown.to_owned(), |shown, hiding| {
            let named = text::named(hiding);
            let safe = text::block(hiding);
            match text::line(hiding, usize::MAX) {
                line if line == shown => text::line(&named, usize::MAX),
                _ if safe.is_empty() => shown,
                _ => shown.replacen(&safe, named.trim(), 1),
            }
        })
    }

    pub fn is_flagged(&self) -> bool {
        self.contradicts.is_some() || self.warnings().into_iter().any(Warning::is_flag)
    }

    pub fn is_put_off(&self, today: Date) -> bool {
        self.put_off_until.is_some_and(|until| today < until)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ReviewDates {
    pub status: Status,
    pub created: Option<Timestamp>,
    pub reviewed: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct QueueRows {
    /// The dates of every memory, with the day until which it is snoozed.
    pub dates: Vec<(ReviewDates, Option<Date>)>,
    /// The memories that wait, in stored order.
    pub waiting: Vec<CuratedMemory>,
    pub duplicate_ids: HashSet<String>,
    /// How many of those that wait, and are not snoozed, a newer memory replaces.
    pub waiting_replaced: u64,
}

struct QueueRow {
    standing: Standing,
    dates: ReviewDates,
    put_off_until: Option<Date>,
    waiting: Option<Box<CuratedMemory>>,
}

impl Snapshot<'_> {
    /// Of several rows with the id, the one with the strongest claim is used.
    pub fn curated(&self, id: &str) -> Result<Option<CuratedMemory>, StoreError> {
        let rows = self.rows_with_id(id, CuratedMemory::of)?;
        let has_duplicate_id = rows.len() > 1;
        Ok(strongest(rows).map(|(_, curated)| CuratedMemory { has_duplicate_id, ..curated }))
    }

    /// Visits memories in stored order; of several rows with an id, the one with the strongest
    /// claim.
    pub fn visit_curated(
        &self,
        has_status: &dyn Fn(Status) -> bool,
        visit: &mut dyn FnMut(CuratedMemory),
    ) -> Result<(), StoreError> {
        let chosen = self.strongest_rows(|row| CuratedMemory::with_status(row, has_status))?;
        chosen.into_rows().flatten().for_each(|curated| visit(*curated));
        Ok(())
    }

    /// The ids of memories whose status a decision about one of `ids` determines by its content.
    pub fn decided_as(
        &self,
        ids: &std::collections::HashSet<&str>,
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut found = BTreeSet::new();
        self.visit_all(|row| {
            if row.joined.exclusion.is_some_and(|it| ids.contains(it.id)) {
                found.insert(row.id()?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Of several rows with the same id, only the one with the strongest claim counts.
    pub fn queue(&self, today: Date) -> Result<QueueRows, StoreError> {
        let waits = |status| status == Status::Staging;
        let chosen = self.strongest_rows(|row| {
            Ok(QueueRow {
                standing: Standing::of(row)?,
                dates: row.review_dates()?,
                put_off_until: row.joined.put_off_until(),
                waiting: CuratedMemory::with_status(row, &waits)?,
            })
        })?;
        let find = |id: &str| chosen.get(id).map(|row| &row.standing);
        let is_replaced = |row: &&QueueRow| {
            waits(row.dates.status)
                && row.put_off_until.is_none_or(|day| day <= today)
                && row.standing.is_replaced(find)
        };
        let waiting_replaced = chosen.iter().filter(is_replaced).count() as u64;
        let waiting = chosen.iter().filter_map(|row| row.waiting.as_ref());
        let mut contradicted = self.contradicted(waiting.map(|it| it.memory.id.as_str()))?;
        let (rows, duplicate_ids) = chosen.into_parts();
        let mut queue = QueueRows { duplicate_ids, waiting_replaced, ..QueueRows::default() };
        for row in rows {
            queue.dates.push((row.dates, row.put_off_until));
            queue.waiting.extend(row.waiting.map(|curated| CuratedMemory {
                contradicts: contradicted.remove(&curated.memory.id),
                ..*curated
            }));
        }
        Ok(queue)
    }

    fn contradicted<'a>(
        &self,
        ids: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<String, String>, StoreError> {
        let mut found = HashMap::default();
        if self.contradictory()?.is_empty() {
            return Ok(found);
        }
        for id in ids {
            let others = self.contradictions(id, StatusFilter::Approved)?.into_iter();
            found.extend(others.take(1).map(|other| (id.to_owned(), other.id)));
        }
        Ok(found)
    }

    /// How many memories have each effective status. Only the row that owns an id counts.
    pub fn counts_by_id(&self) -> Result<Counts, StoreError> {
        self.known_or(|it| &mut it.counts_by_id, || self.count_ids())
    }

    fn count_ids(&self) -> Result<Counts, StoreError> {
        let chosen =
            self.strongest_rows(|row| Ok((Standing::of(row)?, row.has_known_status()?)))?;
        let find = |id: &str| chosen.get(id).map(|(row, _)| row);
        let replaced = chosen.iter().filter(|(row, _)| row.is_replaced(find));
        let mut counts = Counts {
            replaced: replaced.count() as u64,
            deleted: self.deleted()?,
            ..Counts::default()
        };
        for (standing, is_known) in chosen.into_rows() {
            *slot(&mut counts, is_known.then_some(standing.status)) += 1;
        }
        Ok(counts)
    }

    /// The memories in staging that are snoozed on a day, so that they do not wait yet.
    pub fn snoozed(&self, today: Date) -> Result<HashSet<String>, StoreError> {
        let snoozed = self.known_or(|it| &mut it.snoozed, || self.read_snoozed())?;
        Ok(snoozed.iter().filter(|(_, until)| today < *until).map(|(id, _)| id.clone()).collect())
    }

    fn read_snoozed(&self) -> Result<Arc<[(String, Date)]>, StoreError> {
        // Most stores have none, and are not scanned.
        if !self.decisions.newest().any(|decision| decision.until.is_some()) {
            return Ok(Arc::default());
        }
        let chosen = self.strongest_rows(|row| {
            let until = row.joined.put_off_until();
            let until = until.filter(|_| row.joined.status == Status::Staging);
            until.map(|until| Ok((row.id()?, until))).transpose()
        })?;
        Ok(chosen.into_rows().flatten().collect())
    }

    /// Ids that several rows have, in order, at most `max`. Notes are named by their files.
    pub fn shared_ids(&self, max: usize) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        let (_, duplicate_ids) = self.strongest_rows(|_| Ok(()))?.into_parts();
        let mut ids: Vec<String> = duplicate_ids.into_iter().collect();
        ids.sort();
        ids.truncate(max);
        let mut files: HashMap<String, Vec<String>> = HashMap::default();
        if self.layout.profile.is_notes() {
            let sql = "SELECT id, source_file FROM memories ORDER BY source_file";
            let rows =
                self.read_rows(sql, [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
            for (id, file) in rows {
                files.entry(text::id(&id)).or_default().push(file);
            }
        }
        let named = ids.into_iter().map(|id| {
            let files = files.remove(&id).unwrap_or_default();
            (id, files)
        });
        Ok(named.collect())
    }

    /// Looks for an approved memory and counts those that wait for review until it finds one. It
    /// reads only the status, of a bounded number of rows. Those that are snoozed `today` do not
    /// wait.
    pub fn review_counts(&self, today: Date) -> Result<ReviewCounts, StoreError> {
        let mut counts = ReviewCounts::default();
        let mut rest = MAX_ROWS;
        for table in self.tables() {
            let sql = table.query(&[Field::Status], &format!(" LIMIT {}", rest + 1));
            let is_decided = table.find(self.connection, &sql, [], |row| {
                if rest == 0 {
                    counts.is_partial = true;
                    return Ok(Some(()));
                }
                rest -= 1;
                let status = row.joined.status;
                counts.has_approved = StatusFilter::Approved.allows(status);
                let is_snoozed = row.joined.put_off_until().is_some_and(|until| today < until);
                counts.waiting += u64::from(status == Status::Staging && !is_snoozed);
                Ok(counts.has_approved.then_some(()))
            })?;
            if is_decided.is_some() {
                break;
            }
        }
        Ok(counts)
    }

    /// What entered the review queue and left it in the days before `now`.
    pub fn flow(&self, now: Timestamp) -> Result<Flow, StoreError> {
        let began = pace_start(now);
        let known = self.with_known(|it| it.flow);
        if let Some((_, flow)) = known.filter(|(since, _)| *since == began) {
            return Ok(flow);
        }
        let mut flow = Flow::default();
        for table in self.tables().map(MemoryTable::quick) {
            table.find(self.connection, &table.query(&DATES, ""), [], |row| {
                let dated = row.review_dates()?;
                flow.count(dated.status, dated.created, dated.reviewed, began);
                Ok(None::<()>)
            })?;
        }
        self.with_known(|it| it.flow = Some((began, flow)));
        Ok(flow)
    }

    fn strongest_rows<T>(
        &self,
        read: impl Fn(&StoredRow<'_>) -> Result<T, StoreError>,
    ) -> Result<RowsById<T>, StoreError> {
        let mut rows = RowsById::default();
        self.visit_all(|row| rows.add(row.id()?, row.claim(), || read(row)))?;
        Ok(rows)
    }
}
