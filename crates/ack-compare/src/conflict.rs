//! Whether two memories say things that cannot both be true.
//!
//! Every statement of one is held against every statement of the other. A conflict needs two
//! things: both statements are about the same matter (they share most of what they are about, and
//! neither is limited to a case that the other leaves out), and one of these differs:
//! - a number of the same kind ([`values`]);
//! - what one says is not so, or was replaced, the other says is so ([`denial`]);
//! - a word and its opposite ([`opposites`]);
//! - one name in the same place of the same sentence ([`names`]).

use rustc_hash::FxHashSet;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::lexicon;
use crate::profile::Profile;
use crate::quantity::{Quantity, Unit};
use crate::statement::Statement;
use crate::term::{NameKind, Term, TermKind};

/// Share of common content of two statements about the same matter.
const SAME_MATTER: f32 = 0.5;
/// The same, for statements that differ in nothing else.
const SAME_FRAME: f32 = 0.66;
/// Words around a number that say what it measures.
const NEAR: usize = 4;

/// Two statements that cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// What the newer memory says.
    pub newer: String,
    /// What the older memory says.
    pub older: String,
    /// In what they differ.
    pub reason: ConflictReason,
}

/// In what two statements differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictReason {
    /// Another number, version or amount.
    Value,
    /// What one says, the other denies or replaces.
    Denial,
    /// A word and its opposite.
    Opposite,
    /// Another name in the same place.
    Name,
}

impl ConflictReason {
    /// The reason in a word.
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
    let topic = topic(newer, older);
    for one in &newer.statements {
        for other in &older.statements {
            let pair = Pair {
                newer: one,
                older: other,
                memories: (newer, older),
                dice: one.dice(other),
                topic,
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

/// How much two memories are about the same matter, from 0 to 1.
fn topic(newer: &Profile, older: &Profile) -> f32 {
    let titles = newer.title().zip(older.title());
    let titles = titles.map_or(0.0, |(one, other)| one.dice(other));
    titles.max(newer.cosine(older))
}

/// Two statements of two memories.
struct Pair<'a> {
    newer: &'a Statement,
    older: &'a Statement,
    memories: (&'a Profile, &'a Profile),
    dice: f32,
    topic: f32,
}

impl Pair<'_> {
    fn conflict(&self) -> Option<ConflictReason> {
        if self.newer.shared(self.older) <= 0.0 || self.are_different_cases() {
            return None;
        }
        if self.values() {
            Some(ConflictReason::Value)
        } else if self.denial() {
            Some(ConflictReason::Denial)
        } else if self.opposites() {
            Some(ConflictReason::Opposite)
        } else if self.names() {
            Some(ConflictReason::Name)
        } else {
            None
        }
    }

    /// How sure it is that the statements are about the same matter.
    fn matter(&self) -> f32 {
        let covered = self
            .newer
            .covered_by(self.older)
            .max(self.older.covered_by(self.newer));
        self.dice.max(0.5 * covered + 0.5 * self.topic.min(covered))
    }

    /// Whether each is limited to a case that the other is not.
    fn are_different_cases(&self) -> bool {
        let cases = |statement: &Statement| -> FxHashSet<&'static str> {
            let words = statement.terms.iter().filter(|term| !term.denied);
            words
                .filter_map(|term| lexicon::qualifier(&term.word))
                .collect()
        };
        let (newer, older) = (cases(self.newer), cases(self.older));
        let differs =
            newer.difference(&older).next().is_some() && older.difference(&newer).next().is_some();
        differs || self.are_events()
    }

    /// Whether both tell what happened on different days.
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

    /// Whether each has names that the other's memory does not know: they are about different
    /// things.
    fn are_different_subjects(&self) -> bool {
        let own = |statement: &Statement, other: &Profile| {
            statement.terms.iter().any(|term| {
                term.name().is_some()
                    && !term.denied
                    && !other.details.contains(&term.key)
                    && !other.content.contains_key(&term.key)
            })
        };
        own(self.newer, self.memories.1) && own(self.older, self.memories.0)
    }

    fn values(&self) -> bool {
        if self.matter() < SAME_MATTER || self.are_different_subjects() {
            return false;
        }
        let said = |statement: &Statement| -> Vec<usize> {
            let numbers = statement.terms.iter().enumerate();
            let numbers = numbers.filter(|(_, term)| term.quantity().is_some() && !term.denied);
            numbers.map(|(at, _)| at).collect()
        };
        let (newer, older) = (said(self.newer), said(self.older));
        newer
            .iter()
            .any(|one| older.iter().any(|other| self.differ(*one, *other)))
    }

    /// Whether two numbers measure the same and differ, and neither statement has the other's.
    fn differ(&self, newer: usize, older: usize) -> bool {
        let quantity = |statement: &Statement, at: usize| -> Option<Quantity> {
            statement.terms.get(at)?.quantity().cloned()
        };
        let (Some(one), Some(other)) = (quantity(self.newer, newer), quantity(self.older, older))
        else {
            return false;
        };
        if one.unit != other.unit || one.same(&other) {
            return false;
        }
        let says = |statement: &Statement, value: &Quantity| {
            statement.terms.iter().any(|term| {
                !term.denied
                    && term
                        .quantity()
                        .is_some_and(|own| own.unit == value.unit && own.same(value))
            })
        };
        if says(self.newer, &other) || says(self.older, &one) {
            return false;
        }
        let near = near(self.newer, newer);
        let shared: Vec<&Term> = near
            .into_iter()
            .filter(|term| {
                let others = self::near(self.older, older);
                others.iter().any(|other| other.key == term.key)
            })
            .collect();
        let has_attribute = shared.iter().any(|term| {
            lexicon::is_attribute(&ack_search::analysis::stem(lexicon::usual(&term.word)))
        });
        let is_close = shared.iter().map(|term| term.weight).sum::<f32>() >= 0.6;
        match one.unit {
            Unit::None => has_attribute || is_close && self.dice >= SAME_FRAME,
            _ => has_attribute || is_close || self.dice >= SAME_FRAME,
        }
    }

    fn denial(&self) -> bool {
        self.denies(self.newer, self.older) || self.denies(self.older, self.newer)
    }

    /// Whether one statement denies what the other says.
    fn denies(&self, one: &Statement, other: &Statement) -> bool {
        let said = |key: u64| {
            let mut terms = other.terms.iter();
            terms.find(|term| term.key == key).map(|term| !term.denied)
        };
        let denied: Vec<&Term> = one
            .terms
            .iter()
            .filter(|term| term.denied && (term.is_content() || term.quantity().is_some()))
            .collect();
        let flipped: Vec<&&Term> = denied
            .iter()
            .filter(|term| said(term.key) == Some(true))
            .collect();
        if flipped.is_empty() {
            return false;
        }
        let weight: f32 = flipped.iter().map(|term| term.weight.max(0.5)).sum();
        let all: f32 = denied.iter().map(|term| term.weight.max(0.5)).sum();
        let rest = one.shared(other) - flipped.iter().map(|term| term.weight).sum::<f32>();
        if flipped.iter().any(|term| term.replaced) {
            return weight / all >= 0.6 && (rest >= 0.8 || self.topic >= 0.6);
        }
        weight / all >= 0.6 && self.dice >= SAME_MATTER
    }

    fn opposites(&self) -> bool {
        if self.dice < SAME_FRAME {
            return false;
        }
        let poles = |statement: &Statement| -> Vec<(&'static str, bool)> {
            let terms = statement.terms.iter();
            terms
                .filter_map(|term| term.pole.map(|(group, side)| (group, side != term.denied)))
                .collect()
        };
        let (newer, older) = (poles(self.newer), poles(self.older));
        newer.iter().any(|(group, side)| {
            older.contains(&(group, !side))
                && !older.contains(&(group, *side))
                && !newer.contains(&(group, !side))
        })
    }

    /// Whether the statements differ in one name alone, which stands behind what they share.
    fn names(&self) -> bool {
        if self.dice < SAME_MATTER {
            return false;
        }
        let words = |statement: &Statement| -> Vec<Term> {
            let terms = statement
                .terms
                .iter()
                .filter(|term| term.kind != TermKind::Stop);
            terms.cloned().collect()
        };
        let (newer, older) = (words(self.newer), words(self.older));
        let keys = |terms: &[Term]| -> Vec<u64> { terms.iter().map(|term| term.key).collect() };
        let ops = capture_diff_slices(Algorithm::Myers, &keys(&older), &keys(&newer));
        let mut replaced = Vec::new();
        for op in ops {
            match op {
                DiffOp::Equal { .. } => {}
                DiffOp::Replace {
                    old_index,
                    old_len,
                    new_index,
                    new_len,
                } => replaced.push((
                    older
                        .get(old_index..old_index + old_len)
                        .unwrap_or_default(),
                    newer
                        .get(new_index..new_index + new_len)
                        .unwrap_or_default(),
                    old_index,
                )),
                DiffOp::Delete { .. } | DiffOp::Insert { .. } => return false,
            }
        }
        let [(old, new, at)] = *replaced else {
            return false;
        };
        let ([old], [new]) = (old, new) else {
            return false;
        };
        let is_behind = at * 3 >= older.len();
        match (old.name(), new.name()) {
            (Some(one), Some(other)) => {
                let exact =
                    |kind| matches!(kind, NameKind::Path | NameKind::Flag | NameKind::Constant);
                one == other && exact(one) || is_behind && self.dice >= SAME_FRAME
            }
            _ => false,
        }
    }
}

/// The content words around a term.
fn near(statement: &Statement, at: usize) -> Vec<&Term> {
    let before = statement.terms.iter().take(at).rev();
    let behind = statement.terms.iter().skip(at + 1);
    let content = |term: &&Term| matches!(term.kind, TermKind::Word | TermKind::Name(_));
    before
        .filter(content)
        .take(NEAR)
        .chain(behind.filter(content).take(NEAR))
        .collect()
}
