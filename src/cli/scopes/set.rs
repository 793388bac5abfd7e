//! `scopes set`: keys of a scope's manifest.

mod check;

use ack_api::Hint;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::memory::nearest;
use ack_worktree::repository::Repository;
use serde_json::json;
use toml_edit::{Array, Value};

use super::add;
use crate::cli::args::SetArgs;
use crate::cli::command;
use crate::cli::error::CliError;
use crate::cli::output::{write_err, write_json, write_plain};
use ack_connect::quoted;
use ack_service::Error;
use ack_service::config::{Config, SettingsError};
use ack_service::scope::edit::{self, EditedManifest, KeyChange};
use ack_service::scope::known::is_same;
use ack_service::scope::manifest::Manifest;
use ack_service::scope::resolve::find;
use ack_service::scope::{Registry, Scope};
use ack_sys::files::{make_private, with_tilde};

const LISTS: [&str; 3] = ["projects", "paths", "remotes"];

pub fn set(config: &Config, args: &SetArgs, json: bool) -> Result<(), CliError> {
    let scopes = Registry::new(config).discover().scopes;
    let scope = &find_scope(&scopes, &args.name)?;
    let mut changes = Vec::new();
    for assignment in &args.assignments {
        changes.push(change(config, assignment)?);
    }
    if let Some((_, KeyChange::Set(store))) = changes.iter().find(|(key, _)| key == "store") {
        let store = PathBuf::from(store.as_str().unwrap_or_default());
        let mut others = scopes.iter().filter(|other| other.name != scope.name);
        if let Some(other) = others.find(|other| is_same(other.store.path(), &store)) {
            return Err(add::already_a_scope(&store, &other.name));
        }
        let manifest = &scope.manifest;
        add::describe(&store, manifest.unreviewed, manifest.reference.as_ref())?;
    }
    let edited = plan(scope, &changes, &args.assignments.join(" "))?;
    check::check(config, &changes, &edited)?;
    for problem in check::effect(scope, &changes, &edited)? {
        write_err(&format!("note: {problem}\n"));
    }
    let writes = edited.is_changed() && !args.dry_run;
    if writes {
        write(&edited)?;
    }
    let undo = edited.is_changed().then(|| undo(&scope.name, &edited));
    if json {
        return write_json(&json!({
            "scope": scope.name, "path": edited.path, "written": writes, "undo": undo,
        }));
    }
    let shown = edited.shown();
    write_plain(&match undo {
        None => {
            let path = edited.path.display();
            format!("nothing to change: {path} already has these values\n")
        }
        Some(_) if args.dry_run => format!("{shown}\nnothing was written\n"),
        Some(undo) => format!("{shown}\nwritten; undo: {undo}\n"),
    })
}

/// The command that restores every key.
fn undo(scope: &str, edited: &EditedManifest) -> String {
    let mut words = vec![quoted(scope)];
    for (key, earlier) in &edited.earlier_values {
        let earlier = earlier.as_deref().unwrap_or_default();
        // A plain string needs no TOML quotation marks.
        let plain = earlier
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .filter(|text| !text.is_empty() && !text.contains(['\\', '"', '[', '{', ',']));
        words.push(quoted(&format!("{key}={}", plain.unwrap_or(earlier))));
    }
    command::command(&format!("scopes set {}", words.join(" ")))
}

pub fn find_scope(scopes: &[Arc<Scope>], name: &str) -> Result<Arc<Scope>, CliError> {
    find(scopes, name).ok_or_else(|| CliError::no_scope(name, scopes))
}

/// The main folder of the repository that contains a folder, or the folder itself.
fn project(config: &Config, folder: &Path) -> PathBuf {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Repository::discover(&folder, config.home.as_deref())
        .map(|found| found.main)
        .filter(|main| Some(main) != real_home(config).as_ref())
        .unwrap_or(folder)
}

fn real_home(config: &Config) -> Option<PathBuf> {
    config.home.as_ref()?.canonicalize().ok()
}

/// A folder as a manifest names it: with `~` for the home folder, and with glob characters escaped.
fn portable_path(config: &Config, folder: &Path) -> String {
    let path = with_tilde(folder, real_home(config).as_deref());
    let escaped = path.chars().map(|letter| match letter {
        '*' | '?' | '[' | ']' | '{' | '}' => format!("[{letter}]"),
        _ => letter.to_string(),
    });
    escaped.collect()
}

/// Plans changes to a scope's manifest. Creates the manifest if there is none.
fn plan(
    scope: &Scope,
    changes: &[(String, KeyChange)],
    shown_command: &str,
) -> Result<EditedManifest, CliError> {
    let path = scope.folder.join("scope.toml");
    let before = edit::plan(&path, &[]);
    edit::plan(&path, changes).map_err(|error| match (before, error) {
        (Ok(_), SettingsError::Invalid { message, .. }) => {
            // Nothing is written yet, so the line means nothing.
            let message = message.split_once(": ").map_or(&*message, |(_, rest)| rest);
            let message = format!("{shown_command} is not allowed: {message}");
            CliError::usage("KEY=VALUE", message)
        }
        (_, error) => error.into(),
    })
}

fn write(edited: &EditedManifest) -> Result<(), CliError> {
    let io = CliError::io("write", &edited.path);
    make_private(edited.path.parent().unwrap_or(Path::new("."))).map_err(&io)?;
    edited.write().map_err(&io)
}

/// Parses `key=value`, `key+=value` and `key=`.
fn change(config: &Config, assignment: &str) -> Result<(String, KeyChange), CliError> {
    let Some((key, value)) = assignment.split_once('=') else {
        let message = format!("`{assignment}` is not KEY=VALUE");
        let hint = Hint::command("scopes set NAME KEY=", "removes the key");
        return Err(CliError::usage("KEY=VALUE", message).with_hint(hint));
    };
    let (key, adds) = match key.strip_suffix('+') {
        Some(key) => (key.trim(), true),
        None => (key.trim(), false),
    };
    if key.is_empty() {
        let message = format!("`{assignment}` has no key before `=`");
        return Err(CliError::usage("KEY=VALUE", message));
    }
    let known = Manifest::keys();
    if !known.iter().any(|known| known == key) {
        return Err(CliError::Request(Error::InvalidArgument {
            argument: "KEY".to_owned(),
            value: key.to_owned(),
            allowed: known.join(", "),
            nearest: nearest(key, known.iter().map(String::as_str), 1),
            example: None,
        }));
    }
    let is_list = LISTS.contains(&key);
    let value = value.trim();
    let texts = || -> Result<Vec<String>, CliError> {
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| path_or_text(config, key, part)).collect()
    };
    let change = if adds && !is_list {
        let message = format!("`+=` adds to a list, and `{key}` is not a list");
        let hint = Hint::advice(format!("lists are {}", LISTS.join(", ")));
        return Err(CliError::usage("KEY", message).with_hint(hint));
    } else if adds {
        KeyChange::Add(texts()?)
    } else if value.is_empty() {
        KeyChange::Unset
    } else if value.starts_with(['[', '{', '"', '\'']) {
        let parsed: Result<Value, _> = value.parse();
        let parsed = parsed.map_err(|error| {
            let error = error.to_string();
            let line = error.lines().last().unwrap_or_default();
            CliError::usage(key, format!("`{key}`: {value} is not a TOML value ({line})"))
        })?;
        KeyChange::Set(parsed.decorated(" ", ""))
    } else if is_list {
        let mut texts = texts()?;
        let mut known = HashSet::new();
        texts.retain(|text| known.insert(text.clone()));
        KeyChange::Set(texts.iter().collect::<Array>().into())
    } else if key == "store" {
        let store = add::absolute(config, Path::new(value))?;
        KeyChange::Set(store.display().to_string().into())
    } else {
        KeyChange::Set(value.into())
    };
    Ok((key.to_owned(), change))
}

/// Makes a relative folder absolute, so that it means the same from anywhere. `.` is the project.
fn path_or_text(config: &Config, key: &str, part: &str) -> Result<String, CliError> {
    if key == "paths" && matches!(part, "." | "./") {
        let project = project(config, &config.project.value);
        return Ok(portable_path(config, &project));
    }
    let means_the_same = part.starts_with(['/', '~', '*']);
    if key != "paths" || means_the_same {
        return Ok(part.to_owned());
    }
    let path = add::absolute(config, Path::new(part))?;
    Ok(path.display().to_string())
}
