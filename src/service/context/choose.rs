//! Chooses the memories that a project needs now, for `get_context` and for the session start hook.
//!
//! The usual rules decide what may be shown: `Service::select` chooses the scopes, and the store's
//! status is checked again when the record is read.

use std::cmp::Ordering;
use std::time::Duration;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::evidence::{Evidence, Reason, Terms};
use super::newest_sessions;
use super::outlines::{self, OutlineCache, Reading, ScopeOutline};
use super::signals::Signals;
use crate::evidence::Bounds;
use crate::scope::resolve::Selection;
use crate::service::answer;
use crate::service::error::Error;
use crate::service::open::{failure, missing_status, note_incomplete_reads, unavailable};
use crate::service::service_state::serves_unreviewed;
use crate::service::shown::{Overlap, Shown};
use crate::service::stale::Staleness;
use ack_api::memory::{Memory, StatusFilter};
use ack_api::queue::Flow;
use ack_api::remote::WaitPolicy;
use ack_api::source::RowKey;
use ack_api::text;
use ack_api::time;
use ack_api::{Contradiction, Detail, MemoryHit, Note, Pending, SessionEntry};
use ack_search::wording::Wording;
use ack_store::outline::{Outline, Outlines};
use ack_store::record::UNTITLED;

const MILLISECONDS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

/// The reason for a memory that was chosen only by its date.
pub const RECENT_REASON: &str = "recent in this project";

/// How much to choose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum memories of the project itself.
    pub own: usize,
    /// Maximum memories of other projects.
    pub others: usize,
    /// Whether to include recent sessions.
    pub sessions: bool,
    /// How long to wait for a locked store.
    pub timeout: Duration,
    /// Whether to wait for buckets.
    pub wait_policy: WaitPolicy,
    /// The present time, for the review queue.
    pub now: jiff::Timestamp,
}

/// The result of choosing.
#[derive(Debug, Default)]
pub(super) struct ChosenMemories {
    pub own: Vec<MemoryHit>,
    pub others: Vec<MemoryHit>,
    pub sessions: Vec<SessionEntry>,
    /// Why there are none of other projects, if there could be.
    pub no_others: Option<&'static str>,
    /// The memories that wait for review in the project's scope, or in every scope if it has none.
    pub pending: Option<Pending>,
    /// How many memories recently entered and left that queue, or all if nothing waits in it.
    pub flow: Flow,
    /// How many memories the scopes could serve.
    pub served: usize,
    /// How many memories wait for review in all of them.
    pub waiting: u64,
    /// Since when the oldest of these waits.
    pub oldest_waiting: Option<jiff::Timestamp>,
    /// Whether some come from a store without a status, whose notes count as approved without
    /// review.
    pub unreviewed: bool,
    /// Chosen ids that several of the scopes contain.
    pub shared_ids: HashSet<String>,
}

impl ChosenMemories {
    /// How many memories and sessions there are.
    pub const fn entries(&self) -> usize {
        self.own.len() + self.others.len() + self.sessions.len()
    }
}

/// Chooses by the state of the project's files. A scope that cannot be read is removed from the
/// selection, with a note. If outlines are cached, the queue's flow is as old as the outlines.
///
/// # Errors
/// No scope can be read.
pub(super) fn choose(
    selection: &mut Selection,
    signals: Signals,
    limits: Limits,
    cache: Option<&OutlineCache>,
    notes: &mut Vec<Note>,
) -> Result<ChosenMemories, Error> {
    let (terms, read) = read_outlines(selection, signals, limits, cache, notes)?;
    let mut chooser = Chooser::new(selection, (&terms, &read), limits, None);
    let own = chooser.choose(true, limits.own, notes)?;
    let others = chooser.choose(false, limits.others, notes)?;
    let no_others = (limits.others > 0 && others.is_empty()).then(|| {
        match chooser.memories(false).is_empty() {
            true => "no approved memory of another project is in the searched scopes",
            false => {
                "no memory of another project was promoted, or shares files, dependencies or tags \
                 with this one"
            }
        }
    });
    let holders = |id: &str| {
        let holding = read.iter().filter(|read| read.outlines().contains(id));
        holding.count()
    };
    let shared = own.iter().chain(&others).map(|hit| &hit.id);
    let shared_ids = shared.filter(|id| holders(id) > 1).cloned().collect();
    let is_unreviewed = |hit: &MemoryHit| {
        let mut read = read.iter();
        read.any(|read| {
            read.scope.name == hit.scope
                && !read.outlines().has_status
                && serves_unreviewed(&read.scope)
        })
    };
    let unreviewed = own.iter().chain(&others).any(is_unreviewed);
    let pending = pending(selection, &read);
    if pending.is_some() && own.is_empty() {
        note_pending(selection, &read, notes);
    }
    let own_name = selection.current.scope.as_ref().map(|own| &own.name);
    let own_read = read.iter().find(|read| Some(&read.scope.name) == own_name);
    note_incomplete_reads(read.iter().map(|read| &*read.scope), notes);
    Ok(ChosenMemories {
        flow: match own_read.filter(|read| read.outlines().pending > 0) {
            Some(own) => own.outlines().flow,
            None => read.iter().map(|read| read.outlines().flow).sum(),
        },
        waiting: read.iter().map(|read| read.outlines().pending).sum(),
        oldest_waiting: read
            .iter()
            .filter_map(|read| read.outlines().oldest_pending)
            .min()
            .and_then(|oldest| jiff::Timestamp::from_millisecond(oldest).ok()),
        served: read.iter().map(|read| read.outlines().served.len()).sum(),
        sessions: newest_sessions(
            outlines::newest_sessions(&read, limits.timeout),
            &[&own, &others],
            notes,
        ),
        own,
        others,
        no_others,
        pending,
        unreviewed,
        shared_ids,
    })
}

/// The words of a project, and the outlines of the scopes in which they are searched.
fn read_outlines(
    selection: &mut Selection,
    signals: Signals,
    limits: Limits,
    cache: Option<&OutlineCache>,
    notes: &mut Vec<Note>,
) -> Result<(Terms, Vec<ScopeOutline>), Error> {
    let terms = Terms::new(signals, &selection.current);
    let reading = Reading {
        words: &terms.words,
        sessions: limits.sessions,
        timeout: limits.timeout,
        wait_policy: limits.wait_policy,
        now: limits.now,
        cache,
    };
    let read = outlines::read(selection, reading, notes)?;
    Ok((terms, read))
}

/// The project's own memories that are chosen now, and those that would be chosen if one more
/// memory of a scope were approved. The memories that this one would replace are in neither.
///
/// # Errors
/// No scope can be read.
pub(super) fn choose_with(
    selection: &mut Selection,
    signals: Signals,
    limits: Limits,
    cache: &OutlineCache,
    (scope, memory): (&str, &Memory),
) -> Result<[Vec<MemoryHit>; 2], Error> {
    let mut notes = Vec::new();
    let (terms, read) = read_outlines(selection, signals, limits, Some(cache), &mut notes)?;
    let position = read.iter().position(|read| read.scope.name == scope);
    let extra = position.and_then(|number| ExtraMemory::of(&read, number, memory, &terms));
    let mut choose = |extra| {
        let mut chooser = Chooser::new(selection, (&terms, &read), limits, extra);
        chooser.choose(true, limits.own, &mut notes)
    };
    let (mut now, then) = (choose(None)?, choose(extra.as_ref())?);
    let is_hidden = |hit: &MemoryHit| {
        let mut hidden = extra.iter().flat_map(|extra| &extra.hides);
        hit.scope == scope && hidden.any(|id| *id == hit.id)
    };
    now.retain(|hit| !is_hidden(hit));
    Ok([now, then])
}

/// The memories that wait for review in the project's scope, or in every scope if it has none.
fn pending(selection: &Selection, read: &[ScopeOutline]) -> Option<Pending> {
    let own_scope = selection.current.scope.as_ref();
    let is_meant = |read: &&ScopeOutline| own_scope.is_none_or(|own| own.name == read.scope.name);
    let meant: Vec<&Outlines> = read
        .iter()
        .filter(is_meant)
        .map(ScopeOutline::outlines)
        .collect();
    let count: u64 = meant.iter().map(|outlines| outlines.pending).sum();
    let oldest = meant.iter().filter_map(|it| it.oldest_pending).min();
    let oldest = oldest.and_then(|oldest| jiff::Timestamp::from_millisecond(oldest).ok());
    (count > 0).then(|| Pending {
        count,
        oldest: oldest.map(time::to_rfc3339),
        ids: Vec::new(),
        pace: None,
    })
}

/// Adds a note that says why the project has no memory to show.
fn note_pending(selection: &Selection, read: &[ScopeOutline], notes: &mut Vec<Note>) {
    let Some(own) = &selection.current.scope else {
        return;
    };
    let without_status = read
        .iter()
        .any(|read| read.scope.name == own.name && !read.outlines().has_status);
    if without_status {
        notes.push(missing_status(own));
    }
    notes.push(super::hidden_by_status(&own.name));
}

/// A memory that may be chosen, with the reason.
struct Candidate<'a> {
    scope: usize,
    outline: &'a Outline,
    why: String,
    /// The reason for it; `None` if only its date counts.
    reason: Option<Reason>,
}

/// The records of candidates, by the position of their scope and their id.
type Records = HashMap<(usize, String), (Memory, Vec<Contradiction>)>;

/// A memory that is treated as approved.
struct ExtraMemory<'a> {
    /// The position of its scope.
    scope: usize,
    outline: Outline,
    memory: &'a Memory,
    /// The ids of the memories that it replaces.
    hides: HashSet<String>,
}

impl<'a> ExtraMemory<'a> {
    /// A memory of the scope at this position, unless that one cannot be read.
    fn of(read: &[ScopeOutline], scope: usize, memory: &'a Memory, terms: &Terms) -> Option<Self> {
        let newer = std::iter::once(memory.id.as_str()).collect();
        let store = &read.get(scope)?.scope.store;
        let older = store.snapshot(|snapshot| snapshot.replaced_by(&newer));
        Some(Self {
            scope,
            outline: Outline::of(memory, &terms.words),
            memory,
            hides: older.ok()?.into_iter().map(|older| older.id).collect(),
        })
    }
}

struct Chooser<'a> {
    read: &'a [ScopeOutline],
    extra: Option<&'a ExtraMemory<'a>>,
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
        limits: Limits,
        extra: Option<&'a ExtraMemory<'a>>,
    ) -> Self {
        Self {
            staleness: Staleness::new(limits.now, &selection.current, Bounds::ANSWER),
            evidence: Evidence::new(terms, read),
            common_scope: selection.current.common_scope().and_then(|common| {
                let mut names = read.iter().map(|read| &read.scope.name);
                names.position(|name| *name == common.name)
            }),
            read,
            extra,
            timeout: limits.timeout,
            shown: Shown::default(),
        }
    }

    /// The project's own memories, or those of other projects, that have a reason. For its own,
    /// also the newest.
    fn choose(
        &mut self,
        own: bool,
        max: usize,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<MemoryHit>, Error> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let mut memories = self.memories(own);
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
            let mut found: Vec<(f64, usize, &Outline)> = memories
                .iter()
                .filter(|(scope, outline)| !known.contains(&(*scope, outline.key)))
                .filter_map(|(scope, outline)| {
                    let score = self.evidence.score(outline, reason, own)?;
                    Some((score, *scope, *outline))
                })
                .collect();
            found.sort_by(|a, b| {
                b.0.total_cmp(&a.0)
                    .then_with(|| self.newest_first((a.1, a.2), (b.1, b.2)))
            });
            let best = found.first().map_or(0.0, |best| best.0);
            found.retain(|(score, _, outline)| {
                *score >= best * reason.min_share(own)
                    || self.evidence.names_file(outline, reason, own)
            });
            found.truncate(enough + 2);
            for (_, scope, outline) in found {
                known.insert((scope, outline.key));
                candidates.push(Candidate {
                    scope,
                    outline,
                    why: text::line(&self.evidence.why(outline, reason, own), 120),
                    reason: Some(reason),
                });
            }
        }
        if own {
            memories.sort_by(|a, b| self.newest_first(*a, *b));
            let newest = memories.into_iter().take(max * 2 + 2);
            candidates.extend(newest.map(|(scope, outline)| Candidate {
                scope,
                outline,
                why: RECENT_REASON.to_owned(),
                reason: None,
            }));
        }
        let records = self.records(&candidates, notes)?;
        Ok(self.take(&candidates, &records, own, max))
    }

    /// The project's own memories, or those of other projects, each with the position of its scope.
    fn memories(&self, is_own: bool) -> Vec<(usize, &'a Outline)> {
        let mut memories = Vec::new();
        for (number, read) in self.read.iter().enumerate() {
            // A store has few projects and many memories.
            let mut known: HashMap<(&str, &str), bool> = HashMap::default();
            let extra = self.extra.filter(|extra| extra.scope == number);
            let served = read.outlines().served.iter();
            let served = served
                .filter(|outline| extra.is_none_or(|extra| !extra.hides.contains(&outline.id)));
            memories.extend(
                served
                    .chain(extra.map(|extra| &extra.outline))
                    .filter(|outline| {
                        let names = (&*outline.project, &*outline.alias);
                        let hold = || read.own.contain(names.0, names.1);
                        *known.entry(names).or_insert_with(hold) == is_own
                    })
                    .map(|outline| (number, outline)),
            );
        }
        memories
    }

    /// Newest first, those without a project last, then by scope and id, so that the order is
    /// total. Among those of one day, what says little comes last.
    fn newest_first(&self, a: (usize, &Outline), b: (usize, &Outline)) -> Ordering {
        let is_common = |(scope, outline): (usize, &Outline)| {
            Some(scope) == self.common_scope
                && outline.project.is_empty()
                && outline.alias.is_empty()
        };
        let name = |scope: usize| {
            let read = self.read.get(scope);
            read.map_or("", |read| read.scope.name.as_str())
        };
        let day = |outline: &Outline| outline.created.div_euclid(MILLISECONDS_PER_DAY);
        is_common(a)
            .cmp(&is_common(b))
            .then_with(|| day(b.1).cmp(&day(a.1)))
            .then_with(|| a.1.says_little.cmp(&b.1.says_little))
            .then_with(|| b.1.created.cmp(&a.1.created))
            .then_with(|| name(a.0).cmp(name(b.0)))
            .then_with(|| a.1.id.cmp(&b.1.id))
    }

    /// Reads the candidates' records. The store decides again whether each may be shown.
    fn records(
        &self,
        candidates: &[Candidate<'_>],
        notes: &mut Vec<Note>,
    ) -> Result<Records, Error> {
        let mut records = Records::default();
        for (number, read) in self.read.iter().enumerate() {
            let here = candidates
                .iter()
                .filter(|candidate| candidate.scope == number);
            let wanted: Vec<(RowKey, &str)> = here
                .map(|found| (found.outline.key, found.outline.id.as_str()))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let store = &read.scope.store;
            let found = store.snapshot_with_timeout(self.timeout, |snapshot| {
                let found = snapshot.memories(&wanted, StatusFilter::Approved)?;
                let ids = found.keys().map(String::as_str);
                let contradicted = snapshot.contradictions(ids, StatusFilter::Approved)?;
                Ok((found, contradicted))
            });
            match found {
                Ok((found, contradicted)) => {
                    let mut contradicted: HashMap<_, _> = contradicted.into_iter().collect();
                    records.extend(found.into_iter().map(|(id, memory)| {
                        let others = contradicted.remove(&id).unwrap_or_default();
                        ((number, id), (memory, others))
                    }));
                }
                Err(error) => {
                    let error = failure(&read.scope, error);
                    if self.read.len() == 1 {
                        return Err(error);
                    }
                    notes.push(unavailable(&read.scope.name, &error));
                }
            }
        }
        if let Some(ExtraMemory { scope, memory, .. }) = self.extra {
            let key = (*scope, memory.id.clone());
            records.insert(key, ((*memory).clone(), Vec::new()));
        }
        Ok(records)
    }

    /// Takes candidates in order until there are enough.
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
        let shared = candidates.iter().map(|candidate| (candidate, true));
        let beyond = candidates.iter().map(|candidate| (candidate, false));
        for (candidate, is_shared) in shared.chain(beyond) {
            if !is_shared {
                until = max;
            } else if last_reason != candidate.reason || last_reason.is_none() {
                last_reason = candidate.reason;
                until = last_reason
                    .map_or(max, |reason| reason.max_length(is_own, max, hits.len()))
                    .min(max);
            }
            let key = (candidate.scope, candidate.outline.id.clone());
            let (Some(read), Some((memory, others))) =
                (self.read.get(candidate.scope), records.get(&key))
            else {
                continue;
            };
            let is_taken = |hit: &MemoryHit| hit.id == memory.id && hit.scope == read.scope.name;
            let says_nothing = memory.title == UNTITLED && memory.facts.is_empty();
            if hits.len() >= until || says_nothing || hits.iter().any(is_taken) {
                continue;
            }
            let wording = Wording::of(memory);
            // The other list keeps what it has.
            let contained = match self.shown.overlap(&wording, first, |_| true) {
                Overlap::Contained(_) => continue,
                Overlap::Contains(contained) => contained,
            };
            let mut hit = answer::hit(memory, &read.scope.name, Detail::Concise);
            // The successor may not be visible.
            hit.superseded_by = None;
            self.staleness
                .mark(&mut hit, memory, &read.scope, others.clone());
            let why = self
                .evidence
                .why_of(memory, candidate.reason, &candidate.why);
            hit.why = Some(why);
            self.shown
                .add_to(&mut hits, first, (wording, hit), &contained);
        }
        hits
    }
}
