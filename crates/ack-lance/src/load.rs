//! Loads the published version of a vector table into an index.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use arrow::array::{RecordBatch, StringArray, UInt8Array, UInt64Array};
use lance::Dataset;

use super::columns::{self, META_ENCODER};
use super::rows::{Detail, column, details, memories};
use super::search::Searcher;
use super::terms::{self, LEXICON_SOURCE, read_lexicons};
use super::{
    TableError, TableVersion, dataset_with, each_batch, open_published, published_dataset, session,
    wait,
};
use ack_search::encoder::Encoder;
use ack_search::inverted::Index;
use ack_search::inverted::contents::Contents;
use ack_search::inverted::docs::DocTable;
use ack_search::postings::DocId;
use ack_search::remote::{RemoteDocs, TableInfo};

/// Space is reserved for at most this many distinct terms per memory, on average.
const MAX_TERMS_PER_MEMORY: usize = 400;

/// How many decoded batches may wait for the thread that reads terms and vectors.
const MAX_WAITING_BATCHES: usize = 2;

/// Loads all rows of the published version into an index, which still has to be reconciled with the
/// store. If the table has more than `resident` rows, terms and vectors stay on disk and are
/// searched there. Otherwise a second thread reads them while this one reads the columns.
pub fn load(
    folder: &Path,
    encoder: &Encoder,
    resident: usize,
) -> Result<(Index, TableInfo), TableError> {
    let (dataset, rows, mut searcher, lexicons) = wait(async {
        let mut dataset = published_dataset(folder).await?;
        columns::check(&dataset.schema().metadata, encoder)?;
        let rows =
            dataset.count_rows(None).await.map_err(TableError::lance_error("count the rows"))?;
        if rows <= resident {
            let lexicons = lexicons(&dataset).await?;
            return Ok((dataset, rows, None, lexicons));
        }
        dataset = dataset_with(folder, session()).await?;
        let lexicons = lexicons(&dataset).await?;
        let table = open_published(folder).await?;
        let searcher = Searcher::open(dataset.clone(), table, &lexicons).await?;
        Ok((dataset, rows, searcher, lexicons))
    })?;
    let mut index = Index::default();
    let mut read = LoadCounts::default();
    let (docs, contents) = index.halves();
    if let Some(searcher) = &mut searcher {
        let rows = |batch: &RecordBatch, numbers: Vec<Option<DocId>>| {
            let row_numbers = column::<UInt64Array>(batch, "_rowid")?.values().iter();
            let added = row_numbers.zip(numbers).filter(|(_, number)| number.is_some());
            added.for_each(|(row_number, _)| searcher.add_row(*row_number));
            Ok(())
        };
        wait(read.read_columns(&dataset, &columns::names(&[]), docs, rows))?;
    } else {
        docs.reserve(rows);
        let size = (rows, encoder.dimension);
        let fill = |batches| read_contents(contents, size, &lexicons, batches);
        read.read_all(&dataset, docs, fill)?;
    }
    let searched = searcher.is_some();
    index.set_loaded(searcher.map(|searcher| Box::new(searcher) as Box<dyn RemoteDocs>));
    let mut encoder = dataset.schema().metadata.get(META_ENCODER).cloned().unwrap_or_default();
    if read.contextual > 0 {
        let rows = ack_api::number::count(read.contextual, "row");
        encoder.push_str(&format!("; {rows} with the contextual encoder"));
    }
    index.is_contextual = 2 * read.contextual > read.memories;
    let info = TableInfo {
        built_at: TableVersion::of(folder).published_at(),
        rows: read.memories,
        version: dataset.version().version,
        encoder,
        searched,
    };
    Ok((index, info))
}

async fn lexicons(dataset: &Dataset) -> Result<RecordBatch, TableError> {
    let mut rows = Vec::new();
    each_batch(dataset, &["source"], |batch| {
        let sources = column::<UInt8Array>(batch, "source")?.values().iter();
        let numbers = column::<UInt64Array>(batch, "_rowid")?.values().iter();
        let lexicons = numbers.zip(sources).filter(|(_, source)| **source == LEXICON_SOURCE);
        rows.extend(lexicons.map(|(number, _)| *number));
        Ok(())
    })
    .await?;
    let failed = TableError::lance_error("read the terms");
    let schema = dataset.schema().project(&["detail"]).map_err(&failed)?;
    dataset.take_rows(&rows, schema).await.map_err(failed)
}

/// A batch of the table, and the document that each of its rows became.
type NumberedBatch = (RecordBatch, Vec<Option<DocId>>);

#[derive(Default)]
struct LoadCounts {
    memories: u64,
    /// Rows to whose vector the small transformer contributed.
    contextual: u64,
}

impl LoadCounts {
    /// Adds the columns of every memory, and passes each batch on.
    async fn read_columns(
        &mut self,
        dataset: &Dataset,
        names: &[&str],
        columns: &mut DocTable,
        mut on_batch: impl FnMut(&RecordBatch, Vec<Option<DocId>>) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        each_batch(dataset, names, |batch| {
            let networks = column::<StringArray>(batch, "model")?;
            self.contextual += networks.iter().flatten().count() as u64;
            let mut numbers = vec![None; batch.num_rows()];
            memories(batch, |row, entry| {
                self.memories += 1;
                if let Some(slot) = numbers.get_mut(row) {
                    *slot = columns.add_loaded(entry);
                }
            })?;
            on_batch(batch, numbers)
        })
        .await
    }

    /// Adds every memory: this thread reads the columns, and another one the terms and vectors.
    fn read_all(
        &mut self,
        dataset: &Dataset,
        columns: &mut DocTable,
        fill: impl FnOnce(Receiver<NumberedBatch>) -> Result<(), TableError> + Send,
    ) -> Result<(), TableError> {
        let both = columns::names(&["detail"]);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(MAX_WAITING_BATCHES);
            let reading = scope.spawn(move || fill(receiver));
            let send = |batch: &RecordBatch, numbers| {
                let contents = ["source", "detail"].map(|name| batch.schema_ref().index_of(name));
                let contents: Vec<usize> = contents.into_iter().flatten().collect();
                let batch = batch.project(&contents).map_err(|_| TableError::Damaged)?;
                sender.send((batch, numbers)).map_err(|_| TableError::Damaged)
            };
            let known = wait(self.read_columns(dataset, &both, columns, send));
            drop(sender);
            // If the other thread failed, its error is the cause.
            reading.join().unwrap_or(Err(TableError::Damaged)).and(known)
        })
    }
}

/// Adds the terms and the vector of every memory.
fn read_contents(
    index: &mut Contents,
    (rows, dimension): (usize, usize),
    lexicons: &RecordBatch,
    batches: Receiver<NumberedBatch>,
) -> Result<(), TableError> {
    index.reserve(rows, dimension);
    // The counts in the lexicons are trusted only up to a limit: a damaged one must not exhaust
    // memory.
    let mut room = rows.saturating_mul(MAX_TERMS_PER_MEMORY);
    let lexicons = read_lexicons(lexicons, |term, [served, staging]| {
        let number = index.intern_term(term);
        let postings = served.saturating_add(staging) as usize;
        if postings <= room.min(rows) {
            index.reserve_postings(number, postings);
            room -= postings;
        }
        number
    })?;
    let mut numbered: Vec<(u32, u32)> = Vec::new();
    for (batch, docs) in batches {
        details(&batch, |row, detail| {
            let Detail::Memory(batch, code, held) = detail else {
                return Ok(());
            };
            let lexicon = lexicons.get(&batch).ok_or(TableError::Damaged)?;
            numbered.clear();
            for term in terms::read_terms(held) {
                let (position, weight) = term.ok_or(TableError::Damaged)?;
                let number = lexicon.get(position as usize);
                numbered.push((*number.ok_or(TableError::Damaged)?, weight));
            }
            if let Some(doc) = docs.get(row).copied().flatten() {
                index.add(doc, code.as_ref(), numbered.iter().copied());
            }
            Ok(())
        })?;
    }
    Ok(())
}
