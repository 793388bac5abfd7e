//! The sentences of a text, with the words, numbers and negations of each.

use std::collections::BTreeSet;

use ack_search::analysis::stems::stem;
use ack_search::analysis::{self, TextRole};
use unicode_normalization::UnicodeNormalization;

use crate::negation;
use crate::quantity::{self, Quantity};

const NEGATION_REACH: usize = 3;
const ENDED_REACH: usize = 2;
/// Words that say nothing about a subject, besides the stop words of the search.
const FILLERS: [&str; 5] = ["already", "currently", "here", "now", "still"];

/// A sentence, a title or an item of a list.
#[derive(Debug, Clone)]
pub struct Sentence {
    pub text: String,
    /// The stems of its words, each once. Numbers, negations and stop words are not among them.
    pub words: BTreeSet<String>,
    pub numbers: Vec<Quantity>,
    pub is_negative: bool,
    /// The words that it denies and does not repeat elsewhere.
    pub denied: BTreeSet<String>,
    pub ended: BTreeSet<String>,
}

impl Sentence {
    pub fn read(text: &str) -> Self {
        let mut reader = Reader::default();
        let plain: String = text.nfkc().flat_map(char::to_lowercase).collect();
        let plain = plain
            .replace(['‘', '’'], "'")
            .replace("rather than", "not")
            .replace("instead of", "not");
        for chunk in plain.split(|c: char| c.is_whitespace() || "()[]{}\"“”„«»`|=".contains(c))
        {
            reader.chunk(chunk);
        }
        reader.finish(text)
    }
}

/// The share of common words, from 0 to 1 (Dice coefficient).
#[expect(clippy::cast_precision_loss, reason = "counts of words")]
pub fn dice(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f32 {
    let all = one.len() + other.len();
    let common = one.intersection(other).count();
    if all == 0 { 0.0 } else { 2.0 * common as f32 / all as f32 }
}

#[derive(Default)]
struct Reader {
    words: Vec<String>,
    numbers: Vec<Quantity>,
    /// The positions of the words that follow a negation.
    negations: Vec<usize>,
    clauses: Vec<usize>,
    ended: BTreeSet<String>,
    ended_from: Option<usize>,
    previous: String,
}

impl Reader {
    fn chunk(&mut self, chunk: &str) {
        let word = chunk.trim_matches(|c: char| ".,;:!?*'".contains(c));
        if !word.is_empty() {
            self.word(word);
        }
        if chunk.ends_with([',', ';', ':']) {
            self.clauses.push(self.words.len());
        }
    }

    fn word(&mut self, word: &str) {
        let previous = std::mem::replace(&mut self.previous, word.to_owned());
        // `alpine:3.19` and `localhost:8080` are a name and a number.
        let pair =
            word.split_once([':', '@']).filter(|(name, _)| name.contains(char::is_alphabetic));
        if let Some((name, number)) =
            pair.and_then(|(name, number)| Some((name, quantity::parse(number)?)))
        {
            self.word(name);
            self.numbers.push(number);
        } else if word == "longer" && previous == "no" {
            self.ended_from = Some(self.words.len());
        } else if negation::denies(word) {
            self.negations.push(self.words.len());
        } else if negation::says_gone(&previous, word) {
            let clause = self.clauses.last().copied().unwrap_or_default();
            self.ended.extend(self.words.iter().skip(clause).cloned());
        } else if let Some(number) = quantity::parse(word).or_else(|| quantity::in_words(word)) {
            self.numbers.push(number);
        } else if !self.is_unit(word, &previous) {
            self.text(word);
        }
    }

    fn is_unit(&mut self, word: &str, previous: &str) -> bool {
        let follows = previous.starts_with(|c: char| c.is_ascii_digit())
            || quantity::in_words(previous).is_some();
        follows && self.numbers.last_mut().is_some_and(|number| number.with_unit(word))
    }

    fn text(&mut self, word: &str) {
        if let Some(run) = word.find(is_unspaced) {
            return self.unspaced(word, run);
        }
        let is_plain = |part: &str| part.chars().all(char::is_alphabetic);
        let is_hyphenated = word.split('-').all(|part| !part.is_empty() && is_plain(part));
        let parts = word.split(|c: char| is_hyphenated && c == '-');
        for part in parts.filter(|part| !part.is_empty()) {
            if negation::denies(part) {
                self.negations.push(self.words.len());
            } else if is_plain(part) {
                if !analysis::is_stop_word(part) && !FILLERS.contains(&part) {
                    self.words.push(stem(negation::without_ending(part)).into_owned());
                }
            } else {
                self.words.push(part.to_owned());
            }
        }
    }

    /// Text in a script without spaces between words: pairs of characters, as the search has them.
    /// Those with hiragana are endings and particles.
    fn unspaced(&mut self, word: &str, run: usize) {
        let (before, rest) = word.split_at_checked(run).unwrap_or(("", word));
        if !before.is_empty() {
            self.word(before);
        }
        let end = rest.find(|c| !is_unspaced(c)).unwrap_or(rest.len());
        let (text, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        for (part, denies) in negation::parts(text) {
            if denies {
                self.negations.push(self.words.len());
                continue;
            }
            analysis::tokenize(part, TextRole::Document, &mut |token| {
                if !token.text.contains(|c| matches!(c, '\u{3040}'..='\u{309f}')) {
                    self.words.push(token.text.into_owned());
                }
            });
        }
        if !after.is_empty() {
            self.word(after);
        }
    }

    fn finish(self, text: &str) -> Sentence {
        let clause_end = |at: usize| {
            let next = self.clauses.iter().copied().find(|clause| *clause > at);
            next.unwrap_or(self.words.len()).min(self.words.len())
        };
        let clause_start = |at: usize| {
            self.clauses.iter().copied().filter(|clause| *clause <= at).max().unwrap_or_default()
        };
        let mut denied = BTreeSet::new();
        for at in self.negations.iter().copied() {
            let end = clause_end(at).min(at + NEGATION_REACH);
            let start = clause_start(at).max(at.saturating_sub(NEGATION_REACH));
            // `X wird nicht verwendet`, but `X geht nicht`
            let reached = match self.words.get(at..end) {
                Some(following) if !following.is_empty() => following,
                _ => self.words.get(start..at).unwrap_or_default(),
            };
            denied.extend(reached.iter().cloned());
        }
        denied.retain(|word| self.words.iter().filter(|known| *known == word).count() == 1);
        let mut ended = self.ended;
        if let Some(at) = self.ended_from {
            let end = clause_end(at).min(at + ENDED_REACH);
            ended.extend(self.words.get(at..end).unwrap_or_default().iter().cloned());
        }
        Sentence {
            text: text.to_owned(),
            is_negative: !self.negations.is_empty(),
            words: self.words.into_iter().collect(),
            numbers: self.numbers,
            denied,
            ended,
        }
    }
}

const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || matches!(c, '\u{3005}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
}

/// The sentences of a text that claim something: without code, tables and questions.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut in_code = false;
    let mut paragraph: Option<std::ops::Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        in_code ^= is_fence;
        let is_skipped = in_code || is_fence || trimmed.starts_with(['|', '$', '<']);
        let begins = trimmed.starts_with(['-', '*', '#', '>', '•'])
            || trimmed.starts_with(|c: char| c.is_ascii_digit());
        if trimmed.is_empty() || is_skipped || begins {
            split(paragraph.take().and_then(|range| text.get(range)), &mut sentences);
        }
        if !trimmed.is_empty() && !is_skipped {
            let from = paragraph.take().map_or(start, |range| range.start);
            paragraph = Some(from..at);
        }
    }
    split(paragraph.and_then(|range| text.get(range)), &mut sentences);
    sentences.retain(|sentence| !sentence.is_empty() && !sentence.ends_with(['?', '？']));
    sentences
}

fn split<'a>(paragraph: Option<&'a str>, sentences: &mut Vec<&'a str>) {
    let Some(paragraph) = paragraph else {
        return;
    };
    let mut start = 0;
    for (at, c) in paragraph.char_indices() {
        let rest = paragraph.get(at + c.len_utf8()..).unwrap_or_default();
        let next = rest.trim_start();
        let ends = match c {
            '.' | '!' | '?' => next.len() < rest.len() && !next.starts_with(char::is_lowercase),
            ';' => next.len() < rest.len(),
            '。' | '！' | '？' => true,
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            sentences.extend(paragraph.get(start..end).map(unmarked));
            start = end;
        }
    }
    sentences.extend(paragraph.get(start..).map(unmarked));
}

/// A sentence without space, and without the mark of its line.
fn unmarked(sentence: &str) -> &str {
    let trimmed = sentence.trim();
    let item = trimmed.trim_start_matches(['-', '*', '#', '>', '•']);
    if item.starts_with(' ') { item.trim_start() } else { trimmed }
}
