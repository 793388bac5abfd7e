//! Reports an error.

use std::io::Write;

use ack_api::Diagnostic;

use super::error::CliError;
use super::screen::Screen;
use super::{command, render};

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
