//! Writes the choices, scope by scope.
//!
//! Decisions are made under the lock of the log or the store, from the memories as they are at that
//! moment. A choice counts only if every memory it names is still what the curator saw; otherwise
//! the whole choice is put back.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ack_api::decision::{Decision, Edit, Verdict};
use ack_api::memory::Status;
use ack_store::read::CuratedMemory;

use super::Desk;
use super::choice::Choice;
use super::effective::{key, replaced_by};
use super::queue::{ItemState, QueueItem};
use crate::curate::side_effects::{About, SideEffects};
use crate::curate::stale::ApprovedMemory;
use crate::curate::{Candidate, CurateError, ReviewSession, by_scope, log, merge_edits};
use ack_service::scope::Scope;

#[derive(Debug, Default)]
pub struct ReviewOutcome {
    pub batch: String,
    pub written: usize,
    /// The memories that changed since they were read. Nothing was decided about them.
    pub changed: Vec<ChangedMemory>,
    pub decisions: Vec<Decision>,
    /// The memories that had a choice, and others that were decided about because of one.
    pub about: Vec<About>,
    pub side_effects: SideEffects,
}

#[derive(Debug)]
pub struct ChangedMemory {
    pub id: String,
    pub conflict: Conflict,
}

/// Why a decision was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// It changed, or the other memory that the choice names did, and it is to be decided again.
    CameBack,
    Decided,
    Gone,
    /// It was chosen among many, and contradicts an approved memory.
    HeldBack,
    /// The memory that was to take its place is rejected in the same session.
    LostSuccessor,
}

/// What happened to one memory, before `after you read it`, and to several.
const CONFLICTS: [(Conflict, &str, &str); 5] = [
    (Conflict::CameBack, "changed", "changed since you read them and came back"),
    (Conflict::Decided, "was decided by somebody else", "decided by somebody else meanwhile"),
    (Conflict::Gone, "was deleted", "deleted meanwhile"),
    (Conflict::HeldBack, "was held back", "held back for contradicting an approved memory"),
    (
        Conflict::LostSuccessor,
        "waits again, because the other memory was rejected",
        "came back because the other memory is rejected",
    ),
];

impl Conflict {
    pub fn of_one(self) -> &'static str {
        CONFLICTS.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, what, _)| *what)
    }
}

impl ReviewOutcome {
    /// What became of the memories whose decisions were not written, in one line. Empty if all were.
    pub fn conflict_text(&self) -> String {
        let counted = CONFLICTS.iter().filter_map(|(kind, _, what)| {
            let count = self.changed.iter().filter(|it| it.conflict == *kind).count();
            (count > 0).then(|| format!("{count} {what}"))
        });
        counted.collect::<Vec<_>>().join(", ")
    }
}

/// A choice for one memory, with the memories it names as they were read.
struct PlannedChoice {
    number: usize,
    choice: Choice,
    reason: Option<String>,
    item: QueueItem,
    other: Option<Candidate>,
}

impl Desk {
    /// Writes all choices. Puts back those about memories that have changed, or that someone else
    /// decided about. After an error, choices for that scope and the following ones are kept.
    pub fn write(&mut self, session: &ReviewSession) -> Result<ReviewOutcome, CurateError> {
        let mut outcome =
            ReviewOutcome { batch: session.batch.clone(), ..ReviewOutcome::default() };
        for id in self.compare_chosen() {
            outcome.changed.push(ChangedMemory { id, conflict: Conflict::HeldBack });
        }
        log::write_scopes(&self.planned_choices(), &session.batch, |scope, choices| {
            self.write_scope(scope, choices, session, &mut outcome)
        })?;
        if !outcome.changed.is_empty() {
            // What was put back may belong to another heap now.
            self.sort_into_heaps();
        }
        Ok(outcome)
    }

    /// What [`Desk::write`] would do. Writes nothing.
    pub fn dry_run(&self, session: &ReviewSession) -> Result<ReviewOutcome, CurateError> {
        let mut outcome =
            ReviewOutcome { batch: session.batch.clone(), ..ReviewOutcome::default() };
        for (scope, choices) in self.planned_choices() {
            let decisions = decisions(&choices.iter().collect::<Vec<_>>(), session)?;
            outcome.side_effects.add(log::consequences(&scope, &decisions, false)?.1);
            outcome.about.extend(about(&choices, &decisions));
            outcome.written += decisions.len();
            outcome.decisions.extend(decisions);
        }
        Ok(outcome)
    }

    fn write_scope(
        &mut self,
        scope: &Scope,
        choices: &[PlannedChoice],
        session: &ReviewSession,
        outcome: &mut ReviewOutcome,
    ) -> Result<(), CurateError> {
        let both = choices.iter().flat_map(PlannedChoice::both);
        let ids: Vec<&str> = both.map(|curated| curated.memory.id.as_str()).collect();
        let (mut broken, mut made) = (HashMap::new(), 0);
        let written = log::append(scope, &ids, false, |now| {
            let (unchanged, other): (Vec<&PlannedChoice>, Vec<&PlannedChoice>) =
                choices.iter().partition(|planned| planned.is_unchanged(now));
            broken.extend(other.iter().map(|planned| (planned.number, Conflict::CameBack)));
            let decisions = decisions(&unchanged, session)?;
            made = decisions.len();
            let decided: HashSet<&str> = decisions.iter().map(|it| it.id.as_str()).collect();
            let left_out = unchanged.iter().filter(|planned| !decided.contains(planned.id()));
            broken.extend(left_out.map(|planned| (planned.number, Conflict::LostSuccessor)));
            Ok(decisions)
        })?;
        // Without those that only follow from them.
        outcome.written += made;
        outcome.about.extend(about(choices, &written.decisions));
        outcome.decisions.extend(written.decisions);
        outcome.side_effects.add(written.side_effects);
        self.forget(&choices.iter().map(|planned| planned.number).collect());
        for planned in choices {
            self.update_item(planned, broken.get(&planned.number).copied(), outcome);
        }
        self.list_approved(choices);
        Ok(())
    }

    /// Adds those that agents see now to the approved memories.
    fn list_approved(&mut self, choices: &[PlannedChoice]) {
        let Some(first) = choices.first() else { return };
        let numbers: Vec<usize> = choices.iter().map(|planned| planned.number).collect();
        let saved = self.items_of(&numbers).filter(|item| item.saved.is_some());
        let saved = saved.map(|item| item.memory().id.as_str());
        let mut now = present(&first.item.candidate.scope, saved);
        now.retain(|candidate| candidate.memory().status.is_served());
        let items = now
            .into_iter()
            .map(|candidate| QueueItem::approved(ApprovedMemory { candidate, stale: None }));
        self.add_items(items.collect());
    }

    fn planned_choices(&self) -> Vec<(Arc<Scope>, Vec<PlannedChoice>)> {
        let picks =
            self.choices.iter().flat_map(|made| made.picks.iter().map(move |it| (made, it)));
        let planned = picks.filter_map(|(made, pick)| {
            let item = self.items.get(pick.number)?;
            let planned = PlannedChoice {
                number: pick.number,
                choice: made.choice.clone(),
                reason: made.reason.clone(),
                item: item.clone(),
                other: pick.other.clone(),
            };
            Some((&item.candidate.scope, planned))
        });
        by_scope(planned).map(|(scope, planned)| (Arc::clone(scope), planned)).collect()
    }

    /// Marks what was written and puts the rest back in its present state.
    fn update_item(
        &mut self,
        planned: &PlannedChoice,
        conflict: Option<Conflict>,
        outcome: &mut ReviewOutcome,
    ) {
        let Some(item) = self.items.get_mut(planned.number) else {
            return;
        };
        item.state = ItemState::Written;
        let Some(conflict) = conflict else {
            item.saved = Some(planned.choice.clone());
            return;
        };
        let Candidate { scope, curated, .. } = &*planned.item.candidate;
        let now = present(scope, std::iter::once(planned.id())).pop();
        // A memory that is gone, or that someone else decided about, no longer waits.
        let conflict = match now {
            None => Conflict::Gone,
            Some(now) if now.memory().status != curated.memory.status => Conflict::Decided,
            Some(now) => {
                let is_same_text = now.curated.digest == curated.digest;
                *item = QueueItem {
                    need: item.need,
                    is_approved: item.is_approved,
                    stale: item.stale.take(),
                    group: item.group,
                    was_put_back: true,
                    ..QueueItem::new(now)
                };
                if is_same_text {
                    item.show_edited(planned.item.candidate.edit.clone());
                }
                conflict
            }
        };
        outcome.changed.push(ChangedMemory { id: planned.id().to_owned(), conflict });
    }
}

/// Memories as they are now, without those that their store no longer has.
fn present<'a>(scope: &Arc<Scope>, ids: impl Iterator<Item = &'a str>) -> Vec<Candidate> {
    let ids: Vec<&str> = ids.collect();
    let read = scope.store.snapshot(|snapshot| {
        ids.iter().map(|id| snapshot.curated(id)).collect::<Result<Vec<_>, _>>()
    });
    let found = read.unwrap_or_default().into_iter().flatten();
    found.map(|curated| Candidate::new(scope, curated)).collect()
}

impl PlannedChoice {
    fn id(&self) -> &str {
        &self.item.memory().id
    }

    /// The memories as they were read.
    fn both(&self) -> impl Iterator<Item = &CuratedMemory> {
        let both = std::iter::once(&*self.item.read).chain(&self.other);
        both.map(|candidate| &candidate.curated)
    }

    /// Whether all of them are unchanged since they were read.
    fn is_unchanged(&self, now: &HashMap<String, CuratedMemory>) -> bool {
        self.both().all(|read| {
            let now = now.get(&read.memory.id);
            now.is_some_and(|now| now.digest == read.digest && now.memory == read.memory)
        })
    }
}

/// The memories with a choice, and the others that were decided about because of one.
fn about(choices: &[PlannedChoice], decisions: &[Decision]) -> Vec<About> {
    let decided: HashSet<&str> = decisions.iter().map(|it| it.id.as_str()).collect();
    let mut seen: HashSet<&str> = choices.iter().map(PlannedChoice::id).collect();
    let mut about = Vec::new();
    for planned in choices {
        about.push(About::of(&planned.item.candidate));
        let other = planned.other.iter().filter(|other| {
            let id = other.memory().id.as_str();
            decided.contains(id) && seen.insert(id)
        });
        about.extend(other.map(About::of));
    }
    about
}

/// The decisions for some choices of one scope. Several may edit the same memory. Only the newest
/// line about a memory counts, so the last edit includes the earlier ones.
fn decisions(
    choices: &[&PlannedChoice],
    session: &ReviewSession,
) -> Result<Vec<Decision>, CurateError> {
    let mut all: Vec<Decision> = Vec::new();
    let held = choices.iter().map(|planned| (planned.id(), &planned.item.candidate.edit));
    let held = held.filter(|(_, edit)| **edit != Edit::default());
    let mut edits: HashMap<String, Edit> =
        held.map(|(id, edit)| (id.to_owned(), edit.clone())).collect();
    let (mut overridden, mut replaced) = (HashSet::new(), HashSet::new());
    for planned in choices.iter().rev() {
        if replaced.contains(&key(&planned.item.candidate)) {
            overridden.insert(planned.number);
        }
        replaced.extend(replaced_by(&planned.choice, planned.other.as_ref()));
    }
    for planned in choices {
        let is_overridden = overridden.contains(&planned.number);
        if is_overridden && !matches!(planned.choice, Choice::Supersede { .. }) {
            continue;
        }
        let mut other = planned.other.clone();
        if let Some(other) = &mut other
            && let Some(edit) = edits.get(&other.memory().id)
        {
            *other = other.edited(edit.clone());
        }
        let on_memory = planned.item.with_choice(&planned.choice, other.as_ref());
        for mut decision in on_memory.decisions(session)? {
            decision.reason = planned.reason.clone().or(decision.reason);
            let is_own = decision.id == planned.id();
            if is_own && is_overridden {
                // What it replaces stays replaced.
                continue;
            }
            let earlier = all.iter().position(|earlier| earlier.id == decision.id);
            if let Some(earlier) = earlier {
                decision = combine(all.remove(earlier), decision, is_own);
            }
            edits.extend(decision.edit.clone().map(|edit| (decision.id.clone(), edit)));
            all.push(decision);
        }
    }
    // Only now, because a choice that removes a memory may be followed by one that keeps it.
    for decision in &mut all {
        if !decision.verdict.keeps_text() {
            decision.edit = None;
        }
    }
    leave_out_rejected_targets(&mut all);
    follow_replaced_targets(&mut all);
    Ok(all)
}

/// One decision about a memory for two choices of a session. `is_own`: the later choice is about
/// the memory itself; otherwise another memory replaces it or was merged into it.
fn combine(mut earlier: Decision, mut later: Decision, is_own: bool) -> Decision {
    let edit = match (earlier.edit.take(), later.edit.take()) {
        // What was merged into the memory begins with what the person wrote.
        (Some(merged), Some(own)) if is_own => Some(merge_edits(merged, own)),
        (Some(before), Some(new)) => Some(merge_edits(new, before)),
        (before, new) => new.or(before),
    };
    let counts = if is_own || later.verdict == Verdict::Supersede { later } else { earlier };
    Decision { edit, ..counts }
}

/// Leaves out waiting memories that would be merged into, or replaced by, a memory that the same
/// session rejects: they go on waiting.
fn leave_out_rejected_targets(decisions: &mut Vec<Decision>) {
    let rejected = decisions.iter().filter(|it| it.verdict == Verdict::Reject);
    let rejected: HashSet<String> = rejected.map(|it| it.id.clone()).collect();
    decisions.retain(|decision| {
        let is_lost = decision.into.as_ref().is_some_and(|into| rejected.contains(into));
        decision.was != Status::Staging || !is_lost
    });
}

/// Names the memory that is left in the end, if the one that takes a place is replaced in the same
/// session before agents ever saw it.
fn follow_replaced_targets(decisions: &mut [Decision]) {
    let unseen = decisions.iter().filter(|it| !it.was.is_served());
    let next: HashMap<String, String> =
        unseen.filter_map(|replaced| Some((replaced.id.clone(), replaced.into.clone()?))).collect();
    for decision in decisions {
        let Some(target) = &mut decision.into else {
            continue;
        };
        for _ in 0..next.len() {
            let Some(further) = next.get(target).filter(|further| **further != decision.id) else {
                break;
            };
            target.clone_from(further);
        }
    }
}
