//! Takes decisions back. Nothing is removed from a log: what counted before is said again, under
//! the name of its own batch, so that it can be taken back in turn.

use std::sync::Arc;

use ack_api::decision::{Decision, Verdict};

use super::{CurateError, Sitting};
use crate::scope::Scope;

/// The decisions of a batch that still count, by scope, and what restores the state before it.
#[derive(Debug)]
pub struct Undo {
    /// The batch.
    pub batch: String,
    /// The new decisions, by scope.
    pub decisions: Vec<(Arc<Scope>, Vec<Decision>)>,
}

/// Prepares to take back a batch; without a name, the newest one that still counts.
///
/// # Errors
/// There is none, or a log cannot be read.
pub fn prepare(
    scopes: &[Arc<Scope>],
    batch: Option<&str>,
    sitting: &Sitting,
) -> Result<Undo, CurateError> {
    let nothing = || CurateError::NothingToUndo {
        batch: batch.map(str::to_owned),
    };
    let mut newest: Option<String> = None;
    let mut logs = Vec::new();
    for scope in scopes {
        let decisions = scope.store.decisions()?;
        for last in decisions
            .newest()
            .filter(|last| last.verdict != Verdict::Withdraw)
        {
            let Some(name) = &last.batch else { continue };
            let wanted = match batch {
                Some(batch) => name == batch,
                None => newest.as_ref().is_none_or(|newest| name > newest),
            };
            if wanted {
                newest = Some(name.clone());
            }
        }
        logs.push((scope, decisions));
    }
    let batch = newest.ok_or_else(nothing)?;
    let mut undo = Undo {
        batch,
        decisions: Vec::new(),
    };
    for (scope, decisions) in logs {
        let mut restored: Vec<Decision> = decisions
            .newest()
            .filter(|last| last.batch.as_ref() == Some(&undo.batch))
            .map(|last| {
                let lines = decisions.about(&last.id);
                let first = lines.iter().position(|line| line.batch == last.batch);
                let earlier = first.and_then(|first| lines.get(first.checked_sub(1)?));
                restore(last, earlier, sitting, &undo.batch)
            })
            .collect();
        restored.sort_by(|a, b| a.id.cmp(&b.id));
        if !restored.is_empty() {
            undo.decisions.push((Arc::clone(scope), restored));
        }
    }
    Ok(undo)
}

/// The decision that counted before, said again.
fn restore(
    last: &Decision,
    earlier: Option<&Decision>,
    sitting: &Sitting,
    batch: &str,
) -> Decision {
    let mut decision = earlier.cloned().unwrap_or_else(|| Decision {
        verdict: Verdict::Withdraw,
        edit: None,
        into: None,
        until: None,
        batch: Some(sitting.batch.clone()),
        ..last.clone()
    });
    decision.reason = Some(format!("undo of {batch}"));
    decision.actor.clone_from(&sitting.actor);
    decision.time = ack_api::time::show(sitting.now);
    decision
}
