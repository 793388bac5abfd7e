//! Whether the files that notes link to exist.

use std::path::{Component, Path, PathBuf};

/// Whether a link target exists. A relative target starts at the note's folder; one with a leading
/// `/` starts at the folder of all notes or at the top of the repository.
pub fn is_there(target: &str, note: &Path, folder: &Path, top: Option<&Path>) -> bool {
    let decoded = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
    let exists = |base: &Path, path: &str| {
        let path = normal(&base.join(path));
        path.exists()
    };
    match decoded.strip_prefix('/') {
        Some(rest) => exists(folder, rest) || top.is_some_and(|top| exists(top, rest)),
        None => {
            let beside = folder.join(note);
            exists(beside.parent().unwrap_or(folder), &decoded)
        }
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}
