//! What two memories are about: the same matter, or two things of one kind.

use rustc_hash::FxHashSet;

use crate::lexicon;
use crate::profile::Profile;
use crate::statement::Statement;
use crate::term::NameKind;

/// Whether the titles say that the memories are about two things of one kind.
pub fn are_other_things(newer: &Profile, older: &Profile) -> bool {
    let Some((one, other)) = newer.title().zip(older.title()) else {
        return false;
    };
    let names = |title: &Statement| -> FxHashSet<u64> {
        let names = title.terms.iter().filter(|term| {
            !term.denied && term.name().is_some_and(|kind| kind != NameKind::Proper)
        });
        names.map(|term| term.key).collect()
    };
    let (own, others) = (names(one), names(other));
    if !own.is_empty() && !others.is_empty() && own.is_disjoint(&others) && one.dice(other) < 0.34 {
        return true;
    }
    // `Retention of logs`, `Retention of metrics`
    let own = |title: &Statement, other: &Profile| {
        let own = title.content.keys();
        own.filter(|key| !other.content.contains_key(key)).count()
    };
    let is_label = |title: &Statement| {
        !title.terms.iter().any(|term| {
            term.denied
                || term.pole.is_some()
                || term.quantity().is_some()
                || lexicon::is_auxiliary(&term.word)
        })
    };
    is_label(one)
        && is_label(other)
        && one.dice(other) >= 0.3
        && own(one, older) == 1
        && own(other, newer) == 1
}

/// How much two memories are about the same matter, from 0 to 1.
pub fn topic(newer: &Profile, older: &Profile) -> f32 {
    let titles = newer.title().zip(older.title());
    let titles = titles.map_or(0.0, |(one, other)| one.dice(other));
    titles.max(newer.cosine(older))
}
