//! Patterns that begin with known words. One pass over a text finds the words, and only there a
//! pattern is compared, over a bounded distance: so the time grows with the text's length alone,
//! whatever the text is.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, Match};
use regex::bytes::Regex;

use super::plain::plain;
use super::secrets::places::Test;
use super::{agent_text, secrets};

/// How much of a text is compared before and after the words, in bytes.
const BEFORE: usize = 96;
const AFTER: usize = 320;

/// Where the patterns of all tables are in a plain text, in the order of their words.
pub fn find(text: &str) -> Vec<Found> {
    static TABLE: LazyLock<Option<Table>> = LazyLock::new(|| {
        let secrets = secrets::tokens().chain(secrets::places::rows());
        Table::new(secrets.chain(agent_text::rows()))
    });
    TABLE
        .as_ref()
        .map_or_else(Vec::new, |table| table.find(text))
}

/// What a pattern finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Token,
    /// A place where a secret may be.
    Place(Test),
    /// What directs an agent.
    Order,
}

#[derive(Debug)]
pub struct Row {
    pub kind: Kind,
    /// Whether the case of ASCII letters does not matter.
    pub ignores_case: bool,
    /// A regular expression for what is before the words; none if that does not matter.
    pub before: Option<String>,
    pub words: Vec<String>,
    /// Whether the words may stand inside of longer ones.
    pub inside: bool,
    /// A regular expression for what follows the words.
    pub rest: String,
}

impl Row {
    /// A row of a file: words between `|`, after `…` if something has to be before them.
    pub fn new(kind: Kind, words: &str, rest: String) -> Self {
        let (before, words) = match words.split_once('…') {
            Some((before, words)) => (Some(before.to_owned()), words),
            None => (None, words),
        };
        Self {
            kind,
            ignores_case: kind != Kind::Token,
            inside: before.is_some(),
            before,
            words: words.split('|').map(str::to_owned).collect(),
            rest,
        }
    }

    /// Whether one of the words, found in any case, counts where it is.
    fn has_word(&self, word: &str, text: &str, found: Match) -> bool {
        let bytes = text.as_bytes();
        let first = word.bytes().next();
        let before = found.start().checked_sub(1).and_then(|at| bytes.get(at));
        let is_within = first.is_some_and(|first| first.is_ascii_alphanumeric())
            && before.is_some_and(u8::is_ascii_alphanumeric)
            && !follows_percent(bytes, found.start());
        (self.inside || !is_within)
            && (self.ignores_case || bytes.get(found.range()) == Some(word.as_bytes()))
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
    pub kind: Kind,
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

#[derive(Debug)]
struct Table {
    automaton: AhoCorasick,
    words: Vec<(String, usize)>,
    patterns: Vec<Pattern>,
}

impl Table {
    /// `None` if there is no memory for it.
    fn new(rows: impl Iterator<Item = Row>) -> Option<Self> {
        let new = |row| Pattern {
            row,
            before: OnceLock::new(),
            rest: OnceLock::new(),
        };
        let patterns: Vec<Pattern> = rows.map(new).collect();
        let numbered = patterns.iter().enumerate();
        let words = numbered.flat_map(|(number, Pattern { row, .. })| {
            let words = row.words.iter().map(|word| plain(word).into_owned());
            words.map(move |word| (word, number))
        });
        let words: Vec<(String, usize)> = words.collect();
        Some(Self {
            automaton: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(words.iter().map(|(word, _)| word))
                .ok()?,
            words,
            patterns,
        })
    }

    fn find(&self, text: &str) -> Vec<Found> {
        let mut words: Vec<Match> = self.automaton.find_overlapping_iter(text).collect();
        words.sort_unstable_by_key(|word| (word.start(), word.end()));
        // A pattern is not looked for inside of itself.
        let mut ends = vec![0; self.patterns.len()];
        let mut all = Vec::new();
        for found in words {
            let Some((word, row)) = self.words.get(found.pattern().as_usize()) else {
                continue;
            };
            let (Some(pattern), Some(end)) = (self.patterns.get(*row), ends.get_mut(*row)) else {
                continue;
            };
            if found.start() < *end || !pattern.row.has_word(word, text, found) {
                continue;
            }
            if let Some(after) = Self::compare(pattern, text, found.start(), found.end()) {
                *end = after;
                all.push(Found {
                    kind: pattern.row.kind,
                    start: found.start(),
                    rest: found.end(),
                    end: after,
                });
            }
        }
        all
    }

    /// Where a pattern ends, if it is at its words.
    fn compare(pattern: &Pattern, text: &str, start: usize, rest: usize) -> Option<usize> {
        let flags = if pattern.row.ignores_case { "(?i)" } else { "" };
        let bytes = text.as_bytes();
        let after = bytes.get(rest..bytes.len().min(rest + AFTER))?;
        let regex = pattern.rest.get_or_init(|| {
            super::plain::byte_pattern(&format!("{flags}^(?:{})", pattern.row.rest))
        });
        let end = rest + regex.as_ref()?.find(after)?.end();
        let end = text.floor_char_boundary(end);
        let Some(before) = &pattern.row.before else {
            return Some(end);
        };
        let regex = pattern
            .before
            .get_or_init(|| super::plain::byte_pattern(&format!("{flags}(?:{before})$")));
        let before = bytes.get(start.saturating_sub(BEFORE)..start)?;
        regex.as_ref()?.is_match(before).then_some(end)
    }
}

/// Whether a position follows `%20` or the like, after which a word can begin.
fn follows_percent(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(3).and_then(|from| bytes.get(from..at));
    matches!(before, Some([b'%', digits @ ..]) if digits.iter().all(u8::is_ascii_hexdigit))
}
