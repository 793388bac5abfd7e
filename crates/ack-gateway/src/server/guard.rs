//! Ends an upstream process where we cannot do it any more: we were killed, which nobody can catch.
//!
//! Beside each upstream process runs a shell that waits for its own standard input to end. We alone hold the other end, so
//! the system closes it when we die, however that happens. The shell then gives the process the same time as
//! [`super::process`] does, and ends its group. A signal tied to our death (Linux has one) would reach the process alone and
//! not what it started, belongs to one thread of ours, and can only be asked for in unsafe code.

use std::process::Stdio;

use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// What the shell does: the process's input has ended as well, so it may be ending by itself.
const SCRIPT: &str =
    r#"read -r _; sleep 1; kill -s TERM -- "-$1" && sleep 1 && kill -s KILL -- "-$1""#;

/// The shell that watches over a process group. Where it is dropped, it ends without doing anything.
pub struct Guard {
    shell: Child,
}

impl Guard {
    /// Watches over a process group; `None` where there is no shell, and the group has to notice for itself that its input ended.
    pub fn over(group: Pid) -> Option<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "ack-memory-guard", &group.to_string()])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            // Whatever is sent to our own group, to a terminal's for example, must not reach it.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command.spawn().ok().map(|shell| Self { shell })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Before its input is closed, which it would take for our death. The runtime waits for it.
        let _ = self.shell.start_kill();
    }
}
