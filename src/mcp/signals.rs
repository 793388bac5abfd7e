//! The signals that end a server.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The three by which somebody says that it is over: a service manager, a key, a terminal that goes.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// Not where it is ignored, as `nohup` has it.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// What the system said.
    pub fn new() -> std::io::Result<Self> {
        let hang_up = SignalKind::hangup();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: if is_ignored(hang_up.as_raw_value()) {
                None
            } else {
                Some(signal(hang_up)?)
            },
        })
    }

    /// Waits for the next one, and tells its number.
    pub async fn wait(&mut self) -> i32 {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = hang_up => SignalKind::hangup(),
        };
        kind.as_raw_value()
    }
}

/// Whether this process was started with a signal ignored. Where the system does not say, it is not.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    (1..=64).contains(&signal) && mask & (1 << (signal - 1)) != 0
}
