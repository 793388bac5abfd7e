//! Which scope is current, by which rule, and which scopes a request searches.
//!
//! Detection: the pinned scope → the project's path against manifests (longest `paths` match, then `remotes`, then
//! `projects` and scope names against the repository's name) → `default_scope` → none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::Glob;

use super::repository::{Repository, normalise_remote};
use super::{Registry, Scope};
use crate::api::{Searched, Skipped};
use crate::config::{Config, expand_home};
use crate::error::{Error, SettingsError};
use crate::memory::{StatusFilter, Visibility, fold_name};
use crate::text;

/// The current project and its scope.
#[derive(Debug, Clone)]
pub struct Current {
    /// The project's folder, real path.
    pub folder: PathBuf,
    /// Its name: that of the main repository, or of the folder.
    pub name: String,
    /// Its repository.
    pub repository: Option<Repository>,
    /// Its scope.
    pub scope: Option<Arc<Scope>>,
    /// The rule that found the scope.
    pub rule: Option<String>,
}

impl Current {
    /// Names the project's memories may stand under, folded: the project's own and its scope's.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec![fold_name(&self.name)];
        if let Some(remote) = self.repository.as_ref().and_then(|repository| repository.remotes.first())
            && let Some(last) = remote.rsplit('/').next()
        {
            names.push(fold_name(last));
        }
        if let Some(scope) = &self.scope {
            names.extend(scope.own_names());
        }
        names.sort();
        names.dedup();
        names
    }
}

/// The scopes of one request.
#[derive(Debug)]
pub struct Selection {
    /// The ones to search.
    pub scopes: Vec<Arc<Scope>>,
    /// The ones left out, and why.
    pub skipped: Vec<Skipped>,
    /// The ones among them whose manifest is broken.
    pub broken: Vec<Skipped>,
    /// The current project.
    pub current: Current,
}

impl Selection {
    /// The part of an answer that says where it looked.
    pub fn searched(&self, status: StatusFilter) -> Searched {
        Searched {
            scopes: self.scopes.iter().map(|scope| scope.name.clone()).collect(),
            skipped: self.skipped.clone(),
            more_scopes: 0,
            more_skipped: 0,
            status,
            current_scope: self.current.scope.as_ref().map(|scope| scope.name.clone()),
            detected_by: self.current.rule.clone(),
        }
    }
}

/// Finds the current project and its scope.
///
/// # Errors
/// [`Error::ScopeNotFound`] when the pinned scope does not exist.
pub fn current(config: &Config, scopes: &[Arc<Scope>], folder: &Path) -> Result<Current, Error> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let repository = Repository::discover(&folder);
    let name = repository
        .as_ref()
        .and_then(Repository::name)
        .or_else(|| folder.file_name().map(|name| name.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "project".to_owned());
    let mut current = Current {
        folder,
        name,
        repository,
        scope: None,
        rule: None,
    };
    if let Some(pinned) = &config.pinned {
        let scope = find(scopes, &pinned.value).ok_or_else(|| not_found(scopes, &pinned.value))?;
        current.rule = Some(pinned.source.to_string());
        current.scope = Some(scope);
    } else if let Some((scope, rule)) = detect(config, scopes, &current) {
        current.rule = Some(rule);
        current.scope = Some(scope);
    }
    Ok(current)
}

/// The scopes a request searches: the one it names; or the pinned one; or every shared one and the current one.
///
/// # Errors
/// [`Error::ScopeNotFound`], [`Error::ScopeRefused`], [`Error::NoScopes`].
pub fn select(config: &Config, registry: &Registry, named: Option<&str>, folder: Option<&Path>) -> Result<Selection, Error> {
    let named = named.map(str::trim).filter(|named| !named.is_empty());
    let discovery = registry.discover();
    let scopes = discovery.scopes;
    let current = current(config, &scopes, folder.unwrap_or(&config.project.value))?;
    let mut skipped: Vec<Skipped> = discovery
        .passed_over
        .into_iter()
        .map(|(scope, reason)| Skipped { scope, reason })
        .collect();
    if let Some(pinned) = &config.pinned {
        let scope = find(&scopes, &pinned.value).ok_or_else(|| not_found(&scopes, &pinned.value))?;
        let other =
            |named: &&str| find(&scopes, named).map_or(fold_name(named) != fold_name(&scope.name), |found| found.name != scope.name);
        if let Some(named) = named.filter(other) {
            return Err(Error::ScopeRefused {
                name: named.to_owned(),
                pinned: scope.name.clone(),
            });
        }
        return only(scope, current);
    }
    if let Some(named) = named {
        let scope = find(&scopes, named).ok_or_else(|| not_found(&scopes, named))?;
        return only(scope, current);
    }
    if scopes.is_empty() {
        return Err(Error::NoScopes {
            root: registry.root().to_owned(),
        });
    }
    let (searched, private): (Vec<_>, Vec<_>) = scopes.into_iter().partition(|scope| {
        scope.manifest.visibility == Visibility::Shared || current.scope.as_ref().is_some_and(|own| own.name == scope.name)
    });
    let mut broken = Vec::new();
    for scope in private {
        let reason = match &scope.problem {
            Some(problem) => unusable_manifest(&scope, problem),
            None => PRIVATE.to_owned(),
        };
        let left_out = Skipped {
            scope: scope.name.clone(),
            reason,
        };
        broken.extend(scope.problem.is_some().then(|| left_out.clone()));
        skipped.push(left_out);
    }
    let (scopes, unusable): (Vec<_>, Vec<_>) = searched.into_iter().partition(|scope| scope.problem.is_none());
    for scope in unusable {
        let left_out = Skipped {
            scope: scope.name.clone(),
            reason: scope
                .problem
                .as_ref()
                .map(|problem| unusable_manifest(&scope, problem))
                .unwrap_or_default(),
        };
        broken.push(left_out.clone());
        skipped.push(left_out);
    }
    if let Some(default) = config.default_scope.as_ref().filter(|_| current.scope.is_none()) {
        skipped.push(Skipped {
            scope: text::line(&default.value, 100),
            reason: "`default_scope` in config.toml names it, and there is no such scope".to_owned(),
        });
    }
    Ok(Selection {
        scopes,
        skipped,
        broken,
        current,
    })
}

/// Why a private scope is not searched.
pub const PRIVATE: &str = "private: searched only when it is current or named";

/// Why a scope with a broken manifest is not searched. Nobody knows who may read it, so of its place no more is told than is
/// known by its name.
pub fn unusable_manifest(scope: &Scope, problem: &SettingsError) -> String {
    let folder = scope.folder.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "`scopes/{}/scope.toml` cannot be used: {}",
        text::line(&folder, 100),
        problem.reason()
    )
}

/// The one scope that was named, if its manifest can be used.
fn only(scope: Arc<Scope>, current: Current) -> Result<Selection, Error> {
    if let Some(problem) = &scope.problem {
        return Err(Error::ScopeUnusable {
            name: scope.name.clone(),
            reason: unusable_manifest(&scope, problem),
        });
    }
    Ok(Selection {
        scopes: vec![scope],
        skipped: Vec::new(),
        broken: Vec::new(),
        current,
    })
}

/// A scope by name: exactly, or with case, `-` and `_` taken as equal.
pub fn find(scopes: &[Arc<Scope>], name: &str) -> Option<Arc<Scope>> {
    let folded = fold_name(name);
    scopes
        .iter()
        .find(|scope| scope.name == name)
        .or_else(|| scopes.iter().find(|scope| fold_name(&scope.name) == folded))
        .cloned()
}

/// The error for a scope nobody knows; private scopes are not among the names it tells.
pub fn not_found(scopes: &[Arc<Scope>], name: &str) -> Error {
    let known = scopes
        .iter()
        .filter(|scope| scope.manifest.visibility == Visibility::Shared)
        .map(|scope| scope.name.clone())
        .collect();
    Error::ScopeNotFound {
        name: name.to_owned(),
        known,
    }
}

fn detect(config: &Config, scopes: &[Arc<Scope>], current: &Current) -> Option<(Arc<Scope>, String)> {
    by_path(config, scopes, current)
        .or_else(|| by_remote(scopes, current))
        .or_else(|| by_name(scopes, current))
        .or_else(|| {
            let default = config.default_scope.as_ref()?;
            Some((find(scopes, &default.value)?, "default_scope in config.toml".to_owned()))
        })
}

/// The scope whose `paths` match the project's folder most closely. A folder in a linked worktree is also looked for where
/// it would lie in the main repository.
fn by_path(config: &Config, scopes: &[Arc<Scope>], current: &Current) -> Option<(Arc<Scope>, String)> {
    let mut folders = vec![current.folder.clone()];
    if let Some(repository) = &current.repository
        && let Ok(inside) = current.folder.strip_prefix(&repository.work_tree)
        && repository.main != repository.work_tree
    {
        folders.push(repository.main.join(inside));
    }
    let mut best: Option<(usize, &Arc<Scope>, &str)> = None;
    for scope in scopes {
        for pattern in &scope.manifest.paths {
            let depth = folders
                .iter()
                .filter_map(|folder| matched_depth(pattern, folder, &scope.folder, config.home.as_deref()))
                .max();
            if let Some(depth) = depth
                && best.is_none_or(|(known, _, _)| depth > known)
            {
                best = Some((depth, scope, pattern));
            }
        }
    }
    best.map(|(_, scope, pattern)| (Arc::clone(scope), format!("paths `{pattern}`")))
}

/// How many components of `folder` a pattern matches: the folder itself or one above it. `None` where it does not.
fn matched_depth(pattern: &str, folder: &Path, beside: &Path, home: Option<&Path>) -> Option<usize> {
    let expanded = expand_home(Path::new(pattern.trim_end_matches('/')), home);
    // A relative path is meant from where the manifest lies.
    let expanded = if expanded.is_absolute() { expanded } else { beside.join(expanded) };
    let candidates = || folder.ancestors().map(|ancestor| (ancestor, ancestor.components().count()));
    let real = expanded.canonicalize().unwrap_or_else(|_| expanded.clone());
    // A folder's name may hold what looks like a glob.
    let literal = candidates().find(|(ancestor, _)| *ancestor == real).map(|(_, depth)| depth);
    if literal.is_some() || !pattern.contains(['*', '?', '[', '{']) {
        return literal;
    }
    // The part before the first wildcard may run through symbolic links; the project's folder is a real path.
    let text = expanded.to_string_lossy().into_owned();
    let fixed: PathBuf = Path::new(&text)
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
        .collect();
    let rest = Path::new(&text).strip_prefix(&fixed).ok()?.to_owned();
    let real = fixed.canonicalize().unwrap_or(fixed).join(rest);
    let glob = globset::GlobBuilder::new(&real.to_string_lossy())
        .literal_separator(true)
        .build()
        .or_else(|_| Glob::new(&text))
        .ok()?
        .compile_matcher();
    candidates().find(|(ancestor, _)| glob.is_match(ancestor)).map(|(_, depth)| depth)
}

fn by_remote(scopes: &[Arc<Scope>], current: &Current) -> Option<(Arc<Scope>, String)> {
    let remotes = &current.repository.as_ref()?.remotes;
    for remote in remotes {
        for scope in scopes {
            if let Some(named) = scope.manifest.remotes.iter().find(|named| normalise_remote(named) == *remote) {
                return Some((Arc::clone(scope), format!("remotes `{named}`")));
            }
        }
    }
    None
}

fn by_name(scopes: &[Arc<Scope>], current: &Current) -> Option<(Arc<Scope>, String)> {
    let name = fold_name(&current.name);
    // A path that does not exist is nobody's project: its last part alone opens no private scope.
    let there = current.folder.is_dir();
    let scopes = || {
        scopes
            .iter()
            .filter(|scope| there || scope.manifest.visibility == Visibility::Shared)
    };
    for scope in scopes() {
        if let Some(project) = scope.manifest.projects.iter().find(|project| fold_name(project) == name) {
            return Some((Arc::clone(scope), format!("projects `{project}`")));
        }
    }
    let scope = scopes().find(|scope| fold_name(&scope.name) == name)?;
    Some((Arc::clone(scope), format!("scope name `{}`", scope.name)))
}
