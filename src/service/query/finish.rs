//! Combines results, cursor and token limit into an answer.

use super::super::answer::{self, PageBudget, RESULT_TOKENS, token_cost};
use super::super::bounds;
use super::super::search::{Page, Search};
use super::super::shorten::{self, MIN_TEXT_TOKENS, Shown};
use ack_api::number::{count, grouped};
use ack_api::text::BLOCK_CAP;
use ack_api::{Detail, Hint, Note, NoteKind, QueryRequest, QueryResponse, Tool};

/// Tokens of a page for an agent, not counting its results.
const PAGE_FRAME_TOKENS: usize = 30;
/// Average tokens per result on it as text.
const RESULT_TEXT_TOKENS: usize = 107;

/// Tokens of a comma and of the field `more_facts`.
const MORE_TOKENS: usize = 7;

/// Tokens of a cursor and of notes about what is cut.
const CURSOR_TOKENS: usize = 60;
/// How often a text is cut again to fill the limit.
const MAX_ATTEMPTS: usize = 6;
/// Maximum results that a note about cut texts names.
const MAX_NAMED: usize = 3;

/// Shortens the page until the whole answer is within its limit. A full result for which there is
/// no room shows a part of its text: the first one, or the last one if there is room for a part.
pub fn finish(
    request: &QueryRequest,
    search: &Search<'_>,
    mut response: QueryResponse,
    mut page: Page,
) -> QueryResponse {
    let bound = search.spec.tokens;
    let wanted = page.hits.len();
    bounds::limit_notes(&mut response.notes);
    if search.spec.by_agent {
        bounds::skip_once(&mut response.searched, &response.notes);
        if !search.is_narrowed {
            bounds::drop_default_fields(&mut response.searched);
        }
    }
    bounds::limit_searched(&mut response.searched, |name| {
        page.hits.iter().any(|hit| hit.hit.scope == name)
    });
    bounds::shorten_frame(&mut response, bound / 2);
    let finish = Finish {
        request,
        search,
        wanted,
    };
    let mut room = bound.saturating_sub(token_cost(&response) + CURSOR_TOKENS);
    if search.spec.by_agent && search.spec.detail == Detail::Concise && !search.spec.explain {
        // Results come before further facts. Each takes a comma, and the number of further facts.
        let room = room.saturating_sub(wanted * MORE_TOKENS);
        let usual = |tokens: usize| (PAGE_FRAME_TOKENS + wanted * tokens).min(room);
        let budget = PageBudget {
            structure: usual(RESULT_TOKENS),
            text: usual(RESULT_TEXT_TOKENS),
        };
        answer::fit_subtitles_and_facts(page.hits.iter_mut().map(|hit| &mut hit.hit), budget);
    }
    let mut whole = 0;
    for hit in &page.hits {
        let cost = token_cost(&hit.hit) + 1;
        if cost > room {
            break;
        }
        room -= cost;
        whole += 1;
    }
    if let Some(filled) = finish.with_part(&response, &mut page, whole, room) {
        return filled;
    }
    page.end_before(whole.max(1));
    loop {
        let answer = finish.answer(&response, &page, None);
        if token_cost(&answer) <= bound {
            return answer;
        }
        let folded = page.hits.first().map_or(0, |hit| hit.hit.also.len());
        if page.hits.len() > 1 {
            page.end_before(page.hits.len() - 1);
        } else if folded > 0 {
            page.end_within_first(folded / 2);
        } else {
            response.results = answer.results;
            response.next_cursor = answer.next_cursor;
            break;
        }
    }
    answer::enforce_limit(&mut response, bound);
    response
}

/// What an answer is made of, besides its page.
struct Finish<'a> {
    request: &'a QueryRequest,
    search: &'a Search<'a>,
    /// The number of results before any were left out.
    wanted: usize,
}

impl Finish<'_> {
    /// The answer with a page. `part` is what its last result shows if that is cut.
    fn answer(&self, frame: &QueryResponse, page: &Page, part: Option<Shown>) -> QueryResponse {
        let mut answer = frame.clone();
        answer.results = page.hits.iter().map(|hit| hit.hit.clone()).collect();
        answer.next_cursor = page
            .cursor(self.request, self.search.bm25())
            .map(|cursor| cursor.encode());
        let kept = page.hits.len();
        if kept < self.wanted && !self.search.spec.fills_budget {
            let wanted = count(self.wanted as u64, "result");
            let message = format!(
                "cut to {} tokens: {kept} of {wanted}",
                self.search.spec.tokens
            );
            let note = Note::new(NoteKind::Cut, message);
            answer.notes.push(note.with(Hint::NextPage));
        }
        answer.notes.extend(cut_texts(page, part));
        answer
    }

    /// The answer with the whole results that fit and a part of the next one, if that has a text to
    /// cut and there is room for some of it.
    fn with_part(
        &self,
        frame: &QueryResponse,
        page: &mut Page,
        whole: usize,
        room: usize,
    ) -> Option<QueryResponse> {
        let spec = self.search.spec;
        let next = page.hits.get(whole)?;
        let original = next.hit.clone();
        let has_text = next.memory.narrative.is_some() || !next.memory.facts.is_empty();
        let frame_cost = shorten::frame_cost(&original);
        // The memories folded into a result are not cut, but continued on the next page.
        let max_frame_cost = match original.also.is_empty() {
            true => room.saturating_sub(MIN_TEXT_TOKENS),
            false => room / 2,
        };
        if spec.detail != Detail::Full || !has_text || frame_cost > max_frame_cost {
            return None;
        }
        page.end_before(whole + 1);
        let question = &mut self.search.question();
        let (mut fits, mut exceeds, mut margin) = (0, usize::MAX, 0);
        let mut room = room;
        let mut best = None;
        for _ in 0..MAX_ATTEMPTS {
            let last = page.hits.get_mut(whole)?;
            last.hit = original.clone();
            let part = shorten::cut_memory(&mut last.hit, &last.memory, room, question);
            let answer = self.answer(frame, page, Some(part));
            let cost = token_cost(&answer);
            if cost > spec.tokens {
                exceeds = room;
                room = room.saturating_sub(cost - spec.tokens + margin);
                margin = 2 * margin + spec.tokens / 64;
            } else {
                fits = room;
                let left = spec.tokens - cost;
                room += left;
                best = Some(answer);
                if left <= spec.tokens / 32 {
                    break;
                }
            }
            if room <= fits || room >= exceeds {
                room = fits.midpoint(exceeds);
            }
        }
        if best.is_none() {
            page.hits.get_mut(whole)?.hit = original;
        }
        best
    }
}

/// The note about results that show only a part of their texts.
fn cut_texts(page: &Page, part: Option<Shown>) -> Option<Note> {
    let last = page.hits.len().checked_sub(1)?;
    let messages = page.hits.iter().enumerate().filter_map(|(number, hit)| {
        let whole = hit.memory.narrative.as_deref().unwrap_or_default();
        let what = match part.filter(|_| number == last) {
            Some(part) => part.message()?,
            None if whole.len() <= BLOCK_CAP => return None,
            None => {
                let shown = hit.hit.narrative.as_deref()?;
                let (shown, all) = (shown.chars().count(), whole.chars().count());
                let (shown, all) = (grouped(shown as u64), grouped(all as u64));
                format!("{shown} of {all} characters of its text")
            }
        };
        Some(format!("`{}` shows {what}", hit.hit.id))
    });
    let mut messages: Vec<String> = messages.collect();
    if messages.is_empty() {
        return None;
    }
    let more = messages.len().saturating_sub(MAX_NAMED);
    messages.truncate(MAX_NAMED);
    if more > 0 {
        messages.push(format!("{} too", count(more as u64, "more result")));
    }
    let note = Note::new(NoteKind::Cut, messages.join(", "));
    Some(note.with(Hint::call(Tool::GetMemory, "shows more")))
}
