//! The layout settings for text: the terminal's size, the clock and the time zone.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use terminal_size::{Height, Width, terminal_size_of};

/// The maximum text width in columns, because longer lines are hard to read.
const MAX_WIDTH: usize = 100;
const MIN_WIDTH: usize = 20;

#[derive(Debug, Clone)]
pub struct Screen {
    /// Columns of a line; `None` if the output is not a terminal, so lines are not wrapped.
    pub width: Option<usize>,
    pub height: Option<usize>,
    pub now: Timestamp,
    pub zone: TimeZone,
}

impl Screen {
    pub fn of_output() -> Self {
        Self::of(std::io::stdout())
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
