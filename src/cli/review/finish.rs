//! The end of a review session: asks once, and writes. Decisions that cannot be written are not
//! lost: the person tries again, or saves it to a file.

use crate::cli::command::command;
use ack_api::text;
use parking_lot::Mutex;

use super::terminal::{Typed, problem};
use super::unwritten;
use crate::cli::caller::Caller;
use crate::cli::curate::report;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_plain};
use ack_desk::Desk;
use ack_desk::choice::count_text;
use ack_desk::curate::ReviewSession;
use ack_desk::queue::ItemState;

/// Where the person can go from the last question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnOptions {
    /// Nowhere: the page is closed.
    None,
    /// To the cards, of which this many have no decision.
    Cards(usize),
}

/// A way back to the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnTo {
    /// The last card that was shown.
    Card,
    /// The first card without a decision.
    Undecided,
    /// The card of the decision that was undone.
    Undone(usize),
    /// The first card whose decision was not written, because its memory had changed.
    PutBack,
}

/// How the last question was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOutcome {
    /// The session is over.
    Done,
    /// The person goes back to the cards.
    Return(ReturnTo),
}

/// Asks once, then writes.
pub fn finish(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
    ways: ReturnOptions,
    ask: impl Fn(&str) -> Typed,
) -> Result<LeaveOutcome, CliError> {
    let mut has_failed = false;
    loop {
        let count = desk.lock().unwritten();
        if count == 0 {
            return leave_undecided(desk);
        }
        let line = match ask(&question(count, ways, has_failed)) {
            Typed::Line(line) => line,
            Typed::Interrupt | Typed::End => return save(caller, desk, session),
        };
        let back = ways != ReturnOptions::None;
        match line.as_str() {
            "y" | "yes" => match write(caller, desk, session)? {
                true if back && has_put_back(&desk.lock()) => {
                    return Ok(LeaveOutcome::Return(ReturnTo::PutBack));
                }
                true => return Ok(LeaveOutcome::Done),
                false => has_failed = true,
            },
            "n" | "no" => return leave_undecided(desk),
            "s" => return save(caller, desk, session),
            "k" if back => return Ok(LeaveOutcome::Return(ReturnTo::Card)),
            "j" if back && ways != ReturnOptions::Cards(0) => {
                return Ok(LeaveOutcome::Return(ReturnTo::Undecided));
            }
            "z" if back => {
                if let Some(number) = desk.lock().take_back(None).first() {
                    return Ok(LeaveOutcome::Return(ReturnTo::Undone(*number)));
                }
            }
            line => write_err(&help(line, ways)),
        }
    }
}

fn leave_undecided(desk: &Mutex<Desk>) -> Result<LeaveOutcome, CliError> {
    let message = match desk.lock().head().written {
        0 => "nothing was decided\n",
        _ => "nothing else was decided\n",
    };
    write_plain(message).map(|()| LeaveOutcome::Done)
}

/// Whether a decision was not written, and its memory still waits.
fn has_put_back(desk: &Desk) -> bool {
    let mut items = desk.items().iter();
    items.any(|item| item.was_put_back && item.state == ItemState::Waiting)
}

fn question(count: usize, ways: ReturnOptions, has_failed: bool) -> String {
    let decisions = count_text(count, "decision", "decisions");
    let more = match ways {
        _ if has_failed => " (y tries again, s saves them to a file)",
        ReturnOptions::Cards(_) => " (k goes back, ? lists the keys)",
        ReturnOptions::None => "",
    };
    format!("{decisions}: write? [y/n]{more} ")
}

fn help(line: &str, ways: ReturnOptions) -> String {
    let mut text = String::new();
    if !matches!(line, "" | "?" | "j") {
        text = format!("`{}` is not an answer\n", text::line(line, 40));
    }
    text.push_str("y         write them\nn         drop them\n");
    let apply = command("review --apply");
    text.push_str(&format!("s         save them to a file, for `{apply}`\n"));
    if let ReturnOptions::Cards(undecided) = ways {
        text.push_str("k         go back to the last card\nz         undo the last choice\n");
        let cards = match undecided {
            0 => return text + "every card has a decision\n",
            1 => "the card without a decision".to_owned(),
            many => format!("the first of the {many} cards without a decision"),
        };
        text.push_str(&format!("j         go to {cards}\n"));
    }
    text
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

/// Saves the choices to a file, and says where.
fn save(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
) -> Result<LeaveOutcome, CliError> {
    let message = unwritten::save(
        &unwritten::candidate_folders(caller.config),
        &mut desk.lock(),
        session,
    );
    write_plain(&message)?;
    Ok(LeaveOutcome::Done)
}
