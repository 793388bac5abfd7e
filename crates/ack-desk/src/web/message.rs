//! The requests of the page and the answers.

use ack_api::memory::Memory;
use ack_api::{text, time};
use serde::{Deserialize, Serialize};

use crate::Desk;
use crate::card::age_in_days;
use crate::choice::{Action, Choice};
use crate::nearest::Near;
use crate::queue::QueueView;

/// How many undecided memories before the one that is shown are in a window.
const BEFORE: usize = 4;
/// The most memories in a window.
const MAX_WINDOW: usize = 200;

/// A request of the page: each path has its own keys.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PageRequest {
    /// `enter`: the one-time word of the address.
    pub word: String,
    /// Which memories the page goes through.
    pub view: QueueView,
    /// `queue`: the memory that is shown, near the beginning of the window.
    pub around: Option<usize>,
    /// `queue`: the position of the first entry, if no memory is named.
    pub from: usize,
    pub count: usize,
    /// `card`, `text`, `near`, `evidence` and `session`: the memory.
    pub number: Option<usize>,
    /// `preview`, `selection` and `choose`: the memories.
    pub numbers: Vec<usize>,
    /// Whether these are selected or much alike, so that none that is flagged goes along.
    pub together: bool,
    /// `preview`, `choose` and `heap`: what to do with them. Without one, the memory is kept, and
    /// those that are much alike become its duplicates; of a heap, one of each group is kept.
    pub choice: Option<Choice>,
    pub reason: Option<String>,
    /// `back`: which choice, or the last one.
    pub key: Option<u64>,
    /// `plan`: how often other samples were asked for.
    pub turn: usize,
    /// `plan`: a heap to split by type, or a part to join with the others.
    pub split: Option<String>,
    /// `heap`: its name.
    pub name: String,
    /// `finish`: whether to discard unwritten choices.
    pub discard: bool,
}

#[derive(Debug, Serialize)]
pub struct ListEntry {
    pub number: usize,
    pub title: String,
    /// Its project, or else its scope.
    pub place: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub age_days: Option<i64>,
    /// Whether it is flagged and waits.
    pub flagged: bool,
    /// How many are much alike, if it stands for several.
    pub alike: Option<usize>,
    /// How often past prompts would have found it; `None` if there are no prompts.
    pub missed: Option<usize>,
    /// Of an approved one, who decided about it and when.
    pub decided: Option<String>,
    pub stale: Option<String>,
}

impl ListEntry {
    pub fn all(numbers: impl IntoIterator<Item = usize>, desk: &Desk) -> Vec<Self> {
        let entries = numbers.into_iter().filter_map(|number| {
            let item = desk.items().get(number)?;
            let memory = item.memory();
            Some(Self {
                number,
                title: text::line(&memory.title, 160),
                place: item.place().clone(),
                kind: memory.kind.clone(),
                age_days: age_in_days(memory, desk.now),
                flagged: item.is_held_back(),
                alike: desk.alike(number),
                missed: desk.missed_of(&[number]),
                decided: item.is_approved.then(|| decided(memory)),
                stale: item.stale.clone(),
            })
        });
        entries.collect()
    }
}

/// Who decided about an approved memory, and when.
pub fn decided(memory: &Memory) -> String {
    let by = memory.reviewed_by.as_deref().map(|by| {
        format!("by {}", text::line(by.rsplit_once(':').map_or(by, |(_, name)| name), 40))
    });
    let on = memory.reviewed_at.map(|at| format!("on {}", time::to_date(at)));
    match (by, on) {
        (None, None) => "not reviewed by anyone".to_owned(),
        (Some(by), Some(on)) => format!("decided {by} {on}"),
        (Some(known), None) | (None, Some(known)) => format!("decided {known}"),
    }
}

#[derive(Debug, Serialize)]
pub struct Window {
    pub total: usize,
    pub complaint: Option<String>,
    /// The position of the memory that is shown, from 1.
    pub position: Option<usize>,
    pub entries: Vec<ListEntry>,
}

impl Window {
    pub fn of(desk: &Desk, request: &PageRequest) -> Self {
        let numbers = desk.undecided(&request.view);
        let count = request.count.min(MAX_WINDOW);
        let place_in = |numbers: &[usize]| {
            let around = request.around?;
            numbers.iter().position(|number| *number == around)
        };
        let folded = desk.folded(&numbers);
        let mut lines = numbers.clone();
        lines.retain(|number| !folded.contains(number));
        let from = place_in(&lines).map_or(request.from, |line| line.saturating_sub(BEFORE));
        let lines = lines.into_iter().skip(from).take(count);
        Self {
            total: numbers.len(),
            complaint: request.view.complaint(),
            position: place_in(&numbers).map(|place| place + 1),
            entries: ListEntry::all(lines, desk),
        }
    }
}

#[derive(Debug, Serialize)]
pub struct ShownNear {
    #[serde(flatten)]
    pub near: Near,
    pub actions: Vec<Action>,
    /// Why the first of the others is not possible.
    pub refusal: Option<String>,
}
