//! Turns rows of a store into batches of the table.

use arrow::array::RecordBatch;

use super::{BuildError, Encoders, Writer};
use crate::columns::{self, NewRow};
use crate::extent::Extent;
use ack_api::memory::{Memory, Status};
use ack_api::source::StoredMemory;
use ack_contextual::{Contextual, EncodeError};
use ack_search::analyzer::{AnalyzerPool, PooledDoc};
use ack_search::encoder::CONTEXTUAL_NORM;

/// Makes batches, independently of each other.
pub struct Preparer {
    encoders: Encoders,
    extent: Extent,
    analyzers: AnalyzerPool,
}

impl Preparer {
    pub fn new(writer: &Writer, threads: usize) -> Self {
        Self {
            encoders: writer.encoders,
            extent: writer.extent,
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
        let network = self.encoders.network;
        if let Some(network) = network {
            self.read_in_context(network, &memories, &mut docs)?;
        }
        let new_rows: Vec<NewRow<'_>> = rows
            .iter()
            .zip(&docs)
            .map(|(row, analyzed)| NewRow {
                model: network.map(|_| Contextual::weights_hash()),
                key: row.key,
                fingerprint: row.fingerprint,
                memory: &row.memory,
                doc: &analyzed.doc,
                analyzer: analyzed.analyzer,
                lexicon: self.analyzers.lexicon(analyzed.analyzer),
            })
            .collect();
        let schema = columns::schema(self.encoders.encoder, self.extent, network.is_some());
        Ok(Some(columns::batch(&schema, self.extent, number, &new_rows)?))
    }

    /// Adds the vectors of the small transformer to the static ones.
    fn read_in_context(
        &self,
        network: &Contextual,
        memories: &[&Memory],
        docs: &mut [PooledDoc],
    ) -> Result<(), EncodeError> {
        let encoder = self.encoders.encoder;
        let texts: Vec<String> = memories.iter().map(|it| columns::encoded_text(it)).collect();
        let vectors = network.memories(&texts)?;
        for ((analyzed, vector), text) in docs.iter_mut().zip(vectors).zip(&texts) {
            // The network knows only English: other memories keep their static vectors.
            if !encoder.is_english(text) {
                continue;
            }
            // Of a text without known words, a network knows none either.
            let known = analyzed.doc.vector.as_deref();
            let both = known.and_then(|known| encoder.with_network(known, &vector, 1.0));
            let scaled =
                both.map(|both| both.iter().map(|value| value * CONTEXTUAL_NORM).collect());
            analyzed.doc.vector = scaled;
        }
        Ok(())
    }
}
