//! The excerpt of a memory that has only a title and a long text: the sentence that matches the
//! question best.

use ack_api::memory::Memory;
use ack_api::text;
use ack_search::lexical::Matcher;

/// Maximum characters of an excerpt.
const MAX_EXCERPT_CHARS: usize = 160;
/// Maximum bytes of a text that are searched.
const MAX_READ_BYTES: usize = 20_000;

/// The sentence of the long text with the highest weight of query words, or the first of equals;
/// without a query, the first sentence. `None` if the memory has a subtitle or facts, which are
/// shorter, or has no sentence other than its title.
pub fn of(memory: &Memory, matcher: Option<&mut Matcher<'_>>) -> Option<String> {
    if memory.subtitle.is_some() || !memory.facts.is_empty() {
        return None;
    }
    let narrative = memory.narrative.as_deref()?;
    let read = narrative.get(..narrative.floor_char_boundary(MAX_READ_BYTES))?;
    let title = trim_punctuation(&memory.title);
    let mut all = sentences(read).filter(|sentence| {
        sentence.chars().any(char::is_alphanumeric) && trim_punctuation(sentence) != title
    });
    let best = match matcher {
        None => all.next(),
        Some(matcher) => {
            let mut best: Option<(f32, &str)> = None;
            for sentence in all {
                let weight = matcher
                    .matching_words(sentence)
                    .iter()
                    .map(|(weight, _)| weight)
                    .sum();
                if best.is_none_or(|(best_weight, _)| weight > best_weight) {
                    best = Some((weight, sentence));
                }
            }
            best.map(|(_, sentence)| sentence)
        }
    };
    best.map(|sentence| text::line(sentence, MAX_EXCERPT_CHARS))
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
