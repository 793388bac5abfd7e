//! Whether a client is connected, according to its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::file::{MAX_FILE_BYTES, without_mark};
use super::runner::without_runner;
use super::{Client, ClientPlaces, Extras, FileFormat, Launch, file, ours};
use ack_service::scope::known::is_same;
use ack_sys::files;

const SESSION_START: &str = "session-start";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub file: PathBuf,
    pub starts: Option<Start>,
    /// What becomes of the session start hook; `None` if the client has no such hook.
    pub hook: Option<HookState>,
    /// The rules against writing, if the client has such rules.
    pub denied: Option<Vec<String>>,
    pub problems: Vec<(PathBuf, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookState {
    Missing,
    /// The client does not run it before its user has trusted it.
    Untrusted,
    /// The user has switched it, or all hooks, off in the client.
    SwitchedOff,
    /// Droid has a `hooks.json`, so it ignores the hooks in the file that calls it.
    Overruled,
    On,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Program(ProgramEntry),
    Address(String),
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEntry {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub variables: BTreeMap<String, String>,
}

impl ProgramEntry {
    pub fn runner(&self) -> Option<&Path> {
        let program = self.program.display().to_string();
        let words: Vec<String> = [program].into_iter().chain(self.arguments.clone()).collect();
        let is_runner = without_runner(&words).len() < words.len();
        is_runner.then_some(self.program.as_path())
    }

    pub fn flag(&self, flag: &str) -> Option<&str> {
        let mut arguments = self.arguments.iter().map(String::as_str);
        loop {
            match arguments.next()?.strip_prefix(flag) {
                Some("") => return arguments.next(),
                Some(rest) if rest.starts_with('=') => return rest.strip_prefix('='),
                _ => {}
            }
        }
    }
}

/// What a client's files say, or `None` if it has no files in these places.
pub fn status(client: Client, places: &ClientPlaces) -> Option<Status> {
    let wanted = client.files(places, &Launch::by_name(), &Extras::all())?;
    let server = wanted.first()?;
    let hook_file = client.hook_file(places);
    let settings = hook_file.as_ref().map(|path| read(path, FileFormat::Json).unwrap_or_default());
    let hook = hook_file.as_ref().zip(settings.as_ref()).map(|(path, settings)| match client {
        Client::Codex => codex_hook(path, settings, places),
        Client::Droid => droid_hook(path, settings),
        _ if !ours::calls_hook(settings, SESSION_START) => HookState::Missing,
        _ if settings.get("disableAllHooks") == Some(&Value::Bool(true)) => HookState::SwitchedOff,
        _ => HookState::On,
    });
    let denied = settings.filter(|_| client == Client::ClaudeCode).map(|settings| {
        let rules = settings.pointer("/permissions/deny").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().filter_map(Value::as_str);
        rules.map(str::to_owned).collect()
    });
    let hook_file = hook_file.filter(|path| *path != server.path);
    let hook_file = hook_file.map(|path| (path, FileFormat::Json));
    let files = [(server.path.clone(), server.format)].into_iter().chain(hook_file);
    let problems =
        files.filter_map(|(path, format)| try_read(&path, format).err().map(|it| (path, it)));
    let parsed = read(&server.path, server.format).unwrap_or_default();
    let entry = server.parts.iter().find_map(|part| file::entry(&parsed, part));
    Some(Status {
        problems: problems.collect(),
        starts: entry.map(start),
        file: server.path.clone(),
        hook,
        denied,
    })
}

/// The state of Codex's hook. Codex keeps in the user's `config.toml` which hooks are trusted, and
/// which are switched off, by file, event and position.
fn codex_hook(hook_file: &Path, settings: &Value, places: &ClientPlaces) -> HookState {
    let entries = settings.pointer("/hooks/SessionStart").and_then(Value::as_array);
    let positions = entries.into_iter().flatten().enumerate();
    let position = positions.into_iter().find_map(|(entry, value)| {
        let mut handlers = ours::handlers_of(value).into_iter();
        let handler = handlers.position(|it| ours::is_hook_called(it, SESSION_START))?;
        Some(format!(":session_start:{entry}:{handler}"))
    });
    let Some(position) = position else {
        return HookState::Missing;
    };
    let config = Client::Codex.files(&places.of_user(), &Launch::by_name(), &Extras::all());
    let config =
        config.and_then(|files| read(&files.first()?.path, FileFormat::Toml)).unwrap_or_default();
    let is_off = |pointer: &str| config.pointer(pointer) == Some(&Value::Bool(false));
    if is_off("/features/hooks") || is_off("/features/codex_hooks") {
        return HookState::SwitchedOff;
    }
    let states = config.pointer("/hooks/state").and_then(Value::as_object);
    let state = states.into_iter().flatten().find_map(|(key, state)| {
        let path = key.strip_suffix(&position)?;
        is_same(Path::new(path), hook_file).then_some(state)
    });
    let trusted = state.and_then(|state| state.get("trusted_hash")).is_some();
    match state.and_then(|state| state.get("enabled")) {
        Some(Value::Bool(false)) => HookState::SwitchedOff,
        _ if trusted => HookState::On,
        _ => HookState::Untrusted,
    }
}

/// The state of Droid's hook. If there is a `hooks.json`, Droid reads no hooks from its settings.
fn droid_hook(settings_file: &Path, settings: &Value) -> HookState {
    let calls = |settings: &Value| ours::calls_hook(settings, SESSION_START);
    let is_there = calls(settings);
    match read(&settings_file.with_file_name("hooks.json"), FileFormat::Json) {
        Some(own) if calls(&own) || calls(&json!({ "hooks": own })) => HookState::On,
        Some(_) if is_there => HookState::Overruled,
        None if is_there => HookState::On,
        _ => HookState::Missing,
    }
}

/// The settings in a file; `None` if there is no file. An error says why it cannot be used.
fn try_read(path: &Path, format: FileFormat) -> Result<Option<Value>, String> {
    match files::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => file::settings(format, without_mark(&text).1).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("it cannot be read: {error}")),
    }
}

pub fn read(path: &Path, format: FileFormat) -> Option<Value> {
    try_read(path, format).ok()?
}

fn start(entry: &Value) -> Start {
    let mut words = ours::launch_words(entry).into_iter();
    let Some(program) = words.next() else {
        let address = ours::address(entry).map(str::to_owned);
        return address.map_or(Start::Unknown, Start::Address);
    };
    let variables = ["env", "envs", "environment"].into_iter().find_map(|key| {
        let set = entry.get(key).or_else(|| entry.get("command")?.get(key))?.as_object()?.iter();
        let set = set.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Some(set.collect())
    });
    Start::Program(ProgramEntry {
        program: program.into(),
        arguments: words.collect(),
        variables: variables.unwrap_or_default(),
    })
}
