//! What a decision changes about other memories. When a memory is rejected or replaced, an approved
//! one that it replaced is served again, and one that waited waits again. A note with the text of a
//! rejected one is rejected too.

use std::collections::{BTreeMap, HashMap, HashSet};

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::{MAX_SUCCESSORS, Memory, Status, StatusFilter, Successor, is_superseded};
use ack_api::text;
use ack_store::{Snapshot, StoreError};
use serde::Serialize;

use super::Candidate;
use ack_service::scope::Scope;
use ack_service::short_id::ShortIds;

/// A memory, in a form for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    pub id: String,
    pub scope: String,
    pub title: String,
}

impl About {
    /// A memory with a decision.
    pub fn of(candidate: &Candidate) -> Self {
        Self::in_scope(&candidate.scope.name, candidate.memory())
    }

    fn in_scope(scope: &str, memory: &Memory) -> Self {
        Self {
            id: memory.id.clone(),
            scope: scope.to_owned(),
            title: memory.title.clone(),
        }
    }
}

/// Memories that change because of a decision about another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SideEffects {
    /// Agents see them again.
    pub served_again: Vec<About>,
    /// They wait for review again.
    pub wait_again: Vec<About>,
    /// They are rejected too, because they have the text of a rejected note.
    pub also_rejected: Vec<About>,
}

impl SideEffects {
    /// Adds those of another scope.
    pub fn add(&mut self, other: Self) {
        self.served_again.extend(other.served_again);
        self.wait_again.extend(other.wait_again);
        self.also_rejected.extend(other.also_rejected);
    }

    /// One line for each: `served again: obs-7  Use pnpm`.
    pub fn lines(&self, short: &ShortIds) -> Vec<String> {
        let kinds = [
            ("served again", &self.served_again),
            ("waits again", &self.wait_again),
            ("also rejected, the same text", &self.also_rejected),
        ];
        let lines = kinds.into_iter().flat_map(|(what, memories)| {
            memories.iter().map(move |About { id, title, .. }| {
                let id = short.shortest(id);
                format!("{what}: {id}  {}", text::line(title, 80))
            })
        });
        lines.collect()
    }

    /// `1 is served again, 2 wait again`; `None` if nothing else changes.
    pub fn summary(&self) -> Option<String> {
        let served = match self.served_again.len() {
            0 => None,
            1 => Some("1 is served again".to_owned()),
            many => Some(format!("{many} are served again")),
        };
        let waiting = match self.wait_again.len() {
            0 => None,
            1 => Some("1 waits again".to_owned()),
            many => Some(format!("{many} wait again")),
        };
        let rejected = match self.also_rejected.len() {
            0 => None,
            1 => Some("1 with the same text is rejected too".to_owned()),
            many => Some(format!("{many} with the same text are rejected too")),
        };
        let counts: Vec<String> = [served, waiting, rejected].into_iter().flatten().collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}

/// What else changes with these decisions, which are not written yet. `released` are those that
/// only follow from a rejection.
///
/// # Errors
/// The store cannot be read.
pub fn of_decisions(
    scope: &Scope,
    snapshot: &Snapshot<'_>,
    decisions: &[Decision],
    released: &[Decision],
) -> Result<SideEffects, StoreError> {
    let mut side_effects = SideEffects {
        wait_again: waiting(scope, snapshot, released)?,
        ..SideEffects::default()
    };
    let may_leave = |decision: &&Decision| match decision.verdict {
        Verdict::Withdraw => true,
        verdict => !verdict.status().is_none_or(Status::is_served),
    };
    let leaving = decisions.iter().filter(may_leave);
    let leaving: HashSet<&str> = leaving
        .filter(|decision| decision.was.is_served())
        .map(|decision| decision.id.as_str())
        .collect();
    if leaving.is_empty() && !snapshot.layout.profile.is_notes() {
        return Ok(side_effects);
    }
    let decided: HashSet<&str> = decisions.iter().map(|it| it.id.as_str()).collect();
    let after = snapshot.with_decisions(snapshot.decisions.followed_by(decisions));
    side_effects.add(of_equal_notes(scope, snapshot, &after, &decided)?);
    let older = snapshot.replaced_by(&leaving)?.into_iter();
    let older = older.filter(|older| !decided.contains(older.id.as_str()));
    let is_back = |memory: &Memory| -> Result<bool, StoreError> {
        Ok(!is_served(memory, &|id| snapshot.by_id(id))?
            && is_served(memory, &|id| after.by_id(id))?)
    };
    side_effects
        .served_again
        .extend(of_these(scope, older, is_back)?);
    Ok(side_effects)
}

/// What happens to notes with the same text as those that are decided about.
///
/// # Errors
/// The store cannot be read.
pub fn of_equal_notes(
    scope: &Scope,
    before: &Snapshot<'_>,
    after: &Snapshot<'_>,
    decided: &HashSet<&str>,
) -> Result<SideEffects, StoreError> {
    let mut side_effects = SideEffects::default();
    if !before.layout.profile.is_notes() {
        return Ok(side_effects);
    }
    let mut equal = before.decided_as(decided)?;
    equal.append(&mut after.decided_as(decided)?);
    for id in equal.iter().filter(|id| !decided.contains(id.as_str())) {
        let (Some(memory), Some(then)) = (before.by_id(id)?, after.by_id(id)?) else {
            continue;
        };
        let changed = match then.status {
            status if status == memory.status => continue,
            Status::Rejected => &mut side_effects.also_rejected,
            Status::Staging => &mut side_effects.wait_again,
            Status::Approved | Status::Promoted => &mut side_effects.served_again,
        };
        changed.push(About::in_scope(&scope.name, &memory));
    }
    Ok(side_effects)
}

/// What else changes with an undo. `changed` are the memories that it is about, as they are before,
/// `after` as they are then, and `released` the decisions that only follow from it.
///
/// # Errors
/// The store cannot be read.
pub fn of_undo(
    scope: &Scope,
    snapshot: &Snapshot<'_>,
    after: &BTreeMap<String, Memory>,
    released: &[Decision],
) -> Result<SideEffects, StoreError> {
    let changed: HashSet<&str> = after.keys().map(String::as_str).collect();
    let mut concerned = snapshot.replaced_by(&changed)?;
    concerned.retain(|memory| !changed.contains(memory.id.as_str()));
    for id in after.keys() {
        concerned.extend(snapshot.by_id(id)?);
    }
    let read_after = |id: &str| match after.get(id) {
        Some(memory) => Ok(Some(memory.clone())),
        None => snapshot.by_id(id),
    };
    let mut wait_again: Vec<About> = concerned
        .iter()
        .filter(|before| {
            let then = after.get(&before.id);
            before.status != Status::Staging
                && then.is_some_and(|then| then.status == Status::Staging)
        })
        .map(|memory| About::in_scope(&scope.name, memory))
        .collect();
    wait_again.extend(waiting(scope, snapshot, released)?);
    let is_back = |memory: &Memory| -> Result<bool, StoreError> {
        let Some(then) = read_after(&memory.id)? else {
            return Ok(false);
        };
        Ok(!is_served(memory, &|id| snapshot.by_id(id))? && is_served(&then, &read_after)?)
    };
    Ok(SideEffects {
        served_again: of_these(scope, concerned.into_iter(), is_back)?,
        wait_again,
        ..SideEffects::default()
    })
}

/// The memories of these decisions.
fn waiting(
    scope: &Scope,
    snapshot: &Snapshot<'_>,
    released: &[Decision],
) -> Result<Vec<About>, StoreError> {
    let mut waiting = Vec::new();
    for decision in released {
        let memory = snapshot.by_id(&decision.id)?;
        waiting.extend(memory.map(|memory| About::in_scope(&scope.name, &memory)));
    }
    Ok(waiting)
}

fn of_these(
    scope: &Scope,
    memories: impl Iterator<Item = Memory>,
    is_back: impl Fn(&Memory) -> Result<bool, StoreError>,
) -> Result<Vec<About>, StoreError> {
    let mut back = Vec::new();
    for memory in memories {
        if is_back(&memory)? {
            back.push(About::in_scope(&scope.name, &memory));
        }
    }
    Ok(back)
}

/// Whether agents see a memory: it is approved, and nothing that they see replaces it.
fn is_served(
    memory: &Memory,
    read: &dyn Fn(&str) -> Result<Option<Memory>, StoreError>,
) -> Result<bool, StoreError> {
    if !memory.status.is_served() {
        return Ok(false);
    }
    let mut chain: HashMap<String, Option<Memory>> = HashMap::new();
    let mut next = memory.superseded_by.clone();
    while let Some(id) = next.take()
        && chain.len() < MAX_SUCCESSORS
        && !chain.contains_key(&id)
    {
        let found = read(&id)?;
        next = found.as_ref().and_then(|found| found.superseded_by.clone());
        chain.insert(id, found);
    }
    let find = |id: &str| match chain.get(id) {
        Some(Some(found)) if found.status == Status::Rejected => Successor::Rejected,
        Some(Some(found)) => Successor::Present {
            status: found.status,
            next: found.superseded_by.as_deref(),
        },
        _ => Successor::Missing,
    };
    let first = memory
        .superseded_by
        .as_deref()
        .filter(|id| *id != memory.id);
    Ok(!is_superseded(
        &memory.id,
        first,
        StatusFilter::Approved,
        find,
    ))
}
