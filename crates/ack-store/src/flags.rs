//! Which rows the default status of a store does not approve: what a person has to look at first.

use ack_api::Warning;
use parking_lot::Mutex;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::Xxh3Default;

use crate::record::StoredRow;

/// The most contents that are remembered, 16 bytes each. Then all are forgotten.
const MAX_KNOWN: usize = 1 << 20;

/// Whether contents are flagged, by their hash. To look at one takes much longer than to read it.
#[derive(Debug, Default)]
pub struct Flags(Mutex<FxHashMap<u64, bool>>);

impl Flags {
    pub(crate) fn is_flagged(&self, row: &StoredRow<'_>) -> rusqlite::Result<bool> {
        let mut hash = Xxh3Default::new();
        for column in 0..row.row.as_ref().column_count() {
            if let ValueRef::Text(text) | ValueRef::Blob(text) = row.row.get_ref(column)? {
                hash.update(text);
            }
            hash.update(&[0xff]);
        }
        let hash = hash.digest();
        let known = self.0.lock().get(&hash).copied();
        if let Some(is_flagged) = known {
            return Ok(is_flagged);
        }
        let warnings = ack_flags::of(&row.content()?, !row.hiding_texts()?.is_empty());
        let is_flagged = warnings.into_iter().any(Warning::is_flag);
        let mut known = self.0.lock();
        if known.len() == MAX_KNOWN {
            known.clear();
        }
        known.insert(hash, is_flagged);
        Ok(is_flagged)
    }
}
