//! The files that a tool call is about to edit, for the tools of Claude Code, Codex and Copilot
//! CLI.

use serde_json::Value;

const MAX_FILES: usize = 8;
const MAX_PATH_BYTES: usize = 4_096;
/// Tools that edit one file, which an argument names.
const FILE_EDITING_TOOLS: [&str; 6] =
    ["Edit", "MultiEdit", "NotebookEdit", "Write", "create", "edit"];
const PATH_ARGUMENTS: [&str; 3] = ["file_path", "notebook_path", "path"];
const PATCH_PREFIXES: [&str; 4] =
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The files that a call is about to edit; empty if the tool edits none.
pub fn files(tool: &str, input: &Value) -> Vec<String> {
    // Some versions of Copilot CLI send the arguments as JSON text.
    let parsed = input.as_str().and_then(|text| serde_json::from_str(text).ok());
    let input = parsed.as_ref().unwrap_or(input);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            assert_eq!(files(tool, &input), expected, "{tool} {input}");
        }
        for (tool, input) in [
            ("view", json!({ "path": "/p/a.rs" })),
            ("Read", json!({ "file_path": "/p/a.rs" })),
            ("Bash", json!({ "command": "rm a.rs" })),
            ("Edit", json!({ "file_path": 5 })),
            ("Edit", json!(null)),
            ("Write", json!({ "file_path": "a\0b" })),
        ] {
            assert!(files(tool, &input).is_empty(), "{tool} {input}");
        }
    }
}
