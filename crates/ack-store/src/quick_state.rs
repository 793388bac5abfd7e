//! Whether a store's files, or a folder's entries, are as they were, for the price of a look at their metadata.
//!
//! [`super::open::inspect`] opens the database, reads its header and asks for locks. A process that serves a thousand scopes
//! would do that a thousand times a request. A [`QuickState`] follows the rule by which git trusts its index ("racy git",
//! <https://git-scm.com/docs/racy-git>): a file whose identity, length and times are those of the last inspection was not
//! written since, if its change time already lay `SETTLED_AFTER` in the past at that inspection. A file that was written more
//! recently is inspected again, because a second write can leave the same time behind.
//!
//! Only file systems of this machine qualify: a network file system may answer from a cache that is seconds old.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file that was written more recently than this is inspected again.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// The state of a database and its log, or of a folder, by their metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickState {
    main: FileMetadata,
    log: Option<FileMetadata>,
}

/// What the metadata of a file say of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileMetadata {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl QuickState {
    /// The state now; `None` where it cannot be told by metadata. `path` is the database as it was named, whose symbolic links are
    /// followed each time; `log` is the write-ahead log, beside the file itself. A folder can be looked at in the same way.
    pub fn read(path: &Path, log: Option<&Path>) -> Option<Self> {
        let main = FileMetadata::of(&fs::metadata(path).ok()?)?;
        let log = match log.map(fs::symlink_metadata) {
            Some(Ok(metadata)) => Some(FileMetadata::of(&metadata)?),
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => return None,
            Some(Err(_)) | None => None,
        };
        Some(Self { main, log })
    }

    /// Whether a later glance that is equal proves that nothing was written in between.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let Some(bound) = now
            .checked_sub(SETTLED_AFTER)
            .and_then(|bound| bound.duration_since(SystemTime::UNIX_EPOCH).ok())
        else {
            return false;
        };
        let bound = i64::try_from(bound.as_secs()).unwrap_or(i64::MAX);
        let is_older = |file: &FileMetadata| file.changed.0 < bound && file.modified.0 < bound;
        is_older(&self.main) && self.log.as_ref().is_none_or(is_older)
    }
}

impl FileMetadata {
    #[cfg(unix)]
    fn of(metadata: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    #[cfg(not(unix))]
    fn of(_metadata: &fs::Metadata) -> Option<Self> {
        None
    }
}

/// Whether a file lies on a file system of this machine, whose metadata are never out of date.
#[cfg(target_os = "linux")]
pub fn is_local(path: &Path) -> bool {
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC, XFS_SUPER_MAGIC, statfs,
    };
    /// OpenZFS names it `ZFS_SUPER_MAGIC`.
    const ZFS: nix::libc::__fsword_t = 0x2fc1_2fc1;
    let local = [
        BTRFS_SUPER_MAGIC,
        EXT4_SUPER_MAGIC,
        F2FS_SUPER_MAGIC,
        OVERLAYFS_SUPER_MAGIC,
        TMPFS_MAGIC,
        XFS_SUPER_MAGIC,
    ];
    statfs(path).is_ok_and(|found| {
        let kind = found.filesystem_type();
        local.contains(&kind) || kind.0 == ZFS
    })
}

/// Elsewhere every request inspects the files.
#[cfg(not(target_os = "linux"))]
pub fn is_local(_path: &Path) -> bool {
    false
}
