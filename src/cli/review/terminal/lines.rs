//! Lines of a screen: their styles, and text cut or wrapped to a number of columns. Memory text is
//! made safe here, whatever it is.

use ack_api::text;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use textwrap::core::display_width;
use unicode_segmentation::UnicodeSegmentation;

pub const PLAIN: Style = Style::new();
pub const BOLD: Style = PLAIN.add_modifier(Modifier::BOLD);
pub const DIM: Style = PLAIN.add_modifier(Modifier::DIM);
pub const CHOSEN: Style = BOLD.add_modifier(Modifier::REVERSED);
pub const GOOD: Style = PLAIN.fg(Color::Green);
pub const BAD: Style = PLAIN.fg(Color::Red);
pub const WARN: Style = PLAIN.fg(Color::Yellow);
pub const NAME: Style = PLAIN.fg(Color::Cyan);
pub const KEY: Style = NAME.add_modifier(Modifier::BOLD);

/// The fewest columns of wrapped text. What does not fit the screen is cut.
const MIN_COLUMNS: usize = 8;

/// Text of one style, wrapped. The first line begins with `first`, the others are indented as far.
pub fn wrapped(raw: &str, columns: usize, first: &str, style: Style) -> Vec<Line<'static>> {
    let indent = display_width(first);
    let rest = columns.saturating_sub(indent).max(MIN_COLUMNS);
    let safe = text::safe(raw).replace('\t', "    ");
    let lines = safe.lines().flat_map(|line| textwrap::wrap(line, rest));
    let lines = lines.enumerate().map(|(number, line)| {
        let lead = if number == 0 {
            first.to_owned()
        } else {
            " ".repeat(indent)
        };
        Line::from(vec![
            Span::raw(lead),
            Span::styled(line.into_owned(), style),
        ])
    });
    lines.collect()
}

/// One line of at most this many columns. An ellipsis marks a cut.
pub fn shortened(raw: &str, columns: usize) -> String {
    // A line of so many columns may have several characters in each.
    let line = text::line(raw, columns.saturating_mul(8).max(80));
    if display_width(&line) <= columns {
        return line;
    }
    let mut short = String::new();
    let mut room = columns.saturating_sub(1);
    for part in line.graphemes(true) {
        let Some(left) = room.checked_sub(display_width(part)) else {
            break;
        };
        room = left;
        short.push_str(part);
    }
    short.push('…');
    short
}

/// Parts of a line at its beginning, and one at its end. If there is no room for both, the first
/// parts are cut.
pub fn both_ends(
    left: &str,
    style: Style,
    right: &str,
    right_style: Style,
    columns: usize,
) -> Line<'static> {
    let room = columns.saturating_sub(display_width(right) + 1);
    let left = shortened(left, room);
    let gap = columns.saturating_sub(display_width(&left) + display_width(right));
    Line::from(vec![
        Span::styled(left, style),
        Span::raw(" ".repeat(gap)),
        Span::styled(right.to_owned(), right_style),
    ])
}

/// A heading with a rule to the end of the line, and a hint there.
pub fn heading(title: &str, hint: &str, columns: usize) -> Line<'static> {
    let taken = display_width(title) + display_width(hint) + 2;
    Line::from(vec![
        Span::styled(title.to_owned(), BOLD),
        Span::styled(
            format!(" {} {hint}", "─".repeat(columns.saturating_sub(taken))),
            DIM,
        ),
    ])
}
