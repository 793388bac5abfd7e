//! Files with instructions for agents. Hosts load them themselves, so they are never memories.

use std::path::Path;

const INSTRUCTIONS: [&str; 10] = [
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "AGENTS.override.md",
    "GEMINI.md",
    "QWEN.md",
    "SKILL.md",
    ".cursorrules",
    ".windsurfrules",
    "copilot-instructions.md",
];
/// Folders with rules, relative to the top of a project.
const RULE_FOLDERS: [&str; 6] = [
    ".claude/rules",
    ".clinerules",
    ".cursor/rules",
    ".github/instructions",
    ".roo/rules",
    ".windsurf/rules",
];

/// Case counts: a note about agents may be called `agents.md`.
pub fn is_instructions(path: &Path) -> bool {
    path.file_name().is_some_and(|name| INSTRUCTIONS.iter().any(|it| name == *it))
}

pub fn is_rule_folder(path: &Path) -> bool {
    let path = path.canonicalize();
    path.is_ok_and(|path| {
        path.ancestors().any(|folder| RULE_FOLDERS.iter().any(|rules| folder.ends_with(rules)))
    })
}

/// Says that these files are left out; `None` if there are none.
pub fn left_out(files: &[String]) -> Option<String> {
    let (are, they) = match files.len() {
        0 => return None,
        1 => ("is", "it is not a memory"),
        _ => ("are", "they are not memories"),
    };
    Some(format!(
        "{} {are} left out: hosts load such instructions for agents themselves, so {they}",
        ack_api::text::list(files)
    ))
}
