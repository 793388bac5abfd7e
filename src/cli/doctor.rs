//! `doctor`: the settings in force with their sources, and for each scope how it was opened, what was found in it, what is
//! wrong and what to do.

use std::fmt::Write;

use serde_json::{Value, json};

use super::write_out;
use crate::api::HealthState;
use crate::config::{Config, ENVIRONMENT, Inputs};
use crate::error::Error;
use crate::scope::resolve::current;
use crate::scope::{Registry, Scope};
use crate::service::scopes::{MANY, describe};

/// Runs `doctor`. A pinned process looks at its own scope alone.
pub fn run(inputs: Inputs, json: bool) -> Result<(), Error> {
    let config = Config::load(inputs)?;
    let registry = Registry::new(&config);
    let discovery = registry.discover();
    let current = current(&config, &discovery.scopes, &config.project.value)?;
    let settings = settings(&config);
    let scopes: Vec<(&Scope, Value, Vec<String>)> = discovery
        .scopes
        .iter()
        .map(|scope| {
            // The owner asks about their own stores, so private ones are opened too.
            let may_read = config.pinned.is_none() || current.scope.as_ref().is_some_and(|own| own.name == scope.name);
            let info = describe(scope, may_read, MANY);
            let read = || scope.store.snapshot(|snapshot| Ok(snapshot.layout.describe()));
            let layout = if may_read { read().unwrap_or_default() } else { Vec::new() };
            (scope.as_ref(), serde_json::to_value(info).unwrap_or_default(), layout)
        })
        .collect();
    let failing = scopes
        .iter()
        .filter(|(_, info, _)| info.pointer("/health/state") == Some(&json!(HealthState::Unavailable)))
        .count();
    let current_scope = current.scope.as_ref().map(|scope| scope.name.clone());
    if json {
        let scopes: Vec<Value> = scopes
            .into_iter()
            .map(|(_, mut info, layout)| {
                if let Some(info) = info.as_object_mut() {
                    info.insert("layout".to_owned(), json!(layout));
                }
                info
            })
            .collect();
        let report = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sqlite": rusqlite::version(),
            "settings": settings.iter().map(|(name, value, source)| json!({ "name": name, "value": value, "source": source })).collect::<Vec<_>>(),
            "current_scope": current_scope,
            "detected_by": current.rule,
            "scopes": scopes,
            "passed_over": discovery.passed_over.iter().map(|(name, reason)| json!({ "name": name, "reason": reason })).collect::<Vec<_>>(),
        });
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
    let _ = writeln!(out, "  environment    {}", ENVIRONMENT.map(|(name, _)| name).join(", "));
    let _ = writeln!(
        out,
        "  current scope  {}",
        match (&current_scope, &current.rule) {
            (Some(scope), Some(rule)) => format!("{scope}  ({rule})"),
            _ => "none: no manifest claims this project (add its folder to `paths` in a scope.toml)".to_owned(),
        }
    );
    let _ = writeln!(out, "\nscopes: {}, of which {failing} cannot be read", scopes.len());
    for (scope, info, layout) in &scopes {
        let text = |pointer: &str| info.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        let _ = writeln!(out, "\n  {} [{}]", scope.name, text("/health/state"));
        let _ = writeln!(out, "    store     {}", text("/path"));
        if info.get("profile").is_some() {
            let _ = writeln!(out, "    profile   {}; opened {}", text("/profile"), text("/health/opened"));
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
                    index.get("rows").and_then(Value::as_u64).unwrap_or_default(),
                    index.get("coverage").and_then(Value::as_f64).unwrap_or_default() * 100.0,
                    text("/index/built_at")
                ),
                None => "no table; made in memory (`ack-memory index` makes one, which shortens the first search)".to_owned(),
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
        let none = Error::NoScopes {
            root: config.root.value.clone(),
        };
        let _ = writeln!(out, "  {none}\n  {}", none.hint().unwrap_or_default());
    }
    write_out(&out)
}

fn settings(config: &Config) -> Vec<(&'static str, String, String)> {
    let mut settings = vec![("root", config.root.value.display().to_string(), config.root.source.to_string())];
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
        settings.push(("default_scope", default.value.clone(), default.source.to_string()));
    }
    settings.push(("limits.results", config.limit.value.to_string(), config.limit.source.to_string()));
    settings.push(("limits.tokens", config.tokens.value.to_string(), config.tokens.source.to_string()));
    settings.push(("limits.memory", config.memory.value.to_string(), config.memory.source.to_string()));
    settings
}
