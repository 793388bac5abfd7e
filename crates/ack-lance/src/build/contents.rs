//! What a table contains when a build begins.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use arrow::array::{Array, StringArray, UInt32Array, UInt64Array};
use lancedb::Table;

use super::{Encoders, Plan};
use crate::columns;
use crate::extent::{self, Extent};
use crate::rows::{self, Detail};
use crate::terms::{self, LEXICON_SOURCE};
use crate::{TableError, next_batch, open, select_rows};
use ack_api::memory::Status;
use ack_api::source::RowKey;
use ack_contextual::Contextual;

/// A table that replaces its store is rebuilt once it keeps more records than this many times those
/// that are needed, and [`MAX_TOLERATED_OLD_RECORDS`] more.
const OLD_RECORDS_FACTOR: usize = 2;
/// See [`OLD_RECORDS_FACTOR`].
const MAX_TOLERATED_OLD_RECORDS: usize = 10_000;

#[derive(Clone, Copy)]
pub(super) struct StoredRow {
    pub key: RowKey,
    /// `None` if its vector is not the wanted one, or its terms cannot be read.
    pub fingerprint: Option<u64>,
    pub status: Status,
    pub batch: u64,
}

#[derive(Default)]
pub(super) struct Contents {
    pub rows: Vec<StoredRow>,
    /// The batches whose lexicons exist.
    lexicons: HashSet<u64>,
    /// Those whose lexicons have terms that no row needs, because a build was killed.
    outdated: HashSet<u64>,
    /// How many records are kept with the lexicons, also those that were replaced or removed.
    records: usize,
}

impl Contents {
    pub fn next_batch(&self) -> u64 {
        let batches = self.lexicons.iter().copied().chain(self.rows.iter().map(|row| row.batch));
        batches.max().map_or(0, |last| last + 1)
    }

    /// Whether most of the records that it keeps were replaced or removed, once a plan is carried
    /// out. They stay in their blocks until no row needs the batch.
    pub fn has_mostly_old_records(&self, plan: &Plan) -> bool {
        let kept = self.records + plan.add.len();
        kept > OLD_RECORDS_FACTOR * (plan.kept + plan.add.len()) + MAX_TOLERATED_OLD_RECORDS
    }

    /// The lexicons that no row needs once the given rows are removed.
    pub fn unused_lexicons(&self, remove: &[RowKey]) -> Vec<RowKey> {
        let removed: HashSet<&RowKey> = remove.iter().collect();
        let remaining = self.rows.iter().filter(|row| !removed.contains(&row.key));
        let used: HashSet<u64> = remaining.map(|row| row.batch).collect();
        self.lexicons.difference(&used).filter_map(|batch| lexicon_key(*batch)).collect()
    }

    /// The batches whose lexicons have terms that no row needs once the given rows are removed.
    pub fn outdated_lexicons(&self, remove: &[RowKey]) -> Vec<u64> {
        let removed: HashSet<&RowKey> = remove.iter().collect();
        let gone = self.rows.iter().filter(|row| removed.contains(&row.key));
        let mut batches: HashSet<u64> = gone.map(|row| row.batch).collect();
        batches.extend(&self.outdated);
        batches.into_iter().collect()
    }
}

pub(super) fn lexicon_key(batch: u64) -> Option<RowKey> {
    Some(RowKey { source: LEXICON_SOURCE, rowid: i64::try_from(batch).ok()? })
}

/// Opens an existing table, and reads what it contains.
pub(super) async fn open_contents(
    folder: &Path,
    encoders: Encoders,
    extent: Extent,
) -> Result<(Table, Contents), TableError> {
    let table = open(folder).await?;
    let schema = table.schema().await.map_err(TableError::lance_error("read the schema"))?;
    columns::check(schema.metadata(), encoders.encoder)?;
    let found = columns::is_contextual(schema.metadata());
    if encoders.network.is_some() != found {
        let found = if found { "contextual" } else { "static" };
        return Err(TableError::OtherEncoder { found });
    }
    extent::check(schema.metadata(), extent)?;
    // All columns that any reader uses: if one of them cannot be read, the table is rebuilt now.
    let columns = columns::names(&["detail", "batch", "vector"]);
    let mut batches = select_rows(&table, &columns, None).await?;
    let network = encoders.network.map(|_| Contextual::weights_hash());
    let mut contents = Contents::default();
    let mut terms = BatchTerms::default();
    while let Some(batch) = next_batch(&mut batches).await? {
        let models = rows::column::<StringArray>(&batch, "model")?;
        let numbers = rows::column::<UInt64Array>(&batch, "batch")?.values();
        let lengths = rows::column::<UInt32Array>(&batch, "length")?.values();
        // A damaged row would stay damaged.
        rows::memories(&batch, |row, entry| {
            let model = models.is_valid(row).then(|| models.value(row));
            contents.rows.push(StoredRow {
                key: entry.key,
                fingerprint: (model == network).then_some(entry.fingerprint),
                status: entry.status,
                batch: numbers.get(row).copied().unwrap_or_default(),
            });
        })?;
        rows::details(&batch, |row, detail| {
            if let Detail::Lexicon(batch, ..) = detail {
                contents.lexicons.insert(u64::from(batch));
                contents.records += lengths.get(row).map_or(0, |length| *length as usize);
            }
            terms.add(&detail)
        })?;
    }
    let Contents { rows, lexicons, .. } = &mut contents;
    for row in rows.iter_mut().filter(|row| !lexicons.contains(&row.batch)) {
        row.fingerprint = None;
    }
    if extent == Extent::Derived {
        contents.outdated = terms.shrunk().map(|(batch, _)| batch).collect();
    }
    Ok((table, contents))
}

/// Which terms the lexicons of batches have, and which of them rows need.
#[derive(Default)]
pub(super) struct BatchTerms {
    lexicons: HashMap<u32, Vec<u8>>,
    used: HashMap<u32, Vec<bool>>,
}

impl BatchTerms {
    pub fn add(&mut self, detail: &Detail<'_>) -> Result<(), TableError> {
        match detail {
            Detail::Lexicon(batch, whole) => {
                self.lexicons.insert(*batch, whole.to_vec());
            }
            Detail::Memory(batch, _, terms) => {
                let used = self.used.entry(*batch).or_default();
                for term in terms::read_terms(terms) {
                    let (position, _) = term.ok_or(TableError::Damaged)?;
                    let position = position as usize;
                    if used.len() <= position {
                        used.resize(position + 1, false);
                    }
                    if let Some(used) = used.get_mut(position) {
                        *used = true;
                    }
                }
            }
        }
        Ok(())
    }

    /// The lexicons that have terms which no row needs, without these terms.
    pub fn shrunk(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        self.lexicons.iter().filter_map(|(batch, lexicon)| {
            let used = self.used.get(batch)?;
            let is_used = |position| used.get(position).copied().unwrap_or(false);
            let shrunk = terms::shrink_lexicon(lexicon, is_used)?;
            (shrunk != *lexicon).then_some((u64::from(*batch), shrunk))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_mostly_keeps_old_records_is_rebuilt() {
        let plan = |kept: usize, added: i64| Plan {
            add: (0..added).map(|rowid| RowKey { source: 0, rowid }).collect(),
            remove: Vec::new(),
            kept,
        };
        let keeps = |records: usize| Contents { records, ..Contents::default() };
        assert!(!keeps(100_000).has_mostly_old_records(&plan(99_900, 100)));
        assert!(!keeps(200_000).has_mostly_old_records(&plan(99_900, 100)));
        assert!(keeps(220_000).has_mostly_old_records(&plan(99_900, 100)));
        // Nearly all memories were removed.
        assert!(keeps(100_000).has_mostly_old_records(&plan(10, 0)));
        // Rewriting a small table saves nothing worth mentioning.
        assert!(!keeps(5_000).has_mostly_old_records(&plan(10, 10)));
        // Other tables keep no records.
        assert!(!keeps(0).has_mostly_old_records(&plan(0, 100_000)));
    }
}
