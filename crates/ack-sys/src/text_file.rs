//! Text files that a person edits too: changes keep line endings and are atomic.

use std::io::Write;
use std::path::Path;

use similar::{ChangeTag, TextDiff};
use tempfile::NamedTempFile;

/// Gives a changed text the line endings of the original: each old line keeps its own, new lines
/// get the most common one.
pub fn with_line_ends_of(before: &str, after: &str) -> String {
    let ends = before.matches("\r\n").count();
    if ends == 0 {
        return after.to_owned();
    }
    let usual = if ends * 2 > before.matches('\n').count() { "\r\n" } else { "\n" };
    let before: Vec<&str> = before.split_inclusive('\n').collect();
    let plain: Vec<String> = before.iter().map(|line| line.replace("\r\n", "\n")).collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let difference = TextDiff::from_slices(&plain, &after);
    difference
        .iter_all_changes()
        .filter(|change| change.tag() != ChangeTag::Delete)
        .map(|change| match change.old_index().and_then(|at| before.get(at)) {
            Some(line) => (*line).to_owned(),
            None => change.value().replace('\n', usual),
        })
        .collect()
}

/// An existing file keeps its permissions, a link stays one, only the owner can read a new file.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().unwrap_or(Path::new("."));
    let mut file: NamedTempFile =
        tempfile::Builder::new().prefix(".ack-memory-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(&real) {
        if metadata.permissions().readonly() {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&real).map_err(|error| error.error)?;
    Ok(())
}
