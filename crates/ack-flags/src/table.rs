//! Patterns that begin with known words. One pass over a text finds the words, and only there a
//! pattern is compared, over a bounded distance: so the time grows with the text's length alone,
//! whatever the text is.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous;
use regex::bytes::Regex;

use super::plain::{byte_pattern, plain};
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
    TABLE.as_ref().map_or_else(Vec::new, |table| table.find(text))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Token,
    Place(Test),
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
}

/// The first columns of the rows of a file, which are between tabs.
pub fn columns<const N: usize>(file: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let rows = file.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|row| {
        let columns: Vec<&str> = row.split('\t').take(N).collect();
        columns.try_into().ok()
    })
}

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

/// A set of [`beginning`]s of words.
#[derive(Debug)]
struct Beginnings(Box<[u64; 512]>);

/// Five bits of each of three bytes, which are the same in either case of a letter: those of the
/// last two bytes before, and of the next one.
const fn beginning(before: usize, next: u8) -> usize {
    before >> 5 | ((next & 31) as usize) << 10
}

impl Beginnings {
    fn of<'w>(words: impl Iterator<Item = &'w (String, usize)>) -> Self {
        let mut bits = Box::new([0; 512]);
        for (word, _) in words {
            let mut bytes = word.bytes();
            let (first, second) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
            // Anything may follow a word of two bytes.
            for third in bytes.next().map_or(0..=31, |third| third..=third) {
                let key = [first, second, third].into_iter().fold(0, beginning);
                if let Some(bits) = bits.get_mut(key >> 6) {
                    *bits |= 1u64 << (key & 63);
                }
            }
        }
        Self(bits)
    }

    fn contains(&self, key: usize) -> bool {
        let bits = self.0.get(key >> 6 & 511).copied().unwrap_or_default();
        bits >> (key & 63) & 1 == 1
    }
}

#[derive(Debug)]
struct Table {
    automaton: contiguous::NFA,
    words: Vec<(String, usize)>,
    /// How all words begin, and how those begin that may stand inside of longer ones.
    beginnings: [Beginnings; 2],
    patterns: Vec<Pattern>,
}

impl Table {
    /// `None` if there is no memory for it. Each word has two bytes or more.
    fn new(rows: impl Iterator<Item = Row>) -> Option<Self> {
        let new = |row| Pattern { row, before: OnceLock::new(), rest: OnceLock::new() };
        let patterns: Vec<Pattern> = rows.map(new).collect();
        let numbered = patterns.iter().enumerate();
        let words = numbered.flat_map(|(number, Pattern { row, .. })| {
            row.words.iter().map(|word| plain(word).into_owned()).map(move |word| (word, number))
        });
        let words: Vec<(String, usize)> = words.collect();
        let inside = words.iter().filter(|(_, number)| {
            let pattern = patterns.get(*number);
            pattern.is_some_and(|pattern| pattern.row.inside)
        });
        Some(Self {
            beginnings: [Beginnings::of(words.iter()), Beginnings::of(inside)],
            automaton: contiguous::Builder::new()
                .ascii_case_insensitive(true)
                .build(words.iter().map(|(word, _)| word))
                .ok()?,
            words,
            patterns,
        })
    }

    fn find(&self, text: &str) -> Vec<Found> {
        let bytes = text.as_bytes();
        let mut all = Vec::new();
        // A pattern is not looked for inside of itself.
        let mut ends = Vec::new();
        let [every, inside] = &self.beginnings;
        let mut key = 0;
        for (third, next) in bytes.iter().enumerate() {
            key = beginning(key, *next);
            // Something follows every word that matters, so the last two positions do not count.
            let Some(at) = third.checked_sub(2).filter(|_| every.contains(key)) else {
                continue;
            };
            let first = bytes.get(at).copied().unwrap_or_default();
            let before = at.checked_sub(1).and_then(|last| bytes.get(last));
            let is_within =
                first.is_ascii_alphanumeric() && before.is_some_and(u8::is_ascii_alphanumeric);
            let may_begin = !is_within || follows_percent(bytes, at);
            if may_begin || inside.contains(key) {
                self.find_at(text, at, may_begin, &mut ends, &mut all);
            }
        }
        all
    }

    /// Adds the patterns whose words are at a position.
    fn find_at(
        &self,
        text: &str,
        start: usize,
        begins_word: bool,
        ends: &mut Vec<usize>,
        all: &mut Vec<Found>,
    ) {
        ends.resize(self.patterns.len(), 0);
        let after = text.as_bytes().get(start..).unwrap_or_default();
        let Ok(mut state) = self.automaton.start_state(Anchored::Yes) else {
            return;
        };
        for (length, byte) in (1..).zip(after) {
            state = self.automaton.next_state(Anchored::Yes, state, *byte);
            if self.automaton.is_dead(state) {
                return;
            }
            if !self.automaton.is_match(state) {
                continue;
            }
            for number in 0..self.automaton.match_len(state) {
                let word = self.automaton.match_pattern(state, number);
                // A shorter one began later.
                let word = self.words.get(word.as_usize());
                let Some((word, row)) = word.filter(|(word, _)| word.len() == length) else {
                    continue;
                };
                let (Some(pattern), Some(end)) = (self.patterns.get(*row), ends.get_mut(*row))
                else {
                    continue;
                };
                let Row { kind, inside, ignores_case, .. } = pattern.row;
                let is_here = (begins_word || inside)
                    && (ignores_case || after.starts_with(word.as_bytes()))
                    && start >= *end;
                let rest = start + length;
                if is_here && let Some(found) = pattern.end(text, start, rest) {
                    *end = found;
                    all.push(Found { kind, start, rest, end: found });
                }
            }
        }
    }
}

impl Pattern {
    /// Where it ends, if it is at its words, which are between two positions.
    fn end(&self, text: &str, start: usize, rest: usize) -> Option<usize> {
        let flags = if self.row.ignores_case { "(?i)" } else { "" };
        let bytes = text.as_bytes();
        let after = bytes.get(rest..bytes.len().min(rest + AFTER))?;
        let regex =
            self.rest.get_or_init(|| byte_pattern(&format!("{flags}^(?:{})", self.row.rest)));
        let end = rest + regex.as_ref()?.find(after)?.end();
        let end = text.floor_char_boundary(end);
        let Some(before) = &self.row.before else {
            return Some(end);
        };
        let regex = self.before.get_or_init(|| byte_pattern(&format!("{flags}(?:{before})$")));
        let before = bytes.get(start.saturating_sub(BEFORE)..start)?;
        regex.as_ref()?.is_match(before).then_some(end)
    }
}

/// Whether a position follows `%20` or the like, after which a word can begin.
fn follows_percent(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(3).and_then(|from| bytes.get(from..at));
    matches!(before, Some([b'%', digits @ ..]) if digits.iter().all(u8::is_ascii_hexdigit))
}
