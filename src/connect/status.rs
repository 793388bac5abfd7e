//! Whether a client is connected, according to its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file::MAX_FILE_BYTES;
use super::runner::without_runner;
use super::{
    Client, ClientFile, ClientPlaces, Extras, FileFormat, Launch, Part, json, ours, toml, yaml,
};
use ack_sys::files;

/// What a client's files say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The file that names servers.
    pub file: PathBuf,
    /// How it starts this server, if it does.
    pub starts: Option<Start>,
    /// Whether the session start hook is on; `None` if the client has no such hook.
    pub hook: Option<bool>,
    /// The files that exist and cannot be read, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// How a client starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// This program.
    Program(ProgramEntry),
    /// It connects to a running server.
    Address(String),
    /// The entry is not recognised.
    Unknown,
}

/// The entry that starts a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramEntry {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The variables that it sets.
    pub variables: BTreeMap<String, String>,
}

impl ProgramEntry {
    /// The package runner that starts this program, if one does.
    pub fn runner(&self) -> Option<&Path> {
        let program = self.program.display().to_string();
        let words: Vec<String> = [program]
            .into_iter()
            .chain(self.arguments.clone())
            .collect();
        let is_runner = without_runner(&words).len() < words.len();
        is_runner.then_some(self.program.as_path())
    }

    /// The value of a flag, if the entry has it.
    pub fn flag(&self, flag: &str) -> Option<&str> {
        let mut arguments = self.arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            if argument == flag {
                return arguments.next();
            }
            let joined = argument.strip_prefix(flag);
            if let Some(value) = joined.and_then(|rest| rest.strip_prefix('=')) {
                return Some(value);
            }
        }
        None
    }
}

/// What a client's files say, or `None` if it has no files in these places.
pub fn status(client: Client, places: &ClientPlaces) -> Option<Status> {
    let wanted = client.files(places, &Launch::by_name(), &Extras::ALL)?;
    let server = wanted.first()?;
    let hook_file = client.hook_file(places);
    let hook = hook_file.as_ref().map(|path| {
        let settings = read(path, FileFormat::Json);
        settings.is_some_and(|settings| ours::calls_hook(&settings, "session-start"))
    });
    let hook_file = hook_file.filter(|path| *path != server.path);
    let files = [(&server.path, server.format)].into_iter();
    let files = files.chain(hook_file.iter().map(|path| (path, FileFormat::Json)));
    let problems = files.filter_map(|(path, format)| Some((path.clone(), problem(path, format)?)));
    Some(Status {
        problems: problems.collect(),
        starts: entry(server).map(|entry| start(&entry)),
        file: server.path.clone(),
        hook,
    })
}

/// Why a file cannot be used; `None` if it can, or does not exist.
fn problem(path: &Path, format: FileFormat) -> Option<String> {
    let text = match files::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("it cannot be read: {error}")),
    };
    let text = text.trim_start_matches('\u{feff}');
    match format {
        FileFormat::Toml => toml::problem(text),
        FileFormat::Yaml => yaml::problem(text),
        FileFormat::Json => json::problem(text),
    }
}

fn read(path: &Path, format: FileFormat) -> Option<Value> {
    let text = files::read_text(path, MAX_FILE_BYTES).ok()?;
    let text = text.trim_start_matches('\u{feff}');
    match format {
        FileFormat::Toml => toml::value_of(text),
        FileFormat::Yaml => yaml::value_of(text),
        FileFormat::Json => json::value(text),
    }
}

/// The server's entry in its file.
fn entry(file: &ClientFile) -> Option<Value> {
    let settings = read(&file.path, file.format)?;
    let (path, name) = file.parts.iter().find_map(|part| match part {
        Part::Member { path, name, .. } => Some((path, name)),
        _ => None,
    })?;
    let parent = path
        .iter()
        .try_fold(&settings, |value, key| value.get(key))?;
    parent.get(name).cloned()
}

fn start(entry: &Value) -> Start {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let address = || ours::ADDRESS_KEYS.iter().find_map(|key| text(key));
    match start_command(entry) {
        Some(started) => Start::Program(started),
        None => address().map_or(Start::Unknown, |address| Start::Address(address.to_owned())),
    }
}

/// The program that an entry starts. Some clients write the command as a list, some as an object.
fn start_command(entry: &Value) -> Option<ProgramEntry> {
    let command = entry.get("command").or_else(|| entry.get("cmd"))?;
    let inner = command.get("path").or_else(|| command.get(0));
    let program = command.as_str().or_else(|| inner?.as_str())?;
    let words = |list: &Value| -> Vec<String> {
        let words = list.as_array().into_iter().flatten();
        words.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut arguments = words(command).split_off(usize::from(command.is_array()));
    for list in [entry.get("args"), command.get("args")]
        .into_iter()
        .flatten()
    {
        arguments.extend(words(list));
    }
    let variables = ["env", "envs", "environment"].into_iter().find_map(|key| {
        let set = entry.get(key).or_else(|| command.get(key))?.as_object()?;
        let set = set
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?)));
        Some(
            set.map(|(name, value)| (name.clone(), value.to_owned()))
                .collect(),
        )
    });
    Some(ProgramEntry {
        program: program.into(),
        arguments,
        variables: variables.unwrap_or_default(),
    })
}
