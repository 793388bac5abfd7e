//! `get_context`: the few memories that matter for a project now.
//!
//! If the caller says what the session is about (`focus`), this is a search. Otherwise the state of
//! the project decides, reason by reason (`evidence`): the changed files, the name of the branch,
//! what the manifests declare. Then come decisions and gotchas, and finally recent memories. The
//! session start hook uses the same selection code (`choose`).

pub mod about_files;
mod branch;
pub mod brief;
mod choose;
pub(super) mod evidence;
pub mod failure;
pub(super) mod files;
mod focus;
pub mod listed;
mod manifests;
pub(super) mod outlines;
pub mod preview;
mod signals;
pub(super) mod words;

pub use self::evidence::RECENT_REASON;

use std::path::Path;

use self::choose::{Limits, choose};
use self::outlines::Reading;
use self::signals::Signals;
use crate::budget::{self, frame, token_cost};
use crate::config::{Config, absolute};
use crate::engine::Service;
use crate::error::Error;
use crate::scope::resolve::Selection;
use crate::validate::{check_length, max_tokens, number};
use ack_api::number::{count, verb};
use ack_api::{
    ContextRequest, ContextResponse, Given, Hint, MAX_LIMIT, Note, NoteKind, Tool, text,
};
use ack_worktree::changes::Changes;
use ack_worktree::objects::Unknown;

const DEFAULT_MEMORIES: u32 = 5;
const MAX_SESSIONS: usize = 3;

pub fn run(service: &Service, request: &ContextRequest) -> Result<ContextResponse, Error> {
    let max =
        number("max_memories", request.max_memories, 1, i64::from(MAX_LIMIT), DEFAULT_MEMORIES)?;
    let budget = max_tokens(request.max_tokens, &service.config)?;
    check_length("project_path", request.project_path.as_deref().unwrap_or_default())?;
    check_length("focus", request.focus.as_deref().unwrap_or_default())?;
    let mut notes = Vec::new();
    let mut selection = select(service, request.project_path.as_deref(), &mut notes, true)?;
    let focus = request.focus.as_deref().unwrap_or_default().trim();
    let others = if request.include_cross_project.unwrap_or(true) { max } else { 0 };
    let limits = Limits { own: max, others, reading: Reading::of(service) };
    let chosen = if focus.is_empty() {
        let signals = Signals::of(&selection.current, &service.config);
        note_unknown_changes(&signals.changes, &mut notes);
        choose(&mut selection, signals, limits, &mut notes)?
    } else {
        focus::choose(service, &mut selection, &text::line(focus, 2_000), limits, &mut notes)?
    };
    if selection.current.scope.is_none() {
        let note = Note::new(NoteKind::NoCurrentScope, "no scope claims this project");
        let claim = Hint::command("scopes set NAME paths+=.", "in its folder assigns it to one");
        notes.push(if request.by_agent { note } else { note.with(claim) });
    }
    notes.extend(chosen.no_others.map(|why| Note::new(NoteKind::NothingCertain, why)));
    let mut response = ContextResponse { notes, ..chosen.context };
    frame::limit_notes(&mut response.notes);
    if request.by_agent {
        frame::skip_once(&mut response.searched, &response.notes);
    }
    let shown = || response.recent_memories.iter().chain(&response.cross_project_learnings);
    let is_shown = |scope: &str| shown().any(|hit| hit.scope == scope);
    frame::limit_searched(&mut response.searched, is_shown);
    if service.config.max_status.value.withholds(request.by_agent) {
        // `pending` has the number. A caller that may not ask for them does not need to know how.
        response.notes.retain(|note| {
            !matches!(note.kind, NoteKind::HiddenByStatus | NoteKind::NoStatusColumn)
        });
    }
    fit(&mut response, budget);
    Ok(response)
}

fn note_unknown_changes(changes: &Changes, notes: &mut Vec<Note>) {
    let mut note = |message| notes.push(Note::new(NoteKind::NotAvailable, message));
    let (compared, tracked) = (changes.compared, changes.tracked);
    if compared < tracked {
        note(format!(
            "{compared} of {tracked} tracked files were looked at for changes, the likeliest first"
        ));
    }
    let reason = |unknown: Unknown| match unknown {
        Unknown::OutOfTime => "git's history is too long to compare in time",
        Unknown::Shallow => "the clone is shallow",
        Unknown::Unreadable => "git's objects cannot be read",
    };
    if let Some(unknown) = changes.staged_unknown {
        note(format!("staged files are not known: {}", reason(unknown)));
    }
    if let Some(unknown) = changes.branch_unknown {
        note(format!("what the branch's commits changed is not known: {}", reason(unknown)));
    }
}

/// The note about a project whose memories all wait for review. `pending` has their number.
fn hidden_by_status(scope: &str) -> Note {
    let waiting = [Given::value("status", "staging")];
    let show = Hint::call_with(Tool::QueryMemories, waiting, "shows what nobody reviewed yet");
    Note::about(NoteKind::HiddenByStatus, scope, show)
}

/// The scopes and the project of a request. Says if the project's folder is not known.
fn select(
    service: &Service,
    project_path: Option<&str>,
    notes: &mut Vec<Note>,
    reads_stores: bool,
) -> Result<Selection, Error> {
    let given = project_path.map(str::trim).filter(|path| !path.is_empty());
    if let Some(path) = given.filter(|path| path.contains('\0') || path.len() > 4_096) {
        let value = text::line(path, 60);
        return Err(Error::invalid("project_path", value, "a path of at most 4096 bytes"));
    }
    let Config { project, home, .. } = &service.config;
    let folder = given.map(|path| absolute(Path::new(path), &project.value, home.as_deref()));
    let mut selection = service.select_with(None, folder.as_deref(), reads_stores)?;
    selection.current.add_common_rows();
    let top = &selection.current.top;
    let unknown = if top.as_os_str().is_empty() {
        "the working directory was removed, so no project is current"
    } else if top.parent().is_none() {
        "`/` is not a project's folder"
    } else if given.is_some() && !top.is_dir() {
        "the project's path is not a folder on this machine; the project was recognised by its name only"
    } else {
        return Ok(selection);
    };
    let note = Note::new(NoteKind::NotAvailable, unknown);
    let name = Hint::pass([Given::any("project_path")], "to name the folder you work in");
    notes.push(if given.is_some() && top.parent().is_some() { note } else { note.with(name) });
    Ok(selection)
}

/// Fewer tokens than this have no room for a memory, not even for an id and a title alone.
const MIN_ENTRY_TOKENS: usize = 30;

/// Leaves what fits: own memories first, then those of other projects, then sessions.
fn fit(response: &mut ContextResponse, budget: usize) {
    let mut own = std::mem::take(&mut response.recent_memories);
    let mut others = std::mem::take(&mut response.cross_project_learnings);
    let mut sessions = std::mem::take(&mut response.recent_sessions);
    let wanted = own.len() + others.len() + sessions.len();
    let mut rest = budget.saturating_sub(token_cost(response) + 60);
    let reserve = if others.is_empty() { 0 } else { rest / 3 };
    for (hits, reserve) in [(&mut own, reserve), (&mut others, 0)] {
        let share = rest.saturating_sub(reserve);
        if share < MIN_ENTRY_TOKENS {
            hits.clear();
        }
        rest = rest.saturating_sub(budget::keep_fitting(hits, share));
    }
    sessions.retain(|session| {
        let cost = token_cost(session) + 1;
        let fits = cost <= rest;
        rest = if fits { rest - cost } else { 0 };
        fits
    });
    // The note about what was cut is the one that no other may displace.
    let note = |message, what| {
        let find = Hint::call(Tool::QueryMemories, format!("finds {what}"));
        Note::new(NoteKind::Cut, message).with(find)
    };
    let left_out = (wanted - own.len() - others.len() - sessions.len()) as u64;
    if left_out > 0 {
        let entries = count(left_out, "entry");
        let are = verb(left_out, "is", "are");
        let message = format!("cut to {budget} tokens: {entries} {are} left out");
        response.notes.insert(0, note(message, verb(left_out, "it", "them")));
    }
    response.recent_memories = own;
    response.cross_project_learnings = others;
    response.recent_sessions = sessions;
    if token_cost(response) <= budget {
        return;
    }
    response.notes.retain(|note| note.kind != NoteKind::Cut);
    response.notes.insert(0, note(format!("cut to {budget} tokens"), "the rest"));
    budget::shrink(
        response,
        budget,
        &[
            |response| frame::shorten_skipped(&mut response.searched),
            |response| frame::shorten_notes(&mut response.notes),
            |response| frame::drop_names(&mut response.searched),
            |response| response.notes.truncate(1),
            |response| response.project.path = text::line(&response.project.path, 40),
            |response| response.recent_sessions.clear(),
            |response| response.cross_project_learnings.clear(),
            |response| response.searched.detected_by = None,
            |response| response.project.detected_by = None,
            |response| response.recent_memories.truncate(1),
            |response| frame::replace_notes(&mut response.notes),
            |response| response.pending = None,
            |response| response.project.path = text::line(&response.project.path, 20),
            |response| response.recent_memories.clear(),
        ],
    );
}
