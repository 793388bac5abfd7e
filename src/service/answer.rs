//! Turns records into results: how much of a memory to show, why it was found, and how to stay
//! within the token limit.

use serde::Serialize;

use super::{bounds, shorten};
use ack_api::memory::{Memory, StatusFilter};
use ack_api::text;
use ack_api::time;
use ack_api::{Detail, Hint, MemoryHit, Note, NoteKind, Tool};
use ack_search::inverted::Index;
use ack_search::lexical::Matcher;

/// Facts in a concise result.
const MAX_FACTS: usize = 5;
/// Maximum characters of a fact, subtitle or tag list in a concise result.
const FACT_CAP: usize = 240;
/// Tags in a concise result.
const MAX_TAGS: usize = 8;
/// Maximum characters of a title on a page for an agent.
const TITLE_CAP: usize = 200;
/// Maximum characters of the first fact of each result on such a page.
const FIRST_FACT_CAP: usize = 160;
/// What a title and a fact may cost in tokens if a page is too long, and how many tags a result
/// has, less each time.
/// The title says which memory it is, so it is cut last.
const TIGHT_LIMITS: [(usize, usize, usize); 5] = [
    (60, 40, MAX_TAGS),
    (60, 25, 4),
    (60, 12, 2),
    (45, 12, 2),
    (30, 12, 2),
];
/// What the layout of a line costs in tokens.
const LINE_TOKENS: usize = 3;
/// What the line costs that counts further facts.
const MORE_FACTS_TOKENS: usize = 6;

/// Average tokens per result of a page for an agent, as structure.
pub const RESULT_TOKENS: usize = 131;

/// A memory as a result.
pub fn hit(memory: &Memory, scope: &str, detail: Detail) -> MemoryHit {
    let full = detail == Detail::Full;
    let facts: Vec<String> = if full {
        memory.facts.clone()
    } else {
        short_facts(memory.facts.iter())
    };
    let concepts = if full {
        memory.concepts.clone()
    } else {
        memory
            .concepts
            .iter()
            .take(MAX_TAGS)
            .map(|tag| text::line(tag, 60))
            .collect()
    };
    MemoryHit {
        id: memory.id.clone(),
        title: memory.title.clone(),
        subtitle: memory.subtitle.as_ref().map(|subtitle| {
            if full {
                subtitle.clone()
            } else {
                text::line(subtitle, FACT_CAP)
            }
        }),
        concepts,
        project: memory.project.clone(),
        created_at: memory.created_at.map(time::to_rfc3339),
        scope: scope.to_owned(),
        status: memory.status,
        kind: memory.kind.clone(),
        score: None,
        also: Vec::new(),
        more_also: 0,
        excerpt: None,
        more_facts: (memory.facts.len() - facts.len()) as u64,
        facts,
        contradicts: Vec::new(),
        stale: None,
        why: None,
        narrative: memory
            .narrative
            .as_ref()
            .filter(|_| full)
            .map(|narrative| text::cut(narrative, text::BLOCK_CAP).0.into_owned()),
        files: if full {
            memory.files.clone()
        } else {
            Vec::new()
        },
        session: memory.session.clone().filter(|_| full),
        confidence: memory.confidence.filter(|_| full),
        superseded_by: memory.superseded_by.clone(),
        explanation: None,
    }
}

/// The facts of a short result.
pub fn short_facts<'a>(facts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let facts = facts.take(MAX_FACTS);
    facts.map(|fact| text::line(fact, FACT_CAP)).collect()
}

/// How many tokens a page for an agent may take: as structure and as text. An agent sees one of
/// them, which depends on its client.
#[derive(Debug, Clone, Copy)]
pub struct PageBudget {
    /// As structure.
    pub structure: usize,
    /// As text.
    pub text: usize,
}

/// The subtitle and the facts of a result that a page may still show.
struct RemainingText<'a> {
    hit: &'a mut MemoryHit,
    subtitle: Option<String>,
    facts: std::vec::IntoIter<String>,
}

/// Keeps the subtitles and facts of a page that fit into a budget: one fact per result, then more
/// facts for the best results while there is room. If one fact is too much already, titles and
/// facts are cut.
pub fn fit_subtitles_and_facts<'a>(
    hits: impl Iterator<Item = &'a mut MemoryHit>,
    budget: PageBudget,
) {
    let mut rests: Vec<RemainingText<'_>> = hits.map(shorten).collect();
    let used = |rests: &[RemainingText<'_>]| {
        let both = rests.iter().map(|rest| {
            let has_more = rest.hit.more_facts > 0 || !rest.facts.as_slice().is_empty();
            let more = if has_more { MORE_FACTS_TOKENS } else { 0 };
            (token_cost(&*rest.hit), cost_as_text(rest.hit) + more)
        });
        both.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    };
    let fits = |used: (usize, usize)| used.0 <= budget.structure && used.1 <= budget.text;
    let mut sum = used(&rests);
    for limits in TIGHT_LIMITS {
        if fits(sum) {
            break;
        }
        rests
            .iter_mut()
            .for_each(|rest| cut_lines(rest.hit, limits));
        sum = used(&rests);
    }
    for RemainingText {
        hit,
        subtitle,
        facts,
    } in rests
    {
        let mut fits = |text: &String| {
            let cost = text::tokens(text);
            let more = (sum.0 + cost + 1, sum.1 + cost + LINE_TOKENS);
            let fits = fits(more);
            sum = if fits { more } else { sum };
            fits
        };
        hit.subtitle = hit.subtitle.take().or(subtitle.filter(&mut fits));
        let mut facts = facts.peekable();
        while let Some(fact) = facts.next_if(&mut fits) {
            hit.facts.push(fact);
        }
        hit.more_facts += facts.count() as u64;
    }
}

/// Leaves a title of one line and one fact, or else the subtitle.
fn shorten(hit: &mut MemoryHit) -> RemainingText<'_> {
    let subtitle = hit.subtitle.take();
    let mut facts = std::mem::take(&mut hit.facts).into_iter();
    hit.title = text::line(&hit.title, TITLE_CAP);
    match (facts.next(), &subtitle) {
        (Some(fact), _) => hit.facts = vec![text::line(&fact, FIRST_FACT_CAP)],
        (None, Some(subtitle)) => hit.subtitle = Some(text::line(subtitle, FIRST_FACT_CAP)),
        (None, None) => {}
    }
    RemainingText {
        subtitle: subtitle.filter(|_| hit.subtitle.is_none()),
        facts,
        hit,
    }
}

/// Cuts the title and the other lines of a result to these numbers of tokens, and its tags.
fn cut_lines(hit: &mut MemoryHit, (title, line, tags): (usize, usize, usize)) {
    hit.concepts.truncate(tags);
    hit.title = text::line_within(&hit.title, title);
    let lines = hit.facts.iter_mut().chain(&mut hit.subtitle);
    for text in lines.chain(&mut hit.excerpt) {
        *text = text::line_within(text, line);
    }
}

/// The approximate number of tokens of a result in the text of an answer.
fn cost_as_text(hit: &MemoryHit) -> usize {
    let (kind, day) = (&hit.kind, &hit.created_at);
    let mut head = format!("10. **{}** ({}, {}", hit.title, hit.id, hit.scope);
    let words = hit.project.iter().chain(kind).chain(day);
    words.for_each(|word| head.extend([", ", word]));
    let also = hit.also.iter().map(|also| &also.id);
    let doubts = hit.doubts();
    let lines = hit.facts.iter().chain(&hit.subtitle).chain(&hit.excerpt);
    let lines = lines.chain(&doubts).chain(also);
    let cost = |text: &String| text::tokens(text) + LINE_TOKENS;
    token_cost(&head) + lines.map(cost).sum::<usize>()
}

/// Removes the successor's id from a result if the successor itself may not be served.
pub fn hide_successor(hit: &mut MemoryHit, index: &Index, filter: StatusFilter) {
    let served = |id: &String| {
        index
            .find(id)
            .is_some_and(|(_, doc)| filter.allows(doc.status))
    };
    hit.superseded_by = hit.superseded_by.take().filter(served);
}

/// Why a memory was found: the words it shares with the query, by field, most weight first.
pub fn why(memory: &Memory, matcher: &mut Matcher<'_>) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    let facts = memory.facts.join(" ");
    let concepts = memory.concepts.join(" ");
    let files = memory.files.join(" ");
    let fields = [
        ("title", memory.title.as_str()),
        ("facts", facts.as_str()),
        ("tags", concepts.as_str()),
        ("subtitle", memory.subtitle.as_deref().unwrap_or_default()),
        (
            "text",
            memory.narrative.as_deref().map_or("", |text| {
                text.get(..text.floor_char_boundary(20_000))
                    .unwrap_or_default()
            }),
        ),
        ("files", files.as_str()),
    ];
    for (name, field) in fields {
        let mut words = matcher.matching_words(field);
        words.retain(|(_, word)| {
            !lines.iter().any(|known| {
                known == word
                    || (known.contains(word.as_ref()) && known.contains(['_', '-', '/', ':', '.']))
            })
        });
        words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        words.truncate(4);
        if !words.is_empty() {
            let words_shown: Vec<String> =
                words.iter().map(|(_, word)| text::line(word, 60)).collect();
            // A similar word is weaker evidence than a word of the query.
            let list = words
                .iter()
                .zip(&words_shown)
                .map(|((_, word), words_shown)| {
                    if matcher.is_lookalike(word) {
                        format!("{words_shown} (similar)")
                    } else {
                        words_shown.clone()
                    }
                });
            parts.push(format!("{name}: {}", list.collect::<Vec<_>>().join(", ")));
            lines.extend(words_shown);
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The note about damaged values that were read as far as possible.
pub fn note_repairs(memories: &[(String, &Memory)], notes: &mut Vec<Note>) {
    let repaired: Vec<String> = memories
        .iter()
        .filter(|(_, memory)| !memory.repaired.is_empty())
        .take(5)
        .map(|(_, memory)| format!("`{}` ({})", memory.id, memory.repaired.join(", ")))
        .collect();
    if !repaired.is_empty() {
        notes.push(Note::new(
            NoteKind::RepairedValues,
            format!(
                "broken values in the store were read as far as possible: {}",
                repaired.join(", ")
            ),
        ));
    }
}

/// The tokens of a value as JSON.
pub fn token_cost(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |json| text::tokens(&json))
}

/// Keeps the results that fit into `budget` tokens, in order. The first one always stays, with its
/// long fields cut if necessary. Returns how many were kept and whether anything was cut.
pub fn keep_fitting(hits: &mut Vec<MemoryHit>, budget: usize) -> (usize, bool) {
    let mut used = 0;
    let mut is_cut = false;
    let mut kept_count = 0;
    for (position, hit) in hits.iter_mut().enumerate() {
        let mut cost = token_cost(hit) + 1;
        if used + cost > budget {
            is_cut = true;
            if position > 0 {
                break;
            }
            shorten::cut_fields(hit, budget);
            cost = token_cost(hit) + 1;
        }
        used += cost;
        kept_count += 1;
    }
    hits.truncate(kept_count);
    (kept_count, is_cut)
}

/// Keeps the first few memories that are folded into a result, and counts the others.
pub fn limit_also(hit: &mut MemoryHit, max: usize) {
    hit.more_also += hit.also.len().saturating_sub(max) as u64;
    hit.also.truncate(max);
}

/// The last resort to keep an answer within its limit: drops explanations before results, and cuts
/// the remaining result.
pub fn enforce_limit(response: &mut ack_api::QueryResponse, bound: usize) {
    let over = |response: &ack_api::QueryResponse| token_cost(response).saturating_sub(bound);
    response.notes.insert(
        0,
        Note::new(NoteKind::Cut, format!("cut to {bound} tokens"))
            .with(Hint::call(Tool::GetMemory, "shows it in full")),
    );
    if let Some(hit) = response.results.first_mut() {
        let hit_cost = token_cost(hit);
        let excess = over(response);
        if let Some(hit) = response.results.first_mut() {
            shorten::cut_fields(hit, hit_cost.saturating_sub(excess).max(40));
        }
        if over(response) > 0 {
            response
                .notes
                .retain(|note| matches!(note.kind, NoteKind::ScopeUnavailable | NoteKind::Cut));
        }
    }
    let steps: [fn(&mut ack_api::QueryResponse); 7] = [
        |response| response.suggestions.truncate(2),
        |response| bounds::shorten_skipped(&mut response.searched),
        |response| bounds::shorten_notes(&mut response.notes),
        |response| bounds::drop_names(&mut response.searched),
        |response| response.suggestions.clear(),
        |response| response.notes.truncate(1),
        |response| {
            response
                .notes
                .iter_mut()
                .for_each(|note| note.message = bounds::SHORTENED_NOTE.into())
        },
    ];
    for step in steps {
        if over(response) == 0 {
            return;
        }
        step(response);
    }
    for cap in [80, 40, 20] {
        if over(response) == 0 {
            return;
        }
        if let Some(hit) = response.results.first_mut() {
            hit.title = text::line(&hit.title, cap);
            hit.subtitle = None;
            hit.excerpt = None;
            hit.facts.clear();
            hit.concepts.clear();
            limit_also(hit, 0);
            hit.files.clear();
            hit.narrative = None;
            hit.explanation = None;
            hit.why = None;
            hit.kind = None;
            hit.project = None;
            hit.session = None;
            hit.score = None;
            hit.created_at = None;
        }
    }
}
