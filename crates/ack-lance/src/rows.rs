//! How the rows of a vector table are read.

use arrow::array::{
    Array, AsArray, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};

use super::TableError;
use super::columns::CHECK;
use super::terms::{self, LEXICON_SOURCE};
use ack_api::memory::Status;
use ack_api::source::RowKey;
use ack_search::inverted::DocEntry;
use ack_search::semantic::QuantizedVector;

/// A row's `detail`, decoded.
pub enum Detail<'a> {
    /// The lexicon of a batch: its number, and bytes for [`super::terms::decode_lexicon`].
    Lexicon(u32, &'a [u8]),
    /// A memory: the number of its batch, its vector, and bytes for [`super::terms::read_terms`].
    Memory(u32, Option<QuantizedVector>, &'a [u8]),
}

pub fn column<'a, T: Array + 'static>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a T, TableError> {
    let column = batch.column_by_name(name);
    column
        .and_then(|column| column.as_any().downcast_ref())
        .ok_or(TableError::Column { column: name })
}

/// Visits the detail of every row, with its position in the batch.
pub fn details(
    batch: &RecordBatch,
    mut each: impl FnMut(usize, Detail<'_>) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let source = column::<UInt8Array>(batch, "source")?;
    let details = column::<BinaryArray>(batch, "detail")?;
    for (row, source) in source.values().iter().enumerate() {
        let detail = details.value(row);
        let detail = if *source == LEXICON_SOURCE {
            terms::decode_lexicon(detail).map(|(batch, ..)| Detail::Lexicon(batch, detail))
        } else {
            terms::decode_memory(detail)
                .map(|(batch, code, terms)| Detail::Memory(batch, code, terms))
        };
        each(row, detail.ok_or(TableError::Damaged)?)?;
    }
    Ok(())
}

/// Visits every memory, with its position in the batch.
pub fn memories(
    batch: &RecordBatch,
    mut each: impl FnMut(usize, &DocEntry<'_>),
) -> Result<(), TableError> {
    let checksums = column::<UInt64Array>(batch, CHECK)?;
    entries(batch, |position, entry| {
        if checksums.value(position) != checksum(entry) {
            return Err(TableError::Damaged);
        }
        each(position, entry);
        Ok(())
    })
}

/// Visits every memory, as [`memories`] does, and checks no checksum.
pub fn entries<'a>(
    batch: &'a RecordBatch,
    mut each: impl FnMut(usize, &DocEntry<'_>) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let source = column::<UInt8Array>(batch, "source")?;
    let row = column::<Int64Array>(batch, "row")?;
    let fingerprint = column::<UInt64Array>(batch, "fingerprint")?;
    let length = column::<UInt32Array>(batch, "length")?;
    let created = column::<Int64Array>(batch, "created")?;
    let updated = column::<Int64Array>(batch, "updated")?;
    let id = column::<StringArray>(batch, "id")?;
    let status = column::<StringArray>(batch, "status")?;
    let optional = ["project", "alias", "session", "session_id", "type", "superseded_by"];
    let optional = optional.map(|name| column::<StringArray>(batch, name));
    let [Ok(project), Ok(alias), Ok(session), Ok(session_id), Ok(kind), Ok(superseded)] = optional
    else {
        return Err(TableError::Column { column: "project" });
    };
    let (tags, files) = (
        Strings::new(column::<ListArray>(batch, "tags")?)?,
        Strings::new(column::<ListArray>(batch, "files")?)?,
    );
    for row_index in 0..batch.num_rows() {
        let text = |column: &'a StringArray| {
            if column.is_null(row_index) { "" } else { column.value(row_index) }
        };
        let number =
            |column: &Int64Array| (!column.is_null(row_index)).then(|| column.value(row_index));
        if source.value(row_index) == LEXICON_SOURCE {
            continue;
        }
        let entry = DocEntry {
            key: RowKey { source: source.value(row_index), rowid: row.value(row_index) },
            fingerprint: fingerprint.value(row_index),
            id: text(id),
            created: number(created).unwrap_or(i64::MIN),
            updated: number(updated).unwrap_or(i64::MIN),
            length: length.value(row_index),
            status: Status::parse(text(status))
                .filter(|status| *status != Status::Rejected)
                .ok_or(TableError::Damaged)?,
            project: text(project),
            alias: text(alias),
            session: text(session),
            session_id: text(session_id),
            kind: text(kind),
            tags: tags.row(row_index)?,
            files: files.row(row_index)?,
            superseded_by: Some(text(superseded)).filter(|id| !id.is_empty()),
        };
        each(row_index, &entry)?;
    }
    Ok(())
}

/// The XXH3 hash of the columns that an entry was read from.
pub fn checksum(entry: &DocEntry<'_>) -> u64 {
    // Hashing everything at once is several times faster than piece by piece.
    let mut bytes = Vec::with_capacity(512);
    bytes.push(entry.key.source);
    for number in [entry.key.rowid, entry.created, entry.updated] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&entry.fingerprint.to_le_bytes());
    bytes.extend_from_slice(&entry.length.to_le_bytes());
    let texts = [
        entry.id,
        entry.status.as_str(),
        entry.project,
        entry.alias,
        entry.session,
        entry.session_id,
        entry.kind,
        entry.superseded_by.unwrap_or_default(),
    ];
    for list in [&texts[..], &entry.tags, &entry.files] {
        bytes.extend_from_slice(&(list.len() as u64).to_le_bytes());
        for text in list {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

struct Strings<'a> {
    offsets: &'a [i32],
    values: &'a StringArray,
}

impl<'a> Strings<'a> {
    fn new(lists: &'a ListArray) -> Result<Self, TableError> {
        Ok(Self {
            offsets: lists.value_offsets(),
            values: lists.values().as_string_opt::<i32>().ok_or(TableError::Damaged)?,
        })
    }

    fn row(&self, index: usize) -> Result<Vec<&'a str>, TableError> {
        let offset =
            |index: usize| self.offsets.get(index).and_then(|offset| usize::try_from(*offset).ok());
        let (Some(start), Some(end)) = (offset(index), offset(index + 1)) else {
            return Err(TableError::Damaged);
        };
        if start > end || end > self.values.len() {
            return Err(TableError::Damaged);
        }
        let known = (start..end).filter(|value| !self.values.is_null(*value));
        Ok(known.map(|value| self.values.value(value)).collect())
    }
}
