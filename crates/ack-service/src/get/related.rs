//! The memories that are near another one in meaning.

use crate::error::Error;
use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use crate::search::Search;
use crate::validate::QuerySpec;
use ack_api::memory::StatusFilter;
use ack_api::{MemoryDetail, Note, NoteKind, RelatedEntry};

const MAX_RELATED: usize = 5;

/// Adds the memories that are near in meaning, in every scope of the request. They are as near as a
/// search requires of a memory that shares no word with the query.
pub fn related(
    opened: &OpenScopes,
    selection: &Selection,
    filter: StatusFilter,
    detail: &mut MemoryDetail,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    let (id, scope) = (&detail.memory.id, &detail.memory.scope);
    let spec = QuerySpec::near(id, scope, filter, MAX_RELATED);
    let search = Search::new(opened, selection, &spec, None)?;
    if !search.has_meaning() {
        let message = format!("`{id}` has no vector, so nothing can be near it");
        notes.push(Note::about(NoteKind::NoSemanticLeg, scope, message));
        return Ok(());
    }
    let page = search.page(None, MAX_RELATED)?;
    for (scope, reason) in &page.failed {
        notes.push(Note::about(NoteKind::ScopeUnavailable, scope, reason.clone()));
    }
    if page.hits.is_empty() {
        let message = format!("no memory is near `{id}` in meaning");
        notes.push(Note::about(NoteKind::NotAvailable, scope, message));
    }
    let entries = page.hits.into_iter().map(|hit| RelatedEntry {
        similarity: hit.hit.score.unwrap_or_default(),
        id: hit.hit.id,
        scope: hit.hit.scope,
        title: hit.hit.title,
        status: hit.hit.status,
    });
    detail.related = entries.collect();
    Ok(())
}
