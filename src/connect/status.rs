//! Whether a client is connected, according to its files.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file::LARGEST;
use super::{
    Client, ConfigFile, Format, Launch, NAME, Part, Places, Wanted, json, ours, toml, yaml,
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
}

/// How a client starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// This program.
    Program(PathBuf),
    /// It connects to a running server.
    Address(String),
    /// The entry is not recognised.
    Unknown,
}

/// What a client's files say, or `None` if it has no files in these places.
pub fn status(client: Client, places: &Places) -> Option<Status> {
    let launch = Launch {
        binary: NAME.into(),
        places: Vec::new(),
        flags: Vec::new(),
        surface: None,
        is_on_path: true,
    };
    let wanted = client.files(places, &launch, &Wanted::ALL)?;
    let server = wanted.first()?;
    let hook = client.hook_file(places).map(|path| {
        let settings = read(&path, Format::Json);
        settings.is_some_and(|settings| ours::calls_hook(&settings, "session-start"))
    });
    Some(Status {
        starts: entry(server).map(|entry| start(&entry)),
        file: server.path.clone(),
        hook,
    })
}

fn read(path: &Path, format: Format) -> Option<Value> {
    let text = files::read_text(path, LARGEST).ok()?;
    match format {
        Format::Toml => toml::value_of(&text),
        Format::Yaml => yaml::value_of(&text),
        Format::Json => json::value(&text),
    }
}

/// The server's entry in its file.
fn entry(file: &ConfigFile) -> Option<Value> {
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
    // Some clients write the command as a list, some as an object.
    let inner = |entry: &'_ Value| {
        let command = entry.get("command")?;
        let program = command.get(0).or_else(|| command.get("path"))?;
        program.as_str().map(str::to_owned)
    };
    match text("command")
        .or_else(|| text("cmd"))
        .map(str::to_owned)
        .or_else(|| inner(entry))
    {
        Some(command) => Start::Program(command.into()),
        None => ours::REACHES
            .iter()
            .find_map(|key| text(key))
            .map_or(Start::Unknown, |address| Start::Address(address.to_owned())),
    }
}
