//! Groups of memories that wait for review and say nearly the same: fifty are often five lessons.

use ack_compare::groups::near_duplicates;

use super::Candidate;

/// Memories that say nearly the same, by their positions in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// At least one position, in ascending order. The first one leads the group.
    pub members: Vec<usize>,
}

/// Puts every memory of a queue into one group. Groups stand in the order of their first members,
/// so a queue that is sorted by age stays so. The same queue has the same groups.
pub fn groups(queue: &[&Candidate]) -> Vec<Group> {
    let memories: Vec<_> = queue.iter().map(|candidate| candidate.memory()).collect();
    let groups = near_duplicates(&memories).into_iter();
    groups.map(|members| Group { members }).collect()
}
