//! Ends an upstream process if this process is killed, which a process cannot catch.
//!
//! A shell runs next to each upstream process and waits for its own standard input to end. Only
//! this process holds the other end, so the system closes it when this process dies for any reason.
//! The shell then ends the process group. Linux can signal a process when its parent dies, but the
//! signal does not reach its children, is tied to one thread of the parent, and needs unsafe code.

use std::process::Stdio;

use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// The first pause is for a process that exits on its own because its input has ended too.
const SCRIPT: &str =
    r#"read -r _; sleep 1; kill -s TERM -- "-$1" && sleep 1 && kill -s KILL -- "-$1""#;

/// The shell that watches over a process group. When dropped, it ends without doing anything.
pub struct Guard(Child);

impl Guard {
    pub fn watch(group: Pid) -> Option<Self> {
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
