//! What an answer holds, and what is cut if there is not enough room.
//!
//! The rules: an answer stays within its tokens; what it shows of a memory is whole or marked as cut;
//! what is left out is counted; a title says which memory it is, so it is cut last.

pub mod excerpt;
pub mod frame;
pub mod page;
pub mod passage;

use serde::Serialize;

use self::passage::{Passage, Question, passage};
use ack_api::memory::Memory;
use ack_api::number::grouped;
use ack_api::{Given, Hint, MemoryDetail, MemoryHit, Note, NoteKind, Tool, text};

/// Tokens of the field names around facts and a long text.
const FIELD_TOKENS: usize = 6;
const MIN_PASSAGE_TOKENS: usize = 12;
const MIN_FACT_TOKENS: usize = 8;
const MIN_MEMORY_TOKENS: usize = 120;
/// Up to so many links and lines of the log, and neighbours on each side, are never too many.
const FEW_ENTRIES: usize = 4;
const FEW_NEIGHBOURS: usize = 3;

/// What a value costs as structure, or as text if that is more: each line of a long text is quoted
/// there, which costs a token.
pub fn token_cost(value: &impl Serialize) -> usize {
    let json = serde_json::to_string(value).unwrap_or_default();
    text::tokens(&json) + json.matches("\\n").count()
}

/// Applies steps to an answer, the mildest first, until it takes at most `bound` tokens.
pub fn shrink<A: Serialize>(answer: &mut A, bound: usize, steps: &[fn(&mut A)]) {
    for step in steps {
        if token_cost(answer) <= bound {
            return;
        }
        step(answer);
    }
}

/// The sentences of a paragraph, each with the white space after it.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph;
    std::iter::from_fn(move || {
        let (sentence, after) = rest.split_at(sentence_end(rest));
        rest = after;
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn sentence_end(text: &str) -> usize {
    let ends = |(at, c): &(usize, char)| match c {
        '。' | '！' | '？' => true,
        ' ' | '\n' => {
            let last = text.get(..*at).and_then(|before| before.rsplit(char::is_whitespace).next());
            last.is_some_and(text::ends_sentence)
        }
        _ => false,
    };
    text.char_indices().find(ends).map_or(text.len(), |(at, c)| at + c.len_utf8())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShownText {
    pub chars: (usize, usize),
    pub facts: (usize, usize),
}

impl ShownText {
    fn of(hit: &MemoryHit, memory: &Memory, chars: usize) -> Self {
        let all_chars = memory.narrative.as_deref().unwrap_or_default().chars().count();
        Self { chars: (chars, all_chars), facts: (hit.facts.len(), memory.facts.len()) }
    }

    pub fn message(&self) -> Option<String> {
        let part = |(shown, all): (usize, usize), what: &str| {
            let (shown, all) = (grouped(shown as u64), grouped(all as u64));
            (shown != all).then(|| format!("{shown} of {all} {what}"))
        };
        let parts = [part(self.facts, "facts"), part(self.chars, "characters of its text")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

pub fn cut_long_text(
    hit: &mut MemoryHit,
    memory: &Memory,
    question: &mut Question<'_>,
) -> Option<ShownText> {
    let narrative = memory.narrative.as_deref()?;
    if narrative.len() <= text::BLOCK_CAP {
        return None;
    }
    let part = passage(narrative, &str::len, text::BLOCK_CAP, question).unwrap_or_default();
    hit.narrative = Some(part.text).filter(|text| !text.is_empty());
    Some(ShownText::of(hit, memory, part.shown))
}

/// Shows as much of a memory as a number of tokens allows. What contains more of the question stays.
pub fn cut_memory(
    hit: &mut MemoryHit,
    memory: &Memory,
    budget: usize,
    question: &mut Question<'_>,
) -> ShownText {
    hit.more_facts = 0;
    hit.narrative.clone_from(&memory.narrative);
    hit.facts.clone_from(&memory.facts);
    let chars = cut_hit(hit, budget, question);
    ShownText::of(hit, memory, chars)
}

/// Cuts first what surrounds the facts and the text. Returns the characters of the text that it
/// still shows.
pub fn cut_hit(hit: &mut MemoryHit, budget: usize, question: &mut Question<'_>) -> usize {
    let (narrative, facts) = (hit.narrative.take(), std::mem::take(&mut hit.facts));
    let has_text = narrative.is_some() || !facts.is_empty();
    cut_frame(hit, budget, if has_text { budget / 2 } else { budget });
    let room = budget.saturating_sub(token_cost(hit) + FIELD_TOKENS);
    let cost = |text: &str| token_cost(&text);
    let facts_room = match &narrative {
        Some(text) => room.saturating_sub(cost(text) + FIELD_TOKENS).max(room / 2),
        None => room,
    };
    hit.facts = fitting_facts(&facts, facts_room, question);
    hit.more_facts += (facts.len() - hit.facts.len()) as u64;
    let room = budget.saturating_sub(token_cost(hit) + FIELD_TOKENS);
    let text = narrative.filter(|_| room >= MIN_PASSAGE_TOKENS);
    let part = text.and_then(|text| passage(&text, &cost, room, question));
    let Passage { text, shown } = part.unwrap_or_default();
    hit.narrative = Some(text).filter(|text| !text.is_empty());
    if token_cost(hit) >= budget {
        hit.explanation = None;
    }
    shown
}

/// Cuts what surrounds the text of a result until it takes less than `max` tokens of its budget.
fn cut_frame(hit: &mut MemoryHit, budget: usize, max: usize) {
    for share in [2usize, 4, 8, 16] {
        if token_cost(hit) < max {
            return;
        }
        hit.files.truncate(20 / share);
        hit.concepts.truncate(20 / share);
        limit_also(hit, 8 / share);
        let chars = budget / share;
        for (text, min) in [(&mut hit.subtitle, 60), (&mut hit.excerpt, 60), (&mut hit.why, 40)] {
            *text = text.take().map(|text| text::line(&text, chars.max(min)));
        }
        hit.title = text::line(&hit.title, chars.max(80));
    }
}

fn limit_also(hit: &mut MemoryHit, max: usize) {
    hit.more_also += hit.also.len().saturating_sub(max) as u64;
    hit.also.truncate(max);
}

/// The facts that fit, in order. If not all do, those that contain more of the question stay.
fn fitting_facts(facts: &[String], room: usize, question: &mut Question<'_>) -> Vec<String> {
    let cost = |fact: &String| token_cost(fact) + 1;
    if facts.iter().map(cost).sum::<usize>() <= room {
        return facts.to_vec();
    }
    let numbered = facts.iter().enumerate();
    let mut order: Vec<(f32, usize, &String)> =
        numbered.map(|(number, fact)| (question.weight(fact), number, fact)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = room;
    let mut kept: Vec<(usize, String)> = Vec::new();
    for (_, number, fact) in order {
        if cost(fact) <= left {
            left -= cost(fact);
            kept.push((number, fact.clone()));
        } else if left >= room / 10 && left >= MIN_FACT_TOKENS {
            // A very long fact must not keep out those after it.
            let short = text::line_within(fact, left.saturating_sub(2));
            left = left.saturating_sub(cost(&short));
            kept.push((number, short));
        }
    }
    kept.sort_by_key(|(number, _)| *number);
    kept.into_iter().map(|(_, fact)| fact).filter(|fact| !fact.is_empty()).collect()
}

/// Keeps the results that fit, at least a part of the first one. Returns their tokens.
pub fn keep_fitting(hits: &mut Vec<MemoryHit>, budget: usize) -> usize {
    let (mut used, mut kept) = (0, 0);
    for hit in hits.iter_mut() {
        let mut cost = token_cost(hit) + 1;
        if used + cost > budget {
            if kept > 0 {
                break;
            }
            cut_hit(hit, budget, &mut Question::default());
            cost = token_cost(hit) + 1;
        }
        used += cost;
        kept += 1;
    }
    hits.truncate(kept);
    used
}

/// Cuts first the context, the oldest log lines and the furthest links, then the text.
pub fn shrink_detail(
    detail: &mut MemoryDetail,
    memory: &Memory,
    budget: usize,
) -> Option<ShownText> {
    let halve: fn(&mut MemoryDetail) = halve_context;
    shrink(detail, budget, &[halve; 6]);
    let excess = token_cost(detail).saturating_sub(budget);
    let shown = (excess > 0).then(|| {
        let room = token_cost(&detail.memory).saturating_sub(excess).max(MIN_MEMORY_TOKENS);
        cut_memory(&mut detail.memory, memory, room, &mut Question::default())
    });
    if token_cost(detail) > budget {
        detail.timeline = None;
        detail.history.truncate(1);
        detail.links.truncate(1);
        detail.related.truncate(1);
        detail.session_context = None;
    }
    shown
}

fn halve_context(detail: &mut MemoryDetail) {
    let half = |entries: usize, few: usize| entries.min(few.max(entries.div_ceil(2)));
    let few = half(detail.history.len(), FEW_ENTRIES);
    detail.history.drain(..detail.history.len() - few);
    detail.links.truncate(half(detail.links.len(), FEW_ENTRIES));
    if let Some(timeline) = &mut detail.timeline {
        let (before, after) = (&mut timeline.before, &mut timeline.after);
        before.drain(..before.len() - half(before.len(), FEW_NEIGHBOURS));
        after.truncate(half(after.len(), FEW_NEIGHBOURS));
    }
}

pub fn cut_note(id: &str, is_cut: bool, shown: Option<ShownText>, count: usize) -> Option<Note> {
    let what = match shown.and_then(|shown| shown.message()) {
        Some(what) => format!("`{id}` is cut: {what}"),
        None if is_cut => format!("`{id}` is cut"),
        None => return None,
    };
    let next = if is_cut && count > 1 {
        Hint::advice("ask for it alone to see more of it")
    } else {
        Hint::call_with(
            Tool::QueryMemories,
            [Given::value("detail", "full")],
            "shows the part of a text that matches a question",
        )
    };
    Some(Note::new(NoteKind::Cut, what).with(next))
}
