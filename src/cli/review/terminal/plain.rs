//! The desk line by line, for screen readers and scripts: a letter and Enter. What stands on the
//! screen of the full desk is printed when it changes.

use std::sync::Arc;

use ack_api::text;
use parking_lot::Mutex;

use super::card::{CardLines, Fold};
use super::input::{Input, Typed};
use super::keys::Key;
use super::lines::plain;
use super::walk::{Found, Place, Walk, Wish, keys, suggestion};
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use crate::cli::review::editor::edit_in_editor;
use crate::cli::review::finish::{LeaveOutcome, finish};
use crate::cli::review::unwritten;
use crate::cli::screen::Screen;
use ack_desk::Desk;
use ack_desk::choice::REASONS;
use ack_desk::curate::ReviewSession;
use ack_desk::queue::QueueKind;

const BEGIN: &str = "type a letter and Enter: a approve, r reject, e edit, h snooze, s skip,\n\
                     u undo, q finish; ? explains all keys\n";

/// Goes through the queue, and writes the choices.
pub fn run(
    caller: Caller<'_>,
    desk: &Arc<Mutex<Desk>>,
    session: &ReviewSession,
) -> Result<(), CliError> {
    desk.lock().find_groups();
    write_err(&format!("{}\n{BEGIN}", desk.lock().head().text));
    unwritten::save_at_exit(caller, desk, session, || {});
    let mut lines = PlainDesk {
        walk: Walk::new(desk, session),
        input: Input::start(),
        printed: None,
    };
    loop {
        lines.ask();
        let ask = |question: &str| lines.input.ask(question);
        match finish(caller, desk, session, true, ask)? {
            LeaveOutcome::Done => return Ok(()),
            LeaveOutcome::Return => lines.walk.go_back(),
        }
    }
}

/// What was printed last: it is not printed again.
type Printed = (Place, Option<usize>, Option<usize>, bool, bool);

struct PlainDesk<'a> {
    walk: Walk<'a>,
    input: Input,
    printed: Option<Printed>,
}

impl PlainDesk<'_> {
    /// Takes lines, until the person is done or wants to leave.
    fn ask(&mut self) {
        self.printed = None;
        while self.walk.place == Place::Plan || self.walk.shown.is_some() {
            self.print();
            let keys = match (self.walk.place, self.walk.view.queue) {
                (Place::Plan, _) => "A R g h n j k o u c / q ?, Enter opens it > ",
                (_, QueueKind::Waiting) => "a r e p h m d = o g A R s j k n x X / u c l q ? > ",
                (_, QueueKind::Stale) => "a (keep) r e m d = o s j k n u c l q ? > ",
            };
            let Typed::Line(line) = self.input.ask(keys) else {
                return;
            };
            match line.as_str() {
                "q" => return,
                "?" => help(),
                "" if self.walk.place == Place::Cards => self.printed = None,
                line => self.line(line),
            }
            if !self.walk.said.text.is_empty() {
                write_err(&format!("{}\n", self.walk.said.text));
                self.walk.said.text.clear();
            }
        }
    }

    /// A key, perhaps with what it would ask for: `r too vague`, `h 2w`, `m ID`.
    fn line(&mut self, line: &str) {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (key, rest) = (key.trim(), rest.trim());
        let mut letters = key.chars();
        let letter = match (letters.next(), letters.next()) {
            (None, _) => Key::Enter,
            (Some(letter), None) => Key::Char(letter),
            _ => return not_a_key(line),
        };
        match letter {
            Key::Char(other @ ('m' | 'd' | '=')) if !rest.is_empty() => {
                self.walk.name_id(other, rest.to_owned());
            }
            Key::Char('r' | 'R' | 'h' | '/') => {
                self.press(&letter);
                self.answer(rest);
            }
            _ if rest.is_empty() => self.press(&letter),
            _ => write_err(&format!(
                "`{key}` takes nothing after it; type `{key}` alone, or ? for all keys\n"
            )),
        }
    }

    /// Answers the question that a key opened, with what was typed after the key or is typed now.
    fn answer(&mut self, rest: &str) {
        let mut rest = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        while let Some(field) = &self.walk.field {
            let question = field
                .question(0)
                .replace("Esc back", "? lists them, q back");
            let typed = match rest.take() {
                Some(rest) => Typed::Line(rest),
                None => self.input.ask(&question),
            };
            match typed {
                Typed::Line(line) if line == "?" => help_reasons(),
                Typed::Line(line) if line != "q" => self.walk.answer(&line),
                _ => drop(self.walk.press(&Key::Escape)),
            }
        }
    }

    fn press(&mut self, key: &Key) {
        if let Wish::Edit(number) = self.walk.press(key) {
            // The desk is not locked while the editor runs.
            let item = self.walk.desk.lock().items().get(number).cloned();
            if let Some(item) = item {
                let edit = edit_in_editor(&item.candidate, &self.input);
                self.walk.edited(number, edit);
            }
        }
    }

    /// Prints what is on the screen, unless it was printed last.
    fn print(&mut self) {
        while let Some(number) = self.walk.wanted_now() {
            self.walk.learn(Found::search(self.walk.desk, number));
        }
        let walk = &self.walk;
        let number = walk.shown.as_ref().map(|shown| shown.number);
        let at = match &walk.shown {
            Some(shown) => Some(shown.marked),
            None => Some(walk.plan.at),
        };
        let now = (walk.place, number, at, walk.is_whole, walk.is_near_open);
        let is_new_place = self.printed.is_none_or(|before| before.0 != walk.place);
        if self.printed.replace(now) == Some(now) {
            return;
        }
        match walk.place {
            Place::Plan => self.print_plan(is_new_place),
            Place::Cards => self.print_card(),
        }
    }

    fn print_card(&self) {
        let walk = &self.walk;
        let Some(shown) = &walk.shown else { return };
        let at = walk.list.iter().position(|listed| *listed == shown.number);
        let fold = Fold {
            is_whole: walk.is_whole,
            is_near_open: walk.is_near_open,
            is_low: false,
        };
        let screen = Screen::of_errors();
        let lines = CardLines::of(shown, screen.width.unwrap_or(80), fold);
        // The last line of the screen is for the keys.
        let rows = screen.height.filter(|_| !walk.is_whole);
        let lines = match rows {
            Some(rows) => lines.within(rows.saturating_sub(5).max(6)),
            None => lines.all(),
        };
        let mut text = format!("\n{}/{}\n", at.map_or(0, |at| at + 1), walk.list.len());
        text.extend(lines.iter().map(|line| plain(line) + "\n"));
        write_err(&text);
    }

    /// The heaps, or the one that was moved to; and some memories of it.
    fn print_plan(&self, with_all: bool) {
        let plan = &self.walk.plan;
        let mut text = "\n".to_owned();
        for (at, heap) in plan.heaps.iter().enumerate() {
            let is_here = at == plan.at;
            if !with_all && !is_here {
                continue;
            }
            let (key, what) = suggestion(heap);
            let lead = if is_here { ">" } else { " " };
            let about = heap.done.unwrap_or(&heap.about);
            text += &format!(
                "{lead} {}  {}: {about} ({what}: {key})\n",
                heap.total, heap.title
            );
        }
        let sample = plan.current().map_or(&[][..], |heap| &heap.sample);
        text.extend(sample.iter().map(|one| format!("    {}\n", one.title)));
        write_err(&text);
    }
}

fn not_a_key(line: &str) {
    write_err(&format!(
        "`{}` is not a key; ? lists the keys\n",
        text::line(line, 40)
    ));
}

fn help() {
    let keys = keys().into_iter();
    let text: String = keys
        .map(|(key, what)| format!("{key:10}{what}\n"))
        .collect();
    write_err(&text);
    write_err("after r and h, what they ask for; after m, d and =, the id of another memory\n");
}

fn help_reasons() {
    for (digit, reason) in (1..).zip(REASONS) {
        write_err(&format!("  {digit} {reason}\n"));
    }
}
