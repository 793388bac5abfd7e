//! The scopes of a session's start, each in outline.
//!
//! An index pays for itself in a server that is asked again and again. It would be most of the time
//! of a process that answers once, and of a server's first request. So the words of a project are
//! looked for in the stores themselves, and only the records that are shown are read in full. A
//! server that is asked again looks only at the stores that changed ([`super::kept`]).

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::SESSIONS;
use super::kept::{KeptOutlines, KeptScope, Sought};
use super::words::Words;
use crate::remote::{self, Patience};
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use crate::service::open::{leave_out_cold, note_broken, unavailable};
use ack_api::memory::{ProjectRows, StatusFilter};
use ack_api::text;
use ack_api::{Note, Skipped};
use ack_store::StoreError;
use ack_store::open::FileState;
use ack_store::outline::Outlines;
use ack_store::sessions::{Members, RecentSession, SessionQuery};

/// One scope in outline.
pub(super) struct ScopeOutline {
    pub scope: Arc<Scope>,
    /// The current project's rows in it.
    pub own: ProjectRows,
    pub outlines: Arc<Outlines>,
    sessions: Sessions,
}

/// The project's recent sessions in a scope.
enum Sessions {
    /// As the store has them.
    Read(Vec<RecentSession>),
    /// As the store had them earlier, with their memories. They are read again before they are
    /// shown.
    Kept(Arc<KeptScope>),
}

/// What to read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub words: &'a Words,
    /// Whether the project's recent sessions are read too.
    pub sessions: bool,
    /// How long a locked store is waited for.
    pub timeout: Duration,
    /// Whether buckets may be waited for.
    pub patience: Patience,
    /// The present, for the review queue.
    pub now: jiff::Timestamp,
    /// What is kept for the next request, in a process that may be asked again. The pace of the
    /// queue is then as old as what was kept.
    pub kept: Option<&'a KeptOutlines>,
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
    let kept = reading.kept.filter(|_| reading.sessions).map(|kept| {
        let sought = Sought {
            words: reading.words.key(),
            today: reading.now.to_zoned(TimeZone::UTC).date(),
        };
        (kept, kept.share(sought))
    });
    each(
        selection,
        reading.patience,
        notes,
        |scope, own| match &kept {
            Some((kept, sought)) => find_or_read(scope, own, reading, kept, sought),
            None => {
                let (outlines, sessions, _) = read_one(scope, &own, reading)?.1;
                Ok(ScopeOutline {
                    scope: Arc::clone(scope),
                    own,
                    outlines: Arc::new(outlines),
                    sessions: Sessions::Read(sessions),
                })
            }
        },
    )
}

/// Reads something of every scope of a selection. It gets the scope and the current project's rows
/// in it. A scope that cannot be read leaves the selection, with a note.
///
/// # Errors
/// The first failure, where no scope can be read.
pub(super) fn each<T>(
    selection: &mut Selection,
    patience: Patience,
    notes: &mut Vec<Note>,
    mut read_scope: impl FnMut(&Arc<Scope>, ProjectRows) -> Result<T, StoreError>,
) -> Result<Vec<T>, Error> {
    let scopes = selection.scopes.clone();
    note_broken(selection, &scopes, notes)?;
    let cold = leave_out_cold(selection, &scopes, patience, notes)?;
    let mut read = Vec::with_capacity(scopes.len());
    let mut first: Option<StoreError> = None;
    for scope in scopes {
        if cold.contains(&scope.name) {
            continue;
        }
        ack_api::cancel::check()?;
        let own = selection.current.rows_in(&scope);
        match read_scope(&scope, own) {
            Ok(found) => read.push(found),
            Err(error) => {
                remote::after_failure(&scope, &error);
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

/// A scope as it was kept, if its store is as it was; else as it is read now, which is kept.
fn find_or_read(
    scope: &Arc<Scope>,
    own: ProjectRows,
    reading: Reading<'_>,
    kept: &KeptOutlines,
    sought: &Arc<Sought>,
) -> Result<ScopeOutline, StoreError> {
    let state = scope.store.file_state()?;
    if let Some(found) = kept.find(sought, scope, &own, &state) {
        return Ok(ScopeOutline {
            scope: Arc::clone(scope),
            own,
            outlines: Arc::clone(&found.outlines),
            sessions: Sessions::Kept(found),
        });
    }
    let (state, (outlines, sessions, members)) = read_one(scope, &own, reading)?;
    let outlines = Arc::new(outlines);
    let keeping = KeptScope::new(
        scope,
        own.clone(),
        state,
        Arc::clone(&outlines),
        (sessions.clone(), members),
    );
    kept.keep(sought, scope, keeping);
    Ok(ScopeOutline {
        scope: Arc::clone(scope),
        own,
        outlines,
        sessions: Sessions::Read(sessions),
    })
}

/// A store in outline, its recent sessions, and their memories.
type ReadScope = (Outlines, Vec<RecentSession>, Members);

/// Reads a scope, and says in which state of its store.
fn read_one(
    scope: &Scope,
    own: &ProjectRows,
    reading: Reading<'_>,
) -> Result<(FileState, ReadScope), StoreError> {
    scope.store.full_scan(reading.timeout, |snapshot| {
        let state = snapshot.file_state.clone();
        let mut outlines = snapshot.outlines(StatusFilter::Approved, reading.words, reading.now)?;
        let mut members = std::mem::take(&mut outlines.members);
        if !reading.sessions {
            return Ok((state, (outlines, Vec::new(), Members::new())));
        }
        let sessions = snapshot.recent_sessions(session_query(own), |names| {
            members.retain(|name, _| names.contains(name.as_str()));
            members.clone()
        })?;
        let is_found = |name: &String| sessions.iter().any(|session| session.names.contains(name));
        members.retain(|name, _| is_found(name));
        members.shrink_to_fit();
        Ok((state, (outlines, sessions, members)))
    })
}

const fn session_query(own: &ProjectRows) -> SessionQuery<'_> {
    SessionQuery {
        projects: own.names.as_slice(),
        unnamed: own.unnamed,
        filter: StatusFilter::Approved,
        limit: SESSIONS,
    }
}

/// The newest sessions of some scopes, each with the name of its scope. Those that were kept are
/// read again; a scope that cannot be read now has none.
pub(super) fn newest_sessions(
    read: &[ScopeOutline],
    timeout: Duration,
) -> Vec<(&str, RecentSession)> {
    let mut now_read: Vec<Option<Vec<RecentSession>>> = read.iter().map(|_| None).collect();
    loop {
        let mut sessions: Vec<(usize, &RecentSession)> = Vec::new();
        for (number, (scope, again)) in read.iter().zip(&now_read).enumerate() {
            let known = match (&scope.sessions, again) {
                (_, Some(again)) => again,
                (Sessions::Read(known), None) => known,
                (Sessions::Kept(kept), None) => &kept.sessions,
            };
            sessions.extend(known.iter().map(|session| (number, session)));
        }
        sessions.sort_by(|(_, a), (_, b)| a.newest_first(b));
        sessions.truncate(SESSIONS);
        let unread = sessions.iter().find_map(|(number, _)| {
            let scope = read.get(*number)?;
            let is_read = now_read.get(*number).is_some_and(Option::is_some);
            match &scope.sessions {
                Sessions::Kept(kept) if !is_read => Some((*number, scope, &kept.members)),
                _ => None,
            }
        });
        let Some((number, scope, members)) = unread else {
            let named = |(number, session): (usize, &RecentSession)| {
                let scope = read.get(number)?;
                Some((scope.scope.name.as_str(), session.clone()))
            };
            return sessions.into_iter().filter_map(named).collect();
        };
        let again = scope
            .scope
            .store
            .snapshot_with_timeout(timeout, |snapshot| {
                snapshot.recent_sessions(session_query(&scope.own), |_| members.clone())
            });
        if let Some(slot) = now_read.get_mut(number) {
            *slot = Some(again.unwrap_or_default());
        }
    }
}
