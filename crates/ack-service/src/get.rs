//! `get_memory`: memories by id, with their context.

mod timeline;

use std::collections::{BTreeSet, HashMap};

use self::timeline::{empty_reason, timeline};
use super::answer;
use super::budget::passage::Question;
use super::budget::{cut_long_text, cut_note, shrink_detail, token_cost};
use super::engine::Service;
use super::open::{OpenScopes, Record, overviews_withheld, unavailable};
use super::same_id::{self, Others, address, holders};
use super::search::Search;
use super::validate::{QuerySpec, check_length, number};
use crate::config::MaxStatus;
use crate::error::{Error, UNREVIEWED_WITHHELD, review_shows};
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use ack_api::memory::{Memory, Status, StatusFilter, nearest};
use ack_api::number::count;
use ack_api::{
    Detail, Diagnostic as _, GetRequest, GetResponse, Given, Hint, Include, MAX_DEPTH, MAX_IDS,
    MAX_NEIGHBOURS, MemoryDetail, MissingMemory, Note, NoteKind, RelatedEntry, Within, cancel,
    text, time,
};
use ack_search::inverted::Index;
use ack_store::links::{self, LinkQuery, LinkWalk};
use ack_store::{Snapshot, StoreError};
use serde_json::json;

const DEFAULT_NEIGHBOURS: u32 = 3;
const DEFAULT_LINK_DEPTH: u32 = 4;
const MAX_TOKENS: usize = 11_000;
const MAX_RELATED: usize = 5;

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
        let neighbours = |name, given| number(name, given, 0, MAX_NEIGHBOURS, DEFAULT_NEIGHBOURS);
        let before = neighbours("before", request.before)?;
        let after = neighbours("after", request.after)?;
        let depth = number("depth", request.depth, 1, MAX_DEPTH, DEFAULT_LINK_DEPTH)?;
        let kinds = normalise_kinds(request.kind.as_deref().unwrap_or_default());
        let timeline = includes(Include::Timeline)
            || request.before.or(request.after).is_some()
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

    fn allows(&self, status: Status) -> bool {
        self.filter.allows(status) && self.withheld != Some(StatusFilter::Staging)
    }

    fn check_kinds(&self, opened: &OpenScopes) -> Result<(), Error> {
        let Some((_, kinds)) = &self.links else {
            return Ok(());
        };
        if kinds.iter().all(|kind| links::KINDS.contains(&kind.as_str())) {
            return Ok(());
        }
        let mut known: BTreeSet<String> = links::KINDS.map(str::to_owned).into();
        for open in opened.iter() {
            // A store that cannot be read is reported when memories are looked up.
            let kinds = open.scope.store.snapshot(|snapshot| snapshot.other_kinds(self.filter));
            known.extend(kinds.unwrap_or_default());
        }
        let Some(unknown) = kinds.iter().find(|kind| !known.contains(*kind)) else {
            return Ok(());
        };
        let known: Vec<String> = known.into_iter().collect();
        let near = nearest(unknown, known.iter().map(String::as_str), 2);
        let example = near.first().or(known.first()).map(|kind| json!({ "kind": [kind] }));
        let allowed = format!("kinds of links: {}", known.join(", "));
        Err(Error::invalid("kind", text::line(unknown, 120), allowed).corrected(near, example))
    }
}

/// Commas also separate kinds of links.
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

struct FoundMemory {
    memory: Memory,
    detail: MemoryDetail,
    notes: Vec<Note>,
    others: Others,
}

pub fn run(service: &Service, request: &GetRequest) -> Result<GetResponse, Error> {
    let spec = GetSpec::new(request, service.config.max_status.value)?;
    let ids = requested_ids(request)?;
    check_length("scope", request.scope.as_deref().unwrap_or_default())?;
    let mut selection = service.select(request.scope.as_deref(), None)?;
    // This comes before the scopes of the request are locked: a thread that locks a scope twice
    // waits for itself if the store changes in between.
    let mut at_addresses = HashMap::new();
    for id in ids.iter().filter(|id| address(id).is_some()) {
        let check = same_id::check_scope(id, request.scope.as_deref(), &selection.scopes);
        at_addresses.insert(id, check.and_then(|()| find_at_address(service, id, &spec)));
    }
    let mut response = GetResponse::default();
    let opened = OpenScopes::open(service, &mut selection, &mut response.notes)?;
    spec.check_kinds(&opened)?;
    let mut lookup = Lookup::new(&opened, &selection, &spec);
    let mut found: Vec<(&str, FoundMemory)> = Vec::new();
    for id in &ids {
        cancel::check()?;
        let memory = match lookup.find(id) {
            // An id that looks like an address is first of all an id.
            Err(error @ Error::MemoryNotFound { .. }) => {
                at_addresses.remove(id).unwrap_or(Err(error))
            }
            found => found,
        };
        cancel::check()?;
        match memory.map_err(|error| error.with_unread_scopes(&response.notes)) {
            Ok(memory) => found.push((id, memory)),
            Err(error) if request.ids.is_some() => response.missing.push(MissingMemory {
                id: text::id(id),
                reason: error.as_message(),
                nearest: error.body().nearest,
            }),
            Err(error) => return Err(error),
        }
    }
    let notes = &mut response.notes;
    fit(&mut found, ids.len(), notes);
    if spec.withheld.is_some() {
        notes.push(Note::new(NoteKind::HiddenByStatus, UNREVIEWED_WITHHELD).with(review_shows()));
    }
    notes.extend(same_id::note(found.iter().map(|(_, it)| (it.memory.id.as_str(), &*it.others))));
    notes.extend(lookup.failed.into_iter().map(|(_, note)| note));
    opened.note_incomplete_reads(notes);
    answer::note_repairs(found.iter().map(|(_, it)| &it.memory), notes);
    if spec.filter != StatusFilter::Approved {
        let is_shown = |scope: &str| found.iter().any(|(_, it)| it.detail.memory.scope == scope);
        opened.note_missing_status(is_shown, notes);
    }
    let mut details = found.into_iter().map(|(_, it)| it.detail);
    if request.id.is_some() {
        response.memory = details.next().map(Box::new);
    } else {
        response.memories = details.collect();
    }
    Ok(response)
}

fn requested_ids(request: &GetRequest) -> Result<Vec<String>, Error> {
    let (name, given) = match (&request.id, &request.ids) {
        (Some(id), None) => ("id", std::slice::from_ref(id)),
        (None, Some(ids)) => ("ids", ids.as_slice()),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("ids", "given together with a single id", "one of the two"));
        }
        (None, None) => {
            return Err(Error::missing("id", "an id, or a list of up to 20 ids"));
        }
    };
    if !(1..=MAX_IDS).contains(&given.len()) {
        let value = match given.len() {
            0 => "empty".to_owned(),
            number => format!("{number} ids"),
        };
        let nearest = vec![given.len().clamp(1, MAX_IDS).to_string()];
        let example = given.first().map(|id| json!({ "ids": [text::line(id, 60)] }));
        let error = Error::invalid(name, value, format!("1 to {MAX_IDS} ids"));
        return Err(error.corrected(nearest, example));
    }
    let mut ids: Vec<String> = Vec::new();
    for id in given.iter().map(|id| id.trim().to_owned()) {
        check_length(name, &id)?;
        if id.is_empty() {
            return Err(Error::invalid(name, "empty", "an id as a search returns it"));
        }
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Cuts each memory, with the id that was given for it, to its share of the tokens. `count` were
/// asked for.
fn fit(found: &mut [(&str, FoundMemory)], count: usize, notes: &mut Vec<Note>) {
    let mut budget = MAX_TOKENS;
    let mut overviews = BTreeSet::new();
    let mut left = found.len();
    for (id, FoundMemory { memory, detail, notes: own, .. }) in found {
        if let Some(context) = &mut detail.session_context
            && let Some(_known) = context.overview.take_if(|it| overviews.contains(it))
        {
            // A remaining title has not been reviewed either.
            context.unreviewed = true;
            detail.session_context.take_if(|it| it.title.is_none());
        }
        for note in own.drain(..) {
            // Several memories may have the same to say about their scope.
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let mut shown = cut_long_text(&mut detail.memory, memory, &mut Question::default());
        let share = budget / left;
        let is_cut = token_cost(detail) > share;
        if is_cut {
            shown = shrink_detail(detail, memory, share).or(shown);
        }
        notes.extend(cut_note(id, is_cut, shown, count));
        budget = budget.saturating_sub(token_cost(detail));
        left -= 1;
        let context = detail.session_context.as_ref();
        overviews.extend(context.and_then(|context| context.overview.clone()));
    }
}

/// Finds the memory at an address, as if its scope had been named.
fn find_at_address(service: &Service, given: &str, spec: &GetSpec) -> Result<FoundMemory, Error> {
    let (scope, id) = address(given).unwrap_or_default();
    let mut selection = service.select(Some(&scope), None)?;
    let mut notes = Vec::new();
    let opened = OpenScopes::open(service, &mut selection, &mut notes)?;
    let mut found = Lookup::new(&opened, &selection, spec).find(&id)?;
    opened.note_incomplete_reads(&mut notes);
    found.notes.splice(0..0, notes);
    Ok(found)
}

struct Lookup<'a> {
    opened: &'a OpenScopes,
    selection: &'a Selection,
    spec: &'a GetSpec,
    indexed: Vec<(&'a Scope, &'a Index)>,
    /// Scopes that can no longer be read. They are skipped for the other ids too.
    failed: Vec<(String, Note)>,
}

impl<'a> Lookup<'a> {
    fn new(opened: &'a OpenScopes, selection: &'a Selection, spec: &'a GetSpec) -> Self {
        let indexed = opened.indexed().map(|(scope, index)| (&**scope, index));
        Self { opened, selection, spec, indexed: indexed.collect(), failed: Vec::new() }
    }

    /// Finds one memory: the one in the best scope that may show it ([`same_id`]), or the reason
    /// why none may. A scope that cannot be read becomes the error only if no other one has the
    /// memory.
    fn find(&mut self, id: &str) -> Result<FoundMemory, Error> {
        let (mut refused, mut unreadable) = (None, None);
        let own_scope = self.selection.current.scope.as_ref().map(|scope| scope.name.as_str());
        let indexes = self.indexed.iter().map(|(scope, index)| (scope.name.as_str(), *index));
        let known = holders(indexes, own_scope, id, self.spec.filter);
        for holder in &known {
            let Some((scope, index)) = self.indexed.get(holder.number).copied() else {
                continue;
            };
            if self.has_failed(&scope.name) {
                continue;
            }
            match self.look_in(scope, index, id) {
                Ok(Some(mut found)) => {
                    found.others = same_id::others(&known, &scope.name);
                    if self.spec.related {
                        self.add_related(&mut found)?;
                    }
                    return Ok(found);
                }
                Ok(None) => {}
                Err(error @ Error::Store(_)) => {
                    self.failed.push((scope.name.clone(), unavailable(&scope.name, &error)));
                    unreadable.get_or_insert(error);
                }
                Err(error) => {
                    refused.get_or_insert(error);
                }
            }
        }
        Err(refused.or(unreadable).unwrap_or_else(|| self.not_found(id)))
    }

    fn has_failed(&self, scope: &str) -> bool {
        self.failed.iter().any(|(name, _)| name == scope)
    }

    /// The memory in one scope, or why it may not be shown; `None` if the scope does not have it.
    fn look_in(
        &self,
        scope: &Scope,
        index: &Index,
        id: &str,
    ) -> Result<Option<FoundMemory>, Error> {
        let GetSpec { withholds, filter, .. } = *self.spec;
        scope.store.snapshot(|snapshot| {
            let Some(memory) = fetch(snapshot, index, id)? else {
                return Ok(Ok(None));
            };
            if self.spec.allows(memory.status) {
                return self.build_detail(snapshot, index, scope, memory).map(|it| Ok(Some(it)));
            }
            // A caller that may not ask for what waits does not need to know why it waits.
            let is_changed = !withholds && snapshot.curated(id)?.is_some_and(|it| it.is_outdated);
            let (status, scope, id) = (memory.status, scope.name.clone(), text::id(id));
            Ok(Err(if let Some(word) = memory.unknown_status {
                Error::UnknownStatus { id, scope, word: Some(word).filter(|_| !withholds) }
            } else if withholds && status == Status::Staging {
                Error::MemoryWithheld { id, scope }
            } else {
                let newer = memory.superseded_by.filter(|_| status == Status::Rejected);
                let replaced_by = newer.filter(|it| answer::is_served(it, index, filter));
                Error::MemoryNotServed { id, scope, status, is_changed, replaced_by }
            }))
        })?
    }

    fn not_found(&self, id: &str) -> Error {
        let names = self.opened.iter().map(|open| &open.scope.name);
        let read = names.filter(|name| !self.has_failed(name));
        let ids = self.indexed.iter().flat_map(|(_, index)| index.live_ids(self.spec.filter));
        Error::MemoryNotFound {
            id: text::id(id),
            scopes: read.cloned().collect(),
            unread: self.failed.iter().map(|(name, _)| name.clone()).collect(),
            nearest: nearest(id, ids, 3),
        }
    }

    fn build_detail(
        &self,
        snapshot: &Snapshot<'_>,
        index: &Index,
        scope: &Scope,
        memory: Memory,
    ) -> Result<FoundMemory, StoreError> {
        let spec = self.spec;
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
        if context.is_none_or(|context| context.overview.is_none())
            && snapshot.withholds_overview(&memory, filter)?
        {
            notes.push(overviews_withheld(&scope.name));
        }
        detail.memory.superseded_by.take_if(|newer| !answer::is_served(newer, index, filter));
        let record =
            Record { contradictions: snapshot.contradictions(&memory.id, filter)?, memory };
        self.opened.staleness.mark(&mut detail.memory, &record, scope);
        let memory = record.memory;
        if let Some((before, after, wanted)) = spec.timeline {
            detail.timeline =
                timeline(snapshot, scope, index, &memory.id, (before, after, wanted), filter)?;
            let line = detail.timeline.as_ref();
            let is_alone = line.is_some_and(|line| line.before.is_empty() && line.after.is_empty());
            if let Some(within) = wanted.filter(|_| is_alone && before + after > 0) {
                let reason = empty_reason(&memory, within);
                notes.push(Note::about(NoteKind::NotAvailable, &scope.name, reason));
            }
        }
        if let Some((depth, kinds)) = &spec.links {
            let walk = snapshot.links(&memory.id, &LinkQuery { filter, depth: *depth, kinds })?;
            note_links(&walk, &memory.id, *depth, &scope.name, &mut notes);
            detail.links = walk.links;
        }
        if spec.history {
            detail.history = snapshot.history(&memory.id)?;
        }
        Ok(FoundMemory { memory, detail, notes, others: Vec::new() })
    }

    /// Adds the memories that are near in meaning, in every scope of the request. They are as near as a
    /// search requires of a memory that shares no word with the query.
    fn add_related(&self, found: &mut FoundMemory) -> Result<(), Error> {
        let FoundMemory { detail, notes, .. } = found;
        let (id, scope) = (&detail.memory.id, &detail.memory.scope);
        let spec = QuerySpec::near(id, scope, self.spec.filter, MAX_RELATED);
        let search = Search::new(self.opened, self.selection, &spec, None)?;
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
}

/// Finds a memory by its stored id, or by another form of it: its displayed id, if that had to be
/// made safe, or with its letters composed otherwise.
fn fetch(snapshot: &Snapshot<'_>, index: &Index, id: &str) -> Result<Option<Memory>, StoreError> {
    match (snapshot.by_id(id)?, index.find_typed(id)) {
        (None, Some((number, doc))) => {
            let id = index.id(number);
            let mut found = snapshot.memories(&[(doc.key, id)], StatusFilter::All)?;
            Ok(found.remove(id))
        }
        (found, _) => Ok(found),
    }
}

fn note_links(walk: &LinkWalk, id: &str, depth: u32, scope: &str, notes: &mut Vec<Note>) {
    let note = |kind, message: String| Note::about(kind, scope, message);
    if walk.is_truncated {
        let links = walk.links.len();
        let message = format!("only {links} links of `{id}` are shown, and there are more");
        let narrow = [Given::any("kind"), Given::any("depth")];
        notes.push(note(NoteKind::Cut, message).with(Hint::pass(narrow, "to narrow them")));
    }
    if !walk.missing.is_empty() {
        let missing = text::list(&walk.missing);
        let message = format!("`{id}` has links to {missing}, which this scope does not have");
        notes.push(note(NoteKind::NotAvailable, message));
    }
    if walk.has_deeper_links {
        let further = if i64::from(depth) < MAX_DEPTH {
            Hint::pass([Given::value("depth", MAX_DEPTH)], "to follow them as far as possible")
        } else {
            Hint::advice("to continue, ask for the last of them")
        };
        let steps = count(u64::from(depth), "step");
        let message = format!("links of `{id}` were followed for {steps}; there are more");
        notes.push(note(NoteKind::Cut, message).with(further));
    }
}
