//! Whether two memories make statements that cannot both be true.
//!
//! Every statement of one is compared with every statement of the other. A conflict needs two
//! things. First, both statements are about the same subject: they share most of their content, and
//! neither is limited to a case that the other leaves out. Second, they differ in one of these:
//! - a number of the same kind;
//! - one denies or replaces what the other asserts;
//! - a word and its opposite;
//! - a name in the same position of the same sentence.

mod names;

use rustc_hash::FxHashSet;

use self::names::{Slot, slots};
use crate::lexicon;
use crate::profile::{MIN_SUBJECT_SHARE, Profile};
use crate::quantity::{Quantity, Unit};
use crate::statement::Statement;
use crate::subject::{are_different_things, is_label, topic};
use crate::term::{NameKind, RARE_WEIGHT as RARE, Term, TermKind};

/// [`MIN_SUBJECT_SHARE`], for statements that must differ in nothing else.
const MIN_FRAME_SHARE: f32 = 0.66;
/// Weight of words that count like a name.
const NAME_LIKE_WEIGHT: f32 = 0.9;
/// Topic score of memories that are certainly about the same subject.
const CERTAIN_TOPIC: f32 = 0.6;
/// Topic score that is enough if one memory says that a name in the other was replaced.
const MIN_REPLACEMENT_TOPIC: f32 = 0.4;
/// More pairs of statements than this count as two long texts.
const LONG_TEXT_PAIRS: usize = 24;
/// How much more two statements of long texts must have in common.
const LONG_TEXT_MARGIN: f32 = 0.2;
/// Weight of a meaningful word.
const MEANINGFUL_WEIGHT: f32 = 0.9;
/// Weight of one word: the most that the newer statement may add.
const MAX_ADDED_BY_NEWER: f32 = 1.25;
/// Weight of two words: the most that the older statement may add.
const MAX_ADDED_BY_OLDER: f32 = 2.7;
/// How many words around a number tell what it measures.
const CONTEXT_WORDS: usize = 4;

/// Two statements that cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What the newer memory says.
    pub newer: String,
    /// What the older memory says.
    pub older: String,
    /// How they differ.
    pub reason: ConflictReason,
}

/// How two statements differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictReason {
    /// A different number, version or amount.
    Value,
    /// One denies or replaces what the other asserts.
    Denial,
    /// A word and its opposite.
    Opposite,
    /// A different name in the same position.
    Name,
}

impl ConflictReason {
    /// The reason as a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Denial => "denial",
            Self::Opposite => "opposite",
            Self::Name => "name",
        }
    }
}

/// The first conflict of two memories, if there is one.
pub fn find(newer: &Profile, older: &Profile) -> Option<Conflict> {
    if let (Some(one), Some(other)) = (&newer.project, &older.project)
        && one != other
    {
        return None;
    }
    if are_different_things(newer, older) {
        return None;
    }
    let topic = topic(newer, older);
    // The more pairs there are, the likelier one of them looks like a conflict by chance.
    let is_long = newer.length * older.length > LONG_TEXT_PAIRS;
    let margin = if is_long { LONG_TEXT_MARGIN } else { 0.0 };
    let newer_claims: Vec<&Statement> = unshared_claims(newer, older).collect();
    let older_claims: Vec<&Statement> = unshared_claims(older, newer).collect();
    for one in newer_claims {
        for other in &older_claims {
            let pair = Pair {
                newer: one,
                older: other,
                memories: (newer, older),
                dice: one.dice(other),
                topic,
                margin,
            };
            if let Some(reason) = pair.conflict() {
                return Some(Conflict {
                    newer: one.text.clone(),
                    older: other.text.clone(),
                    reason,
                });
            }
        }
    }
    None
}

/// The claims of a memory that the other does not share. Neither denies what both say.
fn unshared_claims<'a>(
    profile: &'a Profile,
    other: &'a Profile,
) -> impl Iterator<Item = &'a Statement> {
    let claims = profile.claims().iter();
    claims.filter(|claim| {
        let mut others = other.claims().iter();
        !others.any(|statement| claim.is_contained_in(statement))
    })
}

/// One statement from each memory.
struct Pair<'a> {
    newer: &'a Statement,
    older: &'a Statement,
    memories: (&'a Profile, &'a Profile),
    dice: f32,
    topic: f32,
    /// How much more two statements of long texts must have in common.
    margin: f32,
}

impl Pair<'_> {
    fn conflict(&self) -> Option<ConflictReason> {
        if self.newer.shared(self.older) <= 0.0 || self.are_different_cases() {
            return None;
        }
        if self.have_conflicting_settings() || self.have_conflicting_values() {
            Some(ConflictReason::Value)
        } else if self.contains_denial() {
            Some(ConflictReason::Denial)
        } else if self.have_opposites() {
            Some(ConflictReason::Opposite)
        } else if self.have_conflicting_names() {
            Some(ConflictReason::Name)
        } else {
            None
        }
    }

    /// Whether both give one setting different values: `timeout=30`.
    fn have_conflicting_settings(&self) -> bool {
        let assigned = |statement: &Statement| -> Vec<Term> {
            let terms = statement.terms.iter();
            let terms = terms.filter(|term| !term.denied && term.assigned_to.is_some());
            terms.cloned().collect()
        };
        let older = assigned(self.older);
        assigned(self.newer).iter().any(|one| {
            older.iter().any(|other| {
                one.assigned_to == other.assigned_to
                    && (self.is_setting(one.assigned_to)
                        || self.subject_certainty() >= MIN_FRAME_SHARE)
                    && one.identity() != other.identity()
                    && !self.memories.0.says(other.assigned_to, other)
                    && !self.memories.1.says(one.assigned_to, one)
            })
        })
    }

    /// Whether only a setting would have this name: `busy_timeout`, but not `width`.
    fn is_setting(&self, key: Option<u64>) -> bool {
        let terms = self.newer.terms.iter().filter(|term| Some(term.key) == key);
        terms.into_iter().any(|term| {
            term.name() == Some(NameKind::Constant) || term.word.contains(['_', '.', '-'])
        })
    }

    /// How certain it is that the statements are about the same subject.
    fn subject_certainty(&self) -> f32 {
        let covered = self
            .newer
            .covered_by(self.older)
            .max(self.older.covered_by(self.newer));
        self.dice.max(0.5 * covered + 0.5 * self.topic.min(covered))
    }

    /// Whether each is limited to a case that the other lacks.
    fn are_different_cases(&self) -> bool {
        let cases = |statement: &Statement, other: &Statement| -> FxHashSet<&'static str> {
            let denied = |key: u64| {
                other
                    .terms
                    .iter()
                    .any(|term| term.key == key && term.denied)
            };
            let words = statement
                .terms
                .iter()
                .filter(|term| !term.denied && !denied(term.key));
            words
                .filter_map(|term| lexicon::qualifier(&term.word))
                .collect()
        };
        let newer = cases(self.newer, self.older);
        let older = cases(self.older, self.newer);
        let differs =
            newer.difference(&older).next().is_some() && older.difference(&newer).next().is_some();
        differs || self.are_events()
    }

    /// Whether both describe events on different days.
    fn are_events(&self) -> bool {
        let dates = |statement: &Statement| -> FxHashSet<u64> {
            let dates = statement
                .terms
                .iter()
                .filter(|term| term.kind == TermKind::Date);
            dates.map(|term| term.key).collect()
        };
        let (newer, older) = (dates(self.newer), dates(self.older));
        !newer.is_empty() && !older.is_empty() && newer.is_disjoint(&older)
    }

    /// Whether the two are about different things: each has names that the other's memory does not
    /// contain.
    fn are_different_subjects(&self) -> bool {
        let unshared_weight = |statement: &Statement, other: &Profile| {
            statement.terms.iter().any(|term| {
                term.name().is_some()
                    && !term.denied
                    && !other.details.contains(&term.key)
                    && !other.content.contains_key(&term.key)
            })
        };
        if unshared_weight(self.newer, self.memories.1)
            && unshared_weight(self.older, self.memories.0)
        {
            return true;
        }
        if self.has_another_title(self.newer, self.memories)
            || self.has_another_title(self.older, (self.memories.1, self.memories.0))
        {
            return true;
        }
        // The start of a sentence is usually its subject.
        let begins_with_own = |statement: &Statement, other: &Profile| {
            let mut content = statement.terms.iter().filter(|term| term.is_content());
            content.next().is_some_and(|term| {
                term.weight >= 0.6 && !other.content.contains_key(&term.identity())
            })
        };
        begins_with_own(self.newer, self.memories.1)
    }

    /// Whether a statement starts with the first word of its memory's title, and the other memory
    /// does not contain that word.
    fn has_another_title(&self, statement: &Statement, (own, other): (&Profile, &Profile)) -> bool {
        let first = |statement: &Statement| {
            let mut content = statement.terms.iter().filter(|term| term.is_content());
            let first = content.next().filter(|term| term.weight >= 0.6);
            first.map(Term::identity)
        };
        let title = own.title().filter(|title| !std::ptr::eq(*title, statement));
        let first_of_title = title.and_then(first);
        first_of_title
            .is_some_and(|key| first(statement) == Some(key) && !other.content.contains_key(&key))
    }

    fn have_conflicting_values(&self) -> bool {
        if self.are_different_subjects() || self.have_other_words() {
            return false;
        }
        let is_certain = self.margin == 0.0 && self.topic >= CERTAIN_TOPIC;
        let is_near = is_certain || self.subject_certainty() >= MIN_SUBJECT_SHARE + self.margin;
        let is_possible = |newer: usize, older: usize| {
            is_near || self.topic >= CERTAIN_TOPIC && self.is_of_one_name(newer, older)
        };
        let mentioned = |statement: &Statement| -> Vec<usize> {
            let numbers = statement.terms.iter().enumerate();
            let numbers = numbers.filter(|(_, term)| term.quantity().is_some() && !term.denied);
            let numbers = numbers.map(|(at, _)| at);
            numbers.filter(|at| !statement.is_since(*at)).collect()
        };
        let (newer, older) = (mentioned(self.newer), mentioned(self.older));
        newer.iter().any(|one| {
            let mut others = older.iter();
            others.any(|other| is_possible(*one, *other) && self.differ(*one, *other))
        })
    }

    /// Whether the newer statement, or each of them, has many words that the other memory lacks.
    fn have_other_words(&self) -> bool {
        let unshared_weight = |statement: &Statement, other: &Profile| -> f32 {
            let unshared_weight = statement.content.iter();
            let unshared_weight = unshared_weight.filter(|(key, weight)| {
                **weight >= MEANINGFUL_WEIGHT && !other.content.contains_key(key)
            });
            unshared_weight.map(|(_, weight)| *weight).sum()
        };
        unshared_weight(self.newer, self.memories.1) > MAX_ADDED_BY_NEWER
            || unshared_weight(self.older, self.memories.0) > MAX_ADDED_BY_OLDER
    }

    /// Whether two numbers measure the same thing and differ, and neither statement has both.
    fn differ(&self, newer: usize, older: usize) -> bool {
        let quantity = |statement: &Statement, at: usize| -> Option<Quantity> {
            statement.terms.get(at)?.quantity().cloned()
        };
        let (Some(one), Some(other)) = (quantity(self.newer, newer), quantity(self.older, older))
        else {
            return false;
        };
        if one.unit != other.unit || one.equals(&other) {
            return false;
        }
        let mentions = |statement: &Statement, value: &Quantity| {
            statement.terms.iter().any(|term| {
                !term.denied
                    && term.quantity().is_some_and(|value_of_older| {
                        value_of_older.unit == value.unit && value_of_older.equals(value)
                    })
            })
        };
        if mentions(self.newer, &other) || mentions(self.older, &one) {
            return false;
        }
        // `two ways` does not conflict with `port 8080`.
        let in_digits = |statement: &Statement, at: usize| {
            let word = statement.terms.get(at).map_or("", |term| &term.word);
            word.contains(|c: char| c.is_ascii_digit())
        };
        if one.unit == Unit::None && in_digits(self.newer, newer) != in_digits(self.older, older) {
            return false;
        }
        // Both values are in both memories, so they belong to different things.
        let terms = self.newer.terms.get(newer).zip(self.older.terms.get(older));
        if terms.is_some_and(|(one, other)| {
            self.memories.0.says(None, other) && self.memories.1.says(None, one)
        }) {
            return false;
        }
        // `Node 20`, `Node 22`
        if self.is_of_one_name(newer, older) {
            return true;
        }
        let around = |statement: &Statement, at: usize, value_of_older: &Profile| -> Vec<Term> {
            let title = value_of_older.title().filter(|title| is_label(title));
            let titled = title.into_iter().flat_map(|title| &title.terms);
            let titled = titled.filter(|term| term.is_content());
            nearby_words(statement, at)
                .into_iter()
                .chain(titled)
                .cloned()
                .collect()
        };
        let context = around(self.newer, newer, self.memories.0);
        let others = around(self.older, older, self.memories.1);
        let shared: Vec<&Term> = context
            .iter()
            .filter(|term| others.iter().any(|other| other.key == term.key))
            .collect();
        let has_attribute = shared.iter().any(|term| {
            lexicon::is_attribute(&ack_search::stems::stem(lexicon::canonical_spelling(
                &term.word,
            )))
        });
        let is_close = shared.iter().map(|term| term.weight).sum::<f32>() >= 0.6;
        match one.unit {
            Unit::None => has_attribute || is_close && self.dice >= MIN_FRAME_SHARE,
            _ => has_attribute || is_close || self.dice >= MIN_FRAME_SHARE,
        }
    }

    /// Whether the same name directly precedes both numbers: `Node 20`, `alpine:3.19`.
    fn is_of_one_name(&self, newer: usize, older: usize) -> bool {
        let before = |statement: &Statement, at: usize| -> Option<u64> {
            let term = statement.terms.get(at.checked_sub(1)?)?;
            let number = statement.terms.get(at)?.quantity()?;
            let is_name = matches!(term.name(), Some(NameKind::Proper | NameKind::Identifier));
            let is_versioned = term.is_content() && number.version.is_some();
            (is_name || is_versioned).then_some(term.key)
        };
        let name = before(self.newer, newer);
        name.is_some() && name == before(self.older, older)
    }

    fn contains_denial(&self) -> bool {
        !self.are_labels()
            && (self.denies(self.newer, self.older) || self.denies(self.older, self.newer))
    }

    /// Whether both are titles that only name something.
    fn are_labels(&self) -> bool {
        let is_title = |statement: &Statement, profile: &Profile| {
            let title = profile.title().filter(|_| profile.claims().len() > 1);
            title.is_some_and(|title| std::ptr::eq(title, statement)) && !statement.is_sentence()
        };
        is_title(self.newer, self.memories.0) && is_title(self.older, self.memories.1)
    }

    /// Whether one statement denies what the other says.
    fn denies(&self, one: &Statement, other: &Statement) -> bool {
        if explains_cause(one) || explains_cause(other) || other.is_instruction() || other.is_past()
        {
            return false;
        }
        let memory = if std::ptr::eq(one, self.newer) {
            self.memories.1
        } else {
            self.memories.0
        };
        let mentions = |statement: &Statement, key: u64| {
            let mut terms = statement.terms.iter();
            terms.any(|term| term.key == key && !term.denied)
        };
        let denied: Vec<&Term> = one
            .terms
            .iter()
            .filter(|term| term.denied)
            .filter(|term| {
                term.is_content() || term.quantity().is_some() || term.polarity.is_some()
            })
            .filter(|term| !mentions(one, term.key))
            .collect();
        // `not enabled` and `disabled`: see [`Pair::have_opposites`].
        let has_polarity = one.terms.iter().filter(|term| term.denied).any(|term| {
            term.polarity.is_some_and(|(group, _)| {
                let mut polarities = other.terms.iter().filter_map(|term| term.polarity);
                polarities.any(|polarity| polarity.0 == group)
            })
        });
        let flipped: Vec<&&Term> = denied
            .iter()
            .filter(|term| mentions(other, term.key) && !memory.denies(term.key, one))
            .filter(|term| !memory.denies_anywhere(term.key))
            .collect();
        if flipped.is_empty() || has_polarity {
            return false;
        }
        if other.is_heading() && memory.claims().len() > 1 {
            return false;
        }
        if self.margin > 0.0 && (one.has_pronoun_subject() || other.has_pronoun_subject()) {
            return false;
        }
        if flipped
            .iter()
            .any(|term| other.is_negative_about(term.key, one))
        {
            return false;
        }
        // `Use uv instead of poetry` adds nothing to a memory that says uv is used.
        let is_known = |term: &Term| {
            term.denied
                || !is_named(term) && term.weight < MEANINGFUL_WEIGHT
                || memory.says(None, term)
        };
        if flipped.iter().any(|term| term.has_replacement) && one.terms.iter().all(is_known) {
            return false;
        }
        let weight: f32 = flipped.iter().map(|term| term.weight.max(0.5)).sum();
        let all: f32 = denied.iter().map(|term| term.weight.max(0.5)).sum();
        if weight < 0.6 * all {
            return false;
        }
        let rest = one.shared(other) - flipped.iter().map(|term| term.weight).sum::<f32>();
        if flipped.iter().any(|term| term.replaced) {
            // In long texts, many sentences contain the same words.
            if self.margin > 0.0 && self.subject_certainty() < MIN_SUBJECT_SHARE + self.margin {
                return false;
            }
            let has_name =
                weight >= NAME_LIKE_WEIGHT || flipped.iter().any(|term| term.name().is_some());
            let has_number = flipped.iter().any(|term| term.quantity().is_some());
            return rest >= 0.8 + self.margin
                || self.topic >= MIN_SUBJECT_SHARE && weight >= 1.0
                || has_name && self.topic >= MIN_REPLACEMENT_TOPIC
                || has_number && self.margin == 0.0 && self.topic >= CERTAIN_TOPIC;
        }
        let covered = one.covered_by(other).max(other.covered_by(one));
        weight >= 0.75 * all
            && (self.dice >= MIN_FRAME_SHARE + self.margin
                || self.dice >= MIN_SUBJECT_SHARE + self.margin && covered >= 0.75)
    }

    fn have_opposites(&self) -> bool {
        let tells_how = self.newer.is_instruction() || self.older.is_instruction();
        // A long text contains many statements on both sides.
        let is_long = self.margin > 0.0;
        if is_long || tells_how || self.subject_certainty() < MIN_SUBJECT_SHARE {
            return false;
        }
        let is_negative = |one: &Statement, other: &Statement| {
            let mut polarities = one.terms.iter().filter(|term| term.polarity.is_some());
            polarities.any(|term| one.is_negative_about(term.key, other))
        };
        if is_negative(self.newer, self.older) && is_negative(self.older, self.newer) {
            return false;
        }
        let newer: Vec<Slot<'_>> = slots(self.newer);
        let older: Vec<Slot<'_>> = slots(self.older);
        let side = |slot: &Slot<'_>| {
            slot.term
                .polarity
                .map(|(group, side)| (group, side != slot.term.denied))
        };
        let sides = |slots: &[Slot<'_>]| -> Vec<(&'static str, bool)> {
            slots.iter().filter_map(side).collect()
        };
        let (all_newer, all_older) = (sides(&newer), sides(&older));
        newer.iter().any(|one| {
            older.iter().any(|other| {
                let (Some((group, newer_side)), Some((same, older_side))) =
                    (side(one), side(other))
                else {
                    return false;
                };
                let is_opposite = group == same
                    && newer_side != older_side
                    && !all_older.contains(&(group, newer_side))
                    && !all_newer.contains(&(group, older_side));
                is_opposite
                    && (self.dice >= MIN_FRAME_SHARE
                        || one.before == other.before
                        || one.after == other.after)
            })
        })
    }
}

/// Whether a term is a name, or a word as rare as one.
fn is_named(term: &Term) -> bool {
    term.name().is_some() || term.is_content() && term.weight >= RARE
}

/// Whether a statement explains why something went wrong. That denies nothing.
fn explains_cause(statement: &Statement) -> bool {
    let mut words = statement.terms.iter().map(|term| term.word.as_str());
    let first = [words.next(), words.next()];
    first.contains(&Some("cause")) || matches!(first[0], Some("symptom" | "problem"))
}

/// The content words around a term.
fn nearby_words(statement: &Statement, at: usize) -> Vec<&Term> {
    let before = statement.terms.iter().take(at).rev();
    let following = statement.terms.iter().skip(at + 1);
    let content = |term: &&Term| matches!(term.kind, TermKind::Word | TermKind::Name(_));
    before
        .filter(content)
        .take(CONTEXT_WORDS)
        .chain(following.filter(content).take(CONTEXT_WORDS))
        .collect()
}
