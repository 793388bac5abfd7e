//! `doctor`: which project this is, what works and what does not, each with a next step. `--json` adds
//! the effective settings and what is known about each scope.

mod checks;
mod clients;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use self::checks::{DoctorFinding, Level};
use super::args::{DoctorArgs, Global};
use super::output::{json_with, write_json, write_out};
use super::render::{BOLD, DIM, paint};
use super::screen::Screen;
use super::{command, progress, settings};
use crate::cli::error::CliError;
use ack_api::{Diagnostic, Hint, Resolve as _, ScopeInfo, text};
use ack_service::Service;
use ack_service::config::{Config, Inputs};
use ack_service::scope::Scope;
use ack_service::scope::resolve::current;
use ack_service::scopes::{Audience, LONG_LIST, describe};

struct ScopeReport<'a> {
    scope: &'a Scope,
    info: ScopeInfo,
    /// The columns of its store that hold memories.
    columns: Vec<String>,
}

/// Runs `doctor`. A pinned process only checks its own scope.
pub fn run(inputs: Inputs, args: &DoctorArgs, global: &Global) -> Result<ExitCode, CliError> {
    // This command diagnoses a broken file, so it must not fail because of one.
    let (config, broken_settings) = match Config::load(inputs.clone()) {
        Ok(config) => (config, None),
        Err(error) => (Config::without_file(inputs)?, Some(error.body().message)),
    };
    let service = Service::new(config);
    let config = &service.config;
    let discovery = service.registry.discover();
    let current = current(config, &discovery.scopes, None, true)?;
    let scopes: Vec<ScopeReport<'_>> = progress::while_reading(|| {
        let scopes = discovery.scopes.iter();
        // The owner asks about their own stores, so private ones are opened too.
        let may_read = |scope: &Arc<Scope>| {
            let is_current = current.scope.as_ref().is_some_and(|it| it.name == scope.name);
            config.pinned.is_none() || is_current
        };
        scopes.map(|scope| ScopeReport::new(&service, scope, may_read(scope))).collect()
    });
    let (about_offer, offer) = match &broken_settings {
        None => checks::offer(config, args.upstreams, global.offline),
        Some(_) => Default::default(),
    };
    let mut findings = Vec::new();
    if let Some(message) = broken_settings {
        findings.push(DoctorFinding::new(Level::Error, "config.toml", message).run("config edit"));
    }
    findings.extend(checks::project(config, &current));
    findings.extend(checks::default_scope(config, &scopes));
    findings.extend(about_offer);
    findings.extend(checks::scopes(config, &scopes, &discovery.passed_over));
    findings.extend(clients::clients(config));
    findings.extend(checks::unserved_stores(config, &discovery.scopes));
    // Texts that may come from others: names, paths, messages.
    for finding in &mut findings {
        let texts = [&mut finding.subject, &mut finding.message].into_iter();
        for shown in texts.chain(&mut finding.place).chain(&mut finding.advice) {
            *shown = text::line(shown, 1_000);
        }
    }
    if global.json {
        let scopes = scopes.iter();
        let scopes = scopes.map(|scope| json_with(&scope.info, json!({ "layout": scope.columns })));
        let passed = discovery.passed_over.iter();
        let passed = passed.map(|it| json!({ "name": it.scope, "reason": it.reason }));
        write_json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sqlite": rusqlite::version(),
            "settings": settings::shown(config),
            "current_scope": current.scope.as_ref().map(|scope| &scope.name),
            "detected_by": current.rule,
            "scopes": scopes.collect::<Vec<_>>(),
            "offer": offer,
            "passed_over": passed.collect::<Vec<_>>(),
            "findings": findings,
        }))?;
    } else {
        write_text(config, &findings)?;
    }
    Ok(ExitCode::from(u8::from(findings.iter().any(|one| one.level == Level::Error))))
}

impl<'a> ScopeReport<'a> {
    fn new(service: &Service, scope: &'a Arc<Scope>, may_read: bool) -> Self {
        let mut info = describe(service, scope, may_read, LONG_LIST, Audience::Owner);
        // This command is what these would name.
        let is_doctor =
            |hint: &Hint| matches!(hint, Hint::Command { command, .. } if command == "doctor");
        for problem in &mut info.health.problems {
            problem.retain(|hint| !is_doctor(hint));
        }
        info.resolve(&command::SHELL);
        let columns =
            may_read.then(|| scope.store.snapshot(|snapshot| Ok(snapshot.layout.describe())));
        Self { scope, info, columns: columns.and_then(Result::ok).unwrap_or_default() }
    }
}

fn write_text(config: &Config, findings: &[DoctorFinding]) -> Result<(), CliError> {
    let table = if cfg!(feature = "table") { " · table" } else { "" };
    let head = format!("{table} · {} ({})", config.root.value.display(), config.root.source);
    write_out(&format!(
        "{}{}\n\n{}\n{}\n",
        paint(BOLD, format!("ack-memory {}", env!("CARGO_PKG_VERSION"))),
        paint(DIM, text::safe(&head)),
        checks::findings_text(findings, &Screen::of_output()),
        paint(BOLD, checks::summary(findings))
    ))
}
