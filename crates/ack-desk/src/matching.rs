//! The unreviewed memories that match a question, for a review at the moment of need.

use std::collections::HashSet;

use ack_api::QueryRequest;
use ack_api::memory::{Status, StatusFilter, fold_name};
use ack_api::time::utc_day;
use ack_service::{Error, Service};

const MAX_MATCHES: usize = 500;
const PAGE: i64 = 50;
const PAGE_TOKENS: i64 = 20_000;

/// A memory by its scope and its id.
pub type Matched = (String, String);

/// The memories that wait for review and match a request, best first. Those that the question names
/// by their ids come first; an id finds nothing else.
pub fn waiting_for(service: &Service, request: &QueryRequest) -> Result<Vec<Matched>, Error> {
    let question = request.query.as_deref().unwrap_or_default().trim();
    let mut found = waiting_named(service, question, request.scope.as_deref())?;
    let is_like_id = !question.contains(' ') && question.contains(|c: char| c.is_ascii_digit());
    if !found.is_empty() && is_like_id {
        return Ok(found);
    }
    for matched in search(service, request)? {
        if !found.contains(&matched) {
            found.push(matched);
        }
    }
    only_waiting(service, found)
}

/// The memories that wait for review and whose id is the typed text, or begins with it.
pub fn waiting_named(
    service: &Service,
    typed: &str,
    scope: Option<&str>,
) -> Result<Vec<Matched>, Error> {
    let named = service.ids_with_prefix(typed, scope, StatusFilter::Staging)?;
    let mut found: Vec<Matched> = named.matches.into_iter().map(|it| (it.scope, it.id)).collect();
    let scopes = service.registry.discover().scopes;
    let is_asked = |name: &str| scope.is_none_or(|scope| fold_name(scope) == fold_name(name));
    let asked = scopes.iter().filter(|it| is_asked(&it.name));
    found.extend(asked.map(|it| (it.name.clone(), typed.to_owned())));
    only_waiting(service, found)
}

fn search(service: &Service, request: &QueryRequest) -> Result<Vec<Matched>, Error> {
    let mut request = QueryRequest {
        query: request.query.clone(),
        scope: request.scope.clone(),
        project: request.project.clone(),
        tags: request.tags.clone(),
        kind: request.kind.clone(),
        status: Some(StatusFilter::Staging),
        limit: Some(PAGE),
        max_tokens: Some(PAGE_TOKENS),
        ..QueryRequest::default()
    };
    let mut found = Vec::new();
    while found.len() < MAX_MATCHES {
        let answer = service.query_memories(&request)?;
        for hit in answer.results {
            found.push((hit.scope, hit.id));
            found.extend(hit.also.into_iter().map(|also| (also.scope, also.id)));
        }
        request.cursor = answer.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Those that wait, without those that are snoozed.
fn only_waiting(service: &Service, mut found: Vec<Matched>) -> Result<Vec<Matched>, Error> {
    let today = utc_day((service.config.clock)());
    let mut waiting = HashSet::new();
    for scope in service.registry.discover().scopes {
        let in_scope: Vec<&Matched> = found.iter().filter(|it| it.0 == scope.name).collect();
        if in_scope.is_empty() || scope.problem.is_some() {
            continue;
        }
        waiting.extend(scope.store.snapshot(|snapshot| {
            let mut waiting = Vec::new();
            for matched in &in_scope {
                let curated = snapshot.curated(&matched.1)?;
                let waits = curated.filter(|it| it.memory.status == Status::Staging);
                if waits.is_some_and(|curated| !curated.is_put_off(today)) {
                    waiting.push((*matched).clone());
                }
            }
            Ok(waiting)
        })?);
    }
    found.retain(|matched| waiting.contains(matched));
    Ok(found)
}
