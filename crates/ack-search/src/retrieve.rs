//! From a question to candidates: both legs over every scope of the request, filters inside, and their fusion.
//!
//! The lexical leg admits every memory that shares a term with the query. The semantic leg admits the [`NEAREST`] memories
//! nearest in meaning, so that a filter that many memories pass always fills its page. Each candidate carries what both legs
//! say of it; `fuse` makes one score of them.
//!
//! # Fusion
//!
//! By score, not by rank: `lexical / whole + WEIGHT · (1 − s) · cosine`. `whole` is the best lexical
//! score of the answer, or more (see [`Statistics::whole`]); `s` is the share of the query's lexical
//! weight in anchors. `docs/retrieval.md` says how the constants were chosen and what was rejected.
//!
//! An anchor is a specific identifier (an error code, a path, a flag, a qualified name) that is all
//! that was asked for, or that hardly a memory holds: a question with one answer. If the best memory
//! of the lexical leg holds such anchors, no memory that lacks one of them is ranked before it
//! (`anchor`).
//!
//! A memory that shares no term with the query must reach the cosine [`FLOOR`].

use rustc_hash::FxHashSet;

use super::filter::Filters;
use super::inverted::DocId;
use super::lexical::Statistics;
use super::semantic::Code;
use super::view::{Judge, Values, Verdict, View};
use ack_api::Hidden;
use ack_api::cancel;

/// How many memories the semantic leg admits.
pub const NEAREST: usize = 200;
/// Least cosine of a memory that shares no term with the query, in hybrid retrieval.
pub const FLOOR: f32 = 0.3;
/// How much a cosine counts beside a lexical score of 1.
const WEIGHT: f32 = 1.5;

/// From so many documents on the legs run side by side, on several threads.
pub const SIDE_BY_SIDE: usize = 20_000;

/// A candidate of one scope.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Position of the scope in the list of views.
    pub scope: usize,
    /// The document.
    pub doc: DocId,
    /// What orders it; 0 where nothing was searched for.
    pub score: f32,
    /// BM25; 0 where no term matches.
    pub lexical: f32,
    /// Cosine with the question, where the semantic leg ran.
    pub cosine: f32,
}

/// How far behind the memory with the identifier others are held: more than a tie.
const BEHIND: f32 = 0.02;

/// What is searched for.
#[derive(Debug, Clone, Copy)]
pub enum Question<'a> {
    /// Nothing: everything that passes the filters.
    Everything,
    /// Words.
    Words(&'a Statistics),
    /// Meaning.
    Meaning(&'a Code),
    /// Both.
    Both(&'a Statistics, &'a Code),
}

impl<'a> Question<'a> {
    const fn words(self) -> Option<&'a Statistics> {
        match self {
            Self::Words(statistics) | Self::Both(statistics, _) => Some(statistics),
            Self::Everything | Self::Meaning(_) => None,
        }
    }

    const fn meaning(self) -> Option<&'a Code> {
        match self {
            Self::Meaning(code) | Self::Both(_, code) => Some(code),
            Self::Everything | Self::Words(_) => None,
        }
    }
}

/// What was found, not yet in order.
#[derive(Debug, Default)]
pub struct Found {
    /// Every document that is admitted and may be shown.
    pub candidates: Vec<Scored>,
    /// Matches that may not.
    pub hidden: Hidden,
    /// The best lexical score of the first page's candidates.
    pub top: f32,
}

/// What speaks for a memory that shares no term with the query: its scope, itself, and its part of a lexical score.
pub type Beside = (usize, DocId, f32);

/// Runs the legs and fuses what they say. Filters are applied before anything is counted or ordered. `beside` admits memories whose
/// own text holds no term, at most half as well as the best whose text does. Of a request that is to stop, what was found is
/// incomplete.
pub fn retrieve(views: &[View<'_>], question: Question<'_>, filters: &Filters, beside: &[Beside], frozen_top: Option<f32>) -> Found {
    let mut found = Found::default();
    let judges: Vec<Judge<'_>> = views.iter().map(|view| Judge::new(view, filters)).collect();
    if matches!(question, Question::Everything) {
        for (scope, (view, judge)) in views.iter().zip(&judges).enumerate() {
            for (doc, _) in cancel::guarded(view.index.live()) {
                admit(&mut found, judge, Scored::new(scope, doc));
            }
        }
        return found;
    }
    let ((cosines, nearest), scores) = legs(views, &judges, question);
    let cosine = |scope: usize, doc: DocId| {
        let own: Option<&Values> = cosines.get(scope);
        own.map_or(0.0, |own| own.of(doc))
    };
    for (scope, (judge, scores)) in judges.iter().zip(&scores).enumerate() {
        let matches = scores.iter().filter(|(_, lexical)| *lexical > 0.0).count();
        found.candidates.reserve(matches + NEAREST);
        for (doc, lexical) in cancel::guarded(scores.iter()).filter(|(_, lexical)| *lexical > 0.0) {
            let candidate = Scored {
                lexical,
                cosine: cosine(scope, doc),
                ..Scored::new(scope, doc)
            };
            admit(&mut found, judge, candidate);
        }
    }
    let best = found.candidates.iter().fold(0f32, |best, candidate| best.max(candidate.lexical));
    let mut admitted: FxHashSet<(usize, DocId)> = FxHashSet::default();
    for &(scope, doc, weight) in beside {
        if scores.get(scope).is_some_and(|own| own.of(doc) <= 0.0) && admitted.insert((scope, doc)) {
            let candidate = Scored {
                lexical: if best > 0.0 { weight.min(best / 2.0) } else { weight },
                cosine: cosine(scope, doc),
                ..Scored::new(scope, doc)
            };
            judges.get(scope).into_iter().for_each(|judge| admit(&mut found, judge, candidate));
        }
    }
    if let Some((nearest, hidden)) = nearest {
        if question.words().is_none() {
            found.hidden = hidden;
        }
        let floor = if question.words().is_some() { FLOOR } else { f32::NEG_INFINITY };
        let shares_a_term = |near: &Scored| scores.get(near.scope).is_some_and(|own| own.of(near.doc) > 0.0);
        let more = nearest
            .into_iter()
            .filter(|near| near.cosine >= floor && !shares_a_term(near) && !admitted.contains(&(near.scope, near.doc)));
        found.candidates.extend(more);
    }
    let top = frozen_top.unwrap_or_else(|| top(question.words(), &found.candidates));
    found.top = top;
    for candidate in &mut found.candidates {
        candidate.score = match question {
            Question::Both(statistics, _) => fuse(statistics, candidate, top),
            Question::Meaning(_) => candidate.cosine,
            Question::Words(_) | Question::Everything => candidate.lexical,
        };
    }
    if let Question::Both(statistics, _) = question {
        anchor(views, statistics, &mut found.candidates);
    }
    found
}

/// What the semantic leg says: the cosine of the documents of every view, the nearest of those that may be shown, and how
/// many as near ones may not.
type Meant = (Vec<Values>, Option<(Vec<Scored>, Hidden)>);

/// Runs both legs, side by side where that is worth a second thread. Empty where a leg is not asked for.
fn legs(views: &[View<'_>], judges: &[Judge<'_>], question: Question<'_>) -> (Meant, Vec<Values>) {
    let lexical = || -> Vec<Values> {
        let Some(statistics) = question.words() else { return Vec::new() };
        views.iter().map(|view| statistics.scores(view)).collect()
    };
    let semantic = || -> Meant {
        let Some(code) = question.meaning() else { return Meant::default() };
        let cosines: Vec<Values> = views.iter().map(|view| view.cosines(code)).collect();
        let nearest = nearest(views, judges, &cosines);
        (cosines, Some(nearest))
    };
    let documents: usize = views.iter().map(|view| view.index.lengths().len()).sum();
    if documents >= SIDE_BY_SIDE {
        // Each thread looks at the flag of the request.
        let flag = cancel::current();
        rayon::join(|| cancel::within(&flag, semantic), || cancel::within(&flag, lexical))
    } else {
        (semantic(), lexical())
    }
}

/// Holds what lacks an identifier of the best lexical candidate behind that candidate.
fn anchor(views: &[View<'_>], statistics: &Statistics, candidates: &mut [Scored]) {
    if statistics.anchors.is_empty() {
        return;
    }
    let Some(best) = candidates
        .iter()
        .filter(|candidate| candidate.lexical > 0.0)
        .max_by(|a, b| a.lexical.total_cmp(&b.lexical).then(a.score.total_cmp(&b.score)))
        .copied()
    else {
        return;
    };
    let holds = |candidate: &Scored, key: &str| {
        let view = views.get(candidate.scope);
        view.is_some_and(|view| view.frequency(key, candidate.doc).is_some())
    };
    let held: Vec<&String> = statistics.anchors.iter().filter(|key| holds(&best, key)).collect();
    for candidate in cancel::guarded(candidates) {
        if candidate.score > best.score - BEHIND && held.iter().any(|key| !holds(candidate, key)) {
            candidate.score = best.score - BEHIND;
        }
    }
}

/// What fusion divides lexical scores by: see [`Statistics::whole`].
pub fn top(statistics: Option<&Statistics>, candidates: &[Scored]) -> f32 {
    let best = candidates.iter().fold(0f32, |top, candidate| top.max(candidate.lexical));
    statistics.map_or(best, |statistics| statistics.whole(best))
}

/// How a candidate's score came about, for `explain`.
pub fn fusion(question: Question<'_>, scored: &Scored, top: f32) -> String {
    match question {
        Question::Everything => "nothing was searched for".to_owned(),
        Question::Words(_) => "the lexical score alone".to_owned(),
        Question::Meaning(_) => "the cosine alone".to_owned(),
        Question::Both(statistics, _) => {
            let (lexical, cosine, free) = (scored.lexical, scored.cosine.max(0.0), fuse(statistics, scored, top));
            let weight = weight(statistics);
            let held = if free > scored.score {
                format!(", held at {:.3} behind the memory with the identifier", scored.score)
            } else {
                String::new()
            };
            format!("{lexical:.2} / {top:.2} + {weight:.2} · {cosine:.3} = {free:.3}{held}")
        }
    }
}

/// One score of two. A cosine below 0 says no more than one of 0: that two texts have nothing to do with each other.
fn fuse(statistics: &Statistics, candidate: &Scored, top: f32) -> f32 {
    let share = if top > 0.0 { (candidate.lexical / top).min(1.0) } else { 0.0 };
    share + weight(statistics) * candidate.cosine.max(0.0)
}

/// What a cosine weighs for this query.
fn weight(statistics: &Statistics) -> f32 {
    WEIGHT * (1.0 - statistics.identifiers)
}

/// The documents nearest in meaning over all scopes, and how many as near ones may not be shown.
fn nearest(views: &[View<'_>], judges: &[Judge<'_>], cosines: &[Values]) -> (Vec<Scored>, Hidden) {
    let mut nearest: Vec<Scored> = Vec::with_capacity(NEAREST * 2);
    let mut kept_out: Vec<(f32, bool)> = Vec::new();
    // What is farther than this is not among the nearest.
    let mut bound = f32::NEG_INFINITY;
    for (scope, (judge, cosines)) in judges.iter().zip(cosines).enumerate() {
        for (doc, cosine) in cancel::guarded(cosines.iter()) {
            if cosine < bound || !judge.view.has_code(doc) {
                continue;
            }
            match judge.judge(doc) {
                Verdict::Candidate => nearest.push(Scored {
                    cosine,
                    ..Scored::new(scope, doc)
                }),
                Verdict::ByStatus => kept_out.push((cosine, true)),
                Verdict::Superseded => kept_out.push((cosine, false)),
                Verdict::Filtered => {}
            }
            if nearest.len() >= NEAREST * 2 {
                keep_nearest(views, &mut nearest);
                bound = nearest.iter().fold(f32::INFINITY, |least, near| least.min(near.cosine));
            }
        }
    }
    if nearest.len() > NEAREST {
        keep_nearest(views, &mut nearest);
    }
    // A neighbour that may not be shown is worth mentioning where it would have been on the first page.
    let mut shown: Vec<f32> = nearest.iter().map(|near| near.cosine).collect();
    shown.sort_unstable_by(|a, b| b.total_cmp(a));
    let tenth = shown.get(9).copied().unwrap_or(f32::NEG_INFINITY);
    let mut hidden = Hidden::default();
    for (cosine, by_status) in kept_out {
        if cosine >= tenth {
            *(if by_status { &mut hidden.by_status } else { &mut hidden.superseded }) += 1;
        }
    }
    (nearest, hidden)
}

/// Keeps the nearest. Equals go by id, because the numbers of documents depend on what was read in which order.
fn keep_nearest(views: &[View<'_>], nearest: &mut Vec<Scored>) {
    let id = |near: &Scored| {
        let view = views.get(near.scope);
        (near.scope, view.map_or("", |view| view.index.id(near.doc)))
    };
    nearest.select_nth_unstable_by(NEAREST - 1, |a, b| b.cosine.total_cmp(&a.cosine).then_with(|| id(a).cmp(&id(b))));
    nearest.truncate(NEAREST);
}

impl Scored {
    /// Whether a word matches, or the meaning is as near as `floor`.
    pub fn reaches(&self, floor: f32) -> bool {
        self.lexical > 0.0 || self.cosine >= floor
    }

    const fn new(scope: usize, doc: DocId) -> Self {
        Self {
            scope,
            doc,
            score: 0.0,
            lexical: 0.0,
            cosine: 0.0,
        }
    }
}

fn admit(found: &mut Found, judge: &Judge<'_>, scored: Scored) {
    match judge.judge(scored.doc) {
        Verdict::Candidate => found.candidates.push(scored),
        Verdict::ByStatus => found.hidden.by_status += 1,
        Verdict::Superseded => found.hidden.superseded += 1,
        Verdict::Filtered => {}
    }
}
