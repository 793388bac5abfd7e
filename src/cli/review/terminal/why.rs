//! Asks why a memory is rejected.

use ack_api::text;

use super::{QueueWalk, Typed};
use crate::cli::output::write_err;
use ack_desk::choice::{REASONS, reason};

const QUESTION: &str = "why? 1-9 (? lists them), words, Enter for none, q back > ";

pub(super) enum WhyAnswer {
    /// The memory is rejected for this reason, or without one.
    Reason(Option<String>),
    /// It is not rejected.
    Back,
    Leave,
}

impl QueueWalk<'_> {
    /// Asks for a reason. A single letter is none: it is a key that was meant for the next card.
    pub(super) fn ask_reason(&self) -> WhyAnswer {
        loop {
            let Typed::Line(line) = self.input.ask(QUESTION) else {
                return WhyAnswer::Leave;
            };
            let mut letters = line.chars();
            let is_key = match (letters.next(), letters.next()) {
                (Some(letter), None) => !matches!(letter, '1'..='9'),
                _ => false,
            };
            match line.as_str() {
                "q" => return WhyAnswer::Back,
                "?" => write_err(&reasons()),
                key if is_key => write_err(&format!(
                    "`{}` is not a reason; nothing was decided yet\n",
                    text::line(key, 1)
                )),
                _ => return WhyAnswer::Reason(reason(&line)),
            }
        }
    }
}

/// The common reasons with their digits, in two columns.
pub(super) fn reasons() -> String {
    let numbered = (1..).zip(REASONS);
    let numbered: Vec<String> = numbered
        .map(|(digit, reason)| format!("{digit} {reason}"))
        .collect();
    let (left, right) = numbered.split_at(numbered.len().div_ceil(2));
    let right = right
        .iter()
        .map(String::as_str)
        .chain(std::iter::repeat(""));
    let lines = left.iter().zip(right);
    lines
        .map(|(left, right)| format!("  {left:<26}{right}").trim_end().to_owned() + "\n")
        .collect()
}
