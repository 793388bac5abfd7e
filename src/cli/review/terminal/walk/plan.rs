//! The plan: heaps, each decided with one key.

use ack_desk::choice::Choice;
use ack_desk::heaps::{Heap, Plan as ShownPlan};

use super::{HEAP, Key, Place, Walk, problem};
use crate::cli::args::day::parse_later_day;

#[derive(Debug, Default)]
pub struct Plan {
    pub shown: ShownPlan,
    pub at: usize,
    turn: usize,
}

impl Plan {
    pub fn current(&self) -> Option<&Heap> {
        self.shown.heaps.get(self.at)
    }

    /// Moves to the heap of this name, if there is one.
    pub(super) fn go_to(&mut self, name: Option<&str>) {
        let is_it = |heap: &Heap| Some(heap.name.as_str()) == name;
        self.at = self.shown.heaps.iter().position(is_it).unwrap_or(self.at);
    }

    /// Moves to the next heap that is not decided.
    fn go_to_next(&mut self) {
        let heaps = self.shown.heaps.iter().enumerate();
        let mut following = heaps.clone().skip(self.at + 1).chain(heaps);
        self.at = following.find(|(_, heap)| heap.done.is_none()).map_or(self.at, |(at, _)| at);
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
        self.plan.shown = self.desk.lock().plan(self.plan.turn);
        self.plan.at = self.plan.at.min(self.plan.shown.heaps.len().saturating_sub(1));
        self.plan.go_to(name.as_deref());
        if self.plan.shown.heaps.is_empty() {
            self.open_cards("");
        }
    }

    pub(super) fn plan_key(&mut self, key: &Key) -> Result<(), String> {
        let last = self.plan.shown.heaps.len().saturating_sub(1);
        match key {
            Key::Char('j') | Key::Down => self.plan.at = (self.plan.at + 1).min(last),
            Key::Char('s') => self.plan.go_to_next(),
            Key::Char('k') | Key::Up => self.plan.at = self.plan.at.saturating_sub(1),
            Key::Enter => self.open_heap(),
            Key::Right | Key::Char('>') => self.split_heap()?,
            Key::Char('o') => self.open_cards(""),
            Key::Char('A') => self.decide_heap(Some(Choice::Approve))?,
            Key::Char('R') => self.decide_heap(Some(Choice::Reject))?,
            Key::Char('g') => self.decide_heap(None)?,
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
        // What was a part is in the whole now.
        self.plan.go_to(name.rsplit_once(':').map(|(whole, _)| whole));
        Ok(())
    }

    pub(super) fn open_heap(&mut self) {
        let filter = self.plan.current().map(|heap| format!("{HEAP}{}", heap.name));
        self.open_cards(&filter.unwrap_or_default());
    }

    /// Decides about all of the heap that is not flagged. Without a choice, one of each group stays.
    fn decide_heap(&mut self, choice: Option<Choice>) -> Result<(), String> {
        let name = self.plan.current().map(|heap| heap.name.clone()).unwrap_or_default();
        let said = self.desk.lock().decide_heap(&name, choice);
        let said = said.map_err(|error| problem(&error))?;
        self.open_plan();
        self.plan.go_to_next();
        self.say(&said);
        Ok(())
    }
}
