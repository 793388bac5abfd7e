//! The approved memories beside one that waits.

use ack_api::QueryRequest;
use serde::Serialize;

use crate::curate::Candidate;
use crate::service::Service;

/// How many approved memories a card shows beside its own.
const NEIGHBOURS: i64 = 3;

/// An approved memory beside one that waits.
#[derive(Debug, Clone, Serialize)]
pub struct Near {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
}

/// The approved memories of its scope that are nearest to one; none where they cannot be read.
pub fn nearest(service: &Service, candidate: &Candidate) -> Vec<Near> {
    let request = QueryRequest {
        query: Some(candidate.memory().title.clone()),
        scope: Some(candidate.scope.name.clone()),
        limit: Some(NEIGHBOURS),
        ..QueryRequest::default()
    };
    let Ok(found) = service.query_memories(&request) else {
        return Vec::new();
    };
    let near = found.results.into_iter().map(|hit| Near {
        id: hit.id,
        title: hit.title,
    });
    near.collect()
}
