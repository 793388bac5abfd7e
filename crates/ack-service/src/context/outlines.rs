//! The outlines of the scopes at a session's start.
//!
//! An index pays off in a server that answers many requests. For a process that answers once, and
//! for a server's first request, building it would take most of the time. So this searches the
//! stores directly for a project's words, and reads only the shown records in full.
//!
//! While a store's files, the words and the day are the same, a second scan would find the same. So
//! a server keeps what it found last in each scope. That only serves to choose and rank: each
//! memory and each session is read again before it is shown, with its present status.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::MAX_SESSIONS;
use super::words::Words;
use crate::engine::Service;
use crate::error::Error;
use crate::open::{read_each, readable_scopes};
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use ack_api::Note;
use ack_api::memory::{ProjectRows, StatusFilter};
use ack_api::remote::WaitPolicy;
use ack_store::open::FileState;
use ack_store::outline::{Outline, OutlineQuery, Outlines};
use ack_store::sessions::{Members, RecentSession, SessionQuery};
use ack_store::{Access, READ_TIMEOUT, StoreError};

/// The approximate size of a session, and of a scope without memories, in bytes.
const SESSION_BYTES: usize = 1_000;

pub struct ScopeOutline {
    pub scope: Arc<Scope>,
    pub own: ProjectRows,
    found: Arc<Found>,
    is_kept: bool,
}

impl ScopeOutline {
    pub fn outlines(&self) -> &Outlines {
        &self.found.outlines
    }

    pub fn has_own(&self) -> bool {
        let mut is_own = self.is_own();
        let served = &self.outlines().served;
        served.iter().any(|it| (&*it.project, &*it.alias) != ("", "") && is_own(it))
    }

    /// Tells whether a memory belongs to the current project.
    pub fn is_own(&self) -> impl FnMut(&Outline) -> bool {
        // A store has few projects and many memories, and keeps each name once.
        let mut known: FxHashMap<[*const u8; 2], bool> = FxHashMap::default();
        move |outline| {
            let names = [&outline.project, &outline.alias].map(|name| name.as_ptr());
            let hold = || self.own.contain(&outline.project, &outline.alias);
            *known.entry(names).or_insert_with(hold)
        }
    }
}

#[derive(Debug)]
struct Found {
    outlines: Outlines,
    sessions: Vec<RecentSession>,
    members: Members,
    /// The scope that was read. A changed manifest makes a new scope.
    scope: Weak<Scope>,
    state: FileState,
    key: OutlineKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OutlineKey {
    words: Arc<Words>,
    /// The rows whose sessions were read.
    own: ProjectRows,
    /// Memories that are snoozed until a later day do not wait yet.
    today: Date,
}

impl Found {
    fn bytes(&self) -> usize {
        self.outlines.bytes() + (self.sessions.len() + 1) * SESSION_BYTES
    }

    /// Whether a scan would find the same now. A request without words may use any others.
    fn is_current(&self, scope: &Arc<Scope>, state: &FileState, key: &OutlineKey) -> bool {
        std::ptr::eq(self.scope.as_ptr(), Arc::as_ptr(scope))
            && self.state == *state
            && (&self.key.own, self.key.today) == (&key.own, key.today)
            && (key.words.is_empty() || self.key.words == key.words)
    }
}

#[derive(Debug)]
pub struct OutlineCache {
    max_bytes: usize,
    scopes: Mutex<HashMap<String, Arc<Found>>>,
}

impl OutlineCache {
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, scopes: Mutex::default() }
    }

    pub fn bytes(&self) -> usize {
        self.scopes.lock().values().map(|found| found.bytes()).sum()
    }

    fn keep(&self, name: &str, found: &Arc<Found>) {
        let mut scopes = self.scopes.lock();
        scopes.retain(|known, found| known != name && found.scope.strong_count() > 0);
        let used: usize = scopes.values().map(|found| found.bytes()).sum();
        if used + found.bytes() <= self.max_bytes {
            scopes.insert(name.to_owned(), Arc::clone(found));
        }
    }
}

#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Whether to read the project's recent sessions too.
    pub sessions: bool,
    pub timeout: Duration,
    pub wait_policy: WaitPolicy,
    /// The present time, for the review queue.
    pub now: jiff::Timestamp,
    /// What it found before, in a process that may get further requests.
    pub cache: Option<&'a OutlineCache>,
}

impl<'a> Reading<'a> {
    /// How a server reads for a tool.
    pub fn of(service: &'a Service) -> Self {
        Self {
            sessions: true,
            timeout: READ_TIMEOUT,
            wait_policy: service.wait_policy,
            now: (service.config.clock)(),
            cache: Some(&service.outlines),
        }
    }
}

/// Reads the outline of every scope. One that cannot be read is skipped, with a note.
pub fn read(
    selection: &mut Selection,
    words: &Arc<Words>,
    reading: Reading<'_>,
    notes: &mut Vec<Note>,
) -> Result<Vec<ScopeOutline>, Error> {
    let today = reading.now.to_zoned(TimeZone::UTC).date();
    read_scopes(selection, reading.wait_policy, notes, |scope, own| {
        let outline =
            |own, found, is_kept| ScopeOutline { scope: Arc::clone(scope), own, found, is_kept };
        let key = OutlineKey { words: Arc::clone(words), own: own.clone(), today };
        let known = |cache: &OutlineCache| cache.scopes.lock().get(&scope.name).cloned();
        if let Some(found) = reading.cache.and_then(known)
            && found.is_current(scope, &scope.store.file_state()?, &key)
        {
            return Ok(outline(own, found, true));
        }
        let found = Arc::new(scan(scope, &key, reading)?);
        if let Some(cache) = reading.cache.filter(|_| reading.sessions) {
            cache.keep(&scope.name, &found);
        }
        Ok(outline(own, found, false))
    })
}

/// Runs `read` for every scope, with the project's rows in it. One that fails is skipped.
pub fn read_scopes<T>(
    selection: &mut Selection,
    wait_policy: WaitPolicy,
    notes: &mut Vec<Note>,
    mut read_scope: impl FnMut(&Arc<Scope>, ProjectRows) -> Result<T, StoreError>,
) -> Result<Vec<T>, Error> {
    let scopes = readable_scopes(selection, wait_policy, notes)?;
    read_each(&scopes, selection, wait_policy, notes, |scope, selection| {
        read_scope(scope, selection.current.rows_in(scope))
    })
}

fn scan(scope: &Arc<Scope>, key: &OutlineKey, reading: Reading<'_>) -> Result<Found, StoreError> {
    scope.store.read(Access::QuickScan, reading.timeout, |snapshot| {
        let read = |sessions: &HashSet<&str>| {
            snapshot.outlines(OutlineQuery {
                filter: StatusFilter::Approved,
                find_words: &*key.words,
                sessions,
                now: reading.now,
            })
        };
        let (mut outlines, mut members) = (Outlines::default(), Members::default());
        let mut sessions = Vec::new();
        if reading.sessions {
            sessions = snapshot.recent_sessions(session_query(&key.own), |names| {
                outlines = read(names)?;
                members = std::mem::take(&mut outlines.members);
                Ok(members.clone())
            })?;
        } else {
            outlines = read(&HashSet::new())?;
        }
        members.retain(|name, _| sessions.iter().any(|session| session.names.contains(name)));
        members.shrink_to_fit();
        Ok(Found {
            outlines,
            sessions,
            members,
            scope: Arc::downgrade(scope),
            state: snapshot.file_state.clone(),
            key: key.clone(),
        })
    })
}

pub const fn session_query(own_rows: &ProjectRows) -> SessionQuery<'_> {
    SessionQuery {
        projects: own_rows.names.as_slice(),
        unnamed: own_rows.unnamed,
        filter: StatusFilter::Approved,
        limit: MAX_SESSIONS,
    }
}

/// Those that were read for an earlier request are read again. A scope that fails yields none.
pub fn recent_sessions(read: &[ScopeOutline], timeout: Duration) -> Vec<(&str, RecentSession)> {
    let of_scope = |outline: &ScopeOutline| {
        let found = &outline.found;
        if !outline.is_kept || found.sessions.is_empty() {
            return found.sessions.clone();
        }
        let again = outline.scope.store.read(Access::Rows, timeout, |snapshot| {
            snapshot.recent_sessions(session_query(&outline.own), |_| Ok(found.members.clone()))
        });
        again.unwrap_or_default()
    };
    let sessions = read.iter().flat_map(|outline| {
        of_scope(outline).into_iter().map(move |session| (outline.scope.name.as_str(), session))
    });
    sessions.collect()
}
