//! `query_memories`: the pipeline of retrieval, from arguments to a page.

use std::collections::HashMap;

use super::validate::QuerySpec;
use super::{Service, answer, note_missing_status, open};
use crate::api::{Also, Explanation, LegExplanation, MemoryHit, Note, NoteKind, QueryRequest, QueryResponse};
use crate::error::Error;
use crate::memory::{Memory, StatusFilter, fold_name, nearest};
use crate::query::filter::Resolved;
use crate::query::fold::Signature;
use crate::query::inverted::Doc;
use crate::query::lexical::{self, Matcher, Statistics, Terms, View};
use crate::query::page::Cursor;
use crate::query::{Ranked, order, resume};
use crate::scope::resolve::Selection;
use crate::scope::{IndexGuard, Scope};
use crate::store::read::RowKey;

pub fn run(service: &Service, request: &QueryRequest) -> Result<QueryResponse, Error> {
    let spec = QuerySpec::new(request, &service.config)?;
    let cursor = Cursor::decode(request)?;
    let mut selection = service.select(request.scope.as_deref(), None)?;
    let mut notes = Vec::new();
    let scopes = selection.scopes.clone();
    let opened = open(&mut selection, &scopes, &mut notes)?;
    let mut search = Search::new(&opened, &selection, &spec);
    if request.query.is_some() && spec.text.is_none() {
        notes.push(Note::new(
            NoteKind::EmptyQuery,
            "`query` is empty: these are the newest memories that pass the filters",
        ));
    }
    if let Some(mode) = spec.mode_replaced {
        let mode = format!("{mode:?}").to_lowercase();
        notes.push(Note::new(
            NoteKind::NotAvailable,
            format!("`mode: {mode}` is not available yet; the search was lexical"),
        ));
    }
    let (hits, page) = search.page(cursor.as_ref(), spec.limit, &mut notes)?;
    let mut response = QueryResponse {
        total: page.total,
        hidden: (page.hidden != crate::api::Hidden::default()).then_some(page.hidden),
        searched: selection.searched(spec.filters.status),
        ..QueryResponse::default()
    };
    search.notes(&selection, &page, &hits, &mut notes);
    if hits.is_empty() && cursor.is_none() {
        response.suggestions = search.suggestions(request, &page);
    }
    response.notes = notes;
    finish(request, &spec, response, hits)
}

/// Puts results, cursor and token limit together.
fn finish(request: &QueryRequest, spec: &QuerySpec, mut response: QueryResponse, hits: Vec<Hit>) -> Result<QueryResponse, Error> {
    let more = hits.last().is_some_and(|hit| hit.more);
    let cursor = |scope: &str, id: &str, place: &Ranked| Cursor::new(request, scope, id, place.rank, place.mine, place.created);
    let mut places: Vec<Cursor> = hits.iter().map(|hit| cursor(&hit.hit.scope, &hit.memory.id, &hit.place)).collect();
    if let (Some(place), Some(last)) = (places.last_mut(), hits.last()) {
        let scope = last
            .hit
            .also
            .iter()
            .find(|also| also.id == last.end.1)
            .map_or(&last.hit.scope, |also| &also.scope);
        *place = cursor(scope, &last.end.1, &last.end.0);
    }
    let mut results: Vec<MemoryHit> = hits.into_iter().map(|hit| hit.hit).collect();
    // The cursor and the note about the cut are part of what the limit bounds.
    let frame = answer::cost(&response) + 140;
    let (kept, cut) = answer::fit(&mut results, spec.tokens.saturating_sub(frame).max(60));
    if cut {
        response.notes.push(Note::new(
            NoteKind::Cut,
            format!(
                "cut to {} tokens: {kept} of {} results of this page; `next_cursor` goes on, get_memory shows one in full",
                spec.tokens,
                places.len()
            ),
        ));
    }
    if kept < places.len() || more {
        response.next_cursor = kept.checked_sub(1).and_then(|last| places.get(last)).map(Cursor::encode);
    }
    response.results = results;
    Ok(response)
}

/// A result with its place in the order.
pub(crate) struct Hit {
    /// What the answer shows.
    pub hit: MemoryHit,
    /// The record behind it.
    pub memory: Memory,
    place: Ranked,
    /// The last place that was used up when it was the last result: itself, or a near-duplicate folded after it.
    end: (Ranked, String),
    more: bool,
}

/// What a page knows beyond its results.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Matches over all pages.
    pub total: u64,
    /// Matches left out.
    pub hidden: crate::api::Hidden,
    /// The query was nothing but stop words.
    pub only_stop_words: bool,
}

/// One search over opened scopes.
pub(crate) struct Search<'a> {
    opened: &'a [(&'a Scope, IndexGuard<'a>)],
    views: Vec<View<'a>>,
    names: Vec<String>,
    mine: Vec<String>,
    own_scope: Option<String>,
    spec: &'a QuerySpec,
    terms: Option<(Terms, Statistics)>,
}

impl<'a> Search<'a> {
    /// Prepares a search: filters resolved for each scope, statistics taken over all of them.
    pub fn new(opened: &'a [(&'a Scope, IndexGuard<'a>)], selection: &Selection, spec: &'a QuerySpec) -> Self {
        let mut names = Vec::new();
        let views: Vec<View<'a>> = opened
            .iter()
            .filter_map(|(scope, guard)| {
                let index = guard.get()?;
                names.push(scope.name.clone());
                Some(View {
                    index,
                    filter: Resolved::new(index, &spec.filters, &scope.own_names()),
                })
            })
            .collect();
        let terms = spec.text.as_deref().map(|text| {
            let terms = Terms::parse(text);
            let statistics = lexical::statistics(&views, &terms, &spec.filters);
            (terms, statistics)
        });
        let own_scope = selection.current.scope.as_ref().map(|scope| scope.name.clone());
        Self {
            opened,
            views,
            names,
            mine: selection.current.names(),
            own_scope,
            spec,
            terms,
        }
    }

    /// Retrieves, orders and reads one page.
    ///
    /// # Errors
    /// A store that could be read a moment ago and cannot any more.
    pub fn page(&mut self, cursor: Option<&Cursor>, limit: usize, notes: &mut Vec<Note>) -> Result<(Vec<Hit>, Page), Error> {
        let found = match &self.terms {
            Some((_, statistics)) => lexical::search(&self.views, statistics, &self.spec.filters),
            None => lexical::everything(&self.views, &self.spec.filters),
        };
        let page = Page {
            total: found.candidates.len() as u64,
            hidden: found.hidden,
            only_stop_words: self.terms.as_ref().is_some_and(|(terms, _)| terms.only_stop_words),
        };
        // A first page needs only the best candidates in order; where folding uses them up, all are put in order.
        let enough = (cursor.is_none() && found.candidates.len() > 200).then_some(limit * 4 + 40);
        let mine = |scope: usize, doc: &Doc| self.is_mine(scope, doc);
        let mut ranked = order(found.candidates.clone(), &self.views, &self.names, mine, enough);
        let mut hits = self.read(&ranked, cursor, limit, page.total, notes)?;
        if hits.len() < limit && ranked.len() < found.candidates.len() {
            ranked = order(found.candidates, &self.views, &self.names, mine, None);
            hits = self.read(&ranked, cursor, limit, page.total, notes)?;
        }
        Ok((hits, page))
    }

    fn is_mine(&self, scope: usize, doc: &Doc) -> bool {
        let Some(view) = self.views.get(scope) else { return false };
        let own = self.own_scope.as_ref().is_some_and(|own| self.names.get(scope) == Some(own));
        let named = |name| name != 0 && self.mine.iter().any(|mine| mine == view.index.name(name));
        named(doc.project) || named(doc.alias) || (own && doc.project == 0)
    }

    /// Reads records in order, folds near-duplicates, and stops when the page is full.
    fn read(&self, ranked: &[Ranked], cursor: Option<&Cursor>, limit: usize, total: u64, notes: &mut Vec<Note>) -> Result<Vec<Hit>, Error> {
        let identity = |place: &Ranked| {
            (
                self.names.get(place.scored.scope).cloned().unwrap_or_default(),
                self.id(place).to_owned(),
            )
        };
        let start = cursor.map_or(0, |cursor| resume(ranked, cursor, identity));
        let mut hits: Vec<Hit> = Vec::new();
        let mut signatures: Vec<Signature> = Vec::new();
        let mut matcher = self.terms.as_ref().map(|(_, statistics)| Matcher::new(statistics));
        let mut gone = 0;
        let mut rest = ranked.get(start..).unwrap_or_default();
        'page: while !rest.is_empty() {
            let (batch, behind) = rest.split_at(rest.len().min(limit + 2));
            rest = behind;
            let mut records = self.records(batch)?;
            for place in batch {
                let (scope, id) = identity(place);
                let Some(memory) = records.remove(&(place.scored.scope, id)) else {
                    gone += 1;
                    continue;
                };
                // A list of the newest shows everything; near-duplicates are folded where something was searched for.
                let signature = self.terms.as_ref().map(|_| Signature::of(&memory));
                let same = signature
                    .as_ref()
                    .and_then(|signature| signatures.iter().position(|known| known.is_near(signature)));
                if let Some(hit) = same.and_then(|position| hits.get_mut(position)) {
                    hit.hit.also.push(Also {
                        id: memory.id.clone(),
                        scope,
                    });
                    if let Some(last) = hits.last_mut() {
                        last.end = (*place, memory.id);
                    }
                    continue;
                }
                if hits.len() >= limit {
                    if let Some(last) = hits.last_mut() {
                        last.more = true;
                    }
                    break 'page;
                }
                signatures.extend(signature);
                let rank = ranked
                    .iter()
                    .position(|other| std::ptr::eq(other, place))
                    .map_or(0, |position| position + 1);
                let end = (*place, memory.id.clone());
                hits.push(Hit {
                    hit: self.hit(&memory, place, &scope, rank, &mut matcher),
                    memory,
                    place: *place,
                    end,
                    more: false,
                });
            }
        }
        // Fewer places than matches were put in order; the rest is there for the next page.
        if (ranked.len() as u64) < total
            && let Some(last) = hits.last_mut()
        {
            last.more = true;
        }
        if gone > 0 {
            notes.push(Note::new(
                NoteKind::ChangedMeanwhile,
                format!("{gone} matching memories were changed or removed while this request was answered"),
            ));
        }
        Ok(hits)
    }

    fn id(&self, place: &Ranked) -> &str {
        self.views
            .get(place.scored.scope)
            .and_then(|view| view.index.doc(place.scored.doc))
            .map_or("", |doc| &doc.id)
    }

    /// Reads the records of some places from their stores; the status allow-list is applied to what SQLite says now.
    fn records(&self, places: &[Ranked]) -> Result<HashMap<(usize, String), Memory>, Error> {
        let mut records = HashMap::with_capacity(places.len());
        for (number, (scope, _)) in self.opened.iter().enumerate() {
            let wanted: Vec<(RowKey, &str)> = places
                .iter()
                .filter(|place| place.scored.scope == number)
                .filter_map(|place| {
                    let doc = self.views.get(number)?.index.doc(place.scored.doc)?;
                    Some((doc.key, &*doc.id))
                })
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let found = scope
                .store
                .snapshot(|snapshot| snapshot.memories(&wanted, self.spec.filters.status))?;
            records.extend(found.into_iter().map(|(id, memory)| ((number, id), memory)));
        }
        Ok(records)
    }

    fn hit(&self, memory: &Memory, place: &Ranked, scope: &str, rank: usize, matcher: &mut Option<Matcher<'_>>) -> MemoryHit {
        let mut hit = answer::hit(memory, scope, self.spec.detail);
        if let Some(view) = self.views.get(place.scored.scope) {
            answer::hide_successor(&mut hit, view.index, self.spec.filters.status);
        }
        if let Some((_, statistics)) = &self.terms {
            hit.score = Some(f64::from((place.scored.score * 100.0).round()) / 100.0);
            hit.why = matcher.as_mut().and_then(|matcher| answer::why(memory, matcher));
            if self.spec.explain
                && let Some(view) = self.views.get(place.scored.scope)
            {
                let terms = statistics
                    .explain(view.index, place.scored.doc)
                    .into_iter()
                    .map(|(key, part)| format!("{} {part:.2}", key.trim_start_matches('=')))
                    .collect();
                let leg = LegExplanation {
                    leg: "lexical".to_owned(),
                    rank: rank as u64,
                    score: f64::from(place.scored.score),
                    terms,
                };
                hit.explanation = Some(Explanation { legs: vec![leg] });
            }
        }
        hit
    }

    /// The notes that follow from what was found.
    fn notes(&self, selection: &Selection, page: &Page, hits: &[Hit], notes: &mut Vec<Note>) {
        if page.only_stop_words {
            notes.push(Note::new(
                NoteKind::OnlyStopWords,
                "every word of the query is a common one; they were searched as they stand",
            ));
        }
        let status = self.spec.filters.status;
        if page.hidden.by_status > 0 && (hits.is_empty() || page.hidden.by_status >= 10) && status == StatusFilter::Approved {
            notes.push(Note::new(
                NoteKind::HiddenByStatus,
                format!(
                    "{} matching memories are not approved yet; pass `status: \"staging\"` or \"all\" to see them",
                    page.hidden.by_status
                ),
            ));
        } else if page.hidden.by_status > 0 && hits.is_empty() {
            notes.push(Note::new(
                NoteKind::HiddenByStatus,
                format!(
                    "{} matching memories have another status; pass `status: \"all\"`",
                    page.hidden.by_status
                ),
            ));
        }
        let relevant = |scope: &str| hits.is_empty() || status != StatusFilter::Approved || hits.iter().any(|hit| hit.hit.scope == scope);
        if page.hidden.by_status > 0 || status != StatusFilter::Approved {
            note_missing_status(self.opened, relevant, notes);
        }
        let memories: Vec<(String, &Memory)> = hits.iter().map(|hit| (hit.hit.scope.clone(), &hit.memory)).collect();
        answer::note_repairs(&memories, notes);
        if selection.scopes.is_empty() {
            notes.push(Note::new(
                NoteKind::NoScopes,
                "no scope could be searched; `searched.skipped` says why",
            ));
        }
    }

    /// What to try when nothing was found.
    fn suggestions(&self, request: &QueryRequest, page: &Page) -> Vec<String> {
        let mut suggestions = Vec::new();
        if page.hidden.by_status > 0 {
            suggestions.push(format!(
                "{} matches are hidden by their status: pass status \"all\"",
                page.hidden.by_status
            ));
        }
        if let Some(project) = &request.project {
            let known: Vec<&str> = self
                .views
                .iter()
                .flat_map(|view| view.index.live().map(|(_, doc)| view.index.project(doc.project)))
                .filter(|name| !name.is_empty())
                .collect();
            let folded = fold_name(project);
            if !known.iter().any(|name| fold_name(name) == folded) {
                let near = nearest(project, known.into_iter(), 3);
                let hint = if near.is_empty() {
                    String::new()
                } else {
                    format!("; like it: {}", near.join(", "))
                };
                suggestions.push(format!(
                    "No memory was learned in project \"{}\"{hint}",
                    crate::text::line(project, 80)
                ));
            }
        }
        for tag in request.tags.iter().flatten() {
            let folded = fold_name(tag);
            let known: Vec<&str> = self
                .views
                .iter()
                .flat_map(|view| {
                    view.index
                        .live()
                        .flat_map(|(_, doc)| doc.tags.iter().map(|tag| view.index.tag(*tag)))
                })
                .collect();
            if !known.iter().any(|name| fold_name(name) == folded) {
                let near = nearest(tag, known.into_iter(), 3);
                let hint = if near.is_empty() {
                    String::new()
                } else {
                    format!("; like it: {}", near.join(", "))
                };
                suggestions.push(format!("No memory has the tag \"{}\"{hint}", crate::text::line(tag, 80)));
            }
        }
        if self.spec.filters.restricts() {
            suggestions.push("Leave out filters (tags, project, type, files, since, until, session)".to_owned());
        }
        if self.spec.text.is_some() {
            suggestions.push("Try broader search terms".to_owned());
        }
        if request.scope.is_some() {
            suggestions.push("Leave `scope` out to search every shared scope".to_owned());
        }
        suggestions.push("Use list_scopes to check available scopes".to_owned());
        suggestions.push("Recent sessions may not be indexed yet".to_owned());
        suggestions
    }
}
