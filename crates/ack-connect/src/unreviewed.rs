//! What else puts memories into a client's sessions: other programs, and the client itself. Nobody
//! has reviewed them, so their user should know.

use std::path::{Path, PathBuf};

use ack_api::number::count;
use ack_api::text::line;
use serde_json::Value;

use super::ours;
use super::runner::without_runner;
use super::status::read;
use super::{Client, ClientPlaces, FileFormat, NAME};

/// Programs that keep memories, besides those with `memory` in their name.
const PROGRAMS: [&str; 8] = [
    "chroma-mcp",
    "claude-mem",
    "cognee",
    "graphiti",
    "mem0",
    "memento",
    "mempalace",
    "thedotmack",
];
/// The events whose hooks add text to a conversation, in lower case.
const EVENTS: [&str; 5] = [
    "sessionstart",
    "userpromptsubmit",
    "userpromptsubmitted",
    "beforeagent",
    "subagentstart",
];
/// The most characters that are shown of a name.
const MAX_NAME_CHARS: usize = 80;

/// Something that puts unreviewed memories into sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreviewed {
    pub what: String,
    /// How to switch it off, if that is known.
    pub advice: Option<String>,
}

/// What puts unreviewed memories into a client's sessions. `has_auto_memory` is whether the
/// environment lets Claude Code keep its own.
pub fn unreviewed(client: Client, places: &ClientPlaces, has_auto_memory: bool) -> Vec<Unreviewed> {
    let mut found = Vec::new();
    for path in client.settings_files(places) {
        let settings = read(&path, FileFormat::Json).unwrap_or_default();
        found.extend(hooks(&settings, &shown(&path, places)));
        found.extend(plugins(client, &settings, &shown(&path, places)));
    }
    if client == Client::ClaudeCode && has_auto_memory {
        found.extend(auto_memory(places));
    }
    let mut once = Vec::new();
    for one in found {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// A path as people write it.
fn shown(path: &Path, places: &ClientPlaces) -> String {
    match path.strip_prefix(&places.home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

/// The hooks of other programs that add memories.
fn hooks(settings: &Value, path: &str) -> Vec<Unreviewed> {
    if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let events = settings.get("hooks").and_then(Value::as_object);
    let entries = events
        .into_iter()
        .flatten()
        .filter(|(event, _)| EVENTS.contains(&event.to_ascii_lowercase().as_str()))
        .filter_map(|(_, entries)| entries.as_array())
        .flatten();
    let others = entries
        .flat_map(ours::handlers_of)
        .filter(|handler| !ours::is_hook(handler));
    let programs = others
        .flat_map(ours::commands)
        .filter_map(|command| memory_program(&command));
    programs
        .map(|program| Unreviewed {
            what: format!(
                "a hook of {} in {path} adds memories that nobody reviewed",
                line(&program, MAX_NAME_CHARS)
            ),
            advice: None,
        })
        .collect()
}

/// The enabled plugins that keep memories.
fn plugins(client: Client, settings: &Value, path: &str) -> Vec<Unreviewed> {
    let plugins = settings.get("enabledPlugins").and_then(Value::as_object);
    let enabled = plugins
        .into_iter()
        .flatten()
        .filter(|(_, enabled)| **enabled == Value::Bool(true));
    enabled
        .filter(|(plugin, _)| keeps_memories(plugin.split('@').next().unwrap_or_default()))
        .map(|(plugin, _)| {
            let plugin = line(plugin, MAX_NAME_CHARS);
            Unreviewed {
                what: format!(
                    "the plugin {plugin}, enabled in {path}, adds memories that nobody reviewed"
                ),
                advice: (client == Client::ClaudeCode)
                    .then(|| format!("`claude plugin disable {plugin}` switches it off")),
            }
        })
        .collect()
}

/// What Claude Code notes by itself about each project, and reads at the start of each session.
fn auto_memory(places: &ClientPlaces) -> Option<Unreviewed> {
    let folder = places.claude_folder();
    let path = folder.join("settings.json");
    let settings = read(&path, FileFormat::Json).unwrap_or_default();
    let is_on = |value: &Value| value.as_str().is_none_or(|text| !is_no(text));
    let variable = settings.pointer("/env/CLAUDE_CODE_DISABLE_AUTO_MEMORY");
    if settings.get("autoMemoryEnabled") == Some(&Value::Bool(false)) || variable.is_some_and(is_on)
    {
        return None;
    }
    let projects = std::fs::read_dir(folder.join("projects")).into_iter();
    let noted = projects
        .flatten()
        .flatten()
        .filter(|project| has_notes(&project.path().join("memory")))
        .count();
    let elsewhere = settings.get("autoMemoryDirectory").and_then(Value::as_str);
    let elsewhere = elsewhere.is_some_and(|folder| {
        has_notes(&ack_sys::files::expand_home(
            Path::new(folder),
            Some(&places.home),
        ))
    });
    if noted == 0 && !elsewhere {
        return None;
    }
    let about = match noted {
        0 => String::new(),
        noted => format!(" about {}", count(noted as u64, "project")),
    };
    Some(Unreviewed {
        what: format!(
            "its auto-memory is on: what it noted{about} is in its sessions, and nobody reviewed it"
        ),
        advice: Some(format!(
            "`\"autoMemoryEnabled\": false` in {} switches it off",
            shown(&path, places)
        )),
    })
}

/// Whether the value of a variable means no.
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
    let words: Vec<String> = command
        .split_whitespace()
        .map(|word| word.trim_matches(['"', '\'']).to_owned())
        .collect();
    let runs = || program_name(&words).filter(|name| keeps_memories(name));
    program_in(command).map(str::to_owned).or_else(runs)
}

/// The name of the program that a command runs, without its folder.
fn program_name(words: &[String]) -> Option<String> {
    let program = without_runner(words).first()?;
    program.rsplit('/').next().map(str::to_owned)
}

/// Whether a name is that of a program that keeps memories.
fn keeps_memories(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_other = !name.starts_with(NAME);
    is_other && (name == "icm" || name.contains("memory") || program_in(&name).is_some())
}

/// The program that a word names or is a part of.
fn program_in(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let program = PROGRAMS.into_iter().find(|name| word.contains(name))?;
    // Its author's folder, in which it is installed.
    Some(if program == "thedotmack" {
        "claude-mem"
    } else {
        program
    })
}
