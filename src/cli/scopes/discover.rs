//! `scopes discover`: the stores on this machine, with counts and the possible actions for each.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::offer::{self, Answer};
use crate::cli::error::CliError;
use crate::cli::{machine, prompt, write_out, write_plain};
use crate::config::Config;
use crate::recogniser::{Found, Kind, Support};
use crate::scope::{Registry, Scope, same};

/// Runs `scopes discover`.
pub fn run(config: &Config, json: bool) -> Result<(), CliError> {
    let scopes = Registry::new(config).discover().scopes;
    let stores = machine::stores(config);
    if json {
        let stores: Vec<_> = stores.iter().map(|found| told(found, &scopes)).collect();
        let answer = json!({ "stores": stores });
        return write_out(&(serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n"));
    }
    write_plain(&listed(&stores, &scopes, config.home.as_deref()))?;
    if prompt::is_possible() {
        offer_each(config, &stores)?;
    }
    Ok(())
}

/// Asks about each store that can be served and is not a scope yet.
fn offer_each(config: &Config, stores: &[Found]) -> Result<(), CliError> {
    for found in stores {
        let scopes = Registry::new(config).discover().scopes;
        let new = same::scope_with(&scopes, &found.path).is_none();
        if found.kind.support() != Support::Served || found.memories.is_none() || !new {
            continue;
        }
        write_plain(&format!("\n{}\n", line(found, config.home.as_deref())))?;
        let name = free_name(found, &scopes);
        match offer::ask(found) {
            None => return Ok(()),
            Some(Answer::Skip) => {}
            Some(answer) => {
                offer::add(config, found, &name, answer)?;
                let command = offer::command(found, &name, answer);
                write_plain(&format!("  added as scope `{name}`: {command}\n"))?;
            }
        }
    }
    Ok(())
}

/// A store as JSON.
pub fn told(found: &Found, scopes: &[Arc<Scope>]) -> serde_json::Value {
    let mut told = serde_json::to_value(found).unwrap_or_default();
    if let Some(told) = told.as_object_mut() {
        told.insert("support".to_owned(), json!(found.kind.support()));
        if let Some(scope) = same::scope_with(scopes, &found.path) {
            told.insert("scope".to_owned(), json!(scope.name));
        }
    }
    told
}

/// The list for people: stores that can be served with their state, then stores that are only
/// recognised.
pub fn listed(stores: &[Found], scopes: &[Arc<Scope>], home: Option<&Path>) -> String {
    let mut out = String::new();
    let can = |support: Support| {
        stores
            .iter()
            .filter(move |found| found.kind.support() == support)
    };
    for found in can(Support::Served) {
        let _ = writeln!(out, "{}", line(found, home));
        match same::scope_with(scopes, &found.path) {
            Some(scope) => {
                let _ = writeln!(out, "  served as scope `{}`", scope.name);
            }
            // A store that cannot be read cannot be added.
            None if found.problem.is_some() => {}
            None => {
                let name = free_name(found, scopes);
                let store = crate::connect::quoted(&found.path.display().to_string());
                let _ = writeln!(
                    out,
                    "  add it: ack-memory scopes add {name} --store {store}"
                );
            }
        }
    }
    for found in can(Support::Import) {
        let _ = writeln!(out, "{}\n  use it: {}", line(found, home), found.advice());
    }
    let names: Vec<String> = can(Support::Reference)
        .map(|found| shown(&found.path, home))
        .collect();
    if !names.is_empty() {
        let _ = writeln!(
            out,
            "\ninstructions that hosts load by themselves: {}",
            names.join(", ")
        );
    }
    match out.strip_prefix('\n') {
        Some(rest) => rest.to_owned(),
        None if out.is_empty() => {
            "no store of a known program is on this machine; `ack-memory demo DIR` makes \
             samples, `ack-memory import FILE` reads JSON lines\n"
                .to_owned()
        }
        None => out,
    }
}

/// A store in one line: kind, size, path.
pub fn line(found: &Found, home: Option<&Path>) -> String {
    format!(
        "{}: {}, {}",
        found.kind.title(),
        found.count(),
        shown(&found.path, home)
    )
}

/// A path as people write it.
pub fn shown(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

/// A scope name, if it is valid.
fn valid(name: String) -> Option<String> {
    crate::import::check_name(&name).is_ok().then_some(name)
}

/// A name derived from a folder.
fn named_after(folder: Option<&Path>, prefix: &str) -> String {
    let name = folder.and_then(Path::file_name);
    name.and_then(|name| valid(format!("{prefix}{}", name.to_string_lossy())))
        .unwrap_or_else(|| "memories".to_owned())
}

/// A scope name for a store that no scope uses yet.
pub fn free_name(found: &Found, scopes: &[Arc<Scope>]) -> String {
    let base = match found.kind {
        Kind::ClaudeMem => "claude-mem".to_owned(),
        Kind::Codex | Kind::ServerMemory | Kind::BasicMemory | Kind::McpMemoryService => {
            found.kind.title().to_lowercase().replace(' ', "-")
        }
        Kind::Serena => named_after(found.path.ancestors().nth(2), "serena-"),
        Kind::Solutions => named_after(found.path.ancestors().nth(2), "solutions-"),
        Kind::AutoMemory => {
            // `-home-ana-src-shop` is the folder that the sessions ran in.
            let slug = found.path.parent().and_then(Path::file_name);
            let slug = slug.map(|slug| slug.to_string_lossy().into_owned());
            let slug = slug.unwrap_or_default();
            let project = slug.rsplit("-src-").next().unwrap_or_default();
            let project = project.trim_start_matches('-');
            valid(format!("auto-{project}")).unwrap_or_else(|| "auto-memory".to_owned())
        }
        _ => named_after(found.path.parent(), ""),
    };
    let is_free = |name: &String| scopes.iter().all(|scope| scope.name != *name);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.clone())
        .chain(numbered)
        .find(is_free)
        .unwrap_or(base)
}
