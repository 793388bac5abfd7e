//! `add`: a memory that a person writes. What is typed at a terminal is approved; what a process
//! writes waits for review, unless it has the owner's token.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use ack_api::decision::Edit;
use ack_api::import_line::Row;
use ack_api::memory::{Memory, Status};
use ack_api::{RelationKind, text};
use jiff::Timestamp;
use serde_json::json;

use super::args::AddMemoryArgs;
use super::caller::Caller;
use super::command::command;
use super::config_file::editor;
use super::curate::report;
use super::error::CliError;
use super::output::{write_err, write_json, write_plain};
use super::review::editor::in_editor;
use super::user::user_name;
use super::{CloseOnDrop, progress, prompt};
use crate::add::{Destination, memory, row};
use crate::import::{self, ImportOptions, check_name};
use ack_desk::choice::Choice;
use ack_desk::curate::ReviewSession;
use ack_desk::curate::find::by_whole_id;
use ack_desk::publish::add_note;
use ack_desk::{Desk, ReviewOutcome};
use ack_service::Service;
use ack_service::config::Config;
use ack_service::scope::resolve::{check_usable, current, find};
use ack_service::scope::{Registry, Scope};
use ack_store::record::hides;
use ack_sys::files::with_tilde;

const MAX_TEXT_BYTES: u64 = 1 << 20;
const NOTHING: &str = "nothing was added\n";

pub fn run(caller: Caller<'_>, args: &AddMemoryArgs) -> Result<(), CliError> {
    let Caller { config, now, .. } = caller;
    let session = caller.session_of_person()?;
    let here = Here::find(config, args)?;
    // Before somebody writes a text for it.
    here.destination(session.is_some())?;
    let Some(written) = written(args, here.project.clone())? else {
        return write_plain(NOTHING);
    };
    let row = row(written, now).map_err(CliError::typed)?;
    let mut memory = memory(&row, now);
    let mut doubts = flags(&memory);
    doubts.lines.extend(progress::while_reading(|| said_before(config, &memory)));
    doubts.say();
    let is_person = session.as_ref().is_some_and(|session| session.is_human());
    let asks = is_person && !args.yes && !doubts.lines.is_empty();
    if asks && !prompt::confirm("Add it all the same?") {
        return write_plain(NOTHING);
    }
    // Nobody has looked at a flagged text that a script writes.
    let session = session.filter(|_| is_person || !doubts.is_flagged);
    if session.is_some() {
        memory.reviewed_by = Some(user_name(config));
        memory.reviewed_at = Some(now);
    }
    let to = here.destination(session.is_some())?;
    let (id, scope) = (&row.id, to.scope());
    let there = here.scopes.iter().find(|known| known.name == scope);
    let there = there.and_then(|known| by_whole_id(std::slice::from_ref(known), id).ok());
    let path = match &there {
        Some(there) => there.scope.store.path().to_owned(),
        None => write(&to, &row, &memory, now)?,
    };
    if !caller.json {
        let place = with_tilde(&path, config.home.as_deref());
        let done = if there.is_some() { "already in" } else { "added to" };
        write_plain(&format!("{done} scope `{scope}`, {place}\n"))?;
    }
    let known = there.map(|there| there.memory().status);
    let is_served = known.is_some_and(Status::is_served);
    let approved = match &session {
        Some(session) if !to.is_approved_by_git() && !is_served => {
            Some(approve(caller, session, scope, id)?)
        }
        _ => None,
    };
    if caller.json {
        return write_json(&json!({
            "id": id, "scope": scope, "path": path, "approved": is_served || approved.is_some(),
            "batch": approved.map(|outcome| outcome.batch), "notes": doubts.lines,
        }));
    }
    if let Some(approved) = approved {
        return report(caller, &approved, false);
    }
    let next = match to.is_approved_by_git() {
        _ if is_served => "it is approved; nothing was added".to_owned(),
        _ if known == Some(Status::Rejected) => "it was rejected; nothing was added".to_owned(),
        true => "agents see it once it is merged: commit the file".to_owned(),
        false => format!(
            "it waits for review: `{}`\nundo: {}",
            command(&format!("approve {id}")),
            command(&format!("reject {id}"))
        ),
    };
    write_plain(&format!("  {id}\n{next}\n"))
}

/// Writes a memory, unreviewed. Returns the file that it is in.
fn write(
    to: &Destination,
    row: &Row,
    memory: &Memory,
    now: Timestamp,
) -> Result<PathBuf, CliError> {
    match to {
        Destination::Store { path, .. } => {
            let line = serde_json::to_string(&row.line).unwrap_or_default();
            let (mut line, options) = (line.as_bytes(), ImportOptions::default());
            Ok(import::run(path.clone(), &mut line, options, now)?.path)
        }
        Destination::Notes(scope) => Ok(add_note(scope.store.path(), memory)?),
    }
}

/// Approves what was added, as a decision that can be undone.
fn approve(
    caller: Caller<'_>,
    session: &ReviewSession,
    scope: &str,
    id: &str,
) -> Result<ReviewOutcome, CliError> {
    let scopes = caller.scopes(Some(scope))?;
    let candidate = by_whole_id(&scopes, id)?;
    let service = CloseOnDrop(Service::new(caller.config.clone()).leak());
    let mut desk = Desk::with(vec![candidate], &scopes, service.0, caller.now);
    desk.choose(&[0], Choice::Approve, None)?;
    Ok(desk.write(session)?)
}

/// Where somebody is, and the scope that they mean.
struct Here<'a> {
    config: &'a Config,
    scopes: Vec<Arc<Scope>>,
    /// The scope that is named, or else the current one.
    wanted: Option<Arc<Scope>>,
    named: Option<&'a str>,
    /// The current project, if the folder is one.
    project: Option<String>,
}

impl<'a> Here<'a> {
    fn find(config: &'a Config, args: &'a AddMemoryArgs) -> Result<Self, CliError> {
        let scopes = Registry::new(config).discover().scopes;
        let here = current(config, &scopes, None, true).map_err(ack_service::Error::from)?;
        let named = args.scope.as_deref();
        let wanted = match named {
            Some(name) => find(&scopes, name),
            None if config.db.is_some() => scopes.first().cloned(),
            None => here.scope,
        };
        if let Some(scope) = &wanted {
            check_usable(scope)?;
        }
        Ok(Self { config, scopes, wanted, named, project: (!here.is_general).then_some(here.name) })
    }

    fn destination(&self, is_approved: bool) -> Result<Destination, CliError> {
        let (root, wanted) = (&self.config.root.value, self.wanted.as_ref());
        if let Some(named) = self.named {
            check_name(named)?;
        }
        let name = self.named.or(self.project.as_deref());
        let to = Destination::find(root, &self.scopes, wanted, name, is_approved)?;
        let is_elsewhere = wanted.is_none_or(|wanted| wanted.name != to.scope());
        match &self.config.db {
            Some(db) if is_elsewhere => {
                let message = format!("{} is the store of another program", db.value.display());
                Err(CliError::usage("--db", message).with_hint("leave out --db"))
            }
            _ => Ok(to),
        }
    }
}

/// What the arguments say, with the text from standard input or from an editor. `None` if the
/// person wrote nothing.
fn written(args: &AddMemoryArgs, project: Option<String>) -> Result<Option<Edit>, CliError> {
    let words: Vec<&str> = args.title.iter().map(String::as_str).filter(|it| *it != "-").collect();
    let reads_input = words.len() < args.title.len();
    let mut title = words.join(" ");
    let mut narrative = String::new();
    if reads_input {
        narrative = standard_input()?;
        if title.is_empty() {
            let (first, rest) = narrative.trim().split_once('\n').unwrap_or((&narrative, ""));
            title = first.trim_start_matches('#').trim().to_owned();
            narrative = rest.trim().to_owned();
        }
        if title.is_empty() {
            let message = "standard input is empty, or its first line, which is the title";
            return Err(CliError::usage("TITLE", message));
        }
    }
    let edit = Edit {
        title: Some(title),
        subtitle: Some(String::new()),
        facts: Some(args.facts.clone()),
        concepts: Some(args.tags.clone()),
        files: Some(Vec::new()),
        narrative: Some(narrative),
        kind: Some(args.kind.clone().unwrap_or_default()),
        project: args.project.clone().or(project),
    };
    if edit.title.as_ref().is_some_and(|title| !title.trim().is_empty()) || reads_input {
        return Ok(Some(edit));
    }
    if !prompt::is_possible() {
        let message = "the title is missing: what was learned, in one line";
        return Err(CliError::usage("TITLE", message)
            .with_hint("`-` reads the text from standard input")
            .with_example("add \"Exit code 137 is SIGKILL\""));
    }
    editor()?;
    let after = in_editor(&edit)?;
    Ok(after.filter(|after| *after != edit))
}

fn standard_input() -> Result<String, CliError> {
    if std::io::stdin().is_terminal() {
        write_err("write the text, then Ctrl+D:\n");
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes);
    let length = read.map_err(CliError::io("read", "standard input"))?;
    if length as u64 > MAX_TEXT_BYTES {
        let message = "the text is longer than 1 MiB: nothing was added; shorten it";
        return Err(CliError::typed(message));
    }
    let text = String::from_utf8(bytes).map_err(|_| CliError::typed("the text is not UTF-8"))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// What a person should know before a memory is added.
pub struct Doubts {
    pub lines: Vec<String>,
    /// Whether its text looks like a secret, addresses an agent or hides characters.
    pub is_flagged: bool,
}

impl Doubts {
    pub fn say(&self) {
        for doubt in &self.lines {
            write_err(&format!("note: {doubt}\n"));
        }
    }
}

/// What its text has that a person should look at.
pub fn flags(memory: &Memory) -> Doubts {
    let texts = [&memory.title].into_iter().chain(&memory.facts);
    let mut texts = texts.chain(&memory.narrative).chain(&memory.concepts);
    let warnings = ack_flags::of(memory, texts.any(|text| hides(text)));
    let lines = warnings.iter().map(|warning| format!("its text {}", warning.as_str()));
    Doubts { lines: lines.collect(), is_flagged: warnings.iter().any(|warning| warning.is_flag()) }
}

/// The approved memories that say the same, or the opposite.
fn said_before(config: &Config, memory: &Memory) -> Vec<String> {
    let service = CloseOnDrop(Service::new(config.clone()).leak());
    let mut found = Vec::new();
    for scope in service.0.registry.discover().scopes {
        // A scope that cannot be read has nothing to say here.
        let near = service.0.nearest_approved(memory, &scope.name, &[]).unwrap_or_default();
        found.extend(near.into_iter().filter_map(|near| {
            let says = match near.relation.kind {
                RelationKind::Same => "it says the same as",
                RelationKind::SaysMore => "it says the same, and more, as",
                RelationKind::Contradicts => "it contradicts",
                RelationKind::Differs | RelationKind::Unrelated => return None,
            };
            let (id, title) = (text::id(&near.memory.id), text::line(&near.memory.title, 80));
            Some(format!("{says} `{id}` in scope `{}`: {title}", scope.name))
        }));
    }
    found
}
