//! The backup of a file before its first change: its text, or the fact that there was no file.

use std::path::{Path, PathBuf};

use super::ConnectError;
use super::file::{io, read};

/// The first line of the backup if there was no file. No client can read it as its settings.
const NO_FILE_MARK: &str = "there was no file";

/// The backup of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backup {
    /// Nothing: `connect` did not run.
    Nothing,
    /// There was no file, and this many of the folders above it were missing.
    NoFile {
        /// The folders.
        folders: usize,
    },
    /// Its text.
    Text(String),
}

impl Backup {
    /// Reads the backup of a file.
    pub fn of(path: &Path) -> Result<Self, ConnectError> {
        Ok(match read(&backup_path(path))? {
            None => Self::Nothing,
            Some(text) => match text.strip_prefix(NO_FILE_MARK) {
                Some(rest) => Self::NoFile {
                    folders: rest.lines().filter(|line| line.contains("folder")).count(),
                },
                None => Self::Text(text),
            },
        })
    }

    /// The backup of a missing file.
    pub fn no_file(path: &Path) -> Self {
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        Self::NoFile {
            folders: missing.count(),
        }
    }

    /// Writes it next to the file. A text gets the permissions of the file at `real`.
    pub fn write(&self, path: &Path, real: &Path) -> Result<(), ConnectError> {
        let kept = backup_path(path);
        let result = match self {
            Self::Nothing => Ok(()),
            Self::Text(_) => std::fs::copy(real, &kept).map(drop),
            Self::NoFile { folders } => {
                let folders = "nor a folder above it\n".repeat(*folders);
                std::fs::write(&kept, format!("{NO_FILE_MARK}\n{folders}"))
            }
        };
        result.map_err(io("keep a copy as", &kept))
    }

    /// Removes it.
    pub fn remove(path: &Path) -> Result<(), ConnectError> {
        let kept = backup_path(path);
        std::fs::remove_file(&kept).map_err(io("remove", &kept))
    }
}

/// The path of the backup.
pub fn backup_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-ack-memory");
    path.with_file_name(name)
}
