//! A cache of store outlines between the requests of a process.
//!
//! Reading a store's outline takes a full scan. While the store's files, the search words and the
//! day are the same, a second scan would give the same result. The cached outlines are only used to
//! choose and rank. Each memory and each session is read again before it is shown, with its present
//! status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::civil::Date;

use super::words::WordsKey;
use crate::scope::Scope;
use ack_api::memory::ProjectRows;
use ack_store::open::FileState;
use ack_store::outline::Outlines;
use ack_store::sessions::{Members, RecentSession};

/// The maximum number of cached word lists. A server has few clients that start at the same time.
const MAX_LISTS: usize = 4;
/// The approximate size of a session, and of a scope without memories, in bytes.
const SESSION_BYTES: usize = 1_000;

/// The cached outlines of a process.
#[derive(Debug)]
pub(crate) struct KeptOutlines {
    /// The maximum size of all of them, in bytes.
    bound: usize,
    /// One entry per word list, least recently used first.
    lists: Mutex<Vec<KeptList>>,
}

/// The key of a cached outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    pub words: WordsKey,
    /// The day matters, because memories deferred until a later day do not wait yet.
    pub today: Date,
}

/// The outlines for one word list, by scope name.
#[derive(Debug)]
struct KeptList {
    sought: Arc<Sought>,
    scopes: HashMap<String, Arc<KeptScope>>,
    bytes: usize,
}

/// The outline of a scope, for one version of its store.
#[derive(Debug)]
pub(super) struct KeptScope {
    /// The scope that was read. A changed manifest makes a new scope.
    scope: Weak<Scope>,
    state: FileState,
    /// The rows whose sessions were read.
    own: ProjectRows,
    pub outlines: Arc<Outlines>,
    pub sessions: Vec<RecentSession>,
    /// The memories of these sessions.
    pub members: Members,
}

impl KeptScope {
    pub fn new(
        scope: &Arc<Scope>,
        own: ProjectRows,
        state: FileState,
        outlines: Arc<Outlines>,
        (sessions, members): (Vec<RecentSession>, Members),
    ) -> Self {
        Self {
            scope: Arc::downgrade(scope),
            state,
            own,
            outlines,
            sessions,
            members,
        }
    }

    fn bytes(&self) -> usize {
        self.outlines.bytes() + (self.sessions.len() + 1) * SESSION_BYTES
    }
}

impl KeptOutlines {
    /// An empty cache with at most `bound` bytes.
    pub const fn new(bound: usize) -> Self {
        Self {
            bound,
            lists: Mutex::new(Vec::new()),
        }
    }

    /// The approximate size of the cache in bytes.
    pub fn bytes(&self) -> usize {
        self.with_lists(|lists| lists.iter().map(|list| list.bytes).sum())
    }

    /// Returns the shared value for an equal earlier search. Also drops scopes that are gone.
    pub(super) fn share(&self, sought: Sought) -> Arc<Sought> {
        self.with_lists(|lists| {
            for list in lists.iter_mut() {
                let gone = |kept: &KeptScope| kept.scope.strong_count() == 0;
                let freed: usize = list
                    .scopes
                    .extract_if(|_, kept| gone(kept))
                    .map(|(_, kept)| kept.bytes())
                    .sum();
                list.bytes = list.bytes.saturating_sub(freed);
            }
            let known = lists.iter().position(|list| *list.sought == sought);
            let list = match known {
                Some(position) => lists.remove(position),
                None => KeptList {
                    sought: Arc::new(sought),
                    scopes: HashMap::new(),
                    bytes: 0,
                },
            };
            if lists.len() >= MAX_LISTS {
                lists.remove(0);
            }
            let sought = Arc::clone(&list.sought);
            lists.push(list);
            sought
        })
    }

    /// The cached outline of a scope, if its store has not changed.
    pub(super) fn find(
        &self,
        sought: &Arc<Sought>,
        scope: &Arc<Scope>,
        own: &ProjectRows,
        state: &FileState,
    ) -> Option<Arc<KeptScope>> {
        self.with_lists(|lists| {
            let list = lists
                .iter()
                .find(|list| Arc::ptr_eq(&list.sought, sought))?;
            let kept = list.scopes.get(&scope.name)?;
            let is_same = std::ptr::eq(kept.scope.as_ptr(), Arc::as_ptr(scope));
            (is_same && kept.own == *own && kept.state == *state).then(|| Arc::clone(kept))
        })
    }

    /// Caches the outline of a scope if there is room. If necessary, drops the outlines of older
    /// word lists.
    pub(super) fn keep(&self, sought: &Arc<Sought>, scope: &Scope, kept: KeptScope) {
        let bytes = kept.bytes();
        self.with_lists(|lists| {
            let Some(position) = lists
                .iter()
                .position(|list| Arc::ptr_eq(&list.sought, sought))
            else {
                return;
            };
            let mut list = lists.remove(position);
            let replaced = list.scopes.remove(&scope.name);
            list.bytes = list
                .bytes
                .saturating_sub(replaced.map_or(0, |replaced| replaced.bytes()));
            let others = |lists: &[KeptList]| lists.iter().map(|list| list.bytes).sum::<usize>();
            while list.bytes + bytes + others(lists) > self.bound && !lists.is_empty() {
                lists.remove(0);
            }
            if list.bytes + bytes <= self.bound {
                list.bytes += bytes;
                list.scopes.insert(scope.name.clone(), Arc::new(kept));
            }
            lists.push(list);
        });
    }

    fn with_lists<T>(&self, use_lists: impl FnOnce(&mut Vec<KeptList>) -> T) -> T {
        use_lists(&mut self.lists.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
