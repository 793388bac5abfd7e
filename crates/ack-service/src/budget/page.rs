//! The page of a search: how many results it holds, and how much it shows of each.

use super::passage::Question;
use super::{cut_hit, cut_memory, frame, limit_also, shrink, token_cost};
use crate::search::{Hit, Page, Search};
use ack_api::number::count;
use ack_api::{Detail, Hint, MemoryHit, Note, NoteKind, QueryRequest, QueryResponse, Tool, text};

/// Average tokens per result of a page for an agent, as structure.
pub const RESULT_TOKENS: usize = 132;
/// How many fewer it may take as text. An agent sees one of them, which depends on its client.
const FEWER_AS_TEXT: usize = 30;
const LINE_TOKENS: usize = 3;
const PAGE_FRAME_TOKENS: usize = 30;
const MORE_TOKENS: usize = 7;
const CURSOR_TOKENS: usize = 60;
/// What a result with a part of its text must have room for, besides its other fields.
const MIN_TEXT_TOKENS: usize = 100;
const MAX_ATTEMPTS: usize = 6;
const MAX_NAMED: usize = 3;
const TITLE_CAP: usize = 200;
const FIRST_FACT_CAP: usize = 160;
/// How a title and each other line (in tokens) and the tags are cut if one line for each result is
/// too much, less each time.
const TIGHT_LINES: [(usize, usize, usize); 5] =
    [(60, 40, 8), (60, 25, 4), (60, 12, 2), (45, 12, 2), (30, 12, 2)];

/// Shortens a page until the whole answer is within its limit. A full result for which there is no
/// room shows a part of its text: the first one, or the last one if there is room for a part.
pub fn fit(
    request: &QueryRequest,
    search: &Search<'_>,
    mut frame: QueryResponse,
    mut page: Page,
) -> QueryResponse {
    let spec = search.spec;
    let bound = spec.tokens;
    let wanted = page.hits.len();
    frame::limit_notes(&mut frame.notes);
    if spec.by_agent {
        frame::skip_once(&mut frame.searched, &frame.notes);
        if !search.is_narrowed {
            frame::drop_default_fields(&mut frame.searched);
        }
    }
    frame::limit_searched(&mut frame.searched, |name| {
        page.hits.iter().any(|hit| hit.hit.scope == name)
    });
    shrink(
        &mut frame,
        bound / 2,
        &[
            |frame| frame::keep_names(&mut frame.searched, 5, 3, |_| false),
            |frame| frame::shorten_skipped(&mut frame.searched),
            |frame| frame::shorten_notes(&mut frame.notes),
            |frame| frame::keep_names(&mut frame.searched, 1, 0, |_| false),
            |frame| frame.notes.truncate(3),
            |frame| frame.suggestions.truncate(2),
        ],
    );
    let mut room = bound.saturating_sub(token_cost(&frame) + CURSOR_TOKENS);
    if spec.by_agent && spec.detail == Detail::Concise && !spec.explain {
        // Results come before further facts. Each takes a comma, and the number of further facts.
        let room = room.saturating_sub(wanted * MORE_TOKENS);
        let budget = room.min(PAGE_FRAME_TOKENS + wanted * RESULT_TOKENS);
        fit_lines(&mut page.hits, budget);
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
    let fitting = Fitting { request, search, frame, wanted };
    if let Some(filled) = fitting.with_part(&mut page, whole, room) {
        return filled;
    }
    page.end_before(whole.max(1));
    loop {
        let mut answer = fitting.answer(&page);
        if token_cost(&answer) <= bound {
            return answer;
        }
        let folded = page.hits.first().map_or(0, |hit| hit.hit.also.len());
        if page.hits.len() > 1 {
            page.end_before(page.hits.len() - 1);
        } else if folded > 0 {
            page.end_within_first(folded / 2);
        } else {
            answer.notes = fitting.frame.notes;
            cut_last_result(&mut answer, bound);
            return answer;
        }
    }
}

/// The last resort for one result that is too long: drops explanations, then cuts that one.
fn cut_last_result(response: &mut QueryResponse, bound: usize) {
    let note = Note::new(NoteKind::Cut, format!("cut to {bound} tokens"));
    let note = note.with(Hint::call(Tool::GetMemory, "shows it in full"));
    response.notes.insert(0, note);
    let excess = token_cost(response).saturating_sub(bound);
    if let Some(hit) = response.results.first_mut() {
        let room = token_cost(hit).saturating_sub(excess);
        cut_hit(hit, room.max(40), &mut Question::default());
    }
    shrink(
        response,
        bound,
        &[
            |response| {
                let matters =
                    |note: &Note| matches!(note.kind, NoteKind::ScopeUnavailable | NoteKind::Cut);
                response.notes.retain(matters);
            },
            |response| response.suggestions.truncate(2),
            |response| frame::shorten_skipped(&mut response.searched),
            |response| frame::shorten_notes(&mut response.notes),
            |response| frame::drop_names(&mut response.searched),
            |response| response.suggestions.clear(),
            |response| response.notes.truncate(1),
            |response| frame::replace_notes(&mut response.notes),
            |response| response.results.iter_mut().for_each(|hit| strip(hit, 80)),
            |response| response.results.iter_mut().for_each(|hit| strip(hit, 40)),
            |response| response.results.iter_mut().for_each(|hit| strip(hit, 20)),
        ],
    );
}

/// Leaves which memory it is, and what there is to know before it is used.
fn strip(hit: &mut MemoryHit, title: usize) {
    limit_also(hit, 0);
    let whole = std::mem::take(hit);
    *hit = MemoryHit {
        id: whole.id,
        title: text::line(&whole.title, title),
        scope: whole.scope,
        status: whole.status,
        more_facts: whole.more_facts + whole.facts.len() as u64,
        more_also: whole.more_also,
        superseded_by: whole.superseded_by,
        contradicts: whole.contradicts,
        stale: whole.stale,
        ..MemoryHit::default()
    };
}

struct Fitting<'a> {
    request: &'a QueryRequest,
    search: &'a Search<'a>,
    /// The answer without results.
    frame: QueryResponse,
    wanted: usize,
}

impl Fitting<'_> {
    fn answer(&self, page: &Page) -> QueryResponse {
        let mut answer = self.frame.clone();
        answer.results = page.hits.iter().map(|hit| hit.hit.clone()).collect();
        let cursor = page.cursor(self.request, self.search.bm25());
        answer.next_cursor = cursor.map(|cursor| cursor.encode());
        let kept = page.hits.len();
        if kept < self.wanted && !self.search.spec.fills_budget {
            let tokens = self.search.spec.tokens;
            let wanted = count(self.wanted as u64, "result");
            let message = format!("cut to {tokens} tokens: {kept} of {wanted}");
            answer.notes.push(Note::new(NoteKind::Cut, message).with(Hint::NextPage));
        }
        answer.notes.extend(note_cut_texts(page));
        answer
    }

    /// The whole results that fit and a part of the next one, if there is room for some of it.
    fn with_part(&self, page: &mut Page, whole: usize, mut room: usize) -> Option<QueryResponse> {
        let spec = self.search.spec;
        let next = page.hits.get(whole)?;
        let (original, shown) = (next.hit.clone(), next.shown);
        let has_text = next.memory.narrative.is_some() || !next.memory.facts.is_empty();
        // The memories folded into a result are not cut, but continued on the next page.
        let max_frame_cost =
            if original.also.is_empty() { room.saturating_sub(MIN_TEXT_TOKENS) } else { room / 2 };
        let bare = MemoryHit { narrative: None, facts: Vec::new(), ..original.clone() };
        if spec.detail != Detail::Full || !has_text || token_cost(&bare) > max_frame_cost {
            return None;
        }
        page.end_before(whole + 1);
        let question: &mut Question<'_> = &mut self.search.question();
        let mut best: Option<(usize, QueryResponse)> = None;
        // Notes, the cursor and the text share the room, so the right size is found by trying.
        for _ in 0..MAX_ATTEMPTS {
            let last = page.hits.get_mut(whole)?;
            last.hit = original.clone();
            last.shown = Some(cut_memory(&mut last.hit, &last.memory, room, question));
            let answer = self.answer(page);
            let cost = token_cost(&answer);
            if cost > spec.tokens {
                room = room.saturating_sub(cost - spec.tokens + 1);
                continue;
            }
            let left = spec.tokens - cost;
            if best.as_ref().is_none_or(|(known, _)| cost > *known) {
                best = Some((cost, answer));
            }
            if left <= spec.tokens / 32 {
                break;
            }
            room += left;
        }
        if best.is_none() {
            let last = page.hits.get_mut(whole)?;
            (last.hit, last.shown) = (original, shown);
        }
        best.map(|(_, answer)| answer)
    }
}

/// The note about results that show only a part of their texts.
fn note_cut_texts(page: &Page) -> Option<Note> {
    let mut messages: Vec<String> = Vec::new();
    for hit in &page.hits {
        let message = hit.shown.and_then(|shown| shown.message());
        messages.extend(message.map(|shown| format!("`{}` shows {shown}", hit.hit.id)));
    }
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

/// The tokens of a result as structure, or as text if that is above its share.
fn cost_on_page(hit: &MemoryHit) -> usize {
    let mut head = format!("10. **{}** ({}, {}", hit.title, hit.id, hit.scope);
    let words = hit.project.iter().chain(&hit.kind).chain(&hit.created_at);
    words.for_each(|word| head.extend([", ", word]));
    let (doubts, also) = (hit.doubts(), hit.also.iter().map(|also| &also.id));
    let lines = hit.facts.iter().chain(&hit.subtitle).chain(&hit.excerpt);
    let lines = lines.chain(&doubts).chain(also).map(|line| text::tokens(line) + LINE_TOKENS);
    token_cost(hit).max(token_cost(&head) + lines.sum::<usize>() + FEWER_AS_TEXT)
}

/// Leaves a title of one line and one fact, or else the subtitle. Returns the other lines.
fn leave_one_line(hit: &mut MemoryHit) -> (Option<String>, Vec<String>) {
    let (subtitle, mut facts) = (hit.subtitle.take(), std::mem::take(&mut hit.facts));
    hit.title = text::line(&hit.title, TITLE_CAP);
    if facts.is_empty() {
        hit.subtitle = subtitle.map(|subtitle| text::line(&subtitle, FIRST_FACT_CAP));
        return (None, facts);
    }
    hit.facts.push(text::line(&facts.remove(0), FIRST_FACT_CAP));
    (subtitle, facts)
}

/// Keeps the subtitles and facts of a page that fit into a budget: one fact per result, then more
/// facts for the best results while there is room. If one fact is too much already, tags, facts and
/// at last titles are cut.
fn fit_lines(hits: &mut [Hit], budget: usize) {
    let more: Vec<_> = hits.iter_mut().map(|hit| leave_one_line(&mut hit.hit)).collect();
    let total = |hits: &[Hit]| hits.iter().map(|hit| cost_on_page(&hit.hit)).sum::<usize>();
    let mut used = total(hits);
    for (title, line, tags) in TIGHT_LINES {
        if used <= budget {
            break;
        }
        for Hit { hit, .. } in &mut *hits {
            hit.concepts.truncate(tags);
            hit.title = text::line_within(&hit.title, title);
            let lines = hit.facts.iter_mut().chain(&mut hit.subtitle).chain(&mut hit.excerpt);
            lines.for_each(|text| *text = text::line_within(text, line));
        }
        used = total(hits);
    }
    for (Hit { hit, .. }, (subtitle, facts)) in hits.iter_mut().zip(more) {
        let mut fits = |line: &String| {
            let more = used + text::tokens(line) + LINE_TOKENS;
            let fits = more <= budget;
            used = if fits { more } else { used };
            fits
        };
        hit.subtitle = hit.subtitle.take().or(subtitle.filter(&mut fits));
        let mut facts = facts.into_iter().peekable();
        while let Some(fact) = facts.next_if(&mut fits) {
            hit.facts.push(fact);
        }
        hit.more_facts += facts.count() as u64;
    }
}
