//! `doctor`: the settings in force with their sources, and for each scope how it was opened, what was found in it, what is
//! wrong and what to do.

use crate::offer::Offer;
use crate::scope::ScopeError;
use ack_api::Diagnostic;
use std::fmt::Write;

use serde_json::{Value, json};

use super::args::{DoctorArgs, Global};
use super::{write_out, write_plain};
use crate::cli::error::CliError;
use crate::config::{Config, ENVIRONMENT, Inputs};
use crate::scope::Scope;
use crate::scope::resolve::current;
use crate::service::Service;
use crate::service::scopes::{MANY, describe};
use crate::toolset::Toolset;
use ack_api::HealthState;
use ack_api::text;
use ack_gateway::server::Health;
use ack_gateway::settings::Upstream;

/// Runs `doctor`. A pinned process looks at its own scope alone.
pub fn run(inputs: Inputs, args: &DoctorArgs, global: &Global) -> Result<(), CliError> {
    let config = Config::load(inputs)?;
    let service = Service::new(config);
    let config = &service.config;
    let discovery = service.registry.discover();
    let current = current(config, &discovery.scopes, &config.project.value)?;
    let settings = settings(config);
    let offer = offered(config, args.upstreams, global.offline);
    let scopes: Vec<(&Scope, Value, Vec<String>)> = discovery
        .scopes
        .iter()
        .map(|scope| {
            // The owner asks about their own stores, so private ones are opened too.
            let may_read = config.pinned.is_none()
                || current
                    .scope
                    .as_ref()
                    .is_some_and(|own| own.name == scope.name);
            let info = describe(&service, scope, may_read, MANY);
            let read = || {
                scope
                    .store
                    .snapshot(|snapshot| Ok(snapshot.layout.describe()))
            };
            let layout = if may_read {
                read().unwrap_or_default()
            } else {
                Vec::new()
            };
            (
                scope.as_ref(),
                serde_json::to_value(info).unwrap_or_default(),
                layout,
            )
        })
        .collect();
    let failing = scopes
        .iter()
        .filter(|(_, info, _)| {
            info.pointer("/health/state") == Some(&json!(HealthState::Unavailable))
        })
        .count();
    let current_scope = current.scope.as_ref().map(|scope| scope.name.clone());
    if global.json {
        let scopes: Vec<Value> = scopes
            .into_iter()
            .map(|(_, mut info, layout)| {
                if let Some(info) = info.as_object_mut() {
                    info.insert("layout".to_owned(), json!(layout));
                }
                info
            })
            .collect();
        let mut report = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sqlite": rusqlite::version(),
            "settings": settings.iter().map(|(name, value, source)| json!({ "name": name, "value": value, "source": source })).collect::<Vec<_>>(),
            "current_scope": current_scope,
            "detected_by": current.rule,
            "scopes": scopes,
            "offer": offer.1,
            "passed_over": discovery.passed_over.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
        });
        text::clean_json(&mut report);
        return write_out(&(serde_json::to_string_pretty(&report).unwrap_or_default() + "\n"));
    }
    let mut out = format!(
        "ack-memory {} (SQLite {})\n\nsettings\n",
        env!("CARGO_PKG_VERSION"),
        rusqlite::version()
    );
    for (name, value, source) in &settings {
        let _ = writeln!(out, "  {name:<14} {value}  ({source})");
    }
    let _ = writeln!(
        out,
        "  environment    {}",
        ENVIRONMENT.map(|(name, _)| name).join(", ")
    );
    let _ = writeln!(
        out,
        "  current scope  {}",
        match (&current_scope, &current.rule) {
            (Some(scope), Some(rule)) => format!("{scope}  ({rule})"),
            _ =>
                "none: no manifest claims this project (add its folder to `paths` in a scope.toml)"
                    .to_owned(),
        }
    );
    out.push_str(&offer.0);
    let _ = writeln!(
        out,
        "\nscopes: {}, of which {failing} cannot be read",
        scopes.len()
    );
    for (scope, info, layout) in &scopes {
        let text = |pointer: &str| {
            info.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        let _ = writeln!(out, "\n  {} [{}]", scope.name, text("/health/state"));
        let _ = writeln!(out, "    store     {}", text("/store"));
        if info.get("profile").is_some() {
            let _ = writeln!(
                out,
                "    profile   {}; opened {}",
                text("/profile"),
                text("/health/opened")
            );
            let counts = info.get("counts").cloned().unwrap_or_default();
            let count = |name: &str| counts.get(name).and_then(Value::as_u64).unwrap_or_default();
            let _ = writeln!(
                out,
                "    memories  {} approved, {} promoted, {} staging, {} rejected; last updated {}",
                count("approved"),
                count("promoted"),
                count("staging"),
                count("rejected"),
                text("/last_updated")
            );
        }
        for line in layout {
            let _ = writeln!(out, "    columns   {line}");
        }
        let _ = writeln!(
            out,
            "    vectors   {}",
            match info.get("index") {
                Some(index) => format!(
                    "table of {} rows, {:.1} % of the store, built {}",
                    index
                        .get("rows")
                        .and_then(Value::as_u64)
                        .unwrap_or_default(),
                    index
                        .get("coverage")
                        .and_then(Value::as_f64)
                        .unwrap_or_default()
                        * 100.0,
                    text("/index/built_at")
                ),
                None if cfg!(feature = "table") => {
                    "no table; made in memory (`ack-memory index` makes one, which shortens the first search)".to_owned()
                }
                None => "made in memory; this build has no vector tables".to_owned(),
            }
        );
        for problem in info
            .pointer("/health/problems")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            let _ = writeln!(out, "    problem   {problem}");
        }
    }
    for (name, reason) in &discovery.passed_over {
        let _ = writeln!(out, "\n  {name} [passed over]\n    {reason}");
    }
    if scopes.is_empty() {
        let none = ScopeError::no_scopes(config);
        let _ = writeln!(out, "  {none}\n  {}", none.hint().unwrap_or_default());
    }
    write_plain(&out)
}

/// What `serve` offers besides: the tools where they are not the four, the upstream servers, or what is wrong with either; as
/// text and as JSON. With `connect`, the servers are connected to.
fn offered(config: &Config, connect: bool, offline: bool) -> (String, Value) {
    let mut out = String::new();
    let mut offer = match Offer::load(config, None, &|name| std::env::var_os(name)) {
        Ok(offer) => offer,
        Err(error) => {
            let body = error.body();
            let _ = writeln!(
                out,
                "\ntools and upstream servers: `serve` refuses to start\n    problem   {}",
                body.message
            );
            return (out, json!({ "problem": body }));
        }
    };
    let left_out = if offline {
        offer.without_network()
    } else {
        Vec::new()
    };
    for name in left_out {
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
    let told = |upstream: &Upstream| {
        upstream
            .tools
            .iter()
            .map(|(_, tool)| tool.name.clone())
            .collect::<Vec<_>>()
    };
    let upstreams: Vec<Health> = if connect && !offer.upstreams.is_empty() {
        ack_gateway::server::probe(offer.upstreams.clone())
    } else {
        let configured = offer.upstreams.iter().map(|upstream| Health {
            name: upstream.name.clone(),
            reached: upstream.connection.to_string(),
            down: None,
            tools: told(upstream),
            problems: Vec::new(),
        });
        configured.collect()
    };
    if !upstreams.is_empty() {
        let how = if connect {
            ""
        } else {
            " (not connected to; `ack-memory doctor --upstreams` does)"
        };
        let _ = writeln!(out, "\nupstream servers: {}{how}", upstreams.len());
    }
    for fare in &upstreams {
        let _ = writeln!(
            out,
            "  {}: {}\n    tools     {}",
            fare.name,
            fare.reached,
            if fare.tools.is_empty() {
                "none".to_owned()
            } else {
                fare.tools.join(", ")
            }
        );
        for problem in fare.down.iter().chain(&fare.problems) {
            let _ = writeln!(out, "    problem   {problem}");
        }
    }
    let upstreams: Vec<Value> = upstreams
        .iter()
        .map(|fare| {
            let problems: Vec<&String> = fare.down.iter().chain(&fare.problems).collect();
            let mut told =
                json!({ "name": fare.name, "reached": fare.reached, "tools": fare.tools });
            if let Some(told) = told.as_object_mut().filter(|_| connect) {
                told.insert("available".to_owned(), json!(fare.down.is_none()));
                told.insert("problems".to_owned(), json!(problems));
            }
            told
        })
        .collect();
    (
        out,
        json!({ "surface": offer.toolset.set.name(), "tools": names, "upstreams": upstreams }),
    )
}

fn settings(config: &Config) -> Vec<(&'static str, String, String)> {
    let mut settings = vec![(
        "root",
        config.root.value.display().to_string(),
        config.root.source.to_string(),
    )];
    let file = config
        .file
        .as_ref()
        .map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    settings.push(("config.toml", file, "root".to_owned()));
    if let Some(db) = &config.db {
        settings.push(("db", db.value.display().to_string(), db.source.to_string()));
    }
    if let Some(pinned) = &config.pinned {
        settings.push(("scope", pinned.value.clone(), pinned.source.to_string()));
    }
    settings.push((
        "project",
        config.project.value.display().to_string(),
        config.project.source.to_string(),
    ));
    if let Some(default) = &config.default_scope {
        settings.push((
            "default_scope",
            default.value.clone(),
            default.source.to_string(),
        ));
    }
    settings.push((
        "limits.results",
        config.limit.value.to_string(),
        config.limit.source.to_string(),
    ));
    settings.push((
        "limits.tokens",
        config.tokens.value.to_string(),
        config.tokens.source.to_string(),
    ));
    settings.push((
        "limits.memory",
        config.memory.value.to_string(),
        config.memory.source.to_string(),
    ));
    settings.push((
        "limits.resident",
        config.resident.value.to_string(),
        config.resident.source.to_string(),
    ));
    settings.push((
        "limits.seconds",
        config.seconds.value.to_string(),
        config.seconds.source.to_string(),
    ));
    settings
}
