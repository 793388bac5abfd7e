//! Chooses by what a session is about (`focus`): a search with the scopes' indexes. The newest of
//! the project's own memories follow; memories of other projects come only from the search.

use std::sync::Arc;

use super::brief::Brief;
use super::choose::{Limits, brief};
use super::evidence::RECENT_REASON;
use super::outlines;
use crate::engine::Service;
use crate::error::Error;
use crate::open::OpenScopes;
use crate::scope::resolve::Selection;
use crate::search::{Certainty, Search};
use crate::shown::Shown;
use crate::validate::QuerySpec;
use ack_api::memory::StatusFilter;
use ack_api::{MemoryHit, Note, NoteKind, text};

const FOCUS_REASON: &str = "matches the focus";

pub fn choose(
    service: &Service,
    selection: &mut Selection,
    focus: &str,
    limits: Limits<'_>,
    notes: &mut Vec<Note>,
) -> Result<Brief, Error> {
    let read = outlines::read(selection, &Arc::default(), limits.reading, notes)?;
    let mut more = Vec::new();
    let opened = OpenScopes::open(service, selection, &mut more)?;
    more.retain(|note| !notes.contains(note));
    notes.extend(more);
    let mut search = FocusSearch { opened: &opened, selection, shown: Shown::default() };
    let mut own = Vec::new();
    search.take(Some(focus), true, limits.own, &mut own, notes)?;
    search.take(None, true, limits.own, &mut own, notes)?;
    let mut others = Vec::new();
    search.take(Some(focus), false, limits.others, &mut others, notes)?;
    let no_others = (limits.others > 0 && others.is_empty())
        .then_some("no memory of another project matches the focus");
    let brief = brief(selection, &read, limits.reading.timeout, [own, others], notes);
    Ok(Brief { no_others, ..brief })
}

struct FocusSearch<'a> {
    opened: &'a OpenScopes,
    selection: &'a Selection,
    /// What is in the answer already, so that nothing is shown twice in either list.
    shown: Shown,
}

impl FocusSearch<'_> {
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
}
