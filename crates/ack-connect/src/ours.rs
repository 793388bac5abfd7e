//! Recognises our entries in a client's configuration by what they run, not by where the program
//! was installed.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::runner::without_runner;
use super::{NAME, quoted};
use ack_api::text::line;

/// The keys of an entry that say how to start the program. They are overwritten; every other
/// existing key belongs to the user.
pub const START_KEYS: [&str; 5] = ["type", "command", "cmd", "args", "bash"];
const MAX_SHOWN_CHARS: usize = 200;
/// The keys that reach a server over HTTP. Next to a command, they mean another server or are
/// invalid.
pub const HTTP_KEYS: &str = "url uri httpUrl serverUrl headers http_headers env_http_headers \
    bearer_token bearer_token_env_var";

/// The address of the server to which an entry connects over HTTP.
pub fn address(entry: &Value) -> Option<&str> {
    let keys = ["url", "uri", "httpUrl", "serverUrl"];
    keys.iter().find_map(|key| entry.get(*key)?.as_str())
}

/// Whether an entry starts this program.
pub fn is_entry(entry: &Value) -> bool {
    address(entry).is_none() && starts_server(&launch_words(entry))
}

/// What an entry does that runs another program or connects to a server over HTTP.
pub fn other_use(entry: &Value) -> Option<String> {
    if let Some(address) = address(entry) {
        return Some(format!("connects to `{}`", line(address, MAX_SHOWN_CHARS)));
    }
    let words = launch_words(entry);
    let program = words.first().filter(|_| !starts_server(&words))?;
    Some(format!("runs `{}`", line(program, MAX_SHOWN_CHARS)))
}

/// The words that start an entry's program. Some clients write them as a list, some as an object.
pub fn launch_words(entry: &Value) -> Vec<String> {
    let Some(command) = entry.get("command").or_else(|| entry.get("cmd")) else {
        return Vec::new();
    };
    let program = command.get("path").unwrap_or(command);
    let arguments = command.get("args").or_else(|| entry.get("args"));
    let listed = |value: &Value| match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    let all = [Some(program), arguments].into_iter().flatten().flat_map(listed);
    all.filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Whether words start this program, or one with another name and the arguments that only `connect`
/// writes.
fn starts_server(words: &[String]) -> bool {
    let Some((program, arguments)) = without_runner(words).split_first() else {
        return false;
    };
    let before: Vec<&String> = arguments.iter().take_while(|word| *word != "serve").collect();
    let is_flags = before.chunks(2).all(|pair| matches!(pair, [flag, _] if flag.starts_with("--")));
    let position = before.iter().any(|flag| *flag == "--root" || *flag == "--db");
    is_our_program(program) || (is_flags && position && before.len() < arguments.len())
}

/// Whether a path leads to a program with our name, with or without a version, or a word names our
/// package.
fn is_our_program(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.split(['@', '=']).next().unwrap_or_default();
    let is_version = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    name == NAME || name.strip_prefix("ack-memory-").is_some_and(is_version)
}

/// A shell command that runs one of our hooks: by this program, with any version in its name and in
/// any place, or by one with another name and the arguments that only `connect` writes.
static HOOK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let hook = r"hook\s(?:session-start|user-prompt|pre-tool-use|tool-failure)";
    let quoted = r#"['"](?:[^'"]*/)?ack-memory(?:-[^'"/]*\d[^'"/]*)?['"]"#;
    let plain = r"(?:^|[\s/])ack-memory(?:-\S*\d\S*)?(?:@\S+)?";
    let by_name = format!(r"(?:{quoted}|{plain})\s(?:[^;&|]*\s)?{hook}(?:[\s;]|$)");
    let by_arguments = format!(r"\s--(?:root|db)\s[^;&|]*\s{hook}\s[^;&|]*--client\s");
    Regex::new(&format!("{by_name}|{by_arguments}")).ok()
});

static ROOT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\s--root\s+(?:'([^']*)'|(\S+))").ok());

/// Whether a string in a list of permissions or servers names our server or its tools.
pub fn is_word(word: &str) -> bool {
    word == NAME || is_server(word) || word.starts_with("mcp__ack-memory__")
}

pub fn is_server(word: &str) -> bool {
    word == "mcp__ack-memory"
}

/// The rule that keeps Claude Code's own tools from writing below a folder. `Edit` stands for all
/// of them; a rule for `Write` is not looked at. `//` begins an absolute path. `None` for the home
/// folder and those above it, which contain everything.
pub fn write_rule(folder: &Path, home: &Path) -> Option<String> {
    match folder.strip_prefix(home) {
        _ if home.starts_with(folder) => None,
        Ok(below) => Some(format!("Edit(~/{}/**)", below.display())),
        Err(_) => Some(format!("Edit(/{}/**)", folder.display())),
    }
}

pub fn roots(settings: &Value) -> Vec<PathBuf> {
    let of_hook = |command: String| {
        let found = ROOT.as_ref()?.captures(&command)?;
        let root = found.get(1).or(found.get(2))?;
        Some(PathBuf::from(root.as_str()))
    };
    let hooks = handlers(settings).filter(|handler| is_hook(handler));
    hooks.flat_map(commands).filter_map(of_hook).collect()
}

pub fn is_write_rule(rule: &str, folders: &[PathBuf]) -> bool {
    let inside = rule.strip_prefix("Edit(").and_then(|rule| rule.strip_suffix("/**)"));
    let is_of = |folder: &PathBuf| match inside.and_then(|path| path.strip_prefix("~/")) {
        Some(below) => folder.ends_with(below),
        None => inside.and_then(|path| path.strip_prefix('/')) == folder.to_str(),
    };
    inside.is_some() && folders.iter().any(is_of)
}

pub fn is_hook(handler: &Value) -> bool {
    commands(handler).iter().any(|command| runs_hook(command))
}

fn runs_hook(command: &str) -> bool {
    HOOK.as_ref().is_some_and(|hook| hook.is_match(command))
}

/// The shell commands that an object runs. Those of a program with a list of arguments are put
/// together.
pub fn commands(handler: &Value) -> Vec<String> {
    let arguments = handler.get("args").and_then(Value::as_array).into_iter().flatten();
    let arguments = arguments.filter_map(Value::as_str);
    let arguments: String = arguments.map(|argument| format!(" {}", quoted(argument))).collect();
    let command = |key: &str| {
        let command = handler.get(key)?.as_str()?;
        let is_whole = arguments.is_empty();
        Some(if is_whole { command.to_owned() } else { quoted(command) + &arguments })
    };
    ["command", "bash"].into_iter().filter_map(command).collect()
}

/// The objects in settings that run a command of a hook, of every event.
pub fn handlers(settings: &Value) -> impl Iterator<Item = &Value> {
    let events = settings.get("hooks").and_then(Value::as_object).into_iter();
    let entries = events.flat_map(Map::values).filter_map(Value::as_array).flatten();
    entries.flat_map(handlers_of)
}

/// The objects in a hook entry that run a command: those in its own list, or the entry itself.
pub fn handlers_of(entry: &Value) -> Vec<&Value> {
    match entry.get("hooks").and_then(Value::as_array) {
        Some(inner) => inner.iter().collect(),
        None => vec![entry],
    }
}

pub fn calls_hook(settings: &Value, hook: &str) -> bool {
    handlers(settings).any(|handler| is_hook_called(handler, hook))
}

pub fn is_hook_called(handler: &Value, hook: &str) -> bool {
    let call = format!("hook {hook}");
    let mut commands = commands(handler).into_iter();
    commands.any(|command| runs_hook(&command) && command.contains(&call))
}

/// The enabled Claude Code plugin that contains the same server and hook, if any.
pub fn enabled_plugin(settings: &Value) -> Option<&str> {
    let plugins = settings.get("enabledPlugins").and_then(Value::as_object)?;
    let ours = |(name, enabled): &(&String, &Value)| {
        name.split('@').next() == Some(NAME) && !matches!(enabled, Value::Bool(false) | Value::Null)
    };
    plugins.iter().find(ours).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hook_is_recognised_by_its_command() {
        for ours in [
            "ack-memory hook session-start",
            "/usr/bin/ack-memory hook session-start --client codex",
            "/opt/x/ack-memory-0.2 --root /m hook user-prompt --client gemini",
            "'/Users/a b/bin/ack-memory' --root '/m y' --pin api hook session-start --client claude-code",
            "\"/opt/a b/ack-memory\" --db /m.db hook session-start --client cursor",
            "/home/a/.cargo/bin/am --root /m hook session-start --client claude-code",
            "cd /x && timeout 5 ack-memory hook user-prompt",
            "FOO=1 /a\\ b/ack-memory hook session-start; true",
            "ack-memory hook pre-tool-use --client codex",
            "npx -y ack-memory@0.2.0 --root /m hook session-start --client codex",
            "/home/a/.local/bin/uvx ack-memory hook session-start",
        ] {
            assert!(runs_hook(ours), "{ours}");
        }
        for other in [
            "icm hook session-start",
            "other hook session-start --client claude-code",
            "other --root /m hook session-start",
            "cd ~/src/ack-memory && claude-mem hook session-start",
            "ack-memory-viewer hook session-start",
            "ack-memory query hook",
            "echo 'ack-memory hook session-start'",
            "my-ack-memory hook session-start",
            "ack-memory hook-session-start",
        ] {
            assert!(!runs_hook(other), "{other}");
        }
    }

    #[test]
    fn an_entry_is_ours_if_it_starts_this_program() {
        for ours in [
            json!({ "command": "/usr/bin/ack-memory", "args": ["--root", "/m", "serve"] }),
            json!({ "command": "/bin/ack-memory-0.2", "args": ["serve"] }),
            json!({ "type": "local", "command": ["ack-memory", "serve"] }),
            json!({ "cmd": "ack-memory", "args": ["serve"] }),
            json!({ "command": { "path": "ack-memory", "args": ["serve"] } }),
            json!({ "command": "npx", "args": ["-y", "ack-memory", "--root", "/m", "serve"] }),
            json!({ "command": "npx", "args": ["-y", "ack-memory@0.2.0", "serve"] }),
            json!({ "command": "/home/a/.local/bin/uvx", "args": ["ack-memory", "serve"] }),
            json!({ "command": ["pipx", "run", "ack-memory", "serve"] }),
            json!({ "command": "/opt/am", "args": ["--db", "/m", "--pin", "a", "serve", "--surface", "x"] }),
        ] {
            assert!(is_entry(&ours) && other_use(&ours).is_none(), "{ours}");
        }
        let serve = ["serve"];
        for (other, does) in [
            (json!({ "url": "http://10.0.0.5/mcp" }), "connects to `http://10.0.0.5/mcp`"),
            (json!({ "command": NAME, "httpUrl": "http://x" }), "connects to `http://x`"),
            (json!({ "command": "other", "args": serve }), "runs `other`"),
            (json!({ "command": "npx", "args": ["-y", "x", "serve"] }), "runs `npx`"),
            (json!({ "command": "docker", "args": ["run", NAME, "serve"] }), "runs `docker`"),
            (json!({ "command": "a\nb", "args": serve }), "runs `a b`"),
        ] {
            assert!(!is_entry(&other));
            assert_eq!(other_use(&other).as_deref(), Some(does), "{other}");
        }
        let unknown = json!({ "env": {} });
        assert!(!is_entry(&unknown) && other_use(&unknown).is_none());
    }

    #[test]
    fn a_program_with_its_arguments_is_a_command_too() {
        let arguments = ["hook", "session-start"];
        let hook = |program: &str| json!({ "command": program, "args": arguments });
        assert!(is_hook(&hook("/a b/ack-memory")) && !is_hook(&hook("/a b/other")));
        let settings = json!({ "hooks": { "SessionStart": [{ "hooks": [hook("ack-memory")] }] } });
        assert!(calls_hook(&settings, "session-start"));
    }

    #[test]
    fn a_plugin_counts_while_it_is_enabled() {
        let on = json!({ "enabledPlugins": { "other@x": true, "ack-memory@team": true } });
        assert_eq!(enabled_plugin(&on), Some("ack-memory@team"));
        let off =
            json!({ "enabledPlugins": { "ack-memory@team": false, "ack-memory-x@team": true } });
        assert_eq!(enabled_plugin(&off), None);
    }
}
