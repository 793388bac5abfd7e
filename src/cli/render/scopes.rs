//! The answer of `scopes`.

use super::age::{age, day, exact_time};
use super::layout::block;
use super::{DIM, PLAIN, count, first_of, grouped, notes};
use crate::cli::screen::{Screen, folded};
use ack_api::memory::Visibility;
use ack_api::{HealthState, IndexInfo, ListScopesResponse, Note, NoteKind, ScopeInfo};

const TABLE_WIDTH: usize = 60;
const MAX_NAMED: usize = 10;

pub fn scopes(answer: &ListScopesResponse, screen: &Screen) -> String {
    let current = answer.current_scope.as_ref();
    let (listed, others) = answer.scopes.split_at(screen.listed(answer.scopes.len()));
    // The current scope is never among those that are left out.
    let own = others.iter().filter(|scope| current == Some(&scope.name));
    let listed: Vec<&ScopeInfo> = listed.iter().chain(own).collect();
    // Without scopes, the note that says so is the answer.
    let is_answer =
        |note: &Note| answer.scopes.is_empty() && matches!(note.kind, NoteKind::NoScopes);
    let (none, rest): (Vec<Note>, Vec<Note>) = answer.notes.iter().cloned().partition(is_answer);
    let mut out = match screen.width {
        _ if answer.scopes.is_empty() => {
            line(none.first().map_or("no scopes", |note| note.message.text()), screen)
        }
        Some(width) if width < TABLE_WIDTH => {
            listed.iter().map(|scope| paragraph(&row(scope, current, screen), screen)).collect()
        }
        _ => table(&listed, current, screen),
    };
    out += &folded(answer.scopes.len() - listed.len(), "scopes | less");
    if let Some(scope) = &answer.current_scope {
        let rule = answer.detected_by.as_deref().unwrap_or("-");
        out += &block(screen, &format!("* current: {scope}, found by {rule}"), ("", "  "), DIM);
    }
    for (problem, names) in problems(&answer.scopes) {
        out += &line(&format!("{}: {problem}", first_of(&names, MAX_NAMED)), screen);
    }
    if let [scope] = answer.scopes.as_slice() {
        out += &details(scope, screen);
    }
    out + &notes(&rest, screen)
}

fn table(scopes: &[&ScopeInfo], current: Option<&String>, screen: &Screen) -> String {
    let names = ["scope", "approved", "unreviewed", "changed", "health", "about"];
    let scopes = scopes.iter().map(|scope| row(scope, current, screen));
    let rows: Vec<_> = std::iter::once(names.map(str::to_owned)).chain(scopes).collect();
    super::layout::table(&rows, 1..3, screen.width)
}

/// A row of the table, for a screen that is too narrow for it.
fn paragraph(
    [name, served, waiting, changed, health, about]: &[String; 6],
    screen: &Screen,
) -> String {
    let mut facts = Vec::new();
    for (value, what) in [(served, "approved"), (waiting, "unreviewed")] {
        if value != "-" {
            facts.push(format!("{value} {what}"));
        }
    }
    if changed != "-" {
        facts.push(format!("changed {changed}"));
    }
    if health != "ok" || facts.is_empty() {
        facts.push(health.clone());
    }
    let mut out = line(name, screen);
    for text in [facts.join(", "), about.clone()] {
        out += &block(screen, &text, ("  ", "  "), PLAIN);
    }
    out
}

/// Each problem once, with the scopes that have it.
fn problems(scopes: &[ScopeInfo]) -> Vec<(&str, Vec<&str>)> {
    let mut grouped: Vec<(&str, Vec<&str>)> = Vec::new();
    for scope in scopes {
        for problem in &scope.health.problems {
            match grouped.iter_mut().find(|(known, _)| *known == problem.text()) {
                Some((_, names)) => names.push(&scope.name),
                None => grouped.push((problem.text(), vec![&scope.name])),
            }
        }
    }
    grouped
}

fn line(text: &str, screen: &Screen) -> String {
    block(screen, text, ("", "  "), PLAIN)
}

fn row(scope: &ScopeInfo, current: Option<&String>, screen: &Screen) -> [String; 6] {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let mut name = scope.name.clone();
    if current == Some(&scope.name) {
        name.push_str(" *");
    }
    if scope.visibility == Visibility::Private {
        name.push_str(" (private)");
    }
    let served = scope.counts.map(|counts| grouped(counts.approved + counts.promoted));
    let health = match scope.health.state {
        HealthState::Ok => "ok",
        HealthState::Degraded => "degraded",
        HealthState::Unavailable => "unavailable",
        HealthState::NotRead => "not read",
    };
    [
        name,
        or_dash(served),
        or_dash(scope.pending.as_ref().map(|pending| grouped(pending.count))),
        or_dash(scope.last_updated.as_ref().map(|at| age(at, screen))),
        health.to_owned(),
        scope.description.clone().unwrap_or_else(|| scope.projects.join(", ")),
    ]
}

fn details(scope: &ScopeInfo, screen: &Screen) -> String {
    let mut out = String::new();
    for (name, path) in [("path", &scope.path), ("store", &scope.store)] {
        out.extend(path.iter().map(|path| format!("{name}: {path}\n")));
    }
    if let Some(counts) = scope.counts {
        let mut text = format!(
            "memories: {} approved, {} promoted, {} unreviewed, {} rejected",
            grouped(counts.approved),
            grouped(counts.promoted),
            grouped(counts.waiting()),
            grouped(counts.rejected)
        );
        if counts.unknown > 0 {
            text += &format!(", {} of unknown status", grouped(counts.unknown));
        }
        text += &counts.rest_in_words();
        out += &line(&text, screen);
    }
    if let Some(profile) = &scope.profile {
        let opened = scope.health.opened.as_deref().unwrap_or("-");
        let by = if opened.starts_with("its files") { "" } else { "opened " };
        out += &line(&format!("profile: {profile}; {by}{opened}"), screen);
    }
    out.extend(scope.index.iter().map(|table| line(&vectors(table, screen), screen)));
    if !scope.projects.is_empty() {
        out += &line(&format!("projects: {}", scope.projects.join(", ")), screen);
    }
    if !scope.tags.is_empty() {
        let tags = scope.tags.iter().map(|tag| format!("{} {}", tag.tag, tag.count));
        let tags: Vec<String> = tags.collect();
        out += &line(&format!("tags: {}", tags.join(", ")), screen);
    }
    if let Some(pending) = scope.pending.as_ref().filter(|pending| pending.count > 0) {
        let since = pending.oldest.as_ref();
        let since = since.map_or_else(|| "-".to_owned(), |oldest| day(oldest, screen));
        let text = format!("unreviewed (oldest from {since}): {}", pending.ids.join(", "));
        out += &line(&text, screen);
        out.extend(pending.pace.iter().map(|pace| line(pace, screen)));
    }
    out
}

fn vectors(table: &IndexInfo, screen: &Screen) -> String {
    let mut text = format!("vector table: {}", count(table.rows, "row"));
    text.extend(table.coverage.map(|share| format!(", {:.1} % of the store", share * 100.0)));
    text.extend(table.embedder.iter().map(|encoder| format!(", by {encoder}")));
    text.extend(table.built_at.iter().map(|at| format!(", built {}", exact_time(at, screen))));
    text
}
