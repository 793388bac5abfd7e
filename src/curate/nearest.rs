//! The approved memories nearest to a candidate, with a word-by-word diff.

use ack_api::memory::Memory;
use ack_compare::Relation;
use ack_compare::diff::{DiffPart, words};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::Candidate;
use crate::service::{Error, Service};

/// An approved memory near a candidate.
#[derive(Debug)]
pub struct Neighbour {
    /// The approved memory.
    pub memory: Memory,
    /// How the candidate relates to it.
    pub relation: Relation,
    /// The word-by-word diff from the approved memory to the candidate.
    pub diff: Vec<DiffPart>,
}

/// The approved memories of a candidate's scope that are nearest to it, at most three. Those that
/// it repeats or contradicts come first.
///
/// # Errors
/// The store cannot be read.
pub fn nearest(service: &'static Service, candidate: &Candidate) -> Result<Vec<Neighbour>, Error> {
    let memory = candidate.memory();
    let found = service.nearest_approved_soon(memory, &candidate.scope.name)?;
    let neighbours = found.into_par_iter().map(|found| Neighbour {
        diff: words(&comparison_text(&found.memory), &comparison_text(memory)),
        memory: found.memory,
        relation: found.relation,
    });
    Ok(neighbours.collect())
}

/// The text of a memory for the comparison: title, subtitle, facts as a list, narrative.
pub fn comparison_text(memory: &Memory) -> String {
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
