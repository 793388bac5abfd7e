//! Reading, preparing and writing rows at the same time.

use std::sync::mpsc;

use arrow::array::RecordBatch;
use lancedb::Table;

use super::{Failure, Writer};
use crate::error::StoreError;
use crate::memory::Memory;
use crate::store::read::RowKey;
use crate::table::shapes::Progress;
use crate::table::{TableError, wait};

/// Rows of a store, with their fingerprints.
pub type StoreRows = Vec<(RowKey, u64, Memory)>;

/// Adds rows, a batch after the other: while one is prepared, the next one is read and LanceDB writes the one before.
pub fn append<'k>(
    writer: &mut Writer<'_>,
    batches: impl Iterator<Item = &'k [RowKey]> + Send,
    progress: &mut dyn FnMut(Progress),
    read: impl Fn(&[RowKey]) -> Result<StoreRows, StoreError> + Send,
) -> Result<(), Failure> {
    let table = writer.table.clone();
    // Where one side has failed, the others end because nobody sends or takes any more; what failed is told at the end.
    let (rows_out, rows_in) = mpsc::sync_channel::<Result<StoreRows, StoreError>>(0);
    let (batch_out, batch_in) = mpsc::sync_channel::<(RecordBatch, usize)>(0);
    let (count_out, count_in) = mpsc::channel::<usize>();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            for keys in batches {
                if rows_out.send(read(keys)).is_err() {
                    break;
                }
            }
        });
        let adding = threads.spawn(move || {
            for (batch, rows) in batch_in {
                add(&table, batch)?;
                let _ = count_out.send(rows);
            }
            Ok::<(), TableError>(())
        });
        let mut prepared = Ok(());
        for rows in rows_in {
            count_in.try_iter().for_each(|rows| progress(Progress::Added(rows)));
            let batch = rows
                .map_err(Failure::from)
                .and_then(|rows| Ok((writer.prepare(&rows)?, rows.len())));
            match batch {
                Ok((None, _)) => {}
                Ok((Some(batch), rows)) => {
                    if batch_out.send((batch, rows)).is_err() {
                        break;
                    }
                }
                Err(failure) => {
                    prepared = Err(failure);
                    break;
                }
            }
        }
        drop(batch_out);
        count_in.iter().for_each(|rows| progress(Progress::Added(rows)));
        match adding.join() {
            Ok(added) => added.map_err(Failure::from).and(prepared),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn add(table: &Table, batch: RecordBatch) -> Result<(), TableError> {
    wait(async {
        table.add(batch).execute().await.map_err(TableError::lance("add rows"))?;
        Ok(())
    })
}
