//! Stores in outline, kept between the requests of a process.
//!
//! Reading a store in outline takes a scan of it. As long as the store's files, the words that are
//! looked for and the day are the same, a second scan would find the same. What is kept chooses and
//! orders. It vouches for nothing: each memory and each session that is shown is read again, with
//! the status that the store has then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::civil::Date;

use super::words::WordsKey;
use crate::scope::Scope;
use ack_api::memory::ProjectRows;
use ack_store::open::FileState;
use ack_store::outline::Outlines;
use ack_store::sessions::{Members, RecentSession};

/// For so many lists of words outlines are kept: a server has few clients that begin at once.
const MAX_LISTS: usize = 4;
/// About the bytes of a session, and of a scope without memories.
const SESSION_BYTES: usize = 1_000;

/// The outlines that a process keeps.
#[derive(Debug)]
pub(crate) struct KeptOutlines {
    /// Most bytes of all of them.
    bound: usize,
    /// By the words that were looked for, the last ones used last.
    lists: Mutex<Vec<KeptList>>,
}

/// What is looked for in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    pub words: WordsKey,
    /// What was put off until a later day does not wait.
    pub today: Date,
}

/// The outlines of one list of words, by the name of the scope.
#[derive(Debug)]
struct KeptList {
    sought: Arc<Sought>,
    scopes: HashMap<String, Arc<KeptScope>>,
    bytes: usize,
}

/// A scope in outline, in one state of its store.
#[derive(Debug)]
pub(super) struct KeptScope {
    /// The scope that was read. One whose manifest changed is another one.
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
    /// Nothing yet, and never more than `bound` bytes.
    pub const fn new(bound: usize) -> Self {
        Self {
            bound,
            lists: Mutex::new(Vec::new()),
        }
    }

    /// About how many bytes are kept.
    pub fn bytes(&self) -> usize {
        self.with_lists(|lists| lists.iter().map(|list| list.bytes).sum())
    }

    /// The same value for what was looked for before. Scopes that are gone are forgotten.
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

    /// A scope in outline, if it was kept in this state of its store.
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

    /// Keeps a scope in outline where there is room, if need be in place of what was looked for
    /// earlier.
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
