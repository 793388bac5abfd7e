//! Writes to the terminal: answers and errors, as JSON or as text that is safe to print.

use std::io::Write;

use ack_api::{ContextResponse, Diagnostic, NoteKind, text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::args::Global;
use super::error::CliError;
use super::screen::Screen;
use super::{command, render};
use ack_service::Error;

/// Writes to standard output. A closed pipe (`| head`) is not an error.
pub(super) fn write_out(text: &str) -> Result<(), CliError> {
    match anstream::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::io("write to", "standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Writes text without colours to standard error, safe to print. Ignores errors, because there is
/// nowhere to report them.
pub(super) fn write_err(text: &str) {
    let _ = anstream::stderr().lock().write_all(text::safe(text).as_bytes());
}

/// Writes text without colours to standard output, safe to print.
pub(super) fn write_plain(text: &str) -> Result<(), CliError> {
    write_out(&text::safe(text))
}

/// An answer as JSON, with further members.
pub(super) fn json_with<A: Serialize>(answer: &A, more: Value) -> Value {
    let mut value = serde_json::to_value(answer).unwrap_or_default();
    if let (Some(members), Value::Object(more)) = (value.as_object_mut(), more) {
        members.extend(more);
    }
    value
}

pub(super) fn write_json<A: Serialize>(answer: &A) -> Result<(), CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    text::clean_json(&mut safe);
    write_out(&(serde_json::to_string_pretty(&safe).unwrap_or_default() + "\n"))
}

pub(super) fn print<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
    render: impl FnOnce(&A, &Screen) -> String,
) -> Result<(), CliError> {
    if global.json {
        return write_json(answer);
    }
    write_out(&render(&make_printable(answer, global)?, &Screen::of_output()))
}

/// An answer with texts that are safe to print. With `--quiet`, most notes are left out.
pub(super) fn make_printable<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
) -> Result<A, CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    let notes = safe.get_mut("notes").and_then(Value::as_array_mut);
    if let Some(notes) = notes.filter(|_| global.quiet) {
        // Keep the notes that distinguish near matches from real ones.
        let nearest = [NoteKind::NoWordMatches, NoteKind::NothingCertain].map(|kind| json!(kind));
        notes.retain(|note| note.get("kind").is_some_and(|kind| nearest.contains(kind)));
    }
    text::clean_json(&mut safe);
    let safe = serde_json::from_value(safe).map_err(|error| Error::Internal {
        operation: "the answer".to_owned(),
        message: error.to_string(),
    })?;
    Ok(safe)
}

/// An answer without the tags that have a meaning for hosts, because it is inserted into
/// conversations unchanged.
pub(super) fn untagged(answer: ContextResponse) -> ContextResponse {
    let mut value = serde_json::to_value(&answer).unwrap_or_default();
    text::untag(&mut value);
    serde_json::from_value(value).unwrap_or(answer)
}

/// Writes an error to standard error, with a hint that names this program as it was started.
pub(super) fn report(error: &CliError, json: bool) {
    let body = error.body_for(&command::SHELL);
    let text = if json {
        serde_json::to_string_pretty(&body).unwrap_or_default() + "\n"
    } else {
        let screen = Screen::of_errors();
        render::error(&body, &screen) + &error.candidates(&screen)
    };
    // The text is styled already, and quoted words in it are safe.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}
