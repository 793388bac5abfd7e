//! Memories on the desk that are much alike.

use super::Desk;
use super::queue::{ItemState, QueueItem};

impl Desk {
    /// The other unreviewed memories of the same scope that are much alike.
    pub fn group(&self, number: usize) -> Vec<usize> {
        self.others_of_group(number).filter(|other| self.waits(*other)).collect()
    }

    /// How many are much alike, if this memory stands for several.
    pub fn alike(&self, number: usize) -> Option<usize> {
        let others = self.group(number).len();
        (others > 0 && self.waits(number)).then_some(others + 1)
    }

    /// The ids of those memories.
    pub fn ids_of_group(&self, number: usize) -> Vec<String> {
        let items = self.group(number).into_iter();
        let items = items.filter_map(|number| self.items.get(number));
        items.map(|item| item.candidate.memory().id.clone()).collect()
    }

    /// The ids of those that were decided about in this session, each with the decision as a
    /// participle.
    pub fn decided_in_group(&self, number: usize) -> Vec<(String, &'static str)> {
        let others = self.others_of_group(number);
        let decided = others.filter_map(|other| {
            let item: &QueueItem = self.items.get(other)?;
            let participle = match item.state {
                ItemState::Waiting => return None,
                ItemState::Chosen => self.done(other)?,
                ItemState::Written => "decided",
            };
            Some((item.candidate.memory().id.clone(), participle))
        });
        decided.collect()
    }

    /// The other members of a memory's group in its scope, whatever was chosen for them.
    fn others_of_group(&self, number: usize) -> impl Iterator<Item = usize> {
        let scope = |number: usize| {
            let item = self.items.get(number);
            item.map(|item| &item.candidate.scope.name)
        };
        let group = self.group_of.get(&number).and_then(|group| self.groups.get(*group));
        let others = group.into_iter().flatten().copied();
        others.filter(move |other| *other != number && scope(*other) == scope(number))
    }
}
