//! A real terminal (a pseudo-terminal, 80 columns) for commands that ask.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nix::pty::{Winsize, openpty};

/// How long a command may stay silent before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came from the terminal so far, and whether it was closed.
type Seen = Arc<(Mutex<(Vec<u8>, bool)>, Condvar)>;

/// A command at a terminal.
pub struct Terminal {
    child: Child,
    keys: File,
    seen: Seen,
    /// What [`Terminal::expect`] has gone past.
    past: usize,
}

impl Terminal {
    /// Starts a command with all three streams at the terminal.
    pub fn start(command: Command) -> Self {
        Self::with_output(command, None)
    }

    /// Starts a command whose output goes elsewhere: what it asks is still seen.
    pub fn with_output(mut command: Command, output: Option<File>) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let slave = File::from(pty.slave);
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let child = command
            .stdin(stream())
            .stderr(stream())
            .stdout(output.map_or_else(stream, Stdio::from))
            .spawn()
            .unwrap();
        drop((slave, command));
        let keys = File::from(pty.master);
        let mut screen = keys.try_clone().unwrap();
        let seen = Seen::default();
        let told = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                // Linux reports the end of a terminal as an error.
                let read = screen.read(&mut bytes).unwrap_or(0);
                let mut state = told.0.lock().unwrap();
                state.0.extend_from_slice(&bytes[..read]);
                state.1 = read == 0;
                told.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            seen,
            past: 0,
        }
    }

    /// Waits until a text stands on the screen, behind the one that was expected before.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Self {
        let seen = Arc::clone(&self.seen);
        let (state, changed) = &*seen;
        let mut state = state.lock().unwrap();
        loop {
            let shown = state.0[self.past..].to_vec();
            let found = shown
                .windows(text.len())
                .position(|part| part == text.as_bytes());
            if let Some(at) = found {
                self.past += at + text.len();
                return self;
            }
            let screen = String::from_utf8_lossy(&state.0).into_owned();
            assert!(!state.1, "the command ended without {text:?}:\n{screen}");
            let (next, late) = changed.wait_timeout(state, PATIENCE).unwrap();
            assert!(!late.timed_out(), "{text:?} never came:\n{screen}");
            state = next;
        }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits for the end: the exit code, and all that stood on the screen.
    pub fn end(mut self) -> (Option<i32>, String) {
        let (state, changed) = &*self.seen;
        let mut state = state.lock().unwrap();
        while !state.1 {
            let (next, late) = changed.wait_timeout(state, PATIENCE).unwrap();
            let screen = String::from_utf8_lossy(&next.0).into_owned();
            if late.timed_out() {
                let _ = self.child.kill();
                panic!("the command never ended:\n{screen}");
            }
            state = next;
        }
        let code = self.child.wait().unwrap().code();
        let screen = String::from_utf8_lossy(&state.0).replace("\r\n", "\n");
        (code, screen)
    }
}
