//! The disk that a folder is on.

use std::path::Path;

/// How many bytes are free for this user where a folder is, or will be once it is created.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let state = nix::sys::statvfs::statvfs(existing).ok()?;
    widened(state.blocks_available()).checked_mul(widened(state.fragment_size()))
}

/// Widens a number from the system, whose type differs between systems.
fn widened(number: impl Into<u64>) -> u64 {
    number.into()
}

/// Whether a file or a folder is on a local file system: its metadata are never stale, and the
/// kernel sees every change.
#[cfg(target_os = "linux")]
pub fn is_local(path: &Path) -> bool {
    use nix::sys::statfs::{
        BTRFS_SUPER_MAGIC, EXT4_SUPER_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC,
        XFS_SUPER_MAGIC, statfs,
    };
    /// OpenZFS calls it `ZFS_SUPER_MAGIC`.
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

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
pub fn is_local(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_does_not_exist_yet_has_the_space_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let here = free_bytes(folder.path()).unwrap();
        let there = free_bytes(&folder.path().join("a/b")).unwrap();
        assert!(here > 0);
        assert!(here.abs_diff(there) < here / 2);
    }
}
