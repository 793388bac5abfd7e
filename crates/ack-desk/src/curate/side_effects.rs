//! What a decision changes about other memories. When a memory is rejected or replaced, an approved
//! one that it replaced is served again, and one that waited waits again. A note with the text of a
//! rejected one is rejected too.

use std::collections::{HashMap, HashSet};

use ack_api::decision::{Decision, Verdict};
use ack_api::memory::{MAX_SUCCESSORS, Memory, Status, StatusFilter, is_superseded};
use ack_api::number::verb;
use ack_api::text;
use ack_store::{Snapshot, StoreError};
use serde::Serialize;

use super::Candidate;
use ack_service::scope::Scope;
use ack_service::short_id::ShortIds;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    pub id: String,
    pub scope: String,
    pub title: String,
}

impl About {
    pub fn of(candidate: &Candidate) -> Self {
        Self::in_scope(&candidate.scope.name, candidate.memory())
    }

    fn in_scope(scope: &str, memory: &Memory) -> Self {
        Self { id: memory.id.clone(), scope: scope.to_owned(), title: memory.title.clone() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SideEffects {
    pub served_again: Vec<About>,
    pub wait_again: Vec<About>,
    /// They are rejected too, because they have the text of a rejected note.
    pub also_rejected: Vec<About>,
}

impl SideEffects {
    pub fn add(&mut self, other: Self) {
        self.served_again.extend(other.served_again);
        self.wait_again.extend(other.wait_again);
        self.also_rejected.extend(other.also_rejected);
    }

    /// One line for each: `served again: obs-7  Use pnpm`.
    pub fn lines(&self, short: &ShortIds) -> Vec<String> {
        let kinds = [
            ("served again", &self.served_again),
            ("unreviewed again", &self.wait_again),
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

    /// `1 is served again, 2 are unreviewed again`; `None` if nothing else changes.
    pub fn summary(&self) -> Option<String> {
        let said = [
            (&self.served_again, "", "served again"),
            (&self.wait_again, "", "unreviewed again"),
            (&self.also_rejected, "with the same text ", "rejected too"),
        ];
        let counts = said.into_iter().filter(|(about, ..)| !about.is_empty());
        let counts = counts.map(|(about, which, what)| {
            let is = verb(about.len() as u64, "is", "are");
            format!("{} {which}{is} {what}", about.len())
        });
        let counts: Vec<String> = counts.collect();
        (!counts.is_empty()).then(|| counts.join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Served,
    /// Approved, and a served one replaces it.
    Replaced,
    Waiting,
    Rejected,
}

/// What else changes with decisions that are not written yet. `released` are those that only follow
/// from them. For an undo, its own memories are included.
pub fn of_decisions(
    scope: &Scope,
    before: &Snapshot<'_>,
    decisions: &[Decision],
    released: &[Decision],
    is_undo: bool,
) -> Result<SideEffects, StoreError> {
    let decided: HashSet<&str> = decisions.iter().map(|it| it.id.as_str()).collect();
    let is_notes = before.layout.profile.is_notes();
    let mut leaving = HashSet::new();
    for Decision { id, .. } in decisions.iter().filter(|decision| may_leave(decision)) {
        if before.by_id(id)?.is_some_and(|memory| memory.status.is_served()) {
            leaving.insert(id.as_str());
        }
    }
    if leaving.is_empty() && released.is_empty() && !is_notes && !is_undo {
        // So it is for most of what waits. The log need not be copied.
        return Ok(SideEffects::default());
    }
    let all = [decisions, released].concat();
    let after = before.with_decisions(before.decisions.followed_by(&all));
    let mut concerned: Vec<String> = Vec::new();
    if !leaving.is_empty() {
        concerned.extend(before.replaced_by(&leaving)?.into_iter().map(|memory| memory.id));
    }
    if is_notes {
        concerned.extend(before.decided_as(&decided)?);
        concerned.extend(after.decided_as(&decided)?);
    }
    concerned.extend(released.iter().map(|decision| decision.id.clone()));
    concerned.retain(|id| !decided.contains(id.as_str()));
    if is_undo {
        concerned.extend(decided.iter().map(|id| (*id).to_owned()));
    }
    concerned.sort();
    concerned.dedup();

    let mut side_effects = SideEffects::default();
    for id in &concerned {
        let (Some(memory), Some(then)) = (before.by_id(id)?, after.by_id(id)?) else {
            continue;
        };
        let standing = standing(&then, &after)?;
        let changed = match standing {
            _ if standing == self::standing(&memory, before)? => continue,
            Standing::Served => &mut side_effects.served_again,
            Standing::Waiting => &mut side_effects.wait_again,
            Standing::Rejected if !decided.contains(id.as_str()) => &mut side_effects.also_rejected,
            Standing::Replaced | Standing::Rejected => continue,
        };
        changed.push(About::in_scope(&scope.name, &memory));
    }
    Ok(side_effects)
}

/// Whether agents may no longer see a memory after a decision.
fn may_leave(decision: &Decision) -> bool {
    decision.verdict == Verdict::Withdraw
        || decision.status().is_some_and(|status| !status.is_served())
}

fn standing(memory: &Memory, snapshot: &Snapshot<'_>) -> Result<Standing, StoreError> {
    match memory.status {
        Status::Staging => return Ok(Standing::Waiting),
        Status::Rejected => return Ok(Standing::Rejected),
        Status::Approved | Status::Promoted => {}
    }
    let mut chain: HashMap<String, Option<Memory>> = HashMap::new();
    let mut next = memory.superseded_by.clone();
    while let Some(id) = next.take()
        && chain.len() < MAX_SUCCESSORS
        && !chain.contains_key(&id)
    {
        let found = snapshot.by_id(&id)?;
        next = found.as_ref().and_then(|found| found.superseded_by.clone());
        chain.insert(id, found);
    }
    let find = |id: &str| {
        let found = chain.get(id)?.as_ref()?;
        Some((found.status, found.superseded_by.as_deref()))
    };
    let first = memory.superseded_by.as_deref().filter(|id| *id != memory.id);
    let own = (memory.status, first);
    let is_replaced = is_superseded(&memory.id, own, StatusFilter::Approved, find);
    Ok(if is_replaced { Standing::Replaced } else { Standing::Served })
}
