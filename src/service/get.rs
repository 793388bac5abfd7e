//! `get_memory`: memories by id, with their context.

mod related;
mod timeline;

use std::collections::BTreeSet;

use self::related::related;
use self::timeline::{empty_reason, timeline};
use super::answer;
use super::budget::passage::Question;
use super::budget::{cut_long_text, cut_note, shrink_detail, token_cost};
use super::engine::Service;
use super::open::{OpenScope, OpenScopes, overviews_withheld};
use super::same_id::{self, address, holders};
use super::stale::Staleness;
use super::validate::{check_length, number};
use crate::config::MaxStatus;
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use crate::service::error::{Error, UNREVIEWED_WITHHELD, review_shows};
use ack_api::cancel;
use ack_api::memory::{Memory, Status, StatusFilter, nearest};
use ack_api::number::count;
use ack_api::text;
use ack_api::time;
use ack_api::{
    Contradiction, Detail, GetRequest, GetResponse, Include, MAX_DEPTH, MAX_IDS, MAX_NEIGHBOURS,
    MemoryDetail, MissingMemory, Note, NoteKind, Within,
};
use ack_api::{Diagnostic as _, Given, Hint};
use ack_search::inverted::Index;
use ack_store::Snapshot;
use ack_store::StoreError;
use ack_store::links::{self, LinkQuery};

/// Default number of neighbours on each side of a timeline.
const DEFAULT_NEIGHBOURS: u32 = 3;
/// Default number of link steps to follow.
const DEFAULT_LINK_DEPTH: u32 = 4;
/// Maximum tokens of one answer.
const MAX_TOKENS: usize = 11_000;

/// What to show of each memory, after all checks.
struct GetSpec {
    filter: StatusFilter,
    /// Whether the caller may not ask for memories that wait for review.
    withholds: bool,
    /// The requested status, if the owner does not show such memories to agents.
    withheld: Option<StatusFilter>,
    /// The number of neighbours before and after it, and the range to take them from.
    timeline: Option<(usize, usize, Option<Within>)>,
    /// The number of link steps, and the kinds of links; empty means all.
    links: Option<(u32, Vec<String>)>,
    related: bool,
    history: bool,
}

impl GetSpec {
    /// Checks the arguments. An argument about a timeline or links also requests it.
    fn new(request: &GetRequest, max_status: MaxStatus) -> Result<Self, Error> {
        let includes = |what: Include| request.include.iter().flatten().any(|known| *known == what);
        let before = number(
            "before",
            request.before,
            0,
            MAX_NEIGHBOURS,
            DEFAULT_NEIGHBOURS,
        )?;
        let after = number(
            "after",
            request.after,
            0,
            MAX_NEIGHBOURS,
            DEFAULT_NEIGHBOURS,
        )?;
        let depth = number("depth", request.depth, 1, MAX_DEPTH, DEFAULT_LINK_DEPTH)?;
        let kinds = normalise_kinds(request.kind.as_deref().unwrap_or_default());
        let timeline = includes(Include::Timeline)
            || request.before.is_some()
            || request.after.is_some()
            || request.timeline_within.is_some();
        let links = includes(Include::Links) || request.depth.is_some() || !kinds.is_empty();
        let requested = request.status.unwrap_or_default();
        let allowed = max_status.allowed(request.by_agent, requested);
        Ok(Self {
            filter: allowed.unwrap_or_default(),
            withheld: (allowed != Some(requested)).then_some(requested),
            withholds: max_status.withholds(request.by_agent),
            timeline: timeline.then_some((before, after, request.timeline_within)),
            links: links.then(|| (u32::try_from(depth).unwrap_or(DEFAULT_LINK_DEPTH), kinds)),
            related: includes(Include::Related),
            history: includes(Include::History),
        })
    }

    /// Whether a memory with this status may be shown.
    fn allows(&self, status: Status) -> bool {
        self.filter.allows(status) && self.withheld != Some(StatusFilter::Staging)
    }

    /// Rejects a kind of link that no store of the request has.
    fn check_kinds(&self, opened: &OpenScopes) -> Result<(), Error> {
        let Some((_, kinds)) = &self.links else {
            return Ok(());
        };
        if kinds
            .iter()
            .all(|kind| links::KINDS.contains(&kind.as_str()))
        {
            return Ok(());
        }
        let mut known: BTreeSet<String> = links::KINDS.map(str::to_owned).into();
        for open in opened.iter() {
            // A store that cannot be read is reported when memories are looked up.
            let kinds = open
                .scope
                .store
                .snapshot(|snapshot| snapshot.other_kinds(self.filter));
            known.extend(kinds.unwrap_or_default());
        }
        let Some(unknown) = kinds.iter().find(|kind| !known.contains(*kind)) else {
            return Ok(());
        };
        let near = nearest(unknown, known.iter().map(String::as_str), 2);
        let example = near.first().or_else(|| known.first());
        Err(Error::InvalidArgument {
            argument: "kind".to_owned(),
            value: text::line(unknown, 120),
            allowed: format!(
                "kinds of links: {}",
                known.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
            example: example.map(|kind| serde_json::json!({ "kind": [kind] }).to_string()),
            nearest: near,
        })
    }
}

/// Normalises kinds of links for comparison. Commas also separate them.
fn normalise_kinds(requested: &[String]) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in requested.iter().flat_map(|requested| requested.split(',')) {
        let kind = kind.trim().to_lowercase();
        if !kind.is_empty() && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// A memory to show, with notes about it.
struct FoundMemory {
    memory: Memory,
    detail: Box<MemoryDetail>,
    notes: Vec<Note>,
    /// The other scopes that contain a memory with this id.
    others: Vec<(String, Status)>,
}

pub fn run(service: &Service, request: &GetRequest) -> Result<GetResponse, Error> {
    let spec = GetSpec::new(request, service.config.max_status.value)?;
    let filter = spec.filter;
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
                value: match ids.len() {
                    0 => "empty".to_owned(),
                    number => format!("{number} ids"),
                },
                allowed: format!("1 to {MAX_IDS} ids"),
                nearest: vec![ids.len().clamp(1, MAX_IDS).to_string()],
                example: ids
                    .first()
                    .map(|id| serde_json::json!({ "ids": [text::line(id, 60)] }).to_string()),
            });
        }
        (Some(_), Some(_)) => {
            return Err(Error::invalid(
                "ids",
                "given together with a single id",
                "one of the two",
            ));
        }
        (None, None) => {
            return Err(Error::invalid(
                "id",
                "missing",
                "an id, or a list of up to 20 ids",
            ));
        }
    };
    let name = if request.ids.is_some() { "ids" } else { "id" };
    for id in &ids {
        check_length(name, id)?;
        if id.is_empty() {
            return Err(Error::invalid(
                name,
                "empty",
                "an id as a search returns it",
            ));
        }
    }
    check_length("scope", request.scope.as_deref().unwrap_or_default())?;
    let mut selection = service.select(request.scope.as_deref(), None)?;
    let scopes = selection.scopes.clone();
    let mut response = GetResponse::default();
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut response.notes)?;
    spec.check_kinds(&opened)?;
    let mut budget = MAX_TOKENS;
    let mut failed = Vec::new();
    let mut found = Vec::new();
    let mut shared = Vec::new();
    let mut overviews: BTreeSet<String> = BTreeSet::new();
    for (position, id) in ids.iter().enumerate() {
        cancel::check()?;
        let found_memory = match find_memory(&opened, &selection, id, &spec, &mut failed) {
            Err(Error::MemoryNotFound { .. }) if address(id).is_some() => {
                same_id::check_scope(id, request.scope.as_deref(), &scopes)
                    .and_then(|()| find_at_address(service, id, &spec))
            }
            found_memory => found_memory,
        };
        cancel::check()?;
        match found_memory.map_err(|error| error.with_unread_scopes(&response.notes)) {
            Ok(FoundMemory {
                memory,
                detail,
                notes,
                others,
            }) => {
                let mut detail = *detail;
                drop_known_overview(&mut detail, &overviews);
                for note in notes {
                    // Several memories may have the same to say about their scope.
                    if !response.notes.contains(&note) {
                        response.notes.push(note);
                    }
                }
                if !others.is_empty() {
                    shared.push((memory.id.clone(), others));
                }
                // Each memory may take its share of the remaining tokens.
                let share = budget / (ids.len() - position);
                let question = &mut Question::default();
                let mut shown = cut_long_text(&mut detail.memory, &memory, question);
                let is_cut = token_cost(&detail) > share;
                if is_cut {
                    shown = shrink_detail(&mut detail, &memory, share).or(shown);
                }
                response
                    .notes
                    .extend(cut_note(id, is_cut, shown, ids.len()));
                budget = budget.saturating_sub(token_cost(&detail));
                let context = detail.session_context.as_ref();
                overviews.extend(context.and_then(|context| context.overview.clone()));
                found.push((memory, detail));
            }
            Err(error) if request.ids.is_some() => {
                let body = error.body();
                response.missing.push(MissingMemory {
                    id: text::id(id),
                    reason: error.as_message(),
                    nearest: body.nearest,
                });
            }
            Err(error) => return Err(error),
        }
    }
    if spec.withheld.is_some() {
        let note = Note::new(NoteKind::HiddenByStatus, UNREVIEWED_WITHHELD);
        response.notes.push(note.with(review_shows()));
    }
    response.notes.extend(same_id::note(&shared));
    response
        .notes
        .extend(failed.into_iter().map(|(_, note)| note));
    opened.note_incomplete_reads(&mut response.notes);
    answer::note_repairs(found.iter().map(|(memory, _)| memory), &mut response.notes);
    if filter != StatusFilter::Approved {
        opened.note_missing_status(
            |scope| found.iter().any(|(_, detail)| detail.memory.scope == scope),
            &mut response.notes,
        );
    }
    let mut details = found.into_iter().map(|(_, detail)| detail);
    if request.id.is_some() {
        response.memory = details.next().map(Box::new);
    } else {
        response.memories = details.collect();
    }
    Ok(response)
}

/// Removes the overview of a session if an earlier memory already shows it.
fn drop_known_overview(detail: &mut MemoryDetail, overviews: &BTreeSet<String>) {
    let Some(context) = &mut detail.session_context else {
        return;
    };
    if context
        .overview
        .take_if(|overview| overviews.contains(overview))
        .is_none()
    {
        return;
    }
    // A remaining title has not been reviewed either.
    context.unreviewed = context.title.is_some();
    if context.title.is_none() {
        detail.session_context = None;
    }
}

/// Finds the memory at an address, as if its scope had been named.
fn find_at_address(service: &Service, given: &str, spec: &GetSpec) -> Result<FoundMemory, Error> {
    let (scope, id) = address(given).unwrap_or_default();
    let mut selection = service.select(Some(&scope), None)?;
    let scopes = selection.scopes.clone();
    let mut notes = Vec::new();
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut notes)?;
    let mut found = find_memory(&opened, &selection, &id, spec, &mut Vec::new())?;
    opened.note_incomplete_reads(&mut notes);
    found.notes.splice(0..0, notes);
    Ok(found)
}

/// Finds one memory: the one in the best scope that may show it ([`same_id`]), or the reason why
/// none may.
///
/// A scope that cannot be read now is skipped, also for the other ids of the request. It becomes
/// the error only if no other scope has the memory.
fn find_memory(
    opened: &OpenScopes,
    selection: &Selection,
    id: &str,
    spec: &GetSpec,
    failed: &mut Vec<(String, Note)>,
) -> Result<FoundMemory, Error> {
    let filter = spec.filter;
    let (mut refused, mut unreadable) = (None, None);
    let own_scope = selection
        .current
        .scope
        .as_ref()
        .map(|scope| scope.name.as_str());
    let indexed: Vec<(&Scope, &Index)> = opened
        .iter()
        .filter_map(|open| Some((&*open.scope, open.index()?)))
        .collect();
    let known = holders(
        indexed
            .iter()
            .map(|(scope, index)| (scope.name.as_str(), *index)),
        own_scope,
        id,
        filter,
    );
    for holder in &known {
        let Some((scope, index)) = indexed.get(holder.number) else {
            continue;
        };
        if failed.iter().any(|(name, _)| *name == scope.name) {
            continue;
        }
        let found = match scope.store.snapshot(|snapshot| {
            let Some(memory) = fetch(snapshot, index, id)? else {
                return Ok(None);
            };
            if !spec.allows(memory.status) {
                // A caller that may not ask for what waits does not need to know why it waits.
                let is_changed = !spec.withholds
                    && snapshot
                        .curated(id)?
                        .is_some_and(|curated| curated.is_outdated);
                let is_served = |id: &String| {
                    let newer = index.find(id);
                    newer.is_some_and(|(_, doc)| filter.allows(doc.status))
                };
                let replaced_by = memory.superseded_by.filter(is_served);
                return Ok(Some(Err((
                    memory.status,
                    memory.unknown_status,
                    is_changed,
                    replaced_by.filter(|_| memory.status == Status::Rejected),
                ))));
            }
            Ok(Some(Ok(build_detail(
                snapshot,
                index,
                (scope, &opened.staleness),
                memory,
                spec,
            )?)))
        }) {
            Ok(found) => found,
            Err(error) => {
                let message = error.as_message();
                failed.push((
                    scope.name.clone(),
                    Note::about(NoteKind::ScopeUnavailable, &scope.name, message),
                ));
                unreadable.get_or_insert(error);
                continue;
            }
        };
        match found {
            Some(Ok(mut found)) => {
                found.others = same_id::others(&known, &scope.name);
                if spec.related {
                    related(
                        opened,
                        selection,
                        filter,
                        &mut found.detail,
                        &mut found.notes,
                    )?;
                }
                return Ok(found);
            }
            Some(Err((status, word, is_changed, replaced_by))) => {
                let (id, scope) = (text::id(id), scope.name.clone());
                refused.get_or_insert(match word {
                    Some(word) => Error::UnknownStatus {
                        id,
                        scope,
                        word: Some(word).filter(|_| !spec.withholds),
                    },
                    None if spec.withholds && status == Status::Staging => {
                        Error::MemoryWithheld { id, scope }
                    }
                    None => Error::MemoryNotServed {
                        id,
                        scope,
                        status,
                        is_changed,
                        replaced_by,
                    },
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
        .map(|open| open.name().to_owned())
        .filter(|name| !failed.iter().any(|(other, _)| other == name));
    Err(refused.unwrap_or_else(|| Error::MemoryNotFound {
        id: text::id(id),
        scopes: read.collect(),
        unread: failed.iter().map(|(name, _)| name.clone()).collect(),
        nearest: similar_ids(opened, id, filter),
    }))
}

/// Finds a memory by its stored id, or by its displayed id if that differs because it had to be
/// made safe.
fn fetch(snapshot: &Snapshot<'_>, index: &Index, id: &str) -> Result<Option<Memory>, StoreError> {
    if let Some(memory) = snapshot.by_id(id)? {
        return Ok(Some(memory));
    }
    let Some((_, doc)) = index.find(id) else {
        return Ok(None);
    };
    Ok(snapshot
        .memories(&[(doc.key, id)], StatusFilter::All)?
        .remove(id))
}

/// Ids similar to an unknown one, of memories that may be shown.
fn similar_ids(opened: &OpenScopes, id: &str, filter: StatusFilter) -> Vec<String> {
    let ids = opened
        .iter()
        .filter_map(OpenScope::index)
        .flat_map(|index| index.live_ids(filter));
    nearest(id, ids, 3)
}

fn build_detail(
    snapshot: &Snapshot<'_>,
    index: &Index,
    (scope, staleness): (&Scope, &Staleness),
    memory: Memory,
    spec: &GetSpec,
) -> Result<FoundMemory, StoreError> {
    let filter = spec.filter;
    let mut notes = Vec::new();
    let mut detail = MemoryDetail {
        memory: answer::hit(&memory, &scope.name, Detail::Full),
        date: memory.date.clone(),
        session_id: memory.session_id.clone(),
        session_context: snapshot.session_context(&memory, filter)?,
        reviewed_at: memory.reviewed_at.map(time::to_rfc3339),
        reviewed_by: memory.reviewed_by.clone(),
        updated_at: memory.updated_at.map(time::to_rfc3339),
        ..MemoryDetail::default()
    };
    let context = detail.session_context.as_ref();
    let has_overview = context.is_some_and(|context| context.overview.is_some());
    if !has_overview && snapshot.withholds_overview(&memory, filter)? {
        notes.push(overviews_withheld(&scope.name));
    }
    answer::hide_successor(&mut detail.memory, index, filter);
    let contradicted = snapshot.contradictions(std::iter::once(memory.id.as_str()), filter)?;
    let others = contradicted.into_iter().flat_map(|(_, others)| others);
    let others: Vec<Contradiction> = others.collect();
    staleness.mark(&mut detail.memory, &memory, scope, others);
    if spec.timeline.is_some() {
        detail.timeline = timeline(snapshot, scope, index, &memory.id, spec)?;
        let alone = detail
            .timeline
            .as_ref()
            .is_some_and(|line| line.before.is_empty() && line.after.is_empty());
        if let (true, Some((before, after, Some(within)))) = (alone, spec.timeline)
            && before + after > 0
        {
            notes.push(Note::about(
                NoteKind::NotAvailable,
                &scope.name,
                empty_reason(&memory, within),
            ));
        }
    }
    if let Some((depth, kinds)) = &spec.links {
        let (depth, kinds) = (*depth, kinds.as_slice());
        let walk = snapshot.links(
            &memory.id,
            &LinkQuery {
                filter,
                depth,
                kinds,
            },
        )?;
        let (id, links) = (&memory.id, walk.links.len());
        if walk.is_truncated {
            let message = format!("only {links} links of `{id}` are shown, and there are more");
            let narrow = [Given::any("kind"), Given::any("depth")];
            let note = Note::about(NoteKind::Cut, &scope.name, message);
            notes.push(note.with(Hint::pass(narrow, "to narrow them")));
        }
        if !walk.missing.is_empty() {
            let missing = text::list(&walk.missing);
            let message = format!("`{id}` has links to {missing}, which this scope does not have");
            notes.push(Note::about(NoteKind::NotAvailable, &scope.name, message));
        }
        if walk.has_deeper_links {
            let further = if i64::from(depth) < MAX_DEPTH {
                let farthest = Given::value("depth", MAX_DEPTH);
                Hint::pass([farthest], "to follow them as far as possible")
            } else {
                Hint::advice("to continue, ask for the last of them")
            };
            let message = format!(
                "links of `{id}` were followed for {}; there are more",
                count(u64::from(depth), "step")
            );
            let note = Note::about(NoteKind::Cut, &scope.name, message);
            notes.push(note.with(further));
        }
        detail.links = walk.links;
    }
    if spec.history {
        detail.history = snapshot.history(&memory.id)?;
    }
    Ok(FoundMemory {
        memory,
        detail: Box::new(detail),
        notes,
        others: Vec::new(),
    })
}
