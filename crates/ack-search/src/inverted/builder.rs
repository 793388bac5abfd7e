//! Adding rows to an index: they are prepared on several threads while more are read, and added in the order in which they
//! came, so that the same rows make the same index.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rustc_hash::FxHashSet as HashSet;

use super::{Entry, Index};
use crate::encoder::Encoder;
use crate::prepare::{Analyst, Prepared, threads, unpack};
use crate::semantic::Code;
use ack_api::source::StoredMemory;

/// Rows that a thread takes at a time. With fewer in all, none is started.
const BATCH: usize = 256;

/// Rows with what the index keeps of them.
struct Done {
    rows: Vec<(StoredMemory, Prepared, Option<Code>)>,
    /// The terms that their analyst had not met before, in the order of its numbers.
    terms: Vec<Box<str>>,
}

/// An analyst on a thread of its own.
struct Worker {
    rows: SyncSender<Vec<StoredMemory>>,
    done: Receiver<Done>,
}

/// Adds rows to an index.
pub struct Builder<'scope, 'env, 'index> {
    /// The index. It lacks the rows that are being prepared.
    pub index: &'index mut Index,
    scope: &'scope thread::Scope<'scope, 'env>,
    batch: Vec<StoredMemory>,
    /// The ids that the index will have when all is done.
    pending: HashSet<Box<str>>,
    /// Batches go to the workers in turn, and come back in turn.
    workers: Vec<Worker>,
    given: usize,
    added: usize,
    /// What the index calls the terms of each worker.
    translate: Vec<Vec<u32>>,
}

impl<'scope, 'env, 'index> Builder<'scope, 'env, 'index> {
    /// One whose threads end with `scope`.
    pub fn new(index: &'index mut Index, scope: &'scope thread::Scope<'scope, 'env>) -> Self {
        Self {
            index,
            scope,
            batch: Vec::new(),
            pending: HashSet::default(),
            workers: Vec::new(),
            given: 0,
            added: 0,
            translate: Vec::new(),
        }
    }

    /// Whether the index has a memory of this id, or will have.
    pub fn has(&self, id: &str) -> bool {
        self.index.number(id).is_some() || self.pending.contains(id)
    }

    /// Adds a row, now or later.
    pub fn push(&mut self, row: StoredMemory) {
        self.pending.insert(row.memory.id.as_str().into());
        self.batch.push(row);
        if self.batch.len() >= BATCH {
            self.give();
        }
    }

    /// Adds what is left.
    pub fn finish(mut self) {
        if self.given == 0 {
            let done = prepare(&mut Analyst::default(), std::mem::take(&mut self.batch));
            self.add(0, done);
            return;
        }
        self.give();
        while self.added < self.given {
            self.take();
        }
    }

    /// Gives the batch to the next worker.
    fn give(&mut self) {
        while self.workers.len() < threads() {
            self.workers.push(Worker::start(self.scope));
        }
        // One batch at work and one to go on with.
        if self.given - self.added >= 2 * self.workers.len() {
            self.take();
        }
        if let Some(worker) = self.workers.get(self.given % self.workers.len()) {
            // A worker that is gone has panicked, and so does the scope when it ends.
            let _ = worker.rows.send(std::mem::take(&mut self.batch));
        }
        self.given += 1;
    }

    /// Waits for the next batch and adds it.
    fn take(&mut self) {
        let number = self.added % self.workers.len().max(1);
        self.added += 1;
        if let Some(Ok(done)) = self.workers.get(number).map(|worker| worker.done.recv()) {
            self.add(number, done);
        }
    }

    fn add(&mut self, worker: usize, done: Done) {
        if self.translate.len() <= worker {
            self.translate.resize_with(worker + 1, Vec::new);
        }
        let Some(translate) = self.translate.get_mut(worker) else { return };
        let (_, mut contents) = self.index.parts();
        translate.extend(done.terms.iter().map(|term| contents.term(term)));
        for (row, prepared, code) in done.rows {
            let terms = prepared.terms.iter().map(|weighted| unpack(*weighted));
            let terms = terms.filter_map(|(term, weight)| Some((*translate.get(term as usize)?, weight)));
            self.index.add(&Entry::of(&row, prepared.length), code.as_ref(), terms);
            self.pending.remove(row.memory.id.as_str());
        }
    }
}

impl Worker {
    fn start<'scope>(scope: &'scope thread::Scope<'scope, '_>) -> Self {
        let (rows, batches) = sync_channel::<Vec<StoredMemory>>(2);
        let (finished, done) = sync_channel(2);
        scope.spawn(move || {
            let mut analyst = Analyst::default();
            for batch in batches {
                if finished.send(prepare(&mut analyst, batch)).is_err() {
                    break;
                }
            }
        });
        Self { rows, done }
    }
}

fn prepare(analyst: &mut Analyst, rows: Vec<StoredMemory>) -> Done {
    let encoder = Encoder::embedded();
    let known = analyst.lexicon.len();
    let rows = rows.into_iter().map(|row| {
        let mut prepared = analyst.prepare(&row.memory, encoder);
        let code = prepared.code();
        prepared.vector = None;
        (row, prepared, code)
    });
    Done {
        rows: rows.collect(),
        terms: analyst.lexicon.from(known).map(Into::into).collect(),
    }
}
