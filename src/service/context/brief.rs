//! The memories a session starts with, chosen straight from the stores.
//!
//! `get_context` searches with the scopes' indexes, which pay for themselves in a server and would be most of the time of a
//! process that answers once. Here each store is read once in outline ([`ack_store::outline`]); the signals' words
//! are looked for there, and only the few records that are told are read in full. What may be told is decided as everywhere:
//! scopes by `Service::select`, the status by the store, again when the record is read.

use std::time::Duration;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use super::signals::{LASTING, Reason, Signals, is_distinctive};
use super::words::{Origin, Words};
use super::{SESSIONS, folder, recent};
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use crate::service::answer;
use crate::service::engine::Service;
use crate::service::error::Error;
use crate::service::open::note_locks;
use ack_api::memory::{ProjectRows, StatusFilter, fold_name};
use ack_api::source::RowKey;
use ack_api::text;
use ack_api::time;
use ack_api::{
    ContextRequest, ContextResponse, Detail, MemoryHit, Note, NoteKind, Pending, ProjectInfo,
    Skipped,
};
use ack_search::dedup::Signature;
use ack_store::StoreError;
use ack_store::outline::{Outline, Outlines};
use ack_store::sessions::{RecentSession, SessionQuery};

/// A session's start waits no longer than this for a store that is locked.
const PATIENCE: Duration = Duration::from_millis(400);
/// A word that stands in more than this share of the memories tells nothing, once there are a few.
const COMMON_SHARE: f64 = 0.2;
/// So many memories are a few.
const FEW: usize = 10;
/// A word in the title or among the tags counts this often.
const TELLING: f64 = 2.0;

/// Why a memory is there that nothing but its date speaks for.
pub const RECENT: &str = "recent in this project";
/// Words of branches that say what kind of change it is, not what it is about.
const HABITS: [&str; 14] = [
    "add", "bug", "bugfix", "chore", "docs", "feat", "feature", "fix", "hotfix", "refactor",
    "release", "test", "update", "wip",
];

/// What to choose.
#[derive(Debug, Clone, Default)]
pub struct BriefRequest {
    /// The project's folder. Default: the one the process runs for.
    pub project_path: Option<String>,
    /// Most memories of the project itself.
    pub own: usize,
    /// Most memories that others learned.
    pub others: usize,
    /// Whether recent sessions are told.
    pub sessions: bool,
}

/// What a session starts with.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// The memories, as `get_context` answers.
    pub context: ContextResponse,
    /// How many memories the scopes searched would serve.
    pub served: usize,
    /// Ids of the memories told that more than one of the scopes searched holds.
    pub shared_ids: HashSet<String>,
}

/// One scope, read in outline.
struct Read<'a> {
    scope: &'a Scope,
    /// The current project's rows in it.
    own: ProjectRows,
    outlines: Outlines,
    sessions: Vec<RecentSession>,
}

/// A memory that may be told, with why.
struct Candidate<'a> {
    scope: usize,
    outline: &'a Outline,
    why: String,
    /// What speaks for it; `None` where nothing but its date does.
    reason: Option<Reason>,
}

/// The words of each signal.
#[derive(Clone, Copy)]
struct Sets {
    branch: u128,
    lasting: u128,
    /// By which the project's own memories name the changed files.
    endings: u128,
    /// By which those of others may.
    subjects: u128,
    uses: u128,
}

/// Chooses what a session starts with.
///
/// # Errors
/// No scope at all, an invalid folder, or no store that can be read.
pub fn run(service: &Service, request: &BriefRequest) -> Result<Brief, Error> {
    let mut notes = Vec::new();
    let asked = ContextRequest {
        project_path: request.project_path.clone(),
        ..ContextRequest::default()
    };
    let folder = folder(service, &asked, &mut notes)?;
    let mut selection = service.select(None, Some(&folder))?;
    let signals = Signals::read(
        &selection.current.folder,
        selection.current.repository.as_ref(),
        service.config.home.as_deref(),
    );
    let branch = signals
        .branch
        .as_deref()
        .unwrap_or_default()
        .split_whitespace();
    let branch: Vec<String> = branch
        .map(str::to_lowercase)
        .filter(|word| !HABITS.contains(&word.as_str()))
        .collect();
    let (endings, subjects) = (signals.endings(), signals.subjects());
    let names = endings.iter().chain(&subjects.names).chain(&subjects.words);
    let names = names.chain(&signals.dependencies);
    let words = Words::new(
        branch
            .iter()
            .map(|word| (word.clone(), Origin::Prose))
            .chain(
                LASTING
                    .iter()
                    .map(|word| ((*word).to_owned(), Origin::Name)),
            )
            .chain(names.map(|name| (name.clone(), Origin::Name))),
    );
    let scopes = selection.scopes.clone();
    let read = read(
        &mut selection,
        &scopes,
        &words,
        request.sessions,
        &mut notes,
    )?;
    let holders = Holders::count(&read, &words);
    let weights = holders.weights();
    let set = |list: &[String]| words.set(list.iter().map(String::as_str));
    let subjects = set(&subjects.names) | (set(&subjects.words) & holders.distinctive());
    let sets = Sets {
        branch: set(&branch),
        lasting: words.set(LASTING),
        endings: set(&endings) | subjects,
        subjects,
        uses: set(&signals.dependencies),
    };
    let own = Chooser {
        read: &read,
        words: &words,
        weights: &weights,
        sets,
    };
    let mut told = Vec::new();
    let mut brief = Brief {
        served: read.iter().map(|read| read.outlines.served.len()).sum(),
        ..Brief::default()
    };
    let context = &mut brief.context;
    context.recent_memories = own.choose(true, request.own, &mut told, &mut notes)?;
    context.cross_project_learnings = own.choose(false, request.others, &mut told, &mut notes)?;
    let told = context
        .recent_memories
        .iter()
        .chain(&context.cross_project_learnings);
    let holders = |id: &str| {
        read.iter()
            .filter(|read| read.outlines.contains(id))
            .count()
    };
    brief.shared_ids = told
        .filter(|hit| holders(&hit.id) > 1)
        .map(|hit| hit.id.clone())
        .collect();
    let own_scope = selection.current.scope.as_ref();
    context.pending = read
        .iter()
        .find(|read| {
            own_scope.is_some_and(|own| own.name == read.scope.name) && read.outlines.pending > 0
        })
        .map(|read| Pending {
            count: read.outlines.pending,
            oldest: read.outlines.oldest_pending.and_then(instant),
            ids: Vec::new(),
        });
    note_locks(read.iter().map(|read| read.scope), &mut notes);
    let sessions = read.into_iter().flat_map(|read| {
        read.sessions
            .into_iter()
            .map(|session| (read.scope.name.as_str(), session))
    });
    context.recent_sessions = recent(
        sessions.collect(),
        &[&context.recent_memories, &context.cross_project_learnings],
    );
    context.project = ProjectInfo {
        name: text::line(&selection.current.name, 200),
        path: text::line(&selection.current.folder.display().to_string(), 400),
        scope: own_scope.map(|scope| scope.name.clone()),
        detected_by: selection.current.rule.clone(),
    };
    context.searched = selection.searched(StatusFilter::Approved);
    context.notes = notes;
    Ok(brief)
}

fn instant(milliseconds: i64) -> Option<String> {
    jiff::Timestamp::from_millisecond(milliseconds)
        .ok()
        .map(time::show)
}

/// Reads every scope of a selection in outline. A scope that cannot be read is named and left out; where none can, the
/// first failure is the error.
fn read<'a>(
    selection: &mut Selection,
    scopes: &'a [std::sync::Arc<Scope>],
    words: &Words,
    sessions: bool,
    notes: &mut Vec<Note>,
) -> Result<Vec<Read<'a>>, Error> {
    let mut read = Vec::with_capacity(scopes.len());
    let mut first: Option<StoreError> = None;
    for scope in scopes {
        let own = selection.current.rows_in(scope);
        let result = scope.store.full_scan(PATIENCE, |snapshot| {
            let mut outlines =
                snapshot.outlines(StatusFilter::Approved, &|text| words.find(text))?;
            let told = match sessions {
                true => {
                    let wanted = SessionQuery {
                        projects: &own.names,
                        unnamed: own.unnamed,
                        filter: StatusFilter::Approved,
                        limit: SESSIONS,
                    };
                    snapshot.recent_sessions(wanted, |_| std::mem::take(&mut outlines.members))?
                }
                false => Vec::new(),
            };
            Ok((outlines, told))
        });
        match result {
            Ok((outlines, sessions)) => read.push(Read {
                scope: scope.as_ref(),
                own,
                outlines,
                sessions,
            }),
            Err(error) => {
                selection.skipped.push(Skipped {
                    scope: scope.name.clone(),
                    reason: text::line(&error.to_string(), 300),
                });
                notes.push(Note::about(
                    NoteKind::ScopeUnavailable,
                    &scope.name,
                    text::line(&error.to_string(), 500),
                ));
                first.get_or_insert(error);
            }
        }
    }
    selection
        .scopes
        .retain(|scope| read.iter().any(|read| read.scope.name == scope.name));
    match first {
        Some(error) if read.is_empty() => Err(error.into()),
        _ => Ok(read),
    }
}

/// How many memories hold each word.
struct Holders {
    counts: Vec<usize>,
    memories: usize,
}

impl Holders {
    fn count(read: &[Read<'_>], words: &Words) -> Self {
        let mut counts = vec![0usize; words.len()];
        let mut memories = 0;
        for outline in read.iter().flat_map(|read| &read.outlines.served) {
            memories += 1;
            let mut rest = outline.matches.anywhere;
            while rest != 0 {
                if let Some(count) = counts.get_mut(rest.trailing_zeros() as usize) {
                    *count += 1;
                }
                rest &= rest - 1;
            }
        }
        Self { counts, memories }
    }

    /// What each word is worth: the rarer it is, the more; a common one nothing.
    #[expect(clippy::cast_precision_loss, reason = "counts of memories")]
    fn weights(&self) -> Vec<f64> {
        let weight = |count: &usize| {
            let share = *count as f64 / self.memories.max(1) as f64;
            let common = *count > FEW && share > COMMON_SHARE;
            if *count == 0 || common {
                0.0
            } else {
                (1.0 / share).ln_1p()
            }
        };
        self.counts.iter().map(weight).collect()
    }

    /// The words of which [`is_distinctive`] holds.
    fn distinctive(&self) -> u128 {
        let counted = (0u32..).zip(&self.counts);
        let few = counted.filter(|(_, count)| is_distinctive(**count, self.memories));
        few.fold(0, |set, (number, _)| set | 1 << number)
    }
}

struct Chooser<'a> {
    read: &'a [Read<'a>],
    words: &'a Words,
    weights: &'a [f64],
    sets: Sets,
}

impl Chooser<'_> {
    /// The project's own memories, or those of others: those about what was changed, then those that the branch names, those
    /// about what the project uses, and of its own what holds for long and the newest. `told` are the memories that are in
    /// the answer already, and what is chosen joins them.
    fn choose(
        &self,
        own: bool,
        most: usize,
        told: &mut Vec<Signature>,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<MemoryHit>, Error> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let mine: Vec<(usize, &Outline)> = self
            .read
            .iter()
            .enumerate()
            .flat_map(|(number, read)| {
                let outlines = read.outlines.served.iter();
                // A store holds few projects and many memories.
                let mut known: HashMap<(&str, &str), bool> = HashMap::default();
                outlines
                    .filter(move |outline| {
                        let names = (outline.project.as_str(), outline.alias.as_str());
                        *known
                            .entry(names)
                            .or_insert_with(|| read.own.hold(names.0, names.1))
                            == own
                    })
                    .map(move |outline| (number, outline))
            })
            .collect();
        let mut known: HashSet<(usize, RowKey)> = HashSet::default();
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        for reason in [
            Reason::Changed,
            Reason::Branch,
            Reason::Uses,
            Reason::Lasting,
        ] {
            // Near-duplicates among them are folded afterwards.
            let enough = reason.until(own, most, 0) * 2;
            if enough == 0 {
                continue;
            }
            let mut found: Vec<(f64, usize, &Outline)> = mine
                .iter()
                .filter(|(scope, outline)| !known.contains(&(*scope, outline.key)))
                .filter_map(|(scope, outline)| {
                    Some((self.score(outline, reason, own)?, *scope, *outline))
                })
                .collect();
            found.sort_by(|a, b| {
                b.0.total_cmp(&a.0)
                    .then_with(|| self.newer(a.1, a.2, b.1, b.2))
            });
            let least = found.first().map_or(0.0, |best| best.0 * reason.least(own));
            found.retain(|found| found.0 >= least);
            found.truncate(enough + 2);
            known.extend(
                found
                    .iter()
                    .map(|(_, scope, outline)| (*scope, outline.key)),
            );
            // Why is told of those alone that may be told.
            candidates.extend(found.into_iter().map(|(_, scope, outline)| Candidate {
                scope,
                outline,
                why: text::line(&self.why(outline, reason, own), 120),
                reason: Some(reason),
            }));
        }
        if own {
            let mut recent: Vec<(usize, &Outline)> = mine;
            recent.sort_by(|a, b| self.newer(a.0, a.1, b.0, b.1));
            candidates.extend(
                recent
                    .into_iter()
                    .take(most * 2 + 2)
                    .map(|(scope, outline)| Candidate {
                        scope,
                        outline,
                        why: RECENT.to_owned(),
                        reason: None,
                    }),
            );
        }
        self.records(&candidates, own, most, told, notes)
    }

    /// The words that speak for a memory, of those that the reason looks for.
    const fn found(&self, outline: &Outline, reason: Reason, own: bool) -> u128 {
        let (marks, sets) = (outline.matches, self.sets);
        match reason {
            Reason::Changed if own => marks.anywhere & sets.endings,
            Reason::Changed => marks.anywhere & sets.subjects,
            Reason::Branch => marks.anywhere & sets.branch,
            Reason::Uses => marks.anywhere & sets.uses,
            Reason::Lasting => marks.type_or_tags & sets.lasting,
        }
    }

    /// How much speaks for a memory; `None` where nothing does.
    fn score(&self, outline: &Outline, reason: Reason, own: bool) -> Option<f64> {
        let mut rest = self.found(outline, reason, own);
        if matches!(reason, Reason::Lasting) {
            return (rest != 0).then_some(1.0);
        }
        let mut score = 0.0;
        while rest != 0 {
            let number = rest.trailing_zeros();
            let weight = self
                .weights
                .get(number as usize)
                .copied()
                .unwrap_or_default();
            score += weight
                * if outline.matches.title_or_tags >> number & 1 == 1 {
                    TELLING
                } else {
                    1.0
                };
            rest &= rest - 1;
        }
        (score > 0.0).then_some(score)
    }

    /// What speaks for it, in words.
    fn why(&self, outline: &Outline, reason: Reason, own: bool) -> String {
        let found = self.found(outline, reason, own);
        if matches!(reason, Reason::Lasting) {
            let labels = self.words.told(found);
            return format!(
                "{} {}",
                labels.first().copied().unwrap_or_default(),
                reason.told()
            );
        }
        let weighty = (0u32..)
            .zip(self.weights)
            .filter(|(_, weight)| **weight > 0.0);
        let telling = weighty.fold(0, |set, (number, _)| set | (found & 1 << number));
        let mut words = self.words.told(telling);
        words.truncate(4);
        format!("{}: {}", reason.told(), words.join(", "))
    }

    /// Newest first, then by scope and id, so that the order is total.
    fn newer(
        &self,
        scope: usize,
        outline: &Outline,
        other_scope: usize,
        other: &Outline,
    ) -> std::cmp::Ordering {
        let name = |scope: usize| {
            self.read
                .get(scope)
                .map_or("", |read| read.scope.name.as_str())
        };
        other
            .created
            .cmp(&outline.created)
            .then_with(|| name(scope).cmp(name(other_scope)))
            .then_with(|| outline.id.cmp(&other.id))
    }

    /// Reads records in order until there are enough. The store says once more whether each may be told.
    fn records(
        &self,
        candidates: &[Candidate<'_>],
        own: bool,
        most: usize,
        told: &mut Vec<Signature>,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<MemoryHit>, Error> {
        let mut records = std::collections::HashMap::new();
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
            let found = read
                .scope
                .store
                .snapshot_with_timeout(PATIENCE, |snapshot| {
                    snapshot.memories(&wanted, StatusFilter::Approved)
                });
            match found {
                Ok(found) => {
                    records.extend(found.into_iter().map(|(id, memory)| ((number, id), memory)))
                }
                Err(error) if self.read.len() > 1 => {
                    notes.push(Note::about(
                        NoteKind::ScopeUnavailable,
                        &read.scope.name,
                        text::line(&error.to_string(), 500),
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut hits: Vec<MemoryHit> = Vec::new();
        let mut asked = None;
        let mut until = most;
        // Where there is room left at the end, what a signal found beyond its share is told too.
        let shared = candidates.iter().map(|candidate| (candidate, true));
        for (candidate, is_shared) in
            shared.chain(candidates.iter().map(|candidate| (candidate, false)))
        {
            if !is_shared {
                until = most;
            } else if asked != candidate.reason || asked.is_none() {
                asked = candidate.reason;
                until = asked
                    .map_or(most, |reason| reason.until(own, most, hits.len()))
                    .min(most);
            }
            let (Some(read), Some(memory)) = (
                self.read.get(candidate.scope),
                records.get(&(candidate.scope, candidate.outline.id.clone())),
            ) else {
                continue;
            };
            let same = |hit: &MemoryHit| {
                hit.id == memory.id || fold_name(&hit.title) == fold_name(&memory.title)
            };
            if hits.len() >= until || hits.iter().any(same) {
                continue;
            }
            let signature = Signature::of(memory);
            if told.iter().any(|known| known.is_near(&signature)) {
                continue;
            }
            let mut hit = answer::hit(memory, &read.scope.name, Detail::Concise);
            // Its successor is one that may not be told.
            hit.superseded_by = None;
            hit.why = Some(candidate.why.clone());
            told.push(signature);
            hits.push(hit);
        }
        Ok(hits)
    }
}
