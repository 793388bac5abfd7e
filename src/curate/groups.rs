//! Groups of waiting memories that say nearly the same thing: fifty are often five lessons.

use ack_compare::groups::near_duplicates;

use super::Candidate;

/// Memories that say nearly the same thing, by their positions in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// At least one position, in ascending order. The first one represents the group.
    pub members: Vec<usize>,
}

/// Puts every memory of a queue into exactly one group. Groups are in the order of their first
/// members, so a queue sorted by age stays sorted. The result is deterministic.
pub fn groups(queue: &[&Candidate]) -> Vec<Group> {
    let memories: Vec<_> = queue.iter().map(|candidate| candidate.memory()).collect();
    let groups = near_duplicates(&memories).into_iter();
    groups.map(|members| Group { members }).collect()
}
