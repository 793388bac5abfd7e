//! The answer of `context`.

use std::fmt::Write;

use super::query::hit;
use super::{BOLD, DIM, NAME, notes, paint, wrapped};
use ack_api::ContextResponse;

/// `context`.
pub fn context(answer: &ContextResponse) -> String {
    let mut out = String::new();
    let project = &answer.project;
    let scope = match (&project.scope, &project.detected_by) {
        (Some(scope), Some(rule)) => format!("scope {scope} ({rule})"),
        _ => "no scope".to_owned(),
    };
    let _ = writeln!(
        out,
        "{} {}",
        paint(BOLD, format!("project {}", project.name)),
        paint(DIM, format!("{scope}; {}", project.path))
    );
    for (title, memories) in [
        ("its memories", &answer.recent_memories),
        ("learned elsewhere", &answer.cross_project_learnings),
    ] {
        if !memories.is_empty() {
            let _ = writeln!(out, "\n{}", paint(BOLD, title));
            for memory in memories {
                out += &hit(memory, None);
            }
        }
    }
    if !answer.recent_sessions.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            paint(BOLD, "recent sessions (titles as recorded, not reviewed)")
        );
        for session in &answer.recent_sessions {
            let date = session.date.as_deref().unwrap_or("-");
            let summary = session
                .summary
                .as_ref()
                .map_or_else(String::new, |id| format!(" {}", paint(NAME, id)));
            let _ = writeln!(
                out,
                "    {date} {}{summary}",
                session.title.as_deref().unwrap_or("untitled session")
            );
            if let Some(overview) = &session.overview {
                let label = if session.summary.is_some() {
                    ""
                } else {
                    "overview, not reviewed: "
                };
                let _ = writeln!(
                    out,
                    "{}",
                    paint(DIM, wrapped(&format!("{label}{overview}"), "      "))
                );
            }
        }
    }
    if let Some(pending) = &answer.pending {
        let _ = writeln!(
            out,
            "\n{}",
            paint(DIM, format!("{} memories wait for review", pending.count))
        );
    }
    out + &notes(&answer.notes)
}
