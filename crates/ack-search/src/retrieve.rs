//! From a query to candidates: runs lexical and semantic search over every scope of the request,
//! with the filters applied inside, and fuses their scores.
//!
//! Lexical search admits every memory that shares a term with the query. Semantic search admits the
//! [`MAX_NEAREST`] eligible memories with the highest cosine, so filters never leave a page short.
//!
//! # Fusion
//!
//! ```text
//! score = lexical / score_norm + COSINE_WEIGHT · max(cosine, 0) + preference
//! ```
//!
//! `score_norm` is the best lexical score, or more (see [`Bm25Weights::score_norm`]).
//!
//! What a question names is preferred: an identifier that only an answer contains (an error code, a
//! path, a flag, a qualified name, see [`Bm25Weights::required_identifiers`]), the only word of the
//! question, a project, and a time. Memories that are merely about the same subject come after those.
//!
//! See `docs/retrieval.md` for how the constants were chosen.

use std::collections::BTreeSet;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::bm25::Bm25Weights;
use super::postings::DocId;
use super::remote::Eligibility;
use super::semantic::{MIN_PARALLEL_DOCS, QueryVector};
use super::view::{DocScores, View};
use ack_api::Hidden;
use ack_api::cancel;

pub const MAX_NEAREST: usize = 200;
/// From this cosine on, a memory is near a question in meaning. It is shown although it shares no
/// term with the query, and the answer is certain (see [`crate::certainty`]).
pub const MIN_COSINE: f32 = 0.32;
/// If no memory shares a term and all cosines are low, a memory needs this share of the best one.
const MIN_COSINE_SHARE: f32 = 0.8;
/// Below this cosine, two texts count as unrelated.
const UNRELATED_COSINE: f32 = 0.2;
/// Weight of a cosine of 1, relative to the best lexical score.
const COSINE_WEIGHT: f32 = 4.0;
/// What a memory of the project or of the time that the question names scores more, relative to the
/// best lexical score.
const NAMED_WEIGHT: f32 = 0.5;
/// The same of a memory with the identifiers that the query asks for: no cosine outweighs it.
const IDENTIFIER_WEIGHT: f32 = COSINE_WEIGHT;
/// Hidden neighbours are reported if they would have been among this many results.
const FIRST_PAGE: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Position of the scope in the list of views.
    pub scope: usize,
    pub doc: DocId,
    /// The fused score that orders candidates; 0 if nothing is searched for.
    pub score: f32,
    /// The BM25 score; 0 if no term matches.
    pub lexical: f32,
    /// The cosine with the query; 0 if the semantic leg did not run.
    pub cosine: f32,
}

impl Candidate {
    const fn new(scope: usize, doc: DocId) -> Self {
        Self { scope, doc, score: 0.0, lexical: 0.0, cosine: 0.0 }
    }
}

/// What to search for: a leg runs for each. Without either, everything that passes the filters is
/// listed.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub bm25: Option<&'a Bm25Weights>,
    pub vector: Option<&'a QueryVector>,
}

/// The candidates of a search, not yet in order.
#[derive(Debug, Default)]
pub struct CandidateSet {
    /// Every document that matches and may be returned.
    pub candidates: Vec<Candidate>,
    /// Matches that may not be returned.
    pub hidden: Hidden,
    /// The positions of the scopes with matches that the status filter hides.
    pub hiding_scopes: BTreeSet<usize>,
    /// What fusion divided the lexical scores by, see [`Bm25Weights::score_norm`].
    pub score_norm: f32,
    /// The cosine that a memory without a common term needs.
    pub min_cosine: f32,
}

impl CandidateSet {
    fn admit(&mut self, view: &View<'_>, candidate: Candidate) {
        match view.check(candidate.doc) {
            Eligibility::Eligible => self.candidates.push(candidate),
            why => self.hide(candidate.scope, why),
        }
    }

    fn hide(&mut self, scope: usize, why: Eligibility) {
        match why {
            Eligibility::HiddenByStatus => {
                self.hidden.by_status += 1;
                self.hiding_scopes.insert(scope);
            }
            Eligibility::Superseded => self.hidden.superseded += 1,
            Eligibility::Eligible | Eligibility::Excluded => {}
        }
    }

    /// Admits the nearest documents that are near enough and share no term with the query.
    fn admit_nearest(&mut self, nearest: Nearest, scores: &[DocScores], lexical_ran: bool) {
        let Nearest { candidates, hidden, .. } = nearest;
        let has_score = |near: &Candidate| {
            scores.get(near.scope).is_some_and(|scores| scores.get(near.doc) > 0.0)
        };
        // Without words, a hidden neighbour counts if it would have been on the first page.
        let min_hidden =
            if lexical_ran { MIN_COSINE } else { last_on_page(&candidates).max(MIN_COSINE) };
        for (near, why) in hidden {
            if near.cosine >= min_hidden && !has_score(&near) {
                self.hide(near.scope, why);
            }
        }
        let min_cosine = if !lexical_ran {
            f32::NEG_INFINITY
        } else if self.candidates.is_empty() {
            let cosines = candidates.iter().map(|near| near.cosine);
            let relative = MIN_COSINE_SHARE * cosines.fold(0.0, f32::max);
            relative.clamp(UNRELATED_COSINE, MIN_COSINE)
        } else {
            MIN_COSINE
        };
        self.min_cosine = min_cosine;
        let near = candidates.into_iter().filter(|near| near.cosine >= min_cosine);
        self.candidates.extend(near.filter(|near| !has_score(near)));
    }
}

/// Runs the legs and fuses their scores.
///
/// Filters apply before anything is counted or ordered. `frozen_norm` is the first page's
/// [`CandidateSet::score_norm`], on later pages. After the request is cancelled, the result is
/// incomplete.
pub fn retrieve(views: &[View<'_>], query: Query<'_>, frozen_norm: Option<f32>) -> CandidateSet {
    let mut found = CandidateSet::default();
    if query.bm25.is_none() && query.vector.is_none() {
        for (scope, view) in views.iter().enumerate() {
            for (doc, _) in cancel::guarded(view.index.live()) {
                found.admit(view, Candidate::new(scope, doc));
            }
        }
        return found;
    }
    let (nearest, scores) = run_legs(views, query);
    for (scope, (view, scores)) in views.iter().zip(&scores).enumerate() {
        let cosines = nearest.as_ref().and_then(|nearest| nearest.cosines.get(scope));
        for (doc, lexical) in cancel::guarded(scores.iter()) {
            if lexical > 0.0 {
                let cosine = cosines.map_or(0.0, |cosines| cosines.get(doc));
                found.admit(view, Candidate { lexical, cosine, ..Candidate::new(scope, doc) });
            }
        }
    }
    if let Some(nearest) = nearest {
        found.admit_nearest(nearest, &scores, query.bm25.is_some());
    }
    let norm = frozen_norm.unwrap_or_else(|| score_norm(query.bm25, &found.candidates));
    found.score_norm = norm;
    let identifiers = asked_identifiers(views, query.bm25, &found.candidates);
    for candidate in &mut found.candidates {
        candidate.score = match (query.bm25, query.vector) {
            (Some(_), Some(_)) => {
                fused_score(candidate, norm) + preference(views, &identifiers, candidate)
            }
            (None, Some(_)) => candidate.cosine,
            (_, None) => candidate.lexical,
        };
    }
    found
}

struct Nearest {
    /// The cosines of each view's documents.
    cosines: Vec<DocScores>,
    /// The documents with the highest cosines that may be returned, at most [`MAX_NEAREST`].
    candidates: Vec<Candidate>,
    /// Those that may not be returned, each with the reason.
    hidden: Vec<(Candidate, Eligibility)>,
}

/// Runs the legs that a query needs, in parallel if there are many documents.
fn run_legs(views: &[View<'_>], query: Query<'_>) -> (Option<Nearest>, Vec<DocScores>) {
    let documents: usize = views.iter().map(|view| view.index.docs.lengths().len()).sum();
    let is_large = documents >= MIN_PARALLEL_DOCS;
    let lexical = || -> Vec<DocScores> {
        let scores = query.bm25.map(|bm25| views.iter().map(|view| view.lexical_scores(bm25)));
        scores.into_iter().flatten().collect()
    };
    let semantic = || -> Option<Nearest> {
        let vector = query.vector?;
        let cosines: Vec<DocScores> = if is_large {
            views.par_iter().map(|view| view.cosines(vector)).collect()
        } else {
            views.iter().map(|view| view.cosines(vector)).collect()
        };
        Some(find_nearest(views, cosines))
    };
    if is_large {
        // Cancellation is thread-local, so each thread gets the request's flag.
        let flag = cancel::current();
        rayon::join(|| cancel::run_with(&flag, semantic), || cancel::run_with(&flag, lexical))
    } else {
        (semantic(), lexical())
    }
}

/// What fusion divides lexical scores by, see [`Bm25Weights::score_norm`].
pub fn score_norm(bm25: Option<&Bm25Weights>, candidates: &[Candidate]) -> f32 {
    let best = candidates.iter().fold(0f32, |best, candidate| best.max(candidate.lexical));
    bm25.map_or(best, |bm25| bm25.score_norm(best))
}

pub(super) fn best_lexical(candidates: &[Candidate]) -> Option<&Candidate> {
    candidates.iter().max_by(|one, other| one.lexical.total_cmp(&other.lexical))
}

/// Describes how a candidate's score was computed, for `explain`.
pub fn explain_fusion(query: Query<'_>, candidate: &Candidate, norm: f32) -> String {
    match (query.bm25, query.vector) {
        (None, None) => "nothing was searched for".to_owned(),
        (Some(_), None) => "the lexical score alone".to_owned(),
        (None, Some(_)) => "the cosine alone".to_owned(),
        (Some(_), Some(_)) => {
            let (lexical, cosine) = (candidate.lexical, candidate.cosine.max(0.0));
            let (fused, score) = (fused_score(candidate, norm), candidate.score);
            let preferred = match score - fused {
                more if more > 0.0 => format!(" + named in the query {more:.3}"),
                _ => String::new(),
            };
            // The parts are rounded so that they add up to the displayed sum.
            let words = normed(lexical, norm);
            let meaning = (fused * 1000.0).round() / 1000.0 - (words * 1000.0).round() / 1000.0;
            format!(
                "words {words:.3} ({lexical:.2} of {norm:.2}) + meaning {meaning:.3} \
                 ({COSINE_WEIGHT:.2} × {cosine:.3}){preferred} = {score:.3}"
            )
        }
    }
}

/// The fused score, by the formula at the top of this module. A negative cosine counts as 0: both
/// mean that two texts are unrelated.
fn fused_score(candidate: &Candidate, score_norm: f32) -> f32 {
    normed(candidate.lexical, score_norm) + COSINE_WEIGHT * candidate.cosine.max(0.0)
}

fn normed(lexical: f32, score_norm: f32) -> f32 {
    if score_norm > 0.0 { (lexical / score_norm).min(1.0) } else { 0.0 }
}

/// The required identifiers that the best lexical candidate contains.
fn asked_identifiers<'b>(
    views: &[View<'_>],
    bm25: Option<&'b Bm25Weights>,
    candidates: &[Candidate],
) -> Vec<&'b str> {
    let Some((best, bm25)) = best_lexical(candidates).zip(bm25) else {
        return Vec::new();
    };
    let required = bm25.required_identifiers.iter().map(String::as_str);
    required.filter(|key| contains(views, best, key)).collect()
}

fn contains(views: &[View<'_>], candidate: &Candidate, key: &str) -> bool {
    let view = views.get(candidate.scope);
    view.is_some_and(|view| view.frequency(key, candidate.doc).is_some())
}

/// What a memory scores more because of what the query names.
fn preference(views: &[View<'_>], identifiers: &[&str], candidate: &Candidate) -> f32 {
    let contained = identifiers.iter().filter(|key| contains(views, candidate, key));
    #[expect(clippy::cast_precision_loss, reason = "counts of a query's terms")]
    let share = contained.count() as f32 / identifiers.len().max(1) as f32;
    let view = views.get(candidate.scope);
    let named = view.map_or(0, |view| view.filter.named(candidate.doc));
    IDENTIFIER_WEIGHT * share + NAMED_WEIGHT * f32::from(named)
}

/// Finds the documents with the highest cosines over all scopes.
fn find_nearest(views: &[View<'_>], cosines: Vec<DocScores>) -> Nearest {
    let mut nearest: Vec<Candidate> = Vec::with_capacity(MAX_NEAREST * 2);
    let mut hidden: Vec<(Candidate, Eligibility)> = Vec::new();
    // Documents below this cosine cannot be among the nearest.
    let mut min_cosine = f32::NEG_INFINITY;
    for (scope, (view, cosines)) in views.iter().zip(&cosines).enumerate() {
        min_cosine = cosines.visit_from(min_cosine, |doc, cosine, min_cosine| {
            if !view.has_vector(doc) {
                return min_cosine;
            }
            let near = Candidate { cosine, ..Candidate::new(scope, doc) };
            match view.check(doc) {
                Eligibility::Eligible => nearest.push(near),
                Eligibility::Excluded => {}
                why => hidden.push((near, why)),
            }
            if nearest.len() < MAX_NEAREST * 2 {
                return min_cosine;
            }
            truncate_to_nearest(views, &mut nearest);
            nearest.iter().map(|near| near.cosine).fold(f32::INFINITY, f32::min)
        });
    }
    if nearest.len() > MAX_NEAREST {
        truncate_to_nearest(views, &mut nearest);
    }
    // They count as they would if they were shown.
    hidden.sort_by(|(a, _), (b, _)| b.cosine.total_cmp(&a.cosine));
    hidden.truncate(MAX_NEAREST);
    Nearest { cosines, candidates: nearest, hidden }
}

fn last_on_page(nearest: &[Candidate]) -> f32 {
    let mut cosines: Vec<f32> = nearest.iter().map(|near| near.cosine).collect();
    cosines.sort_unstable_by(|a, b| b.total_cmp(a));
    cosines.get(FIRST_PAGE - 1).copied().unwrap_or(f32::NEG_INFINITY)
}

/// Keeps the [`MAX_NEAREST`] nearest candidates. Ties go by scope and id, because document numbers
/// depend on the order in which rows were read.
fn truncate_to_nearest(views: &[View<'_>], nearest: &mut Vec<Candidate>) {
    let id = |near: &Candidate| {
        let view = views.get(near.scope);
        (near.scope, view.map_or("", |view| view.index.id(near.doc)))
    };
    nearest.select_nth_unstable_by(MAX_NEAREST - 1, |a, b| {
        b.cosine.total_cmp(&a.cosine).then_with(|| id(a).cmp(&id(b)))
    });
    nearest.truncate(MAX_NEAREST);
}
