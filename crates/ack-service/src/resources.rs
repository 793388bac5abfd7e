//! The content of resources. The rules are those of the tools: only memories that are approved in the store at that moment; private scopes only if they
//! are current or named.

use crate::scope::ScopeError;

use super::engine::Service;
use crate::error::Error;
use crate::scope::resolve::current;
use ack_api::memory::Visibility;
use ack_api::uri::Address;
use ack_api::{
    ListScopesRequest, ListScopesResponse, QueryRequest, QueryResponse, ResourceEntry,
    ScopeResource, text,
};

const NEWEST_COUNT: i64 = 20;
const MAX_TOKENS: i64 = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedScope {
    pub name: String,
    pub description: Option<String>,
}

impl Service {
    /// Shared scopes and the current one; on a pinned server only its own. Opens no store.
    pub fn listed_scopes(&self) -> Result<Vec<ListedScope>, Error> {
        let scopes = self.registry.discover().scopes;
        // A private scope is never claimed by the content of its memories.
        let current = current(&self.config, &scopes, None, false)?;
        let listed = self.readable_by_default(&scopes, &current).map(|scope| ListedScope {
            name: scope.name.clone(),
            description: scope.manifest.description.as_ref().map(|text| text::line(text, 300)),
        });
        Ok(listed.collect())
    }

    /// Like [`Service::list_scopes`], without private scopes other than the current one.
    pub fn scopes_resource(&self) -> Result<ListScopesResponse, Error> {
        let mut response = self.list_scopes(&ListScopesRequest {
            max_tokens: Some(MAX_TOKENS),
            by_agent: true,
            ..ListScopesRequest::default()
        })?;
        let own_scope = response.current_scope.clone();
        response.scopes.retain(|scope| {
            scope.visibility == Visibility::Shared || own_scope.as_ref() == Some(&scope.name)
        });
        Ok(response)
    }

    /// The name works like the `scope` argument of a tool.
    pub fn scope_resource(&self, name: &str) -> Result<ScopeResource, Error> {
        let request = ListScopesRequest {
            scope: Some(name.to_owned()),
            max_tokens: Some(MAX_TOKENS),
            by_agent: true,
            ..ListScopesRequest::default()
        };
        let Some(scope) = self.list_scopes(&request)?.scopes.into_iter().next() else {
            let (known, projects) = (Vec::new(), Vec::new());
            return Err(ScopeError::NotFound { name: name.to_owned(), known, projects }.into());
        };
        let newest = self.query_memories(&QueryRequest {
            scope: Some(scope.name.clone()),
            limit: Some(NEWEST_COUNT),
            max_tokens: Some(MAX_TOKENS),
            by_agent: true,
            ..QueryRequest::default()
        });
        let page = match newest {
            // The scope's health shows what is wrong with the store.
            Err(Error::Store(_)) => QueryResponse::default(),
            other => other?,
        };
        let newest = page.results.into_iter().map(|hit| ResourceEntry {
            uri: Address::Memory { scope: hit.scope, id: hit.id.clone() }.to_string(),
            id: hit.id,
            title: hit.title,
            created_at: hit.created_at,
        });
        Ok(ScopeResource { newest: newest.collect(), notes: page.notes, scope })
    }
}
