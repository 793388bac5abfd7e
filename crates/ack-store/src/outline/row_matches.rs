//! Finds words in the whole text of every memory, for a process that asks once and has little time.

use super::{FindWords, WordMatches, bytes_of, matches, matches_in_memory};
use crate::layout::Field;
use crate::record::StoredRow;
use crate::{Snapshot, StoreError};
use ack_api::memory::StatusFilter;
use ack_api::source::RowKey;

const COLUMNS: [Field; 6] =
    [Field::Title, Field::Subtitle, Field::Facts, Field::Concepts, Field::Narrative, Field::Status];

/// The words found in a row.
#[derive(Debug, Clone, Copy)]
pub struct RowMatches {
    pub key: RowKey,
    pub words: WordMatches,
}

impl Snapshot<'_> {
    /// The words found in each memory that the filter allows, in stored order. Whether a row is
    /// still in force is checked when its record is read ([`Snapshot::memory_in_force`]).
    pub fn word_matches(
        &self,
        filter: StatusFilter,
        find_words: &dyn FindWords,
    ) -> Result<Vec<RowMatches>, StoreError> {
        let in_text = |text: &[u8]| find_words.in_text(text);
        self.scan_in_parallel(Some(&COLUMNS), || {
            |row: &StoredRow<'_>| {
                if !filter.allows(row.joined.status) {
                    return Ok(None);
                }
                let mut words;
                if row.is_edited() {
                    let memory = row.memory()?;
                    words = matches_in_memory(&memory, find_words);
                    words.anywhere |= in_text(memory.narrative.unwrap_or_default().as_bytes());
                } else {
                    words = matches(row, find_words)?;
                    for part in row.narrative_parts() {
                        words.anywhere |= in_text(bytes_of(part?));
                    }
                }
                Ok(Some(RowMatches { key: row.key, words }))
            }
        })
    }
}
