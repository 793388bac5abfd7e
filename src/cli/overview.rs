//! `ack-memory` without a subcommand: the current project, what can be asked, and the next step.

use ack_api::Message;
use serde_json::json;

use super::args::Global;
use super::doctor::{self, DoctorFinding, Level};
use super::error::CliError;
use super::output::write_json;
use super::render::{BOLD, DIM, PLAIN, block, count, grouped, paint};
use super::screen::Screen;
use super::service::{CloseOnDrop, all_scopes};
use super::settings::config;
use super::{command, pager, progress};
use ack_api::{ErrorCode, HealthState, ListScopesResponse, ScopeInfo, text};
use ack_connect::Client;
use ack_service::config::Config;
use ack_service::scope::ScopeError;
use ack_service::{Error, Service};

/// Shows the current project and scope.
pub fn run(global: &Global) -> Result<(), CliError> {
    let config = config(global)?;
    let clients = doctor::connections(&config);
    let service = CloseOnDrop(Service::new(config).leak());
    let config = &service.0.config;
    let scopes = match progress::while_reading(|| all_scopes(service.0, None)) {
        Ok(scopes) => scopes,
        Err(CliError::Request(error)) if is_without_scopes(&error) => ListScopesResponse::default(),
        Err(error) => return Err(error),
    };
    check_database(service.0)?;
    let project = &config.project.value;
    let counts = scopes.scopes.iter().filter_map(|scope| scope.counts);
    let served: u64 = counts
        .clone()
        .map(|counts| counts.approved + counts.promoted)
        .sum();
    let waiting: u64 = counts.map(|counts| counts.staging).sum();
    if global.json {
        let connected = clients
            .iter()
            .filter(|(_, finding)| finding.level == Level::Ok);
        let connected: Vec<&str> = connected.map(|(client, _)| client.name()).collect();
        return write_json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "project": project,
            "current_scope": scopes.current_scope,
            "detected_by": scopes.detected_by,
            "scopes": scopes.scopes.len(),
            "memories": served,
            "waiting": waiting,
            "connected": connected,
        }));
    }
    let screen = Screen::of_output();
    let text = overview(config, &scopes, &clients, (served, waiting), &screen);
    pager::show_paged(&text, &screen, global)
}

/// The current project and scope, and the next step, as text.
fn overview(
    config: &Config,
    scopes: &ListScopesResponse,
    clients: &[(Client, DoctorFinding)],
    (serving_places, waiting): (u64, u64),
    screen: &Screen,
) -> String {
    let project = &config.project.value;
    let version = format!("ack-memory {}", env!("CARGO_PKG_VERSION"));
    let mut out = format!("{}\n\n", paint(BOLD, version));
    let mut line = |name: &str, value: &str| {
        let first = format!("{name:<10}");
        let value = text::line(value, 400);
        out += &block(screen, &value, (&first, "          "), PLAIN);
    };
    if !project.as_os_str().is_empty() {
        line("project", &project.display().to_string());
    }
    let rule = scopes.detected_by.as_deref().unwrap_or("-");
    let scope = match &scopes.current_scope {
        Some(scope) => format!("{scope} ({rule})"),
        None => "none for this project; all shared scopes are searched".to_owned(),
    };
    if !scopes.scopes.is_empty() {
        line("scope", &scope);
        let scope_count = count(scopes.scopes.len() as u64, "scope");
        let mut memories = format!("{} in {scope_count}", grouped(serving_places));
        if waiting > 0 {
            memories += &format!(", {} waiting for review", grouped(waiting));
        }
        line("memories", &memories);
    }
    let is_broken = |scope: &&ScopeInfo| scope.health.state == HealthState::Unavailable;
    for scope in scopes.scopes.iter().filter(is_broken) {
        let first = scope.health.problems.first().map_or("", Message::text);
        line("trouble", &format!("scope `{}`: {}", scope.name, first));
    }
    if let Some(missing) = missing_root(config) {
        line("root", &missing);
    }
    let clients = clients.iter();
    let clients: Vec<String> = clients
        .map(|(client, finding)| format!("{} {}", client.name(), finding.message))
        .collect();
    if !clients.is_empty() {
        line("clients", &clients.join("; "));
    }
    out.push('\n');
    let steps = next_steps(scopes, serving_places, waiting);
    out += &block(screen, &steps, ("", ""), DIM);
    out
}

fn next_steps(scopes: &ListScopesResponse, served: u64, waiting: u64) -> String {
    let steps: &[(&str, &str)] = if scopes.scopes.is_empty() {
        &[("nothing is configured yet", "setup"), ("try it", "demo")]
    } else if served == 0 && waiting > 0 {
        &[("agents see nothing yet", "review"), ("check", "doctor")]
    } else {
        &[
            ("ask", "query WORDS"),
            ("check", "doctor"),
            ("all", "--help"),
        ]
    };
    let steps = steps.iter();
    let steps = steps.map(|(what, run)| format!("{what}: {}", command::command(run)));
    steps.collect::<Vec<_>>().join("  ·  ")
}

/// Fails if the single database of `--db` cannot be read, because nothing works without it.
pub fn check_database(service: &Service) -> Result<(), CliError> {
    if service.config.db.is_some() {
        for scope in service.registry.discover().scopes {
            scope.store.snapshot(|_| Ok(()))?;
        }
    }
    Ok(())
}

fn missing_root(config: &Config) -> Option<String> {
    match ScopeError::no_scopes(config) {
        ScopeError::NoRoot { root, .. } if config.db.is_none() => {
            Some(format!("{} does not exist", root.display()))
        }
        _ => None,
    }
}

fn is_without_scopes(error: &Error) -> bool {
    error.code() == ErrorCode::NoScopes
}
