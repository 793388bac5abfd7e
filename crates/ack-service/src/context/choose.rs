//! Chooses the memories that a project needs now, for `get_context` and for the session start hook.
//!
//! The usual rules decide what may be shown: `Service::select` chooses the scopes, and the store's
//! status is checked again when the record is read.

use std::cmp::{Ordering, Reverse};
use std::time::Duration;

use rustc_hash::FxHashSet as HashSet;

use super::MAX_SESSIONS;
use super::brief::Brief;
use super::evidence::{Evidence, Reason, Terms};
use super::outlines::{self, Reading, ScopeOutline};
use super::signals::Signals;
use crate::error::Error;
use crate::evidence::Bounds;
use crate::open::{
    Record, Records, missing_status, note_incomplete_reads, overviews_withheld, unavailable,
};
use crate::scope::resolve::Selection;
use crate::service_state::serves_unreviewed;
use crate::shown::Shown;
use crate::stale::Staleness;
use ack_api::memory::{Memory, StatusFilter};
use ack_api::source::RowKey;
use ack_api::{ContextResponse, MemoryHit, Note, Pending, ProjectInfo, text, time};
use ack_store::outline::Outline;
use ack_store::record::UNTITLED;

#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub own: usize,
    pub others: usize,
    pub reading: Reading<'a>,
}

/// A scope that cannot be read is removed from the selection, with a note.
pub fn choose(
    selection: &mut Selection,
    signals: Signals,
    limits: Limits<'_>,
    notes: &mut Vec<Note>,
) -> Result<Brief, Error> {
    let terms = Terms::new(signals, &selection.current);
    let read = outlines::read(selection, &terms.words, limits.reading, notes)?;
    choose_from(selection, (&terms, &read), limits, &Extras::default(), notes)
}

pub fn choose_from(
    selection: &Selection,
    (terms, read): (&Terms, &[ScopeOutline]),
    limits: Limits<'_>,
    extras: &Extras<'_>,
    notes: &mut Vec<Note>,
) -> Result<Brief, Error> {
    let mut chooser = Chooser::new(selection, (terms, read), limits, extras);
    let own = chooser.choose(true, limits.own, notes)?;
    let others = chooser.choose(false, limits.others, notes)?;
    let no_others = if limits.others == 0 || !others.is_empty() {
        None
    } else if chooser.memories(false).is_empty() {
        Some("no approved memory of another project is in the searched scopes")
    } else {
        Some(
            "no memory of another project was promoted, or shares files, dependencies or tags \
             with this one",
        )
    };
    let brief = brief(selection, read, limits.reading.timeout, [own, others], notes);
    Ok(Brief { no_others, ..brief })
}

/// What there is to say about the scopes and the sessions besides these own and other memories.
pub fn brief(
    selection: &Selection,
    read: &[ScopeOutline],
    timeout: Duration,
    [own, others]: [Vec<MemoryHit>; 2],
    notes: &mut Vec<Note>,
) -> Brief {
    let shown = || own.iter().chain(&others);
    let holders = |id: &str| read.iter().filter(|read| read.outlines().contains(id)).count();
    let shared_ids = shown().map(|hit| &hit.id).filter(|id| holders(id) > 1).cloned().collect();
    let is_unreviewed = |hit: &MemoryHit| {
        read.iter().any(|read| {
            read.scope.name == hit.scope
                && !read.outlines().has_status
                && serves_unreviewed(&read.scope)
        })
    };
    let unreviewed = shown().any(is_unreviewed);
    let own_scope = selection.current.scope.as_ref();
    let is_own = |read: &&ScopeOutline| own_scope.is_some_and(|own| own.name == read.scope.name);
    let own_read = read.iter().find(is_own);
    let (count, oldest) = waiting(read.iter().filter(|it| own_scope.is_none() || is_own(it)));
    let pending = (count > 0).then(|| Pending {
        count,
        oldest: oldest.map(time::to_rfc3339),
        ids: Vec::new(),
        pace: None,
    });
    if let (Some(_), Some(own_scope), true) = (&pending, own_scope, own.is_empty()) {
        if own_read.is_some_and(|read| !read.outlines().has_status) {
            notes.push(missing_status(own_scope));
        }
        notes.push(super::hidden_by_status(&own_scope.name));
    }
    note_incomplete_reads(read.iter().map(|read| &*read.scope), notes);
    let (waiting, oldest_waiting) = waiting(read.iter());
    let mut sessions = outlines::recent_sessions(read, timeout);
    sessions.sort_by(|(_, a), (_, b)| a.newest_first(b));
    sessions.truncate(MAX_SESSIONS);
    for (scope, _) in sessions.iter().filter(|(_, session)| session.withholds_overview) {
        let note = overviews_withheld(scope);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    // Their entries leave out memories that are already shown.
    let is_shown = |scope: &str, id: &str| shown().any(|hit| hit.scope == scope && hit.id == id);
    let sessions = sessions
        .into_iter()
        .map(|(scope, session)| session.into_entry(|id| is_shown(scope, id)))
        .collect();
    let current = &selection.current;
    Brief {
        flow: match own_read.filter(|read| read.outlines().pending > 0) {
            Some(own) => own.outlines().flow,
            None => read.iter().map(|read| read.outlines().flow).sum(),
        },
        waiting,
        oldest_waiting,
        served: read.iter().map(|read| read.outlines().served.len()).sum(),
        context: ContextResponse {
            project: ProjectInfo {
                name: text::line(&current.name, 200),
                path: text::line(&current.folder.display().to_string(), 400),
                scope: own_scope.map(|scope| scope.name.clone()),
                detected_by: current.rule.clone(),
            },
            searched: selection.searched(StatusFilter::Approved),
            recent_memories: own,
            recent_sessions: sessions,
            cross_project_learnings: others,
            pending,
            notes: Vec::new(),
        },
        no_others: None,
        unreviewed,
        shared_ids,
    }
}

/// The first `count` items in an order that is total.
fn first<T>(mut items: Vec<T>, count: usize, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    if items.len() > count {
        items.select_nth_unstable_by(count, &compare);
        items.truncate(count);
    }
    items.sort_by(compare);
    items
}

/// How many memories of these scopes wait for review, and since when the oldest does.
fn waiting<'a>(
    read: impl Iterator<Item = &'a ScopeOutline> + Clone,
) -> (u64, Option<jiff::Timestamp>) {
    let outlines = read.map(ScopeOutline::outlines);
    let oldest = outlines.clone().filter_map(|it| it.oldest_pending).min();
    let oldest = oldest.and_then(|oldest| jiff::Timestamp::from_millisecond(oldest).ok());
    (outlines.map(|it| it.pending).sum(), oldest)
}

#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    scope: usize,
    pub outline: &'a Outline,
    pub reason: Reason,
}

/// More memories of a scope, as if they were approved.
#[derive(Default)]
pub struct Extras<'a> {
    scope: usize,
    memories: Vec<(Outline, &'a Memory)>,
    /// The ids of the memories that they replace.
    pub hides: HashSet<String>,
}

impl<'a> Extras<'a> {
    /// `None` if the scope cannot be read.
    pub fn of(
        read: &[ScopeOutline],
        scope: &str,
        memories: &[&'a Memory],
        terms: &Terms,
    ) -> Option<Self> {
        let number = read.iter().position(|read| read.scope.name == scope)?;
        let newer = memories.iter().map(|memory| memory.id.as_str()).collect();
        let store = &read.get(number)?.scope.store;
        let older = store.snapshot(|snapshot| snapshot.replaced_by(&newer)).ok()?;
        let outline = |memory: &&'a Memory| (Outline::of(memory, &*terms.words), *memory);
        Some(Self {
            scope: number,
            memories: memories.iter().map(outline).collect(),
            hides: older.into_iter().map(|older| older.id).collect(),
        })
    }
}

struct Chooser<'a> {
    read: &'a [ScopeOutline],
    extras: &'a Extras<'a>,
    evidence: Evidence<'a>,
    timeout: Duration,
    staleness: Staleness,
    /// The position of the project's scope, if it has other projects too. Its rows without a
    /// project come after the project's own.
    common_scope: Option<usize>,
    /// What is in the answer already, so that nothing is shown twice in either list.
    shown: Shown,
}

impl<'a> Chooser<'a> {
    fn new(
        selection: &Selection,
        (terms, read): (&'a Terms, &'a [ScopeOutline]),
        limits: Limits<'_>,
        extras: &'a Extras<'a>,
    ) -> Self {
        let served = read.iter().flat_map(|read| &read.outlines().served);
        let has_own = read.iter().any(ScopeOutline::has_own);
        Self {
            staleness: Staleness::new(limits.reading.now, &selection.current, Bounds::ANSWER),
            evidence: Evidence::new(terms, served, has_own),
            common_scope: selection
                .current
                .common_scope()
                .and_then(|common| read.iter().position(|read| read.scope.name == common.name)),
            read,
            extras,
            timeout: limits.reading.timeout,
            shown: Shown::default(),
        }
    }

    /// Those that have a reason, the weightiest first.
    fn choose(
        &mut self,
        own: bool,
        max: usize,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<MemoryHit>, Error> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let memories = self.memories(own);
        if !own {
            self.evidence.weigh_tags(&self.memories(true), self.read);
        }
        let mut known: HashSet<(usize, RowKey)> = HashSet::default();
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for reason in Reason::ALL {
            // One that another contains is left out later, so take more.
            let enough = reason.max_length(own, max, 0) * 2;
            if enough == 0 {
                continue;
            }
            let scored = memories.iter().filter_map(|&(scope, outline)| {
                let score = self.evidence.score(outline, reason, own)?;
                // There may be no room for all that another reason found.
                let is_new = reason == Reason::Recent || !known.contains(&(scope, outline.key));
                is_new.then_some((score, scope, outline))
            });
            let mut found: Vec<(f64, usize, &'a Outline)> = scored.collect();
            let best = found.iter().map(|found| found.0).fold(0.0, f64::max);
            found.retain(|(score, _, outline)| {
                *score >= best * reason.min_share(own)
                    || self.evidence.names_file(outline, reason, own)
            });
            let found = first(found, enough + 2, |a, b| {
                b.0.total_cmp(&a.0).then_with(|| self.place(a.1, a.2).cmp(&self.place(b.1, b.2)))
            });
            for (_, scope, outline) in found {
                known.insert((scope, outline.key));
                candidates.push(Candidate { scope, outline, reason });
            }
        }
        let records = self.records(&candidates, notes)?;
        Ok(self.take(&candidates, &records, own, max))
    }

    /// The project's own memories, or those of other projects, each with the position of its scope.
    fn memories(&self, is_own: bool) -> Vec<(usize, &'a Outline)> {
        let mut memories = Vec::new();
        for (number, read) in self.read.iter().enumerate() {
            let mut is_its_own = read.is_own();
            let extras = Some(self.extras).filter(|extras| extras.scope == number);
            let is_hidden = |id: &String| extras.is_some_and(|extras| extras.hides.contains(id));
            let served = read.outlines().served.iter().filter(|outline| !is_hidden(&outline.id));
            let more = extras.into_iter().flat_map(|extras| &extras.memories);
            let all = served.chain(more.map(|(outline, _)| outline));
            let wanted = all.filter(|outline| is_its_own(outline) == is_own);
            memories.extend(wanted.map(|outline| (number, outline)));
        }
        memories
    }

    /// Newest first, those without a project last; scope and id make the order total.
    fn place(&self, scope: usize, outline: &'a Outline) -> (bool, Reverse<i64>, &'a str, &'a str) {
        let has_no_project = outline.project.is_empty() && outline.alias.is_empty();
        let is_common = has_no_project && Some(scope) == self.common_scope;
        let name = self.read.get(scope).map_or("", |read| &read.scope.name);
        (is_common, Reverse(outline.created), name, &outline.id)
    }

    /// Reads the candidates' records. The store decides again whether each may be shown.
    fn records(
        &self,
        candidates: &[Candidate<'_>],
        notes: &mut Vec<Note>,
    ) -> Result<Records, Error> {
        let mut records = Records::default();
        for (number, read) in self.read.iter().enumerate() {
            let here = candidates.iter().filter(|candidate| candidate.scope == number);
            let wanted: Vec<(RowKey, &str)> =
                here.map(|found| (found.outline.key, found.outline.id.as_str())).collect();
            records.read((number, &read.scope), &wanted, StatusFilter::Approved, self.timeout);
        }
        for (number, error) in std::mem::take(&mut records.failed) {
            if self.read.len() == 1 {
                return Err(error);
            }
            notes.extend(self.read.get(number).map(|it| unavailable(&it.scope.name, &error)));
        }
        for (outline, memory) in &self.extras.memories {
            if candidates.iter().any(|candidate| std::ptr::eq(candidate.outline, outline)) {
                let record = Record { memory: (*memory).clone(), contradictions: Vec::new() };
                records.found.insert((self.extras.scope, memory.id.clone()), record);
            }
        }
        Ok(records)
    }

    fn take(
        &mut self,
        candidates: &[Candidate<'_>],
        records: &Records,
        is_own: bool,
        max: usize,
    ) -> Vec<MemoryHit> {
        let mut hits: Vec<MemoryHit> = Vec::new();
        let first = self.shown.len();
        let mut last_reason = None;
        let mut until = max;
        // If there is room left at the end, also show what a reason found beyond its share.
        let shared = candidates.iter().map(|candidate| (candidate, Some(candidate.reason)));
        let beyond = candidates.iter().map(|candidate| (candidate, None));
        for (candidate, reason) in shared.chain(beyond) {
            if last_reason != reason {
                last_reason = reason;
                let length = reason.map(|reason| reason.max_length(is_own, max, hits.len()));
                until = length.unwrap_or(max).min(max);
            }
            let key = (candidate.scope, candidate.outline.id.clone());
            let Some((read, record)) = self.read.get(candidate.scope).zip(records.found.get(&key))
            else {
                continue;
            };
            let memory = &record.memory;
            let is_taken = |hit: &MemoryHit| hit.id == memory.id && hit.scope == read.scope.name;
            let says_nothing = memory.title == UNTITLED && memory.facts.is_empty();
            if hits.len() >= until || says_nothing || hits.iter().any(is_taken) {
                continue;
            }
            let why = self.evidence.why(*candidate, memory, is_own);
            self.shown.add_to(&mut hits, first, memory, || MemoryHit {
                why: Some(why),
                ..self.staleness.hit(record, &read.scope)
            });
        }
        hits
    }
}
