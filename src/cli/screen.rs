//! The layout settings for text: the terminal's size, the clock and the time zone.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terminal_size::{Height, Width, terminal_size_of};

use super::command::command;
use super::render::grouped;

/// The maximum text width in columns, because longer lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 20;
const MAX_LISTED: usize = 20;

/// How many entries of a list are not shown, and how to see them; empty if all are.
pub fn folded(more: usize, all: &str) -> String {
    match more {
        0 => String::new(),
        more => format!("and {} more: `{}` shows all\n", grouped(more as u64), command(all)),
    }
}

#[derive(Debug, Clone)]
pub struct Screen {
    /// Columns of a line; `None` if the output is not a terminal, so lines are not wrapped.
    pub width: Option<usize>,
    pub height: Option<usize>,
    pub now: Timestamp,
    pub zone: TimeZone,
}

/// Not a terminal, and a fixed time.
impl Default for Screen {
    fn default() -> Self {
        Self { width: None, height: None, now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC }
    }
}

impl Screen {
    pub fn of_output() -> Self {
        Self::of(std::io::stdout())
    }

    /// How many of a list's entries to show: a terminal shows the first ones, a pipe gets all.
    pub fn listed(&self, entries: usize) -> usize {
        match self.width {
            Some(_) => entries.min(MAX_LISTED),
            None => entries,
        }
    }

    /// The lines of a list that are shown, and below them how many are not and the command that
    /// shows all; empty if it shows all.
    pub fn fold(&self, mut lines: Vec<String>, all: &str) -> String {
        let shown = self.listed(lines.len());
        let more = lines.len() - shown;
        lines.truncate(shown);
        lines.concat() + &folded(more, all)
    }

    pub fn of_errors() -> Self {
        Self::of(std::io::stderr())
    }

    fn of(stream: impl IsTerminal + AsFd) -> Self {
        let size = if stream.is_terminal() {
            terminal_size_of(stream).or(Some((Width(80), Height(24))))
        } else {
            None
        };
        Self {
            width: size.map(|(Width(width), _)| usize::from(width).clamp(MIN_WIDTH, MAX_WIDTH)),
            height: size.map(|(_, Height(height))| usize::from(height)),
            now: Timestamp::now(),
            zone: TimeZone::system(),
        }
    }
}
