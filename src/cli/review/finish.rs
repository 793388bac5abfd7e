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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveOutcome {
    Done,
    /// The person goes back to the cards.
    Return,
}

/// Asks once, then writes.
pub fn finish(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
    ask: impl Fn(&str) -> Typed,
) -> Result<LeaveOutcome, CliError> {
    let mut has_failed = false;
    loop {
        let count = desk.lock().unwritten();
        if count == 0 {
            return leave_undecided(desk);
        }
        let line = match ask(&question(count, has_failed)) {
            Typed::Line(line) => line,
            Typed::Interrupt | Typed::End => return save(caller, desk, session),
        };
        match line.to_lowercase().as_str() {
            "" | "y" | "yes" if write(caller, desk, session)? => return Ok(LeaveOutcome::Done),
            "" | "y" | "yes" => has_failed = true,
            "n" | "no" => return leave_undecided(desk),
            "s" => return save(caller, desk, session),
            "k" => return Ok(LeaveOutcome::Return),
            line => write_err(&help(line)),
        }
    }
}

pub fn leave_undecided(desk: &Mutex<Desk>) -> Result<LeaveOutcome, CliError> {
    let message = match desk.lock().written() {
        0 => "nothing was decided\n",
        _ => "nothing else was decided\n",
    };
    write_plain(message).map(|()| LeaveOutcome::Done)
}

fn question(count: usize, has_failed: bool) -> String {
    let decisions = count_text(count, "decision", "decisions");
    let more = if has_failed {
        " (y tries again, s saves them to a file)"
    } else {
        " (k goes back, ? lists the keys)"
    };
    format!("{decisions}: save? [Y/n]{more} ")
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

/// Saves the choices to a file, and says where.
pub fn save(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
) -> Result<LeaveOutcome, CliError> {
    let message =
        unwritten::save(&unwritten::candidate_folders(caller.config), &mut desk.lock(), session);
    write_plain(&message)?;
    Ok(LeaveOutcome::Done)
}
