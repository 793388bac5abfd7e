//! The hooks that clients can call, and their entries.

use serde_json::{Value, json};

use super::{Client, Launch, NAME, Part};

/// Seconds a host waits for a hook. A hook takes a fraction of a second.
const HOOK_SECONDS: u32 = 10;
/// The tool of Claude Code and Codex that runs commands, and that of Gemini CLI and Qwen Code.
const SHELL_TOOL: &str = "Bash";
const GEMINI_SHELL_TOOL: &str = "run_shell_command";
/// The tools of Claude Code and Codex that edit files.
const EDITING_TOOLS: &str = "Edit|MultiEdit|Write|NotebookEdit|apply_patch";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    pub name: &'static str,
    flag: &'static str,
    adds: &'static str,
}

impl Hook {
    pub const SESSION_START: Self =
        Self { name: "session-start", flag: "", adds: "memories for this session" };
    pub const USER_PROMPT: Self =
        Self { name: "user-prompt", flag: "--prompt-hook", adds: "memories near this prompt" };
    pub const PRE_TOOL_USE: Self =
        Self { name: "pre-tool-use", flag: "--edit-hook", adds: "memories about the file" };
    pub const TOOL_FAILURE: Self =
        Self { name: "tool-failure", flag: "--failure-hook", adds: "the memory about this error" };
    pub const ALL: [Self; 4] =
        [Self::SESSION_START, Self::USER_PROMPT, Self::PRE_TOOL_USE, Self::TOOL_FAILURE];
}

impl Client {
    /// The requested hooks that have no effect in this client, or not the whole effect, each with the
    /// reason. The session start hook has no flag, so it is never among them.
    pub fn no_hook(self, asked: &[Hook]) -> Vec<String> {
        let row = self.row();
        let usual = match row.events.is_empty() {
            true => "does nothing: this client has no such hook.",
            false => "does nothing: it is not known that this client reads text there.",
        };
        let asked = asked.iter().filter(|hook| !hook.flag.is_empty());
        let why = asked.filter_map(|hook| {
            let usual = (!row.events.contains_key(hook.name)).then_some(usual);
            let why = row.why_not.get(hook.name).map(String::as_str).or(usual)?;
            Some(format!("{} {why}", hook.flag))
        });
        why.collect()
    }

    /// Whether it has an event for failed commands alone, so that no other one starts a process.
    pub fn tells_failures(self) -> bool {
        let events = self.row().events.get(Hook::TOOL_FAILURE.name);
        events.is_some_and(|events| events == &["PostToolUseFailure"])
    }

    pub fn hook(self, hook: Hook, launch: &Launch) -> Vec<Part> {
        let command = launch.hook(hook.name, self);
        let entry = |event: &'static String| Part::Entry {
            path: vec!["hooks", event],
            value: self.hook_entry(hook, &command),
        };
        let events = self.row().events.get(hook.name);
        events.into_iter().flatten().map(entry).collect()
    }

    fn hook_entry(self, hook: Hook, command: &str) -> Value {
        let counts_milliseconds = matches!(self, Self::Gemini | Self::Qwen);
        let handler = match self {
            Self::Cursor => return json!({ "command": command }),
            Self::Copilot => {
                return json!({ "type": "command", "bash": command, "timeoutSec": HOOK_SECONDS });
            }
            _ if counts_milliseconds => json!({
                "type": "command", "name": NAME, "command": command,
                "timeout": HOOK_SECONDS * 1_000,
            }),
            // Codex shows the message when it asks for trust.
            Self::Codex => json!({
                "type": "command", "command": command, "timeout": HOOK_SECONDS,
                "statusMessage": format!("{NAME}: {}", hook.adds),
            }),
            _ => json!({ "type": "command", "command": command, "timeout": HOOK_SECONDS }),
        };
        let matcher = match hook {
            Hook::TOOL_FAILURE if counts_milliseconds => GEMINI_SHELL_TOOL,
            Hook::TOOL_FAILURE => SHELL_TOOL,
            Hook::PRE_TOOL_USE => EDITING_TOOLS,
            _ => return json!({ "hooks": [handler] }),
        };
        json!({ "matcher": matcher, "hooks": [handler] })
    }
}
