//! The indexes of a vector table: created when they are worth it, updated by every build.

use lancedb::Table;
use lancedb::index::Index;
use lancedb::index::scalar::{
    BTreeIndexBuilder, BitmapIndexBuilder, FtsIndexBuilder, LabelListIndexBuilder,
};
use lancedb::index::vector::IvfRqIndexBuilder;
use lancedb::table::{CompactionOptions, OptimizeAction};

use super::TableError;
use super::columns::Extent;

/// The smallest table that gets indexes. A larger one gets them once it is searched on disk, or
/// soon will be. Nothing reads them while the whole table is in memory, and creating them takes as
/// long as writing the rows.
const MIN_INDEXED_ROWS: usize = 10_000;
/// From this size on, the vectors and the other columns that a search on disk needs get an index.
const MIN_VECTOR_INDEX_ROWS: usize = 100_000;

/// How many rows, or a tenth of all rows, may be missing from the indexes of a table that readers
/// fetch.
const MAX_UNINDEXED_ROWS: usize = 5_000;

/// How many threads index words: each of them creates a part that every search has to read.
const INDEX_THREADS: usize = 2;

pub const ROWS_PER_FRAGMENT: usize = 131_072;

/// With this many fragments more than needed, reading is slow. Fragments of successive small builds
/// are then merged.
const SPARE_FRAGMENTS: usize = 32;

/// Merges small fragments if there are many. Next to a store, also writes those again that have
/// removed rows, whose text would otherwise stay in the file.
pub async fn compact(table: &Table, rows: usize, extent: Extent) -> Result<(), TableError> {
    let Some(dataset) = table.dataset() else {
        return Ok(());
    };
    let dataset = dataset.get().await.map_err(TableError::lance_error("look at the fragments"))?;
    let fragments = dataset.fragments();
    let mut options = CompactionOptions::default();
    let mut is_needed = fragments.len() > rows / ROWS_PER_FRAGMENT + SPARE_FRAGMENTS;
    if extent == Extent::Derived {
        options.materialize_deletions_threshold = 0.0;
        is_needed |= fragments.iter().any(|it| it.deletion_file.is_some());
    }
    drop(dataset);
    if is_needed {
        let compact = OptimizeAction::Compact { options, remap_options: None };
        table.optimize(compact).await.map_err(TableError::lance_error("put fragments together"))?;
    }
    Ok(())
}

/// Drops the indexes that contain words of the memories: all but the one on vectors.
pub async fn drop_word_indexes(table: &Table) -> Result<(), TableError> {
    let existing =
        table.list_indices().await.map_err(TableError::lance_error("list the indexes"))?;
    for index in existing.iter().filter(|index| index.columns != ["vector"]) {
        let dropped = table.drop_index(&index.name).await;
        dropped.map_err(TableError::lance_error("drop an index"))?;
    }
    Ok(())
}

/// Whether a table of this size is searched on disk, or soon will be. Readers keep tables of up to
/// `resident` rows in memory. A growing scope gets its indexes before it needs them.
pub fn will_search_on_disk(rows: usize, resident: usize) -> bool {
    rows >= (resident - resident / 4).max(MIN_INDEXED_ROWS)
}

/// Creates the indexes that a table of this size lacks, and updates the others. Readers keep tables
/// of up to `resident` rows in memory.
pub async fn update_indexes(
    table: &Table,
    rows: usize,
    resident: usize,
    extent: Extent,
) -> Result<(), TableError> {
    let existing =
        table.list_indices().await.map_err(TableError::lance_error("list the indexes"))?;
    if existing.is_empty() && !will_search_on_disk(rows, resident) {
        return Ok(());
    }
    let has = |column: &str| existing.iter().any(|index| index.columns == [column]);
    // The terms are already analysed: they only have to be split at spaces.
    let words = FtsIndexBuilder::default()
        .base_tokenizer("whitespace".to_owned())
        .with_position(false)
        .lower_case(false)
        .stem(false)
        .remove_stop_words(false)
        .ascii_folding(false)
        .max_token_length(None)
        .num_workers(
            std::thread::available_parallelism().map_or(1, usize::from).min(INDEX_THREADS),
        );
    let mut wanted: Vec<(&str, Index)> = vec![
        ("status", Index::Bitmap(BitmapIndexBuilder::default())),
        ("project", Index::Bitmap(BitmapIndexBuilder::default())),
        ("type", Index::Bitmap(BitmapIndexBuilder::default())),
        ("tags", Index::LabelList(LabelListIndexBuilder::default())),
        ("created", Index::BTree(BTreeIndexBuilder::default())),
    ];
    if rows >= MIN_VECTOR_INDEX_ROWS {
        let vectors = IvfRqIndexBuilder::default()
            .distance_type(lancedb::DistanceType::Cosine)
            // It only finds candidates, whose cosine is then computed from the whole vector, so the
            // smallest code is enough.
            .num_bits(1);
        wanted.push(("vector", Index::IvfRq(vectors)));
        for column in ["alias", "session", "session_id"] {
            wanted.push((column, Index::BTree(BTreeIndexBuilder::default())));
        }
    }
    wanted.retain(|(column, _)| !has(column));
    let words = if has("words") { Vec::new() } else { vec![("words", Index::FTS(words))] };
    // The index on words takes one processor and about as long as the others together.
    futures::try_join!(create_indexes(table, words), create_indexes(table, wanted))?;
    if !existing.is_empty() && (extent == Extent::Derived || lacks_rows(table, rows).await?) {
        let update = OptimizeAction::Index(lancedb::table::OptimizeOptions::default());
        table.optimize(update).await.map_err(TableError::lance_error("update the indexes"))?;
    }
    Ok(())
}

/// Whether so many rows are missing from the indexes that readers should fetch new ones. Until
/// then, readers scan these rows.
async fn lacks_rows(table: &Table, rows: usize) -> Result<bool, TableError> {
    let failed = TableError::lance_error("look at the indexes");
    for index in table.list_indices().await.map_err(&failed)? {
        let statistics = table.index_stats(&index.name).await.map_err(&failed)?;
        let unindexed = statistics.map_or(0, |statistics| statistics.num_unindexed_rows);
        if unindexed > MAX_UNINDEXED_ROWS.max(rows / 10) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn create_indexes(table: &Table, wanted: Vec<(&str, Index)>) -> Result<(), TableError> {
    for (column, index) in wanted {
        let made = table.create_index(&[column], index).execute().await;
        made.map_err(TableError::lance_error("make an index"))?;
    }
    Ok(())
}
