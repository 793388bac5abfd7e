//! The order of candidates: total, deterministic, and resumable from a cursor.
//!
//! Scores are grouped in steps of `STEP_WIDTH`. Within a step, the current project's memories come
//! first, then the higher score. Ties go to the newer memory (or the older one, on request), then
//! to scope and id.

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::inverted::docs::Doc;
use crate::retrieve::Candidate;
use crate::view::View;

/// Scores that differ by less than this are equal.
const RANK_WIDTH: f32 = 0.0001;
/// How many of these make a step, within which the current project's memories come first.
const RANKS_PER_STEP: i64 = 100;
const STEP_WIDTH: f32 = 0.01;

#[derive(Debug, Clone, Copy)]
pub struct Ranked {
    pub candidate: Candidate,
    pub place: Place,
}

/// What orders candidates before scope and id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The score in steps of 0.0001.
    pub rank: i64,
    pub current_project: bool,
    /// When it was written, in milliseconds since 1970; negated if the oldest come first.
    pub created: i64,
}

impl Place {
    const fn sort_key(self) -> (i64, bool, i64, i64) {
        (self.rank.div_euclid(RANKS_PER_STEP), self.current_project, self.rank, self.created)
    }
}

/// `names` are the scopes of `views`. With a limit, only that many of the first positions are exact,
/// and the result may be cut to them. With `oldest_first`, the older of two ties comes first;
/// memories without a date come last either way.
pub fn order(
    candidates: &[Candidate],
    views: &[View<'_>],
    names: &[String],
    limit: Option<usize>,
    oldest_first: bool,
) -> Vec<Ranked> {
    let limit = limit.filter(|limit| *limit > 0 && limit * 2 < candidates.len());
    let unscored = candidates.iter().all(|candidate| candidate.score == 0.0);
    let age_key = |doc: &Doc| match doc.created {
        i64::MIN => i64::MIN,
        created if oldest_first => -created,
        created => created,
    };
    let created = |candidate: &Candidate| {
        let doc = views.get(candidate.scope).and_then(|view| view.index.doc(candidate.doc));
        doc.map_or(i64::MIN, age_key)
    };
    // With a limit, most candidates cannot make it: their score, or in a list their age, rules them
    // out before anything else is looked up.
    let (mut min_score, mut oldest) = (f32::NEG_INFINITY, None);
    if let Some(limit) = limit {
        if unscored {
            oldest = Some(nth_largest(candidates.iter().map(created), limit, i64::cmp));
        } else {
            let scores = candidates.iter().map(|candidate| candidate.score);
            // A candidate before the last position scores at most one step less; half a step covers
            // the rounding.
            min_score = nth_largest(scores, limit, f32::total_cmp) - 1.5 * STEP_WIDTH;
        }
    }
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .filter(|candidate| candidate.score >= min_score)
        .filter(|candidate| oldest.is_none_or(|oldest| created(candidate) >= oldest))
        .filter_map(|candidate| {
            let view = views.get(candidate.scope)?;
            let doc = view.index.doc(candidate.doc)?;
            #[expect(clippy::cast_possible_truncation, reason = "a score in these units fits")]
            let rank = (candidate.score / RANK_WIDTH).round() as i64;
            let current_project = candidate.score > 0.0 && view.filter.in_current_project(doc);
            let place = Place { rank, current_project, created: age_key(doc) };
            Some(Ranked { candidate: *candidate, place })
        })
        .collect();
    let id = |ranked: &Ranked| {
        let view = views.get(ranked.candidate.scope);
        view.map_or("", |view| view.index.id(ranked.candidate.doc))
    };
    let scope = |ranked: &Ranked| names.get(ranked.candidate.scope).map_or("", String::as_str);
    let compare = |a: &Ranked, b: &Ranked| {
        (b.place.sort_key().cmp(&a.place.sort_key()))
            .then_with(|| scope(a).cmp(scope(b)))
            .then_with(|| id(a).cmp(id(b)))
    };
    match limit {
        Some(limit) if limit < ranked.len() => {
            ranked.select_nth_unstable_by(limit, compare);
            ranked.truncate(limit);
            ranked.sort_unstable_by(compare);
        }
        _ => ranked.sort_unstable_by(compare),
    }
    ranked
}

/// The `n`-th largest value, counted from 1. There must be at least `n` values.
fn nth_largest<T: Copy>(
    values: impl Iterator<Item = T>,
    n: usize,
    compare: impl Fn(&T, &T) -> Ordering,
) -> T {
    let mut values: Vec<T> = values.collect();
    let (_, value, _) = values.select_nth_unstable_by(n - 1, |a, b| compare(b, a));
    *value
}

/// The position after a cursor: after the result that it names or, if that result is gone or has
/// changed, after its former position. `identity` returns a candidate's scope and id.
pub fn resume(
    ranked: &[Ranked],
    cursor: &Cursor,
    identity: impl Fn(&Ranked) -> (String, String),
) -> usize {
    let last = cursor.place.sort_key();
    let start = ranked.partition_point(|ranked| ranked.place.sort_key() > last);
    let end = ranked.partition_point(|ranked| ranked.place.sort_key() >= last);
    let ties = ranked.get(start..end).unwrap_or_default();
    let found = ties.iter().position(|ranked| {
        let (scope, id) = identity(ranked);
        cursor.names(&scope, &id)
    });
    // If it is gone, the results after it have moved up by one.
    let passed = usize::try_from(cursor.tie).unwrap_or(ties.len()).saturating_sub(1);
    start + found.map_or(passed.min(ties.len()), |place| place + 1)
}

/// The number, from 1, of a position among the results before it that differ only by scope or id.
pub fn tie_number(ranked: &[Ranked], position: usize) -> u64 {
    let before = ranked.get(..=position).unwrap_or_default();
    let last = before.last().map(|ranked| ranked.place);
    let same = |ranked: &&Ranked| Some(ranked.place) == last;
    before.iter().rev().take_while(same).count() as u64
}
