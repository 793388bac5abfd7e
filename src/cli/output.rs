//! Writes to the terminal: text that is safe to print, and JSON.

use std::io::Write;

use ack_api::text;
use serde::Serialize;
use serde_json::Value;

use super::error::CliError;

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

/// Writes an answer as JSON, safe to print.
pub(super) fn write_json<A: Serialize>(answer: &A) -> Result<(), CliError> {
    let mut safe = serde_json::to_value(answer).unwrap_or_default();
    text::clean_json(&mut safe);
    write_out(&(serde_json::to_string_pretty(&safe).unwrap_or_default() + "\n"))
}
