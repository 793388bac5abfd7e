//! What a table contains when a build begins.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use arrow::array::{Array, StringArray, UInt32Array, UInt64Array};
use lancedb::Table;

use super::Plan;
use crate::columns::{self, Format};
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
    batch: u32,
}

#[derive(Default)]
pub(super) struct Contents {
    pub rows: Vec<StoredRow>,
    /// The lexicons, by the numbers of their batches.
    pub lexicons: HashMap<u32, Vec<u8>>,
    /// How many records are kept with the lexicons, also those that were replaced or removed.
    records: usize,
}

impl Contents {
    pub fn next_batch(&self) -> u32 {
        let batches = self.lexicons.keys().copied().chain(self.rows.iter().map(|row| row.batch));
        batches.max().map_or(0, |last| last + 1)
    }

    /// Whether most of the records that it keeps were replaced or removed, once a plan is carried
    /// out. They stay in their blocks until no row needs the batch.
    pub fn has_mostly_old_records(&self, plan: &Plan) -> bool {
        let kept = self.records + plan.add.len();
        kept > OLD_RECORDS_FACTOR * (plan.kept + plan.add.len()) + MAX_TOLERATED_OLD_RECORDS
    }

    /// The batches whose lexicons have terms that no row needs once the given rows are removed, or,
    /// unless `any_term` counts, nothing but such terms.
    pub fn outdated_lexicons(&self, remove: &[RowKey], any_term: bool) -> Vec<u32> {
        let removed: HashSet<&RowKey> = remove.iter().collect();
        let (gone, left): (Vec<&StoredRow>, Vec<&StoredRow>) =
            self.rows.iter().partition(|row| removed.contains(&row.key));
        let used: HashSet<u32> = left.iter().map(|row| row.batch).collect();
        let mut batches: HashSet<u32> = self.lexicons.keys().copied().collect();
        batches.retain(|batch| !used.contains(batch));
        if any_term {
            batches.extend(gone.iter().map(|row| row.batch));
        }
        batches.into_iter().collect()
    }
}

pub(super) fn lexicon_key(batch: u32) -> RowKey {
    RowKey { source: LEXICON_SOURCE, rowid: batch.into() }
}

/// Opens an existing table, and reads what it contains.
pub(super) async fn open_contents(
    folder: &Path,
    format: Format,
) -> Result<(Table, Contents), TableError> {
    let table = open(folder).await?;
    let schema = table.schema().await.map_err(TableError::lance_error("read the schema"))?;
    format.check(schema.metadata())?;
    // All columns that any reader uses: if one of them cannot be read, the table is rebuilt now.
    let columns = columns::names(&["detail", "batch", "vector"]);
    let mut batches = select_rows(&table, &columns, None).await?;
    let network = format.network.map(|_| Contextual::weights_hash());
    let mut contents = Contents::default();
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
                batch: numbers.get(row).map_or(0, |number| u32::try_from(*number).unwrap_or(0)),
            });
        })?;
        rows::details(&batch, |row, detail| {
            if let Detail::Lexicon(batch, whole) = detail {
                contents.lexicons.insert(batch, whole.to_vec());
                contents.records += lengths.get(row).map_or(0, |length| *length as usize);
            }
            Ok(())
        })?;
    }
    let Contents { rows, lexicons, .. } = &mut contents;
    for row in rows.iter_mut().filter(|row| !lexicons.contains_key(&row.batch)) {
        row.fingerprint = None;
    }
    Ok((table, contents))
}

/// Adds the terms of a memory to those that the memories of its batch need, by their positions in
/// the lexicon.
pub(super) fn add_used_terms(
    detail: &Detail<'_>,
    used: &mut HashMap<u32, Vec<bool>>,
) -> Result<(), TableError> {
    let Detail::Memory(batch, _, terms) = detail else {
        return Ok(());
    };
    let used = used.entry(*batch).or_default();
    for term in terms::read_terms(terms) {
        let (position, _) = term.ok_or(TableError::Damaged)?;
        let position = position as usize;
        used.resize(used.len().max(position + 1), false);
        if let Some(used) = used.get_mut(position) {
            *used = true;
        }
    }
    Ok(())
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
