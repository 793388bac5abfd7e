//! From an error to the body that travels: a stable code, a message, and what to do next.

use std::borrow::Cow;
use std::error::Error;
use std::path::Path;

use crate::text;
use crate::{ErrorBody, ErrorCode};

/// Longest message and hint, in characters.
const TEXT_CAP: usize = 600;
/// Longest path, name or example, in characters.
const FIELD_CAP: usize = 400;

/// An error that a person or an agent is shown.
pub trait Diagnostic: Error {
    /// The stable code.
    fn code(&self) -> ErrorCode;

    /// What to do next, where that is known.
    fn hint(&self) -> Option<Cow<'static, str>>;

    /// The file or folder the error is about.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Fills in what only this kind of error has: the argument, what is allowed, an example.
    fn details(&self, _body: &mut ErrorBody) {}

    /// The body that travels in a tool's error result and with `--json`. Everything in it is safe to print.
    fn body(&self) -> ErrorBody {
        let mut body = ErrorBody {
            code: self.code().as_str().to_owned(),
            message: chain(self),
            hint: self.hint().map(Cow::into_owned),
            path: self.path().map(|path| text::line(&path.display().to_string(), FIELD_CAP)),
            argument: None,
            value: None,
            allowed: Vec::new(),
            nearest: Vec::new(),
            example: None,
        };
        self.details(&mut body);
        // These hold names, paths and words of other programs as they came.
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
