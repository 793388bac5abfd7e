//! The end of a review session: asks once, and writes. Decisions that cannot be written are not
//! lost: the person tries again, or saves it to a file.

use crate::cli::command::command;
use ack_api::text;
use parking_lot::Mutex;

use super::terminal::{Input, Typed, problem};
use super::unwritten;
use crate::cli::caller::Caller;
use crate::cli::curate::report;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_plain};
use ack_desk::Desk;
use ack_desk::choice::count_text;
use ack_desk::curate::ReviewSession;

/// Asks once, then writes. Returns whether the person is done, and does not go back to the cards.
pub fn finish(
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

pub fn leave_undecided(desk: &Mutex<Desk>) -> Result<(), CliError> {
    write_plain(match desk.lock().written() {
        0 => "nothing was decided\n",
        _ => "nothing else was decided\n",
    })
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

pub fn save(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    session: &ReviewSession,
) -> Result<(), CliError> {
    let folders = unwritten::candidate_folders(caller.config);
    write_plain(&unwritten::save(&folders, &mut desk.lock(), session))
}
