//! Writes decisions to the log of their scope.
//!
//! The review desk and every command use this module. Decisions are made under the lock of the log,
//! from the memories as they are at that moment.

use ack_api::decision::Decision;
use ack_store::read::CuratedMemory;

use super::CurateError;
pub use super::log::{check, dry_run, write_with};
use super::outcome::WriteOutcome;
use crate::scope::Scope;

/// Writes decisions about memories of one scope, all at once. Leaves out those about memories that
/// have changed since they were read.
///
/// # Errors
/// The store or the log cannot be read or written, or an id exists twice. Then nothing is decided.
pub fn write(scope: &Scope, decisions: &[Decision]) -> Result<WriteOutcome, CurateError> {
    write_if(scope, decisions, |decision, curated| {
        curated.is_some_and(|curated| {
            curated.digest == decision.digest && curated.memory.status == decision.was
        })
    })
}

/// Writes the decisions of several scopes. None is written unless each of them can be written.
///
/// # Errors
/// As for one of them. [`CurateError::PartlyWritten`] if others were written before.
pub fn write_scopes<S: AsRef<Scope>>(
    scopes: &[S],
    batch: &str,
    mut write: impl FnMut(&S) -> Result<(), CurateError>,
) -> Result<(), CurateError> {
    for scope in scopes {
        check(scope.as_ref())?;
    }
    let mut written_scopes = Vec::new();
    for scope in scopes {
        match write(scope) {
            Ok(()) => written_scopes.push(scope.as_ref().name.clone()),
            Err(source) if written_scopes.is_empty() => return Err(source),
            Err(source) => {
                return Err(CurateError::PartlyWritten {
                    written: written_scopes,
                    batch: batch.to_owned(),
                    source: Box::new(source),
                });
            }
        }
    }
    Ok(())
}

fn write_if(
    scope: &Scope,
    decisions: &[Decision],
    fits: impl Fn(&Decision, Option<&CuratedMemory>) -> bool,
) -> Result<WriteOutcome, CurateError> {
    let ids: Vec<&str> = decisions
        .iter()
        .map(|decision| decision.id.as_str())
        .collect();
    let mut outcome = WriteOutcome::default();
    let made = write_with(scope, &ids, |now| {
        let (fitting, changed): (Vec<&Decision>, Vec<&Decision>) = decisions
            .iter()
            .partition(|decision| fits(decision, now.get(&decision.id)));
        outcome.count = fitting.len();
        outcome.changed = changed.iter().map(|decision| decision.id.clone()).collect();
        Ok(fitting.into_iter().cloned().collect())
    })?;
    outcome.side_effects = made.side_effects;
    Ok(outcome)
}
