//! The columns of a vector table: their names and types, and how rows are written to batches.
//!
//! `source` and `row` locate the memory in the store. `fingerprint` is the XXH3 hash of
//! all values of that row. `status` is the one that the memory had when the row was written; readers
//! take it from the store. `batch` is the number of the batch in which the row was written. One row
//! of each batch is not a memory but the batch's lexicon. `detail` is what scoring the memory needs, and `words` its terms for LanceDB's
//! full-text index: see [`super::terms`]. `vector` has norm 1, or less if the encoder knows few
//! words of the text; it is null if the encoder knows none. `model` is the XXH3 hash of the weights
//! of the network that contributed to the vector, if one did. `check` is the XXH3 hash of the
//! columns that readers keep in memory, because LanceDB does not notice a flipped bit; `detail`
//! begins with a checksum of its own.
//!
//! A table that replaces its store ([`Extent::Records`]) also has `record`: whole memories, see
//! [`super::record_blocks`]. The `length` of its lexicons is the number of records in the batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, FixedSizeListArray, Float32Array, LargeBinaryArray, LargeBinaryBuilder,
    ListBuilder, PrimitiveArray, RecordBatch, StringArray, StringBuilder, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Int64Type, Schema, SchemaRef, UInt8Type, UInt32Type,
    UInt64Type,
};
use arrow::error::ArrowError;

use super::TableError;
use super::extent::{Extent, META_EXTENT};
use super::record_blocks::BlockWriter;
use super::rows;
use super::terms::{self, EncodedTerms, LEXICON_SOURCE};
use ack_api::memory::Memory;
use ack_api::source::StoredMemory;
use ack_search::analyzer::AnalyzedDoc;
use ack_search::dictionary::Dictionary;
use ack_search::encoder::Encoder;

/// Version of the columns, of the analysis that produces the terms, and of the encoded text.
pub const COLUMNS_VERSION: &str = "7";

/// How many bytes of a memory's text the table keeps, for people who read it with other tools.
const TEXT_CAP: usize = 4_000;

/// The metadata key of the encoder's name.
pub const META_ENCODER: &str = "ack-memory.encoder";
/// Key of the network that reads every memory of the table; absent without one.
const META_NETWORK: &str = "ack-memory.network";
/// The value of [`META_NETWORK`] for the small transformer inside the binary.
const CONTEXTUAL: &str = "contextual";

/// The last column: a checksum of those that readers keep in memory.
pub const CHECK: &str = "check";

const COLUMNS: &str = "source row fingerprint id status project alias session session_id type tags \
    files created updated superseded_by length model check";

/// The columns that every reader needs, and others. A reader that searches in memory also needs
/// `detail`.
pub fn names(others: &[&'static str]) -> Vec<&'static str> {
    COLUMNS.split(' ').chain(others.iter().copied()).collect()
}

pub fn schema(encoder: &Encoder, extent: Extent, is_contextual: bool) -> SchemaRef {
    let dimension = i32::try_from(encoder.dimension).unwrap_or(i32::MAX);
    let text = |name: &str, null: bool| Field::new(name, DataType::Utf8, null);
    let list = |name: &str| {
        Field::new(name, DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), true)
    };
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let mut fields = vec![
        Field::new("source", DataType::UInt8, false),
        Field::new("row", DataType::Int64, false),
        Field::new("fingerprint", DataType::UInt64, false),
        text("id", false),
        text("status", false),
        text("project", true),
        text("alias", true),
        text("session", true),
        text("session_id", true),
        text("type", true),
        list("tags"),
        list("files"),
        Field::new("created", DataType::Int64, true),
        Field::new("updated", DataType::Int64, true),
        text("superseded_by", true),
        Field::new("length", DataType::UInt32, false),
        text("text", false),
        text("words", false),
        Field::new("batch", DataType::UInt64, false),
        uncompressed(Field::new("detail", DataType::Binary, false)),
        Field::new("vector", DataType::FixedSizeList(item, dimension), true),
        text("model", true),
    ];
    let mut metadata = metadata(encoder);
    if let Some(name) = extent.name() {
        metadata.insert(META_EXTENT.to_owned(), name.to_owned());
    }
    if is_contextual {
        metadata.insert(META_NETWORK.to_owned(), CONTEXTUAL.to_owned());
    }
    if extent.has_records() {
        fields.push(uncompressed(Field::new("record", DataType::LargeBinary, true)));
    }
    fields.push(Field::new(CHECK, DataType::UInt64, false));
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// A column that LanceDB does not compress, because that would slow every reader and save almost
/// nothing.
fn uncompressed(field: Field) -> Field {
    field.with_metadata([("lance-encoding:compression".to_owned(), "none".to_owned())].into())
}

/// What every reader checks: the fields in `template` are those that are encoded, in order.
fn metadata(encoder: &Encoder) -> HashMap<String, String> {
    [
        ("ack-memory.version", COLUMNS_VERSION),
        (META_ENCODER, &encoder.name),
        ("ack-memory.weights", Encoder::weights_hash()),
        ("ack-memory.dimension", &encoder.dimension.to_string()),
        ("ack-memory.template", "title subtitle facts narrative concepts"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

/// Checks that a table's vectors and terms are those that this program would produce.
pub fn check(found: &HashMap<String, String>, encoder: &Encoder) -> Result<(), TableError> {
    for (key, needed) in metadata(encoder) {
        let value = found.get(&key).map_or("nothing", String::as_str);
        if value != needed {
            let name = key.rsplit('.').next().unwrap_or(&key);
            return Err(TableError::Mismatch {
                found: format!("{name} {}", ack_api::text::line(value, 60)),
                needed: format!("{name} {}", ack_api::text::line(&needed, 60)),
            });
        }
    }
    Ok(())
}

/// Whether a table was begun with the small transformer.
pub fn is_contextual(metadata: &HashMap<String, String>) -> bool {
    metadata.get(META_NETWORK).map(String::as_str) == Some(CONTEXTUAL)
}

pub struct NewRow<'a> {
    pub stored: &'a StoredMemory,
    pub analyzed: &'a AnalyzedDoc,
    /// The dictionary that resolves the numbers of its terms.
    pub lexicon: &'a Dictionary,
    /// Hash of the network that contributed to the vector, if one did.
    pub model: Option<&'a str>,
}

/// A batch of the table: the lexicon of the rows, then the rows.
pub fn batch(
    schema: &SchemaRef,
    extent: Extent,
    number: u64,
    rows: &[NewRow<'_>],
) -> Result<RecordBatch, TableError> {
    let terms = terms::encode_terms(u32::try_from(number).unwrap_or(u32::MAX), rows);
    batch_of_terms(schema, extent, (number, terms), rows)
}

/// The lexicon of a batch again, without its rows.
pub fn lexicon(
    schema: &SchemaRef,
    number: u64,
    detail: Vec<u8>,
) -> Result<RecordBatch, TableError> {
    let terms = EncodedTerms { lexicon: detail, rows: Vec::new(), words: Vec::new() };
    batch_of_terms(schema, Extent::Derived, (number, terms), &[])
}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> Self {
        Self::lance_error("make a batch")(error)
    }
}

fn batch_of_terms(
    schema: &SchemaRef,
    extent: Extent,
    (number, terms): (u64, EncodedTerms),
    rows: &[NewRow<'_>],
) -> Result<RecordBatch, TableError> {
    let on_disk = extent.is_searched_on_disk();
    let batch_row = i64::try_from(number).unwrap_or(i64::MAX);
    let records_in_batch =
        if extent.has_records() { u32::try_from(rows.len()).unwrap_or(u32::MAX) } else { 0 };
    let count = rows.len() + 1;
    let mut values: Vec<ArrayRef> = vec![
        numbers::<UInt8Type>(Some(LEXICON_SOURCE), rows, |row| Some(row.stored.key.source)),
        numbers::<Int64Type>(Some(batch_row), rows, |row| Some(row.stored.key.rowid)),
        numbers::<UInt64Type>(Some(0), rows, |row| Some(row.stored.fingerprint)),
        texts(rows, |row| Some(&row.stored.memory.id)),
        texts(rows, |row| Some(row.stored.memory.status.as_str())),
        texts(rows, |row| row.stored.memory.project.as_deref()),
        texts(rows, |row| row.stored.memory.project_alias.as_deref()),
        texts(rows, |row| row.stored.memory.session.as_deref()),
        texts(rows, |row| row.stored.memory.session_id.as_deref()),
        texts(rows, |row| row.stored.memory.kind.as_deref()),
        lists(rows, |row| &row.stored.memory.concepts),
        lists(rows, |row| &row.stored.memory.files),
        numbers::<Int64Type>(None, rows, |row| milliseconds(row.stored.memory.created_at)),
        numbers::<Int64Type>(None, rows, |row| milliseconds(row.stored.memory.updated_at)),
        texts(rows, |row| row.stored.memory.superseded_by.as_deref()),
        numbers::<UInt32Type>(Some(records_in_batch), rows, |row| Some(row.analyzed.length)),
        searched_texts(rows.iter().map(|row| on_disk.then(|| text(&row.stored.memory)))),
        searched_texts(terms.words.into_iter().map(|words| on_disk.then_some(words))),
        Arc::new(UInt64Array::from_value(number, count)),
        Arc::new(BinaryArray::from_iter_values(std::iter::once(terms.lexicon).chain(terms.rows))),
        Arc::new(vectors(schema, on_disk, rows)?),
        Arc::new(StringArray::from_iter(
            std::iter::once(None).chain(rows.iter().map(|row| row.model)),
        )),
    ];
    if extent.has_records() {
        values.push(Arc::new(records(rows).map_err(ArrowError::from)?));
    }
    with_checksums(schema, values)
}

/// A column of numbers: the value of the lexicon, then those of the rows.
fn numbers<T: ArrowPrimitiveType>(
    lexicon: Option<T::Native>,
    rows: &[NewRow<'_>],
    value: impl Fn(&NewRow<'_>) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(std::iter::once(lexicon).chain(rows.iter().map(value)).collect::<PrimitiveArray<T>>())
}

/// A column of texts. The lexicon has an empty one.
fn texts(
    rows: &[NewRow<'_>],
    value: for<'r, 'm> fn(&'r NewRow<'m>) -> Option<&'r str>,
) -> ArrayRef {
    Arc::new(std::iter::once(Some("")).chain(rows.iter().map(value)).collect::<StringArray>())
}

/// A column of lists of texts. The lexicon has an empty one.
fn lists(rows: &[NewRow<'_>], value: for<'r, 'm> fn(&'r NewRow<'m>) -> &'r [String]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append(true);
    for row in rows {
        for text in value(row) {
            lists.values().append_value(text);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// A column of texts that only a table which is searched on disk needs.
fn searched_texts(texts: impl Iterator<Item = Option<String>>) -> ArrayRef {
    let texts = std::iter::once(None).chain(texts).map(Option::unwrap_or_default);
    Arc::new(StringArray::from_iter_values::<String, _>(texts))
}

/// The column `vector`. The lexicon has none, and in a table that is loaded into memory the rows
/// have it in their detail.
fn vectors(
    schema: &SchemaRef,
    on_disk: bool,
    rows: &[NewRow<'_>],
) -> Result<FixedSizeListArray, ArrowError> {
    let dimension = match schema.field_with_name("vector")?.data_type() {
        DataType::FixedSizeList(_, dimension) => *dimension,
        _ => 0,
    };
    let length = usize::try_from(dimension).unwrap_or_default();
    let mut components: Vec<f32> = vec![0.0; length];
    let mut known = vec![false];
    for row in rows {
        let vector = row.analyzed.vector.as_deref();
        let vector = vector.filter(|vector| on_disk && vector.len() == length);
        known.push(vector.is_some());
        components.extend_from_slice(vector.unwrap_or_default());
        components.resize(known.len() * length, 0.0);
    }
    FixedSizeListArray::try_new(
        Arc::new(Field::new("item", DataType::Float32, true)),
        dimension,
        Arc::new(Float32Array::from(components)),
        Some(NullBuffer::from(known)),
    )
}

/// A batch of these columns and their checksums.
fn with_checksums(
    schema: &SchemaRef,
    mut values: Vec<ArrayRef>,
) -> Result<RecordBatch, TableError> {
    let unchecked: Vec<_> = schema.fields().iter().take(values.len()).cloned().collect();
    let unchecked = RecordBatch::try_new(Arc::new(Schema::new(unchecked)), values.clone())?;
    let mut checksums = vec![0; unchecked.num_rows()];
    rows::entries(&unchecked, |position, entry| {
        if let Some(checksum) = checksums.get_mut(position) {
            *checksum = rows::checksum(entry);
        }
        Ok(())
    })?;
    values.push(Arc::new(UInt64Array::from(checksums)));
    Ok(RecordBatch::try_new(Arc::clone(schema), values)?)
}

fn milliseconds(moment: Option<jiff::Timestamp>) -> Option<i64> {
    moment.map(jiff::Timestamp::as_millisecond)
}

/// The column `record` of a batch: all of its records are in the row of the lexicon.
fn records(rows: &[NewRow<'_>]) -> std::io::Result<LargeBinaryArray> {
    let mut blocks = BlockWriter::default();
    for row in rows {
        blocks.push(row.stored.key, &row.stored.memory.to_json())?;
    }
    let mut records = LargeBinaryBuilder::new();
    records.append_value(blocks.finish()?);
    records.append_nulls(rows.len());
    Ok(records.finish())
}

fn text(memory: &Memory) -> String {
    let full_text = text_parts(memory).collect::<Vec<_>>().join("\n");
    ack_api::text::cut(&full_text, TEXT_CAP).0.into_owned()
}

fn text_parts(memory: &Memory) -> impl Iterator<Item = &str> {
    std::iter::once(memory.title.as_str())
        .chain(memory.subtitle.as_deref())
        .chain(memory.facts.iter().map(String::as_str))
        .chain(memory.narrative.as_deref())
}

pub fn encoded_text(memory: &Memory) -> String {
    let concepts = memory.concepts.iter().map(String::as_str);
    text_parts(memory).chain(concepts).collect::<Vec<_>>().join("\n")
}
