//! What `serve` offers, for `doctor`.

use serde_json::{Value, json};

use super::checks::{DoctorFinding, Level};
use crate::cli::command::SHELL;
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::{Diagnostic, ErrorBody};
use ack_gateway::server::{Health, probe};
use ack_gateway::settings::Upstream;
use ack_service::config::Config;

/// What `serve` offers: its tools, and the upstream servers.
#[derive(Default)]
pub struct OfferReport {
    /// Why it answers every call with an error.
    problem: Option<ErrorBody>,
    toolset: Toolset,
    is_contacted: bool,
    upstreams: Vec<Health>,
    /// Those that are left out without a network.
    skipped: Vec<String>,
}

impl OfferReport {
    /// Reads the settings. With `connect`, connects to the upstream servers.
    pub fn new(config: &Config, connect: bool, offline: bool) -> Self {
        let mut offer = match Offer::load(config, None, &|name| std::env::var_os(name)) {
            Ok(offer) => offer,
            Err(error) => {
                return Self { problem: Some(error.body_for(&SHELL)), ..Self::default() };
            }
        };
        let skipped = if offline { offer.without_network() } else { Vec::new() };
        let upstreams = if connect && !offer.upstreams.is_empty() {
            probe(offer.upstreams)
        } else {
            offer.upstreams.iter().map(as_configured).collect()
        };
        Self { problem: None, toolset: offer.toolset, is_contacted: connect, upstreams, skipped }
    }

    fn tools(&self) -> Vec<&str> {
        let tools = self.toolset.tools().iter();
        tools.map(|tool| tool.name.as_str()).collect()
    }

    /// The tools if they are not the usual four, the upstream servers, and what is wrong with them.
    pub fn findings(&self) -> Vec<DoctorFinding> {
        if let Some(problem) = &self.problem {
            let message = format!("answers every call with an error: {}", problem.message);
            return vec![DoctorFinding::new(Level::Error, "serve", message).run("config edit")];
        }
        let mut found = Vec::new();
        if self.toolset != Toolset::default() {
            let (set, tools) = (self.toolset.set.name(), self.tools().join(", "));
            found.push(DoctorFinding::new(Level::Note, "tools", format!("{set}: {tools}")));
        }
        for name in &self.skipped {
            let message = "an upstream server over HTTP, left out (--offline)";
            found.push(DoctorFinding::new(Level::Note, name, message));
        }
        for upstream in &self.upstreams {
            let mut offered = vec![upstream.reached.clone()];
            offered.extend(upstream.tools.iter().cloned());
            let offered = offered.join(", ");
            found.push(if self.is_contacted {
                let level = if upstream.down.is_some() { Level::Error } else { Level::Ok };
                DoctorFinding::new(level, &upstream.name, offered)
            } else {
                DoctorFinding::new(Level::Note, &upstream.name, offered).run("doctor --upstreams")
            });
            for problem in upstream.down.iter().chain(&upstream.problems) {
                found.push(DoctorFinding::new(Level::Warning, "", problem));
            }
        }
        found
    }

    pub fn json(&self) -> Value {
        if let Some(problem) = &self.problem {
            return json!({ "problem": problem });
        }
        let upstreams = self.upstreams.iter().map(|upstream| {
            let Health { name, reached, tools, .. } = upstream;
            if !self.is_contacted {
                return json!({ "name": name, "reached": reached, "tools": tools });
            }
            let problems: Vec<&String> = upstream.down.iter().chain(&upstream.problems).collect();
            json!({
                "name": name, "reached": reached, "tools": tools,
                "available": upstream.down.is_none(), "problems": problems,
            })
        });
        json!({
            "surface": self.toolset.set.name(), "tools": self.tools(),
            "upstreams": upstreams.collect::<Vec<_>>(),
        })
    }
}

fn as_configured(upstream: &Upstream) -> Health {
    let tools = upstream.tools.iter();
    Health {
        name: upstream.name.clone(),
        reached: upstream.connection.to_string(),
        down: None,
        tools: tools.map(|tool| tool.name.clone()).collect(),
        problems: Vec::new(),
    }
}
