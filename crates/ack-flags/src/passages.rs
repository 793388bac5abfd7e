//! Which passages of a text flag it, so that a person sees them where they stand.

use std::ops::Range;

use ack_api::Warning;
use ack_api::text::NAMED;

use super::agent_text::agent_lines;
use super::plain::Plain;
use super::secrets::secret_lines;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its bytes in the text.
    pub range: Range<usize>,
    pub warning: Warning,
}

/// The passages that flag a text, in its order; none overlaps another. Hidden characters have been
/// replaced by their names ([`ack_api::text::named`]).
pub fn passages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let plain = Plain::of(text);
    let secrets = secret_lines(&plain);
    let orders = agent_lines(&plain);
    let mut start = 0;
    // Most texts have none, and long ones have many lines.
    let lines = text.split_inclusive('\n');
    let has_any = !(secrets.is_empty() && orders.is_empty());
    for (number, line) in (1..).zip(lines.take_while(|_| has_any)) {
        if secrets.contains(&number) {
            let is_one = |part: &str| !secret_lines(&Plain::of(part)).is_empty();
            add_parts(&mut passages, (start, line), Warning::Secret, is_one);
        }
        if orders.contains(&number) {
            let is_one = |part: &str| !agent_lines(&Plain::of(part)).is_empty();
            add_parts(
                &mut passages,
                (start, line),
                Warning::AddressesAgent,
                is_one,
            );
        }
        start += line.len();
    }
    for (start, _) in text.match_indices(NAMED) {
        let name = text.get(start..).unwrap_or_default();
        let end = start + name.find(']').map_or(NAMED.len(), |end| end + 1);
        passages.push(Passage {
            range: start..end,
            warning: Warning::Hidden,
        });
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
fn add_parts(
    passages: &mut Vec<Passage>,
    (start, line): (usize, &str),
    warning: Warning,
    is_one: impl Fn(&str) -> bool,
) {
    let before = passages.len();
    let mut at = start;
    for sentence in line.split_inclusive(['.', '!', '?']) {
        add(passages, (at, sentence), warning, &is_one);
        at += sentence.len();
    }
    if passages.len() == before {
        add(passages, (start, line), warning, &|_| true);
    }
}

fn add(
    passages: &mut Vec<Passage>,
    (at, part): (usize, &str),
    warning: Warning,
    is_one: &impl Fn(&str) -> bool,
) {
    let trimmed = part.trim();
    let start = at + (part.len() - part.trim_start().len());
    if !trimmed.is_empty() && is_one(trimmed) {
        passages.push(Passage {
            range: start..start + trimmed.len(),
            warning,
        });
    }
}
