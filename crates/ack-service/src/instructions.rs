//! What a project's instruction files say about a waiting memory: much the same, or the opposite.
//!
//! Hosts load `CLAUDE.md`, `AGENTS.md` and rules into every session themselves, so these are never
//! served as memories. A curator sees where one of them already says what a memory says, or
//! contradicts it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ack_api::memory::Memory;
use ack_api::{InstructionConflict, InstructionEntry, RelationKind, text};
use ack_compare::{Profile, relate};
use ack_store::folder::instructions::{INSTRUCTIONS, RULE_FOLDERS};
use ack_sys::files;

use crate::scope::Scope;
use crate::scope::resolve::Current;

/// Folders with a file of [`INSTRUCTIONS`], relative to the top of the project.
const INSTRUCTION_FOLDERS: [&str; 3] = ["", ".claude", ".github"];
const MAX_FILES: usize = 64;
const MAX_BYTES: u64 = 256 << 10;
const MAX_PASSAGES: usize = 2_000;
const MAX_LINES: usize = 40;
const MAX_SHOWN: usize = 3;
/// Minimum share of a memory's words in a passage that is much like it.
const MIN_COVERED: f32 = 0.85;
/// Minimum share of one text's words in the other one, to be compared.
const MIN_SHARED: f32 = 0.3;
const STATEMENT_CAP: usize = 300;

#[derive(Debug, Default)]
pub struct Instructions {
    passages: Vec<Passage>,
}

/// A paragraph or a list item.
#[derive(Debug)]
struct Passage {
    file: String,
    /// Its first line, from 1.
    line: usize,
    text: String,
    profile: Profile,
}

impl Instructions {
    /// Reads the files of the current project. Leaves out what cannot be read.
    pub fn of(current: &Current) -> Self {
        let mut instructions = Self::default();
        if current.folder.as_os_str().is_empty() {
            return instructions;
        }
        let top = &current.top;
        for path in paths(top, &current.folder) {
            let name = path.strip_prefix(top).unwrap_or(&path);
            let name = text::line(&name.to_string_lossy(), 200);
            if let Ok(content) = files::read_text(&path, MAX_BYTES) {
                instructions.read(&name, &content);
            }
        }
        instructions
    }

    fn read(&mut self, file: &str, content: &str) {
        let body = without_header(content);
        let above = content.lines().count() - body.lines().count();
        let mut lines: Vec<&str> = Vec::new();
        let mut in_code = false;
        for (number, line) in (above + 1..).zip(body.lines()) {
            let trimmed = line.trim();
            in_code ^= trimmed.starts_with("```") || trimmed.starts_with("~~~");
            let begins = ["- ", "* ", "+ ", "#"];
            let begins = begins.iter().any(|mark| trimmed.starts_with(mark)) || trimmed.is_empty();
            if (begins && !in_code) || lines.len() == MAX_LINES {
                self.add(file, number - lines.len(), &mut lines);
            }
            if in_code || !(trimmed.is_empty() || trimmed.starts_with('#')) {
                lines.push(line);
            }
        }
        let end = content.lines().count() + 1;
        self.add(file, end - lines.len(), &mut lines);
    }

    fn add(&mut self, file: &str, line: usize, lines: &mut Vec<&str>) {
        let text = std::mem::take(lines).join("\n");
        if !text.trim().is_empty() && self.passages.len() < MAX_PASSAGES {
            self.passages.push(Passage {
                file: file.to_owned(),
                line,
                profile: Profile::of_texts(&[&text]),
                text,
            });
        }
    }

    /// What they say about a memory of a scope; nothing if it belongs to another project.
    pub fn about(
        &self,
        memory: &Memory,
        scope: &Scope,
        current: &Current,
    ) -> Vec<InstructionEntry> {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        let rows = current.rows_in(scope);
        if self.passages.is_empty()
            || !rows.contain(&name(&memory.project), &name(&memory.project_alias))
        {
            return Vec::new();
        }
        self.related(&Profile::of(memory))
    }

    fn related(&self, profile: &Profile) -> Vec<InstructionEntry> {
        let mut found: Vec<InstructionEntry> = Vec::new();
        for passage in &self.passages {
            let covered = profile.covered_by(&passage.profile);
            if covered.max(passage.profile.covered_by(profile)) < MIN_SHARED {
                continue;
            }
            let relation = relate(profile, &passage.profile);
            let is_shown = match relation.kind {
                RelationKind::Same | RelationKind::Contradicts => true,
                _ => covered >= MIN_COVERED,
            };
            if !is_shown {
                continue;
            }
            let statement = |text: &str| text::line(text, STATEMENT_CAP);
            found.push(InstructionEntry {
                file: passage.file.clone(),
                line: passage.line as u64,
                relation: relation.kind,
                says: statement(&passage.text),
                conflict: relation.conflict.map(|conflict| InstructionConflict {
                    waiting: statement(&conflict.newer),
                    instruction: statement(&conflict.older),
                    approved: statement(&conflict.older),
                }),
            });
        }
        found.sort_by_key(|entry| entry.relation != RelationKind::Contradicts);
        found.truncate(MAX_SHOWN);
        found
    }
}

/// The instruction files of a project, each once.
fn paths(top: &Path, folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder_name in INSTRUCTION_FOLDERS
        .iter()
        .map(|folder_name| top.join(folder_name))
        .chain([folder.to_owned()])
    {
        paths.extend(INSTRUCTIONS.iter().map(|name| folder_name.join(name)));
    }
    for rules in RULE_FOLDERS {
        let entries = fs::read_dir(top.join(rules))
            .into_iter()
            .flatten()
            .flatten();
        let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        inside.retain(|path| {
            let end = path.extension().and_then(|end| end.to_str());
            matches!(end, Some("md" | "mdc"))
        });
        inside.sort();
        paths.extend(inside);
    }
    // `AGENTS.md` is often a link to `CLAUDE.md`. A link that leads out of the project is not
    // followed.
    let mut real_paths = HashSet::new();
    let real_top = fs::canonicalize(top).unwrap_or_else(|_| top.to_owned());
    paths.retain(|path| {
        let real = fs::canonicalize(path);
        real.is_ok_and(|real| real.starts_with(&real_top) && real_paths.insert(real))
    });
    paths.truncate(MAX_FILES);
    paths
}

/// A text without its front matter.
fn without_header(content: &str) -> &str {
    let content = content.trim_start_matches('\u{feff}');
    let rest = content.strip_prefix("---\n");
    let body = rest.and_then(|rest| rest.split_once("\n---\n"));
    body.map_or(content, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instructions() -> Instructions {
        let mut instructions = Instructions::default();
        let content = "---\nglobs: '*'\n---\n# Rules\n\nUse pnpm, never npm.\n\n## Ports\n\n\
                       - The ledger API listens on port 8080.\n- Metrics are on port 9102.\n";
        instructions.read("CLAUDE.md", content);
        instructions
    }

    fn found_lines(title: &str) -> Vec<(u64, RelationKind)> {
        let found = instructions().related(&Profile::of_texts(&[title]));
        found
            .iter()
            .map(|entry| (entry.line, entry.relation))
            .collect()
    }

    #[test]
    fn a_repeated_statement_is_found_with_its_line() {
        assert_eq!(
            found_lines("Use pnpm, never npm"),
            [(6, RelationKind::Same)]
        );
    }

    #[test]
    fn a_contradiction_is_found_with_its_line() {
        let found = found_lines("The ledger API listens on port 8081");
        assert_eq!(found, [(10, RelationKind::Contradicts)]);
    }

    #[test]
    fn a_mere_resemblance_is_not_reported() {
        assert_eq!(
            found_lines("The ledger API answers 429 beyond 300 requests a minute"),
            []
        );
    }
}
