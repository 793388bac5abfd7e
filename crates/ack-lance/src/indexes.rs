//! The indexes of a vector table: made where they pay, brought up to date by every build.

use lancedb::Table;
use lancedb::index::Index;
use lancedb::index::scalar::{
    BTreeIndexBuilder, BitmapIndexBuilder, FtsIndexBuilder, LabelListIndexBuilder,
};
use lancedb::index::vector::IvfRqIndexBuilder;
use lancedb::table::{CompactionOptions, OptimizeAction};

use super::TableError;
use super::build::FRAGMENT;

/// The smallest table that gets indexes. A larger one has them once it is searched itself, or soon
/// will be: where everything in it is held in memory nobody would ever read them, and to make them
/// takes as long as to write the rows.
const INDEXES_FROM: usize = 10_000;
/// From this size on it gets one on its vectors, and on what else is asked for when it is searched
/// itself.
const VECTOR_FROM: usize = 100_000;

/// Threads that index words at most: each of them makes a part that every search has to look into.
const WORKERS: usize = 2;

/// So many more fragments than that make reading slow: small builds that followed each other are
/// put together.
const SPARE_FRAGMENTS: usize = 32;

/// Puts small fragments together where there are many.
pub async fn compact(table: &Table, rows: usize) -> Result<(), TableError> {
    let statistics = table
        .stats()
        .await
        .map_err(TableError::lance("look at the fragments"))?;
    if statistics.fragment_stats.num_fragments > rows / FRAGMENT + SPARE_FRAGMENTS {
        let compact = OptimizeAction::Compact {
            options: CompactionOptions::default(),
            remap_options: None,
        };
        table
            .optimize(compact)
            .await
            .map_err(TableError::lance("put fragments together"))?;
    }
    Ok(())
}

/// Makes the indexes that a table of this size lacks, and brings those it has up to date. Up to
/// `resident` rows are held in memory by whoever reads it.
pub async fn update_indexes(table: &Table, rows: usize, resident: usize) -> Result<(), TableError> {
    let there = table
        .list_indices()
        .await
        .map_err(TableError::lance("list the indexes"))?;
    // A scope that grows finds them there.
    let soon = resident - resident / 4;
    if there.is_empty() && rows < soon.max(INDEXES_FROM) {
        return Ok(());
    }
    let has = |column: &str| {
        there
            .iter()
            .any(|index| index.columns.iter().any(|own| own == column))
    };
    // The terms are analysed already: only the blanks between them count.
    let words = FtsIndexBuilder::default()
        .base_tokenizer("whitespace".to_owned())
        .with_position(false)
        .lower_case(false)
        .stem(false)
        .remove_stop_words(false)
        .ascii_folding(false)
        .max_token_length(None)
        .num_workers(
            std::thread::available_parallelism()
                .map_or(1, usize::from)
                .min(WORKERS),
        );
    let mut wanted: Vec<(&str, Index)> = vec![
        ("status", Index::Bitmap(BitmapIndexBuilder::default())),
        ("project", Index::Bitmap(BitmapIndexBuilder::default())),
        ("type", Index::Bitmap(BitmapIndexBuilder::default())),
        ("tags", Index::LabelList(LabelListIndexBuilder::default())),
        ("created", Index::BTree(BTreeIndexBuilder::default())),
    ];
    if rows >= VECTOR_FROM {
        let vectors = IvfRqIndexBuilder::default()
            .distance_type(lancedb::DistanceType::Cosine)
            // It only names memories, whose cosine is then computed from the whole vector: the
            // smallest code is enough.
            .num_bits(1);
        wanted.push(("vector", Index::IvfRq(vectors)));
        for column in ["alias", "session", "session_id"] {
            wanted.push((column, Index::BTree(BTreeIndexBuilder::default())));
        }
    }
    wanted.retain(|(column, _)| !has(column));
    let words = if has("words") {
        Vec::new()
    } else {
        vec![("words", Index::FTS(words))]
    };
    // The one on the words takes one processor and about as long as the others together.
    futures::try_join!(make(table, words), make(table, wanted))?;
    if !there.is_empty() {
        let updated = table
            .optimize(OptimizeAction::Index(
                lancedb::table::OptimizeOptions::default(),
            ))
            .await;
        updated.map_err(TableError::lance("update the indexes"))?;
    }
    Ok(())
}

/// Makes indexes, one after the other.
async fn make(table: &Table, wanted: Vec<(&str, Index)>) -> Result<(), TableError> {
    for (column, index) in wanted {
        let made = table.create_index(&[column], index).execute().await;
        made.map_err(TableError::lance("make an index"))?;
    }
    Ok(())
}
