//! `scopes set`: keys of a scope's manifest. Nothing is written before it is certain that a scope
//! with this manifest can be used.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::Hint;
use ack_api::memory::{Unreviewed, nearest};
use ack_worktree::repository::Repository;
use serde_json::json;
use toml_edit::{Array, DocumentMut, Item, Value, value as item};

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
use ack_service::scope::{Registry, Scope, check_manifest};
use ack_store::{Store, StoreSettings};
use ack_sys::files::{expand_home, make_private, with_tilde};

const LISTS: [&str; 3] = ["projects", "paths", "remotes"];

pub fn set(config: &Config, args: &SetArgs, json: bool) -> Result<(), CliError> {
    let scopes = Registry::new(config).discover().scopes;
    let scope = &find_scope(&scopes, &args.name)?;
    let changes = args.assignments.iter().map(|assignment| change(config, assignment));
    let changes = changes.collect::<Result<Vec<_>, _>>()?;
    if let Some((_, KeyChange::Set(store))) = changes.iter().find(|(key, _)| key == "store") {
        let store = PathBuf::from(store.as_str().unwrap_or_default());
        let mut others = scopes.iter().filter(|other| other.name != scope.name);
        if let Some(other) = others.find(|other| is_same(other.store.path(), &store)) {
            return Err(add::already_a_scope(&store, &other.name));
        }
        add::refuse_elsewhere(&store, &scope.folder)?;
        let manifest = &scope.manifest;
        add::describe(&store, manifest.unreviewed, manifest.reference.as_ref())?;
    }
    let edited = plan(scope, &changes, &args.assignments.join(" "))?;
    check(config, &changes, &edited)?;
    for problem in effect(scope, &changes, &edited)? {
        write_err(&format!("note: {problem}\n"));
    }
    let writes = edited.is_changed() && !args.dry_run;
    if writes {
        make_private(edited.path.parent().unwrap_or(Path::new(".")))
            .and_then(|()| edited.write())
            .map_err(CliError::io("write", &edited.path))?;
    }
    let undo = edited.is_changed().then(|| undo(&scope.name, &edited));
    if json {
        return write_json(&json!({
            "scope": scope.name, "path": edited.path, "written": writes, "undo": undo,
        }));
    }
    let shown = edited.shown();
    let path = edited.path.display();
    write_plain(&match undo {
        None => format!("nothing to change: {path} already has these values\n"),
        Some(_) if args.dry_run => format!("{shown}\nnothing was written\n"),
        Some(undo) => format!("{shown}\nwritten; undo: {undo}\n"),
    })
}

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

/// The current project as a manifest names it: the main folder of its repository, or its folder,
/// with `~` for the home folder, and with glob characters escaped.
fn this_project(config: &Config) -> String {
    let home = config.home.as_ref().and_then(|home| home.canonicalize().ok());
    let folder = &config.project.value;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let main = Repository::discover(&folder, config.home.as_deref()).map(|found| found.main);
    let project = main.filter(|main| Some(main) != home.as_ref()).unwrap_or(folder);
    let path = with_tilde(&project, home.as_deref());
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
            CliError::usage("KEY=VALUE", format!("{shown_command} is not allowed: {message}"))
        }
        (_, error) => error.into(),
    })
}

/// Parses `key=value`, `key+=value` and `key=`.
fn change(config: &Config, assignment: &str) -> Result<(String, KeyChange), CliError> {
    let Some((key, value)) = assignment.split_once('=') else {
        let message = format!("`{assignment}` is not KEY=VALUE");
        let hint = Hint::command("scopes set NAME KEY=", "removes the key");
        return Err(CliError::usage("KEY=VALUE", message).with_hint(hint));
    };
    let adds = key.ends_with('+');
    let key = key.strip_suffix('+').unwrap_or(key).trim();
    if key.is_empty() {
        return Err(CliError::usage("KEY=VALUE", format!("`{assignment}` has no key before `=`")));
    }
    if let Some(list) = key.strip_suffix('-').filter(|list| LISTS.contains(list)) {
        let message = format!("`{list}-=` is not known: a list is set as it should be");
        let hint = Hint::advice(format!("`{list}=A,B` sets the whole list, `{list}=` removes it"));
        return Err(CliError::usage("KEY", message).with_hint(hint));
    }
    let known = Manifest::keys();
    if !known.iter().any(|known| known == key) {
        let near = nearest(key, known.iter().map(String::as_str), 1);
        let error = Error::invalid("KEY", key, known.join(", ")).corrected(near, None);
        return Err(CliError::Request(error));
    }
    let is_list = LISTS.contains(&key);
    let (raw, value) = (value, value.trim());
    let texts = || -> Result<Vec<String>, CliError> {
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        let is_path = key == "paths";
        parts.map(|it| if is_path { project_path(config, it) } else { Ok(it.to_owned()) }).collect()
    };
    let change = if adds && !is_list {
        let message = format!("`+=` adds to a list, and `{key}` is not a list");
        let hint = Hint::advice(format!("lists are {}", LISTS.join(", ")));
        return Err(CliError::usage("KEY", message).with_hint(hint));
    } else if adds {
        KeyChange::Add(texts()?)
    } else if let Some(table) = table(key, raw) {
        KeyChange::Set(table)
    } else if value.is_empty() {
        KeyChange::Unset
    } else if value.starts_with(['[', '{', '"', '\'']) {
        let parsed = value.parse::<Value>().map_err(|error| {
            let error = error.to_string();
            let line = error.lines().last().unwrap_or_default();
            CliError::usage(key, format!("`{key}`: {value} is not a TOML value ({line})"))
        })?;
        KeyChange::Set(item(parsed.decorated(" ", "")))
    } else if is_list {
        let mut texts = texts()?;
        let mut known = HashSet::new();
        texts.retain(|text| known.insert(text.clone()));
        KeyChange::Set(item(texts.iter().collect::<Array>()))
    } else if key == "store" {
        KeyChange::Set(item(add::absolute(config, Path::new(value))?.display().to_string()))
    } else {
        KeyChange::Set(item(value))
    };
    Ok((key.to_owned(), change))
}

/// A table with its header, as the command that undoes a change has it.
fn table(key: &str, text: &str) -> Option<Item> {
    let document: DocumentMut = text.parse().ok()?;
    document.get(key).filter(|item| item.is_table()).cloned()
}

/// An entry of `paths`: a relative folder becomes absolute, so that it means the same from anywhere.
/// `.` is the project.
pub fn project_path(config: &Config, part: &str) -> Result<String, CliError> {
    if part.starts_with(['/', '~', '*']) {
        return Ok(part.to_owned());
    }
    if matches!(part, "." | "./") {
        return Ok(this_project(config));
    }
    Ok(add::absolute(config, Path::new(part))?.display().to_string())
}

/// Rejects a manifest that could not be used, and values that can match nothing.
fn check(
    config: &Config,
    changes: &[(String, KeyChange)],
    edited: &EditedManifest,
) -> Result<(), CliError> {
    let (home, manifest) = (config.home.as_deref(), &edited.manifest);
    for (key, _) in changes {
        match key.as_str() {
            "paths" => manifest.paths.iter().try_for_each(|path| glob(path, home))?,
            "remotes" => manifest.remotes.iter().try_for_each(|url| remote(url))?,
            _ => {}
        }
    }
    check_manifest(edited.path.parent().unwrap_or(&edited.path), manifest).map_err(|problem| {
        CliError::usage("KEY=VALUE", format!("nothing was written: {}", problem.reason()))
    })
}

/// Rejects values that change nothing for this kind of store. Returns why the reference approves
/// nothing now: it may exist after the next `git fetch`, so it is written anyway. A store that
/// cannot be read now is not checked.
fn effect(
    scope: &Scope,
    changes: &[(String, KeyChange)],
    edited: &EditedManifest,
) -> Result<Vec<String>, CliError> {
    let manifest = &edited.manifest;
    let is_changed = |name: &str| changes.iter().any(|(key, _)| key == name);
    let trusts = is_changed("unreviewed") && manifest.unreviewed == Unreviewed::Approved;
    let refers = is_changed("ref") && manifest.reference.is_some();
    if scope.remote.is_some() || !(trusts || refers) {
        return Ok(Vec::new());
    }
    let path = match &manifest.store {
        Some(path) if is_changed("store") => expand_home(path, None),
        _ => scope.store.path().to_owned(),
    };
    let reference = manifest.reference.clone();
    let settings = StoreSettings { reference, ..StoreSettings::default() };
    let store = Store::with(path, manifest.unreviewed, settings);
    let read =
        store.snapshot(|snapshot| Ok((snapshot.layout.profile, snapshot.layout.has_status())));
    let (key, why) = match (read, &manifest.reference) {
        (Ok((profile, _)), _) if refers && !profile.is_notes() => {
            ("ref", "its store is a database, and only notes in a git repository have a reference")
        }
        (Ok((_, true)), Some(_)) if trusts => ("unreviewed", "`ref` decides what is approved"),
        (Ok((_, true)), None) if trusts => {
            ("unreviewed", "its store keeps a review status of its own")
        }
        _ => {
            let mut problems = store.notes_report().problems.clone();
            problems.retain(|problem| problem.starts_with("`ref"));
            return Ok(problems);
        }
    };
    let name = &scope.name;
    let message = format!("`{key}` would change nothing in scope `{name}`: {why}");
    let review = format!("review --scope {}", quoted(name));
    Err(CliError::usage(key, message).with_hint(Hint::command(review, "approves memories")))
}

fn glob(path: &str, home: Option<&Path>) -> Result<(), CliError> {
    match globset::Glob::new(path) {
        // A folder's name may look like a glob.
        Err(error) if !expand_home(Path::new(path), home).exists() => {
            let message = format!("`{path}` in `paths` is not a valid glob: {}", error.kind());
            let hint = "to mean the character itself, put it in brackets: `[[]`";
            Err(CliError::usage("paths", message).with_hint(hint))
        }
        _ => Ok(()),
    }
}

/// A remote has a host and a path, however it is spelled.
fn remote(url: &str) -> Result<(), CliError> {
    if url.contains(['/', ':']) {
        return Ok(());
    }
    let message = format!("`{url}` in `remotes` is not a git remote");
    let hint = "write the host and the path, such as github.com/org/name";
    Err(CliError::usage("remotes", message).with_hint(hint))
}
