//! Detects changes of a store's files, or of another file, from metadata alone: to open and inspect
//! a database is too much for a thousand scopes on every request.
//!
//! As git does for its index ("racy git", <https://git-scm.com/docs/racy-git>), a file with the
//! same identity, length and times is unchanged, if it had been written `SETTLED_AFTER` before the
//! last inspection: a second write soon after may leave the same time. Only local file systems
//! qualify; a network file system may answer from a stale cache.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file that was written more recently than this is inspected again.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// The metadata of a database and its log, or of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickState {
    main: FileMetadata,
    log: Option<FileMetadata>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct FileMetadata {
    pub device: u64,
    pub inode: u64,
    pub length: u64,
    /// Seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
    pub changed: (i64, i64),
}

impl QuickState {
    /// The current state, or `None` if metadata cannot tell. `path` is the database as configured;
    /// its symbolic links are resolved each time. `log` is the write-ahead log next to the real
    /// file. For another file, pass no log.
    pub fn read(path: &Path, log: Option<&Path>) -> Option<Self> {
        let main = FileMetadata::of(&fs::metadata(path).ok()?);
        let log = match log.map(fs::symlink_metadata) {
            Some(Ok(metadata)) => Some(FileMetadata::of(&metadata)),
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => return None,
            Some(Err(_)) | None => None,
        };
        Some(Self { main, log })
    }

    /// The state of a file without a log, from metadata that is known.
    pub fn of(metadata: &fs::Metadata) -> Self {
        Self { main: FileMetadata::of(metadata), log: None }
    }

    /// Whether an equal state later proves that nothing was written in between.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        self.log.iter().chain([&self.main]).all(|file| file.is_older_than(SETTLED_AFTER, now))
    }
}

impl FileMetadata {
    pub fn of(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether it was written more than `age` before `now`.
    pub fn is_older_than(&self, age: Duration, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let bound = now.saturating_sub(age);
        let seconds = i64::try_from(bound.as_secs()).unwrap_or(i64::MAX);
        self.changed.max(self.modified) < (seconds, i64::from(bound.subsec_nanos()))
    }
}
