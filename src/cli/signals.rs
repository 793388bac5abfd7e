//! Signals that end a command before it is done: what it made outside its memory goes with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal};

use crate::mcp::signals::is_ignored;
use ack_store::copies;

/// Whether Ctrl-C is for a program that this one has started and waits for.
static INTERRUPTS_LEFT: AtomicBool = AtomicBool::new(false);

/// What Ctrl-C does instead of ending the process.
static INTERRUPTED: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Has the next Ctrl-C do something else than end the process; the one after it ends it again.
pub fn on_interrupt(act: impl Fn() + Send + 'static) {
    *INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
}

fn interrupted() -> bool {
    let mut act = INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner);
    act.take().map(|act| act()).is_some()
}

/// Leaves Ctrl-C to a program that was started, or no more.
pub fn leave_interrupts(leave: bool) {
    INTERRUPTS_LEFT.store(leave, Ordering::Relaxed);
}

/// From now on a thread waits for the signals that end this process, and ends it. To be called
/// before any other thread is started, so that none of them is interrupted instead.
pub fn watch() {
    let mut set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    if !is_ignored(Signal::SIGHUP as i32) {
        set.add(Signal::SIGHUP);
    }
    if set.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while let Ok(signal) = set.wait() {
            if signal == Signal::SIGINT
                && (INTERRUPTS_LEFT.load(Ordering::Relaxed) || interrupted())
            {
                continue;
            }
            end(signal as i32);
        }
    };
    if std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .is_err()
    {
        // Then they end the process as they always do.
        let _ = set.thread_unblock();
    }
}

/// Ends the process as a shell expects it after a signal.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a signal ends the process wherever it stands"
)]
pub fn end(signal: i32) -> ! {
    super::prompt::restore();
    copies::shut_down();
    std::process::exit(128 + signal)
}
