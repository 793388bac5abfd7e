//! What takes longer than a moment says so at a terminal, on standard error, and leaves no trace.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::Global;

/// How long work may take before anything is said.
const PATIENCE: Duration = Duration::from_millis(500);
/// Nothing is said: only the answer is wanted, or the log says what is done.
static IS_SILENT: AtomicBool = AtomicBool::new(false);

/// Takes from the flags whether anything is said.
pub fn settle(global: &Global) {
    IS_SILENT.store(global.quiet || global.verbose, Ordering::Relaxed);
}

/// Does work over stores. The first search of a large one reads all of it.
pub fn while_reading<T>(work: impl FnOnce() -> T) -> T {
    saying("reading memories", work)
}

/// Does work, and says what it is if it takes longer than a moment. No question may stand in it.
pub fn saying<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    if IS_SILENT.load(Ordering::Relaxed) || !std::io::stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = channel::<()>();
    let said = std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let bar = ProgressBar::new_spinner().with_message(what);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            let _ = waiting.recv();
            bar.finish_and_clear();
        }
    });
    let result = work();
    drop(done);
    let _ = said.join();
    result
}
