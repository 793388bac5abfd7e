//! Wraps and styles text, and marks the words of a query in it.

use std::collections::HashSet;
use std::ops::Range;

use ack_search::analysis::{TextRole, TokenKind, tokenize};
use ack_search::analyzer::term_key;
use ack_search::query::QueryTerms;
use anstyle::Style;
use textwrap::{Options, WordSeparator, WordSplitter, core::display_width};

use crate::cli::screen::Screen;

/// The fewest columns of a table's last cell.
const MIN_CELL: usize = 10;

pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Rows as a table. Columns that are `right` are aligned there. If it is wider than `width`, the first
/// column and the last one wrap.
pub fn table<const COLUMNS: usize>(
    rows: &[[String; COLUMNS]],
    right: Range<usize>,
    width: Option<usize>,
) -> String {
    let widest = |column: usize, parts: fn(&str) -> usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| parts(cell)).max().unwrap_or_default()
    };
    let mut widths: [usize; COLUMNS] = std::array::from_fn(|column| widest(column, display_width));
    let too_wide =
        |widths: &[usize], width: &usize| widths.iter().sum::<usize>() + 2 * COLUMNS > *width;
    if let Some(width) = width.filter(|width| too_wide(&widths, width)) {
        let [first, between @ .., last] = widths.as_mut_slice() else {
            return String::new();
        };
        *first = widest(0, |cell| cell.split(' ').map(display_width).max().unwrap_or_default());
        let taken = *first + between.iter().sum::<usize>() + 2 * COLUMNS;
        *last = width.saturating_sub(taken).max(MIN_CELL);
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let cells: Vec<_> = cells.map(|(cell, width)| textwrap::wrap(cell, width.max(1))).collect();
        for number in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let part = cell.get(number).map_or("", |part| &**part);
                let pad = " ".repeat(width.saturating_sub(display_width(part)));
                let is_right = right.contains(&column);
                let (before, after) = if is_right { (&*pad, "") } else { ("", &*pad) };
                line += &format!(" {before}{part}{after} ");
            }
            out += &format!("{}\n", line.trim_end());
        }
    }
    out
}

/// The words of a query, to mark where they occur.
#[derive(Debug, Clone, Default)]
pub struct QueryWords(HashSet<String>);

impl QueryWords {
    pub fn of(query: &str) -> Self {
        Self(QueryTerms::parse(query).terms.into_iter().map(|term| term.key).collect())
    }

    pub fn count(&self, text: &str) -> usize {
        let mut found = HashSet::new();
        tokenize(text, TextRole::Document, &mut |token| {
            let key = term_key(token.kind, &token.text);
            if self.0.contains(key.as_ref()) {
                found.insert(key.into_owned());
            }
        });
        found.len()
    }

    fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        if self.0.is_empty() {
            return ranges;
        }
        let offset = |part: &str| part.as_ptr().addr() - line.as_ptr().addr();
        for chunk in line.split_whitespace() {
            let start = offset(chunk);
            match self.identifier(chunk) {
                Some(found) => ranges.push(start + found.start..start + found.end),
                None => {
                    let words = chunk.split(|c: char| !c.is_alphanumeric() && c != '\'');
                    let marked = words.filter(|word| self.count(word) > 0);
                    ranges.extend(marked.map(|word| offset(word)..offset(word) + word.len()));
                }
            }
        }
        ranges
    }

    /// The position of an identifier from the query as a whole.
    fn identifier(&self, chunk: &str) -> Option<Range<usize>> {
        let mut found: Option<Range<usize>> = None;
        let lower = chunk.to_ascii_lowercase();
        tokenize(chunk, TextRole::Document, &mut |token| {
            let is_query_word = token.kind == TokenKind::Identifier
                && self.0.contains(term_key(token.kind, &token.text).as_ref());
            let position = lower.find(token.text.as_ref()).filter(|_| is_query_word);
            if let Some(start) = position.filter(|_| found.is_none()) {
                found = Some(start..start + token.text.len());
            }
        });
        found
    }

    pub fn paint(&self, style: Style, line: &str) -> String {
        let (mut out, mut painted) = (String::new(), 0);
        let end = line.len()..line.len();
        for range in self.ranges(line).into_iter().chain([end]) {
            let between = painted..range.start;
            painted = range.end;
            for (style, part) in [(style, between), (style.underline(), range)] {
                let part = line.get(part).filter(|part| !part.is_empty());
                out.extend(part.map(|part| paint(style, part)));
            }
        }
        out
    }
}

/// Wraps a text at the screen's width and indents each line. Keeps the text's own line breaks.
pub fn lines(screen: &Screen, text: &str, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let first = if number == 0 { first } else { rest };
        match screen.width {
            None => lines.push(format!("{first}{line}").trim_end().to_owned()),
            Some(width) => {
                // Text without spaces between words can break anywhere; a long path or address must
                // not.
                let wide = line.chars().count() < display_width(line);
                let options = Options::new(width)
                    .initial_indent(first)
                    .subsequent_indent(rest)
                    .word_separator(WordSeparator::AsciiSpace)
                    .word_splitter(WordSplitter::NoHyphenation)
                    .break_words(wide);
                lines.extend(textwrap::wrap(line, options).into_iter().map(Into::into));
            }
        }
    }
    lines
}

/// A text whose words stay on one line, if it fits on one: with spaces that do not break, which
/// [`breakable`] takes back after the text around it is wrapped.
pub fn unbroken(screen: &Screen, indent: &str, text: &str) -> String {
    let width = indent.len() + display_width(text);
    if screen.width.is_some_and(|most| width > most) {
        return text.to_owned();
    }
    text.replace(' ', "\u{a0}")
}

/// A wrapped text with plain spaces.
pub fn breakable(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

/// A text that is wrapped, indented and styled. Each line ends with a line break.
pub fn block(screen: &Screen, text: &str, indents: (&str, &str), style: Style) -> String {
    marked_block(screen, text, indents, style, &QueryWords::default())
}

/// The same, with the words of a query marked.
pub fn marked_block(
    screen: &Screen,
    text: &str,
    (first, rest): (&str, &str),
    style: Style,
    marks: &QueryWords,
) -> String {
    let mut out = String::new();
    for (number, line) in lines(screen, text, first, rest).into_iter().enumerate() {
        let indent = if number == 0 { first } else { rest };
        let indent = if line.starts_with(indent) { indent } else { "" };
        let body = line.strip_prefix(indent).unwrap_or_default();
        out += &format!("{indent}{}\n", marks.paint(style, body));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, line: &str, marked: &[&str]) {
        let found: Vec<&str> =
            QueryWords::of(query).ranges(line).into_iter().map(|range| &line[range]).collect();
        assert_eq!(found, marked, "{query} in {line}");
    }

    #[test]
    fn the_words_of_a_query_are_highlighted() {
        check("lock rows", "Locks on rows, locked `row`s", &["Locks", "rows", "locked", "row"]);
        check("the lock", "the door", &[]);
        check(
            "ERR_PNPM_OUTDATED_LOCKFILE",
            "fails (ERR_PNPM_OUTDATED_LOCKFILE).",
            &["ERR_PNPM_OUTDATED_LOCKFILE"],
        );
        check("no-transaction", "`-- no-transaction` first", &["no-transaction"]);
        check("src/store/ack.rs", "see src/store/ack.rs:42", &["src/store/ack.rs"]);
        check("naïve café", "Das Café ist naïv", &["Café", "naïv"]);
        check("", "anything", &[]);
    }

    #[test]
    fn wrapping_and_highlighting_lose_nothing() {
        let screen = Screen { width: Some(24), ..Screen::default() };
        let text = "sqlx wraps each migration in a transaction\n\n日本語のとても長い文章はどこでも改行されることがある";
        let out =
            marked_block(&screen, text, ("- ", "  "), Style::new(), &QueryWords::of("migration"));
        let plain = anstream::adapter::strip_str(&out).to_string();
        assert_eq!(
            plain,
            "- sqlx wraps each\n  migration in a\n  transaction\n\n  日本語のとても長い文章\n  はどこでも改行されるこ\n  とがある\n"
        );
    }
}
