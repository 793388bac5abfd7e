//! The review desk at a terminal, line by line, like `git add -p`. Every command is a letter and
//! Enter, which works with screen readers and scripts.

use std::fmt::Write as _;
use std::io::BufRead;

use super::editor::edited;
use crate::cli::args::day::later;
use crate::cli::curate::{Caller, report};
use crate::cli::error::CliError;
use crate::cli::screen::Screen;
use crate::cli::{write_err, write_plain};
use crate::curate::Sitting;
use crate::desk::Desk;
use crate::desk::card::Card;
use crate::desk::choice::{Choice, REASONS, counted, reason};
use crate::desk::evidence::evidence;
use crate::desk::near::beside;
use crate::desk::queue::{Item, Lane};
use ack_api::text;

/// How many lines of a narrative a card shows.
const NARRATIVE_LINES: usize = 12;

const HELP: &str = "\
a         approve            r [WHY]   reject; a digit is a common reason
p         promote            s         skip
h DAY     put off until a date, or for 7d, 2w
m ID      merge into ID      d ID      duplicate of ID
u ID      replaces ID        o ID      replaced by ID
e         edit and approve   n         show all of its text
z         undo the last choice
q         finish: write the choices, or quit
";

/// The next step after a key.
enum Step {
    /// Show the same card again.
    Stay,
    /// Show its full text.
    Whole,
    /// Show another card.
    To(usize),
    /// Write the choices.
    Finish,
}

/// Goes through the queue, and writes the choices.
pub fn go_through(caller: Caller<'_>, mut desk: Desk, sitting: &Sitting) -> Result<(), CliError> {
    desk.find_groups();
    write_err(&format!("{}\n", desk.head().text));
    // Memories that may be out of date come after the waiting ones.
    let lane = desk.lane();
    let is_in_lane = |item: &Item| item.lane() == lane;
    let first = desk.items().iter().position(is_in_lane).unwrap_or_default();
    let end = first + desk.items().iter().filter(|item| is_in_lane(item)).count();
    let mut position = first;
    let mut whole = false;
    while let Some(card) = desk.card(position).filter(|_| position < end) {
        let place = format!("{}/{}", position + 1 - first, end - first);
        write_err(&shown(&desk, position, &place, &card, whole));
        whole = false;
        let keys = match lane {
            Lane::Waiting => "a r p s h m d u e n z q ? > ",
            Lane::Stale => "a (keep) r s m d o e n z q ? > ",
        };
        let Some(line) = ask(keys) else {
            break;
        };
        match take(&mut desk, position, &line) {
            Ok(Step::Stay) => {}
            Ok(Step::Whole) => whole = true,
            Ok(Step::To(next)) => position = next,
            Ok(Step::Finish) => break,
            Err(error) => write_err(&format!("{error}\n")),
        }
    }
    finish(caller, &mut desk, sitting, ask)
}

fn take(desk: &mut Desk, position: usize, line: &str) -> Result<Step, CliError> {
    let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let id = rest.to_owned();
    let mut why = None;
    let is_stale = desk.lane() == Lane::Stale;
    if is_stale && matches!(key, "p" | "h" | "u") {
        write_err("it is approved: a keeps it; o ID, m ID, d ID, e and r change that\n");
        return Ok(Step::Stay);
    }
    let choice = match key {
        "a" => Choice::Approve,
        "p" => Choice::Promote,
        "r" => {
            why = reason(rest);
            Choice::Reject
        }
        "m" if !rest.is_empty() => Choice::Merge { into: id },
        "d" if !rest.is_empty() => Choice::Duplicate { of: id },
        "u" if !rest.is_empty() => Choice::Supersede { older: id },
        "o" if !rest.is_empty() => Choice::Replace { by: id },
        "h" if !rest.is_empty() => Choice::PutOff {
            until: later(rest).map_err(|reason| CliError::invalid("the day", rest, &reason))?,
        },
        "e" => {
            let item = desk.items().get(position);
            let edit = item.map(|item| edited(&item.candidate)).transpose()?;
            let Some(edit) = edit.flatten() else {
                write_err("nothing was changed\n");
                return Ok(Step::Stay);
            };
            Choice::Edit {
                edit: Box::new(edit),
            }
        }
        "n" => return Ok(Step::Whole),
        "s" => return Ok(Step::To(position + 1)),
        "z" => {
            let Some(last) = desk.take_back(None).first().copied() else {
                write_err("nothing was decided yet\n");
                return Ok(Step::Stay);
            };
            return Ok(Step::To(last));
        }
        "q" => return Ok(Step::Finish),
        "m" | "d" | "u" | "o" => return Ok(unclear(&format!("`{key}` needs an id: {key} ID"))),
        "h" => return Ok(unclear("`h` needs a day: h 2026-03-14, h 7d, h 2w")),
        "" | "?" => {
            write_err(HELP);
            for (digit, reason) in (1..).zip(REASONS) {
                write_err(&format!("r {digit}       {reason}\n"));
            }
            return Ok(Step::Stay);
        }
        _ => {
            let line = text::line(line, 40);
            return Ok(unclear(&format!("`{line}` is not a key; ? lists the keys")));
        }
    };
    let preview = desk.preview(&[position], &choice)?;
    desk.choose(&[position], choice, why)?;
    write_err(&format!("  {}\n", preview.label));
    Ok(Step::To(position + 1))
}

/// Reports an invalid line. Decides nothing.
fn unclear(problem: &str) -> Step {
    write_err(&format!("{problem}\n"));
    Step::Stay
}

/// Asks once, then writes.
pub fn finish(
    caller: Caller<'_>,
    desk: &mut Desk,
    sitting: &Sitting,
    ask: impl Fn(&str) -> Option<String>,
) -> Result<(), CliError> {
    let count = desk.unwritten();
    if count == 0 {
        return write_plain("nothing was decided\n");
    }
    let decisions = counted(count, "decision", "decisions");
    loop {
        match ask(&format!("{decisions}: write? [y/n] ")).as_deref() {
            Some("y" | "yes") => break,
            Some("n" | "no") | None => return write_plain("nothing was decided\n"),
            Some(_) => {}
        }
    }
    report(caller, &desk.write(sitting)?, false)
}

/// The card, with the nearest approved memories.
fn shown(desk: &Desk, position: usize, place: &str, memory: &Card, whole: bool) -> String {
    let mut card = format!(
        "\n{place}  {}\n{}\n",
        memory.meta(),
        wrapped(&memory.title, "")
    );
    if let Some(subtitle) = &memory.subtitle {
        let _ = writeln!(card, "{}", wrapped(subtitle, "  "));
    }
    for fact in &memory.facts {
        let _ = writeln!(card, "{}", wrapped(fact, "  - "));
    }
    if let Some(narrative) = &memory.narrative {
        card.push_str(&folded(narrative, whole));
    }
    for (name, values) in [("tags", &memory.concepts), ("files", &memory.files)] {
        if !values.is_empty() {
            let line = format!("{name}: {}", values.join(", "));
            let _ = writeln!(card, "{}", wrapped(&line, "  "));
        }
    }
    if let Some(session) = memory.session_title.as_ref().or(memory.session.as_ref()) {
        let _ = writeln!(card, "{}", wrapped(&format!("session: {session}"), "  "));
    }
    for place in &memory.served {
        let _ = writeln!(card, "{}", wrapped(place, "  "));
    }
    for mark in &memory.marks {
        let _ = writeln!(card, "  ! {mark}");
    }
    let ids = desk.ids_of_group(position);
    if !ids.is_empty() {
        let line = format!("similar pending memories: {}", ids.join(" "));
        let _ = writeln!(card, "{}", wrapped(&line, "  "));
    }
    let item = desk.items().get(position);
    let evidence = item.and_then(|item| evidence(desk.service(), &item.candidate));
    for line in evidence.unwrap_or_default() {
        let _ = writeln!(card, "{}", wrapped(&line, "  "));
    }
    let near = desk.items().get(position);
    let near = near.map(|item| beside(desk.service(), &item.candidate, desk.now()));
    for near in near.unwrap_or_default() {
        let relation = near.relation_in_words();
        let line = format!("approved: {}  {}  ({relation})", near.id, near.title);
        let _ = writeln!(card, "{}", wrapped(&line, "  "));
        if let Some(conflict) = &near.conflict {
            let _ = writeln!(card, "{}", wrapped(&conflict.newer, "    here:  "));
            let _ = writeln!(card, "{}", wrapped(&conflict.older, "    there: "));
        }
    }
    if let Some(done) = desk.done(position) {
        let _ = writeln!(card, "  {done}");
    }
    card
}

fn folded(narrative: &str, whole: bool) -> String {
    let text = wrapped(narrative, "  ");
    let lines: Vec<&str> = text.lines().collect();
    let shown = if whole {
        lines.len()
    } else {
        NARRATIVE_LINES.min(lines.len())
    };
    let mut told = String::from("\n");
    for line in lines.iter().take(shown) {
        let _ = writeln!(told, "{line}");
    }
    if shown < lines.len() {
        let _ = writeln!(told, "  … {} more lines: n", lines.len() - shown);
    }
    told.push('\n');
    told
}

/// Text wrapped to the width of the terminal, with an indent.
fn wrapped(text: &str, indent: &str) -> String {
    let rest = " ".repeat(indent.len());
    let width = Screen::of_errors().width.unwrap_or(80);
    let options = textwrap::Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(&rest);
    textwrap::fill(text, options)
}

/// Asks on standard error; `None` at the end of the input.
fn ask(question: &str) -> Option<String> {
    write_err(question);
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Some(line.trim().to_owned()),
        _ => None,
    }
}
