//! Resolves the current scope and the scopes that a request searches.
//!
//! The current scope is the pinned one, or else the one that claims the project's folder
//! ([`super::detect`]).

use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use super::detect::{Claim, Detection, detect, identify, scopes_recording, unlisted};
use super::place::Place;
use super::project::Project;
use super::{Registry, Scope};
use crate::config::{Config, SettingsError};
use crate::scope::ScopeError;
use ack_api::memory::{ProjectRows, StatusFilter, Visibility, fold_name};
use ack_api::{Message, Note, NoteKind, Searched, Skipped, text};
use ack_worktree::repository::Repository;

#[derive(Debug, Clone, Default)]
pub struct Current {
    /// The real path of the folder that was looked at; empty if there is none.
    pub folder: PathBuf,
    /// The project's folder: the top of its working tree, if it has one.
    pub top: PathBuf,
    /// Its name: as a manifest lists it, or else the name of the main repository or the folder.
    pub name: String,
    /// Whether the folder is not a project's as far as its name says: `src`, or the home folder.
    pub is_general: bool,
    pub repository: Option<Repository>,
    pub scope: Option<Arc<Scope>>,
    pub rule: Option<String>,
    own: ProjectRows,
    /// Whether it has the rows of its scope that belong to no project in common with others.
    shares_rows: bool,
}

impl Current {
    /// Its scope's rows without a project belong to the scope, and so to every project of it.
    pub fn add_common_rows(&mut self) {
        self.shares_rows = self.scope.is_some() && !self.own.unnamed;
        self.own.unnamed |= self.shares_rows;
    }

    /// The project's scope, if [`Current::add_common_rows`] added rows.
    pub fn common_scope(&self) -> Option<&Scope> {
        self.scope.as_deref().filter(|_| self.shares_rows)
    }

    pub fn is_of(&self, scope: &Scope) -> bool {
        self.scope.as_ref().is_some_and(|own_scope| own_scope.name == scope.name)
    }

    pub fn rows_in(&self, scope: &Scope) -> ProjectRows {
        if self.is_of(scope) {
            return self.own.clone();
        }
        scope.rows_of(&fold_name(&self.name), &self.own.names)
    }
}

#[derive(Debug, Default)]
pub struct Selection {
    pub scopes: Vec<Arc<Scope>>,
    pub skipped: Vec<Skipped>,
    /// The skipped scopes whose manifest is broken.
    pub broken: Vec<Skipped>,
    pub current: Current,
    /// Says which scopes were meant, if `scope` is the name of a project.
    pub named_note: Option<Note>,
    pub is_narrowed: bool,
    /// The scopes whose manifests list other names of projects.
    naming_scopes: Vec<Arc<Scope>>,
}

impl Selection {
    /// Aliases from any scope's manifest count in every scope.
    pub fn rows_of(&self, project: &str, scope: &Scope) -> ProjectRows {
        let listed =
            self.naming_scopes.iter().filter_map(|scope| scope.manifest.projects.find(project));
        let mut listed: Vec<&[String]> = listed.map(Project::names).collect();
        // The name of a project is never an alias of another one.
        let is_name = |names: &&[String]| names.first().is_some_and(|name| name == project);
        if listed.iter().any(is_name) {
            listed.retain(is_name);
        }
        scope.rows_of(project, &listed.concat())
    }

    pub fn skip(&mut self, scope: &str, reason: impl Into<Message>) {
        self.skipped.push(Skipped { scope: scope.to_owned(), reason: reason.into() });
        self.scopes.retain(|other| other.name != scope);
    }

    pub fn searched(&self, status: StatusFilter) -> Searched {
        // Mention private scopes only if there is no other explanation.
        let is_told = |it: &&Skipped| it.reason != PRIVATE_REASON || self.scopes.is_empty();
        Searched {
            scopes: self.scopes.iter().map(|scope| scope.name.clone()).collect(),
            skipped: self.skipped.iter().filter(is_told).cloned().collect(),
            status,
            current_scope: self.current.scope.as_ref().map(|scope| scope.name.clone()),
            detected_by: self.current.rule.clone(),
            ..Searched::default()
        }
    }
}

/// Finds the current project and its scope. Without a folder, it looks at those of the settings
/// ([`Config::folders`]): the first that belongs to a scope is the project, and the rule names it.
/// Unless it `reads_stores`, it finds no scope that only memories connect.
pub fn current(
    config: &Config,
    scopes: &[Arc<Scope>],
    folder: Option<&Path>,
    reads_stores: bool,
) -> Result<Current, ScopeError> {
    let by_environment = || {
        let named = config.current_scope.as_ref()?;
        Some((find(scopes, &named.value)?, named.source.to_string()))
    };
    let named = pinned(config, scopes)?.or_else(by_environment);
    let claiming = named.as_ref().map_or(scopes, |(named, _)| slice::from_ref(named));
    let folders = folder.map_or_else(|| config.folders().collect(), |folder| vec![folder]);
    let (place, found) = detect_in(config, claiming, &folders, reads_stores);
    let found = match named {
        Some((scope, rule)) => Some(Detection { scope, rule, claim: Claim::Named }),
        None => found,
    };
    let (name, own) = match &found {
        Some(found) if reads_stores => identify(config, &found.scope, &place, &found.claim),
        _ => unlisted(&place),
    };
    let is_home = config.home.as_deref().is_some_and(|home| home.starts_with(&place.top));
    Ok(Current {
        is_general: !place.is_marked && (is_home || place.is_general()),
        folder: place.folder,
        top: place.top,
        name,
        repository: place.repository,
        own,
        shares_rows: false,
        rule: found.as_ref().map(|found| found.rule.clone()),
        scope: found.map(|found| found.scope),
    })
}

/// The first folder that belongs to a scope, or the first of all. Of several, the rule names it.
fn detect_in(
    config: &Config,
    scopes: &[Arc<Scope>],
    folders: &[&Path],
    reads_stores: bool,
) -> (Place, Option<Detection>) {
    let mut first = None;
    for folder in folders {
        let mut place = Place::of(folder, config.home.as_deref());
        let mut found = detect(config, scopes, &mut place, reads_stores);
        let claimed = found.as_mut();
        if let Some(claimed) = claimed.filter(|found| found.claim != Claim::Default) {
            if folders.len() > 1 {
                let folder = text::line(&place.folder.display().to_string(), 400);
                claimed.rule = format!("{}, for `{folder}`", claimed.rule);
            }
            return (place, found);
        }
        first.get_or_insert((place, found));
    }
    first.unwrap_or_default()
}

fn pinned(
    config: &Config,
    scopes: &[Arc<Scope>],
) -> Result<Option<(Arc<Scope>, String)>, ScopeError> {
    let Some(pinned) = &config.pinned else {
        return Ok(None);
    };
    let by = pinned.source.to_string();
    match find(scopes, &pinned.value) {
        Some(scope) => Ok(Some((scope, by))),
        None => Err(ScopeError::PinNotFound { name: text::line(&pinned.value, 200), by }),
    }
}

/// The named or pinned scope, or every shared one and the [`current`] one.
pub fn select(
    config: &Config,
    registry: &Registry,
    requested: Option<&str>,
    folder: Option<&Path>,
    reads_stores: bool,
) -> Result<Selection, ScopeError> {
    let requested = requested.map(str::trim).filter(|requested| !requested.is_empty());
    let discovery = registry.discover();
    let scopes = discovery.scopes;
    let current = current(config, &scopes, folder, reads_stores)?;
    let mut skipped = discovery.passed_over;
    let is_pinned = config.pinned.is_some();
    let names_projects = |scope: &&Arc<Scope>| !scope.manifest.projects.is_empty();
    let visible = scopes.iter().filter(|scope| is_visible(scope, &current));
    let mut selection = Selection {
        is_narrowed: requested.is_some() || is_pinned,
        naming_scopes: visible.filter(names_projects).cloned().collect(),
        current,
        ..Selection::default()
    };
    if selection.is_narrowed {
        let name = requested.unwrap_or_default();
        let named = scopes_named(config, &scopes, &selection.current, name);
        let named = named.map_err(|error| or_passed_over(error, &skipped))?;
        named.scopes.iter().try_for_each(|it| check_usable(it))?;
        // A pinned server knows no other scope.
        if is_pinned {
            selection.naming_scopes.clear();
        }
        selection.naming_scopes.extend(named.scopes.iter().cloned());
        selection.scopes = named.scopes;
        selection.named_note = named.note;
        return Ok(selection);
    }
    if scopes.is_empty() {
        return Err(or_passed_over(ScopeError::no_scopes(config), &skipped));
    }
    for scope in scopes {
        let reason = match &scope.problem {
            Some(problem) => unusable_manifest(&scope, problem).into(),
            None if is_visible(&scope, &selection.current) => {
                selection.scopes.push(scope);
                continue;
            }
            None => PRIVATE_REASON.into(),
        };
        let left_out = Skipped { scope: scope.name.clone(), reason };
        if scope.problem.is_some() {
            selection.broken.push(left_out.clone());
        }
        skipped.push(left_out);
    }
    skipped.extend(missing_settings(config, &selection.current));
    selection.skipped = skipped;
    Ok(selection)
}

/// Says of a scope that is not there why its folder is not read, if there is one.
fn or_passed_over(error: ScopeError, passed_over: &[Skipped]) -> ScopeError {
    let found = match &error {
        ScopeError::NotFound { name, .. } => passed_over.iter().find(|it| it.scope == *name),
        ScopeError::NoScopes { .. } => passed_over.first(),
        _ => None,
    };
    match found {
        Some(Skipped { scope, reason }) => {
            ScopeError::Unusable { name: scope.clone(), reason: reason.text().to_owned() }
        }
        None => error,
    }
}

fn missing_settings(config: &Config, current: &Current) -> Vec<Skipped> {
    let missing = |name: &str, setting: &str| Skipped {
        scope: text::line(name, 100),
        reason: format!("{setting} names it, and there is no such scope").into(),
    };
    let mut skipped = Vec::new();
    if let Some(named) = &config.current_scope
        && current.rule.as_ref() != Some(&named.source.to_string())
    {
        skipped.push(missing(&named.value, "`ACK_MEM_SCOPE`"));
    }
    if let (Some(default), None) = (&config.default_scope, &current.scope) {
        skipped.push(missing(&default.value, "`default_scope` in config.toml"));
    }
    skipped
}

pub fn is_visible(scope: &Scope, current: &Current) -> bool {
    current.is_of(scope) || scope.manifest.visibility == Visibility::Shared
}

#[derive(Debug)]
pub struct NamedScopes {
    pub scopes: Vec<Arc<Scope>>,
    /// Says which scopes, if the name is that of a project.
    pub note: Option<Note>,
}

/// The scopes that a name means: the scope with this name, or else those whose manifests list a
/// project of this name, or else those whose memories name one. Private scopes other than the
/// current one count only if no shared scope matches. A pinned server refuses every name except its
/// own scope and that scope's projects, whether or not such a scope exists.
pub fn scopes_named(
    config: &Config,
    scopes: &[Arc<Scope>],
    current: &Current,
    name: &str,
) -> Result<NamedScopes, ScopeError> {
    let folded = fold_name(name);
    // Look among all of them, so that a name is not mistaken for a similar one.
    let called = find(scopes, name);
    if let Some((pin, _)) = pinned(config, scopes)? {
        let is_pin = called
            .as_ref()
            .map_or(folded == fold_name(&pin.name), |called| called.name == pin.name);
        let is_project = || {
            called.is_none()
                && (pin.manifest.projects.find(&folded).is_some()
                    || pin.recorded().memories_of(&folded).is_some())
        };
        return if is_pin || folded.is_empty() {
            Ok(NamedScopes::scope(pin))
        } else if is_project() {
            Ok(NamedScopes::project(name, vec![pin]))
        } else {
            Err(ScopeError::Refused { name: name.to_owned(), pinned: pin.name.clone() })
        };
    }
    if let Some(scope) = called {
        return Ok(NamedScopes::scope(scope));
    }
    let listing = scopes.iter().filter(|scope| scope.manifest.projects.find(&folded).is_some());
    let (visible, private): (Vec<_>, Vec<_>) =
        listing.cloned().partition(|scope| is_visible(scope, current));
    let listing = if visible.is_empty() { private } else { visible };
    if !listing.is_empty() {
        return Ok(NamedScopes::project(name, listing));
    }
    match scopes_recording(scopes, &folded) {
        none if none.is_empty() => Err(not_found(scopes, name)),
        recording => Ok(NamedScopes::project(name, recording.into_iter().cloned().collect())),
    }
}

impl NamedScopes {
    fn scope(scope: Arc<Scope>) -> Self {
        Self { scopes: vec![scope], note: None }
    }

    fn project(name: &str, mut scopes: Vec<Arc<Scope>>) -> Self {
        scopes.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.name)).collect();
        let message = format!(
            "no scope is called `{}`; {} has a project of this name",
            text::line(name, 100),
            names.join(" and ")
        );
        let note = match scopes.as_slice() {
            [one] => Note::about(NoteKind::ScopeOfProject, &one.name, message),
            _ => Note::new(NoteKind::ScopeOfProject, message),
        };
        Self { scopes, note: Some(note) }
    }
}

pub const PRIVATE_REASON: &str = "private: searched only when it is current or named";

/// It is not clear who may read the scope, so this says no more of its path than its name.
pub fn unusable_manifest(scope: &Scope, problem: &SettingsError) -> String {
    let folder = scope.folder.file_name().unwrap_or_default().to_string_lossy();
    if matches!(problem, SettingsError::LightBuild { .. }) {
        return problem.reason();
    }
    format!("`scopes/{}/scope.toml` cannot be used: {}", text::line(&folder, 100), problem.reason())
}

/// Rejects a scope with a broken manifest: it is not clear who may read it.
pub fn check_usable(scope: &Scope) -> Result<(), ScopeError> {
    let Some(problem) = &scope.problem else { return Ok(()) };
    let reason = unusable_manifest(scope, problem);
    Err(ScopeError::Unusable { name: scope.name.clone(), reason })
}

/// Finds a scope by name: an exact match, or one that ignores case and treats `-` and `_` as equal.
pub fn find(scopes: &[Arc<Scope>], name: &str) -> Option<Arc<Scope>> {
    let folded = fold_name(name);
    let exact = scopes.iter().find(|scope| scope.name == name);
    exact.or_else(|| scopes.iter().find(|scope| fold_name(&scope.name) == folded)).cloned()
}

/// The error for an unknown name. It does not list private scopes and their projects.
fn not_found(scopes: &[Arc<Scope>], name: &str) -> ScopeError {
    let shared = || scopes.iter().filter(|scope| scope.manifest.visibility == Visibility::Shared);
    let projects = shared().flat_map(|scope| scope.manifest.projects.iter());
    ScopeError::NotFound {
        name: name.to_owned(),
        known: shared().map(|scope| scope.name.clone()).collect(),
        projects: projects.map(|project| text::line(&project.name, 100)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_full_search_for_the_current_scope_reads_stores() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("scopes/team");
        std::fs::create_dir_all(&folder).unwrap();
        let store = rusqlite::Connection::open(folder.join("memory.db")).unwrap();
        store.execute_batch("CREATE TABLE notes (text)").unwrap();
        let config = Config::at(root.path()).unwrap().with_project("/srv/shop");
        let scopes = Registry::new(&config).discover().scopes;
        let is_read = || scopes.iter().any(|scope| scope.recorded.lock().is_some());
        current(&config, &scopes, None, false).unwrap();
        assert!(!is_read());
        current(&config, &scopes, None, true).unwrap();
        assert!(is_read());
    }
}
