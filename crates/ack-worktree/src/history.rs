//! What differs between commits: the files that the commits of a branch changed, and staged files.
//!
//! The branch is compared with the point where it began: the newest commit that it shares with the
//! default branch, remote or local. A renamed file is listed under both names.

use std::collections::{BTreeSet, BinaryHeap};

use gix_index::hash::ObjectId;
use gix_index::{Entry, State, extension};
use rustc_hash::FxHashMap as HashMap;

use crate::committed::MAX_DEPTH;
use crate::objects::{Commit, Objects, TreeItem, TreeItems, Unknown};

const MAX_COMMITS: usize = 5_000;
/// How many files are collected. A branch that changed more has no clear subject.
const MAX_FILES: usize = 1_000;
/// Names of default branches, in case the remote names none.
pub const DEFAULT_BRANCHES: [&str; 4] = ["main", "master", "develop", "trunk"];

pub fn branch_files(
    objects: &mut Objects<'_>,
    head: ObjectId,
    branch: Option<&str>,
) -> Result<Vec<String>, Unknown> {
    let mut began: Option<ObjectId> = None;
    for base in bases(objects, branch) {
        if base == head {
            return Ok(Vec::new());
        }
        let Some(found) = merge_base(objects, head, base)? else { continue };
        began = match began {
            // The branch began at the later one.
            Some(known) if merge_base(objects, known, found)? == Some(found) => Some(known),
            _ => Some(found),
        };
    }
    let Some(began) = began.filter(|began| *began != head) else { return Ok(Vec::new()) };
    let (old, new) = (objects.commit(began)?.tree, objects.commit(head)?.tree);
    let mut found = Vec::new();
    add_changes(objects, Some(old), Some(new), "", &mut found)?;
    Ok(found)
}

fn bases(objects: &Objects<'_>, branch: Option<&str>) -> Vec<ObjectId> {
    let remote_name =
        |remote: &str| DEFAULT_BRANCHES.map(|name| format!("refs/remotes/{remote}/{name}"));
    let mut remote = ["refs/remotes/origin/HEAD".to_owned()]
        .into_iter()
        .chain(remote_name("origin"))
        .chain(remote_name("upstream"));
    let remote = remote.find_map(|name| objects.reference(&name));
    let local = DEFAULT_BRANCHES
        .into_iter()
        .find_map(|name| Some((name, objects.reference(&format!("refs/heads/{name}"))?)))
        // The default branch itself is compared with the remote's.
        .filter(|(name, _)| branch != Some(*name));
    let mut bases: Vec<ObjectId> = remote.into_iter().chain(local.map(|(_, id)| id)).collect();
    bases.dedup();
    bases
}

/// Bit flags: from which of two commits one is reachable, and whether from a common one.
const FROM_HEAD: u8 = 1;
const FROM_BASE: u8 = 2;
const FROM_BOTH: u8 = FROM_HEAD | FROM_BASE;
const IS_OLDER: u8 = 4;

/// The newest commit that is reachable from both. `None` if they share none.
///
/// Times alone do not order commits: many are made within one second. So a common commit counts
/// only once everything that is left to visit is reachable from one. After five thousand commits, it
/// is the newest that was found.
pub fn merge_base(
    objects: &mut Objects<'_>,
    head: ObjectId,
    base: ObjectId,
) -> Result<Option<ObjectId>, Unknown> {
    if head == base {
        return Ok(Some(head));
    }
    let mut reached: HashMap<ObjectId, u8> = HashMap::default();
    let mut queue: BinaryHeap<(i64, ObjectId)> = BinaryHeap::new();
    for (id, from) in [(head, FROM_HEAD), (base, FROM_BASE)] {
        *reached.entry(id).or_default() |= from;
        queue.push((objects.commit(id)?.time, id));
    }
    let is_shallow = objects.is_shallow();
    let mut is_cut = false;
    let mut common: Vec<(i64, ObjectId)> = Vec::new();
    let is_older = |reached: &HashMap<ObjectId, u8>, id: &ObjectId| {
        reached.get(id).is_some_and(|from| from & IS_OLDER != 0)
    };
    for _ in 0..MAX_COMMITS {
        if queue.iter().all(|(_, id)| is_older(&reached, id)) {
            break;
        }
        let Some((time, id)) = queue.pop() else { break };
        let mut from = reached.get(&id).copied().unwrap_or_default();
        if from & FROM_BOTH == FROM_BOTH {
            common.push((time, id));
            from |= IS_OLDER;
        }
        for parent in objects.commit(id)?.parents {
            let known = reached.entry(parent).or_default();
            if *known | from == *known {
                continue;
            }
            *known |= from;
            match objects.commit(parent) {
                Ok(commit) => queue.push((commit.time, parent)),
                Err(Unknown::Unreadable) if is_shallow => is_cut = true,
                Err(unknown) => return Err(unknown),
            }
        }
    }
    match common.into_iter().filter(|(_, id)| !is_older(&reached, id)).max() {
        Some((_, id)) => Ok(Some(id)),
        None if is_cut => Err(Unknown::Shallow),
        None if queue.iter().all(|(_, id)| is_older(&reached, id)) => Ok(None),
        None => Err(Unknown::OutOfTime),
    }
}

/// How many commits changed each of some files after an instant (in seconds since 1970), following
/// first parents from the given commit. A merge counts as one. More than five thousand are too many.
pub fn commits_since(
    objects: &mut Objects<'_>,
    head: ObjectId,
    paths: &[String],
    since: i64,
) -> Result<Vec<u32>, Unknown> {
    let mut counts = vec![0; paths.len()];
    let mut commit = objects.commit(head)?;
    for _ in 0..MAX_COMMITS {
        if commit.time <= since {
            return Ok(counts);
        }
        let before = first_parent(objects, &commit)?;
        let old = before.as_ref().map(|before| before.tree);
        if old != Some(commit.tree) {
            for (path, count) in paths.iter().zip(&mut counts) {
                *count += u32::from(differs(objects, old, commit.tree, path)?);
            }
        }
        match before {
            Some(before) => commit = before,
            None => return Ok(counts),
        }
    }
    Err(Unknown::OutOfTime)
}

fn first_parent(objects: &mut Objects<'_>, commit: &Commit) -> Result<Option<Commit>, Unknown> {
    let Some(parent) = commit.parents.first() else { return Ok(None) };
    match objects.commit(*parent) {
        Err(Unknown::Unreadable) if objects.is_shallow() => Err(Unknown::Shallow),
        read => read.map(Some),
    }
}

fn differs(
    objects: &mut Objects<'_>,
    old: Option<ObjectId>,
    new: ObjectId,
    path: &str,
) -> Result<bool, Unknown> {
    let (mut old, mut new) = (old, Some(new));
    for part in path.split('/') {
        if old == new {
            return Ok(false);
        }
        let mut item = |tree: Option<ObjectId>| -> Result<Option<ObjectId>, Unknown> {
            let Some(tree) = tree else { return Ok(None) };
            Ok(objects.tree(tree)?.get(part).map(|item| item.id))
        };
        (old, new) = (item(old)?, item(new)?);
    }
    Ok(old != new)
}

/// Adds the files that differ between two trees of a folder, whose path ends with `/`.
fn add_changes(
    objects: &mut Objects<'_>,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    folder: &str,
    found: &mut Vec<String>,
) -> Result<(), Unknown> {
    if old == new || found.len() >= MAX_FILES || folder.matches('/').count() > MAX_DEPTH {
        return Ok(());
    }
    let mut read = |id: Option<ObjectId>| id.map_or(Ok(TreeItems::new()), |id| objects.tree(id));
    let (old, new) = (read(old)?, read(new)?);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let (before, after) = (old.get(name).copied(), new.get(name).copied());
        if before == after {
            continue;
        }
        let path = format!("{folder}{name}");
        let tree = |item: Option<TreeItem>| Some(item.filter(|item| item.is_folder)?.id);
        let below = format!("{path}/");
        if before.iter().chain(&after).any(|item| !item.is_folder) {
            found.push(path);
        }
        add_changes(objects, tree(before), tree(after), &below, found)?;
    }
    Ok(())
}

/// A file whose index entry differs from the last commit, with that entry; `None` if it was removed.
pub type StagedFile<'a> = (String, Option<&'a Entry>);

/// The files whose index entries differ from the last commit: new, changed, deleted and renamed
/// ones. The index's tree cache tells which folders equal that commit.
pub fn staged_files<'a>(
    objects: &mut Objects<'_>,
    index: &'a State,
    head: Option<ObjectId>,
) -> Result<Vec<StagedFile<'a>>, Unknown> {
    let tree = head.map(|head| Ok(objects.commit(head)?.tree)).transpose()?;
    let entries = index.entries().iter();
    let entries =
        entries.filter_map(|entry| Some((str::from_utf8(entry.path(index)).ok()?, entry)));
    let mut found = Vec::new();
    compare_index(objects, tree, index.tree(), &entries.collect::<Vec<_>>(), "", &mut found)?;
    Ok(found)
}

fn compare_index<'a>(
    objects: &mut Objects<'_>,
    tree: Option<ObjectId>,
    cache: Option<&extension::Tree>,
    entries: &[(&str, &'a Entry)],
    folder: &str,
    found: &mut Vec<StagedFile<'a>>,
) -> Result<(), Unknown> {
    let cached = cache.filter(|cache| cache.num_entries.is_some());
    if cached.is_some_and(|cached| Some(cached.id) == tree) || found.len() >= MAX_FILES {
        return Ok(());
    }
    let mut items = tree.map_or(Ok(TreeItems::new()), |tree| objects.tree(tree))?;
    let name_of = |path: &str| -> String {
        let rest = path.get(folder.len()..).unwrap_or_default();
        rest.split('/').next().unwrap_or_default().to_owned()
    };
    for run in entries.chunk_by(|a, b| name_of(a.0) == name_of(b.0)) {
        let Some((path, entry)) = run.first() else { continue };
        let name = name_of(path);
        let item = items.remove(&name);
        if path.len() > folder.len() + name.len() {
            let below = cache.and_then(|cache| {
                cache.children.iter().find(|child| child.name.as_slice() == name.as_bytes())
            });
            let tree = item.filter(|item| item.is_folder).map(|item| item.id);
            let folder = format!("{folder}{name}/");
            compare_index(objects, tree, below, run, &folder, found)?;
        } else if item.is_none_or(|item| item.is_folder || item.id != entry.id) {
            found.push(((*path).to_owned(), Some(*entry)));
        }
    }
    for (name, item) in items {
        let path = format!("{folder}{name}");
        let mut deleted = Vec::new();
        if item.is_folder {
            add_changes(objects, Some(item.id), None, &format!("{path}/"), &mut deleted)?;
        } else {
            deleted.push(path);
        }
        found.extend(deleted.into_iter().map(|path| (path, None)));
    }
    Ok(())
}
