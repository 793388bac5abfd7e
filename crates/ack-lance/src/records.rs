//! Reads whole records from a table that replaces its store.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ack_api::source::RowKey;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt8Type, UInt64Type};
use futures::StreamExt;
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::fragment::{FileFragment, FragReadConfig};
use rustc_hash::FxHashSet;

use super::record_blocks::{BlockReader, RecordBlock};
use super::rows::Rows;
use super::terms::LEXICON_SOURCE;
use super::{TABLE, TableError, published_dataset, wait};

/// How many rows are read at once.
const ROWS_PER_READ: u32 = 4_096;

/// The rows whose records are wanted, each with the number of its batch.
type Wanted = FxHashSet<(u64, RowKey)>;

/// Asks `wanted` about every row, and passes the records of the wanted ones to `visit`.
///
/// # Errors
/// If the table cannot be read, or lacks a wanted record.
pub fn read(
    folder: &Path,
    mut wanted: impl FnMut(RowKey, u64) -> bool + Send,
    mut visit: impl FnMut(RecordBlock) + Send,
) -> Result<(), TableError> {
    wait(async {
        let dataset = published_dataset(folder).await?;
        let mut remaining = Wanted::default();
        let mut fragments = Vec::new();
        for fragment in dataset.get_fragments() {
            let keys = read_keys(&dataset, &fragment).await?;
            for row in keys.iter().filter(|row| row.key.source != LEXICON_SOURCE) {
                if wanted(row.key, row.fingerprint) {
                    remaining.insert((row.batch, row.key));
                }
            }
            fragments.push((fragment, keys));
        }
        let mut collector = Collector {
            batches: remaining.iter().map(|(batch, _)| *batch).collect(),
            remaining,
            blocks: BlockReader::new()?,
        };
        for (fragment, keys) in fragments {
            read_records(&dataset, &fragment, &keys, &mut collector, &mut visit).await?;
        }
        if collector.remaining.is_empty() {
            Ok(())
        } else {
            Err(TableError::Damaged)
        }
    })
}

/// The ids of all memories, each with the hash of its row in the store.
///
/// # Errors
/// If the table cannot be read.
pub fn fingerprints(folder: &Path) -> Result<HashMap<String, u64>, TableError> {
    wait(async {
        let dataset = published_dataset(folder).await?;
        let mut found = HashMap::new();
        for fragment in dataset.get_fragments() {
            let columns = ["source", "fingerprint", "id"];
            let visit = |_, batch: &RecordBatch| {
                let rows = Rows::new(batch);
                let sources = rows.numbers::<UInt8Type>("source")?.values();
                let fingerprints = rows.numbers::<UInt64Type>("fingerprint")?.values();
                let rows = sources.iter().zip(fingerprints).zip(rows.texts("id")?);
                let memories = rows.filter(|((source, _), _)| **source != LEXICON_SOURCE);
                found.extend(
                    memories
                        .filter_map(|((_, fingerprint), id)| Some((id?.to_owned(), *fingerprint))),
                );
                Ok(())
            };
            each_part(&dataset, &fragment, &columns, |_| true, visit).await?;
        }
        Ok(found)
    })
}

/// Where a row is.
struct RowPlace {
    key: RowKey,
    fingerprint: u64,
    batch: u64,
}

async fn read_keys(
    dataset: &Dataset,
    fragment: &FileFragment,
) -> Result<Vec<RowPlace>, TableError> {
    let mut keys = Vec::new();
    let columns = ["source", "row", "fingerprint", "batch"];
    each_part(
        dataset,
        fragment,
        &columns,
        |_| true,
        |_, batch| {
            let rows = Rows::new(batch);
            let sources = rows.numbers::<UInt8Type>("source")?.values();
            let numbers = rows.numbers::<Int64Type>("row")?.values();
            let fingerprints = rows.numbers::<UInt64Type>("fingerprint")?.values();
            let batches = rows.numbers::<UInt64Type>("batch")?.values();
            let places = sources.iter().zip(numbers).zip(fingerprints).zip(batches);
            keys.extend(
                places.map(|(((source, rowid), fingerprint), batch)| RowPlace {
                    key: RowKey {
                        source: *source,
                        rowid: *rowid,
                    },
                    fingerprint: *fingerprint,
                    batch: *batch,
                }),
            );
            Ok(())
        },
    )
    .await?;
    Ok(keys)
}

/// Collects wanted records.
struct Collector {
    /// The batches that have any.
    batches: FxHashSet<u64>,
    remaining: Wanted,
    blocks: BlockReader,
}

impl Collector {
    /// Whether the `record` of a row may contain a wanted one.
    fn needs(&self, row: &RowPlace) -> bool {
        row.key.source == LEXICON_SOURCE && self.batches.contains(&row.batch)
    }

    fn add(
        &mut self,
        row: &RowPlace,
        record: &[u8],
        visit: &mut impl FnMut(RecordBlock),
    ) -> Result<(), TableError> {
        let Self {
            remaining, blocks, ..
        } = self;
        blocks.read(record, |key| remaining.remove(&(row.batch, key)), visit)
    }
}

async fn read_records(
    dataset: &Dataset,
    fragment: &FileFragment,
    keys: &[RowPlace],
    collector: &mut Collector,
    visit: &mut (impl FnMut(RecordBlock) + Send),
) -> Result<(), TableError> {
    let needed: Vec<bool> = keys.iter().map(|row| collector.needs(row)).collect();
    let is_needed = |part: Range<usize>| {
        let rows = needed.get(part).unwrap_or_default();
        rows.contains(&true)
    };
    each_part(dataset, fragment, &["record"], is_needed, |first, batch| {
        let records = batch
            .column_by_name("record")
            .and_then(|column| column.as_binary_opt::<i64>())
            .ok_or(TableError::Column { column: "record" })?;
        let rows = keys.iter().skip(first).zip(records.iter());
        for (row, record) in rows {
            if let Some(record) = record {
                collector.add(row, record, visit)?;
            }
        }
        Ok(())
    })
    .await
}

/// Reads columns of the rows of a fragment, as far as they are needed, and passes on each batch
/// with the number of its first row.
async fn each_part(
    dataset: &Dataset,
    fragment: &FileFragment,
    columns: &[&'static str],
    is_needed: impl Fn(Range<usize>) -> bool,
    mut visit: impl FnMut(usize, &RecordBatch) -> Result<(), TableError>,
) -> Result<(), TableError> {
    let failed = TableError::read_error("read the records");
    let schema = dataset.schema().project(columns).map_err(&failed)?;
    let config = FragReadConfig::default();
    let reader = fragment.open(&schema, config).await.map_err(&failed)?;
    let rows = fragment.count_rows(None).await.map_err(&failed)?;
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    for first in (0..rows).step_by(ROWS_PER_READ as usize) {
        let part = first..rows.min(first.saturating_add(ROWS_PER_READ));
        if !is_needed(part.start as usize..part.end as usize) {
            continue;
        }
        let mut first = first as usize;
        let mut batches = reader
            .read_range(part, ROWS_PER_READ)
            .await
            .map_err(&failed)?
            .buffered(1);
        while let Some(batch) = batches.try_next().await.map_err(&failed)? {
            visit(first, &batch)?;
            first += batch.num_rows();
        }
    }
    Ok(())
}

/// The files of the published version, relative to the folder of the table: those that a reader
/// needs, and no others.
///
/// # Errors
/// If the table cannot be read.
pub fn published_files(folder: &Path) -> Result<Vec<PathBuf>, TableError> {
    let table = PathBuf::from(format!("{TABLE}.lance"));
    let table_path = folder.join(&table);
    let paths = wait(async {
        let dataset = published_dataset(folder).await?;
        let mut paths: Vec<PathBuf> = Vec::new();
        let manifest = &dataset.manifest_location().path;
        if let Some(name) = manifest.filename() {
            paths.push(PathBuf::from("_versions").join(name));
        }
        for fragment in dataset.get_fragments() {
            paths.extend(files_of(&fragment));
        }
        let indexes: HashSet<String> = lance::index::DatasetIndexExt::load_indices(&dataset)
            .await
            .map_err(TableError::read_error("list the files"))?
            .iter()
            .map(|index| index.uuid.to_string())
            .collect();
        for index in indexes {
            let inside = PathBuf::from("_indices").join(index);
            let listed = std::fs::read_dir(table_path.join(&inside))
                .into_iter()
                .flatten();
            paths.extend(listed.flatten().map(|entry| inside.join(entry.file_name())));
        }
        Ok(paths)
    })?;
    let mut paths: Vec<PathBuf> = paths.into_iter().map(|path| table.join(path)).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

fn files_of(fragment: &FileFragment) -> Vec<PathBuf> {
    let metadata = fragment.metadata();
    let data = metadata
        .files
        .iter()
        .map(|file| PathBuf::from("data").join(&file.path));
    let deleted = metadata.deletion_file.as_ref().map(|deleted| {
        let name = format!(
            "{}-{}-{}.{}",
            metadata.id,
            deleted.read_version,
            deleted.id,
            deleted.file_type.suffix()
        );
        PathBuf::from("_deletions").join(name)
    });
    data.chain(deleted).collect()
}
