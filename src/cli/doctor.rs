//! `doctor`: which project this is, what works and what does not, each with a next step. `--json` adds
//! the effective settings and what is known about each scope.

mod checks;
mod clients;
mod offer;
mod settings;

use self::checks::{DoctorFinding, Level};
pub use settings::{ShownSetting, settings};

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use self::offer::OfferReport;
use super::args::{DoctorArgs, Global};
use super::output::{json_with, write_out};
use super::render::{BOLD, DIM, paint};
use super::screen::Screen;
use super::{command, progress, user};
use crate::cli::error::CliError;
use ack_api::{Diagnostic, Hint, Resolve as _, ScopeInfo, Skipped, text};
use ack_service::Service;
use ack_service::config::{Config, Inputs};
use ack_service::scope::Scope;
use ack_service::scope::resolve::current;
use ack_service::scopes::{Audience, LONG_LIST, describe};

pub struct DoctorReport<'a> {
    config: &'a Config,
    /// Why `config.toml` is invalid.
    broken_settings: Option<String>,
    scopes: Vec<ScopeReport<'a>>,
    current_scope: Option<String>,
    current_rule: Option<String>,
    passed_over: Vec<Skipped>,
    /// What `serve` offers, if the settings can be read.
    offer: Option<OfferReport>,
}

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
    let current = current(config, &discovery.scopes, None)?;
    let scopes = progress::while_reading(|| {
        let scopes = discovery.scopes.iter();
        // The owner asks about their own stores, so private ones are opened too.
        let may_read = |scope: &Arc<Scope>| {
            let is_current = current.scope.as_ref().is_some_and(|it| it.name == scope.name);
            config.pinned.is_none() || is_current
        };
        scopes.map(|scope| ScopeReport::new(&service, scope, may_read(scope))).collect()
    });
    let report = DoctorReport {
        offer: broken_settings
            .is_none()
            .then(|| OfferReport::new(config, args.upstreams, global.offline)),
        broken_settings,
        scopes,
        current_scope: current.scope.as_ref().map(|scope| scope.name.clone()),
        current_rule: current.rule.clone(),
        passed_over: discovery.passed_over.clone(),
        config,
    };
    let mut findings = checks::settings(&report);
    findings.extend(checks::scopes(&report, &Screen::of_output()));
    findings.extend(clients::clients(config));
    let stores = user::stores(config);
    findings.extend(checks::unserved_stores(&stores, &discovery.scopes, config));
    // Texts that may come from others: names, paths, messages.
    for finding in &mut findings {
        let texts = [&mut finding.subject, &mut finding.message].into_iter();
        for shown in texts.chain(&mut finding.place).chain(&mut finding.advice) {
            *shown = text::line(shown, 1_000);
        }
    }
    let wrong = findings.iter().any(|one| one.level == Level::Error);
    if global.json {
        write_json(&report, &findings)?;
    } else {
        write_text(config, &findings)?;
    }
    Ok(match wrong {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
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
        let columns = may_read.then(|| {
            let store = &scope.store;
            store.snapshot(|snapshot| Ok(snapshot.layout.describe()))
        });
        Self { scope, info, columns: columns.and_then(Result::ok).unwrap_or_default() }
    }
}

fn write_text(config: &Config, findings: &[DoctorFinding]) -> Result<(), CliError> {
    let screen = Screen::of_output();
    let has_table = cfg!(feature = "table");
    let mut head = if has_table { " · table" } else { "" }.to_owned();
    head += &format!(" · {} ({})", config.root.value.display(), config.root.source);
    let version = format!("ack-memory {}", env!("CARGO_PKG_VERSION"));
    let mut out = format!("{}{}\n\n", paint(BOLD, version), paint(DIM, text::safe(&head)));
    out += &checks::findings_text(findings, &screen);
    out += &format!("\n{}\n", paint(BOLD, checks::summary(findings)));
    write_out(&out)
}

fn write_json(report: &DoctorReport<'_>, findings: &[DoctorFinding]) -> Result<(), CliError> {
    let scopes = report
        .scopes
        .iter()
        .map(|scope| json_with(&scope.info, json!({ "layout": scope.columns })));
    let passed = report.passed_over.iter();
    let passed = passed.map(|it| json!({ "name": it.scope, "reason": it.reason }));
    super::output::write_json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sqlite": rusqlite::version(),
        "settings": settings(report.config),
        "current_scope": report.current_scope,
        "detected_by": report.current_rule,
        "scopes": scopes.collect::<Vec<_>>(),
        "offer": report.offer.as_ref().map(OfferReport::json),
        "passed_over": passed.collect::<Vec<_>>(),
        "findings": findings,
    }))
}
