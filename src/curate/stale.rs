//! The second lane of the queue: approved memories that may be out of date, each with the reason
//! that answers show.

use std::sync::Arc;

use ack_api::memory::StatusFilter;
use ack_store::READ_TIMEOUT;

use super::find::Filter;
use super::{Candidate, CurateError};
use crate::scope::Scope;
use crate::service::stale::Staleness;

/// An approved memory that may be out of date.
#[derive(Debug, Clone)]
pub struct Stale {
    /// The memory.
    pub candidate: Candidate,
    /// Why: what answers show as `stale`.
    pub reason: String,
}

/// The approved memories that pass a filter and may be out of date, oldest first.
///
/// # Errors
/// A store cannot be read.
pub fn stale(
    scopes: &[Arc<Scope>],
    filter: &Filter,
    staleness: &Staleness,
) -> Result<Vec<Stale>, CurateError> {
    let mut found = Vec::new();
    for scope in scopes {
        // A snapshot that was disturbed is read again, so nothing is passed on before its end.
        let read = scope.store.full_scan(READ_TIMEOUT, |snapshot| {
            let mut approved = Vec::new();
            let wanted = |status| StatusFilter::Approved.allows(status);
            snapshot.curate_of(&wanted, &mut |curated| {
                if filter.allows(&curated) {
                    approved.push(curated);
                }
            })?;
            let mut stale = Vec::new();
            for curated in approved {
                let id = std::iter::once(curated.memory.id.as_str());
                let others = snapshot.contradictions(id, StatusFilter::Approved)?;
                let others: Vec<_> = others.into_iter().flat_map(|(_, others)| others).collect();
                let reason = staleness.of(&curated.memory, scope, &others);
                stale.extend(reason.map(|reason| (curated, reason)));
            }
            Ok(stale)
        })?;
        found.extend(read.into_iter().map(|(curated, reason)| Stale {
            candidate: Candidate {
                scope: Arc::clone(scope),
                curated,
            },
            reason,
        }));
    }
    found.sort_by_key(|stale| {
        let created = stale.candidate.memory().created_at;
        (created.is_none(), created)
    });
    Ok(found)
}
