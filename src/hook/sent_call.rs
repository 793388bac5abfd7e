//! What hosts tell a hook about a tool call: the files that it is about to edit, or a shell command
//! that failed.
//!
//! For failed commands, Claude Code and Qwen Code have an event of their own, with the output in
//! `error`. The others call the hook after every command: Codex with the output alone, Gemini CLI
//! and Copilot CLI with the exit code in the text for the model.

use ack_service::context::failure::FailedCommand;
use serde_json::{Map, Value};
const MAX_FILES: usize = 8;
const MAX_PATH_BYTES: usize = 4_096;
/// Tools that edit one file, which an argument names.
const FILE_EDITING_TOOLS: [&str; 6] =
    ["Edit", "MultiEdit", "NotebookEdit", "Write", "create", "edit"];
const PATH_ARGUMENTS: [&str; 3] = ["file_path", "notebook_path", "path"];
const PATCH_PREFIXES: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
const SHELLS: [&str; 6] =
    ["Bash", "bash", "powershell", "run_shell_command", "shell", "local_shell"];

/// How lines begin that a host adds to an output.
const HOST_LINES: [&str; 9] = [
    "<shellId:",
    "Background PIDs:",
    "Command:",
    "Directory:",
    "Error: (none)",
    "Exit Code:",
    "Exit code ",
    "Process Group PGID:",
    "Signal:",
];

/// The files that a call is about to edit; empty if the tool edits none.
pub fn edited_files(tool: &str, input: &Value) -> Vec<String> {
    let input = &parsed(input);
    let mut files: Vec<String> = if FILE_EDITING_TOOLS.contains(&tool) {
        let by_argument = PATH_ARGUMENTS.iter().filter_map(|name| input.get(*name)?.as_str());
        by_argument.map(str::to_owned).collect()
    } else if tool == "apply_patch" {
        texts(input).into_iter().flat_map(patched_files).collect()
    } else {
        Vec::new()
    };
    files.retain(|path| {
        !path.trim().is_empty() && path.len() <= MAX_PATH_BYTES && !path.contains('\0')
    });
    files.dedup();
    files.truncate(MAX_FILES);
    files
}

/// The strings in a value: the value itself, or the items of an array.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Object(members) => {
            members.values().filter(|member| !member.is_object()).flat_map(texts).collect()
        }
        _ => Vec::new(),
    }
}

fn patched_files(patch: &str) -> impl Iterator<Item = String> + '_ {
    let paths = patch.lines().filter_map(|line| {
        let mut starts = PATCH_PREFIXES.iter();
        starts.find_map(|start| line.trim_start().strip_prefix(start))
    });
    paths.map(|path| path.trim().to_owned())
}

/// The command that an event is about; `None` if it ran none, or it succeeded.
pub fn failed_command(sent: &Map<String, Value>) -> Option<FailedCommand> {
    let member = |names: [&str; 2]| names.iter().find_map(|name| sent.get(*name));
    let tool = member(["tool_name", "toolName"])?.as_str()?;
    let is_interrupted = sent.get("is_interrupt") == Some(&Value::Bool(true));
    if !SHELLS.contains(&tool) || is_interrupted {
        return None;
    }
    let output = output(sent)?;
    let exit_code = exit_code(&output);
    let is_own_event = sent.contains_key("error");
    // Codex does not say how a command ended.
    let is_text_alone = sent.get("tool_response").is_some_and(Value::is_string);
    let failed = match exit_code {
        Some(code) => code != 0,
        None => is_own_event || is_text_alone,
    };
    failed.then(|| FailedCommand {
        command: member(["tool_input", "toolArgs"]).map_or_else(String::new, command),
        exit_code,
        is_known: exit_code.is_some() || is_own_event,
        output: without_host_lines(&output),
    })
}

fn output(sent: &Map<String, Value>) -> Option<String> {
    let result = |name: &str, member: &str| sent.get(name)?.get(member);
    let copilot = || result("toolResult", "textResultForLlm");
    let gemini = || result("tool_response", "llmContent");
    let text = sent.get("error").or_else(copilot).or_else(gemini);
    text.or_else(|| sent.get("tool_response"))?.as_str().map(str::to_owned)
}

fn without_host_lines(output: &str) -> String {
    let is_host_line = |line: &&str| HOST_LINES.iter().any(|start| line.starts_with(start));
    let lines: Vec<&str> = output.lines().filter(|line| !is_host_line(line)).collect();
    let output = lines.join("\n");
    output.strip_prefix("Output: ").unwrap_or(&output).to_owned()
}

fn command(arguments: &Value) -> String {
    match parsed(arguments).get("command") {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            words.join(" ")
        }
        _ => String::new(),
    }
}

/// The arguments of a call. Some versions of Copilot CLI send them as JSON text.
fn parsed(arguments: &Value) -> Value {
    let parsed = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| arguments.clone())
}

/// The exit code that a host writes into the output: `Exit code 137` in the first line,
/// `Exit Code: 3` in a block, or `<shellId: 0 completed with exit code 3>` in the last line.
fn exit_code(output: &str) -> Option<i64> {
    let of_line = |line: &str| {
        let line = line.trim().to_ascii_lowercase();
        let rest = match line.strip_prefix("exit code") {
            Some(rest) => rest.trim_start_matches(':'),
            None if line.starts_with("<shellid:") => line.split("exit code").nth(1)?,
            None => return None,
        };
        rest.trim().trim_end_matches('>').parse().ok()
    };
    let first = output.lines().next().and_then(of_line);
    first.or_else(|| output.lines().rev().take(8).find_map(of_line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_command_that_failed_and_was_not_interrupted_counts() {
        let failed = |sent: Value| failed_command(sent.as_object().unwrap());
        let input = json!({ "command": ["make", "all"] });
        let error = "Output: no rule\nError: (none)\nExit Code: 3\nSignal: (none)";
        let found = failed(json!({ "tool_name": "Bash", "tool_input": input, "error": error }));
        let expected = FailedCommand {
            command: "make all".to_owned(),
            exit_code: Some(3),
            is_known: true,
            output: "no rule".to_owned(),
        };
        assert_eq!(found, Some(expected));
        let ended = "no rule\n<shellId: 0 completed with exit code 0>";
        for sent in [
            json!({ "toolName": "bash", "toolResult": { "textResultForLlm": ended } }),
            json!({ "tool_name": "Bash", "tool_response": { "llmContent": "Output: done" } }),
            json!({ "tool_name": "Edit", "error": "not found" }),
            json!({ "tool_name": "Bash", "error": "x", "is_interrupt": true }),
            json!({ "tool_name": "Bash", "tool_response": 5 }),
            json!({}),
        ] {
            assert_eq!(failed(sent.clone()), None, "{sent}");
        }
    }

    #[test]
    fn a_call_names_the_files_that_it_edits() {
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n\
                     @@\n-x\n+*** Add File: no\n*** Add File: c.md\n*** End Patch";
        for (tool, input, expected) in [
            ("Edit", json!({ "file_path": "/p/a.rs", "old_string": "x" }), &["/p/a.rs"][..]),
            ("Write", json!({ "file_path": "/p/a.rs", "content": "x" }), &["/p/a.rs"]),
            ("NotebookEdit", json!({ "notebook_path": "/p/a.ipynb" }), &["/p/a.ipynb"]),
            ("apply_patch", json!({ "command": patch }), &["src/a.rs", "src/b.rs", "c.md"]),
            (
                "apply_patch",
                json!({ "command": ["apply_patch", patch] }),
                &["src/a.rs", "src/b.rs", "c.md"],
            ),
            ("apply_patch", json!({ "input": patch }), &["src/a.rs", "src/b.rs", "c.md"]),
            ("create", json!({ "path": "/p/a.rs", "file_text": "x" }), &["/p/a.rs"]),
            ("edit", json!("{\"path\":\"/p/a.rs\"}"), &["/p/a.rs"]),
        ] {
            assert_eq!(edited_files(tool, &input), expected, "{tool} {input}");
        }
        for (tool, input) in [
            ("view", json!({ "path": "/p/a.rs" })),
            ("Read", json!({ "file_path": "/p/a.rs" })),
            ("Bash", json!({ "command": "rm a.rs" })),
            ("Edit", json!({ "file_path": 5 })),
            ("Edit", json!(null)),
            ("Write", json!({ "file_path": "a\0b" })),
        ] {
            assert!(edited_files(tool, &input).is_empty(), "{tool} {input}");
        }
    }
}
