//! Renders the answer of `get`: memories in full.

use std::fmt::Write;

use super::age::{day, exact_time};
use super::layout::{block, paint};
use super::query::{Listing, field, hit};
use super::{BAD, NAME, PLAIN, notes};
use crate::cli::screen::Screen;
use ack_api::{GetResponse, HistoryEntry, LinkEntry, MemoryDetail, RelatedEntry, Timeline, Within};

const INDENT: &str = "  ";
const LIST_INDENT: &str = "    ";

pub fn get(answer: &GetResponse, screen: &Screen) -> String {
    let listing = Listing { long: true, screen: screen.clone(), ..Listing::default() };
    let one = answer.memory.iter().map(AsRef::as_ref);
    let memories = one.chain(&answer.memories).map(|detail| memory(detail, &listing));
    let mut out = memories.collect::<Vec<_>>().join("\n");
    for missing in &answer.missing {
        let _ = writeln!(out, "{} {}", paint(BAD, &missing.id), missing.reason);
        if !missing.nearest.is_empty() {
            let _ = writeln!(out, "{INDENT}similar: {}", missing.nearest.join(", "));
        }
    }
    out + &notes(&answer.notes, screen)
}

fn memory(detail: &MemoryDetail, listing: &Listing) -> String {
    let screen = &listing.screen;
    let mut out = hit(&detail.memory, None, listing);
    let mut line = |name: &str, value| out += &field(name, value, INDENT, screen);
    let session = detail.session_id.clone().filter(|id| Some(id) != detail.memory.session.as_ref());
    line("id of its session", session);
    line("date", detail.date.clone());
    if let Some(context) = &detail.session_context {
        let by = if context.unreviewed { ", not reviewed" } else { "" };
        line(&format!("session title{by}"), context.title.clone());
        line(&format!("session overview{by}"), context.overview.clone());
    }
    let by = detail.reviewed_by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
    let reviewed = detail.reviewed_at.as_ref().map(|at| exact_time(at, screen));
    line("reviewed", reviewed.map(|at| format!("{at}{by}")));
    line("updated", detail.updated_at.as_ref().map(|at| exact_time(at, screen)));
    out.extend(detail.timeline.as_ref().map(|it| timeline(it, screen)));
    out += &related(&detail.related, screen);
    out += &links(&detail.links, &detail.memory.id, screen);
    if !detail.history.is_empty() {
        out += &history(&detail.history, screen);
    }
    out
}

/// Lines below their title; nothing if there are none.
fn list(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("{INDENT}{title}:\n{lines}") }
}

fn item(text: &str, screen: &Screen) -> String {
    block(screen, text, (LIST_INDENT, &format!("{LIST_INDENT}  ")), PLAIN)
}

fn timeline(timeline: &Timeline, screen: &Screen) -> String {
    let within = match timeline.within {
        Within::Session => "session",
        Within::Project => "project",
        Within::Scope => "scope",
    };
    let mut out = format!("{INDENT}timeline ({within}):\n");
    let before = timeline.before.iter().map(|entry| ("before", entry));
    let after = timeline.after.iter().map(|entry| ("after ", entry));
    for (side, entry) in before.chain(after) {
        let at = entry.created_at.as_ref().map_or_else(|| "-".to_owned(), |at| day(at, screen));
        let (id, kind, title) = (&entry.id, entry.kind.as_deref().unwrap_or("-"), &entry.title);
        let status = super::unreviewed(entry.status);
        out += &item(&format!("{side} {at} {id} {kind}: {title}{status}"), screen);
    }
    out
}

fn related(related: &[RelatedEntry], screen: &Screen) -> String {
    let lines = related.iter().map(|RelatedEntry { id, scope, title, similarity, status }| {
        let status = super::unreviewed(*status);
        item(&format!("{similarity:.2} {id} ({scope}) {title}{status}"), screen)
    });
    list("near in meaning", lines)
}

fn links(links: &[LinkEntry], own: &str, screen: &Screen) -> String {
    let lines = links.iter().map(|link| {
        let mut text = format!("{} {} {}", link.from_id, link.kind, link.to_id);
        let is_title = |title: &&String| **title != link.from_id && **title != link.to_id;
        text.extend(link.title.iter().filter(is_title).map(|title| format!(" {title}")));
        // Details of a link, other than its target.
        let mut details = Vec::new();
        if link.depth > 1 {
            details.push(format!("{} steps from {own}", link.depth));
        }
        details.extend(link.source.as_ref().map(|source| format!("by {source}")));
        details.extend(link.confidence.map(|share| format!("confidence {share:.2}")));
        if !details.is_empty() {
            let _ = write!(text, " ({})", details.join(", "));
        }
        let others = [&link.from_id, &link.to_id].into_iter().filter(|id| *id != own);
        others.fold(item(&text, screen), |line, id| line.replace(id.as_str(), &paint(NAME, id)))
    });
    list("links", lines)
}

/// The decisions about a memory, oldest first.
pub fn history(history: &[HistoryEntry], screen: &Screen) -> String {
    let mut out = format!("{INDENT}history:\n");
    for entry in history {
        let action = match entry.action.as_str() {
            "withdraw" => "left to its store",
            action => action,
        };
        let change = match (&entry.previous_status, &entry.new_status) {
            (Some(before), Some(after)) => format!(" {before} → {after}"),
            (Some(before), None) => format!(" (was {before})"),
            (None, Some(after)) => format!(" → {after}"),
            (None, None) => String::new(),
        };
        let at = entry.created_at.as_ref();
        let at = at.map_or_else(|| "-".to_owned(), |at| exact_time(at, screen));
        let mut text = format!("{at} {action}{change}");
        text.extend(entry.actor.iter().map(|actor| format!(" by {actor}")));
        let becomes = if entry.action == "supersede" { "replaced by" } else { "into" };
        text.extend(entry.into.iter().map(|into| format!(", {becomes} {into}")));
        text.extend(entry.reason.iter().map(|reason| format!(": {reason}")));
        out += &item(&text, screen);
    }
    out
}
