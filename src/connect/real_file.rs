//! Where a file really is, and how it is read and written there.
//!
//! In the user's own folders links are followed: people keep settings elsewhere and link to them. A
//! repository may come from anybody, so in a project a link is followed only to another of the
//! project's files.
//!
//! The path is resolved once. Afterwards each folder on it is opened from the one above it without
//! following links, and files are created, replaced and removed in the open folder. A link that
//! somebody puts in the way meanwhile is an error.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use ack_sys::files;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

/// Why a path leads to no file that may be used.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkProblem {
    /// A link on it leads to something that does not exist.
    Dangling,
    /// A link on it leads here, which is not among the project's files.
    LeadsOut(PathBuf),
}

/// A file, which may be missing, at a path without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealFile {
    /// A folder that exists.
    start: PathBuf,
    /// The folders from there to the file.
    folders: Vec<OsString>,
    name: OsString,
}

impl RealFile {
    /// The file that a path leads to. It must be one of the project's, if there is a project.
    pub fn at(path: &Path, project: Option<&Path>) -> Result<Self, LinkProblem> {
        Self::new(&resolve(path)?, project)
    }

    /// The same, but the last part of the path is not followed if it is a link.
    pub fn itself(path: &Path, project: Option<&Path>) -> Result<Self, LinkProblem> {
        let folder = resolve(path.parent().unwrap_or(path))?;
        let name = path.file_name().unwrap_or_default();
        Self::new(&folder.join(name), project)
    }

    fn new(real: &Path, project: Option<&Path>) -> Result<Self, LinkProblem> {
        let leads_out = || LinkProblem::LeadsOut(real.to_owned());
        let start = match project {
            Some(project) => resolve(project)?,
            None => {
                let mut folders = real.ancestors().skip(1);
                folders
                    .find(|folder| folder.is_dir())
                    .ok_or_else(leads_out)?
                    .to_owned()
            }
        };
        let below = real.strip_prefix(&start).map_err(|_| leads_out())?;
        // What follows a folder that does not exist is not resolved.
        if below
            .components()
            .any(|part| part == std::path::Component::ParentDir)
        {
            return Err(leads_out());
        }
        // Git runs programs that its own folder names.
        let is_git = |name: &OsString| name.eq_ignore_ascii_case(".git");
        let mut folders: Vec<OsString> = below.iter().map(OsString::from).collect();
        if project.is_some() && folders.iter().any(is_git) {
            return Err(leads_out());
        }
        let name = folders.pop().ok_or_else(leads_out)?;
        Ok(Self {
            start,
            folders,
            name,
        })
    }

    /// Opens its folder; creates missing ones on request.
    fn folder(&self, create: bool) -> io::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut folder = open(&self.start, flags, Mode::empty())?;
        for name in &self.folders {
            let name = name.as_os_str();
            if create {
                match mkdirat(&folder, name, Mode::from_bits_truncate(0o777)) {
                    Ok(()) | Err(Errno::EEXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            folder = openat(&folder, name, flags | OFlag::O_NOFOLLOW, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Opens it for reading; `None` if it is missing.
    ///
    /// # Errors
    /// The error from the system, or that it is not a regular file.
    pub fn open(&self) -> io::Result<Option<File>> {
        let opened = self
            .folder(false)
            .and_then(|folder| files::open_in(&folder, &self.name));
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a new content next to it, and creates missing folders. Without permissions, only the
    /// owner can read it.
    pub fn draft(&self, text: &str, permissions: Option<Permissions>) -> io::Result<Draft> {
        let folder = self.folder(true)?;
        let number = getrandom::u64().map_err(|_| io::Error::other("no random numbers"))?;
        let temporary = OsString::from(format!(".ack-memory-{number:016x}"));
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(
            &folder,
            temporary.as_os_str(),
            flags,
            Mode::S_IRUSR | Mode::S_IWUSR,
        )?;
        let draft = Draft {
            folder,
            temporary,
            name: self.name.clone(),
            is_in_place: false,
        };
        let mut file = File::from(file);
        file.write_all(text.as_bytes())?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        Ok(draft)
    }

    /// Removes the file, or the link in its place.
    pub fn remove(&self) -> io::Result<()> {
        let folder = self.folder(false)?;
        Ok(unlinkat(
            &folder,
            self.name.as_os_str(),
            UnlinkatFlags::NoRemoveDir,
        )?)
    }

    /// Removes an empty folder of this name.
    pub fn remove_folder(&self) -> io::Result<()> {
        let folder = self.folder(false)?;
        Ok(unlinkat(
            &folder,
            self.name.as_os_str(),
            UnlinkatFlags::RemoveDir,
        )?)
    }
}

/// A new content under a temporary name. It is removed unless it is put in place.
#[derive(Debug)]
pub struct Draft {
    folder: OwnedFd,
    temporary: OsString,
    name: OsString,
    is_in_place: bool,
}

impl Draft {
    /// Replaces the file, or the link in its place.
    pub fn put_in_place(mut self) -> io::Result<()> {
        let (from, to) = (self.temporary.as_os_str(), self.name.as_os_str());
        renameat(&self.folder, from, &self.folder, to)?;
        self.is_in_place = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_in_place {
            let name = self.temporary.as_os_str();
            let _ = unlinkat(&self.folder, name, UnlinkatFlags::NoRemoveDir);
        }
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
    let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
    // A path that ends with a separator would name a folder.
    let is_complete = missing.as_os_str().is_empty();
    Ok(if is_complete {
        real
    } else {
        real.join(missing)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A project with a folder, next to a folder of somebody else.
    fn project() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let all = tempfile::tempdir().unwrap();
        let (project, outside) = (all.path().join("project"), all.path().join("outside"));
        std::fs::create_dir_all(project.join("inside")).unwrap();
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        (all, project, outside)
    }

    #[test]
    fn a_link_is_followed_inside_of_the_project_only() {
        let (_all, project, outside) = project();
        let link = |to: &Path, name: &str| symlink(to, project.join(name)).unwrap();
        link(Path::new("inside"), "good");
        link(&outside, "out");
        link(Path::new("good/../../outside"), "sideways");
        link(Path::new("out"), "chain");
        link(Path::new(".git"), "git");
        link(Path::new("inside/nothing"), "dangling");
        link(Path::new("dangling"), "chain of nothing");
        link(Path::new("circle"), "circle");
        let at = |name: &str| RealFile::at(&project.join(name), Some(&project));
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
            assert!(
                matches!(found, Err(LinkProblem::LeadsOut(_))),
                "{name}: {found:?}"
            );
        }
        for name in [
            "dangling",
            "dangling/file",
            "chain of nothing",
            "circle/file",
        ] {
            assert_eq!(at(name), Err(LinkProblem::Dangling), "{name}");
        }
        // A backup is itself, wherever a link of its name leads.
        assert!(RealFile::itself(&project.join("out"), Some(&project)).is_ok());
        assert!(RealFile::itself(&project.join("out/file"), Some(&project)).is_err());
        // Without a project, links are followed to anywhere.
        assert!(RealFile::at(&project.join("chain/a/file"), None).is_ok());
    }

    #[test]
    fn a_link_that_appears_after_the_check_is_not_followed() {
        for name in ["inside/file", "inside/new/file"] {
            let (_all, project, outside) = project();
            std::fs::write(outside.join("file"), "theirs").unwrap();
            let file = RealFile::at(&project.join(name), Some(&project)).unwrap();
            std::fs::remove_dir(project.join("inside")).unwrap();
            symlink(&outside, project.join("inside")).unwrap();
            assert!(file.open().is_err(), "{name}");
            assert!(file.draft("ours", None).is_err(), "{name}");
            assert!(
                file.remove().is_err() && file.remove_folder().is_err(),
                "{name}"
            );
            let left = std::fs::read_dir(&outside).unwrap().count();
            let text = std::fs::read_to_string(outside.join("file")).unwrap();
            assert_eq!((left, text.as_str()), (1, "theirs"), "{name}");
        }
        // In place of the file itself: the link is replaced, not what it leads to.
        let (_all, project, outside) = project();
        std::fs::write(outside.join("file"), "theirs").unwrap();
        let file = RealFile::at(&project.join("file"), Some(&project)).unwrap();
        let draft = file.draft("ours", None).unwrap();
        symlink(outside.join("file"), project.join("file")).unwrap();
        assert!(file.open().is_err());
        draft.put_in_place().unwrap();
        assert!(!project.join("file").is_symlink());
        assert_eq!(
            std::fs::read_to_string(outside.join("file")).unwrap(),
            "theirs"
        );
    }

    #[test]
    fn a_draft_that_is_not_used_leaves_nothing() {
        let (_all, project, _) = project();
        let file = RealFile::at(&project.join("inside/file"), Some(&project)).unwrap();
        drop(file.draft("ours", None).unwrap());
        assert_eq!(
            std::fs::read_dir(project.join("inside")).unwrap().count(),
            0
        );
        file.draft("ours", None).unwrap().put_in_place().unwrap();
        assert_eq!(
            std::fs::read_to_string(project.join("inside/file")).unwrap(),
            "ours"
        );
    }
}
