//! What the references of a repository point to, read from `HEAD`, loose files and `packed-refs`.

use gix_index::hash::ObjectId;

pub use gix_index::hash::Kind as HashKind;

use crate::objects::Unknown;
use crate::repository::Repository;
use ack_sys::files;

/// The largest `packed-refs` that is read: about a hundred thousand references.
const MAX_REFS_BYTES: u64 = 8 << 20;
const MAX_SYMBOLIC_REFS: usize = 5;
const MAX_NAME_BYTES: usize = 250;

/// Why a name does not resolve to a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolveError {
    NotAName,
    /// It is the name of a commit, not of a reference.
    Hash,
    Missing,
    Ambiguous(Vec<String>),
    /// The repository keeps its references in a format that is not read here (reftable).
    OtherFormat,
    Unreadable(Unknown),
}

/// Resolves a name to a reference and what it points to: `HEAD`, a full name such as
/// `refs/heads/main`, or a short one such as `main`, `v1.2` or `origin/main`. An ambiguous short
/// name is refused: git would prefer the tag, which anybody with push access can create.
pub fn resolve(repository: &Repository, name: &str) -> Result<(String, ObjectId), ResolveError> {
    if repository.common_dir.join("reftable").exists() {
        return Err(ResolveError::OtherFormat);
    }
    if name == "HEAD" {
        let head = head(repository).map_err(ResolveError::Unreadable)?;
        return Ok((name.to_owned(), head.ok_or(ResolveError::Missing)?));
    }
    if name.len() > MAX_NAME_BYTES || !is_name(name) {
        return Err(ResolveError::NotAName);
    }
    let candidates = if name.starts_with("refs/") {
        vec![name.to_owned()]
    } else {
        vec![
            format!("refs/tags/{name}"),
            format!("refs/heads/{name}"),
            format!("refs/remotes/{name}"),
            // A remote's name alone means its default branch.
            format!("refs/remotes/{name}/HEAD"),
        ]
    };
    let mut found = Vec::new();
    for full in candidates {
        found.extend(read(repository, &full).map(|id| (full, id)));
    }
    match found.len() {
        // The name of a commit, abbreviated or not.
        0 if (7..=64).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_hexdigit()) => {
            Err(ResolveError::Hash)
        }
        0 => Err(ResolveError::Missing),
        1 => Ok(found.remove(0)),
        _ => Err(ResolveError::Ambiguous(found.into_iter().map(|(full, _)| full).collect())),
    }
}

/// Of the remote `origin`, such as `origin/main`. `None` if it was never fetched.
pub fn default_branch(repository: &Repository) -> Option<String> {
    let head = repository.common_dir.join("refs/remotes/origin/HEAD");
    let text = files::read_text(&head, MAX_REFS_BYTES).ok()?;
    let target = text.trim().strip_prefix("ref:")?.trim();
    let name = target.strip_prefix("refs/remotes/")?;
    read(repository, target).map(|_| name.to_owned())
}

/// The commit that is checked out; `None` on a branch without commits.
pub fn head(repository: &Repository) -> Result<Option<ObjectId>, Unknown> {
    let text = files::read_text(&repository.git_dir.join("HEAD"), MAX_REFS_BYTES)
        .map_err(|_| Unknown::Unreadable)?;
    let Some(name) = text.trim().strip_prefix("ref:") else {
        let id = ObjectId::from_hex(text.trim().as_bytes());
        return id.map(Some).map_err(|_| Unknown::Unreadable);
    };
    let id = read(repository, name.trim());
    if id.is_none() && repository.common_dir.join("reftable").exists() {
        return Err(Unknown::Unreadable);
    }
    Ok(id)
}

/// What the reference with this full name points to.
pub fn read(repository: &Repository, name: &str) -> Option<ObjectId> {
    let mut name = name.to_owned();
    for _ in 0..MAX_SYMBOLIC_REFS {
        if !is_safe(&name) {
            return None;
        }
        let loose = repository.common_dir.join(&name);
        let Ok(text) = files::read_text(&loose, MAX_REFS_BYTES) else {
            return read_packed_ref(repository, &name);
        };
        match text.trim().strip_prefix("ref:") {
            Some(target) => name = target.trim().to_owned(),
            None => return ObjectId::from_hex(text.trim().as_bytes()).ok(),
        }
    }
    None
}

fn read_packed_ref(repository: &Repository, name: &str) -> Option<ObjectId> {
    let file = repository.common_dir.join("packed-refs");
    let text = files::read(&file, MAX_REFS_BYTES).ok()?;
    let length = repository.hash.len_in_hex();
    let line = text.split(|byte| *byte == b'\n').find_map(|line| {
        let (id, rest) = line.split_at_checked(length)?;
        (rest.strip_prefix(b" ")?.trim_ascii_end() == name.as_bytes()).then_some(id)
    })?;
    ObjectId::from_hex(line).ok()
}

/// Whether git allows a name: `HEAD~1`, `main^` and `main:docs` are expressions
/// (git-check-ref-format(1)).
fn is_name(name: &str) -> bool {
    is_safe(&format!("refs/{name}"))
        && !name.contains([' ', '~', '^', ':', '?', '*', '['])
        && !name.contains("@{")
        && !name.contains("..")
}

/// Whether a reference's name stays inside git's folder.
fn is_safe(name: &str) -> bool {
    name.starts_with("refs/")
        && !name.contains(['\0', '\\'])
        && name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}
