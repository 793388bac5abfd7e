//! Detects the scope that claims a folder, the rule that matched, and the project of that scope.
//!
//! The rules for scopes, in order: the longest match in `paths`, `remotes`, the repository's name
//! as a project or scope name, projects that the memories of a store name, `default_scope`. Without
//! a working tree, the names of the folders above count too. A private scope is claimed only by its
//! owner's configuration, never by the content of its store, because reading that would open the
//! store.
//!
//! The rules for projects of that scope, in order: the longest match in `paths`, `remotes`, the
//! repository's name, a parent folder of the working folder.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;

use super::Scope;
use super::place::{Place, is_below, last_part};
use super::project::Project;
use super::resolve::find;
use crate::config::Config;
use ack_api::memory::{ProjectRows, Visibility, fold_name};
use ack_api::text;
use ack_sys::files::expand_home;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// A pin or the environment names it.
    Named,
    Path {
        /// Whether they name this repository or a part of it, rather than a folder with many.
        exact: bool,
        folder: PathBuf,
    },
    Remote,
    Name,
    Recorded,
    Default,
}

#[derive(Debug)]
pub struct Detection {
    pub scope: Arc<Scope>,
    pub rule: String,
    /// The same as a value, for [`identify`].
    pub claim: Claim,
}

impl Detection {
    fn new(scope: &Arc<Scope>, rule: String, claim: Claim) -> Self {
        Self { scope: Arc::clone(scope), rule, claim }
    }
}

/// The scope that claims a place. With `reads_stores`, also reads stores if no owner's configuration
/// claims the place. If the name of a folder above decides, that becomes the place.
pub fn detect(
    config: &Config,
    scopes: &[Arc<Scope>],
    place: &mut Place,
    reads_stores: bool,
) -> Option<Detection> {
    if let Some(mut found) = by_path(config, scopes, place).or_else(|| by_remote(scopes, place)) {
        if let Claim::Path { folder, .. } = &mut found.claim
            && reads_stores
        {
            *place = project_below(config, scopes, &found.scope, place, folder);
        }
        return Some(found);
    }
    let above: Vec<Place> = place.above(config.home.as_deref()).collect();
    let first = |rule: fn(&[Arc<Scope>], &Place) -> Option<Detection>| {
        let mut places = std::iter::once(&*place).chain(&above);
        places.find_map(|place| Some((rule(scopes, place)?, place.clone())))
    };
    let recorded = || reads_stores.then(|| first(by_record)).flatten();
    if let Some((found, named)) = first(by_name).or_else(recorded) {
        *place = named;
        return Some(found);
    }
    let scope = find(scopes, &config.default_scope.as_ref()?.value)?;
    let rule = "default_scope in config.toml".to_owned();
    Some(Detection::new(&scope, rule, Claim::Default))
}

/// Below a folder, the nearest one with the name of a project, or else the folder itself.
fn project_below(
    config: &Config,
    scopes: &[Arc<Scope>],
    scope: &Scope,
    place: &Place,
    claimed: &Path,
) -> Place {
    if place.is_marked || !is_below(&place.folder, claimed) {
        return place.clone();
    }
    let own_name = fold_name(&scope.name);
    let is_known = |place: &Place| {
        place.names().iter().any(|name| {
            *name == own_name
                || scope.manifest.projects.find(name).is_some()
                || scope.recorded().memories_of(name).is_some()
                || !scopes_recording(scopes, name).is_empty()
        })
    };
    let mut places: Vec<Place> = vec![place.clone()];
    places.extend(place.above(config.home.as_deref()));
    places.retain(|place| place.top.starts_with(claimed));
    let known = places.iter().find(|place| is_known(place));
    let is_claimed = |place: &&Place| place.top == claimed && !place.is_general();
    let itself = || places.iter().find(is_claimed);
    known.or_else(itself).unwrap_or(place).clone()
}

fn by_path(config: &Config, scopes: &[Arc<Scope>], place: &Place) -> Option<Detection> {
    let home = config.home.as_deref();
    let patterns =
        scopes.iter().flat_map(|scope| scope.manifest.paths.iter().map(move |it| (scope, it)));
    let matches = patterns.filter_map(|(scope, pattern)| {
        Some((closest(pattern, place, scope, home)?, scope, pattern))
    });
    let (found, scope, pattern) = matches.min_by_key(|(found, ..)| Reverse(found.depth()))?;
    let exact = found.literal
        && match &place.repository {
            Some(repository) => {
                let tops = [&repository.work_tree, &repository.main];
                tops.iter().any(|top| found.folder.starts_with(top))
            }
            None => !place.is_marked || found.folder.starts_with(&place.top),
        };
    let (folder, rule) = (found.folder, format!("paths `{pattern}`"));
    Some(Detection::new(scope, rule, Claim::Path { exact, folder }))
}

fn by_remote(scopes: &[Arc<Scope>], place: &Place) -> Option<Detection> {
    for remote in place.remotes() {
        for scope in scopes {
            if let Some(spelled) = place.remote(remote, &scope.manifest.remotes) {
                return Some(Detection::new(scope, format!("remotes `{spelled}`"), Claim::Remote));
            }
        }
    }
    None
}

fn by_name(scopes: &[Arc<Scope>], place: &Place) -> Option<Detection> {
    let name = fold_name(place.name.as_deref()?);
    // A path that does not exist is not a project, so its last part alone must not open a private
    // scope.
    let exists = place.top.is_dir();
    let scopes =
        || scopes.iter().filter(|scope| exists || scope.manifest.visibility == Visibility::Shared);
    for scope in scopes() {
        if let Some(project) = scope.manifest.projects.find(&name) {
            let alias = project.aliases.iter().find(|alias| fold_name(alias) == name);
            let alias = alias.filter(|_| fold_name(&project.name) != name);
            let rule = match alias {
                Some(alias) => format!("projects `{alias}`, an alias of `{}`", project.name),
                None => format!("projects `{}`", project.name),
            };
            return Some(Detection::new(scope, rule, Claim::Name));
        }
    }
    let scope = scopes().find(|scope| fold_name(&scope.name) == name)?;
    Some(Detection::new(scope, format!("scope name `{}`", scope.name), Claim::Name))
}

/// The rule has the repository's name (folded), not a memory's spelling, because that memory may
/// wait for review.
fn by_record(scopes: &[Arc<Scope>], place: &Place) -> Option<Detection> {
    place.names().iter().find_map(|name| {
        let scope = scopes_recording(scopes, name).into_iter().next()?;
        let rule = format!("project `{}` recorded in the store", text::line(name, 200));
        Some(Detection::new(scope, rule, Claim::Recorded))
    })
}

/// The shared scopes whose memories name a project (folded), most memories first.
pub fn scopes_recording<'a>(scopes: &'a [Arc<Scope>], name: &str) -> Vec<&'a Arc<Scope>> {
    let is_shared = |scope: &Scope| scope.manifest.visibility == Visibility::Shared;
    let readable = scopes.iter().filter(|scope| scope.problem.is_none() && is_shared(scope));
    let mut found: Vec<(u64, &Arc<Scope>)> =
        readable.filter_map(|scope| Some((scope.recorded().memories_of(name)?, scope))).collect();
    // Scopes are sorted by name, and the sort is stable.
    found.sort_by_key(|(memories, _)| Reverse(*memories));
    found.into_iter().map(|(_, scope)| scope).collect()
}

/// The project's name, and its rows in the scope that claims it.
pub type Identity = (String, ProjectRows);

/// A project that no scope lists.
pub fn unlisted(place: &Place) -> Identity {
    let name = place.name.clone().unwrap_or_else(|| "unknown".to_owned());
    (name, ProjectRows { names: place.names(), unnamed: false })
}

pub fn identify(config: &Config, scope: &Scope, place: &Place, claim: &Claim) -> Identity {
    let listed = &scope.manifest.projects;
    let own_name = fold_name(&scope.name);
    let names = place.names();
    if let Some((project, is_repository)) = listed_project(config, scope, place) {
        return identity_of_listed(scope, project, if is_repository { &names } else { &[] });
    }
    let claimed = matches!(claim, Claim::Path { .. } | Claim::Remote | Claim::Name);
    // A scope that lists one project and claims this folder means that project.
    if let Some(project) = listed.sole().filter(|_| claimed) {
        return identity_of_listed(scope, project, &names);
    }
    let exact = matches!(claim, Claim::Path { exact: true, .. } | Claim::Remote | Claim::Name);
    let (name, mut rows) = unlisted(place);
    if !(exact && listed.is_empty()) {
        let recorded = scope.recorded();
        if let Some(known) = names.iter().find(|name| recorded.memories_of(name).is_some()) {
            rows.unnamed = scope.rows_of(known, &[]).unnamed;
            return (name, rows);
        }
    }
    // Otherwise it is the main project of the scope.
    let sole_or_called = listed.sole().or_else(|| listed.find(&own_name));
    if let Some(project) = sole_or_called.filter(|_| claimed || *claim == Claim::Named) {
        return identity_of_listed(scope, project, &names);
    }
    rows.unnamed = true;
    if listed.is_empty() && !matches!(claim, Claim::Recorded | Claim::Default) {
        rows.names.push(own_name);
    }
    (name, rows)
}

/// A listed project, plus the names of the repository that do not belong to another project.
fn identity_of_listed(scope: &Scope, project: &Project, names: &[String]) -> Identity {
    let id = project.names().first().cloned().unwrap_or_default();
    let mut rows = scope.rows_of(&id, &[]);
    let listed = &scope.manifest.projects;
    rows.names.extend(names.iter().filter(|name| listed.find(name).is_none()).cloned());
    (project.name.clone(), rows)
}

/// The listed project that a place is, and whether it is the whole repository.
fn listed_project<'a>(
    config: &Config,
    scope: &'a Scope,
    place: &Place,
) -> Option<(&'a Project, bool)> {
    let listed = &scope.manifest.projects;
    if listed.is_empty() {
        return None;
    }
    let home = config.home.as_deref();
    let by_folder_name =
        |folder: &Path| listed.find(&fold_name(&folder.file_name()?.to_string_lossy()));
    let matches = scope.manifest.paths.iter().filter_map(|pattern| {
        let found = closest(pattern, place, scope, home)?;
        let project = by_folder_name(&found.folder).or_else(|| listed.find(&stem(pattern)));
        Some((found, project))
    });
    let mut matches: Vec<(PatternMatch, Option<&Project>)> = matches.collect();
    // The sort is stable: of equally long ones the first counts.
    matches.sort_by_key(|(found, _)| Reverse(found.depth()));
    let named = matches.iter().find_map(|(found, project)| Some((found, (*project)?)));
    if let Some((found, project)) = named {
        return Some((project, place.is_named_after(&found.folder)));
    }
    let names = place.remotes().iter().map(|remote| last_part(remote)).chain(place.name.as_deref());
    if let Some(project) = names.map(fold_name).find_map(|name| listed.find(&name)) {
        return Some((project, true));
    }
    let top = Some(&place.top).filter(|_| place.is_marked).cloned();
    let deepest = matches.into_iter().next();
    let top = top.or(deepest.map(|(found, _)| found.folder))?;
    let on_the_way = place.folder.ancestors().take_while(|folder| is_below(folder, &top));
    on_the_way.into_iter().find_map(by_folder_name).map(|project| (project, false))
}

/// The last part of a pattern without a trailing wildcard, folded: `infra-*` gives `infra`.
fn stem(pattern: &str) -> String {
    let last = last_part(pattern.trim_end_matches('/'));
    fold_name(last.trim_end_matches('*').trim_end_matches(['-', '_', '.', ' ']))
}

#[derive(Debug, Clone)]
struct PatternMatch {
    /// The folder that matches: the place itself or one above it.
    folder: PathBuf,
    literal: bool,
}

impl PatternMatch {
    fn depth(&self) -> usize {
        self.folder.components().count()
    }
}

fn closest(
    pattern: &str,
    place: &Place,
    scope: &Scope,
    home: Option<&Path>,
) -> Option<PatternMatch> {
    let folders = place.folders().into_iter();
    let found = folders.filter_map(|folder| match_pattern(pattern, &folder, &scope.folder, home));
    found.max_by_key(PatternMatch::depth)
}

/// Matches a pattern against `folder` or one of its parents. `None` if none matches.
fn match_pattern(
    pattern: &str,
    folder: &Path,
    base: &Path,
    home: Option<&Path>,
) -> Option<PatternMatch> {
    let is_glob = |text: &str| text.contains(['*', '?', '[', '{']);
    // A relative path starts at the manifest's folder.
    let expanded = base.join(expand_home(Path::new(pattern.trim_end_matches('/')), home));
    let real = expanded.canonicalize().unwrap_or_else(|_| expanded.clone());
    // A folder's name may look like a glob.
    if folder.starts_with(&real) {
        return Some(PatternMatch { folder: real, literal: true });
    }
    if !is_glob(pattern) {
        return None;
    }
    // The part before the first wildcard may contain symbolic links, but the project's folder is a
    // real path.
    let parts = expanded.components();
    let fixed: PathBuf =
        parts.take_while(|part| !is_glob(&part.as_os_str().to_string_lossy())).collect();
    let rest = expanded.strip_prefix(&fixed).ok()?;
    let real = fixed.canonicalize().unwrap_or_else(|_| fixed.clone()).join(rest);
    let glob = GlobBuilder::new(&real.to_string_lossy()).literal_separator(true).build();
    let glob = glob.ok()?.compile_matcher();
    let folder = folder.ancestors().find(|ancestor| glob.is_match(ancestor))?.to_owned();
    Some(PatternMatch { folder, literal: false })
}
