//! The signals that end a server.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The three signals that end the server: from a service manager, the keyboard, or a closing
/// terminal.
#[derive(Debug)]
pub struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
    /// `None` if the signal was ignored when the process started, as with `nohup`.
    hang_up: Option<Signal>,
}

impl EndSignals {
    pub fn new() -> std::io::Result<Self> {
        let hang_up = SignalKind::hangup();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: if is_ignored(hang_up.as_raw_value()) { None } else { Some(signal(hang_up)?) },
        })
    }

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

/// Whether a signal was ignored when this process started. False if unknown.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    (1..=64).contains(&signal) && mask & (1 << (signal - 1)) != 0
}
