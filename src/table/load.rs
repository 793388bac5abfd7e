//! Reading the published version of a vector table into an index.

use std::path::Path;

use arrow::array::Array;
use arrow::datatypes::UInt64Type;

use rustc_hash::FxHashMap;

use super::columns::{self, COLUMNS, Loaded, META_ENCODER, Rows};
use super::search::Searcher;
use super::shapes::TableInfo;
use super::{TableError, TableStamp, each_batch, open_published, published, terms, wait};
use crate::encoder::Encoder;
use crate::query::inverted::Index;

/// Distinct terms of a memory in the mean that room is made for beforehand.
const POSTINGS: usize = 400;

/// Reads every row of the published version into an index that still has to be reconciled with the store. Of a table with more
/// than `resident` rows, terms and vectors stay where they are and are searched there.
///
/// # Errors
/// Why the table cannot be used.
pub fn load(folder: &Path, encoder: &Encoder, resident: usize) -> Result<(Index, TableInfo), TableError> {
    wait(async {
        let dataset = published(folder).await?;
        columns::check(&dataset.schema().metadata, encoder)?;
        let version = dataset.version().version;
        let rows = dataset.count_rows(None).await.map_err(TableError::reading("count the rows"))?;
        let mut searcher = if rows > resident {
            Searcher::open(dataset.clone(), open_published(folder).await?).await?
        } else {
            None
        };
        let detail = searcher.is_none().then_some("detail");
        let columns: Vec<&str> = COLUMNS.into_iter().chain(detail).collect();
        let mut index = Index::new();
        let (mut count, mut with_model) = (0, 0);
        // What the index calls the terms of each batch.
        let mut lexicons: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let mut numbered: Vec<(u32, u32)> = Vec::new();
        let searched = searcher.is_some();
        // What the lexicons announce is believed within reason: a damaged one must not take all the memory there is.
        let mut room = rows.saturating_mul(POSTINGS);
        if !searched {
            index.expect(rows, encoder.dimension());
        }
        each_batch(&dataset, &columns, |batch| {
            let numbers = Rows::new(batch).numbers::<UInt64Type>("_rowid")?;
            with_model += batch.column_by_name("model").map_or(0, |model| model.len() - model.null_count());
            Rows::new(batch).visit(|place, row| {
                match row {
                    Loaded::Lexicon(number, terms, holders) => {
                        let terms = terms.split(' ').filter(|term| !term.is_empty());
                        let terms = index.number_terms(terms);
                        for (term, holders) in terms.iter().zip(terms::read_holders(holders)) {
                            let [served, staging] = holders.ok_or(TableError::Damaged)?;
                            let postings = served.saturating_add(staging) as usize;
                            if postings <= room.min(rows) {
                                index.expect_postings(*term, postings);
                                room -= postings;
                            }
                        }
                        lexicons.insert(number, terms);
                    }
                    Loaded::Memory(entry, number, terms) => {
                        count += 1;
                        numbered.clear();
                        let lexicon = match lexicons.get(&number) {
                            Some(lexicon) => lexicon.as_slice(),
                            None if searched => &[],
                            None => return Err(TableError::Damaged),
                        };
                        for term in terms::read(terms) {
                            let (place, weight) = term.ok_or(TableError::Damaged)?;
                            numbered.push((*lexicon.get(place as usize).ok_or(TableError::Damaged)?, weight));
                        }
                        if index.add_loaded(&entry, numbered.iter().copied())
                            && let Some(searcher) = &mut searcher
                        {
                            searcher.add_row(numbers.value(place));
                        }
                    }
                }
                Ok(())
            })
        })
        .await?;
        index.set_loaded(searcher);
        let mut encoder = dataset.schema().metadata.get(META_ENCODER).cloned().unwrap_or_default();
        if with_model > 0 {
            encoder.push_str(&format!("; {with_model} rows with the transformer"));
        }
        let info = TableInfo {
            built_at: TableStamp::of(folder).published_at(),
            rows: count,
            version,
            encoder,
            searched,
        };
        Ok((index, info))
    })
}
