//! Reading, preparing and writing rows at the same time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, mpsc};

use arrow::array::RecordBatch;
use lancedb::Table;

use super::prepare::Preparer;
use super::{Failure, Writer};
use crate::error::StoreError;
use crate::memory::Memory;
use crate::query::prepare::threads;
use crate::store::read::RowKey;
use crate::table::shapes::Progress;
use crate::table::{TableError, wait};

/// Rows of a store, with their fingerprints.
pub type StoreRows = Vec<(RowKey, u64, Memory)>;

/// A batch with its number, or why it could not be made, and of how many rows it is.
type Made = (u64, Result<Option<RecordBatch>, Failure>, usize);

/// Adds rows, a batch after the other: while some are prepared, each by a thread of its own, the next one is read and LanceDB
/// writes the one before. A transformer takes every processor for one batch.
pub fn append<'k>(
    writer: &Writer<'_>,
    batches: impl Iterator<Item = &'k [RowKey]> + Send,
    progress: &mut dyn FnMut(Progress),
    read: impl Fn(&[RowKey]) -> Result<StoreRows, StoreError> + Send,
) -> Result<(), Failure> {
    let first = writer.batch;
    let (preparers, each) = if writer.maker.model.is_some() {
        (1, threads())
    } else {
        (threads(), 1)
    };
    std::thread::scope(|scope| {
        // Where one side has failed, the others end because nobody sends or takes any more.
        let (rows_out, rows_in) = mpsc::sync_channel::<(u64, Result<StoreRows, StoreError>)>(0);
        let (made_out, made_in) = mpsc::sync_channel::<Made>(0);
        scope.spawn(move || {
            for (number, keys) in (first..).zip(batches) {
                if rows_out.send((number, read(keys))).is_err() {
                    break;
                }
            }
        });
        let rows_in = std::sync::Arc::new(Mutex::new(rows_in));
        for _ in 0..preparers {
            let (rows_in, made_out) = (std::sync::Arc::clone(&rows_in), made_out.clone());
            let mut preparer = Preparer::new(writer, each);
            scope.spawn(move || {
                loop {
                    let next = rows_in.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((number, rows)) = next else { break };
                    let made = match rows {
                        Ok(rows) => (number, preparer.prepare(number, &rows), rows.len()),
                        Err(error) => (number, Err(error.into()), 0),
                    };
                    if made_out.send(made).is_err() {
                        break;
                    }
                }
            });
        }
        drop((rows_in, made_out));
        add_in_order(&writer.table, first, made_in, progress)
    })
}

/// Adds batches in the order of their numbers, in whichever they come.
fn add_in_order(table: &Table, first: u64, made: mpsc::Receiver<Made>, progress: &mut dyn FnMut(Progress)) -> Result<(), Failure> {
    let mut early = BTreeMap::new();
    let mut next = first;
    for (number, batch, rows) in made {
        early.insert(number, (batch, rows));
        while let Some((batch, rows)) = early.remove(&next) {
            if let Some(batch) = batch? {
                add(table, batch)?;
            }
            progress(Progress::Added(rows));
            next += 1;
        }
    }
    Ok(())
}

fn add(table: &Table, batch: RecordBatch) -> Result<(), TableError> {
    wait(async {
        table.add(batch).execute().await.map_err(TableError::lance("add rows"))?;
        Ok(())
    })
}
