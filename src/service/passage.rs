//! The part of a long text that an answer shows if it has no room for all of it: the sentences that
//! contain most of the question, with what surrounds them.

use std::collections::HashMap;
use std::ops::Range;

use ack_search::encoder::Encoder;
use ack_search::lexical::Matcher;
use ack_search::semantic::QuantizedVector;

/// Maximum bytes of a text that are compared with a question.
const MAX_READ_BYTES: usize = 256 << 10;
/// Maximum sentences whose meaning is compared with a question.
const MAX_ENCODED: usize = 400;
/// A token of ordinary text has fewer bytes.
const MAX_TOKEN_BYTES: usize = 16;
/// The units of a weight.
const UNITS: f32 = 64.0;

/// A question, for weighing a text's sentences.
#[derive(Default)]
pub struct Question<'a> {
    /// Its words.
    pub matcher: Option<Matcher<'a>>,
    /// Its meaning.
    pub vector: Option<&'a QuantizedVector>,
}

impl Question<'_> {
    /// How much of it a text contains.
    pub fn weight(&mut self, text: &str) -> f32 {
        let Some(matcher) = &mut self.matcher else {
            return 0.0;
        };
        let words = matcher.matching_words(text).into_iter();
        words.map(|(weight, _)| weight).sum()
    }

    /// How near a text is in meaning.
    fn nearness(&self, text: &str) -> Option<f32> {
        let vector = Encoder::embedded()?.query(text)?;
        Some(QuantizedVector::quantize(&vector)?.nearness(self.vector?))
    }
}

/// A part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passage {
    /// What is shown, with an ellipsis for each end that is left out.
    pub text: String,
    /// How many characters of the text it contains.
    pub shown: usize,
}

/// What a text may take.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    /// The cost of a text.
    pub cost: &'a dyn Fn(&str) -> usize,
    /// How much it may cost.
    pub max: usize,
}

/// A sentence, or a part of a very long one.
struct Unit {
    range: Range<usize>,
    cost: usize,
    /// The words of the question in it, by their numbers.
    words: Vec<usize>,
}

/// The part of a text that fits into a room: whole sentences, around the one that contains most of
/// the question; without a question, from the beginning. What remains of the room is filled with a
/// part of the next sentence. `None` if there is no room for a word.
pub fn passage(text: &str, room: Room<'_>, question: &mut Question<'_>) -> Option<Passage> {
    if (room.cost)(text) <= room.max {
        return Some(Passage {
            text: text.to_owned(),
            shown: text.chars().count(),
        });
    }
    let max = room.max.checked_sub((room.cost)("…\n\n…"))?;
    let read = text.get(..text.floor_char_boundary(MAX_READ_BYTES))?;
    let mut weights = Vec::new();
    let mut units = units(read, Room { max, ..room });
    weigh(&mut units, read, question, &mut weights);
    let best = best_unit(&units, read, question, &weights);
    let window = choose(&units, best, &weights, max)?;
    let start = units.get(window.start)?.range.start;
    let mut end = units.get(window.end.checked_sub(1)?)?.range.end;
    let mut used = (room.cost)(text.get(start..end)?);
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
        end += prefix_within(text.get(end..)?, left, room.cost);
    }
    Some(rendered(text, start..end)).filter(|passage| passage.shown > 0)
}

/// A part of a text with ellipses.
fn rendered(text: &str, range: Range<usize>) -> Passage {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let part = text.get(range).unwrap_or_default();
    let ends_line = part.ends_with('\n') || after.starts_with('\n');
    let part = part.trim();
    let mut shown = String::with_capacity(part.len() + 8);
    if !before.trim().is_empty() {
        shown.push_str(if before.ends_with('\n') {
            "…\n"
        } else {
            "… "
        });
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
    Passage {
        text: shown,
        shown: part.chars().count(),
    }
}

/// Splits a text into its sentences, and those that take more than half of the room further.
fn units(text: &str, room: Room<'_>) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut start = 0;
    let mut push = |range: Range<usize>| {
        let Some(part) = text.get(range.clone()) else {
            return;
        };
        units.push(Unit {
            cost: (room.cost)(part),
            range,
            words: Vec::new(),
        });
    };
    for sentence in sentences(text) {
        let end = start + sentence.len();
        let cost = (room.cost)(sentence);
        if cost <= room.max / 2 {
            push(start..end);
        } else {
            let max_bytes = (sentence.len() * room.max / cost / 16).max(8);
            while start < end {
                let rest = text.get(start..end).unwrap_or_default();
                let length = piece_length(rest, max_bytes);
                push(start..start + length);
                start += length;
            }
        }
        start = end;
    }
    units
}

/// The length of the first piece of a text: about so many bytes, and whole words if they are not
/// much longer.
fn piece_length(text: &str, bytes: usize) -> usize {
    let end = text.ceil_char_boundary(bytes);
    let rest = text.get(end..).unwrap_or_default();
    match rest.find(char::is_whitespace) {
        Some(more) if more <= 2 * bytes => end + more + 1,
        None if rest.len() <= 2 * bytes => text.len(),
        _ => end,
    }
    .min(text.len())
    .max(1)
}

/// The sentences of a text, with the white space after them. A sentence ends with a line, or with
/// punctuation.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (sentence, after) = rest.split_at(sentence_end(rest));
            rest = after;
            Some(sentence)
        })
    })
}

/// The end of the first sentence of a line, with the space after it.
fn sentence_end(line: &str) -> usize {
    let mut before = '\0';
    for (at, c) in line.char_indices() {
        if matches!(c, '。' | '！' | '？') || (c == ' ' && matches!(before, '.' | '!' | '?')) {
            return at + c.len_utf8();
        }
        before = c;
    }
    line.len()
}

/// Notes which words of the question each unit contains. `weights` are those of the words.
fn weigh(units: &mut [Unit], text: &str, question: &mut Question<'_>, weights: &mut Vec<i64>) {
    let Some(matcher) = &mut question.matcher else {
        return;
    };
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for unit in units {
        let part = text.get(unit.range.clone()).unwrap_or_default();
        for (weight, word) in matcher.matching_words(part) {
            let new = numbers.len();
            let number = *numbers.entry(word.into_owned()).or_insert(new);
            if number == new {
                #[expect(clippy::cast_possible_truncation, reason = "a small weight")]
                weights.push((weight * UNITS) as i64);
            }
            unit.words.push(number);
        }
    }
}

/// The unit that contains most of the question; if none contains a word of it, the nearest in
/// meaning. `None` without a question.
fn best_unit(
    units: &[Unit],
    text: &str,
    question: &Question<'_>,
    weights: &[i64],
) -> Option<usize> {
    let weight = |unit: &Unit| {
        let words = unit.words.iter().filter_map(|word| weights.get(*word));
        words.sum::<i64>()
    };
    let weighed = units.iter().map(weight).enumerate();
    let heaviest = weighed.rev().max_by_key(|(_, weight)| *weight)?;
    if heaviest.1 > 0 {
        return Some(heaviest.0);
    }
    question.vector?;
    let near = units.iter().take(MAX_ENCODED).enumerate();
    let near = near.filter_map(|(number, unit)| {
        let nearness = question.nearness(text.get(unit.range.clone())?)?;
        Some((number, nearness))
    });
    near.max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(number, _)| number)
}

/// The units to show: as many as fit, with the best one, and among these ranges the one that
/// contains most of the question. A third of the rest is before the best one, if there is as much.
fn choose(
    units: &[Unit],
    best: Option<usize>,
    weights: &[i64],
    max: usize,
) -> Option<Range<usize>> {
    let cost = |unit: usize| units.get(unit).map_or(0, |unit| unit.cost);
    let middle = best.unwrap_or_default();
    let (mut start, mut end) = (middle, middle);
    let mut used = 0;
    let mut counts = vec![0usize; weights.len()];
    let mut held = 0;
    let mut count = |unit: usize, adds: bool, held: &mut i64| {
        for word in units.get(unit).into_iter().flat_map(|unit| &unit.words) {
            let (Some(count), Some(weight)) = (counts.get_mut(*word), weights.get(*word)) else {
                continue;
            };
            if adds {
                *held += if *count == 0 { *weight } else { 0 };
                *count += 1;
            } else {
                *count = count.saturating_sub(1);
                *held -= if *count == 0 { *weight } else { 0 };
            }
        }
    };
    while end < units.len() && (end == middle || used + cost(end) <= max) {
        used += cost(end);
        count(end, true, &mut held);
        end += 1;
    }
    if best.is_none() {
        return (end > start).then_some(start..end);
    }
    let wanted = max.saturating_sub(cost(middle)) / 3;
    let mut before: usize = 0;
    let mut chosen = None;
    loop {
        let is_cut = if start > 0 { max / 6 } else { 0 };
        let price = before.abs_diff(wanted) + 2 * max.saturating_sub(used) + is_cut;
        let rank = (held, std::cmp::Reverse(price));
        if chosen.as_ref().is_none_or(|(best, _)| rank > *best) {
            chosen = Some((rank, start..end));
        }
        let Some(next) = start.checked_sub(1) else {
            break;
        };
        if before + cost(next) + cost(middle) > max {
            break;
        }
        start = next;
        before += cost(start);
        used += cost(start);
        count(start, true, &mut held);
        while used > max && end > middle + 1 {
            end -= 1;
            used -= cost(end);
            count(end, false, &mut held);
        }
    }
    chosen.map(|(_, range)| range)
}

/// The length of the longest prefix of whole words that fits.
fn prefix_within(text: &str, max: usize, cost: &dyn Fn(&str) -> usize) -> usize {
    let read = text.get(..text.floor_char_boundary(max.saturating_mul(MAX_TOKEN_BYTES)));
    let ends = read.unwrap_or_default().match_indices(char::is_whitespace);
    let ends: Vec<usize> = ends.map(|(at, _)| at).collect();
    let fits = |end: &usize| text.get(..*end).is_some_and(|part| cost(part) <= max);
    let count = ends.partition_point(fits);
    let last = count.checked_sub(1).and_then(|last| ends.get(last));
    last.copied().unwrap_or_default()
}
