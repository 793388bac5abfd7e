//! Finds the files of a working tree that differ from the last commit, without starting git.
//!
//! As in git's own fast path, size and time in the index are compared with the files, and the
//! content is read only if nothing but the time differs. For a large repository that takes too long
//! at the start of a session (`docs/benchmarks.md#changed-files`), so the caller sets a time budget
//! and the most likely files come first: those in folders where a file was created, renamed or
//! removed, then those that git wrote last.
//!
//! Staged files equal the index and differ from the last commit. The commits of the branch are
//! compared with the point where it began ([`crate::history`]). New files are found by reading
//! folders in the same order ([`crate::untracked`]).

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gix_index::entry::{Flags, Mode};
use gix_index::hash::Kind;
use gix_index::{Entry, State};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::history::{self, StagedFile};
use crate::objects::{Objects, Unknown};
use crate::repository::Repository;
use crate::untracked;
use ack_sys::files;

/// The largest index that is read: about two hundred thousand files.
const MAX_INDEX_BYTES: u64 = 24 << 20;
const MAX_FILES: usize = 24;
const BATCH_SIZE: usize = 64;
/// Below this number of files, one thread is faster than starting several.
const MIN_PARALLEL_FILES: usize = 512;
const MAX_THREADS: usize = 8;
/// How many files are read to verify their content, and how large they may be.
const MAX_VERIFIED_FILES: usize = 32;
const MAX_VERIFIED_BYTES: u64 = 256 << 10;
/// A folder counts as active if it is newer than its files by more than this.
const FOLDER_MARGIN_SECS: u64 = 2;

/// What the current work changed: in the working tree, staged, and in the branch's commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Their paths from the top of the working tree, with `/`, including new files: conflicts
    /// first, then by modification time with the newest first, then deleted files, then those of
    /// the branch's commits.
    pub files: Vec<String>,
    pub tracked: usize,
    pub compared: usize,
    pub staged_unknown: Option<Unknown>,
    pub branch_unknown: Option<Unknown>,
}

struct Candidate<'a> {
    path: &'a str,
    entry: &'a Entry,
}

impl<'a> Candidate<'a> {
    /// `None` if git itself would skip it.
    fn of(entry: &'a Entry, index: &'a State) -> Option<Self> {
        let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
        let unseen = entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
        let path = str::from_utf8(entry.path(index)).ok()?;
        (is_file && !unseen).then_some(Self { path, entry })
    }

    fn folder(&self) -> &'a str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

struct ChangedFile<'a> {
    path: String,
    /// When it was written; `None` if it was deleted.
    written: Option<SystemTime>,
    is_conflict: bool,
    /// Its entry, if only the time differs, so that the content may be the same.
    unverified: Option<&'a Entry>,
}

impl ChangedFile<'_> {
    const fn new(path: String, written: Option<SystemTime>) -> Self {
        Self { path, written, is_conflict: false, unverified: None }
    }

    /// Conflicts first, then by time with the newest first, then deleted files.
    fn most_urgent_first(&self, other: &Self) -> std::cmp::Ordering {
        (other.is_conflict, other.written)
            .cmp(&(self.is_conflict, self.written))
            .then_with(|| self.path.cmp(&other.path))
    }
}

impl Changes {
    /// Compares the files of a repository's working tree with its index. This takes at most one and
    /// a half times `budget`: one third of it is for comparing files even if reading the index took
    /// long, and one fifth for verifying content. The user's settings in `home` name ignored files.
    /// If the index cannot be read, there are no changes.
    pub fn read(repository: &Repository, home: Option<&Path>, budget: Duration) -> Self {
        Self::try_read(repository, home, budget).unwrap_or_default()
    }

    fn try_read(repository: &Repository, home: Option<&Path>, budget: Duration) -> Option<Self> {
        let part = |divisor: u32| Instant::now() + budget / divisor;
        let end = part(1);
        let top = repository.work_tree.as_path();
        if top == repository.git_dir {
            return None;
        }
        let index = index(repository)?;
        let entries = index.entries().iter();
        let mut candidates: Vec<Candidate<'_>> =
            entries.filter_map(|entry| Candidate::of(entry, &index)).collect();
        let tracked = candidates.len();
        let (staged, branch) = committed_work(repository, &index, part(2));
        let folders = folders(&candidates, top, part(4));
        let paths = folders.iter().map(|folder| folder.path);
        let new = untracked::find(&index, repository, home, paths, part(5));
        if tracked > MIN_PARALLEL_FILES {
            prioritize(&mut candidates, &folders);
        }
        // Some files are compared even if the time is up by now.
        let (mut changed, compared) = compare(&candidates, top, end.max(part(3)));
        verify(&mut changed, top, index.object_hash(), part(5));
        changed
            .extend(new.into_iter().map(|(path, written)| ChangedFile::new(path, Some(written))));
        let staged_unknown = staged.as_ref().err().copied();
        let staged = staged.into_iter().flatten();
        changed.extend(
            staged.map(|(path, entry)| ChangedFile::new(path, entry.and_then(recorded_mtime))),
        );
        changed.sort_by(ChangedFile::most_urgent_first);
        let branch_unknown = branch.as_ref().err().copied();
        let branch = branch.into_iter().flatten().map(|path| {
            let entry = index.entry_by_path(path.as_str().into());
            ChangedFile::new(path, entry.and_then(recorded_mtime))
        });
        let mut branch: Vec<ChangedFile<'_>> = branch.collect();
        branch.sort_by(ChangedFile::most_urgent_first);
        let mut files: Vec<String> = Vec::new();
        for ChangedFile { path, .. } in changed.into_iter().chain(branch) {
            if files.len() < MAX_FILES && !files.contains(&path) {
                files.push(path);
            }
        }
        Some(Self { files, tracked, compared, staged_unknown, branch_unknown })
    }
}

/// What git's objects say about the current work: the staged files, each with its entry, and the
/// files of the branch's commits.
fn committed_work<'a>(
    repository: &Repository,
    index: &'a State,
    end: Instant,
) -> (Result<Vec<StagedFile<'a>>, Unknown>, Result<Vec<String>, Unknown>) {
    let opened = Objects::open(repository, end);
    let (head, mut objects) = match opened.and_then(|objects| Ok((objects.head()?, objects))) {
        Ok(opened) => opened,
        Err(unknown) => return (Err(unknown), Err(unknown)),
    };
    let staged = history::staged_files(&mut objects, index, head);
    let name = repository.branch.as_deref();
    let branch = head.map(|head| history::branch_files(&mut objects, head, name));
    (staged, branch.unwrap_or_else(|| Ok(Vec::new())))
}

fn recorded_mtime(entry: &Entry) -> Option<SystemTime> {
    let time = &entry.stat.mtime;
    UNIX_EPOCH.checked_add(Duration::new(u64::from(time.secs), time.nsecs.min(999_999_999)))
}

/// The index; empty if nothing was ever added.
fn index(repository: &Repository) -> Option<gix_index::File> {
    let path = repository.git_dir.join("index");
    let kind = repository.hash;
    match std::fs::metadata(&path) {
        // The checksum is not verified, which would take longer than reading. An index that is
        // broken in a way that matters cannot be decoded.
        Ok(metadata)
            if metadata.is_file()
                && metadata.len() <= MAX_INDEX_BYTES
                && !is_shared_elsewhere(repository) =>
        {
            gix_index::File::at(path, kind, true, gix_index::decode::Options::default()).ok()
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(gix_index::File::from_state(State::new(kind), path))
        }
        _ => None,
    }
}

/// Whether a part of a split index, which would be read too, is not a regular file.
fn is_shared_elsewhere(repository: &Repository) -> bool {
    std::fs::read_dir(&repository.git_dir).into_iter().flatten().flatten().any(|entry| {
        entry.file_name().to_string_lossy().starts_with("sharedindex.")
            && files::check(&entry.path()).is_err()
    })
}

/// A folder that contains tracked files, directly or in its folders.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Folder<'a> {
    /// Something changed in it after git recorded its files.
    active: bool,
    written: u64,
    path: &'a str,
}

/// As many folders as can be checked in time, those most likely to hold changes first.
fn folders<'a>(candidates: &[Candidate<'a>], top: &Path, end: Instant) -> Vec<Folder<'a>> {
    // Neighbours mostly share a folder, so the map is accessed once per run.
    let mut newest: HashMap<&str, u64> = HashMap::default();
    for run in candidates.chunk_by(|a, b| a.folder() == b.folder()) {
        let times = run.iter().map(|it| u64::from(it.entry.stat.mtime.secs));
        if let (Some(first), Some(latest)) = (run.first(), times.max()) {
            let known = newest.entry(first.folder()).or_default();
            *known = latest.max(*known);
        }
    }
    // A folder that directly contains no files has no recorded time to compare with. It is checked
    // first and counts as inactive.
    let with_files: Vec<&str> = newest.keys().copied().collect();
    for mut folder in with_files {
        while let Some((above, _)) = folder.rsplit_once('/') {
            newest.entry(above).or_insert(u64::MAX);
            folder = above;
        }
    }
    newest.entry("").or_insert(u64::MAX);
    // The folders with the oldest files come last, in case time runs out.
    let mut checked: Vec<(&str, u64)> = newest.into_iter().collect();
    checked.sort_unstable_by_key(|(path, latest)| std::cmp::Reverse((*latest, *path)));
    let (mut folders, _) = parallel_filter_map(&checked, end, |(path, latest)| {
        let metadata = std::fs::symlink_metadata(top.join(path)).ok()?;
        let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH);
        let written = since.map_or(0, |since| since.as_secs());
        Some(Folder { active: written > latest.saturating_add(FOLDER_MARGIN_SECS), written, path })
    });
    folders.sort_unstable_by(|a, b| b.cmp(a));
    folders
}

/// Moves the files of active folders to the front, then those that git wrote last.
fn prioritize(candidates: &mut [Candidate<'_>], folders: &[Folder<'_>]) {
    let active = folders.iter().filter(|folder| folder.active);
    let active: HashSet<&str> = active.map(|folder| folder.path).collect();
    // The sort is stable: files of the same time stay in path order.
    candidates.sort_by_cached_key(|candidate| {
        let is_active = !active.is_empty() && active.contains(candidate.folder());
        std::cmp::Reverse((is_active, candidate.entry.stat.mtime.secs))
    });
}

/// Filters and maps items on a few threads until the time is up, and counts those checked.
fn parallel_filter_map<T: Sync, F: Send>(
    items: &[T],
    end: Instant,
    check: impl Fn(&T) -> Option<F> + Sync,
) -> (Vec<F>, usize) {
    let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut found = Vec::new();
        while Instant::now() < end {
            let start = next.fetch_add(BATCH_SIZE, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else { break };
            let batch = rest.get(..BATCH_SIZE).unwrap_or(rest);
            found.extend(batch.iter().filter_map(&check));
            checked.fetch_add(batch.len(), Ordering::Relaxed);
        }
        found
    };
    let threads = match items.len() {
        ..MIN_PARALLEL_FILES => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS),
    };
    let found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_default());
        }
        found
    });
    (found, checked.into_inner())
}

fn compare<'a>(
    candidates: &[Candidate<'a>],
    top: &Path,
    end: Instant,
) -> (Vec<ChangedFile<'a>>, usize) {
    parallel_filter_map(candidates, end, |Candidate { path, entry }| {
        let is_conflict = entry.stage_raw() != 0;
        let metadata = match std::fs::symlink_metadata(top.join(path)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(ChangedFile {
                    is_conflict,
                    ..ChangedFile::new((*path).to_owned(), None)
                });
            }
            Err(_) => return None,
        };
        let written = metadata.modified().ok()?;
        let recorded = &entry.stat;
        // The index holds the lower 32 bits of both.
        let same_size = u64::from(recorded.size) == metadata.len() & u64::from(u32::MAX);
        // Some programs record no nanoseconds.
        let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let same_time = u64::from(recorded.mtime.secs) == since.as_secs() & u64::from(u32::MAX)
            && (recorded.mtime.nsecs == 0 || recorded.mtime.nsecs == since.subsec_nanos());
        let fresh = entry.flags.contains(Flags::INTENT_TO_ADD);
        (is_conflict || fresh || !same_size || !same_time).then(|| ChangedFile {
            is_conflict,
            unverified: (same_size && !is_conflict && !fresh).then_some(*entry),
            ..ChangedFile::new((*path).to_owned(), Some(written))
        })
    })
}

/// Drops files whose content is unchanged: in a copied working tree every file has a new time. If
/// there are too many to read, only the newest are kept.
fn verify(changed: &mut Vec<ChangedFile<'_>>, top: &Path, kind: Kind, end: Instant) {
    changed.sort_by_key(|file| std::cmp::Reverse(file.written));
    let mut read = 0;
    changed.retain(|file| {
        let Some(entry) = file.unverified else { return true };
        read += 1;
        if read > MAX_VERIFIED_FILES
            || u64::from(entry.stat.size) > MAX_VERIFIED_BYTES
            || Instant::now() >= end
        {
            return false;
        }
        let path = top.join(&file.path);
        let content = if entry.mode == Mode::SYMLINK {
            std::fs::read_link(path)
                .map(|target| target.to_string_lossy().into_owned().into_bytes())
        } else {
            files::read(&path, MAX_VERIFIED_BYTES)
        };
        let hash = content.ok().and_then(|content| {
            gix_object::compute_hash(kind, gix_object::Kind::Blob, &content).ok()
        });
        hash.is_some_and(|hash| hash != entry.id)
    });
}
