//! The files that a memory cites.

use ack_search::file_pattern::is_glob;
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

/// A file that a memory cites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CitedFile {
    /// The entry, as the memory has it.
    pub entry: String,
    /// Whether it exists.
    pub state: FileState,
}

impl WorkTree {
    /// Looks for the files that a memory cites: paths with or without line numbers, with `/` or
    /// `\`, from the top or from the project's folder; folders; globs; and names or ends of paths,
    /// which may be anywhere in the tree. Checks at most forty entries; the rest are unknown.
    pub fn cited(&self, files: &[String]) -> Vec<CitedFile> {
        let looked = files.iter().enumerate().map(|(number, entry)| CitedFile {
            state: if number < MAX_FILES && entry.len() <= MAX_PATH_BYTES {
                self.check_file(entry)
            } else {
                FileState::Unknown
            },
            entry: entry.clone(),
        });
        looked.collect()
    }

    fn check_file(&self, entry: &str) -> FileState {
        let Some(inside) = self.inside(entry) else {
            return FileState::Outside;
        };
        let mut is_unknown = false;
        for reading in self.possible_paths(&inside) {
            match self.path_state(&reading) {
                PathState::Exists => return FileState::There,
                PathState::Unknown => is_unknown = true,
                // A glob may still match something else.
                PathState::Missing => {}
            }
        }
        match self.lists(&inside) {
            Some(true) => FileState::There,
            // A glob without any letters or digits proves nothing.
            Some(false) if is_unknown || is_bare_glob(&inside) => FileState::Unknown,
            Some(false) => FileState::Gone,
            None => FileState::Unknown,
        }
    }
}

/// Whether a path consists only of glob characters.
fn is_bare_glob(path: &str) -> bool {
    is_glob(path) && !path.chars().any(char::is_alphanumeric)
}
