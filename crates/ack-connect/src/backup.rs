//! The backup of a file before its first change: its text, or the fact that there was no file.

use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};

use super::ConnectError;
use super::file::{beside, io, keep, read, unusable};

/// The first line of the backup if there was no file. No client can read it as its settings.
const NO_FILE_MARK: &str = "there was no file";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backup {
    Nothing,
    /// There was no file, and this many of the folders above it were missing.
    NoFile {
        folders: usize,
    },
    Text(String),
}

impl Backup {
    pub fn of(path: &Path) -> Result<Self, ConnectError> {
        let kept = backup_path(path);
        // This program writes no link there, and one may lead anywhere.
        if kept.is_symlink() {
            let reason = format!("its backup, `{}`, is a link", kept.display());
            return Err(unusable(path, reason, "remove that link"));
        }
        Ok(match read(&kept)? {
            None => Self::Nothing,
            Some((text, _)) => match text.strip_prefix(NO_FILE_MARK) {
                Some(rest) => Self::NoFile {
                    folders: rest.lines().filter(|line| line.contains("folder")).count(),
                },
                None => Self::Text(text),
            },
        })
    }

    pub fn no_file(path: &Path) -> Self {
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        Self::NoFile { folders: missing.count() }
    }

    /// Writes it next to the file. A text gets the permissions of the file.
    pub fn write(&self, path: &Path, permissions: Option<Permissions>) -> Result<(), ConnectError> {
        let kept = backup_path(path);
        let (text, permissions) = match self {
            Self::Nothing => return Ok(()),
            Self::Text(text) => (text.clone(), permissions),
            Self::NoFile { folders } => {
                let folders = "nor a folder above it\n".repeat(*folders);
                (format!("{NO_FILE_MARK}\n{folders}"), None)
            }
        };
        keep(&kept, &text, permissions).map_err(io("keep a copy as", &kept))
    }

    pub fn remove(path: &Path) -> Result<(), ConnectError> {
        let kept = backup_path(path);
        fs::remove_file(&kept).map_err(io("remove", &kept))
    }
}

pub fn backup_path(path: &Path) -> PathBuf {
    beside(path, ".before-ack-memory")
}
