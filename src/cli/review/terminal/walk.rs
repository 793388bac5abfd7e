//! A person's way through the desk, without a terminal: what stands on the screen, and what each
//! key does. The full screen and the lines of `--plain` show the same walk.

mod field;
mod plan;
mod shown;

use std::collections::{BTreeSet, HashSet};

use ack_api::text;
use jiff::Timestamp;
use parking_lot::Mutex;

pub use self::field::{Asked, Field};
pub use self::plan::Plan;
pub use self::shown::{Found, ShownCard, ShownNear, Wanted};
use super::card::Fold;
use super::keys::Key;
use super::problem;
use crate::cli::review::editor::edited;
use ack_desk::choice::Choice;
pub use ack_desk::choice::KEYS;
use ack_desk::curate::{CurateError, ReviewSession};
use ack_desk::decide::{Decided, Selection};
use ack_desk::need::Answered;
use ack_desk::queue::{QueueKind, QueueView};
use ack_desk::{Desk, ReviewOutcome};

/// With fewer memories, one looks at each anyway.
const MIN_PLANNED: usize = 12;
/// The beginning of a filter that shows the cards of a heap.
pub const HEAP: &str = "heap:";

/// What only the caller can do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    /// The memory with this number in the person's editor.
    Edit(usize),
    /// The end. Every choice is saved or given up.
    Leave,
    /// The end. What is not saved goes to a file.
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Plan,
    Cards,
    /// What agents know since then.
    Closing,
}

#[derive(Debug, Default)]
pub struct Said {
    pub text: String,
    pub is_problem: bool,
}

pub struct Walk<'a> {
    pub desk: &'a Mutex<Desk>,
    actor: String,
    pub place: Place,
    pub view: QueueView,
    pub plan: Plan,
    /// The numbers of the memories in the view, decided or not.
    pub list: Vec<usize>,
    /// Those of them that have no line of their own.
    pub folded: HashSet<usize>,
    pub shown: Option<ShownCard>,
    pub selected: BTreeSet<usize>,
    /// What is selected, in place of the card: after all that match were selected.
    pub selection: Option<Selection>,
    pub field: Option<Field>,
    pub said: Said,
    pub shows_keys: bool,
    /// Whether a narrow screen shows the list in place of the card.
    pub shows_list: bool,
    /// How much of the card is shown.
    pub fold: Fold,
    /// How many lines above the screen are left out.
    pub scroll: usize,
    was_closing_seen: bool,
    /// How many past prompts find an approved memory, if there are any, once it is known.
    pub answered: Option<Option<Answered>>,
    pub outcomes: Vec<ReviewOutcome>,
}

impl<'a> Walk<'a> {
    /// Begins at the plan, or at the first card.
    pub fn new(desk: &'a Mutex<Desk>, session: &ReviewSession) -> Self {
        let view = QueueView { queue: desk.lock().queue, ..QueueView::default() };
        let mut walk = Self {
            desk,
            actor: session.actor.clone(),
            place: Place::Cards,
            view,
            plan: Plan::default(),
            list: Vec::new(),
            folded: HashSet::new(),
            shown: None,
            selected: BTreeSet::new(),
            selection: None,
            field: None,
            said: Said::default(),
            shows_keys: false,
            shows_list: false,
            fold: Fold::default(),
            scroll: 0,
            was_closing_seen: false,
            answered: None,
            outcomes: Vec::new(),
        };
        let is_waiting = walk.view.queue == QueueKind::Waiting && !desk.lock().is_for_a_question();
        if is_waiting && desk.lock().waiting().len() >= MIN_PLANNED {
            walk.open_plan();
        } else {
            walk.open_cards("");
        }
        walk
    }

    pub fn press(&mut self, key: &Key) -> Wish {
        if *key == Key::Interrupt {
            return self.leave(true);
        } else if *key == Key::End {
            return Wish::Keep;
        }
        self.desk.lock().note_key(Timestamp::now());
        self.said = Said::default();
        self.selection = None;
        if self.field.is_some() {
            return self.field_key(key);
        }
        if self.scrolls(key) {
            return Wish::Nothing;
        }
        if std::mem::take(&mut self.shows_keys) {
            self.scroll = 0;
            return Wish::Nothing;
        }
        self.any_key(key).unwrap_or_else(|problem| {
            self.complain(&problem);
            Wish::Nothing
        })
    }

    /// Scrolls in what is shown. On the plan, arrows move.
    fn scrolls(&mut self, key: &Key) -> bool {
        let step = match key {
            Key::Up | Key::Down => 1,
            Key::PageUp | Key::PageDown | Key::Char(' ') => 10,
            _ => return false,
        };
        if self.place != Place::Cards && !self.shows_keys {
            return false;
        }
        if matches!(key, Key::Up | Key::PageUp) {
            self.scroll = self.scroll.saturating_sub(step);
        } else {
            self.fold.is_whole = true;
            self.scroll += step;
        }
        true
    }

    /// The keys that mean the same everywhere; then those of the place.
    fn any_key(&mut self, key: &Key) -> Result<Wish, String> {
        match key {
            Key::Char('u' | 'z') => self.take_back(),
            Key::Char('c') => self.save(),
            Key::Char('q') => return Ok(self.leave(false)),
            Key::Char('/') => self.ask(Asked::Filter),
            Key::Char('l') => self.change_queue(),
            Key::Char('X') => self.select_all(),
            Key::Char('?') => {
                self.shows_keys = true;
                self.scroll = 0;
            }
            _ => match self.place {
                Place::Plan => self.plan_key(key)?,
                Place::Cards => return self.card_key(key),
                Place::Closing => self.open_plan(),
            },
        }
        Ok(Wish::Nothing)
    }

    fn card_key(&mut self, key: &Key) -> Result<Wish, String> {
        match key {
            Key::Escape => self.step_back(),
            Key::Tab => self.shows_list = !self.shows_list,
            Key::Char(letter @ ('A' | 'R')) if !self.selected.is_empty() => {
                self.decide_many(*letter)?;
            }
            Key::Char(letter) => return self.card_letter(*letter),
            Key::Enter => return self.card_letter('>'),
            _ => {}
        }
        Ok(Wish::Nothing)
    }

    fn card_letter(&mut self, letter: char) -> Result<Wish, String> {
        let Some(shown) = &mut self.shown else {
            return Err("no card is open; Esc goes to the plan, ? lists the keys".to_owned());
        };
        let number = shown.number;
        if shown.is_approved && matches!(letter, 'p' | 'h' | 'g' | 'A' | 'R') {
            return Err(format!("`{letter}` does not work here: it is approved already"));
        }
        match letter {
            'a' => self.choose(&[number], Choice::Approve, None)?,
            'p' => self.choose(&[number], Choice::Promote, None)?,
            'r' => self.ask(Asked::Reason(vec![number])),
            '1'..='9' => {
                let reason = ack_desk::choice::reason(&letter.to_string());
                self.choose(&[number], Choice::Reject, reason)?;
            }
            'A' | 'R' => self.decide_many(letter)?,
            // Those that are much alike become its duplicates.
            'g' => {
                let decided = self.desk.lock().keep_one(number, &self.view);
                self.go_on(decided)?;
            }
            'h' => self.ask(Asked::Day(number)),
            'e' => return Ok(Wish::Edit(number)),
            'm' | 'd' | '=' => {
                let id = shown.marked_id()?;
                self.name_other(letter, id);
            }
            'o' => shown.mark_next(&self.desk.lock()),
            '>' => {
                self.fold.is_near_open = !self.fold.is_near_open;
                self.scroll = 0;
            }
            'n' => self.fold.is_whole = !self.fold.is_whole,
            'x' => self.select(number),
            's' => self.skip(number),
            'j' => self.step(1)?,
            'k' => self.step(-1)?,
            _ => return Err(format!("`{letter}` is not a key; ? lists the keys")),
        }
        Ok(Wish::Nothing)
    }

    /// Merges the memory into another one, or the like.
    pub fn name_other(&mut self, key: char, id: String) {
        let Some(shown) = &self.shown else { return };
        let choice = Choice::with_other(key, id, shown.is_approved);
        let done = self.choose(&[shown.number], choice, None);
        self.complain_if(done);
    }

    /// Lets a person edit the memory. The desk is not locked meanwhile.
    pub fn edit(&mut self, number: usize) {
        let item = self.desk.lock().items().get(number).cloned();
        let Some(item) = item else { return };
        let done = match edited(&item.candidate) {
            Ok(Some(edit)) => self.choose(&[number], Choice::Edit { edit: Box::new(edit) }, None),
            Ok(None) => Err("nothing was changed".to_owned()),
            Err(error) => Err(problem(&error)),
        };
        self.complain_if(done);
    }

    fn choose(
        &mut self,
        numbers: &[usize],
        choice: Choice,
        reason: Option<String>,
    ) -> Result<(), String> {
        let decided = self.desk.lock().decide(numbers, choice, reason, &self.view);
        self.go_on(decided)?;
        self.selected.retain(|number| !numbers.contains(number));
        Ok(())
    }

    /// Approves or rejects what is selected, or else the memory and those that are much alike.
    fn decide_many(&mut self, key: char) -> Result<(), String> {
        let numbers: Vec<usize> = match &self.shown {
            Some(shown) if self.selected.is_empty() => {
                let others = self.desk.lock().group(shown.number);
                let own = Some(shown.number).filter(|_| !others.is_empty());
                own.into_iter().chain(others).collect()
            }
            _ => self.selected.iter().copied().collect(),
        };
        self.desk.lock().check_selection(&numbers).map_err(|error| problem(&error))?;
        if key == 'A' {
            return self.choose(&numbers, Choice::Approve, None);
        }
        self.ask(Asked::Reason(numbers));
        Ok(())
    }

    /// What comes after a decision: the next card, or the plan if the heap is done.
    fn go_on(&mut self, decided: Result<Decided, CurateError>) -> Result<(), String> {
        let Decided { said, next } = decided.map_err(|error| problem(&error))?;
        if next.is_none() && self.view.filter.starts_with(HEAP) {
            self.open_plan();
        } else {
            self.reload();
            self.show(next);
        }
        self.say(&said);
        Ok(())
    }

    fn take_back(&mut self) {
        let Some(first) = self.desk.lock().take_back(None).first().copied() else {
            return self.say("Nothing to undo here; the command `undo` takes back what was saved.");
        };
        if self.place == Place::Plan {
            let heap = self.desk.lock().heap_of(first);
            self.open_plan();
            self.plan.go_to(heap.as_deref());
        } else {
            self.place = Place::Cards;
            self.reload();
            if !self.list.contains(&first) {
                self.view.filter.clear();
                self.reload();
            }
            self.show(Some(first));
        }
        self.say("Undone.");
    }

    fn save(&mut self) {
        if self.desk.lock().unwritten() == 0 {
            return self.say("Nothing to save.");
        }
        let session = ReviewSession::begin(self.actor.clone(), None, Timestamp::now());
        let outcome = self.desk.lock().write(&session);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.complain(&problem(&error)),
        };
        let number = self.number();
        let is_clean = outcome.changed.is_empty();
        if is_clean && (self.place == Place::Plan || self.desk.lock().progress().left() == 0) {
            self.open_closing();
        } else if self.place == Place::Plan {
            self.open_plan();
        } else {
            self.reload();
            self.show(self.list.get(self.place_of(number).unwrap_or_default()).copied());
        }
        let undo = crate::cli::command::command(&format!("undo {}", outcome.batch));
        let saved = outcome.written;
        if is_clean {
            self.say(&format!("✓ Saved {saved}. `{undo}` takes it back."));
        } else {
            self.complain(&format!("saved {saved}; {}", outcome.conflict_text()));
        }
        self.outcomes.push(outcome);
    }

    /// Ends, or asks about what is not saved. Ctrl+C at that question keeps it in a file.
    fn leave(&mut self, is_interrupt: bool) -> Wish {
        let is_asking = matches!(&self.field, Some(field) if field.asked == Asked::Leave);
        let (saved, unsaved) = {
            let desk = self.desk.lock();
            (desk.progress().saved, desk.unwritten())
        };
        if unsaved == 0 && (saved == 0 || self.was_closing_seen || is_interrupt) {
            return Wish::Leave;
        } else if is_asking && is_interrupt {
            return Wish::Keep;
        } else if unsaved == 0 {
            self.open_closing();
        } else {
            self.ask(Asked::Leave);
        }
        Wish::Nothing
    }

    fn open_closing(&mut self) {
        self.place = Place::Closing;
        self.answered = None;
        self.was_closing_seen = true;
        self.shown = None;
    }

    fn select(&mut self, number: usize) {
        if !self.selected.remove(&number) {
            self.selected.insert(number);
            let _ = self.step(1);
        }
        self.say_selection();
    }

    /// Selects what the view shows and is not decided.
    fn select_all(&mut self) {
        if self.place != Place::Cards {
            self.open_heap();
        }
        self.selected = self.desk.lock().undecided(&self.view).into_iter().collect();
        self.selection = Some(self.say_selection()).filter(|_| !self.selected.is_empty());
    }

    /// Says how many are selected, and how many of them are held back.
    fn say_selection(&mut self) -> Selection {
        let numbers: Vec<usize> = self.selected.iter().copied().collect();
        let selection = self.desk.lock().selection(&numbers);
        self.say(&selection.said);
        selection
    }

    pub fn selection_hints(&self) -> Vec<String> {
        let numbers: Vec<usize> = self.selected.iter().copied().collect();
        let mut hints = vec!["Esc clear".to_owned()];
        let count = self.desk.lock().without_flagged(&numbers).0.len();
        if count > 0 {
            hints.splice(0..0, [format!("A approve {count}"), format!("R reject {count}")]);
        }
        hints
    }

    /// The memory that is shown.
    pub fn number(&self) -> Option<usize> {
        self.shown.as_ref().map(|shown| shown.number)
    }

    fn place_of(&self, number: Option<usize>) -> Option<usize> {
        self.list.iter().position(|listed| Some(*listed) == number)
    }

    /// Where one is: `8 of 21`.
    pub fn position(&self) -> String {
        let at = self.place_of(self.number());
        at.map_or_else(String::new, |at| format!("{} of {}", at + 1, self.list.len()))
    }

    fn skip(&mut self, number: usize) {
        let next = self.desk.lock().next(&self.view, number);
        if next == Some(number) {
            self.say("That was the last one.");
        }
        self.show(next);
    }

    /// The card before or after this one, decided or not.
    fn step(&mut self, step: isize) -> Result<(), String> {
        let place = self.place_of(self.number()).unwrap_or_default();
        let (before, following) = self.list.split_at(place);
        let has_line = |number: &&usize| !self.folded.contains(number);
        let (next, end) = match step {
            1 => (following.iter().skip(1).find(has_line), "last"),
            _ => (before.iter().rev().find(has_line), "first"),
        };
        self.show(Some(*next.ok_or_else(|| format!("that was the {end} one"))?));
        Ok(())
    }

    /// From what is selected to the card, from a filter to all, from the cards to the plan.
    fn step_back(&mut self) {
        if !self.selected.is_empty() {
            self.selected.clear();
        } else if self.view.filter.is_empty() || self.view.filter.starts_with(HEAP) {
            self.open_plan();
        } else {
            self.set_filter("");
        }
    }

    /// What is unreviewed, or what is approved.
    fn change_queue(&mut self) {
        self.view.queue = match self.view.queue {
            QueueKind::Waiting => QueueKind::Approved,
            QueueKind::Approved => QueueKind::Waiting,
        };
        self.open_cards("");
    }

    /// The cards of a filter, from the first without a decision.
    fn open_cards(&mut self, filter: &str) {
        self.place = Place::Cards;
        self.selected.clear();
        filter.clone_into(&mut self.view.filter);
        self.reload();
        let first = self.desk.lock().undecided(&self.view).first().copied();
        self.show(first.or(self.list.last().copied()));
    }

    /// Filters the cards. The one that is shown stays, if it fits.
    fn set_filter(&mut self, filter: &str) {
        if self.place != Place::Cards {
            self.open_cards("");
        }
        filter.clone_into(&mut self.view.filter);
        self.reload();
        if self.place_of(self.number()).is_none() {
            let first = self.desk.lock().undecided(&self.view).first().copied();
            self.show(first.or(self.list.first().copied()));
        }
        if let Some(complaint) = self.view.complaint() {
            self.complain(&complaint);
        } else if self.list.is_empty() {
            self.say("No matches.");
        }
    }

    fn reload(&mut self) {
        let desk = self.desk.lock();
        self.list = desk.unsaved(&self.view);
        self.folded = desk.folded(&self.list);
    }

    fn show(&mut self, number: Option<usize>) {
        self.scroll = 0;
        self.fold = Fold::default();
        self.shown = number.and_then(|number| ShownCard::of(&self.desk.lock(), number));
    }

    /// The same place, after the desk has learned something.
    pub fn look_again(&mut self) {
        self.reload();
        if self.place == Place::Plan {
            self.open_plan();
        } else if self.view.queue == QueueKind::Approved && self.shown.is_none() {
            self.show(self.list.first().copied());
        }
        if matches!(self.answered, Some(None)) {
            // Perhaps the prompts are known now.
            self.answered = None;
        }
        let shown = self.shown.take();
        self.shown = shown.and_then(|shown| shown.again(&self.desk.lock()));
    }

    /// What should be looked for.
    pub fn wanted(&self) -> Option<Wanted> {
        if self.place == Place::Closing {
            return self.answered.is_none().then_some(Wanted::Answered);
        }
        let shown = self.shown.as_ref().filter(|shown| shown.found.is_none());
        shown.map(|shown| Wanted::Card(shown.number))
    }

    /// From the last question to the first card without a decision, or to the plan.
    pub fn go_back(&mut self) {
        if self.place == Place::Cards {
            self.open_cards(&self.view.filter.clone());
        } else {
            self.open_plan();
        }
    }

    pub fn learn(&mut self, found: Found) {
        match (found, &mut self.shown) {
            (Found::Card(found), Some(shown)) => shown.learn(&self.desk.lock(), found),
            (Found::Answered(answered), _) => self.answered = Some(answered),
            (Found::Card(_), None) => {}
        }
    }

    fn say(&mut self, text: &str) {
        self.complain(text);
        self.said.is_problem = false;
    }

    fn complain_if<T>(&mut self, done: Result<T, String>) {
        if let Err(problem) = done {
            self.complain(&problem);
        }
    }

    pub fn complain(&mut self, problem: &str) {
        let problem = problem.trim_end().replace("\nhint: ", "; ");
        self.said = Said { text: text::line(&problem, 500), is_problem: true };
    }
}
