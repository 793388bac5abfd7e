//! Whether two memories make statements that cannot both be true.
//!
//! Every sentence of one is compared with every sentence of the other. Four things count, and only
//! between sentences that share most of their words: another number, another path, flag or
//! identifier, a negation that one of them lacks, and that one says of the other's subject that it
//! is no more. Sentences that each have a word which the other *memory* lacks are about two things,
//! like `staging` and `production`. A contradiction that is worded in another way is not found.
//! See `tests/relations` for how often the rules are right.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::profile::Profile;
use crate::sentence::{Sentence, dice};

/// Minimum share of common words of sentences with another number.
const MIN_SHARE_FOR_VALUE: f32 = 0.4;
/// Minimum share of common words of sentences that differ in a name or a negation.
const MIN_SHARE: f32 = 0.5;
/// Minimum share of common words of a sentence about an end and one that it may be about, both
/// with their titles.
const MIN_SHARE_FOR_END: f32 = 0.2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub newer: String,
    pub older: String,
}

pub fn find(newer: &Profile, older: &Profile) -> Option<Conflict> {
    let are_of_two_projects = match (&newer.project, &older.project) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    if are_of_two_projects || name_different_things(newer, older) {
        return None;
    }
    for one in &newer.sentences {
        for other in &older.sentences {
            let pair = Pair {
                memories: (newer, older),
                newer: one,
                older: other,
                share: dice(&one.words, &other.words),
            };
            if pair.is_conflict() {
                return Some(Conflict { newer: one.text.clone(), older: other.text.clone() });
            }
        }
    }
    None
}

/// Whether the titles of two texts name different things of one kind: two lints, two files.
fn name_different_things(newer: &Profile, older: &Profile) -> bool {
    let (one, other) = (&newer.title_names, &older.title_names);
    let has_text = |memory: &Profile| memory.sentences.len() > 1 && !memory.title_names.is_empty();
    has_text(newer) && has_text(older) && one.is_disjoint(other)
}

struct Pair<'a> {
    memories: (&'a Profile, &'a Profile),
    newer: &'a Sentence,
    older: &'a Sentence,
    share: f32,
}

impl Pair<'_> {
    fn is_conflict(&self) -> bool {
        let (newer, older) = self.memories;
        let new: Vec<&String> = self.newer.words.difference(&older.words).collect();
        let old: Vec<&String> = self.older.words.difference(&newer.words).collect();
        let other_name = match (&*new, &*old) {
            ([one], [other]) => name_kind(one).is_some() && name_kind(one) == name_kind(other),
            _ => false,
        };
        if other_name && self.share >= MIN_SHARE || self.is_ended() {
            return true;
        }
        (new.is_empty() || old.is_empty()) && (self.has_other_value() || self.is_denied())
    }

    /// Whether a number of one has another value in the other, and neither memory has both.
    fn has_other_value(&self) -> bool {
        let (newer, older) = self.memories;
        self.share >= MIN_SHARE_FOR_VALUE
            && self.newer.numbers.iter().any(|one| {
                self.older
                    .numbers
                    .iter()
                    .any(|other| one.unit == other.unit && !newer.says(other) && !older.says(one))
            })
    }

    /// Whether exactly one of them is negative, about words of the other one.
    fn is_denied(&self) -> bool {
        let (negative, positive) = match (self.newer.is_negative, self.older.is_negative) {
            (true, false) => (self.newer, self.older),
            (false, true) => (self.older, self.newer),
            _ => return false,
        };
        // A title of one word says nothing that could be denied.
        self.share >= MIN_SHARE
            && positive.words.len() > 1
            && !negative.denied.is_empty()
            && negative.denied.is_subset(&positive.words)
    }

    /// Whether the newer one says of what the older one says that it is no more.
    fn is_ended(&self) -> bool {
        let titled = |sentence: &Sentence, memory: &Profile| -> BTreeSet<String> {
            let title = memory.sentences.first().map(|title| &title.words);
            sentence.words.iter().chain(title.into_iter().flatten()).cloned().collect()
        };
        let ended = &self.newer.ended;
        !ended.is_empty()
            && ended.is_subset(&self.older.words)
            && !self.older.is_negative
            && dice(&titled(self.newer, self.memories.0), &titled(self.older, self.memories.1))
                >= MIN_SHARE_FOR_END
    }
}

/// The kind of a name; `None` for a word.
fn name_kind(word: &str) -> Option<&'static str> {
    let is_file = word.rsplit_once('.').is_some_and(|(name, end)| {
        name.ends_with(char::is_alphabetic) && (1..=5).contains(&end.len())
    });
    if word.contains("://") {
        // Two pages may both be right: `[source](https://…)`.
        None
    } else if word.starts_with("--") {
        Some("flag")
    } else if word.contains('/') || is_file {
        Some("path")
    } else {
        word.contains('_').then_some("identifier")
    }
}
