//! What a new session would start with, for a person.

use jiff::Timestamp;
use serde_json::json;

use super::surface;
use crate::cli::args::Global;
use crate::cli::error::CliError;
use crate::cli::output::{write_json, write_plain};
use crate::cli::progress;
use crate::cli::render::{count, grouped};
use crate::cli::service::CloseOnDrop;
use crate::cli::settings::config;
use crate::hook::wire::{Event, HookEvent, Host, Output};
use crate::hook::{SessionStart, session_start};
use ack_api::text;
use ack_service::Service;

pub fn show(global: &Global, host: Option<Host>) -> Result<(), CliError> {
    let config = config(global)?;
    let surface = surface(&config);
    let event = Event::unknown(host, HookEvent::SessionStart);
    let service = CloseOnDrop(Service::new(config).without_bucket_wait().leak());
    let start = || session_start(service.0, surface.as_ref(), &event, Timestamp::now());
    let start = progress::while_reading(start)?;
    let output = start.output.as_ref();
    let text = output.and_then(Output::text).unwrap_or_default();
    let message = output.and_then(Output::message);
    if global.json {
        let sources = start.by_scope().into_iter();
        let sources = sources.map(|(scope, (memories, tokens))| {
            json!({ "scope": scope, "memories": memories, "tokens": tokens })
        });
        return write_json(&json!({
            "project": start.brief.context.project.name, "text": text, "message": message,
            "tokens": text::tokens(text), "sources": sources.collect::<Vec<_>>(),
        }));
    }
    let shown = message.map_or_else(String::new, |line| format!("\nyou see: {line}\n"));
    let text = match text {
        "" => String::new(),
        text => format!("\n{text}\n"),
    };
    write_plain(&format!("{}\n{text}{shown}", head(&start, text.trim())))
}

/// How many tokens a new session starts with, and where they come from.
fn head(start: &SessionStart, text: &str) -> String {
    let project = text::line(&start.brief.context.project.name, 80);
    let total = text::tokens(text);
    let sources = start.by_scope();
    let memories: usize = sources.values().map(|(memories, _)| memories).sum();
    if memories == 0 {
        return format!("a new session in {project} starts without memories");
    }
    let of_memories: usize = sources.values().map(|(_, tokens)| tokens).sum();
    let mut out = format!(
        "a new session in {project} starts with {}: {} tokens",
        count(memories as u64, "memory"),
        grouped(total as u64)
    );
    for (scope, (memories, tokens)) in sources {
        let (memories, tokens) = (count(memories as u64, "memory"), grouped(tokens as u64));
        out += &format!("\n  {tokens:>6}  scope {scope}, {memories}");
    }
    let rest = grouped(total.saturating_sub(of_memories) as u64);
    out + &format!("\n  {rest:>6}  what explains them")
}
