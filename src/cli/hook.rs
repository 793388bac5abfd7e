//! `hook`: answers a coding agent's hook. It must never break a session: every problem is one line
//! on standard error, and the exit code is 0.

mod session_files;

use self::session_files::SessionFiles;
use crate::offer::Offer;
use ack_api::Diagnostic;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::args::{Global, HookArgs, HookCommand, HostArg};
use super::connect::settings_call;
use super::{command, load, write_err, write_out};
use crate::cli::error::CliError;
use crate::config::Source;
use crate::hook;
use crate::hook::file::takes_text;
use crate::hook::wire::{Event, Host, Moment, Origin, Output};
use crate::service::Service;
use ack_api::text;
use jiff::Timestamp;

/// How long a host may take to send the event.
const SENDING: Duration = Duration::from_secs(2);
/// How long the answer may take.
const ANSWERING: Duration = Duration::from_secs(5);
/// Maximum bytes of an event. The rest is read and dropped, so that the host's write does not fail.
const MOST: u64 = 4 << 20;

/// Runs `hook`.
pub fn run(global: &Global, args: &HookArgs) {
    // A panic message would be more than the one allowed line.
    std::panic::set_hook(Box::new(|_| {}));
    let (moment, sender) = match &args.command {
        HookCommand::SessionStart(sender) => (Moment::SessionStart, sender),
        HookCommand::UserPrompt(sender) => (Moment::UserPrompt, sender),
        HookCommand::PreToolUse(sender) => (Moment::PreToolUse, sender),
    };
    let plugin = sender.plugin;
    let host = sender.client.map(|host| match host {
        HostArg::ClaudeCode => Host::ClaudeCode,
        HostArg::Codex => Host::Codex,
        HostArg::Gemini => Host::Gemini,
        HostArg::Cursor => Host::Cursor,
        HostArg::Copilot => Host::Copilot,
        HostArg::Qwen => Host::Qwen,
        HostArg::Droid => Host::Droid,
    });
    let mut event = Event::unknown(host, moment);
    let mut trouble = None;
    match sent() {
        Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
        Ok(bytes) => match Event::read(&bytes, host, moment) {
            Ok(read) => event = read,
            Err(reason) => trouble = Some(reason),
        },
        Err(reason) => trouble = Some(reason),
    }
    let asked = (global.clone(), event.clone());
    let answered = match within(ANSWERING, move || answer(&asked.0, &asked.1, plugin)) {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let hint = error
                .hint()
                .map_or_else(String::new, |hint| format!("; {hint}"));
            trouble = Some(format!("{error}{}", command::in_text(&hint)));
            None
        }
        Err(reason) => {
            trouble = Some(reason.to_owned());
            None
        }
    };
    if let Some(output) = answered.or_else(|| event.silence()) {
        let _ = write_out(&(output.line() + "\n"));
    }
    if let Some(trouble) = trouble {
        complain(&trouble);
    }
}

/// Prints one line on standard error.
pub fn complain(trouble: &str) {
    write_err(&format!("ack-memory hook: {}\n", text::line(trouble, 300)));
}

fn answer(global: &Global, event: &Event, plugin: bool) -> Result<Option<Output>, CliError> {
    let files = match files_to_tell(event) {
        Some(files) => files,
        None => return Ok(None),
    };
    let mut config = load(global)?;
    // A folder from the command line takes precedence over the host's.
    let mut event = event.clone();
    if matches!(config.project.source, Source::Flag(_)) {
        event.folder = None;
    }
    if let Some(folder) = event
        .folder
        .as_ref()
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
    {
        config.project.value = folder;
    }
    if plugin && settings_call(&config, event.moment.name()) {
        return Ok(None);
    }
    // `serve` reports problems with `[tools]`. They do not matter to a session.
    let named = config
        .file
        .is_some()
        .then(|| Offer::load(&config, None, &|_| None));
    let surface = named.and_then(Result::ok).map(|offer| offer.toolset);
    let service = Service::new(config).without_waiting().for_the_process();
    let output = match event.moment {
        Moment::SessionStart => {
            hook::session_start(service, surface.as_ref(), &event, Timestamp::now())
        }
        Moment::UserPrompt => hook::user_prompt(service, surface.as_ref(), &event),
        Moment::PreToolUse => hook::file::pre_tool_use(service, surface.as_ref(), &event, &files),
    };
    service.close();
    Ok(output?.map(|output| output.reworded(command::in_text)))
}

/// The files of a tool call that the session has not seen memories for yet; `None` if there are
/// none, so that nothing else is read. A fresh session sees them again. Without a session id, or a
/// place to store it, nothing is shown, because it would be shown at every call.
fn files_to_tell(event: &Event) -> Option<Vec<String>> {
    let session = || event.session.as_deref().and_then(SessionFiles::of);
    match event.moment {
        Moment::UserPrompt => Some(Vec::new()),
        Moment::SessionStart => {
            if let Some(told) = session().filter(|_| event.origin == Origin::Fresh) {
                told.forget();
            }
            Some(Vec::new())
        }
        Moment::PreToolUse => {
            let files = event.files.iter().filter(|_| takes_text(event.host));
            let told = session()?;
            let folder = event.folder.as_deref().unwrap_or_default();
            let new = |file: &&String| {
                let file = Path::new(folder).join(file);
                told.claim(&file.to_string_lossy()).unwrap_or(false)
            };
            let files: Vec<String> = files.filter(new).cloned().collect();
            Some(files).filter(|files| !files.is_empty())
        }
    }
}

/// Reads standard input, within the time limit.
fn sent() -> Result<Vec<u8>, String> {
    if std::io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = Vec::new();
        let read = input.by_ref().take(MOST).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut input, &mut std::io::sink());
        let _ = send.send(
            read.map(|_| bytes)
                .map_err(|error| format!("standard input: {error}")),
        );
    });
    wait(&receive, SENDING)
        .map_err(|_| "standard input was not closed in time".to_owned())
        .flatten()
}

/// The result of some work, unless it takes too long or panics.
fn within<T: Send + 'static>(
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
