//! Which files of a folder are committed on a reference: those whose content has the object name in
//! the reference's tree at the same path. Line endings do not count, because git may change them at
//! checkout.
//!
//! A file that is unchanged since the merge base of `HEAD` and the reference was not changed here:
//! the reference moved on.

use std::path::Path;

use gix_index::hash::{Kind, ObjectId};
use gix_object::bstr::ByteSlice as _;
use rustc_hash::FxHashMap as HashMap;

use crate::history;
use crate::objects::{Objects, Unknown};
use crate::references::{self, ResolveError};
use crate::repository::Repository;

pub use gix_index::hash::ObjectId as ObjectName;

const MAX_FILES: usize = 100_000;
pub(crate) const MAX_DEPTH: usize = 32;

/// Files by their paths from the folder, with `/`, and their object names.
pub type ObjectsByPath = HashMap<String, ObjectId>;

/// The inputs of a comparison: the result is the same as long as these are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tips {
    pub reference: String,
    /// What it points to, before tags are followed.
    pub target: ObjectId,
    /// The commit that is checked out.
    pub head: Option<ObjectId>,
}

impl Tips {
    pub fn read(repository: &Repository, name: &str) -> Result<Self, ResolveError> {
        let (reference, target) = references::resolve(repository, name)?;
        Ok(Self {
            reference,
            target,
            // Without it, no file is known to be merely older.
            head: references::head(repository).unwrap_or_default(),
        })
    }
}

#[derive(Debug, Clone, Default)]
pub struct CommittedFolder {
    pub files: ObjectsByPath,
    /// The files at the merge base of `HEAD` and the reference.
    pub at_merge_base: ObjectsByPath,
    pub has_folder: bool,
    /// When the reference's commit was made, in seconds since 1970.
    pub time: i64,
}

impl CommittedFolder {
    /// Reads a folder's files at the given tips. `folder` is its path from the top of the working
    /// tree, with `/`, and empty for the top. `wanted` returns whether a path in the folder counts;
    /// its second argument is whether the path is a folder.
    pub fn read(
        objects: &mut Objects<'_>,
        tips: &Tips,
        folder: &str,
        wanted: &dyn Fn(&str, bool) -> bool,
    ) -> Result<Self, Unknown> {
        let id = objects.peel(tips.target)?;
        let commit = objects.commit(id)?;
        let files = files_below(objects, commit.tree, folder, wanted)?;
        let has_folder = files.is_some();
        let files = files.unwrap_or_default();
        // Unless it is known, no file is known to be merely older.
        let head = tips.head.filter(|head| *head != id);
        let base = head.and_then(|head| history::merge_base(objects, head, id).ok()?);
        let base = base.filter(|base| *base != id);
        let tree = base.and_then(|base| Some(objects.commit(base).ok()?.tree));
        let at_merge_base =
            tree.and_then(|tree| files_below(objects, tree, folder, wanted).ok()?);
        Ok(Self {
            files,
            at_merge_base: at_merge_base.unwrap_or_default(),
            has_folder,
            time: commit.time,
        })
    }
}

/// The files below a folder of a tree, without links; `None` if there is no such folder.
fn files_below(
    objects: &mut Objects<'_>,
    tree: ObjectId,
    folder: &str,
    wanted: &dyn Fn(&str, bool) -> bool,
) -> Result<Option<ObjectsByPath>, Unknown> {
    let mut top = tree;
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        match objects.tree(top)?.get(part) {
            Some(item) if item.is_folder => top = item.id,
            _ => return Ok(None),
        }
    }
    let mut files = ObjectsByPath::default();
    let mut folders = vec![(String::new(), top, 1)];
    while let Some((parent, id, depth)) = folders.pop() {
        for (name, item) in objects.tree(id)? {
            let path = format!("{parent}{name}");
            if item.is_link || !wanted(&path, item.is_folder) {
                continue;
            }
            if !item.is_folder {
                if files.len() >= MAX_FILES {
                    return Ok(Some(files));
                }
                files.insert(path, item.id);
            } else if depth < MAX_DEPTH {
                folders.push((format!("{path}/"), item.id, depth + 1));
            }
        }
    }
    Ok(Some(files))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectNames {
    pub exact: ObjectId,
    /// Of the content with Unix line endings, if it has others.
    pub plain: Option<ObjectId>,
}

impl ObjectNames {
    /// The object names of some content; `None` if the library rejects it.
    pub fn compute(kind: Kind, content: &[u8]) -> Option<Self> {
        let name =
            |content: &[u8]| gix_object::compute_hash(kind, gix_object::Kind::Blob, content).ok();
        let plain = content.contains_str("\r\n").then(|| content.replace("\r\n", "\n"));
        Some(Self { exact: name(content)?, plain: plain.as_deref().and_then(name) })
    }

    pub fn include(&self, committed: Option<&ObjectId>) -> bool {
        committed.is_some_and(|id| *id == self.exact || Some(*id) == self.plain)
    }
}

/// Whether a folder is in a repository without a working tree.
pub fn is_bare(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let real = there.and_then(|there| there.canonicalize().ok());
    real.and_then(|real| Repository::discover(&real, None))
        .is_some_and(|repository| repository.work_tree == repository.git_dir)
}

/// The repository of a folder and its path there. The folder may be missing: another branch may be
/// checked out.
pub fn locate(folder: &Path) -> Option<(Repository, String)> {
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let real = existing.canonicalize().ok()?;
    let rest = folder.strip_prefix(existing).ok()?;
    let repository = Repository::discover(&real, None)?;
    if repository.work_tree == repository.git_dir {
        return None;
    }
    let inside = real.strip_prefix(&repository.work_tree).ok()?.join(rest);
    let parts = inside.components().map(|part| match part {
        std::path::Component::Normal(name) => name.to_str(),
        _ => None,
    });
    Some((repository, parts.collect::<Option<Vec<&str>>>()?.join("/")))
}
