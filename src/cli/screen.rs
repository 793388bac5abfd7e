//! What text for people is laid out for: the terminal's size, the clock and the time zone.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terminal_size::{Height, Width, terminal_size_of};

/// The widest text, in columns: longer lines are hard to read.
const MAX_WIDTH: usize = 100;
/// The narrowest text, in columns.
const MIN_WIDTH: usize = 20;

/// What text is laid out for.
#[derive(Debug, Clone)]
pub struct Screen {
    /// Columns of a line; `None` where no line is wrapped, because the output is no terminal.
    pub width: Option<usize>,
    /// Lines of the terminal.
    pub height: Option<usize>,
    /// The present.
    pub now: Timestamp,
    /// The zone of times.
    pub zone: TimeZone,
}

impl Screen {
    /// What standard output is.
    pub fn of_output() -> Self {
        Self::of(std::io::stdout())
    }

    /// What standard error is.
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
