//! What `serve` offers, for `doctor`.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::cli::command::{SHELL, command};
use crate::config::Config;
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::{Diagnostic, ErrorBody};
use ack_gateway::server::{Health, probe};
use ack_gateway::settings::Upstream;

/// What `serve` offers: its tools, and the upstream servers.
#[derive(Default)]
pub struct OfferReport {
    /// Why it answers every call with an error.
    pub problem: Option<ErrorBody>,
    toolset: Toolset,
    /// Whether the upstream servers were contacted.
    is_contacted: bool,
    pub upstreams: Vec<Health>,
    /// Those that are left out without a network.
    skipped: Vec<String>,
}

impl OfferReport {
    /// Reads the settings. With `connect`, connects to the upstream servers.
    pub fn new(config: &Config, connect: bool, offline: bool) -> Self {
        let mut offer = match Offer::load(config, None, &|name| std::env::var_os(name)) {
            Ok(offer) => offer,
            Err(error) => {
                return Self {
                    problem: Some(error.body_for(&SHELL)),
                    ..Self::default()
                };
            }
        };
        let skipped = if offline {
            offer.without_network()
        } else {
            Vec::new()
        };
        let upstreams = if connect && !offer.upstreams.is_empty() {
            probe(offer.upstreams)
        } else {
            offer.upstreams.iter().map(as_configured).collect()
        };
        Self {
            problem: None,
            toolset: offer.toolset,
            is_contacted: connect,
            upstreams,
            skipped,
        }
    }

    fn tools(&self) -> Vec<&str> {
        let tools = self.toolset.tools().iter();
        tools.map(|tool| tool.name.as_str()).collect()
    }

    /// The tools if they are not the default four, the upstream servers, or what is wrong.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(problem) = &self.problem {
            let _ = writeln!(
                out,
                "\ntools and upstream servers: `serve` answers every call with an error\n    problem   {}",
                problem.message
            );
            return out;
        }
        for name in &self.skipped {
            let _ = writeln!(
                out,
                "\nthe upstream server `{name}` is reached over HTTP and is left out (--offline)"
            );
        }
        if self.toolset != Toolset::default() {
            let (set, tools) = (self.toolset.set.name(), self.tools().join(", "));
            let _ = writeln!(out, "\ntools ({set}): {tools}");
        }
        if !self.upstreams.is_empty() {
            let how = if self.is_contacted {
                String::new()
            } else {
                format!(" (not contacted; `{}` does)", command("doctor --upstreams"))
            };
            let _ = writeln!(out, "\nupstream servers: {}{how}", self.upstreams.len());
        }
        for upstream in &self.upstreams {
            let tools = if upstream.tools.is_empty() {
                "none".to_owned()
            } else {
                upstream.tools.join(", ")
            };
            let Health { name, reached, .. } = upstream;
            let _ = writeln!(out, "  {name}: {reached}\n    tools     {tools}");
            for problem in upstream.down.iter().chain(&upstream.problems) {
                let _ = writeln!(out, "    problem   {problem}");
            }
        }
        out
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        if let Some(problem) = &self.problem {
            return json!({ "problem": problem });
        }
        let upstreams = self.upstreams.iter().map(|upstream| {
            let Health {
                name,
                reached,
                tools,
                ..
            } = upstream;
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

/// A server that was not contacted.
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
