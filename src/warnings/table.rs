//! Patterns that begin with known words. One pass over a text finds the words, and only there a
//! pattern is compared, over a bounded distance: so the time grows with the text's length alone,
//! whatever the text is.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};
use regex::Regex;

use super::plain::plain;

/// How much of a text is compared before and after the words, in bytes.
const BEFORE: usize = 96;
const AFTER: usize = 320;

/// A pattern.
#[derive(Debug, Default)]
pub struct Row {
    /// A regular expression for what is before the words; none if that does not matter.
    pub before: Option<String>,
    /// The words.
    pub words: Vec<String>,
    /// Whether the words may stand inside of longer ones.
    pub inside: bool,
    /// A regular expression for what follows the words.
    pub rest: String,
}

impl Row {
    /// A row of a file: words between `|`, after `…` if something has to be before them.
    pub fn new(words: &str, rest: String) -> Self {
        let (before, words) = match words.split_once('…') {
            Some((before, words)) => (Some(before.to_owned()), words),
            None => (None, words),
        };
        Self {
            before,
            words: words.split('|').map(str::to_owned).collect(),
            inside: false,
            rest,
        }
    }
}

/// The first columns of the rows of a file, which are between tabs.
pub fn columns<const N: usize>(file: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let rows = file.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| {
        let columns: Vec<&str> = row.split('\t').take(N).collect();
        columns.try_into().ok()
    })
}

/// Where a pattern is in a text.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The number of the row.
    pub row: usize,
    /// Where the words begin and end.
    pub start: usize,
    pub rest: usize,
    /// Where what follows them ends.
    pub end: usize,
}

#[derive(Debug)]
struct Pattern {
    row: Row,
    before: OnceLock<Option<Regex>>,
    rest: OnceLock<Option<Regex>>,
}

/// A table of patterns.
#[derive(Debug)]
pub struct Table {
    words: AhoCorasick,
    /// The pattern of each word.
    pattern_of: Vec<usize>,
    patterns: Vec<Pattern>,
    ignores_case: bool,
}

impl Table {
    /// A table that may ignore the case of ASCII letters; `None` if there is no memory for it.
    pub fn new(rows: impl Iterator<Item = Row>, ignores_case: bool) -> Option<Self> {
        let new = |row| Pattern {
            row,
            before: OnceLock::new(),
            rest: OnceLock::new(),
        };
        let patterns: Vec<Pattern> = rows.map(new).collect();
        let (mut words, mut pattern_of) = (Vec::new(), Vec::new());
        for (number, pattern) in patterns.iter().enumerate() {
            for word in &pattern.row.words {
                words.push(plain(word).into_owned());
                pattern_of.push(number);
            }
        }
        let mut builder = AhoCorasickBuilder::new();
        builder
            .kind(Some(AhoCorasickKind::DFA))
            .ascii_case_insensitive(ignores_case);
        Some(Self {
            words: builder.build(words).ok()?,
            pattern_of,
            patterns,
            ignores_case,
        })
    }

    /// Where the patterns are in a plain text, in no order.
    pub fn find(&self, text: &str) -> Vec<Found> {
        let mut all = Vec::new();
        // A pattern is not looked for inside of itself.
        let mut ends = vec![0; self.patterns.len()];
        for word in self.words.find_overlapping_iter(text) {
            let (start, rest) = (word.start(), word.end());
            let Some(row) = self.pattern_of.get(word.pattern().as_usize()).copied() else {
                continue;
            };
            let (Some(pattern), Some(end)) = (self.patterns.get(row), ends.get_mut(row)) else {
                continue;
            };
            let is_free = pattern.row.inside || pattern.row.before.is_some();
            if start < *end || !(is_free || begins_word(text, start)) {
                continue;
            }
            if let Some(found) = self.compare(pattern, text, start, rest) {
                *end = found;
                all.push(Found {
                    row,
                    start,
                    rest,
                    end: found,
                });
            }
        }
        all
    }

    /// Where a pattern ends, if it is at its words.
    fn compare(&self, pattern: &Pattern, text: &str, start: usize, rest: usize) -> Option<usize> {
        let flags = if self.ignores_case { "(?i)" } else { "" };
        let after = text.get(rest..text.floor_char_boundary(rest + AFTER))?;
        let regex = pattern
            .rest
            .get_or_init(|| super::plain::pattern(&format!("{flags}^(?:{})", pattern.row.rest)));
        let end = rest + regex.as_ref()?.find(after)?.end();
        let Some(before) = &pattern.row.before else {
            return Some(end);
        };
        let regex = pattern
            .before
            .get_or_init(|| super::plain::pattern(&format!("{flags}(?:{before})$")));
        let from = text.floor_char_boundary(start.saturating_sub(BEFORE));
        regex
            .as_ref()?
            .is_match(text.get(from..start)?)
            .then_some(end)
    }
}

/// Whether a word can begin at a position: after no ASCII letter or digit, but those of `%20` and
/// the like.
fn begins_word(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    if !bytes.get(at).is_some_and(u8::is_ascii_alphanumeric) {
        return true;
    }
    let mut last = bytes.get(..at).unwrap_or_default().iter().rev();
    match (last.next(), last.next(), last.next()) {
        (Some(digit), Some(second), Some(b'%')) => {
            digit.is_ascii_hexdigit() && second.is_ascii_hexdigit()
        }
        (Some(letter), ..) => !letter.is_ascii_alphanumeric(),
        (None, ..) => true,
    }
}
