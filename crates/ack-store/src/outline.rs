//! Scans a store in outline: status and age of every row and the words in it, without its long
//! text. A process that answers one question and ends, such as a hook, chooses the few records to
//! read by it, which is much cheaper than an index.

mod by_files;

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap as HashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::layout::Field;
use crate::record::StoredRow;
use crate::sessions::{MAX_MEMBERS, Members};
use crate::values::{self, ListKind};
use crate::{Snapshot, StoreError};
use ack_api::memory::{Memory, Status, StatusFilter, fold_name, is_superseded};
use ack_api::queue::{Flow, pace_start};
use ack_api::source::{Claim, RowKey};
use ack_api::text;

const COLUMNS: [Field; 17] = [
    Field::Project,
    Field::ProjectAlias,
    Field::Session,
    Field::SessionId,
    Field::Kind,
    Field::Title,
    Field::Subtitle,
    Field::Facts,
    Field::Concepts,
    Field::Files,
    Field::FilesMore,
    Field::Status,
    Field::SupersededBy,
    Field::CreatedEpoch,
    Field::Created,
    Field::Date,
    Field::ReviewedAt,
];

const TEXT_COLUMNS: [Field; 6] =
    [Field::Title, Field::Subtitle, Field::Facts, Field::Concepts, Field::Narrative, Field::Status];

/// The words found in a row, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WordMatches {
    pub anywhere: u128,
    pub title_or_tags: u128,
    pub type_or_tags: u128,
}

#[derive(Debug, Clone, Copy)]
pub struct RowMatches {
    pub key: RowKey,
    pub words: WordMatches,
}

#[derive(Debug, Clone)]
pub struct Outline {
    pub key: RowKey,
    pub id: String,
    pub status: Status,
    /// Its project; empty if the store names none.
    pub project: Arc<str>,
    pub alias: Arc<str>,
    /// When it was written, in milliseconds since 1970; `i64::MIN` if unknown.
    pub created: i64,
    pub matches: WordMatches,
    pub tags: Box<[u64]>,
}

impl Outline {
    /// The outline of a memory that was read in another way. Its key belongs to no row.
    pub fn of(memory: &Memory, find_words: &dyn FindWords) -> Self {
        let name = |name: &Option<String>| Arc::from(name.as_deref().unwrap_or_default());
        Self {
            key: RowKey { source: u8::MAX, rowid: 0 },
            id: memory.id.clone(),
            status: memory.status,
            project: name(&memory.project),
            alias: name(&memory.project_alias),
            created: memory.created_at.map_or(i64::MIN, Timestamp::as_millisecond),
            matches: matches_in_memory(memory, find_words),
            tags: hashes_of(&memory.concepts),
        }
    }
}

/// The longest tag, in bytes, that is folded without allocating.
const SHORT_TAG_BYTES: usize = 64;

/// The hash of a tag, the same in every spelling ([`fold_name`]).
pub fn tag_hash(tag: &str) -> u64 {
    let tag = tag.trim();
    let mut folded = [0; SHORT_TAG_BYTES];
    let Some(folded) = folded.get_mut(..tag.len()).filter(|_| tag.is_ascii()) else {
        return xxh3_64(fold_name(tag).as_bytes());
    };
    for (to, byte) in folded.iter_mut().zip(tag.bytes()) {
        *to = match byte {
            b'_' | b' ' => b'-',
            other => other.to_ascii_lowercase(),
        };
    }
    xxh3_64(folded)
}

fn hashes_of(tags: &[String]) -> Box<[u64]> {
    tags.iter().map(|tag| tag_hash(tag)).collect()
}

/// The hashes of a stored list of tags, without decoding it: JSON, or separated by commas.
fn hashes_in_list(list: &[u8]) -> Box<[u64]> {
    if list.trim_ascii() == b"null" {
        return Box::default();
    }
    let parts = list.split(|byte| matches!(byte, b'[' | b']' | b'"' | b',' | b'\n'));
    let tags = parts.map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty());
    tags.filter_map(|tag| str::from_utf8(tag).ok()).map(tag_hash).collect()
}

#[derive(Debug, Default)]
pub struct Outlines {
    /// The memories that the filter allows and no newer one replaces, in stored order.
    pub served: Vec<Outline>,
    pub has_status: bool,
    pub pending: u64,
    /// When the oldest of those was written, in milliseconds since 1970.
    pub oldest_pending: Option<i64>,
    /// What recently entered the review queue and left it.
    pub flow: Flow,
    pub members: Members,
    /// The hashes of the ids of every memory that is not rejected. Few are looked up.
    id_hashes: Vec<u64>,
}

impl Outlines {
    pub fn contains(&self, id: &str) -> bool {
        self.id_hashes.contains(&xxh3_64(id.as_bytes()))
    }

    fn add(&mut self, row: OutlineRow, filter: StatusFilter, is_replaced: bool) {
        let OutlineRow { outline, id_hash, flow, is_put_off, sessions, .. } = row;
        self.flow = [self.flow, flow].into_iter().sum();
        if outline.status == Status::Rejected {
            return;
        }
        self.id_hashes.push(id_hash);
        if outline.status == Status::Staging && !is_put_off {
            self.pending += 1;
            let created = Some(outline.created).filter(|created| *created > i64::MIN);
            self.oldest_pending = self.oldest_pending.into_iter().chain(created).min();
        }
        if !filter.allows(outline.status) {
            return;
        }
        for session in sessions {
            let members = self.members.entry(session).or_default();
            let is_new = members.last().is_none_or(|(key, _)| *key != outline.key);
            if is_new && members.len() < MAX_MEMBERS {
                members.push((outline.key, outline.id.clone()));
            }
        }
        if !is_replaced {
            self.served.push(outline);
        }
    }

    pub fn bytes(&self) -> usize {
        /// The allocator's overhead for a small string.
        const ALLOCATION: usize = 16;
        /// The approximate size of an id, including the allocator's overhead.
        const ID: usize = 48;
        let own = |outline: &Outline| outline.id.len() + size_of_val(&*outline.tags);
        let ids: usize = self.served.iter().map(own).sum();
        let members = self.members.values().map(|members| members.len() + 1);
        ids + self.served.len() * (size_of::<Outline>() + ALLOCATION)
            + size_of_val(&*self.id_hashes)
            + members.sum::<usize>() * (size_of::<(RowKey, String)>() + ID)
    }
}

/// A row before it is known whether it is chosen for its id.
struct OutlineRow {
    outline: Outline,
    id_hash: u64,
    newer: Option<Box<str>>,
    /// What it alone adds to the statistics of the review queue.
    flow: Flow,
    is_put_off: bool,
    sessions: Vec<String>,
}

#[derive(Clone, Copy)]
pub struct OutlineQuery<'a> {
    pub filter: StatusFilter,
    /// Sees the fields of each memory that the filter allows.
    pub find_words: &'a dyn FindWords,
    pub sessions: &'a HashSet<&'a str>,
    /// Memories that are snoozed until later do not count as pending.
    pub now: Timestamp,
}

/// What a scan looks for in the raw bytes of fields: one bit per word.
pub trait FindWords: Sync {
    fn in_text(&self, text: &[u8]) -> u128;

    /// The words found in a list of files. An entry may be a folder or a pattern; `entries` splits
    /// the list, which takes longer than scanning its bytes.
    fn in_files(&self, list: &[u8], entries: &dyn Fn() -> Vec<String>) -> u128;
}

impl Snapshot<'_> {
    /// Reads the store in outline. Flagged memories that the store's default does not approve are
    /// among the served ones: to find them takes their whole text, and their records are read
    /// anyway.
    pub fn outlines(&self, query: OutlineQuery<'_>) -> Result<Outlines, StoreError> {
        let scan = OutlineScan::new(query);
        let rows = self.scan_in_parallel(Some(&COLUMNS), || {
            let mut names = ProjectNamePool::default();
            move |row: &StoredRow<'_>| scan.outline(row, &mut names)
        })?;
        // Of several rows with the same id, the one with the strongest claim counts.
        let claim = |row: &OutlineRow| Claim::new(row.outline.status, row.outline.key);
        let mut chosen: HashMap<u64, &OutlineRow> = HashMap::default();
        chosen.reserve(rows.len());
        for row in &rows {
            let known = chosen.entry(row.id_hash).or_insert(row);
            if claim(row).beats(claim(known)) {
                *known = row;
            }
        }
        let are_unique = chosen.len() == rows.len();
        let is_chosen = |row: &OutlineRow| {
            are_unique || chosen.get(&row.id_hash).is_some_and(|it| std::ptr::eq(*it, row))
        };
        let is_replaced = |row: &OutlineRow| {
            let Outline { id, status, .. } = &row.outline;
            is_superseded(id, (*status, row.newer.as_deref()), query.filter, |id| {
                let known = chosen.get(&xxh3_64(id.as_bytes()));
                known.map(|row| (row.outline.status, row.newer.as_deref()))
            })
        };
        let fate = |row: &OutlineRow| is_chosen(row).then(|| is_replaced(row));
        let fates: Vec<Option<bool>> = rows.iter().map(fate).collect();
        let mut outlines = Outlines { has_status: self.layout.has_status(), ..Outlines::default() };
        for (row, fate) in rows.into_iter().zip(fates) {
            if let Some(is_replaced) = fate {
                outlines.add(row, query.filter, is_replaced);
            }
        }
        Ok(outlines)
    }

    /// The words found in each memory that the filter allows, in stored order. Whether a row is
    /// still in force is checked when its record is read ([`Snapshot::memory_in_force`]).
    pub fn word_matches(
        &self,
        filter: StatusFilter,
        find_words: &dyn FindWords,
    ) -> Result<Vec<RowMatches>, StoreError> {
        self.scan_in_parallel(Some(&TEXT_COLUMNS), || {
            |row: &StoredRow<'_>| {
                if !filter.allows(row.joined.status) {
                    return Ok(None);
                }
                let mut words;
                if row.is_edited() {
                    let memory = row.memory()?;
                    words = matches_in_memory(&memory, find_words);
                    words.anywhere |= find_words
                        .in_text(memory.narrative.as_deref().unwrap_or_default().as_bytes());
                } else {
                    words = matches(row, find_words)?;
                    for part in row.narrative_parts() {
                        words.anywhere |= find_words.in_text(bytes_of(part?));
                    }
                }
                Ok(Some(RowMatches { key: row.key, words }))
            }
        })
    }
}

#[derive(Clone, Copy)]
struct OutlineScan<'a> {
    query: OutlineQuery<'a>,
    today: Date,
    began: Timestamp,
}

impl<'a> OutlineScan<'a> {
    fn new(query: OutlineQuery<'a>) -> Self {
        Self {
            query,
            today: query.now.to_zoned(TimeZone::UTC).date(),
            began: pace_start(query.now),
        }
    }

    /// The outline of a row; `None` if it has no id, because then nobody can ask for it.
    fn outline(
        self,
        row: &StoredRow<'_>,
        names: &mut ProjectNamePool,
    ) -> Result<Option<OutlineRow>, StoreError> {
        let id = row.id()?;
        if id.is_empty() {
            return Ok(None);
        }
        let dates = row.review_dates()?;
        let mut flow = Flow::default();
        flow.count(dates.status, dates.created, dates.reviewed, self.began);
        let mut found = OutlineRow {
            id_hash: xxh3_64(id.as_bytes()),
            newer: row.successor(&id)?,
            flow,
            is_put_off: row.joined.put_off_until().is_some_and(|until| self.today < until),
            sessions: Vec::new(),
            outline: Outline {
                key: row.key,
                id,
                status: row.joined.status,
                project: names.intern(""),
                alias: names.intern(""),
                created: dates.created.map_or(i64::MIN, Timestamp::as_millisecond),
                matches: WordMatches::default(),
                tags: Box::default(),
            },
        };
        if self.query.filter.allows(row.joined.status) {
            self.read_words(row, names, &mut found.outline)?;
            if !self.query.sessions.is_empty() {
                for field in [Field::Session, Field::SessionId] {
                    let session = values::line(row.value(field)?, 200);
                    let session = session.filter(|it| self.query.sessions.contains(it.as_str()));
                    found.sessions.extend(session);
                }
            }
        }
        Ok(Some(found))
    }

    fn read_words(
        self,
        row: &StoredRow<'_>,
        names: &mut ProjectNamePool,
        outline: &mut Outline,
    ) -> Result<(), StoreError> {
        if row.is_edited() {
            let memory = row.memory()?;
            outline.matches = matches_in_memory(&memory, self.query.find_words);
            outline.tags = hashes_of(&memory.concepts);
            outline.project = names.intern(&memory.project.unwrap_or_default());
            outline.alias = names.intern(&memory.project_alias.unwrap_or_default());
            return Ok(());
        }
        outline.project = names.of(row, Field::Project)?;
        outline.alias = names.of(row, Field::ProjectAlias)?;
        outline.matches = matches(row, self.query.find_words)?;
        if let ValueRef::Text(list) = row.value(Field::Concepts)? {
            outline.tags = hashes_in_list(list);
        }
        Ok(())
    }
}

/// Project names as one line, by how they are stored.
#[derive(Default)]
struct ProjectNamePool {
    known: HashMap<Box<str>, Arc<str>>,
    /// Most rows have no alias.
    none: Arc<str>,
}

impl ProjectNamePool {
    fn intern(&mut self, name: &str) -> Arc<str> {
        if name.is_empty() {
            return Arc::clone(&self.none);
        }
        if let Some(known) = self.known.get(name) {
            return Arc::clone(known);
        }
        // It is cut where `StoredRow::memory` cuts it.
        let line: Arc<str> = Arc::from(text::line(name, 200));
        self.known.insert(Box::from(name), Arc::clone(&line));
        line
    }

    fn of(&mut self, row: &StoredRow<'_>, field: Field) -> rusqlite::Result<Arc<str>> {
        Ok(self.intern(&values::text_of(row.value(field)?)))
    }
}

/// The words in a decoded memory, for instance one that a curator edited. Its narrative is not read.
fn matches_in_memory(memory: &Memory, find_words: &dyn FindWords) -> WordMatches {
    let one = |text: &str| find_words.in_text(text.as_bytes());
    let optional = |text: &Option<String>| one(text.as_deref().unwrap_or_default());
    let each = |texts: &[String]| texts.iter().fold(0, |found, text| found | one(text));
    let tags = each(&memory.concepts);
    let title_or_tags = tags | one(&memory.title);
    let files = serde_json::to_vec(&memory.files).unwrap_or_default();
    let secondary = optional(&memory.subtitle) | each(&memory.facts);
    WordMatches {
        anywhere: title_or_tags | secondary | find_words.in_files(&files, &|| memory.files.clone()),
        title_or_tags,
        type_or_tags: tags | optional(&memory.kind),
    }
}

fn matches(row: &StoredRow<'_>, find_words: &dyn FindWords) -> rusqlite::Result<WordMatches> {
    let text = |field: Field| row.value(field).map(|it| find_words.in_text(bytes_of(it)));
    let files =
        |field: Field| row.value(field).map(|list| in_stored_files(find_words, bytes_of(list)));
    let tags = text(Field::Concepts)?;
    let title_or_tags = tags | text(Field::Title)?;
    let secondary = text(Field::Subtitle)? | text(Field::Facts)?;
    Ok(WordMatches {
        anywhere: title_or_tags | secondary | files(Field::Files)? | files(Field::FilesMore)?,
        title_or_tags,
        type_or_tags: tags | text(Field::Kind)?,
    })
}

fn bytes_of(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        _ => &[],
    }
}

fn in_stored_files(find_words: &dyn FindWords, list: &[u8]) -> u128 {
    let entries = || values::parse_list(&String::from_utf8_lossy(list), ListKind::Files).0;
    find_words.in_files(list, &entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_one_hash_in_every_spelling_and_list() {
        let long = "Überlanger Tag ".repeat(9);
        for tag in ["Dead_Lock", "dead lock ", "CAFÉ", &long] {
            assert_eq!(tag_hash(tag), xxh3_64(fold_name(tag).as_bytes()), "{tag}");
        }
        let tags = ["dead-lock", "café", "ci"].map(str::to_owned);
        for list in ["[\"Dead_Lock\", \"café\",\"CI\"]", "dead lock, café,ci"] {
            assert_eq!(hashes_in_list(list.as_bytes()), hashes_of(&tags), "{list}");
        }
        assert_eq!([&b"[]"[..], b"null"].map(|list| hashes_in_list(list).len()), [0, 0]);
    }
}
