//! A memory in the user's editor, as TOML.

use std::path::Path;

use ack_api::decision::Edit;
use ack_api::text;

use crate::cli::error::CliError;
use crate::curate::Candidate;

/// Opens a memory in the user's editor. `None` if nothing was changed.
pub fn edited(candidate: &Candidate) -> Result<Option<Edit>, CliError> {
    let memory = candidate.memory();
    let before = Edit {
        title: Some(memory.title.clone()),
        subtitle: Some(memory.subtitle.clone().unwrap_or_default()),
        facts: Some(memory.facts.clone()),
        concepts: Some(memory.concepts.clone()),
        files: Some(memory.files.clone()),
        narrative: Some(memory.narrative.clone().unwrap_or_default()),
        kind: Some(memory.kind.clone().unwrap_or_default()),
        project: Some(memory.project.clone().unwrap_or_default()),
    };
    let io = |source| CliError::Io {
        action: "edit",
        path: "a temporary file".into(),
        source,
    };
    let file = tempfile::Builder::new()
        .prefix("ack-memory-")
        .suffix(".toml")
        .tempfile()
        .map_err(io)?;
    let text = toml::to_string_pretty(&before).unwrap_or_default();
    std::fs::write(file.path(), text).map_err(io)?;
    open_editor(file.path()).map_err(io)?;
    let text = std::fs::read_to_string(file.path()).map_err(io)?;
    let after: Edit = toml::from_str(&text).map_err(|error| {
        let said = text::line(&error.to_string(), 300);
        CliError::invalid(
            "the edited memory",
            said,
            "TOML with the keys that were there",
        )
    })?;
    fn changed<T: PartialEq>(before: &Option<T>, after: Option<T>) -> Option<T> {
        after.filter(|after| before.as_ref() != Some(after))
    }
    let new = Edit {
        title: changed(&before.title, after.title),
        subtitle: changed(&before.subtitle, after.subtitle),
        facts: changed(&before.facts, after.facts),
        concepts: changed(&before.concepts, after.concepts),
        files: changed(&before.files, after.files),
        narrative: changed(&before.narrative, after.narrative),
        kind: changed(&before.kind, after.kind),
        project: changed(&before.project, after.project),
    };
    Ok(Some(new).filter(|new| *new != Edit::default()))
}

/// Runs `$VISUAL` or `$EDITOR`, which may have arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "a person asked for their own editor"
)]
fn open_editor(file: &Path) -> std::io::Result<()> {
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|variable| std::env::var_os(variable)?.into_string().ok())
        .find(|editor| !editor.trim().is_empty())
        .unwrap_or_else(|| "vi".to_owned());
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "editor"])
        .arg(file)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!(
            "the editor ended with {status}"
        )))
    }
}
