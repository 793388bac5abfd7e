//! The plan of a review: heaps of waiting memories that a person can decide with one look and one
//! key.
//!
//! Heaps are disjoint, and together they are all that waits: a memory belongs to the first heap
//! that fits it. What is flagged has a heap of its own and is decided one by one: a decision about
//! another heap never includes it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use ack_api::memory::{Memory, fold_name};
use ack_api::number::count;
use ack_api::text;
use serde::Serialize;

use super::Desk;
use super::card::age_in_days;
use super::choice::{Choice, NO_LONGER_TRUE, ONLY_MATTERED_ONCE, count_text};
use super::decide::capitalised;
use super::held_back::HeldBack;
use super::markdown;
use super::queue::{QueueItem, by_queue};
use crate::curate::CurateError;

const OLD_DAYS: i64 = 365;
/// How many memories of a heap are shown at once.
const SAMPLE: usize = 5;
const MAX_TYPES: usize = 4;
/// What opens a heap whose memories have to be looked at.
pub(crate) const ONE_BY_ONE: (&str, &str) = ("Enter", "one by one");
/// What stands in place of a type that a memory does not have.
const NO_TYPE: &str = "no type";
/// The type of a session's summary in the stores that have them.
pub(crate) const SUMMARY: &str = "session_summary";

/// What the memories of a heap have in common. The order is that of the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeapKind {
    /// A person has to look at each.
    Flagged,
    Summaries,
    /// Several that say much the same.
    Alike,
    /// A newer memory says that it replaces them.
    Replaced,
    Old,
    /// The memories of a project, by its folded name.
    Project(String),
    /// The memories that name no project.
    #[default]
    Elsewhere,
    /// Those of one type, of a heap that was split.
    Part(Box<Self>, String),
}

impl HeapKind {
    /// Its name in a filter, after `heap:`.
    pub fn name(&self) -> String {
        match self {
            Self::Flagged => "flagged".to_owned(),
            Self::Summaries => "summaries".to_owned(),
            Self::Alike => "alike".to_owned(),
            Self::Replaced => "replaced".to_owned(),
            Self::Old => "old".to_owned(),
            // A project may be called `old`.
            Self::Project(name) => format!("project/{}", without_colon(name)),
            Self::Elsewhere => "no-project".to_owned(),
            Self::Part(whole, kind) => format!("{}:{}", whole.name(), without_colon(kind)),
        }
    }

    /// The heap that it is a part of, or itself.
    fn whole(&self) -> &Self {
        match self {
            Self::Part(whole, _) => whole,
            _ => self,
        }
    }

    /// The usual reason to reject all of it, if there is one.
    const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Summaries => Some(ONLY_MATTERED_ONCE),
            Self::Replaced => Some(NO_LONGER_TRUE),
            _ => None,
        }
    }

    /// Whether its memories have types that tell something.
    const fn has_types(&self) -> bool {
        matches!(self, Self::Old | Self::Project(_) | Self::Elsewhere)
    }

    /// The heap that fits a memory, whether or not it is flagged.
    fn of(item: &QueueItem, has_twin: bool, now: jiff::Timestamp) -> Self {
        let memory = item.memory();
        match &memory.project {
            _ if memory.superseded_by.is_some() => Self::Replaced,
            _ if memory.kind.as_deref() == Some(SUMMARY) => Self::Summaries,
            _ if has_twin => Self::Alike,
            _ if age_in_days(memory, now).is_some_and(|days| days > OLD_DAYS) => Self::Old,
            Some(project) => Self::Project(fold_name(project)),
            None => Self::Elsewhere,
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub struct Plan {
    /// How many memories it has, in how many heaps.
    pub title: String,
    pub left: String,
    /// How many past prompts were asked again.
    pub prompts: usize,
    pub heaps: Vec<Heap>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Heap {
    /// Its name in a filter, after `heap:`.
    pub name: String,
    pub title: String,
    /// What is in it or what was decided, and how many flagged ones are held back, in one line.
    pub about: String,
    pub waiting: usize,
    /// How many it has, decided or not.
    pub total: usize,
    /// How often past prompts would have found one of those that are left; `None` without prompts.
    pub missed: Option<usize>,
    /// What was chosen for its memories, if none waits.
    pub done: Option<&'static str>,
    /// Whether all of it is saved, so it can no longer be undone here.
    pub is_saved: bool,
    /// The key of what is most likely right, and what it does.
    pub key: &'static str,
    pub does: &'static str,
    /// What the key for its types does, if it has several.
    pub split: Option<&'static str>,
    /// The reason to reject all of them, if there is a usual one.
    pub reason: Option<&'static str>,
    pub sample: Vec<Sample>,
    /// Which of them the sample is, in one line.
    pub sampled: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    pub number: usize,
    pub title: String,
    /// Its first fact, or what stands in its place.
    pub text: String,
    /// Its project, its age and how many are like it.
    pub about: String,
}

impl Desk {
    /// Puts each waiting memory on its heap.
    pub fn sort_into_heaps(&mut self) {
        let with_twin = self.groups_with_twins();
        let mut items = std::mem::take(&mut self.items);
        for item in &mut items {
            let has_twin = item.group.is_some_and(|group| with_twin.contains(&group));
            item.heap = match item.is_flagged() {
                true => HeapKind::Flagged,
                false => self.fitting_heap(item, has_twin),
            };
        }
        self.items = items;
        self.forget_known();
    }

    /// The heap that fits a memory, or its part if that one is split.
    fn fitting_heap(&self, item: &QueueItem, has_twin: bool) -> HeapKind {
        let whole = HeapKind::of(item, has_twin, self.now);
        match self.split.contains(&whole) {
            true => HeapKind::Part(Box::new(whole), fold_name(type_of(item.memory()))),
            false => whole,
        }
    }

    /// Splits a heap by type. What is a part becomes whole again.
    pub fn split_heap(&mut self, name: &str) {
        let Some(item) = self.items.iter().find(|item| item.heap.name() == name) else {
            return;
        };
        let whole = item.heap.whole().clone();
        if !self.split.remove(&whole) && whole.has_types() {
            self.split.insert(whole);
        }
        self.sort_into_heaps();
    }

    /// The groups that have several memories on the heap of those.
    fn groups_with_twins(&self) -> HashSet<usize> {
        let is_alike = |item: &QueueItem| HeapKind::of(item, true, self.now) == HeapKind::Alike;
        let alike = |number: &&usize| {
            let item = self.items.get(**number);
            item.is_some_and(|item| !item.is_flagged() && is_alike(item))
        };
        let groups = self.groups.iter().enumerate();
        let groups = groups.filter(|(_, members)| members.iter().filter(alike).count() > 1);
        groups.map(|(group, _)| group).collect()
    }

    /// The plan. `turn` moves the samples of its heaps on.
    pub fn plan(&self, turn: usize) -> Plan {
        let heaps = self.heaps(turn);
        let total: usize = heaps.iter().map(|heap| heap.total).sum();
        let memories = count_text(total, "unreviewed memory", "unreviewed memories");
        Plan {
            title: format!("{memories}, in {}", count_text(heaps.len(), "heap", "heaps")),
            left: self.left_of(&heaps),
            prompts: self.past_prompts().len(),
            heaps,
        }
    }

    /// The heaps, in the order of the plan: projects by need, then those with many memories first.
    /// Those that are decided keep their place.
    fn heaps(&self, turn: usize) -> Vec<Heap> {
        let mut numbers: BTreeMap<&HeapKind, Vec<usize>> = BTreeMap::new();
        let mut held_back: HashMap<HeapKind, usize> = HashMap::new();
        for (number, item) in by_queue(&self.items).0.iter().enumerate() {
            if item.is_lost() {
                continue;
            }
            numbers.entry(&item.heap).or_default().push(number);
            if item.is_flagged() {
                let fitting = self.fitting_heap(item, item.group.is_some());
                *held_back.entry(fitting).or_default() += 1;
            }
        }
        let mut sorted: Vec<(&HeapKind, Vec<usize>)> = numbers.into_iter().collect();
        let mut weights: HashMap<&HeapKind, (u32, usize)> = HashMap::new();
        for (kind, numbers) in &sorted {
            let (need, count) = weights.entry(kind.whole()).or_default();
            *need += self.need_of(numbers);
            *count += numbers.len();
        }
        sorted.sort_by_cached_key(|(kind, numbers)| {
            let whole = kind.whole();
            let place = match whole {
                HeapKind::Project(_) => (1, Reverse(weights.get(whole).copied())),
                HeapKind::Elsewhere => (2, Reverse(None)),
                _ => (0, Reverse(None)),
            };
            (place, whole, Reverse((self.need_of(numbers), numbers.len())))
        });
        // What was chosen for each memory and is not saved.
        let mut chosen: HashMap<usize, &'static str> = HashMap::new();
        for made in &self.choices {
            chosen.extend(made.numbers().map(|number| (number, made.choice.done(false))));
        }
        let heaps = sorted.into_iter().map(|(kind, numbers)| {
            let held_back = held_back.get(kind).copied().unwrap_or_default();
            self.heap(kind, &numbers, held_back, &chosen, turn)
        });
        heaps.collect()
    }

    pub fn heap_of(&self, number: usize) -> Option<String> {
        self.items.get(number).map(|item| item.heap.name())
    }

    pub(crate) fn items_of(&self, numbers: &[usize]) -> impl Iterator<Item = &QueueItem> {
        numbers.iter().filter_map(|number| self.items.get(*number))
    }

    fn need_of(&self, numbers: &[usize]) -> u32 {
        self.items_of(numbers).map(|item| item.need).sum()
    }

    fn heap(
        &self,
        kind: &HeapKind,
        numbers: &[usize],
        held_back: usize,
        chosen: &HashMap<usize, &'static str>,
        turn: usize,
    ) -> Heap {
        let mut waiting = numbers.to_vec();
        waiting.retain(|number| self.waits(*number));
        let done = waiting.is_empty().then(|| self.done_with(numbers, chosen));
        let shown = if waiting.is_empty() { numbers } else { &waiting };
        let missed = self.missed_of(shown).filter(|_| *kind != HeapKind::Flagged);
        let (sample, sampled) = self.sample(shown, turn);
        let is_saved = !numbers.iter().any(|number| self.is_unsaved(*number));
        let (key, does) = match kind.whole() {
            _ if is_saved => ("✓", "saved"),
            _ if done.is_some() => ("u", "undo"),
            HeapKind::Flagged | HeapKind::Old => ONE_BY_ONE,
            HeapKind::Summaries | HeapKind::Replaced => ("R", "reject"),
            HeapKind::Alike => ("g", "keep one each"),
            // If no prompt missed any of them, they can wait.
            HeapKind::Project(_) | HeapKind::Elsewhere if missed == Some(0) => ("h", "snooze"),
            HeapKind::Project(_) | HeapKind::Elsewhere | HeapKind::Part(..) => ("A", "approve"),
        };
        let about = done.map_or_else(|| self.about_heap(kind, shown), capitalised);
        let about = match held_back {
            0 => about,
            count => format!("{about} · {count} flagged held back"),
        };
        Heap {
            name: kind.name(),
            title: self.heap_title(kind, numbers),
            about,
            missed,
            is_saved,
            waiting: waiting.len(),
            total: numbers.len(),
            done,
            split: self.split_of(kind, shown),
            key,
            does,
            reason: kind.reason(),
            sample,
            sampled,
        }
    }

    /// What the key for types does to a heap.
    fn split_of(&self, kind: &HeapKind, numbers: &[usize]) -> Option<&'static str> {
        let mut types = self.items_of(numbers).map(|item| type_of(item.memory()));
        let first = types.next();
        match kind {
            HeapKind::Part(..) => Some("join"),
            _ if !kind.has_types() => None,
            _ => types.any(|other| Some(other) != first).then_some("split by type"),
        }
    }

    /// What was chosen for all of some memories, or that they are decided.
    fn done_with(&self, numbers: &[usize], chosen: &HashMap<usize, &'static str>) -> &'static str {
        let mut done = numbers.iter().filter_map(|number| {
            let saved = self.items.get(*number)?.saved.as_ref();
            saved.map(|saved| saved.done(false)).or(chosen.get(number).copied())
        });
        let first = done.next().unwrap_or("decided");
        if done.all(|other| other == first) { first } else { "decided" }
    }

    fn heap_title(&self, kind: &HeapKind, numbers: &[usize]) -> String {
        match kind {
            HeapKind::Flagged => "Flagged".to_owned(),
            HeapKind::Summaries => "Session summaries".to_owned(),
            HeapKind::Alike => "Much alike".to_owned(),
            HeapKind::Replaced => "Replaced".to_owned(),
            HeapKind::Old => "Older than a year".to_owned(),
            HeapKind::Elsewhere => "No project".to_owned(),
            HeapKind::Project(folded) => {
                let mut written = self.items_of(numbers);
                let name = written.next().and_then(|item| item.memory().project.as_deref());
                text::line(name.unwrap_or(folded), 60)
            }
            HeapKind::Part(whole, kind) => {
                format!("{}: {}", self.heap_title(whole, numbers), in_words(kind))
            }
        }
    }

    fn about_heap(&self, kind: &HeapKind, numbers: &[usize]) -> String {
        match kind {
            HeapKind::Flagged => {
                let mut flagged = HeldBack::default();
                for item in self.items_of(numbers) {
                    flagged.add(&item.candidate.curated, &item.warnings);
                }
                flagged.reasons()
            }
            HeapKind::Summaries => "what a session did, as its program wrote it".to_owned(),
            HeapKind::Replaced => "a newer memory says that it replaces these".to_owned(),
            HeapKind::Alike => {
                let found = self.items_of(numbers).filter_map(|item| item.group);
                let found = found.collect::<HashSet<_>>().len() as u64;
                let say = if found == 1 { "says" } else { "say" };
                format!("{} that {say} much the same", count(found, "group"))
            }
            _ => self.types(numbers),
        }
    }

    /// The types of some memories, the most frequent first: `discovery 40 · change 23`.
    fn types(&self, numbers: &[usize]) -> String {
        let mut written: BTreeMap<&str, usize> = BTreeMap::new();
        for item in self.items_of(numbers) {
            *written.entry(type_of(item.memory())).or_default() += 1;
        }
        // A name is folded once, not for each memory.
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (kind, count) in written {
            *counts.entry(fold_name(kind)).or_default() += count;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        let named = counts.iter().take(MAX_TYPES).map(|(kind, count)| match in_words(kind) {
            kind if kind == NO_TYPE => format!("{count} without a type"),
            kind => format!("{kind} {count}"),
        });
        let more = counts.len().saturating_sub(MAX_TYPES);
        let more = (more > 0).then(|| count(more as u64, "more type"));
        named.chain(more).collect::<Vec<_>>().join(" · ")
    }

    /// Five memories of a heap, the next five with each `turn`, and which they are: where past
    /// prompts tell, the most missed, the newest and the oldest; else from the newest to the oldest.
    pub(crate) fn sample(&self, numbers: &[usize], turn: usize) -> (Vec<Sample>, String) {
        // Of a group, one is enough.
        let mut seen = HashSet::new();
        let group_of = |number: &usize| self.items.get(*number)?.group;
        let mut one_each: Vec<usize> = numbers.iter().rev().copied().collect();
        one_each.retain(|number| group_of(number).is_none_or(|group| seen.insert(group)));
        let last = one_each.len().saturating_sub(1);
        let steps = SAMPLE.min(one_each.len());
        let is_missed = self.missed_of(&one_each).is_some_and(|missed| missed > 0);
        let (newest, oldest) = (one_each.first().copied(), one_each.last().copied());
        if is_missed {
            one_each.sort_by_key(|number| Reverse(self.need_of(&[*number])));
        }
        let (order, which): (Vec<usize>, _) = match (is_missed, turn) {
            (false, _) => {
                let spread = |step| step * last / steps.saturating_sub(1).max(1) + turn;
                ((0..steps).map(spread).collect(), "from the newest to the oldest")
            }
            (true, 0) => {
                let place = |wanted| one_each.iter().position(|number| Some(*number) == wanted);
                let ends = [newest, oldest].into_iter().filter_map(place);
                let mut order: Vec<usize> = (0..SAMPLE - 2).chain(ends).chain(0..SAMPLE).collect();
                let mut seen = HashSet::new();
                order.retain(|place| seen.insert(*place));
                (order, "the most missed, the newest and the oldest")
            }
            (true, _) => ((turn * SAMPLE..).take(steps).collect(), "the next ones by need"),
        };
        let mut shown: Vec<usize> = order.iter().map(|place| place % (last + 1)).collect();
        shown.truncate(steps);
        shown.dedup();
        let sample = shown.iter().filter_map(|place| {
            let number = one_each.get(*place)?;
            Some(self.sample_of(*number, self.items.get(*number)?))
        });
        let are_groups = numbers.iter().all(|number| group_of(number).is_some());
        let of = numbers.len().to_string();
        let of = if are_groups { count(one_each.len() as u64, "group") } else { of };
        (sample.collect(), format!("{} of {of}: {which}", shown.len()))
    }

    fn sample_of(&self, number: usize, item: &QueueItem) -> Sample {
        let memory = item.memory();
        let group = item.group.and_then(|group| self.groups.get(group));
        let like = group.map(|members| format!("{} alike", members.len()));
        let age = age_in_days(memory, self.now).map(super::card::days);
        let missed = match self.missed_of(&[number]) {
            None | Some(0) => None,
            Some(1) => Some("missed once".to_owned()),
            Some(count) => Some(format!("missed {count} times")),
        };
        let about = [like, Some(text::line(item.place(), 60)), age, missed];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let said = memory.facts.first().or(memory.subtitle.as_ref());
        Sample {
            number,
            title: text::line(&memory.title, 120),
            text: said.or(memory.narrative.as_ref()).map_or_else(String::new, |said| {
                let (start, _) = markdown::beginning(said, 4, 80);
                text::line(&markdown::words(start), 200)
            }),
            about: about.join(" · "),
        }
    }

    /// Decides about all waiting memories of a heap that are not flagged, or about none. All of it
    /// is undone together. Without a choice, one memory of each group is kept. Returns what was
    /// decided, in a sentence.
    pub fn decide_heap(
        &mut self,
        name: &str,
        choice: Option<Choice>,
    ) -> Result<String, CurateError> {
        let unreviewed = by_queue(&self.items).0;
        let kind = unreviewed.iter().map(|item| &item.heap).find(|kind| kind.name() == name);
        let kind = kind.cloned().ok_or(CurateError::Refused("there is no such heap any more"))?;
        let members = unreviewed.iter().zip(0..);
        let members = members.filter(|(item, _)| item.heap == kind && !item.is_lost());
        let numbers: Vec<usize> = members.map(|(_, number)| number).collect();
        let mut waiting = numbers.clone();
        waiting.retain(|number| self.waits(*number));
        let refusal = match kind {
            HeapKind::Flagged => Some("flagged memories are decided one by one: Enter opens them"),
            _ if waiting.is_empty() => {
                let is_saved = !numbers.iter().any(|number| self.is_unsaved(*number));
                let undo = "it is decided already; u undoes it";
                Some(if is_saved { "it is saved already" } else { undo })
            }
            HeapKind::Alike => None,
            _ => choice.is_none().then_some("there are no groups in this heap"),
        };
        if let Some(refusal) = refusal {
            return Err(CurateError::Refused(refusal));
        }
        let title = self.heap_title(&kind, &numbers);
        let done = choice.as_ref().map_or("kept one of each group", |choice| choice.done(false));
        let reason = kind.reason().filter(|_| choice == Some(Choice::Reject));
        match choice {
            Some(choice) => self.choose(&waiting, choice, reason.map(str::to_owned))?,
            None => self.keep_one_of_each(&waiting)?,
        }
        let why = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        Ok(self.sentence(&format!("{done}{why}: {} of {title}", waiting.len())))
    }

    /// Approves the fullest memory of each group, and marks the others as its duplicates. One that
    /// is like no other here is approved too.
    fn keep_one_of_each(&mut self, numbers: &[usize]) -> Result<(), CurateError> {
        let mut members: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut kept = Vec::new();
        for number in numbers {
            let Some(item) = self.items.get(*number) else { continue };
            match item.group {
                Some(group) => {
                    let group = members.entry((&item.candidate.scope.name, group)).or_default();
                    group.push((text_length(item.memory()), *number, &item.memory().id));
                }
                None => kept.push(*number),
            }
        }
        let mut choices = Vec::new();
        for mut group in members.into_values() {
            // Of equal ones, the newest, which comes last.
            group.sort_by_key(|(length, ..)| *length);
            let Some((_, fullest, id)) = group.pop() else { continue };
            kept.push(fullest);
            let others: Vec<usize> = group.into_iter().map(|(_, number, _)| number).collect();
            choices.push((others, Choice::Duplicate { of: id.clone() }, None));
        }
        choices.insert(0, (kept, Choice::Approve, None));
        self.note_decision(true);
        self.choose_together(choices)
    }
}

/// A folded name without colons. Two names never become one.
fn without_colon(name: &str) -> String {
    name.replace('%', "%25").replace(':', "%3a")
}

fn type_of(memory: &Memory) -> &str {
    memory.kind.as_deref().unwrap_or(NO_TYPE)
}

fn in_words(name: &str) -> String {
    text::line(&name.replace('-', " "), 30)
}

/// How much a memory says, in bytes.
fn text_length(memory: &Memory) -> usize {
    let long = memory.subtitle.iter().chain(&memory.narrative);
    long.chain(&memory.facts).map(String::len).sum()
}
