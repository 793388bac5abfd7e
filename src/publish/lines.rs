//! A scope as one file of JSON lines, in the schema of `import`, sorted by id.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ack_api::memory::Memory;
use ack_sys::files;

use super::{PublishError, PublishItem, PublishOptions, PublishPlan, Step};
use ack_api::import_line::ImportLine;

/// The largest file that is replaced.
const MAX_BYTES: u64 = 512 << 20;

/// Plans the file, which is named after the scope. An existing file is replaced only if it has
/// exactly the form that is written here.
pub(super) fn plan(
    plan: &mut PublishPlan,
    memories: &[Memory],
    options: PublishOptions,
) -> Result<(), PublishError> {
    let path = PathBuf::from(file_name(&plan.scope));
    let full = plan.folder.join(&path);
    let before = match full.symlink_metadata() {
        Err(_) => None,
        Ok(metadata) if metadata.is_file() => {
            let text = files::read_text(&full, MAX_BYTES).map_err(|source| PublishError::Io {
                action: "read",
                path: full.clone(),
                source,
            })?;
            Some(text)
        }
        Ok(_) => return Err(PublishError::Foreign { path: full }),
    };
    let known = match before
        .as_deref()
        .map(|text| lines_by_id(text, options.overwrite))
    {
        Some(None) => return Err(PublishError::EditedLines { path: full }),
        known => known.flatten().unwrap_or_default(),
    };
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for memory in memories {
        lines.insert(memory.id.clone(), line_of(memory));
    }
    let item = |id: &String| PublishItem {
        path: path.clone(),
        id: id.clone(),
    };
    for (id, line) in &lines {
        match known.get(id) {
            None => plan.added.push(item(id)),
            Some(known) if known == line => plan.unchanged += 1,
            Some(_) => plan.changed.push(item(id)),
        }
    }
    plan.withdrawn = known
        .keys()
        .filter(|id| !lines.contains_key(*id))
        .map(item)
        .collect();
    let after: String = lines.into_values().collect();
    let after = (!after.is_empty()).then_some(after);
    if after != before {
        plan.steps.push(Step {
            path,
            before,
            after,
        });
    }
    Ok(())
}

/// The lines of a file by id; `None` if it does not have the form that we write.
fn lines_by_id(text: &str, any: bool) -> Option<BTreeMap<String, String>> {
    let mut lines = BTreeMap::new();
    let mut last = String::new();
    for line in text.split_inclusive('\n') {
        let parsed: ImportLine = serde_json::from_str(line).ok()?;
        let id = parsed.id.clone()?;
        let is_ours = text_of(&parsed) == line && last < id;
        if !is_ours && !any {
            return None;
        }
        last.clone_from(&id);
        lines.insert(id, line.to_owned());
    }
    Some(lines)
}

/// A file's name, safe on every file system.
fn file_name(scope: &str) -> String {
    let safe: String = scope
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '-'
            }
        })
        .collect();
    format!("memories-{safe}.jsonl")
}

fn line_of(memory: &Memory) -> String {
    text_of(&ImportLine {
        id: Some(memory.id.clone()),
        project: memory.project.clone(),
        date: memory.date.clone(),
        kind: memory.kind.clone(),
        title: memory.title.clone(),
        subtitle: memory.subtitle.clone(),
        facts: memory.facts.clone(),
        concepts: memory.concepts.clone(),
        files: memory.files.clone(),
        narrative: memory.narrative.clone(),
        status: Some(memory.status.as_str().to_owned()),
        confidence: memory.confidence,
        reviewed_at: memory.reviewed_at.map(ack_api::time::to_rfc3339),
        reviewed_by: memory.reviewed_by.clone(),
        created_at: memory.created_at.map(ack_api::time::to_rfc3339),
        ..ImportLine::default()
    })
}

fn text_of(line: &ImportLine) -> String {
    serde_json::to_string(line).unwrap_or_default() + "\n"
}
