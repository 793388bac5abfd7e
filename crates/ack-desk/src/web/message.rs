//! The requests of the page and the answers.

use ack_api::memory::Memory;
use ack_api::{text, time};
use serde::{Deserialize, Serialize};

use crate::Desk;
use crate::card::age_in_days;
use crate::choice::{Action, Choice};
use crate::nearest::Near;
use crate::queue::{QueueItem, QueueView};

/// How many undecided memories before the one that is shown are in a window.
const BEFORE: usize = 4;
/// The most memories in a window.
const MAX_WINDOW: usize = 200;

#[derive(Debug, Deserialize)]
pub struct EnterRequest {
    pub word: String,
}

/// `queue` and `matching`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct QueueRequest {
    pub view: QueueView,
    /// The memory that is shown, near the beginning of the window.
    pub around: Option<usize>,
    /// The position of the first entry, if no memory is named.
    pub from: usize,
    pub count: usize,
}

/// `card`, `text`, `near` and `evidence`.
#[derive(Debug, Deserialize)]
pub struct CardRequest {
    pub number: usize,
    #[serde(default)]
    pub view: QueueView,
}

/// `preview`, `selection` and `choose`.
#[derive(Debug, Deserialize)]
pub struct ChoiceRequest {
    pub numbers: Vec<usize>,
    /// Whether these are selected or much alike, so that none that is flagged goes along.
    #[serde(default)]
    pub together: bool,
    /// What to do with them. Without one, the memory is kept, and those that are much alike become
    /// its duplicates.
    pub choice: Option<Choice>,
    pub reason: Option<String>,
    #[serde(default)]
    pub view: QueueView,
}

#[derive(Debug, Deserialize)]
pub struct TakeBackRequest {
    /// Which choice, or the last one.
    pub key: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PlanRequest {
    /// How often other samples were asked for.
    pub turn: usize,
    /// A heap to split by type, or a part to join with the others.
    pub split: Option<String>,
}

/// `heap`: a decision about all of a heap.
#[derive(Debug, Deserialize)]
pub struct HeapRequest {
    pub name: String,
    /// Without one, one memory of each group is kept.
    pub choice: Option<Choice>,
}

#[derive(Debug, Deserialize)]
pub struct FinishRequest {
    /// Whether to discard unwritten choices.
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
    fn of(number: usize, item: &QueueItem, desk: &Desk) -> Self {
        let memory = item.memory();
        Self {
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
        }
    }

    pub fn all(numbers: impl IntoIterator<Item = usize>, desk: &Desk) -> Vec<Self> {
        let items = numbers.into_iter().filter_map(|it| Some((it, desk.items().get(it)?)));
        items.map(|(number, item)| Self::of(number, item, desk)).collect()
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
    pub fn of(desk: &Desk, request: &QueueRequest) -> Self {
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
