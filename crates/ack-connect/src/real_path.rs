//! Where a file really is. Links are followed: people keep settings elsewhere and link to them.

use std::path::{Path, PathBuf};

/// The path of the file that a path leads to. The file may be missing. `None` if a link on the path
/// leads to something that does not exist.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    // A client's variable may name a relative path.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A link that leads nowhere exists, too.
    let existing = path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(path);
    let real = existing.canonicalize().ok()?;
    // Joined with nothing, a path would end with a separator and name a folder.
    match path.strip_prefix(existing) {
        Ok(missing) if !missing.as_os_str().is_empty() => Some(real.join(missing)),
        _ => Some(real),
    }
}
