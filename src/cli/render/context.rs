//! The answer of `context`.

use std::fmt::Write;

use super::age::{age, day};
use super::layout::{block, paint};
use super::query::{Listing, field, hit};
use super::{BOLD, DIM, NAME, PLAIN, count, notes, verb};
use crate::cli::screen::Screen;
use ack_api::{ContextResponse, SessionEntry};

pub fn context(answer: &ContextResponse, listing: &Listing) -> String {
    let screen = &listing.screen;
    let project = &answer.project;
    let about = match (&project.scope, &project.detected_by) {
        (Some(scope), Some(rule)) => format!("scope {scope} ({rule}); {}", project.path),
        _ => "no scope".to_owned(),
    };
    let mut out = format!("{}\n", paint(BOLD, format!("project {}", project.name)));
    out += &block(screen, &about, ("", ""), DIM);
    for (title, memories) in [
        ("its memories", &answer.recent_memories),
        ("learned elsewhere", &answer.cross_project_learnings),
    ] {
        if !memories.is_empty() {
            let _ = writeln!(out, "\n{}", paint(BOLD, title));
            let shown = memories.iter().map(|memory| {
                hit(memory, None, listing) + &field("because", memory.why.clone(), "  ", screen)
            });
            out += &shown.collect::<Vec<_>>().join("\n");
        }
    }
    let mut sessions = answer.recent_sessions.iter().filter(|entry| entry.has_content()).peekable();
    if sessions.peek().is_some() {
        let _ = writeln!(out, "\n{}", paint(BOLD, "recent sessions"));
        for entry in sessions {
            out += &session(entry, screen);
        }
    }
    if let Some(pending) = &answer.pending {
        let waits = verb(pending.count, "waits", "wait");
        let mut text = format!("{} {waits} for review", count(pending.count, "memory"));
        let oldest = pending.oldest.iter();
        text.extend(oldest.map(|oldest| format!(", the oldest from {}", age(oldest, screen))));
        let _ = writeln!(out, "\n{}", paint(DIM, text));
    }
    out + &notes(&answer.notes, screen)
}

fn session(entry: &SessionEntry, screen: &Screen) -> String {
    let at = entry.started_at.as_ref().map(|at| day(at, screen)).or_else(|| entry.date.clone());
    let mut text = format!(
        "{}  {}",
        at.as_deref().unwrap_or("-"),
        entry.title.as_deref().unwrap_or("untitled session")
    );
    if entry.unreviewed {
        text.push_str(" (as recorded, not reviewed)");
    }
    let mut out = block(screen, &text, ("  ", "    "), PLAIN);
    let overview = entry.overview.iter();
    out.extend(overview.map(|overview| block(screen, overview, ("    ", "    "), DIM)));
    if let Some(summary) = &entry.summary {
        let _ = writeln!(out, "    {} {}", paint(DIM, "summary"), paint(NAME, summary));
    }
    out
}
