//! The memories on the desk: their order, the filter, and the header of the queue.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use ack_api::Warning;
use ack_api::decision::Edit;
use ack_api::memory::{Memory, nearest};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::Desk;
use super::card::{age_in_days, days};
use super::choice::{Choice, ChoiceOnMemory, count_text};
use super::heaps::HeapKind;
use crate::curate::Candidate;
use crate::curate::stale::ApprovedMemory;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// Nothing is chosen yet.
    Waiting,
    /// A choice exists but is not written yet.
    Chosen,
    Written,
}

#[derive(Debug, Clone)]
pub struct QueueItem {
    /// The memory as the curator sees it: with what they wrote and did not save.
    pub candidate: Arc<Candidate>,
    /// The memory as it was read.
    pub(crate) read: Arc<Candidate>,
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
    /// Its group, if others are much like it, by its position in the groups of the desk.
    pub(crate) group: Option<usize>,
    /// The heap of the plan that it belongs to.
    pub heap: HeapKind,
    /// The text that a filter searches, in lower case.
    pub(crate) words: String,
}

impl QueueItem {
    pub fn new(candidate: Candidate) -> Self {
        let candidate = Arc::new(candidate);
        let memory = candidate.memory();
        let mut words = vec![
            memory.id.clone(),
            memory.title.clone(),
            format!("scope:{}", candidate.scope.name),
        ];
        words.extend(memory.project.iter().map(|name| format!("project:{name}")));
        words.extend(memory.kind.iter().map(|kind| format!("type:{kind}")));
        words.extend(memory.concepts.iter().map(|tag| format!("tag:{tag}")));
        words.extend(memory.subtitle.iter().chain(&memory.facts).cloned());
        Self {
            words: words.join("\n").to_lowercase(),
            warnings: candidate.curated.warnings(),
            state: ItemState::Waiting,
            group: None,
            heap: HeapKind::default(),
            was_put_back: false,
            is_approved: false,
            stale: None,
            saved: None,
            need: 0,
            read: Arc::clone(&candidate),
            candidate,
        }
    }

    /// Shows it with an edit, or as it was read.
    pub(crate) fn show_edited(&mut self, edit: Edit) {
        if edit != self.candidate.edit {
            self.candidate = Arc::new(self.read.edited(edit));
            self.warnings = self.candidate.curated.warnings();
        }
    }

    pub fn approved(memory: ApprovedMemory) -> Self {
        Self { is_approved: true, stale: memory.stale, ..Self::new(memory.candidate) }
    }

    pub fn memory(&self) -> &Memory {
        self.candidate.memory()
    }

    /// Its project, or else its scope.
    pub fn place(&self) -> &String {
        self.memory().project.as_ref().unwrap_or(&self.candidate.scope.name)
    }

    /// A choice for it, with the other memory that the choice names.
    pub fn with_choice<'a>(
        &'a self,
        choice: &'a Choice,
        other: Option<&'a Candidate>,
    ) -> ChoiceOnMemory<'a> {
        ChoiceOnMemory { choice, item: self, other }
    }

    /// Whether a person should look at it before others rely on it.
    pub fn is_flagged(&self) -> bool {
        let contradicts = self.candidate.curated.contradicts.is_some();
        contradicts || self.warnings.iter().any(|warning| warning.is_flag())
    }

    /// Whether a choice for many leaves it out: it is flagged, and waits.
    pub fn is_held_back(&self) -> bool {
        self.is_flagged() && !self.is_approved
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
                None => self.memory().id.to_lowercase().contains(id),
            },
            _ => self.words.contains(word),
        }
    }

    fn has_id(&self, id: &str) -> bool {
        self.memory().id.eq_ignore_ascii_case(id)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
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
    /// Whether approved memories come by their last decision alone, not first the stale ones.
    pub last_decided: bool,
}

impl QueueView {
    /// What is wrong with the filter: a prefix that is nearly a known one, or an unknown state.
    pub fn complaint(&self) -> Option<String> {
        let words = self.filter.split_whitespace();
        let prefixes = words.filter_map(|word| word.trim_start_matches('-').split_once(':'));
        prefixes.into_iter().find_map(|(prefix, rest)| {
            if prefix == "is" && !STATES.iter().any(|state| state.starts_with(rest)) {
                let states = STATES.join("`, `is:");
                return Some(format!("`is:{rest}` is not a filter; use `is:{states}`"));
            }
            let known = nearest(prefix, PREFIXES.into_iter(), 1);
            let near = known.first().filter(|near| *near != prefix)?;
            Some(format!("`{prefix}:` is not a filter; did you mean `{near}:`?"))
        })
    }

    /// The numbers of all that fit, in the order of the view.
    fn numbers(&self, items: &[QueueItem]) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let (waiting, approved) = by_queue(items);
        let (first, items) = match self.queue {
            QueueKind::Waiting => (0, waiting),
            QueueKind::Approved => (waiting.len(), approved),
        };
        // A whole id means that memory alone, also where others begin with it.
        let is_whole = |id: &&str| items.iter().any(|item| item.has_id(id));
        let words = filter.split_whitespace().map(|word| {
            let whole = word.strip_prefix("id:").filter(is_whole);
            whole.map_or_else(|| word.to_owned(), |id| format!("id:{WHOLE}{id}"))
        });
        let words: Vec<String> = words.collect();
        let found = items.par_iter().enumerate();
        let found = found.filter(|(_, item)| words.iter().all(|word| item.fits(word)));
        let mut found: Vec<(usize, &QueueItem)> = found.collect();
        match self.queue {
            QueueKind::Waiting => found.sort_by_key(|(_, item)| Reverse(item.need)),
            QueueKind::Approved if self.last_decided => {
                found.sort_by_key(|(_, item)| Reverse(item.memory().reviewed_at));
            }
            // Those that were just saved were added last.
            QueueKind::Approved => found.sort_by_key(|(_, item)| {
                let is_valid = item.stale.is_none();
                (is_valid, Reverse(is_valid.then(|| item.memory().reviewed_at)))
            }),
        }
        found.into_iter().map(|(place, _)| first + place).collect()
    }
}

/// Where a memory stands among the undecided ones of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// From 1; `None` if it is decided itself.
    pub position: Option<usize>,
    pub total: usize,
    /// The numbers of the one before it, decided or not, and of the next without a decision.
    pub previous: Option<usize>,
    pub next: Option<usize>,
}

/// What is known of the memories until they, their order or what a filter finds changes. A key asks
/// for it several times.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// All that fit a view, by number and in its order, whatever was chosen for them.
    fitting: Option<(QueueView, Arc<[usize]>)>,
    approved: Option<ApprovedCount>,
}

/// The approved memories that were not decided about and saved; how many may be out of date.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ApprovedCount {
    pub all: usize,
    pub stale: usize,
}

impl Desk {
    pub(crate) fn forget_known(&mut self) {
        self.known.take();
    }

    fn fitting(&self, view: &QueueView) -> Arc<[usize]> {
        let mut known = self.known.borrow_mut();
        if let Some((last, numbers)) = &known.fitting
            && last == view
        {
            return Arc::clone(numbers);
        }
        let numbers: Arc<[usize]> = view.numbers(&self.items).into();
        known.fitting = Some((view.clone(), Arc::clone(&numbers)));
        numbers
    }

    pub(crate) fn approved_count(&self) -> ApprovedCount {
        let mut known = self.known.borrow_mut();
        *known.approved.get_or_insert_with(|| {
            let approved = by_queue(&self.items).1.iter();
            let mut count = ApprovedCount::default();
            for item in approved.filter(|item| item.state != ItemState::Written) {
                count.all += 1;
                count.stale += usize::from(item.stale.is_some());
            }
            count
        })
    }

    /// The numbers of the memories in a view that have no choice.
    pub fn undecided(&self, view: &QueueView) -> Vec<usize> {
        self.fitting(view).iter().copied().filter(|number| self.waits(*number)).collect()
    }

    /// The numbers of the memories in a view that are not saved, with a choice or without one.
    pub fn unsaved(&self, view: &QueueView) -> Vec<usize> {
        self.fitting(view).iter().copied().filter(|number| self.is_unsaved(*number)).collect()
    }

    /// Those that have no line in a list of these: of undecided ones that are much alike, the first
    /// stands for all. What is flagged always has its own.
    pub fn folded(&self, numbers: &[usize]) -> HashSet<usize> {
        let mut groups = HashSet::new();
        let mut folded = HashSet::new();
        for number in numbers {
            let item = self.items.get(*number).filter(|_| self.waits(*number));
            if let Some(item) = item.filter(|item| !item.is_flagged())
                && let Some(group) = item.group
                && !groups.insert((&item.candidate.scope.name, group))
            {
                folded.insert(*number);
            }
        }
        folded
    }

    /// The place of a memory in a view. One that does not fit stands behind the others.
    pub fn place(&self, view: &QueueView, number: usize) -> Place {
        let fitting = self.fitting(view);
        let folded = self.folded(&fitting);
        let mut parts = fitting.split(|other| *other == number);
        let before = parts.next().unwrap_or_default();
        let following = parts.next().unwrap_or_default();
        let count = |part: &[usize]| part.iter().filter(|other| self.waits(**other)).count();
        let waits = |other: &usize| self.waits(*other) && !folded.contains(other);
        let first = |part: &[usize]| part.iter().copied().find(waits);
        let is_before = |other: &usize| self.is_unsaved(*other) && !folded.contains(other);
        let position = count(before) + 1;
        if position == 1 && view.queue == QueueKind::Waiting {
            self.has_new_order.set(false);
        }
        Place {
            position: self.waits(number).then_some(position),
            total: position + count(following),
            previous: before.iter().rev().copied().find(is_before),
            next: first(if self.starts_over(view) { before } else { following }),
        }
    }

    /// Whether the first memory comes next: the order changed while another one was looked at.
    fn starts_over(&self, view: &QueueView) -> bool {
        self.has_new_order.get() && view.queue == QueueKind::Waiting
    }

    /// The next undecided memory of a view after another one; after the last one, the first.
    pub fn next(&self, view: &QueueView, after: usize) -> Option<usize> {
        let fitting = self.fitting(view);
        let place = fitting.iter().position(|number| *number == after);
        let place = place.filter(|_| !self.starts_over(view));
        let (before, following) = fitting.split_at_checked(place.map_or(0, |place| place + 1))?;
        let folded = self.folded(&fitting);
        let waits = |number: &usize| self.waits(*number) && !folded.contains(number);
        following.iter().chain(before).copied().find(waits)
    }

    pub(crate) fn waits(&self, number: usize) -> bool {
        self.items.get(number).is_some_and(|item| item.state == ItemState::Waiting)
    }

    pub(crate) fn is_unsaved(&self, number: usize) -> bool {
        self.items.get(number).is_some_and(|item| item.state != ItemState::Written)
    }
}

/// The memories that wait, and the approved ones, which come after them.
pub(crate) fn by_queue(items: &[QueueItem]) -> (&[QueueItem], &[QueueItem]) {
    items.split_at(items.partition_point(|item| !item.is_approved))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Head {
    pub waiting: usize,
    /// How many decisions are not written yet.
    pub chosen: usize,
    /// How many approved memories may be out of date and have no choice.
    pub stale: usize,
    /// How many are unreviewed and how old they are, in words; then what else there is to know.
    pub text: String,
}

impl Desk {
    pub fn head(&self) -> Head {
        let waiting = by_queue(&self.items).0.iter();
        let waiting: Vec<&QueueItem> =
            waiting.filter(|item| item.state == ItemState::Waiting).collect();
        let ages = waiting.iter().filter_map(|item| age_in_days(item.memory(), self.now));
        let mut ages: Vec<i64> = ages.collect();
        ages.sort_unstable();
        let age = match (ages.get(ages.len() / 2), ages.last()) {
            (Some(median), Some(oldest)) => {
                format!("; median age {}, oldest {}", days(*median), days(*oldest))
            }
            _ => String::new(),
        };
        let count = waiting.len();
        let mut text = count_text(count, "unreviewed memory", "unreviewed memories") + &age;
        if count > 0 {
            text.push_str(&self.numbers.describe_pace());
        }
        let stale = self.stale();
        match stale {
            0 => {}
            1 => text.push_str("\n1 approved memory may be out of date"),
            many => text.push_str(&format!("\n{many} approved memories may be out of date")),
        }
        Head { waiting: count, chosen: self.unwritten(), stale, text }
    }

    /// How many approved memories may be out of date and have no choice.
    fn stale(&self) -> usize {
        let picks = self.choices.iter().flat_map(|made| &made.picks);
        let chosen = picks.filter_map(|pick| self.items.get(pick.number));
        self.approved_count().stale - chosen.filter(|item| item.stale.is_some()).count()
    }
}
