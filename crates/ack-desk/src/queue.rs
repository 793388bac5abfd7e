//! The memories on the desk: their order, the filter, and the header of the queue.

use std::cmp::Reverse;

use ack_api::Warning;
use ack_api::memory::nearest;
use serde::{Deserialize, Serialize};

use super::card::{age_in_days, days};
use super::choice::Choice;
use super::heaps::HeapKind;
use crate::curate::Candidate;
use crate::curate::stale::ApprovedMemory;

/// The state of a memory on the desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// Nothing is chosen yet.
    Waiting,
    /// A choice exists but is not written yet.
    Chosen,
    Written,
}

/// A memory on the desk.
#[derive(Debug, Clone)]
pub struct QueueItem {
    /// The memory as it was read.
    pub candidate: Candidate,
    pub state: ItemState,
    /// Whether it was approved when it was read.
    pub is_approved: bool,
    /// For an approved memory, why it may be out of date.
    pub stale: Option<String>,
    /// What was chosen for it and is saved.
    pub saved: Option<Choice>,
    /// How much it is needed: what orders the memories that wait, see [`crate::need`].
    pub need: u32,
    /// Whether a decision about it was not written because the memory had changed.
    pub was_put_back: bool,
    /// What a person should look at first.
    pub warnings: Vec<Warning>,
    /// The heap of the plan that it belongs to.
    pub heap: HeapKind,
    /// The text that a filter searches, in lower case.
    words: String,
}

impl QueueItem {
    /// A waiting memory.
    pub fn new(candidate: Candidate) -> Self {
        let memory = candidate.memory();
        let mut words = vec![
            memory.id.clone(),
            memory.title.clone(),
            format!("scope:{}", candidate.scope.name),
        ];
        words.extend(memory.project.iter().map(|name| format!("project:{name}")));
        words.extend(memory.kind.iter().map(|kind| format!("type:{kind}")));
        words.extend(memory.concepts.iter().map(|tag| format!("tag:{tag}")));
        words.extend(memory.subtitle.clone());
        words.extend(memory.facts.iter().cloned());
        Self {
            words: words.join("\n").to_lowercase(),
            warnings: candidate.curated.warnings(),
            state: ItemState::Waiting,
            heap: HeapKind::default(),
            was_put_back: false,
            is_approved: false,
            stale: None,
            saved: None,
            need: 0,
            candidate,
        }
    }

    /// An approved memory.
    pub fn approved(memory: ApprovedMemory) -> Self {
        Self { is_approved: true, stale: memory.stale, ..Self::new(memory.candidate) }
    }

    /// Whether a bulk decision must leave it out.
    pub fn is_flagged(&self) -> bool {
        let contradicts = self.candidate.curated.contradicts.is_some();
        contradicts || self.warnings.iter().any(|warning| warning.is_flag())
    }

    /// Whether it left the queue without being decided here: somebody else decided, or it is gone.
    pub fn is_lost(&self) -> bool {
        self.state == ItemState::Written && self.saved.is_none()
    }

    /// Whether a word of a filter fits. A minus sign before it turns that around.
    fn fits(&self, word: &str) -> bool {
        if let Some(unwanted) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            return !self.fits(unwanted);
        }
        match word.split_once(':') {
            Some(("heap", name)) => self.heap.name() == name,
            Some(("is", "flagged")) => self.is_flagged(),
            Some(("is", "duplicate")) => self.heap == HeapKind::Alike,
            Some(("is", "stale")) => self.stale.is_some(),
            Some(("id", id)) => match id.strip_prefix(WHOLE) {
                Some(id) => self.has_id(id),
                None => self.candidate.memory().id.to_lowercase().contains(id),
            },
            _ => self.words.contains(word),
        }
    }

    fn has_id(&self, id: &str) -> bool {
        self.candidate.memory().id.eq_ignore_ascii_case(id)
    }

    pub const fn queue(&self) -> QueueKind {
        if self.is_approved { QueueKind::Approved } else { QueueKind::Waiting }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// Memories that wait for review.
    #[default]
    Waiting,
    /// Approved memories, those that may be out of date first.
    Approved,
}

/// Before an id in a filter that is whole.
const WHOLE: char = '=';
/// What a word of a filter can say after `is:`.
const STATES: [&str; 3] = ["flagged", "duplicate", "stale"];
/// What a word of a filter can begin with.
pub const PREFIXES: [&str; 7] = ["heap", "id", "is", "project", "scope", "tag", "type"];

/// Which memories to show. Those that wait come by need, then the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueView {
    /// Words that must all occur. A word may have a prefix ([`PREFIXES`]), and a minus sign before it
    /// if it must not occur.
    pub filter: String,
    pub queue: QueueKind,
    /// Whether approved memories come by their last decision alone, rather than first those that
    /// may be out of date.
    pub last_decided: bool,
}

impl QueueView {
    /// What is wrong with the filter: a prefix that is nearly a known one, or an unknown state.
    pub fn complaint(&self) -> Option<String> {
        let words = self.filter.split_whitespace();
        let prefixes = words.filter_map(|word| word.trim_start_matches('-').split_once(':'));
        prefixes.into_iter().find_map(|(prefix, rest)| {
            if prefix == "is" && !STATES.iter().any(|state| state.starts_with(rest)) {
                return Some(format!(
                    "`is:{rest}` is not a filter; use `is:{}`",
                    STATES.join("`, `is:")
                ));
            }
            let known = nearest(prefix, PREFIXES.into_iter(), 1);
            let near = known.first().filter(|near| *near != prefix)?;
            Some(format!("`{prefix}:` is not a filter; did you mean `{near}:`?"))
        })
    }

    /// The numbers of the memories in this view without a choice.
    pub fn of(&self, items: &[QueueItem]) -> Vec<usize> {
        self.with(items, None)
    }

    /// The same plus one more memory, waiting or not.
    pub fn with(&self, items: &[QueueItem], one_more: Option<usize>) -> Vec<usize> {
        self.numbers(items, one_more, &[ItemState::Waiting])
    }

    /// The numbers of those in this view that are not written yet, with a choice or without one.
    pub fn with_chosen(&self, items: &[QueueItem]) -> Vec<usize> {
        self.numbers(items, None, &[ItemState::Waiting, ItemState::Chosen])
    }

    fn numbers(
        &self,
        items: &[QueueItem],
        one_more: Option<usize>,
        states: &[ItemState],
    ) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let (waiting, approved) = by_queue(items);
        let (first, items) = match self.queue {
            QueueKind::Waiting => (0, waiting),
            QueueKind::Approved => (waiting.len(), approved),
        };
        let words = filter.split_whitespace().map(|word| {
            // A whole id means that memory alone, also where others begin with it.
            let id = word.strip_prefix("id:").unwrap_or_default();
            match items.iter().any(|item| item.has_id(id)) {
                true => format!("id:{WHOLE}{id}"),
                false => word.to_owned(),
            }
        });
        let words: Vec<String> = words.collect();
        let mut found: Vec<(usize, &QueueItem)> = (first..)
            .zip(items)
            .filter(|(number, item)| {
                let is_open = states.contains(&item.state);
                let fits = is_open && words.iter().all(|word| item.fits(word));
                fits || one_more == Some(*number)
            })
            .collect();
        match self.queue {
            QueueKind::Waiting => found.sort_by_key(|(_, item)| Reverse(item.need)),
            QueueKind::Approved if self.last_decided => {
                found.sort_by_cached_key(|(_, item)| Reverse(item.candidate.memory().reviewed_at));
            }
            // Those that were just saved were added last.
            QueueKind::Approved => found.sort_by_cached_key(|(_, item)| {
                let is_valid = item.stale.is_none();
                let decided = is_valid.then(|| item.candidate.memory().reviewed_at);
                (is_valid, Reverse(decided))
            }),
        }
        let is_missing = |number: &usize| !found.iter().any(|(known, _)| known == number);
        let elsewhere = one_more.filter(is_missing);
        let numbers = found.iter().map(|(number, _)| *number);
        numbers.chain(elsewhere).collect()
    }
}

/// The memories that wait, and the approved ones, which come after them.
pub(crate) fn by_queue(items: &[QueueItem]) -> (&[QueueItem], &[QueueItem]) {
    let first = items.partition_point(|item| !item.is_approved);
    items.split_at(first)
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    pub waiting: usize,
    /// How many approved memories may be out of date.
    pub stale: usize,
    /// How many decisions are not written yet.
    pub chosen: usize,
    /// How many were written.
    pub written: usize,
    /// The median age of the waiting memories.
    pub median_age_days: Option<i64>,
    pub oldest_age_days: Option<i64>,
    /// All of it in one line.
    pub text: String,
}

impl Head {
    pub fn of(items: &[QueueItem], now: jiff::Timestamp) -> Self {
        let count = |state| items.iter().filter(|item| item.state == state).count();
        let (waiting, approved) = by_queue(items);
        let is_open = |item: &&QueueItem| item.state == ItemState::Waiting;
        let waiting = || waiting.iter().filter(is_open);
        let stale = approved.iter().filter(|item| item.stale.is_some());
        let saved = items.iter().filter(|item| item.saved.is_some());
        let ages = waiting().filter_map(|item| age_in_days(item.candidate.memory(), now));
        let mut ages: Vec<i64> = ages.collect();
        ages.sort_unstable();
        let median_age_days = ages.get(ages.len() / 2).copied();
        let oldest_age_days = ages.last().copied();
        let waiting = waiting().count();
        let age = match (median_age_days, oldest_age_days) {
            (Some(median), Some(oldest)) => {
                format!("; median age {}, oldest {}", days(median), days(oldest))
            }
            _ => String::new(),
        };
        let wait = if waiting == 1 { "memory waits" } else { "memories wait" };
        Self {
            waiting,
            stale: stale.filter(is_open).count(),
            chosen: count(ItemState::Chosen),
            written: saved.count(),
            median_age_days,
            oldest_age_days,
            text: format!("{waiting} {wait} for review{age}"),
        }
    }
}
