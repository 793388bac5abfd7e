//! Answers laid out for people: colour and line width come from the terminal, and colour is dropped where there is none.

mod context;
mod get;
mod query;
mod scopes;

pub use context::context;
pub use get::get;
pub use query::query;
pub use scopes::scopes;

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use super::words::{at_a_terminal, flag};
use ack_api::memory::Status;
use ack_api::{ErrorBody, Note};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const GOOD: Style = AnsiColor::Green.on_default();

fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

fn width() -> usize {
    textwrap::termwidth().clamp(60, 110)
}

fn wrapped(text: &str, indent: &str) -> String {
    let options = textwrap::Options::new(width())
        .initial_indent(indent)
        .subsequent_indent(indent)
        .break_words(false);
    text.lines()
        .map(|line| textwrap::fill(line, &options))
        .collect::<Vec<_>>()
        .join("\n")
}

fn status(status: Status) -> String {
    match status {
        Status::Approved => paint(GOOD, status),
        Status::Promoted => paint(GOOD, status),
        Status::Staging => paint(WARN, status),
        Status::Rejected => paint(BAD, status),
    }
}

/// Notes under any answer.
pub fn notes(notes: &[Note]) -> String {
    let mut out = String::new();
    for note in notes {
        let scope = note
            .scope
            .as_ref()
            .map_or_else(String::new, |scope| format!("{scope}: "));
        let message = at_a_terminal(&note.message);
        let _ = writeln!(
            out,
            "{}",
            paint(WARN, wrapped(&format!("note: {scope}{message}"), ""))
        );
    }
    out
}

/// An error.
pub fn error(body: &ErrorBody) -> String {
    // Of an error's message only the argument's name is ours; the rest may quote anybody.
    let named = body
        .argument
        .as_deref()
        .and_then(|argument| Some((format!("`{argument}`"), flag(argument)?)));
    let message = named.map_or_else(
        || body.message.clone(),
        |(named, flag)| body.message.replacen(&named, &format!("`{flag}`"), 1),
    );
    let mut out = format!("{} {message}\n", paint(BAD, "error:"));
    if !body.nearest.is_empty() {
        let _ = writeln!(
            out,
            "{} did you mean {}?",
            paint(NAME, "nearest:"),
            body.nearest.join(", ")
        );
    }
    if let Some(example) = body
        .example
        .as_ref()
        .filter(|example| example.starts_with("ack-memory"))
    {
        let _ = writeln!(out, "{} {example}", paint(NAME, "example:"));
    }
    if let Some(hint) = &body.hint {
        let _ = writeln!(out, "{} {}", paint(NAME, "hint:"), at_a_terminal(hint));
    }
    out
}
