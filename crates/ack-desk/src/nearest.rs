//! The approved memories near a waiting one, as every user interface shows them.

use ack_api::RelationKind;
use ack_api::memory::Memory;
use ack_compare::diff::{DiffPart, DiffSide, words};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use super::card::age_in_days;
use crate::curate::Candidate;
use ack_service::Service;

/// Texts that share at least this part of the shorter one are shown as a word-by-word diff.
const MIN_DIFF_SHARE: f64 = 0.5;
/// Common text between two changes, at most this many characters long, is shown as part of the
/// change.
const MAX_INLINE_CHARS: usize = 3;

#[derive(Debug, Clone, Serialize)]
pub struct Near {
    pub id: String,
    pub title: String,
    pub age_days: Option<i64>,
    pub relation: RelationKind,
    /// The contradicting statements, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// The word-by-word diff from its text to the waiting one, if they share enough to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Vec<ShownPart>>,
    /// Its own text, otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Two statements that cannot both be true.
#[derive(Debug, Clone, Serialize)]
pub struct Conflict {
    pub newer: String,
    pub older: String,
}

/// A part of both texts, or of one.
#[derive(Debug, Clone, Serialize)]
pub struct ShownPart {
    /// `both`, `newer` (the waiting one) or `older` (the approved one).
    pub side: &'static str,
    /// The words.
    pub text: String,
}

/// The approved memories of its scope nearest to a candidate, at most three; empty if they cannot
/// be read. Those that it repeats or contradicts come first.
pub fn neighbours(
    service: &'static Service,
    candidate: &Candidate,
    now: jiff::Timestamp,
) -> Vec<Near> {
    let memory = candidate.memory();
    let found = service.nearest_approved(memory, &candidate.scope.name);
    let found = found.unwrap_or_default().into_par_iter();
    let approved = found.map(|found| {
        let (here, there) = (comparison_text(memory), comparison_text(&found.memory));
        let diff = parts(&words(&there, &here));
        let is_readable = share_of_both(&diff) >= MIN_DIFF_SHARE;
        Near {
            text: (!is_readable).then_some(there),
            diff: is_readable.then_some(diff),
            age_days: age_in_days(&found.memory, now),
            id: found.memory.id,
            title: found.memory.title,
            relation: found.relation.kind,
            conflict: found.relation.conflict.map(|conflict| Conflict {
                newer: conflict.newer,
                older: conflict.older,
            }),
        }
    });
    approved.collect()
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
fn parts(diff: &[DiffPart]) -> Vec<ShownPart> {
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
                parts.push(ShownPart {
                    side: DiffSide::Both.as_str(),
                    text: part.text.clone(),
                });
            }
        }
    }
    flush(&mut parts, &mut older, &mut newer);
    parts
}

fn flush(parts: &mut Vec<ShownPart>, older: &mut String, newer: &mut String) {
    for (side, text) in [(DiffSide::Older, older), (DiffSide::Newer, newer)] {
        if !text.is_empty() {
            parts.push(ShownPart {
                side: side.as_str(),
                text: std::mem::take(text),
            });
        }
    }
}

/// The share of the shorter text that both texts contain.
fn share_of_both(parts: &[ShownPart]) -> f64 {
    let length = |side: DiffSide| -> u32 {
        let of_side = parts.iter().filter(|part| part.side == side.as_str());
        let length: usize = of_side.map(|part| part.text.len()).sum();
        u32::try_from(length).unwrap_or(u32::MAX)
    };
    let both = f64::from(length(DiffSide::Both));
    let shorter = f64::from(length(DiffSide::Older).min(length(DiffSide::Newer)));
    both / (both + shorter).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff_of(older: &str, newer: &str) -> Vec<(&'static str, String)> {
        let parts = parts(&words(older, newer)).into_iter();
        parts.map(|part| (part.side, part.text)).collect()
    }

    #[test]
    fn dense_changes_are_merged() {
        let parts = diff_of(
            "the limit of the worker is 512 Mi and it was raised once",
            "the limit of the worker was not 768 Mi and it was raised once",
        );
        let sides: Vec<&str> = parts.iter().map(|(side, _)| *side).collect();
        assert_eq!(sides, ["both", "older", "newer", "both"], "{parts:?}");
        let older: String = parts
            .iter()
            .filter(|(side, _)| *side != "newer")
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(
            older,
            "the limit of the worker is 512 Mi and it was raised once"
        );
    }

    #[test]
    fn texts_without_much_in_common_are_not_compared_word_by_word() {
        let share = |older: &str, newer: &str| share_of_both(&parts(&words(older, newer)));
        assert!(share("retries need jitter", "retries need jitter and a limit") > MIN_DIFF_SHARE);
        assert!(
            share(
                "fonts come from the disk of the kiosk",
                "the lock is held by two"
            ) < MIN_DIFF_SHARE
        );
    }
}
