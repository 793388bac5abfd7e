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
    Array, ArrayRef, BinaryArray, FixedSizeListArray, Float32Array, LargeBinaryArray,
    LargeBinaryBuilder, ListBuilder, PrimitiveArray, RecordBatch, StringArray, StringBuilder,
    UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Int64Type, Schema, UInt8Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;

use super::TableError;
use super::record_blocks::BlockWriter;
use super::rows;
use super::terms::{self, EncodedTerms, LEXICON_SOURCE};
use ack_api::memory::Memory;
use ack_api::source::StoredMemory;
use ack_contextual::Contextual;
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
/// Key of a table's purpose; absent for [`Extent::Derived`].
const META_EXTENT: &str = "ack-memory.extent";

/// The last column: a checksum of those that readers keep in memory.
pub const CHECK: &str = "check";

/// The purpose of a table, and so which columns it fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// It is next to its store.
    Derived,
    /// It replaces its store, so it has whole records.
    Records {
        /// Whether it is so large that readers search it on disk. Otherwise they load it into
        /// memory, and the columns that only a search on disk needs are empty.
        on_disk: bool,
    },
}

impl Extent {
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Derived => None,
            Self::Records { on_disk: false } => Some("records"),
            Self::Records { on_disk: true } => Some("records, searched on disk"),
        }
    }
}

/// What the columns of a table depend on.
#[derive(Clone, Copy)]
pub struct Format {
    pub extent: Extent,
    pub encoder: &'static Encoder,
    /// Reads every memory of the table, if there is one.
    pub network: Option<&'static Contextual>,
}

const COLUMNS: &str = "source row fingerprint id status project alias session session_id type tags \
    files created updated superseded_by length model check";

/// The columns that every reader needs, and others. A reader that searches in memory also needs
/// `detail`.
pub fn names(others: &[&'static str]) -> Vec<&'static str> {
    COLUMNS.split(' ').chain(others.iter().copied()).collect()
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

impl Format {
    /// Checks that a table is of this format.
    pub fn check(self, found: &HashMap<String, String>) -> Result<(), TableError> {
        check(found, self.encoder)?;
        if self.network.is_some() != is_contextual(found) {
            let found = if is_contextual(found) { "contextual" } else { "static" };
            return Err(TableError::OtherEncoder { found });
        }
        let found = found.get(META_EXTENT).map(String::as_str);
        if found == self.extent.name() {
            return Ok(());
        }
        let describe = |name: Option<&str>| format!("extent {}", name.unwrap_or("derived"));
        Err(TableError::Mismatch {
            found: ack_api::text::line(&describe(found), 60),
            needed: describe(self.extent.name()),
        })
    }

    /// A batch of the table: the lexicon of the rows, then the rows.
    pub fn batch(self, number: u32, rows: &[NewRow<'_>]) -> Result<RecordBatch, TableError> {
        self.batch_of_terms(number, terms::encode_terms(number, rows), rows)
    }

    /// The lexicon of a batch again, without its rows.
    pub fn lexicon(self, number: u32, lexicon: Vec<u8>) -> Result<RecordBatch, TableError> {
        self.batch_of_terms(number, EncodedTerms { lexicon, ..EncodedTerms::default() }, &[])
    }

    /// A table without rows.
    pub fn empty(self) -> Result<RecordBatch, TableError> {
        Ok(RecordBatch::new_empty(self.lexicon(0, Vec::new())?.schema()))
    }

    fn batch_of_terms(
        self,
        number: u32,
        terms: EncodedTerms,
        rows: &[NewRow<'_>],
    ) -> Result<RecordBatch, TableError> {
        let has_records = self.extent != Extent::Derived;
        let on_disk = self.extent != Extent::Records { on_disk: false };
        let records = if has_records { u32::try_from(rows.len()).unwrap_or(u32::MAX) } else { 0 };
        let row_texts = rows.iter().map(|row| on_disk.then(|| text(&row.stored.memory)));
        let words = terms.words.into_iter().map(|words| on_disk.then_some(words));
        let details = BinaryArray::from_iter_values([terms.lexicon].into_iter().chain(terms.rows));
        let models: StringArray =
            [None].into_iter().chain(rows.iter().map(|it| it.model)).collect();
        let mut columns = vec![
            numbers::<UInt8Type>("source", LEXICON_SOURCE, rows, |row| row.stored.key.source),
            numbers::<Int64Type>("row", number.into(), rows, |row| row.stored.key.rowid),
            numbers::<UInt64Type>("fingerprint", 0, rows, |row| row.stored.fingerprint),
            texts("id", false, rows, |memory| Some(&memory.id)),
            texts("status", false, rows, |memory| Some(memory.status.as_str())),
            texts("project", true, rows, |memory| memory.project.as_deref()),
            texts("alias", true, rows, |memory| memory.project_alias.as_deref()),
            texts("session", true, rows, |memory| memory.session.as_deref()),
            texts("session_id", true, rows, |memory| memory.session_id.as_deref()),
            texts("type", true, rows, |memory| memory.kind.as_deref()),
            lists("tags", rows, |memory| &memory.concepts),
            lists("files", rows, |memory| &memory.files),
            moments("created", rows, |memory| memory.created_at),
            moments("updated", rows, |memory| memory.updated_at),
            texts("superseded_by", true, rows, |memory| memory.superseded_by.as_deref()),
            numbers::<UInt32Type>("length", records, rows, |row| row.analyzed.length),
            column("text", false, searched_texts(row_texts)),
            column("words", false, searched_texts(words)),
            numbers::<UInt64Type>("batch", number.into(), rows, |_| number.into()),
            uncompressed(column("detail", false, details)),
            column("vector", true, vectors(self.encoder.dimension, on_disk, rows)?),
            column("model", true, models),
        ];
        if has_records {
            let records = records_of(rows).map_err(ArrowError::from)?;
            columns.push(uncompressed(column("record", true, records)));
        }
        let mut metadata = metadata(self.encoder);
        if let Some(name) = self.extent.name() {
            metadata.insert(META_EXTENT.to_owned(), name.to_owned());
        }
        if self.network.is_some() {
            metadata.insert(META_NETWORK.to_owned(), CONTEXTUAL.to_owned());
        }
        with_checksums(columns, metadata)
    }
}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> Self {
        Self::lance_error("make a batch")(error)
    }
}

type Column = (Field, ArrayRef);

fn column(name: &str, is_nullable: bool, values: impl Array + 'static) -> Column {
    (Field::new(name, values.data_type().clone(), is_nullable), Arc::new(values))
}

/// A column that LanceDB does not compress, because that would slow every reader and save almost
/// nothing.
fn uncompressed((field, values): Column) -> Column {
    let compression = ("lance-encoding:compression".to_owned(), "none".to_owned());
    (field.with_metadata([compression].into()), values)
}

/// A column of numbers: the value of the lexicon, then those of the rows.
fn numbers<T: ArrowPrimitiveType>(
    name: &str,
    lexicon: T::Native,
    rows: &[NewRow<'_>],
    value: impl Fn(&NewRow<'_>) -> T::Native,
) -> Column {
    let values = [lexicon].into_iter().chain(rows.iter().map(value));
    column(name, false, PrimitiveArray::<T>::from_iter_values(values))
}

/// A column of moments in milliseconds since 1970. The lexicon has none.
fn moments(
    name: &str,
    rows: &[NewRow<'_>],
    value: impl Fn(&Memory) -> Option<jiff::Timestamp>,
) -> Column {
    let moments = rows.iter().map(|row| Some(value(&row.stored.memory)?.as_millisecond()));
    column(name, true, [None].into_iter().chain(moments).collect::<PrimitiveArray<Int64Type>>())
}

/// A column of texts. The lexicon has an empty one.
fn texts(
    name: &str,
    is_nullable: bool,
    rows: &[NewRow<'_>],
    value: fn(&Memory) -> Option<&str>,
) -> Column {
    let texts = rows.iter().map(|row| value(&row.stored.memory));
    column(name, is_nullable, [Some("")].into_iter().chain(texts).collect::<StringArray>())
}

/// A column of lists of texts. The lexicon has an empty one.
fn lists(name: &str, rows: &[NewRow<'_>], value: fn(&Memory) -> &[String]) -> Column {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append(true);
    for row in rows {
        for text in value(&row.stored.memory) {
            lists.values().append_value(text);
        }
        lists.append(true);
    }
    column(name, true, lists.finish())
}

/// The texts of a column that only a table which is searched on disk needs.
fn searched_texts(texts: impl Iterator<Item = Option<String>>) -> StringArray {
    let texts = [None].into_iter().chain(texts).map(Option::unwrap_or_default);
    StringArray::from_iter_values::<String, _>(texts)
}

/// The column `vector`. The lexicon has none, and in a table that is loaded into memory the rows
/// have it in their detail.
fn vectors(
    dimension: usize,
    on_disk: bool,
    rows: &[NewRow<'_>],
) -> Result<FixedSizeListArray, ArrowError> {
    let mut components: Vec<f32> = vec![0.0; dimension];
    let mut known = vec![false];
    for row in rows {
        let vector = row.analyzed.vector.as_deref();
        let vector = vector.filter(|vector| on_disk && vector.len() == dimension);
        known.push(vector.is_some());
        components.extend_from_slice(vector.unwrap_or_default());
        components.resize(known.len() * dimension, 0.0);
    }
    FixedSizeListArray::try_new(
        Arc::new(Field::new("item", DataType::Float32, true)),
        i32::try_from(dimension).unwrap_or(i32::MAX),
        Arc::new(Float32Array::from(components)),
        Some(NullBuffer::from(known)),
    )
}

/// A batch of these columns and their checksums.
fn with_checksums(
    columns: Vec<Column>,
    metadata: HashMap<String, String>,
) -> Result<RecordBatch, TableError> {
    let (mut fields, mut values): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let unchecked = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), values.clone())?;
    let mut checksums = vec![0; unchecked.num_rows()];
    rows::entries(&unchecked, |position, entry| {
        if let Some(checksum) = checksums.get_mut(position) {
            *checksum = rows::checksum(entry);
        }
        Ok(())
    })?;
    let (field, checksums) = column(CHECK, false, UInt64Array::from(checksums));
    fields.push(field);
    values.push(checksums);
    let schema = Schema::new_with_metadata(fields, metadata);
    Ok(RecordBatch::try_new(Arc::new(schema), values)?)
}

/// The column `record` of a batch: all of its records are in the row of the lexicon.
fn records_of(rows: &[NewRow<'_>]) -> std::io::Result<LargeBinaryArray> {
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
