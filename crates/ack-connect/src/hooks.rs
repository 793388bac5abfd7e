//! The hooks that clients can call, and their entries.

use serde_json::{Value, json};

use super::{Client, Hooks, Launch, NAME, Part};

/// Seconds a host waits for a hook. A hook takes a fraction of a second.
const HOOK_SECONDS: u32 = 10;
/// The tool of Claude Code and Codex that runs commands, and that of Gemini CLI and Qwen Code.
const SHELL_TOOL: &str = "Bash";
const GEMINI_SHELL_TOOL: &str = "run_shell_command";
/// The tools of Claude Code and Codex that edit files.
const EDITING_TOOLS: &str = "Edit|MultiEdit|Write|NotebookEdit|apply_patch";

impl Client {
    /// Which hooks it can call to any effect. [`Client::no_hook`] says why it calls no others.
    pub const fn hooks(self) -> Hooks {
        let (session_start, user_prompt) = match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::Copilot | Self::Droid => {
                (true, true)
            }
            // Qwen Code also calls its prompt hook when no person wrote a prompt.
            Self::Cursor | Self::Qwen => (true, false),
            _ => (false, false),
        };
        Hooks {
            session_start,
            user_prompt,
            pre_tool_use: matches!(self, Self::ClaudeCode | Self::Codex | Self::Copilot),
            tool_failure: matches!(
                self,
                Self::ClaudeCode | Self::Codex | Self::Copilot | Self::Gemini | Self::Qwen
            ),
        }
    }

    /// Why a hook that somebody asks for does nothing, or not everything.
    pub fn no_hook(self, asked: Hooks) -> Vec<String> {
        let able = self.hooks();
        let mut why = Vec::new();
        if asked.user_prompt {
            why.extend(
                match self {
                    Self::Cursor => Some("does nothing: Cursor adds no text to a prompt."),
                    Self::Qwen => Some(
                        "does nothing: Qwen Code also calls this hook when nobody wrote a prompt.",
                    ),
                    Self::Droid => {
                        Some("does nothing in `droid exec`, which does not call this hook.")
                    }
                    _ if !able.user_prompt => Some("does nothing: this client has no such hook."),
                    _ => None,
                }
                .map(|why| format!("--prompt-hook {why}")),
            );
        }
        if asked.pre_tool_use && !able.pre_tool_use {
            let why_not = match self {
                Self::Gemini => "Gemini CLI reads no text before a tool call.",
                Self::Droid => "Droid drops text before a tool call.",
                _ if able.session_start => "it is not known that this client reads text there.",
                _ => "this client has no such hook.",
            };
            why.push(format!("--edit-hook does nothing: {why_not}"));
        }
        if asked.tool_failure && !able.tool_failure {
            why.push(
                "--failure-hook does nothing: it is not known that this client reads text there."
                    .to_owned(),
            );
        }
        why
    }

    /// The entries of a hook, one for each event that calls it.
    pub fn hook(self, hook: &str, launch: &Launch) -> Vec<Part> {
        let command = launch.hook(hook, self);
        let entry = |event: &&'static str| Part::Entry {
            path: vec!["hooks", event],
            value: self.hook_entry(hook, &command),
        };
        self.events(hook).iter().map(entry).collect()
    }

    fn events(self, hook: &str) -> &'static [&'static str] {
        match (self, hook) {
            (Self::Cursor, _) | (Self::Copilot, "session-start") => &["sessionStart"],
            (Self::Copilot, "pre-tool-use") => &["preToolUse"],
            (Self::Copilot, "tool-failure") => &["postToolUse"],
            (Self::Codex, "tool-failure") => &["PostToolUse"],
            (Self::Gemini, "tool-failure") => &["AfterTool"],
            (_, "tool-failure") => &["PostToolUseFailure"],
            (Self::Copilot, _) => &["userPromptSubmitted"],
            // A subagent does not see what its session started with. Qwen Code has the event too, but
            // none of its own agents reads the text.
            (Self::ClaudeCode | Self::Codex, "session-start") => &["SessionStart", "SubagentStart"],
            (_, "session-start") => &["SessionStart"],
            (_, "pre-tool-use") => &["PreToolUse"],
            (Self::Gemini, _) => &["BeforeAgent"],
            _ => &["UserPromptSubmit"],
        }
    }

    fn hook_entry(self, hook: &str, command: &str) -> Value {
        match self {
            Self::Cursor => json!({ "command": command }),
            Self::Copilot => {
                json!({ "type": "command", "bash": command, "timeoutSec": HOOK_SECONDS })
            }
            // These clients count in milliseconds.
            Self::Gemini | Self::Qwen => {
                let handler = json!({
                    "type": "command", "name": NAME, "command": command,
                    "timeout": HOOK_SECONDS * 1_000,
                });
                match hook {
                    "tool-failure" => json!({ "matcher": GEMINI_SHELL_TOOL, "hooks": [handler] }),
                    _ => json!({ "hooks": [handler] }),
                }
            }
            _ => {
                let mut handler =
                    json!({ "type": "command", "command": command, "timeout": HOOK_SECONDS });
                // Codex shows it when it asks for trust.
                if let (Self::Codex, Some(members)) = (self, handler.as_object_mut()) {
                    let message = format!("{NAME}: {}", status_message(hook));
                    members.insert("statusMessage".to_owned(), message.into());
                }
                match hook {
                    "pre-tool-use" => json!({ "matcher": EDITING_TOOLS, "hooks": [handler] }),
                    "tool-failure" => json!({ "matcher": SHELL_TOOL, "hooks": [handler] }),
                    _ => json!({ "hooks": [handler] }),
                }
            }
        }
    }
}

/// What a hook does, in a few words.
fn status_message(hook: &str) -> &'static str {
    match hook {
        "session-start" => "memories for this session",
        "pre-tool-use" => "memories about the file",
        "tool-failure" => "the memory about this error",
        _ => "memories near this prompt",
    }
}
