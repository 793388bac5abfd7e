//! The answer of `get`: memories with all that is known of them.

use std::fmt::Write;

use super::query::hit;
use super::{BAD, DIM, NAME, notes, paint, wrapped};
use ack_api::{GetResponse, MemoryDetail, Within};

/// `get`.
pub fn get(answer: &GetResponse) -> String {
    let mut out = String::new();
    for detail in answer
        .memory
        .iter()
        .map(AsRef::as_ref)
        .chain(&answer.memories)
    {
        out += &memory(detail);
    }
    for missing in &answer.missing {
        let _ = writeln!(out, "{} {}", paint(BAD, &missing.id), missing.reason);
        if !missing.nearest.is_empty() {
            let _ = writeln!(out, "  like it: {}", missing.nearest.join(", "));
        }
    }
    out + &notes(&answer.notes)
}

fn memory(detail: &MemoryDetail) -> String {
    let mut out = hit(&detail.memory, None);
    let indent = "    ";
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "{}", wrapped(&format!("{name}: {value}"), indent));
        }
    };
    line(
        "session",
        detail
            .memory
            .session
            .clone()
            .or_else(|| detail.session_id.clone()),
    );
    if let Some(context) = &detail.session_context {
        let (title, overview) = match context.unreviewed {
            true => (
                "session title, not reviewed",
                "session overview, not reviewed",
            ),
            false => ("session title", "session overview"),
        };
        line(title, context.title.clone());
        line(overview, context.overview.clone());
    }
    line(
        "confidence",
        detail
            .memory
            .confidence
            .map(|confidence| format!("{confidence:.2}")),
    );
    line(
        "reviewed",
        detail.reviewed_at.clone().map(|at| {
            format!(
                "{at}{}",
                detail
                    .reviewed_by
                    .as_ref()
                    .map_or_else(String::new, |by| format!(" by {by}"))
            )
        }),
    );
    line("updated", detail.updated_at.clone());
    if let Some(timeline) = &detail.timeline {
        let within = match timeline.within {
            Within::Session => "session",
            Within::Project => "project",
            Within::Scope => "scope",
        };
        let _ = writeln!(out, "{indent}timeline ({within}):");
        let entries = timeline
            .before
            .iter()
            .map(|entry| ("before", entry))
            .chain(timeline.after.iter().map(|entry| ("after", entry)));
        for (side, entry) in entries {
            let _ = writeln!(
                out,
                "      {side:<6} {} {} {}",
                entry
                    .created_at
                    .as_ref()
                    .and_then(|at| at.get(..10))
                    .unwrap_or("-"),
                paint(NAME, &entry.id),
                entry.title
            );
        }
    }
    if !detail.links.is_empty() {
        let _ = writeln!(out, "{indent}links:");
        for link in &detail.links {
            let _ = writeln!(
                out,
                "      {} {} {} {}",
                paint(NAME, &link.from_id),
                link.kind,
                paint(NAME, &link.to_id),
                paint(DIM, link.title.as_deref().unwrap_or_default())
            );
        }
    }
    if !detail.history.is_empty() {
        let _ = writeln!(out, "{indent}history:");
        for entry in &detail.history {
            let change = match (&entry.previous_status, &entry.new_status) {
                (Some(before), Some(after)) => format!(" {before} → {after}"),
                (None, Some(after)) => format!(" → {after}"),
                _ => String::new(),
            };
            let by = entry
                .actor
                .as_ref()
                .map_or_else(String::new, |actor| format!(" by {actor}"));
            let reason = entry
                .reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(": {reason}"));
            let _ = writeln!(
                out,
                "{}",
                wrapped(
                    &format!(
                        "{} {}{change}{by}{reason}",
                        entry.created_at.as_deref().unwrap_or("-"),
                        entry.action
                    ),
                    "      "
                )
            );
        }
    }
    out
}
