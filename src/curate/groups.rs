//! Groups of waiting memories that are much alike: fifty are often five lessons.

use ack_compare::groups::{ALIKE, alike};

use super::Candidate;

/// Memories that are much alike, by their positions in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// At least one position, in ascending order. The first one represents the group.
    pub members: Vec<usize>,
}

/// Puts every memory of a queue into exactly one group. Groups are in the order of their first
/// members, so a queue sorted by age stays sorted. The result is deterministic.
pub fn groups(queue: &[&Candidate]) -> Vec<Group> {
    let memories: Vec<_> = queue.iter().map(|candidate| candidate.memory()).collect();
    let groups = alike(&memories, ALIKE).into_iter();
    groups.map(|members| Group { members }).collect()
}
