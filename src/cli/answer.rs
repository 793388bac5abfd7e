//! Prints answers: the tools' JSON, or text for people.

use ack_api::{ContextResponse, NoteKind, text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::args::Global;
use super::error::CliError;
use super::output::{write_json, write_out};
use super::screen::Screen;
use ack_service::Error;

/// Prints an answer: the tools' JSON, or text for people.
pub(super) fn print<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
    render: impl FnOnce(&A, &Screen) -> String,
) -> Result<(), CliError> {
    if global.json {
        return write_json(answer);
    }
    let screen = Screen::of_output();
    write_out(&render(&make_printable(answer, global)?, &screen))
}

/// An answer with texts that are safe to print. With `--quiet`, most notes are left out.
pub(super) fn make_printable<A: Serialize + DeserializeOwned>(
    answer: &A,
    global: &Global,
) -> Result<A, CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    let notes = safe.get_mut("notes").and_then(serde_json::Value::as_array_mut);
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
    let Ok(mut value) = serde_json::to_value(&answer) else {
        return answer;
    };
    text::untag(&mut value);
    serde_json::from_value(value).unwrap_or(answer)
}
