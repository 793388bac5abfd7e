//! The scopes of a session's start, each read once in outline.
//!
//! An index pays for itself in a server that is asked again and again. It would be most of the time
//! of a process that answers once, and of a server's first request. So the words of a project are
//! looked for in the stores themselves, and only the records that are shown are read in full.

use std::sync::Arc;
use std::time::Duration;

use super::SESSIONS;
use crate::remote::Patience;
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use crate::service::open::{leave_out_cold, note_broken, unavailable};
use ack_api::memory::{ProjectRows, StatusFilter};
use ack_api::text;
use ack_api::{Note, Skipped};
use ack_store::StoreError;
use ack_store::outline::{FindWords, Outlines};
use ack_store::sessions::{RecentSession, SessionQuery};

/// One scope in outline.
pub(super) struct ScopeOutline {
    pub scope: Arc<Scope>,
    /// The current project's rows in it.
    pub own: ProjectRows,
    pub outlines: Outlines,
    pub sessions: Vec<RecentSession>,
}

/// What to read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub words: &'a dyn FindWords,
    /// Whether the project's recent sessions are read too.
    pub sessions: bool,
    /// How long a locked store is waited for.
    pub timeout: Duration,
    /// Whether buckets may be waited for.
    pub patience: Patience,
    /// The present, for the review queue.
    pub now: jiff::Timestamp,
}

/// Reads every scope of a selection in outline. A scope that cannot be read leaves the selection,
/// with a note.
///
/// # Errors
/// The first failure, where no scope can be read.
pub(super) fn read(
    selection: &mut Selection,
    reading: Reading<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<ScopeOutline>, Error> {
    let scopes = selection.scopes.clone();
    note_broken(selection, &scopes, notes)?;
    let cold = leave_out_cold(selection, &scopes, reading.patience, notes)?;
    let mut read = Vec::with_capacity(scopes.len());
    let mut first: Option<StoreError> = None;
    for scope in scopes {
        if cold.contains(&scope.name) {
            continue;
        }
        ack_api::cancel::check()?;
        let own = selection.current.rows_in(&scope);
        match read_one(&scope, &own, reading) {
            Ok((outlines, sessions)) => read.push(ScopeOutline {
                scope,
                own,
                outlines,
                sessions,
            }),
            Err(error) => {
                if let Some(remote) = &scope.remote {
                    remote.distrust();
                }
                selection.skipped.push(Skipped {
                    scope: scope.name.clone(),
                    reason: text::line(&error.to_string(), 300),
                });
                notes.push(unavailable(&scope.name, &error));
                selection.scopes.retain(|other| other.name != scope.name);
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if read.is_empty() => Err(error.into()),
        _ => Ok(read),
    }
}

fn read_one(
    scope: &Scope,
    own: &ProjectRows,
    reading: Reading<'_>,
) -> Result<(Outlines, Vec<RecentSession>), StoreError> {
    scope.store.full_scan(reading.timeout, |snapshot| {
        let mut outlines = snapshot.outlines(StatusFilter::Approved, reading.words, reading.now)?;
        if !reading.sessions {
            return Ok((outlines, Vec::new()));
        }
        let wanted = SessionQuery {
            projects: &own.names,
            unnamed: own.unnamed,
            filter: StatusFilter::Approved,
            limit: SESSIONS,
        };
        let sessions =
            snapshot.recent_sessions(wanted, |_| std::mem::take(&mut outlines.members))?;
        Ok((outlines, sessions))
    })
}
