//! Turns an error into the body of an answer: a stable code, a message, and a hint.

use std::error::Error;
use std::path::Path;

use crate::hint::{self, Hint, OwnNames, Reader};
use crate::text;
use crate::{ErrorBody, ErrorCode, Message};

pub const MAX_MESSAGE_CHARS: usize = 600;
const FIELD_CAP: usize = 400;

pub trait Diagnostic: Error {
    fn code(&self) -> ErrorCode;

    fn hints(&self) -> Vec<Hint>;

    /// What is wrong, with its causes, on one line and safe to print.
    fn message(&self, _reader: &dyn Reader) -> String {
        chain(self)
    }

    fn hint_for(&self, reader: &dyn Reader) -> Option<String> {
        hint::render(&self.hints(), reader)
    }

    /// What to do next, for an agent that has the four tools.
    fn hint(&self) -> Option<String> {
        self.hint_for(&OwnNames::Agent)
    }

    fn path(&self) -> Option<&Path> {
        None
    }

    /// Adds what only this kind of error has: the argument, the allowed values, an example.
    fn details(&self, _body: &mut ErrorBody) {}

    fn as_message(&self) -> Message {
        Message::new(chain(self)).with_all(self.hints())
    }

    fn body(&self) -> ErrorBody {
        self.body_for(&OwnNames::Agent)
    }

    /// The body for a tool's error result and for `--json`. Everything in it is safe to print.
    fn body_for(&self, reader: &dyn Reader) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().as_str().to_owned(),
            message: self.message(reader),
            hint: self.hint_for(reader),
            path: self.path().map(|path| text::line(&path.display().to_string(), FIELD_CAP)),
            ..ErrorBody::default()
        };
        self.details(&mut body);
        // These may quote names, paths and output of other programs.
        if let Some(example) = &mut body.example {
            *example = text::line(example, MAX_MESSAGE_CHARS);
        }
        for entry in body.allowed.iter_mut().chain(&mut body.nearest) {
            *entry = text::line(entry, FIELD_CAP);
        }
        body
    }
}

/// The message with its causes, on one line and safe to print.
pub fn chain<E: Error + ?Sized>(error: &E) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        match sqlite_code(&words) {
            // The error around it has SQLite's own words for the plain codes, which are below 256.
            Some(code) if code < 256 => {}
            Some(code) => message.push_str(&format!(" (SQLite's code {code})")),
            None if message.to_lowercase().contains(&words.to_lowercase()) => {}
            None => {
                message.push_str(": ");
                message.push_str(&words);
            }
        }
        source = cause.source();
    }
    text::line(&message, MAX_MESSAGE_CHARS)
}

/// The result code of SQLite in a cause of the form `Error code 11: …`.
fn sqlite_code(words: &str) -> Option<u32> {
    let (code, _) = words.strip_prefix("Error code ")?.split_once(": ")?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Chained(&'static str, #[source] Option<Box<Self>>);

    #[track_caller]
    fn check(causes: &[&'static str], message: &str) {
        let none: Option<Box<Chained>> = None;
        let error =
            causes.iter().rev().fold(none, |cause, words| Some(Box::new(Chained(words, cause))));
        assert_eq!(chain(&*error.unwrap()), message);
    }

    #[test]
    fn a_cause_that_repeats_what_was_said_is_left_out() {
        check(&["cannot read it", "it is gone"], "cannot read it: it is gone");
        check(&["cannot read it: gone", "Gone"], "cannot read it: gone");
        check(
            &[
                "it is damaged: malformed database schema (x)",
                "malformed database schema (x)",
                "Error code 11: database disk image is malformed",
            ],
            "it is damaged: malformed database schema (x)",
        );
        check(
            &["cannot read it: disk I/O error", "Error code 522: disk I/O error"],
            "cannot read it: disk I/O error (SQLite's code 522)",
        );
    }
}
