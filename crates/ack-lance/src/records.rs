//! Reads whole records from a table that replaces its store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ack_api::source::RowKey;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt8Type, UInt64Type};
use futures::StreamExt;
use futures::TryStreamExt;
use lance::dataset::fragment::{FileFragment, FragReadConfig};

use super::columns::Rows;
use super::terms::LEXICON_SOURCE;
use super::{TABLE, TableError, published_dataset, wait};

/// How many rows are read at once.
const ROWS_PER_READ: u32 = 4_096;

/// Asks `wanted` about every row, and passes the record of each wanted one to `visit`, as JSON.
///
/// # Errors
/// If the table cannot be read.
pub fn read(
    folder: &Path,
    mut wanted: impl FnMut(RowKey, u64) -> bool + Send,
    mut visit: impl FnMut(RowKey, &[u8]) + Send,
) -> Result<(), TableError> {
    wait(async {
        let failed = TableError::read_error("read the records");
        let dataset = published_dataset(folder).await?;
        let keys = dataset.schema().project(&["source", "row", "fingerprint"]);
        let keys = keys.map_err(&failed)?;
        let records = dataset.schema().project(&["record"]);
        let records = records.map_err(|_| TableError::Column { column: "record" })?;
        for fragment in dataset.get_fragments() {
            let config = FragReadConfig::default;
            let keys = fragment.open(&keys, config()).await.map_err(&failed)?;
            let records = fragment.open(&records, config()).await.map_err(&failed)?;
            let rows = fragment.count_rows(None).await.map_err(&failed)?;
            let rows = u32::try_from(rows).unwrap_or(u32::MAX);
            for first in (0..rows).step_by(ROWS_PER_READ as usize) {
                let part = first..rows.min(first.saturating_add(ROWS_PER_READ));
                let mut requested: Vec<Option<RowKey>> = Vec::with_capacity(part.len());
                let mut batches = keys
                    .read_range(part.clone(), ROWS_PER_READ)
                    .await
                    .map_err(&failed)?
                    .buffered(1);
                while let Some(batch) = batches.try_next().await.map_err(&failed)? {
                    select_requested(&batch, &mut requested, &mut wanted)?;
                }
                if requested.iter().all(Option::is_none) {
                    continue;
                }
                let mut requested = requested.into_iter();
                let mut batches = records
                    .read_range(part, ROWS_PER_READ)
                    .await
                    .map_err(&failed)?
                    .buffered(1);
                while let Some(batch) = batches.try_next().await.map_err(&failed)? {
                    let column = batch
                        .column_by_name("record")
                        .and_then(|column| column.as_binary_opt::<i64>())
                        .ok_or(TableError::Column { column: "record" })?;
                    for row in 0..column.len() {
                        if let Some(Some(key)) = requested.next() {
                            visit(key, column.value(row));
                        }
                    }
                }
            }
        }
        Ok(())
    })
}

/// Records for each row of a batch whether it is wanted.
fn select_requested(
    batch: &RecordBatch,
    requested: &mut Vec<Option<RowKey>>,
    wanted: &mut impl FnMut(RowKey, u64) -> bool,
) -> Result<(), TableError> {
    let rows = Rows::new(batch);
    let sources = rows.numbers::<UInt8Type>("source")?.values();
    let numbers = rows.numbers::<Int64Type>("row")?.values();
    let fingerprints = rows.numbers::<UInt64Type>("fingerprint")?.values();
    for ((source, rowid), fingerprint) in sources.iter().zip(numbers).zip(fingerprints) {
        let key = RowKey {
            source: *source,
            rowid: *rowid,
        };
        let is_wanted = *source != LEXICON_SOURCE && wanted(key, *fingerprint);
        requested.push(is_wanted.then_some(key));
    }
    Ok(())
}

/// The files of the published version.
#[derive(Debug)]
pub struct PublishedFiles {
    /// Their paths, relative to the folder of the table.
    pub paths: Vec<PathBuf>,
    /// How many memories it has.
    pub rows: usize,
}

/// The files of the published version: those that a reader needs, and no others.
///
/// # Errors
/// If the table cannot be read.
pub fn published_files(folder: &Path) -> Result<PublishedFiles, TableError> {
    let table = PathBuf::from(format!("{TABLE}.lance"));
    let table_path = folder.join(&table);
    let (paths, rows) = wait(async {
        let failed = TableError::read_error("list the files");
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
            .map_err(&failed)?
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
        let rows = dataset.count_rows(None).await.map_err(&failed)?;
        Ok((paths, rows))
    })?;
    let mut paths: Vec<PathBuf> = paths.into_iter().map(|path| table.join(path)).collect();
    paths.sort();
    paths.dedup();
    Ok(PublishedFiles { paths, rows })
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
