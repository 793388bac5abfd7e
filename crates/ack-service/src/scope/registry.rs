//! Finds the scopes under the root, and reuses what is known about those that have not changed.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::decision::DECISION_LOG;
use ack_api::memory::{Visibility, fold_name};
use ack_api::remote::RemoteSettings;
use ack_api::{Skipped, text};
use ack_store::decisions::SignersFile;
use ack_store::{NamedBy, Store, StoreSettings};
use ack_sys::files::{self, expand_home, is_only_name};
use ack_sys::watch::FolderWatch;
use parking_lot::Mutex;

use super::Scope;
use super::folders::{Contents, FolderEntry, ScopeFolders};
use super::known::is_same;
use super::manifest::Manifest;
use crate::bucket::{self, Remote, is_bucket};
use crate::config::{Config, Setting, SettingsError};
use crate::live::LiveIndex;

/// A database at the scope root itself is also a scope.
const DEFAULT_DATABASE: &str = "claude-mem.db";
/// The name of that scope. A folder of this name holds its manifest and derived data.
const DEFAULT_SCOPE: &str = "claude-mem";

/// An unchanged scope is the same `Arc` in every discovery.
#[derive(Debug, Clone)]
pub struct Registry {
    all: Arc<ScopeFinder>,
    /// The names of the visible scopes, or `None` if all are visible.
    visible: Option<BTreeSet<String>>,
}

#[derive(Debug)]
struct ScopeFinder {
    config: Config,
    found: Mutex<Found>,
}

/// What the last discovery found.
#[derive(Debug, Default)]
struct Found {
    folders: ScopeFolders,
    /// By the paths of their folders.
    scopes: HashMap<PathBuf, KnownScope>,
}

#[derive(Debug)]
struct KnownScope {
    scope: Arc<Scope>,
    contents: Contents,
    /// The generation of the watched folder, if the contents can only change with it.
    generation: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Discovery {
    pub scopes: Vec<Arc<Scope>>,
    pub passed_over: Vec<Skipped>,
}

impl Registry {
    pub fn new(config: &Config) -> Self {
        let all = ScopeFinder { config: config.clone(), found: Mutex::default() };
        Self { all: Arc::new(all), visible: None }
    }

    /// The same scopes, but only those with these names are visible.
    #[must_use]
    pub fn limited(&self, names: BTreeSet<String>) -> Self {
        Self { all: Arc::clone(&self.all), visible: Some(names) }
    }

    /// The scopes that the last discovery found, also those that are not visible.
    pub fn known(&self) -> Vec<Arc<Scope>> {
        self.all.found.lock().scopes.values().map(|known| Arc::clone(&known.scope)).collect()
    }

    /// Closes the stores, unless they are being read.
    pub fn close(&self) {
        if let Some(found) = self.all.found.try_lock() {
            found.scopes.values().for_each(|known| known.scope.store.close());
        }
    }

    pub fn discover(&self) -> Discovery {
        let mut discovery = self.all.discover();
        if let Some(visible) = &self.visible {
            discovery.scopes.retain(|scope| visible.contains(&scope.name));
            discovery.passed_over.retain(|skipped| visible.contains(&skipped.scope));
        }
        discovery
    }
}

impl Discovery {
    /// Adds what was found in a place: a scope, nothing, or why it is none. Returns the scope.
    fn add(&mut self, name: &str, found: Result<Option<KnownScope>, String>) -> Option<KnownScope> {
        let found = found.unwrap_or_else(|reason| {
            self.passed_over.push(Skipped { scope: name.to_owned(), reason: reason.into() });
            None
        })?;
        self.scopes.push(Arc::clone(&found.scope));
        Some(found)
    }
}

impl ScopeFinder {
    fn discover(&self) -> Discovery {
        let mut found = self.found.lock();
        let Found { folders, scopes: known } = &mut *found;
        if let Some(Setting { value: path, .. }) = &self.config.db {
            let known = known
                .entry(path.clone())
                .and_modify(|known| known.scope.watch.begin())
                .or_insert_with(|| KnownScope::of(self.single_scope(path)));
            return Discovery { scopes: vec![Arc::clone(&known.scope)], passed_over: Vec::new() };
        }
        let mut before = std::mem::take(known);
        if folders.read(&self.config.root.value.join("scopes")) {
            // Another folder may be in the place of one that is watched.
            before.values().for_each(|known| known.scope.watch.forget());
        }
        let mut all = Discovery { scopes: Vec::new(), passed_over: folders.passed_over.clone() };
        for entry in &folders.entries {
            let found = self.look_into(entry, before.remove(&entry.path));
            known.extend(all.add(&entry.name, found).map(|found| (entry.path.clone(), found)));
        }
        let database = self.config.root.value.join(DEFAULT_DATABASE);
        if database.is_file() || files::is_special(&database) {
            let found = self.default_scope(&database, &all.scopes, before.remove(&database));
            known.extend(all.add(DEFAULT_DATABASE, found).map(|found| (database, found)));
            all.scopes.sort_by(|a, b| a.name.cmp(&b.name));
        }
        all
    }

    /// The scope of a folder. One that has not changed since the last look stays.
    fn look_into(
        &self,
        entry: &FolderEntry,
        before: Option<KnownScope>,
    ) -> Result<Option<KnownScope>, String> {
        let FolderEntry { name, path, is_link } = entry;
        if *is_link && self.is_outside(path) {
            return Err("a symbolic link that leaves the scope root is not followed; use `store` \
                        in a scope.toml"
                .to_owned());
        }
        let watch = match &before {
            Some(known) => Arc::clone(&known.scope.watch),
            None => Arc::new(FolderWatch::new(path.clone())),
        };
        if before.is_some() {
            // Only a process that looks again saves time by watching.
            watch.begin();
        }
        let generation = watch.generation();
        if generation.is_some() && before.as_ref().is_some_and(|it| it.generation == generation) {
            return Ok(before);
        }
        if !path.is_dir() {
            return Ok(None);
        }
        let contents = self.or_default_database(name, Contents::read(path));
        if contents.is_link && self.is_outside(&contents.database) {
            return Err("its database is a symbolic link that leaves the scope root; name it as \
                        `store` in its scope.toml instead"
                .to_owned());
        }
        let scope = match before {
            Some(known) if known.contents == contents => known.scope,
            _ => Arc::new(self.load(path, name, &contents, &watch)),
        };
        let is_in_folder = !is_link
            && !contents.is_link
            && contents.database.parent() == Some(path)
            && (contents.manifest.is_none() || is_only_name(&path.join("scope.toml")));
        let generation = generation.filter(|_| is_in_folder && watch.generation() == generation);
        Ok(Some(KnownScope { scope, contents, generation }))
    }

    /// Whether a path is outside of the root once its links are followed.
    fn is_outside(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let both = real(&self.config.root.value).zip(real(path));
        !both.is_some_and(|(root, path)| path.starts_with(root))
    }

    /// Uses the database at the root for its scope's folder, if the folder has none.
    fn or_default_database(&self, name: &str, mut contents: Contents) -> Contents {
        let default = self.config.root.value.join(DEFAULT_DATABASE);
        if name != DEFAULT_SCOPE || contents.database.is_file() || !default.is_file() {
            return contents;
        }
        contents.is_link = default.is_symlink();
        contents.database = default;
        contents
    }

    /// The database at the root as a scope; `None` if another scope already has it.
    fn default_scope(
        &self,
        database: &Path,
        scopes: &[Arc<Scope>],
        before: Option<KnownScope>,
    ) -> Result<Option<KnownScope>, String> {
        let mut stores = scopes.iter().map(|scope| scope.store.path());
        if stores.any(|store| is_same(store, database)) {
            return Ok(None);
        }
        if database.is_symlink() {
            return Err(
                "a symbolic link is not followed; add its target as a scope of its own".to_owned()
            );
        }
        let known = scopes.iter().find(|scope| fold_name(&scope.name) == fold_name(DEFAULT_SCOPE));
        if let Some(known) = known {
            return Err(format!(
                "scope `{}` has its name; move it to a folder of its own under scopes/",
                known.name
            ));
        }
        if let Some(known) = &before {
            known.scope.watch.begin();
            return Ok(before);
        }
        let folder = self.config.root.value.join("scopes").join(DEFAULT_SCOPE);
        let contents = Contents { database: database.to_owned(), ..Contents::default() };
        let watch = Arc::new(FolderWatch::new(folder.clone()));
        Ok(Some(KnownScope::of(self.load(&folder, DEFAULT_SCOPE, &contents, &watch))))
    }

    fn load(
        &self,
        folder: &Path,
        name: &str,
        contents: &Contents,
        watch: &Arc<FolderWatch>,
    ) -> Scope {
        let file = contents.manifest.map(|_| folder.join("scope.toml"));
        let (mut manifest, mut problem) = file.map(|file| load(&file)).unwrap_or_default();
        let remote = published_remote(folder, &manifest).unwrap_or_else(|wrong| {
            if !matches!(wrong, SettingsError::LightBuild { .. }) {
                manifest.visibility = Visibility::Private;
            }
            problem = Some(wrong);
            None
        });
        let path = match (&remote, &manifest.store) {
            (Some(remote), _) => remote.database(),
            // An absolute path takes the place of the folder.
            (None, Some(store)) => folder.join(expand_home(store, self.config.home.as_deref())),
            (None, None) => contents.database.clone(),
        };
        let named = match &manifest.store {
            Some(_) => NamedBy::Manifest(name.to_owned()),
            None => NamedBy::Scope(name.to_owned()),
        };
        // A link may lead elsewhere later, which the folder it leads to does not show.
        let is_in_folder = path.parent() == Some(folder) && !folder.is_symlink();
        let watched = is_in_folder.then(|| Arc::clone(watch));
        let store = self.store(path, named, folder, &manifest, watched);
        let is_unnamed = remote.is_none() && manifest.store.is_none();
        Scope {
            home: self.config.home.clone(),
            watch: Arc::clone(watch),
            name: name.to_owned(),
            folder: folder.to_owned(),
            other_database: contents.other_database.filter(|_| is_unnamed),
            manifest,
            problem,
            store,
            remote,
            recorded: Mutex::default(),
            resident: self.config.resident.value as usize,
            live: LiveIndex::default(),
        }
    }

    /// With the manifest next to it. Its name is the pin's if that is valid, else that of its file.
    fn single_scope(&self, path: &Path) -> Scope {
        let is_name = |name: &&str| {
            !name.is_empty()
                && !name.starts_with('.')
                && !name.contains('/')
                && text::line(name, 100) == **name
        };
        let named = self.config.named_scope().map(|named| named.value.trim());
        let name = match (named.filter(is_name), path.file_stem()) {
            (Some(name), _) => name.to_owned(),
            (None, Some(stem)) => text::line(&stem.to_string_lossy(), 100),
            (None, None) => "memory".to_owned(),
        };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let file = Some(folder.join("scope.toml")).filter(|file| file.exists());
        let (mut manifest, problem) = file.map(|file| load(&file)).unwrap_or_default();
        // It is the only scope, and the user named it.
        manifest.visibility = Visibility::Shared;
        manifest.unreviewed = self.config.unreviewed.unwrap_or(manifest.unreviewed);
        Scope {
            home: self.config.home.clone(),
            watch: Arc::new(FolderWatch::new(folder.clone())),
            name,
            store: self.store(path.to_owned(), NamedBy::Database, &folder, &manifest, None),
            folder,
            other_database: None,
            manifest,
            problem,
            remote: None,
            recorded: Mutex::default(),
            resident: self.config.resident.value as usize,
            live: LiveIndex::default(),
        }
    }

    /// Its decisions are to be signed if the manifest says so; that names the scope's folder.
    fn store(
        &self,
        path: PathBuf,
        named: NamedBy,
        folder: &Path,
        manifest: &Manifest,
        watch: Option<Arc<FolderWatch>>,
    ) -> Store {
        let signers = manifest.signers.as_ref().map(|file| SignersFile {
            path: folder.join(expand_home(file, self.config.home.as_deref())),
            scope: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        });
        let settings = StoreSettings {
            named,
            overviews: manifest.overviews,
            decisions: Some(folder.join(DECISION_LOG)),
            signers,
            reference: manifest.reference.clone(),
            watch,
        };
        Store::with(path, manifest.unreviewed, settings)
    }
}

impl KnownScope {
    /// A scope that nothing in its folder replaces.
    fn of(scope: Scope) -> Self {
        Self { scope: Arc::new(scope), contents: Contents::default(), generation: None }
    }
}

pub fn check_manifest(folder: &Path, manifest: &Manifest) -> Result<(), SettingsError> {
    published_remote(folder, manifest).map(drop)
}

fn published_remote(
    folder: &Path,
    manifest: &Manifest,
) -> Result<Option<Arc<Remote>>, SettingsError> {
    let invalid = |message: String| SettingsError::invalid(folder.join("scope.toml"), message);
    if let Some(store) = manifest.store.as_deref().filter(|store| is_bucket(store)) {
        let address = text::line(&store.to_string_lossy(), 200);
        return Err(invalid(format!(
            "`store` is the address of a bucket; write `table = \"{address}\"`"
        )));
    }
    let Some(address) = &manifest.table else {
        let store = manifest.store.as_deref().and_then(Path::to_str);
        if store.is_some_and(|store| store.contains("://")) {
            let message = "`store` is a file or a folder on this machine; a bucket is named by \
                           `table = \"s3://…\"`";
            return Err(invalid(message.to_owned()));
        }
        // Publishing from here uses these settings.
        let checked = manifest.remote.as_ref().map_or(Ok(()), RemoteSettings::check);
        return checked.map(|()| None).map_err(|problem| invalid(problem.to_string()));
    };
    if manifest.store.is_some() || manifest.reference.is_some() {
        return Err(invalid("`table` names a bucket, so leave out `store` and `ref`".to_owned()));
    }
    bucket::follow(folder, address, manifest.remote.as_ref()).map(Some)
}

/// Reads a manifest. A broken one makes the scope private, because it is not clear who may read it.
fn load(file: &Path) -> (Manifest, Option<SettingsError>) {
    match Manifest::load(file) {
        Ok(manifest) => (manifest, None),
        Err(problem) => {
            (Manifest { visibility: Visibility::Private, ..Manifest::default() }, Some(problem))
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_watched_from_the_second_look_on() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("scopes/team")).unwrap();
        let registry = Registry::new(&Config::at(root.path()).unwrap());
        let is_watched =
            || registry.discover().scopes.iter().all(|scope| scope.watch.generation().is_some());
        assert!(!is_watched(), "a command looks only once");
        assert!(is_watched());
    }
}
