//! The desk line by line, for screen readers and scripts: a letter and Enter. What stands on the
//! full screen is printed when it changes. At the end it asks once, and writes. Decisions that
//! cannot be written are not lost: the person tries again, or saves them to a file.

use std::sync::Arc;

use ack_api::text;
use parking_lot::Mutex;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;

use super::draw::draw_body;
use super::input::{Input, Typed};
use super::keys::Key;
use super::walk::{Found, KEYS, Place, Walk, Wish};
use super::{leave_undecided, problem, save};
use crate::cli::caller::Caller;
use crate::cli::command::command;
use crate::cli::curate::report;
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use crate::cli::progress;
use crate::cli::review::editor::edit_in_editor;
use crate::cli::review::unwritten;
use crate::cli::screen::Screen;
use ack_desk::Desk;
use ack_desk::background::{find_approved, find_need, find_relations};
use ack_desk::choice::{REASONS, count_text};
use ack_desk::curate::ReviewSession;

const BEGIN: &str = "type a letter and Enter; ? explains all keys\n";
/// Wider screens have two columns.
const MAX_COLUMNS: usize = 88;
/// The most lines of a card or a plan that are not wanted whole.
const ROWS: usize = 60;
const WHOLE: usize = 5_000;

/// Goes through the queue, and writes the choices.
pub fn run(
    caller: Caller<'_>,
    desk: &Arc<Mutex<Desk>>,
    session: &ReviewSession,
) -> Result<(), CliError> {
    progress::while_reading(|| {
        find_relations(desk);
        find_need(desk, || {});
    });
    let approved = Arc::clone(desk);
    std::thread::spawn(move || find_approved(&approved, || {}));
    write_err(&format!("{}\n{BEGIN}", desk.lock().head().text));
    unwritten::save_at_exit(caller, desk, session, || {});
    let mut walk = Walk::new(desk, session);
    let input = Input::start();
    loop {
        ask_keys(&mut walk, &input);
        if finish(caller, desk, session, &input)? {
            return Ok(());
        }
        walk.go_back();
    }
}

/// Takes lines, until the person is done or wants to leave.
fn ask_keys(walk: &mut Walk<'_>, input: &Input) {
    let mut printed = String::new();
    while walk.place != Place::Cards || walk.shown.is_some() {
        let now = body(walk);
        if now != printed {
            write_err(&now);
            printed = now;
        }
        let Typed::Line(line) = input.ask("key, ? lists them > ") else {
            return;
        };
        match line.as_str() {
            "q" => return,
            "?" => write_err(KEYS),
            "" if walk.place == Place::Cards => printed.clear(),
            line => do_line(walk, input, line),
        }
        let said = std::mem::take(&mut walk.said.text);
        if !said.is_empty() {
            write_err(&format!("{said}\n"));
        }
    }
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
    let rows: String = rows.map(|row| row_text(row) + "\n").collect();
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

/// A key, perhaps with what it would ask for: `r too vague`, `h 2w`, `m ID`.
fn do_line(walk: &mut Walk<'_>, input: &Input, line: &str) {
    let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let mut letters = key.chars();
    let letter = match (letters.next(), letters.next()) {
        (None, _) => Key::Enter,
        (Some(letter), None) => Key::Char(letter),
        _ => {
            let line = text::line(line, 40);
            return write_err(&format!("`{line}` is not a key; ? lists the keys\n"));
        }
    };
    match letter {
        Key::Char(other @ ('m' | 'd' | '=')) if !rest.is_empty() => {
            walk.name_other(other, rest.to_owned());
        }
        Key::Char('r' | 'R' | 'h' | '/') => {
            walk.press(&letter);
            answer(walk, input, rest);
        }
        _ if rest.is_empty() => {
            if let Wish::Edit(number) = walk.press(&letter) {
                walk.edit(number, |memory| edit_in_editor(memory, input));
            }
        }
        _ => write_err(&format!(
            "`{key}` takes nothing after it; type `{key}` alone, or ? for all keys\n"
        )),
    }
}

/// Answers the question that a key opened, with what was typed after the key or is typed now.
fn answer(walk: &mut Walk<'_>, input: &Input, rest: &str) {
    let mut rest = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
    while let Some(field) = &walk.field {
        let question = field.question(0).replace("Esc back", "? lists them, q back");
        match rest.take().map_or_else(|| input.ask(&question), Typed::Line) {
            Typed::Line(line) if line == "?" => {
                for (digit, reason) in (1..).zip(REASONS) {
                    write_err(&format!("  {digit} {reason}\n"));
                }
            }
            Typed::Line(line) if line != "q" => walk.answer(&line),
            _ => drop(walk.press(&Key::Escape)),
        }
    }
}

/// Asks once, then writes. Returns whether the person is done, and does not go back to the cards.
fn finish(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
    input: &Input,
) -> Result<bool, CliError> {
    let mut more = "(k goes back, ? lists the keys)";
    loop {
        let count = desk.lock().unwritten();
        if count == 0 {
            break leave_undecided(desk)?;
        }
        let decisions = count_text(count, "decision", "decisions");
        let Typed::Line(line) = input.ask(&format!("{decisions}: save? [Y/n] {more} ")) else {
            break save(caller, desk, session)?;
        };
        match line.to_lowercase().as_str() {
            "" | "y" | "yes" if write(caller, desk, session)? => break,
            "" | "y" | "yes" => more = "(y tries again, s saves them to a file)",
            "n" | "no" => break leave_undecided(desk)?,
            "s" => break save(caller, desk, session)?,
            "k" => return Ok(false),
            line => write_err(&help(line)),
        }
    }
    Ok(true)
}

fn help(line: &str) -> String {
    let wrong = match line {
        "?" => String::new(),
        line => format!("`{}` is not an answer\n", text::line(line, 40)),
    };
    let apply = command("review --apply");
    format!(
        "{wrong}y         write them\nn         drop them\n\
         s         save them to a file, for `{apply}`\n\
         k         go back to the cards, where u undoes the last choice\n"
    )
}

/// Writes the choices. Returns whether all of them are settled.
fn write(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
) -> Result<bool, CliError> {
    let mut desk = desk.lock();
    match desk.write(session) {
        Ok(outcome) => report(caller, &outcome, false)?,
        Err(error) => write_err(&format!("error: {}", problem(&CliError::from(error)))),
    }
    Ok(desk.unwritten() == 0)
}
