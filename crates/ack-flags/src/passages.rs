//! Which passages of a text flag it, so that a person sees them where they stand.

use std::ops::Range;

use ack_api::Warning;
use ack_api::text::NAMED;

use super::agent_text::agent_lines;
use super::plain::Plain;
use super::secrets::secret_lines;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub range: Range<usize>,
    pub warning: Warning,
}

/// Finds the lines of a text that flag it.
type FindLines = fn(&Plain<'_>) -> Vec<usize>;

/// The passages that flag a text, in its order; none overlaps another. Hidden characters have been
/// replaced by their names ([`ack_api::text::named`]).
pub fn passages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let plain = Plain::of(text);
    let kinds: [(Warning, FindLines); 2] =
        [(Warning::Secret, secret_lines), (Warning::AddressesAgent, agent_lines)];
    for (warning, lines) in kinds {
        let flagged = lines(&plain);
        let mut start = 0;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            if flagged.contains(&number) {
                let is_one = |part: &str| !lines(&Plain::of(part)).is_empty();
                add(&mut passages, (start, line), warning, is_one);
            }
            start += line.len();
        }
    }
    for (start, _) in text.match_indices(NAMED) {
        let name = text.get(start..).unwrap_or_default();
        let end = start + name.find(']').map_or(NAMED.len(), |end| end + 1);
        passages.push(Passage { range: start..end, warning: Warning::Hidden });
    }
    passages.sort_by_key(|passage| passage.range.start);
    let mut end = 0;
    passages.retain_mut(|passage| {
        passage.range.start = passage.range.start.max(end);
        end = end.max(passage.range.end);
        passage.range.start < passage.range.end
    });
    passages
}

/// Adds the sentences of a line that flag it, or all of the line if none does alone.
fn add(
    passages: &mut Vec<Passage>,
    (start, line): (usize, &str),
    warning: Warning,
    is_one: impl Fn(&str) -> bool,
) {
    let mut at = start;
    let sentences = line.split_inclusive(['.', '!', '?']).map(|sentence| {
        at += sentence.len();
        (at - sentence.len(), sentence)
    });
    let mut found: Vec<(usize, &str)> = sentences.filter(|(_, text)| is_one(text.trim())).collect();
    if found.is_empty() {
        found.push((start, line));
    }
    passages.extend(found.into_iter().map(|(at, text)| {
        let start = at + (text.len() - text.trim_start().len());
        let range = start..(at + text.trim_end().len()).max(start);
        Passage { range, warning }
    }));
}
