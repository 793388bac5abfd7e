//! A three-way merge: undoes one change of a text and keeps the changes that others made since.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

/// After this time, the differences are found less exactly.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);

/// A range of the base, and what replaces it.
type Hunk<'a> = (Range<usize>, Vec<&'a str>);

/// Undoes the change from `old` to `base` in `now`, line by line.
///
/// Changes by others inside the undone lines are lost, except for lines of comments. `None` if
/// other changes overlap.
pub fn undo_by_line(base: &str, old: &str, now: &str) -> Option<String> {
    let [base, old, now] = [base, old, now].map(lines);
    let (undone, others) = hunks(&base, &old, &now);
    let mut applied_hunks = undone.clone();
    for (range, lines) in others {
        match undone.iter().find(|(undone, _)| overlaps(undone, &range)) {
            None => applied_hunks.push((range, lines)),
            Some((undone, _)) if undone.start <= range.start && range.end <= undone.end => {
                let known = base.get(range).unwrap_or_default();
                let is_new = |line: &&str| is_comment(line) && !known.contains(line);
                applied_hunks.push((
                    undone.end..undone.end,
                    lines.into_iter().filter(is_new).collect(),
                ));
            }
            Some(_) => return None,
        }
    }
    Some(apply_hunks(&base, applied_hunks, "\n"))
}

/// The same, word by word. Changes by others that overlap with the undone ones are lost. `None` if
/// a line with a comment would be.
pub fn undo_by_word(base: &str, old: &str, now: &str) -> Option<String> {
    let mut comments = now.lines().filter(|line| is_comment(line));
    let [base, old, now] = [base, old, now].map(words);
    let (mut applied_hunks, others) = hunks(&base, &old, &now);
    let undone: Vec<Range<usize>> = applied_hunks
        .iter()
        .map(|(range, _)| range.clone())
        .collect();
    let apart = |(range, _): &Hunk<'_>| !undone.iter().any(|undone| overlaps(undone, range));
    applied_hunks.extend(others.into_iter().filter(apart));
    let text = apply_hunks(&base, applied_hunks, "");
    comments
        .all(|line| text.contains(line.trim()))
        .then_some(text)
}

/// The changes from the base to the old text, and from the base to the present one.
fn hunks<'a>(base: &[&'a str], old: &[&'a str], now: &[&'a str]) -> (Vec<Hunk<'a>>, Vec<Hunk<'a>>) {
    let deadline = Instant::now().checked_add(DIFF_TIMEOUT);
    let to = |text: &[&'a str]| {
        capture_diff_slices_deadline(Algorithm::Myers, base, text, deadline)
            .iter()
            .filter(|op| op.tag() != DiffTag::Equal)
            .map(|op| {
                let new = text.get(op.new_range()).unwrap_or_default();
                (op.old_range(), new.to_vec())
            })
            .collect()
    };
    (to(old), to(now))
}

/// Whether two ranges have something in common. An empty one overlaps where it is inside the other.
fn overlaps(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The base with its ranges replaced. `between` goes where an old last line without a line end is
/// followed by more.
fn apply_hunks(base: &[&str], mut hunks: Vec<Hunk<'_>>, between: &str) -> String {
    hunks.sort_by_key(|(range, _)| (range.start, range.end));
    let mut text = String::new();
    let mut push = |pieces: &[&str]| {
        for piece in pieces {
            if !text.is_empty() && !text.ends_with(between) {
                text.push_str(between);
            }
            text.push_str(piece);
        }
    };
    let mut at = 0;
    for (range, new) in hunks {
        push(base.get(at..range.start).unwrap_or_default());
        push(&new);
        at = range.end;
    }
    push(base.get(at..).unwrap_or_default());
    text
}

/// Whether a line is a comment, in one of the formats.
fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["#", "//", "/*"].iter().any(|mark| line.starts_with(mark))
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The words and blanks of a text; every other character is on its own.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        ' ' | '\t' => 1,
        _ if c.is_alphanumeric() || c == '_' => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut others = rest.char_indices().skip(1);
        let end = others
            .find(|(_, c)| kind(first) == 0 || kind(*c) != kind(first))
            .map_or(rest.len(), |(at, _)| at);
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_undone_and_later_ones_stay() {
        let base = "a\nours 1\nours 2\nb\n";
        for (now, expected) in [
            (base, "a\nb\n"),
            (
                "# x\na\nours 1\nours 2\nb\n# later\n",
                "# x\na\nb\n# later\n",
            ),
            ("a\nours 1\nmore\nours 2\nb\n", "a\nb\n"),
            (
                "a\n# why\nours 1\n# and\nours 2\nb\n",
                "a\n# why\n# and\nb\n",
            ),
        ] {
            assert_eq!(undo_by_line(base, "a\nb\n", now).as_deref(), Some(expected));
        }
        assert_eq!(undo_by_line(base, "a\nb\n", "a\nours 1\nelse\n"), None);
        assert_eq!(
            undo_by_line("a\nours\n", "a", "a\nours\n# later\n").as_deref(),
            Some("a\n# later\n")
        );
    }

    #[test]
    fn a_change_inside_a_line_is_undone_word_by_word() {
        let (base, old) = ("{\"z\":1,\n  \"ours\": {}\n}", "{\"z\":1}");
        for (now, expected) in [
            (
                "{ \"k\": 2,\"z\":1,\n  \"ours\": {}\n}",
                "{ \"k\": 2,\"z\":1}",
            ),
            ("{\"z\":1,\"ours\":{}}", old),
        ] {
            assert_eq!(undo_by_word(base, old, now).as_deref(), Some(expected));
        }
    }
}
