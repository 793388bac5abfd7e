//! The neighbours of a memory in time.

use std::collections::HashSet;

use super::GetSpec;
use crate::scope::Scope;
use ack_api::memory::{Memory, fold_name};
use ack_api::source::RowKey;
use ack_api::{Hint, Message, Timeline, TimelineEntry, Within, cancel, time};
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_store::{Snapshot, StoreError};

/// Whether a document belongs to the range of a timeline.
type BelongsToRange<'a> = &'a dyn Fn(&Doc) -> bool;

/// A memory of a timeline: when it was written, its id and its row.
type Member<'a> = (i64, &'a str, RowKey);

/// The neighbours in time, within the requested range. Without one: the session if it has others,
/// else the project, else the scope.
pub fn timeline(
    snapshot: &Snapshot<'_>,
    scope: &Scope,
    index: &Index,
    id: &str,
    spec: &GetSpec,
) -> Result<Option<Timeline>, StoreError> {
    let (Some((number, doc)), Some((most_before, most_after, wanted))) =
        (index.find(id), spec.timeline)
    else {
        return Ok(None);
    };
    let filter = spec.filter;
    let in_session = |other: &Doc| {
        (doc.session != 0 && other.session == doc.session)
            || (doc.session_id != 0 && other.session_id == doc.session_id)
    };
    // Match the project under all its names.
    let rows = scope.rows_of(&fold_name(index.name(doc.project)), &[]);
    let names = index.live().map(|(_, row)| (row.project, row.alias));
    let mut names: HashSet<(NameId, NameId)> = names.collect();
    names.retain(|(project, alias)| rows.contain(index.name(*project), index.name(*alias)));
    let in_project =
        |other: &Doc| doc.project != 0 && names.contains(&(other.project, other.alias));
    let in_scope = |_: &Doc| true;
    let levels: [(Within, BelongsToRange<'_>); 3] = [
        (Within::Session, &in_session),
        (Within::Project, &in_project),
        (Within::Scope, &in_scope),
    ];
    for (within, holds) in
        levels.into_iter().filter(|(level, _)| wanted.is_none_or(|wanted| wanted == *level))
    {
        let members = cancel::guarded(index.live())
            .filter(|(other, doc)| *other == number || filter.allows(doc.status) && holds(doc));
        let mut line: Vec<Member<'_>> =
            members.map(|(doc, row)| (row.created, index.id(doc), row.key)).collect();
        if line.len() < 2 && wanted.is_none() && within != Within::Scope {
            continue;
        }
        line.sort_unstable_by_key(|(created, id, _)| (*created, *id));
        let Some(position) = line.iter().position(|(_, other, _)| *other == index.id(number))
        else {
            return Ok(None);
        };
        let (before, after) = line.split_at(position);
        let before = before.get(position.saturating_sub(most_before)..);
        let before = before.unwrap_or_default();
        let after = after.get(1..).unwrap_or_default();
        let after = after.get(..most_after.min(after.len())).unwrap_or_default();
        let shown = before.iter().chain(after);
        let shown: Vec<(RowKey, &str)> = shown.map(|(_, id, key)| (*key, *id)).collect();
        let records = snapshot.memories(&shown, filter)?;
        let entries = |members: &[Member<'_>]| {
            let found = members.iter().filter_map(|(_, id, _)| records.get(*id));
            found.map(entry).collect()
        };
        return Ok(Some(Timeline { within, before: entries(before), after: entries(after) }));
    }
    Ok(None)
}

/// Why a timeline within the requested range is empty.
pub fn empty_reason(memory: &Memory, within: Within) -> Message {
    let id = &memory.id;
    match within {
        Within::Session if memory.session.is_none() && memory.session_id.is_none() => {
            let omit = Hint::omit("timeline_within", "to take its project or scope");
            Message::new(format!("`{id}` belongs to no session")).with(omit)
        }
        Within::Project if memory.project.is_none() => {
            let omit = Hint::omit("timeline_within", "to take its session or scope");
            Message::new(format!("`{id}` belongs to no project")).with(omit)
        }
        Within::Session => format!("no other memory of the session of `{id}` may be shown").into(),
        Within::Project => format!("no other memory of the project of `{id}` may be shown").into(),
        Within::Scope => format!("no other memory of the scope of `{id}` may be shown").into(),
    }
}

fn entry(memory: &Memory) -> TimelineEntry {
    TimelineEntry {
        id: memory.id.clone(),
        title: memory.title.clone(),
        kind: memory.kind.clone(),
        created_at: memory.created_at.map(time::to_rfc3339),
        status: memory.status,
    }
}
