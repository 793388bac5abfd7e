//! What takes longer than a moment says so at a terminal, on standard error, and leaves no trace.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::Global;

/// How long work may take before anything is said.
const PATIENCE: Duration = Duration::from_millis(500);

/// Does work over stores. The first search of a large one reads all of it.
pub fn while_reading<T>(global: &Global, work: impl FnOnce() -> T) -> T {
    if global.quiet || global.verbose || !std::io::stderr().is_terminal() {
        return work();
    }
    let (done, waiting) = channel::<()>();
    let said = std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let bar = ProgressBar::new_spinner().with_message("reading memories");
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
