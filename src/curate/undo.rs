//! Undoes decisions. Nothing is removed from a log: the decision that counted before is appended
//! again, with its own batch name, so that a further undo goes further back. A row of a store gets
//! its old values back.

use std::sync::Arc;

use ack_api::decision::{Decision, DecisionPlace, Verdict};

use jiff::Timestamp;

use super::in_store::{self, Batch};
use super::outcome::WriteOutcome;
use super::side_effects::SideEffects;
use super::{Candidate, CurateError, ReviewSession, log};
use crate::scope::Scope;

/// The decisions of a batch that still count, by scope, and the steps that undo them.
#[derive(Debug)]
pub struct Undo {
    /// The batch.
    pub batch: String,
    /// Who decided: `human:NAME` or `process:NAME`.
    pub actor: Option<String>,
    /// The steps, one per scope.
    pub steps: Vec<UndoStep>,
}

/// What to undo in one scope.
#[derive(Debug)]
pub struct UndoStep {
    /// The scope.
    pub scope: Arc<Scope>,
    /// The new decisions.
    pub decisions: Vec<Decision>,
    /// The decisions in its store to undo; `None` for decisions in its log.
    in_store: Option<Batch>,
}

impl AsRef<Scope> for UndoStep {
    fn as_ref(&self) -> &Scope {
        &self.scope
    }
}

impl UndoStep {
    /// Writes the step.
    ///
    /// # Errors
    /// The log or the store cannot be written.
    pub fn write(&self, session: &ReviewSession) -> Result<WriteOutcome, CurateError> {
        match &self.in_store {
            Some(batch) => in_store::undo_batch(&self.scope, batch, &self.decisions, session),
            None => {
                let side_effects = log::append_again(&self.scope, &self.decisions)?;
                Ok(self.again(side_effects))
            }
        }
    }

    /// What [`UndoStep::write`] would do. Writes nothing.
    ///
    /// # Errors
    /// The store or the log cannot be read.
    pub fn dry_run(&self) -> Result<WriteOutcome, CurateError> {
        match &self.in_store {
            Some(batch) => in_store::dry_run_undo(&self.scope, batch, &self.decisions),
            None => {
                let side_effects = log::side_effects_of(&self.scope, &self.decisions)?;
                Ok(self.again(side_effects))
            }
        }
    }

    /// The outcome in a log, where no decision is left out.
    fn again(&self, side_effects: SideEffects) -> WriteOutcome {
        WriteOutcome {
            count: self.decisions.len(),
            changed: Vec::new(),
            side_effects,
        }
    }
}

/// A batch that can be undone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct UndoableBatch {
    /// When it was written, as far as that is known.
    time: Option<Timestamp>,
    name: String,
    actor: Option<String>,
}

impl UndoableBatch {
    /// The batch of the newest decision about a memory. `lines` are all about that memory: an undo
    /// appends a decision again, with its batch and a later time.
    fn of(decision: &Decision, lines: &[Decision]) -> Option<Self> {
        let first = lines.iter().find(|line| line.batch == decision.batch);
        Some(Self {
            time: first.unwrap_or(decision).time.parse().ok(),
            name: decision.batch.clone()?,
            actor: Some(decision.actor.clone()),
        })
    }

    /// Whether this person made it, at a terminal or with a script.
    fn is_by(&self, person: &str) -> bool {
        self.actor
            .as_ref()
            .is_none_or(|actor| actor.split_once(':').map_or("", |(_, name)| name) == person)
    }
}

/// Prepares to undo a batch, or the newest one of `person` that still counts if no name is given.
///
/// # Errors
/// No batch matches, or a log or a store cannot be read.
pub fn prepare(
    scopes: &[Arc<Scope>],
    batch: Option<&str>,
    person: &str,
    session: &ReviewSession,
) -> Result<Undo, CurateError> {
    let mut batches: Vec<UndoableBatch> = Vec::new();
    let (mut logs, mut stores) = (Vec::new(), Vec::new());
    for scope in scopes {
        let decisions = scope.store.decisions()?;
        let counting = |last: &&Decision| last.verdict != Verdict::Withdraw;
        let newest = decisions.newest().filter(counting);
        batches.extend(
            newest.filter_map(|newest| UndoableBatch::of(newest, decisions.about(&newest.id))),
        );
        logs.push((scope, decisions));
        if scope.manifest.decisions == DecisionPlace::Store && scope.store.path().is_file() {
            for batch in in_store::batches(scope)? {
                batches.push(UndoableBatch {
                    time: batch.time.as_deref().and_then(|time| time.parse().ok()),
                    name: batch.name.clone(),
                    actor: batch.actor.clone(),
                });
                stores.push((scope, batch));
            }
        }
    }
    let found = match batch {
        Some(batch) => batches.into_iter().find(|batches| batches.name == batch),
        None => {
            let own_batch = batches.iter().filter(|batches| batches.is_by(person)).max();
            let others = batches.iter().max();
            match (own_batch, others) {
                (None, Some(others)) => {
                    return Err(CurateError::OthersOnly {
                        batch: others.name.clone(),
                        actor: others.actor.clone().unwrap_or_default(),
                    });
                }
                (own_batch, _) => own_batch.cloned(),
            }
        }
    };
    let found = found.ok_or_else(|| CurateError::NothingToUndo {
        batch: batch.map(str::to_owned),
    })?;
    let mut undo = Undo {
        batch: found.name,
        actor: found.actor,
        steps: Vec::new(),
    };
    for (scope, decisions) in logs {
        let mut restored: Vec<Decision> = decisions
            .newest()
            .filter(|last| last.batch.as_ref() == Some(&undo.batch))
            .map(|last| {
                let lines = decisions.about(&last.id);
                let first = lines.iter().position(|line| line.batch == last.batch);
                let earlier = first.and_then(|first| lines.get(first.checked_sub(1)?));
                restore(last, earlier, session, &undo.batch)
            })
            .collect();
        restored.sort_by(|a, b| a.id.cmp(&b.id));
        if !restored.is_empty() {
            undo.steps.push(UndoStep {
                scope: Arc::clone(scope),
                decisions: restored,
                in_store: None,
            });
        }
    }
    for (scope, batch) in stores {
        if batch.name == undo.batch {
            undo.steps.push(UndoStep {
                decisions: withdrawals(scope, &batch, session)?,
                scope: Arc::clone(scope),
                in_store: Some(batch),
            });
        }
    }
    Ok(undo)
}

/// The decisions that record an undo in a store.
fn withdrawals(
    scope: &Arc<Scope>,
    batch: &Batch,
    session: &ReviewSession,
) -> Result<Vec<Decision>, CurateError> {
    let read = scope.store.snapshot(|snapshot| {
        let ids = batch.ids.iter();
        ids.map(|id| snapshot.curated(id))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let decisions = read.into_iter().flatten().map(|curated| {
        let scope = Arc::clone(scope);
        let candidate = Candidate { scope, curated };
        let mut decision = session.decision(&candidate, Verdict::Withdraw);
        decision.reason = Some(format!("undo of {}", batch.name));
        decision
    });
    Ok(decisions.collect())
}

/// The earlier decision, as a new one.
fn restore(
    last: &Decision,
    earlier: Option<&Decision>,
    session: &ReviewSession,
    batch: &str,
) -> Decision {
    let mut decision = earlier.cloned().unwrap_or_else(|| Decision {
        verdict: Verdict::Withdraw,
        edit: None,
        into: None,
        until: None,
        despite: None,
        batch: Some(session.batch.clone()),
        ..last.clone()
    });
    decision.reason = Some(format!("undo of {batch}"));
    decision.actor.clone_from(&session.actor);
    decision.time = ack_api::time::to_rfc3339(session.now);
    decision
}
