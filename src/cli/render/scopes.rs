//! The answer of `scopes`.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use super::{DIM, notes, paint, width, wrapped};
use ack_api::memory::Visibility;
use ack_api::{HealthState, ListScopesResponse};

/// `scopes`.
pub fn scopes(answer: &ListScopesResponse) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width()).unwrap_or(100));
    table.set_header([
        "scope",
        "memories",
        "pending",
        "last updated",
        "health",
        "about",
    ]);
    for scope in &answer.scopes {
        let current = if answer.current_scope.as_ref() == Some(&scope.name) {
            " *"
        } else {
            ""
        };
        let private = if scope.visibility == Visibility::Private {
            " (private)"
        } else {
            ""
        };
        let counts = scope.counts.map_or_else(
            || "-".to_owned(),
            |counts| (counts.approved + counts.promoted).to_string(),
        );
        let pending = scope
            .pending
            .as_ref()
            .map_or_else(|| "-".to_owned(), |pending| pending.count.to_string());
        let health = match scope.health.state {
            HealthState::Ok => "ok",
            HealthState::Degraded => "degraded",
            HealthState::Unavailable => "unavailable",
            HealthState::NotRead => "not read",
        };
        let about = scope
            .description
            .clone()
            .unwrap_or_else(|| scope.projects.join(", "));
        let updated = scope
            .last_updated
            .as_ref()
            .and_then(|at| at.get(..10))
            .unwrap_or("-")
            .to_owned();
        table.add_row([
            format!("{}{current}{private}", scope.name),
            counts,
            pending,
            updated,
            health.to_owned(),
            about,
        ]);
    }
    let mut out = format!("{table}\n");
    if let Some(scope) = &answer.current_scope {
        let _ = writeln!(
            out,
            "{}",
            paint(
                DIM,
                format!(
                    "* current: {scope}, found by {}",
                    answer.detected_by.as_deref().unwrap_or("-")
                )
            )
        );
    }
    for scope in &answer.scopes {
        for problem in &scope.health.problems {
            let _ = writeln!(
                out,
                "{}",
                wrapped(&format!("{}: {problem}", scope.name), "")
            );
        }
    }
    if let [scope] = answer.scopes.as_slice() {
        for (name, path) in [("path", &scope.path), ("store", &scope.store)] {
            if let Some(path) = path {
                let _ = writeln!(out, "{name}: {path}");
            }
        }
        if let Some(profile) = &scope.profile {
            let _ = writeln!(
                out,
                "profile: {profile}; opened {}",
                scope.health.opened.as_deref().unwrap_or("-")
            );
        }
        if !scope.projects.is_empty() {
            let _ = writeln!(
                out,
                "{}",
                wrapped(&format!("projects: {}", scope.projects.join(", ")), "")
            );
        }
        if !scope.tags.is_empty() {
            let tags: Vec<String> = scope
                .tags
                .iter()
                .map(|tag| format!("{} {}", tag.tag, tag.count))
                .collect();
            let _ = writeln!(
                out,
                "{}",
                wrapped(&format!("tags: {}", tags.join(", ")), "")
            );
        }
        if let Some(pending) = scope.pending.as_ref().filter(|pending| pending.count > 0) {
            let _ = writeln!(
                out,
                "{}",
                wrapped(
                    &format!(
                        "waiting for review since {}: {}",
                        pending.oldest.as_deref().unwrap_or("-"),
                        pending.ids.join(", ")
                    ),
                    ""
                )
            );
        }
    }
    out + &notes(&answer.notes)
}
