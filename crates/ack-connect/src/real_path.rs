//! Where a file really is.
//!
//! In the user's own folders links are followed: people keep settings elsewhere and link to them. A
//! repository may come from anybody, so in a project a link is followed only to another of the
//! project's files.

use std::path::{Component, Path, PathBuf};

/// Why a path leads to no file that may be used.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkProblem {
    /// A link on it leads to something that does not exist.
    Dangling,
    /// A link on it leads here, which is not among the project's files.
    LeadsOut(PathBuf),
}

/// The path of the file that a path leads to. The file may be missing. It must be one of the
/// project's, if there is a project.
pub fn real_path(path: &Path, project: Option<&Path>) -> Result<PathBuf, LinkProblem> {
    let real = resolve(path)?;
    let Some(project) = project else {
        return Ok(real);
    };
    // What follows a folder that does not exist is not resolved. Git runs programs that its own
    // folder names.
    let may_not_be_there = |part: Component<'_>| {
        part == Component::ParentDir || part.as_os_str().eq_ignore_ascii_case(".git")
    };
    match real.strip_prefix(resolve(project)?) {
        Ok(below) if !below.components().any(may_not_be_there) => Ok(real),
        _ => Err(LinkProblem::LeadsOut(real)),
    }
}

/// A path with its links resolved. What does not exist stays as it is.
fn resolve(path: &Path) -> Result<PathBuf, LinkProblem> {
    // A client's variable may name a relative path.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A link that leads nowhere exists, too.
    let existing = path
        .ancestors()
        .find(|part| part.symlink_metadata().is_ok())
        .unwrap_or(path);
    let real = existing.canonicalize().map_err(|_| LinkProblem::Dangling)?;
    // Joined with nothing, a path would end with a separator and name a folder.
    match path.strip_prefix(existing) {
        Ok(missing) if !missing.as_os_str().is_empty() => Ok(real.join(missing)),
        _ => Ok(real),
    }
}
