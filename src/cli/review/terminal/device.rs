//! The terminal as a screen: its modes, what it shows, and the keys that it sends.
//!
//! Nothing is asked of the terminal, because one that does not answer would leave the desk waiting.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Color as AnsiStyleColor, Effects};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::Pid;
use parking_lot::Mutex;
use ratatui_core::buffer::{Buffer, Cell, CellWidth};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use terminal_size::{Height, Width, terminal_size_of};

use super::keys::{Key, first_key};

/// Another screen, pastes marked as such, no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1049l";
/// A frame is shown as a whole where the terminal can do that. Others ignore it.
const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[0m\x1b[?2026l";
/// How long after an escape the rest of a key may come.
const KEY_GAP: Duration = Duration::from_millis(50);
const MAX_SIDE: u16 = 500;

/// What it takes to give the terminal back. A signal may do that at any time.
#[derive(Debug, Default)]
pub struct Modes {
    before: Option<Termios>,
    /// Whether the process ends: then nothing is drawn any more.
    is_over: bool,
}

impl Modes {
    fn enter(&mut self) {
        let stdin = std::io::stdin();
        if self.before.is_some() || self.is_over {
            return;
        }
        self.before = tcgetattr(&stdin).ok();
        if let Some(mut raw) = self.before.clone() {
            cfmakeraw(&mut raw);
            let _ = tcsetattr(&stdin, SetArg::TCSADRAIN, &raw);
            write(ENTER);
        }
    }

    fn leave(&mut self) {
        if let Some(before) = self.before.take() {
            write(LEAVE);
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, &before);
        }
    }

    pub fn end(&mut self) {
        self.leave();
        self.is_over = true;
    }
}

/// Gives the terminal back when it is dropped.
pub struct Device {
    modes: Arc<Mutex<Modes>>,
    shown: Buffer,
    has_colours: bool,
    typed: Vec<u8>,
}

impl Device {
    pub fn is_possible(term: Option<&str>) -> bool {
        let is_able = term.is_some_and(|term| !matches!(term, "" | "dumb" | "unknown"));
        is_able && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    pub fn open() -> Self {
        let device = Self {
            modes: Arc::default(),
            shown: Buffer::default(),
            has_colours: anstream::stderr().current_choice() != anstream::ColorChoice::Never,
            typed: Vec::new(),
        };
        device.modes.lock().enter();
        device
    }

    pub fn modes(&self) -> Arc<Mutex<Modes>> {
        Arc::clone(&self.modes)
    }

    /// Whether the terminal has another size than what it shows.
    pub fn is_resized(&self) -> bool {
        area() != self.shown.area
    }

    /// Draws a screen: what differs from what is shown.
    pub fn draw(&mut self, render: impl FnOnce(&mut Buffer)) {
        let mut next = Buffer::empty(area());
        render(&mut next);
        let mut out = String::new();
        if next.area != self.shown.area {
            self.shown = Buffer::empty(next.area);
            out.push_str("\x1b[0m\x1b[2J");
        }
        let (mut place, mut style) = (None, None);
        for (x, y, cell) in self.shown.diff_iter(&next) {
            if place != Some((x, y)) {
                let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
            }
            let wanted = self.style(cell);
            if style != Some(wanted) {
                let _ = write!(out, "\x1b[0m{}", wanted.render());
                style = Some(wanted);
            }
            out.push_str(cell.symbol());
            // Terminals disagree about the width of some characters, so the next cell is not left
            // to it.
            place = (cell.symbol().len() == 1 && cell.cell_width() == 1).then_some((x + 1, y));
        }
        let modes = self.modes.lock();
        if !out.is_empty() && modes.before.is_some() {
            write(&format!("{BEGIN_FRAME}{out}{END_FRAME}"));
        }
        drop(modes);
        self.shown = next;
    }

    fn style(&self, cell: &Cell) -> anstyle::Style {
        let mut effects = Effects::new();
        for (modifier, effect, needs_colours) in [
            (Modifier::BOLD, Effects::BOLD, false),
            (Modifier::REVERSED, Effects::INVERT, false),
            (Modifier::UNDERLINED, Effects::UNDERLINE, false),
            (Modifier::DIM, Effects::DIMMED, true),
        ] {
            if cell.modifier.contains(modifier) && (self.has_colours || !needs_colours) {
                effects |= effect;
            }
        }
        let style = anstyle::Style::new().effects(effects);
        style.fg_color(colour(cell.fg).filter(|_| self.has_colours))
    }

    /// The next key, if one comes within this time.
    pub fn key(&mut self, timeout: Duration) -> Option<Key> {
        let mut patience = timeout;
        loop {
            if let Some((key, length)) = first_key(&self.typed) {
                self.typed.drain(..length);
                return Some(key);
            }
            if !self.typed.is_empty() {
                patience = KEY_GAP;
            }
            match read_typed(&mut self.typed, patience) {
                Some(true) => {}
                Some(false) => return Some(Key::End),
                None if self.typed.is_empty() => return None,
                None => {
                    let is_escape = self.typed.first() == Some(&0x1b);
                    self.typed.clear();
                    return Some(if is_escape { Key::Escape } else { Key::Other });
                }
            }
        }
    }

    /// Lends the terminal, as it was before, to something else.
    pub fn lend<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.modes.lock().leave();
        let result = work();
        self.modes.lock().enter();
        // Everything is drawn the next time.
        self.shown = Buffer::default();
        result
    }

    pub fn suspend(&mut self) {
        let _ = self.lend(|| raise(Signal::SIGTSTP));
    }

    /// Asks the process to end, as the terminal does where it has its usual modes.
    pub fn quit() {
        // Not `raise`: the thread that waits for signals has to get it.
        let _ = kill(Pid::this(), Signal::SIGQUIT);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.modes.lock().leave();
    }
}

/// Reads what was typed. `None`: nothing within this time; `false`: the end.
pub fn read_typed(typed: &mut Vec<u8>, timeout: Duration) -> Option<bool> {
    let stdin = std::io::stdin();
    let mut wanted = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut wanted, PollTimeout::try_from(timeout).unwrap_or(PollTimeout::ZERO)) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => return None,
        Ok(_) => {}
        Err(_) => return Some(false),
    }
    let mut bytes = [0_u8; 4096];
    match nix::unistd::read(&stdin, &mut bytes) {
        Ok(0) => Some(false),
        Ok(count) => {
            typed.extend(bytes.iter().take(count));
            Some(true)
        }
        Err(nix::errno::Errno::EINTR) => None,
        Err(_) => Some(false),
    }
}

/// The colours of the desk. What has none gets the terminal's own.
const fn colour(colour: Color) -> Option<AnsiStyleColor> {
    let colour = match colour {
        Color::Red => AnsiColor::Red,
        Color::Green => AnsiColor::Green,
        Color::Yellow => AnsiColor::Yellow,
        Color::Magenta => AnsiColor::Magenta,
        Color::Cyan => AnsiColor::Cyan,
        _ => return None,
    };
    Some(AnsiStyleColor::Ansi(colour))
}

fn area() -> Rect {
    let (columns, rows) = match terminal_size_of(std::io::stderr()) {
        Some((Width(columns), Height(rows))) if columns > 0 && rows > 0 => (columns, rows),
        _ => (80, 24),
    };
    Rect::new(0, 0, columns.min(MAX_SIDE), rows.min(MAX_SIDE))
}

/// Writes to the terminal, ignoring errors: a terminal that is gone is noticed when it is read.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
