//! Retrieval: `request → scopes → candidates → order → records (status re-checked) → answer`.
//!
//! The stages and their types, in the order in which a request passes them:
//! - [`analysis`] turns text into terms, the same way for memories and queries;
//! - [`inverted`] holds one scope in memory ([`postings`] its terms, [`names`] its strings, [`dictionary`] and [`numbers`] find them), [`filter`] decides on its columns;
//! - [`view`] is a scope as the legs see it, with what LanceDB's indexes found of a large one;
//! - [`lexical`] is the leg that searches words. It returns candidates with scores; a semantic leg returns the same type,
//!   and their fusion goes between the legs and [`order`];
//! - [`order`] makes the order total, [`page`] finds the place where a page begins, [`fold`] folds near-duplicates.
//!
//! Records are read from SQLite afterwards.

pub mod analysis;
pub mod dictionary;
pub mod encoder;
pub mod filter;
pub mod fold;
pub mod inverted;
pub mod lexical;
pub mod names;
pub mod numbers;
pub mod page;
pub mod postings;
pub mod prepare;
pub mod remote;
pub mod retrieve;
pub mod semantic;
pub mod view;

use std::cmp::Ordering;

use self::inverted::docs::Doc;
use self::page::Cursor;
use self::retrieve::Scored;
use self::view::View;

/// Scores closer than this are a tie, which the current project wins.
const TIE: f32 = 0.01;

/// A candidate with everything that orders it.
#[derive(Debug, Clone, Copy)]
pub struct Ranked {
    /// The candidate.
    pub scored: Scored,
    /// Its score in units of a tie.
    pub rank: i64,
    /// Whether it belongs to the current project.
    pub mine: bool,
    /// When it was written, milliseconds since 1970; negative where the older comes first.
    pub created: i64,
}

/// What is wanted of an order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// How many first places have to be certain; without it all of them.
    pub places: Option<usize>,
    /// Whether the older of two equals comes first; what has no date comes last in any case.
    pub oldest: bool,
}

/// Orders candidates: best score first; among equals the current project's, then the newer (or older), then by scope and id,
/// so that the order is total.
pub fn order(
    candidates: &[Scored],
    views: &[View<'_>],
    names: &[String],
    mine: impl Fn(usize, &Doc) -> bool,
    wanted: Wanted,
) -> Vec<Ranked> {
    let need = wanted.places.filter(|need| *need > 0 && need * 2 < candidates.len());
    // Most candidates score too low to be looked at any further, or are too old where nothing was searched for.
    let listed = candidates.iter().all(|scored| scored.score == 0.0);
    let place_in_time = |doc: &Doc| match doc.created {
        i64::MIN => i64::MIN,
        created if wanted.oldest => -created,
        created => created,
    };
    let created = |scored: &Scored| {
        let doc = views.get(scored.scope).and_then(|view| view.index.doc(scored.doc));
        doc.map_or(i64::MIN, place_in_time)
    };
    let far: Box<dyn Fn(&Scored) -> bool + '_> = match need {
        None => Box::new(|_| false),
        Some(need) if listed => {
            let oldest = nth_largest(candidates.iter().map(created), need, i64::cmp);
            Box::new(move |scored| created(scored) < oldest)
        }
        Some(need) => {
            // What ranks with the last one needed scores a tie less at most, roundings apart.
            let least = nth_largest(candidates.iter().map(|scored| scored.score), need, f32::total_cmp) - 1.5 * TIE;
            Box::new(move |scored| scored.score < least)
        }
    };
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .filter(|scored| !far(scored))
        .filter_map(|scored| {
            let doc = views.get(scored.scope)?.index.doc(scored.doc)?;
            Some(Ranked {
                scored: *scored,
                rank: rank(scored.score),
                mine: scored.score > 0.0 && mine(scored.scope, doc),
                created: place_in_time(doc),
            })
        })
        .collect();
    let id = |place: &Ranked| views.get(place.scored.scope).map_or("", |view| view.index.id(place.scored.doc));
    let scope = |place: &Ranked| names.get(place.scored.scope).map_or("", String::as_str);
    let compare = |a: &Ranked, b: &Ranked| {
        key(b)
            .cmp(&key(a))
            .then_with(|| scope(a).cmp(scope(b)))
            .then_with(|| id(a).cmp(id(b)))
    };
    match need {
        Some(need) if need < ranked.len() => {
            ranked.select_nth_unstable_by(need, compare);
            ranked.truncate(need);
            ranked.sort_unstable_by(compare);
        }
        _ => ranked.sort_unstable_by(compare),
    }
    ranked
}

/// The value at place `number`, counted from 1, of values in descending order; there are at least as many.
fn nth_largest<T: Copy>(values: impl Iterator<Item = T>, number: usize, compare: impl Fn(&T, &T) -> Ordering) -> T {
    let mut values: Vec<T> = values.collect();
    let (_, value, _) = values.select_nth_unstable_by(number - 1, |a, b| compare(b, a));
    *value
}

/// A score in units of a tie.
fn rank(score: f32) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a score in units of a tie fits")]
    let rank = (score / TIE).round() as i64;
    rank
}

const fn key(place: &Ranked) -> (i64, bool, i64) {
    (place.rank, place.mine, place.created)
}

/// The place behind a cursor: behind the result it names, or, where that is gone or changed, where it stood.
pub fn resume(ranked: &[Ranked], cursor: &Cursor, identity: impl Fn(&Ranked) -> (String, String)) -> usize {
    let stood = (cursor.rank, cursor.mine, cursor.created);
    ranked.partition_point(|place| match key(place).cmp(&stood) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => identity(place) <= (cursor.scope.clone(), cursor.id.clone()),
    })
}
