//! One method for each operation, over the contract types. Adapters (command line, MCP) call these and hold no rules.
//!
//! Every method is synchronous and touches only the file system; adapters keep it off their async threads.

pub(crate) mod answer;
pub(crate) mod bounds;
mod error;
mod evidence;
mod explain;
mod get;
mod query;
pub(crate) mod resources;
mod review;
mod same_id;
pub(crate) mod scopes;
pub(crate) mod search;
pub(crate) mod validate;

pub use self::error::Error;
use crate::scope::ScopeError;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

pub use self::resources::Listed;
pub use self::validate::arguments;

use crate::config::Config;
use crate::context::brief::{Brief, BriefRequest};
use crate::scope::resolve::{Selection, select};
use crate::scope::{IndexGuard, Registry, Scope, TableState};
use ack_api::cancel;
use ack_api::time;
use ack_api::{
    Completions, ContextRequest, ContextResponse, GetRequest, GetResponse, ListScopesRequest, ListScopesResponse, Note, NoteKind,
    QueryRequest, QueryResponse, Review, ScopeResource, Skipped,
};
use ack_search::inverted::Index;
use ack_store::PATIENCE;
use ack_store::StoreError;

/// How many large scopes may lose their tables during one request.
const TRIES: usize = 4;
/// From so many scopes on several threads bring their indexes up to date.
const MIN_PARALLEL_SCOPES: usize = 8;
/// Threads that do so, at most.
const MAX_REFRESH_THREADS: usize = 8;

/// The service over one configuration.
#[derive(Debug)]
pub struct Service {
    /// The settings in force.
    pub config: Config,
    /// The scopes.
    pub registry: Registry,
}

impl Service {
    /// A service. Nothing is opened or read until the first request.
    pub fn new(config: Config) -> Self {
        let registry = Registry::new(&config);
        Self { config, registry }
    }

    /// A service that lives as long as the process. Taking a large index apart at the end would only delay the exit; what
    /// must go, the private copies of stores, [`Service::close`] removes.
    pub fn for_the_process(config: Config) -> &'static Self {
        Box::leak(Box::new(Self::new(config)))
    }

    /// Removes what lies outside the process's memory.
    pub fn close(&self) {
        self.registry.close();
    }

    /// Searches memories, or lists the newest.
    ///
    /// # Errors
    /// Invalid arguments, an unknown scope, or a store that was named and cannot be read.
    pub fn query_memories(&self, request: &QueryRequest) -> Result<QueryResponse, Error> {
        self.again(|| query::run(self, request))
    }

    /// Reads memories by id.
    ///
    /// # Errors
    /// Invalid arguments, an unknown scope or id, or a memory that the status filter does not let through.
    pub fn get_memory(&self, request: &GetRequest) -> Result<GetResponse, Error> {
        self.again(|| get::run(self, request))
    }

    /// Lists the scopes.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn list_scopes(&self, request: &ListScopesRequest) -> Result<ListScopesResponse, Error> {
        scopes::run(self, request)
    }

    /// What a project needs now.
    ///
    /// # Errors
    /// Invalid arguments, or no scope at all.
    pub fn get_context(&self, request: &ContextRequest) -> Result<ContextResponse, Error> {
        self.again(|| crate::context::run(self, request))
    }

    /// The scopes that may be listed as resources: shared ones and the current one. Opens no store.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub fn listed_scopes(&self) -> Result<Vec<Listed>, Error> {
        resources::listed(self)
    }

    /// The resource that lists the scopes: as [`Service::list_scopes`], without private ones that are not current.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub fn scopes_resource(&self) -> Result<ListScopesResponse, Error> {
        resources::scopes(self)
    }

    /// The resource of one scope, named exactly or as `scope` of a tool.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn scope_resource(&self, name: &str) -> Result<ScopeResource, Error> {
        resources::scope(self, name)
    }

    /// Names of scopes that fit what was typed.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub fn complete_scopes(&self, typed: &str) -> Result<Completions, Error> {
        resources::complete_scopes(self, typed)
    }

    /// Ids of approved memories that fit what was typed, in one scope or in those that are searched without one.
    ///
    /// # Errors
    /// A store that cannot be read, where there is no other.
    pub fn complete_ids(&self, scope: Option<&str>, typed: &str) -> Result<Completions, Error> {
        resources::complete_ids(self, scope, typed)
    }

    /// The memories that wait for review, the oldest first, in one scope or in those that are searched without one.
    ///
    /// # Errors
    /// An unknown scope, or a store that was named and cannot be read.
    pub fn pending_review(&self, scope: Option<&str>) -> Result<Review, Error> {
        self.again(|| review::run(self, scope))
    }

    /// Those of some ids that more than one of the scopes holds which a request without a scope searches.
    ///
    /// # Errors
    /// No scope at all, or no store that can be read.
    pub fn shared_ids(&self, ids: &[&str]) -> Result<HashSet<String>, Error> {
        let mut selection = self.select(None, None)?;
        let scopes = selection.scopes.clone();
        let opened = open(&mut selection, &scopes, &mut Vec::new())?;
        let indexes: Vec<&Index> = opened.iter().filter_map(|(_, guard)| guard.get()).collect();
        let holders = |id: &str| indexes.iter().filter(|index| index.find(id).is_some()).count();
        let shared = ids.iter().filter(|id| holders(id) > 1);
        Ok(shared.map(|id| (*id).to_owned()).collect())
    }

    /// What a session starts with: as [`Service::get_context`], without an index.
    ///
    /// # Errors
    /// An invalid folder, no scope at all, or no store that can be read.
    pub fn session_brief(&self, request: &BriefRequest) -> Result<Brief, Error> {
        crate::context::brief::run(self, request)
    }

    /// Makes a request anew where the table of a large scope was lost on the way. That table is not used again, so that the
    /// next time the scope is read from its store.
    fn again<A>(&self, request: impl Fn() -> Result<A, Error>) -> Result<A, Error> {
        for _ in 0..TRIES {
            match request() {
                Err(Error::Table { scope, source }) => {
                    let scopes = self.registry.discover().scopes;
                    if let Some(lost) = scopes.iter().find(|other| other.name == scope) {
                        lost.refuse_table(&source.to_string());
                    }
                }
                done => return done,
            }
        }
        request()
    }

    pub(crate) fn select(&self, named: Option<&str>, folder: Option<&Path>) -> Result<Selection, Error> {
        let selection = select(&self.config, &self.registry, named, folder)?;
        let bound = usize::try_from(self.config.memory.value).map_or(usize::MAX, |mebibytes| mebibytes << 20);
        self.registry.keep_within(bound, &selection.scopes);
        Ok(selection)
    }
}

/// The indexes of a selection's scopes, brought up to date. A scope that cannot be read leaves the selection: it goes to
/// `skipped`, with a note. Where every scope fails, the first failure is the error. Scopes are locked in the order of their
/// names, in every request, so that two requests never wait for each other.
pub(crate) fn open<'a>(
    selection: &mut Selection,
    scopes: &'a [Arc<Scope>],
    notes: &mut Vec<Note>,
) -> Result<Vec<(&'a Scope, IndexGuard<'a>)>, Error> {
    notes.extend(selection.meant.clone());
    for broken in &selection.broken {
        notes.push(Note::about(
            NoteKind::ScopeUnavailable,
            &broken.scope,
            ack_api::text::line(&broken.reason, 500),
        ));
    }
    if let Some(broken) = selection.broken.first().filter(|_| scopes.is_empty()) {
        return Err(ScopeError::Unusable {
            name: broken.scope.clone(),
            reason: broken.reason.clone(),
        }
        .into());
    }
    let mut open = Vec::with_capacity(scopes.len());
    let mut first: Option<StoreError> = None;
    let mut failed = HashSet::new();
    // Where others can answer, one that is locked is not waited for as long.
    let patience = if scopes.len() > 1 { PATIENCE / 4 } else { PATIENCE };
    let mut refreshed = refresh(scopes, patience)?.into_iter();
    for scope in scopes {
        cancel::check()?;
        let guard = match refreshed.next() {
            Some(Err(error)) => Err(error),
            Some(Ok(())) => scope.refreshed_index(patience),
            None => scope.index_within(patience),
        };
        match guard {
            Ok(guard) => {
                if let Some(TableState::Unusable(reason)) = guard.table() {
                    notes.push(Note::about(
                        NoteKind::IndexUnusable,
                        &scope.name,
                        scopes::unusable_table(&scope.name, reason),
                    ));
                }
                open.push((scope.as_ref(), guard));
            }
            Err(error) => {
                selection.skipped.push(Skipped {
                    scope: scope.name.clone(),
                    reason: ack_api::text::line(&error.to_string(), 300),
                });
                notes.push(Note::about(
                    NoteKind::ScopeUnavailable,
                    &scope.name,
                    ack_api::text::line(&format!("{error}; {}", error.hint()), 500),
                ));
                failed.insert(scope.name.as_str());
                first.get_or_insert(error);
            }
        }
    }
    selection.scopes.retain(|scope| !failed.contains(scope.name.as_str()));
    match first {
        Some(error) if open.is_empty() => Err(error.into()),
        _ => Ok(open),
    }
}

/// The notes on scopes that were read beside a writer that keeps its lock.
pub(crate) fn note_locks<'a>(scopes: impl Iterator<Item = &'a Scope>, notes: &mut Vec<Note>) {
    for scope in scopes {
        let Some(read) = scope.store.read_beside_lock() else { continue };
        notes.push(Note::about(
            NoteKind::StoreLocked,
            &scope.name,
            format!(
                "another program keeps this store locked: as of {}, without what it has not committed",
                time::show(read)
            ),
        ));
    }
}

/// Brings the indexes of many scopes up to date, on several threads: what became of each, in order. Nothing where there are few.
fn refresh(scopes: &[Arc<Scope>], patience: Duration) -> Result<Vec<Result<(), StoreError>>, Error> {
    if scopes.len() < MIN_PARALLEL_SCOPES {
        return Ok(Vec::new());
    }
    let flag = cancel::current();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            match scopes.get(number) {
                Some(scope) if flag.check().is_ok() => {
                    done.push((number, scope.index_within(patience).map(drop)));
                }
                _ => return done,
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_REFRESH_THREADS);
    let mut done = thread::scope(|threads_scope| {
        let others: Vec<_> = (1..threads).map(|_| threads_scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    cancel::check()?;
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

/// The note for scopes whose stores know no review.
pub(crate) fn note_missing_status(scopes: &[(&Scope, IndexGuard<'_>)], relevant: impl Fn(&str) -> bool, notes: &mut Vec<Note>) {
    for (scope, guard) in scopes {
        if !relevant(&scope.name) || guard.get().is_none_or(|index| index.has_status) {
            continue;
        }
        let counts_as = scope.store.unreviewed().status();
        notes.push(Note::about(
            NoteKind::NoStatusColumn,
            &scope.name,
            format!("this store keeps no review status; its rows count as `{counts_as}` (`unreviewed` in scope.toml decides)"),
        ));
    }
}
