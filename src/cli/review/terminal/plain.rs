//! The desk line by line, for screen readers and scripts: a letter and Enter. What stands on the
//! full screen is printed when it changes.

use std::sync::Arc;

use ack_api::text;
use parking_lot::Mutex;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;

use super::TerminalView;
use super::draw::draw_body;
use super::input::{Input, Typed};
use super::keys::Key;
use super::walk::{Asked, Found, KEYS, Place, Walk, Wish};
use crate::cli::caller::Caller;
use crate::cli::output::write_err;
use crate::cli::review::unwritten;
use crate::cli::screen::Screen;
use crate::cli::{progress, prompt};
use ack_desk::background::{find_approved, find_need, find_relations};
use ack_desk::choice::REASONS;
use ack_desk::curate::ReviewSession;
use ack_desk::{Desk, ReviewOutcome};

const BEGIN: &str = "type a letter and Enter; ? explains all keys\n";
/// Wider screens have two columns.
const MAX_COLUMNS: usize = 88;
/// The most lines of a card or a plan that are not wanted whole.
const ROWS: usize = 60;
const WHOLE: usize = 5_000;

/// Shows the desk until the person leaves.
pub fn run(
    caller: Caller<'_>,
    desk: &Arc<Mutex<Desk>>,
    session: &ReviewSession,
    _: TerminalView,
) -> (Wish, Vec<ReviewOutcome>) {
    progress::while_reading(|| {
        find_relations(desk);
        find_need(desk, || {});
    });
    let approved = Arc::clone(desk);
    std::thread::spawn(move || find_approved(&approved, || {}));
    write_err(&(prompt::wrapped("", &desk.lock().head().text) + BEGIN));
    unwritten::save_at_exit(caller, desk, session, || {});
    let mut walk = Walk::new(desk, session);
    prompt::begin_reading();
    let mut input = Input::default();
    let (mut printed, mut was_open) = (String::new(), true);
    loop {
        let said = std::mem::take(&mut walk.said.text);
        if !said.is_empty() {
            write_err(&format!("{said}\n"));
        }
        // After the last card, the person leaves; after the last that fits a filter, not yet.
        let is_filtered = !walk.view.filter.is_empty()
            && (walk.list.is_empty() || walk.desk.lock().progress().left() > 0);
        let is_open = walk.place != Place::Cards || walk.shown.is_some() || is_filtered;
        let leaves = std::mem::replace(&mut was_open, is_open) && !is_open;
        let typed = if leaves {
            Typed::Line("q".to_owned())
        } else {
            ask(&mut walk, &mut input, &mut printed)
        };
        let wish = match typed {
            Typed::Line(line) if walk.field.is_some() => answer(&mut walk, &line, &mut printed),
            Typed::Line(line) => do_line(&mut walk, &line, &mut printed),
            Typed::Interrupt => walk.press(&Key::Interrupt),
            Typed::End => Wish::Keep,
        };
        match wish {
            Wish::Leave | Wish::Keep => return (wish, walk.outcomes),
            Wish::Edit(number) => walk.edit(number),
            Wish::Nothing => {}
        }
    }
}

/// Asks the open question, or for a key, below what the full screen shows.
fn ask(walk: &mut Walk<'_>, input: &mut Input, printed: &mut String) -> Typed {
    if let Some(field) = &walk.field {
        let question = field.question(walk.desk.lock().unwritten());
        let question = question.replace("Esc back", "? lists them, q back");
        return input.ask(&question.replace("Esc stay", "s to a file · k stay"));
    }
    let now = body(walk);
    if now != *printed {
        write_err(&now);
        *printed = now;
    }
    input.ask("key, ? lists them > ")
}

/// The place in the queue, and what the full screen shows below.
fn body(walk: &mut Walk<'_>) -> String {
    if let Some(found) = walk.wanted().and_then(|wanted| Found::search(walk.desk, wanted)) {
        walk.learn(found);
    }
    let screen = Screen::of_errors();
    let width = screen.width.unwrap_or(80).min(MAX_COLUMNS);
    let rows = match screen.height {
        _ if walk.fold.is_whole || walk.fold.is_near_open => WHOLE,
        rows => rows.unwrap_or(ROWS),
    };
    let side = |side| u16::try_from(side).unwrap_or(u16::MAX);
    let area = Rect::new(0, 0, side(width), side(rows));
    let mut screen = Buffer::empty(area);
    // Four rows are for the place, what was said, and the question.
    let height = area.height.saturating_sub(4).max(6);
    draw_body(walk, &mut screen, Rect { height, ..area });
    let rows = screen.content().chunks(width);
    let mut rows: String = rows.map(|row| row_text(row) + "\n").collect();
    if walk.place == Place::Cards && walk.shown.is_none() {
        rows = rows.replace("Esc ", "Enter ");
    }
    format!("\n{}\n{}\n", walk.position().replace(" of ", "/"), rows.trim_end())
}

/// What a row says. The cell after a wide character is not shown.
fn row_text(row: &[Cell]) -> String {
    let mut text = String::new();
    let mut covered = 0;
    for cell in row {
        if covered == 0 {
            text.push_str(cell.symbol());
            covered = textwrap::core::display_width(cell.symbol()).max(1);
        }
        covered -= 1;
    }
    text.trim_end().to_owned()
}

/// Answers the open question.
fn answer(walk: &mut Walk<'_>, line: &str, printed: &mut String) -> Wish {
    let is_last = matches!(&walk.field, Some(field) if field.asked == Asked::Leave);
    match line {
        "s" if is_last => return Wish::Keep,
        "k" if is_last => {
            printed.clear();
            walk.press(&Key::Escape);
            walk.go_back();
        }
        "q" if !is_last => return walk.press(&Key::Escape),
        "?" if !is_last => {
            for (digit, reason) in (1..).zip(REASONS) {
                write_err(&format!("  {digit} {reason}\n"));
            }
        }
        line => return walk.answer(line),
    }
    Wish::Nothing
}

/// Does what a key does, perhaps with what it would ask for: `r too vague`, `h 2w`, `m ID`.
fn do_line(walk: &mut Walk<'_>, line: &str, printed: &mut String) -> Wish {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let mut letters = word.chars();
    let key = match (letters.next(), letters.next()) {
        (None, _) if walk.shown.is_some() => {
            printed.clear();
            return Wish::Nothing;
        }
        (None, _) if walk.place == Place::Cards => Key::Escape,
        (None, _) => Key::Enter,
        (Some(letter), None) => Key::Char(letter),
        _ if word.eq_ignore_ascii_case("esc") => Key::Escape,
        _ => {
            let line = text::line(line, 40);
            write_err(&format!("`{line}` is not a key; ? lists the keys\n"));
            return Wish::Nothing;
        }
    };
    match key {
        Key::Char('?') => write_err(KEYS),
        Key::Char(other @ ('m' | 'd' | '=')) if !rest.is_empty() => {
            walk.name_other(other, rest.to_owned());
        }
        Key::Char('r' | 'R' | 'h' | '/') if !rest.is_empty() => {
            walk.press(&key);
            return walk.answer(rest);
        }
        key if rest.is_empty() => return walk.press(&key),
        _ => write_err(&format!(
            "`{word}` takes nothing after it; type `{word}` alone, or ? for all keys\n"
        )),
    }
    Wish::Nothing
}
