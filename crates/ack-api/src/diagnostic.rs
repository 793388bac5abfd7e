//! Turns an error into the body of an answer: a stable code, a message, and a hint.

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use crate::text;
use crate::{ErrorBody, ErrorCode};

/// The longest message and hint, in characters.
const TEXT_CAP: usize = 600;
/// The longest path, name or example, in characters.
const FIELD_CAP: usize = 400;

/// An error for a person or an agent.
pub trait Diagnostic: Error {
    /// The stable code.
    fn code(&self) -> ErrorCode;

    /// What to do next, if known.
    fn hint(&self) -> Option<Cow<'static, str>>;

    /// The file or folder the error is about.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Adds what only this kind of error has: the argument, the allowed values, an example.
    fn details(&self, _body: &mut ErrorBody) {}

    /// The body for a tool's error result and for `--json`. Everything in it is safe to print.
    fn body(&self) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().as_str().to_owned(),
            message: chain(self),
            hint: self.hint().map(Cow::into_owned),
            path: self
                .path()
                .map(|path| text::line(&path.display().to_string(), FIELD_CAP)),
            argument: None,
            value: None,
            allowed: Vec::new(),
            nearest: Vec::new(),
            example: None,
        };
        self.details(&mut body);
        // These may quote names, paths and output of other programs.
        for field in [&mut body.hint, &mut body.example].into_iter().flatten() {
            *field = text::line(field, TEXT_CAP);
        }
        for entry in body.allowed.iter_mut().chain(&mut body.nearest) {
            *entry = text::line(entry, FIELD_CAP);
        }
        body
    }
}

/// The message with its causes, on one line and safe to print.
fn chain<E: Error + ?Sized>(error: &E) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !message.contains(&words) {
            message.push_str(": ");
            message.push_str(&words);
        }
        source = cause.source();
    }
    text::line(&message, TEXT_CAP)
}
