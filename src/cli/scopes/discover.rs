//! `scopes discover`: the stores on this machine, with counts and the possible actions for each.

use ack_api::hint;
use std::fmt::Write;
use std::path::Path;

use serde_json::json;

use super::found_store::{self, Answer};
use crate::cli::command::{SHELL, command};
use crate::cli::error::CliError;
use crate::cli::output::{write_out, write_plain};
use crate::cli::{prompt, user};
use crate::config::Config;
use crate::recogniser::{FoundStore, StoreKind, Support};
use crate::scope::{KnownScopes, Registry};

/// Runs `scopes discover`.
pub fn run(config: &Config, json: bool) -> Result<(), CliError> {
    let mut known = KnownScopes::new(&Registry::new(config).discover().scopes);
    let stores = user::stores(config);
    if json {
        let stores: Vec<_> = stores
            .iter()
            .map(|found| store_json(found, &known))
            .collect();
        let answer = json!({ "stores": stores });
        return write_out(&(serde_json::to_string_pretty(&answer).unwrap_or_default() + "\n"));
    }
    // At a terminal, each store that can be added is shown with its question.
    let (offered, rest): (Vec<FoundStore>, Vec<FoundStore>) = stores
        .into_iter()
        .partition(|found| prompt::is_possible() && is_new(found, &known));
    if offered.is_empty() || !rest.is_empty() {
        write_plain(&stores_text(&rest, &mut known, config.home.as_deref()))?;
    }
    offer_each(config, &offered, known)
}

/// Whether a store can be added as a scope.
fn is_new(found: &FoundStore, known: &KnownScopes) -> bool {
    found.kind.support() == Support::Served
        && found.memories.is_some()
        && known.with_store(&found.path).is_none()
}

/// Asks about each store that can be added.
fn offer_each(
    config: &Config,
    stores: &[FoundStore],
    mut known: KnownScopes,
) -> Result<(), CliError> {
    let home = config.home.as_deref();
    for found in stores {
        if !is_new(found, &known) {
            continue;
        }
        write_plain(&format!("\n{}\n", store_line(found, home)))?;
        let name = free_name(found, &mut known);
        match found_store::ask(found, home) {
            None => return Ok(()),
            Some(Answer::Skip) => {}
            Some(answer) => {
                found_store::add(config, &mut known, found, &name, answer)?;
                let command = found_store::command(found, &name, answer);
                write_plain(&format!("  added as scope `{name}`: {command}\n"))?;
            }
        }
    }
    Ok(())
}

/// A store as JSON.
pub fn store_json(found: &FoundStore, known: &KnownScopes) -> serde_json::Value {
    let mut value = serde_json::to_value(found).unwrap_or_default();
    if let Some(value) = value.as_object_mut() {
        value.insert("support".to_owned(), json!(found.kind.support()));
        if let Some(scope) = known.with_store(&found.path) {
            value.insert("scope".to_owned(), json!(scope));
        }
    }
    value
}

/// The list for people: stores that can be served with their state, then stores that are only
/// recognised.
fn stores_text(stores: &[FoundStore], known: &mut KnownScopes, home: Option<&Path>) -> String {
    let mut out = String::new();
    let can = |support: Support| {
        stores
            .iter()
            .filter(move |found| found.kind.support() == support)
    };
    for found in can(Support::Served) {
        let _ = writeln!(out, "{}", store_line(found, home));
        match known.with_store(&found.path) {
            Some(scope) => {
                let _ = writeln!(out, "  served as scope `{scope}`");
            }
            // A store that cannot be read cannot be added.
            None if found.problem.is_some() => {}
            None => {
                let name = free_name(found, known);
                let store = crate::connect::quoted(&found.path.display().to_string());
                let add = command(&format!("scopes add {name} --store {store}"));
                let _ = writeln!(out, "  add it (a preview; --yes writes it): {add}");
            }
        }
    }
    for found in can(Support::Import) {
        let _ = writeln!(
            out,
            "{}\n  use it: {}",
            store_line(found, home),
            hint::render(&[found.advice()], &SHELL).unwrap_or_default()
        );
    }
    let names: Vec<String> = can(Support::Reference)
        .map(|found| with_tilde(&found.path, home))
        .collect();
    if !names.is_empty() {
        let _ = writeln!(
            out,
            "\ninstruction files that hosts load themselves: {}",
            names.join(", ")
        );
    }
    match out.strip_prefix('\n') {
        Some(rest) => rest.to_owned(),
        None if out.is_empty() => format!(
            "no store of a known program was found on this machine; `{}` shows sample memories, \
             `{}` reads JSON lines\n",
            command("demo"),
            command("import FILE --scope NAME")
        ),
        None => out,
    }
}

/// A store in one line: kind, size, path.
pub fn store_line(found: &FoundStore, home: Option<&Path>) -> String {
    format!(
        "{}: {}, {}",
        found.kind.title(),
        found.count(),
        with_tilde(&found.path, home)
    )
}

/// A path as people write it.
pub fn with_tilde(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    }
}

/// A scope name, if it is valid.
fn valid_name(name: String) -> Option<String> {
    crate::import::check_name(&name).is_ok().then_some(name)
}

/// A name derived from a folder.
fn named_after(folder: Option<&Path>, prefix: &str) -> String {
    let name = folder.and_then(Path::file_name);
    name.and_then(|name| valid_name(format!("{prefix}{}", name.to_string_lossy())))
        .unwrap_or_else(|| "memories".to_owned())
}

/// A scope name for a store that no scope uses yet.
pub fn free_name(found: &FoundStore, known: &mut KnownScopes) -> String {
    known.free_name(match found.kind {
        StoreKind::ClaudeMem => "claude-mem".to_owned(),
        StoreKind::Codex
        | StoreKind::ServerMemory
        | StoreKind::BasicMemory
        | StoreKind::McpMemoryService => found.kind.title().to_lowercase().replace(' ', "-"),
        StoreKind::Serena => named_after(found.path.ancestors().nth(2), "serena-"),
        StoreKind::Solutions => named_after(found.path.ancestors().nth(2), "solutions-"),
        StoreKind::AutoMemory => {
            // `-home-ana-src-shop` is the folder that the sessions ran in.
            let slug = found.path.parent().and_then(Path::file_name);
            let slug = slug.map(|slug| slug.to_string_lossy().into_owned());
            let slug = slug.unwrap_or_default();
            let project = slug.rsplit("-src-").next().unwrap_or_default();
            let project = project.trim_start_matches('-');
            valid_name(format!("auto-{project}")).unwrap_or_else(|| "auto-memory".to_owned())
        }
        _ => named_after(found.path.parent(), ""),
    })
}
