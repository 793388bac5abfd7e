//! The folders under the scope root and what each of them contains, according to their metadata.
//!
//! A server checks this at each request. A folder is not listed again if its change time is the
//! same as at the last look and was safely in the past then ([`ack_store::quick_state`] has the
//! rule): then no entry has been added, removed or renamed since.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use walkdir::WalkDir;

use super::DATABASE_NAMES;
use ack_api::{Skipped, text};
use ack_store::quick_state::QuickState;
use ack_sys::disk::is_local;
use ack_sys::files;

#[derive(Debug, Default)]
pub struct ScopeFolders {
    state: Option<QuickState>,
    pub entries: Vec<FolderEntry>,
    /// Entries that cannot be scopes, and why.
    pub passed_over: Vec<Skipped>,
}

#[derive(Debug)]
pub struct FolderEntry {
    pub name: String,
    pub path: PathBuf,
    pub is_link: bool,
}

impl ScopeFolders {
    /// Looks at the folder. Returns whether it was listed again.
    pub fn read(&mut self, folder: &Path) -> bool {
        let before = QuickState::read(folder, None);
        if before.is_some() && self.state == before {
            return false;
        }
        self.entries.clear();
        self.passed_over.clear();
        self.list(folder);
        // It holds for what was read after it was taken, if nothing has changed since.
        let now = SystemTime::now();
        self.state = before.filter(|before| {
            before.is_settled(now)
                && is_local(folder)
                && QuickState::read(folder, None).as_ref() == Some(before)
        });
        true
    }

    fn list(&mut self, folder: &Path) {
        let entries =
            WalkDir::new(folder).min_depth(1).max_depth(1).follow_links(false).sort_by_file_name();
        for entry in entries.into_iter().flatten() {
            let shown_name = text::line(&entry.file_name().to_string_lossy(), 100);
            if shown_name.starts_with('.') {
                continue;
            }
            let is_link = entry.path_is_symlink();
            // A name that is not shown exactly as written could be mistaken for another one.
            match entry.file_name().to_str().filter(|name| *name == shown_name) {
                None => self.passed_over.push(Skipped {
                    scope: shown_name,
                    reason: "its name holds characters that cannot be shown".into(),
                }),
                Some(name) if is_link || entry.file_type().is_dir() => {
                    let (name, path) = (name.to_owned(), entry.path().to_owned());
                    self.entries.push(FolderEntry { name, path, is_link });
                }
                Some(_) => {}
            }
        }
    }
}

/// What a scope's folder contains. As long as it stays equal, so does the scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The path of the database, whether it exists or not.
    pub database: PathBuf,
    pub is_link: bool,
    /// Another database in the folder, which is not read.
    pub other_database: Option<&'static str>,
    /// The length and the time of the manifest, if there is one.
    pub manifest: Option<(u64, Option<SystemTime>)>,
}

impl Contents {
    pub fn read(folder: &Path) -> Self {
        let (database, is_link) = find_database(folder);
        let is_other = |name: &&&str| {
            let other = folder.join(name);
            other != database && other.is_file()
        };
        let other_database = DATABASE_NAMES.iter().find(is_other).copied();
        let file = folder.join("scope.toml");
        // Any entry counts as a manifest, even a dangling link. The defaults apply only if there is
        // none.
        let manifest = match file.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            _ => Some(file.metadata().map_or((0, None), |it| (it.len(), it.modified().ok()))),
        };
        Self { database, is_link, other_database, manifest }
    }
}

/// The database in a scope's folder, or its default name, and whether it is a symbolic link.
fn find_database(folder: &Path) -> (PathBuf, bool) {
    let (mut first, mut special) = (None, None);
    for path in DATABASE_NAMES.map(|name| folder.join(name)) {
        let metadata = std::fs::symlink_metadata(&path);
        let is_link = metadata.as_ref().is_ok_and(std::fs::Metadata::is_symlink);
        if metadata.is_ok_and(|metadata| metadata.is_file()) || (is_link && path.is_file()) {
            return (path, is_link);
        }
        // A named pipe or a device is reported as such, not as a missing file.
        if special.is_none() && files::is_special(&path) {
            special = Some((path.clone(), is_link));
        }
        first.get_or_insert((path, is_link));
    }
    special.or(first).unwrap_or_else(|| (folder.join(DATABASE_NAMES[0]), false))
}
