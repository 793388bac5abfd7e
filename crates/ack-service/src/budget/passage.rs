//! The part of a long text that an answer shows if it has no room for all of it: the sentence that
//! contains most of the question, with what surrounds it.

use std::ops::Range;

use super::sentences;
use ack_search::encoder::Encoder;
use ack_search::lexical::Matcher;
use ack_search::semantic::QuantizedVector;

/// Maximum bytes of a text that are compared with a question.
const MAX_READ_BYTES: usize = 256 << 10;
/// Maximum sentences whose meaning is compared with a question.
const MAX_ENCODED: usize = 400;
/// A token of ordinary text has fewer bytes.
const MAX_TOKEN_BYTES: usize = 16;

/// What the texts of a page are compared with.
#[derive(Default)]
pub struct Question<'a> {
    pub matcher: Option<Matcher<'a>>,
    pub vector: Option<&'a QuantizedVector>,
    /// How many bytes may still be read to choose excerpts, so that a page of long memories is fast.
    pub left: usize,
}

impl Question<'_> {
    pub fn weight(&mut self, text: &str) -> f32 {
        let Some(matcher) = &mut self.matcher else {
            return 0.0;
        };
        matcher.matching_words(text).into_iter().map(|(weight, _)| weight).sum()
    }

    fn nearness(&self, text: &str) -> Option<f32> {
        Some(QuantizedVector::quantize(&Encoder::embedded()?.query(text)?)?.nearness(self.vector?))
    }
}

#[derive(Default)]
pub struct Passage {
    /// What is shown, with an ellipsis for each end that is left out.
    pub text: String,
    /// How many characters of the text it contains.
    pub shown: usize,
}

/// What a part of a text takes of the room.
type Cost<'a> = &'a dyn Fn(&str) -> usize;

struct Unit {
    range: Range<usize>,
    cost: usize,
    /// Whether a sentence begins with it.
    begins: bool,
}

/// The part of a text that fits into a room: whole sentences, around the one that contains most of
/// the question; without a question, from the beginning. What remains of the room is filled with a
/// part of the next sentence. `None` if there is no room for a word.
pub fn passage(
    text: &str,
    cost: Cost<'_>,
    room: usize,
    question: &mut Question<'_>,
) -> Option<Passage> {
    if cost(text) <= room {
        return Some(Passage { text: text.to_owned(), shown: text.chars().count() });
    }
    let max = room.checked_sub(cost("…\n\n…"))?;
    let read = text.get(..text.floor_char_boundary(MAX_READ_BYTES))?;
    let units = units(read, cost, max);
    let window = around(&units, best_unit(&units, read, question), max);
    let start = units.get(window.start)?.range.start;
    let mut end = units.get(window.end.checked_sub(1)?)?.range.end;
    let mut used = cost(text.get(start..end)?);
    // The sum of the parts is more than the whole.
    for unit in units.get(window.end..).unwrap_or_default() {
        if used + unit.cost > max {
            break;
        }
        used += unit.cost;
        end = unit.range.end;
    }
    let left = max.saturating_sub(used);
    if left > max / 20 {
        end += prefix_within(text.get(end..)?, left, cost);
    }
    Some(rendered(text, start..end)).filter(|passage| passage.shown > 0)
}

fn rendered(text: &str, range: Range<usize>) -> Passage {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let part = text.get(range).unwrap_or_default();
    let ends_line = part.ends_with('\n') || after.starts_with('\n');
    let part = part.trim();
    let mut shown = String::with_capacity(part.len() + 8);
    if !before.trim().is_empty() {
        shown.push_str(if before.ends_with('\n') { "…\n" } else { "… " });
    }
    // The end of emphasis that begins before the part.
    let paragraph = before.rsplit("\n\n").next().unwrap_or_default();
    let is_inside = paragraph.matches("**").count() % 2 == 1;
    match part.split_once("**").filter(|_| is_inside) {
        Some((inner, rest)) => shown.extend([inner, rest]),
        None => shown.push_str(part),
    }
    if !after.trim().is_empty() {
        shown.push_str(if ends_line { "\n…" } else { " …" });
    }
    Passage { text: shown, shown: part.chars().count() }
}

/// Splits a text into its sentences, and those that take more than half of the room further.
fn units(text: &str, cost: Cost<'_>, room: usize) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut start = 0;
    for sentence in text.split_inclusive('\n').flat_map(sentences) {
        let whole = cost(sentence);
        let piece = if whole <= room / 2 {
            sentence.len()
        } else {
            (sentence.len() * room / whole / 16).max(8)
        };
        let end = start + sentence.len();
        while let Some(rest) = text.get(start..end).filter(|rest| !rest.is_empty()) {
            let length = piece_length(rest, piece);
            units.push(Unit {
                cost: cost(rest.get(..length).unwrap_or_default()),
                range: start..start + length,
                begins: rest.len() == sentence.len(),
            });
            start += length;
        }
    }
    units
}

/// The length of the first piece: about so many bytes, and whole words if hardly longer.
fn piece_length(text: &str, bytes: usize) -> usize {
    let end = text.ceil_char_boundary(bytes);
    let near = text.get(end..text.floor_char_boundary(end + 2 * bytes)).unwrap_or_default();
    match near.char_indices().find(|(_, c)| c.is_whitespace()) {
        Some((more, blank)) => end + more + blank.len_utf8(),
        None if text.len() <= end + 2 * bytes => text.len(),
        None => end,
    }
}

/// The unit with most of the question, or the nearest in meaning; without a question, the first.
fn best_unit(units: &[Unit], text: &str, question: &mut Question<'_>) -> usize {
    let mut best = (0, 0.0);
    let texts = || units.iter().filter_map(|unit| text.get(unit.range.clone()));
    for (number, unit) in texts().enumerate() {
        let weight = question.weight(unit);
        if weight > best.1 {
            best = (number, weight);
        }
    }
    if best.1 > 0.0 || question.vector.is_none() {
        return best.0;
    }
    let near = texts().take(MAX_ENCODED).enumerate();
    let near = near.filter_map(|(number, unit)| Some((number, question.nearness(unit)?)));
    near.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(0, |(number, _)| number)
}

/// The units around one that fit with it, from the beginning of a sentence if there is one. A third
/// of the room is for what is before it. What one side does not need, the other takes.
fn around(units: &[Unit], best: usize, max: usize) -> Range<usize> {
    let cost = |unit: usize| units.get(unit).map_or(usize::MAX, |unit| unit.cost);
    let (mut start, mut end) = (best, best + 1);
    let mut left = max.saturating_sub(cost(best));
    for share in [3, 1] {
        let after = left - left / share;
        while start > 0 && cost(start - 1) <= left.saturating_sub(after) {
            start -= 1;
            left -= cost(start);
        }
        while cost(end) <= left {
            left -= cost(end);
            end += 1;
        }
    }
    let begins = |unit: &usize| units.get(*unit).is_some_and(|unit| unit.begins);
    (start..=best).find(begins).unwrap_or(start)..end.min(units.len())
}

fn prefix_within(text: &str, max: usize, cost: Cost<'_>) -> usize {
    let read = text.get(..text.floor_char_boundary(max.saturating_mul(MAX_TOKEN_BYTES)));
    let ends = read.unwrap_or_default().match_indices(char::is_whitespace);
    let mut ends: Vec<usize> = ends.map(|(at, _)| at).collect();
    let fits = |end: &usize| text.get(..*end).is_some_and(|part| cost(part) <= max);
    ends.truncate(ends.partition_point(fits));
    ends.pop().unwrap_or_default()
}
