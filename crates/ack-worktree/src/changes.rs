//! Finds the files of a working tree that differ from the last commit, without starting git.
//!
//! The index records the size and modification time of every tracked file. As in git's own fast
//! path, these are compared with the files, and the content is read only if nothing but the time
//! differs. Comparing every file of a large repository takes too long at the start of a session
//! (`docs/benchmarks.md#changed-files`), so the caller sets a time budget and the most likely files
//! come first: those in folders where a file was created, renamed or removed, then those that git
//! wrote last. The result includes how many files were compared.
//!
//! Staged files equal the index and differ from the last commit. The commits of the branch are
//! compared with the point where it began ([`crate::history`]). New files are found by reading
//! folders in the same order, with a part of the budget ([`crate::untracked`]).

use std::ops::Range;
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
/// The largest number of files in the result.
const MAX_FILES: usize = 24;
/// How many files a thread takes at a time.
const BATCH_SIZE: usize = 64;
/// Below this number of files, one thread is faster than starting several.
const MIN_PARALLEL_FILES: usize = 512;
/// The largest number of threads.
const MAX_THREADS: usize = 8;
/// How many files are read to verify their content, and how large they may be.
const MAX_VERIFIED_FILES: usize = 32;
const MAX_VERIFIED_BYTES: u64 = 256 << 10;
/// Checking folders for activity may take this fraction of the budget.
const FOLDERS_BUDGET_DIVISOR: u32 = 4;
/// Reading git's objects may take this fraction of the budget.
const HISTORY_BUDGET_DIVISOR: u32 = 2;
/// Looking for new files may take this fraction of the budget.
const UNTRACKED_BUDGET_DIVISOR: u32 = 5;
/// A folder counts as active if it is newer than its files by more than this.
const FOLDER_MARGIN_SECS: u64 = 2;

/// The files that the current work changed: in the working tree, staged, and in the commits of the
/// branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Their paths from the top of the working tree, with `/`, including new files: conflicts
    /// first, then by modification time with the newest first, then deleted files, then those of
    /// the branch's commits.
    pub files: Vec<String>,
    /// How many files git tracks here.
    pub tracked: usize,
    /// How many of them were compared.
    pub compared: usize,
    /// Why staged files are missing.
    pub staged_unknown: Option<Unknown>,
    /// Why files of the branch's commits are missing.
    pub branch_unknown: Option<Unknown>,
}

/// A tracked file to compare.
struct Candidate<'a> {
    /// Higher ranks come first: the recorded time, with [`ACTIVE_FOLDER`] set for active folders.
    rank: u64,
    path: &'a str,
    folder: &'a str,
    entry: &'a Entry,
}

/// Raises the rank of the files of active folders; greater than any time in an index.
const ACTIVE_FOLDER: u64 = 1 << 40;

/// How a file differs.
struct Difference<'a> {
    path: &'a str,
    entry: &'a Entry,
    /// When it was written; `None` if it was deleted.
    written: Option<SystemTime>,
    /// The size is unchanged, so the content may be too.
    unverified: bool,
    conflict: bool,
}

impl Changes {
    /// Compares the files of a repository's working tree with its index. This takes at most one and
    /// a half times `budget`: one third of it is for comparing files even if reading the index took
    /// long, and one fifth for verifying content. The user's settings in `home` name ignored files.
    /// If the index cannot be read, there are no changes.
    pub fn read(repository: &Repository, home: Option<&Path>, budget: Duration) -> Self {
        let end = Instant::now() + budget;
        Self::read_until(repository, home, end, budget).unwrap_or_default()
    }

    fn read_until(
        repository: &Repository,
        home: Option<&Path>,
        end: Instant,
        budget: Duration,
    ) -> Option<Self> {
        let top = repository.work_tree.as_path();
        if top == repository.git_dir {
            return None;
        }
        let index = index(repository)?;
        let kind = index.object_hash();
        let entries = index.entries().iter();
        let mut candidates: Vec<Candidate<'_>> = entries
            .filter_map(|entry| candidate_of(entry, &index))
            .collect();
        let tracked = candidates.len();
        let log = std::fs::metadata(repository.git_dir.join("logs/HEAD"));
        let last_commit = log.and_then(|metadata| metadata.modified()).ok();
        let history = History::read(
            repository,
            &index,
            Instant::now() + budget / HISTORY_BUDGET_DIVISOR,
        );
        let (folders, runs) = folders(
            &candidates,
            top,
            Instant::now() + budget / FOLDERS_BUDGET_DIVISOR,
        );
        let likeliest = folders
            .iter()
            .map(|folder| (folder.path, names(&candidates, runs.get(folder.path))));
        let new = untracked::find(
            &index,
            repository,
            home,
            likeliest,
            last_commit,
            Instant::now() + budget / UNTRACKED_BUDGET_DIVISOR,
        );
        if tracked > MIN_PARALLEL_FILES {
            prioritize(&mut candidates, &folders);
        }
        // Some files are compared even if the time is up by now.
        let end = end.max(Instant::now() + budget / 3);
        let (mut found, compared) = compare(&candidates, top, end);
        verify(&mut found, top, kind, Instant::now() + budget / 5);
        let mut changed: Vec<ChangedFile> = found.iter().map(ChangedFile::of).collect();
        changed.extend(new.into_iter().map(|file| ChangedFile {
            path: file.path,
            written: Some(file.written),
            is_conflict: false,
        }));
        changed.extend(history.staged.into_iter().map(|file| ChangedFile {
            path: file.path,
            written: file.entry.and_then(recorded_mtime),
            is_conflict: false,
        }));
        changed.sort_by(ChangedFile::most_urgent_first);
        let mut branch: Vec<ChangedFile> = history
            .branch
            .into_iter()
            .map(|path| ChangedFile::in_index(path, &index))
            .collect();
        branch.sort_by(ChangedFile::most_urgent_first);
        let mut files: Vec<String> = Vec::new();
        for ChangedFile { path, .. } in changed.into_iter().chain(branch) {
            if files.len() < MAX_FILES && !files.contains(&path) {
                files.push(path);
            }
        }
        Some(Self {
            files,
            tracked,
            compared,
            staged_unknown: history.staged_unknown,
            branch_unknown: history.branch_unknown,
        })
    }
}

/// What git's objects say about the current work.
#[derive(Default)]
struct History<'a> {
    staged: Vec<StagedFile<'a>>,
    staged_unknown: Option<Unknown>,
    branch: Vec<String>,
    branch_unknown: Option<Unknown>,
}

impl<'a> History<'a> {
    fn read(repository: &Repository, index: &'a State, end: Instant) -> Self {
        let mut history = Self::default();
        let opened = Objects::open(repository, end);
        let (mut objects, head) =
            match opened.and_then(|objects| objects.head().map(|head| (objects, head))) {
                Ok(opened) => opened,
                Err(unknown) => {
                    history.staged_unknown = Some(unknown);
                    history.branch_unknown = Some(unknown);
                    return history;
                }
            };
        match history::staged_files(&mut objects, index, head) {
            Ok(staged) => history.staged = staged,
            Err(unknown) => history.staged_unknown = Some(unknown),
        }
        let branch = repository.branch.as_deref();
        match head.map(|head| history::branch_files(&mut objects, head, branch)) {
            Some(Ok(files)) => history.branch = files,
            Some(Err(unknown)) => history.branch_unknown = Some(unknown),
            None => {}
        }
        history
    }
}

/// A file of the result.
struct ChangedFile {
    path: String,
    /// When it was written; `None` if it was deleted.
    written: Option<SystemTime>,
    is_conflict: bool,
}

impl ChangedFile {
    fn of(difference: &Difference<'_>) -> Self {
        Self {
            path: difference.path.to_owned(),
            written: difference.written,
            is_conflict: difference.conflict,
        }
    }

    /// A file as git last wrote it.
    fn in_index(path: String, index: &State) -> Self {
        let entry = index.entry_by_path(path.as_str().into());
        Self {
            written: entry.and_then(recorded_mtime),
            path,
            is_conflict: false,
        }
    }

    /// Conflicts first, then by time with the newest first, then deleted files.
    fn most_urgent_first(&self, other: &Self) -> std::cmp::Ordering {
        (other.is_conflict, other.written)
            .cmp(&(self.is_conflict, self.written))
            .then_with(|| self.path.cmp(&other.path))
    }
}

/// When the file of an entry was written, as the index recorded it.
fn recorded_mtime(entry: &Entry) -> Option<SystemTime> {
    let time = &entry.stat.mtime;
    let since = Duration::new(u64::from(time.secs), time.nsecs.min(999_999_999));
    UNIX_EPOCH.checked_add(since)
}

/// An entry to compare, unless git itself would skip it.
fn candidate_of<'a>(entry: &'a Entry, index: &'a State) -> Option<Candidate<'a>> {
    let is_file = matches!(
        entry.mode,
        Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK
    );
    let unseen = entry
        .flags
        .intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
    let path = std::str::from_utf8(entry.path(index)).ok()?;
    (is_file && !unseen).then(|| Candidate {
        rank: u64::from(entry.stat.mtime.secs),
        path,
        folder: path.rsplit_once('/').map_or("", |(folder, _)| folder),
        entry,
    })
}

/// The index; empty if nothing was ever added.
fn index(repository: &Repository) -> Option<gix_index::File> {
    let path = repository.git_dir.join("index");
    let kind = if repository.sha256 {
        Kind::Sha256
    } else {
        Kind::Sha1
    };
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
    let entries = std::fs::read_dir(&repository.git_dir)
        .into_iter()
        .flatten()
        .flatten();
    let mut shared = entries.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("sharedindex.")
    });
    shared.any(|entry| files::check(&entry.path()).is_err())
}

/// A folder that contains tracked files, directly or in its folders.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Folder<'a> {
    /// Something changed in it after git recorded its files.
    active: bool,
    /// When it last changed, in seconds.
    written: u64,
    path: &'a str,
}

/// The ranges of each folder's files among the candidates.
type Runs<'a> = HashMap<&'a str, Vec<Range<usize>>>;

/// The folders of these files, as many as can be checked in time, most likely to hold changes
/// first.
fn folders<'a>(
    candidates: &[Candidate<'a>],
    top: &Path,
    end: Instant,
) -> (Vec<Folder<'a>>, Runs<'a>) {
    // Neighbours mostly share a folder, so the map is accessed once per run.
    let mut newest: HashMap<&str, u64> = HashMap::default();
    let mut runs = Runs::default();
    let mut start = 0;
    for run in candidates.chunk_by(|a, b| a.folder == b.folder) {
        let latest = run
            .iter()
            .map(|candidate| candidate.rank)
            .max()
            .unwrap_or_default();
        if let Some(first) = run.first() {
            let known = newest.entry(first.folder).or_default();
            *known = latest.max(*known);
            runs.entry(first.folder)
                .or_default()
                .push(start..start + run.len());
        }
        start += run.len();
    }
    // A folder that directly contains no files has no recorded time to compare with. It is checked
    // first and counts as inactive.
    let with_files: Vec<&str> = newest.keys().copied().collect();
    for mut folder in with_files {
        while let Some((above, _)) = folder.rsplit_once('/') {
            newest.entry(above).or_insert(ACTIVE_FOLDER);
            folder = above;
        }
    }
    newest.entry("").or_insert(ACTIVE_FOLDER);
    // The folders with the oldest files come last, in case time runs out.
    let mut checked: Vec<(u64, &str)> = newest
        .into_iter()
        .map(|(folder, latest)| (latest, folder))
        .collect();
    checked.sort_unstable_by(|a, b| b.cmp(a));
    let (mut folders, _) = parallel_filter_map(&checked, end, |(latest, path)| {
        let written = seconds(
            std::fs::symlink_metadata(top.join(path))
                .ok()?
                .modified()
                .ok()?,
        );
        Some(Folder {
            active: written > latest + FOLDER_MARGIN_SECS,
            written,
            path,
        })
    });
    folders.sort_unstable_by(|a, b| b.cmp(a));
    (folders, runs)
}

/// The names of a folder's tracked files.
fn names<'a>(candidates: &[Candidate<'a>], runs: Option<&Vec<Range<usize>>>) -> HashSet<&'a str> {
    let runs = runs
        .into_iter()
        .flatten()
        .filter_map(|run| candidates.get(run.clone()));
    runs.flatten()
        .map(|candidate| candidate.path.rsplit('/').next().unwrap_or_default())
        .collect()
}

/// Moves the files of active folders to the front.
fn prioritize(candidates: &mut [Candidate<'_>], folders: &[Folder<'_>]) {
    let active: HashSet<&str> = folders
        .iter()
        .filter(|folder| folder.active)
        .map(|folder| folder.path)
        .collect();
    if !active.is_empty() {
        for run in candidates.chunk_by_mut(|a, b| a.folder == b.folder) {
            if run
                .first()
                .is_some_and(|first| active.contains(first.folder))
            {
                run.iter_mut()
                    .for_each(|candidate| candidate.rank |= ACTIVE_FOLDER);
            }
        }
    }
    // The sort is stable: files of the same time stay in path order.
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.rank));
}

/// Filters and maps items in order, on a few threads, until the time is up. Returns the results and
/// how many items were checked.
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
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                break;
            };
            let batch = rest.get(..BATCH_SIZE).unwrap_or(rest);
            found.extend(batch.iter().filter_map(&check));
            checked.fetch_add(batch.len(), Ordering::Relaxed);
        }
        found
    };
    let threads = match items.len() {
        ..MIN_PARALLEL_FILES => 1,
        _ => std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_THREADS),
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

/// Compares files with their index entries until the time is up.
fn compare<'a>(
    candidates: &[Candidate<'a>],
    top: &Path,
    end: Instant,
) -> (Vec<Difference<'a>>, usize) {
    parallel_filter_map(candidates, end, |candidate| {
        let (path, entry) = (candidate.path, candidate.entry);
        let conflict = entry.stage_raw() != 0;
        let difference = |written, unverified| Difference {
            path,
            entry,
            written,
            unverified,
            conflict,
        };
        let metadata = match std::fs::symlink_metadata(top.join(path)) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(difference(None, false));
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
        (conflict || fresh || !same_size || !same_time)
            .then(|| difference(Some(written), same_size && !conflict && !fresh))
    })
}

/// Drops files whose content is unchanged: in a copied working tree every file has a new time. If
/// there are too many to read, only the newest are kept.
fn verify(found: &mut Vec<Difference<'_>>, top: &Path, kind: Kind, end: Instant) {
    found.sort_by(|a, b| (a.unverified, b.written).cmp(&(b.unverified, a.written)));
    let mut read = 0;
    found.retain(|difference| {
        if !difference.unverified {
            return true;
        }
        read += 1;
        if read > MAX_VERIFIED_FILES
            || u64::from(difference.entry.stat.size) > MAX_VERIFIED_BYTES
            || Instant::now() >= end
        {
            return false;
        }
        let path = top.join(difference.path);
        let content = if difference.entry.mode == Mode::SYMLINK {
            std::fs::read_link(path)
                .map(|target| target.to_string_lossy().into_owned().into_bytes())
        } else {
            files::read(&path, MAX_VERIFIED_BYTES)
        };
        let hash = content.ok().and_then(|content| {
            gix_object::compute_hash(kind, gix_object::Kind::Blob, &content).ok()
        });
        hash.is_some_and(|hash| hash != difference.entry.id)
    });
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
