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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_is_followed_inside_of_the_project_only() {
        let all = tempfile::tempdir().unwrap();
        let (project, outside) = (all.path().join("project"), all.path().join("outside"));
        for folder in [&project.join("inside"), &project.join(".git"), &outside] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for (to, name) in [
            ("inside", "good"),
            ("../outside", "out"),
            ("good/../../outside", "sideways"),
            ("out", "chain"),
            (".git", "git"),
            ("inside/nothing", "dangling"),
            ("dangling", "chain of nothing"),
            ("circle", "circle"),
        ] {
            symlink(to, project.join(name)).unwrap();
        }
        let at = |name: &str| real_path(&project.join(name), Some(&project));
        for name in ["good/file", "good/new/file", "file", "inside/file"] {
            assert!(at(name).is_ok(), "{name}");
        }
        for name in [
            "out",
            "out/file",
            "chain/a/file",
            "sideways/file",
            "git/file",
            ".git/file",
            "nothing/../../outside/file",
        ] {
            let found = at(name);
            let leads_out = matches!(found, Err(LinkProblem::LeadsOut(_)));
            assert!(leads_out, "{name}: {found:?}");
        }
        for name in [
            "dangling",
            "dangling/file",
            "chain of nothing",
            "circle/file",
        ] {
            assert_eq!(at(name), Err(LinkProblem::Dangling), "{name}");
        }
        // Without a project, links are followed to anywhere.
        assert!(real_path(&project.join("chain/a/file"), None).is_ok());
    }
}
