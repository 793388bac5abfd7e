//! The columns of a vector table: their names and types, and how rows are written to batches.
//!
//! `source` and `row` locate the memory in the store. `fingerprint` is the XXH3 hash of
//! all values of that row, `content` the hash of the encoded text. `batch` is the number of the
//! batch in which the row was written. Each batch begins with a row that is not a memory but the
//! batch's lexicon. `detail` is what scoring the memory needs, and `words` its terms for LanceDB's
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
    ArrayRef, BinaryBuilder, FixedSizeListArray, Float32Array, Int64Builder, LargeBinaryArray,
    LargeBinaryBuilder, ListBuilder, RecordBatch, StringBuilder, UInt8Builder, UInt32Builder,
    UInt64Array, UInt64Builder,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use super::TableError;
use super::extent::{Extent, META_EXTENT};
use super::record_blocks::BlockWriter;
use super::rows::{self, Rows};
use super::terms::{self, LEXICON_SOURCE};
use ack_api::memory::Memory;
use ack_api::record::Record;
use ack_api::source::RowKey;
use ack_search::analyzer::AnalyzedDoc;
use ack_search::dictionary::Dictionary;
use ack_search::encoder::Encoder;

/// Version of the columns, of the analysis that produces the terms, and of the encoded text.
pub const COLUMNS_VERSION: &str = "6";

/// How many bytes of a memory's text the table keeps, for people who read it with other tools.
const TEXT_CAP: usize = 4_000;

/// The version of the columns. This and the next four constants are keys of the schema's metadata.
pub const META_VERSION: &str = "ack-memory.version";
/// The encoder's name.
pub const META_ENCODER: &str = "ack-memory.encoder";
/// Hash of the encoder's weights.
pub const META_WEIGHTS: &str = "ack-memory.weights";
/// Number of components of a vector.
pub const META_DIMENSION: &str = "ack-memory.dimension";
/// Which fields of a memory are encoded, in order.
pub const META_TEMPLATE: &str = "ack-memory.template";
/// Key of the network that reads every memory of the table; absent without one.
const META_NETWORK: &str = "ack-memory.network";
/// The value of [`META_NETWORK`] for the small transformer inside the binary.
const CONTEXTUAL: &str = "contextual";

/// The fields of a memory that are encoded, in order.
pub const ENCODED_FIELDS: &str = "title subtitle facts narrative concepts";

/// The last column: a checksum of those that readers keep in memory.
pub const CHECK: &str = "check";

/// The columns that every reader needs. A reader that searches in memory also needs `detail`.
pub const COLUMNS: [&str; 18] = [
    "source",
    "row",
    "fingerprint",
    "id",
    "status",
    "project",
    "alias",
    "session",
    "session_id",
    "type",
    "tags",
    "files",
    "created",
    "updated",
    "superseded_by",
    "length",
    "model",
    CHECK,
];

/// The schema of a table for an encoder.
pub fn schema(encoder: &Encoder, extent: Extent, is_contextual: bool) -> SchemaRef {
    let dimension = i32::try_from(encoder.dimension()).unwrap_or(i32::MAX);
    let text = |name: &str, null: bool| Field::new(name, DataType::Utf8, null);
    let list = |name: &str| {
        Field::new(
            name,
            DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))),
            true,
        )
    };
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let mut fields = vec![
        Field::new("source", DataType::UInt8, false),
        Field::new("row", DataType::Int64, false),
        Field::new("fingerprint", DataType::UInt64, false),
        Field::new("content", DataType::UInt64, false),
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
        fields.push(uncompressed(Field::new(
            "record",
            DataType::LargeBinary,
            true,
        )));
    }
    fields.push(Field::new(CHECK, DataType::UInt64, false));
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// A column that LanceDB does not compress, because that would slow every reader and save almost
/// nothing.
fn uncompressed(field: Field) -> Field {
    field.with_metadata([("lance-encoding:compression".to_owned(), "none".to_owned())].into())
}

/// The metadata of a new table.
pub fn metadata(encoder: &Encoder) -> HashMap<String, String> {
    [
        (META_VERSION, COLUMNS_VERSION.to_owned()),
        (META_ENCODER, encoder.name().to_owned()),
        (META_WEIGHTS, encoder.weights_hash().to_owned()),
        (META_DIMENSION, encoder.dimension().to_string()),
        (META_TEMPLATE, ENCODED_FIELDS.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// Checks that a table's vectors and terms are those that this program would produce.
///
/// # Errors
/// [`TableError::Mismatch`] with the first difference.
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

/// A row to write.
pub struct NewRow<'a> {
    /// Where it is in the store.
    pub key: RowKey,
    /// Hash of the row's values.
    pub fingerprint: u64,
    /// The memory.
    pub memory: &'a Memory,
    /// Its terms and vector.
    pub doc: &'a AnalyzedDoc,
    /// Hash of the network that contributed to the vector, if one did.
    pub model: Option<&'a str>,
    /// The analyzer whose dictionary numbers its terms.
    pub analyzer: usize,
    /// The dictionary that resolves the numbers of its terms.
    pub lexicon: Option<&'a Dictionary>,
}

/// A batch of the table: the lexicon of the rows, then the rows.
///
/// # Errors
/// If arrow refuses the columns.
pub fn batch(
    schema: &SchemaRef,
    extent: Extent,
    number: u64,
    rows: &[NewRow<'_>],
) -> Result<RecordBatch, arrow::error::ArrowError> {
    let (mut source, mut row) = (UInt8Builder::new(), Int64Builder::new());
    let (mut fingerprint, mut content, mut length) = (
        UInt64Builder::new(),
        UInt64Builder::new(),
        UInt32Builder::new(),
    );
    let mut texts: [StringBuilder; 10] = std::array::from_fn(|_| StringBuilder::new());
    let (mut tags, mut files) = (
        ListBuilder::new(StringBuilder::new()),
        ListBuilder::new(StringBuilder::new()),
    );
    let (mut created, mut updated) = (Int64Builder::new(), Int64Builder::new());
    let (mut detail, mut model) = (BinaryBuilder::new(), StringBuilder::new());
    let dimension = match schema.field_with_name("vector")?.data_type() {
        DataType::FixedSizeList(_, dimension) => usize::try_from(*dimension).unwrap_or_default(),
        _ => 0,
    };
    let mut components: Vec<f32> = Vec::with_capacity((rows.len() + 1) * dimension);
    let mut known: Vec<bool> = Vec::with_capacity(rows.len() + 1);
    let on_disk = extent.is_searched_on_disk();
    let spelled = terms::encode_terms(u32::try_from(number).unwrap_or(u32::MAX), rows);

    source.append_value(LEXICON_SOURCE);
    row.append_value(i64::try_from(number).unwrap_or(i64::MAX));
    fingerprint.append_value(0);
    content.append_value(0);
    length.append_value(if extent.has_records() {
        u32::try_from(rows.len()).unwrap_or(u32::MAX)
    } else {
        0
    });
    texts
        .iter_mut()
        .for_each(|builder| builder.append_value(""));
    tags.append(true);
    files.append(true);
    created.append_null();
    updated.append_null();
    detail.append_value(spelled.lexicon);
    known.push(false);
    components.resize(dimension, 0.0);
    model.append_null();

    for ((written, spelled), words) in rows.iter().zip(&spelled.rows).zip(&spelled.words) {
        let memory = written.memory;
        source.append_value(written.key.source);
        row.append_value(written.key.rowid);
        fingerprint.append_value(written.fingerprint);
        content.append_value(content_hash(memory));
        length.append_value(written.doc.length);
        let full_text = text(memory);
        let values = [
            Some(memory.id.as_str()),
            Some(memory.status.as_str()),
            memory.project.as_deref(),
            memory.project_alias.as_deref(),
            memory.session.as_deref(),
            memory.session_id.as_deref(),
            memory.kind.as_deref(),
            memory.superseded_by.as_deref(),
            Some(if on_disk { &full_text } else { "" }),
            Some(if on_disk { words } else { "" }),
        ];
        texts
            .iter_mut()
            .zip(values)
            .for_each(|(builder, value)| builder.append_option(value));
        detail.append_value(spelled);
        model.append_option(written.model);
        for (list, values) in [(&mut tags, &memory.concepts), (&mut files, &memory.files)] {
            values
                .iter()
                .for_each(|value| list.values().append_value(value));
            list.append(true);
        }
        created.append_option(memory.created_at.map(jiff::Timestamp::as_millisecond));
        updated.append_option(memory.updated_at.map(jiff::Timestamp::as_millisecond));
        let vector = written
            .doc
            .vector
            .as_deref()
            .filter(|vector| on_disk && vector.len() == dimension);
        known.push(vector.is_some());
        match vector {
            Some(vector) => components.extend_from_slice(vector),
            None => components.resize(components.len() + dimension, 0.0),
        }
    }
    let count = known.len();
    let [
        id,
        status,
        project,
        alias,
        session,
        session_id,
        kind,
        superseded,
        text,
        words,
    ] = texts.map(|mut builder| Arc::new(builder.finish()) as ArrayRef);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vector = FixedSizeListArray::try_new(
        item,
        i32::try_from(dimension).unwrap_or_default(),
        Arc::new(Float32Array::from(components)),
        Some(NullBuffer::from(known)),
    )?;
    let mut values: Vec<ArrayRef> = vec![
        Arc::new(source.finish()),
        Arc::new(row.finish()),
        Arc::new(fingerprint.finish()),
        Arc::new(content.finish()),
        id,
        status,
        project,
        alias,
        session,
        session_id,
        kind,
        Arc::new(tags.finish()),
        Arc::new(files.finish()),
        Arc::new(created.finish()),
        Arc::new(updated.finish()),
        superseded,
        Arc::new(length.finish()),
        text,
        words,
        Arc::new(UInt64Array::from_value(number, count)),
        Arc::new(detail.finish()),
        Arc::new(vector),
        Arc::new(model.finish()),
    ];
    if extent.has_records() {
        values.push(Arc::new(records(rows)?));
    }
    let unchecked: Vec<_> = schema.fields().iter().take(values.len()).cloned().collect();
    let unchecked = RecordBatch::try_new(Arc::new(Schema::new(unchecked)), values)?;
    let mut checksums = vec![0; count];
    let checked = Rows::new(&unchecked).entries(|position, entry| {
        if let Some(checksum) = checksums.get_mut(position) {
            *checksum = rows::checksum(entry);
        }
        Ok(())
    });
    checked.map_err(|error| arrow::error::ArrowError::ExternalError(Box::new(error)))?;
    let mut values = unchecked.columns().to_vec();
    values.push(Arc::new(UInt64Array::from(checksums)));
    RecordBatch::try_new(Arc::clone(schema), values)
}

/// The column `record` of a batch: all of its records are in the row of the lexicon.
fn records(rows: &[NewRow<'_>]) -> std::io::Result<LargeBinaryArray> {
    let mut blocks = BlockWriter::default();
    for row in rows {
        blocks.push(row.key, &Record::from(row.memory).to_json())?;
    }
    let mut records = LargeBinaryBuilder::new();
    records.append_value(blocks.finish()?);
    records.append_nulls(rows.len());
    Ok(records.finish())
}

/// The text of a memory, for people who read the table with other tools.
fn text(memory: &Memory) -> String {
    let parts = std::iter::once(memory.title.as_str())
        .chain(memory.subtitle.as_deref())
        .chain(memory.facts.iter().map(String::as_str))
        .chain(memory.narrative.as_deref());
    let full_text = parts.collect::<Vec<_>>().join("\n");
    ack_api::text::cut(&full_text, TEXT_CAP).0.into_owned()
}

/// The text that a network encodes.
pub fn encoded_text(memory: &Memory) -> String {
    let parts = std::iter::once(memory.title.as_str())
        .chain(memory.subtitle.as_deref())
        .chain(memory.facts.iter().map(String::as_str))
        .chain(memory.narrative.as_deref())
        .chain(memory.concepts.iter().map(String::as_str));
    parts.collect::<Vec<_>>().join("\n")
}

/// Hash of a memory's encoded text: if it is unchanged, so is the vector.
pub fn content_hash(memory: &Memory) -> u64 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let parts = std::iter::once(memory.title.as_str())
        .chain(memory.subtitle.as_deref())
        .chain(memory.facts.iter().map(String::as_str))
        .chain(memory.narrative.as_deref())
        .chain(memory.concepts.iter().map(String::as_str));
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.digest()
}
