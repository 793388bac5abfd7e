//! What `scopes set` checks before it writes: that a scope with this manifest can be used.

use ack_api::Hint;
use std::path::Path;

use crate::cli::error::CliError;
use ack_api::memory::Unreviewed;
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
    let (home, manifest) = (config.home.as_deref(), &edited.manifest);
    for (key, _) in changes {
        match key.as_str() {
            "paths" => manifest.paths.iter().try_for_each(|path| glob(path, home))?,
            "remotes" => manifest.remotes.iter().try_for_each(|url| remote(url))?,
            _ => {}
        }
    }
    let folder = edited.path.parent().unwrap_or(&edited.path);
    scope::check_manifest(folder, manifest).map_err(|problem| {
        let message = format!("nothing was written: {}", problem.reason());
        CliError::usage("KEY=VALUE", message)
    })
}

/// Rejects values that change nothing for this kind of store. Returns why the reference approves
/// nothing now: it may exist after the next `git fetch`, so it is written anyway. A store that
/// cannot be read now is not checked.
pub fn effect(
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
    let path = manifest.store.as_deref().filter(|_| is_changed("store"));
    let path = path.map(|path| expand_home(path, None));
    let path = path.unwrap_or_else(|| scope.store.path().to_owned());
    let store = Store::new(path, manifest.unreviewed);
    let store = store.with_reference(manifest.reference.clone());
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
