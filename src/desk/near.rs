//! The approved memories beside one that waits, as all faces show them.

use ack_api::RelationKind;
use serde::Serialize;

use super::card::age_in_days;
use crate::curate::{Candidate, nearest};
use crate::service::Service;

/// An approved memory beside one that waits.
#[derive(Debug, Clone, Serialize)]
pub struct Near {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How long ago it was written.
    pub age_days: Option<i64>,
    /// How the one that waits relates to it.
    pub relation: RelationKind,
    /// What one says and the other denies, if they contradict each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<Conflict>,
    /// From its text to the other one's, word by word.
    pub diff: Vec<Part>,
}

/// Two statements that cannot both be true.
#[derive(Debug, Clone, Serialize)]
pub struct Conflict {
    /// What the one that waits says.
    pub newer: String,
    /// What the approved one says.
    pub older: String,
}

/// A part of both texts, or of one.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// `both`, `newer` (the one that waits) or `older` (the approved one).
    pub side: &'static str,
    /// The words.
    pub text: String,
}

impl Near {
    /// How it relates, in words.
    pub const fn relation_in_words(&self) -> &'static str {
        self.relation.as_str()
    }
}

/// The approved memories of its scope that are nearest to one, at most three; none where they
/// cannot be read.
pub fn beside(service: &Service, candidate: &Candidate, now: jiff::Timestamp) -> Vec<Near> {
    let found = nearest::nearest(service, candidate).unwrap_or_default();
    let near = found.into_iter().map(|neighbour| Near {
        age_days: age_in_days(&neighbour.memory, now),
        id: neighbour.memory.id,
        title: neighbour.memory.title,
        relation: neighbour.relation.kind,
        conflict: neighbour.relation.conflict.map(|conflict| Conflict {
            newer: conflict.newer,
            older: conflict.older,
        }),
        diff: parts(neighbour.diff),
    });
    near.collect()
}

fn parts(diff: Vec<ack_compare::diff::DiffPart>) -> Vec<Part> {
    let parts = diff.into_iter().map(|part| Part {
        side: part.side.as_str(),
        text: part.text,
    });
    parts.collect()
}
