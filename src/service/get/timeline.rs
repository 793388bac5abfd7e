//! The neighbours of a memory in time.

use std::collections::{HashMap, HashSet};

use super::GetSpec;
use crate::scope::Scope;
use ack_api::cancel;
use ack_api::memory::{Memory, fold_name};
use ack_api::source::RowKey;
use ack_api::time;
use ack_api::{Hint, Message, Timeline, TimelineEntry, Within};
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_search::postings::DocId;
use ack_store::Snapshot;
use ack_store::StoreError;

/// Whether a document belongs to the range of a timeline.
type BelongsToRange<'a> = &'a dyn Fn(&Doc) -> bool;

/// The neighbours in time, within the requested range. Without one: the session if it has others,
/// else the project, else the scope.
pub(super) fn timeline(
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
    let holds: HashMap<(NameId, NameId), bool> = index
        .live()
        .map(|(_, other)| (other.project, other.alias))
        .collect::<HashSet<_>>()
        .into_iter()
        .map(|names| {
            (
                names,
                rows.contain(index.name(names.0), index.name(names.1)),
            )
        })
        .collect();
    let in_project = |other: &Doc| {
        let names = (other.project, other.alias);
        doc.project != 0 && holds.get(&names).copied().unwrap_or_default()
    };
    let in_scope = |_: &Doc| true;
    let levels: [(Within, BelongsToRange<'_>); 3] = [
        (Within::Session, &in_session),
        (Within::Project, &in_project),
        (Within::Scope, &in_scope),
    ];
    for (within, holds) in levels
        .into_iter()
        .filter(|(level, _)| wanted.is_none_or(|wanted| wanted == *level))
    {
        let mut line: Vec<(i64, &str, RowKey, DocId)> = cancel::guarded(index.live())
            .filter(|(other, doc)| *other == number || filter.allows(doc.status) && holds(doc))
            .map(|(number, other)| (other.created, index.id(number), other.key, number))
            .collect();
        if line.len() < 2 && wanted.is_none() && within != Within::Scope {
            continue;
        }
        line.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let Some(position) = line.iter().position(|(.., other)| *other == number) else {
            return Ok(None);
        };
        let before = line
            .get(position.saturating_sub(most_before)..position)
            .unwrap_or_default();
        let after = line
            .get(position + 1..(position + 1 + most_after).min(line.len()))
            .unwrap_or_default();
        let wanted: Vec<(RowKey, &str)> = before
            .iter()
            .chain(after)
            .map(|(_, id, key, _)| (*key, *id))
            .collect();
        let records = snapshot.memories(&wanted, filter)?;
        let entries = |range: &[(i64, &str, RowKey, DocId)]| {
            range
                .iter()
                .filter_map(|(_, id, ..)| records.get(*id))
                .map(entry)
                .collect()
        };
        return Ok(Some(Timeline {
            within,
            before: entries(before),
            after: entries(after),
        }));
    }
    Ok(None)
}

/// Why a timeline within the requested range is empty.
pub(super) fn empty_reason(memory: &Memory, within: Within) -> Message {
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
