//! The files in a publish folder: which ones are ours, and how to write one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use ack_api::memory::Memory;
use ack_store::folder::front_matter::split;
use ack_store::folder::is_markdown;
use ack_store::folder::links::{Target, links, target_paths};
use ack_store::folder::markdown::blank_comments;
use ack_sys::files;
use ack_worktree::repository::Repository;
use tempfile::Builder;
use walkdir::WalkDir;

use super::note::{Published, PublishedMemory};
use super::{HeldItem, PublishError, PublishItem, PublishOptions, PublishPlan, Step};
use crate::check::dead_link;
use ack_service::scope::Scope;

const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_DEPTH: usize = 32;
/// Read and write for everyone; the umask removes what the user does not want.
const NEW_FILE_MODE: u32 = 0o666;
/// The file that marks a folder as Open Knowledge Format.
const INDEX_NAME: &str = "index.md";
const INDEX: &str = "---\nokf_version: \"0.2\"\n---\n\n# Memories\n\nOne file is one memory.\n";

#[derive(Debug, Default)]
struct ExistingFiles {
    /// Our files by the ids of their memories.
    published: BTreeMap<String, (PathBuf, String, Published)>,
    /// The names at the top level, in lower case.
    names: HashSet<String>,
}

impl ExistingFiles {
    fn read(scope: &str, folder: &Path) -> Result<Self, PublishError> {
        let mut present = Self::default();
        if !folder.exists() {
            return Ok(present);
        }
        let walk =
            WalkDir::new(folder).max_depth(MAX_DEPTH).sort_by_file_name().into_iter().filter_entry(
                |entry| {
                    entry.depth() == 0 || !entry.file_name().as_encoded_bytes().starts_with(b".")
                },
            );
        for entry in walk {
            let entry = entry.map_err(|error| PublishError::Io {
                action: "list",
                path: error.path().unwrap_or(folder).to_owned(),
                source: error.into_io_error().unwrap_or_else(|| std::io::ErrorKind::Other.into()),
            })?;
            if entry.depth() == 1 {
                present.names.insert(entry.file_name().to_string_lossy().to_lowercase());
            }
            if !entry.file_type().is_file() || !is_markdown(entry.path()) {
                continue;
            }
            // A file that is not text was not written by us.
            let read = files::read_text(entry.path(), MAX_FILE_BYTES);
            let (Ok(relative), Ok(text)) = (entry.path().strip_prefix(folder), read) else {
                continue;
            };
            if let Some(published) = Published::read(&text).filter(|one| one.scope == scope) {
                // Of two copies, the first one is ours.
                let id = published.id.clone();
                present.published.entry(id).or_insert((relative.to_owned(), text, published));
            }
        }
        Ok(present)
    }
}

pub fn plan(
    plan: &mut PublishPlan,
    scope: &Scope,
    options: PublishOptions,
) -> Result<(), PublishError> {
    let memories = std::mem::take(&mut plan.approved.memories);
    let mut present = ExistingFiles::read(&scope.name, &plan.folder)?;
    if !memories.is_empty() && !present.names.contains(INDEX_NAME) {
        let after = Some(INDEX.to_owned());
        plan.steps.push(Step { path: INDEX_NAME.into(), before: None, after });
    }
    let mut files = Vec::new();
    for memory in &memories {
        let source = scope.store.note_text(&memory.id);
        let origin = PublishedMemory { scope: &scope.name, memory, source: source.as_deref() };
        let (before, after) = match present.published.remove(&memory.id) {
            None => (None, origin.render(None)),
            Some((path, text, published)) => {
                let has_changed = origin.has_changed(&published);
                if has_changed && published.is_edited && !options.overwrite {
                    plan.kept.push(PublishItem { path: path.clone(), id: memory.id.clone() });
                    files.push((memory, path, text));
                    continue;
                }
                let after = if has_changed { origin.render(Some(&text)) } else { text.clone() };
                if after == text {
                    plan.unchanged += 1;
                    files.push((memory, path, text));
                    continue;
                }
                (Some((path, text)), after)
            }
        };
        if plan.hold_back(memory, &after) {
            continue;
        }
        let (items, path, before) = match before {
            Some((path, text)) => (&mut plan.changed, path, Some(text)),
            None => (&mut plan.added, free_name(&origin, &mut present.names).into(), None),
        };
        items.push(PublishItem { path: path.clone(), id: memory.id.clone() });
        plan.steps.push(Step { path: path.clone(), before, after: Some(after.clone()) });
        files.push((memory, path, after));
    }
    for (id, (path, text, _)) in present.published {
        plan.withdrawn.push(PublishItem { path: path.clone(), id });
        plan.steps.push(Step { path, before: Some(text), after: None });
    }
    warn_of_dead_links(plan, &files);
    Ok(())
}

/// Warns of links in the published files whose targets are not there after the plan was carried out.
fn warn_of_dead_links(plan: &mut PublishPlan, files: &[(&Memory, PathBuf, String)]) {
    let folder = &plan.folder;
    let existing = folder.ancestors().find(|path| path.is_dir());
    let repository = existing.and_then(|existing| Repository::discover(existing, None));
    let top = repository.as_ref().map(|repository| repository.work_tree.as_path());
    let steps = plan.steps.iter();
    let written: HashMap<PathBuf, bool> =
        steps.map(|step| (folder.join(&step.path), step.after.is_some())).collect();
    let will_exist = |path: &PathBuf| written.get(path).copied().unwrap_or_else(|| path.exists());
    for (memory, path, text) in files {
        let (_, body) = split(text);
        let dead = links(&blank_comments(body)).into_iter().filter_map(|link| match link.target {
            Target::File(to) if !target_paths(&to, path, folder, top).iter().any(will_exist) => {
                Some(dead_link(&to))
            }
            _ => None,
        });
        plan.approved.warnings.extend(HeldItem::of(memory, dead.collect()));
    }
}

/// Writes a memory that no other scope has as a new note, which waits for review whatever counts as
/// approved there. Returns its path.
pub fn add_note(folder: &Path, memory: &Memory) -> Result<PathBuf, PublishError> {
    let folder = real_path(folder)?;
    let note = PublishedMemory { scope: "", memory, source: None };
    let step = Step { path: note.file_name().into(), before: None, after: Some(note.new_note()) };
    write(&folder, &step)?;
    Ok(folder.join(step.path))
}

fn free_name(origin: &PublishedMemory<'_>, names: &mut HashSet<String>) -> String {
    let name = origin.file_name();
    let stem = name.trim_end_matches(".md");
    let others = (2..).map(|number| format!("{stem}-{number}.md"));
    let free = std::iter::once(name.clone()).chain(others).find(|name| names.insert(name.clone()));
    free.unwrap_or(name)
}

/// The folder with every link resolved. Parts that do not exist yet are left as they are.
pub fn real_path(folder: &Path) -> Result<PathBuf, PublishError> {
    let io = |source| PublishError::Io { action: "find", path: folder.to_owned(), source };
    let absolute = std::path::absolute(folder).map_err(io)?;
    let existing =
        absolute.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(&absolute);
    let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
    if rest.components().any(|part| part == Component::ParentDir) {
        return Err(io(ErrorKind::NotFound.into()));
    }
    let real = existing.canonicalize().map_err(io)?;
    if !real.is_dir() {
        return Err(io(ErrorKind::NotADirectory.into()));
    }
    // Joining an empty path would add a separator.
    Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// Writes, replaces or removes one file, if it has not changed since the plan.
pub fn write(folder: &Path, step: &Step) -> Result<(), PublishError> {
    let path = folder.join(&step.path);
    let parent = path.parent().unwrap_or(folder);
    let io = |action| {
        let path = path.clone();
        move |source| PublishError::Io { action, path, source }
    };
    fs::create_dir_all(parent).map_err(io("create"))?;
    // A parent folder may have become a link.
    let is_inside = parent.canonicalize().is_ok_and(|real| real == parent);
    if !is_inside || existing_text(&path).map_err(io("read"))? != step.before {
        return Err(PublishError::Changed { path });
    }
    let Some(after) = &step.after else {
        return fs::remove_file(&path).map_err(io("remove"));
    };
    let mode =
        fs::symlink_metadata(&path).map_or(NEW_FILE_MODE, |known| known.permissions().mode());
    let mut file = Builder::new()
        .prefix(".publish-")
        .permissions(Permissions::from_mode(mode & 0o777))
        .tempfile_in(parent)
        .map_err(io("write"))?;
    file.write_all(after.as_bytes()).map_err(io("write"))?;
    let written = match step.before {
        None => file.persist_noclobber(&path),
        Some(_) => file.persist(&path),
    };
    written.map(drop).map_err(|error| io("write")(error.error))
}

/// The content of a file; `None` if there is none. Does not follow links.
fn existing_text(path: &Path) -> std::io::Result<Option<String>> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_file() => files::read_text(path, u64::MAX >> 1).map(Some),
        Ok(_) => Err(std::io::Error::other("it is not a file")),
    }
}
