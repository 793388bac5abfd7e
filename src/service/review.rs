//! The memories that wait for a curator, each with the approved ones it resembles. Reads, as everything here; what is
//! decided about them is decided elsewhere.

use super::search::Search;
use super::validate::{QuerySpec, short};
use super::{Service, answer, bounds, note_missing_status, open};
use crate::scope::resolve::Selection;
use crate::scope::{IndexGuard, Scope};
use crate::service::Error;
use ack_api::cancel;
use ack_api::memory::{Memory, Status, StatusFilter};
use ack_api::source::RowKey;
use ack_api::{Detail, Note, NoteKind, RelatedEntry, Review, ReviewItem};

/// Memories of one review.
const MOST: usize = 10;
/// Approved memories shown beside each.
const RESEMBLING: usize = 3;
/// Least cosine of an approved memory that is shown beside one.
const NEAR: f64 = 0.3;
/// Tokens that one review may take.
const BUDGET: usize = 8_000;

/// Reads what waits: in one scope, or in every shared one and the current one.
pub fn run(service: &Service, scope: Option<&str>) -> Result<Review, Error> {
    short("scope", scope.unwrap_or_default())?;
    let mut selection = service.select(scope, None)?;
    let scopes = selection.scopes.clone();
    let mut notes = Vec::new();
    let opened = open(&mut selection, &scopes, &mut notes)?;
    let mut waiting: Vec<(i64, &str, usize, RowKey)> = Vec::new();
    for (number, (_, guard)) in opened.iter().enumerate() {
        let Some(index) = guard.get() else { continue };
        let staged = cancel::guarded(index.live()).filter(|(_, doc)| doc.status == Status::Staging);
        waiting.extend(staged.map(|(own, doc)| (doc.created, index.id(own), number, doc.key)));
    }
    cancel::check()?;
    waiting.sort_unstable_by_key(|(created, id, number, _)| (*created, *id, *number));
    let mut review = Review {
        total: waiting.len() as u64,
        searched: selection.searched(StatusFilter::Staging),
        ..Review::default()
    };
    waiting.truncate(MOST);
    let mut memories: Vec<(String, Memory)> = Vec::new();
    for (number, (scope, _)) in opened.iter().enumerate() {
        let own = waiting.iter().filter(|(_, _, own, _)| *own == number);
        let wanted: Vec<(RowKey, &str)> = own.map(|(_, id, _, key)| (*key, *id)).collect();
        if wanted.is_empty() {
            continue;
        }
        // The store has the last word: one that was decided meanwhile is not there any more.
        let found = scope.store.snapshot(|snapshot| snapshot.memories(&wanted, StatusFilter::Staging))?;
        memories.extend(found.into_values().map(|memory| (scope.name.clone(), memory)));
    }
    let order = |scope: &str, id: &str| {
        let same = |(_, known, number, _): &(i64, &str, usize, RowKey)| {
            *known == id && opened.get(*number).is_some_and(|(own, _)| own.name == scope)
        };
        waiting.iter().position(same)
    };
    memories.sort_by_key(|(scope, memory)| order(scope, &memory.id));
    let share = BUDGET / memories.len().max(1);
    let mut cut = false;
    for (scope, memory) in &memories {
        let mut hit = answer::hit(memory, scope, Detail::Full);
        if let Some(index) = opened.iter().find(|(own, _)| own.name == *scope).and_then(|(_, guard)| guard.get()) {
            answer::hide_successor(&mut hit, index, StatusFilter::All);
        }
        if answer::cost(&hit) > share {
            answer::shrink(&mut hit, share);
            cut = true;
        }
        let resembles = resembling(&opened, &selection, &memory.title)?;
        review.pending.push(ReviewItem { memory: hit, resembles });
    }
    if cut {
        notes.push(Note::new(
            NoteKind::Cut,
            "long memories are cut; get_memory with `status: \"staging\"` shows one in full",
        ));
    }
    let shown: Vec<(String, &Memory)> = memories.iter().map(|(scope, memory)| (scope.clone(), memory)).collect();
    answer::note_repairs(&shown, &mut notes);
    note_missing_status(&opened, |scope| memories.iter().any(|(own, _)| own == scope), &mut notes);
    bounds::limit_searched(&mut review.searched, |name| {
        review.pending.iter().any(|item| item.memory.scope == name)
    });
    bounds::limit_notes(&mut notes);
    review.notes = notes;
    Ok(review)
}

/// The approved memories that a search for the title of one that waits finds, but for those that are far from it in meaning.
/// The title says what it is about; a long narrative would blur it.
fn resembling(opened: &[(&Scope, IndexGuard<'_>)], selection: &Selection, title: &str) -> Result<Vec<RelatedEntry>, Error> {
    let spec = QuerySpec::words(title, StatusFilter::Approved, RESEMBLING);
    let search = Search::new(opened, selection, &spec, None)?;
    let page = search.page(None, RESEMBLING)?;
    let mut entries = Vec::new();
    for hit in page.hits {
        let hit = hit.hit;
        let similarity = search.similarity(&hit.scope, &hit.id);
        if similarity.is_none_or(|similarity| similarity >= NEAR) {
            entries.push(RelatedEntry {
                similarity: similarity.unwrap_or_default(),
                id: hit.id,
                scope: hit.scope,
                title: hit.title,
                status: hit.status,
            });
        }
    }
    Ok(entries)
}
