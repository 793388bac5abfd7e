//! `ack-memory` without a subcommand: the current project, what can be asked, and the next step.

use serde_json::json;

use super::args::Global;
use super::error::CliError;
use super::render::{BOLD, DIM, Marks, PLAIN, block, count, grouped, paint};
use super::screen::Screen;
use super::{Closing, all_scopes, config, connect, pager, progress, write_json};
use crate::config::Config;
use crate::connect::Client;
use crate::connect::status::status;
use crate::service::{Error, Service};
use ack_api::{ErrorCode, ListScopesResponse, text};

/// Shows the current project and scope.
pub fn run(global: &Global) -> Result<(), CliError> {
    let config = config(global)?;
    let (connected, others) = clients(&config);
    let service = Closing(Service::new(config).for_the_process());
    let config = &service.0.config;
    let scopes = match progress::while_reading(|| all_scopes(service.0, None)) {
        Ok(scopes) => scopes,
        Err(CliError::Request(error)) if nothing_there(&error) => ListScopesResponse::default(),
        Err(error) => return Err(error),
    };
    let project = &config.project.value;
    let counts = scopes.scopes.iter().filter_map(|scope| scope.counts);
    let served: u64 = counts
        .clone()
        .map(|counts| counts.approved + counts.promoted)
        .sum();
    let waiting: u64 = counts.map(|counts| counts.staging).sum();
    if global.json {
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
    let version = format!("ack-memory {}", env!("CARGO_PKG_VERSION"));
    let mut out = format!("{}\n\n", paint(BOLD, version));
    let mut line = |name: &str, value: &str| {
        let first = format!("{name:<10}");
        let value = text::line(value, 400);
        out += &block(
            &screen,
            &value,
            (&first, "          "),
            PLAIN,
            &Marks::default(),
        );
    };
    if !project.as_os_str().is_empty() {
        line("project", &project.display().to_string());
    }
    let rule = scopes.detected_by.as_deref().unwrap_or("-");
    let scope = match &scopes.current_scope {
        Some(scope) => format!("{scope} ({rule})"),
        None => "none for this project; every shared one is searched".to_owned(),
    };
    if !scopes.scopes.is_empty() {
        line("scope", &scope);
        let place = count(scopes.scopes.len() as u64, "scope");
        let mut memories = format!("{} in {place}", grouped(served));
        if waiting > 0 {
            memories += &format!(", {} waiting for review", grouped(waiting));
        }
        line("memories", &memories);
    }
    if !connected.is_empty() || !others.is_empty() {
        let names = |clients: &[&str]| match clients {
            [] => "none".to_owned(),
            clients => clients.join(", "),
        };
        let mut told = format!("{} connected", names(&connected));
        if !others.is_empty() {
            told += &format!("; not {}", names(&others));
        }
        line("clients", &told);
    }
    let steps = if scopes.scopes.is_empty() {
        "nothing is configured yet: ack-memory setup  ·  a first look: ack-memory demo"
    } else if served == 0 && waiting > 0 {
        "agents see nothing yet: ack-memory review  ·  check: ack-memory doctor"
    } else {
        "ask: ack-memory query WORDS  ·  check: ack-memory doctor  ·  all: ack-memory --help"
    };
    out.push('\n');
    out += &block(&screen, steps, ("", ""), DIM, &Marks::default());
    pager::show(&out, &screen, global)
}

fn nothing_there(error: &Error) -> bool {
    error.code() == ErrorCode::NoScopes
}

/// The clients that are connected to this server, and the installed ones that are not.
fn clients(config: &Config) -> (Vec<&'static str>, Vec<&'static str>) {
    let (Ok(places), Ok(installed)) = (connect::places(config, false), connect::installed(config))
    else {
        return Default::default();
    };
    let starts =
        |client: &Client| status(*client, &places).is_some_and(|status| status.starts.is_some());
    let (connected, others): (Vec<Client>, Vec<Client>) = Client::ALL
        .into_iter()
        .filter(|client| starts(client) || installed.contains(client))
        .partition(starts);
    let names = |clients: Vec<Client>| clients.into_iter().map(Client::name).collect();
    (names(connected), names(others))
}
