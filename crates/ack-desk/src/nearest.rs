//! The approved memories near a waiting one, as every user interface shows them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use ack_api::RelationKind;
use ack_api::memory::Memory;
pub use ack_compare::Conflict;
use ack_compare::diff::words;
pub use ack_compare::diff::{DiffPart, DiffSide};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use super::card::age_in_days;
use super::choice::Choice;
use super::{Desk, MadeChoice};
use crate::curate::Candidate;
use ack_service::Service;

/// Texts that share at least this part of the shorter one, and this part of both together, are
/// shown as a word-by-word diff.
const MIN_DIFF_SHARE: f64 = 0.5;
const MIN_DIFF_OVERLAP: f64 = 0.3;
/// How many held memories are compared in full.
const MAX_HELD: usize = 10;
/// Common text of at most so many characters between two changes is shown as part of them.
const MAX_INLINE_CHARS: usize = 3;

#[derive(Debug, Clone, Serialize)]
pub struct Near {
    pub id: String,
    pub title: String,
    pub age_days: Option<i64>,
    pub relation: RelationKind,
    pub label: &'static str,
    /// Whether its approval is not saved yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// The word-by-word diff from its text to the unreviewed one, if they share enough to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<DiffPart>>,
    /// Its own text, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The approved memories of its scope nearest to a candidate, at most three; empty if they cannot
/// be read. Those that it repeats or contradicts come first. `held` are memories of the scope whose
/// approval is not saved yet ([`Desk::held`]).
pub fn neighbours(
    service: &'static Service,
    candidate: &Candidate,
    held: &[Arc<Candidate>],
    now: jiff::Timestamp,
) -> Vec<Near> {
    let memory = candidate.memory();
    let held = &like(memory, held);
    let found = service.nearest_approved(memory, &candidate.scope.name, held);
    let found = found.unwrap_or_default().into_par_iter();
    let approved = found.map(|found| {
        let (here, there) = (comparison_text(memory), comparison_text(&found.memory));
        let diff = parts(&words(&there, &here));
        let is_readable = is_readable(&diff);
        Near {
            text: (!is_readable).then_some(there),
            diff: is_readable.then_some(diff),
            age_days: age_in_days(&found.memory, now),
            held: held.iter().any(|held| held.id == found.memory.id),
            id: found.memory.id,
            title: found.memory.title,
            relation: found.relation.kind,
            label: found.relation.kind.as_str(),
            conflict: found.relation.conflict,
        }
    });
    approved.collect()
}

impl Desk {
    /// The other memories of the same scope that were approved and are not saved yet.
    pub fn held(&self, candidate: &Candidate) -> Vec<Arc<Candidate>> {
        let (scope, id) = (&candidate.scope.name, &candidate.memory().id);
        let replaced = self.choices.iter().filter_map(|made| match &made.choice {
            Choice::Supersede { older } => Some(older),
            _ => None,
        });
        let left_out: HashSet<&String> = replaced.chain([id]).collect();
        let serving = self.choices.iter().filter(|made| made.choice.serves());
        let held = serving.flat_map(MadeChoice::numbers).filter_map(|it| self.items.get(it));
        let held = held.filter(|item| {
            item.candidate.scope.name == *scope && !left_out.contains(&item.memory().id)
        });
        held.map(|item| Arc::clone(&item.candidate)).collect()
    }
}

/// Those that share the most words with a memory, as they will be.
fn like(memory: &Memory, held: &[Arc<Candidate>]) -> Vec<Memory> {
    let own = words_of(memory);
    let shared = held.iter().map(|held| (own.intersection(&words_of(held.memory())).count(), held));
    let mut like: Vec<_> = shared.filter(|(shared, _)| *shared > 1).collect();
    like.sort_by_key(|(shared, _)| Reverse(*shared));
    like.truncate(MAX_HELD);
    like.into_iter().map(|(_, held)| held.memory().clone()).collect()
}

/// The longer words of the title and the facts.
fn words_of(memory: &Memory) -> HashSet<&str> {
    let texts = std::iter::once(&memory.title).chain(&memory.facts);
    let words = texts.flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    words.filter(|word| word.len() > 3).collect()
}

/// The text of a memory for the comparison: title, subtitle, facts as a list, narrative.
fn comparison_text(memory: &Memory) -> String {
    let mut text = memory.title.clone();
    if let Some(subtitle) = &memory.subtitle {
        text.push('\n');
        text.push_str(subtitle);
    }
    for fact in &memory.facts {
        text.push_str("\n- ");
        text.push_str(fact);
    }
    if let Some(narrative) = &memory.narrative {
        text.push_str("\n\n");
        text.push_str(narrative);
    }
    text
}

/// The diff in readable parts: alternating short changes become one change.
fn parts(diff: &[DiffPart]) -> Vec<DiffPart> {
    let mut parts = Vec::new();
    let (mut older, mut newer) = (String::new(), String::new());
    let mut rest = diff.iter().peekable();
    while let Some(part) = rest.next() {
        match part.side {
            DiffSide::Older => older.push_str(&part.text),
            DiffSide::Newer => newer.push_str(&part.text),
            DiffSide::Both => {
                let is_between = !(older.is_empty() && newer.is_empty()) && rest.peek().is_some();
                if is_between && part.text.trim().chars().count() <= MAX_INLINE_CHARS {
                    older.push_str(&part.text);
                    newer.push_str(&part.text);
                    continue;
                }
                flush(&mut parts, &mut older, &mut newer);
                parts.push(part.clone());
            }
        }
    }
    flush(&mut parts, &mut older, &mut newer);
    parts
}

fn flush(parts: &mut Vec<DiffPart>, older: &mut String, newer: &mut String) {
    for (side, text) in [(DiffSide::Older, older), (DiffSide::Newer, newer)] {
        if !text.is_empty() {
            parts.push(DiffPart { side, text: std::mem::take(text) });
        }
    }
}

/// Whether two texts have so much in common that their difference can be read.
fn is_readable(parts: &[DiffPart]) -> bool {
    let length = |side: DiffSide| -> u32 {
        let of_side = parts.iter().filter(|part| part.side == side);
        let length: usize = of_side.map(|part| part.text.len()).sum();
        u32::try_from(length).unwrap_or(u32::MAX)
    };
    let [both, older, newer] =
        [DiffSide::Both, DiffSide::Older, DiffSide::Newer].map(|side| f64::from(length(side)));
    let share = both / (both + older.min(newer)).max(1.0);
    let overlap = 2.0 * both / (2.0 * both + older + newer).max(1.0);
    share >= MIN_DIFF_SHARE && overlap >= MIN_DIFF_OVERLAP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_changes_are_merged() {
        let parts = parts(&words(
            "the limit of the worker is 512 Mi and it was raised once",
            "the limit of the worker was not 768 Mi and it was raised once",
        ));
        let sides: Vec<DiffSide> = parts.iter().map(|part| part.side).collect();
        let expected = [DiffSide::Both, DiffSide::Older, DiffSide::Newer, DiffSide::Both];
        assert_eq!(sides, expected, "{parts:?}");
        let older = parts.iter().filter(|part| part.side != DiffSide::Newer);
        let older: String = older.map(|part| part.text.as_str()).collect();
        assert_eq!(older, "the limit of the worker is 512 Mi and it was raised once");
    }

    #[test]
    fn texts_without_much_in_common_are_not_compared_word_by_word() {
        let is_compared = |older: &str, newer: &str| is_readable(&parts(&words(older, newer)));
        assert!(is_compared("retries need jitter", "retries need jitter and a limit"));
        assert!(!is_compared("fonts come from the disk of the kiosk", "the lock is held by two"));
        let long = "and much more that only the longer one of them says, ".repeat(9);
        assert!(!is_compared("retries need jitter", &format!("retries need jitter {long}")));
    }
}
