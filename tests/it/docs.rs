//! The README names everything there is, and its commands can be typed.

use std::collections::BTreeSet;
use std::path::Path;

use ack_api::{ErrorCode, NoteKind};
use ack_memory::cli::args::Cli;
use ack_memory::config::{self, ConfigFile, ENVIRONMENT};
use ack_memory::scope::manifest::{self, Manifest};
use clap::{CommandFactory, Parser};
use serde_json::Value;

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("README.md: {error}"))
}

/// Whether a word stands in a text, not as a part of a longer one.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[track_caller]
fn check(what: &str, words: impl IntoIterator<Item = String>) {
    let readme = readme();
    let missing: Vec<String> = words.into_iter().filter(|word| !names(&readme, word)).collect();
    assert!(missing.is_empty(), "README.md does not name {what}: {}", missing.join(", "));
}

/// The fenced blocks of the README: language and lines.
fn blocks() -> Vec<(String, Vec<String>)> {
    let readme = readme();
    let mut blocks = Vec::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in readme.lines() {
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => open = Some((language.trim().to_owned(), Vec::new())),
            (Some(_), Some(block)) => blocks.push(block),
            (None, Some(mut block)) => {
                block.1.push(line.to_owned());
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block of README.md is never closed");
    blocks
}

#[test]
fn the_readme_names_every_tool() {
    check("these tools", ack_memory::mcp::TOOLS.map(str::to_owned));
}

#[test]
fn the_readme_names_every_command_and_every_flag() {
    fn walk(command: &clap::Command, prefix: &str, commands: &mut Vec<String>, flags: &mut BTreeSet<String>) {
        for argument in command.get_arguments() {
            flags.extend(
                argument
                    .get_long()
                    .filter(|long| !["help", "version"].contains(long))
                    .map(|long| format!("--{long}")),
            );
        }
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let name = format!("{prefix}{}", inner.get_name());
            walk(inner, &format!("{name} "), commands, flags);
            commands.push(name);
        }
    }
    let (mut commands, mut flags) = (Vec::new(), BTreeSet::new());
    let mut cli = Cli::command();
    cli.build();
    walk(&cli, "", &mut commands, &mut flags);
    assert!(commands.contains(&"scopes add".to_owned()), "{commands:?}");
    check("these commands", commands);
    check(
        "these settings of every command",
        Cli::command()
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .filter(|long| !["help", "version"].contains(long))
            .map(|long| format!("--{long}")),
    );
}

#[test]
fn the_readme_names_every_environment_variable() {
    check("these variables", ENVIRONMENT.map(|(name, _)| name.to_owned()));
}

#[test]
fn the_readme_names_every_key_of_the_config_file_and_of_a_manifest() {
    check("these keys of config.toml", config::KEYS.map(str::to_owned));
    check("these keys of scope.toml", manifest::KEYS.map(str::to_owned));
}

#[test]
fn the_readme_names_every_error_code() {
    let codes = ErrorCode::ALL.map(|code| code.to_string());
    check("these error codes", codes);
}

#[test]
fn the_readme_names_every_kind_of_note() {
    let schema = schemars::schema_for!(NoteKind).to_value();
    let kinds: Vec<String> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|kind| kind["const"].as_str())
        .map(str::to_owned)
        .collect();
    assert!(kinds.contains(&"hidden_by_status".to_owned()), "{schema}");
    check("these kinds of notes", kinds);
}

#[test]
fn every_command_in_the_readme_can_be_typed() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (language, lines) in blocks() {
        if ["json", "toml", "sql", "rust", "jsonc"].contains(&language.as_str()) {
            continue;
        }
        for line in joined(&lines) {
            for words in commands(&line) {
                tried += 1;
                if let Err(error) = Cli::try_parse_from(&words)
                    && error.use_stderr()
                {
                    wrong.push(format!("{line}\n{error}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 5, "README.md shows only {tried} commands");
}

/// Lines that end in a backslash go on in the next one.
fn joined(lines: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut going_on = false;
    for line in lines {
        let (text, more) = match line.trim_end().strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line.as_str(), false),
        };
        match whole.last_mut().filter(|_| going_on) {
            Some(last) => *last += text,
            None => whole.push(text.to_owned()),
        }
        going_on = more;
    }
    whole
}

/// The calls of `ack-memory` in a shell line, as words, with something in the place of placeholders.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    let line = line.split(" # ").next().unwrap_or_default();
    line.split(" | ")
        .flat_map(|part| part.split(" && "))
        .filter_map(|part| {
            let words = words(part);
            let called = |at: usize| {
                // Before it stand at most variables, or another program's words up to `--`.
                let before = words.get(..at).unwrap_or_default();
                before.iter().all(|word| word.contains('=')) || before.last().is_some_and(|word| word == "--")
            };
            let named = |word: &String| word == "ack-memory" || word.ends_with("/ack-memory");
            let start = (0..words.len()).find(|at| named(&words[*at]) && called(*at))?;
            let words = words[start..].iter().take_while(|word| ![">", "<", "2>"].contains(&word.as_str()));
            Some(words.filter_map(|word| placeholder(word)).collect())
        })
        .collect()
}

/// A word with what a person would type in the place of a placeholder; none for an ellipsis.
fn placeholder(word: &str) -> Option<String> {
    let word = word.trim_matches(['[', ']']);
    match word {
        "…" | "..." => None,
        "N" => Some("5".to_owned()),
        "DAY" | "YYYY-MM-DD" => Some("2026-01-31".to_owned()),
        "SHELL" | "<shell>" => Some("bash".to_owned()),
        _ => Some(word.split('|').next().unwrap_or_default().to_owned()),
    }
}

/// The words of a shell line; quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn shell_lines_are_read_as_a_shell_would() {
    let read = |line: &str| commands(line).into_iter().map(|words| words.join("/")).collect::<Vec<_>>();
    assert_eq!(
        read("ack-memory query \"exit code 137\" | head"),
        ["ack-memory/query/exit code 137"]
    );
    assert_eq!(read("$ claude mcp add ack-memory -- ack-memory serve"), ["ack-memory/serve"]);
    assert_eq!(read("ACK_MEM_SCOPE=x ack-memory query … # why"), ["ack-memory/query"]);
    assert_eq!(read("cargo install ack-memory"), Vec::<String>::new());
    assert_eq!(
        read("ack-memory demo ./x && ack-memory --root ./x query [--json] -n N"),
        ["ack-memory/demo/./x", "ack-memory/--root/./x/query/--json/-n/5"]
    );
}

#[test]
fn the_toml_in_the_readme_is_a_config_file_or_a_manifest_or_a_clients() {
    for (_, lines) in blocks().into_iter().filter(|(language, _)| language == "toml") {
        let text = lines.join("\n");
        let value: toml::Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let fits = toml::from_str::<ConfigFile>(&text).is_ok() || toml::from_str::<Manifest>(&text).is_ok();
        assert!(fits || value.contains_key("mcp_servers"), "{text}");
    }
}

#[test]
fn the_json_in_the_readme_is_json() {
    for (_, lines) in blocks().into_iter().filter(|(language, _)| language == "json") {
        let text = lines.join("\n");
        let parsed = serde_json::from_str::<Value>(&text).map(|_| ()).or_else(|error| {
            // Or JSON lines.
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines
                .map(serde_json::from_str::<Value>)
                .try_for_each(|line| line.map(|_| ()))
                .map_err(|_| error)
        });
        assert!(parsed.is_ok(), "{parsed:?}\n{text}");
    }
}
