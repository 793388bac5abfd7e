//! The findings of `doctor`: one line each, with the command that fixes it.

use crate::cli::command::{SHELL, command};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::{DoctorReport, OfferReport, ScopeReport};
use crate::cli::render::{BAD, DIM, GOOD, PLAIN, WARN, block, count, day, grouped, paint};
use crate::cli::scopes::remove;
use crate::cli::screen::{Screen, folded};
use ack_api::decision::DECISION_LOG;
use ack_api::memory::{fold_name, nearest};
use ack_api::number::verb;
use ack_api::text;
use ack_api::{Diagnostic, HealthState, Message, ScopeInfo, Skipped};
use ack_connect::quoted;
use ack_connect::recogniser::{FoundStore, Support};
use ack_desk::curate::log;
use ack_service::config::{Config, FULL_BUILD, MaxStatus, Part, Setting, SettingsError};
use ack_service::scope::{KnownScopes, Scope, ScopeError};
use ack_service::scopes::damaged_line;
pub use ack_sys::files::with_tilde;

/// How many memories of a damaged line of a decision log are named.
const MAX_NAMED: usize = 5;
/// What the message names that says what unreviewed memories count as.
const CHOSEN: &str = "`unreviewed` in scope.toml";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// It works, but something should be done.
    Warning,
    Error,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    pub level: Level,
    /// What it is about: a scope, a client, a file. Empty if it continues the previous finding.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subject: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

impl DoctorFinding {
    pub fn new(level: Level, subject: &str, message: impl Into<String>) -> Self {
        Self {
            level,
            subject: subject.to_owned(),
            message: message.into(),
            place: None,
            advice: Vec::new(),
        }
    }

    fn at(mut self, place: &str) -> Self {
        self.place = Some(place.to_owned());
        self
    }

    pub fn run(self, arguments: &str) -> Self {
        self.advise(command(arguments))
    }

    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }
}

/// The project, if it has a scope.
fn here(report: &DoctorReport<'_>) -> Option<DoctorFinding> {
    let scope = report.current_scope.as_ref()?;
    let by = report.current_rule.as_ref();
    let by = by.map_or_else(String::new, |rule| format!(", found by {rule}"));
    let folder = with_tilde(&report.config.project.value, report.config.home.as_deref());
    let finding = DoctorFinding::new(Level::Note, "project", format!("scope {scope}{by}"));
    Some(finding.at(&folder))
}

/// The findings about the project, `config.toml` and what `serve` offers.
pub fn settings(report: &DoctorReport<'_>) -> Vec<DoctorFinding> {
    let broken = report.broken_settings.as_ref().map(|message| {
        DoctorFinding::new(Level::Error, "config.toml", message.clone()).run("config edit")
    });
    let mut found: Vec<DoctorFinding> = broken.into_iter().collect();
    found.extend(here(report));
    found.extend(default_scope(report));
    found.extend(report.offer.iter().flat_map(OfferReport::findings));
    found
}

fn default_scope(report: &DoctorReport<'_>) -> Option<DoctorFinding> {
    let name = &report.config.default_scope.as_ref()?.value;
    let folded = fold_name(name);
    let names = report.scopes.iter().map(|scope| scope.info.name.as_str());
    if names.clone().any(|known| fold_name(known) == folded) {
        return None;
    }
    let near = nearest(name, names, 1)
        .first()
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let message = format!("`default_scope` is `{name}`, which does not exist{near}");
    Some(DoctorFinding::new(Level::Warning, "config.toml", message).run("config edit"))
}

pub fn scopes(report: &DoctorReport<'_>, screen: &Screen) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    for scope in &report.scopes {
        found.extend(one_scope(scope, report.config, screen));
    }
    let waits = |scope: &ScopeReport<'_>| scope.info.counts.is_some_and(|it| it.staging > 0);
    if report.scopes.iter().any(waits) {
        found.push(agent_access(report.config));
    }
    for Skipped { scope, reason } in &report.passed_over {
        let message = format!("passed over: {reason}");
        found.push(DoctorFinding::new(Level::Warning, scope, message));
    }
    if report.scopes.is_empty() {
        found.push(match ScopeError::no_scopes(report.config) {
            error @ ScopeError::Unreadable { .. } => {
                DoctorFinding::new(Level::Error, "scopes", error.to_string())
            }
            ScopeError::NoRoot { root, .. } => {
                let message = format!("the folder {} does not exist", root.display());
                DoctorFinding::new(Level::Warning, "scopes", message).run("setup")
            }
            _ => {
                let message = format!("none under {}", report.config.root.value.display());
                DoctorFinding::new(Level::Warning, "scopes", message).run("setup").run("demo")
            }
        });
    }
    found
}

/// Whether agents may ask for memories that wait for review.
fn agent_access(config: &Config) -> DoctorFinding {
    let Setting { value, source } = &config.max_status;
    let may = match value {
        MaxStatus::Approved => "see only approved memories",
        MaxStatus::All => "may ask for unreviewed memories",
    };
    let setting = format!("max_status = {}, {source}", value.as_str());
    DoctorFinding::new(Level::Note, "agents", format!("{may} ({setting})"))
}

fn one_scope(report: &ScopeReport<'_>, config: &Config, screen: &Screen) -> Vec<DoctorFinding> {
    let ScopeReport { scope, info, .. } = report;
    let home = config.home.as_deref();
    if let Some(problem) = &scope.problem {
        return vec![broken_manifest(scope, problem, home)];
    }
    let place = match &scope.remote {
        Some(remote) => remote.title(),
        None => with_tilde(scope.store.path(), home),
    };
    match info.health.state {
        HealthState::Unavailable => return vec![unavailable(report, config, place)],
        HealthState::NotRead => {
            let message = "not read: this process is pinned to another scope";
            return vec![DoctorFinding::new(Level::Note, &scope.name, message).at(&place)];
        }
        HealthState::Ok | HealthState::Degraded => {}
    }
    let counts = info.counts.unwrap_or_default();
    let served = counts.approved + counts.promoted;
    let message = in_numbers(info, screen);
    let mut found = vec![DoctorFinding::new(Level::Ok, &scope.name, message).at(&place)];
    if served == 0 && counts.staging > 0 {
        found.push(nothing_served(scope));
    }
    if let Some(problem) = log::problem(scope) {
        // Not everybody who reads a scope decides about it.
        found.push(DoctorFinding::new(Level::Note, "", problem.render(&SHELL)));
    }
    found.extend(foreign_decisions(scope));
    let lines = lost_decisions(scope);
    for problem in info.health.problems.iter().map(Message::text) {
        // A line above already says that rows count as unreviewed.
        if served == 0 && problem.contains(CHOSEN) {
            continue;
        }
        // What its owner chose is not wrong.
        let level = match problem.contains(CHOSEN) {
            true => Level::Note,
            false => Level::Warning,
        };
        let mut finding = DoctorFinding::new(level, "", problem);
        if let Some((_, about)) = lines.iter().find(|(line, _)| line == problem) {
            finding = finding.advise(about);
        }
        found.push(finding);
    }
    found.extend(remaining_text(scope));
    found
}

/// A scope that cannot be read.
fn unavailable(report: &ScopeReport<'_>, config: &Config, place: String) -> DoctorFinding {
    let ScopeReport { scope, info, .. } = report;
    // A problem ends with the next step.
    let problems = info.health.problems.iter();
    let mut lines = problems.flat_map(|problem| problem.text().split("; "));
    let first = lines.next().unwrap_or("cannot be read");
    let named = first.contains(&*scope.store.path().to_string_lossy());
    let mut finding = DoctorFinding::new(Level::Error, &scope.name, first);
    finding.place = (!named).then_some(place);
    finding.advice = lines.map(str::to_owned).collect();
    let mut advice = finding.advice.iter();
    let is_mentioned = advice.any(|line| line.contains("scopes remove"));
    // What is in a bucket is only away for a while.
    if !is_mentioned && scope.remote.is_none() && remove::is_possible(config, scope) {
        finding = finding.run(&format!("scopes remove {}", quoted(&scope.name)));
    }
    finding
}

/// How many memories a scope has, and how many wait.
fn in_numbers(info: &ScopeInfo, screen: &Screen) -> String {
    let counts = info.counts.unwrap_or_default();
    let (served, waiting) = (counts.approved + counts.promoted, counts.waiting());
    let rest = counts.rest_in_words();
    let pending = info.pending.as_ref();
    let oldest = pending.and_then(|pending| pending.oldest.as_ref());
    let mut since = oldest
        .map_or_else(String::new, |oldest| format!(", the oldest from {}", day(oldest, screen)));
    if let Some(pace) = pending.and_then(|pending| pending.pace.as_ref()) {
        since.push_str(&format!("; {pace}"));
    }
    match (served, waiting) {
        (0, 0) if counts.staging == 0 => "no memories yet".to_owned(),
        (0, _) => format!("{}, none reviewed{since}{rest}", count(counts.staging, "memory")),
        (served, 0) => format!("{}{rest}", count(served, "memory")),
        (served, waiting) => {
            format!("{}, {} unreviewed{since}{rest}", count(served, "memory"), grouped(waiting))
        }
    }
}

/// A scope of which agents see nothing.
fn nothing_served(scope: &Scope) -> DoctorFinding {
    let name = quoted(&scope.name);
    // A store with a status of its own cannot be trusted as a whole.
    let has_status = scope.store.snapshot(|it| Ok(it.layout.has_status()));
    let review = format!("review --scope {name}");
    if has_status.unwrap_or(true) {
        let hidden = "agents see none of them until you review";
        return DoctorFinding::new(Level::Warning, "", hidden).run(&review);
    }
    let hidden = "agents see none of them until you review or trust the store";
    // Its owner chose that it waits.
    DoctorFinding::new(Level::Note, "", hidden)
        .run(&review)
        .run(&format!("scopes set {name} unreviewed=approved"))
}

/// Where text may remain of memories that the store no longer has: edits in the decision log, and
/// old versions in the bucket that the scope is published to.
fn remaining_text(scope: &Scope) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    let name = quoted(&scope.name);
    let decisions = scope.store.decisions().unwrap_or_default();
    let is_edited = |id: &&str| decisions.about(id).iter().any(|it| it.edit.is_some());
    let mut edited: HashSet<&str> = decisions.ids().into_iter().filter(is_edited).collect();
    if !edited.is_empty()
        && let Ok(known) = scope.store.snapshot(|snapshot| snapshot.ids())
    {
        for id in &known {
            edited.remove(id.as_str());
        }
        if !edited.is_empty() {
            let edited = count(edited.len() as u64, "memory");
            let message = format!("{DECISION_LOG} keeps edits of {edited} that left the store");
            let finding = DoctorFinding::new(Level::Note, "", message)
                .advise("to forget their text, delete the lines about them, and then")
                .run(&format!("review --accept-log --scope {name}"));
            found.push(finding);
        }
    }
    // A scope that is published keeps a copy of what its bucket has.
    if scope.remote.is_none() && scope.folder.join("remote").is_dir() {
        let message = "its bucket keeps withdrawn text in old versions";
        let finding = DoctorFinding::new(Level::Note, "", message)
            .run(&format!("publish {name} --to ADDRESS --reindex"))
            .run(&format!("publish {name} --to ADDRESS --prune 0d"));
        found.push(finding);
    }
    found
}

/// Decisions that ack-memory did not write here. A colleague's are among them after `git pull`.
fn foreign_decisions(scope: &Scope) -> Option<DoctorFinding> {
    let decisions = scope.store.decisions().unwrap_or_default();
    // A signature says more.
    let foreign = match scope.manifest.signers {
        Some(_) => 0,
        None => decisions.foreign() as u64,
    };
    (foreign > 0).then(|| {
        let message = format!(
            "{} of {DECISION_LOG} {} not written by ack-memory on this machine",
            count(foreign, "line"),
            verb(foreign, "was", "were")
        );
        DoctorFinding::new(Level::Note, "", message)
            .run(&format!("review --accept-log --scope {}", quoted(&scope.name)))
    })
}

/// The lines of the decision log that cannot be read: for each, the message in the scope's health,
/// and advice that names the memories. Health does not name them, because agents see it.
fn lost_decisions(scope: &Scope) -> Vec<(String, String)> {
    let decisions = scope.store.decisions().unwrap_or_default();
    let lines = decisions.damaged().iter().map(|damaged| {
        let shown = damaged.ids.iter().take(MAX_NAMED);
        let shown: Vec<String> = shown.map(|id| text::line(id, 80)).collect();
        let more = match damaged.ids.len().saturating_sub(shown.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let about = match shown.is_empty() {
            true => "it names no memory, so whatever it decided is lost".to_owned(),
            false => format!("it is about {}{more}: decide again", shown.join(", ")),
        };
        (damaged_line(damaged), about)
    });
    lines.collect()
}

/// A manifest that is invalid, so its store is unknown.
fn broken_manifest(scope: &Scope, problem: &SettingsError, home: Option<&Path>) -> DoctorFinding {
    let file = with_tilde(&scope.folder.join("scope.toml"), home);
    let message = match problem {
        SettingsError::LightBuild { .. } => problem.reason(),
        _ => format!("its scope.toml cannot be used: {}", problem.reason()),
    };
    let advice = match problem {
        SettingsError::LightBuild { .. } => FULL_BUILD.to_owned(),
        SettingsError::Invalid { part: Part::Line(line), .. } => {
            format!("correct line {line} of {file}")
        }
        SettingsError::Unreadable { .. } => match problem.hint_for(&SHELL) {
            Some(hint) => format!("{hint}: {file}"),
            None => format!("make {file} readable"),
        },
        _ => format!("correct {file}"),
    };
    DoctorFinding::new(Level::Error, &scope.name, message).advise(advice)
}

/// The stores on this machine that are not scopes yet.
pub fn unserved_stores(
    stores: &[FoundStore],
    scopes: &[Arc<Scope>],
    config: &Config,
) -> Vec<DoctorFinding> {
    let known = KnownScopes::new(scopes);
    stores
        .iter()
        .filter(|found| found.kind.support() != Support::Reference)
        .filter(|found| known.with_store(&found.path).is_none())
        .map(|found| {
            let place = with_tilde(&found.path, config.home.as_deref());
            let message = format!("{}: {}", found.kind.title(), found.count());
            let finding = DoctorFinding::new(Level::Note, "found", message).at(&place);
            match found.kind.support() {
                Support::Served => finding.run("setup"),
                _ => finding,
            }
        })
        .collect()
}

/// The findings as lines: all that is wrong, and of the rest as much as a terminal shows of a list.
pub fn findings_text(findings: &[DoctorFinding], screen: &Screen) -> String {
    let width = findings.iter().map(|one| one.subject.chars().count()).max();
    let width = width.unwrap_or_default().min(20);
    let is_wrong = |one: &DoctorFinding| matches!(one.level, Level::Warning | Level::Error);
    let mut out = String::new();
    // Lines about what is not wrong, and findings that are not shown.
    let (mut quiet, mut more) = (0, 0);
    // What continues a finding stays with it.
    for about_one in findings.chunk_by(|_, next| next.subject.is_empty()) {
        let lines: String = about_one.iter().map(|one| finding_text(one, width, screen)).collect();
        if !about_one.iter().any(is_wrong) {
            let count = quiet + lines.lines().count();
            if screen.listed(count) < count {
                more += about_one.len();
                continue;
            }
            quiet = count;
        }
        out += &lines;
    }
    out + &folded(more, "doctor | less")
}

/// A finding as lines. `width` is that of what findings are about.
fn finding_text(finding: &DoctorFinding, width: usize, screen: &Screen) -> String {
    let indent = " ".repeat(width + 4);
    let (sign, style) = match finding.level {
        Level::Ok => ("✓", GOOD),
        Level::Warning => ("!", WARN),
        Level::Error => ("✗", BAD),
        Level::Note => ("-", DIM),
    };
    let first = format!("{sign} {:<width$}  ", finding.subject);
    let place = finding.place.as_ref();
    let place = place.map_or_else(String::new, |place| format!("  {place}"));
    let text = block(screen, &format!("{}{place}", finding.message), (&first, &indent), PLAIN);
    let mut out = text.replacen(sign, &paint(style, sign), 1);
    let (arrow, rest) = (format!("{indent}→ "), format!("{indent}  "));
    for advice in &finding.advice {
        out += &block(screen, advice, (&arrow, &rest), DIM);
    }
    out
}

/// `1 error, 2 warnings`.
pub fn summary(findings: &[DoctorFinding]) -> String {
    let number = |level| findings.iter().filter(|one| one.level == level).count() as u64;
    let parts = [(number(Level::Error), "error"), (number(Level::Warning), "warning")];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts.map(|(number, noun)| count(number, noun)).collect();
    match parts.is_empty() {
        true => "nothing is wrong".to_owned(),
        false => parts.join(", "),
    }
}
