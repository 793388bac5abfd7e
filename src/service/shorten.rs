//! Cuts one result to a number of tokens: first what surrounds its text, then its facts and its long
//! text, so that these fill what is left.

use ack_api::MemoryHit;
use ack_api::memory::Memory;
use ack_api::number::grouped;
use ack_api::text;

use super::answer::{limit_also, token_cost};
use super::passage::{Passage, Question, Room, passage};

/// Tokens of the field names around facts and a long text.
const FIELD_TOKENS: usize = 6;
/// The fewest tokens for a part of a long text.
const MIN_PASSAGE_TOKENS: usize = 12;
/// The fewest tokens for a cut fact.
const MIN_FACT_TOKENS: usize = 8;
/// What a result with a part of its text must have room for, besides its other fields.
pub const MIN_TEXT_TOKENS: usize = 100;

/// What a result shows of a memory's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// Characters of the long text, and how many it has.
    pub chars: (usize, usize),
    /// Facts, and how many there are.
    pub facts: (usize, usize),
}

impl Shown {
    /// Compares a result with its memory. `chars` is what it shows of the long text.
    fn of(hit: &MemoryHit, memory: &Memory, chars: usize) -> Self {
        let narrative = memory.narrative.as_deref().unwrap_or_default();
        Self {
            chars: (chars, narrative.chars().count()),
            facts: (hit.facts.len(), memory.facts.len()),
        }
    }

    /// What is left out, as a message; `None` if nothing is.
    pub fn message(&self) -> Option<String> {
        let part = |(shown, all): (usize, usize), what: &str| {
            let (shown, all) = (grouped(shown as u64), grouped(all as u64));
            (shown != all).then(|| format!("{shown} of {all} {what}"))
        };
        let parts = [
            part(self.facts, "facts"),
            part(self.chars, "characters of its text"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// Cuts the long text of a full result to its maximum length.
pub fn cut_long_text(hit: &mut MemoryHit, memory: &Memory, question: &mut Question<'_>) -> Shown {
    let narrative = memory.narrative.as_deref().unwrap_or_default();
    let room = Room {
        cost: &str::len,
        max: text::BLOCK_CAP,
    };
    let part = passage(narrative, room, question).unwrap_or_default();
    let shown = Shown::of(hit, memory, part.shown);
    hit.narrative = Some(part.text).filter(|text| !text.is_empty());
    shown
}

/// Cuts a full result of a memory to a number of tokens, and says what it shows. Of the facts and
/// the long text, what contains more of the question stays.
pub fn cut_memory(
    hit: &mut MemoryHit,
    memory: &Memory,
    budget: usize,
    question: &mut Question<'_>,
) -> Shown {
    let (narrative, facts) = (&memory.narrative, memory.facts.as_slice());
    let (shown, left) = cut_text(hit, narrative.as_deref(), facts, budget, question);
    hit.more_facts = left as u64;
    Shown::of(hit, memory, shown)
}

/// Cuts a result to a number of tokens.
pub fn cut_fields(hit: &mut MemoryHit, budget: usize) {
    let (narrative, facts) = (hit.narrative.take(), std::mem::take(&mut hit.facts));
    let question = &mut Question::default();
    let (_, left) = cut_text(hit, narrative.as_deref(), &facts, budget, question);
    hit.more_facts += left as u64;
}

/// The tokens of a result without its facts and its long text.
pub fn frame_cost(hit: &MemoryHit) -> usize {
    token_cost(&MemoryHit {
        narrative: None,
        facts: Vec::new(),
        ..hit.clone()
    })
}

/// Cuts a result, with these facts and this long text, to a number of tokens. Returns how many
/// characters of the long text it shows, and how many facts it leaves out.
fn cut_text(
    hit: &mut MemoryHit,
    narrative: Option<&str>,
    facts: &[String],
    budget: usize,
    question: &mut Question<'_>,
) -> (usize, usize) {
    hit.narrative = None;
    hit.facts = Vec::new();
    let has_text = narrative.is_some() || !facts.is_empty();
    cut_frame(hit, budget, if has_text { budget / 2 } else { budget });
    let room = budget.saturating_sub(token_cost(hit) + FIELD_TOKENS);
    let cost = |text: &str| token_cost(&text);
    let wanted = narrative.map_or(0, cost);
    let facts_room = if narrative.is_some() {
        room.saturating_sub(wanted + FIELD_TOKENS).max(room / 2)
    } else {
        room
    };
    hit.facts = fitting_facts(facts, facts_room, question);
    let room = budget.saturating_sub(token_cost(hit) + FIELD_TOKENS);
    let part = narrative.filter(|_| room >= MIN_PASSAGE_TOKENS);
    let room = Room {
        cost: &cost,
        max: room,
    };
    let part = part.and_then(|text| passage(text, room, question));
    let Passage { text, shown } = part.unwrap_or_default();
    hit.narrative = Some(text).filter(|text| !text.is_empty());
    if token_cost(hit) >= budget {
        hit.explanation = None;
    }
    (shown, facts.len() - hit.facts.len())
}

/// Cuts what surrounds the text of a result until it takes at most `max` tokens of its budget.
fn cut_frame(hit: &mut MemoryHit, budget: usize, max: usize) {
    for share in [2usize, 4, 8, 16] {
        if token_cost(hit) < max {
            return;
        }
        hit.files.truncate(20 / share);
        limit_also(hit, 8 / share);
        hit.concepts.truncate(20 / share);
        let cut = |text: &mut Option<String>, min: usize| {
            *text = text
                .as_ref()
                .map(|text| text::line(text, (budget / share).max(min)));
        };
        cut(&mut hit.subtitle, 60);
        cut(&mut hit.excerpt, 60);
        cut(&mut hit.why, 40);
        hit.title = text::line(&hit.title, (budget / share).max(80));
    }
}

/// The facts that fit, in order. If not all do, those that contain more of the question stay.
fn fitting_facts(facts: &[String], room: usize, question: &mut Question<'_>) -> Vec<String> {
    let costs: Vec<usize> = facts.iter().map(|fact| token_cost(fact) + 1).collect();
    if costs.iter().sum::<usize>() <= room {
        return facts.to_vec();
    }
    let mut order: Vec<(f32, usize)> = facts
        .iter()
        .map(|fact| question.weight(fact))
        .zip(0..)
        .collect();
    order.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut left = room;
    let mut kept: Vec<(usize, String)> = Vec::new();
    for (_, number) in order {
        let (Some(fact), Some(cost)) = (facts.get(number), costs.get(number)) else {
            continue;
        };
        if *cost <= left {
            left -= cost;
            kept.push((number, fact.clone()));
        } else if left >= room / 10 && left >= MIN_FACT_TOKENS {
            // A very long fact must not keep out those after it.
            let short = text::line_within(fact, left.saturating_sub(2));
            left = left.saturating_sub(token_cost(&short) + 1);
            kept.push((number, short));
        }
    }
    kept.sort_by_key(|(number, _)| *number);
    kept.into_iter()
        .map(|(_, fact)| fact)
        .filter(|fact| !fact.is_empty())
        .collect()
}
