//! A memory in the user's editor, as TOML.

use ack_api::decision::Edit;
use ack_api::text;

use super::terminal::problem;
use crate::cli::config_file::{editor, open_editor};
use crate::cli::error::CliError;
use crate::cli::output::write_err;
use crate::cli::prompt;
use ack_desk::curate::Candidate;

/// Opens a memory in the user's editor. Returns what was changed, if anything was.
pub fn edited(candidate: &Candidate) -> Result<Option<Edit>, CliError> {
    let before = fields(candidate);
    let after = in_editor(&before)?;
    Ok(after.and_then(|after| changes(&before, after)))
}

/// Opens the fields of a memory in the user's editor. `None` if they are unchanged, or cannot be used
/// and the person does not want to edit them again.
pub fn in_editor(before: &Edit) -> Result<Option<Edit>, CliError> {
    let io = CliError::io("edit", "a temporary file");
    let file =
        tempfile::Builder::new().prefix("ack-memory-").suffix(".toml").tempfile().map_err(&io)?;
    let text = toml::to_string_pretty(before).unwrap_or_default();
    std::fs::write(file.path(), &text).map_err(&io)?;
    loop {
        let opened = editor().and_then(|editor| open_editor(file.path(), &editor));
        match opened.map(|()| std::fs::read_to_string(file.path())) {
            Ok(Ok(edited)) if edited == text => return Ok(None),
            Ok(Ok(edited)) => match parse(&edited) {
                Ok(after) => return Ok(Some(after)),
                Err(problem) => write_err(&format!("{problem}\n")),
            },
            Ok(Err(error)) => {
                write_err(&format!("what the editor saved cannot be read: {error}\n"));
            }
            Err(error) => write_err(&problem(&error)),
        }
        if !prompt::confirm("Edit again, with what you wrote?") {
            return Ok(None);
        }
        if !file.path().exists() {
            std::fs::write(file.path(), &text).map_err(&io)?;
        }
    }
}

fn fields(candidate: &Candidate) -> Edit {
    let memory = candidate.memory();
    Edit {
        title: Some(memory.title.clone()),
        subtitle: Some(memory.subtitle.clone().unwrap_or_default()),
        facts: Some(memory.facts.clone()),
        concepts: Some(memory.concepts.clone()),
        files: Some(memory.files.clone()),
        narrative: Some(memory.narrative.clone().unwrap_or_default()),
        kind: Some(memory.kind.clone().unwrap_or_default()),
        project: Some(memory.project.clone().unwrap_or_default()),
    }
}

/// What differs; `None` if nothing does.
fn changes(before: &Edit, after: Edit) -> Option<Edit> {
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
    Some(new).filter(|new| *new != Edit::default())
}

fn parse(text: &str) -> Result<Edit, String> {
    let edit: Edit = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(0, |before| before.matches('\n').count()) + 1;
        let reason = text::line(error.message(), 200);
        format!("line {line} of the edited memory: {reason}; keep the keys that were there")
    })?;
    match &edit.title {
        Some(title) if text::line(title, 200).trim().is_empty() => {
            Err("the title is empty".to_owned())
        }
        _ => Ok(edit),
    }
}
