//! A store in outline: what decides whether a memory may be told and how old it is, for every row, without its long text.
//!
//! It is read straight from SQLite in one pass and costs a fraction of an index. A process that answers one question and
//! ends, as a hook does, chooses by it which few records to read.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::layout::{Field, Source};
use super::read::RowKey;
use super::{Snapshot, record, values};
use crate::error::StoreError;
use crate::memory::{self, Status, StatusFilter, Successor};
use crate::text;

/// The fields that are read.
const READ: [Field; 14] = [
    Field::Project,
    Field::ProjectAlias,
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
];

/// The other fields that are looked through for words.
const PASSING: [Field; 4] = [Field::Subtitle, Field::Facts, Field::Files, Field::FilesMore];

/// The words found in a row, one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// In any field.
    pub anywhere: u128,
    /// In the title or among the tags.
    pub telling: u128,
    /// In the type or among the tags.
    pub label: u128,
}

/// A memory in outline.
#[derive(Debug, Clone)]
pub struct Outline {
    /// Where the row lies.
    pub key: RowKey,
    /// Its public id.
    pub id: String,
    /// Its status.
    pub status: Status,
    /// Its project; empty where the store names none.
    pub project: String,
    /// The project's second name.
    pub alias: String,
    /// When it was written, milliseconds since 1970; `i64::MIN` where unknown.
    pub created: i64,
    /// The words that were found in it.
    pub marks: Marks,
}

/// A store in outline.
#[derive(Debug, Default)]
pub struct Outlines {
    /// The memories that the filter lets through and no newer one replaces, in the order in which they were stored.
    pub served: Vec<Outline>,
    /// How many wait for review.
    pub pending: u64,
    /// When the oldest of those was written, milliseconds since 1970.
    pub oldest_pending: Option<i64>,
}

/// What the rule on successors needs of every row that is not rejected.
struct Known {
    status: Status,
    successor: Option<Box<str>>,
}

impl Snapshot<'_> {
    /// Reads the store in outline. `find` is given the raw bytes of each field of a memory that the filter lets through and
    /// says which words stand there, one bit a word.
    ///
    /// # Errors
    /// What SQLite said.
    pub fn outlines(&self, filter: StatusFilter, find: &dyn Fn(&[u8]) -> u128) -> Result<Outlines, StoreError> {
        let fail = |error| StoreError::sqlite(self.path, error);
        let mut outlines = Outlines::default();
        let mut known: HashMap<String, Known> = HashMap::default();
        let mut rejected: HashSet<String> = HashSet::default();
        for (number, source) in (0u8..).zip(self.layout.sources.iter()) {
            let order = source.row_number.map_or_else(String::new, |number| format!(" ORDER BY {number}"));
            let sql = format!("SELECT {} FROM {}{order}", source.select_only(&READ), source.table);
            let mut statement = self.connection.prepare(&sql).map_err(fail)?;
            let mut rows = statement.query([]).map_err(fail)?;
            while let Some(row) = rows.next().map_err(fail)? {
                let id = record::id(row).map_err(fail)?;
                let status = record::status(row, source, self.unreviewed).map_err(fail)?;
                if status == Status::Rejected {
                    rejected.insert(id);
                    continue;
                }
                // Of rows with one id the first counts, and a row without an id cannot be asked for.
                if id.is_empty() || known.contains_key(&id) {
                    continue;
                }
                let successor = line(row, Field::SupersededBy).map_err(fail)?;
                let successor = (!successor.is_empty() && successor != id).then(|| successor.into_boxed_str());
                known.insert(id.clone(), Known { status, successor });
                let created = || -> Result<i64, StoreError> {
                    let fields = [Field::CreatedEpoch, Field::Created, Field::Date];
                    let created = record::first_instant(row, &fields).map_err(fail)?;
                    Ok(created.map_or(i64::MIN, jiff::Timestamp::as_millisecond))
                };
                if status == Status::Staging {
                    outlines.pending += 1;
                    let oldest = created()?;
                    if oldest > i64::MIN {
                        outlines.oldest_pending = Some(outlines.oldest_pending.map_or(oldest, |known| known.min(oldest)));
                    }
                }
                if !filter.allows(status) {
                    continue;
                }
                outlines.served.push(Outline {
                    key: RowKey {
                        source: number,
                        rowid: row.get(0).map_err(fail)?,
                    },
                    status,
                    project: line(row, Field::Project).map_err(fail)?,
                    alias: line(row, Field::ProjectAlias).map_err(fail)?,
                    created: created()?,
                    marks: marks(row, source, find).map_err(fail)?,
                    id,
                });
            }
        }
        let look = |id: &str| match known.get(id) {
            _ if rejected.contains(id) => Successor::Rejected,
            Some(found) => Successor::There {
                status: found.status,
                next: found.successor.as_deref(),
            },
            None => Successor::Gone,
        };
        outlines.served.retain(|outline| {
            let first = known.get(&outline.id).and_then(|own| own.successor.as_deref());
            !memory::is_superseded(&outline.id, first, filter, look)
        });
        Ok(outlines)
    }
}

/// A field as one line, empty where the row has none; cut where [`record::memory`] cuts it.
fn line(row: &Row<'_>, field: Field) -> rusqlite::Result<String> {
    let (value, _) = values::string(row.get_ref(field.position())?);
    Ok(value.map(|value| text::line(&value, 200)).unwrap_or_default())
}

fn marks(row: &Row<'_>, source: &Source, find: &dyn Fn(&[u8]) -> u128) -> rusqlite::Result<Marks> {
    let within = |fields: &[Field]| -> rusqlite::Result<u128> {
        let mut found = 0;
        for field in fields.iter().filter(|field| source.column(**field).is_some()) {
            if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(field.position())? {
                found |= find(bytes);
            }
        }
        Ok(found)
    };
    let tags = within(&[Field::Concepts])?;
    let telling = tags | within(&[Field::Title])?;
    Ok(Marks {
        anywhere: telling | within(&PASSING)?,
        telling,
        label: tags | within(&[Field::Kind])?,
    })
}
