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
