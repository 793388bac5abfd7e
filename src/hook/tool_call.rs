//! Memories about a tool call, only certain ones: about a file before it is edited, once per file
//! and session, and about the error of a command that failed, once per memory and session.

use super::wire::{Event, Host, Output};
use super::{QUOTATION_NOTICE, in_full, kind_of_note, kind_of_notes, write_memory};
use crate::toolset::Toolset;
use ack_api::number::count;
use ack_api::{MemoryHit, text};
use ack_service::{Error, Service};

const MAX_MEMORIES: usize = 3;
const MAX_FILE_TOKENS: usize = 400;
const MAX_FAILURE_TOKENS: usize = 200;
/// The least detailed level of [`write_memory`].
const MAX_LEVEL: u32 = 5;

/// The memories about the files that a tool is about to edit, in the host's format; `None` if there
/// is nothing to say. It neither blocks nor permits the call. Hosts that accept no text here get
/// nothing: Gemini CLI 0.61 reads none before a tool call, Droid 0.215 drops it, and for Cursor
/// this is unknown.
pub fn pre_tool_use(
    service: &Service,
    toolset: Option<&Toolset>,
    event: &Event,
    files: &[String],
) -> Result<Option<Output>, Error> {
    if files.is_empty() || !takes_text(event.host) {
        return Ok(None);
    }
    let certain = service.about_files(event.folder.as_deref(), files, MAX_MEMORIES)?;
    let folder = event.folder.as_deref().unwrap_or_default();
    let inside = |path: &String| {
        let inside = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        text::line(inside.unwrap_or(path), 100)
    };
    let names: Vec<String> = files.iter().map(inside).collect();
    let names = match names.as_slice() {
        [first, others @ ..] if !others.is_empty() => {
            format!("{first} and {}", count(others.len() as u64, "more file"))
        }
        names => names.concat(),
    };
    let about = format!("{} about {names}", kind_of_notes(certain.unreviewed));
    let text = fitting_text(&about, toolset, &certain.memories, false, MAX_FILE_TOKENS);
    Ok(text.map(|text| event.output(&text)))
}

/// The memory that explains why a command failed, in the host's format; `None` if none certainly
/// does. `is_new` says whether the session has not seen a memory yet, by its scope and id.
pub fn tool_failure(
    service: &Service,
    toolset: Option<&Toolset>,
    event: &Event,
    is_new: impl Fn(&str) -> bool,
) -> Result<Option<Output>, Error> {
    let Some(failed) = &event.failed_command else {
        return Ok(None);
    };
    let mut certain = service.about_failure(event.folder.as_deref(), failed)?;
    certain.memories.retain(|memory| is_new(&format!("{}\0{}", memory.scope, memory.id)));
    let about = format!("{} about this error", kind_of_note(certain.unreviewed));
    let text = fitting_text(&about, toolset, &certain.memories, true, MAX_FAILURE_TOKENS);
    Ok(text.map(|text| event.output(&text)))
}

/// The text with as many memories, as detailed, as fit; `None` if none does.
fn fitting_text(
    about: &str,
    toolset: Option<&Toolset>,
    memories: &[MemoryHit],
    elsewhere: bool,
    max_tokens: usize,
) -> Option<String> {
    let counts = (1..=memories.len()).rev();
    let all = counts.flat_map(|count| (0..=2).map(move |level| (count, level)));
    // A title can always be cut.
    let shorter = (3..=MAX_LEVEL).filter(|_| !memories.is_empty()).map(|level| (1, level));
    let mut texts = all.chain(shorter).map(|(count, level)| {
        let mut out = format!("ack-memory: {about}. {QUOTATION_NOTICE}\n\n");
        for memory in memories.iter().take(count) {
            write_memory(&mut out, memory, false, elsewhere, level);
        }
        out.push_str(&in_full(toolset, false));
        text::untagged(&out).into_owned()
    });
    texts.find(|text| text::tokens(text) <= max_tokens)
}

pub const fn takes_text(host: Host) -> bool {
    matches!(host, Host::ClaudeCode | Host::Codex | Host::Copilot)
}
