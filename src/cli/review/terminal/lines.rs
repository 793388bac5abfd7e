//! Lines of a screen: their styles, and text cut or wrapped to a number of columns. Memory text is
//! made safe here, whatever it is.

use ack_api::text;
use ack_desk::markdown::{Block, Span as TextSpan};
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
const CODE: Style = PLAIN.fg(Color::Magenta);
const FLAGGED: Style = WARN.add_modifier(Modifier::UNDERLINED);

/// The fewest columns of wrapped text. What does not fit the screen is cut.
const MIN_COLUMNS: usize = 8;

/// Text of one style, wrapped. The first line begins with `first`, the others are indented as far.
pub fn wrapped(raw: &str, columns: usize, first: &str, style: Style) -> Vec<Line<'static>> {
    let columns = columns.saturating_sub(display_width(first));
    let lines = wrap(&[Span::styled(safe(raw), style)], columns);
    indented(lines, first, &" ".repeat(display_width(first)))
}

fn safe(raw: &str) -> String {
    text::safe(raw).replace('\t', "    ")
}

/// Lines that begin with something.
fn indented(mut lines: Vec<Line<'static>>, first: &str, rest: &str) -> Vec<Line<'static>> {
    for (number, line) in lines.iter_mut().enumerate() {
        let lead = if number == 0 { first } else { rest };
        line.spans.insert(0, Span::raw(lead.to_owned()));
    }
    lines
}

/// Text of several styles, wrapped.
fn wrap(spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
    let text: String = spans.iter().map(|span| &*span.content).collect();
    let (mut lines, mut start) = (Vec::new(), 0);
    for line in text.split('\n') {
        let mut at = start;
        for piece in textwrap::wrap(line, columns.max(MIN_COLUMNS)) {
            let rest = text.get(at..).unwrap_or_default();
            at += rest.find(&*piece).unwrap_or_default();
            lines.push(cut(spans, at, at + piece.len()));
            at += piece.len();
        }
        start += line.len() + 1;
    }
    lines
}

/// The bytes from `start` to `end` of a text of several styles.
fn cut(spans: &[Span<'_>], start: usize, end: usize) -> Line<'static> {
    let (mut line, mut before) = (Line::default(), 0);
    for span in spans {
        let length = span.content.len();
        let from = start.saturating_sub(before).min(length);
        let to = end.saturating_sub(before).min(length);
        let part = span.content.get(from..to).unwrap_or_default();
        if !part.is_empty() {
            line.push_span(Span::styled(part.to_owned(), span.style));
        }
        before += length;
    }
    line
}

/// Text whose parts have a style, on a ground of one style.
pub fn text_lines(spans: &[TextSpan], columns: usize, ground: Style) -> Vec<Line<'static>> {
    let spans = spans.iter().flat_map(|TextSpan { text, style }| {
        let own = match style {
            style if style.flag.is_some() => FLAGGED,
            style if style.code => CODE,
            style if style.bold => BOLD,
            _ => PLAIN,
        };
        let host = style.host.iter().map(|host| format!(" ({host})"));
        let host = host.map(|host| Span::styled(safe(&host), DIM));
        std::iter::once(Span::styled(safe(text), ground.patch(own))).chain(host)
    });
    wrap(&spans.collect::<Vec<_>>(), columns)
}

pub fn block_lines(blocks: &[Block], columns: usize) -> Vec<Line<'static>> {
    let inner = columns.saturating_sub(2);
    let mut lines = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        match block {
            Block::Paragraph { spans } => lines.extend(text_lines(spans, columns, PLAIN)),
            Block::Heading { spans } => lines.extend(text_lines(spans, columns, BOLD)),
            Block::Quote { blocks } => {
                lines.extend(indented(block_lines(blocks, inner), "│ ", "│ "));
            }
            Block::Code { language, spans } => {
                lines.extend(wrapped(language.as_deref().unwrap_or_default(), columns, "  ", DIM));
                lines.extend(indented(text_lines(spans, inner, CODE), "  ", "  "));
            }
            Block::List { first, items } => {
                for (number, item) in (0..).zip(items) {
                    let mark =
                        first.map_or("• ".to_owned(), |first| format!("{}. ", first + number));
                    let rest = " ".repeat(display_width(&mark));
                    let item = block_lines(item, columns.saturating_sub(rest.len()));
                    lines.extend(indented(item, &mark, &rest));
                }
            }
        }
    }
    lines
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

/// A text at the beginning of a line, which is cut if there is no room, and one at its end.
pub fn both_ends(left: &str, style: Style, right: &str, columns: usize) -> Line<'static> {
    let left = shortened(left, columns.saturating_sub(display_width(right) + 1));
    let gap = columns.saturating_sub(display_width(&left) + display_width(right));
    Line::from(vec![
        Span::styled(left, style),
        Span::styled(format!("{}{right}", " ".repeat(gap)), DIM),
    ])
}

/// A heading with a rule to the end of the line, and a hint there.
pub fn heading(title: &str, hint: &str, columns: usize) -> Line<'static> {
    let title = shortened(title, columns.saturating_sub(display_width(hint) + 3));
    let rule = "─".repeat(columns.saturating_sub(display_width(&title) + display_width(hint) + 2));
    Line::from(vec![Span::styled(title, BOLD), Span::styled(format!(" {rule} {hint}"), DIM)])
}
