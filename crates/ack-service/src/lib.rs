//! One method per operation, over the types of the API. Adapters (command line, MCP) call these and
//! contain no rules of their own.
//!
//! Every method is synchronous and only uses the file system. Adapters must not call it on an async
//! thread.

mod answer;
pub mod bucket;
mod budget;
pub mod config;
pub mod context;
mod engine;
mod error;
pub mod evidence;
mod explain;
mod get;
mod live;
pub mod nearest;
mod open;
mod query;
pub mod remote;
mod resources;
pub mod same_id;
pub mod scope;
pub mod scopes;
mod search;
pub mod service_state;
pub mod short_id;
mod shown;
pub mod stale;
pub mod validate;

use std::collections::HashSet;

use ack_api::{
    ContextRequest, ContextResponse, GetRequest, GetResponse, QueryRequest, QueryResponse,
};

pub use self::engine::Service;
pub use self::error::Error;
pub use self::nearest::NearMemory;
use self::open::OpenScopes;
pub use self::resources::ListedScope;
pub use self::short_id::IdMatches;
pub use self::validate::arguments;
use ack_api::memory::Memory;

/// How many large scopes may lose their tables during one request.
const MAX_TRIES: usize = 4;

impl Service {
    /// Searches memories, or lists the newest.
    pub fn query_memories(&self, request: &QueryRequest) -> Result<QueryResponse, Error> {
        self.retry_without_table(|| query::run(self, request))
    }

    /// Reads memories by id.
    pub fn get_memory(&self, request: &GetRequest) -> Result<GetResponse, Error> {
        self.retry_without_table(|| get::run(self, request))
    }

    /// The memories and sessions that a project needs now.
    pub fn get_context(&self, request: &ContextRequest) -> Result<ContextResponse, Error> {
        self.retry_without_table(|| context::run(self, request))
    }

    /// The approved memories of a scope that are nearest to a memory, at most three, with their
    /// relation to it. Does not wait for the index of a large scope: until that is built, it scans
    /// the store. `more` are compared as well: memories of the scope that a person approved and did
    /// not save yet.
    pub fn nearest_approved(
        &'static self,
        memory: &Memory,
        scope: &str,
        more: &[Memory],
    ) -> Result<Vec<NearMemory>, Error> {
        self.retry_without_table(|| nearest::run(self, memory, scope, more))
    }

    /// For each memory of a scope, the id of an approved one there that it contradicts, if any.
    pub fn contradicted_by(
        &self,
        memories: &[&Memory],
        scope: &str,
    ) -> Result<Vec<Option<String>>, Error> {
        self.retry_without_table(|| nearest::contradicted(self, memories, scope))
    }

    /// The ids that several of the default scopes contain.
    pub fn shared_ids(&self, ids: &[&str]) -> Result<HashSet<String>, Error> {
        let mut selection = self.select(None, None)?;
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let holders =
            |id: &str| opened.indexed().filter(|(_, index)| index.find(id).is_some()).count();
        Ok(ids.iter().filter(|id| holders(id) > 1).map(|id| (*id).to_owned()).collect())
    }

    /// Repeats a request if the table of a large scope failed, which is then not used again.
    fn retry_without_table<A>(&self, request: impl Fn() -> Result<A, Error>) -> Result<A, Error> {
        for _ in 0..MAX_TRIES {
            match request() {
                Err(Error::Table { scope, source }) => {
                    let scopes = self.registry.discover().scopes;
                    if let Some(failed) = scopes.iter().find(|other| other.name == scope) {
                        failed.live.refuse_table(&source.to_string());
                    }
                }
                done => return done,
            }
        }
        request()
    }
}
