//! Memories about a file before it is edited: once per file and session, and only certain matches.

use super::wire::{Event, Host, Output};
use super::{QUOTATION_NOTICE, in_full, kind_of_notes, write_memory};
use crate::toolset::Toolset;
use ack_api::number::count;
use ack_api::text;
use ack_service::context::about_files::FilesRequest;
use ack_service::{Error, Service};

const MAX_MEMORIES: usize = 3;
const MAX_TOKENS: usize = 400;
/// The least detailed level of [`write_memory`].
const MAX_LEVEL: u32 = 5;

/// The memories about the files that a tool is about to edit, in the host's format; `None` if there
/// is nothing to say. It neither blocks nor permits the call. Hosts that accept no text here get
/// nothing: Gemini CLI 0.61 reads none before a tool call, Droid 0.215 drops it, and for Cursor
/// this is unknown.
///
/// # Errors
/// There is no scope, or no readable store.
pub fn pre_tool_use(
    service: &Service,
    toolset: Option<&Toolset>,
    event: &Event,
    files: &[String],
) -> Result<Option<Output>, Error> {
    if files.is_empty() || !takes_text(event.host) {
        return Ok(None);
    }
    let brief = service.about_files(&FilesRequest {
        project_path: event.folder.clone(),
        files: files.to_vec(),
        max: MAX_MEMORIES,
    })?;
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
    let notes = kind_of_notes(brief.unreviewed);
    let compose = |max_memories: usize, level: u32| {
        let mut out = format!("ack-memory: {notes} about {names}. {QUOTATION_NOTICE}\n\n");
        for memory in brief.memories.iter().take(max_memories) {
            write_memory(&mut out, memory, false, false, level);
        }
        out.push_str(&in_full(toolset, false));
        text::untagged(&out).into_owned()
    };
    let counts = (1..=brief.memories.len()).rev();
    let all = counts.flat_map(|count| (0..=2).map(move |level| (count, level)));
    // A title can always be cut.
    let shorter = (3..=MAX_LEVEL).filter(|_| !brief.memories.is_empty());
    let mut texts = all.chain(shorter.map(|level| (1, level)));
    let fits = |text: &String| text::tokens(text) <= MAX_TOKENS;
    let text = texts.find_map(|(count, level)| Some(compose(count, level)).filter(fits));
    Ok(text.map(|text| event.output(&text)))
}

/// Whether a host shows its model a text before a tool call.
pub const fn takes_text(host: Host) -> bool {
    matches!(host, Host::ClaudeCode | Host::Codex | Host::Copilot)
}
