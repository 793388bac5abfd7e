//! Reads, prepares and writes rows at the same time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, mpsc};

use arrow::array::RecordBatch;
use futures::stream;
use lancedb::Table;
use lancedb::arrow::{SendableRecordBatchStream, SimpleRecordBatchStream};
use lancedb::table::AddResult;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

use super::prepare::Preparer;
use super::{BuildError, Writer};
use crate::build::Progress;
use crate::{TableError, spawn, wait};
use ack_api::source::{RowKey, StoredMemory};
use ack_search::analyzer::analyzer_threads;
use ack_store::StoreError;

/// Rows of a store, with their fingerprints.
pub type StoreRows = Vec<StoredMemory>;

/// A batch with its number and its number of rows, or why it could not be made.
type PreparedBatch = (u64, Result<Option<RecordBatch>, BuildError>, usize);

/// Adds rows batch by batch. While threads prepare some batches, the next one is read and LanceDB
/// writes the previous one. `together` batches become one version of the table. A network uses all
/// processors for one batch.
pub fn append<'k>(
    writer: &Writer,
    (batches, batches_per_version): (impl Iterator<Item = &'k [RowKey]> + Send, usize),
    progress: &mut dyn FnMut(Progress),
    read: impl Fn(&[RowKey]) -> Result<StoreRows, StoreError> + Send,
) -> Result<(), BuildError> {
    let first = writer.batch;
    let (preparers, each) = if writer.encoders.network().is_some() {
        (1, analyzer_threads())
    } else {
        (analyzer_threads(), 1)
    };
    std::thread::scope(|scope| {
        // If one side fails, its channel closes, and that ends the others.
        let (row_sender, row_receiver) =
            mpsc::sync_channel::<(u64, Result<StoreRows, StoreError>)>(0);
        let (batch_sender, batch_receiver) = mpsc::sync_channel::<PreparedBatch>(0);
        scope.spawn(move || {
            for (number, keys) in (first..).zip(batches) {
                if row_sender.send((number, read(keys))).is_err() {
                    break;
                }
            }
        });
        let row_receiver = std::sync::Arc::new(Mutex::new(row_receiver));
        for _ in 0..preparers {
            let (row_receiver, batch_sender) =
                (std::sync::Arc::clone(&row_receiver), batch_sender.clone());
            let mut preparer = Preparer::new(writer, each);
            scope.spawn(move || {
                loop {
                    let next = row_receiver
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .recv();
                    let Ok((number, rows)) = next else { break };
                    let batch = match rows {
                        Ok(rows) => (number, preparer.prepare(number, &rows), rows.len()),
                        Err(error) => (number, Err(error.into()), 0),
                    };
                    if batch_sender.send(batch).is_err() {
                        break;
                    }
                }
            });
        }
        drop((row_receiver, batch_sender));
        add_in_order(
            Versions::new(&writer.table, batches_per_version),
            first,
            batch_receiver,
            progress,
        )
    })
}

/// Adds batches in the order of their numbers, whatever order they arrive in.
fn add_in_order(
    mut versions: Versions<'_>,
    first: u64,
    batches: mpsc::Receiver<PreparedBatch>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BuildError> {
    let mut early = BTreeMap::new();
    let mut next = first;
    for (number, batch, rows) in batches {
        early.insert(number, (batch, rows));
        while let Some((batch, rows)) = early.remove(&next) {
            match batch {
                Ok(Some(batch)) => versions.add(batch)?,
                Ok(None) => {}
                Err(failure) => {
                    // The batches before the failure are complete, so they are kept.
                    versions.finish()?;
                    return Err(failure);
                }
            }
            progress(Progress::Added(rows));
            next += 1;
        }
    }
    versions.finish()?;
    Ok(())
}

/// Writes batches as they arrive, several per version of the table.
struct Versions<'a> {
    table: &'a Table,
    batches_per_version: usize,
    open: Option<Version>,
}

/// A version that is being written.
struct Version {
    batches: Sender<lancedb::Result<RecordBatch>>,
    task: JoinHandle<lancedb::Result<AddResult>>,
    count: usize,
}

impl<'a> Versions<'a> {
    const fn new(table: &'a Table, batches_per_version: usize) -> Self {
        Self {
            table,
            batches_per_version,
            open: None,
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), TableError> {
        let version = match &mut self.open {
            Some(version) => version,
            None => self.open.insert(Version::begin(self.table, &batch)?),
        };
        version.count += 1;
        // The receiver is gone if writing has failed; `finish` returns the error.
        let failed = version.batches.blocking_send(Ok(batch)).is_err();
        if failed || version.count >= self.batches_per_version {
            self.finish()?;
        }
        Ok(())
    }

    /// Commits what was added.
    fn finish(&mut self) -> Result<(), TableError> {
        let Some(Version {
            batches,
            task: result,
            ..
        }) = self.open.take()
        else {
            return Ok(());
        };
        drop(batches);
        wait(async {
            let result = result.await.map_err(|_| TableError::Damaged)?;
            result
                .map(|_| ())
                .map_err(TableError::lance_error("add rows"))
        })
    }
}

impl Version {
    fn begin(table: &Table, first: &RecordBatch) -> Result<Self, TableError> {
        let (batches, receiver) = channel(1);
        let stream = stream::unfold(receiver, |mut receiver| async move {
            Some((receiver.recv().await?, receiver))
        });
        let stream: SendableRecordBatchStream =
            Box::pin(SimpleRecordBatchStream::new(stream, first.schema()));
        // In order of arrival: a lexicon comes before its rows.
        let adding = table.add(stream).write_parallelism(1);
        let task = spawn(async move { adding.execute().await })?;
        Ok(Self {
            batches,
            task,
            count: 0,
        })
    }
}
