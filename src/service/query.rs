//! `query_memories`: the retrieval pipeline, from arguments to a page.

use std::collections::{BTreeSet, HashSet};

use super::engine::Service;
use super::open::OpenScopes;
use super::search::{Page, Search};
use super::validate::QuerySpec;
use super::{answer, bounds};
use crate::scope::resolve::Selection;
use crate::service::error::Error;
use ack_api::cancel;
use ack_api::memory::{Memory, StatusFilter, fold_name, nearest};
use ack_api::number::{count, verb};
use ack_api::{Detail, Mode, Note, NoteKind, QueryRequest, QueryResponse, Skipped};
use ack_search::cursor::Cursor;

/// Tokens of a page for an agent, not counting its results.
const PAGE_TOKENS: usize = 30;
/// Average tokens per result on it.
const RESULT_TOKENS: usize = 131;
/// Maximum types to list if none is similar to the requested one.
const MAX_TYPES: usize = 12;

pub fn run(service: &Service, request: &QueryRequest) -> Result<QueryResponse, Error> {
    let spec = QuerySpec::new(request, &service.config)?;
    let cursor = Cursor::decode(request)?;
    let mut selection = service.select(request.scope.as_deref(), None)?;
    let mut notes = Vec::new();
    let scopes = selection.scopes.clone();
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut notes)?;
    let search = Search::new(&opened, &selection, &spec, cursor.as_ref())?;
    if request.query.is_some() && spec.text.is_none() {
        let age = if spec.oldest { "oldest" } else { "newest" };
        notes.push(Note::new(
            NoteKind::EmptyQuery,
            format!("`query` is empty: these are the {age} memories that pass the filters"),
        ));
    }
    if request.order.is_some() && search.searches() {
        notes.push(Note::new(
            NoteKind::NotAvailable,
            "`order` is for lists; what was searched for comes best first",
        ));
    }
    search.check_like()?;
    search.note_legs(&mut notes);
    notes.extend(search.note_same_id());
    let mut page = search.page(cursor.as_ref(), spec.limit)?;
    if spec.withheld == Some(StatusFilter::Staging) {
        page.clear();
    }
    let mut response = QueryResponse {
        total: page.total,
        hidden: (page.hidden != ack_api::Hidden::default()).then_some(page.hidden),
        searched: selection.searched(spec.filters.status),
        expected: spec
            .expect
            .as_deref()
            .map(|id| Box::new(search.expected(id, &page))),
        ..QueryResponse::default()
    };
    for (scope, reason) in &page.failed {
        response.searched.scopes.retain(|name| name != scope);
        response.searched.skipped.push(Skipped {
            scope: scope.clone(),
            reason: ack_api::text::line(reason, 300),
        });
        notes.push(Note::about(
            NoteKind::ScopeUnavailable,
            scope,
            reason.clone(),
        ));
    }
    search.notes(&selection, &page, &mut notes);
    opened.note_locks(&mut notes);
    if page.hits.is_empty() && cursor.is_none() {
        response.suggestions = search.suggestions(request);
        cancel::check()?;
    }
    response.notes = notes;
    Ok(finish(request, &search, response, page))
}

/// Combines results, cursor and token limit: shortens the page until the whole answer is within its
/// limit, and cuts a single result that is still too long.
fn finish(
    request: &QueryRequest,
    search: &Search<'_>,
    mut response: QueryResponse,
    mut page: Page,
) -> QueryResponse {
    let bound = search.spec.tokens;
    let wanted = page.hits.len();
    if search.spec.by_agent {
        if search.spec.detail == Detail::Concise && !search.spec.explain {
            // If the caller wants as many results as fit, results come before further facts.
            let usual = PAGE_TOKENS + wanted * RESULT_TOKENS;
            let budget = if search.spec.fills {
                usual.min(bound)
            } else {
                usual
            };
            answer::thin(page.hits.iter_mut().map(|hit| &mut hit.hit), budget);
        }
        if !search.is_narrowed {
            bounds::forget_the_usual(&mut response.searched);
        }
    }
    bounds::limit_searched(&mut response.searched, |name| {
        page.hits.iter().any(|hit| hit.hit.scope == name)
    });
    bounds::limit_notes(&mut response.notes);
    bounds::shorten_frame(&mut response, bound / 2);
    let frame = answer::cost(&response) + 60;
    let mut used = frame;
    let fitting = page.hits.iter().take_while(|hit| {
        used += answer::cost(&hit.hit) + 1;
        used <= bound
    });
    let fitting = fitting.count().max(1);
    page.end_before(fitting);
    loop {
        response.results = page.hits.iter().map(|hit| hit.hit.clone()).collect();
        response.next_cursor = page
            .cursor(request, search.bm25())
            .map(|cursor| cursor.encode());
        let kept = page.hits.len();
        let notes = response.notes.len();
        if kept < wanted && !search.spec.fills {
            response.notes.push(Note::new(
                NoteKind::Cut,
                format!(
                    "cut to {bound} tokens: {kept} of {}; `next_cursor` goes on",
                    count(wanted as u64, "result")
                ),
            ));
        }
        if answer::cost(&response) <= bound {
            return response;
        }
        response.notes.truncate(notes);
        let folded = page.hits.first().map_or(0, |hit| hit.hit.also.len());
        if kept > 1 {
            page.end_before(kept - 1);
        } else if folded > 0 {
            page.end_within_first(folded / 2);
        } else {
            break;
        }
    }
    answer::squeeze(&mut response, bound);
    response
}

/// The note about matches hidden by their status. It says how to see them if the request may ask
/// for them.
fn hidden_by_status(number: u64, spec: &QuerySpec) -> Note {
    let matching = count(number, "matching memory");
    let it = verb(number, "it", "them");
    let message = if spec.withholds {
        let wait = verb(number, "waits", "wait");
        format!("{matching} {wait} for review")
    } else if spec.filters.status == StatusFilter::Approved {
        let are = verb(number, "is", "are");
        format!(
            "{matching} {are} not approved yet; pass `status: \"staging\"` or `status: \"all\"` to see {it}"
        )
    } else {
        let have = verb(number, "has", "have");
        format!("{matching} {have} another status; pass `status: \"all\"` to see {it}")
    };
    Note::new(NoteKind::HiddenByStatus, message)
}

impl Search<'_> {
    /// Rejects a `like` that matches no memory.
    fn check_like(&self) -> Result<(), Error> {
        match &self.spec.like {
            Some(like) if self.like.is_none() => {
                let ids = self
                    .views
                    .iter()
                    .flat_map(|view| view.index.live_ids(self.spec.filters.status));
                let near = nearest(&like.id, ids, 3);
                cancel::check()?;
                Err(Error::MemoryNotFound {
                    id: ack_api::text::id(&like.id),
                    scopes: self.names.clone(),
                    unread: Vec::new(),
                    nearest: near,
                })
            }
            _ => Ok(()),
        }
    }

    /// Adds the note about a query without a vector.
    fn note_legs(&self, notes: &mut Vec<Note>) {
        if self.spec.mode == Mode::Lexical || self.has_meaning() || !self.searches() {
            return;
        }
        let message = if self.spec.like.is_some() {
            "this memory has no vector: it holds no word that the encoder knows, so nothing can be near it"
        } else {
            "the query holds no word that the encoder knows; its words were searched as they stand"
        };
        notes.push(Note::new(NoteKind::NoSemanticLeg, message));
    }

    /// Adds the notes that depend on the results.
    fn notes(&self, selection: &Selection, page: &Page, notes: &mut Vec<Note>) {
        let hits = &page.hits;
        if page.gone > 0 {
            notes.push(Note::new(
                NoteKind::ChangedMeanwhile,
                format!(
                    "{} changed or went while this was answered",
                    count(page.gone as u64, "matching memory")
                ),
            ));
        }
        if page.lacks_words && !page.only_stop_words {
            notes.insert(0, Note::new(NoteKind::NoWordMatches, self.no_words(hits)));
        }
        if page.is_uncertain {
            let note = Note::new(NoteKind::NothingCertain, Self::nothing_certain());
            notes.insert(0, note);
        }
        if page.only_stop_words {
            notes.push(Note::new(
                NoteKind::OnlyStopWords,
                "every word of the query is a common one; they were searched as they stand",
            ));
        }
        for (_, name) in self
            .views
            .iter()
            .zip(&self.names)
            .filter(|(view, _)| view.is_partial())
        {
            let message = format!(
                "`{name}` is large: only its best matches are counted in `total`; filters bring up others"
            );
            notes.push(Note::about(NoteKind::BestMatchesOnly, name, message));
        }
        let status = self.spec.filters.status;
        let hidden = page.hidden.by_status;
        let is_told = match (self.spec.withholds, self.spec.withheld) {
            (true, withheld) => hits.is_empty() || withheld.is_some(),
            (false, _) => hits.is_empty() || (hidden >= 10 && status == StatusFilter::Approved),
        };
        if hidden > 0 && is_told {
            notes.push(hidden_by_status(hidden, self.spec));
        } else if self.spec.withheld.is_some() {
            notes.push(Note::new(
                NoteKind::HiddenByStatus,
                "only approved memories are shown to agents here",
            ));
        }
        let relevant = |scope: &str| {
            hits.is_empty()
                || status != StatusFilter::Approved
                || hits.iter().any(|hit| hit.hit.scope == scope)
        };
        if hidden > 0 || status != StatusFilter::Approved {
            self.opened.note_missing_status(relevant, notes);
        }
        let memories: Vec<(String, &Memory)> = hits
            .iter()
            .map(|hit| (hit.hit.scope.clone(), &hit.memory))
            .collect();
        answer::note_repairs(&memories, notes);
        if selection.scopes.is_empty() {
            notes.push(Note::new(
                NoteKind::NoScopes,
                "no scope could be searched; `searched.skipped` says why",
            ));
        }
    }

    /// What to try when nothing was found.
    fn suggestions(&self, request: &QueryRequest) -> Vec<String> {
        let mut suggestions = Vec::new();
        let known = self.known_names();
        if let Some(project) = &request.project {
            // If the project exists under another name, there is nothing to correct.
            if !known
                .projects
                .iter()
                .any(|name| self.asked.contains(&fold_name(name)))
            {
                suggestions.extend(unknown(
                    "No memory was learned in project",
                    project,
                    &known.projects,
                ));
            }
        }
        for tag in request.tags.iter().flatten() {
            suggestions.extend(unknown("No memory has the tag", tag, &known.tags));
        }
        suggestions.extend(unknown_types(request.kind.as_deref(), &known.types));
        if self.spec.filters.restricts() {
            suggestions.push(
                "Leave out filters (tags, project, type, files, since, until, session)".to_owned(),
            );
        }
        if self.spec.text.is_some() {
            suggestions.push("Try broader search terms".to_owned());
        }
        if request.scope.is_some() {
            suggestions.push("Leave `scope` out to search every shared scope".to_owned());
        }
        suggestions.push("Use list_scopes to check available scopes".to_owned());
        suggestions
    }

    /// The projects, tags and types of the memories that the request may see, each once. Names that
    /// occur only in unreviewed memories are hidden from a request that did not ask for those.
    fn known_names(&self) -> KnownNames<'_> {
        let mut known = KnownNames::default();
        for view in &self.views {
            let index = view.index;
            let (mut projects, mut tags, mut types) =
                (HashSet::new(), HashSet::new(), HashSet::new());
            for (number, doc) in cancel::guarded(index.live()) {
                if self.spec.filters.status.allows(doc.status) {
                    projects.insert(doc.project);
                    types.insert(doc.kind);
                    tags.extend(index.tags(number).iter().copied());
                }
            }
            let names = |ids: HashSet<_>| {
                let names = ids.into_iter().map(|name| index.name(name));
                names.filter(|name| !name.is_empty())
            };
            known.projects.extend(names(projects));
            known.tags.extend(names(tags));
            known.types.extend(names(types));
        }
        known
    }
}

/// Names that occur in memories, each once.
#[derive(Default)]
struct KnownNames<'a> {
    projects: BTreeSet<&'a str>,
    tags: BTreeSet<&'a str>,
    types: BTreeSet<&'a str>,
}

/// The message about types that no memory has. There are few types, so it lists all of them if none
/// is similar.
fn unknown_types(wanted: Option<&str>, known: &BTreeSet<&str>) -> Vec<String> {
    let wanted = wanted.unwrap_or_default();
    let is_known = |wanted: &str| {
        known
            .iter()
            .any(|name| fold_name(name) == fold_name(wanted))
    };
    if is_known(wanted) {
        return Vec::new();
    }
    let wanted = wanted.split(',').map(str::trim);
    let said = wanted.filter(|wanted| !wanted.is_empty()).map(|wanted| {
        let said = unknown("No memory has the type", wanted, known)?;
        if said.ends_with('"') && !known.is_empty() {
            let some: Vec<&str> = known.iter().take(MAX_TYPES).copied().collect();
            return Some(format!("{said}; types are: {}", some.join(", ")));
        }
        Some(said)
    });
    said.flatten().collect()
}

/// The message about a name that no memory has, with similar names.
fn unknown(what: &str, wanted: &str, known: &BTreeSet<&str>) -> Option<String> {
    let folded = fold_name(wanted);
    if cancel::guarded(known).any(|name| fold_name(name) == folded) {
        return None;
    }
    let near = nearest(wanted, known.iter().copied(), 3);
    let hint = if near.is_empty() {
        String::new()
    } else {
        format!("; like it: {}", near.join(", "))
    };
    Some(format!(
        "{what} \"{}\"{hint}",
        ack_api::text::line(wanted, 80)
    ))
}
