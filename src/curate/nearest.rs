//! The approved memories nearest to one that is decided about, with what differs word by word.

use ack_api::memory::Memory;
use ack_compare::Relation;
use ack_compare::diff::{DiffPart, words};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::Candidate;
use crate::service::{Error, Service};

/// An approved memory near one that is decided about.
#[derive(Debug)]
pub struct Neighbour {
    /// The approved memory.
    pub memory: Memory,
    /// How the one that is decided about relates to it.
    pub relation: Relation,
    /// From the approved memory to the other one, word by word.
    pub diff: Vec<DiffPart>,
}

/// The approved memories of its scope that are nearest to a candidate, at most three. Those that it
/// repeats or contradicts come first.
///
/// # Errors
/// The store cannot be read.
pub fn nearest(service: &'static Service, candidate: &Candidate) -> Result<Vec<Neighbour>, Error> {
    let memory = candidate.memory();
    let near = service.nearest_approved_soon(memory, &candidate.scope.name)?;
    let neighbours = near.into_par_iter().map(|near| Neighbour {
        diff: words(&shown(&near.memory), &shown(memory)),
        memory: near.memory,
        relation: near.relation,
    });
    Ok(neighbours.collect())
}

/// The text of a memory as it is compared: title, subtitle, facts as a list, narrative.
pub fn shown(memory: &Memory) -> String {
    let mut text = memory.title.clone();
    if let Some(subtitle) = &memory.subtitle {
        text.push('\n');
        text.push_str(subtitle);
    }
    for fact in &memory.facts {
        text.push_str("\n- ");
        text.push_str(fact);
    }
    if let Some(narrative) = &memory.narrative {
        text.push_str("\n\n");
        text.push_str(narrative);
    }
    text
}
