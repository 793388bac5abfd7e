//! What a short result shows of a memory's text: the facts that match the question, or the sentence
//! of the long text that matches it better.

use std::collections::HashSet;

use ack_api::MemoryHit;
use ack_api::memory::Memory;
use ack_api::text;
use ack_search::bm25::Bm25Weights;
use ack_search::lexical::Matcher;

use super::answer;

/// Maximum characters of an excerpt.
const MAX_EXCERPT_CHARS: usize = 160;
/// Maximum bytes of a long text, and of the facts, that are compared with the question.
const MAX_READ_BYTES: usize = 20_000;
/// The same for all results of a page: about a millisecond.
const MAX_PAGE_BYTES: usize = 120_000;

/// Reads the texts of a page's results. How much it compares with the question is limited, so that
/// a page of very long memories is not slow.
pub struct Reader<'a> {
    /// The words of the question.
    pub matcher: Option<Matcher<'a>>,
    /// The bytes that it may still compare.
    left: usize,
}

impl<'a> Reader<'a> {
    /// A reader for a page; without a question, everything stays in order.
    pub fn new(bm25: Option<&'a Bm25Weights>) -> Self {
        Self {
            matcher: bm25.map(Matcher::new),
            left: MAX_PAGE_BYTES,
        }
    }

    /// How much of the question a text contains, without the words of the title. A text that is too
    /// much to read contains nothing.
    fn weigh(&mut self, text: &str, in_title: &HashSet<String>) -> f32 {
        let Some(matcher) = self.matcher.as_mut().filter(|_| text.len() <= self.left) else {
            return 0.0;
        };
        self.left -= text.len();
        let words = matcher.matching_words(text).into_iter();
        let new = words.filter(|(_, word)| !in_title.contains(&word.to_lowercase()));
        new.map(|(weight, _)| weight).sum::<f32>()
    }

    /// The words of the question in a title.
    fn title_words(&mut self, title: &str) -> HashSet<String> {
        let words = self.matcher.as_mut();
        let words = words.map_or_else(Vec::new, |matcher| matcher.matching_words(title));
        words
            .into_iter()
            .map(|(_, word)| word.to_lowercase())
            .collect()
    }
}

/// Chooses the facts and the excerpt of a short result. Facts that contain more of the question come
/// first. The sentence of the long text that contains most of it is shown if the subtitle and the
/// facts contain less, or if there are none: to agents (`by_agent`) in their place. Words of the
/// title, which is shown anyway, do not count. Without a question, everything stays in order.
pub fn select(hit: &mut MemoryHit, memory: &Memory, reader: &mut Reader<'_>, by_agent: bool) {
    let has_lines = memory.subtitle.is_some() || !memory.facts.is_empty();
    if reader.matcher.is_none() {
        if !has_lines {
            hit.excerpt = sentences_of(memory).next().map(cut);
        }
        return;
    }
    let in_title = reader.title_words(&memory.title);
    let mut left = MAX_READ_BYTES;
    let mut weigh = |text: &str| {
        let is_read = text.len() <= left;
        left -= if is_read { text.len() } else { 0 };
        if is_read {
            reader.weigh(text, &in_title)
        } else {
            0.0
        }
    };
    let subtitle = memory.subtitle.as_deref().map(&mut weigh);
    let mut facts: Vec<(f32, &String)> = memory.facts.iter().map(|it| (weigh(it), it)).collect();
    facts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let lines = facts.iter().map(|(weight, _)| *weight);
    let best_line = lines.chain(subtitle).fold(0.0, f32::max);
    let mut best: Option<(f32, &str)> = None;
    for sentence in sentences_of(memory) {
        let weight = reader.weigh(sentence, &in_title);
        if best.is_none_or(|(best_weight, _)| weight > best_weight) {
            best = Some((weight, sentence));
        }
    }
    let best = best.filter(|(weight, _)| !has_lines || *weight > best_line);
    hit.excerpt = best.map(|(_, sentence)| cut(sentence));
    if by_agent && hit.excerpt.is_some() {
        hit.subtitle = None;
        hit.facts.clear();
        hit.more_facts = memory.facts.len() as u64;
    } else {
        hit.facts = answer::short_facts(facts.into_iter().map(|(_, fact)| fact));
    }
}

fn cut(sentence: &str) -> String {
    text::line(sentence, MAX_EXCERPT_CHARS)
}

/// The sentences of the long text, without one that repeats the title.
fn sentences_of(memory: &Memory) -> impl Iterator<Item = &str> {
    let narrative = memory.narrative.as_deref().unwrap_or_default();
    let read = narrative.get(..narrative.floor_char_boundary(MAX_READ_BYTES));
    let title = trim_punctuation(&memory.title);
    sentences(read.unwrap_or_default()).filter(move |sentence| {
        sentence.chars().any(char::is_alphanumeric) && trim_punctuation(sentence) != title
    })
}

/// The sentences of a text. A sentence ends with a line, or with punctuation and a space. Headings,
/// rules and code fences are not sentences.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(['#', '`']));
    let parts = lines.flat_map(|line| {
        line.split_inclusive(['。', '！', '？']).flat_map(|part| {
            let mut rest = Some(part);
            std::iter::from_fn(move || {
                let now = rest?;
                let end = first_sentence_end(now);
                rest = end.and_then(|end| now.get(end..));
                end.map_or(Some(now), |end| now.get(..end))
            })
        })
    });
    parts
        .map(|part| part.trim().trim_start_matches(['-', '*', '>', '+']).trim())
        .filter(|part| !part.is_empty())
}

/// The end of the first sentence of a line, if another one follows.
fn first_sentence_end(line: &str) -> Option<usize> {
    let mut blanks = line.match_indices(' ');
    let ended = |at: usize| {
        line.get(..at)
            .is_some_and(|before| before.ends_with(['.', '!', '?']))
    };
    blanks.find(|(at, _)| ended(*at)).map(|(at, _)| at + 1)
}

/// A text without surrounding punctuation, for comparison.
fn trim_punctuation(text: &str) -> String {
    let trimmed = text.trim_matches(|char: char| !char.is_alphanumeric());
    trimmed.to_lowercase()
}
