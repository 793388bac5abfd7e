//! Reads commits, trees and references of a repository, within a time limit.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use gix_index::hash::{Kind, ObjectId};
use gix_object::{CommitRef, Find, TreeRefIter};

use crate::repository::Repository;
use ack_sys::files;

/// The largest `packed-refs` that is read: about a hundred thousand references.
const MAX_REFS_BYTES: u64 = 8 << 20;
/// The largest allocation for one object.
const MAX_OBJECT_BYTES: usize = 8 << 20;
/// How many symbolic references are followed.
const MAX_SYMBOLIC_REFS: usize = 5;

/// Why something of the history is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// There was no time left.
    OutOfTime,
    /// The clone is shallow, and the commits where the branch began are missing.
    Shallow,
    /// Objects or references cannot be read: they are missing, damaged, or of a newer format.
    Unreadable,
}

/// A commit.
#[derive(Debug)]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents.
    pub parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970.
    pub time: i64,
}

/// An entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeItem {
    /// It is a folder.
    pub is_folder: bool,
    /// Its object.
    pub id: ObjectId,
}

/// The entries of a tree by name, without submodules.
pub type TreeItems = BTreeMap<String, TreeItem>;

/// The objects of a repository.
pub struct Objects<'a> {
    repository: &'a Repository,
    handle: gix_odb::Handle,
    kind: Kind,
    buffer: Vec<u8>,
    end: Instant,
}

impl<'a> Objects<'a> {
    /// Opens the objects of a repository. Nothing is read after `end`.
    ///
    /// # Errors
    /// [`Unknown::Unreadable`].
    pub fn open(repository: &'a Repository, end: Instant) -> Result<Self, Unknown> {
        let folder = repository.common_dir.join("objects");
        if has_special_files(&folder) {
            return Err(Unknown::Unreadable);
        }
        let kind = if repository.sha256 {
            Kind::Sha256
        } else {
            Kind::Sha1
        };
        let options = gix_odb::store::init::Options {
            alloc_limit_bytes: Some(MAX_OBJECT_BYTES),
            ..Default::default()
        };
        let handle =
            gix_odb::at_opts(folder, kind, None, options).map_err(|_| Unknown::Unreadable)?;
        Ok(Self {
            repository,
            handle,
            kind,
            buffer: Vec::new(),
            end,
        })
    }

    /// Reads a commit.
    ///
    /// # Errors
    /// It is missing, damaged or no commit, or the time is up.
    pub fn commit(&mut self, id: ObjectId) -> Result<Commit, Unknown> {
        let kind = self.kind;
        let data = self.find(id)?;
        let commit = CommitRef::from_bytes(data, kind).map_err(|_| Unknown::Unreadable)?;
        Ok(Commit {
            tree: commit.tree(),
            parents: commit.parents().collect(),
            time: commit.time().map_or(0, |time| time.seconds),
        })
    }

    /// Reads a tree. A name that is not UTF-8 is left out.
    ///
    /// # Errors
    /// It is missing or damaged, or the time is up.
    pub fn tree(&mut self, id: ObjectId) -> Result<TreeItems, Unknown> {
        let kind = self.kind;
        let data = self.find(id)?;
        let mut items = TreeItems::new();
        for entry in TreeRefIter::from_bytes(data, kind) {
            let entry = entry.map_err(|_| Unknown::Unreadable)?;
            let Ok(name) = str::from_utf8(entry.filename) else {
                continue;
            };
            if !entry.mode.is_commit() {
                let item = TreeItem {
                    is_folder: entry.mode.is_tree(),
                    id: entry.oid.to_owned(),
                };
                items.insert(name.to_owned(), item);
            }
        }
        Ok(items)
    }

    /// Whether the clone lacks older commits.
    pub fn is_shallow(&self) -> bool {
        self.repository.common_dir.join("shallow").exists()
    }

    fn find(&mut self, id: ObjectId) -> Result<&[u8], Unknown> {
        if Instant::now() >= self.end {
            return Err(Unknown::OutOfTime);
        }
        let name = id.to_string();
        let (folder, file) = name.split_at(2);
        let objects = self.repository.common_dir.join("objects");
        // The library opens a loose object without checking what it is.
        if files::is_special(&objects.join(folder).join(file)) {
            return Err(Unknown::Unreadable);
        }
        match self.handle.try_find(&id, &mut self.buffer) {
            Ok(Some(data)) => Ok(data.data),
            _ => Err(Unknown::Unreadable),
        }
    }

    /// The commit that is checked out; `None` on a branch without commits.
    ///
    /// # Errors
    /// The reference cannot be read.
    pub fn head(&self) -> Result<Option<ObjectId>, Unknown> {
        let text = files::read_text(&self.repository.git_dir.join("HEAD"), MAX_REFS_BYTES)
            .map_err(|_| Unknown::Unreadable)?;
        match text.trim().strip_prefix("ref:") {
            Some(name) => match self.reference(name.trim()) {
                Some(id) => Ok(Some(id)),
                None if self.repository.common_dir.join("reftable").exists() => {
                    Err(Unknown::Unreadable)
                }
                None => Ok(None),
            },
            None => ObjectId::from_hex(text.trim().as_bytes())
                .map(Some)
                .map_err(|_| Unknown::Unreadable),
        }
    }

    /// What a reference points to.
    pub fn reference(&self, name: &str) -> Option<ObjectId> {
        let mut name = name.to_owned();
        for _ in 0..MAX_SYMBOLIC_REFS {
            if !is_safe(&name) {
                return None;
            }
            let loose = self.repository.common_dir.join(&name);
            let Ok(text) = files::read_text(&loose, MAX_REFS_BYTES) else {
                return self.packed_reference(&name);
            };
            match text.trim().strip_prefix("ref:") {
                Some(target) => name = target.trim().to_owned(),
                None => return ObjectId::from_hex(text.trim().as_bytes()).ok(),
            }
        }
        None
    }

    fn packed_reference(&self, name: &str) -> Option<ObjectId> {
        let file = self.repository.common_dir.join("packed-refs");
        let text = files::read(&file, MAX_REFS_BYTES).ok()?;
        let mut lines = text.split(|byte| *byte == b'\n');
        let line = lines.find_map(|line| {
            let (id, rest) = line.split_at_checked(self.kind.len_in_hex())?;
            (rest.strip_prefix(b" ")?.trim_ascii_end() == name.as_bytes()).then_some(id)
        })?;
        ObjectId::from_hex(line).ok()
    }
}

/// Whether a reference's name stays in git's folder.
fn is_safe(name: &str) -> bool {
    name.starts_with("refs/")
        && name
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Whether a file that the library opens when it begins is a pipe or the like, which would block
/// it.
fn has_special_files(objects: &Path) -> bool {
    let alternates = objects.join("info/alternates");
    let packs = std::fs::read_dir(objects.join("pack"));
    let packs = packs.into_iter().flatten().flatten();
    files::is_special(&alternates)
        || packs
            .into_iter()
            .any(|entry| files::is_special(&entry.path()))
}
