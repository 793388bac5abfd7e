//! Memories on the desk that are much alike.

use super::Desk;
use super::choice::Choice;
use super::queue::{ItemState, QueueItem};
use crate::curate::CurateError;

impl Desk {
    /// The other waiting memories of the same scope that are much alike.
    pub fn group(&self, number: usize) -> Vec<usize> {
        let waits = |other: &usize| {
            let item = self.items.get(*other);
            item.is_some_and(|item| item.state == ItemState::Waiting)
        };
        self.others_of_group(number).filter(waits).collect()
    }

    /// Approves a memory, and marks the others of its group that are not flagged as its duplicates.
    /// All of it is undone together. Returns how many duplicates there are.
    ///
    /// # Errors
    /// A choice is not possible. Then nothing is recorded.
    pub fn keep_one(&mut self, number: usize) -> Result<usize, CurateError> {
        let (others, _) = self.without_flagged(&self.group(number));
        let item = self.items.get(number);
        let of = item.map(|item| item.candidate.memory().id.clone());
        let of = of.unwrap_or_default();
        let key = self.next_key;
        self.choose_as(key, &[number], Choice::Approve, None)?;
        if let Err(error) = self.choose_as(key, &others, Choice::Duplicate { of }, None) {
            self.take_back(Some(key));
            return Err(error);
        }
        self.next_key += 1;
        self.note_decision(false);
        Ok(others.len())
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
        let group = self.groups.iter().find(|group| group.contains(&number));
        let others = group.into_iter().flatten().copied();
        others.filter(move |other| *other != number && scope(*other) == scope(number))
    }
}
