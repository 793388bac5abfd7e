//! What the unreviewed memories have to do with each other and with the approved ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ack_api::memory::Memory;
use ack_compare::groups::{ALIKE, alike};
use ack_service::Service;
use ack_store::{Access, READ_TIMEOUT};

use super::Desk;
use super::queue::{ItemState, QueueItem};
use crate::curate::{Candidate, by_scope};

/// Memories are known by their numbers on the desk.
#[derive(Debug, Default)]
pub struct Relations {
    /// Those that are much alike.
    groups: Vec<Vec<usize>>,
    /// The approved memory that each contradicts.
    contradicted: HashMap<usize, String>,
}

impl Relations {
    /// Those of some memories, by their positions.
    pub fn find(service: &Service, waiting: &[Arc<Candidate>]) -> Self {
        let memories: Vec<_> = waiting.iter().map(|candidate| candidate.memory()).collect();
        let mut groups = alike(&memories, ALIKE);
        groups.retain(|members| members.len() > 1);
        Self { groups, contradicted: contradicted(service, waiting) }
    }
}

/// Where a store cannot be read, nothing can be decided anyway.
fn contradicted(service: &Service, waiting: &[Arc<Candidate>]) -> HashMap<usize, String> {
    let numbered = waiting.iter().zip(0..).map(|(it, number)| (&it.scope, (number, it.memory())));
    let mut found = HashMap::new();
    for (scope, numbered) in by_scope(numbered) {
        let (numbers, memories): (Vec<usize>, Vec<&Memory>) = numbered.into_iter().unzip();
        let counts =
            scope.store.read(Access::QuickScan, READ_TIMEOUT, |snapshot| snapshot.counts_by_id());
        if counts.is_ok_and(|counts| counts.approved + counts.promoted > 0) {
            let others = service.contradicted_by(&memories, &scope.name).unwrap_or_default();
            let others = numbers.into_iter().zip(others);
            found.extend(others.filter_map(|(number, other)| Some((number, other?))));
        }
    }
    found
}

impl Desk {
    pub fn find_relations(&mut self) {
        self.set_relations(Relations::find(self.service, &self.waiting()));
    }

    /// Leaves only the memories that a choice for many holds back. For a desk without choices.
    pub fn keep_flagged(&mut self) {
        self.find_relations();
        self.items.retain(QueueItem::is_held_back);
        // They have other numbers now.
        self.find_relations();
    }

    /// Sets what was found elsewhere among [`Desk::waiting`].
    pub fn set_relations(&mut self, relations: Relations) {
        self.items.iter_mut().for_each(|item| item.group = None);
        for (group, members) in relations.groups.iter().enumerate() {
            for number in members {
                if let Some(item) = self.items.get_mut(*number) {
                    item.group = Some(group);
                }
            }
        }
        self.groups = relations.groups;
        self.hold_back(relations.contradicted);
        self.are_compared = true;
        self.sort_into_heaps();
    }

    /// Compares what was chosen for many before all were compared, so that nothing is saved unseen.
    /// Returns the ids of those that are held back.
    pub(crate) fn compare_chosen(&mut self) -> Vec<String> {
        if self.are_compared {
            return Vec::new();
        }
        let numbers: Vec<usize> = self.chosen_for_many().collect();
        let waiting: Vec<Arc<Candidate>> =
            self.items_of(&numbers).map(|item| Arc::clone(&item.candidate)).collect();
        let found = contradicted(self.service, &waiting).into_iter();
        let by_number = found.filter_map(|(place, other)| Some((*numbers.get(place)?, other)));
        self.hold_back(by_number.collect())
    }

    /// Takes back what was chosen for these among many: a person looks at each. Returns their ids.
    fn hold_back(&mut self, contradicted: HashMap<usize, String>) -> Vec<String> {
        let mut held_back: HashSet<usize> = HashSet::new();
        if !self.includes_flagged {
            let chosen = self.chosen_for_many();
            held_back.extend(chosen.filter(|number| contradicted.contains_key(number)));
        }
        for (number, other) in contradicted {
            if let Some(item) = self.items.get_mut(number) {
                for candidate in [&mut item.read, &mut item.candidate] {
                    let curated = &mut Arc::make_mut(candidate).curated;
                    curated.contradicts.get_or_insert_with(|| other.clone());
                }
            }
        }
        self.forget(&held_back);
        for number in &held_back {
            self.set(*number, ItemState::Waiting);
        }
        self.ids(held_back)
    }

    pub(crate) fn ids(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
        let items = numbers.into_iter().filter_map(|number| self.items.get(number));
        items.map(|item| item.memory().id.clone()).collect()
    }

    /// The unreviewed memories with a choice for many that is not saved.
    fn chosen_for_many(&self) -> impl Iterator<Item = usize> {
        let many = self.choices.iter().filter(|made| made.picks.len() > 1);
        many.flat_map(|made| made.numbers()).filter(|number| !self.is_approved(*number))
    }

    /// The other unreviewed memories of the same scope that are much alike.
    pub fn group(&self, number: usize) -> Vec<usize> {
        self.others_of_group(number).filter(|other| self.waits(*other)).collect()
    }

    /// How many are much alike, if this memory stands for several.
    pub fn alike(&self, number: usize) -> Option<usize> {
        let others = self.group(number).len();
        (others > 0 && self.waits(number)).then_some(others + 1)
    }

    pub fn ids_of_group(&self, number: usize) -> Vec<String> {
        self.ids(self.group(number))
    }

    /// The ids of those that were decided about in this session, each with a participle.
    pub fn decided_in_group(&self, number: usize) -> Vec<(String, &'static str)> {
        let decided = self.others_of_group(number).filter_map(|other| {
            let item = self.items.get(other)?;
            let participle = match item.state {
                ItemState::Waiting => return None,
                ItemState::Chosen => self.done(other)?,
                ItemState::Written => "decided",
            };
            Some((item.memory().id.clone(), participle))
        });
        decided.collect()
    }

    /// The other members of a memory's group in its scope, whatever was chosen for them.
    fn others_of_group(&self, number: usize) -> impl Iterator<Item = usize> {
        let scope = |number: usize| Some(&self.items.get(number)?.candidate.scope.name);
        let group = self.items.get(number).and_then(|item| self.groups.get(item.group?));
        let others = group.into_iter().flatten().copied();
        others.filter(move |other| *other != number && scope(*other) == scope(number))
    }
}
