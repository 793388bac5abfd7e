//! The reference whose files count as approved: `ref` in `scope.toml`.
//!
//! Committed files are served as they are committed, whatever is checked out. The working tree adds
//! what waits for review: new files, and files that were edited here. One that is unchanged since
//! the merge base of `HEAD` and the reference was not edited: the reference moved on. If the
//! reference cannot be read, every file waits for review.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ack_worktree::committed::{self, CommittedFolder, ObjectName, Tips};
use ack_worktree::objects::{Objects, Unknown};
use ack_worktree::references::{HashKind, ResolveError};
use ack_worktree::repository::Repository;
use rustc_hash::FxHashMap;

use super::dialect::Dialect;
use super::files::ReadFile;
use super::listing::is_skipped;
use super::rows::{Content, RowKey, RowText};

const MAX_TIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Reference {
    name: String,
    /// `None` before it was read.
    state: Option<Result<ResolvedReference, Problem>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// For the owner: what is wrong with which name, and what to do.
    pub text: String,
    /// The cause in a few words, without names, for agents.
    pub reason: &'static str,
}

impl Problem {
    fn new(name: &str, why: &str, reason: &'static str) -> Self {
        let name = ack_api::text::line(name, 120);
        Self { text: format!("`ref = \"{name}\"`: {why}; every note waits for review"), reason }
    }

    fn of(name: &str, why: &ResolveError) -> Self {
        let several;
        let (why, reason) = match why {
            ResolveError::Missing if name == "HEAD" => {
                ("nothing is committed yet", "nothing is committed in its git repository yet")
            }
            ResolveError::NotAName => (
                "that is not the name of a branch or tag; write one, for instance `origin/main` \
                 or `refs/heads/main`, or `HEAD`",
                "its git ref is not the name of a branch or tag",
            ),
            ResolveError::Hash => (
                "that is a commit; write a branch or a tag, for instance `origin/main`",
                "its git ref is not the name of a branch or tag",
            ),
            ResolveError::Missing => (
                "there is no such branch or tag here; `git fetch` may bring it, and `git branch \
                 -a` lists what is there",
                "its git ref is not there",
            ),
            ResolveError::Ambiguous(names) => {
                let names = names.join(" or ");
                several = format!("it could be {names}; write one of them in full");
                (several.as_str(), "its git ref could be several")
            }
            ResolveError::OtherFormat => (
                "the repository keeps its references as a reftable, which is not read; `git refs \
                 migrate --ref-format=files` makes them files",
                "its git refs are kept in a format that is not read",
            ),
            ResolveError::Unreadable(Unknown::OutOfTime) => {
                ("reading git's objects took too long", "reading git's objects took too long")
            }
            ResolveError::Unreadable(_) => (
                "git's objects cannot be read: they are missing, damaged or of a newer format",
                "git's objects cannot be read",
            ),
        };
        Self::new(name, why, reason)
    }
}

#[derive(Debug)]
struct ResolvedReference {
    repository: Repository,
    folder: String,
    tips: Tips,
    committed: CommittedFolder,
}

impl Reference {
    pub const fn new(name: String) -> Self {
        Self { name, state: None }
    }

    /// Reads where the reference points, and its files. Returns whether anything changed.
    pub fn update(&mut self, path: &Path, dialect: Dialect) -> bool {
        let Some(state) = self.read(path, dialect).transpose() else { return false };
        let is_new = state.is_ok() || self.unknown() != state.as_ref().err();
        self.state = Some(state);
        is_new
    }

    fn resolved(&self) -> Option<&ResolvedReference> {
        self.state.as_ref()?.as_ref().ok()
    }

    /// Whether the reference and everything else that matters in the repository are unchanged.
    pub fn is_current(&self, path: &Path) -> bool {
        let Some(resolved) = self.resolved() else { return false };
        committed::locate(path).is_some_and(|(repository, folder)| {
            (&resolved.repository, &resolved.folder) == (&repository, &folder)
                && Tips::read(&repository, &self.name).is_ok_and(|tips| tips == resolved.tips)
        })
    }

    /// The current state; `None` if it is unchanged.
    fn read(&self, path: &Path, dialect: Dialect) -> Result<Option<ResolvedReference>, Problem> {
        let (repository, folder) = committed::locate(path).ok_or_else(|| {
            let why = if committed::is_bare(path) {
                "the repository is bare; clone it, and name the folder in the clone"
            } else {
                "the folder is in no git repository"
            };
            Problem::new(&self.name, why, "its folder is in no git repository with a working tree")
        })?;
        let unknown = |why: ResolveError| Problem::of(&self.name, &why);
        let tips = Tips::read(&repository, &self.name).map_err(unknown)?;
        if let Some(resolved) = self.resolved()
            && (&resolved.repository, &resolved.folder, &resolved.tips)
                == (&repository, &folder, &tips)
        {
            return Ok(None);
        }
        let wanted = |path: &str, is_folder: bool| {
            let file = path.rsplit('/').next().unwrap_or(path);
            if is_folder {
                !is_skipped(OsStr::new(file)) && dialect.enters(Path::new(path))
            } else {
                dialect.holds_memories(Path::new(path))
            }
        };
        let committed = Objects::open(&repository, Instant::now() + MAX_TIME)
            .and_then(|mut objects| CommittedFolder::read(&mut objects, &tips, &folder, &wanted))
            .map_err(|why| unknown(ResolveError::Unreadable(why)))?;
        Ok(Some(ResolvedReference { repository, folder, tips, committed }))
    }

    pub fn hash_kind(&self) -> Option<HashKind> {
        Some(self.resolved()?.repository.hash)
    }

    /// Why the reference is not used, or that it has no files.
    pub fn problem(&self) -> Option<String> {
        match self.state.as_ref()? {
            Ok(resolved) if resolved.committed.files.is_empty() => {
                let why = "no note is committed there in this folder";
                Some(Problem::new(&self.name, why, "").text)
            }
            Ok(_) => None,
            Err(problem) => Some(problem.text.clone()),
        }
    }

    pub fn unknown(&self) -> Option<&Problem> {
        self.state.as_ref()?.as_ref().err()
    }

    pub fn committed(&self) -> Option<&CommittedFolder> {
        Some(&self.resolved()?.committed)
    }

    /// The time of the reference's commit, and git's objects.
    pub fn objects(&self) -> Option<(SystemTime, Objects<'_>)> {
        let resolved = self.resolved()?;
        let since = Duration::from_secs(u64::try_from(resolved.committed.time).unwrap_or_default());
        let time = SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH);
        Some((time, Objects::open(&resolved.repository, Instant::now() + MAX_TIME).ok()?))
    }
}

/// The rows for the files of a folder and of its reference.
pub fn plan(
    files: &FxHashMap<OsString, ReadFile>,
    committed: &CommittedFolder,
) -> Vec<(RowKey, RowText)> {
    let mut plan = Vec::with_capacity(files.len() + committed.files.len());
    for (relative, file) in files {
        // A path that is not UTF-8 is on no reference.
        let path = relative.to_str().unwrap_or_default();
        let committed_name = committed.files.get(path);
        let Some(content) = file.content else {
            plan.extend(committed_name.map(|id| committed_row(relative, *id)));
            continue;
        };
        let matches =
            |id: Option<&ObjectName>| file.object_names.is_some_and(|names| names.include(id));
        let row = |is_edited: bool, is_committed: bool| {
            let committed_as = committed_name.copied().filter(|_| is_edited);
            let text = RowText { content, is_from_git: false, is_committed, committed_as };
            (RowKey { relative: relative.clone(), is_edited }, text)
        };
        if matches(committed_name) {
            plan.push(row(false, true));
            continue;
        }
        plan.extend(committed_name.map(|id| committed_row(relative, *id)));
        if !matches(committed.at_merge_base.get(path)) {
            plan.push(row(committed_name.is_some(), false));
        }
    }
    for (path, id) in &committed.files {
        let path = OsStr::new(path);
        if !files.contains_key(path) {
            plan.push(committed_row(path, *id));
        }
    }
    plan
}

fn committed_row(relative: &OsStr, id: ObjectName) -> (RowKey, RowText) {
    let content = Content::Object(id);
    let text = RowText { content, is_from_git: true, is_committed: true, committed_as: None };
    (RowKey { relative: relative.to_owned(), is_edited: false }, text)
}
