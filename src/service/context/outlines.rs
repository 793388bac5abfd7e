//! The outlines of the scopes at a session's start.
//!
//! An index pays off in a server that answers many requests. For a process that answers once, and
//! for a server's first request, building it would take most of the time. So this searches the
//! stores directly for a project's words, and reads only the shown records in full. Later requests
//! to a server read only the stores that have changed ([`super::outline_cache`]).

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::MAX_SESSIONS;
use super::outline_cache::{CachedScope, OutlineCache, OutlineKey};
use super::words::Words;
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use crate::service::open::{failure, note_broken_manifests, remove_cold_scopes, unavailable};
use crate::service::remote;
use ack_api::memory::{ProjectRows, StatusFilter};
use ack_api::remote::WaitPolicy;
use ack_api::{Note, Skipped};
use ack_store::StoreError;
use ack_store::open::FileState;
use ack_store::outline::Outlines;
use ack_store::sessions::{Members, RecentSession, SessionQuery};

/// The outline of one scope.
pub(super) struct ScopeOutline {
    pub scope: Arc<Scope>,
    /// The current project's rows in it.
    pub own: ProjectRows,
    pub outlines: Arc<Outlines>,
    sessions: Sessions,
}

impl ScopeOutline {
    /// Whether it has a memory of the current project.
    pub fn has_own(&self) -> bool {
        let mut served = self.outlines.served.iter();
        served.any(|outline| {
            let names = (&*outline.project, &*outline.alias);
            names != ("", "") && self.own.contain(names.0, names.1)
        })
    }
}

/// The project's recent sessions in a scope.
enum Sessions {
    /// As read from the store.
    Read(Vec<RecentSession>),
    /// From the cache, with their memories. They are read again before they are shown.
    Cached(Arc<CachedScope>),
}

/// What to read.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub words: &'a Words,
    /// Whether to read the project's recent sessions too.
    pub sessions: bool,
    /// How long to wait for a locked store.
    pub timeout: Duration,
    /// Whether to wait for buckets.
    pub wait_policy: WaitPolicy,
    /// The present time, for the review queue.
    pub now: jiff::Timestamp,
    /// The cache, in a process that may get further requests. The queue's flow is then as old as
    /// the cache entry.
    pub cache: Option<&'a OutlineCache>,
}

/// Reads the outline of every scope of a selection. A scope that cannot be read is removed from the
/// selection, with a note.
///
/// # Errors
/// The first failure, if no scope can be read.
pub(super) fn read(
    selection: &mut Selection,
    reading: Reading<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<ScopeOutline>, Error> {
    let cache = reading.cache.filter(|_| reading.sessions).map(|cache| {
        let key = OutlineKey {
            words: reading.words.key(),
            today: reading.now.to_zoned(TimeZone::UTC).date(),
        };
        (cache, cache.share(key))
    });
    read_scopes(
        selection,
        reading.wait_policy,
        notes,
        |scope, own| match &cache {
            Some((cache, key)) => find_or_read(scope, own, reading, cache, key),
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

/// Runs `read` for every scope of a selection, with the scope and the current project's rows in it.
/// A scope that cannot be read is removed from the selection, with a note.
///
/// # Errors
/// The first failure, if no scope can be read.
pub(super) fn read_scopes<T>(
    selection: &mut Selection,
    wait_policy: WaitPolicy,
    notes: &mut Vec<Note>,
    mut read_scope: impl FnMut(&Arc<Scope>, ProjectRows) -> Result<T, StoreError>,
) -> Result<Vec<T>, Error> {
    let scopes = selection.scopes.clone();
    note_broken_manifests(selection, &scopes, notes)?;
    let cold = remove_cold_scopes(selection, &scopes, wait_policy, notes)?;
    let mut read = Vec::with_capacity(scopes.len());
    let mut first: Option<Error> = None;
    for scope in scopes {
        if cold.contains(&scope.name) {
            continue;
        }
        ack_api::cancel::check()?;
        let own_rows = || selection.current.rows_in(&scope);
        let found = match read_scope(&scope, own_rows()) {
            Err(error) if remote::repair(&scope, &error, wait_policy) => {
                read_scope(&scope, own_rows())
            }
            found => found,
        };
        match found {
            Ok(found) => read.push(found),
            Err(error) => {
                let error = failure(&scope, error);
                selection.skipped.push(Skipped {
                    scope: scope.name.clone(),
                    reason: error.to_string().into(),
                });
                notes.push(unavailable(&scope.name, &error));
                selection.scopes.retain(|other| other.name != scope.name);
                first.get_or_insert(error);
            }
        }
    }
    match first {
        Some(error) if read.is_empty() => Err(error),
        _ => Ok(read),
    }
}

/// The cached scope if its store has not changed; otherwise reads it and caches it.
fn find_or_read(
    scope: &Arc<Scope>,
    own_rows: ProjectRows,
    reading: Reading<'_>,
    cache: &OutlineCache,
    key: &Arc<OutlineKey>,
) -> Result<ScopeOutline, StoreError> {
    let state = scope.store.file_state()?;
    if let Some(found) = cache.find(key, scope, &own_rows, &state) {
        return Ok(ScopeOutline {
            scope: Arc::clone(scope),
            own: own_rows,
            outlines: Arc::clone(&found.outlines),
            sessions: Sessions::Cached(found),
        });
    }
    let (state, (outlines, sessions, members)) = read_one(scope, &own_rows, reading)?;
    let outlines = Arc::new(outlines);
    let keeping = CachedScope::new(
        scope,
        own_rows.clone(),
        state,
        Arc::clone(&outlines),
        (sessions.clone(), members),
    );
    cache.keep(key, scope, keeping);
    Ok(ScopeOutline {
        scope: Arc::clone(scope),
        own: own_rows,
        outlines,
        sessions: Sessions::Read(sessions),
    })
}

/// The outline of a store, its recent sessions, and their memories.
type ReadScope = (Outlines, Vec<RecentSession>, Members);

/// Reads a scope, and returns the version of its store.
fn read_one(
    scope: &Scope,
    own_rows: &ProjectRows,
    reading: Reading<'_>,
) -> Result<(FileState, ReadScope), StoreError> {
    scope.store.full_scan(reading.timeout, |snapshot| {
        let state = snapshot.file_state.clone();
        let mut outlines = snapshot.outlines(StatusFilter::Approved, reading.words, reading.now)?;
        let mut members = std::mem::take(&mut outlines.members);
        if !reading.sessions {
            return Ok((state, (outlines, Vec::new(), Members::new())));
        }
        let sessions = snapshot.recent_sessions(session_query(own_rows), |names| {
            members.retain(|name, _| names.contains(name.as_str()));
            members.clone()
        })?;
        let is_found = |name: &String| sessions.iter().any(|session| session.names.contains(name));
        members.retain(|name, _| is_found(name));
        members.shrink_to_fit();
        Ok((state, (outlines, sessions, members)))
    })
}

const fn session_query(own_rows: &ProjectRows) -> SessionQuery<'_> {
    SessionQuery {
        projects: own_rows.names.as_slice(),
        unnamed: own_rows.unnamed,
        filter: StatusFilter::Approved,
        limit: MAX_SESSIONS,
    }
}

/// The newest sessions of some scopes, each with the name of its scope. Cached ones are read again;
/// a scope that cannot be read now yields none.
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
                (Sessions::Cached(cache), None) => &cache.sessions,
            };
            sessions.extend(known.iter().map(|session| (number, session)));
        }
        sessions.sort_by(|(_, a), (_, b)| a.newest_first(b));
        sessions.truncate(MAX_SESSIONS);
        let unread = sessions.iter().find_map(|(number, _)| {
            let scope = read.get(*number)?;
            let is_read = now_read.get(*number).is_some_and(Option::is_some);
            match &scope.sessions {
                Sessions::Cached(cache) if !is_read => Some((*number, scope, &cache.members)),
                _ => None,
            }
        });
        let Some((number, scope, members)) = unread else {
            let with_scope_name = |(number, session): (usize, &RecentSession)| {
                let scope = read.get(number)?;
                Some((scope.scope.name.as_str(), session.clone()))
            };
            return sessions.into_iter().filter_map(with_scope_name).collect();
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
