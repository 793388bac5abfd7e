//! Memories with what a decision about them needs, and the review queue.

use std::collections::HashSet;

use ack_api::memory::{Memory, Status};
use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Row, ToSql};

use super::decisions::{Joined, digest};
use super::layout::{Field, MemorySource};
use super::{Snapshot, record};
use crate::StoreError;

/// A memory with what a decision about it needs.
#[derive(Debug, Clone)]
pub struct Curated {
    /// The memory, with the status that counts.
    pub memory: Memory,
    /// The digest of its content.
    pub digest: String,
    /// The newest decision about it counts.
    pub is_decided: bool,
    /// It changed after the newest decision, or that cannot be read.
    pub is_outdated: bool,
    /// It is out of the review queue until this day.
    pub put_off_until: Option<Date>,
    /// Its text, as stored, holds characters that are not shown: control characters, or such as
    /// hide text from a reader.
    pub hides_text: bool,
    /// Another row has the same id, so that no decision can name one of the two.
    pub has_twin: bool,
}

impl Curated {
    /// Meets another row with the same id, of which the first one counts.
    fn meets(&mut self) {
        self.has_twin = true;
    }

    /// Whether it is out of the review queue on a day.
    pub fn is_put_off(&self, today: Date) -> bool {
        self.put_off_until.is_some_and(|until| today < until)
    }
}

/// What the numbers of the review queue need of a memory.
#[derive(Debug, Clone, Copy)]
pub struct Dated {
    /// The status that counts.
    pub status: Status,
    /// When it was written.
    pub created: Option<Timestamp>,
    /// When it was reviewed.
    pub reviewed: Option<Timestamp>,
}

/// What is asked of each row: whether it is wanted, by its id.
type Wanted<'a> = &'a mut dyn FnMut(&str, &Row<'_>, &Joined<'_>) -> rusqlite::Result<bool>;

impl Snapshot<'_> {
    /// The memory with this id, with what a decision about it needs.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn curated(&self, id: &str) -> Result<Option<Curated>, StoreError> {
        let mut found = None;
        for (_, source) in self.sources() {
            let Some((condition, parameter)) = source.id.condition(id) else {
                continue;
            };
            let order = source.row_number.unwrap_or("1");
            let clauses = format!(" WHERE {condition} ORDER BY {order}");
            let any: Wanted<'_> = &mut |_, _, _| Ok(true);
            self.curate_source(
                source,
                &clauses,
                &[&parameter],
                any,
                &mut |curated| match &mut found {
                    Some(first) => Curated::meets(first),
                    None => found = Some(curated),
                },
            )?;
        }
        Ok(found)
    }

    /// Visits every memory with what a decision about it needs, in stored order. Of several with
    /// the same id, only the first one counts.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn curate(&self, visit: &mut dyn FnMut(Curated)) -> Result<(), StoreError> {
        self.curate_of(&|_| true, visit)
    }

    /// Like [`Snapshot::curate`], for the memories of some statuses. The others are not decoded.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn curate_of(
        &self,
        wanted: &dyn Fn(Status) -> bool,
        visit: &mut dyn FnMut(Curated),
    ) -> Result<(), StoreError> {
        self.curate_each(&mut |_, joined| Ok(wanted(joined.status)), visit)?;
        Ok(())
    }

    /// Visits the memories that wait for review, and tells the dates of every memory to `count`,
    /// with the day until which it is put off. Returns the ids that several rows have.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn queue(
        &self,
        count: &mut dyn FnMut(Dated, Option<Date>),
        visit: &mut dyn FnMut(Curated),
    ) -> Result<HashSet<String>, StoreError> {
        let mut waits = |row: &Row<'_>, joined: &Joined<'_>| {
            count(
                record::dated(row, joined)?,
                record::put_off_until(row, joined)?,
            );
            Ok(joined.status == Status::Staging)
        };
        self.curate_each(&mut waits, visit)
    }

    /// What is served until a newer memory is: the newer one's id and the older one's, where the
    /// store or a decision says so.
    ///
    /// # Errors
    /// The error from SQLite.
    pub fn replaced(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut found = Vec::new();
        for (_, source) in self.sources() {
            let Some(column) = source.column(Field::SupersededBy) else {
                continue;
            };
            let clauses = format!(" WHERE {column} <> ''");
            let served: Wanted<'_> = &mut |_, _, joined| Ok(joined.status.is_served());
            self.curate_source(source, &clauses, &[], served, &mut |curated| {
                let Memory {
                    id, superseded_by, ..
                } = curated.memory;
                found.extend(superseded_by.map(|newer| (newer, id)));
            })?;
        }
        Ok(found)
    }

    /// Visits the wanted ones of the memories that are the first with their id. Returns the ids that
    /// several rows have.
    fn curate_each(
        &self,
        wanted: &mut dyn FnMut(&Row<'_>, &Joined<'_>) -> rusqlite::Result<bool>,
        visit: &mut dyn FnMut(Curated),
    ) -> Result<HashSet<String>, StoreError> {
        self.scanned.set(true);
        let mut seen = HashSet::new();
        let mut twins = HashSet::new();
        for (_, source) in self.sources() {
            let order = source
                .row_number
                .map(|number| format!(" ORDER BY {number}"));
            let order = order.unwrap_or_default();
            let first: Wanted<'_> = &mut |id, row, joined| {
                if id.is_empty() {
                    return Ok(false);
                }
                if !seen.insert(id.to_owned()) {
                    twins.insert(id.to_owned());
                    return Ok(false);
                }
                wanted(row, joined)
            };
            self.curate_source(source, &order, &[], first, visit)?;
        }
        Ok(twins)
    }

    fn curate_source(
        &self,
        source: &MemorySource,
        clauses: &str,
        parameters: &[&dyn ToSql],
        wanted: Wanted<'_>,
        visit: &mut dyn FnMut(Curated),
    ) -> Result<(), StoreError> {
        let sql = format!(
            "SELECT {} FROM {}{clauses}",
            source.select_list(),
            source.table
        );
        let mut statement = self.fail(self.connection.prepare(&sql))?;
        let mut rows = self.fail(statement.query(parameters))?;
        while let Some(row) = self.fail(rows.next())? {
            let joined = self.fail(record::joined(row, source, self.rule()))?;
            let id = self.fail(record::id(row))?;
            if !self.fail(wanted(&id, row, &joined))? {
                continue;
            }
            visit(Curated {
                memory: self.fail(record::memory(row, source, self.rule()))?,
                digest: self.fail(digest(row, source))?,
                is_decided: joined.decision.is_some(),
                is_outdated: joined.is_outdated,
                put_off_until: self.fail(record::put_off_until(row, &joined))?,
                hides_text: self.fail(record::hides_text(row))?,
                has_twin: false,
            });
        }
        Ok(())
    }
}
