//! The content of resources and the completions of their arguments. The rules are those of the
//! tools: only memories that are approved in the store at that moment; private scopes only if they
//! are current or named.

use crate::scope::ScopeError;
use std::cmp::Reverse;
use std::collections::HashSet;

use super::engine::Service;
use super::open::OpenScopes;
use super::validate::check_length;
use crate::error::Error;
use crate::scope::resolve::current_by_manifests;
use ack_api::memory::{StatusFilter, Visibility};
use ack_api::uri::Address;
use ack_api::{
    Completions, ListScopesRequest, ListScopesResponse, QueryRequest, QueryResponse, ResourceEntry,
    ScopeResource, cancel, text,
};

const NEWEST_COUNT: i64 = 20;
const MAX_TOKENS: i64 = 20_000;
/// Maximum values of a completion (MCP specification, "Completion").
pub const MAX_VALUES: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedScope {
    pub name: String,
    pub description: Option<String>,
}

impl Service {
    /// The scopes that may be listed: shared ones and the current one; on a pinned server only its
    /// own. Opens no store.
    pub fn listed_scopes(&self) -> Result<Vec<ListedScope>, Error> {
        let scopes = self.registry.discover().scopes;
        // A private scope is never claimed by the content of its memories.
        let current = current_by_manifests(&self.config, &scopes, None)?;
        let own_scope = current.scope.as_ref().map(|scope| scope.name.as_str());
        let pinned = self.config.pinned.is_some();
        let visible = scopes.iter().filter(|scope| {
            let own_scope = own_scope == Some(scope.name.as_str());
            scope.problem.is_none()
                && (own_scope || (!pinned && scope.manifest.visibility == Visibility::Shared))
        });
        Ok(visible
            .map(|scope| ListedScope {
                name: scope.name.clone(),
                description: scope
                    .manifest
                    .description
                    .as_ref()
                    .map(|description| text::line(description, 300)),
            })
            .collect())
    }

    /// The resource that lists the scopes: like [`Service::list_scopes`], but without private
    /// scopes other than the current one.
    ///
    /// # Errors
    /// A pinned scope that does not exist.
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

    /// The resource of one scope, with its newest memories. The name works like the `scope` argument
    /// of a tool.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn scope_resource(&self, name: &str) -> Result<ScopeResource, Error> {
        let request = ListScopesRequest {
            scope: Some(name.to_owned()),
            max_tokens: Some(MAX_TOKENS),
            by_agent: true,
            ..ListScopesRequest::default()
        };
        let response = self.list_scopes(&request)?;
        let Some(scope) = response.scopes.into_iter().next() else {
            return Err(ScopeError::NotFound {
                name: name.to_owned(),
                known: Vec::new(),
                projects: Vec::new(),
            }
            .into());
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
            uri: Address::Memory {
                scope: hit.scope,
                id: hit.id.clone(),
            }
            .to_string(),
            id: hit.id,
            title: hit.title,
            created_at: hit.created_at,
        });
        Ok(ScopeResource {
            newest: newest.collect(),
            notes: page.notes,
            scope,
        })
    }

    /// Scope names that begin with the typed text, then those that contain it, by name.
    pub fn complete_scopes(&self, typed: &str) -> Result<Completions, Error> {
        check_length("name", typed)?;
        let typed = typed.trim().to_lowercase();
        let mut fitting: Vec<(usize, String)> = self
            .listed_scopes()?
            .into_iter()
            .filter_map(|scope| Some((match_rank(&scope.name, &typed)?, scope.name)))
            .collect();
        fitting.sort();
        let total = fitting.len();
        let values = fitting
            .into_iter()
            .take(MAX_VALUES)
            .map(|(_, name)| name)
            .collect();
        Ok(Completions { values, total })
    }

    /// Ids of approved memories that begin with the typed text, then those that contain it, newest
    /// first; of one scope, or of the default scopes. An unknown scope yields none.
    ///
    /// # Errors
    /// The only store cannot be read.
    pub fn complete_ids(&self, scope: Option<&str>, typed: &str) -> Result<Completions, Error> {
        check_length("id", typed)?;
        check_length("name", scope.unwrap_or_default())?;
        let mut selection = match self.select(scope, None) {
            Ok(selection) => selection,
            Err(Error::Scope(_)) => return Ok(Completions::default()),
            Err(error) => return Err(error),
        };
        let typed = typed.trim().to_lowercase();
        let opened = OpenScopes::open(self, &mut selection, &mut Vec::new())?;
        let mut fitting = opened.ordered(|index, doc, row| {
            let id = index.id(doc);
            let is_served = StatusFilter::Approved.allows(row.status);
            let rank = match_rank(id, &typed).filter(|_| is_served)?;
            Some((rank, Reverse(row.created), id))
        });
        cancel::check()?;
        let mut ids = HashSet::new();
        fitting.retain(|((_, _, id), _)| ids.insert(*id));
        let total = fitting.len();
        fitting.truncate(MAX_VALUES);
        // The index may have an old status, so the store decides.
        let records = opened.read(
            fitting.iter().map(|(_, wanted)| *wanted),
            StatusFilter::Approved,
        );
        if let Some((_, error)) = records.failed.into_iter().next() {
            return Err(error);
        }
        let served = fitting.iter().filter(|((_, _, id), wanted)| {
            records
                .found
                .contains_key(&(wanted.scope, (*id).to_owned()))
        });
        let values: Vec<String> = served.map(|((_, _, id), _)| (*id).to_owned()).collect();
        let dropped = fitting.len() - values.len();
        Ok(Completions {
            values,
            total: total - dropped,
        })
    }
}

/// 0 if a value begins with the typed text (in lower case), 1 if it contains it, `None` otherwise.
fn match_rank(value: &str, typed: &str) -> Option<usize> {
    value
        .to_lowercase()
        .find(typed)
        .map(|at| usize::from(at > 0))
}
