//! `get_context`: the few memories that matter for a project now.
//!
//! What the session is about (`focus`) decides where it is given. Otherwise the project as it stands does: the name of the
//! branch and what its manifests declare are searched for, and what that finds goes before what is merely recent.

pub mod brief;
mod signals;
mod words;

use std::path::PathBuf;

use self::signals::Signals;
use crate::api::{ContextRequest, ContextResponse, Detail, MAX_LIMIT, MemoryHit, Mode, Note, NoteKind, ProjectInfo, SessionEntry};
use crate::config::expand_home;
use crate::error::Error;
use crate::memory::{StatusFilter, Visibility, fold_name};
use crate::query::filter::{Belonging, Filters};
use crate::scope::resolve::Selection;
use crate::scope::{IndexGuard, Scope};
use crate::service::search::Search;
use crate::service::validate::{QuerySpec, max_tokens, number};
use crate::service::{Service, answer, note_missing_status, open, scopes};
use crate::text;

/// Memories of a list where a request names no number.
const DEFAULT_MEMORIES: u32 = 5;
/// Why a memory is there that was searched for.
const FOCUS: &str = "matches the focus";
/// Least cosine of a memory that shares no word with the focus; what is merely recent is worth more than a farther one.
const FOCUS_FLOOR: f32 = 0.35;
/// Sessions in an answer.
const SESSIONS: usize = 3;

/// Answers `get_context`.
///
/// # Errors
/// Invalid arguments, or no scope at all.
pub fn run(service: &Service, request: &ContextRequest) -> Result<ContextResponse, Error> {
    let most = number("max_memories", request.max_memories, 1, i64::from(MAX_LIMIT), DEFAULT_MEMORIES)?;
    let budget = max_tokens(request.max_tokens, &service.config)?;
    let mut notes = Vec::new();
    let folder = folder(service, request, &mut notes)?;
    let mut selection = service.select(None, Some(&folder))?;
    let scopes = selection.scopes.clone();
    let opened = open(&mut selection, &scopes, &mut notes)?;
    let signals = match request.focus.as_deref().map(str::trim).filter(|focus| !focus.is_empty()) {
        Some(focus) => Wanted {
            first: Some(text::line(focus, 2_000)),
            reason: FOCUS,
            further: None,
        },
        None => {
            let signals = Signals::read(&selection.current.folder, selection.current.repository.as_ref());
            let further = (!signals.dependencies.is_empty()).then(|| signals.dependencies.join(" "));
            Wanted {
                first: signals.branch,
                reason: "matches the branch",
                further,
            }
        }
    };
    let chooser = Chooser {
        opened: &opened,
        selection: &selection,
        most,
    };
    let mut own = chooser.choose(true, &signals, &mut notes)?;
    let mut cross = if request.include_cross_project.unwrap_or(true) {
        chooser.choose(false, &signals, &mut notes)?
    } else {
        Vec::new()
    };
    let mut sessions = chooser.sessions();
    let own_scope = selection.current.scope.as_ref();
    let pending = own_scope
        .and_then(|scope| opened.iter().find(|(known, _)| known.name == scope.name))
        .and_then(|(_, guard)| guard.get())
        .map(|index| scopes::pending(index, 0))
        .filter(|pending| pending.count > 0);
    if own_scope.is_none() {
        notes.push(Note::new(
            NoteKind::NoCurrentScope,
            "no scope claims this project; add its path to `paths` in a scope.toml",
        ));
    }
    if let (Some(pending), Some(scope)) = (&pending, own_scope)
        && own.is_empty()
    {
        note_missing_status(&opened, |name| name == scope.name, &mut notes);
        notes.push(Note::about(
            NoteKind::HiddenByStatus,
            &scope.name,
            format!(
                "{} memories wait for review; query_memories with `status: \"staging\"` shows them",
                pending.count
            ),
        ));
    }
    let mut response = ContextResponse {
        project: ProjectInfo {
            name: text::line(&selection.current.name, 200),
            path: text::line(&selection.current.folder.display().to_string(), 400),
            scope: own_scope.map(|scope| scope.name.clone()),
            detected_by: selection.current.rule.clone(),
        },
        pending,
        searched: selection.searched(StatusFilter::Approved),
        notes,
        ..ContextResponse::default()
    };
    pack(&mut response, &mut own, &mut cross, &mut sessions, budget);
    Ok(response)
}

fn folder(service: &Service, request: &ContextRequest, notes: &mut Vec<Note>) -> Result<PathBuf, Error> {
    let Some(path) = request.project_path.as_deref().map(str::trim).filter(|path| !path.is_empty()) else {
        return Ok(service.config.project.value.clone());
    };
    if path.contains('\0') || path.len() > 4_096 {
        return Err(Error::invalid("project_path", text::line(path, 60), "a path of at most 4096 bytes"));
    }
    let path = expand_home(&PathBuf::from(path), service.config.home.as_deref());
    let path = if path.is_absolute() {
        path
    } else {
        service.config.project.value.join(path)
    };
    if !path.is_dir() {
        notes.push(Note::new(
            NoteKind::NotAvailable,
            "`project_path` is no folder on this machine; the project was recognised by its name alone",
        ));
    }
    Ok(path)
}

/// What to search for, from the most telling to the least.
struct Wanted {
    first: Option<String>,
    reason: &'static str,
    further: Option<String>,
}

struct Chooser<'a> {
    opened: &'a [(&'a Scope, IndexGuard<'a>)],
    selection: &'a Selection,
    most: usize,
}

impl Chooser<'_> {
    /// The project's own memories, or those of others: first what the signals find, then what is recent.
    fn choose(&self, own: bool, wanted: &Wanted, notes: &mut Vec<Note>) -> Result<Vec<MemoryHit>, Error> {
        let mut chosen: Vec<MemoryHit> = Vec::new();
        let recent = if own { "recent in this project" } else { "recent elsewhere" };
        let steps = [
            (wanted.first.as_deref(), wanted.reason),
            (wanted.further.as_deref(), "about what the project uses"),
            (None, recent),
        ];
        for (step, (text, reason)) in steps.into_iter().enumerate() {
            // Only the last step goes without words.
            if chosen.len() >= self.most || (step < 2 && text.is_none()) {
                continue;
            }
            // Dependencies find what others learned; the project's own memories are about them anyway.
            if step == 1 && own {
                continue;
            }
            let spec = QuerySpec {
                text: text.map(str::to_owned),
                filters: Filters {
                    belonging: Some(self.belonging(own)),
                    status: StatusFilter::Approved,
                    ..Filters::default()
                },
                limit: self.most,
                tokens: usize::MAX,
                detail: Detail::Concise,
                explain: false,
                // A focus is a question; a branch's name and a list of dependencies are words.
                mode: if step == 0 && wanted.reason == FOCUS {
                    Mode::Hybrid
                } else {
                    Mode::Lexical
                },
                like: None,
                expect: None,
                floor: Some(FOCUS_FLOOR),
            };
            let search = Search::new(self.opened, self.selection, &spec, None);
            let page = search.page(None, self.most + chosen.len())?;
            for (scope, reason) in page.failed {
                if !notes
                    .iter()
                    .any(|note| note.kind == NoteKind::ScopeUnavailable && note.scope.as_ref() == Some(&scope))
                {
                    notes.push(Note::about(NoteKind::ScopeUnavailable, scope, reason));
                }
            }
            for hit in page.hits {
                let mut hit = hit.hit;
                let known = chosen.iter().any(|known| {
                    known.id == hit.id
                        || known.also.iter().any(|also| also.id == hit.id)
                        || fold_name(&known.title) == fold_name(&hit.title)
                });
                if known || chosen.len() >= self.most {
                    continue;
                }
                hit.why = Some(
                    hit.why
                        .map_or_else(|| reason.to_owned(), |why| text::line(&format!("{reason} ({why})"), 160)),
                );
                hit.score = None;
                chosen.push(hit);
            }
        }
        Ok(chosen)
    }

    fn belonging(&self, own: bool) -> Belonging {
        Belonging {
            names: self.selection.current.names(),
            own_scope: self.selection.current.scope.as_ref().map(|scope| fold_name(&scope.name)),
            own,
            own_is_private: self
                .selection
                .current
                .scope
                .as_ref()
                .is_some_and(|scope| scope.manifest.visibility == Visibility::Private),
        }
    }

    /// The project's recent sessions, newest first.
    fn sessions(&self) -> Vec<SessionEntry> {
        let names = self.selection.current.names();
        let mut sessions = Vec::new();
        for (scope, _) in self.opened {
            let own = self.selection.current.scope.as_ref().is_some_and(|own| own.name == scope.name);
            // Memories go before sessions: a store that cannot be read for these is named where its memories are read.
            let read = scope
                .store
                .snapshot(|snapshot| snapshot.recent_sessions(&names, own, StatusFilter::Approved, SESSIONS));
            sessions.extend(read.unwrap_or_default());
        }
        sessions.sort_by(|a, b| b.date.cmp(&a.date).then_with(|| a.session.cmp(&b.session)));
        sessions.truncate(SESSIONS);
        sessions
    }
}

/// Fills the answer within its tokens: own memories first, then what others learned, then sessions.
fn pack(
    response: &mut ContextResponse,
    own: &mut Vec<MemoryHit>,
    cross: &mut Vec<MemoryHit>,
    sessions: &mut Vec<SessionEntry>,
    budget: usize,
) {
    let mut rest = budget.saturating_sub(answer::cost(response) + 60);
    let (wanted_own, wanted_cross, wanted_sessions) = (own.len(), cross.len(), sessions.len());
    let reserve = if cross.is_empty() { 0 } else { rest / 3 };
    let take = |hits: &mut Vec<MemoryHit>, share: usize, rest: &mut usize| {
        if share < 80 {
            hits.clear();
        }
        answer::fit(hits, share);
        *rest = rest.saturating_sub(hits.iter().map(|hit| answer::cost(hit) + 1).sum::<usize>());
    };
    take(own, rest.saturating_sub(reserve), &mut rest);
    let share = rest;
    take(cross, share, &mut rest);
    sessions.retain(|session| {
        let price = answer::cost(session) + 1;
        let fits = price <= rest;
        rest = if fits { rest - price } else { 0 };
        fits
    });
    let cut = wanted_own - own.len() + wanted_cross - cross.len() + wanted_sessions - sessions.len();
    if cut > 0 {
        response.notes.push(Note::new(
            NoteKind::Cut,
            format!("cut to {budget} tokens: {cut} entries are left out; query_memories finds them"),
        ));
    }
    response.recent_memories = std::mem::take(own);
    response.cross_project_learnings = std::mem::take(cross);
    response.recent_sessions = std::mem::take(sessions);
    let steps: [fn(&mut ContextResponse); 11] = [
        |response| answer::shorten_skipped(&mut response.searched),
        |response| answer::shorten_notes(&mut response.notes),
        |response| response.searched.skipped.clear(),
        |response| response.notes.truncate(1),
        |response| response.project.path = text::line(&response.project.path, 40),
        |response| response.recent_sessions.clear(),
        |response| response.cross_project_learnings.clear(),
        |response| response.notes.clear(),
        |response| response.searched.detected_by = None,
        |response| response.project.detected_by = None,
        |response| response.recent_memories.truncate(1),
    ];
    for step in steps {
        if answer::cost(response) <= budget {
            break;
        }
        step(response);
    }
}
