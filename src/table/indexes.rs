//! The indexes of a vector table: made where they pay, brought up to date by every build.

use lancedb::Table;
use lancedb::index::Index;
use lancedb::index::scalar::{BTreeIndexBuilder, BitmapIndexBuilder, FtsIndexBuilder, LabelListIndexBuilder};
use lancedb::index::vector::IvfRqIndexBuilder;
use lancedb::table::OptimizeAction;

use super::TableError;

/// From this size on a table gets indexes on its filter columns and its text.
const SCALAR_FROM: usize = 10_000;
/// From this size on it gets one on its vectors.
const VECTOR_FROM: usize = 100_000;

/// Makes the indexes that a table of this size lacks, and brings those it has up to date.
pub async fn update_indexes(table: &Table, rows: usize) -> Result<(), TableError> {
    if rows < SCALAR_FROM {
        return Ok(());
    }
    let there = table.list_indices().await.map_err(TableError::lance("list the indexes"))?;
    let has = |column: &str| there.iter().any(|index| index.columns.iter().any(|own| own == column));
    let words = || {
        // The terms are made by our own analysis; here they are only cut at the blanks.
        FtsIndexBuilder::default()
            .base_tokenizer("whitespace".to_owned())
            .stem(false)
            .remove_stop_words(false)
            .ascii_folding(false)
            .lower_case(false)
            .max_token_length(None)
            .with_position(false)
    };
    let mut wanted: Vec<(&str, Index)> = vec![
        ("status", Index::Bitmap(BitmapIndexBuilder::default())),
        ("project", Index::Bitmap(BitmapIndexBuilder::default())),
        ("type", Index::Bitmap(BitmapIndexBuilder::default())),
        ("tags", Index::LabelList(LabelListIndexBuilder::default())),
        ("created", Index::BTree(BTreeIndexBuilder::default())),
        ("terms", Index::FTS(words())),
    ];
    if rows >= VECTOR_FROM {
        let vectors = IvfRqIndexBuilder::default().distance_type(lancedb::DistanceType::Cosine);
        wanted.push(("vector", Index::IvfRq(vectors)));
    }
    for (column, index) in wanted {
        if !has(column) {
            let made = table.create_index(&[column], index).execute().await;
            made.map_err(TableError::lance("make an index"))?;
        }
    }
    if !there.is_empty() {
        let updated = table
            .optimize(OptimizeAction::Index(lancedb::table::OptimizeOptions::default()))
            .await;
        updated.map_err(TableError::lance("update the indexes"))?;
    }
    Ok(())
}
