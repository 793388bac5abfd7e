//! One method per operation, over the types of the API. Adapters (command line, MCP) call these and
//! contain no rules of their own.
//!
//! Every method is synchronous and only uses the file system. Adapters must not call it on an async
//! thread.

pub(crate) mod answer;
pub(crate) mod budget;
pub mod context;
mod engine;
mod error;
mod explain;
mod get;
pub mod instructions;
mod meaning;
pub mod nearest;
mod open;
mod query;
pub mod remote;
pub(crate) mod resources;
mod review;
pub(crate) mod same_id;
pub(crate) mod scopes;
pub(crate) mod search;
pub mod service_state;
mod session_words;
pub(crate) mod short_id;
mod shown;
pub(crate) mod stale;
pub(crate) mod validate;

use std::collections::HashSet;

use ack_api::{
    Completions, ContextRequest, ContextResponse, GetRequest, GetResponse, ListScopesRequest,
    ListScopesResponse, MemoryHit, QueryRequest, QueryResponse, Review, ScopeResource,
};

use self::context::about_files::{FilesBrief, FilesRequest};
use self::context::brief::{Brief, BriefRequest};
use self::context::listed::ListedMemory;
pub use self::engine::Service;
pub use self::error::Error;
pub use self::nearest::NearMemory;
use self::open::{OpenScope, OpenScopes};
pub use self::resources::ListedScope;
pub use self::short_id::IdMatches;
pub use self::validate::arguments;
use ack_api::memory::Memory;
use ack_search::inverted::Index;

/// How many large scopes may lose their tables during one request.
const MAX_TRIES: usize = 4;

impl Service {
    /// Searches memories, or lists the newest.
    ///
    /// # Errors
    /// Invalid arguments, an unknown scope, or a named store that cannot be read.
    pub fn query_memories(&self, request: &QueryRequest) -> Result<QueryResponse, Error> {
        self.retry_without_table(|| query::run(self, request))
    }

    /// Reads memories by id.
    ///
    /// # Errors
    /// Invalid arguments, an unknown scope or id, or a memory that the status filter excludes.
    pub fn get_memory(&self, request: &GetRequest) -> Result<GetResponse, Error> {
        self.retry_without_table(|| get::run(self, request))
    }

    /// Lists the scopes.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn list_scopes(&self, request: &ListScopesRequest) -> Result<ListScopesResponse, Error> {
        scopes::run(self, request)
    }

    /// The memories and sessions that a project needs now.
    ///
    /// # Errors
    /// Invalid arguments, or there is no scope.
    pub fn get_context(&self, request: &ContextRequest) -> Result<ContextResponse, Error> {
        self.retry_without_table(|| crate::service::context::run(self, request))
    }

    /// The scopes that may be listed as resources: shared ones and the current one. Opens no store.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub(crate) fn listed_scopes(&self) -> Result<Vec<ListedScope>, Error> {
        resources::listed_scopes(self)
    }

    /// The memories that may be listed as resources: promoted ones and the project's newest.
    ///
    /// # Errors
    /// There is no scope, or none can be read.
    pub(crate) fn listed_memories(&self) -> Result<Vec<ListedMemory>, Error> {
        context::listed::run(self)
    }

    /// The resource that lists the scopes: like [`Service::list_scopes`], but without private
    /// scopes other than the current one.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub fn scopes_resource(&self) -> Result<ListScopesResponse, Error> {
        resources::scopes(self)
    }

    /// The resource of one scope. The name works like the `scope` argument of a tool.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn scope_resource(&self, name: &str) -> Result<ScopeResource, Error> {
        resources::scope(self, name)
    }

    /// Scope names that match the typed text.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
    pub(crate) fn complete_scopes(&self, typed: &str) -> Result<Completions, Error> {
        resources::complete_scopes(self, typed)
    }

    /// Ids of approved memories that match the typed text, in one scope or in the default scopes.
    ///
    /// # Errors
    /// The only store cannot be read.
    pub fn complete_ids(&self, scope: Option<&str>, typed: &str) -> Result<Completions, Error> {
        resources::complete_ids(self, scope, typed)
    }

    /// The memories that wait for review, oldest first, in one scope or in the default scopes.
    /// Skips the first `offset`.
    ///
    /// # Errors
    /// An unknown scope, or a named store that cannot be read.
    pub(crate) fn pending_review(&self, scope: Option<&str>, offset: u64) -> Result<Review, Error> {
        self.retry_without_table(|| review::run(self, scope, offset))
    }

    /// The approved memories of a scope that are nearest to a memory, at most three, with their
    /// relation to it.
    ///
    /// # Errors
    /// An unknown scope, or a store that cannot be read.
    pub fn nearest_approved(&self, memory: &Memory, scope: &str) -> Result<Vec<NearMemory>, Error> {
        self.retry_without_table(|| nearest::run(self, memory, scope))
    }

    /// The same, without waiting for the index of a large scope. Until the index is built, this
    /// scans the store.
    ///
    /// # Errors
    /// An unknown scope, or a store that cannot be read.
    pub fn nearest_approved_soon(
        &'static self,
        memory: &Memory,
        scope: &str,
    ) -> Result<Vec<NearMemory>, Error> {
        self.retry_without_table(|| nearest::without_index_wait(self, memory, scope))
    }

    /// The ids that several of the default scopes contain.
    ///
    /// # Errors
    /// There is no scope, or no readable store.
    pub(crate) fn shared_ids(&self, ids: &[&str]) -> Result<HashSet<String>, Error> {
        let mut selection = self.select(None, None)?;
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let indexes: Vec<&Index> = opened.iter().filter_map(OpenScope::index).collect();
        let holders = |id: &str| {
            indexes
                .iter()
                .filter(|index| index.find(id).is_some())
                .count()
        };
        let shared = ids.iter().filter(|id| holders(id) > 1);
        Ok(shared.map(|id| (*id).to_owned()).collect())
    }

    /// What a session starts with: like [`Service::get_context`], but without an index.
    ///
    /// # Errors
    /// An invalid folder, no scope, or no readable store.
    pub fn session_brief(&self, request: &BriefRequest) -> Result<Brief, Error> {
        crate::service::context::brief::run(self, request)
    }

    /// What a session would no longer start with if a memory of a scope were approved, by the same
    /// selection code. `None` if the session would not start with that memory.
    ///
    /// # Errors
    /// There is no scope, or no readable store.
    pub(crate) fn pushed_out(
        &self,
        scope: &str,
        memory: &Memory,
    ) -> Result<Option<Vec<MemoryHit>>, Error> {
        crate::service::context::brief::pushed_out(self, scope, memory)
    }

    /// The memories about files that are about to be edited. Needs no index.
    ///
    /// # Errors
    /// An invalid folder, no scope, or no readable store.
    pub fn about_files(&self, request: &FilesRequest) -> Result<FilesBrief, Error> {
        crate::service::context::about_files::run(self, request)
    }

    /// Repeats a request if the table of a large scope failed on the way. That table is not used
    /// again, so the next attempt reads the store.
    fn retry_without_table<A>(&self, request: impl Fn() -> Result<A, Error>) -> Result<A, Error> {
        for _ in 0..MAX_TRIES {
            match request() {
                Err(Error::Table { scope, source }) => {
                    let scopes = self.registry.discover().scopes;
                    if let Some(failed) = scopes.iter().find(|other| other.name == scope) {
                        self.indexes.of(failed).refuse_table(&source.to_string());
                    }
                }
                done => return done,
            }
        }
        request()
    }
}
