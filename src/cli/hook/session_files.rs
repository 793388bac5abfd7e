//! Remembers the files a session has seen memories for, and the memories it has seen because of a
//! failed command: an empty marker file for each, in a private cache folder of this program.
//!
//! Hooks run as separate processes, several at once. A marker is created with `create_new`, so only
//! one of two calls for the same file shows the memories. The names are hashes and reveal nothing
//! about a session or a path.

use std::fs;
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ack_sys::files::{create_private, make_private};
use xxhash_rust::xxh3::xxh3_128;

const MAX_SESSIONS: usize = 64;
const MAX_FILES: usize = 1_000;
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub struct SessionFiles {
    folder: PathBuf,
}

impl SessionFiles {
    /// The files of a session, in this program's cache or runtime folder; `None` without a home
    /// folder.
    pub fn of(session: &str) -> Option<Self> {
        let folders = directories::ProjectDirs::from("", "", "ack-memory")?;
        let base = folders.runtime_dir().unwrap_or(folders.cache_dir());
        Some(Self::below(&base.join("hook-sessions"), session))
    }

    fn below(base: &Path, session: &str) -> Self {
        Self { folder: base.join(name(session)) }
    }

    /// Remembers a file. Returns whether it was new to the session.
    ///
    /// # Errors
    /// The folder cannot be created or written.
    pub fn claim(&self, file: &str) -> Result<bool> {
        if !self.folder.is_dir() {
            self.folder.parent().into_iter().for_each(remove_old);
            make_private(&self.folder)?;
        }
        if fs::read_dir(&self.folder)?.take(MAX_FILES).count() >= MAX_FILES {
            return Ok(false);
        }
        match create_private(&self.folder.join(name(file))) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Forgets the session's files, because its conversation no longer contains our text.
    pub fn forget(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes sessions that are too old, and the oldest ones if there are too many.
fn remove_old(base: &Path) {
    let sessions = fs::read_dir(base).into_iter().flatten().flatten();
    let mut sessions: Vec<(SystemTime, PathBuf)> = sessions
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(fs::Metadata::is_dir)?;
            Some((metadata.modified().ok()?, entry.path()))
        })
        .collect();
    sessions.sort_by(|a, b| b.cmp(a));
    let oldest = SystemTime::now().checked_sub(MAX_AGE);
    for (number, (written, session)) in sessions.iter().enumerate() {
        if number >= MAX_SESSIONS || oldest.is_some_and(|oldest| *written < oldest) {
            let _ = fs::remove_dir_all(session);
        }
    }
}

fn name(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_sessions_are_forgotten() {
        let base = tempfile::tempdir().unwrap();
        for number in 0..MAX_SESSIONS * 2 {
            SessionFiles::below(base.path(), &number.to_string()).claim("a").unwrap();
        }
        assert!(fs::read_dir(base.path()).unwrap().count() <= MAX_SESSIONS + 1);
    }
}
