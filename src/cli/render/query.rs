//! The answer of `query`, and a memory in any list.

use std::fmt::Write;

use super::{BOLD, DIM, NAME, WARN, notes, paint, status, width, wrapped};
use crate::cli::words::at_a_terminal;
use ack_api::memory::StatusFilter;
use ack_api::{LegExplanation, MemoryHit, QueryResponse, Searched};

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

pub(super) fn hit(hit: &MemoryHit, place: Option<usize>) -> String {
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
