//! The approved memories nearest to one, without an index: one pass over the store.
//!
//! An index of a large store takes seconds to make, and a person at the desk looks at the first card
//! now. So the words of the memory are looked for in the rows in outline, those with the rarest of
//! them are read in full and compared, and the index is made meanwhile.

use std::collections::HashSet;
use std::sync::Arc;

use ack_api::memory::{Memory, StatusFilter};
use ack_compare::Profile;
use ack_search::analysis::{self, TextRole};
use ack_store::outline::Outline;
use ack_store::{READ_TIMEOUT, StoreError};

use super::{Near, PROPOSED, compared};
use crate::scope::Scope;
use crate::service::context::words::{Origin, Words};

/// A store whose file is no larger than this has its index before anybody notices.
const MAX_BYTES: u64 = 4 << 20;
/// The most bytes of a text whose words are looked for.
const MAX_TEXT: usize = 4_000;
/// What a word in the title or the tags counts beside one elsewhere.
const IN_TITLE: f64 = 0.5;

/// Whether the index of a scope takes long enough to make that nobody should wait for it.
pub fn is_large(scope: &Scope) -> bool {
    let metadata = std::fs::metadata(scope.store.path());
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() > MAX_BYTES)
}

/// The approved memories of a scope that are nearest to one of it.
///
/// # Errors
/// The store cannot be read.
pub fn run(
    scope: &Arc<Scope>,
    memory: &Memory,
    profile: &Profile,
    now: jiff::Timestamp,
) -> Result<Vec<Near>, StoreError> {
    let words = words(memory);
    let found = scope.store.full_scan(READ_TIMEOUT, |snapshot| {
        let outlines = snapshot.outlines(StatusFilter::Approved, &words, now)?;
        let best = best(&outlines.served, words.len());
        let keys: Vec<_> = best.iter().map(|row| (row.key, row.id.as_str())).collect();
        snapshot.memories(&keys, StatusFilter::Approved)
    })?;
    let found = found.into_values().map(|found| (scope.name.clone(), found));
    Ok(compared((&scope.name, memory), profile, found))
}

/// The words of a memory, those of its title first.
fn words(memory: &Memory) -> Words {
    let mut seen = HashSet::new();
    let mut list = Vec::new();
    let facts = memory.facts.iter().map(String::as_str);
    let texts = [Some(&*memory.title), memory.subtitle.as_deref()];
    let texts = texts.into_iter().flatten().chain(facts);
    for text in texts.chain(memory.narrative.as_deref()) {
        let text = ack_api::text::cut(text, MAX_TEXT).0;
        analysis::tokenize(&text, TextRole::Document, &mut |token| {
            if seen.insert(token.text.to_string()) {
                list.push((token.text.into_owned(), Origin::Prose));
            }
        });
    }
    Words::new(list)
}

/// The rows with the most and rarest words.
fn best(rows: &[Outline], words: usize) -> Vec<&Outline> {
    let has = |set: u128, word: usize| set >> word & 1 == 1;
    let holders = |word: usize| {
        let rows = rows.iter();
        rows.filter(|row| has(row.matches.anywhere, word)).count()
    };
    let weights: Vec<f64> = (0..words)
        .map(|word| weight(rows.len(), holders(word)))
        .collect();
    let score = |row: &Outline| -> f64 {
        let weights = weights.iter().enumerate();
        let scores = weights.map(|(word, weight)| {
            let matches = row.matches;
            f64::from(u8::from(has(matches.anywhere, word))) * weight
                + f64::from(u8::from(has(matches.title_or_tags, word))) * weight * IN_TITLE
        });
        scores.sum()
    };
    let mut scored: Vec<(f64, &Outline)> = rows
        .iter()
        .filter(|row| row.matches.anywhere != 0)
        .map(|row| (score(row), row))
        .collect();
    scored.sort_by(|(one, row), (other, next)| {
        other.total_cmp(one).then_with(|| row.id.cmp(&next.id))
    });
    scored.truncate(PROPOSED);
    scored.into_iter().map(|(_, row)| row).collect()
}

/// The weight of a word that some of all rows have (the inverse document frequency).
#[expect(clippy::cast_precision_loss, reason = "counts of rows")]
fn weight(all: usize, holders: usize) -> f64 {
    (1.0 + all as f64 / (holders as f64 + 1.0)).ln()
}
