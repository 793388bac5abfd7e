//! Scopes: which ones exist, which one is current, which ones a request searches.
//!
//! A scope is a folder under `<root>/scopes`. A folder without a database is reported as such.
//! Scope names are keys into the list of discovered scopes; they are never joined into a path.

pub mod detect;
pub mod edit;
mod error;
mod folders;
pub mod known;
pub mod manifest;
mod place;
pub mod project;
pub mod registry;
pub mod resolve;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ack_api::memory::{ProjectRows, fold_name};
use ack_store::open::FileState;
use ack_store::projects::RecordedProjects;
use ack_store::table_version::TableVersion;
use ack_store::{Access, Store};
use ack_sys::watch::FolderWatch;
use parking_lot::Mutex;

pub use self::error::ScopeError;
pub use self::known::KnownScopes;
use self::manifest::Manifest;
pub use self::registry::{Registry, check_manifest};
use crate::bucket::Remote;
use crate::config::SettingsError;
use crate::live::LiveIndex;

const PROJECTS_LOCK_TIMEOUT: Duration = Duration::from_millis(250);
/// If reading the projects takes less, they are read again after every change of the store.
const FAST_READ: Duration = Duration::from_millis(5);
/// Otherwise wait this many times the reading time: a writer may commit all the time.
const REREAD_FACTOR: u32 = 20;

pub const DATABASE_NAMES: [&str; 2] = ["memory.db", "claude-mem.db"];

#[derive(Debug)]
pub struct Scope {
    pub name: String,
    pub folder: PathBuf,
    pub manifest: Manifest,
    /// Why its manifest is invalid. Such a scope is never read: who may read it is not clear.
    pub problem: Option<SettingsError>,
    pub store: Store,
    /// A database in its folder that is not read, because the manifest names neither of two.
    pub other_database: Option<&'static str>,
    pub home: Option<PathBuf>,
    /// The bucket that its memories are published in. The store is then the local copy.
    pub remote: Option<Arc<Remote>>,
    recorded: Mutex<Option<RecordedState>>,
    watch: Arc<FolderWatch>,
    /// A vector table with more rows is searched in place.
    pub resident: usize,
    pub live: LiveIndex,
}

#[derive(Debug)]
struct RecordedState {
    /// The version of the store that was read; `None` if it could not be read.
    stamp: Option<FileState>,
    read: Instant,
    duration: Duration,
    projects: Arc<RecordedProjects>,
}

impl Scope {
    /// The rows of this scope that belong to a project with this folded name. `aliases` are the
    /// project's names in other scopes. An alias does not count here if this scope lists it as
    /// another project.
    ///
    /// The main project of a scope is the only one it lists, or the one with the scope's own name.
    /// It also gets the rows that name no project. If it is the only one, the scope's own name
    /// counts as its name too.
    pub fn rows_of(&self, project: &str, aliases: &[String]) -> ProjectRows {
        let listed = &self.manifest.projects;
        let own_name = fold_name(&self.name);
        let listed_project = listed.find(project);
        let is_sole = listed_project.is_some() && listed.sole().is_some();
        let main = is_sole
            || project == own_name
            || listed_project.is_some_and(|listed_project| listed_project.has_name(&own_name));
        let matched = listed_project.or_else(|| listed.sole().filter(|_| main));
        let mut names = vec![project.to_owned()];
        names.extend(matched.into_iter().flat_map(|matched| matched.names().iter().cloned()));
        let free = |alias: &&String| {
            listed.find(alias).is_none_or(|other| matched.is_some_and(|matched| matched == other))
        };
        names.extend(aliases.iter().filter(free).cloned());
        if is_sole {
            names.push(own_name);
        }
        names.sort();
        names.dedup();
        ProjectRows { names, unnamed: main }
    }

    /// The projects that its memories name now; empty if the store cannot be read immediately.
    pub fn recorded(&self) -> Arc<RecordedProjects> {
        let Ok(stamp) = self.store.file_state() else {
            return Arc::default();
        };
        let mut cached = self.recorded.lock();
        let fits = |known: &&RecordedState| {
            known.stamp.as_ref() == Some(&stamp)
                || known.read.elapsed() < known.duration * REREAD_FACTOR
        };
        if let Some(known) = cached.as_ref().filter(fits) {
            return Arc::clone(&known.projects);
        }
        let began = Instant::now();
        let projects =
            self.store.read(Access::Rows, PROJECTS_LOCK_TIMEOUT, |snapshot| snapshot.projects());
        let took = began.elapsed();
        let duration = match &projects {
            Ok(_) if took < FAST_READ => Duration::ZERO,
            Ok(_) => took,
            Err(_) => took.max(FAST_READ * 10),
        };
        let stamp = projects.is_ok().then_some(stamp);
        let projects = Arc::new(projects.unwrap_or_default());
        let known = RecordedState { stamp, read: Instant::now(), duration, projects };
        Arc::clone(&cached.insert(known).projects)
    }

    pub fn table_version(&self) -> TableVersion {
        TableVersion::of(&self.lance_folder())
    }

    /// The folder of the derived vector table, which may be missing or stale.
    pub fn lance_folder(&self) -> PathBuf {
        match &self.remote {
            Some(remote) => remote.table_folder(),
            None => self.folder.join("lance"),
        }
    }
}
