//! Finds two statements with different names in the same position.

use rustc_hash::FxHashMap;

use super::{MAX_ADDED_BY_NEWER, MEANINGFUL_WEIGHT, MIN_FRAME_SHARE, Pair, is_named};
use crate::profile::{MIN_SUBJECT_SHARE, Profile};
use crate::statement::{Statement, is_preposition, shared_weight};
use crate::term::{NameKind, Term};

impl Pair<'_> {
    /// Whether the statements have different names in the same position.
    pub(super) fn have_conflicting_names(&self) -> bool {
        // If something can be done in one way, there may be other ways.
        let is_one_way = |statement: &Statement| {
            let mut words = statement.terms.iter();
            words.any(|term| ["can", "could", "way", "ways"].contains(&&*term.word))
        };
        if is_one_way(self.newer) || is_one_way(self.older) {
            return false;
        }
        if self.are_labels()
            || self.have_other_numbers()
            || !self.newer.is_sentence()
            || !self.older.is_sentence()
        {
            return false;
        }
        let mentions =
            |statement: &Statement, key: u64| statement.terms.iter().any(|term| term.key == key);
        let is_near = self.subject_certainty() >= MIN_SUBJECT_SHARE + self.margin;
        let (newer, older) = (slots(self.newer), slots(self.older));
        newer.iter().any(|one| {
            older.iter().any(|other| {
                let differs = one.term.key != other.term.key
                    && !mentions(self.older, one.term.key)
                    && !mentions(self.newer, other.term.key)
                    && !one.term.denied
                    && !other.term.denied
                    && (is_near
                        || self.clause_dice(one.term, other.term) >= MIN_FRAME_SHARE + self.margin);
                differs && self.is_same_slot(one, other)
            })
        })
    }

    /// The share of common content of the two clauses that contain the terms.
    fn clause_dice(&self, one: &Term, other: &Term) -> f32 {
        let content = |statement: &Statement, but: &Term| -> FxHashMap<u64, f32> {
            let terms = statement.terms.iter().filter(|term| {
                term.is_content() && term.clause == but.clause && term.key != but.key
            });
            terms.map(|term| (term.key, term.weight)).collect()
        };
        let (newer, older) = (content(self.newer, one), content(self.older, other));
        let all: f32 = newer.values().sum::<f32>() + older.values().sum::<f32>();
        let shared = shared_weight(&newer, &older);
        if shared >= MAX_ADDED_BY_NEWER {
            2.0 * shared / all
        } else {
            0.0
        }
    }

    /// Whether each has a number that the other lacks: then they differ in more than a name.
    fn have_other_numbers(&self) -> bool {
        let unshared_numbers = |statement: &Statement, other: &Statement| {
            let numbers = statement
                .terms
                .iter()
                .filter(|term| term.quantity().is_some());
            let numbers: Vec<u64> = numbers.map(Term::identity).collect();
            let known = |key: &u64| other.terms.iter().any(|term| term.identity() == *key);
            !numbers.iter().all(known)
        };
        unshared_numbers(self.newer, self.older) && unshared_numbers(self.older, self.newer)
    }

    /// Whether two terms have the same position in their statements.
    fn is_same_slot(&self, one: &Slot<'_>, other: &Slot<'_>) -> bool {
        let is_before = one.before == other.before && one.before.is_some();
        let is_before_that = one.two_before == other.two_before && one.two_before.is_some();
        let is_behind = one.after == other.after;
        let rest = self.dice_without(one.term, other.term);
        match (one.term.name(), other.term.name()) {
            (Some(kind), Some(same)) if kind == same && is_exact(kind) => {
                is_before && rest >= MIN_FRAME_SHARE && !are_spellings(one.term, other.term)
            }
            // Issue numbers and the like name events.
            _ if is_number(one.term) || is_number(other.term) => false,
            _ => {
                is_named(one.term)
                    && is_named(other.term)
                    && is_before
                    && (is_behind || is_before_that)
                    && rest >= MIN_FRAME_SHARE
                    && self.differ_only_in(one, other)
            }
        }
    }

    /// Whether the statements add nothing of their own except the two terms.
    fn differ_only_in(&self, one: &Slot<'_>, other: &Slot<'_>) -> bool {
        let unshared_weight = |statement: &Statement, other: &Profile, slot: &Slot<'_>| -> f32 {
            let terms = statement.terms.iter().enumerate();
            let terms = terms.filter(|(_, term)| term.clause == slot.term.clause);
            // What follows a name belongs to it, up to a preposition.
            let end = statement.terms.iter().skip(slot.at + 1);
            let end = end.take_while(|term| !is_preposition(&term.word)).count();
            let terms = terms.filter(|(at, _)| *at < slot.at || *at > slot.at + end);
            let unshared_weight = terms.filter(|(_, term)| {
                term.is_content() && !other.content.contains_key(&term.identity())
            });
            unshared_weight.map(|(_, term)| term.weight).sum()
        };
        unshared_weight(self.newer, self.memories.1, one) < MEANINGFUL_WEIGHT
            && unshared_weight(self.older, self.memories.0, other) < MEANINGFUL_WEIGHT
    }

    /// The share of common content without the two terms. If these are exact names, the other exact
    /// names are left out too.
    fn dice_without(&self, one: &Term, other: &Term) -> f32 {
        let exact = |statement: &Statement| -> f32 {
            let names = statement.terms.iter().filter(|term| {
                term.name().is_some_and(is_exact) && term.key != one.key && term.key != other.key
            });
            names.map(|term| term.weight).sum()
        };
        let mut all = self.newer.weight + self.older.weight - one.weight - other.weight;
        if one.name().is_some_and(is_exact) {
            all -= exact(self.newer) + exact(self.older);
        }
        if all > 0.0 {
            2.0 * self.newer.shared(self.older) / all
        } else {
            0.0
        }
    }
}

/// Whether two options may be spellings of the same one: `-p`, `--patch`.
fn are_spellings(one: &Term, other: &Term) -> bool {
    let is_long = |term: &Term| term.word.starts_with("--");
    is_long(one) != is_long(other)
}

fn is_number(term: &Term) -> bool {
    let digits = term.word.trim_start_matches('#');
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

const fn is_exact(kind: NameKind) -> bool {
    matches!(kind, NameKind::Path | NameKind::Flag | NameKind::Constant)
}

/// A term with the words around it.
pub(super) struct Slot<'a> {
    at: usize,
    pub(super) term: &'a Term,
    pub(super) before: Option<&'a str>,
    two_before: Option<&'a str>,
    pub(super) after: Option<&'a str>,
}

/// The terms of a statement, except the first one, with the words around them.
pub(super) fn slots(statement: &Statement) -> Vec<Slot<'_>> {
    let word = |at: Option<usize>| Some(statement.terms.get(at?)?.word.as_str());
    let terms = statement.terms.iter().enumerate().skip(1);
    terms
        .filter(|(_, term)| term.is_content() || term.polarity.is_some())
        .map(|(at, term)| Slot {
            at,
            term,
            before: word(at.checked_sub(1)),
            two_before: word(at.checked_sub(2)),
            after: word(Some(at + 1)).filter(|_| {
                statement
                    .terms
                    .get(at + 1)
                    .is_some_and(|next| next.clause == term.clause)
            }),
        })
        .collect()
}
