//! Adds the rows of a store to an index. Several threads analyze rows while the caller reads more.
//! Rows are added in the order in which they came, so the same rows make the same index.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::{DocEntry, Index};
use crate::analyzer::{AnalyzedDoc, Analyzer, analyzer_threads, unpack_term};
use crate::encoder::Encoder;
use crate::semantic::QuantizedVector;
use ack_api::source::StoredMemory;

/// Rows per batch. If there are fewer rows in all, no thread is started.
const BATCH_ROWS: usize = 256;
/// How many batches wait for a worker, and how many results wait to be added.
const QUEUED_BATCHES: usize = 2;

struct AnalyzedBatch {
    rows: Vec<(StoredMemory, AnalyzedDoc, Option<QuantizedVector>)>,
    /// The terms that are new to the worker's analyzer, in the order of its numbers.
    new_terms: Vec<Box<str>>,
}

struct Worker {
    rows: SyncSender<Vec<StoredMemory>>,
    analyzed: Receiver<AnalyzedBatch>,
    /// The index's number of each of its terms.
    term_numbers: Vec<u32>,
}

pub struct Builder<'scope, 'env, 'index> {
    /// The index. It lacks the rows that are still being analyzed.
    pub index: &'index mut Index,
    scope: &'scope thread::Scope<'scope, 'env>,
    batch: Vec<StoredMemory>,
    /// Batches go to the workers in turn, and their results are taken in turn.
    workers: Vec<Worker>,
    sent: usize,
    added: usize,
}

impl<'scope, 'env, 'index> Builder<'scope, 'env, 'index> {
    pub fn new(index: &'index mut Index, scope: &'scope thread::Scope<'scope, 'env>) -> Self {
        Self { index, scope, batch: Vec::new(), workers: Vec::new(), sent: 0, added: 0 }
    }

    /// Adds a row that owns its id, now or later.
    pub fn push(&mut self, row: StoredMemory) {
        if row.memory.id.is_empty() {
            self.index.without_id += 1;
        } else if is_beaten(self.index, &row) {
            self.index.duplicate_ids += 1;
        } else {
            self.batch.push(row);
        }
        if self.batch.len() >= BATCH_ROWS {
            self.send_batch();
        }
    }

    pub fn finish(mut self) {
        if self.sent == 0 {
            let analyzed = analyze(&mut Analyzer::default(), std::mem::take(&mut self.batch));
            add(self.index, analyzed, &mut Vec::new());
            return;
        }
        self.send_batch();
        while self.added < self.sent {
            self.receive_batch();
        }
    }

    fn send_batch(&mut self) {
        while self.workers.len() < analyzer_threads() {
            self.workers.push(Worker::start(self.scope));
        }
        // Each worker processes one batch and has one waiting.
        if self.sent - self.added >= 2 * self.workers.len() {
            self.receive_batch();
        }
        if let Some(worker) = self.workers.get(self.sent % self.workers.len()) {
            // If the worker is gone, it panicked. The scope propagates the panic when it ends.
            let _ = worker.rows.send(std::mem::take(&mut self.batch));
        }
        self.sent += 1;
    }

    fn receive_batch(&mut self) {
        let worker = self.added % self.workers.len().max(1);
        self.added += 1;
        if let Some(worker) = self.workers.get_mut(worker)
            && let Ok(batch) = worker.analyzed.recv()
        {
            add(self.index, batch, &mut worker.term_numbers);
        }
    }
}

/// Whether a row with this id is in the index and has the stronger claim to it.
fn is_beaten(index: &Index, row: &StoredMemory) -> bool {
    let owner = index.find(&row.memory.id);
    owner.is_some_and(|(_, owner)| !row.claim().beats(owner.claim()))
}

/// Adds a batch. `term_numbers` are the index's numbers of the analyzer's terms.
fn add(index: &mut Index, batch: AnalyzedBatch, term_numbers: &mut Vec<u32>) {
    let new_terms = batch.new_terms.iter();
    term_numbers.extend(new_terms.map(|term| index.contents.intern_term(term)));
    for (row, doc, vector) in batch.rows {
        if let Some((weaker, _)) = index.find(&row.memory.id) {
            index.duplicate_ids += 1;
            if is_beaten(index, &row) {
                continue;
            }
            index.docs.delete(weaker);
        }
        let terms = doc.terms.iter().map(|term| unpack_term(*term));
        let terms = terms
            .filter_map(|(term, half_units)| Some((*term_numbers.get(term as usize)?, half_units)));
        if let Some(number) = index.docs.push(&DocEntry::of(&row, doc.length)) {
            index.contents.add(number, vector.as_ref(), terms);
        }
    }
}

impl Worker {
    fn start<'scope>(scope: &'scope thread::Scope<'scope, '_>) -> Self {
        let (rows, batches) = sync_channel::<Vec<StoredMemory>>(QUEUED_BATCHES);
        let (results, analyzed) = sync_channel(QUEUED_BATCHES);
        scope.spawn(move || {
            let mut analyzer = Analyzer::default();
            for batch in batches {
                if results.send(analyze(&mut analyzer, batch)).is_err() {
                    break;
                }
            }
        });
        Self { rows, analyzed, term_numbers: Vec::new() }
    }
}

fn analyze(analyzer: &mut Analyzer, rows: Vec<StoredMemory>) -> AnalyzedBatch {
    let encoder = Encoder::embedded();
    let known_terms = analyzer.lexicon.len();
    let rows = rows.into_iter().map(|row| {
        let mut doc = analyzer.analyze(&row.memory, encoder);
        let vector = doc.quantized_vector();
        doc.vector = None;
        (row, doc, vector)
    });
    AnalyzedBatch {
        rows: rows.collect(),
        new_terms: analyzer.lexicon.iter_from(known_terms).map(Into::into).collect(),
    }
}
