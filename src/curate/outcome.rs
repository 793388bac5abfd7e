//! What came of writing decisions, wherever a scope keeps them.

use std::collections::HashMap;

use ack_api::decision::Decision;
use ack_store::read::CuratedMemory;

use super::CurateError;
use super::side_effects::SideEffects;
use crate::scope::Scope;

/// The result of writing decisions.
#[derive(Debug, Default)]
pub struct WriteOutcome {
    /// How many were written.
    pub count: usize,
    /// The ids of memories that changed after they were read. Nothing was decided about them.
    pub changed: Vec<String>,
    /// What else changed.
    pub side_effects: SideEffects,
}

/// Decisions that were written together.
#[derive(Debug, Default)]
pub struct WrittenDecisions {
    /// All of them, with those that follow from a rejection.
    pub decisions: Vec<Decision>,
    /// What else changed.
    pub side_effects: SideEffects,
}

/// Rejects decisions about an id that several rows of the store share, because it is not clear
/// which one is meant.
///
/// # Errors
/// [`CurateError::DuplicateId`].
pub fn check_single(
    scope: &Scope,
    decisions: &[Decision],
    now: &HashMap<String, CuratedMemory>,
) -> Result<(), CurateError> {
    let twice = decisions.iter().find(|decision| {
        let curated = now.get(&decision.id);
        curated.is_some_and(|curated| curated.has_duplicate_id)
    });
    twice.map_or(Ok(()), |decision| {
        Err(CurateError::DuplicateId {
            id: decision.id.clone(),
            path: scope.store.path().to_owned(),
        })
    })
}
