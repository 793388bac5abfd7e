//! The files that a memory cites.

use std::time::SystemTime;

use ack_search::file_pattern::is_glob;
use jiff::Timestamp;
use serde::Serialize;

use super::tree::{PathState, WorkTree};

/// How many of a memory's files are checked.
const MAX_FILES: usize = 40;
/// Longer paths are not checked, because no system allows them.
const MAX_PATH_BYTES: usize = 4_096;

/// Whether a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// It exists.
    There,
    /// It does not.
    Gone,
    /// It is outside the working tree, so it was not checked.
    Outside,
    /// Unknown, because a limit was reached.
    Unknown,
}

/// Whether a file has changed since a memory was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// Not changed: it was last written before.
    Unchanged,
    /// It was written later, which may be a change or a checkout.
    WrittenLater,
    /// It is a folder, a glob or missing, or the memory has no date.
    Unknown,
}

/// A file that a memory cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CitedFile {
    /// The entry, as the memory has it.
    pub entry: String,
    /// Whether it exists.
    pub state: FileState,
    /// Whether it has changed.
    pub since: Since,
}

impl WorkTree {
    /// Looks for the files that a memory cites: paths with or without line numbers, with `/` or
    /// `\`, from the top or from the project's folder; folders; globs; and names or ends of paths,
    /// which may be anywhere in the tree. `written_at` is when the memory was written or last
    /// changed. Checks at most forty entries; the rest are unknown.
    pub fn cited(&self, files: &[String], written_at: Option<Timestamp>) -> Vec<CitedFile> {
        let looked = files.iter().enumerate().map(|(number, entry)| {
            let (state, since) = if number < MAX_FILES && entry.len() <= MAX_PATH_BYTES {
                self.check_file(entry, written_at)
            } else {
                (FileState::Unknown, Since::Unknown)
            };
            CitedFile {
                entry: entry.clone(),
                state,
                since,
            }
        });
        looked.collect()
    }

    fn check_file(&self, entry: &str, written_at: Option<Timestamp>) -> (FileState, Since) {
        let Some(inside) = self.inside(entry) else {
            return (FileState::Outside, Since::Unknown);
        };
        let mut is_unknown = false;
        for reading in self.possible_paths(&inside) {
            match self.path_state(&reading) {
                PathState::Exists(metadata) => {
                    let modified = metadata.modified().ok().filter(|_| metadata.is_file());
                    return (FileState::There, since(modified, written_at));
                }
                PathState::Unknown => is_unknown = true,
                // A glob may still match something else.
                PathState::Missing => {}
            }
        }
        let state = match self.lists(&inside) {
            Some(true) => FileState::There,
            // A glob without any letters or digits proves nothing.
            Some(false) if is_unknown || is_bare_glob(&inside) => FileState::Unknown,
            Some(false) => FileState::Gone,
            None => FileState::Unknown,
        };
        (state, Since::Unknown)
    }
}

fn since(modified: Option<SystemTime>, written_at: Option<Timestamp>) -> Since {
    let (Some(modified), Some(written_at)) = (modified, written_at) else {
        return Since::Unknown;
    };
    if modified <= SystemTime::from(written_at) {
        Since::Unchanged
    } else {
        Since::WrittenLater
    }
}

/// Whether a path consists only of glob characters.
fn is_bare_glob(path: &str) -> bool {
    is_glob(path) && !path.chars().any(char::is_alphanumeric)
}
