//! The names and stores of the existing scopes, for commands that compare many stores with them.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ack_api::memory::fold_name;

use super::Scope;

type FileId = (u64, u64);

/// The scopes that exist, by name and by store. Each store is looked at once.
#[derive(Debug, Default)]
pub struct KnownScopes {
    names: HashMap<String, String>,
    by_path: HashMap<PathBuf, String>,
    by_file: HashMap<FileId, String>,
}

impl KnownScopes {
    pub fn new(scopes: &[Arc<Scope>]) -> Self {
        let mut known = Self::default();
        for scope in scopes {
            known.add(&scope.name, scope.store.path());
        }
        known
    }

    pub fn add(&mut self, name: &str, store: &Path) {
        self.names.entry(fold_name(name)).or_insert_with(|| name.to_owned());
        self.by_path.entry(store.to_owned()).or_insert_with(|| name.to_owned());
        if let Some(file) = file_id(store) {
            self.by_file.entry(file).or_insert_with(|| name.to_owned());
        }
    }

    /// The scope with a name, ignoring case and treating `-` and `_` as equal.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.names.get(&fold_name(name)).map(String::as_str)
    }

    /// The scope that already has this store, also under another path.
    pub fn with_store(&self, store: &Path) -> Option<&str> {
        let by_file = || self.by_file.get(&file_id(store)?);
        self.by_path.get(store).or_else(by_file).map(String::as_str)
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

fn file_id(path: &Path) -> Option<FileId> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
