//! What else puts memories into a client's sessions: other programs, and the client itself. Nobody
//! has reviewed them, so their user should know, and can switch them off.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ack_api::number::count;
use ack_api::text::{line, tokens};
use ack_sys::files::{self, with_tilde};
use serde_json::{Value, json};

use super::file::{self, FileAction, FileChange};
use super::parts::retain_hooks;
use super::recogniser::StoreKind;
use super::runner::without_runner;
use super::status::read;
use super::switch::{self, Switch};
use super::{
    Client, ClientFile, ClientPlaces, ConnectError, Extras, FileFormat, Launch, NAME, Part, ours,
};

/// Programs that keep memories, besides those with `memory` in their name.
const PROGRAMS: &str = "chroma-mcp claude-mem cognee graphiti mem0 memento mempalace opencode-mem \
    thedotmack";
/// The events whose hooks add text to a conversation, in lower case.
const EVENTS: &str = "sessionstart userpromptsubmit userpromptsubmitted beforesubmitprompt \
    beforeagent subagentstart pretooluse pre_user_prompt";
/// What claude-mem 13 adds when a session starts: 50 titles and the last summary.
const CLAUDE_MEM_TOKENS: usize = 1_000;
/// The lines of `MEMORY.md` that Claude Code reads.
const MEMORY_LINES: usize = 200;
const MAX_NAME_CHARS: usize = 80;
const MAX_FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct Unreviewed {
    pub what: String,
    program: String,
    /// What to know about it, or how to switch it off by hand.
    pub advice: Option<String>,
    /// The file and the switches in it, if it can be switched off here.
    off: Option<ClientFile>,
    /// Roughly how many tokens a session gets from it, if that is known.
    pub tokens: Option<usize>,
}

/// A file that may bring unreviewed text, with what it says.
struct Place {
    /// Without any of our entries.
    file: ClientFile,
    shown: String,
    settings: Value,
    /// The key under which it names servers, if it does.
    servers: Option<&'static str>,
    /// Whether it is the user's own. What a project's file brings is not switched off here, because
    /// others use it too.
    is_own: bool,
}

impl Unreviewed {
    pub fn can_switch_off(&self) -> bool {
        self.off.is_some()
    }

    /// Whether it shows what is in the store of a program with this name.
    pub fn is_of(&self, program: &str) -> bool {
        self.program == program
    }

    pub fn described(&self) -> String {
        match self.tokens {
            Some(tokens) => {
                format!("{}, about {} a session", self.what, count(tokens as u64, "token"))
            }
            None => self.what.clone(),
        }
    }

    /// Plans to switch it off. `None` if that cannot be done here.
    pub fn switch_off(
        &self,
        client: Client,
        places: &ClientPlaces,
    ) -> Result<Option<FileChange>, ConnectError> {
        let Some(off) = &self.off else {
            return Ok(None);
        };
        let known = client.files(&places.of_user(), &Launch::by_name(), &Extras::all());
        let mut known = known.into_iter().flatten();
        let mut file = off.clone();
        if let Some(known) = known.find(|known| known.path == off.path) {
            file = ClientFile { parts: [known.parts, file.parts].concat(), ..known };
        }
        file::plan(&file, FileAction::SwitchOff).map(Some)
    }
}

/// The files of the user in which something of a client's was switched off, but for those known.
pub fn switched_off(
    client: Client,
    places: &ClientPlaces,
    known: &[ClientFile],
) -> Result<Vec<ClientFile>, ConnectError> {
    let mut found = Vec::new();
    for Place { file, .. } in user_files(client, places) {
        let is_known = known.iter().any(|known| known.path == file.path);
        if !is_known && !switch::recorded(&file.path)?.is_empty() {
            found.push(file);
        }
    }
    Ok(found)
}

/// What puts unreviewed memories into a client's sessions. `has_auto_memory` is whether the
/// environment lets Claude Code keep its own.
pub fn unreviewed(client: Client, places: &ClientPlaces, has_auto_memory: bool) -> Vec<Unreviewed> {
    let mut files = user_files(client, places);
    if places.project.is_some() {
        files.extend(files_of(client, places, false));
    }
    let mut found = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for place in files {
        if !seen.contains(&place.file.path) {
            found.extend(hooks(&place));
            found.extend(plugins(client, &place));
            found.extend(plugin_lists(client, &place));
            found.extend(plugin_files(client, &place, places));
            found.extend(goose_memory(client, &place));
            found.extend(servers(&place));
            seen.push(place.file.path);
        }
    }
    if client == Client::ClaudeCode && has_auto_memory {
        found.extend(auto_memory(places));
    }
    found
}

fn user_files(client: Client, places: &ClientPlaces) -> Vec<Place> {
    files_of(client, &places.of_user(), true)
}

fn files_of(client: Client, places: &ClientPlaces, is_own: bool) -> Vec<Place> {
    let place = |path: PathBuf, format, servers| Place {
        settings: read(&path, format).unwrap_or_default(),
        shown: with_tilde(&path, Some(&places.home)),
        file: ClientFile::new(path, format, Vec::new(), places),
        servers,
        is_own,
    };
    let connected = client.files(places, &Launch::by_name(), &Extras::all());
    let server = connected.into_iter().flatten().next().map(|file| {
        let key = file.parts.first().and_then(|part| part.path()?.first().copied());
        place(file.path, file.format, key)
    });
    let windsurf = (client == Client::Windsurf && is_own)
        .then(|| places.home.join(".codeium/windsurf/hooks.json"));
    let settings = client.settings_files(places).into_iter().chain(windsurf);
    let settings = settings.map(|path| place(path, FileFormat::Json, None));
    server.into_iter().chain(settings).collect()
}

impl Place {
    fn found(&self, program: &str, what: String, switches: Vec<Switch>) -> Unreviewed {
        let known = program_in(program);
        let parts = switches.into_iter().map(Part::Switch).collect();
        Unreviewed {
            what,
            program: known.unwrap_or(program).to_owned(),
            advice: None,
            off: self.is_own.then(|| ClientFile { parts, ..self.file.clone() }),
            tokens: (known == Some("claude-mem")).then_some(CLAUDE_MEM_TOKENS),
        }
    }
}

fn hooks(place: &Place) -> Option<Unreviewed> {
    let is_off = place.settings.get("disableAllHooks") == Some(&Value::Bool(true));
    let events = place.settings.get("hooks").and_then(Value::as_object);
    let events = events.filter(|_| !is_off).into_iter().flatten();
    let mut programs = BTreeSet::new();
    let mut switches = Vec::new();
    for (event, on) in events.filter(|(event, _)| adds_text(event)) {
        let mut left = on.as_array().cloned().unwrap_or_default();
        let before = left.clone();
        retain_hooks(&mut left, |handler| {
            let program = hooked_program(handler);
            programs.extend(program.clone());
            program.is_none()
        });
        if left != before {
            let off = if left.is_empty() { Value::Null } else { json!(left) };
            switches.push(Switch::at(&["hooks", event], on.clone(), off));
        }
    }
    if switches.is_empty() {
        return None;
    }
    let names = line(&programs.into_iter().collect::<Vec<_>>().join(" and "), MAX_NAME_CHARS);
    let file = &place.shown;
    let what = format!("a hook of {names} in {file} adds memories that nobody reviewed");
    Some(place.found(&names, what, switches))
}

fn adds_text(event: &str) -> bool {
    EVENTS.split(' ').any(|known| event.eq_ignore_ascii_case(known))
}

fn hooked_program(handler: &Value) -> Option<String> {
    let mut commands = ours::commands(handler).into_iter();
    commands.find_map(|command| memory_program(&command)).filter(|_| !ours::is_hook(handler))
}

fn plugins(client: Client, place: &Place) -> Vec<Unreviewed> {
    let is_codex = client == Client::Codex;
    let key = if is_codex { "plugins" } else { "enabledPlugins" };
    let plugins = place.settings.get(key).and_then(Value::as_object).into_iter().flatten();
    let enabled = plugins.filter(|(plugin, value)| {
        let is_enabled = **value == true || (is_codex && value["enabled"] == true);
        is_enabled && keeps_memories(plugin.split('@').next().unwrap_or_default())
    });
    let found = enabled.map(|(plugin, _)| {
        let path: &[&str] = if is_codex { &[key, plugin, "enabled"] } else { &[key, plugin] };
        let switch = Switch::at(path, json!(true), json!(false));
        let (plugin, file) = (line(plugin, MAX_NAME_CHARS), &place.shown);
        let what =
            format!("the plugin {plugin}, enabled in {file}, adds memories that nobody reviewed");
        let advice = if place.is_own {
            Some("without the plugin, it records nothing there either".to_owned())
        } else {
            (!is_codex).then(|| format!("`claude plugin disable {plugin}` switches it off"))
        };
        Unreviewed { advice, ..place.found(&plugin, what, vec![switch]) }
    });
    found.collect()
}

fn servers(place: &Place) -> Vec<Unreviewed> {
    let Some(section) = place.servers else {
        return Vec::new();
    };
    let entries = place.settings.get(section).and_then(Value::as_object).into_iter().flatten();
    let others = entries.filter(|(name, entry)| {
        !ours::is_entry(entry)
            && !is_part_of_goose(entry)
            && is_on(entry)
            && serves_memories(name, entry)
    });
    let found = others.map(|(name, entry)| {
        let switch = Switch::at(&[section, name], entry.clone(), Value::Null);
        let (server, file) = (line(name, MAX_NAME_CHARS), &place.shown);
        let what = format!(
            "the server {server} in {file} gives agents memories that nobody reviewed, when they \
             ask"
        );
        Unreviewed { tokens: None, ..place.found(name, what, vec![switch]) }
    });
    found.collect()
}

fn is_on(entry: &Value) -> bool {
    entry["disabled"] != true && entry["enabled"] != false
}

/// The plugins of OpenCode that keep memories, in the lists of its settings. OpenCode 2 reads both
/// lists.
fn plugin_lists(client: Client, place: &Place) -> Vec<Unreviewed> {
    let lists = ["plugin", "plugins"].into_iter();
    let lists = lists.filter(|_| client == Client::OpenCode);
    let found = lists.filter_map(|key| {
        let on = place.settings.get(key)?.as_array()?;
        let (others, left): (Vec<_>, Vec<_>) =
            on.iter().partition(|it| keeps_memories(plugin_name(it)));
        let names: Vec<&str> = others.iter().map(|entry| plugin_name(entry)).collect();
        let names = line(&names.join(" and "), MAX_NAME_CHARS);
        let file = &place.shown;
        let what = format!("plugins listed in {file} add memories that nobody reviewed: {names}");
        let switch = Switch::at(&[key], json!(on), json!(left));
        let found = Unreviewed { tokens: None, ..place.found(&names, what, vec![switch]) };
        (!others.is_empty()).then_some(found)
    });
    found.collect()
}

/// The package of a plugin, or the file that it is in.
fn plugin_name(entry: &Value) -> &str {
    let listed = entry.get(0).or_else(|| entry.get("package"));
    let name = listed.unwrap_or(entry).as_str().unwrap_or_default();
    if name.starts_with(['.', '/', '~']) || name.starts_with("file:") {
        name.rsplit('/').next().unwrap_or_default()
    } else {
        name
    }
}

/// The files of plugins that keep memories. OpenCode loads each, and has no setting against it.
fn plugin_files(client: Client, place: &Place, places: &ClientPlaces) -> Vec<Unreviewed> {
    let folder = place.file.path.parent().filter(|_| client == Client::OpenCode);
    let folder = folder.map(|it| it.join(if place.is_own { "" } else { ".opencode" }));
    let names = ["plugin", "plugins"].into_iter();
    let folders = names.filter_map(|name| Some(folder.as_ref()?.join(name)));
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        keeps_memories(&name.to_string_lossy())
    });
    let found = files.iter().map(|path| {
        let shown = line(&with_tilde(path, Some(&places.home)), MAX_NAME_CHARS);
        let what = format!("the plugin {shown} adds memories that nobody reviewed");
        Unreviewed {
            advice: Some("to switch it off, move it out of that folder".to_owned()),
            off: None,
            tokens: None,
            ..place.found(&shown, what, Vec::new())
        }
    });
    found.collect()
}

fn is_part_of_goose(entry: &Value) -> bool {
    matches!(entry["type"].as_str(), Some("builtin" | "platform"))
}

/// Goose's own memory. It adds what it was told outside of projects to each session.
fn goose_memory(client: Client, place: &Place) -> Option<Unreviewed> {
    let entry = place.settings.get("extensions")?.get("memory")?;
    if client != Client::Goose || !is_part_of_goose(entry) || !is_on(entry) {
        return None;
    }
    let what = "its memory is on: what it was told is in its sessions, and nobody reviewed it";
    let on = entry.get("enabled").cloned().unwrap_or_default();
    let switch = Switch::at(&["extensions", "memory", "enabled"], on, json!(false));
    let files = std::fs::read_dir(place.file.path.with_file_name("memory")).into_iter();
    let files = files.flatten().flatten().map(|file| file.path());
    let texts = files.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    let texts = texts.filter_map(|path| files::read_text(&path, MAX_FILE_BYTES).ok());
    Some(Unreviewed {
        program: StoreKind::Goose.title().to_owned(),
        tokens: Some(texts.map(|text| tokens(&text)).sum()),
        ..place.found("memory", what.to_owned(), vec![switch])
    })
}

fn serves_memories(name: &str, entry: &Value) -> bool {
    keeps_memories(name)
        || memory_program(&ours::launch_words(entry).join(" ")).is_some()
        || ours::address(entry).is_some_and(|address| program_in(address).is_some())
}

/// What Claude Code notes by itself about each project, and reads at the start of each session.
fn auto_memory(places: &ClientPlaces) -> Option<Unreviewed> {
    let folder = places.claude_folder();
    let path = folder.join("settings.json");
    let settings = read(&path, FileFormat::Json).unwrap_or_default();
    let is_on = |value: &Value| value.as_str().is_none_or(|text| !is_no(text));
    let variable = settings.pointer("/env/CLAUDE_CODE_DISABLE_AUTO_MEMORY");
    let enabled = settings.get("autoMemoryEnabled").unwrap_or(&Value::Null);
    if *enabled == false || variable.is_some_and(is_on) {
        return None;
    }
    let projects = std::fs::read_dir(folder.join("projects")).into_iter();
    let projects = projects.flatten().flatten();
    let folders = projects.map(|project| project.path().join("memory"));
    let noted: Vec<PathBuf> = folders.filter(|folder| has_notes(folder)).collect();
    let elsewhere = settings.get("autoMemoryDirectory").and_then(Value::as_str);
    let elsewhere = elsewhere
        .map(|folder| files::expand_home(Path::new(folder), Some(&places.home)))
        .filter(|folder| has_notes(folder));
    let folders = noted.iter().chain(&elsewhere);
    let most = folders.map(|folder| index_tokens(folder)).max();
    let about = match noted.len() {
        0 => String::new(),
        noted => format!(" about {}", count(noted as u64, "project")),
    };
    let switch = Switch::at(&["autoMemoryEnabled"], enabled.clone(), json!(false));
    let switch = Part::Switch(switch);
    Some(Unreviewed {
        what: format!(
            "its auto-memory is on: what it noted{about} is in its sessions, and nobody reviewed it"
        ),
        program: StoreKind::AutoMemory.title().to_owned(),
        advice: None,
        off: Some(ClientFile::new(path, FileFormat::Json, vec![switch], places)),
        tokens: Some(most?),
    })
}

fn index_tokens(folder: &Path) -> usize {
    let text = files::read_text(&folder.join("MEMORY.md"), MAX_FILE_BYTES);
    let text = text.unwrap_or_default();
    text.lines().take(MEMORY_LINES).map(tokens).sum()
}

pub fn is_no(text: &str) -> bool {
    ["", "0", "false", "no", "off"].contains(&text.to_ascii_lowercase().as_str())
}

fn has_notes(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = files.map(|file| PathBuf::from(file.file_name()));
    names.any(|name| name.extension().is_some_and(|end| end == "md"))
}

/// The program that keeps memories and that a shell command runs, or that a part of it belongs to.
fn memory_program(command: &str) -> Option<String> {
    let words: Vec<String> =
        command.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned()).collect();
    let runs = || program_name(&words).filter(|name| keeps_memories(name));
    program_in(command).map(str::to_owned).or_else(runs)
}

fn program_name(words: &[String]) -> Option<String> {
    let program = without_runner(words).first()?;
    program.rsplit('/').next().map(str::to_owned)
}

fn keeps_memories(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_other = !name.starts_with(NAME);
    is_other && (name == "icm" || name.contains("memory") || program_in(&name).is_some())
}

/// The program that a word names or is a part of.
fn program_in(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let program = PROGRAMS.split(' ').find(|name| word.contains(name))?;
    // Its author's folder, in which it is installed.
    Some(program).map(|it| if it == "thedotmack" { "claude-mem" } else { it })
}
