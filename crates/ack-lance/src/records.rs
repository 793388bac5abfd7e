//! Reads whole records from a table that replaces its store.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ack_api::source::RowKey;
use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt8Type, UInt64Type};
use lance::dataset::fragment::FileFragment;
use rustc_hash::FxHashSet;

use super::record_blocks::{BlockReader, RecordBlock};
use super::rows::Rows;
use super::terms::LEXICON_SOURCE;
use super::{TABLE, TableError, each_batch, published_dataset, wait};

/// Asks `wanted` about every row, and passes the records of the wanted ones to `visit`.
pub fn read(
    folder: &Path,
    mut wanted: impl FnMut(RowKey, u64) -> bool + Send,
    mut visit: impl FnMut(RecordBlock) + Send,
) -> Result<(), TableError> {
    wait(async {
        let dataset = published_dataset(folder).await?;
        // The wanted rows, each with its batch, and where the records of each batch are.
        let mut remaining: FxHashSet<(u64, RowKey)> = FxHashSet::default();
        let mut places: Vec<(u64, u64)> = Vec::new();
        let columns = ["source", "row", "fingerprint", "batch"];
        each_batch(&dataset, &columns, |rows| {
            let rows = Rows::new(rows);
            let places_in_table = rows.numbers::<UInt64Type>("_rowid")?.values().iter();
            let sources = rows.numbers::<UInt8Type>("source")?.values().iter();
            let numbers = rows.numbers::<Int64Type>("row")?.values();
            let fingerprints = rows.numbers::<UInt64Type>("fingerprint")?.values();
            let batches = rows.numbers::<UInt64Type>("batch")?.values();
            let keys = sources
                .zip(numbers)
                .map(|(source, rowid)| RowKey { source: *source, rowid: *rowid });
            let rows = places_in_table.zip(keys).zip(fingerprints).zip(batches);
            for (((place, key), fingerprint), batch) in rows {
                if key.source == LEXICON_SOURCE {
                    places.push((*place, *batch));
                } else if wanted(key, *fingerprint) {
                    remaining.insert((*batch, key));
                }
            }
            Ok(())
        })
        .await?;
        let batches: FxHashSet<u64> = remaining.iter().map(|(batch, _)| *batch).collect();
        places.retain(|(_, batch)| batches.contains(batch));
        let failed = TableError::read_error("read the records");
        let schema = dataset.schema().project(&["record"]).map_err(&failed)?;
        let mut blocks = BlockReader::new()?;
        for (place, batch) in places {
            let taken = dataset.take_rows(&[place], schema.clone()).await;
            let taken = taken.map_err(&failed)?;
            let records = taken.column_by_name("record");
            let records = records.and_then(|column| column.as_binary_opt::<i64>());
            let records = records.ok_or(TableError::Column { column: "record" })?;
            let is_wanted = |key| remaining.remove(&(batch, key));
            let record = records.iter().flatten().next().unwrap_or_default();
            blocks.read(record, is_wanted, &mut visit)?;
        }
        if remaining.is_empty() { Ok(()) } else { Err(TableError::Damaged) }
    })
}

/// The ids of all memories, each with the hash of its row in the store.
pub fn fingerprints(folder: &Path) -> Result<HashMap<String, u64>, TableError> {
    wait(async {
        let dataset = published_dataset(folder).await?;
        let mut found = HashMap::new();
        each_batch(&dataset, &["source", "fingerprint", "id"], |rows| {
            let rows = Rows::new(rows);
            let sources = rows.numbers::<UInt8Type>("source")?.values();
            let fingerprints = rows.numbers::<UInt64Type>("fingerprint")?.values();
            let rows = sources.iter().zip(fingerprints).zip(rows.texts("id")?);
            let memories = rows.filter(|((source, _), _)| **source != LEXICON_SOURCE);
            found.extend(
                memories.filter_map(|((_, fingerprint), id)| Some((id?.to_owned(), *fingerprint))),
            );
            Ok(())
        })
        .await?;
        Ok(found)
    })
}

/// The files of the published version, relative to the folder of the table: those that a reader
/// needs, and no others.
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
            let listed = std::fs::read_dir(table_path.join(&inside)).into_iter().flatten();
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
    let data = metadata.files.iter().map(|file| PathBuf::from("data").join(&file.path));
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
