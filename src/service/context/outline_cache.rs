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
pub(crate) struct OutlineCache {
    /// The maximum size of all of them, in bytes.
    max_bytes: usize,
    /// One entry per word list, least recently used first.
    word_lists: Mutex<Vec<CachedWordList>>,
}

/// The key of a cached outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutlineKey {
    pub words: WordsKey,
    /// The day matters, because memories deferred until a later day do not wait yet.
    pub today: Date,
}

/// The outlines for one word list, by scope name.
#[derive(Debug)]
struct CachedWordList {
    key: Arc<OutlineKey>,
    scopes: HashMap<String, Arc<CachedScope>>,
    bytes: usize,
}

/// The outline of a scope, for one version of its store.
#[derive(Debug)]
pub(super) struct CachedScope {
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

impl CachedScope {
    pub fn new(
        scope: &Arc<Scope>,
        own_rows: ProjectRows,
        state: FileState,
        outlines: Arc<Outlines>,
        (sessions, members): (Vec<RecentSession>, Members),
    ) -> Self {
        Self {
            scope: Arc::downgrade(scope),
            state,
            own: own_rows,
            outlines,
            sessions,
            members,
        }
    }

    fn bytes(&self) -> usize {
        self.outlines.bytes() + (self.sessions.len() + 1) * SESSION_BYTES
    }
}

impl OutlineCache {
    /// An empty cache with at most `max_bytes` bytes.
    pub const fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            word_lists: Mutex::new(Vec::new()),
        }
    }

    /// The approximate size of the cache in bytes.
    pub fn bytes(&self) -> usize {
        self.lock_lists(|lists| lists.iter().map(|list| list.bytes).sum())
    }

    /// Returns the shared value for an equal earlier search. Also drops scopes that are gone.
    pub(super) fn share(&self, key: OutlineKey) -> Arc<OutlineKey> {
        self.lock_lists(|lists| {
            for list in lists.iter_mut() {
                let is_gone = |cached: &CachedScope| cached.scope.strong_count() == 0;
                let freed: usize = list
                    .scopes
                    .extract_if(|_, cached| is_gone(cached))
                    .map(|(_, cached)| cached.bytes())
                    .sum();
                list.bytes = list.bytes.saturating_sub(freed);
            }
            let known = lists.iter().position(|list| *list.key == key);
            let list = match known {
                Some(position) => lists.remove(position),
                None => CachedWordList {
                    key: Arc::new(key),
                    scopes: HashMap::new(),
                    bytes: 0,
                },
            };
            if lists.len() >= MAX_LISTS {
                lists.remove(0);
            }
            let key = Arc::clone(&list.key);
            lists.push(list);
            key
        })
    }

    /// The cached outline of a scope, if its store has not changed.
    pub(super) fn find(
        &self,
        key: &Arc<OutlineKey>,
        scope: &Arc<Scope>,
        own_rows: &ProjectRows,
        state: &FileState,
    ) -> Option<Arc<CachedScope>> {
        self.lock_lists(|lists| {
            let list = lists.iter().find(|list| Arc::ptr_eq(&list.key, key))?;
            let cached = list.scopes.get(&scope.name)?;
            let is_same = std::ptr::eq(cached.scope.as_ptr(), Arc::as_ptr(scope));
            (is_same && cached.own == *own_rows && cached.state == *state)
                .then(|| Arc::clone(cached))
        })
    }

    /// Caches the outline of a scope if there is room. If necessary, drops the outlines of older
    /// word lists.
    pub(super) fn keep(&self, key: &Arc<OutlineKey>, scope: &Scope, cached: CachedScope) {
        let bytes = cached.bytes();
        self.lock_lists(|lists| {
            let Some(position) = lists.iter().position(|list| Arc::ptr_eq(&list.key, key)) else {
                return;
            };
            let mut list = lists.remove(position);
            let replaced = list.scopes.remove(&scope.name);
            list.bytes = list
                .bytes
                .saturating_sub(replaced.map_or(0, |replaced| replaced.bytes()));
            let others =
                |lists: &[CachedWordList]| lists.iter().map(|list| list.bytes).sum::<usize>();
            while list.bytes + bytes + others(lists) > self.max_bytes && !lists.is_empty() {
                lists.remove(0);
            }
            if list.bytes + bytes <= self.max_bytes {
                list.bytes += bytes;
                list.scopes.insert(scope.name.clone(), Arc::new(cached));
            }
            lists.push(list);
        });
    }

    fn lock_lists<T>(&self, use_lists: impl FnOnce(&mut Vec<CachedWordList>) -> T) -> T {
        use_lists(
            &mut self
                .word_lists
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}
