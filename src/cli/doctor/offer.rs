//! What `serve` offers, for `doctor`.

use crate::cli::command::{SHELL, command};
use std::fmt::Write;

use serde_json::{Value, json};

use crate::config::Config;
use crate::offer::Offer;
use crate::toolset::Toolset;
use ack_api::Diagnostic;
use ack_gateway::server::Health;
use ack_gateway::settings::Upstream;

/// What `serve` offers in addition: the tools if they are not the default four, the upstream
/// servers, or what is wrong with either; as text and as JSON. With `connect`, connects to the
/// servers.
pub fn describe_offer(config: &Config, connect: bool, offline: bool) -> (String, Value) {
    let mut out = String::new();
    let mut offer = match Offer::load(config, None, &|name| std::env::var_os(name)) {
        Ok(offer) => offer,
        Err(error) => {
            let body = error.body_for(&SHELL);
            let _ = writeln!(
                out,
                "\ntools and upstream servers: `serve` answers every call with an error\n    problem   {}",
                body.message
            );
            return (out, json!({ "problem": body }));
        }
    };
    let skipped = if offline {
        offer.without_network()
    } else {
        Vec::new()
    };
    for name in skipped {
        let _ = writeln!(
            out,
            "\nthe upstream server `{name}` is reached over HTTP and is left out (--offline)"
        );
    }
    let names: Vec<&str> = offer
        .toolset
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    if offer.toolset != Toolset::default() {
        let _ = writeln!(
            out,
            "\ntools ({}): {}",
            offer.toolset.set.name(),
            names.join(", ")
        );
    }
    let describe = |upstream: &Upstream| {
        upstream
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect::<Vec<_>>()
    };
    let upstreams: Vec<Health> = if connect && !offer.upstreams.is_empty() {
        ack_gateway::server::probe(offer.upstreams.clone())
    } else {
        let configured = offer.upstreams.iter().map(|upstream| Health {
            name: upstream.name.clone(),
            reached: upstream.connection.to_string(),
            down: None,
            tools: describe(upstream),
            problems: Vec::new(),
        });
        configured.collect()
    };
    if !upstreams.is_empty() {
        let how = if connect {
            String::new()
        } else {
            format!(" (not contacted; `{}` does)", command("doctor --upstreams"))
        };
        let _ = writeln!(out, "\nupstream servers: {}{how}", upstreams.len());
    }
    for upstream in &upstreams {
        let _ = writeln!(
            out,
            "  {}: {}\n    tools     {}",
            upstream.name,
            upstream.reached,
            if upstream.tools.is_empty() {
                "none".to_owned()
            } else {
                upstream.tools.join(", ")
            }
        );
        for problem in upstream.down.iter().chain(&upstream.problems) {
            let _ = writeln!(out, "    problem   {problem}");
        }
    }
    let upstreams: Vec<Value> = upstreams
        .iter()
        .map(|upstream| {
            let problems: Vec<&String> = upstream.down.iter().chain(&upstream.problems).collect();
            let mut describe =
                json!({ "name": upstream.name, "reached": upstream.reached, "tools": upstream.tools });
            if let Some(describe) = describe.as_object_mut().filter(|_| connect) {
                describe.insert("available".to_owned(), json!(upstream.down.is_none()));
                describe.insert("problems".to_owned(), json!(problems));
            }
            describe
        })
        .collect();
    (
        out,
        json!({ "surface": offer.toolset.set.name(), "tools": names, "upstreams": upstreams }),
    )
}
