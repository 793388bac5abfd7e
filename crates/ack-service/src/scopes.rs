//! `list_scopes`: the scopes, their content and their health.

use std::path::Path;
use std::sync::Arc;

use ack_api::decision::DECISION_LOG;
use ack_api::memory::{Status, StatusFilter, Visibility};
use ack_api::number::{count, verb};
use ack_api::{
    Counts, Diagnostic, Given, Health, HealthState, Hint, IndexInfo, ListScopesRequest,
    ListScopesResponse, Message, Note, NoteKind, Pending, ScopeInfo, TagCount, Tool, cancel, text,
    time,
};
use ack_search::cursor::InvalidCursor;
use ack_search::inverted::Index;
use ack_store::decisions::{DamagedLine, Decisions};
use ack_store::{READ_TIMEOUT, StoreError};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD;
use jiff::tz::TimeZone;
use rustc_hash::FxHashSet;

use super::budget::{frame, token_cost};
use super::engine::Service;
use super::error::{Error, without_scopes};
use super::remote;
use super::validate::{check_length, max_tokens};
use crate::live::TableState;
use crate::scope::resolve::{Current, PRIVATE_REASON, current, scopes_named, unusable_manifest};
use crate::scope::{Scope, ScopeError};

const MAX_DAMAGED_LINES: usize = 5;
/// Tags, projects and pending ids of a scope in a short list; [`LONG_LIST`] if it is named.
const SHORT_LIST: usize = 8;
/// Tokens of what surrounds the list of scopes.
const FRAME_TOKENS: usize = 150;
pub const LONG_LIST: usize = 50;

impl Service {
    pub fn list_scopes(&self, request: &ListScopesRequest) -> Result<ListScopesResponse, Error> {
        let budget = max_tokens(request.max_tokens, &self.config)?;
        let discovery = self.registry.discover();
        let current = current(&self.config, &discovery.scopes, None, true)?;
        let mut response = ListScopesResponse {
            current_scope: current.scope.as_ref().map(|scope| scope.name.clone()),
            detected_by: current.rule.clone(),
            ..ListScopesResponse::default()
        };
        let named = request.scope.as_deref().map(str::trim).filter(|name| !name.is_empty());
        check_length("scope", named.unwrap_or_default())?;
        let all = &discovery.scopes;
        let scopes = wanted_scopes(self, all, &current, named, &mut response.notes)?;
        let last = request.cursor.as_deref().map(decode).transpose()?;
        let start = last.map_or(0, |last| scopes.partition_point(|scope| scope.name <= last));
        let max = match (named.is_some(), scopes.len()) {
            (true, _) => LONG_LIST,
            (false, ..=12) => SHORT_LIST,
            (false, ..=40) => 3,
            (false, _) => 0,
        };
        let audience = if request.by_agent {
            Audience::Agent { withholds: self.config.max_status.value.withholds(true) }
        } else {
            Audience::Owner
        };
        let mut used = FRAME_TOKENS;
        for (place, scope) in scopes.iter().enumerate().skip(start) {
            cancel::check()?;
            let is_own = response.current_scope.as_ref() == Some(&scope.name);
            let is_shared = scope.manifest.visibility == Visibility::Shared;
            let shows_details = is_shared || is_own || named.is_some();
            let mut info = describe(self, scope, shows_details, max, audience);
            if let Audience::Agent { withholds } = audience {
                remove_operator_fields(&mut info, withholds);
            }
            used += token_cost(&info) + 1;
            if used > budget && place > start {
                let last = response.scopes.last();
                response.next_cursor = last.map(|last| URL_SAFE_NO_PAD.encode(&last.name));
                break;
            }
            response.scopes.push(info);
        }
        note_current(self, request.by_agent, all, &current, &mut response.notes);
        if self.config.pinned.is_none() {
            let passed_over = discovery.passed_over.into_iter();
            let kind = NoteKind::ScopeUnavailable;
            response.notes.extend(passed_over.map(|it| Note::about(kind, it.scope, it.reason)));
        }
        if response.scopes.len() < scopes.len() {
            response.total = Some(scopes.len() as u64);
        }
        frame::limit_notes(&mut response.notes);
        if token_cost(&response) > budget {
            frame::shorten_notes(&mut response.notes);
        }
        Ok(response)
    }
}

fn wanted_scopes(
    service: &Service,
    all: &[Arc<Scope>],
    current: &Current,
    named: Option<&str>,
    notes: &mut Vec<Note>,
) -> Result<Vec<Arc<Scope>>, Error> {
    let mut scopes = all.to_vec();
    if let Some(pinned) = &service.config.pinned {
        let own = current.scope.as_ref().map_or("", |scope| scope.name.as_str());
        scopes.retain(|scope| scope.name == own);
        let message = format!(
            "this server is pinned to scope `{own}` by {}; other scopes are not shown",
            pinned.source
        );
        notes.push(Note::new(NoteKind::Pinned, message));
    }
    if let Some(name) = named {
        let found = scopes_named(&service.config, all, current, name)?;
        notes.extend(found.note);
        scopes = found.scopes;
    }
    Ok(scopes)
}

fn note_current(
    service: &Service,
    by_agent: bool,
    all: &[Arc<Scope>],
    current: &Current,
    notes: &mut Vec<Note>,
) {
    if all.is_empty() {
        let error = ScopeError::no_scopes(&service.config);
        let hints = if by_agent { without_scopes() } else { error.hints() };
        notes.push(Note::new(NoteKind::NoScopes, Message::new(error.to_string()).with_all(hints)));
        return;
    }
    if current.scope.is_some() {
        return;
    }
    if let Some(default) = &service.config.default_scope {
        let name = text::line(&default.value, 100);
        let message =
            format!("`default_scope` in config.toml names `{name}`, and there is no such scope");
        notes.push(Note::new(NoteKind::NoCurrentScope, message));
    }
    let folder = text::line(&current.folder.display().to_string(), 200);
    let message = format!("no scope claims `{folder}`; every shared scope is searched");
    let mut note = Note::new(NoteKind::NoCurrentScope, message);
    if by_agent && current.folder.parent().is_none() {
        let path = [Given::any("project_path")];
        note =
            note.with(Hint::call_with(Tool::GetContext, path, "finds the scope of another folder"));
    }
    notes.push(note);
}

/// Removes what `doctor` shows: files, formats, the encoder; and ids of withheld memories.
fn remove_operator_fields(info: &mut ScopeInfo, withholds: bool) {
    (info.store, info.profile) = (None, None);
    if let Some(index) = &mut info.index {
        index.embedder = None;
    }
    info.health.opened = None;
    if matches!(info.health.state, HealthState::Ok) {
        info.health.problems.clear();
    }
    if let Some(pending) = info.pending.as_mut().filter(|_| withholds) {
        pending.ids.clear();
    }
}

fn decode(cursor: &str) -> Result<String, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.trim()).ok();
    let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or(InvalidCursor { reason: "it is not a cursor of a list of scopes" }.into())
}

const MAX_SHARED_IDS: usize = 3;

/// Names of projects, ids and names of files are text that other programs wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The owner learns all that helps to find a problem.
    Owner,
    /// An agent learns how many problems there are, and projects that it may ask for.
    Agent {
        /// Whether it may not ask for memories that wait for review.
        withholds: bool,
    },
}

/// With at most `max` tags, projects and pending ids; private details are left out.
pub fn describe(
    service: &Service,
    scope: &Arc<Scope>,
    shows_details: bool,
    max: usize,
    audience: Audience,
) -> ScopeInfo {
    let path = |path: &Path| shows_details.then(|| text::line(&path.display().to_string(), 400));
    let description = scope.manifest.description.as_ref().filter(|_| shows_details);
    let mut info = ScopeInfo {
        name: scope.name.clone(),
        visibility: scope.manifest.visibility,
        path: path(&scope.folder),
        store: match &scope.remote {
            // A manifest that cannot be read may name any store.
            _ if scope.problem.is_some() => None,
            Some(remote) => shows_details.then(|| text::line(&remote.title(), 400)),
            None => path(scope.store.path()),
        },
        description: description.map(|description| text::line(description, 300)),
        ..ScopeInfo::default()
    };
    let unavailable = |problem: Message| Health {
        state: HealthState::Unavailable,
        opened: None,
        problems: vec![problem],
    };
    if let Some(problem) = &scope.problem {
        let problem =
            if shows_details { problem.to_string() } else { unusable_manifest(scope, problem) };
        info.health = unavailable(problem.into());
        return info;
    }
    if !shows_details {
        info.health.problems.push(PRIVATE_REASON.into());
        return info;
    }
    let remote = scope.remote.as_ref().map(|remote| remote.prepare(service.wait_policy));
    let published = remote.as_ref().and_then(remote::freshness_note);
    if let Some((NoteKind::RemoteCold, problem)) = published {
        info.health = unavailable(problem.into());
    } else if let Err(error) = fill_details(service, scope, (max, audience), &mut info) {
        info.health = unavailable(error.as_message());
    } else if let Some((_, problem)) = published {
        info.health.state = HealthState::Degraded;
        info.health.problems.push(problem.into());
    }
    info
}

fn fill_details(
    service: &Service,
    scope: &Arc<Scope>,
    (max, audience): (usize, Audience),
    info: &mut ScopeInfo,
) -> Result<(), StoreError> {
    let guard = scope.live.current(scope, READ_TIMEOUT)?;
    let Some(index) = guard.get() else {
        return Ok(());
    };
    if let Some(TableState::Used(table)) = guard.table() {
        info.index = Some(IndexInfo {
            rows: table.rows,
            coverage: Some((index.coverage() * 1000.0).floor() / 1000.0),
            embedder: Some(table.encoder.clone()),
            built_at: table.built_at.map(time::to_rfc3339),
        });
    }
    let now = (service.config.clock)();
    let today = now.to_zoned(TimeZone::UTC).date();
    let (mut counts, pending, profile, opening) = scope.store.snapshot(|snapshot| {
        // Rows that cannot be requested do not count.
        let mut counts = match index.duplicate_ids + index.without_id {
            0 => snapshot.counts()?,
            _ => snapshot.counts_by_id()?,
        };
        let snoozed = snapshot.snoozed(today)?;
        counts.snoozed = snoozed.len() as u64;
        let mut pending = pending(index, &snoozed, max.min(20));
        if pending.count > 0 {
            pending.pace = snapshot.flow(now)?.describe();
        }
        Ok((counts, pending, snapshot.layout.profile, snapshot.opening))
    })?;
    counts.replaced = replaced(index);
    info.memory_count = Some(counts.approved + counts.promoted + counts.staging);
    info.counts = Some(counts);
    info.profile = Some(profile.as_str().to_owned());
    let latest = index.live().map(|(_, doc)| doc.updated.max(doc.created)).max();
    info.last_updated = latest.and_then(instant);
    let shown = match audience {
        Audience::Agent { withholds: true } => StatusFilter::Approved,
        _ => StatusFilter::All,
    };
    info.projects = projects(index, max, shown);
    info.tags = tags(index, max);
    info.pending = Some(pending);
    let mut found = Problems::default();
    found.of_table(scope, guard.table());
    found.of_rows(scope, index, &counts, audience);
    for problem in damage(scope, audience) {
        found.degrades(problem);
    }
    info.health = Health {
        state: if found.is_degraded { HealthState::Degraded } else { HealthState::Ok },
        opened: Some(opening.describe().to_owned()),
        problems: found.messages,
    };
    Ok(())
}

#[derive(Default)]
struct Problems {
    messages: Vec<Message>,
    is_degraded: bool,
}

impl Problems {
    /// Adds a problem because of which the scope is less than it should be.
    fn degrades(&mut self, problem: impl Into<Message>) {
        self.messages.push(problem.into());
        self.is_degraded = true;
    }

    fn of_table(&mut self, scope: &Scope, table: Option<&TableState>) {
        match table {
            Some(TableState::Unusable { reason, may_be_damaged }) => {
                self.degrades(remote::unusable_table(scope, reason, *may_be_damaged))
            }
            Some(TableState::Used(table))
                if !table.searched && table.rows > scope.resident as u64 =>
            {
                let problem = Message::from(
                    "it is larger than `limits.resident` and all of it is in memory, because its \
                     vector table has no indexes",
                );
                self.messages.push(problem.with(remote::table_command(scope, "makes them")));
            }
            _ => {}
        }
    }

    fn of_rows(&mut self, scope: &Scope, index: &Index, counts: &Counts, audience: Audience) {
        if !index.has_status {
            let status = scope.store.unreviewed().status();
            let message = format!(
                "the store keeps no review status; rows that nobody decided about count as \
                 `{status}` (`unreviewed` in scope.toml)"
            );
            self.messages.push(message.into());
        }
        let rows = |number: u64| count(number, "row");
        if counts.unknown > 0 {
            self.degrades(format!(
                "{} {} an unknown status and {} never served; allowed are staging, approved, \
                 promoted, rejected",
                rows(counts.unknown),
                verb(counts.unknown, "has", "have"),
                verb(counts.unknown, "is", "are")
            ));
        }
        let duplicates = index.duplicate_ids as u64;
        if duplicates > 0 {
            let which = if audience == Audience::Owner { shared_ids(scope) } else { String::new() };
            self.degrades(format!(
                "{} {} the id of another row{which}; the first approved one counts, else the first",
                rows(duplicates),
                verb(duplicates, "repeats", "repeat"),
            ));
        }
        let without_id = index.without_id as u64;
        if without_id > 0 {
            let (rows, have) = (rows(without_id), verb(without_id, "has", "have"));
            self.degrades(format!("{rows} {have} no id and cannot be served"));
        }
    }
}

/// Names the ids that several rows have, with the files of notes: ` (a: x.md, y.md)`.
fn shared_ids(scope: &Scope) -> String {
    let shared = scope.store.snapshot(|snapshot| snapshot.shared_ids(MAX_SHARED_IDS));
    let lines = shared.unwrap_or_default().into_iter().map(|(id, files)| {
        let id = text::line(&id, 80);
        let files: Vec<String> = files.iter().map(|file| text::line(file, 80)).collect();
        if files.is_empty() { format!("`{id}`") } else { format!("`{id}`: {}", files.join(", ")) }
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!(" ({})", lines.join("; ")) }
}

/// Notes and lines of the decision log that are left out. Agents learn how many.
fn damage(scope: &Scope, audience: Audience) -> Vec<Message> {
    let mut found = scope.store.notes_report().problems.clone();
    let decisions = scope.store.decisions().unwrap_or_default();
    let lines = &decisions.damaged;
    if let Audience::Agent { .. } = audience {
        let notes = found.len() as u64;
        found.clear();
        if notes > 0 {
            found.push(format!("{} in the files of notes", count(notes, "problem")));
        }
        if !lines.is_empty() {
            let damaged = lines.len() as u64;
            let holds = lines.iter().any(|line| !decisions.held_by(line).is_empty());
            let they_name = verb(damaged, "it names", "they name");
            let wait = match holds {
                true => format!(", and memories that {they_name} wait for review again"),
                false => String::new(),
            };
            found
                .push(format!("{} of {DECISION_LOG} cannot be read{wait}", count(damaged, "line")));
        }
        found.extend(unsigned(&decisions));
        let details = || Hint::command("doctor", "shows the details");
        return found.into_iter().map(|it| Message::new(it).with(details())).collect();
    }
    found.extend(scope.other_database.map(|other| {
        format!(
            "`{other}` is in its folder too and is not read; to read it instead, write \
             `store = \"{other}\"` in scope.toml, or give it a scope of its own"
        )
    }));
    let first = lines.iter().take(MAX_DAMAGED_LINES);
    found.extend(first.map(|line| damaged_line(&decisions, line)));
    if let Some(DamagedLine { line, .. }) = lines.get(MAX_DAMAGED_LINES) {
        found.push(format!("{DECISION_LOG} has more lines like these, from line {line} on"));
    }
    let signers = decisions.signer_problems.iter();
    found.extend(signers.map(|problem| format!("`signers`, {problem}; it allows nobody")));
    found.extend(unsigned(&decisions));
    found.into_iter().map(Message::new).collect()
}

/// How many decisions do not count because they lack the signature of a listed signer.
fn unsigned(decisions: &Decisions) -> Option<String> {
    let lines = decisions.unsigned() as u64;
    (lines > 0).then(|| {
        format!(
            "{} of {DECISION_LOG} {} not count: {} no signature by anybody in `signers`",
            count(lines, "decision"),
            verb(lines, "does", "do"),
            verb(lines, "it has", "they have")
        )
    })
}

pub fn damaged_line(decisions: &Decisions, damaged: &DamagedLine) -> String {
    let DamagedLine { line, reason, .. } = damaged;
    let waits = match decisions.held_by(damaged).len() {
        0 => "",
        1 => "; the memory it names waits for review again",
        _ => "; the memories it names wait for review again",
    };
    format!("{DECISION_LOG}, line {line} cannot be read: {reason}{waits}")
}

fn instant(millis: i64) -> Option<String> {
    jiff::Timestamp::from_millisecond(millis).ok().map(time::to_rfc3339)
}

fn projects(index: &Index, max: usize, shown: StatusFilter) -> Vec<String> {
    let docs = index.live().filter(|(_, doc)| doc.project != 0 && shown.allows(doc.status));
    let names = index.names().count_spellings(docs.map(|(_, doc)| doc.project)).into_iter();
    names.take(max).map(|(name, _)| name.to_owned()).collect()
}

fn tags(index: &Index, max: usize) -> Vec<TagCount> {
    let approved = index.live().filter(|(_, doc)| StatusFilter::Approved.allows(doc.status));
    let tags = index
        .names()
        .count_spellings(approved.flat_map(|(number, _)| index.tags(number).iter().copied()));
    tags.into_iter().take(max).map(|(tag, count)| TagCount { tag: tag.to_owned(), count }).collect()
}

/// How many memories a newer one replaces.
fn replaced(index: &Index) -> u64 {
    let live = index.live().filter(|(number, _)| index.is_superseded(*number, StatusFilter::All));
    live.count() as u64
}

/// The memories that wait for a curator, oldest first. Those that are snoozed do not wait yet.
pub fn pending(index: &Index, snoozed: &FxHashSet<String>, max: usize) -> Pending {
    let mut waiting: Vec<(i64, &str)> = index
        .live()
        .filter(|(_, doc)| doc.status == Status::Staging)
        .map(|(number, doc)| (doc.created, index.id(number)))
        .filter(|(_, id)| !snoozed.contains(*id))
        .collect();
    waiting.sort_unstable();
    Pending {
        count: waiting.len() as u64,
        oldest: waiting.iter().find_map(|(created, _)| instant(*created)),
        ids: waiting.iter().take(max).map(|(_, id)| (*id).to_owned()).collect(),
        pace: None,
    }
}
