//! What is code and what is a comment in a Markdown text: everything that reads notes line by line
//! starts here. Each function takes time in proportion to the text, also for a text that nobody
//! would write.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// Its number, from 1.
    pub number: usize,
    /// Its text, without the line break.
    pub text: &'t str,
    /// Whether it is in a block of code, or begins or ends one.
    pub is_code: bool,
}

pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut fence = Fence::default();
    (1..).zip(text.lines()).map(move |(number, text)| Line {
        number,
        text,
        is_code: fence.holds(text),
    })
}

/// The mark that opened a block of code, while one is open
/// (<https://spec.commonmark.org/0.31.2/#fenced-code-blocks>).
#[derive(Default)]
struct Fence {
    open: Option<(char, usize)>,
}

impl Fence {
    fn holds(&mut self, line: &str) -> bool {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| "`~".contains(*c));
        let length = mark.map_or(0, |mark| line.len() - line.trim_start_matches(mark).len());
        let rest = line.get(length..).unwrap_or_default();
        let was_open = self.open.is_some();
        match (self.open, mark) {
            (Some((open, width)), Some(mark))
                if open == mark && length >= width && rest.is_empty() =>
            {
                self.open = None;
            }
            (None, Some(mark)) if length >= 3 && !(mark == '`' && rest.contains('`')) => {
                self.open = Some((mark, length));
            }
            _ => {}
        }
        was_open || self.open.is_some()
    }
}

/// The code between backticks in a line, with the backticks
/// (<https://spec.commonmark.org/0.31.2/#code-spans>).
fn code_spans(line: &str) -> Vec<Range<usize>> {
    // A run of backticks closes one of the same length, so the last run of a length opens nothing.
    let mut last: FxHashMap<usize, usize> = FxHashMap::default();
    for run in runs(line, b'`', 0) {
        last.insert(run.len(), run.start);
    }
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(open) = runs(line, b'`', at).next() {
        at = open.end;
        if last.get(&open.len()).is_some_and(|last| *last > open.start)
            && let Some(close) = runs(line, b'`', at).find(|run| run.len() == open.len())
        {
            at = close.end;
            spans.push(open.start..close.end);
        }
    }
    spans
}

/// The runs of a character from a position on.
fn runs(text: &str, mark: u8, from: usize) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = from;
    std::iter::from_fn(move || {
        let start = at + bytes.get(at..)?.iter().position(|byte| *byte == mark)?;
        let rest = bytes.get(start..)?;
        let length = rest.iter().position(|byte| *byte != mark);
        at = start + length.unwrap_or(rest.len());
        Some(start..at)
    })
}

pub fn without_code(line: &str) -> Cow<'_, str> {
    if !line.contains('`') {
        return Cow::Borrowed(line);
    }
    Cow::Owned(replaced(line, code_spans(line).into_iter().map(|span| (span, ""))))
}

/// A text with some of its parts replaced, which are in order.
pub fn replaced<'t>(text: &str, parts: impl Iterator<Item = (Range<usize>, &'t str)>) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (range, part) in parts {
        new.push_str(text.get(at..range.start).unwrap_or_default());
        new.push_str(part);
        at = range.end;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    new
}

/// A text without its comments. Text in code is not one, nor is one that is never closed. One that
/// does not begin a line ends in its paragraph.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    remove_comments(text, false)
}

/// A text with nothing but the line breaks of its comments, so that every line keeps its number.
pub fn blank_comments(text: &str) -> Cow<'_, str> {
    remove_comments(text, true)
}

fn remove_comments(text: &str, keeps_line_breaks: bool) -> Cow<'_, str> {
    let comments = comments(text);
    if comments.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    // Whether the line has had nothing but comments so far.
    let mut is_blank = true;
    for comment in comments {
        let part = text.get(at..comment.start).unwrap_or_default();
        is_blank = match part.rsplit_once('\n') {
            Some((_, line)) => line.trim().is_empty(),
            None => is_blank && part.trim().is_empty(),
        };
        plain.push_str(part);
        at = comment.end;
        let after = text.get(at..).unwrap_or_default().trim_start_matches([' ', '\t', '\r']);
        let is_whole_line = is_blank && (after.is_empty() || after.starts_with('\n'));
        if keeps_line_breaks {
            plain.extend(text.get(comment).unwrap_or_default().matches('\n'));
        } else if is_whole_line {
            at = text.len() - after.strip_prefix('\n').unwrap_or(after).len();
        }
    }
    plain.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(plain)
}

/// Where the comments of a text are: `<!-- … -->`, and Obsidian's `%% … %%`. Only one that begins a
/// line may go on after an empty line.
fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains("<!--") && !text.contains("%%") {
        return found;
    }
    let mut fence = Fence::default();
    // Up to where the text has been read.
    let mut at = 0;
    let mut line_start = 0;
    let mut paragraph_end = 0;
    // Up to where nothing closes a comment: a text may have very many marks that open nothing.
    let (mut unclosed_html, mut unclosed_obsidian) = (0, 0);
    for line in text.split_inclusive('\n') {
        let line_end = line_start + line.len();
        if line_start >= paragraph_end {
            let lines = text.get(line_start..).unwrap_or_default().split_inclusive('\n');
            let paragraph = lines.take_while(|line| !line.trim().is_empty());
            paragraph_end = line_start + paragraph.map(str::len).sum::<usize>();
        }
        // What follows a comment in its last line is no block of code.
        let is_code = at <= line_start && fence.holds(line);
        let has_mark = line.contains("<!--") || line.contains("%%");
        let marks = line.match_indices(['<', '%']);
        let indent = line.len() - line.trim_start().len();
        let code = if has_mark { code_spans(line) } else { Vec::new() };
        for (inside, mark) in marks.take_while(|_| has_mark && !is_code) {
            let start = line_start + inside;
            let span = code.partition_point(|span| span.end <= inside);
            let is_in_span = code.get(span).is_some_and(|span| span.start <= inside);
            if start < at || is_in_span || !opens_comment(text, start) {
                continue;
            }
            let limit = if inside == indent { text.len() } else { paragraph_end };
            let until = if mark == "<" { &mut unclosed_html } else { &mut unclosed_obsidian };
            if limit <= *until {
                continue;
            }
            match comment_end(text.get(..limit).unwrap_or_default(), start) {
                Some(end) => {
                    found.push(start..end);
                    at = end;
                }
                None => *until = limit,
            }
        }
        line_start = line_end;
    }
    found
}

fn opens_comment(text: &str, start: usize) -> bool {
    let (before, rest) = text.split_at_checked(start).unwrap_or_default();
    // `100%%` is a number.
    rest.starts_with("<!--")
        || rest.starts_with("%%")
            && !rest.starts_with("%%%")
            && !before.ends_with(|c: char| c == '%' || c.is_alphanumeric())
}

fn comment_end(text: &str, start: usize) -> Option<usize> {
    // `<!-->` is a whole comment.
    let from = start + 2;
    if text.get(start..)?.starts_with('<') {
        return Some(from + text.get(from..)?.find("-->")? + "-->".len());
    }
    let closing = runs(text, b'%', from).find(|run| {
        let rest = text.get(run.end..).unwrap_or_default();
        // `for %%i in (*) do echo %%i` is a command.
        run.len() == 2 && !rest.starts_with(char::is_alphanumeric)
    });
    Some(closing?.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::blocks::blocks;

    #[test]
    fn code_is_known_by_its_fences() {
        let text = "a\n```rust\n``` not the end\n~~~\n```\nb\n~~~~\n~~~\n~~~~\n```x``` c\nd";
        let code: Vec<usize> =
            lines(text).filter(|line| line.is_code).map(|line| line.number).collect();
        assert_eq!(code, [2, 3, 4, 5, 7, 8, 9]);
        for (line, plain) in [
            ("a `b` c", "a  c"),
            ("a ``b ` c`` d `", "a  d `"),
            ("` a `` b ` c", " c"),
            ("no code", "no code"),
        ] {
            assert_eq!(without_code(line), plain, "{line}");
        }
    }

    #[test]
    fn comments_go_and_what_only_looks_like_one_stays() {
        for (text, plain) in [
            ("a <!-- x --> b", "a  b"),
            ("a\n<!-- x\n\ny -->\nb\n", "a\nb\n"),
            ("a\n%%\nx\n%%\nb", "a\nb"),
            ("a %%x%% b %%y%%", "a  b "),
            ("<!-->a", "a"),
            ("<!-- a", "<!-- a"),
            ("%% a", "%% a"),
            ("`<!-- a -->` `%%b%%` %%c%%", "`<!-- a -->` `%%b%%` "),
            ("```\n<!-- a -->\n%%b%%\n```\n<!--c-->", "```\n<!-- a -->\n%%b%%\n```\n"),
            ("<!--\n```\n-->\nb\n<!-- c -->", "b\n"),
            ("with <!-- here\n\nand `-->` there -->", "with <!-- here\n\nand `-->` there -->"),
            ("for %%i in (*) do echo %%i", "for %%i in (*) do echo %%i"),
            ("100%% or 50%% of it", "100%% or 50%% of it"),
            ("a %%% b %%% c", "a %%% b %%% c"),
            ("a <!-- x --> b <!-- y -->\n- <!-- z -->\n", "a  b \n- \n"),
        ] {
            assert_eq!(without_comments(text), plain, "{text}");
        }
        assert_eq!(blank_comments("a\n<!-- x\ny --> b\nc"), "a\n\n b\nc");
    }

    /// A scanner that is not linear would take hours.
    #[test]
    fn no_text_takes_long() {
        let parts = [
            "[", "[[", "![", "`", "` `` ", "<!--", "<!-- ", "%%", " %%a", "%%a%% ", "|", "-->",
            "- ", "\n- ", "#", "# a\n", "=\n", "> ", "~~~\n", "a\n", "a:\n", "1. a\n", "<!--\n\n",
            " %%\n\n", "<%%",
        ];
        for part in parts.into_iter().chain(["<!-- --> ", "a <!--\n\n"]) {
            let text = part.repeat((1 << 20) / part.len());
            let plain = without_comments(&text);
            let code = lines(&text).map(|line| without_code(line.text).len());
            assert!(plain.len() + code.sum::<usize>() + blocks(&text).len() > 0);
        }
    }
}
