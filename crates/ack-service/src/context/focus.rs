//! Chooses by what a session is about (`focus`): a search with the scopes' indexes. The newest of
//! the project's own memories follow; memories of other projects come only from the search.

use std::collections::HashSet;

use rustc_hash::FxHashMap;

use super::brief::Brief;
use super::choose::Limits;
use super::evidence::RECENT_REASON;
use super::outlines;
use super::{empty_answer, newest_sessions};
use crate::engine::Service;
use crate::error::Error;
use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use crate::scopes;
use crate::search::{Certainty, Search};
use crate::shown::Shown;
use crate::validate::QuerySpec;
use ack_api::memory::StatusFilter;
use ack_api::{ContextResponse, MemoryHit, Note, NoteKind, Pending, text};
use ack_search::interner::NameId;
use ack_search::inverted::Index;
use ack_store::sessions::{MAX_MEMBERS, Members, RecentSession};
use jiff::tz::TimeZone;

const FOCUS_REASON: &str = "matches the focus";

pub fn choose(
    service: &Service,
    selection: &mut Selection,
    focus: &str,
    limits: Limits<'_>,
    notes: &mut Vec<Note>,
) -> Result<Brief, Error> {
    let opened = OpenScopes::open(service, selection, notes)?;
    let mut search = FocusSearch { opened: &opened, selection, shown: Shown::default() };
    let mut own = Vec::new();
    search.take(Some(focus), true, limits.own, &mut own, notes)?;
    search.take(None, true, limits.own, &mut own, notes)?;
    let mut others = Vec::new();
    search.take(Some(focus), false, limits.others, &mut others, notes)?;
    let own_scope = selection.current.scope.as_ref();
    let today = (service.config.clock)().to_zoned(TimeZone::UTC).date();
    let meant =
        opened.indexed().filter(|(scope, _)| own_scope.is_none_or(|own| own.name == scope.name));
    let pending = meant.map(|(scope, index)| {
        let snoozed = scope.store.snapshot(|snapshot| snapshot.snoozed(today));
        scopes::pending(index, &snoozed.unwrap_or_default(), 0)
    });
    let pending = pending.filter(|pending| pending.count > 0).reduce(|all, one| Pending {
        count: all.count + one.count,
        oldest: [all.oldest, one.oldest].into_iter().flatten().min(),
        ..all
    });
    if let (Some(_), Some(scope), true) = (&pending, &selection.current.scope, own.is_empty()) {
        opened.note_missing_status(|name| name == scope.name, notes);
        notes.push(super::hidden_by_status(&scope.name));
    }
    opened.note_incomplete_reads(notes);
    let sessions = newest_sessions(search.sessions(), &[&own, &others], notes);
    Ok(Brief {
        no_others: (limits.others > 0 && others.is_empty())
            .then_some("no memory of another project matches the focus"),
        context: ContextResponse {
            recent_memories: own,
            recent_sessions: sessions,
            cross_project_learnings: others,
            pending,
            ..empty_answer(selection)
        },
        ..Brief::default()
    })
}

struct FocusSearch<'a> {
    opened: &'a OpenScopes,
    selection: &'a Selection,
    /// What is in the answer already, so that nothing is shown twice in either list.
    shown: Shown,
}

impl<'a> FocusSearch<'a> {
    /// Adds new ones until the list has `max` entries: found by the text, or else the newest.
    fn take(
        &mut self,
        text: Option<&str>,
        is_own: bool,
        max: usize,
        hits: &mut Vec<MemoryHit>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        if hits.len() >= max {
            return Ok(());
        }
        let mut spec = QuerySpec::all(StatusFilter::Approved, max);
        spec.text = text.map(str::to_owned);
        spec.filters.current_project = Some(is_own);
        let search = Search::new(self.opened, self.selection, &spec, None)?;
        // Fetch more, because some may be in either list already, perhaps under another id.
        let page = search.page(None, max + self.shown.len() + 2)?;
        for (scope, reason) in page.failed {
            let kind = NoteKind::ScopeUnavailable;
            if !notes.iter().any(|it| it.kind == kind && it.scope.as_ref() == Some(&scope)) {
                notes.push(Note::about(kind, scope, reason));
            }
        }
        for found in page.hits {
            // What is merely the nearest is less useful than a recent memory.
            if hits.len() >= max || page.certainty == Certainty::NoWords {
                break;
            }
            let is_taken =
                |known: &MemoryHit| (&known.id, &known.scope) == (&found.hit.id, &found.hit.scope);
            if hits.iter().any(is_taken) {
                continue;
            }
            let first = self.shown.len() - hits.len();
            let why = match (text, found.hit.why.as_deref()) {
                (None, _) => RECENT_REASON.to_owned(),
                (Some(_), None) => FOCUS_REASON.to_owned(),
                (Some(_), Some(words)) => format!("{FOCUS_REASON} ({words})"),
            };
            self.shown.add_to(hits, first, &found.memory, || MemoryHit {
                why: Some(text::line(&why, 160)),
                score: None,
                ..found.hit
            });
        }
        Ok(())
    }

    fn sessions(&self) -> Vec<(&'a str, RecentSession)> {
        let mut sessions = Vec::new();
        for (scope, index) in self.opened.indexed() {
            let own_rows = self.selection.current.rows_in(scope);
            // Memories are read before sessions, so a store that cannot be read has been reported
            // already.
            let wanted = outlines::session_query(&own_rows);
            let read = scope.store.snapshot(|snapshot| {
                snapshot.recent_sessions(wanted, |names| Ok(members(index, names, wanted.filter)))
            });
            let read = read.unwrap_or_default().into_iter();
            sessions.extend(read.map(|session| (scope.name.as_str(), session)));
        }
        sessions
    }
}

fn members(index: &Index, sessions: &HashSet<&str>, filter: StatusFilter) -> Members {
    let named =
        sessions.iter().filter_map(|session| Some((index.names().lookup(session)?, *session)));
    let wanted: FxHashMap<NameId, &str> = named.filter(|(name, _)| *name != 0).collect();
    let mut members = Members::new();
    if wanted.is_empty() {
        return members;
    }
    for (number, doc) in index.live().filter(|(_, doc)| filter.allows(doc.status)) {
        let names = [Some(doc.session), Some(doc.session_id).filter(|name| *name != doc.session)];
        for session in names.into_iter().flatten().filter_map(|name| wanted.get(&name)) {
            let of = members.entry((*session).to_owned()).or_default();
            if of.len() < MAX_MEMBERS {
                of.push((doc.key, index.id(number).to_owned()));
            }
        }
    }
    members
}
