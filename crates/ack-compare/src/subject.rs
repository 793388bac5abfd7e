//! What two memories are about: the same subject, or two things of one kind.

use rustc_hash::FxHashSet;

use crate::lexicon;
use crate::profile::Profile;
use crate::quantity::Unit;
use crate::statement::Statement;
use crate::term::{NameKind, Term};

/// Topic score if one memory says something about what the other's title names.
const NAMED_SUBJECT_TOPIC: f32 = 0.75;
/// Minimum weight of a title that names something specific.
const MIN_LABEL: f32 = 1.0;
/// Words in a title that precede its subject.
const SUBJECT_PREPOSITIONS: [&str; 8] = ["of", "for", "in", "on", "von", "für", "de", "para"];

/// Whether the titles show that the memories are about two things of one kind.
pub fn are_different_things(newer: &Profile, older: &Profile) -> bool {
    let Some((one, other)) = newer.title().zip(older.title()) else {
        return false;
    };
    let names = |title: &Statement| -> FxHashSet<u64> {
        let names = title.terms.iter().filter(|term| {
            !term.denied && term.name().is_some_and(|kind| kind != NameKind::Proper)
        });
        names.map(|term| term.key).collect()
    };
    let (names_of_newer, names_of_older) = (names(one), names(other));
    if !names_of_newer.is_empty()
        && !names_of_older.is_empty()
        && names_of_newer.is_disjoint(&names_of_older)
        && one.dice(other) < 0.34
    {
        return true;
    }
    if differ_only_in_number(newer, older) {
        return true;
    }
    // `Retention of logs`, `Retention of metrics`
    let names_of_newer = |title: &Statement, other: &Profile| {
        let names_of_newer = title.content.keys();
        names_of_newer
            .filter(|key| !other.content.contains_key(key))
            .count()
    };
    // `Indentation of YAML`
    let is_of_own = |title: &Statement, other: &Profile| {
        let mut is_behind = false;
        title.terms.iter().any(|term| {
            let is_own =
                is_behind && term.is_content() && !other.content.contains_key(&term.identity());
            is_behind =
                SUBJECT_PREPOSITIONS.contains(&&*term.word) || is_behind && !term.is_content();
            is_own
        })
    };
    let are_alike = is_label(other) && one.dice(other) >= 0.3;
    if is_label(one) && (is_of_own(one, older) || are_alike && is_of_own(other, newer)) {
        return true;
    }
    is_label(one)
        && is_label(other)
        && one.dice(other) >= 0.3
        && names_of_newer(one, older) == 1
        && names_of_newer(other, newer) == 1
}

/// Whether each says only one word and a number: `Topic 0`, `Topic 1`. If the word names a measure,
/// the number is a value and not a label.
fn differ_only_in_number(newer: &Profile, older: &Profile) -> bool {
    let is_numbered = |profile: &Profile| {
        let [only] = profile.claims() else {
            return false;
        };
        let mut content = only.terms.iter().filter(|term| term.is_content());
        let (Some(word), None) = (content.next(), content.next()) else {
            return false;
        };
        let mut numbers = only.terms.iter().filter_map(Term::quantity);
        let is_plain = numbers
            .next()
            .is_some_and(|number| number.unit == Unit::None);
        let stem = ack_search::stems::stem(lexicon::canonical_spelling(&word.word));
        is_plain && numbers.next().is_none() && !lexicon::is_attribute(&stem)
    };
    is_numbered(newer) && is_numbered(older)
}

/// How far two memories are about the same subject, from 0 to 1.
pub fn topic(newer: &Profile, older: &Profile) -> f32 {
    let titles = newer.title().zip(older.title());
    let titles = titles.map_or(0.0, |(one, other)| {
        let is_named = asserts_about(one, other, older);
        one.dice(other)
            .max(if is_named { NAMED_SUBJECT_TOPIC } else { 0.0 })
    });
    titles.max(newer.cosine(older))
}

/// Whether a title asserts something about what another title only names: `Rate limit is 600`, and
/// `Rate limit`.
fn asserts_about(title: &Statement, label: &Statement, older: &Profile) -> bool {
    let asserted = title
        .terms
        .iter()
        .take_while(|term| !lexicon::is_auxiliary(&term.word) && term.quantity().is_none());
    let asserted: Vec<&Term> = asserted.filter(|term| term.is_content()).collect();
    label.weight >= MIN_LABEL
        && is_label(label)
        && label
            .content
            .keys()
            .all(|key| asserted.iter().any(|term| term.key == *key))
        && asserted
            .iter()
            .all(|term| older.content.contains_key(&term.identity()))
}

/// Whether a title names a subject, and asserts nothing about it.
pub fn is_label(title: &Statement) -> bool {
    !title.terms.iter().any(|term| {
        term.denied
            || term.polarity.is_some()
            || term.quantity().is_some()
            || lexicon::is_auxiliary(&term.word)
    })
}
