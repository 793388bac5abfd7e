//! The second list of the queue: approved memories, those that may be out of date first, each with
//! the reason that answers show.
//!
//! A reviewer can wait longer than an agent, so this also checks whether the files that a memory
//! cites changed a lot.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_api::memory::{Memory, StatusFilter, is_superseded};
use ack_api::text;
use ack_store::read::CuratedMemory;
use ack_store::{Access, READ_TIMEOUT};

use super::find::Filter;
use super::{Candidate, CurateError};
use ack_service::scope::Scope;
use ack_service::stale::{MARK_SEPARATOR, Staleness, is_dismissed};

/// A file with this many commits counts as changed a lot.
const MANY_COMMITS: u32 = 10;
/// The time limit for reading the history, for all memories together.
const HISTORY_TIME: Duration = Duration::from_secs(2);
const MAX_DISMISSED_MARKS_CHARS: usize = 400;

#[derive(Debug, Clone)]
pub struct ApprovedMemory {
    pub candidate: Candidate,
    /// Why it may be out of date, which answers show as `stale`.
    pub stale: Option<String>,
}

/// Those of the approved memories that may be out of date.
pub fn stale(
    scopes: &[Arc<Scope>],
    filter: &Filter,
    staleness: &Staleness,
) -> Result<Vec<ApprovedMemory>, CurateError> {
    let mut found = approved(scopes, filter, staleness)?;
    found.retain(|memory| memory.stale.is_some());
    Ok(found)
}

/// The approved memories that match a filter and that agents see: first those that may be out of
/// date, the oldest first, then the others, the last decided first.
pub fn approved(
    scopes: &[Arc<Scope>],
    filter: &Filter,
    staleness: &Staleness,
) -> Result<Vec<ApprovedMemory>, CurateError> {
    let mut all = Vec::new();
    for scope in scopes {
        // A disturbed snapshot is read again, so pass results on only after it is complete.
        let read = scope.store.read(Access::FullScan, READ_TIMEOUT, |snapshot| {
            let mut approved = Vec::new();
            snapshot.visit_curated(&|status| status.is_served(), &mut |curated| {
                approved.push(curated)
            })?;
            let hidden = superseded(&approved);
            let mut marked = Vec::new();
            for curated in approved {
                if hidden.contains(&curated.memory.id) || !filter.allows(&curated) {
                    continue;
                }
                let others = snapshot.contradictions(&curated.memory.id, StatusFilter::Approved)?;
                let reason = staleness.of(&curated.memory, scope, &others);
                marked.push((curated, reason));
            }
            Ok(marked)
        })?;
        all.extend(read.into_iter().map(|(curated, stale)| {
            let candidate = Candidate::new(scope, curated);
            ApprovedMemory { candidate, stale }
        }));
    }
    check_history(&mut all, staleness);
    all.sort_by_key(|ApprovedMemory { candidate, stale }| {
        let Memory { created_at, reviewed_at, .. } = candidate.memory();
        match stale {
            Some(_) => (false, created_at.is_none(), *created_at, None),
            None => (true, false, None, Some(Reverse(*reviewed_at))),
        }
    });
    Ok(all)
}

/// The ids of memories that agents do not see because an approved one of them replaces them.
pub fn superseded(approved: &[CuratedMemory]) -> HashSet<String> {
    let memories = || approved.iter().map(|curated| &curated.memory);
    let known: HashMap<&str, &Memory> =
        memories().map(|memory| (memory.id.as_str(), memory)).collect();
    let find = |id: &str| {
        let memory = known.get(id)?;
        Some((memory.status, memory.superseded_by.as_deref()))
    };
    let hidden = memories().filter(|memory| {
        let own = (memory.status, memory.superseded_by.as_deref());
        is_superseded(&memory.id, own, StatusFilter::Approved, find)
    });
    hidden.map(|memory| memory.id.clone()).collect()
}

/// Why one approved memory may be out of date.
pub fn reason(candidate: &Candidate, staleness: &Staleness) -> Result<Option<String>, CurateError> {
    let memory = candidate.memory();
    if !memory.status.is_served() {
        return Ok(None);
    }
    let store = &candidate.scope.store;
    let others =
        store.snapshot(|snapshot| snapshot.contradictions(&memory.id, StatusFilter::Approved))?;
    let stale = staleness.of(memory, &candidate.scope, &others);
    let mut found = [ApprovedMemory { candidate: candidate.clone(), stale }];
    check_history(&mut found, staleness);
    let [ApprovedMemory { stale, .. }] = found;
    Ok(stale)
}

/// What a decision to keep a memory records: this mark, and the earlier marks it was kept despite.
pub fn marks_kept_despite(memory: &Memory, reason: &str) -> String {
    let before = memory.kept_despite.as_deref().unwrap_or_default();
    let all = if before.is_empty() || is_dismissed(memory, reason) {
        reason.to_owned()
    } else {
        format!("{before}{MARK_SEPARATOR}{reason}")
    };
    // A truncated mark would match nothing.
    if all.chars().count() > MAX_DISMISSED_MARKS_CHARS { reason.to_owned() } else { all }
}

/// Checks the history for memories that have no mark yet.
fn check_history(memories: &mut [ApprovedMemory], staleness: &Staleness) {
    let mut end = None;
    for ApprovedMemory { candidate, stale } in memories {
        let memory = candidate.memory();
        if stale.is_none() && staleness.is_of_project(memory, &candidate.scope) {
            let end = *end.get_or_insert_with(|| Instant::now() + HISTORY_TIME);
            let mark = many_commits(memory, staleness, end);
            *stale = mark.filter(|mark| !is_dismissed(memory, mark));
        }
    }
}

/// The mark of a memory whose files changed a lot, by the history, which is read until `end`.
fn many_commits(memory: &Memory, staleness: &Staleness, end: Instant) -> Option<String> {
    let tree = staleness.tree()?;
    // The reviewer knew what had changed until then.
    let since = memory.reviewed_at.or(memory.updated_at).or(memory.created_at)?;
    if memory.files.is_empty() || Instant::now() >= end {
        return None;
    }
    let commits = tree.commits_since(&memory.files, since)?;
    let (count, file) = commits.into_iter().zip(&memory.files).max_by_key(|(count, _)| *count)?;
    let file = text::line(file, 80);
    (count >= MANY_COMMITS).then(|| format!("{file} changed in {count} commits since"))
}
