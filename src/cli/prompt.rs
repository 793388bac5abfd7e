//! Questions at a terminal, answered with a letter or its word, and Enter; Enter alone is the answer
//! in capitals. A question goes to standard error, so it is visible while the output goes elsewhere.
//! What was typed before it appeared is dropped, and what is typed behind an answer does not reach
//! the shell.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::termios::{FlushArg, tcflush};

use super::output::write_err;
use super::render::{PLAIN, block};
use super::screen::Screen;

static IS_ASKING: AtomicBool = AtomicBool::new(false);
/// Whether this process reads what is typed at the terminal.
static READS: AtomicBool = AtomicBool::new(false);

/// Ends the line of a question that is left with Ctrl+C.
pub fn end_line() {
    if IS_ASKING.load(Ordering::Relaxed) {
        write_err("\n");
    }
}

pub fn begin_reading() {
    READS.store(true, Ordering::Relaxed);
}

/// Drops what was typed for this process and not read, so that the shell does not get it.
pub fn leave_nothing() {
    if READS.load(Ordering::Relaxed) {
        let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    }
}

pub fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for one of several answers, each with its letter and its word. Enter alone selects the first
/// one. `None` at the end of the input.
pub fn choose(question: &str, answers: &[(char, &str)]) -> Option<char> {
    let default = answers.first().map(|(letter, _)| *letter)?;
    ask(question, answers, default)
}

/// Asks for yes or no; Enter alone is no.
pub fn confirm(question: &str) -> bool {
    ask(question, &[('y', "yes"), ('n', "no")], 'n') == Some('y')
}

fn ask(question: &str, answers: &[(char, &str)], default: char) -> Option<char> {
    begin_reading();
    leave_nothing();
    IS_ASKING.store(true, Ordering::Relaxed);
    let answer = read_answer(question, answers, default);
    IS_ASKING.store(false, Ordering::Relaxed);
    leave_nothing();
    answer
}

fn read_answer(question: &str, answers: &[(char, &str)], default: char) -> Option<char> {
    let prompt = format!("{question} [{}] ", letters(answers, default));
    write_err(&prompt);
    loop {
        let mut typed = String::new();
        // What is not UTF-8 is no answer.
        match std::io::stdin().read_line(&mut typed) {
            Ok(0) => {
                write_err("\n");
                return None;
            }
            Ok(_) if typed.trim().is_empty() => return Some(default),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => typed.clear(),
            Err(_) => return None,
        }
        let typed = typed.trim();
        let letter = answer(answers, typed).or_else(|| answer(answers, &typed.to_lowercase()));
        if letter.is_some() {
            return letter;
        }
        write_err(&(wrapped("    ", &allowed(answers, default)) + &prompt));
    }
}

/// The answer with this letter, or with this among its words.
fn answer(answers: &[(char, &str)], typed: &str) -> Option<char> {
    let is_meant = |(letter, words): &&(char, &str)| {
        typed.chars().eq([*letter]) || typed == *words || words.split(' ').any(|word| word == typed)
    };
    answers.iter().find(is_meant).map(|(letter, _)| *letter)
}

/// `R/t/s`: the default in upper case, unless upper case has a meaning of its own.
fn letters(answers: &[(char, &str)], default: char) -> String {
    let has_capitals = answers.iter().any(|(letter, _)| letter.is_uppercase());
    let shown = answers.iter().map(|(letter, _)| match *letter {
        letter if letter == default && !has_capitals => letter.to_ascii_uppercase().to_string(),
        letter => letter.to_string(),
    });
    shown.collect::<Vec<_>>().join("/")
}

/// The answers with their words, for a user who typed something else.
fn allowed(answers: &[(char, &str)], default: char) -> String {
    let shown = answers.iter().map(|(letter, words)| {
        let or_enter = if *letter == default { " or Enter" } else { "" };
        format!("{letter}{or_enter}: {words}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Indented text for people, wrapped if standard error is a terminal.
pub fn wrapped(indent: &str, text: &str) -> String {
    block(&Screen::of_errors(), text, (indent, indent), PLAIN)
}
