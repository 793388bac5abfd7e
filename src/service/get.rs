//! `get_memory`: memories by id, with their surroundings.

use super::search::Search;
use super::validate::QuerySpec;
use super::{Service, answer, note_locks, note_missing_status, open};
use crate::api::{
    Detail, GetRequest, GetResponse, Include, MAX_IDS, MemoryDetail, MissingMemory, Note, NoteKind, RelatedEntry, Timeline, TimelineEntry,
};
use crate::error::Error;
use crate::memory::{Memory, StatusFilter, nearest};
use crate::query::inverted::docs::Doc;
use crate::query::inverted::{DocId, Index};
use crate::scope::resolve::Selection;
use crate::scope::{IndexGuard, Scope};
use crate::store::Snapshot;
use crate::store::read::RowKey;
use crate::{text, time};

/// Neighbours on each side of a timeline.
const NEIGHBOURS: usize = 3;
/// Steps that links are followed.
const LINK_DEPTH: u32 = 4;
/// Memories near in meaning.
const RELATED: usize = 5;
/// Tokens that one answer may take.
const BUDGET: usize = 11_000;

pub fn run(service: &Service, request: &GetRequest) -> Result<GetResponse, Error> {
    let filter = request.status.unwrap_or_default();
    let include = request.include.as_deref().unwrap_or_default();
    let ids = match (&request.id, &request.ids) {
        (Some(id), None) => vec![id.trim().to_owned()],
        (None, Some(ids)) if (1..=MAX_IDS).contains(&ids.len()) => {
            let mut distinct: Vec<String> = Vec::new();
            for id in ids.iter().map(|id| id.trim().to_owned()) {
                if !distinct.contains(&id) {
                    distinct.push(id);
                }
            }
            distinct
        }
        (None, Some(ids)) => {
            return Err(Error::InvalidArgument {
                argument: "ids".to_owned(),
                value: format!("{} ids", ids.len()),
                allowed: format!("1 to {MAX_IDS} ids"),
                nearest: vec![MAX_IDS.to_string()],
                example: ids.first().map(|id| serde_json::json!({ "ids": [text::line(id, 60)] }).to_string()),
            });
        }
        (Some(_), Some(_)) => return Err(Error::invalid("ids", "given together with `id`", "either `id` or `ids`")),
        (None, None) => return Err(Error::invalid("id", "missing", "`id`, or `ids` with up to 20 of them")),
    };
    if let Some(long) = ids.iter().find(|id| id.is_empty() || id.len() > 500) {
        return Err(Error::invalid("id", text::line(long, 60), "an id as query_memories returns it"));
    }
    let mut selection = service.select(request.scope.as_deref(), None)?;
    let scopes = selection.scopes.clone();
    let mut response = GetResponse::default();
    let mut opened = open(&mut selection, &scopes, &mut response.notes)?;
    // The current project's scope is looked at first, where two scopes hold the same id.
    let own = selection.current.scope.as_ref().map(|scope| scope.name.as_str());
    opened.sort_by_key(|(scope, _)| Some(scope.name.as_str()) != own);
    let mut budget = BUDGET;
    let mut failed = Vec::new();
    let mut found = Vec::new();
    for (position, id) in ids.iter().enumerate() {
        let found_one = one(&opened, id, filter, include, &mut failed);
        match found_one {
            Ok((memory, mut detail)) => {
                if include.contains(&Include::Related) {
                    related(&opened, &selection, filter, &mut detail, &mut response.notes)?;
                }
                // Each memory may take its share of what is left.
                let share = budget / (ids.len() - position);
                if answer::cost(&detail) > share {
                    shrink(&mut detail, share);
                    response.notes.push(Note::new(
                        NoteKind::Cut,
                        format!("`{id}` is cut; ask for it alone to see more of it"),
                    ));
                }
                budget = budget.saturating_sub(answer::cost(&detail));
                found.push((memory, detail));
            }
            Err(error) if request.ids.is_some() => {
                let body = error.body();
                let reason = body.hint.map_or(body.message.clone(), |hint| format!("{}; {hint}", body.message));
                response.missing.push(MissingMemory {
                    id: text::line(id, 200),
                    reason,
                    nearest: body.nearest,
                });
            }
            Err(error) => return Err(error),
        }
    }
    response.notes.extend(failed.into_iter().map(|(_, note)| note));
    note_locks(opened.iter().map(|(scope, _)| *scope), &mut response.notes);
    let memories: Vec<(String, &Memory)> = found.iter().map(|(memory, detail)| (detail.memory.scope.clone(), memory)).collect();
    answer::note_repairs(&memories, &mut response.notes);
    if filter != StatusFilter::Approved {
        note_missing_status(&opened, |scope| memories.iter().any(|(own, _)| own == scope), &mut response.notes);
    }
    let mut details = found.into_iter().map(|(_, detail)| detail);
    if request.id.is_some() {
        response.memory = details.next().map(Box::new);
    } else {
        response.memories = details.collect();
    }
    Ok(response)
}

/// Finds one memory: the first scope that may show it, or the reason why none may.
///
/// A scope that cannot be read now is passed over, for the other ids of the request too; it is the error only where no other
/// scope has the memory.
fn one(
    opened: &[(&Scope, IndexGuard<'_>)],
    id: &str,
    filter: StatusFilter,
    include: &[Include],
    failed: &mut Vec<(String, Note)>,
) -> Result<(Memory, MemoryDetail), Error> {
    let (mut refused, mut unreadable) = (None, None);
    for (scope, guard) in opened {
        let Some(index) = guard.get() else { continue };
        if failed.iter().any(|(name, _)| *name == scope.name) {
            continue;
        }
        let found = match scope.store.snapshot(|snapshot| {
            let Some(memory) = fetch(snapshot, index, id)? else {
                return Ok(None);
            };
            if !filter.allows(memory.status) {
                return Ok(Some(Err((memory.status, memory.unknown_status))));
            }
            let detail = detail(snapshot, index, &scope.name, &memory, filter, include)?;
            Ok(Some(Ok((memory, detail))))
        }) {
            Ok(found) => found,
            Err(error) => {
                let message = text::line(&format!("{error}; {}", error.hint()), 500);
                failed.push((scope.name.clone(), Note::about(NoteKind::ScopeUnavailable, &scope.name, message)));
                unreadable.get_or_insert(error);
                continue;
            }
        };
        match found {
            Some(Ok(found)) => return Ok(found),
            Some(Err((status, word))) => {
                let (id, scope) = (text::line(id, 200), scope.name.clone());
                refused.get_or_insert(match word {
                    Some(word) => Error::UnknownStatus { id, scope, word },
                    None => Error::MemoryNotServed { id, scope, status },
                });
            }
            None => {}
        }
    }
    if let (None, Some(error)) = (&refused, unreadable) {
        return Err(error.into());
    }
    let read = opened
        .iter()
        .map(|(scope, _)| scope.name.clone())
        .filter(|name| !failed.iter().any(|(other, _)| other == name));
    Err(refused.unwrap_or_else(|| Error::MemoryNotFound {
        id: text::line(id, 200),
        scopes: read.collect(),
        nearest: like(opened, id, filter),
    }))
}

/// Adds what is near a memory in meaning, in every scope of the request.
fn related(
    opened: &[(&Scope, IndexGuard<'_>)],
    selection: &Selection,
    filter: StatusFilter,
    detail: &mut MemoryDetail,
    notes: &mut Vec<Note>,
) -> Result<(), Error> {
    let spec = QuerySpec::near(&detail.memory.id, &detail.memory.scope, filter, RELATED);
    let search = Search::new(opened, selection, &spec, None)?;
    if !search.has_meaning() {
        notes.push(Note::about(
            NoteKind::NoSemanticLeg,
            &detail.memory.scope,
            format!("`{}` has no vector, so nothing can be near it", detail.memory.id),
        ));
        return Ok(());
    }
    let page = search.page(None, RELATED)?;
    for (scope, reason) in &page.failed {
        notes.push(Note::about(NoteKind::ScopeUnavailable, scope, reason.clone()));
    }
    detail.related = page
        .hits
        .into_iter()
        .map(|hit| RelatedEntry {
            similarity: hit.hit.score.unwrap_or_default(),
            id: hit.hit.id,
            scope: hit.hit.scope,
            title: hit.hit.title,
            status: hit.hit.status,
        })
        .collect();
    Ok(())
}

/// Cuts a memory to a number of tokens: first what surrounds it, the oldest log lines and the farthest links, then its text.
fn shrink(detail: &mut MemoryDetail, budget: usize) {
    for _ in 0..6 {
        let over = answer::cost(detail) > budget;
        if !over || (detail.history.len() <= 4 && detail.links.len() <= 4) {
            break;
        }
        let history = detail.history.len().div_ceil(2);
        detail.history.drain(..detail.history.len() - history);
        detail.links.truncate(detail.links.len().div_ceil(2));
    }
    let excess = answer::cost(detail).saturating_sub(budget);
    if excess > 0 {
        let own = answer::cost(&detail.memory);
        answer::shrink(&mut detail.memory, own.saturating_sub(excess).max(120));
    }
    if answer::cost(detail) > budget {
        detail.timeline = None;
        detail.history.truncate(1);
        detail.links.truncate(1);
        detail.related.truncate(1);
        detail.session_context = None;
    }
}

/// Finds a memory by its stored id, or by the id as it is shown where that had to be made safe.
fn fetch(snapshot: &Snapshot<'_>, index: &Index, id: &str) -> Result<Option<Memory>, crate::error::StoreError> {
    if let Some(memory) = snapshot.by_id(id)? {
        return Ok(Some(memory));
    }
    let Some((_, doc)) = index.find(id) else { return Ok(None) };
    Ok(snapshot.memories(&[(doc.key, id)], StatusFilter::All)?.remove(id))
}

/// Ids like an unknown one, of memories that may be shown.
fn like(opened: &[(&Scope, IndexGuard<'_>)], id: &str, filter: StatusFilter) -> Vec<String> {
    let ids = opened
        .iter()
        .filter_map(|(_, guard)| guard.get())
        .flat_map(|index| index.live_ids(filter));
    nearest(id, ids, 3)
}

fn detail(
    snapshot: &Snapshot<'_>,
    index: &Index,
    scope: &str,
    memory: &Memory,
    filter: StatusFilter,
    include: &[Include],
) -> Result<MemoryDetail, crate::error::StoreError> {
    let mut detail = MemoryDetail {
        memory: answer::hit(memory, scope, Detail::Full),
        date: memory.date.clone(),
        session_id: memory.session_id.clone(),
        session_context: snapshot.session_context(memory, filter)?,
        reviewed_at: memory.reviewed_at.map(time::show),
        reviewed_by: memory.reviewed_by.clone(),
        updated_at: memory.updated_at.map(time::show),
        timeline: None,
        related: Vec::new(),
        links: Vec::new(),
        history: Vec::new(),
    };
    answer::hide_successor(&mut detail.memory, index, filter);
    if include.contains(&Include::Timeline) {
        detail.timeline = timeline(snapshot, index, &memory.id, filter)?;
    }
    if include.contains(&Include::Links) {
        detail.links = snapshot.links(&memory.id, filter, LINK_DEPTH)?.0;
    }
    if include.contains(&Include::History) {
        detail.history = snapshot.history(&memory.id)?;
    }
    Ok(detail)
}

/// Whether a document belongs to the same whole.
type Holds<'a> = &'a dyn Fn(&Doc) -> bool;

/// Neighbours in time: within the session where it has others, else the project, else the scope.
fn timeline(snapshot: &Snapshot<'_>, index: &Index, id: &str, filter: StatusFilter) -> Result<Option<Timeline>, crate::error::StoreError> {
    let Some((number, doc)) = index.find(id) else { return Ok(None) };
    let in_session =
        |other: &Doc| (doc.session != 0 && other.session == doc.session) || (doc.session_id != 0 && other.session_id == doc.session_id);
    let in_project = |other: &Doc| doc.project != 0 && other.project == doc.project;
    let in_scope = |_: &Doc| true;
    let within: [(&str, Holds<'_>); 3] = [("session", &in_session), ("project", &in_project), ("scope", &in_scope)];
    for (name, holds) in within {
        let mut line: Vec<(i64, &str, RowKey, DocId)> = index
            .live()
            .filter(|(_, other)| filter.allows(other.status) && holds(other))
            .map(|(number, other)| (other.created, index.id(number), other.key, number))
            .collect();
        if line.len() < 2 && name != "scope" {
            continue;
        }
        line.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let Some(own) = line.iter().position(|(.., other)| *other == number) else {
            return Ok(None);
        };
        let before = line.get(own.saturating_sub(NEIGHBOURS)..own).unwrap_or_default();
        let after = line.get(own + 1..(own + 1 + NEIGHBOURS).min(line.len())).unwrap_or_default();
        let wanted: Vec<(RowKey, &str)> = before.iter().chain(after).map(|(_, id, key, _)| (*key, *id)).collect();
        let records = snapshot.memories(&wanted, filter)?;
        let entries = |places: &[(i64, &str, RowKey, DocId)]| places.iter().filter_map(|(_, id, ..)| records.get(*id)).map(entry).collect();
        return Ok(Some(Timeline {
            within: name.to_owned(),
            before: entries(before),
            after: entries(after),
        }));
    }
    Ok(None)
}

fn entry(memory: &Memory) -> TimelineEntry {
    TimelineEntry {
        id: memory.id.clone(),
        title: memory.title.clone(),
        kind: memory.kind.clone(),
        created_at: memory.created_at.map(time::show),
        status: memory.status,
    }
}
