//! `scopes remove`: removes a scope and leaves its store in place.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::set::find_scope;
use crate::cli::args::RemoveArgs;
use crate::cli::error::CliError;
use crate::cli::output::{write_json, write_plain};
use crate::cli::prompt;
use ack_connect::quoted_path;
use ack_service::config::Config;
use ack_service::scope::{Registry, Scope};
use ack_sys::files::{make_private, read_head};

const REMOVED_FOLDER: &str = "removed";

pub fn run(config: &Config, args: &RemoveArgs, json: bool) -> Result<(), CliError> {
    let scope = &find_scope(&Registry::new(config).discover().scopes, &args.name)?;
    let to = plan(config, scope)?;
    let (folder, place) = (scope.folder.display(), to.display());
    let does = match &scope.problem {
        // A manifest that cannot be read may name any store.
        Some(_) => format!("{folder} moves to {place}; no store is touched"),
        None => {
            let store = scope.store.path().display();
            format!("{folder} moves to {place}; the store, {store}, is left alone")
        }
    };
    let undo = format!("mv {} {}", quoted_path(&to), quoted_path(&scope.folder));
    let asks = !args.yes && !json && prompt::is_possible();
    if asks {
        write_plain(&format!("{does}\n"))?;
    }
    let writes = args.yes || (asks && prompt::confirm("Remove the scope?"));
    if writes {
        let moved = make_private(to.parent().unwrap_or(&to));
        let moved = moved.and_then(|()| std::fs::rename(&scope.folder, &to));
        moved.map_err(CliError::io("move", &scope.folder))?;
    }
    if json {
        let result = json!({ "scope": scope.name, "removed": writes, "does": does, "undo": undo });
        return write_json(&result);
    }
    let message = match (writes, asks) {
        (true, true) => format!("removed; undo: {undo}\n"),
        (true, false) => format!("{does}\nremoved; undo: {undo}\n"),
        (false, true) => "nothing was changed\n".to_owned(),
        (false, false) => {
            format!("{does}\nnothing was changed; run the same command with --yes to do it\n")
        }
    };
    write_plain(&message)
}

pub fn is_possible(config: &Config, scope: &Scope) -> bool {
    plan(config, scope).is_ok()
}

/// Where the folder of a scope is moved to, if it has no database. It may be a symbolic link.
fn plan(config: &Config, scope: &Scope) -> Result<PathBuf, CliError> {
    let refuse = |reason: String, hint: String| {
        let message = format!("scope `{}` cannot be removed: {reason}", scope.name);
        Err(CliError::usage("NAME", message).with_hint(hint))
    };
    let scopes = config.root.value.join("scopes");
    let at_the_root = scope.store.path().parent() == Some(config.root.value.as_path());
    if scope.folder.parent() != Some(&scopes) || at_the_root {
        let store = scope.store.path().display();
        return refuse(
            format!("it is not a folder under {}", scopes.display()),
            format!("it is served because {store} exists; move that file"),
        );
    }
    if let Some(database) = database_in(&scope.folder).filter(|_| !scope.folder.is_symlink()) {
        return refuse(
            format!("its folder contains its database, {}", database.display()),
            format!("move the folder yourself: {}", scope.folder.display()),
        );
    }
    let removed = config.root.value.join(REMOVED_FOLDER);
    let numbered = (2..).map(|number| removed.join(format!("{}-{number}", scope.name)));
    let mut places = std::iter::once(removed.join(&scope.name)).chain(numbered);
    Ok(places.find(|path| std::fs::symlink_metadata(path).is_err()).unwrap_or(removed))
}

/// A database in a scope's folder, under any name. The vector table is derived, so it does not
/// count.
fn database_in(folder: &Path) -> Option<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).min_depth(1).into_iter();
    let mut files = entries
        .filter_entry(|entry| entry.depth() > 1 || entry.file_name() != "lance")
        .flatten()
        .map(walkdir::DirEntry::into_path);
    files.find(|path| read_head(path, 16).is_ok_and(|start| start == b"SQLite format 3\0"))
}
