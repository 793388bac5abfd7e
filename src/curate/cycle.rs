//! Memories that would replace each other in a circle, so that none of them counts as replaced.

use ack_api::memory::MAX_SUCCESSORS;

use super::Candidate;

/// Whether `other` already replaced `memory`, directly or through others of the same scope.
pub fn has_replaced(memory: &Candidate, other: &Candidate) -> bool {
    let store = &memory.scope.store;
    let mut next = memory.memory().superseded_by.clone();
    for _ in 0..MAX_SUCCESSORS {
        let Some(id) = next else { return false };
        if id == other.memory().id {
            return true;
        }
        let read = store.snapshot(|snapshot| snapshot.curated(&id));
        // If it cannot be read, nothing can be written either.
        let curated = read.ok().flatten();
        next = curated.and_then(|curated| curated.memory.superseded_by);
    }
    false
}
