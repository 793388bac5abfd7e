//! The names and stores of the existing scopes, for commands that compare many stores with them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::decision::DECISION_LOG;
use ack_api::memory::fold_name;
use ack_store::decisions::seal::seal_path;

use super::Scope;

/// The device and the number of a file.
type FileId = (u64, u64);

/// The scopes that exist: each name, and its store, which is looked at once.
#[derive(Debug, Default)]
pub struct KnownScopes(Vec<(String, PathBuf, Option<FileId>)>);

impl KnownScopes {
    pub fn new(scopes: &[Arc<Scope>]) -> Self {
        let mut known = Self::default();
        for scope in scopes {
            known.add(&scope.name, scope.store.path());
        }
        known
    }

    pub fn add(&mut self, name: &str, store: &Path) {
        self.0.push((name.to_owned(), store.to_owned(), file_id(store)));
    }

    /// The scope with a name, ignoring case and treating `-` and `_` as equal.
    pub fn named(&self, name: &str) -> Option<&str> {
        let name = fold_name(name);
        self.0.iter().map(|(known, ..)| known.as_str()).find(|known| fold_name(known) == name)
    }

    /// The scope that already has this store, also under another path.
    pub fn with_store(&self, store: &Path) -> Option<&str> {
        let file = file_id(store);
        let is_it =
            |path: &Path, known: Option<FileId>| path == store || file.is_some() && known == file;
        let mut known = self.0.iter();
        known.find(|(_, path, file)| is_it(path, *file)).map(|(name, ..)| name.as_str())
    }

    /// A name that no scope has: the given one, or that with a number.
    pub fn free_name(&self, base: String) -> String {
        if self.named(&base).is_none() {
            return base;
        }
        let mut numbered = (2u32..).map(|number| format!("{base}-{number}"));
        numbered.find(|name| self.named(name).is_none()).unwrap_or_default()
    }
}

/// Whether two paths are the same file, including symbolic and hard links.
pub fn is_same(one: &Path, other: &Path) -> bool {
    one == other || file_id(one).is_some_and(|file| file_id(other) == Some(file))
}

/// The folder of the scope that a store belongs to, with its decisions or its manifest beside it.
/// They are read only there.
pub fn own_folder(store: &Path) -> Option<PathBuf> {
    let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut folders = [store, &real].into_iter().filter_map(Path::parent);
    let is_own = |folder: &&Path| {
        let log = folder.join(DECISION_LOG);
        [seal_path(&log), log, folder.join("scope.toml")].iter().any(|file| file.exists())
    };
    folders.find(is_own).map(Path::to_owned)
}

fn file_id(path: &Path) -> Option<FileId> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
