//! What hosts send to a hook and what they accept from it, and nothing of what it means.
//!
//! Claude Code, Codex and Gemini CLI share one shape: `cwd` and `source` come in, `hookSpecificOutput` with
//! `additionalContext` goes out, and any other key on the way out is refused by Codex. Cursor names its events in camel case,
//! sends `workspace_roots`, and reads `additional_context`.

use serde_json::{Map, Value, json};

/// Longest path that is believed to be one, in bytes.
const LONGEST_PATH: usize = 4_096;

/// The programs whose hooks are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A session starts or goes on.
    SessionStart,
    /// A person has written a prompt.
    UserPrompt,
}

/// What the conversation holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nothing: a new session, or one that was emptied or condensed (`startup`, `clear`, `compact`).
    Fresh,
    /// Everything said before (`resume`, `fork`).
    Continued,
}

/// What came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The program that asks.
    pub host: Host,
    /// When it asks.
    pub moment: Moment,
    /// What the conversation holds.
    pub origin: Origin,
    /// The project's folder.
    pub folder: Option<String>,
    /// What the person wrote.
    pub prompt: Option<String>,
    /// The event's name, as it goes back.
    name: String,
}

/// What goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output(Value);

impl Output {
    /// The line to print.
    pub fn line(&self) -> String {
        self.0.to_string()
    }

    /// Its length in characters.
    pub fn characters(&self) -> usize {
        self.line().chars().count()
    }
}

impl Event {
    /// Reads what a host sent. `host` is the one that the command line names; where it names none, the shape tells.
    ///
    /// # Errors
    /// Why it is no event, in a few words. [`Event::unknown`] is what holds then.
    pub fn read(sent: &[u8], host: Option<Host>, moment: Moment) -> Result<Self, String> {
        let sent: Value = serde_json::from_slice(sent).map_err(|error| format!("standard input is no JSON: {error}"))?;
        let Value::Object(sent) = sent else {
            return Err("standard input is JSON, but no object".to_owned());
        };
        let text = |key: &str| sent.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let name = text("hook_event_name").unwrap_or_default();
        let host = host.unwrap_or_else(|| recognise(&sent, name));
        let continued = ["source", "trigger"].iter().find_map(|key| text(key)).is_some_and(|source| {
            let source = source.to_ascii_lowercase();
            source == "resume" || source == "fork"
        });
        Ok(Self {
            origin: if continued { Origin::Continued } else { Origin::Fresh },
            folder: folder(&sent),
            prompt: text("prompt").map(str::to_owned),
            ..Self::unknown(Some(host), moment)
        })
    }

    /// An event of which nothing is known but what the command line says.
    pub fn unknown(host: Option<Host>, moment: Moment) -> Self {
        let host = host.unwrap_or(Host::ClaudeCode);
        let name = match (moment, host) {
            (Moment::SessionStart, Host::Cursor) => "sessionStart",
            (Moment::SessionStart, _) => "SessionStart",
            (Moment::UserPrompt, Host::Cursor) => "beforeSubmitPrompt",
            (Moment::UserPrompt, Host::Gemini) => "BeforeAgent",
            (Moment::UserPrompt, _) => "UserPromptSubmit",
        };
        Self {
            host,
            moment,
            origin: Origin::Fresh,
            folder: None,
            prompt: None,
            name: name.to_owned(),
        }
    }

    /// The output that adds a text to the conversation.
    pub fn output(&self, text: &str) -> Output {
        Output(match self.host {
            Host::Cursor => json!({ "additional_context": text }),
            _ => json!({ "hookSpecificOutput": { "hookEventName": self.name, "additionalContext": text } }),
        })
    }

    /// The output that adds nothing; `None` where that is no output at all.
    pub fn silence(&self) -> Option<Output> {
        match (self.host, self.moment) {
            (Host::Cursor, Moment::SessionStart) => Some(Output(json!({}))),
            (Host::Cursor, Moment::UserPrompt) => Some(Output(json!({ "continue": true }))),
            _ => None,
        }
    }
}

fn recognise(sent: &Map<String, Value>, name: &str) -> Host {
    let camel = name.starts_with(|c: char| c.is_ascii_lowercase());
    if camel || sent.contains_key("workspace_roots") || sent.contains_key("cursor_version") {
        Host::Cursor
    } else if name == "BeforeAgent" {
        Host::Gemini
    } else {
        Host::ClaudeCode
    }
}

/// The project's folder: `cwd`, or the first workspace folder. What is no path is no folder.
fn folder(sent: &Map<String, Value>) -> Option<String> {
    let roots = sent
        .get("workspace_roots")
        .and_then(Value::as_array)
        .and_then(|roots| roots.first());
    [roots, sent.get("cwd")]
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|path| !path.trim().is_empty() && path.len() <= LONGEST_PATH && !path.contains('\0'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sent: &Value) -> Event {
        Event::read(sent.to_string().as_bytes(), None, Moment::SessionStart).unwrap()
    }

    #[test]
    fn hosts_are_told_apart_by_what_they_send() {
        let claude = read(&json!({ "hook_event_name": "SessionStart", "cwd": "/p", "source": "startup" }));
        assert_eq!((claude.host, claude.folder.as_deref()), (Host::ClaudeCode, Some("/p")));
        let cursor = read(&json!({ "hook_event_name": "sessionStart", "workspace_roots": ["/w", "/v"] }));
        assert_eq!((cursor.host, cursor.folder.as_deref()), (Host::Cursor, Some("/w")));
        let prompt = json!({ "hook_event_name": "BeforeAgent", "cwd": "/p", "prompt": "why" }).to_string();
        let gemini = Event::read(prompt.as_bytes(), None, Moment::UserPrompt).unwrap();
        assert_eq!((gemini.host, gemini.prompt.as_deref()), (Host::Gemini, Some("why")));
    }

    #[test]
    fn only_a_conversation_that_goes_on_is_told_less() {
        for (source, expected) in [
            ("startup", Origin::Fresh),
            ("clear", Origin::Fresh),
            ("compact", Origin::Fresh),
            ("resume", Origin::Continued),
            ("fork", Origin::Continued),
            ("something new", Origin::Fresh),
        ] {
            assert_eq!(read(&json!({ "source": source })).origin, expected, "{source}");
        }
    }

    #[test]
    fn a_folder_that_is_no_path_is_none() {
        for cwd in [json!(5), json!(""), json!("a\0b"), json!("x".repeat(5_000)), json!(null)] {
            assert_eq!(read(&json!({ "cwd": cwd })).folder, None);
        }
    }
}
