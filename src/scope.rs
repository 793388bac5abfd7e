//! Scopes: which there are, which one is current, which a request searches.
//!
//! A scope is a folder under `<root>/scopes`. One without a database is reported as such. Scope names are keys that are looked up in the
//! list of what was found; they are never joined into a path.

pub mod detect;
mod error;
mod folders;
pub mod manifest;
pub mod project;
pub mod resolve;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant, SystemTime};

pub use self::error::ScopeError;
use self::folders::{Contents, Entry, ScopeFolders};
use self::manifest::Manifest;
use crate::config::Config;
use crate::config::SettingsError;
use ack_api::memory::{ProjectRows, Status, Visibility, fold_name};
use ack_api::text;
use ack_search::encoder::Encoder;
use ack_search::inverted::Index;
use ack_search::inverted::follow::Listing;
use ack_search::remote::TableInfo;
use ack_store::StoreError;
use ack_store::open::Stamp;
use ack_store::projects::RecordedProjects;
use ack_store::table_stamp::TableStamp;
use ack_store::{PATIENCE, Store};
use ack_sys::files::expand_home;
use ack_sys::heap;

/// Counts the uses of indexes.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// How long the projects of a store that is locked are waited for.
const GLANCE: Duration = Duration::from_millis(250);
/// Projects that are read within this time are read again after every change of the store.
const AT_ONCE: Duration = Duration::from_millis(5);
/// Others are read again after so many times as long as reading took: a writer beside us may commit all the time.
const READ_AGAIN: u32 = 20;

/// Names a database may have in a scope's folder.
pub const DATABASE_NAMES: [&str; 2] = ["memory.db", "claude-mem.db"];

/// One scope.
#[derive(Debug)]
pub struct Scope {
    /// Its name: that of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest; the default one where there is none.
    pub manifest: Manifest,
    /// Why its manifest cannot be used. Such a scope is never read: nobody knows who may.
    pub problem: Option<SettingsError>,
    /// Its store.
    pub store: Store,
    index: RwLock<Option<Indexed>>,
    /// When its index was last asked for, in requests of the process.
    used: AtomicU64,
    /// Up to so many rows a vector table is held in memory; a larger one is searched itself.
    resident: usize,
    /// A table that could be opened but not searched, and why: it is not used again.
    refused: Mutex<Option<(TableStamp, String)>>,
    /// The projects that its memories name.
    recorded: Mutex<Option<Recorded>>,
}

#[derive(Debug)]
struct Recorded {
    /// The state of the store that was read; `None` where it could not be.
    stamp: Option<Stamp>,
    read: Instant,
    took: Duration,
    projects: Arc<RecordedProjects>,
}

#[derive(Debug)]
struct Indexed {
    /// `None` after a change that could not be read to its end.
    stamp: Option<Stamp>,
    index: Index,
    table_stamp: TableStamp,
    table: TableState,
    /// When it was begun to be brought up to date for the last time, on the clock of requests.
    begun: u64,
}

/// What became of a scope's vector table when its index was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableState {
    /// There is none.
    Absent,
    /// It cannot be used, and why. The index was made from the store alone.
    Unusable(String),
    /// What fitted the store was taken from it.
    Used(TableInfo),
}

/// A scope's index, as of the last commit before it was asked for.
pub struct IndexGuard<'a>(RwLockReadGuard<'a, Option<Indexed>>);

impl IndexGuard<'_> {
    /// The index.
    pub fn get(&self) -> Option<&Index> {
        self.0.as_ref().map(|indexed| &indexed.index)
    }

    /// What became of the vector table.
    pub fn table(&self) -> Option<&TableState> {
        self.0.as_ref().map(|indexed| &indexed.table)
    }
}

impl Scope {
    /// Its rows that belong to a project of this folded name. `aliases` are names that the project has in other scopes; one
    /// that this scope lists as another project's counts for nothing here.
    ///
    /// The project that a scope is about (the only one that it lists, or the one of its own name) also has the rows that name
    /// no project, and where there is no other the scope's own name stands for it.
    pub fn rows_of(&self, project: &str, aliases: &[String]) -> ProjectRows {
        let listed = &self.manifest.projects;
        let own = fold_name(&self.name);
        let named = listed.called(project);
        let alone = named.is_some() && listed.sole().is_some();
        let main = alone || project == own || named.is_some_and(|named| named.is_called(&own));
        let meant = named.or_else(|| listed.sole().filter(|_| main));
        let mut names = vec![project.to_owned()];
        names.extend(meant.into_iter().flat_map(|meant| meant.names().iter().cloned()));
        let free = |alias: &&String| listed.called(alias).is_none_or(|other| meant.is_some_and(|meant| meant == other));
        names.extend(aliases.iter().filter(free).cloned());
        if alone {
            names.push(own);
        }
        names.sort();
        names.dedup();
        ProjectRows { names, unnamed: main }
    }

    /// The projects that its memories name, read again where the store changed; none where it cannot be read at once.
    pub fn recorded(&self) -> Arc<RecordedProjects> {
        let Ok(stamp) = self.store.stamp() else { return Arc::default() };
        let mut cached = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &&Recorded| known.stamp.as_ref() == Some(&stamp) || known.read.elapsed() < known.took * READ_AGAIN;
        if let Some(known) = cached.as_ref().filter(fits) {
            return Arc::clone(&known.projects);
        }
        let began = Instant::now();
        let projects = self
            .indexed_projects(&stamp)
            .map_or_else(|| self.store.snapshot_within(GLANCE, |snapshot| snapshot.projects()), Ok);
        let took = match (&projects, began.elapsed()) {
            (Err(_), took) => took.max(AT_ONCE * 10),
            (Ok(_), took) if took < AT_ONCE => Duration::ZERO,
            (Ok(_), took) => took,
        };
        let known = cached.insert(Recorded {
            stamp: projects.is_ok().then_some(stamp),
            read: began,
            took,
            projects: Arc::new(projects.unwrap_or_default()),
        });
        Arc::clone(&known.projects)
    }

    /// The same from its index, where that is there and up to date.
    fn indexed_projects(&self, stamp: &Stamp) -> Option<RecordedProjects> {
        let slot = self.index.try_read().ok()?;
        let indexed = slot.as_ref().filter(|indexed| indexed.stamp.as_ref() == Some(stamp))?;
        let index = &indexed.index;
        let docs = index.live().filter(|(_, doc)| doc.status != Status::Rejected);
        let mut projects = RecordedProjects::default();
        for (name, count) in index.counted(docs.flat_map(|(_, doc)| [doc.project, doc.alias])) {
            projects.add(name, count);
        }
        Some(projects)
    }

    /// How many memories are held in memory at most; a larger scope is searched in its vector table.
    pub const fn resident(&self) -> usize {
        self.resident
    }

    /// The folder of the derived vector table; it may be absent or stale.
    pub fn lance_folder(&self) -> PathBuf {
        self.folder.join("lance")
    }

    /// Gives up the vector table that is in use, because it cannot be searched any more: from the next request on everything is
    /// read from the store.
    pub fn refuse_table(&self, reason: &str) {
        let mut slot = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(indexed) = slot.take_if(|indexed| indexed.index.searcher().is_some()) {
            let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
            *refused = Some((indexed.table_stamp, text::line(reason, 300)));
        }
    }

    /// The scope's index, brought up to date with every row that was committed before this call.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn index(&self) -> Result<IndexGuard<'_>, StoreError> {
        self.index_within(PATIENCE)
    }

    /// As [`Scope::index`], giving up on a locked store after `patience`.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn index_within(&self, patience: Duration) -> Result<IndexGuard<'_>, StoreError> {
        let asked = CLOCK.fetch_add(1, Ordering::SeqCst);
        self.used.store(asked, Ordering::Relaxed);
        let stamp = self.store.stamp()?;
        let table_stamp = TableStamp::of(&self.lance_folder());
        {
            let current = self.index.read().unwrap_or_else(PoisonError::into_inner);
            let fits = |indexed: &Indexed| indexed.stamp.as_ref() == Some(&stamp) && indexed.table_stamp == table_stamp;
            if current.as_ref().is_some_and(fits) {
                return Ok(IndexGuard(current));
            }
        }
        {
            let mut slot = self.index.write().unwrap_or_else(PoisonError::into_inner);
            // Whoever waited here while another request read the store shares what that one found, unless it began too early.
            let shares = |indexed: &Indexed| indexed.stamp.is_some() && indexed.begun > asked && indexed.table_stamp == table_stamp;
            if !slot.as_ref().is_some_and(shares) {
                let begun = CLOCK.fetch_add(1, Ordering::SeqCst);
                self.refresh(&mut slot, table_stamp, patience)?;
                if let Some(indexed) = slot.as_mut() {
                    indexed.begun = begun;
                }
            }
        }
        Ok(IndexGuard(self.index.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The index as the last call of [`Scope::index_within`] left it; brought up to date where it was given up since.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn refreshed_index(&self, patience: Duration) -> Result<IndexGuard<'_>, StoreError> {
        let current = self.index.read().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return Ok(IndexGuard(current));
        }
        drop(current);
        self.index_within(patience)
    }

    /// About how many bytes its index takes; 0 where there is none, or where it is being made.
    pub fn index_bytes(&self) -> usize {
        let indexed = self.index.try_read();
        indexed.map_or(0, |indexed| indexed.as_ref().map_or(0, |indexed| indexed.index.bytes()))
    }

    fn refresh(&self, slot: &mut Option<Indexed>, table_stamp: TableStamp, patience: Duration) -> Result<(), StoreError> {
        // A table that came, changed or went is looked at once.
        let looked = slot.as_ref().is_some_and(|indexed| indexed.table_stamp == table_stamp);
        let mut table = TableState::Absent;
        if !looked && table_stamp.is_some() {
            // The index that is there goes first: two of them would take twice the memory.
            give_up(slot);
            // Reading the table and listing the rows of the store take about as long, so both are done at once.
            let mut read = None;
            let refreshed = self.store.whole(patience, |snapshot| {
                let (state, index, listing) = match read.take() {
                    Some((state, index)) => (state, index, Listing::read(snapshot)?),
                    None => std::thread::scope(|threads| {
                        let reading = threads.spawn(|| self.read_table(&table_stamp));
                        let listing = Listing::read(snapshot);
                        match reading.join() {
                            Ok((state, index)) => Ok((state, index, listing?)),
                            Err(panic) => std::panic::resume_unwind(panic),
                        }
                    })?,
                };
                let changes = match &index {
                    Some(index) => Some(index.changes_since(listing, snapshot)?),
                    None => None,
                };
                // A snapshot that was disturbed is read again; the table is not.
                let done = (snapshot.stamp.clone(), changes);
                read = Some((state, index));
                Ok(done)
            });
            let (stamp, changes) = refreshed?;
            if let Some((state, index)) = read {
                if let (Some(mut index), Some(changes)) = (index, changes)
                    && index.apply(changes)
                {
                    let indexed = Indexed {
                        stamp: Some(stamp),
                        index,
                        table_stamp,
                        table: state,
                        begun: 0,
                    };
                    put(slot, indexed);
                    return Ok(());
                }
                table = state;
            }
        }
        if let Some(indexed) = slot {
            // What was taken from an earlier table is as good as before.
            if !looked {
                indexed.table = table.clone();
                indexed.table_stamp = table_stamp.clone();
            }
            let (stamp, changes) = self.store.whole(patience, |snapshot| {
                let listing = Listing::read(snapshot)?;
                Ok((snapshot.stamp.clone(), indexed.index.changes_since(listing, snapshot)?))
            })?;
            indexed.stamp = None;
            if indexed.index.apply(changes) {
                indexed.stamp = Some(stamp);
                return Ok(());
            }
        }
        if let Some(indexed) = slot.as_mut() {
            table = indexed.table.clone();
        }
        give_up(slot);
        let (stamp, index) = self
            .store
            .whole(PATIENCE, |snapshot| Ok((snapshot.stamp.clone(), Index::build(snapshot)?)))?;
        let indexed = Indexed {
            stamp: Some(stamp),
            index,
            table_stamp,
            table,
            begun: 0,
        };
        put(slot, indexed);
        Ok(())
    }

    /// Reads the vector table, if there is one that can be used.
    fn read_table(&self, stamp: &TableStamp) -> (TableState, Option<Index>) {
        if !stamp.is_some() {
            return (TableState::Absent, None);
        }
        let Some(encoder) = Encoder::embedded() else {
            return (TableState::Unusable("the encoder inside this binary is damaged".to_owned()), None);
        };
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reason)) = refused.as_ref().filter(|(refused, _)| refused == stamp) {
            return (TableState::Unusable(reason.clone()), None);
        }
        drop(refused);
        load_table(&self.lance_folder(), encoder, self.resident)
    }
}

/// Reads a vector table.
#[cfg(feature = "table")]
fn load_table(folder: &Path, encoder: &Encoder, resident: usize) -> (TableState, Option<Index>) {
    match ack_lance::load::load(folder, encoder, resident) {
        Ok((index, info)) => (TableState::Used(info), Some(index)),
        Err(error) => (TableState::Unusable(text::line(&error.to_string(), 300)), None),
    }
}

/// Without the `table` feature there are no vector tables.
#[cfg(not(feature = "table"))]
fn load_table(_folder: &Path, _encoder: &Encoder, _resident: usize) -> (TableState, Option<Index>) {
    (TableState::Absent, None)
}

/// Puts a new index in its place, and gives back what making it took.
fn put(slot: &mut Option<Indexed>, indexed: Indexed) {
    let made = indexed.index.bytes();
    *slot = Some(indexed);
    if made >= heap::WORTH {
        heap::give_back();
    }
}

/// Frees an index, and gives its memory back where that is worth it.
fn give_up(slot: &mut Option<Indexed>) {
    let freed = slot.take().map_or(0, |indexed| indexed.index.bytes());
    if freed >= heap::WORTH {
        heap::give_back();
    }
}

/// The scopes of one process. Scopes that did not change keep their index.
#[derive(Debug)]
pub struct Registry {
    root: PathBuf,
    single: Option<PathBuf>,
    /// What the single database is called: a pin names it.
    single_name: Option<String>,
    home: Option<PathBuf>,
    resident: usize,
    folders: Mutex<ScopeFolders>,
    known: Mutex<HashMap<PathBuf, (FolderStamp, Arc<Scope>)>>,
}

/// What tells one state of a scope's folder from the next.
#[derive(Debug, Default)]
struct FolderStamp {
    /// Length and time of its manifest, where it has one.
    manifest: Option<(u64, Option<SystemTime>)>,
    contents: Contents,
}

/// What was found under the root.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The scopes, by name.
    pub scopes: Vec<Arc<Scope>>,
    /// Entries that are no scopes, and why.
    pub passed_over: Vec<(String, String)>,
}

impl Registry {
    /// The registry of a configuration. Nothing is read yet.
    pub fn new(config: &Config) -> Self {
        Self {
            root: config.root.value.clone(),
            single: config.db.as_ref().map(|db| db.value.clone()),
            single_name: config.pinned.as_ref().map(|pinned| pinned.value.trim().to_owned()),
            home: config.home.clone(),
            resident: config.resident.value as usize,
            folders: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// The scope root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the private copies of stores.
    pub fn close(&self) {
        if let Ok(known) = self.known.try_lock() {
            known.values().for_each(|(_, scope)| scope.store.close());
        }
    }

    /// Gives up indexes of scopes that are not among `needed` until all together keep to the bound: first those that were
    /// not used for the longest time. One that a request is reading stays.
    pub fn keep_within(&self, bytes: usize, needed: &[Arc<Scope>]) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sizes: Vec<(u64, usize, &Arc<Scope>)> = known
            .values()
            .map(|(_, scope)| (scope.used.load(Ordering::Relaxed), scope.index_bytes(), scope))
            .collect();
        let mut whole: usize = sizes.iter().map(|(_, size, _)| size).sum();
        sizes.sort_unstable_by_key(|(used, ..)| *used);
        for (_, size, scope) in sizes {
            if whole <= bytes {
                break;
            }
            if !needed.iter().any(|other| Arc::ptr_eq(other, scope))
                && let Ok(mut slot) = scope.index.try_write()
            {
                give_up(&mut slot);
                whole -= size;
            }
        }
    }

    /// The scopes there are now.
    pub fn discover(&self) -> Discovery {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.single {
            let only = || {
                (
                    FolderStamp::default(),
                    Arc::new(single(path, self.single_name.as_deref(), self.resident)),
                )
            };
            let (_, scope) = known.entry(path.clone()).or_insert_with(only);
            return Discovery {
                scopes: vec![Arc::clone(scope)],
                passed_over: Vec::new(),
            };
        }
        let mut discovery = Discovery::default();
        let folder = self.root.join("scopes");
        let real_root = self.root.canonicalize().unwrap_or_else(|_| self.root.clone());
        let leaves_the_root = |path: &Path| !path.canonicalize().is_ok_and(|real| real.starts_with(&real_root));
        let mut before = std::mem::take(&mut *known);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let (entries, passed_over) = folders.read(&folder);
        discovery.passed_over.extend_from_slice(passed_over);
        for Entry { name, path, is_link } in entries {
            if *is_link && leaves_the_root(path) {
                let reason = "a symbolic link that leaves the scope root is not followed; use `store` in a scope.toml";
                discovery.passed_over.push((name.clone(), reason.to_owned()));
                continue;
            }
            let known_scope = before.remove(path);
            let contents = match &known_scope {
                Some((stamp, _)) if !is_link && stamp.contents.are_current(path) => stamp.contents.clone(),
                _ if path.is_dir() => Contents::read(path),
                _ => continue,
            };
            if contents.is_link && leaves_the_root(&contents.database) {
                let reason = "its database is a symbolic link that leaves the scope root; name it as `store` in its scope.toml instead";
                discovery.passed_over.push((name.clone(), reason.to_owned()));
                continue;
            }
            let manifest = contents.has_manifest.then(|| {
                let metadata = std::fs::metadata(path.join("scope.toml")).ok();
                let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
                (length, metadata.and_then(|metadata| metadata.modified().ok()))
            });
            let scope = match known_scope {
                Some((stamp, scope)) if stamp.manifest == manifest && stamp.contents.database == contents.database => scope,
                _ => Arc::new(self.load(path, name, &contents)),
            };
            let stamp = FolderStamp { manifest, contents };
            known.insert(path.to_owned(), (stamp, Arc::clone(&scope)));
            discovery.scopes.push(scope);
        }
        discovery
    }

    fn load(&self, folder: &Path, name: &str, contents: &Contents) -> Scope {
        let (manifest, problem) = if contents.has_manifest {
            load(&folder.join("scope.toml"))
        } else {
            (Manifest::default(), None)
        };
        let path = match &manifest.store {
            Some(store) => {
                let store = expand_home(store, self.home.as_deref());
                if store.is_absolute() { store } else { folder.join(store) }
            }
            None => contents.database.clone(),
        };
        let store = Store::new(path, manifest.unreviewed).with_overviews(manifest.overviews);
        Scope {
            name: name.to_owned(),
            folder: folder.to_owned(),
            manifest,
            problem,
            store,
            index: RwLock::default(),
            used: AtomicU64::default(),
            resident: self.resident,
            refused: Mutex::default(),
            recorded: Mutex::default(),
        }
    }
}

/// A single database as the only scope, with the manifest beside it if there is one. It has the name of the pin, where that
/// could be the name of a scope, else that of its file.
fn single(path: &Path, pin: Option<&str>, resident: usize) -> Scope {
    let stem = || {
        path.file_stem()
            .map_or_else(|| "memory".to_owned(), |stem| text::line(&stem.to_string_lossy(), 100))
    };
    let named = pin.filter(|name| !name.is_empty() && !name.starts_with('.') && !name.contains('/') && text::line(name, 100) == **name);
    let name = named.map_or_else(stem, str::to_owned);
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let file = folder.join("scope.toml");
    let (mut manifest, problem) = if file.exists() { load(&file) } else { (Manifest::default(), None) };
    // It is the only one there is, and it was named.
    manifest.visibility = Visibility::Shared;
    let store = Store::new(path.to_owned(), manifest.unreviewed).with_overviews(manifest.overviews);
    Scope {
        name,
        folder,
        manifest,
        problem,
        store,
        index: RwLock::default(),
        used: AtomicU64::default(),
        resident,
        refused: Mutex::default(),
        recorded: Mutex::default(),
    }
}

/// Reads a manifest; a broken one makes the scope private, because nobody knows who may read it.
fn load(file: &Path) -> (Manifest, Option<SettingsError>) {
    match Manifest::load(file) {
        Ok(manifest) => (manifest, None),
        Err(problem) => (
            Manifest {
                visibility: Visibility::Private,
                ..Manifest::default()
            },
            Some(problem),
        ),
    }
}
