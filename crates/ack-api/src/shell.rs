//! How a person at a shell reads a hint: with commands and flags.

use std::path::Path;

use serde_json::Value;

use crate::{Given, Reader, Tool};

const FLAGS: [(&str, &str); 32] = [
    ("query", "QUERY"),
    ("tags", "--tag"),
    ("match_tags", "--any-tag"),
    ("project", "--project"),
    ("scope", "--scope"),
    ("status", "--status"),
    ("limit", "--limit"),
    ("type", "--type"),
    ("files", "--file"),
    ("since", "--since"),
    ("until", "--until"),
    ("session", "--session"),
    ("like", "--like"),
    ("mode", "--mode"),
    ("order", "--oldest"),
    ("detail", "--long"),
    ("max_tokens", "--max-tokens"),
    ("cursor", "--cursor"),
    ("explain", "--explain"),
    ("expect", "--expect"),
    ("id", "ID"),
    ("ids", "ID"),
    ("include", "--include"),
    ("before", "--before"),
    ("after", "--after"),
    ("timeline_within", "--timeline-within"),
    ("depth", "--depth"),
    ("kind", "--kind"),
    ("include_cross_project", "--own-only"),
    ("max_memories", "--limit"),
    ("project_path", "-C"),
    ("focus", "FOCUS"),
];

#[derive(Debug, Clone, Copy)]
pub struct Shell {
    pub command: fn(&str) -> String,
}

impl Shell {
    pub const PLAIN: Self = Self { command: |command| format!("ack-memory {command}") };
}

const fn command(tool: Tool) -> &'static str {
    match tool {
        Tool::GetContext => "context",
        Tool::GetMemory => "get",
        Tool::ListScopes => "scopes",
        Tool::QueryMemories => "query",
    }
}

pub fn flag(argument: &str) -> Option<&'static str> {
    let mut flags = FLAGS.iter();
    flags.find(|(known, _)| *known == argument).map(|(_, flag)| *flag)
}

/// Quotes a word for the system's shell, if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,~".contains(c);
    // The shell expands a tilde at the start of a word.
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('~') {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

fn with_value(argument: &str, value: Option<&Value>) -> Option<String> {
    let flag = flag(argument)?;
    Some(match value {
        Some(Value::String(value)) => format!("{flag} {value}"),
        Some(value) => format!("{flag} {value}"),
        None => flag.to_owned(),
    })
}

impl Reader for Shell {
    fn is_agent(&self) -> bool {
        false
    }

    fn tool(&self, tool: Tool) -> Option<String> {
        self.call(tool, &[])
    }

    fn call(&self, tool: Tool, arguments: &[Given]) -> Option<String> {
        let mut line = command(tool).to_owned();
        for given in arguments {
            line = format!("{line} {}", with_value(given.argument, given.value.as_ref())?);
        }
        Some(format!("`{}`", self.command(&line)))
    }

    fn argument(&self, name: &str, value: Option<&Value>) -> Option<String> {
        Some(format!("`{}`", with_value(name, value)?))
    }

    fn next_page(&self) -> Option<String> {
        Some(format!("`{}`", self.command("query --next")))
    }

    fn command(&self, command: &str) -> String {
        (self.command)(command)
    }
}
