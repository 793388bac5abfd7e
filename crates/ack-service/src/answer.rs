//! Turns records into results: how much of a memory to show, and why it was found.

use std::borrow::Cow;

use ack_api::memory::{Memory, StatusFilter};
use ack_api::{Detail, MemoryHit, Note, NoteKind, text, time};
use ack_search::inverted::Index;
use ack_search::lexical::Matcher;

const MAX_FACTS: usize = 5;
/// Maximum characters of a fact or subtitle in a concise result.
const FACT_CAP: usize = 240;
/// Tags in a concise result, and the maximum characters of each.
const MAX_TAGS: usize = 8;
const TAG_CAP: usize = 60;
/// Maximum bytes of a long text that are compared with the query to say why it was found.
const MAX_WHY_BYTES: usize = 20_000;
const MAX_WHY_WORDS: usize = 4;
const MAX_REPAIRED: usize = 5;

pub fn hit(memory: &Memory, scope: &str, detail: Detail) -> MemoryHit {
    let hit = MemoryHit {
        id: memory.id.clone(),
        title: memory.title.clone(),
        project: memory.project.clone(),
        created_at: memory.created_at.map(time::to_rfc3339),
        scope: scope.to_owned(),
        status: memory.status,
        kind: memory.kind.clone(),
        superseded_by: memory.superseded_by.clone(),
        ..MemoryHit::default()
    };
    if detail == Detail::Full {
        let narrative = memory.narrative.as_deref();
        return MemoryHit {
            subtitle: memory.subtitle.clone(),
            facts: memory.facts.clone(),
            concepts: memory.concepts.clone(),
            narrative: narrative.map(|text| text::cut(text, text::BLOCK_CAP).0.into_owned()),
            files: memory.files.clone(),
            session: memory.session.clone(),
            confidence: memory.confidence,
            ..hit
        };
    }
    let tags = memory.concepts.iter().take(MAX_TAGS);
    MemoryHit {
        subtitle: memory.subtitle.as_deref().map(|text| text::line(text, FACT_CAP)),
        facts: short_facts(memory.facts.iter()),
        more_facts: memory.facts.len().saturating_sub(MAX_FACTS) as u64,
        concepts: tags.map(|tag| text::line(tag, TAG_CAP)).collect(),
        ..hit
    }
}

pub fn short_facts<'a>(facts: impl Iterator<Item = &'a String>) -> Vec<String> {
    facts.take(MAX_FACTS).map(|fact| text::line(fact, FACT_CAP)).collect()
}

/// Whether the memory with an id may be named.
pub fn is_served(id: &str, index: &Index, filter: StatusFilter) -> bool {
    index.find(id).is_some_and(|(_, doc)| filter.allows(doc.status))
}

/// Why a memory was found: the words it shares with the query, by field, most weight first.
pub fn why(memory: &Memory, matcher: &mut Matcher<'_>) -> Option<String> {
    let text = memory.narrative.as_deref().unwrap_or_default();
    let text = text.get(..text.floor_char_boundary(MAX_WHY_BYTES));
    let fields: [(&str, Cow<'_, str>); 6] = [
        ("title", memory.title.as_str().into()),
        ("facts", memory.facts.join(" ").into()),
        ("tags", memory.concepts.join(" ").into()),
        ("subtitle", memory.subtitle.as_deref().unwrap_or_default().into()),
        ("text", text.unwrap_or_default().into()),
        ("files", memory.files.join(" ").into()),
    ];
    let mut known: Vec<String> = Vec::new();
    let mut parts = Vec::new();
    for (name, field) in fields {
        let mut words = matcher.matching_words(&field);
        // Neither a word of another field, nor a part of an identifier in one.
        words.retain(|(_, word)| {
            !known.iter().any(|known| {
                known == word
                    || (known.contains(word.as_str()) && known.contains(['_', '-', '/', ':', '.']))
            })
        });
        words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        words.truncate(MAX_WHY_WORDS);
        if words.is_empty() {
            continue;
        }
        let mut list = Vec::new();
        for (_, word) in words {
            let short = text::line(&word, TAG_CAP);
            // A similar word is weaker evidence than a word of the query.
            let similar = if matcher.is_lookalike(&word) { " (similar)" } else { "" };
            list.push(format!("{short}{similar}"));
            known.push(short);
        }
        parts.push(format!("{name}: {}", list.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

pub fn note_repairs<'a>(memories: impl Iterator<Item = &'a Memory>, notes: &mut Vec<Note>) {
    let repaired: Vec<String> = memories
        .filter(|memory| !memory.repaired.is_empty())
        .take(MAX_REPAIRED)
        .map(|memory| format!("`{}` ({})", memory.id, memory.repaired.join(", ")))
        .collect();
    if !repaired.is_empty() {
        let repaired = repaired.join(", ");
        let message =
            format!("broken values in the store were read as far as possible: {repaired}");
        notes.push(Note::new(NoteKind::RepairedValues, message));
    }
}
