//! The memory that explains why a command failed: once per memory and session, and only if it is
//! certain.

use super::wire::{Event, Output};
use super::{QUOTATION_NOTICE, in_full, kind_of_note, write_memory};
use crate::toolset::Toolset;
use ack_api::text;
use ack_service::context::failure::FailureRequest;
use ack_service::{Error, Service};

const MAX_TOKENS: usize = 200;
/// The least detailed level of [`write_memory`].
const MAX_LEVEL: u32 = 5;

/// The memory that explains why a command failed, in the host's format; `None` if none certainly
/// does. `is_new` says whether the session has not seen a memory yet, by its scope and id.
///
/// # Errors
/// There is no scope, or no readable store.
pub fn tool_failure(
    service: &Service,
    toolset: Option<&Toolset>,
    event: &Event,
    is_new: impl Fn(&str) -> bool,
) -> Result<Option<Output>, Error> {
    let Some(failed) = &event.failed_command else {
        return Ok(None);
    };
    let brief = service.about_failure(&FailureRequest {
        project_path: event.folder.clone(),
        command: failed.command.clone(),
        exit_code: failed.exit_code,
        is_known: failed.is_known,
        output: failed.output.clone(),
    })?;
    let Some(memory) = brief.memory else {
        return Ok(None);
    };
    if !is_new(&format!("{}\0{}", memory.scope, memory.id)) {
        return Ok(None);
    }
    let note = kind_of_note(brief.unreviewed);
    let compose = |level: u32| {
        let mut out = format!("ack-memory: {note} about this error. {QUOTATION_NOTICE}\n\n");
        write_memory(&mut out, &memory, false, true, level);
        out.push_str(&in_full(toolset, false));
        text::untagged(&out).into_owned()
    };
    let mut texts = (0..=MAX_LEVEL).map(compose);
    let text = texts.find(|text| text::tokens(text) <= MAX_TOKENS);
    Ok(text.map(|text| event.output(&text)))
}
