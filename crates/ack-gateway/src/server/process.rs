//! An upstream server as a process: one JSON message per line over its standard input and output.
//! It has its own process group, which ends with this process ([`Guard`] ensures that even if
//! this process is killed).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use rmcp::service::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::bounded::{Gate, Limited};
use ack_api::text;

const STDERR_TAIL_BYTES: usize = 2_048;
/// How long a process may take to exit after its input is closed, and again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_millis(400);
/// The first pause is for a process that exits on its own because its input has ended too.
const SCRIPT: &str =
    r#"read -r _; sleep 1; kill -s TERM -- "-$1" && sleep 1 && kill -s KILL -- "-$1""#;

pub type Pipe = AsyncRwTransport<RoleClient, Limited<ChildStdout>, ChildStdin>;

pub struct Process {
    child: Child,
    group: Option<Pid>,
    guard: Option<Guard>,
    errors: Arc<Mutex<VecDeque<u8>>>,
    drain: JoinHandle<()>,
}

pub fn start(
    program: &Path,
    arguments: &[String],
    environment: &[(String, OsString)],
    gate: &Arc<Gate>,
) -> Result<(Process, Pipe), String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|error| {
        let program = text::line(&program.display().to_string(), 120);
        format!("`{program}` cannot be started: {error}")
    })?;
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("its pipes could not be opened".to_owned());
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let tail = Arc::default();
    let process = Process {
        child,
        group,
        guard: group.and_then(Guard::watch),
        drain: tokio::spawn(drain(errors, Arc::clone(&tail))),
        errors: tail,
    };
    let output = Limited { output, gate: Arc::clone(gate) };
    Ok((process, Pipe::new(output, input)))
}

/// Reads standard error to its end, so that the process never blocks on it. Keeps the tail.
async fn drain(mut errors: ChildStderr, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0_u8; 4_096];
    while let Ok(read @ 1..) = errors.read(&mut buffer).await {
        let mut tail = tail.lock();
        tail.extend(buffer.iter().take(read));
        let excess = tail.len().saturating_sub(STDERR_TAIL_BYTES);
        tail.drain(..excess);
    }
}

impl Process {
    /// Ends the process and its group: closes its input (the transport was dropped), then sends
    /// SIGTERM, then SIGKILL. Returns how it ended.
    pub async fn end(mut self) -> String {
        let mut status = self.exited().await;
        if status.is_none() {
            self.signal(Signal::SIGTERM);
            status = self.exited().await;
        }
        self.signal(Signal::SIGKILL);
        if status.is_none() {
            self.exited().await;
        }
        // The process id may be reused from now on.
        self.group = None;
        drop(self.guard.take());
        // A process that left the group may keep standard error open.
        let _ = timeout(EXIT_TIMEOUT / 4, &mut self.drain).await;
        self.exit_reason(status)
    }

    async fn exited(&mut self) -> Option<ExitStatus> {
        timeout(EXIT_TIMEOUT, self.child.wait()).await.ok()?.ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be empty.
            let _ = killpg(group, signal);
        }
    }

    fn exit_reason(&self, status: Option<ExitStatus>) -> String {
        let ended = match status {
            Some(status) if status.success() => "it ended".to_owned(),
            Some(status) => format!("it ended with {status}"),
            None => "it closed its output".to_owned(),
        };
        let mut tail = self.errors.lock();
        let tail = String::from_utf8_lossy(tail.make_contiguous());
        let mut lines = tail.lines().rev().map(str::trim);
        let last = lines.find(|line| !line.is_empty()).unwrap_or_default();
        match text::line(last, 200) {
            last if last.is_empty() => ended,
            last => format!("{ended}; it said: {last}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Ends a process group if this process is killed, which it cannot catch. A shell waits for its own
/// standard input to end, and only this process holds the other end: the system closes it when this
/// process dies for any reason. Linux can signal a process when its parent dies, but the signal does
/// not reach its children, is tied to one thread of the parent, and needs unsafe code. When dropped,
/// it ends without doing anything.
struct Guard(Child);

impl Guard {
    fn watch(group: Pid) -> Option<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "ack-memory-guard", &group.to_string()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // Signals to this process's group, for example from a terminal, must not reach the
            // shell.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command.spawn().ok().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Kill it before its input closes, which would look like the death of this process. The
        // runtime reaps it.
        let _ = self.0.start_kill();
    }
}
