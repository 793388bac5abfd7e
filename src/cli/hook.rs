//! `hook`: answers a coding agent's hook. It must never break a session: every problem is one line
//! on standard error, and the exit code is 0. If a session starts without memories because of it,
//! the user reads the line in the session, too.

pub mod preview;
mod session_files;

use self::session_files::SessionFiles;
use crate::offer::Offer;
use ack_api::{Diagnostic, ErrorCode};
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::args::{Global, HookArgs};
use super::command;
use super::connect::settings_call_hook;
use super::error_report::report;
use super::output::{write_err, write_out};
use super::scopes::team::invitation;
use super::settings::{inputs, load};
use crate::cli::error::CliError;
use crate::hook;
use crate::hook::tool_call::takes_text;
use crate::hook::wire::{Event, HookEvent, Host, Output, SessionOrigin};
use crate::toolset::Toolset;
use ack_api::text;
use ack_connect::Client;
use ack_service::config::{Config, Source};
use ack_service::scope::ScopeError;
use ack_service::{Error, Service};
use jiff::Timestamp;

/// How long a host may take to send the event.
const INPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum characters of the reason why there are no memories.
const MAX_REASON_CHARS: usize = 300;
/// Maximum bytes of an event. The rest is read and dropped, so that the host's write does not fail.
const MAX_EVENT_BYTES: u64 = 4 << 20;

pub fn run(global: &Global, args: &HookArgs) {
    if args.event == HookEvent::SessionStart && std::io::stdin().is_terminal() {
        // A person looks: no host sends an event.
        if let Err(error) = preview::show(global, args.client) {
            report(&error, global.json);
        }
        return;
    }
    // A panic message would be more than the one allowed line.
    std::panic::set_hook(Box::new(|_| {}));
    let (moment, host, plugin) = (args.event, args.client, args.plugin);
    let mut event = Event::unknown(host, moment);
    let mut error_text = None;
    match read_input() {
        Ok(bytes) if bytes.trim_ascii().is_empty() => {}
        Ok(bytes) => match Event::read(&bytes, host, moment) {
            Ok(read) => event = read,
            Err(reason) => error_text = Some(reason),
        },
        Err(reason) => error_text = Some(reason),
    }
    let request = (global.clone(), event.clone());
    let answered = match run_within(ANSWER_TIMEOUT, move || answer(&request.0, &request.1, plugin))
    {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let text = error.body_for(&command::SHELL).in_words();
            let output = match error {
                CliError::Request(error) if has_no_memories(&error) => None,
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

/// Whether a session misses nothing, because its user has set up no memories. A root that was named
/// and is not there is missed.
const fn has_no_memories(error: &Error) -> bool {
    matches!(error, Error::Scope(ScopeError::NoScopes { .. }))
}

/// Tells the user of a session that starts without memories why.
fn without_memories(event: &Event, reason: &str) -> Option<Output> {
    if event.moment != HookEvent::SessionStart || event.origin == SessionOrigin::Subagent {
        return None;
    }
    let reason = text::line(reason, MAX_REASON_CHARS);
    event.with_message(None, &format!("ack-memory: no memories in this session: {reason}"))
}

/// Prints one line on standard error.
pub fn print_error(message: &str) {
    let message = text::line(message, MAX_REASON_CHARS);
    write_err(&format!("ack-memory hook: {message}\n"));
}

fn answer(global: &Global, event: &Event, plugin: bool) -> Result<Option<Output>, CliError> {
    let files = match unseen_files(event) {
        Some(files) => files,
        None => return Ok(None),
    };
    let mut config = match load(global) {
        Ok(config) => config,
        // The other hook says so.
        Err(_)
            if Config::without_file(inputs(global)?)
                .is_ok_and(|config| another_answers(&config, event, plugin)) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // A folder from the command line takes precedence over the host's.
    let mut event = event.clone();
    if matches!(config.project.source, Source::Flag(_)) {
        event.folder = None;
        event.other_folders.clear();
    }
    if let Some(folder) =
        event.folder.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute())
    {
        config.project.value = folder;
        let others = event.other_folders.iter().map(PathBuf::from);
        config.other_folders = others.filter(|folder| folder.is_absolute()).collect();
    }
    if another_answers(&config, &event, plugin) {
        return Ok(None);
    }
    // `serve` reports problems with `[tools]`. They do not matter to a session.
    let surface = surface(&config);
    let service = Service::new(config).without_bucket_wait().leak();
    if !event.other_folders.is_empty() {
        event.folder = service.project_folder().or(event.folder);
    }
    let output = match event.moment {
        HookEvent::SessionStart => {
            hook::session_start(service, surface.as_ref(), &event, Timestamp::now())
                .map(|start| start.output)
        }
        HookEvent::UserPrompt => hook::user_prompt(service, surface.as_ref(), &event),
        HookEvent::PreToolUse => {
            hook::tool_call::pre_tool_use(service, surface.as_ref(), &event, &files)
        }
        HookEvent::ToolFailure => {
            let is_new = |memory: &str| {
                let agent = event.agent.as_deref().unwrap_or_default();
                let shown = session_files(&event)
                    .and_then(|files| files.claim(&format!("failure\0{agent}\0{memory}")).ok());
                shown.unwrap_or(false)
            };
            hook::tool_call::tool_failure(service, surface.as_ref(), &event, is_new)
        }
    };
    let invitation = invited(service, &event);
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

/// A line for the person whose session starts in a clone that has not joined.
fn invited(service: &Service, event: &Event) -> Option<String> {
    let starts = event.moment == HookEvent::SessionStart && event.is_first;
    starts.then(|| invitation(&service.config, &service.registry.discover().scopes))?
}

/// The tools as `config.toml` names them.
fn surface(config: &Config) -> Option<Toolset> {
    let named = config.file.is_some();
    let offer = named.then(|| Offer::load(config, None, &|_| None));
    offer.and_then(Result::ok).map(|offer| offer.toolset)
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
    let session = || session_files(event);
    match event.moment {
        HookEvent::UserPrompt => Some(Vec::new()),
        HookEvent::ToolFailure => event.failed_command.as_ref().map(|_| Vec::new()),
        HookEvent::SessionStart => {
            if let Some(session_files) = session().filter(|_| event.origin == SessionOrigin::Fresh)
            {
                session_files.forget();
            }
            Some(Vec::new())
        }
        HookEvent::PreToolUse => {
            let files = event.files.iter().filter(|_| takes_text(event.host));
            let session_files = session()?;
            let folder = event.folder.as_deref().unwrap_or_default();
            let new = |file: &&String| {
                let file = Path::new(folder).join(file);
                session_files.claim(&file.to_string_lossy()).unwrap_or(false)
            };
            let files: Vec<String> = files.filter(new).cloned().collect();
            Some(files).filter(|files| !files.is_empty())
        }
    }
}

/// Reads standard input, within the time limit.
fn read_input() -> Result<Vec<u8>, String> {
    if std::io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = Vec::new();
        let read = input.by_ref().take(MAX_EVENT_BYTES).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut input, &mut std::io::sink());
        let _ = send.send(read.map(|_| bytes).map_err(|error| format!("standard input: {error}")));
    });
    wait(&receive, INPUT_TIMEOUT)
        .map_err(|_| "standard input was not closed in time".to_owned())
        .flatten()
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
    wait(&receive, time)
}

fn wait<T>(receive: &Receiver<T>, time: Duration) -> Result<T, &'static str> {
    receive.recv_timeout(time).map_err(|error| match error {
        RecvTimeoutError::Timeout => "it took too long and was cancelled",
        RecvTimeoutError::Disconnected => "internal error",
    })
}
