//! The memories that wait for a curator, each with the approved ones it resembles. Reads, as everything here; what is
//! decided about them is decided elsewhere.

use super::engine::Service;
use super::open::OpenScopes;
use super::open::{OpenScope, Wanted};
use super::search::Search;
use super::validate::{QuerySpec, short};
use super::{answer, bounds};
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use ack_api::cancel;
use ack_api::memory::{Memory, Status, StatusFilter};
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
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut notes)?;
    let mut waiting: Vec<(i64, &str, Wanted)> = Vec::new();
    for (number, open) in opened.iter().enumerate() {
        let Some(index) = open.index() else { continue };
        let staged = cancel::guarded(index.live()).filter(|(_, doc)| doc.status == Status::Staging);
        waiting.extend(staged.map(|(own, doc)| {
            (
                doc.created,
                index.id(own),
                Wanted {
                    scope: number,
                    doc: own,
                },
            )
        }));
    }
    cancel::check()?;
    waiting.sort_unstable_by_key(|(created, id, wanted)| (*created, *id, wanted.scope));
    let mut review = Review {
        total: waiting.len() as u64,
        searched: selection.searched(StatusFilter::Staging),
        ..Review::default()
    };
    waiting.truncate(MOST);
    // The store has the last word: a memory that was decided meanwhile is not there any more.
    let mut records = opened.read(
        waiting.iter().map(|(_, _, wanted)| *wanted),
        StatusFilter::Staging,
    );
    if let Some((_, error)) = records.failed.into_iter().next() {
        return Err(error.into());
    }
    let memories: Vec<(String, Memory)> = waiting
        .iter()
        .filter_map(|(_, id, wanted)| {
            let memory = records.found.remove(&(wanted.scope, (*id).to_owned()))?;
            Some((opened.get(wanted.scope)?.name().to_owned(), memory))
        })
        .collect();
    let share = BUDGET / memories.len().max(1);
    let mut cut = false;
    for (scope, memory) in &memories {
        let mut hit = answer::hit(memory, scope, Detail::Full);
        if let Some(index) = opened.named(scope).and_then(OpenScope::index) {
            answer::hide_successor(&mut hit, index, StatusFilter::All);
        }
        if answer::cost(&hit) > share {
            answer::shrink(&mut hit, share);
            cut = true;
        }
        let resembles = resembling(&opened, &selection, &memory.title)?;
        review.pending.push(ReviewItem {
            memory: hit,
            resembles,
        });
    }
    if cut {
        notes.push(Note::new(
            NoteKind::Cut,
            "long memories are cut; get_memory with `status: \"staging\"` shows one in full",
        ));
    }
    let shown: Vec<(String, &Memory)> = memories
        .iter()
        .map(|(scope, memory)| (scope.clone(), memory))
        .collect();
    answer::note_repairs(&shown, &mut notes);
    opened.note_missing_status(
        |scope| memories.iter().any(|(own, _)| own == scope),
        &mut notes,
    );
    bounds::limit_searched(&mut review.searched, |name| {
        review.pending.iter().any(|item| item.memory.scope == name)
    });
    bounds::limit_notes(&mut notes);
    review.notes = notes;
    Ok(review)
}

/// The approved memories that a search for the title of one that waits finds, but for those that are far from it in meaning.
/// The title says what it is about; a long narrative would blur it.
fn resembling(
    opened: &OpenScopes,
    selection: &Selection,
    title: &str,
) -> Result<Vec<RelatedEntry>, Error> {
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
