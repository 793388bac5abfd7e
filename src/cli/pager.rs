//! Shows long answers at a terminal through a pager, like git.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

use anstream::{AutoStream, ColorChoice};

use super::args::Global;
use super::error::CliError;
use super::output::write_out;
use super::screen::Screen;
use super::signals;
use ack_service::config::ENV_PAGER;

/// Writes an answer to standard output, through a pager if it is longer than the terminal.
pub fn show_paged(text: &str, screen: &Screen, global: &Global) -> Result<(), CliError> {
    let long = screen
        .height
        .is_some_and(|height| text.lines().count() >= height);
    match command().filter(|_| long && !global.no_pager) {
        Some(pager) if pipe_to_pager(text, &pager) => Ok(()),
        _ => write_out(text),
    }
}

/// The pager: the user's, or `less` if it is installed.
fn command() -> Option<String> {
    let configured = [ENV_PAGER, "PAGER"].into_iter().find_map(std::env::var_os);
    match configured {
        Some(pager) => {
            let pager = pager.into_string().ok()?;
            (!["", "cat"].contains(&pager.trim())).then_some(pager)
        }
        None => {
            let path = std::env::var_os("PATH")?;
            let has_less = std::env::split_paths(&path).any(|folder| folder.join("less").is_file());
            has_less.then(|| "less".to_owned())
        }
    }
}

/// Shows a text in the pager. Returns whether the pager ran.
#[expect(
    clippy::disallowed_methods,
    reason = "the pager is the user's own program, run at their terminal"
)]
fn pipe_to_pager(text: &str, pager: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Quit if the text fits on one screen, pass colours through, leave the text on the screen.
        command.env("LESS", "FRX");
    }
    let output = std::io::stdout();
    let plain = !output.is_terminal() || AutoStream::choice(&output) == ColorChoice::Never;
    // Ctrl-C belongs to the pager now.
    signals::ignore_interrupts(true);
    let Ok(mut child) = command.spawn() else {
        signals::ignore_interrupts(false);
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // A pager that the user quits early closes its input.
        let _ = if plain {
            write!(input, "{}", anstream::adapter::strip_str(text))
        } else {
            input.write_all(text.as_bytes())
        };
    }
    let status = child.wait();
    signals::ignore_interrupts(false);
    // 127 is the shell's exit code for a missing program.
    status.is_ok_and(|status| status.code() != Some(127))
}
