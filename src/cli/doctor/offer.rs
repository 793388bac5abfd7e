//! What `serve` offers, for `doctor`.

use std::iter::once;

use serde_json::{Value, json};

use super::checks::{DoctorFinding, Level};
use crate::cli::command::SHELL;
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::Diagnostic;
use ack_gateway::server::{Health, probe};
use ack_gateway::settings::Upstream;
use ack_service::config::Config;

/// The tools if they are not the usual four, the upstream servers, and what is wrong with them; also
/// as JSON. With `connect`, connects to the upstream servers.
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
            let finding = DoctorFinding::new(Level::Note, name, offered);
            found.push(finding.run("doctor --upstreams"));
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

fn as_configured(upstream: &Upstream) -> Health {
    Health {
        name: upstream.name.clone(),
        reached: upstream.connection.to_string(),
        down: None,
        tools: upstream.tools.iter().map(|tool| tool.name.clone()).collect(),
        problems: Vec::new(),
    }
}
