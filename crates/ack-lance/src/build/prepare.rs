//! Turns rows of a store into batches of the table.

use arrow::array::RecordBatch;

use super::{BuildError, Encoders, ReusableVectors, Writer};
use crate::TableError;
use crate::columns::{self, NewRow};
use crate::extent::Extent;
use ack_api::memory::{Memory, Status};
use ack_api::source::StoredMemory;
use ack_contextual::{Contextual, EncodeError};
use ack_search::analyzer::{AnalyzerPool, PooledDoc};
use ack_search::encoder::CONTEXTUAL_NORM;

/// Makes batches, independently of each other.
pub struct Preparer<'a> {
    encoders: Encoders,
    extent: Extent,
    reusable: &'a ReusableVectors,
    analyzers: AnalyzerPool,
}

impl<'a> Preparer<'a> {
    /// A preparer for a writer, with `threads` threads.
    pub fn new(writer: &'a Writer, threads: usize) -> Self {
        Self {
            encoders: writer.encoders,
            extent: writer.extent,
            reusable: &writer.reusable,
            analyzers: AnalyzerPool::with_threads(threads, Some(writer.encoders.encoder)),
        }
    }

    /// Makes the batch with this number; `None` if none of its rows is served.
    pub fn prepare(
        &mut self,
        number: u64,
        rows: &[StoredMemory],
    ) -> Result<Option<RecordBatch>, BuildError> {
        let rows: Vec<&StoredMemory> = rows
            .iter()
            .filter(|row| row.memory.status != Status::Rejected && !row.memory.id.is_empty())
            .collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let memories: Vec<&Memory> = rows.iter().map(|row| &row.memory).collect();
        let mut docs = self.analyzers.analyze(&memories);
        let models = self.embed(&memories, &mut docs)?;
        let new_rows: Vec<NewRow<'_>> = rows
            .iter()
            .zip(&docs)
            .zip(&models)
            .map(|((row, analyzed), model)| NewRow {
                model: model.as_deref(),
                key: row.key,
                fingerprint: row.fingerprint,
                memory: &row.memory,
                doc: &analyzed.doc,
                analyzer: analyzed.analyzer,
                lexicon: self.analyzers.lexicon(analyzed.analyzer),
            })
            .collect();
        let is_contextual = self.encoders.choice.is_contextual() == Some(true);
        let schema = columns::schema(self.encoders.encoder, self.extent, is_contextual);
        let batch = columns::batch(&schema, self.extent, number, &new_rows)
            .map_err(|error| TableError::lance_error("make a batch")(error.into()))?;
        Ok(Some(batch))
    }

    /// Replaces static vectors with those that a network contributes to: reused ones of the same
    /// text, or new ones. Returns the network's hash for each of them.
    fn embed(
        &self,
        memories: &[&Memory],
        docs: &mut [PooledDoc],
    ) -> Result<Vec<Option<String>>, EncodeError> {
        let mut models: Vec<Option<String>> = vec![None; memories.len()];
        let mut missing: Vec<usize> = Vec::new();
        for (position, ((memory, analyzed), model)) in memories
            .iter()
            .zip(docs.iter_mut())
            .zip(&mut models)
            .enumerate()
        {
            let fits =
                |(_, stored): &&(Box<[f32]>, String)| self.encoders.choice.fits(Some(stored));
            match self
                .reusable
                .get(&columns::content_hash(memory))
                .filter(fits)
            {
                Some((vector, stored)) => {
                    analyzed.doc.vector = Some(vector.clone());
                    *model = Some(stored.clone());
                }
                None => missing.push(position),
            }
        }
        let Some(network) = self.encoders.network() else {
            return Ok(models);
        };
        let texts: Vec<String> = missing
            .iter()
            .filter_map(|position| memories.get(*position))
            .map(|memory| columns::encoded_text(memory))
            .collect();
        let vectors = network.memories(&texts)?;
        for ((position, vector), text) in missing.into_iter().zip(vectors).zip(&texts) {
            if let (Some(analyzed), Some(model)) =
                (docs.get_mut(position), models.get_mut(position))
            {
                // The network knows only English: other memories keep their static vectors.
                if self.encoders.encoder.is_english(text) {
                    // Of a text without known words, a network knows none either.
                    let both = analyzed.doc.vector.as_deref().and_then(|known| {
                        let encoder = self.encoders.encoder;
                        encoder.with_network(known, &vector, 1.0)
                    });
                    let both =
                        both.map(|both| both.iter().map(|value| value * CONTEXTUAL_NORM).collect());
                    analyzed.doc.vector = both;
                }
                *model = Some(Contextual::weights_hash().to_owned());
            }
        }
        Ok(models)
    }
}
