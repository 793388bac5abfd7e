//! The plan: heaps, each decided with one key.

use ack_desk::choice::Choice;
use ack_desk::heaps::Heap;

use super::shown::capitalised;
use super::{HEAP, Key, Place, Walk, problem};
use crate::cli::args::day::parse_later_day;

#[derive(Debug, Default)]
pub struct Plan {
    pub heaps: Vec<Heap>,
    pub at: usize,
    /// How often other samples were asked for.
    turn: usize,
}

impl Plan {
    pub fn current(&self) -> Option<&Heap> {
        self.heaps.get(self.at)
    }

    pub(super) fn decided_names(&self) -> Vec<String> {
        let decided = self.heaps.iter().filter(|heap| heap.done.is_some());
        decided.map(|heap| heap.name.clone()).collect()
    }

    /// Moves to a heap that was decided before, and is not any more.
    pub(super) fn go_to_reopened(&mut self, decided: &[String]) {
        let is_open = |heap: &Heap| heap.done.is_none() && decided.contains(&heap.name);
        self.at = self.heaps.iter().position(is_open).unwrap_or(self.at);
    }

    /// Moves to the next heap that is not decided.
    fn go_to_next(&mut self) {
        let open = |(_, heap): &(usize, &Heap)| heap.done.is_none();
        let mut following = self.heaps.iter().enumerate().skip(self.at + 1);
        let next = following.find(open);
        let next = next.or_else(|| self.heaps.iter().enumerate().find(open));
        self.at = next.map_or(self.at, |(at, _)| at);
    }
}

/// What is most likely right for a heap: its key, and what it does.
pub fn suggestion(heap: &Heap) -> (&'static str, &'static str) {
    match heap.suggested {
        _ if heap.is_saved => ("✓", "saved"),
        _ if heap.done.is_some() => ("u", "undo"),
        Some('A') => ("A", "approve"),
        Some('R') => ("R", "reject"),
        Some('g') => ("g", "keep one each"),
        Some('h') => ("h", "snooze"),
        _ => ("↵", "one by one"),
    }
}

const NO_SPLIT: &str =
    "only a project, or what is older than a year, is split, if it has several types";

impl Walk<'_> {
    pub(super) fn open_plan(&mut self) {
        self.place = Place::Plan;
        self.shown = None;
        self.scroll = 0;
        self.selected.clear();
        self.view.filter.clear();
        self.view.queue = ack_desk::queue::QueueKind::Waiting;
        let name = self.plan.current().map(|heap| heap.name.clone());
        self.plan.heaps = self.desk.lock().heaps(self.plan.turn);
        let last = self.plan.heaps.len().saturating_sub(1);
        let mut heaps = self.plan.heaps.iter();
        let at = heaps.position(|heap| Some(&heap.name) == name.as_ref());
        self.plan.at = at.unwrap_or(self.plan.at.min(last));
        if self.plan.heaps.is_empty() {
            self.open_cards("");
        }
    }

    pub(super) fn plan_key(&mut self, key: &Key) -> Result<(), String> {
        let last = self.plan.heaps.len().saturating_sub(1);
        match key {
            Key::Char('j') | Key::Down => self.plan.at = (self.plan.at + 1).min(last),
            Key::Char('k') | Key::Up => self.plan.at = self.plan.at.saturating_sub(1),
            Key::Enter => self.open_heap(),
            Key::Right | Key::Char('>') => self.split_heap()?,
            Key::Char('o') => self.open_cards(""),
            Key::Char('A') => self.decide_heap(Some(Choice::Approve))?,
            Key::Char('R') => self.decide_heap(Some(Choice::Reject))?,
            Key::Char('g') => match self.plan.current() {
                Some(heap) if heap.suggested == Some('g') => self.decide_heap(None)?,
                _ => return Err("there are no groups in this heap".to_owned()),
            },
            Key::Char('h') => {
                let until = parse_later_day("1w")?;
                self.decide_heap(Some(Choice::PutOff { until }))?;
            }
            Key::Char('n') => {
                self.plan.turn += 1;
                self.open_plan();
            }
            Key::Char(letter) => return Err(format!("`{letter}` is not a key; ? lists the keys")),
            _ => {}
        }
        Ok(())
    }

    fn split_heap(&mut self) -> Result<(), String> {
        let heap = self.plan.current().filter(|heap| heap.split.is_some());
        let Some(name) = heap.map(|heap| heap.name.clone()) else {
            return Err(NO_SPLIT.to_owned());
        };
        self.desk.lock().split_heap(&name);
        self.open_plan();
        let is_whole = |heap: &Heap| name.starts_with(&format!("{}:", heap.name));
        let whole = self.plan.heaps.iter().position(is_whole);
        self.plan.at = whole.unwrap_or(self.plan.at);
        Ok(())
    }

    pub(super) fn open_heap(&mut self) {
        let filter = self.plan.current().map(|heap| format!("{HEAP}{}", heap.name));
        self.open_cards(&filter.unwrap_or_default());
    }

    /// Decides about all of the heap that is not flagged. Without a choice, one of each group stays.
    fn decide_heap(&mut self, choice: Option<Choice>) -> Result<(), String> {
        let Some(heap) = self.plan.current().cloned() else {
            return Err("there is no heap".to_owned());
        };
        if heap.is_saved {
            return Err("it is saved already".to_owned());
        }
        if heap.done.is_some() {
            return Err("it is decided already; u undoes it".to_owned());
        }
        if heap.name == "flagged" {
            return Err("flagged memories are decided one by one: Enter opens them".to_owned());
        }
        let done = choice.as_ref().map_or("kept one of each group", |choice| choice.done(false));
        let is_rejected = choice == Some(Choice::Reject);
        let reason = heap.reason.filter(|_| is_rejected).map(str::to_owned);
        let why = reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let decided = self.desk.lock().decide_heap(&heap.name, choice, reason);
        let count = decided.map_err(|error| problem(&error))?;
        self.open_plan();
        self.plan.go_to_next();
        let left = self.left();
        let done = capitalised(done);
        self.say(&format!("{done}{why}: {count} of {} · {left} left · u undo", heap.title));
        Ok(())
    }
}
