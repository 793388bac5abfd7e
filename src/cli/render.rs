//! Answers laid out for people: colour and line width come from the terminal, and colour is dropped where there is none.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};

use super::words::{at_a_terminal, flag};
use ack_api::memory::{Status, StatusFilter, Visibility};
use ack_api::{
    ContextResponse, ErrorBody, GetResponse, HealthState, LegExplanation, ListScopesResponse,
    MemoryDetail, MemoryHit, Note, QueryResponse, Searched, Within,
};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const WARN: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const GOOD: Style = AnsiColor::Green.on_default();

fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

fn width() -> usize {
    textwrap::termwidth().clamp(60, 110)
}

fn wrapped(text: &str, indent: &str) -> String {
    let options = textwrap::Options::new(width())
        .initial_indent(indent)
        .subsequent_indent(indent)
        .break_words(false);
    text.lines()
        .map(|line| textwrap::fill(line, &options))
        .collect::<Vec<_>>()
        .join("\n")
}

fn status(status: Status) -> String {
    match status {
        Status::Approved => paint(GOOD, status),
        Status::Promoted => paint(GOOD, status),
        Status::Staging => paint(WARN, status),
        Status::Rejected => paint(BAD, status),
    }
}

/// `query`.
pub fn query(answer: &QueryResponse) -> String {
    let mut out = String::new();
    let shown = answer.results.len();
    let more = if answer.total > shown as u64 {
        format!(" of {}", answer.total)
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{} {}",
        paint(
            BOLD,
            format!(
                "{shown}{more} {}",
                if answer.total == 1 {
                    "memory"
                } else {
                    "memories"
                }
            )
        ),
        paint(DIM, searched(&answer.searched))
    );
    for (place, result) in answer.results.iter().enumerate() {
        let _ = write!(out, "\n{}", hit(result, Some(place + 1)));
    }
    if !answer.suggestions.is_empty() {
        let _ = writeln!(out, "\nTry:");
        for suggestion in &answer.suggestions {
            let _ = writeln!(out, "{}", wrapped(&at_a_terminal(suggestion), "  "));
        }
    }
    if let Some(hidden) = &answer.hidden {
        let mut parts = Vec::new();
        if hidden.by_status > 0 {
            parts.push(format!(
                "{} by their status (--status all shows them)",
                hidden.by_status
            ));
        }
        if hidden.superseded > 0 {
            parts.push(format!("{} superseded by newer ones", hidden.superseded));
        }
        let _ = writeln!(
            out,
            "\n{}",
            paint(DIM, format!("hidden: {}", parts.join(", ")))
        );
    }
    if let Some(cursor) = &answer.next_cursor {
        let _ = writeln!(
            out,
            "{}",
            paint(DIM, format!("next page: --cursor {cursor}"))
        );
    }
    out + &notes(&answer.notes)
}

fn searched(searched: &Searched) -> String {
    let mut text = format!(
        "in {}",
        if searched.scopes.is_empty() {
            "no scope".to_owned()
        } else {
            let more = searched.more_scopes;
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            searched.scopes.join(", ") + &more
        }
    );
    if searched.status != StatusFilter::Approved {
        let _ = write!(text, ", status {}", searched.status.as_str());
    }
    if let (Some(scope), Some(rule)) = (&searched.current_scope, &searched.detected_by) {
        let _ = write!(text, "; current scope {scope} ({rule})");
    }
    for skipped in &searched.skipped {
        let _ = write!(text, "; not {}: {}", skipped.scope, skipped.reason);
    }
    if searched.more_skipped > 0 {
        let _ = write!(text, "; nor {} others", searched.more_skipped);
    }
    text
}

fn hit(hit: &MemoryHit, place: Option<usize>) -> String {
    let mut out = String::new();
    let number = place.map_or_else(String::new, |place| format!("{place:>2}. "));
    let _ = writeln!(out, "{number}{}", paint(BOLD, &hit.title));
    let indent = "    ";
    let mut line = vec![
        paint(NAME, &hit.id),
        format!(
            "{}{}",
            hit.scope,
            hit.project
                .as_ref()
                .map_or_else(String::new, |project| format!("/{project}"))
        ),
    ];
    line.extend(hit.kind.clone());
    line.push(status(hit.status));
    line.extend(
        hit.created_at
            .as_ref()
            .and_then(|created| created.get(..10))
            .map(str::to_owned),
    );
    line.extend(hit.score.map(|score| format!("score {score:.2}")));
    let _ = writeln!(out, "{indent}{}", line.join(&paint(DIM, " · ")));
    if let Some(subtitle) = &hit.subtitle {
        let _ = writeln!(out, "{}", wrapped(subtitle, indent));
    }
    for fact in &hit.facts {
        let options = textwrap::Options::new(width())
            .initial_indent("    - ")
            .subsequent_indent("      ")
            .break_words(false);
        let _ = writeln!(out, "{}", textwrap::fill(fact, &options));
    }
    if !hit.concepts.is_empty() {
        let _ = writeln!(
            out,
            "{indent}{}",
            paint(DIM, format!("tags: {}", hit.concepts.join(", ")))
        );
    }
    if !hit.files.is_empty() {
        let _ = writeln!(
            out,
            "{indent}{}",
            paint(DIM, format!("files: {}", hit.files.join(", ")))
        );
    }
    if let Some(narrative) = &hit.narrative {
        let _ = writeln!(out, "\n{}\n", wrapped(narrative, indent));
    }
    if let Some(newer) = &hit.superseded_by {
        let _ = writeln!(
            out,
            "{indent}{}",
            paint(WARN, format!("superseded by {newer}"))
        );
    }
    if !hit.also.is_empty() {
        let ids: Vec<&str> = hit.also.iter().map(|also| also.id.as_str()).collect();
        let _ = writeln!(
            out,
            "{indent}{}",
            paint(DIM, format!("also noted as: {}", ids.join(", ")))
        );
    }
    if let Some(why) = &hit.why {
        let _ = writeln!(
            out,
            "{}",
            paint(DIM, wrapped(&format!("why: {why}"), indent))
        );
    }
    for leg in hit
        .explanation
        .iter()
        .flat_map(|explanation| &explanation.legs)
    {
        let _ = writeln!(out, "{}", paint(DIM, wrapped(&leg_line(leg), indent)));
    }
    out
}

fn leg_line(leg: &LegExplanation) -> String {
    let rank = leg
        .rank
        .map_or_else(|| "not found".to_owned(), |rank| format!("rank {rank}"));
    let terms = if leg.terms.is_empty() {
        String::new()
    } else {
        format!("; {}", leg.terms.join(", "))
    };
    format!("{}: {rank}, score {:.3}{terms}", leg.leg, leg.score)
}

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

/// Notes under any answer.
pub fn notes(notes: &[Note]) -> String {
    let mut out = String::new();
    for note in notes {
        let scope = note
            .scope
            .as_ref()
            .map_or_else(String::new, |scope| format!("{scope}: "));
        let message = at_a_terminal(&note.message);
        let _ = writeln!(
            out,
            "{}",
            paint(WARN, wrapped(&format!("note: {scope}{message}"), ""))
        );
    }
    out
}

/// An error.
pub fn error(body: &ErrorBody) -> String {
    // Of an error's message only the argument's name is ours; the rest may quote anybody.
    let named = body
        .argument
        .as_deref()
        .and_then(|argument| Some((format!("`{argument}`"), flag(argument)?)));
    let message = named.map_or_else(
        || body.message.clone(),
        |(named, flag)| body.message.replacen(&named, &format!("`{flag}`"), 1),
    );
    let mut out = format!("{} {message}\n", paint(BAD, "error:"));
    if !body.nearest.is_empty() {
        let _ = writeln!(
            out,
            "{} did you mean {}?",
            paint(NAME, "nearest:"),
            body.nearest.join(", ")
        );
    }
    if let Some(example) = body
        .example
        .as_ref()
        .filter(|example| example.starts_with("ack-memory"))
    {
        let _ = writeln!(out, "{} {example}", paint(NAME, "example:"));
    }
    if let Some(hint) = &body.hint {
        let _ = writeln!(out, "{} {}", paint(NAME, "hint:"), at_a_terminal(hint));
    }
    out
}
