//! The requests of the page and the answers.

use ack_api::memory::Memory;
use ack_api::{text, time};
use serde::{Deserialize, Serialize};

use crate::card::{self, Card, CardText};
use crate::choice::{Action, Choice};
use crate::nearest::Near;
use crate::need::Missed;
use crate::progress::Progress;
use crate::queue::{Head, Place, QueueItem, QueueKind, QueueView};
use crate::{Desk, Recent};

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
    /// The memory's number.
    pub number: usize,
    /// The current view of the page.
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
    #[serde(default)]
    pub reason: Option<String>,
    /// The current view of the page.
    #[serde(default)]
    pub view: QueueView,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
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
    #[serde(default)]
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
    /// Why it may be out of date.
    pub stale: Option<String>,
}

impl ListEntry {
    /// The entry of a memory.
    pub fn of(number: usize, item: &QueueItem, desk: &Desk) -> Self {
        let memory = item.candidate.memory();
        let scope = &item.candidate.scope.name;
        Self {
            number,
            title: text::line(&memory.title, 160),
            place: memory.project.as_ref().unwrap_or(scope).clone(),
            kind: memory.kind.clone(),
            age_days: card::age_in_days(memory, desk.now()),
            flagged: item.is_held_back(),
            alike: desk.alike(number),
            missed: desk.missed_of(&[number]),
            decided: item.is_approved.then(|| decided(memory)),
            stale: item.stale.clone(),
        }
    }
}

/// Who decided about an approved memory, and when.
pub fn decided(memory: &Memory) -> String {
    let by = memory.reviewed_by.as_deref().map(|by| {
        let name = by.rsplit_once(':').map_or(by, |(_, name)| name);
        format!("by {}", text::line(name, 40))
    });
    let on = memory.reviewed_at.map(|at| format!("on {}", time::to_date(at)));
    let known: Vec<String> = by.into_iter().chain(on).collect();
    match known.is_empty() {
        true => "not reviewed by anyone".to_owned(),
        false => format!("decided {}", known.join(" ")),
    }
}

#[derive(Debug, Serialize)]
pub struct Window {
    pub total: usize,
    /// What is wrong with the filter.
    pub complaint: Option<String>,
    /// The position of the memory that is shown, from 1.
    pub position: Option<usize>,
    pub entries: Vec<ListEntry>,
}

impl Window {
    /// The window that a request asks for.
    pub fn of(desk: &Desk, request: &QueueRequest) -> Self {
        let numbers = desk.undecided(&request.view);
        let count = request.count.min(MAX_WINDOW);
        let place_of = |wanted: usize| numbers.iter().position(|number| *number == wanted);
        let around = request.around.and_then(place_of);
        let folded = desk.folded(&numbers);
        let lines = numbers.iter().filter(|number| !folded.contains(number));
        let lines: Vec<&usize> = lines.collect();
        let line = request.around.and_then(|around| lines.iter().position(|it| **it == around));
        let from = line.map_or(request.from, |line| line.saturating_sub(BEFORE));
        let entries = lines.iter().skip(from).take(count);
        let entries = entries.filter_map(|number| {
            let item = desk.items().get(**number)?;
            Some(ListEntry::of(**number, item, desk))
        });
        Self {
            total: numbers.len(),
            complaint: request.view.complaint(),
            position: around.map(|place| place + 1),
            entries: entries.collect(),
        }
    }
}

/// An approved memory near the one that is shown.
#[derive(Debug, Serialize)]
pub struct ShownNear {
    #[serde(flatten)]
    pub near: Near,
    /// The possible actions for the pair.
    pub actions: Vec<Action>,
    /// Why the first of the others is not possible.
    pub refusal: Option<String>,
}

/// A card and its position.
#[derive(Debug, Serialize)]
pub struct Shown {
    pub number: usize,
    #[serde(flatten)]
    pub place: Place,
    pub chosen: Option<&'static str>,
    /// Whether it was approved before.
    pub approved: bool,
    /// Whether it is flagged and waits.
    pub flagged: bool,
    /// How often past prompts would have found it.
    pub missed: Option<Missed>,
    pub card: Card,
    /// Its text, folded.
    pub text: CardText,
    /// The possible actions for this memory alone.
    pub actions: Vec<Action>,
    /// Other waiting memories that are much alike.
    pub group: Vec<ListEntry>,
}

/// The numbers and the last choices of the desk.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Common reasons to reject, each selected by a digit.
    pub reasons: [&'static str; 9],
    pub queue: QueueKind,
    pub head: Head,
    pub progress: Progress,
    /// How many approved memories were read.
    pub approved: usize,
    /// Whether some are still being read.
    pub searching: bool,
    /// The last choices.
    pub recent: Vec<Recent>,
    /// What the curator should know first.
    pub notice: Option<String>,
    /// Whether the page begins with the first card, because the order says what matters.
    pub begins_with_cards: bool,
    /// A number that increases with every change.
    pub revision: u64,
}
