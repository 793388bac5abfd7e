//! The formats that hosts send to a hook and accept from it.
//!
//! Claude Code, Codex and Gemini CLI share one format: `cwd` and `source` come in;
//! `hookSpecificOutput` with `additionalContext` goes out, plus `systemMessage` for the user. Codex
//! rejects an output with an unknown key. Gemini CLI and its derivatives also send a `timestamp`.
//! Cursor names its events in camel case, sends `workspace_roots`, and reads `additional_context`.
//! Copilot CLI names no event, sends `sessionId`, `toolName` and `toolArgs`, and reads only
//! `additionalContext`.

use serde_json::{Map, Value, json};
use strum::IntoStaticStr;

use super::sent_call::{edited_files, failed_command};
use ack_api::text;
use ack_service::context::failure::FailedCommand;

const MAX_PATH_BYTES: usize = 4_096;
/// The events whose output repeats their name.
const KNOWN_EVENTS: &str = "SessionStart SubagentStart UserPromptSubmit BeforeAgent PreToolUse \
    PostToolUse PostToolUseFailure AfterTool";
const MAX_SESSION_BYTES: usize = 500;

/// The programs whose hooks are supported, by their names on the command line. Qwen Code uses Gemini
/// CLI's format, and Factory's Droid reads Claude Code's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Host {
    #[default]
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Copilot,
    Qwen,
    Droid,
}

impl Host {
    /// Whether a resumed conversation still contains the text from its start. Other hosts begin
    /// with an empty history, or replace the old text with the new one.
    const fn keeps_history(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex)
    }
}

/// When a hook runs, with what it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum HookEvent {
    /// Print the memories for a new session
    #[default]
    SessionStart,
    /// Print memories that closely match a prompt
    UserPrompt,
    /// Print memories about the files that a tool is about to edit, once per file and session
    PreToolUse,
    /// Print the memory that explains why a command failed, once per session
    ToolFailure,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionOrigin {
    /// None of our text: a new session, one that was cleared or compacted (`startup`, `clear`,
    /// `compact`), or one whose host forgets our text.
    #[default]
    Fresh,
    /// Our earlier text (`resume`, `fork`).
    Continued,
    /// None, but it is a subagent's.
    Subagent,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub host: Host,
    pub moment: HookEvent,
    /// The program that sends such input. Cursor also runs the hooks of Claude Code.
    pub sender: Host,
    pub origin: SessionOrigin,
    /// Whether the session begins now, rather than being cleared, compacted or resumed (`startup`,
    /// in Copilot CLI `new`).
    pub is_first: bool,
    pub folder: Option<String>,
    /// The further folders of the host's workspace. One of them may be the project's.
    pub other_folders: Vec<String>,
    pub prompt: Option<String>,
    pub session: Option<String>,
    pub files: Vec<String>,
    pub failed_command: Option<FailedCommand>,
    pub agent: Option<String>,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output(Value);

impl Output {
    pub fn line(&self) -> String {
        self.0.to_string()
    }

    pub fn characters(&self) -> usize {
        self.line().chars().count()
    }

    pub fn text(&self) -> Option<&str> {
        let (hook, context) = ("hookSpecificOutput", "additionalContext");
        let text = self.0.get(hook).unwrap_or(&self.0).get(context);
        text.or_else(|| self.0.get("additional_context"))?.as_str()
    }

    /// The line that the user sees.
    pub fn message(&self) -> Option<&str> {
        self.0.get("systemMessage")?.as_str()
    }
}

impl Event {
    /// Parses the input. `host` comes from the command line; if it is missing, the host is guessed
    /// from the input's shape. If it is not an event, use [`Event::unknown`].
    pub fn read(sent: &[u8], host: Option<Host>, moment: HookEvent) -> Result<Self, String> {
        // Some shells begin what they pipe with a byte order mark.
        let sent = sent.strip_prefix(b"\xef\xbb\xbf").unwrap_or(sent);
        let sent: Value = serde_json::from_slice(sent)
            .map_err(|error| format!("standard input is not valid JSON: {error}"))?;
        let Value::Object(sent) = sent else {
            return Err("standard input is JSON, but not an object".to_owned());
        };
        let text = |key: &str| {
            sent.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        };
        let name = text("hook_event_name").unwrap_or_default();
        let sender = recognise(&sent, name);
        let host = host.unwrap_or(sender);
        let source = text("source").or_else(|| text("trigger"));
        let source = source.unwrap_or_default().to_ascii_lowercase();
        let continued = ["resume", "fork"].contains(&source.as_str());
        let is_subagent = name == "SubagentStart";
        let is_known = KNOWN_EVENTS.split(' ').any(|known| known == name);
        let unknown = Self::unknown(Some(host), moment);
        let mut folders = folders(&sent).into_iter();
        let tool = text("tool_name").or_else(|| text("toolName"));
        let input = sent.get("tool_input").or_else(|| sent.get("toolArgs"));
        Ok(Self {
            sender,
            origin: if is_subagent {
                SessionOrigin::Subagent
            } else if continued && host.keeps_history() {
                SessionOrigin::Continued
            } else {
                SessionOrigin::Fresh
            },
            is_first: !is_subagent && ["", "startup", "new"].contains(&source.as_str()),
            folder: folders.next(),
            other_folders: folders.collect(),
            prompt: text("prompt").map(|prompt| without_context(prompt).to_owned()),
            // Copilot CLI and some versions of Droid use camel case.
            session: text("session_id")
                .or_else(|| text("sessionId"))
                .map(|session| text::cut(session, MAX_SESSION_BYTES).0.into_owned()),
            files: tool.zip(input).map(|(tool, it)| edited_files(tool, it)).unwrap_or_default(),
            failed_command: failed_command(&sent),
            agent: text("agent_id").map(str::to_owned),
            name: if is_known { name.to_owned() } else { unknown.name.clone() },
            ..unknown
        })
    }

    pub fn unknown(host: Option<Host>, moment: HookEvent) -> Self {
        let host = host.unwrap_or_default();
        let name = match (moment, host) {
            (HookEvent::SessionStart, Host::Cursor | Host::Copilot) => "sessionStart",
            (HookEvent::UserPrompt, Host::Copilot) => "userPromptSubmitted",
            (HookEvent::PreToolUse, Host::Copilot) => "preToolUse",
            (HookEvent::ToolFailure, Host::Copilot) => "postToolUse",
            (HookEvent::ToolFailure, Host::Codex) => "PostToolUse",
            (HookEvent::ToolFailure, Host::Gemini) => "AfterTool",
            (HookEvent::ToolFailure, _) => "PostToolUseFailure",
            (HookEvent::SessionStart, _) => "SessionStart",
            (HookEvent::UserPrompt, Host::Cursor) => "beforeSubmitPrompt",
            (HookEvent::UserPrompt, Host::Gemini) => "BeforeAgent",
            (HookEvent::UserPrompt, _) => "UserPromptSubmit",
            (HookEvent::PreToolUse, _) => "PreToolUse",
        };
        Self {
            host,
            moment,
            sender: host,
            is_first: true,
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub fn output(&self, text: &str) -> Output {
        Output(match self.host {
            Host::Cursor => json!({ "additional_context": text }),
            Host::Copilot => json!({ "additionalContext": text }),
            _ => {
                json!({ "hookSpecificOutput": { "hookEventName": self.name, "additionalContext": text } })
            }
        })
    }

    /// Adds a line that the user sees and the model does not; `None` if there is no output. Cursor
    /// and Copilot CLI cannot show one. Checked in the packages of Claude Code 2.1.330, Codex 0.169
    /// and Gemini CLI 0.61, and in the documentation of Qwen Code.
    pub fn with_message(&self, output: Option<Output>, message: &str) -> Option<Output> {
        if matches!(self.host, Host::Cursor | Host::Copilot) {
            return output;
        }
        let mut value = output.map_or_else(|| json!({}), |output| output.0);
        if let Some(members) = value.as_object_mut() {
            members.insert("systemMessage".to_owned(), json!(message));
        }
        Some(Output(value))
    }

    /// The output that adds nothing; `None` if the host expects no output at all.
    pub fn empty_output(&self) -> Option<Output> {
        match (self.host, self.moment) {
            (Host::Cursor, HookEvent::SessionStart) => Some(Output(json!({}))),
            (Host::Cursor, HookEvent::UserPrompt) => Some(Output(json!({ "continue": true }))),
            _ => None,
        }
    }
}

fn recognise(sent: &Map<String, Value>, name: &str) -> Host {
    let camel = name.starts_with(|c: char| c.is_ascii_lowercase());
    if name.is_empty() && sent.contains_key("sessionId") {
        Host::Copilot
    } else if camel || sent.contains_key("workspace_roots") || sent.contains_key("cursor_version") {
        Host::Cursor
    } else if name == "BeforeAgent" || sent.get("timestamp").is_some_and(Value::is_string) {
        Host::Gemini
    } else {
        Host::ClaudeCode
    }
}

/// The prompt without the hook text that Gemini CLI puts in front when it runs without a terminal.
fn without_context(prompt: &str) -> &str {
    let mut rest = prompt.trim_start();
    while let Some(inside) = rest.strip_prefix("<hook_context>") {
        // Without an end tag, there is nothing else.
        rest = inside.split_once("</hook_context>").map_or("", |(_, after)| after.trim_start());
    }
    rest
}

/// The folders of the workspace and `cwd`, each once. Ignores a value that is not a path.
fn folders(sent: &Map<String, Value>) -> Vec<String> {
    let roots = sent.get("workspace_roots").and_then(Value::as_array);
    let paths = roots.into_iter().flatten().chain(sent.get("cwd"));
    let mut folders: Vec<String> = Vec::new();
    for path in paths.filter_map(Value::as_str) {
        let is_path = !path.trim().is_empty() && !path.contains('\0');
        if is_path && path.len() <= MAX_PATH_BYTES && !folders.iter().any(|known| known == path) {
            folders.push(path.to_owned());
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &Value) -> Event {
        Event::read(sent.to_string().as_bytes(), None, HookEvent::SessionStart).unwrap()
    }

    #[test]
    fn hosts_are_recognised_by_what_they_send() {
        let check = |sent: Value, host: Host, folder: Option<&str>| {
            let event = read(&sent);
            assert_eq!((event.host, event.folder.as_deref()), (host, folder), "{sent}");
        };
        let claude = json!({ "hook_event_name": "SessionStart", "cwd": "/p", "source": "startup" });
        let cursor = json!({ "hook_event_name": "sessionStart", "workspace_roots": ["/w", "/v"] });
        let time =
            json!({ "hook_event_name": "SessionStart", "timestamp": "2026-11-22T10:00:00Z" });
        let number = json!({ "sessionId": "s", "timestamp": 1_790_000_000_000_i64, "cwd": 5 });
        check(claude, Host::ClaudeCode, Some("/p"));
        check(cursor, Host::Cursor, Some("/w"));
        check(json!({ "hook_event_name": "BeforeAgent", "cwd": "/p" }), Host::Gemini, Some("/p"));
        check(time, Host::Gemini, None);
        check(number, Host::Copilot, None);
        for cwd in ["", "a\0b", &"x".repeat(5_000)] {
            check(json!({ "cwd": cwd }), Host::ClaudeCode, None);
        }
        let marked = b"\xef\xbb\xbf{\"cwd\":\"/p\"}";
        let event = Event::read(marked, None, HookEvent::SessionStart).unwrap();
        assert_eq!(event.folder.as_deref(), Some("/p"));
    }

    #[test]
    fn hook_text_is_removed_from_a_prompt() {
        let twice = "<hook_context>a</hook_context> <hook_context>b</hook_context>\nwhy";
        assert_eq!(without_context(twice), "why");
        assert_eq!(without_context("<hook_context>never closed, why"), "");
        let inside = "what does <hook_context>x</hook_context> mean";
        assert_eq!(without_context(inside), inside);
    }
}
