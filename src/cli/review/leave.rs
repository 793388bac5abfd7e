//! The end of a sitting: asks once, and writes. What cannot be written is never lost: the person
//! tries again, or saves it to a file.

use ack_api::text;
use parking_lot::Mutex;

use super::terminal::{Typed, problem};
use super::unwritten;
use crate::cli::curate::{Caller, report};
use crate::cli::error::CliError;
use crate::cli::{write_err, write_plain};
use crate::curate::Sitting;
use crate::desk::Desk;
use crate::desk::choice::counted;

/// Where the person can go from the last question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// Nowhere: the page is closed.
    None,
    /// To the cards, of which this many have no decision.
    Cards(usize),
}

/// A way back to the cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The last card that was shown.
    Card,
    /// The first card without a decision.
    Undecided,
    /// The card of the decision that was taken back.
    TakenBack(usize),
}

/// How the last question was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The sitting is over.
    Done,
    /// The person goes back to the cards.
    Back(Way),
}

/// Asks once, then writes.
pub fn finish(
    caller: Caller<'_>,
    desk: &Mutex<Desk>,
    sitting: &Sitting,
    ways: Ways,
    ask: impl Fn(&str) -> Typed,
) -> Result<Left, CliError> {
    let mut has_failed = false;
    loop {
        let count = desk.lock().unwritten();
        if count == 0 {
            return write_plain("nothing was decided\n").map(|()| Left::Done);
        }
        let line = match ask(&question(count, ways, has_failed)) {
            Typed::Line(line) => line,
            Typed::Interrupt | Typed::End => return save(caller, desk, sitting),
        };
        let back = ways != Ways::None;
        match line.as_str() {
            "y" | "yes" => match write(caller, desk, sitting)? {
                true => return Ok(Left::Done),
                false => has_failed = true,
            },
            "n" | "no" => return write_plain("nothing was decided\n").map(|()| Left::Done),
            "s" => return save(caller, desk, sitting),
            "k" if back => return Ok(Left::Back(Way::Card)),
            "j" if back && ways != Ways::Cards(0) => return Ok(Left::Back(Way::Undecided)),
            "z" if back => {
                if let Some(number) = desk.lock().take_back(None).first() {
                    return Ok(Left::Back(Way::TakenBack(*number)));
                }
            }
            line => write_err(&help(line, ways)),
        }
    }
}

fn question(count: usize, ways: Ways, has_failed: bool) -> String {
    let decisions = counted(count, "decision", "decisions");
    let more = match ways {
        _ if has_failed => " (y tries again, s saves them to a file)",
        Ways::Cards(_) => " (k goes back, ? lists the keys)",
        Ways::None => "",
    };
    format!("{decisions}: write? [y/n]{more} ")
}

fn help(line: &str, ways: Ways) -> String {
    let mut told = String::new();
    if !matches!(line, "" | "?" | "j") {
        told = format!("`{}` is not an answer\n", text::line(line, 40));
    }
    told.push_str("y         write them\nn         drop them\n");
    told.push_str("s         save them to a file, for `ack-memory review --apply`\n");
    if let Ways::Cards(undecided) = ways {
        told.push_str("k         go back to the last card\nz         undo the last choice\n");
        let cards = match undecided {
            0 => return told + "every card has a decision\n",
            1 => "the card without a decision".to_owned(),
            many => format!("the first of the {many} cards without a decision"),
        };
        told.push_str(&format!("j         go to {cards}\n"));
    }
    told
}

/// Writes the choices. Returns whether all of them are settled.
fn write(caller: Caller<'_>, desk: &Mutex<Desk>, sitting: &Sitting) -> Result<bool, CliError> {
    let mut desk = desk.lock();
    match desk.write(sitting) {
        Ok(outcome) => report(caller, &outcome, false)?,
        Err(error) => write_err(&format!("error: {}", problem(&CliError::from(error)))),
    }
    Ok(desk.unwritten() == 0)
}

/// Saves the choices to a file, and says where.
fn save(caller: Caller<'_>, desk: &Mutex<Desk>, sitting: &Sitting) -> Result<Left, CliError> {
    let told = unwritten::save(&unwritten::places(caller.config), &mut desk.lock(), sitting);
    write_plain(&told)?;
    Ok(Left::Done)
}
