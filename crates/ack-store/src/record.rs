//! Turns a row into a [`Memory`]: decodes each value, makes text safe, decides the status.

use rusqlite::Row;
use rusqlite::types::ValueRef;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{Field, MemorySource};
use super::values::{self, ListKind};
use ack_api::memory::{Memory, Status, Unreviewed};
use ack_api::text;

/// The largest narrative in bytes. Longer ones are cut, because no answer holds that much.
const NARRATIVE_CAP: usize = 2 << 20;
/// The title of a memory that has no usable title.
pub const UNTITLED: &str = "(untitled)";

/// The status that the store records: `Ok(None)` if the table has no status column, `Err` with an
/// unknown word.
fn stored_status(
    row: &Row<'_>,
    source: &MemorySource,
) -> rusqlite::Result<Result<Option<Status>, String>> {
    if source.column(Field::Status).is_none() {
        return Ok(Ok(None));
    }
    Ok(values::status(row.get_ref(Field::Status.position())?).map(Some))
}

/// The effective status: the store's, or the scope's policy. An unknown word counts as rejected, so
/// that the memory is never served.
pub fn status(
    row: &Row<'_>,
    source: &MemorySource,
    unreviewed: Unreviewed,
) -> rusqlite::Result<Status> {
    Ok(match stored_status(row, source)? {
        Ok(Some(status)) => status,
        Ok(None) => unreviewed.status(),
        Err(_) => Status::Rejected,
    })
}

/// The public id of a row for answers: safe to print, at most 200 characters, empty if the row has
/// none.
///
/// # Errors
/// The error from SQLite.
pub fn id(row: &Row<'_>) -> rusqlite::Result<String> {
    Ok(text::line(
        &values::string(row.get_ref(1)?).0.unwrap_or_default(),
        200,
    ))
}

/// Decodes a row selected by [`MemorySource::select_list`].
///
/// # Errors
/// The error from SQLite. An invalid value is not an error.
pub fn memory(
    row: &Row<'_>,
    source: &MemorySource,
    unreviewed: Unreviewed,
) -> rusqlite::Result<Memory> {
    let mut repaired = Vec::new();
    let mut one_line =
        |field: Field, name: &'static str, cap: usize| -> rusqlite::Result<Option<String>> {
            let (value, lost) = values::string(row.get_ref(field.position())?);
            if lost {
                repaired.push(name);
            }
            Ok(value
                .map(|value| text::line(&value, cap))
                .filter(|value| !value.is_empty()))
        };
    let project = one_line(Field::Project, "project", 200)?;
    let project_alias = one_line(Field::ProjectAlias, "project", 200)?;
    let session = one_line(Field::Session, "session", 200)?;
    let session_id = one_line(Field::SessionId, "session_id", 200)?;
    let date = one_line(Field::Date, "date", 40)?;
    let kind = one_line(Field::Kind, "type", 100)?.or_else(|| source.kind.map(str::to_owned));
    let title = one_line(Field::Title, "title", 300)?;
    let subtitle = one_line(Field::Subtitle, "subtitle", 600)?;
    let reviewed_by = one_line(Field::ReviewedBy, "reviewed_by", 200)?;
    let superseded_by = one_line(Field::SupersededBy, "superseded_by", 200)?;
    let mut lists =
        |field: Field, name: &'static str, kind: ListKind| -> rusqlite::Result<Vec<String>> {
            let (raw, lost) = values::string(row.get_ref(field.position())?);
            let raw = raw.unwrap_or_default();
            let (entries, guessed) = values::list(&raw, kind);
            if lost || guessed {
                repaired.push(name);
            }
            Ok(entries)
        };
    let facts = lists(Field::Facts, "facts", ListKind::Facts)?;
    let concepts = lists(Field::Concepts, "concepts", ListKind::Concepts)?;
    let mut files = lists(Field::Files, "files", ListKind::Files)?;
    for file in lists(Field::FilesMore, "files", ListKind::Files)? {
        if !files.contains(&file) {
            files.push(file);
        }
    }

    let narrative = narrative(row, source, &mut repaired)?;
    let created_at = first_instant(row, &[Field::CreatedEpoch, Field::Created, Field::Date])?;
    let stated =
        matches!(row.get_ref(Field::Created.position())?, ValueRef::Text(text) if !text.is_empty());
    if stated && values::instant(row.get_ref(Field::Created.position())?).is_none() {
        repaired.push("created_at");
    }
    let title = title.or_else(|| subtitle.clone()).or_else(|| {
        let first = narrative
            .as_deref()?
            .lines()
            .find(|line| !line.trim().is_empty())?;
        Some(text::line(first, 120))
    });
    repaired.dedup();
    Ok(Memory {
        id: id(row)?,
        project,
        project_alias,
        session,
        session_id,
        date,
        kind,
        title: title.unwrap_or_else(|| UNTITLED.to_owned()),
        subtitle,
        facts,
        concepts,
        files,
        narrative,
        status: status(row, source, unreviewed)?,
        unknown_status: stored_status(row, source)?.err(),
        confidence: values::fraction(row.get_ref(Field::Confidence.position())?),
        reviewed_at: values::instant(row.get_ref(Field::ReviewedAt.position())?),
        reviewed_by,
        superseded_by,
        created_at,
        updated_at: first_instant(row, &[Field::UpdatedEpoch, Field::Updated])?,
        repaired,
    })
}

/// A 64-bit hash of every value of a selected row. A different hash means that the row changed.
///
/// # Errors
/// The error from SQLite.
pub fn fingerprint(
    row: &Row<'_>,
    source: &MemorySource,
    bytes: &mut Vec<u8>,
) -> rusqlite::Result<u64> {
    bytes.clear();
    for position in 0..2 + Field::ALL.len() + source.narrative.len() {
        // Fields without a column are skipped: each value costs several calls into SQLite.
        let field = position
            .checked_sub(2)
            .and_then(|index| source.columns.get(index));
        if field.is_some_and(Option::is_none) {
            bytes.push(0);
            continue;
        }
        match row.get_ref(position)? {
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
    // Hashing everything at once is several times faster than piece by piece.
    Ok(xxh3_64(bytes))
}

fn narrative(
    row: &Row<'_>,
    source: &MemorySource,
    repaired: &mut Vec<&'static str>,
) -> rusqlite::Result<Option<String>> {
    let mut whole = String::new();
    for (offset, (label, _)) in source.narrative.iter().enumerate() {
        let (value, lost) = values::string(row.get_ref(2 + Field::ALL.len() + offset)?);
        if lost {
            repaired.push("narrative");
        }
        let Some(value) = value else { continue };
        let (kept, shortened) = text::cut(&value, NARRATIVE_CAP);
        if shortened {
            repaired.push("narrative");
        }
        let part = text::block(&kept);
        // Two columns of one row often hold the same text.
        if part.is_empty() || whole.contains(&part) {
            continue;
        }
        if !whole.is_empty() {
            whole.push_str("\n\n");
        }
        if !label.is_empty() {
            whole.push_str(label);
            whole.push_str(": ");
        }
        whole.push_str(&part);
    }
    Ok((!whole.is_empty()).then_some(whole))
}

/// The first of some fields that holds a time.
///
/// # Errors
/// The error from SQLite.
pub fn first_instant(row: &Row<'_>, fields: &[Field]) -> rusqlite::Result<Option<jiff::Timestamp>> {
    for field in fields {
        if let Some(instant) = values::instant(row.get_ref(field.position())?) {
            return Ok(Some(instant));
        }
    }
    Ok(None)
}
