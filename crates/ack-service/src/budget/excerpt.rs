//! What a short result shows of a memory's text: the facts that match the question, or the sentence
//! of the long text that matches it better.

use std::collections::HashSet;

use ack_api::memory::Memory;
use ack_api::{MemoryHit, text};

use super::passage::Question;
use super::sentences;
use crate::answer;

const MAX_EXCERPT_CHARS: usize = 160;
const EMPHASIS: &str = "**";
/// How many words stand beside a link of which they only say what it is: `see also`.
const MAX_WORDS_OF_LINK: usize = 2;
/// A line of this length may end because there was no more room in it.
const MIN_WRAPPED_BYTES: usize = 60;
/// Maximum bytes of a long text, and of the facts, that are compared with the question.
const MAX_READ_BYTES: usize = 20_000;
/// The same for all results of a page: about a millisecond.
pub const MAX_PAGE_BYTES: usize = 120_000;

/// How much of the question a text has, without the title's words; 0 if it is too much to read.
fn weigh(question: &mut Question<'_>, text: &str, in_title: &HashSet<String>) -> f32 {
    let Some(matcher) = question.matcher.as_mut().filter(|_| text.len() <= question.left) else {
        return 0.0;
    };
    question.left -= text.len();
    let words = matcher.matching_words(text).into_iter();
    let new = words.filter(|(_, word)| !in_title.contains(&word.to_lowercase()));
    new.map(|(weight, _)| weight).sum()
}

/// Chooses the facts and the excerpt of a short result. Facts that contain more of the question
/// come first. The sentence of the long text that contains most of it is shown if the subtitle and
/// the facts contain less, or if there are none: to agents (`by_agent`) in their place. Words of
/// the title, which is shown anyway, do not count. Without a question, everything stays in order.
pub fn select(hit: &mut MemoryHit, memory: &Memory, question: &mut Question<'_>, by_agent: bool) {
    let has_lines = memory.subtitle.is_some() || !memory.facts.is_empty();
    let Some(matcher) = &mut question.matcher else {
        if !has_lines {
            hit.excerpt = sentences_of(memory).next().map(cut);
        }
        return;
    };
    let in_title = matcher.matching_words(&memory.title).into_iter();
    let in_title: HashSet<String> = in_title.map(|(_, word)| word.to_lowercase()).collect();
    let mut left = MAX_READ_BYTES;
    let mut weigh_line = |text: &str| {
        let is_read = text.len() <= left;
        left -= if is_read { text.len() } else { 0 };
        if is_read { weigh(question, text, &in_title) } else { 0.0 }
    };
    let subtitle = memory.subtitle.as_deref().map(&mut weigh_line);
    let weighed = memory.facts.iter().map(|fact| (weigh_line(fact), fact));
    let mut facts: Vec<(f32, &String)> = weighed.collect();
    facts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best_line = facts.iter().map(|(weight, _)| *weight).chain(subtitle).fold(0.0, f32::max);
    let mut best: Option<(f32, &str)> = None;
    for sentence in sentences_of(memory) {
        let weight = weigh(question, sentence, &in_title);
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

/// A sentence in one line. The marks of emphasis go if the partner of one of them is cut off.
fn cut(sentence: &str) -> String {
    let line = text::line(sentence, MAX_EXCERPT_CHARS);
    if line.matches(EMPHASIS).count().is_multiple_of(2) { line } else { line.replace(EMPHASIS, "") }
}

/// Sentences that say something: they do not repeat the title, and are more than a link.
fn sentences_of(memory: &Memory) -> impl Iterator<Item = &str> {
    let narrative = memory.narrative.as_deref().unwrap_or_default();
    let (read, _) = narrative.split_at(narrative.floor_char_boundary(MAX_READ_BYTES));
    let title = trim_punctuation(&memory.title);
    paragraphs(read).flat_map(sentences).map(str::trim).filter(move |sentence| {
        sentence.chars().any(char::is_alphanumeric)
            && trim_punctuation(sentence) != title
            && !is_lone_link(sentence)
    })
}

/// Whether a sentence has a link and hardly a word besides it.
fn is_lone_link(sentence: &str) -> bool {
    let mut rest = String::with_capacity(sentence.len());
    let (mut has_link, mut is_name) = (false, false);
    for part in sentence.split('[') {
        let after = match part.split_once(']') {
            Some((_, after)) if is_name => after.strip_prefix(']'),
            Some((_, after)) => after.strip_prefix('(').and_then(|it| Some(it.split_once(')')?.1)),
            None => None,
        };
        has_link |= after.is_some();
        rest.push_str(after.unwrap_or(part));
        // Between the brackets of `[[name]]` is nothing.
        is_name = part.is_empty();
    }
    let (addresses, words): (Vec<&str>, Vec<&str>) =
        rest.split_whitespace().partition(|word| word.contains("://"));
    let words = words.iter().filter(|word| word.contains(char::is_alphanumeric));
    (has_link || !addresses.is_empty()) && words.count() <= MAX_WORDS_OF_LINK
}

/// Paragraphs and entries of lists, without their marks. A wrapped line does not end one.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut lines = rest.split_inclusive('\n');
        let mut last = lines.next()?;
        let mut length = last.len();
        for line in lines {
            if !goes_on(last, line) {
                break;
            }
            length += line.len();
            last = line;
        }
        let (paragraph, after) = rest.split_at(length);
        rest = after;
        Some(paragraph.trim())
    })
    .filter(|paragraph| !paragraph.starts_with('#') && !paragraph.starts_with("```"))
    .map(without_mark)
}

/// Whether a sentence of a line goes on in the next one, as in a text with lines of equal length.
fn goes_on(line: &str, next: &str) -> bool {
    let (line, next) = (line.trim(), next.trim());
    let ends = line.is_empty() || line.ends_with(['.', '!', '?', ':', ';', '|', '。']);
    let begins = without_mark(next).len() < next.len() || next.starts_with(['#', '`', '|', '=']);
    let is_wrapped = line.len() >= MIN_WRAPPED_BYTES || next.starts_with(char::is_lowercase);
    let is_prose = !line.starts_with(['#', '`']);
    !ends && !next.is_empty() && !begins && is_wrapped && is_prose
}

/// A line without what marks an entry of a list or a quotation.
fn without_mark(line: &str) -> &str {
    let mut rest = line;
    loop {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after = rest
            .strip_prefix(['-', '*', '+', '>', '•'])
            .or_else(|| rest.strip_prefix("[ ]"))
            .or_else(|| rest.strip_prefix("[x]"))
            .or_else(|| number.strip_prefix(['.', ')']).filter(|_| number.len() < rest.len()));
        match after.filter(|after| after.is_empty() || after.starts_with(' ')) {
            Some(after) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

fn trim_punctuation(text: &str) -> String {
    text.trim_matches(|char: char| !char.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let memory = Memory {
            title: "Title".to_owned(),
            narrative: Some(text.to_owned()),
            ..Memory::default()
        };
        let found: Vec<String> = sentences_of(&memory).map(cut).collect();
        assert_eq!(found.join(" | "), expected, "{text}");
    }

    #[test]
    fn an_excerpt_begins_with_a_sentence() {
        check(
            "We round half to even, and the\nremainder goes to the first line. The rest is\n\
             split. Done",
            "We round half to even, and the remainder goes to the first line. | The rest is split. \
             | Done",
        );
        check(
            "Cause: a lock\nFix: take it first\n- one\n- two, which\n  goes on\n1. three\n2) four\n> five",
            "Cause: a lock | Fix: take it first | one | two, which goes on | three | four | five",
        );
        check(
            "Use a queue, e.g. Redis or NATS, i.e. one that keeps messages. It is there.",
            "Use a queue, e.g. Redis or NATS, i.e. one that keeps messages. | It is there.",
        );
    }

    #[test]
    fn an_excerpt_is_not_inside_emphasis() {
        check(
            "**Why:** it is slow. **Never retry. Always wait** for it (**really.**) Yes.",
            "**Why:** it is slow. | Never retry. | Always wait for it (really.) | Yes.",
        );
        let long = format!("**{}** end", "word ".repeat(60));
        assert!(!cut(&long).contains('*'), "{}", cut(&long));
    }

    #[test]
    fn a_lone_link_is_no_excerpt() {
        check(
            "[[old]]\n\nReplaces [[old]].\n\n- See [the guide](a/b.md)\n\nhttps://example.org/x\n\n\
             See also https://example.org/x\n\nTake [the lock](lock.md) before [[x]] runs.",
            "Take [the lock](lock.md) before [[x]] runs.",
        );
        check("The array a[0] is empty.", "The array a[0] is empty.");
        check("Set x[0]", "Set x[0]");
    }
}
