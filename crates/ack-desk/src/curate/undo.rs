//! Undoes decisions. Nothing is removed from a log: the decision that counted before is appended
//! again, with its own batch name, so that a further undo goes further back.

use std::sync::Arc;

use ack_api::decision::{Decision, Verdict};

use jiff::Timestamp;

use super::side_effects::SideEffects;
use super::{CurateError, ReviewSession, log};
use ack_service::scope::Scope;

/// The decisions of a batch that still count, by scope, and the steps that undo them.
#[derive(Debug)]
pub struct Undo {
    pub batch: String,
    /// Who decided: `human:NAME` or `process:NAME`.
    pub actor: String,
    pub steps: Vec<(Arc<Scope>, Vec<Decision>)>,
}

impl Undo {
    /// Undoes the batch, or only says what else would change.
    pub fn run(&self, dry_run: bool) -> Result<SideEffects, CurateError> {
        let mut side_effects = SideEffects::default();
        if dry_run {
            for (scope, decisions) in &self.steps {
                side_effects.add(log::consequences(scope, decisions, true)?.1);
            }
            return Ok(side_effects);
        }
        log::write_scopes(&self.steps, &self.batch, |scope, decisions| {
            let written = log::append(scope, &[], true, |_| Ok(decisions.clone()))?;
            side_effects.add(written.side_effects);
            Ok(())
        })?;
        Ok(side_effects)
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct UndoableBatch {
    time: Option<Timestamp>,
    name: String,
    actor: String,
}

impl UndoableBatch {
    /// The batch of the newest decision about a memory. `lines` are all about that memory: an undo
    /// appends a decision again, with its batch and a later time.
    fn of(decision: &Decision, lines: &[Decision]) -> Option<Self> {
        let first = lines.iter().find(|line| line.batch == decision.batch);
        Some(Self {
            time: first.unwrap_or(decision).time.parse().ok(),
            name: decision.batch.clone()?,
            actor: decision.actor.clone(),
        })
    }

    /// Whether the person with these names made it, at a terminal or with a script.
    fn is_by(&self, names: &[String]) -> bool {
        let name = self.actor.split_once(':').map(|(_, name)| name);
        name.is_some_and(|name| names.iter().any(|known| known == name))
    }
}

/// Prepares to undo a batch, or else the newest one that still counts of the person with these
/// names.
pub fn prepare(
    scopes: &[Arc<Scope>],
    batch: Option<&str>,
    names: &[String],
    session: &ReviewSession,
) -> Result<Undo, CurateError> {
    let mut batches: Vec<UndoableBatch> = Vec::new();
    let mut logs = Vec::new();
    for scope in scopes {
        let decisions = scope.store.decisions()?;
        let counting = decisions.newest().filter(|last| last.verdict != Verdict::Withdraw);
        batches.extend(counting.filter_map(|it| UndoableBatch::of(it, decisions.about(&it.id))));
        logs.push((scope, decisions));
    }
    let found = match batch {
        Some(batch) => batches.iter().find(|known| known.name == batch),
        None => batches.iter().filter(|known| known.is_by(names)).max(),
    };
    let Some(found) = found else {
        return Err(match batches.into_iter().max() {
            Some(UndoableBatch { name, actor, .. }) if batch.is_none() => {
                CurateError::OthersOnly { batch: name, actor }
            }
            _ => CurateError::NothingToUndo { batch: batch.map(str::to_owned) },
        });
    };
    let mut undo =
        Undo { batch: found.name.clone(), actor: found.actor.clone(), steps: Vec::new() };
    for (scope, decisions) in logs {
        let of_batch = decisions.newest().filter(|it| it.batch.as_ref() == Some(&undo.batch));
        let restored = of_batch.map(|last| {
            let lines = decisions.about(&last.id);
            let first = lines.iter().position(|line| line.batch == last.batch);
            let earlier = first.and_then(|first| lines.get(first.checked_sub(1)?));
            restore(last, earlier, session, &undo.batch)
        });
        let mut restored: Vec<Decision> = restored.collect();
        restored.sort_by(|a, b| a.id.cmp(&b.id));
        if !restored.is_empty() {
            undo.steps.push((Arc::clone(scope), restored));
        }
    }
    Ok(undo)
}

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
