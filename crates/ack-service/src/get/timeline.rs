//! The neighbours of a memory in time.

use std::collections::HashSet;

use crate::scope::Scope;
use ack_api::memory::{Memory, StatusFilter, fold_name};
use ack_api::source::RowKey;
use ack_api::{Hint, Message, Timeline, TimelineEntry, Within, cancel, time};
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_store::{Snapshot, StoreError};

/// A memory of a timeline: when it was written, its id and its row.
type Member<'a> = (i64, &'a str, RowKey);

/// Without a range: the session if it has others, else the project, else the scope.
pub fn timeline(
    snapshot: &Snapshot<'_>,
    scope: &Scope,
    index: &Index,
    id: &str,
    (most_before, most_after, wanted): (usize, usize, Option<Within>),
    filter: StatusFilter,
) -> Result<Option<Timeline>, StoreError> {
    let Some((number, doc)) = index.find(id) else {
        return Ok(None);
    };
    // Match the project under all its names.
    let rows = scope.rows_of(&fold_name(index.names().name(doc.project)), &[]);
    let names = index.live().map(|(_, row)| (row.project, row.alias));
    let mut names: HashSet<(NameId, NameId)> = names.collect();
    names.retain(|(project, alias)| {
        rows.contain(index.names().name(*project), index.names().name(*alias))
    });
    let is_in = |within: Within, other: &Doc| match within {
        Within::Session => {
            (doc.session != 0 && other.session == doc.session)
                || (doc.session_id != 0 && other.session_id == doc.session_id)
        }
        Within::Project => doc.project != 0 && names.contains(&(other.project, other.alias)),
        Within::Scope => true,
    };
    let ranges = [Within::Session, Within::Project, Within::Scope];
    for within in ranges.into_iter().filter(|range| wanted.is_none_or(|it| it == *range)) {
        let members = cancel::guarded(index.live()).filter(|(other, doc)| {
            *other == number || filter.allows(doc.status) && is_in(within, doc)
        });
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
        let before = line.iter().take(position).skip(position.saturating_sub(most_before));
        let after = line.iter().skip(position + 1).take(most_after);
        let shown = before.clone().chain(after.clone());
        let shown: Vec<(RowKey, &str)> = shown.map(|(_, id, key)| (*key, *id)).collect();
        let records = snapshot.memories(&shown, filter)?;
        let entry = |(_, id, _): &Member<'_>| records.get(*id).map(entry);
        return Ok(Some(Timeline {
            within,
            before: before.filter_map(entry).collect(),
            after: after.filter_map(entry).collect(),
        }));
    }
    Ok(None)
}

pub fn empty_reason(memory: &Memory, within: Within) -> Message {
    let id = &memory.id;
    let has_session = memory.session.is_some() || memory.session_id.is_some();
    let (range, has_one, others) = match within {
        Within::Session => ("session", has_session, "to take its project or scope"),
        Within::Project => ("project", memory.project.is_some(), "to take its session or scope"),
        Within::Scope => ("scope", true, ""),
    };
    if has_one {
        return format!("no other memory of the {range} of `{id}` may be shown").into();
    }
    let omit = Hint::omit("timeline_within", others);
    Message::new(format!("`{id}` belongs to no {range}")).with(omit)
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
