//! `hook`: answers a coding agent's hook. It must never break a session: every problem is one line
//! on standard error, and the exit code is 0. If a session starts without memories because of it,
//! the user reads the line in the session, too.

mod session_files;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use self::session_files::SessionFiles;
use super::args::{Global, HookArgs};
use super::connect::settings_call_hook;
use super::error::CliError;
use super::output::{report, write_err, write_json, write_out, write_plain};
use super::render::{count, grouped};
use super::scopes::team::invitation;
use super::settings::{config, inputs, load};
use super::{CloseOnDrop, command, progress};
use crate::hook::tool_call::takes_text;
use crate::hook::wire::{Event, HookEvent, Host, Output, SessionOrigin};
use crate::hook::{self, SessionStart};
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::{Diagnostic, ErrorCode, text};
use ack_connect::Client;
use ack_service::config::{Config, Source};
use ack_service::scope::ScopeError;
use ack_service::{Error, Service};

const INPUT_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_REASON_CHARS: usize = 300;
/// Maximum bytes of an event. The rest is read and dropped, so that the host's write does not fail.
const MAX_EVENT_BYTES: u64 = 4 << 20;

pub fn run(global: &Global, args: &HookArgs) {
    if args.event == HookEvent::SessionStart && std::io::stdin().is_terminal() {
        // A person looks: no host sends an event.
        if let Err(error) = preview(global, args.client) {
            report(&error, global.json);
        }
        return;
    }
    // A panic message would be more than the one allowed line.
    std::panic::set_hook(Box::new(|_| {}));
    let (moment, host, plugin) = (args.event, args.client, args.plugin);
    let unknown = Event::unknown(host, moment);
    let read = read_input().and_then(|bytes| match bytes.trim_ascii() {
        [] => Ok(unknown.clone()),
        _ => Event::read(&bytes, host, moment),
    });
    let (event, mut error_text) = match read {
        Ok(event) => (event, None),
        Err(reason) => (unknown, Some(reason)),
    };
    let (settings, asked) = (global.clone(), event.clone());
    let answered = match run_within(ANSWER_TIMEOUT, move || answer(&settings, asked, plugin)) {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let text = error.body_for(&command::SHELL).in_words();
            let output = match error {
                // A session misses nothing whose user has set up no memories. A root that was named
                // and is not there is missed.
                CliError::Request(Error::Scope(ScopeError::NoScopes { .. })) => None,
                _ => without_memories(&event, &text),
            };
            error_text = Some(text);
            output
        }
        Err(reason) => {
            error_text = Some(reason.to_owned());
            without_memories(&event, reason)
        }
    };
    if let Some(output) = answered.or_else(|| event.empty_output()) {
        let _ = write_out(&(output.line() + "\n"));
    }
    if let Some(error_text) = error_text {
        print_error(&error_text);
    }
}

fn without_memories(event: &Event, reason: &str) -> Option<Output> {
    if event.moment != HookEvent::SessionStart || event.origin == SessionOrigin::Subagent {
        return None;
    }
    let reason = text::line(reason, MAX_REASON_CHARS);
    event.with_message(None, &format!("ack-memory: no memories in this session: {reason}"))
}

pub fn print_error(message: &str) {
    let message = text::line(message, MAX_REASON_CHARS);
    write_err(&format!("ack-memory hook: {message}\n"));
}

fn answer(global: &Global, mut event: Event, plugin: bool) -> Result<Option<Output>, CliError> {
    let Some(files) = unseen_files(&event) else {
        return Ok(None);
    };
    let mut config = match load(global) {
        Ok(config) => config,
        // The other hook says so.
        Err(_)
            if Config::without_file(inputs(global)?)
                .is_ok_and(|config| another_answers(&config, &event, plugin)) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // A folder from the command line takes precedence over the host's.
    if matches!(config.project.source, Source::Flag(_)) {
        event.folder = None;
        event.other_folders.clear();
    }
    if let Some(folder) = event.folder.as_ref().filter(|folder| Path::new(folder).is_absolute()) {
        config.project.value = folder.into();
        let others = event.other_folders.iter().map(PathBuf::from);
        config.other_folders = others.filter(|folder| folder.is_absolute()).collect();
    }
    if another_answers(&config, &event, plugin) {
        return Ok(None);
    }
    // `serve` reports problems with `[tools]`. They do not matter to a session.
    let toolset = surface(&config);
    let surface = toolset.as_ref();
    let service = Service::new(config).without_bucket_wait().leak();
    if !event.other_folders.is_empty() {
        event.folder = service.project_folder().or(event.folder);
    }
    let output = match event.moment {
        HookEvent::SessionStart => {
            let start = hook::session_start(service, surface, &event, Timestamp::now());
            start.map(|start| start.output)
        }
        HookEvent::UserPrompt => hook::user_prompt(service, surface, &event),
        HookEvent::PreToolUse => hook::tool_call::pre_tool_use(service, surface, &event, &files),
        HookEvent::ToolFailure => {
            let agent = event.agent.as_deref().unwrap_or_default();
            let is_new = |memory: &str| {
                let name = format!("failure\0{agent}\0{memory}");
                session_files(&event).is_some_and(|files| files.claim(&name).unwrap_or(false))
            };
            hook::tool_call::tool_failure(service, surface, &event, is_new)
        }
    };
    // A line for the person whose session starts in a clone that has not joined.
    let is_begun = event.moment == HookEvent::SessionStart && event.is_first;
    let invite = || invitation(&service.config, &service.registry.discover().scopes);
    let invitation = is_begun.then(invite).flatten();
    service.close();
    match (output, invitation) {
        (Ok(output), Some(line)) => Ok(event.with_message(output, &line)),
        // A clone may come before the first memory.
        (Err(error), Some(line)) if error.code() == ErrorCode::NoScopes => {
            Ok(event.with_message(None, &line))
        }
        (output, _) => output.map_err(CliError::from),
    }
}

/// The tools as `config.toml` names them.
fn surface(config: &Config) -> Option<Toolset> {
    config.file.as_ref()?;
    Some(Offer::load(config, None, &|_| None).ok()?.toolset)
}

/// Whether the same session calls another hook of ours: the plugin's and one in Claude Code's
/// settings, or one for Claude Code, which Cursor runs too, and one of Cursor's own.
fn another_answers(config: &Config, event: &Event, plugin: bool) -> bool {
    let hook = event.moment.into();
    let by_cursor = event.host == Host::ClaudeCode
        && (event.sender == Host::Cursor || std::env::var_os("CURSOR_VERSION").is_some());
    (plugin && settings_call_hook(config, Client::ClaudeCode, hook))
        || (by_cursor && settings_call_hook(config, Client::Cursor, hook))
}

/// What a session has seen memories for, if it says who it is.
fn session_files(event: &Event) -> Option<SessionFiles> {
    event.session.as_deref().and_then(SessionFiles::of)
}

/// The files of a tool call that the session has not seen memories for yet; `None` if there are
/// none, so that nothing else is read. A fresh session sees them again. Without a session id, or a
/// place to store it, nothing is shown, because it would be shown at every call.
fn unseen_files(event: &Event) -> Option<Vec<String>> {
    match event.moment {
        HookEvent::ToolFailure if event.failed_command.is_none() => return None,
        HookEvent::UserPrompt | HookEvent::ToolFailure => {}
        HookEvent::SessionStart => {
            if event.origin == SessionOrigin::Fresh {
                session_files(event).iter().for_each(SessionFiles::forget);
            }
        }
        HookEvent::PreToolUse => {
            let session_files = session_files(event).filter(|_| takes_text(event.host))?;
            let folder = Path::new(event.folder.as_deref().unwrap_or_default());
            let is_new = |file: &&String| {
                let file = folder.join(file);
                session_files.claim(&file.to_string_lossy()).unwrap_or(false)
            };
            let files: Vec<String> = event.files.iter().filter(is_new).cloned().collect();
            return Some(files).filter(|files| !files.is_empty());
        }
    }
    Some(Vec::new())
}

fn read_input() -> Result<Vec<u8>, String> {
    if std::io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let read = run_within(INPUT_TIMEOUT, || {
        let mut input = std::io::stdin().lock();
        let mut bytes = Vec::new();
        let read = input.by_ref().take(MAX_EVENT_BYTES).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut input, &mut std::io::sink());
        read.map(|_| bytes)
    });
    match read {
        Ok(read) => read.map_err(|error| format!("standard input: {error}")),
        Err(_) => Err("standard input was not closed in time".to_owned()),
    }
}

/// The result of some work, unless it takes too long or panics.
fn run_within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let _ = send.send(work());
    });
    receive.recv_timeout(time).map_err(|error| match error {
        RecvTimeoutError::Timeout => "it took too long and was cancelled",
        RecvTimeoutError::Disconnected => "internal error",
    })
}

/// What a new session would start with, for a person.
pub fn preview(global: &Global, host: Option<Host>) -> Result<(), CliError> {
    let config = config(global)?;
    let surface = surface(&config);
    let event = Event::unknown(host, HookEvent::SessionStart);
    let service = CloseOnDrop(Service::new(config).without_bucket_wait().leak());
    let start = progress::while_reading(|| {
        hook::session_start(service.0, surface.as_ref(), &event, Timestamp::now())
    })?;
    let output = start.output.as_ref();
    let text = output.and_then(Output::text).unwrap_or_default();
    let message = output.and_then(Output::message);
    if global.json {
        let sources = start.by_scope().into_iter().map(|(scope, (memories, tokens))| {
            json!({ "scope": scope, "memories": memories, "tokens": tokens })
        });
        return write_json(&json!({
            "project": start.brief.context.project.name, "text": text, "message": message,
            "tokens": text::tokens(text), "sources": sources.collect::<Vec<_>>(),
        }));
    }
    let shown = message.map_or_else(String::new, |line| format!("\nyou see: {line}\n"));
    let body = if text.is_empty() { String::new() } else { format!("\n{text}\n") };
    write_plain(&format!("{}\n{body}{shown}", head(&start, text.trim())))
}

fn head(start: &SessionStart, text: &str) -> String {
    let project = text::line(&start.brief.context.project.name, 80);
    let total = text::tokens(text);
    let sources = start.by_scope();
    let memories: usize = sources.values().map(|(memories, _)| memories).sum();
    if memories == 0 {
        return format!("a new session in {project} starts without memories");
    }
    let of_memories: usize = sources.values().map(|(_, tokens)| tokens).sum();
    let mut out = format!(
        "a new session in {project} starts with {}: {} tokens",
        count(memories as u64, "memory"),
        grouped(total as u64)
    );
    for (scope, (memories, tokens)) in sources {
        let (memories, tokens) = (count(memories as u64, "memory"), grouped(tokens as u64));
        out += &format!("\n  {tokens:>6}  scope {scope}, {memories}");
    }
    let rest = grouped(total.saturating_sub(of_memories) as u64);
    out + &format!("\n  {rest:>6}  what explains them")
}
