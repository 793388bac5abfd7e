//! Reads, prepares and writes rows.

use arrow::array::RecordBatch;
use futures::stream;
use lancedb::Table;
use lancedb::arrow::{SendableRecordBatchStream, SimpleRecordBatchStream};
use lancedb::table::AddResult;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinHandle;

use super::{BuildError, Progress, Writer};
use crate::columns::{self, Format, NewRow};
use crate::indexes::ROWS_PER_FRAGMENT;
use crate::{TableError, spawn, wait};
use ack_api::memory::{Memory, Status};
use ack_api::source::{RowKey, StoredMemory};
use ack_contextual::{Contextual, EncodeError};
use ack_search::analyzer::{AnalyzedDoc, Analyzer, analyzer_threads};
use ack_search::encoder::{CONTEXTUAL_NORM, Encoder};
use ack_store::StoreError;

/// How many rows one thread prepares at once. A small number of rows is divided among all threads,
/// but each batch has a lexicon of its own, which every reader has to look up.
const ROWS_PER_BATCH: usize = 16_384;
const MIN_ROWS_PER_BATCH: usize = 4_096;
/// How many batches become one version and one fragment of the table. A killed build loses at most
/// these. Every fragment slows down each search of a large table a little.
const BATCHES_PER_VERSION: usize = ROWS_PER_FRAGMENT / ROWS_PER_BATCH;
/// Rows per batch if the small transformer reads them. That takes long, so progress is saved more
/// often.
const ROWS_PER_CONTEXTUAL_BATCH: usize = 256;

/// Adds rows batch by batch. Each thread reads and prepares a batch, while LanceDB writes the
/// previous ones. The small transformer uses all processors for one batch.
pub fn append(
    writer: &Writer,
    keys: &[RowKey],
    progress: Progress<'_>,
    read: impl Fn(&[RowKey]) -> Result<Vec<StoredMemory>, StoreError> + Sync,
) -> Result<(), BuildError> {
    let (preparers, rows_per_batch, batches_per_version) = if writer.format.network.is_some() {
        (1, ROWS_PER_CONTEXTUAL_BATCH, 1)
    } else {
        (analyzer_threads(), rows_per_batch(keys.len()), BATCHES_PER_VERSION)
    };
    let format = writer.format;
    let mut preparers: Vec<Analyzer> = (0..preparers).map(|_| Analyzer::default()).collect();
    let mut versions = Versions::new(&writer.table, batches_per_version);
    let mut number = writer.contents.next_batch();
    let (mut added, all) = (0, keys.len());
    progress(added, all);
    for keys in keys.chunks(rows_per_batch * preparers.len()) {
        let parts = keys.chunks(rows_per_batch);
        let batches = (number..).zip(parts.clone());
        number += u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let prepared: Vec<_> = std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (analyzer, (number, keys)) in preparers.iter_mut().zip(batches) {
                let read = &read;
                running.push(scope.spawn(move || prepare(format, analyzer, number, &read(keys)?)));
            }
            let joined = running.into_iter().map(|thread| thread.join());
            joined.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        for batch in prepared {
            match batch {
                Ok(Some(batch)) => versions.add(batch)?,
                Ok(None) => {}
                Err(failure) => {
                    // The batches before the failure are complete, so they are kept.
                    versions.finish()?;
                    return Err(failure);
                }
            }
        }
        added += keys.len();
        progress(added, all);
    }
    versions.finish()?;
    Ok(())
}

/// Rows per batch, so that every thread prepares about the same number.
fn rows_per_batch(rows: usize) -> usize {
    let threads = analyzer_threads();
    let rounds = rows.div_ceil(ROWS_PER_BATCH * threads).max(1);
    rows.div_ceil(rounds * threads).clamp(MIN_ROWS_PER_BATCH, ROWS_PER_BATCH)
}

/// Writes batches as they arrive, several per version of the table.
pub(super) struct Versions<'a> {
    table: &'a Table,
    batches_per_version: usize,
    open: Option<Version>,
}

struct Version {
    batches: Sender<lancedb::Result<RecordBatch>>,
    task: JoinHandle<lancedb::Result<AddResult>>,
    count: usize,
}

impl<'a> Versions<'a> {
    pub const fn new(table: &'a Table, batches_per_version: usize) -> Self {
        Self { table, batches_per_version, open: None }
    }

    pub fn add(&mut self, batch: RecordBatch) -> Result<(), TableError> {
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

    pub fn finish(&mut self) -> Result<(), TableError> {
        let Some(Version { batches, task: result, .. }) = self.open.take() else {
            return Ok(());
        };
        drop(batches);
        wait(async {
            let result = result.await.map_err(|_| TableError::Damaged)?;
            result.map(|_| ()).map_err(TableError::lance_error("add rows"))
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
        let adding = table.add(stream).write_parallelism(1);
        let task = spawn(async move { adding.execute().await })?;
        Ok(Self { batches, task, count: 0 })
    }
}

/// Makes the batch with this number; `None` if none of its rows is served.
fn prepare(
    format: Format,
    analyzer: &mut Analyzer,
    number: u32,
    rows: &[StoredMemory],
) -> Result<Option<RecordBatch>, BuildError> {
    let is_served =
        |row: &&StoredMemory| row.memory.status != Status::Rejected && !row.memory.id.is_empty();
    let rows: Vec<&StoredMemory> = rows.iter().filter(is_served).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let memories: Vec<&Memory> = rows.iter().map(|row| &row.memory).collect();
    let analyzed = memories.iter().map(|memory| analyzer.analyze(memory, Some(format.encoder)));
    let mut docs: Vec<AnalyzedDoc> = analyzed.collect();
    if let Some(network) = format.network {
        read_in_context(format.encoder, network, &memories, &mut docs)?;
    }
    let new_rows = rows.iter().zip(&docs).map(|(stored, analyzed)| NewRow {
        stored,
        analyzed,
        lexicon: &analyzer.lexicon,
        model: format.network.map(|_| Contextual::weights_hash()),
    });
    Ok(Some(format.batch(number, &new_rows.collect::<Vec<_>>())?))
}

/// Adds the vectors of the small transformer to the static ones.
fn read_in_context(
    encoder: &Encoder,
    network: &Contextual,
    memories: &[&Memory],
    docs: &mut [AnalyzedDoc],
) -> Result<(), EncodeError> {
    let texts: Vec<String> = memories.iter().map(|it| columns::encoded_text(it)).collect();
    let vectors = network.memories(&texts)?;
    for ((analyzed, vector), text) in docs.iter_mut().zip(vectors).zip(&texts) {
        // The network knows only English: other memories keep their static vectors.
        if encoder.is_english(text) {
            // Of a text without known words, a network knows none either.
            let known = analyzed.vector.as_deref();
            let both = known.and_then(|known| encoder.with_network(known, &vector, 1.0));
            analyzed.vector =
                both.map(|both| both.iter().map(|value| value * CONTEXTUAL_NORM).collect());
        }
    }
    Ok(())
}
