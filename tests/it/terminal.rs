//! A real terminal (a pseudo-terminal): what people see, and the keys they press.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use tempfile::TempDir;

use crate::cli::{Outcome, binary};

/// How long a command may stay silent before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a screen may stay without what a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of a terminal. Ours stays open between commands, so that it keeps its name.
struct Pty {
    master: File,
    slave: OwnedFd,
    columns: u16,
    rows: u16,
}

impl Pty {
    fn open(columns: u16, rows: u16) -> Rc<Self> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        Rc::new(Self { master: pair.master.into(), slave: pair.slave, columns, rows })
    }

    fn stream(&self) -> Stdio {
        Stdio::from(self.slave.try_clone().unwrap())
    }
}

/// A terminal: commands that run at it, one after the other, share its name and a home folder.
pub struct Terminal {
    pty: Rc<Pty>,
    /// The home folder of its commands.
    pub home: TempDir,
}

impl Terminal {
    /// A terminal of 80 columns.
    pub fn new() -> Self {
        Self::sized(80, 24)
    }

    /// A terminal of a given size.
    pub fn sized(columns: u16, rows: u16) -> Self {
        Self { pty: Pty::open(columns, rows), home: TempDir::new().unwrap() }
    }

    /// The binary over a root, in this terminal's home.
    pub fn command(&self, root: &Path, arguments: &[&str]) -> Command {
        let mut command = binary();
        command
            .env("HOME", self.home.path())
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("TERM", "xterm-256color")
            .env("TZ", "UTC")
            // A flag would appear in every command that is printed.
            .env("ACK_MEM_PATH", root)
            .args(arguments);
        command
    }

    /// Runs a command with everything at this terminal; `typed` is the input. All output is in `out`.
    pub fn run(&mut self, command: &mut Command, typed: &str) -> Outcome {
        let mut session = Session::at(&self.pty, command, None);
        session.press(typed);
        let (code, out) = session.end();
        Outcome { code, out, err: String::new() }
    }

    /// Runs a command over a root, without a pager.
    pub fn ack(&mut self, root: &Path, arguments: &[&str]) -> Outcome {
        let mut command = self.command(root, arguments);
        command.env("ACK_MEM_PAGER", "cat");
        self.run(&mut command, "")
    }

    /// What it shows, without colours.
    pub fn plain(&mut self, root: &Path, arguments: &[&str]) -> String {
        let mut command = self.command(root, arguments);
        command.env("ACK_MEM_PAGER", "cat").env("NO_COLOR", "1");
        without_progress(&self.run(&mut command, "").out)
    }
}

/// An output without what was taken away again: what is read, if that takes a while.
pub fn without_progress(out: &str) -> String {
    let lines = out.split_inclusive('\n');
    let lines = lines.filter_map(|line| line.rsplit("\x1b[2K").next());
    lines.collect()
}

/// A command that runs at a terminal.
pub struct Session {
    pty: Rc<Pty>,
    child: Child,
    /// What came so far.
    seen: Vec<u8>,
    /// What [`Session::expect`] has gone past.
    past: usize,
    /// A terminal that does what came so far.
    shown: vt100::Parser,
    /// How much had come when the terminal got its size.
    at_size: usize,
}

/// What ends a frame of the full screen.
const END_OF_FRAME: &[u8] = b"\x1b[?2026l";

impl Session {
    /// Starts a command with all three streams at a terminal of its own.
    pub fn start(mut command: Command) -> Self {
        Self::at(&Pty::open(80, 24), &mut command, None)
    }

    /// The same at a terminal of a given size.
    pub fn sized(columns: u16, rows: u16, mut command: Command) -> Self {
        Self::at(&Pty::open(columns, rows), &mut command, None)
    }

    /// The last lines that came so far, as many as a terminal shows.
    pub fn last_lines(&self, rows: usize) -> String {
        let screen = self.screen();
        let lines: Vec<&str> = screen.lines().collect();
        lines[lines.len().saturating_sub(rows)..].join("\n")
    }

    /// Starts a command whose output goes elsewhere: what it asks is still seen.
    pub fn with_output(mut command: Command, output: File) -> Self {
        Self::at(&Pty::open(80, 24), &mut command, Some(output))
    }

    fn at(pty: &Rc<Pty>, command: &mut Command, output: Option<File>) -> Self {
        let child = command
            .stdin(pty.stream())
            .stderr(pty.stream())
            .stdout(output.map_or_else(|| pty.stream(), Stdio::from))
            .spawn()
            .unwrap();
        Self {
            pty: Rc::clone(pty),
            child,
            seen: Vec::new(),
            past: 0,
            shown: vt100::Parser::new(pty.rows, pty.columns, 0),
            at_size: 0,
        }
    }

    /// The rows of the screen.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.shown.screen();
        screen.rows(0, screen.size().1).collect()
    }

    /// The screen of a terminal that does what came so far.
    pub fn emulated(&self) -> &vt100::Screen {
        self.shown.screen()
    }

    /// Waits until the whole screen, drawn to its end, has a text.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> &mut Self {
        self.wait_for(&format!("{text:?}"), |session| {
            session.seen.ends_with(END_OF_FRAME) && session.rows().join("\n").contains(text)
        })
    }

    /// Waits until the screen has a text no more.
    #[track_caller]
    pub fn shows_no(&mut self, text: &str) -> &mut Self {
        self.wait_for(&format!("no {text:?}"), |session| {
            session.seen.ends_with(END_OF_FRAME) && !session.rows().join("\n").contains(text)
        })
    }

    /// Presses keys, and waits until the screen differs.
    #[track_caller]
    pub fn press_on(&mut self, keys: &str) -> &mut Self {
        let before = self.rows();
        self.press(keys).wait_for("another screen", |session| {
            session.seen.ends_with(END_OF_FRAME) && session.rows() != before
        })
    }

    #[track_caller]
    fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) -> &mut Self {
        let mut since = Instant::now();
        loop {
            if self.read() {
                since = Instant::now();
                continue;
            }
            if self.seen.len() > self.at_size && is_there(self) {
                return self;
            }
            let ended = self.child.try_wait().unwrap().is_some();
            let screen = self.rows().join("\n");
            assert!(!ended, "the command ended without {what}:\n{screen}");
            if since.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("{what} never came:\n{screen}");
            }
        }
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        while self.read() {}
        self.at_size = self.seen.len();
        let size = [columns, rows].map(|side| side.to_string());
        let resized = Command::new("stty")
            .args(["cols", &size[0], "rows", &size[1]])
            .stdin(self.pty.stream())
            .status()
            .unwrap();
        assert!(resized.success());
        self.shown.screen_mut().set_size(rows, columns);
        self
    }

    /// Whether the terminal shows what is typed and waits for whole lines, as a shell needs it.
    pub fn is_given_back(&self) -> bool {
        let modes = nix::sys::termios::tcgetattr(&self.pty.slave).unwrap();
        let lines = LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
        let screen = self.shown.screen();
        modes.local_flags.contains(lines) && !screen.alternate_screen() && !screen.hide_cursor()
    }

    /// Waits until the command has stopped, as Ctrl+Z stops it.
    pub fn wait_for_stop(&mut self) -> &mut Self {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
        while self.read() {}
        self
    }

    /// Waits for the end. The screen stays to be looked at.
    pub fn wait_for_end(&mut self) -> ExitStatus {
        let mut status = None;
        loop {
            if self.read() {
                continue;
            }
            match (status, self.child.try_wait().unwrap()) {
                (Some(status), _) => return status,
                (None, ended) => status = ended,
            }
        }
    }

    /// Reads what is there, or waits a moment for it. Returns whether anything came.
    fn read(&mut self) -> bool {
        let mut wanted = [PollFd::new(self.pty.master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut wanted, PollTimeout::from(20_u8)).unwrap() == 0 {
            return false;
        }
        let mut bytes = [0_u8; 4096];
        let read = (&self.pty.master).read(&mut bytes).unwrap();
        self.seen.extend_from_slice(&bytes[..read]);
        self.shown.process(&bytes[..read]);
        true
    }

    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).replace("\r\n", "\n")
    }

    /// Waits for a question, see [`Self::expect`], and types the answer.
    #[track_caller]
    pub fn answer(&mut self, question: &str, typed: &str) -> &mut Self {
        self.expect(question).press(typed)
    }

    /// Waits until a text is on the screen, after the previously expected one.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Self {
        let mut since = Instant::now();
        loop {
            let shown = &self.seen[self.past..];
            let found = shown.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                self.past += at + text.len();
                return self;
            }
            let ended = self.child.try_wait().unwrap().is_some();
            if self.read() {
                since = Instant::now();
                continue;
            }
            let screen = self.screen();
            assert!(!ended, "the command ended without {text:?}:\n{screen}");
            if since.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                panic!("{text:?} never came:\n{screen}");
            }
        }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        (&self.pty.master).write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Interrupts it, like Ctrl+C.
    pub fn interrupt(&mut self) -> &mut Self {
        self.signal(nix::sys::signal::Signal::SIGINT)
    }

    /// Sends a signal to it.
    pub fn signal(&mut self, signal: nix::sys::signal::Signal) -> &mut Self {
        let pid = nix::unistd::Pid::from_raw(self.child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
        self
    }

    /// Waits for the end: the exit code, and everything that was on the screen.
    pub fn end(self) -> (Option<i32>, String) {
        let (status, screen) = self.end_with_status();
        (status.code(), screen)
    }

    /// The same, with what a shell that follows would read: what was typed and nobody read.
    pub fn end_with_rest(self) -> (Option<i32>, String, String) {
        let pty = Rc::clone(&self.pty);
        let (code, screen) = self.end();
        let mut settings = termios::tcgetattr(&pty.slave).unwrap();
        settings.local_flags.remove(LocalFlags::ICANON);
        for index in [SpecialCharacterIndices::VMIN, SpecialCharacterIndices::VTIME] {
            settings.control_chars[index as usize] = 0;
        }
        termios::tcsetattr(&pty.slave, SetArg::TCSANOW, &settings).unwrap();
        let mut rest = [0_u8; 4096];
        let mut shell = File::from(pty.slave.try_clone().unwrap());
        let read = shell.read(&mut rest).unwrap();
        (code, screen, String::from_utf8_lossy(&rest[..read]).into_owned())
    }

    /// The same, with the signal that ended it.
    pub fn end_with_status(mut self) -> (ExitStatus, String) {
        let mut since = Instant::now();
        loop {
            let ended = self.child.try_wait().unwrap();
            if self.read() {
                since = Instant::now();
            } else if let Some(status) = ended {
                return (status, self.screen());
            } else if since.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                panic!("the command never ended:\n{}", self.screen());
            }
        }
    }
}
