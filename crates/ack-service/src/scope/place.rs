//! A project's folder, and what is known about it.
//!
//! Clients name a project by a folder inside it, by a file, or by a folder that has since been
//! deleted. The top of a working tree, which any version control system marks, is the project's
//! folder. Without one, any folder above may be the project's: it is, if a scope knows its name
//! ([`super::detect`]).

use std::path::{Path, PathBuf};

use ack_api::memory::fold_name;
use ack_api::text;
use ack_sys::files::real_path;
use ack_worktree::repository::Repository;

/// The folders that mark the top of a working tree, besides git's: Jujutsu, Mercurial, Sapling.
const MARKERS: [&str; 3] = [".jj", ".hg", ".sl"];

/// Names of folders that hold projects, or parts of one. They say nothing about the project.
const GENERAL_NAMES: &str = "\
    app apps code dev docs git github lib packages projects repos src srv test tests tmp work \
    workspace";

#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The real path of the folder; empty if there is none.
    pub folder: PathBuf,
    pub repository: Option<Repository>,
    /// The project's folder, as far as it is known: the top of the working tree, or the folder.
    pub top: PathBuf,
    /// Whether `top` is the top of a working tree.
    pub is_marked: bool,
    /// The name of the main repository, or of `top`.
    pub name: Option<String>,
}

impl Place {
    /// Describes a folder, or the folder of a file. The git settings in `home` affect what its
    /// remotes mean. A working tree in the home folder itself holds settings, not a project.
    pub fn of(folder: &Path, home: Option<&Path>) -> Self {
        let folder = match folder.parent() {
            Some(parent) if folder.is_file() => real_path(parent),
            _ => real_path(folder),
        };
        let home = home.map(real_path);
        let present = folder.ancestors().find(|above| above.is_dir());
        let is_home = |top: &Path| home.as_deref() == Some(top) && folder != top;
        let repository = present
            .filter(|present| !present.as_os_str().is_empty())
            .and_then(|present| Repository::discover(present, home.as_deref()))
            .filter(|repository| !is_home(&repository.work_tree));
        let marked = || {
            let mut above = present.into_iter().flat_map(Path::ancestors);
            above.find(|above| !is_home(above) && MARKERS.iter().any(|it| above.join(it).is_dir()))
        };
        let top = match &repository {
            Some(repository) => Some(repository.work_tree.as_path()),
            None => marked(),
        };
        let is_marked = top.is_some();
        let top = top.unwrap_or(&folder).to_owned();
        let name = repository.as_ref().and_then(Repository::name);
        Self { name: name.or_else(|| name_of(&top)), top, is_marked, repository, folder }
    }

    /// The places that this one may also be, nearest first: those of the folders above it, below
    /// the home folder. None if the top of its working tree is known.
    pub fn above<'a>(&'a self, home: Option<&Path>) -> impl Iterator<Item = Self> + 'a {
        let home = home.map(real_path).unwrap_or_default();
        let above = self.folder.ancestors().skip(1);
        above
            .take_while(move |folder| !self.is_marked && !home.starts_with(folder))
            .filter(|folder| folder.is_dir())
            .filter_map(|folder| {
                Some(Self { name: Some(name_of(folder)?), top: folder.to_owned(), ..self.clone() })
            })
            .filter(|above| !above.is_general())
    }

    /// Whether its name says nothing about the project inside it.
    pub fn is_general(&self) -> bool {
        text::has_word(GENERAL_NAMES, &self.name.as_deref().map(fold_name).unwrap_or_default())
    }

    pub fn names(&self) -> Vec<String> {
        let remote = self.remotes().first().map(|remote| last_part(remote));
        let mut names: Vec<String> =
            self.name.as_deref().into_iter().chain(remote).map(fold_name).collect();
        names.retain(|name| !name.is_empty());
        names.dedup();
        names
    }

    pub fn remotes(&self) -> &[String] {
        self.repository.as_ref().map_or(&[], |repository| &repository.remotes)
    }

    /// The folder, and in a linked worktree also the matching folder of the main repository.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.folder.clone()];
        if let Some(repository) = &self.repository
            && let Ok(inside) = self.folder.strip_prefix(&repository.work_tree)
            && repository.main != repository.work_tree
        {
            folders.push(repository.main.join(inside));
        }
        folders
    }

    /// Whether a folder is the project's own or holds many, so that its names are the place's.
    pub fn is_named_after(&self, folder: &Path) -> bool {
        match &self.repository {
            Some(repository) => {
                !is_below(folder, &repository.work_tree) && !is_below(folder, &repository.main)
            }
            None if self.is_marked => !is_below(folder, &self.top),
            None => folder == self.top,
        }
    }

    /// The first of these remotes, as a manifest spells them, that belongs to the repository.
    pub fn remote<'a>(&self, remote: &str, spelled: &'a [String]) -> Option<&'a String> {
        let repository = self.repository.as_ref()?;
        spelled.iter().find(|spelled| {
            repository.rewrites.spellings(spelled).iter().any(|known| known == remote)
        })
    }
}

pub fn is_below(folder: &Path, top: &Path) -> bool {
    folder != top && folder.starts_with(top)
}

pub fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn name_of(folder: &Path) -> Option<String> {
    Some(folder.file_name()?.to_string_lossy().into_owned())
}
