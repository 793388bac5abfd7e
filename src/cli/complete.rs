//! Shell completion. The shell's script calls this program with [`ENV_COMPLETE`] set and the words
//! typed so far, and gets back the possible completions.
//!
//! Tags and projects come from the list of scopes, ids from a search for their beginning.
//! Only approved memories are offered, except to commands that decide. Errors are not printed,
//! because no one wants to read them after pressing Tab. What takes too long is left out.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::{ArgMatches, Command};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};

use super::args::{self, Global};
use super::error::CliError;
use super::settings::load;
use ack_api::memory::StatusFilter;
use ack_api::{ListScopesRequest, ScopeInfo, text};
use ack_service::Service;
use ack_service::short_id::completion_of;

/// The variable that the shell's script sets to the name of the shell.
const ENV_COMPLETE: &str = "ACK_MEM_COMPLETE";
/// How long the user waits after pressing Tab.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The commands that decide, and so are offered memories that wait for review.
const DECISION_COMMANDS: [&str; 7] = [
    "approve",
    "reject",
    "promote",
    "stage",
    "merge",
    "supersede",
    "review",
];

#[derive(Debug, Clone, Copy)]
enum Word {
    Scope,
    Id,
    Tag,
    Project,
}

/// The script that connects a shell to this program.
///
/// # Errors
/// The shell is unknown.
pub fn script(shell: &str) -> Result<String, CliError> {
    const NAME: &str = "ack-memory";
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let result = shells
        .completer(shell)
        .map(|completer| completer.write_registration(ENV_COMPLETE, NAME, NAME, NAME, &mut script));
    match result {
        Some(Ok(())) => Ok(String::from_utf8_lossy(&script).into_owned()),
        _ => Err(CliError::invalid(
            "SHELL",
            "unknown",
            "bash, elvish, fish, powershell or zsh",
        )),
    }
}

/// Answers a shell's completion request; `None` if the caller is not a shell.
pub fn answer() -> Option<ExitCode> {
    std::env::var_os(ENV_COMPLETE).filter(|shell| !shell.is_empty() && shell != "0")?;
    // The script may call this program by another name if only the variable is set.
    let words: Vec<OsString> = std::env::args_os().collect();
    let typed = words.iter().skip_while(|word| *word != "--").skip(1);
    let typed: Arc<[OsString]> = typed.cloned().collect();
    let completion = CompleteEnv::with_factory(|| with_completion(args::command(), "", &typed))
        .var(ENV_COMPLETE);
    let folder = std::env::current_dir().ok();
    let completed = completion.try_complete(words, folder.as_deref());
    Some(match completed {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// Adds completion of values to the arguments of a command and its subcommands.
fn with_completion(command: Command, path: &str, typed: &Arc<[OsString]>) -> Command {
    let inner: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .collect();
    let command = command.mut_args(|argument| {
        let Some(word) = word_kind(path, argument.get_id().as_str()) else {
            return argument;
        };
        let (typed, path) = (Arc::clone(typed), path.to_owned());
        argument.add(ArgValueCompleter::new(move |current: &OsStr| {
            let Some(current) = current.to_str().map(str::to_owned) else {
                return Vec::new();
            };
            let (typed, path) = (Arc::clone(&typed), path.clone());
            within_time_limit(move || candidates(word, &path, &typed, &current))
        }))
    });
    inner.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |inner| {
            with_completion(inner, path.trim_start(), typed)
        })
    })
}

/// The meaning of a command's argument.
fn word_kind(command: &str, argument: &str) -> Option<Word> {
    Some(match (command, argument) {
        ("scopes set" | "scopes remove", "name") | (_, "scope" | "pin") => Word::Scope,
        ("query", "tags") | (_, "tag") => Word::Tag,
        ("query", "like" | "expect") | ("get", "ids") => Word::Id,
        (command, "ids" | "id" | "into" | "by") if DECISION_COMMANDS.contains(&command) => Word::Id,
        (_, "project") => Word::Project,
        _ => return None,
    })
}

/// The result of `work`, or nothing if it takes too long. The process ends soon after.
fn within_time_limit(
    work: impl FnOnce() -> Vec<CompletionCandidate> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (send, receive) = channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.recv_timeout(TIME_LIMIT).unwrap_or_default()
}

/// The completions of a word.
fn candidates(
    word: Word,
    command: &str,
    typed: &[OsString],
    current: &str,
) -> Vec<CompletionCandidate> {
    let Some((service, scope)) = service_and_scope(typed) else {
        return Vec::new();
    };
    let found = match word {
        Word::Id => ids(&service, scope.as_deref(), command, current),
        Word::Scope => scopes(&service, current),
        Word::Project => in_scopes(&service, scope, |scope| scope.projects, current),
        Word::Tag => {
            let tags = |scope: ScopeInfo| scope.tags.into_iter().map(|tag| tag.tag).collect();
            in_scopes(&service, scope, tags, current)
        }
    };
    service.close();
    found
}

/// The ids with this prefix, each with its title.
fn ids(
    service: &Service,
    scope: Option<&str>,
    command: &str,
    current: &str,
) -> Vec<CompletionCandidate> {
    let filter = match command {
        "approve" => StatusFilter::Staging,
        command if DECISION_COMMANDS.contains(&command) => StatusFilter::All,
        _ => StatusFilter::Approved,
    };
    let found = service.ids_with_prefix(current, scope, filter);
    let found = found.unwrap_or_default().matches.into_iter();
    let fitting = found.filter_map(|one| {
        let id = candidate(completion_of(&one.id, current)?, current)?;
        Some(id.help(Some(one.title.into())))
    });
    fitting.collect()
}

/// The scopes with this prefix, private ones too, because the owner asks.
fn scopes(service: &Service, current: &str) -> Vec<CompletionCandidate> {
    let scopes = service.registry.discover().scopes.into_iter();
    let usable = scopes.filter(|scope| scope.problem.is_none());
    usable
        .filter_map(|scope| candidate(&scope.name, current))
        .collect()
}

/// What the descriptions of scopes name, each once.
fn in_scopes(
    service: &Service,
    scope: Option<String>,
    named: impl Fn(ScopeInfo) -> Vec<String>,
    current: &str,
) -> Vec<CompletionCandidate> {
    let listed = service.list_scopes(&ListScopesRequest {
        scope,
        // Without the projects that only memories name that wait for review.
        by_agent: true,
        ..ListScopesRequest::default()
    });
    let listed = listed.unwrap_or_default();
    let mut seen = HashSet::new();
    let names = listed.scopes.into_iter().flat_map(named);
    names
        .filter(|name| seen.insert(name.clone()))
        .filter_map(|name| candidate(&name, current))
        .collect()
}

/// A value with this prefix. Bash inserts it into the command line unchanged, and stores contain
/// other people's texts. So a value that is not a single plain shell word is left out.
fn candidate(value: &str, current: &str) -> Option<CompletionCandidate> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/@+,%".contains(c);
    let plain = !value.is_empty() && value.chars().all(is_plain) && !value.starts_with('-');
    (plain && value.starts_with(current) && text::safe(value) == value)
        .then(|| CompletionCandidate::new(value))
}

/// The service and the scope for the words typed so far.
fn service_and_scope(typed: &[OsString]) -> Option<(Service, Option<String>)> {
    let command = args::command().ignore_errors(true);
    let matches = command.try_get_matches_from(typed).ok()?;
    let mut inner = &matches;
    while let Some((_, next)) = inner.subcommand() {
        inner = next;
    }
    let path = |name: &str| value::<PathBuf>(inner, name);
    let global = Global {
        root: path("root"),
        db: path("db"),
        dir: path("dir"),
        pin: value(inner, "pin"),
        unreviewed: value(inner, "unreviewed"),
        ..Global::default()
    };
    let config = load(&global).ok()?;
    Some((
        Service::new(config).without_bucket_wait(),
        value(inner, "scope"),
    ))
}

fn value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    matches.try_get_one::<T>(name).ok().flatten().cloned()
}
