//! What is code and what is a comment in a Markdown text: everything that reads notes line by line
//! starts here. Each function takes time in proportion to the text, also for a text that nobody
//! would write.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

/// A line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'t> {
    /// Its number, from 1.
    pub number: usize,
    /// Its text, without the line break.
    pub text: &'t str,
    /// Whether it is in a block of code, or begins or ends one.
    pub is_code: bool,
}

/// The lines of a text.
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
    /// Whether the next line belongs to a block of code.
    fn holds(&mut self, line: &str) -> bool {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| "`~".contains(*c));
        let length = mark.map_or(0, |mark| line.len() - line.trim_start_matches(mark).len());
        let rest = line.get(length..).unwrap_or_default();
        match (self.open, mark) {
            (Some(open), Some(mark)) => {
                if open.0 == mark && length >= open.1 && rest.is_empty() {
                    self.open = None;
                }
                true
            }
            (Some(_), None) => true,
            (None, Some(mark)) if length >= 3 && !(mark == '`' && rest.contains('`')) => {
                self.open = Some((mark, length));
                true
            }
            (None, _) => false,
        }
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

/// A line without the code in it.
pub fn without_code(line: &str) -> Cow<'_, str> {
    if !line.contains('`') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::new();
    let mut at = 0;
    for span in code_spans(line) {
        plain.push_str(line.get(at..span.start).unwrap_or_default());
        at = span.end;
    }
    plain.push_str(line.get(at..).unwrap_or_default());
    Cow::Owned(plain)
}

/// The marks of comments: those of HTML, and those of Obsidian.
const COMMENT_MARKS: [(&str, &str); 2] = [("<!--", "-->"), ("%%", "%%")];

/// A text without its comments. Text in code is not one, nor is one that is never closed. One that
/// does not begin a line ends in its paragraph.
pub fn without_comments(text: &str) -> Cow<'_, str> {
    replace_comments(text, |_, is_whole_line| match is_whole_line {
        true => Replacement::WithLineBreak,
        false => Replacement::Nothing,
    })
}

/// A text with nothing but the line breaks of its comments, so that every line keeps its number.
pub fn blank_comments(text: &str) -> Cow<'_, str> {
    replace_comments(text, |comment, _| {
        Replacement::LineBreaks(comment.matches('\n').count())
    })
}

/// What stands in place of a comment.
enum Replacement {
    Nothing,
    /// Nothing, and the line break after it goes too.
    WithLineBreak,
    LineBreaks(usize),
}

fn replace_comments(text: &str, replace: impl Fn(&str, bool) -> Replacement) -> Cow<'_, str> {
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
        let rest = text.get(at..).unwrap_or_default();
        let after = rest.trim_start_matches([' ', '\t', '\r']);
        let is_whole_line = is_blank && (after.is_empty() || after.starts_with('\n'));
        match replace(text.get(comment).unwrap_or_default(), is_whole_line) {
            Replacement::Nothing => {}
            Replacement::WithLineBreak => {
                at = text.len() - after.strip_prefix('\n').unwrap_or(after).len();
            }
            Replacement::LineBreaks(count) => plain.extend(std::iter::repeat_n('\n', count)),
        }
    }
    plain.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(plain)
}

/// Where the comments of a text are.
fn comments(text: &str) -> Vec<Range<usize>> {
    if COMMENT_MARKS.iter().all(|(open, _)| !text.contains(open)) {
        return Vec::new();
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut fence = Fence::default();
    let mut ends = CommentEnds::new(text);
    // Up to where the text has been read.
    let mut at = 0;
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let line_end = line_start + line.len();
        // What follows a comment in its last line is no block of code.
        let is_code = at <= line_start && fence.holds(line);
        if !is_code && line_end > at {
            let mut code = code_spans(line).into_iter().peekable();
            at = at.max(line_start);
            while let Some(open) = next_mark(text, at, line_end) {
                let inside = open.start - line_start;
                while code.next_if(|span| span.end <= inside).is_some() {}
                if let Some(span) = code.next_if(|span| span.start < inside) {
                    at = line_start + span.end;
                    continue;
                }
                let begins_line = text
                    .get(line_start..open.start)
                    .is_some_and(|before| before.trim().is_empty());
                at = open.end;
                if let Some(end) = ends.of(&open, begins_line) {
                    found.push(open.start..end);
                    at = end;
                    if end >= line_end {
                        break;
                    }
                }
            }
            at = at.max(line_end);
        }
        line_start = line_end;
    }
    found
}

/// The mark that opens a comment.
struct OpenMark {
    /// Its number in [`COMMENT_MARKS`].
    kind: usize,
    start: usize,
    end: usize,
}

/// The next mark that may open a comment within a line.
fn next_mark(text: &str, from: usize, line_end: usize) -> Option<OpenMark> {
    let mut at = from;
    while at < line_end {
        let found = at + text.get(at..line_end)?.find(['<', '%'])?;
        let rest = text.get(found..)?;
        if rest.starts_with("<!--") {
            return Some(OpenMark {
                kind: 0,
                start: found,
                end: found + "<!".len(),
            });
        }
        if rest.starts_with('%') {
            let run = runs(text, b'%', found).next()?;
            // `100%%` is a number.
            let before = text.get(..found)?.chars().next_back();
            if run.len() == 2 && before.is_none_or(|c| !c.is_alphanumeric()) {
                return Some(OpenMark {
                    kind: 1,
                    start: run.start,
                    end: run.end,
                });
            }
            at = run.end;
        } else {
            at = found + 1;
        }
    }
    None
}

/// Finds the ends of comments. Each is looked up once, however many marks open before it.
struct CommentEnds<'t> {
    text: &'t str,
    /// The last end that was found for each mark, and where the search began.
    ends: [Option<(usize, Option<usize>)>; COMMENT_MARKS.len()],
    /// The next empty line, and where the search began.
    blank: Option<(usize, Option<usize>)>,
}

impl<'t> CommentEnds<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            text,
            ends: [None; COMMENT_MARKS.len()],
            blank: None,
        }
    }

    /// Where the comment ends that a mark opens; `None` if it opens none.
    fn of(&mut self, open: &OpenMark, begins_line: bool) -> Option<usize> {
        let text = self.text;
        let (_, close) = COMMENT_MARKS.get(open.kind)?;
        let slot = self.ends.get_mut(open.kind)?;
        let end = cached(slot, open.end, |from| match open.kind {
            0 => text.get(from..)?.find(close).map(|at| from + at),
            _ => runs(text, b'%', from)
                .find(|run| {
                    let after = text.get(run.end..).and_then(|rest| rest.chars().next());
                    // `for %%i in (*) do echo %%i` is a command.
                    run.len() == close.len() && after.is_none_or(|c| !c.is_alphanumeric())
                })
                .map(|run| run.start),
        })?;
        if !begins_line {
            let blank = cached(&mut self.blank, open.end, |from| blank_line(text, from));
            if blank.is_some_and(|blank| blank < end) {
                return None;
            }
        }
        Some(end + close.len())
    }
}

/// What `find` returns for a position. A position that was found stays the next one until it is
/// passed.
fn cached(
    slot: &mut Option<(usize, Option<usize>)>,
    from: usize,
    find: impl FnOnce(usize) -> Option<usize>,
) -> Option<usize> {
    match *slot {
        Some((began, found)) if began <= from && found.is_none_or(|found| found >= from) => found,
        _ => slot.insert((from, find(from))).1,
    }
}

/// The next empty line.
fn blank_line(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += text.get(at..)?.find('\n')? + 1;
        let line = text.get(at..)?.split('\n').next()?;
        if line.trim().is_empty() {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::blocks::blocks;

    #[test]
    fn code_is_known_by_its_fences() {
        let text = "a\n```rust\n``` not the end\n~~~\n```\nb\n~~~~\n~~~\n~~~~\n```x``` c\nd";
        let code: Vec<usize> = lines(text)
            .filter(|line| line.is_code)
            .map(|line| line.number)
            .collect();
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
            (
                "```\n<!-- a -->\n%%b%%\n```\n<!--c-->",
                "```\n<!-- a -->\n%%b%%\n```\n",
            ),
            ("<!--\n```\n-->\nb\n<!-- c -->", "b\n"),
            (
                "open with <!-- here\n\nand `-->` there -->",
                "open with <!-- here\n\nand `-->` there -->",
            ),
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
        for part in [
            "[",
            "[[",
            "![",
            "`",
            "` `` ",
            "<!--",
            "<!-- ",
            "<!-- --> ",
            "%%",
            " %%a",
            "%%a%% ",
            "|",
            "-->",
            "- ",
            "\n- ",
            "#",
            "# a\n",
            "=\n",
            "> ",
            "~~~\n",
            "a\n",
            "a:\n",
            "1. a\n",
            "<!--\n\n",
            "a <!--\n\n",
            " %%\n\n",
        ] {
            let text = part.repeat((1 << 20) / part.len());
            let plain = without_comments(&text);
            let code = lines(&text).map(|line| without_code(line.text).len());
            assert!(plain.len() + code.sum::<usize>() + blocks(&text).len() > 0);
        }
    }
}
