//! The files that a memory cites.

use std::time::SystemTime;

use ack_search::file_pattern::is_glob;
use jiff::Timestamp;
use serde::Serialize;

use super::tree::{Found, WorkTree};

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
    /// which may be anywhere in the tree. `made` is when the memory was written or last changed.
    /// Checks at most forty entries; the rest are unknown.
    pub fn cited(&self, files: &[String], made: Option<Timestamp>) -> Vec<CitedFile> {
        let looked = files.iter().enumerate().map(|(number, entry)| {
            let (state, since) = if number < MAX_FILES && entry.len() <= MAX_PATH_BYTES {
                self.look_for(entry, made)
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

    fn look_for(&self, entry: &str, made: Option<Timestamp>) -> (FileState, Since) {
        let Some(inside) = self.inside(entry) else {
            return (FileState::Outside, Since::Unknown);
        };
        let mut is_unknown = false;
        for reading in self.readings(&inside) {
            match self.look(&reading) {
                Found::There(metadata) => {
                    let written = metadata.modified().ok().filter(|_| metadata.is_file());
                    return (FileState::There, since(written, made));
                }
                Found::Unknown => is_unknown = true,
                // A glob may still match something else.
                Found::Nothing => {}
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

fn since(written: Option<SystemTime>, made: Option<Timestamp>) -> Since {
    let (Some(written), Some(made)) = (written, made) else {
        return Since::Unknown;
    };
    if written <= SystemTime::from(made) {
        Since::Unchanged
    } else {
        Since::WrittenLater
    }
}

/// Whether a path consists only of glob characters.
fn is_bare_glob(path: &str) -> bool {
    is_glob(path) && !path.chars().any(char::is_alphanumeric)
}
