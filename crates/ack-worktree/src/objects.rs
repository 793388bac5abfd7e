//! Reads commits, trees and files of a repository, within a time limit.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use gix_index::hash::ObjectId;
use gix_object::{CommitRef, Data, Find, TagRefIter, TreeRefIter};
use gix_odb::Header as _;

use crate::references;
use crate::repository::Repository;
use ack_sys::files;

pub const MAX_OBJECT_BYTES: usize = 8 << 20;
/// Read whatever the time, so that a slow machine knows a short history.
const MIN_READS: usize = 64;
const MAX_NESTED_TAGS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    OutOfTime,
    /// The clone is shallow, and the commits where the branch began are missing.
    Shallow,
    /// Objects or references cannot be read: they are missing, damaged, or of a newer format.
    Unreadable,
}

#[derive(Debug)]
pub struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970.
    pub time: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeItem {
    pub is_folder: bool,
    pub is_link: bool,
    is_submodule: bool,
    pub id: ObjectId,
}

/// The entries of a tree by name, without submodules.
pub type TreeItems = BTreeMap<String, TreeItem>;

pub struct Objects<'a> {
    repository: &'a Repository,
    handle: gix_odb::Handle,
    buffer: Vec<u8>,
    end: Instant,
    reads: usize,
}

impl<'a> Objects<'a> {
    /// Opens the objects of a repository. After `end`, no more than a few are read.
    pub fn open(repository: &'a Repository, end: Instant) -> Result<Self, Unknown> {
        let folder = repository.common_dir.join("objects");
        if has_special_files(&folder) {
            return Err(Unknown::Unreadable);
        }
        let options = gix_odb::store::init::Options {
            alloc_limit_bytes: Some(MAX_OBJECT_BYTES),
            ..Default::default()
        };
        let handle = gix_odb::at_opts(folder, repository.hash, None, options)
            .map_err(|_| Unknown::Unreadable)?;
        Ok(Self { repository, handle, buffer: Vec::new(), end, reads: 0 })
    }

    pub fn commit(&mut self, id: ObjectId) -> Result<Commit, Unknown> {
        let kind = self.repository.hash;
        let data = self.find(id)?.data;
        let commit = CommitRef::from_bytes(data, kind).map_err(|_| Unknown::Unreadable)?;
        Ok(Commit {
            tree: commit.tree(),
            parents: commit.parents().collect(),
            time: commit.time().map_or(0, |time| time.seconds),
        })
    }

    /// Reads a tree. Names that are not UTF-8 are left out. One with two entries for a path is
    /// damaged: programs disagree about which of them counts.
    pub fn tree(&mut self, id: ObjectId) -> Result<TreeItems, Unknown> {
        let kind = self.repository.hash;
        let data = self.find(id)?.data;
        let mut items = TreeItems::new();
        for entry in TreeRefIter::from_bytes(data, kind) {
            let entry = entry.map_err(|_| Unknown::Unreadable)?;
            let Ok(name) = str::from_utf8(entry.filename) else { continue };
            let item = TreeItem {
                is_folder: entry.mode.is_tree(),
                is_link: entry.mode.is_link(),
                is_submodule: entry.mode.is_commit(),
                id: entry.oid.to_owned(),
            };
            let is_name = !matches!(name, "" | "." | "..") && !name.contains('/');
            if !is_name || items.insert(name.to_owned(), item).is_some() {
                return Err(Unknown::Unreadable);
            }
        }
        items.retain(|_, item| !item.is_submodule);
        Ok(items)
    }

    /// Whether the clone lacks older commits.
    pub fn is_shallow(&self) -> bool {
        self.repository.common_dir.join("shallow").exists()
    }

    /// Whether a loose object is a pipe or the like: the library opens it without checking.
    fn is_special(&self, id: ObjectId) -> bool {
        let name = id.to_string();
        let (folder, file) = name.split_at(2);
        let objects = self.repository.common_dir.join("objects");
        files::is_special(&objects.join(folder).join(file))
    }

    fn find(&mut self, id: ObjectId) -> Result<Data<'_>, Unknown> {
        if self.reads >= MIN_READS && Instant::now() >= self.end {
            return Err(Unknown::OutOfTime);
        }
        self.reads += 1;
        if self.is_special(id) {
            return Err(Unknown::Unreadable);
        }
        // The library returns what is stored under a name. Only the hash shows that it is the
        // content that was committed.
        match self.handle.try_find(&id, &mut self.buffer) {
            Ok(Some(data)) if data.verify_checksum(&id).is_ok() => Ok(data),
            _ => Err(Unknown::Unreadable),
        }
    }

    pub fn head(&self) -> Result<Option<ObjectId>, Unknown> {
        references::head(self.repository)
    }

    pub fn reference(&self, name: &str) -> Option<ObjectId> {
        references::read(self.repository, name)
    }

    /// The commit of an object: the object itself, or what a tag points to.
    pub fn peel(&mut self, mut id: ObjectId) -> Result<ObjectId, Unknown> {
        let hash = self.repository.hash;
        for _ in 0..MAX_NESTED_TAGS {
            let object = self.find(id)?;
            match object.kind {
                gix_object::Kind::Commit => return Ok(id),
                gix_object::Kind::Tag => {
                    id = TagRefIter::from_bytes(object.data, hash)
                        .target_id()
                        .map_err(|_| Unknown::Unreadable)?;
                }
                _ => return Err(Unknown::Unreadable),
            }
        }
        Err(Unknown::Unreadable)
    }

    pub fn is_too_large(&self, id: ObjectId) -> bool {
        !self.is_special(id)
            && matches!(
                self.handle.try_header(&id),
                Ok(Some(header)) if header.size() > MAX_OBJECT_BYTES as u64
            )
    }

    pub fn blob(&mut self, id: ObjectId) -> Result<&[u8], Unknown> {
        let object = self.find(id)?;
        match object.kind {
            gix_object::Kind::Blob => Ok(object.data),
            _ => Err(Unknown::Unreadable),
        }
    }
}

/// Whether a file that the library opens on start is a pipe or the like, which would block it.
fn has_special_files(objects: &Path) -> bool {
    let mut packs = std::fs::read_dir(objects.join("pack")).into_iter().flatten().flatten();
    files::is_special(&objects.join("info/alternates"))
        || packs.any(|entry| files::is_special(&entry.path()))
}
