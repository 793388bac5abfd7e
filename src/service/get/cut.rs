//! Cuts a memory to its share of an answer, and says what is left out.

use ack_api::memory::Memory;
use ack_api::text;
use ack_api::{Given, Hint, MemoryDetail, Note, NoteKind, Tool};

use crate::service::answer;
use crate::service::passage::Question;
use crate::service::shorten::{self, Shown};

/// Cuts a memory to a number of tokens: first its context, the oldest log lines and the furthest
/// links, then its text.
pub(super) fn shrink(detail: &mut MemoryDetail, memory: &Memory, budget: usize) -> Option<Shown> {
    for _ in 0..6 {
        let sides = detail.timeline.as_ref().map_or(0, |timeline| {
            timeline.before.len().max(timeline.after.len())
        });
        let over = answer::token_cost(detail) > budget;
        if !over || (detail.history.len() <= 4 && detail.links.len() <= 4 && sides <= 3) {
            break;
        }
        let history = detail.history.len().div_ceil(2);
        detail.history.drain(..detail.history.len() - history);
        detail.links.truncate(detail.links.len().div_ceil(2));
        if let Some(timeline) = detail.timeline.as_mut().filter(|_| sides > 3) {
            let before = timeline.before.len().div_ceil(2);
            timeline.before.drain(..timeline.before.len() - before);
            timeline.after.truncate(timeline.after.len().div_ceil(2));
        }
    }
    let excess = answer::token_cost(detail).saturating_sub(budget);
    let shown = (excess > 0).then(|| {
        let room = answer::token_cost(&detail.memory).saturating_sub(excess);
        let question = &mut Question::default();
        shorten::cut_memory(&mut detail.memory, memory, room.max(120), question)
    });
    if answer::token_cost(detail) > budget {
        detail.timeline = None;
        detail.history.truncate(1);
        detail.links.truncate(1);
        detail.related.truncate(1);
        detail.session_context = None;
    }
    shown
}

/// Cuts a long text to its maximum length, and says what is shown if that is less than all.
pub(super) fn text_shown(detail: &mut MemoryDetail, memory: &Memory) -> Option<Shown> {
    let length = memory.narrative.as_ref().map_or(0, String::len);
    (length > text::BLOCK_CAP).then(|| {
        let question = &mut Question::default();
        shorten::cut_long_text(&mut detail.memory, memory, question)
    })
}

/// The note about what is left out of a memory.
pub(super) fn cut_note(id: &str, is_cut: bool, shown: Option<Shown>, count: usize) -> Option<Note> {
    let what = shown.and_then(|shown| shown.message());
    if !is_cut && what.is_none() {
        return None;
    }
    let what = what.map_or_else(
        || format!("`{id}` is cut"),
        |what| format!("`{id}` is cut: {what}"),
    );
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
