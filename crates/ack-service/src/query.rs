//! `query_memories`: the retrieval pipeline, from arguments to a page.

use std::collections::{BTreeSet, HashSet};

use super::engine::Service;
use super::open::OpenScopes;
use super::search::{Certainty, Page, Search};
use super::validate::QuerySpec;
use super::{answer, budget, same_id};
use crate::error::{Error, UNREVIEWED_WITHHELD, review_shows};
use crate::scope::resolve::Selection;
use ack_api::memory::{Status, StatusFilter, fold_name, nearest};
use ack_api::number::{count, verb};
use ack_api::{
    Given, Hint, Message, Mode, Note, NoteKind, QueryRequest, QueryResponse, Skipped, Tool, cancel,
    text,
};
use ack_search::cursor::Cursor;
use ack_search::encoder::Encoder;
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_search::inverted::docs::Doc;
use ack_search::postings::DocId;
use ack_search::view::View;

const MAX_TYPES: usize = 12;
const MAX_NEAR: usize = 3;

pub fn run(service: &Service, request: &QueryRequest) -> Result<QueryResponse, Error> {
    let spec = QuerySpec::new(request, &service.config)?;
    let cursor = Cursor::decode(request)?;
    let mut selection = service.select(request.scope.as_deref(), None)?;
    let mut notes = Vec::new();
    let scopes = selection.scopes.clone();
    let opened = OpenScopes::open(service, &mut selection, &mut notes)?;
    let search = Search::new(&opened, &selection, &spec, cursor.as_ref())?;
    if request.order.is_some() && search.is_search() {
        let message = "the results of a search are ordered by relevance, not by time";
        let note = Note::new(NoteKind::NotAvailable, message);
        notes.push(note.with(Hint::omit("order", "when you search")));
    }
    if let (None, Some(like)) = (search.like, &request.like) {
        same_id::check_scope(like.trim(), request.scope.as_deref(), &scopes)?;
    }
    search.check_like()?;
    search.note_legs(&mut notes);
    notes.extend(search.note_same_id());
    let mut page = search.page(cursor.as_ref(), spec.limit)?;
    if spec.withheld == Some(StatusFilter::Staging) {
        page.clear();
    }
    if request.query.is_some() && spec.text.is_none() && !page.hits.is_empty() {
        let age = if spec.oldest { "oldest" } else { "newest" };
        let message =
            format!("the query is empty: these are the {age} memories that pass the filters");
        notes.push(Note::new(NoteKind::EmptyQuery, message));
    }
    let mut response = QueryResponse {
        total: page.total,
        total_is_lower_bound: search.views.iter().any(View::is_partial),
        hidden: (page.hidden != ack_api::Hidden::default()).then_some(page.hidden),
        searched: selection.searched(spec.filters.status),
        expected: spec.expect.as_deref().map(|id| Box::new(search.expected(id, &page))),
        ..QueryResponse::default()
    };
    for (scope, reason) in &page.failed {
        response.searched.scopes.retain(|name| name != scope);
        response.searched.skipped.push(Skipped { scope: scope.clone(), reason: reason.clone() });
        notes.push(Note::about(NoteKind::ScopeUnavailable, scope, reason.clone()));
    }
    search.notes(&selection, &page, &mut notes);
    opened.note_incomplete_reads(&mut notes);
    if page.hits.is_empty() && cursor.is_none() {
        let has_hidden = page.hidden.by_status > 0 || spec.withheld == Some(StatusFilter::Staging);
        response.suggestions = search.suggestions(request, has_hidden);
        cancel::check()?;
    } else if page.certainty != Certainty::Certain {
        response.suggestions.extend(search.other_language());
    }
    response.notes = notes;
    Ok(budget::page::fit(request, &search, response, page))
}

/// The note about matches hidden by their status, and how to see them if the request may.
fn hidden_by_status(number: u64, spec: &QuerySpec) -> Note {
    let matching = count(number, "matching memory");
    let note = |message| Note::new(NoteKind::HiddenByStatus, message);
    let see = |options: &[&'static str]| {
        let options = options.iter().map(|status| Given::value("status", *status));
        let it = verb(number, "it", "them");
        Hint::pass(options.collect::<Vec<_>>(), format!("to see {it}"))
    };
    if spec.withholds {
        let waiting = format!("{matching} {} for review", verb(number, "waits", "wait"));
        let message = match (number, spec.withheld) {
            (_, None) => return note(waiting),
            (0, Some(_)) => UNREVIEWED_WITHHELD.to_owned(),
            (_, Some(_)) => format!("{waiting}; {UNREVIEWED_WITHHELD}"),
        };
        note(message).with(review_shows())
    } else if spec.filters.status == StatusFilter::Approved {
        let are = verb(number, "is", "are");
        note(format!("{matching} {are} not approved yet")).with(see(&["staging", "all"]))
    } else {
        let have = verb(number, "has", "have");
        note(format!("{matching} {have} another status")).with(see(&["all"]))
    }
}

impl Search<'_> {
    fn check_like(&self) -> Result<(), Error> {
        let Some(like) = &self.spec.like else {
            return Ok(());
        };
        let (status, id) = (self.spec.filters.status, text::id(&like.id));
        let Some((scope, doc)) = self.like else {
            let ids = self.views.iter().flat_map(|view| view.index.live_ids(status));
            let near = nearest(&like.id, ids, 3);
            cancel::check()?;
            let (scopes, unread) = (self.names.clone(), Vec::new());
            return Err(Error::MemoryNotFound { id, scopes, unread, nearest: near });
        };
        let found = self.views.get(scope).and_then(|view| view.index.doc(doc));
        if self.spec.withholds && found.is_some_and(|found| !status.allows(found.status)) {
            let scope = self.name(scope).unwrap_or_default().to_owned();
            return Err(Error::MemoryWithheld { id, scope });
        }
        Ok(())
    }

    fn note_legs(&self, notes: &mut Vec<Note>) {
        if self.spec.mode == Mode::Lexical || self.has_meaning() || !self.is_search() {
            return;
        }
        let message = if self.spec.like.is_some() {
            "this memory has no vector, because the encoder knows none of its words; nothing is near it"
        } else {
            "searched by exact words only: the encoder knows no word of the query"
        };
        notes.push(Note::new(NoteKind::NoSemanticLeg, message));
    }

    fn notes(&self, selection: &Selection, page: &Page, notes: &mut Vec<Note>) {
        let hits = &page.hits;
        if page.gone > 0 {
            let gone = count(page.gone as u64, "matching memory");
            let message = format!("{gone} changed or disappeared while this was being answered");
            notes.push(Note::new(NoteKind::ChangedMeanwhile, message));
        }
        match page.certainty {
            Certainty::NoWords if !page.only_stop_words => {
                notes.insert(0, Note::new(NoteKind::NoWordMatches, self.no_words(hits)));
            }
            Certainty::Uncertain => {
                notes.insert(0, Note::new(NoteKind::NothingCertain, self.nothing_certain()));
            }
            Certainty::NoWords | Certainty::Certain => {}
        }
        if page.only_stop_words {
            let message = "the query has only very common words; they were searched as they are";
            notes.push(Note::new(NoteKind::OnlyStopWords, message));
        }
        for (_, name) in self.views.iter().zip(&self.names).filter(|(view, _)| view.is_partial()) {
            let message = format!(
                "`{name}` is large: only its best matches are counted in `total`; use filters to find others"
            );
            notes.push(Note::about(NoteKind::BestMatchesOnly, name, message));
        }
        let status = self.spec.filters.status;
        let hidden = page.hidden.by_status;
        let must_mention = match (self.spec.withholds, self.spec.withheld) {
            (true, withheld) => hits.is_empty() || withheld.is_some(),
            (false, _) => hits.is_empty() || (hidden >= 10 && status == StatusFilter::Approved),
        };
        if (hidden > 0 && must_mention) || self.spec.withheld.is_some() {
            notes.push(hidden_by_status(hidden, self.spec));
        }
        // A caller that may not ask for what waits does not need to know why it waits.
        if !self.spec.withholds {
            let hiding: BTreeSet<&str> =
                page.hiding_scopes.iter().filter_map(|scope| self.name(*scope)).collect();
            self.opened.note_missing_status(|scope| hiding.contains(scope), notes);
        }
        answer::note_repairs(hits.iter().map(|hit| &hit.memory), notes);
        if selection.scopes.is_empty() {
            notes.push(Note::new(NoteKind::NoScopes, "no scope could be searched"));
        }
    }

    /// What to try if the question is in a language that is searched by its words alone.
    fn other_language(&self) -> Option<Message> {
        let text = self.spec.text.as_deref()?;
        Encoder::embedded().filter(|encoder| encoder.is_foreign(text))?;
        Some(Message::suggestion(Hint::advice(
            "this language is searched by its words alone: ask in English, or with names, codes \
             and identifiers from the memory",
        )))
    }

    fn unknown_names(&self, request: &QueryRequest) -> Vec<Message> {
        let mut messages = Vec::new();
        if let Some(project) = &request.project {
            let known = NameSet::of(self, |_, _, doc| [doc.project]);
            // If the project exists under another name, there is nothing to correct.
            if !known.visible.iter().any(|name| self.project_names.contains(&fold_name(name))) {
                messages.extend(known.unknown("was learned in project", project, ""));
            }
        }
        if let Some(tags) = &request.tags {
            let known = NameSet::of(self, |index, number, _| index.tags(number).iter().copied());
            messages.extend(tags.iter().filter_map(|tag| known.unknown("has the tag", tag, "")));
        }
        if let Some(kind) = &request.kind {
            messages.extend(unknown_types(kind, &NameSet::of(self, |_, _, doc| [doc.kind])));
        }
        messages.into_iter().map(Message::new).collect()
    }

    /// What to try when nothing was found; only unknown names if there are hidden matches.
    fn suggestions(&self, request: &QueryRequest, has_hidden: bool) -> Vec<Message> {
        let mut suggestions = self.unknown_names(request);
        if has_hidden {
            return suggestions;
        }
        let other_language = self.other_language();
        let is_broad = self.spec.text.is_none() || other_language.is_some();
        suggestions.extend(other_language);
        if self.spec.filters.restricts() {
            suggestions.push(
                "Leave out filters (tags, project, type, files, since, until, session)".into(),
            );
        }
        if !is_broad {
            suggestions.push("Try broader search terms".into());
        }
        if request.scope.is_some() {
            let omit = Hint::omit("scope", "to search every shared scope");
            suggestions.push(Message::suggestion(omit));
        }
        suggestions.push(Message::suggestion(Hint::Try {
            tool: Tool::ListScopes,
            purpose: "to check available scopes".into(),
        }));
        suggestions
    }
}

#[derive(Default)]
struct NameSet<'a> {
    /// Those of memories that the request may see.
    visible: BTreeSet<&'a str>,
    /// Those of memories that wait for review, unless the request asks for these. It learns that
    /// there are some, but not their names.
    waiting: BTreeSet<&'a str>,
}

impl<'a> NameSet<'a> {
    /// The names that `of` finds in memories.
    fn of<N: IntoIterator<Item = NameId>>(
        search: &'a Search<'a>,
        of: impl Fn(&'a Index, DocId, &Doc) -> N,
    ) -> Self {
        let mut known = Self::default();
        for index in search.views.iter().map(|view| view.index) {
            let mut ids: HashSet<(bool, NameId)> = HashSet::new();
            for (number, doc) in cancel::guarded(index.live()) {
                let is_shown = search.spec.filters.status.allows(doc.status);
                if is_shown || doc.status == Status::Staging {
                    ids.extend(of(index, number, doc).into_iter().map(|id| (is_shown, id)));
                }
            }
            for (is_shown, id) in ids {
                let names = if is_shown { &mut known.visible } else { &mut known.waiting };
                names.extend(Some(index.names().name(id)).filter(|name| !name.is_empty()));
            }
        }
        known
    }

    /// `has` says what memories with such a name do. `known` ends the message if none is similar.
    fn unknown(&self, has: &str, wanted: &str, known: &str) -> Option<String> {
        let folded = fold_name(wanted);
        let holds =
            |names: &BTreeSet<&str>| cancel::guarded(names).any(|name| fold_name(name) == folded);
        let quoted = format!("\"{}\"", text::line(wanted, 80));
        if holds(&self.visible) {
            return None;
        }
        if holds(&self.waiting) {
            return Some(format!("Every memory that {has} {quoted} waits for review"));
        }
        let near =
            |names: &BTreeSet<&str>| nearest(wanted, names.iter().copied(), MAX_NEAR).join(", ");
        let (visible, waiting) = (near(&self.visible), near(&self.waiting));
        let hint = if !visible.is_empty() {
            format!("; similar: {visible}")
        } else if !waiting.is_empty() {
            // Nobody has reviewed this name.
            "; one that waits for review has a similar name".to_owned()
        } else {
            known.to_owned()
        };
        Some(format!("No memory {has} {quoted}{hint}"))
    }
}

/// There are few types, so all are listed if none is similar.
fn unknown_types(wanted: &str, known: &NameSet<'_>) -> Vec<String> {
    if known.visible.iter().any(|name| fold_name(name) == fold_name(wanted)) {
        return Vec::new();
    }
    let some: Vec<&str> = known.visible.iter().take(MAX_TYPES).copied().collect();
    let some = some.join(", ");
    let types = if some.is_empty() { some } else { format!("; types are: {some}") };
    let wanted = wanted.split(',').map(str::trim).filter(|wanted| !wanted.is_empty());
    wanted.filter_map(|wanted| known.unknown("has the type", wanted, &types)).collect()
}
