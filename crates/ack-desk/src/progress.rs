//! How far a review is, how long it took, and what it changed.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ack_api::text;
use jiff::Timestamp;
use serde::Serialize;

use super::Desk;
use super::choice::{DUPLICATE, count_text};
use super::heaps::{Heap, ONE_BY_ONE};
use super::queue::{ItemState, QueueItem, by_queue};

const SECONDS_A_CARD: f64 = 6.0;
const SECONDS_A_HEAP: f64 = 10.0;
/// Without a key for this long, a person was doing something else.
const MAX_PAUSE_SECONDS: f64 = 30.0;
/// From so many decisions on, the person's own pace counts.
const MIN_DECISIONS: usize = 5;
const MAX_LESSONS: usize = 3;

#[derive(Debug, Default)]
pub struct Pace {
    last_key: Option<Timestamp>,
    /// How long the person was at it, in seconds.
    spent: f64,
    /// The same when they decided last.
    decided_at: f64,
    /// What a card took each time, in seconds.
    cards: Vec<f64>,
    heaps: Vec<f64>,
}

impl Pace {
    fn key(&mut self, now: Timestamp) {
        let pause = self.last_key.map(|last| (now - last).total(jiff::Unit::Second));
        let pause = pause.and_then(Result::ok).unwrap_or_default();
        if pause <= MAX_PAUSE_SECONDS {
            self.spent += pause.max(0.0);
        }
        self.last_key = Some(now);
    }

    fn decided(&mut self, is_heap: bool) {
        let took = self.spent - self.decided_at;
        self.decided_at = self.spent;
        let all = if is_heap { &mut self.heaps } else { &mut self.cards };
        all.push(took);
    }

    /// How many minutes some cards and heaps will take.
    fn minutes(&self, heaps: usize, cards: usize) -> usize {
        let heap = median(&self.heaps).unwrap_or(SECONDS_A_HEAP);
        let card = median(&self.cards).unwrap_or(SECONDS_A_CARD);
        #[expect(clippy::cast_precision_loss, reason = "counts of memories")]
        let seconds = heaps as f64 * heap + cards as f64 * card;
        whole_minutes(seconds)
    }
}

fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().filter(|_| sorted.len() >= MIN_DECISIONS)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a review takes hours at most"
)]
fn whole_minutes(seconds: f64) -> usize {
    (seconds / 60.0).round() as usize
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// How many of the memories that waited are decided, saved or not.
    pub decided: usize,
    pub saved: usize,
    pub total: usize,
    /// All of it in one line: `214 of 756 decided · 6 min`.
    pub text: String,
}

impl Progress {
    pub const fn left(&self) -> usize {
        self.total - self.decided
    }
}

/// What a review changed, for its last screen.
#[derive(Debug, Serialize)]
pub struct Closing {
    /// How many memories agents see that they did not see before.
    pub learned: usize,
    /// The same in a sentence, with how many are decided and left as long as some are.
    pub text: String,
    /// What was saved, as participles, the most frequent first.
    pub saved: Vec<Count>,
    pub left: usize,
    /// What agents learned in each project, where they learned most first.
    pub projects: Vec<Learned>,
    /// What the review left as it was.
    pub unchanged: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Count {
    pub done: &'static str,
    pub count: usize,
}

#[derive(Debug, Serialize)]
pub struct Learned {
    pub project: String,
    pub count: usize,
    /// The titles of the most needed.
    pub lessons: Vec<String>,
}

impl Desk {
    pub fn note_key(&mut self, now: Timestamp) {
        self.pace.key(now);
    }

    pub(crate) fn note_decision(&mut self, is_heap: bool) {
        self.pace.decided(is_heap);
    }

    pub fn progress(&self) -> Progress {
        let (mut total, mut decided, mut saved) = (0, 0, 0);
        for item in by_queue(&self.items).0.iter().filter(|it| !it.is_lost()) {
            total += 1;
            decided += usize::from(item.state != ItemState::Waiting);
            saved += usize::from(item.state == ItemState::Written);
        }
        let minutes = whole_minutes(self.pace.spent);
        Progress {
            text: format!("{decided} of {total} decided · {minutes} min"),
            decided,
            saved,
            total,
        }
    }

    /// What is left of a plan, and how long that takes at this person's pace.
    pub(crate) fn left_of(&self, heaps: &[Heap]) -> String {
        let (mut keys, mut cards) = (0, 0);
        for heap in heaps.iter().filter(|heap| heap.waiting > 0) {
            match heap.key == ONE_BY_ONE.0 {
                true => cards += heap.waiting,
                false => keys += 1,
            }
        }
        let counts = [(keys, "key", "keys"), (cards, "card", "cards")].into_iter();
        let counts = counts.filter(|(count, ..)| *count > 0);
        let counts: Vec<String> =
            counts.map(|(count, one, many)| count_text(count, one, many)).collect();
        let minutes = self.pace.minutes(keys, cards).max(1);
        match counts.is_empty() {
            false => format!("{} left, about {minutes} min", counts.join(" and ")),
            true if self.unwritten() > 0 => {
                "every heap is decided: c saves the decisions".to_owned()
            }
            true => "nothing is unreviewed any more".to_owned(),
        }
    }

    pub fn closing(&self) -> Closing {
        let progress = self.progress();
        let mut counts = BTreeMap::<&'static str, usize>::new();
        let mut learned = BTreeMap::<&str, Vec<&QueueItem>>::new();
        for item in &self.items {
            let Some(choice) = &item.saved else { continue };
            *counts.entry(choice.done(item.is_approved)).or_default() += 1;
            if choice.serves() && !item.is_approved {
                learned.entry(item.place()).or_default().push(item);
            }
        }
        let counts = counts.into_iter().map(|(done, count)| match done {
            DUPLICATE if count == 1 => Count { done: "duplicate", count },
            DUPLICATE => Count { done: "duplicates", count },
            done => Count { done, count },
        });
        let mut saved: Vec<Count> = counts.collect();
        saved.sort_by_key(|entry| Reverse(entry.count));
        let projects = learned.into_iter().map(|(project, items)| Learned::of(project, items));
        let mut projects: Vec<Learned> = projects.collect();
        projects.sort_by_key(|learned| Reverse(learned.count));
        let learned = projects.iter().map(|learned| learned.count).sum();
        let more = match learned {
            0 => "Nothing new.".to_owned(),
            learned => format!(
                "{} more than before. Agents see them from their next request on.",
                count_text(learned, "memory", "memories")
            ),
        };
        let left = progress.left();
        Closing {
            learned,
            text: match left {
                0 => more,
                _ => format!("{} decided, {left} left. {more}", progress.decided),
            },
            saved,
            left,
            projects,
            unchanged: match self.scopes.iter().any(|it| it.store.path().ends_with("claude-mem.db"))
            {
                true => "Your claude-mem database is unchanged.",
                false => "The stores that your memories come from are unchanged.",
            },
        }
    }

    /// The number of approved memories that were read, less those that were decided about since.
    pub fn approved(&self) -> usize {
        self.approved_count().all
    }
}

impl Learned {
    fn of(project: &str, mut items: Vec<&QueueItem>) -> Self {
        items.sort_by_key(|item| Reverse((item.need, item.memory().created_at)));
        let lessons = items.iter().take(MAX_LESSONS);
        let lessons = lessons.map(|item| text::line(&item.memory().title, 120)).collect();
        Self { project: text::line(project, 60), count: items.len(), lessons }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    #[test]
    fn a_pause_of_more_than_half_a_minute_does_not_count() {
        let mut pace = Pace::default();
        for second in [0, 20, 40, 200, 220] {
            pace.key(at(second));
        }
        assert!((pace.spent - 60.0).abs() < 0.01, "{}", pace.spent);
    }

    #[test]
    fn a_persons_own_pace_counts_once_it_is_known() {
        let mut pace = Pace::default();
        assert_eq!(pace.minutes(6, 40), 5, "6 heaps and 40 cards");
        pace.key(at(0));
        for n in 1..=5 {
            pace.key(at(2 * n));
            pace.decided(false);
        }
        assert_eq!(pace.minutes(0, 60), 2, "two seconds a card");
        assert_eq!(pace.minutes(6, 0), 1, "heaps as before");
    }
}
