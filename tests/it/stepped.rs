//! A process that stops at each system call, so that a test can look at every state that others can
//! see, and end it in one of them (Linux only: `ptrace`).

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc::PTRACE_EVENT_CLONE;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How long a process may take until it ends or gets where a test waits for it.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Stepped {
    process: Pid,
    threads: BTreeSet<Pid>,
    /// The thread that stays where it stopped.
    held: Option<Pid>,
    status: Option<WaitStatus>,
}

impl Stepped {
    /// Starts a command with all permissions allowed by its mask.
    pub fn start(command: &Command) -> Self {
        let mut shell = Command::new("sh");
        // The shell waits until it is traced.
        shell
            .args(["-c", "umask 0; read go; exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(command.get_current_dir().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        #[expect(
            clippy::zombie_processes,
            reason = "`waitpid` waits for it at each step"
        )]
        let mut child = shell.spawn().unwrap();
        let process = Pid::from_raw(child.id().cast_signed());
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_EXITKILL;
        ptrace::seize(process, options).expect("this test needs to trace its own child");
        ptrace::interrupt(process).unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        Self {
            process,
            threads: BTreeSet::from([process]),
            held: None,
            status: None,
        }
    }

    /// Lets it run until `reached` is true at a system call. The thread that makes the call stays
    /// there. False if the process ends before.
    pub fn run_until(&mut self, mut reached: impl FnMut() -> bool) -> bool {
        let started = Instant::now();
        while self.status.is_none() {
            assert!(
                started.elapsed() < TIMEOUT,
                "it neither ends nor gets there"
            );
            for thread in self.threads.clone() {
                if self.step(thread, &mut reached) {
                    self.held = Some(thread);
                    return true;
                }
            }
            std::thread::yield_now();
        }
        false
    }

    /// Lets a thread go on, if it has stopped. True if it has reached what is waited for.
    fn step(&mut self, thread: Pid, reached: &mut impl FnMut() -> bool) -> bool {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
        let signal = match waitpid(thread, Some(flags)) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(WaitStatus::PtraceSyscall(_)) if reached() => return true,
            Ok(WaitStatus::PtraceEvent(_, _, PTRACE_EVENT_CLONE)) => {
                let id = ptrace::getevent(thread).unwrap();
                self.threads
                    .insert(Pid::from_raw(i32::try_from(id).unwrap()));
                None
            }
            Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
            Ok(status @ (WaitStatus::Exited(..) | WaitStatus::Signaled(..))) => {
                self.threads.remove(&thread);
                if thread == self.process {
                    self.status = Some(status);
                }
                return false;
            }
            Err(_) => {
                self.threads.remove(&thread);
                return false;
            }
            Ok(_) => None,
        };
        if self.held != Some(thread) {
            // It may have been killed meanwhile.
            let _ = ptrace::syscall(thread, signal);
        }
        false
    }

    /// Sends a signal, and returns how the process ends.
    pub fn end(&mut self, signal: Signal) -> WaitStatus {
        kill(self.process, signal).unwrap();
        assert!(!self.run_until(|| false));
        self.status.unwrap()
    }

    /// How it ended by itself.
    pub fn status(&self) -> WaitStatus {
        self.status.unwrap()
    }
}

impl Drop for Stepped {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = kill(self.process, Signal::SIGKILL);
            let _ = waitpid(self.process, Some(WaitPidFlag::__WALL));
        }
    }
}
