//! Renders answers for people. Line width and colour depend on the terminal; without one, there is
//! no colour.

mod age;
mod context;
#[cfg(test)]
mod every_field;
mod get;
mod layout;
mod query;
mod scopes;

pub use ack_api::number::{count, grouped, verb};
pub use age::day;
pub use context::context;
pub use get::{get, history};
pub use layout::{QueryWords, block, breakable, lines, paint, table, unbroken};
pub use query::{Listing, query};
pub use scopes::scopes;

use anstyle::{AnsiColor, Style};

use super::screen::Screen;
use ack_api::memory::Status;
use ack_api::{ErrorBody, Note};

pub const PLAIN: Style = Style::new();
pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const NAME: Style = AnsiColor::Cyan.on_default();
pub const WARN: Style = AnsiColor::Yellow.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const GOOD: Style = AnsiColor::Green.on_default();

fn unreviewed(status: Status) -> &'static str {
    match status {
        Status::Approved | Status::Promoted => "",
        Status::Staging => " (unreviewed)",
        Status::Rejected => " (rejected)",
    }
}

pub fn notes(notes: &[Note], screen: &Screen) -> String {
    let mut out = String::new();
    for (message, scopes) in Note::by_message(notes) {
        let about = if scopes.is_empty() { String::new() } else { scopes.join(", ") + ": " };
        out += &block(screen, &format!("note: {about}{message}"), ("", "  "), WARN);
    }
    out
}

/// The first few of a list, and how many more there are: `a, b and 3 more`.
pub fn first_of(all: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    match all.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

pub fn labelled(indent: &str, label: &str, text: &str, style: Style, screen: &Screen) -> String {
    let (text, rest) = (format!("{label} {text}"), format!("{indent}  "));
    block(screen, &text, (indent, &rest), PLAIN).replacen(label, &paint(style, label), 1)
}

pub fn error(body: &ErrorBody, screen: &Screen) -> String {
    let message = &body.message;
    let line = |label: &str, text: &str, style| labelled("", label, text, style, screen);
    let mut out = line("error:", message, BAD);
    // Errors in settings files already contain the nearest value in the message, and a wrong number
    // is not a typo.
    let is_number = body.value.as_ref().is_some_and(|value| value.parse::<i64>().is_ok());
    if !body.nearest.is_empty() && !is_number && !message.contains("did you mean") {
        let nearest = format!("did you mean {}?", body.nearest.join(", "));
        out += &line("nearest:", &nearest, NAME);
    }
    // Example arguments are JSON, for an agent.
    let example = body.example.iter().filter(|example| !example.starts_with('{'));
    out.extend(example.map(|example| line("example:", example, NAME)));
    out.extend(body.hint.iter().map(|hint| line("hint:", hint, NAME)));
    out
}
