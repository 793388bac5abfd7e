//! Finds the scopes under the root, and reuses what is known about those that have not changed.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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
    folders: Mutex<ScopeFolders>,
    known: Mutex<KnownScopes>,
}

type KnownScope = (FolderStamp, Arc<Scope>);
/// Scopes by the paths of their folders, with the state of those.
type KnownScopes = HashMap<PathBuf, KnownScope>;

#[derive(Debug, Default)]
struct FolderStamp {
    manifest: Option<(u64, Option<SystemTime>)>,
    contents: Contents,
    watch: Option<Arc<FolderWatch>>,
    /// The generation of the watched folder, if all of this can only change with it.
    generation: Option<u64>,
}

impl FolderStamp {
    /// Whether nothing in the folder changed since it was looked into.
    fn is_current(&self) -> bool {
        let now = self.watch.as_ref().and_then(|watch| watch.generation());
        now.is_some() && now == self.generation
    }
}

#[derive(Debug, Default)]
pub struct Discovery {
    pub scopes: Vec<Arc<Scope>>,
    pub passed_over: Vec<Skipped>,
}

impl Registry {
    pub fn new(config: &Config) -> Self {
        let (folders, known) = (Mutex::default(), Mutex::default());
        let all = Arc::new(ScopeFinder { config: config.clone(), folders, known });
        Self { all, visible: None }
    }

    /// The same scopes, but only those with these names are visible.
    #[must_use]
    pub fn limited(&self, names: BTreeSet<String>) -> Self {
        Self { all: Arc::clone(&self.all), visible: Some(names) }
    }

    /// Closes the stores, unless they are being read.
    pub fn close(&self) {
        if let Some(known) = self.all.known.try_lock() {
            known.values().for_each(|(_, scope)| scope.store.close());
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
    /// Adds what was found at a path: a scope, nothing, or why it is none.
    fn add(
        &mut self,
        known: &mut KnownScopes,
        (path, name): (&Path, &str),
        found: Result<Option<KnownScope>, String>,
    ) {
        match found {
            Ok(Some((stamp, scope))) => {
                self.scopes.push(Arc::clone(&scope));
                known.insert(path.to_owned(), (stamp, scope));
            }
            Ok(None) => {}
            Err(reason) => {
                self.passed_over.push(Skipped { scope: name.to_owned(), reason: reason.into() });
            }
        }
    }
}

impl ScopeFinder {
    fn discover(&self) -> Discovery {
        let mut known = self.known.lock();
        if let Some(Setting { value: path, .. }) = &self.config.db {
            let (_, scope) = known
                .entry(path.clone())
                .and_modify(|(_, scope)| scope.watch.begin())
                .or_insert_with(|| (FolderStamp::default(), Arc::new(self.single_scope(path))));
            return Discovery { scopes: vec![Arc::clone(scope)], passed_over: Vec::new() };
        }
        let mut before = std::mem::take(&mut *known);
        let mut folders = self.folders.lock();
        let (entries, passed_over, is_new) = folders.read(&self.config.root.value.join("scopes"));
        if is_new {
            // Another folder may be in the place of one that is watched.
            let stamps = before.values().map(|(stamp, _)| stamp);
            stamps.filter_map(|stamp| stamp.watch.as_ref()).for_each(|watch| watch.forget());
        }
        let mut found = Discovery { scopes: Vec::new(), passed_over: passed_over.to_vec() };
        for entry in entries {
            let looked = self.look_into(entry, before.remove(&entry.path));
            found.add(&mut known, (&entry.path, &entry.name), looked);
        }
        let database = self.config.root.value.join(DEFAULT_DATABASE);
        if database.is_file() || files::is_special(&database) {
            let scope = self.default_scope(&database, &found.scopes, before.remove(&database));
            found.add(&mut known, (&database, DEFAULT_DATABASE), scope);
            found.scopes.sort_by(|a, b| a.name.cmp(&b.name));
        }
        found
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
        let (old_stamp, old_scope) = match before {
            Some((stamp, scope)) => {
                // Only a process that looks again saves time by watching.
                scope.watch.begin();
                if stamp.is_current() {
                    return Ok(Some((stamp, scope)));
                }
                (stamp, Some(scope))
            }
            None => (FolderStamp::default(), None),
        };
        let watch = old_stamp.watch.unwrap_or_else(|| Arc::new(FolderWatch::new(path.clone())));
        let generation = watch.generation().filter(|_| !is_link);
        if !path.is_dir() {
            return Ok(None);
        }
        let contents = self.or_default_database(name, Contents::read(path));
        if contents.is_link && self.is_outside(&contents.database) {
            return Err("its database is a symbolic link that leaves the scope root; name it as \
                        `store` in its scope.toml instead"
                .to_owned());
        }
        let manifest = contents.has_manifest.then(|| {
            let metadata = std::fs::metadata(path.join("scope.toml")).ok();
            let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
            (length, metadata.and_then(|metadata| metadata.modified().ok()))
        });
        let is_same = old_stamp.manifest == manifest
            && old_stamp.contents.database == contents.database
            && old_stamp.contents.other_database == contents.other_database;
        let scope = old_scope
            .filter(|_| is_same)
            .unwrap_or_else(|| Arc::new(self.load(path, name, &contents, &watch)));
        let is_in_folder = !contents.is_link
            && contents.database.parent() == Some(path)
            && (manifest.is_none() || is_only_name(&path.join("scope.toml")));
        let is_settled = |before: &u64| is_in_folder && watch.generation() == Some(*before);
        let generation = generation.filter(is_settled);
        Ok(Some((FolderStamp { manifest, generation, contents, watch: Some(watch) }, scope)))
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
        let scope = match before {
            Some((_, scope)) => {
                scope.watch.begin();
                scope
            }
            None => {
                let folder = self.config.root.value.join("scopes").join(DEFAULT_SCOPE);
                let contents = Contents { database: database.to_owned(), ..Contents::default() };
                let watch = Arc::new(FolderWatch::new(folder.clone()));
                Arc::new(self.load(&folder, DEFAULT_SCOPE, &contents, &watch))
            }
        };
        Ok(Some((FolderStamp::default(), scope)))
    }

    fn load(
        &self,
        folder: &Path,
        name: &str,
        contents: &Contents,
        watch: &Arc<FolderWatch>,
    ) -> Scope {
        let file = contents.has_manifest.then(|| folder.join("scope.toml"));
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
            without_table: Mutex::default(),
            name: name.to_owned(),
            folder: folder.to_owned(),
            other_database: contents.other_database.filter(|_| is_unnamed),
            manifest,
            problem,
            store,
            remote,
            recorded: Mutex::default(),
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
            without_table: Mutex::default(),
            name,
            store: self.store(path.to_owned(), NamedBy::Database, &folder, &manifest, None),
            folder,
            other_database: None,
            manifest,
            problem,
            remote: None,
            recorded: Mutex::default(),
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
