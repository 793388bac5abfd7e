//! The findings of `doctor`: one line each, with the command that fixes it.

use std::collections::{HashMap, HashSet};
use std::iter::once;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::ScopeReport;
use crate::cli::command::{SHELL, command};
use crate::cli::render::{
    BAD, DIM, GOOD, PLAIN, WARN, block, count, day, first_of, grouped, paint,
};
use crate::cli::scopes::remove;
use crate::cli::screen::{Screen, folded};
use crate::cli::user;
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::decision::DECISION_LOG;
use ack_api::memory::{fold_name, nearest};
use ack_api::number::verb;
use ack_api::{Diagnostic, HealthState, Message, ScopeInfo, Skipped, text};
use ack_connect::quoted;
use ack_connect::recogniser::Support;
use ack_desk::curate::log;
use ack_gateway::server::{Health, probe};
use ack_gateway::settings::Upstream;
use ack_service::config::{Config, FULL_BUILD, MaxStatus, Part, Setting, SettingsError};
use ack_service::scope::resolve::Current;
use ack_service::scope::{KnownScopes, Scope, ScopeError};
use ack_service::scopes::damaged_line;
use ack_store::decisions::Decisions;
use ack_sys::files::with_tilde;

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

    fn at(mut self, place: String) -> Self {
        self.place = Some(place);
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

pub fn project(config: &Config, current: &Current) -> Option<DoctorFinding> {
    let scope = &current.scope.as_ref()?.name;
    let by = current.rule.as_ref().map_or_else(String::new, |rule| format!(", found by {rule}"));
    let finding = DoctorFinding::new(Level::Note, "project", format!("scope {scope}{by}"));
    Some(finding.at(with_tilde(&config.project.value, config.home.as_deref())))
}

pub fn default_scope(config: &Config, scopes: &[ScopeReport<'_>]) -> Option<DoctorFinding> {
    let name = &config.default_scope.as_ref()?.value;
    let names = scopes.iter().map(|scope| scope.info.name.as_str());
    if names.clone().any(|known| fold_name(known) == fold_name(name)) {
        return None;
    }
    let near = nearest(name, names, 1);
    let near = near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let message = format!("`default_scope` is `{name}`, which does not exist{near}");
    Some(DoctorFinding::new(Level::Warning, "config.toml", message).run("config edit"))
}

/// The tools if they are not the usual four, the upstream servers, and what is wrong with them;
/// also as JSON. With `connect`, connects to the upstream servers.
pub fn offer(config: &Config, connect: bool, offline: bool) -> (Vec<DoctorFinding>, Value) {
    let mut offer = match Offer::load(config, None, &|name| std::env::var_os(name)) {
        Ok(offer) => offer,
        Err(error) => {
            let problem = error.body_for(&SHELL);
            let message = format!("answers every call with an error: {}", problem.message);
            let finding = DoctorFinding::new(Level::Error, "serve", message).run("config edit");
            return (vec![finding], json!({ "problem": problem }));
        }
    };
    let skipped = if offline { offer.without_network() } else { Vec::new() };
    let mut found = Vec::new();
    let set = offer.toolset.set.name();
    let tools: Vec<&str> = offer.toolset.tools().iter().map(|tool| tool.name.as_str()).collect();
    if offer.toolset != Toolset::default() {
        let message = format!("{set}: {}", tools.join(", "));
        found.push(DoctorFinding::new(Level::Note, "tools", message));
    }
    for name in &skipped {
        let message = "an upstream server over HTTP, left out (--offline)";
        found.push(DoctorFinding::new(Level::Note, name, message));
    }
    let as_configured = |upstream: &Upstream| Health {
        name: upstream.name.clone(),
        reached: upstream.connection.to_string(),
        down: None,
        tools: upstream.tools.iter().map(|tool| tool.name.clone()).collect(),
        problems: Vec::new(),
    };
    let upstreams = if connect && !offer.upstreams.is_empty() {
        probe(offer.upstreams)
    } else {
        offer.upstreams.iter().map(as_configured).collect()
    };
    let mut entries = Vec::new();
    for Health { name, reached, down, tools, problems } in &upstreams {
        let offered: Vec<&str> = once(reached).chain(tools).map(String::as_str).collect();
        let offered = offered.join(", ");
        if !connect {
            found.push(DoctorFinding::new(Level::Note, name, offered).run("doctor --upstreams"));
            entries.push(json!({ "name": name, "reached": reached, "tools": tools }));
            continue;
        }
        let level = if down.is_some() { Level::Error } else { Level::Ok };
        found.push(DoctorFinding::new(level, name, offered));
        let problems: Vec<&String> = down.iter().chain(problems).collect();
        found.extend(problems.iter().map(|it| DoctorFinding::new(Level::Warning, "", *it)));
        entries.push(json!({
            "name": name, "reached": reached, "tools": tools,
            "available": down.is_none(), "problems": problems,
        }));
    }
    (found, json!({ "surface": set, "tools": tools, "upstreams": entries }))
}

pub fn scopes(
    config: &Config,
    scopes: &[ScopeReport<'_>],
    passed_over: &[Skipped],
) -> Vec<DoctorFinding> {
    let mut found: Vec<DoctorFinding> =
        scopes.iter().flat_map(|scope| one_scope(scope, config)).collect();
    let waits = |scope: &ScopeReport<'_>| scope.info.counts.is_some_and(|it| it.staging > 0);
    if scopes.iter().any(waits) {
        let Setting { value, source } = &config.max_status;
        let may = match value {
            MaxStatus::Approved => "see only approved memories",
            MaxStatus::All => "may ask for unreviewed memories",
        };
        let message = format!("{may} (max_status = {}, {source})", value.as_str());
        found.push(DoctorFinding::new(Level::Note, "agents", message));
    }
    for Skipped { scope, reason } in passed_over {
        found.push(DoctorFinding::new(Level::Warning, scope, format!("passed over: {reason}")));
    }
    if scopes.is_empty() {
        found.push(match ScopeError::no_scopes(config) {
            error @ ScopeError::Unreadable { .. } => {
                DoctorFinding::new(Level::Error, "scopes", error.to_string())
            }
            ScopeError::NoRoot { root, .. } => {
                let message = format!("the folder {} does not exist", root.display());
                DoctorFinding::new(Level::Warning, "scopes", message).run("setup")
            }
            _ => {
                let message = format!("none under {}", config.root.value.display());
                DoctorFinding::new(Level::Warning, "scopes", message).run("setup").run("demo")
            }
        });
    }
    found
}

fn one_scope(report: &ScopeReport<'_>, config: &Config) -> Vec<DoctorFinding> {
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
            return vec![DoctorFinding::new(Level::Note, &scope.name, message).at(place)];
        }
        HealthState::Ok | HealthState::Degraded => {}
    }
    let counts = info.counts.unwrap_or_default();
    let served = counts.approved + counts.promoted;
    let mut found = vec![DoctorFinding::new(Level::Ok, &scope.name, in_numbers(info)).at(place)];
    if served == 0 && counts.staging > 0 {
        found.push(nothing_served(scope));
    }
    if let Some(problem) = log::problem(scope) {
        // Not everybody who reads a scope decides about it.
        found.push(DoctorFinding::new(Level::Note, "", problem.render(&SHELL)));
    }
    let decisions = scope.store.decisions().unwrap_or_default();
    found.extend(foreign_decisions(scope, &decisions));
    let lost = lost_decisions(&decisions);
    for problem in info.health.problems.iter().map(Message::text) {
        // What its owner chose is not wrong.
        let is_chosen = problem.contains(CHOSEN);
        // A line above already says that rows count as unreviewed.
        if served == 0 && is_chosen {
            continue;
        }
        let level = if is_chosen { Level::Note } else { Level::Warning };
        let mut finding = DoctorFinding::new(level, "", problem);
        finding.advice.extend(lost.get(problem).cloned());
        found.push(finding);
    }
    found.extend(remaining_text(scope, &decisions));
    found
}

fn unavailable(report: &ScopeReport<'_>, config: &Config, place: String) -> DoctorFinding {
    let ScopeReport { scope, info, .. } = report;
    // A problem ends with the next step.
    let mut lines = info.health.problems.iter().flat_map(|problem| problem.text().split("; "));
    let first = lines.next().unwrap_or("cannot be read");
    let named = first.contains(&*scope.store.path().to_string_lossy());
    let mut finding = DoctorFinding::new(Level::Error, &scope.name, first);
    finding.place = (!named).then_some(place);
    finding.advice = lines.map(str::to_owned).collect();
    let is_mentioned = finding.advice.iter().any(|line| line.contains("scopes remove"));
    // What is in a bucket is only away for a while.
    if !is_mentioned && scope.remote.is_none() && remove::is_possible(config, scope) {
        finding = finding.run(&format!("scopes remove {}", quoted(&scope.name)));
    }
    finding
}

fn in_numbers(info: &ScopeInfo) -> String {
    let counts = info.counts.unwrap_or_default();
    let (served, waiting) = (counts.approved + counts.promoted, counts.waiting());
    let rest = counts.rest_in_words();
    let mut since = String::new();
    if let Some(pending) = &info.pending {
        let oldest = pending.oldest.iter().map(|oldest| day(oldest, &Screen::of_output()));
        since.extend(oldest.map(|oldest| format!(", the oldest from {oldest}")));
        since.extend(pending.pace.iter().map(|pace| format!("; {pace}")));
    }
    match (served, waiting) {
        (0, 0) if counts.staging == 0 => "no memories yet".to_owned(),
        (served @ 1.., 0) => format!("{} approved{rest}", grouped(served)),
        (served, waiting) => {
            let (served, waiting) = (grouped(served), grouped(waiting));
            format!("{served} approved, {waiting} unreviewed{since}{rest}")
        }
    }
}

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
fn remaining_text(scope: &Scope, decisions: &Decisions) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    let name = quoted(&scope.name);
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
                .advise("to forget their text, delete the lines about them, and then");
            found.push(finding.run(&format!("review --accept-log --scope {name}")));
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
fn foreign_decisions(scope: &Scope, decisions: &Decisions) -> Option<DoctorFinding> {
    let foreign = decisions.foreign() as u64;
    // A signature says more.
    (foreign > 0 && scope.manifest.signers.is_none()).then(|| {
        let message = format!(
            "{} of {DECISION_LOG} {} not written by ack-memory on this machine",
            count(foreign, "line"),
            verb(foreign, "was", "were")
        );
        DoctorFinding::new(Level::Note, "", message)
            .run(&format!("review --accept-log --scope {}", quoted(&scope.name)))
    })
}

/// The lines of the decision log that cannot be read: for each message in the scope's health,
/// advice that names the memories. Health does not name them, because agents see it.
fn lost_decisions(decisions: &Decisions) -> HashMap<String, String> {
    let lines = decisions.damaged.iter().map(|damaged| {
        let named = |ids: Vec<&str>| {
            let ids: Vec<String> = ids.into_iter().map(|id| text::line(id, 80)).collect();
            first_of(&ids, MAX_NAMED)
        };
        let all = Vec::from_iter(damaged.ids.iter().map(String::as_str));
        let about = match decisions.held_by(damaged) {
            _ if all.is_empty() => "it names no memory, so whatever it decided is lost".to_owned(),
            held if held.is_empty() => {
                format!("it is about {}, where a later line counts", named(all))
            }
            held => format!("it is about {}: decide again", named(held)),
        };
        (damaged_line(decisions, damaged), about)
    });
    lines.collect()
}

fn broken_manifest(scope: &Scope, problem: &SettingsError, home: Option<&Path>) -> DoctorFinding {
    let file = with_tilde(&scope.folder.join("scope.toml"), home);
    let mut message = format!("its scope.toml cannot be used: {}", problem.reason());
    let advice = match problem {
        SettingsError::LightBuild { .. } => {
            message = problem.reason();
            FULL_BUILD.to_owned()
        }
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

pub fn unserved_stores(config: &Config, scopes: &[Arc<Scope>]) -> Vec<DoctorFinding> {
    let known = KnownScopes::new(scopes);
    let mut found = Vec::new();
    for store in user::stores(config) {
        let support = store.kind.support();
        if support == Support::Reference || known.with_store(&store.path).is_some() {
            continue;
        }
        let place = with_tilde(&store.path, config.home.as_deref());
        let message = format!("{}: {}", store.kind.title(), store.count());
        let finding = DoctorFinding::new(Level::Note, "found", message).at(place);
        found.push(if support == Support::Served { finding.run("setup") } else { finding });
    }
    found
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
    let mut text = finding.message.clone();
    text.extend(finding.place.iter().map(|place| format!("  {place}")));
    let text = block(screen, &text, (&first, &indent), PLAIN);
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
    match (number(Level::Error), number(Level::Warning)) {
        (0, 0) => "nothing is wrong".to_owned(),
        (errors, 0) => count(errors, "error"),
        (0, warnings) => count(warnings, "warning"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    }
}
