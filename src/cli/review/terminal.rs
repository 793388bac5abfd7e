//! The review desk at a terminal, line by line, like `git add -p`. Every command is a letter and
//! Enter, which works with screen readers and scripts.

mod card;
mod group;
mod input;
mod why;

use crate::cli::command::SHELL;
use std::sync::Arc;

use ack_api::Diagnostic;
use ack_api::text;
use parking_lot::Mutex;

use self::card::{CardFormat, card_text};
use self::why::{WhyAnswer, reasons};
use super::editor::edit_in_editor;
use super::finish::{LeaveOutcome, finish};
use super::unwritten;
use crate::cli::args::day::parse_later_day;
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use ack_desk::Desk;
use ack_desk::choice::{Choice, reason};
use ack_desk::curate::ReviewSession;
use ack_desk::queue::{ItemState, QueueKind};

const HELP: &str = "\
a         approve            r [WHY]   reject; asks for a reason without WHY
p         promote            s         skip
h DAY     snooze until a date, or for 7d, 2w
m ID      merge into ID      d ID      duplicate of ID
u ID      replaces ID        o ID      replaced by ID
e         edit and approve   n         show all of its text
g         approve it; those that are much alike are its duplicates
A         approve it and those that are much alike
R [WHY]   reject it and those that are much alike
j         next               k         previous
z         undo the last choice
q         finish: save the choices, or quit
Enter     show the card again
";
/// What the keys do, before the first card.
const BEGIN: &str = "type a letter and Enter: a approve, r reject, e edit, h DAY snooze, s skip,\n\
                     z undo, q finish; ? explains all keys\n";
const BEGIN_STALE: &str = "type a letter and Enter: a keep, r reject, e edit, o ID replaced by\n\
                           another one, s skip, z undo, q finish; ? explains all keys\n";
/// Keys with nothing after them.
const LONE_KEYS: [&str; 12] = ["a", "p", "e", "g", "A", "s", "j", "k", "n", "z", "q", "?"];
const PAGE_ONLY_KEYS: [&str; 4] = ["c", "l", "x", "/"];

pub use self::input::{Input, Typed};

enum Step {
    /// Ask again below a message. The card is still on the screen.
    Ask,
    Show,
    ShowAll,
    To(usize),
    Finish,
}

/// A person's way through the queue.
struct QueueWalk<'a> {
    desk: &'a Mutex<Desk>,
    input: Input,
    queue: QueueKind,
    first: usize,
    /// The number after the last memory.
    end: usize,
    position: usize,
    /// Whether the next card shows the whole text.
    show_all: bool,
    /// How many lines above the next card should stay on the screen.
    lines_above: usize,
}

/// Goes through the queue, and writes the choices.
pub fn run_terminal_desk(
    caller: Caller<'_>,
    mut desk: Desk,
    session: &ReviewSession,
) -> Result<(), CliError> {
    desk.find_groups();
    desk.shorten_ids();
    write_err(&format!("{}\n", desk.head().text));
    write_err(match desk.queue() {
        QueueKind::Waiting => BEGIN,
        QueueKind::Approved => BEGIN_STALE,
    });
    let desk = Arc::new(Mutex::new(desk));
    unwritten::save_at_exit(caller, &desk, session, || {});
    let mut walk = QueueWalk::new(&desk);
    loop {
        walk.cards();
        let outcome = finish(caller, &desk, session, true, |question| {
            walk.input.ask(question)
        })?;
        match outcome {
            LeaveOutcome::Done => return Ok(()),
            LeaveOutcome::Return => walk.go_back(),
        }
    }
}

impl<'a> QueueWalk<'a> {
    fn new(desk: &'a Mutex<Desk>) -> Self {
        let (queue, first, end) = {
            let desk = desk.lock();
            let queue = desk.queue();
            // Memories that may be out of date come after the waiting ones.
            let mut queues = desk.items().iter().map(|item| item.queue());
            let first = queues
                .position(|offered| offered == queue)
                .unwrap_or_default();
            let count = desk.items().iter().filter(|item| item.queue() == queue);
            (queue, first, first + count.count())
        };
        Self {
            desk,
            input: Input::start(),
            queue,
            first,
            end,
            position: first,
            show_all: false,
            lines_above: 0,
        }
    }

    /// Shows cards until the person is done or wants to leave.
    fn cards(&mut self) {
        let mut shows_card = true;
        while self.position < self.end {
            if shows_card {
                self.show_card();
            }
            let keys = match self.queue {
                QueueKind::Waiting => "a r p e h m d u g A R s j k n z q ? > ",
                QueueKind::Approved => "a (keep) r m d o e s j k n z q ? > ",
            };
            shows_card = true;
            let line = match self.input.ask(keys) {
                Typed::Line(line) => line,
                Typed::Interrupt | Typed::End => return,
            };
            match self.handle_line(&line) {
                Ok(Step::Ask) => shows_card = false,
                Ok(Step::Show) => {}
                Ok(Step::ShowAll) => self.show_all = true,
                Ok(Step::To(next)) => self.position = next,
                Ok(Step::Finish) => return,
                Err(error) => {
                    write_err(&problem(&error));
                    shows_card = false;
                }
            }
        }
    }

    fn show_card(&mut self) {
        let position = self.position + 1 - self.first;
        let format = CardFormat {
            position: format!("{position}/{}", self.end - self.first),
            show_all: std::mem::take(&mut self.show_all),
            lines_above: std::mem::take(&mut self.lines_above),
        };
        write_err(&card_text(self.desk, self.position, &format));
    }

    /// The next memory without a decision after this one, or the end.
    fn next(&self) -> usize {
        self.next_from(self.position + 1).unwrap_or(self.end)
    }

    fn next_from(&self, from: usize) -> Option<usize> {
        let desk = self.desk.lock();
        let items = desk.items();
        (from..self.end).find(|number| {
            let item = items.get(*number);
            item.is_some_and(|item| item.state == ItemState::Waiting)
        })
    }

    /// Returns from the last question, to the first card without a decision.
    fn go_back(&mut self) {
        let last = self.position.min(self.end.saturating_sub(1));
        self.position = self.next_from(self.first).unwrap_or(last);
    }

    fn handle_line(&mut self, line: &str) -> Result<Step, CliError> {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let is_stale = self.queue == QueueKind::Approved;
        if is_stale && matches!(key, "p" | "h" | "u" | "g" | "A" | "R") {
            return Ok(report_invalid(&format!(
                "`{key}` does not work here; use a (keep), e, r, or m/d/o with an ID"
            )));
        }
        if LONE_KEYS.contains(&key) && !rest.is_empty() {
            return Ok(report_invalid(&format!(
                "`{key}` takes nothing after it; type `{key}` alone, or ? for all keys"
            )));
        }
        Ok(match key {
            "" => Step::Show,
            "n" => Step::ShowAll,
            "s" => Step::To(self.next()),
            "j" => Step::To(self.position + 1),
            "k" if self.position == self.first => report_invalid("that was the first one"),
            "k" => Step::To(self.position - 1),
            "z" => match self.desk.lock().take_back(None).first() {
                Some(last) => Step::To(*last),
                None => report_invalid("nothing was decided yet"),
            },
            "q" => Step::Finish,
            "g" => self.keep_one()?,
            "A" => self.decide_group(Choice::Approve, None)?,
            "r" | "R" if rest.is_empty() => match self.ask_reason() {
                WhyAnswer::Reason(why) if key == "r" => self.choose(Choice::Reject, why)?,
                WhyAnswer::Reason(why) => self.decide_group(Choice::Reject, why)?,
                WhyAnswer::Back => Step::Show,
                WhyAnswer::Leave => Step::Finish,
            },
            "R" => self.decide_group(Choice::Reject, reason(rest))?,
            "?" => help(),
            _ => match self.choice(key, rest)? {
                Some((choice, why)) => self.choose(choice, why)?,
                None => report_invalid(&unknown_command(line, key)),
            },
        })
    }

    /// The choice that a key stands for, with its reason.
    fn choice(&self, key: &str, rest: &str) -> Result<Option<(Choice, Option<String>)>, CliError> {
        let id = rest.to_owned();
        Ok(Some(match key {
            "a" => (Choice::Approve, None),
            "p" => (Choice::Promote, None),
            "r" => (Choice::Reject, reason(rest)),
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" if rest.is_empty() => {
                (Choice::Reject, reason(key))
            }
            "m" if !rest.is_empty() => (Choice::Merge { into: id }, None),
            "d" if !rest.is_empty() => (Choice::Duplicate { of: id }, None),
            "u" if !rest.is_empty() => (Choice::Supersede { older: id }, None),
            "o" if !rest.is_empty() => (Choice::Replace { by: id }, None),
            "h" if !rest.is_empty() => {
                let until = parse_later_day(rest).map_err(CliError::Typed)?;
                (Choice::PutOff { until }, None)
            }
            "e" => {
                // The desk is not locked while the editor runs.
                let item = self.desk.lock().items().get(self.position).cloned();
                let edit = item.map(|item| edit_in_editor(&item.candidate, &self.input));
                let Some(edit) = edit.transpose()?.flatten() else {
                    return Err(CliError::Typed("nothing was changed".to_owned()));
                };
                let edit = Box::new(edit);
                (Choice::Edit { edit }, None)
            }
            _ => return Ok(None),
        }))
    }

    fn choose(&mut self, choice: Choice, why: Option<String>) -> Result<Step, CliError> {
        let numbers = [self.position];
        let mut desk = self.desk.lock();
        let preview = desk.preview(&numbers, &choice)?;
        desk.choose(&numbers, choice, why)?;
        drop(desk);
        write_err(&format!("  {}\n", preview.label));
        for line in &preview.side_effects {
            write_err(&format!("  {line}\n"));
        }
        self.lines_above = 1 + preview.side_effects.len();
        Ok(Step::To(self.next()))
    }
}

/// Why a line is not a command.
fn unknown_command(line: &str, key: &str) -> String {
    match key {
        "m" | "d" | "u" | "o" => format!("`{key}` needs an id: {key} ID"),
        "h" => "`h` needs a day: h 2026-03-14, h 7d, h 2w".to_owned(),
        "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" => {
            format!("`{key}` takes nothing after it; for a reason of your own: r WHY")
        }
        key if PAGE_ONLY_KEYS.contains(&key) => {
            format!("`{key}` works only on the page; ? lists the keys")
        }
        _ => format!("`{}` is not a key; ? lists the keys", text::line(line, 40)),
    }
}

/// Reports an invalid line. Decides nothing.
fn report_invalid(problem: &str) -> Step {
    write_err(&format!("{problem}\n"));
    Step::Ask
}

fn help() -> Step {
    write_err(HELP);
    write_err(&format!("reject at once for a reason:\n{}", reasons()));
    Step::Ask
}

/// An error with what to do about it.
pub fn problem(error: &dyn Diagnostic) -> String {
    let hint = error.hint_for(&SHELL).map(|hint| format!("hint: {hint}\n"));
    format!("{error}\n{}", hint.unwrap_or_default())
}
