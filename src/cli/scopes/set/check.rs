//! What `scopes set` checks before it writes: that a scope with this manifest can be used.

use ack_api::Hint;
use std::path::Path;

use crate::cli::error::CliError;
use ack_api::memory::Unreviewed;
use ack_api::text;
use ack_connect::quoted;
use ack_service::config::Config;
use ack_service::scope;
use ack_service::scope::Scope;
use ack_service::scope::edit::{EditedManifest, KeyChange};
use ack_store::Store;
use ack_sys::files::expand_home;

/// Rejects a manifest that could not be used, and values that can match nothing.
pub fn check(
    config: &Config,
    changes: &[(String, KeyChange)],
    edited: &EditedManifest,
) -> Result<(), CliError> {
    let home = config.home.as_deref();
    for (key, _) in changes {
        match key.as_str() {
            "paths" => edited
                .manifest
                .paths
                .iter()
                .try_for_each(|path| glob(path, home))?,
            "remotes" => edited
                .manifest
                .remotes
                .iter()
                .try_for_each(|url| remote(url))?,
            _ => {}
        }
    }
    let folder = edited.path.parent().unwrap_or(&edited.path);
    scope::check_manifest(folder, &edited.manifest).map_err(|problem| {
        let message = format!("nothing was written: {}", problem.reason());
        CliError::usage("KEY=VALUE", message)
    })
}

/// Why the reference approves nothing now. It may exist after the next `git fetch`, so it is
/// written anyway.
pub fn reference_problems(scope: &Scope, edited: &EditedManifest) -> Vec<String> {
    let manifest = &edited.manifest;
    if manifest.reference.is_none() || scope.remote.is_some() {
        return Vec::new();
    }
    let store = Store::new(scope.store.path().to_owned(), manifest.unreviewed);
    let store = store.with_reference(manifest.reference.clone());
    // An error is reported when the scope is read.
    let _ = store.snapshot(|_| Ok(()));
    let mut problems = store.notes_report().problems.clone();
    problems.retain(|problem| problem.starts_with("`ref"));
    problems
}

/// Rejects values that change nothing for this kind of store. A store that cannot be read now is
/// not checked.
pub fn effect(
    scope: &Scope,
    changes: &[(String, KeyChange)],
    edited: &EditedManifest,
) -> Result<(), CliError> {
    let manifest = &edited.manifest;
    let is_changed = |name: &str| changes.iter().any(|(key, _)| key == name);
    let trusts = is_changed("unreviewed") && manifest.unreviewed == Unreviewed::Approved;
    let refers = is_changed("ref") && manifest.reference.is_some();
    if scope.remote.is_some() || !(trusts || refers) {
        return Ok(());
    }
    let path = manifest.store.as_deref();
    let path = path.map(|path| expand_home(path, None));
    let path = path.filter(|_| is_changed("store"));
    let path = path.unwrap_or_else(|| scope.store.path().to_owned());
    let store = Store::new(path, manifest.unreviewed);
    let store = store.with_reference(manifest.reference.clone());
    let read =
        store.snapshot(|snapshot| Ok((snapshot.layout.profile, snapshot.layout.has_status())));
    let Ok((profile, has_status)) = read else {
        return Ok(());
    };
    let name = &scope.name;
    let refuse = |key: &'static str, why: &str, hint: Hint| {
        let message = format!("`{key}` would change nothing in scope `{name}`: {why}");
        Err(CliError::usage(key, message).with_hint(hint))
    };
    let review = || {
        let command = format!("review --scope {}", quoted(name));
        Hint::command(command, "approves memories")
    };
    if refers && !profile.is_notes() {
        let why = "its store is a database, and only notes in a git repository have a reference";
        return refuse("ref", why, review());
    }
    if trusts && has_status {
        return match &manifest.reference {
            Some(reference) => refuse(
                "unreviewed",
                &format!(
                    "`ref = \"{}\"` decides which notes are approved",
                    text::line(reference, 80)
                ),
                Hint::command(format!("scopes set {} ref=", quoted(name)), "removes `ref`"),
            ),
            None => refuse(
                "unreviewed",
                "its store keeps a review status of its own",
                review(),
            ),
        };
    }
    Ok(())
}

fn glob(path: &str, home: Option<&Path>) -> Result<(), CliError> {
    let Err(error) = globset::Glob::new(path) else {
        return Ok(());
    };
    // A folder's name may look like a glob.
    if expand_home(Path::new(path), home).exists() {
        return Ok(());
    }
    let message = format!("`{path}` in `paths` is not a valid glob: {}", error.kind());
    let hint = "to mean the character itself, put it in brackets: `[[]`";
    Err(CliError::usage("paths", message).with_hint(hint))
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
