//! Signals that end a command early. Files that the command created temporarily are removed.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal, raise};
use parking_lot::Mutex;

use super::prompt;
use crate::mcp::signals::is_ignored;
use ack_store::copies;

/// Whether Ctrl-C is for a child process that this process waits for.
static INTERRUPTS_LEFT: AtomicBool = AtomicBool::new(false);

static ON_INTERRUPT: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Makes the next Ctrl-C call `act` instead of ending the process. The one after that ends it
/// again.
pub fn on_interrupt(act: impl Fn() + Send + 'static) {
    *ON_INTERRUPT.lock() = Some(Box::new(act));
}

static AT_EXIT: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Makes the signals that end the process call `act` first: a closed terminal, a request to end,
/// and Ctrl-\. Ctrl-C is for [`on_interrupt`].
pub fn at_exit(act: impl Fn() + Send + 'static) {
    *AT_EXIT.lock() = Some(Box::new(act));
}

#[cfg(feature = "table")]
pub fn end_by_interrupt() -> ! {
    exiting();
    end(Signal::SIGINT as i32)
}

fn exiting() {
    prompt::end_line();
    if let Some(act) = AT_EXIT.lock().as_ref() {
        act();
    }
}

/// Leaves Ctrl-C and Ctrl-\ to a child process, or takes them back.
pub fn ignore_interrupts(leave: bool) {
    INTERRUPTS_LEFT.store(leave, Ordering::Relaxed);
}

/// Starts a thread that waits for the signals that end this process, and ends it. Must be called
/// before any other thread starts, so that no other thread receives the signals.
pub fn watch() {
    let mut set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    for signal in [Signal::SIGHUP, Signal::SIGQUIT] {
        if !is_ignored(signal as i32) {
            set.add(signal);
        }
    }
    if set.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while let Ok(signal) = set.wait() {
            let is_for_child = INTERRUPTS_LEFT.load(Ordering::Relaxed);
            match signal {
                Signal::SIGINT | Signal::SIGQUIT if is_for_child => {}
                Signal::SIGINT if ON_INTERRUPT.lock().take().map(|act| act()).is_some() => {}
                signal => {
                    exiting();
                    copies::shut_down();
                    if signal == Signal::SIGQUIT {
                        // As Ctrl-\ does by default, so that the system can write a core dump.
                        let _ = set.thread_unblock().and_then(|()| raise(signal));
                    }
                    end(signal as i32);
                }
            }
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(wait).is_err() {
        // Without the thread, signals end the process as usual.
        let _ = set.thread_unblock();
    }
}

/// Ends the process with the status that a shell expects after a signal.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a signal ends the process wherever it stands"
)]
pub fn end(signal: i32) -> ! {
    copies::shut_down();
    std::process::exit(128 + signal)
}
