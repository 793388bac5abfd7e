//! `get_context`: the few memories that matter for a project now.
//!
//! What the session is about (`focus`) decides where it is given. Otherwise the project as it stands does, signal by signal
//! (`signals::Reason`): the files that were changed, the name of the branch, what the manifests declare. Then come
//! decisions and gotchas, and last what is merely recent. Each has its share of the list.

pub mod brief;
mod choose;
mod manifests;
mod signals;
mod words;

use std::path::PathBuf;

use self::choose::{Chooser, Wanted};
use self::signals::Signals;
use crate::service::engine::Service;
use crate::service::error::Error;
use crate::service::open::OpenScopes;
use crate::service::validate::{max_tokens, number, short};
use crate::service::{answer, bounds, scopes};
use ack_api::memory::StatusFilter;
use ack_api::text;
use ack_api::{
    ContextRequest, ContextResponse, MAX_LIMIT, MemoryHit, Note, NoteKind, ProjectInfo,
    SessionEntry,
};
use ack_store::sessions::RecentSession;
use ack_sys::files::expand_home;

/// Memories of a list where a request names no number.
const DEFAULT_MEMORIES: u32 = 5;
/// Sessions in an answer.
const SESSIONS: usize = 3;

/// Answers `get_context`.
///
/// # Errors
/// Invalid arguments, or no scope at all.
pub fn run(service: &Service, request: &ContextRequest) -> Result<ContextResponse, Error> {
    let most = number(
        "max_memories",
        request.max_memories,
        1,
        i64::from(MAX_LIMIT),
        DEFAULT_MEMORIES,
    )?;
    let budget = max_tokens(request.max_tokens, &service.config)?;
    short(
        "project_path",
        request.project_path.as_deref().unwrap_or_default(),
    )?;
    short("focus", request.focus.as_deref().unwrap_or_default())?;
    let mut notes = Vec::new();
    let folder = folder(service, request, &mut notes)?;
    let mut selection = service.select(None, Some(&folder))?;
    let scopes = selection.scopes.clone();
    let opened = OpenScopes::open(service, &mut selection, &scopes, &mut notes)?;
    let wanted = match request
        .focus
        .as_deref()
        .map(str::trim)
        .filter(|focus| !focus.is_empty())
    {
        Some(focus) => Wanted::Focus(text::line(focus, 2_000)),
        None => {
            let signals = Signals::read(
                &selection.current.folder,
                selection.current.repository.as_ref(),
                service.config.home.as_deref(),
            );
            let (compared, tracked) = (signals.changes.compared, signals.changes.tracked);
            if compared < tracked {
                notes.push(Note::new(
                    NoteKind::NotAvailable,
                    format!("{compared} of {tracked} tracked files were looked at for changes, the likeliest first"),
                ));
            }
            Wanted::Signals(signals)
        }
    };
    let mut chooser = Chooser::new(&opened, &selection, most, &wanted);
    let mut own = chooser.choose(true, &mut notes)?;
    let mut cross = if request.include_cross_project.unwrap_or(true) {
        chooser.choose(false, &mut notes)?
    } else {
        Vec::new()
    };
    let mut sessions = recent(chooser.sessions(), &[&own, &cross]);
    let own_scope = selection.current.scope.as_ref();
    let pending = own_scope
        .and_then(|scope| opened.named(&scope.name)?.index())
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
        opened.note_missing_status(|name| name == scope.name, &mut notes);
        notes.push(Note::about(
            NoteKind::HiddenByStatus,
            &scope.name,
            format!(
                "{} memories wait for review; query_memories with `status: \"staging\"` shows them",
                pending.count
            ),
        ));
    }
    opened.note_locks(&mut notes);
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
    let from = |name: &str| own.iter().chain(&cross).any(|hit| hit.scope == name);
    bounds::limit_searched(&mut response.searched, from);
    bounds::limit_notes(&mut response.notes);
    pack(&mut response, &mut own, &mut cross, &mut sessions, budget);
    Ok(response)
}

fn folder(
    service: &Service,
    request: &ContextRequest,
    notes: &mut Vec<Note>,
) -> Result<PathBuf, Error> {
    let Some(path) = request
        .project_path
        .as_deref()
        .map(str::trim)
        .filter(|path| !path.is_empty())
    else {
        let folder = service.config.project.value.clone();
        if folder.as_os_str().is_empty() {
            notes.push(Note::new(
                NoteKind::NotAvailable,
                "the working directory was removed, so no project is current; `project_path` names one",
            ));
        }
        return Ok(folder);
    };
    if path.contains('\0') || path.len() > 4_096 {
        return Err(Error::invalid(
            "project_path",
            text::line(path, 60),
            "a path of at most 4096 bytes",
        ));
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

/// The newest of some sessions, each with the name of its scope, beside memories that are told.
fn recent(mut sessions: Vec<(&str, RecentSession)>, told: &[&[MemoryHit]]) -> Vec<SessionEntry> {
    sessions.sort_by(|(_, a), (_, b)| a.newest_first(b));
    let told = |scope: &str, id: &str| {
        told.iter()
            .copied()
            .flatten()
            .any(|hit| hit.scope == scope && hit.id == id)
    };
    let sessions = sessions.into_iter().take(SESSIONS);
    sessions
        .map(|(scope, session)| session.into_entry(|id| told(scope, id)))
        .collect()
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
    let cut =
        wanted_own - own.len() + wanted_cross - cross.len() + wanted_sessions - sessions.len();
    // What was cut is the one note that no other may push out.
    let note = |message| Note::new(NoteKind::Cut, message);
    if cut > 0 {
        response.notes.insert(
            0,
            note(format!(
                "cut to {budget} tokens: {cut} entries are left out; query_memories finds them"
            )),
        );
    }
    response.recent_memories = std::mem::take(own);
    response.cross_project_learnings = std::mem::take(cross);
    response.recent_sessions = std::mem::take(sessions);
    if answer::cost(response) <= budget {
        return;
    }
    response.notes.retain(|note| note.kind != NoteKind::Cut);
    response.notes.insert(
        0,
        note(format!(
            "cut to {budget} tokens; query_memories finds the rest"
        )),
    );
    let steps: [fn(&mut ContextResponse); 14] = [
        |response| bounds::shorten_skipped(&mut response.searched),
        |response| bounds::shorten_notes(&mut response.notes),
        |response| bounds::drop_names(&mut response.searched),
        |response| response.notes.truncate(1),
        |response| response.project.path = text::line(&response.project.path, 40),
        |response| response.recent_sessions.clear(),
        |response| response.cross_project_learnings.clear(),
        |response| response.searched.detected_by = None,
        |response| response.project.detected_by = None,
        |response| response.recent_memories.truncate(1),
        |response| {
            response
                .notes
                .iter_mut()
                .for_each(|note| note.message = "cut".to_owned())
        },
        |response| response.pending = None,
        |response| response.project.path = text::line(&response.project.path, 20),
        |response| response.recent_memories.clear(),
    ];
    for step in steps {
        if answer::cost(response) <= budget {
            break;
        }
        step(response);
    }
}
