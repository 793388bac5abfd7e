//! The approved memories nearest to one, without an index: one pass over the store.
//!
//! Building the index of a large store takes seconds, and a reviewer wants to see the first card
//! now. So this searches the rows for the words of the memory, then reads the rows with the
//! rarest words in full and compares them. The index is built meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use ack_api::memory::{Memory, StatusFilter};
use ack_compare::Profile;
use ack_search::analysis::{self, TextRole};
use ack_store::{READ_TIMEOUT, StoreError};

use super::{MAX_PROPOSED, NearMemory, compare_proposed};
use crate::context::evidence::Frequencies;
use crate::context::words::{WordKind, Words};
use crate::scope::Scope;

/// The index of a store up to this size is built without a noticeable delay.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum bytes of a text whose words are searched for.
const MAX_TEXT_BYTES: usize = 4_000;

/// Whether the index of a scope takes too long to wait for.
pub fn is_large(scope: &Scope) -> bool {
    let metadata = std::fs::metadata(scope.store.path());
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() > MAX_BYTES)
}

/// The approved memories of a scope that are nearest to one of its memories.
pub fn run(
    scope: &Arc<Scope>,
    (memory, more): (&Memory, &[Memory]),
    profile: &Profile,
) -> Result<Vec<NearMemory>, StoreError> {
    let words = words(memory);
    let found = scope.store.quick_scan(READ_TIMEOUT, |snapshot| {
        let rows = snapshot.word_matches(StatusFilter::Approved, &words)?;
        let weights = Frequencies::count(rows.iter().map(|row| row.words), &words).weights();
        let best = weights.best(rows.iter(), |row| row.words, MAX_PROPOSED).into_iter();
        let found = best.map(|row| snapshot.memory_in_force(row.key, StatusFilter::Approved));
        found.collect::<Result<Vec<_>, _>>()
    })?;
    let found = found.into_iter().flatten().chain(more.iter().cloned());
    let found = found.map(|found| (scope.name.clone(), found));
    Ok(compare_proposed((&scope.name, memory), profile, found))
}

/// The words of a memory, title first.
fn words(memory: &Memory) -> Words {
    let mut unique = HashSet::new();
    let mut list = Vec::new();
    for text in memory.texts() {
        let text = ack_api::text::cut(text, MAX_TEXT_BYTES).0;
        analysis::tokenize(&text, TextRole::Document, &mut |token| {
            if unique.insert(token.text.to_string()) {
                list.push((token.text.into_owned(), WordKind::Prose));
            }
        });
    }
    Words::new(list)
}
