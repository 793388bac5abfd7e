//! Turns a row into a [`Memory`]: decodes each value, makes text safe, determines the status.

use std::borrow::Cow;
use std::cell::RefCell;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};
use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::curated::ReviewDates;
use crate::decisions::{self, JoinedStatus, StatusRule};
use crate::folder::note::NoteStatus;
use crate::layout::{Field, MemorySource};
use crate::values::{self, ListKind};
use ack_api::decision::{Decision, Edit};
use ack_api::memory::{Memory, Status, Unreviewed};
use ack_api::source::{Claim, RowKey};
use ack_api::text;

/// In bytes; no answer is larger.
const NARRATIVE_CAP: usize = 2 << 20;
/// What claude-mem writes in place of a title for a memory that a person saved.
const SAVED_BY_HAND: &str = "Manual memory";
const SENTENCE_CHARS: usize = 200;
/// The fields that may say when a memory was written, the most exact first.
const CREATED: [Field; 3] = [Field::CreatedEpoch, Field::Created, Field::Date];
/// The title of a memory without a title, a subtitle and a text.
pub const UNTITLED: &str = "(untitled)";

#[derive(Clone, Copy)]
pub(crate) struct MemoryTable<'a> {
    pub number: u8,
    pub source: &'a MemorySource,
    pub rule: StatusRule<'a>,
}

impl<'a> MemoryTable<'a> {
    /// For a scan whose rows are read again before they are shown: none is held back.
    pub const fn quick(mut self) -> Self {
        self.rule.flags = None;
        self
    }

    /// Whether rows may be approved by default, unless they are flagged.
    pub fn holds_back(self) -> bool {
        self.rule.flags.is_some()
            && self.rule.unreviewed == Unreviewed::Approved
            && self.source.column(Field::Status).is_none()
    }

    /// A query for the columns that determine a row's status, and `fields`. With decisions, or where
    /// flagged rows are held back, this takes the whole row. `clauses` follow the table's name.
    pub fn query(self, fields: &[Field], clauses: &str) -> String {
        if self.rule.decisions.is_empty() && !self.holds_back() {
            self.source.query_fields(fields, clauses)
        } else {
            self.source.query(clauses)
        }
    }

    /// The first thing that `find` finds in the rows of a query by [`MemorySource`].
    pub fn find<T>(
        self,
        connection: &Connection,
        sql: &str,
        parameters: impl Params,
        mut find: impl FnMut(&StoredRow<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let buffer = RefCell::default();
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            let mut stored = StoredRow {
                row,
                source: self.source,
                key: RowKey { source: self.number, rowid: row.get(0)? },
                joined: JoinedStatus::undecided(Status::Staging),
                buffer: &buffer,
            };
            stored.joined = self.join(&stored)?;
            if let Some(found) = find(&stored)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The effective status of a row: the newest decision's, or else the store's, or else the scope's
    /// policy, which approves nothing that is flagged. An unknown word counts as rejected, so that
    /// the memory is never served. If there are decisions, the row must have every column.
    fn join(self, row: &StoredRow<'_>) -> rusqlite::Result<JoinedStatus<'a>> {
        let rule = self.rule;
        let stored = match row.stored_status()? {
            Ok(Some(status)) => status,
            Ok(None) => rule.unreviewed.status(),
            Err(_) => Status::Rejected,
        };
        let mut joined = if rule.decisions.is_empty() {
            JoinedStatus::undecided(stored)
        } else {
            rule.join(&row.id()?, stored, || decisions::digests(row.row, row.source))?
        };
        if let Some(flags) = rule.flags
            && self.holds_back()
            && joined.decision.is_none()
            && joined.status.is_served()
            && (!values::text_of(row.value(Field::AuthorStatus)?).is_empty()
                || rule.against_approved.contains(&row.id()?)
                || flags.is_flagged(row)?)
        {
            joined.status = Status::Staging;
        }
        Ok(joined)
    }
}

pub(crate) struct StoredRow<'a> {
    pub row: &'a Row<'a>,
    pub source: &'a MemorySource,
    pub key: RowKey,
    pub joined: JoinedStatus<'a>,
    buffer: &'a RefCell<Vec<u8>>,
}

/// The public id of a row for answers, see [`text::id`]; empty if the row has none.
pub(crate) fn id(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(text::id(&values::text_of(row.get_ref(1)?)))
}

/// Whether a text contains characters that [`text`] removes.
pub fn hides(value: &str) -> bool {
    matches!(text::safe(value), Cow::Owned(safe) if safe != value)
}

impl StoredRow<'_> {
    /// `Ok(None)` if the table has no status column, `Err` with an unknown word.
    fn stored_status(&self) -> rusqlite::Result<Result<Option<Status>, String>> {
        if self.source.column(Field::Status).is_none() {
            return Ok(Ok(None));
        }
        Ok(values::parse_status(self.value(Field::Status)?).map(Some))
    }

    pub fn id(&self) -> rusqlite::Result<String> {
        id(self.row)
    }

    pub fn value(&self, field: Field) -> rusqlite::Result<ValueRef<'_>> {
        // Each value costs several calls into SQLite.
        let selected = self.source.column(field).map(|_| field.position());
        match selected.map(|position| self.row.get_ref(position)) {
            None | Some(Err(rusqlite::Error::InvalidColumnIndex(_))) => Ok(ValueRef::Null),
            Some(value) => value,
        }
    }

    pub const fn claim(&self) -> Claim {
        Claim::new(self.joined.status, self.key)
    }

    pub fn is_edited(&self) -> bool {
        self.joined.decision.is_some_and(|it| it.edit.is_some())
    }

    /// Whether its status is one that a person decided or a known word of the store.
    pub fn has_known_status(&self) -> rusqlite::Result<bool> {
        Ok(self.joined.decision.is_some()
            || self.joined.is_outdated
            || self.stored_status()?.is_ok())
    }

    pub fn review_dates(&self) -> rusqlite::Result<ReviewDates> {
        let reviewed = match self.joined.decision {
            Some(decision) => decision.time.parse().ok(),
            None => values::time_value(self.value(Field::ReviewedAt)?),
        };
        Ok(ReviewDates {
            status: self.joined.status,
            created: self.first_instant(&CREATED)?,
            reviewed,
        })
    }

    /// The memory that replaces this one, whose id is `own`: by its decision, or else by the row.
    pub fn successor(&self, own: &str) -> rusqlite::Result<Option<Box<str>>> {
        let decision = self.joined.decision;
        let successor = match decision.and_then(|decision| decision.into.as_deref()) {
            Some(into) => text::id(into),
            None => self.stored_successor()?,
        };
        Ok((!successor.is_empty() && successor != own).then(|| successor.into_boxed_str()))
    }

    /// The id that the row itself names as its successor, empty if it names none.
    pub fn stored_successor(&self) -> rusqlite::Result<String> {
        Ok(text::id(&values::text_of(self.value(Field::SupersededBy)?)))
    }

    /// The stored texts and entries of lists that contain characters that [`text`] removes.
    pub fn hiding_texts(&self) -> rusqlite::Result<Vec<String>> {
        let mut hiding = Vec::new();
        for column in 0..self.row.as_ref().column_count() {
            let ValueRef::Text(value) = self.row.get_ref(column)? else { continue };
            let value = String::from_utf8_lossy(value);
            // In a list, JSON may escape them.
            let entries: Vec<String> = Some(&value)
                .filter(|value| value.starts_with('['))
                .filter(|value| value.contains("\\u") || hides(value))
                .and_then(|value| serde_json::from_str(value).ok())
                .unwrap_or_default();
            hiding.extend(entries.into_iter().filter(|entry| hides(entry)));
            if hides(&value) {
                hiding.push(value.into_owned());
            }
        }
        Ok(hiding)
    }

    fn first_instant(&self, fields: &[Field]) -> rusqlite::Result<Option<Timestamp>> {
        for field in fields {
            if let Some(instant) = values::time_value(self.value(*field)?) {
                return Ok(Some(instant));
            }
        }
        Ok(None)
    }

    /// A calendar day: a date, or the day of a point in time.
    fn day(&self, field: Field) -> rusqlite::Result<Option<Date>> {
        let value = self.value(field)?;
        let date = match value {
            ValueRef::Text(text) => {
                str::from_utf8(text).ok().and_then(|text| text.trim().get(..10)?.parse().ok())
            }
            _ => None,
        };
        Ok(date.or_else(|| Some(values::time_value(value)?.to_zoned(TimeZone::UTC).date())))
    }

    /// A 64-bit hash of every value of a whole row, and of a decision's changes to it other than
    /// the status. A different hash means that the memory changed.
    pub fn fingerprint(&self) -> rusqlite::Result<u64> {
        let mut bytes = self.buffer.borrow_mut();
        bytes.clear();
        for position in 0..2 + Field::ALL.len() + self.source.narrative.len() {
            // Fields without a column are skipped: each value costs several calls into SQLite.
            let field = position.checked_sub(2).and_then(|index| self.source.columns.get(index));
            if field.is_some_and(Option::is_none) {
                // Fields that were added later must not change the hash of stores without them.
                if position < Field::StaleAfter.position() {
                    bytes.push(0);
                }
                continue;
            }
            match self.row.get_ref(position)? {
                ValueRef::Null => bytes.push(0),
                ValueRef::Integer(number) => {
                    bytes.push(1);
                    bytes.extend_from_slice(&number.to_ne_bytes());
                }
                ValueRef::Real(number) => {
                    bytes.push(2);
                    bytes.extend_from_slice(&number.to_bits().to_ne_bytes());
                }
                ValueRef::Text(text) | ValueRef::Blob(text) => {
                    bytes.push(3);
                    bytes.extend_from_slice(&text.len().to_ne_bytes());
                    bytes.extend_from_slice(text);
                }
            }
        }
        if let Some(decision) = self.joined.decision
            && (decision.edit.is_some() || decision.into.is_some())
        {
            bytes.extend_from_slice(decision.to_line().as_bytes());
        }
        // Hashing everything at once is several times faster than piece by piece.
        Ok(xxh3_64(&bytes))
    }

    pub fn narrative_parts(&self) -> impl Iterator<Item = rusqlite::Result<ValueRef<'_>>> {
        let first = 2 + Field::ALL.len();
        (first..first + self.source.narrative.len()).map(|column| self.row.get_ref(column))
    }

    /// Decodes the row. An invalid value is not an error.
    pub fn memory(&self) -> rusqlite::Result<Memory> {
        let mut memory = self.content()?;
        if let Some(decision) = self.joined.decision {
            apply(decision, &mut memory);
        }
        Ok(memory)
    }

    pub fn content(&self) -> rusqlite::Result<Memory> {
        let mut fields = FieldReader { row: self, repaired: Vec::new() };
        let mut memory = Memory {
            id: self.id()?,
            project: fields.line(Field::Project, 200)?,
            project_alias: fields.line(Field::ProjectAlias, 200)?,
            session: fields.line(Field::Session, 200)?,
            session_id: fields.line(Field::SessionId, 200)?,
            date: fields.date()?,
            kind: fields.line(Field::Kind, 100)?.or_else(|| self.source.kind.map(str::to_owned)),
            title: fields.line(Field::Title, 300)?.unwrap_or_default(),
            subtitle: fields.line(Field::Subtitle, 600)?,
            reviewed_by: fields.line(Field::ReviewedBy, 200)?,
            superseded_by: fields.line(Field::SupersededBy, usize::MAX)?.map(|id| text::id(&id)),
            withdrawn: fields
                .line(Field::AuthorStatus, 40)?
                .filter(|word| NoteStatus::parse(word) == Some(NoteStatus::Withdrawn)),
            facts: fields.list(Field::Facts, ListKind::Facts)?,
            concepts: fields.list(Field::Concepts, ListKind::Concepts)?,
            files: fields.files()?,
            narrative: fields.narrative()?,
            status: self.joined.status,
            unknown_status: self.stored_status()?.err(),
            confidence: values::share_value(self.value(Field::Confidence)?),
            reviewed_at: values::time_value(self.value(Field::ReviewedAt)?),
            created_at: fields.created_at()?,
            updated_at: self.first_instant(&[Field::UpdatedEpoch, Field::Updated])?,
            stale_after: self.day(Field::StaleAfter)?,
            kept_despite: None,
            repaired: fields.repaired,
        };
        memory.repaired.dedup();
        set_headings(&mut memory);
        Ok(memory)
    }
}

struct FieldReader<'a> {
    row: &'a StoredRow<'a>,
    repaired: Vec<&'static str>,
}

impl FieldReader<'_> {
    fn add_repaired(&mut self, field: Field) {
        self.repaired.push(match field {
            Field::ProjectAlias => "project",
            Field::FilesMore => "files",
            field => field.native_column(),
        });
    }

    fn line(&mut self, field: Field, cap: usize) -> rusqlite::Result<Option<String>> {
        let (value, is_lossy) = values::text_value(self.row.value(field)?);
        if is_lossy {
            self.add_repaired(field);
        }
        let line = value.map(|value| text::line(&value, cap));
        Ok(line.filter(|line| !line.is_empty()))
    }

    /// The date as it is written; `None` if it is none.
    fn date(&mut self) -> rusqlite::Result<Option<String>> {
        let is_date = values::time_value(self.row.value(Field::Date)?).is_some();
        Ok(self.line(Field::Date, 40)?.filter(|_| is_date))
    }

    fn list(&mut self, field: Field, kind: ListKind) -> rusqlite::Result<Vec<String>> {
        let (raw, is_lossy) = values::text_value(self.row.value(field)?);
        let (entries, is_guessed) = values::parse_list(&raw.unwrap_or_default(), kind);
        if is_lossy || is_guessed {
            self.add_repaired(field);
        }
        Ok(entries)
    }

    fn files(&mut self) -> rusqlite::Result<Vec<String>> {
        let mut files = self.list(Field::Files, ListKind::Files)?;
        for file in self.list(Field::FilesMore, ListKind::Files)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        Ok(files)
    }

    fn narrative(&mut self) -> rusqlite::Result<Option<String>> {
        let mut text = String::new();
        for ((label, _), part) in self.row.source.narrative.iter().zip(self.row.narrative_parts()) {
            let (value, is_lossy) = values::text_value(part?);
            let value = value.unwrap_or_default();
            let (prefix, is_cut) = text::cut(&value, NARRATIVE_CAP);
            if is_lossy || is_cut {
                self.repaired.push("narrative");
            }
            let part = text::block(&prefix);
            // Two columns of one row often contain the same text.
            if part.is_empty() || text.contains(&part) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            if !label.is_empty() {
                text.push_str(label);
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        Ok((!text.is_empty()).then_some(text))
    }

    fn created_at(&mut self) -> rusqlite::Result<Option<Timestamp>> {
        let written = self.row.value(Field::Created)?;
        let is_written = matches!(written, ValueRef::Text(text) if !text.is_empty());
        if is_written && values::time_value(written).is_none() {
            self.repaired.push("created_at");
        }
        self.row.first_instant(&CREATED)
    }
}

/// Gives a memory a title if it has none of its own: the subtitle, or the beginning of its text.
fn set_headings(memory: &mut Memory) {
    let narrative = memory.narrative.as_deref();
    let title = Some(std::mem::take(&mut memory.title)).filter(|title| !title.is_empty());
    let subtitle = memory.subtitle.take();
    let is_by_hand = [&title, &subtitle].map(Option::as_deref).contains(&Some(SAVED_BY_HAND));
    let (title, subtitle) =
        if is_by_hand { headings_by_hand(title, subtitle, narrative) } else { (title, subtitle) };
    let first_line = || {
        let first = narrative?.lines().find(|line| !line.trim().is_empty())?;
        Some(text::line(first, 120))
    };
    memory.title = title
        .or_else(|| subtitle.clone())
        .or_else(first_line)
        .unwrap_or_else(|| UNTITLED.to_owned());
    memory.subtitle = subtitle;
}

/// The title and the subtitle of a memory that a person saved: the first sentence of its text
/// stands where the program has no words of its own, or only the beginning of the text.
fn headings_by_hand(
    title: Option<String>,
    subtitle: Option<String>,
    narrative: Option<&str>,
) -> (Option<String>, Option<String>) {
    let narrative = narrative.unwrap_or_default();
    let (sentence, _) = text::first_sentence(narrative, SENTENCE_CHARS);
    let sentence = Some(sentence).filter(|sentence| !sentence.is_empty());
    let is_own = |text: &String| text != SAVED_BY_HAND;
    let is_beginning = |title: &String| {
        let beginning = title.strip_suffix("...").or(title.strip_suffix('…'));
        beginning.is_some_and(|beginning| narrative.starts_with(beginning.trim_end()))
    };
    let title = title.filter(|it| is_own(it) && !is_beginning(it)).or_else(|| sentence.clone());
    let subtitle = subtitle.filter(is_own).or(sentence);
    let subtitle = subtitle.filter(|subtitle| Some(subtitle) != title.as_ref());
    (title, subtitle)
}

fn apply(decision: &Decision, memory: &mut Memory) {
    memory.reviewed_by = Some(text::line(&decision.actor, 200)).filter(|actor| !actor.is_empty());
    memory.reviewed_at = decision.time.parse().ok();
    memory.kept_despite = decision.despite.as_ref().map(|despite| text::line(despite, 500));
    if let Some(into) = &decision.into {
        memory.superseded_by = Some(text::id(into));
    }
    if let Some(edit) = &decision.edit {
        apply_edit(edit, memory);
    }
}

/// Gives a memory the fields that a curator wrote.
pub fn apply_edit(edit: &Edit, memory: &mut Memory) {
    let Edit { title, subtitle, facts, concepts, files, narrative, kind, project } = edit;
    let one_line = |value: &str, cap| Some(text::line(value, cap)).filter(|line| !line.is_empty());
    if let Some(title) = title.as_deref().and_then(|title| one_line(title, 300)) {
        memory.title = title;
    }
    if let Some(subtitle) = subtitle {
        memory.subtitle = one_line(subtitle, 600);
    }
    if let Some(kind) = kind {
        memory.kind = one_line(kind, 100);
    }
    if let Some(project) = project {
        memory.project = one_line(project, 200);
        memory.project_alias = None;
    }
    if let Some(narrative) = narrative {
        let (prefix, _) = text::cut(narrative, NARRATIVE_CAP);
        memory.narrative = Some(text::block(&prefix)).filter(|text| !text.is_empty());
    }
    for (list, edited) in
        [(&mut memory.facts, facts), (&mut memory.concepts, concepts), (&mut memory.files, files)]
    {
        if let Some(edited) = edited {
            *list = edited.iter().filter_map(|entry| one_line(entry, 2_000)).collect();
        }
    }
}
