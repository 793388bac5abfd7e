//! Reads whole records from a table that replaces its store.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use ack_api::source::RowKey;
use arrow::array::{Array, Int64Array, LargeBinaryArray, StringArray, UInt8Array, UInt64Array};
use lance::dataset::fragment::FileFragment;
use rustc_hash::FxHashSet;
use zstd::bulk::Decompressor;

use super::record_blocks::{RecordBlock, read_blocks};
use super::rows::column;
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
        each_batch(&dataset, &columns, |batch| {
            let places_in_table = column::<UInt64Array>(batch, "_rowid")?;
            let sources = column::<UInt8Array>(batch, "source")?;
            let numbers = column::<Int64Array>(batch, "row")?;
            let fingerprints = column::<UInt64Array>(batch, "fingerprint")?;
            let batches = column::<UInt64Array>(batch, "batch")?;
            for row in 0..batch.num_rows() {
                let key = RowKey { source: sources.value(row), rowid: numbers.value(row) };
                if key.source == LEXICON_SOURCE {
                    places.push((places_in_table.value(row), batches.value(row)));
                } else if wanted(key, fingerprints.value(row)) {
                    remaining.insert((batches.value(row), key));
                }
            }
            Ok(())
        })
        .await?;
        let batches: FxHashSet<u64> = remaining.iter().map(|(batch, _)| *batch).collect();
        places.retain(|(_, batch)| batches.contains(batch));
        let failed = TableError::lance_error("read the records");
        let schema = dataset.schema().project(&["record"]).map_err(&failed)?;
        let mut decompressor = Decompressor::new().map_err(|_| TableError::Damaged)?;
        for (place, batch) in places {
            let taken = dataset.take_rows(&[place], schema.clone()).await.map_err(&failed)?;
            let records = column::<LargeBinaryArray>(&taken, "record")?;
            let record = records.iter().flatten().next().unwrap_or_default();
            let is_wanted = |key| remaining.remove(&(batch, key));
            read_blocks(&mut decompressor, record, is_wanted, &mut visit)?;
        }
        if remaining.is_empty() { Ok(()) } else { Err(TableError::Damaged) }
    })
}

/// The ids of all memories, each with the hash of its row in the store.
pub fn fingerprints(folder: &Path) -> Result<HashMap<String, u64>, TableError> {
    wait(async {
        let dataset = published_dataset(folder).await?;
        let mut found = HashMap::new();
        each_batch(&dataset, &["source", "fingerprint", "id"], |batch| {
            let sources = column::<UInt8Array>(batch, "source")?;
            let fingerprints = column::<UInt64Array>(batch, "fingerprint")?;
            let ids = column::<StringArray>(batch, "id")?;
            let memories = (0..batch.num_rows())
                .filter(|row| sources.value(*row) != LEXICON_SOURCE && ids.is_valid(*row));
            found.extend(memories.map(|row| (ids.value(row).to_owned(), fingerprints.value(row))));
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
    let paths: BTreeSet<PathBuf> = wait(async {
        let dataset = published_dataset(folder).await?;
        let manifest = &dataset.manifest_location().path;
        let mut paths = BTreeSet::new();
        paths.extend(manifest.filename().map(|name| PathBuf::from("_versions").join(name)));
        paths.extend(dataset.get_fragments().iter().flat_map(files_of));
        let indexes = lance::index::DatasetIndexExt::load_indices(&dataset)
            .await
            .map_err(TableError::lance_error("list the files"))?;
        for index in indexes.iter() {
            let inside = PathBuf::from("_indices").join(index.uuid.to_string());
            let listed = std::fs::read_dir(table_path.join(&inside)).into_iter().flatten();
            paths.extend(listed.flatten().map(|entry| inside.join(entry.file_name())));
        }
        Ok(paths)
    })?;
    Ok(paths.into_iter().map(|path| table.join(path)).collect())
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
