//! Shows a message at a terminal while slow work runs, on standard error, and leaves no trace.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::Global;

const MESSAGE_DELAY: Duration = Duration::from_millis(500);
/// Whether to show nothing, because of `--quiet` or `--verbose`.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

pub fn set_silence(global: &Global) {
    IS_SILENT.store(global.quiet || global.verbose, Ordering::Relaxed);
}

/// Shows nothing from now on: nothing moves in what is read line by line.
pub fn silence() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// A progress bar, which nobody sees where progress messages are silenced.
pub fn bar(template: &str) -> ProgressBar {
    if IS_SILENT.load(Ordering::Relaxed) {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Runs work that reads stores. The first search of a large store reads all of it.
pub fn while_reading<T>(work: impl FnOnce() -> T) -> T {
    with_message("reading memories", work)
}

/// Runs work, and shows a message if it takes more than a moment. The work must not ask a question.
pub fn with_message<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    if IS_SILENT.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
        return work();
    }
    let (done_sender, waiting) = channel::<()>();
    let reporter = std::thread::spawn(move || {
        if waiting.recv_timeout(MESSAGE_DELAY) == Err(RecvTimeoutError::Timeout) {
            let bar = bar("{spinner} {msg} ({elapsed})").with_message(what);
            let _ = waiting.recv();
            bar.finish_and_clear();
        }
    });
    let result = work();
    drop(done_sender);
    let _ = reporter.join();
    result
}
