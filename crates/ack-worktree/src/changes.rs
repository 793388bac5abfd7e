//! Which files of a working tree differ from what was committed, read from files; no git process is started.
//!
//! The index notes the size and the time of change of every file that git tracks. As git's own fast path does, these are
//! compared with the files, and only where the time alone differs is the content checked. One comparison costs microseconds,
//! so fifty thousand of them take longer than a session's start may: the caller names the time there is, and the likeliest
//! files come first: those in folders where something was made, renamed or removed since, then those that git last wrote
//! down last. Whatever the time allows is answered, and how much that was is told.
//!
//! Files that are staged equal the index. They are known by the index's tree cache, in which git marks a folder as soon as
//! something in it is staged, and by being younger than the last commit or checkout. Files that git does not know yet are
//! found by reading folders, in the same order and for a part of the time ([`crate::untracked`]).

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gix_index::entry::{Flags, Mode};
use gix_index::extension::Tree;
use gix_index::hash::Kind;
use gix_index::{Entry, State};
use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

use crate::repository::Repository;
use crate::untracked;
use ack_sys::files;

/// Largest index that is read, in bytes: some two hundred thousand files.
const MAX_INDEX_BYTES: u64 = 24 << 20;
/// Most files that are told.
const MAX_FILES: usize = 24;
/// Files that one thread takes at a time.
const BATCH_SIZE: usize = 64;
/// With fewer files than this, one thread compares them sooner than several start.
const MIN_PARALLEL_FILES: usize = 512;
/// Most threads.
const MAX_THREADS: usize = 8;
/// Most files whose content is checked, and the largest of them in bytes.
const MAX_VERIFIED_FILES: usize = 32;
const MAX_VERIFIED_BYTES: u64 = 256 << 10;
/// Asking folders when something happened in them may take this part of the time.
const FOLDERS_BUDGET_DIVISOR: u32 = 4;
/// Looking for new files may take this part of it.
const UNTRACKED_BUDGET_DIVISOR: u32 = 5;
/// A folder is younger than its files by this many seconds where something happened in it besides writing them.
const FOLDER_MARGIN_SECS: u64 = 2;

/// The files of a working tree that differ from what was committed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Their paths from the top of the working tree, with `/`, new files among them: conflicts first, then what was written
    /// last, then what is gone.
    pub files: Vec<String>,
    /// How many files git tracks here.
    pub tracked: usize,
    /// How many of these were compared.
    pub compared: usize,
}

/// A tracked file that waits to be compared.
struct Candidate<'a> {
    /// What is larger comes first: the time that git recorded, with [`ACTIVE_FOLDER`].
    rank: u64,
    path: &'a str,
    folder: &'a str,
    entry: &'a Entry,
}

/// Marks the files of a folder in which something happened since; larger than any time that an index notes.
const ACTIVE_FOLDER: u64 = 1 << 40;

/// How a file differs.
struct Difference<'a> {
    path: &'a str,
    entry: &'a Entry,
    /// When it was written; `None` where it is gone.
    written: Option<SystemTime>,
    /// Its size is the same, so that it may have been written without a change.
    unverified: bool,
    conflict: bool,
}

impl Changes {
    /// Compares the files of a repository's working tree with its index, for `budget` and at most half as long again: a third
    /// of it is for comparing however long the index took, and a fifth for reading what may have been written without a
    /// change. The user's settings say in `home` what is ignored. Where the index cannot be read, nothing differs.
    pub fn read(repository: &Repository, home: Option<&Path>, budget: Duration) -> Self {
        let end = Instant::now() + budget;
        Self::read_until(repository, home, end, budget).unwrap_or_default()
    }

    fn read_until(repository: &Repository, home: Option<&Path>, end: Instant, budget: Duration) -> Option<Self> {
        let top = repository.work_tree.as_path();
        if top == repository.git_dir {
            return None;
        }
        let index = index(repository)?;
        let kind = index.object_hash();
        let mut candidates: Vec<Candidate<'_>> = index.entries().iter().filter_map(|entry| candidate(entry, &index)).collect();
        let tracked = candidates.len();
        let log = std::fs::metadata(repository.git_dir.join("logs/HEAD"));
        let last_commit = log.and_then(|metadata| metadata.modified()).ok();
        let mut found: Vec<Difference<'_>> = staged(&candidates, &index, last_commit);
        let (folders, runs) = folders(&candidates, top, Instant::now() + budget / FOLDERS_BUDGET_DIVISOR);
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
        // However long it took to get here, something is compared.
        let end = end.max(Instant::now() + budget / 3);
        let (differences, compared) = compare(&candidates, top, end);
        found.extend(differences);
        verify(&mut found, top, kind, Instant::now() + budget / 5);
        let mut differences: Vec<(bool, Option<SystemTime>, String)> = found
            .into_iter()
            .map(|difference| (difference.conflict, difference.written, difference.path.to_owned()))
            .chain(new.into_iter().map(|file| (false, Some(file.written), file.path)))
            .collect();
        differences.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.cmp(&b.2)));
        let mut files: Vec<String> = Vec::new();
        for (.., path) in differences {
            if files.len() < MAX_FILES && !files.contains(&path) {
                files.push(path);
            }
        }
        Some(Self { files, tracked, compared })
    }
}

/// A file that is there in the working tree, unless git itself would not look at it.
fn candidate<'a>(entry: &'a Entry, index: &'a State) -> Option<Candidate<'a>> {
    let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
    let unseen = entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
    let path = std::str::from_utf8(entry.path(index)).ok()?;
    (is_file && !unseen).then(|| Candidate {
        rank: u64::from(entry.stat.mtime.secs),
        path,
        folder: path.rsplit_once('/').map_or("", |(folder, _)| folder),
        entry,
    })
}

/// What git recorded of the working tree; nothing yet in a repository where nothing was ever added.
fn index(repository: &Repository) -> Option<gix_index::File> {
    let path = repository.git_dir.join("index");
    let kind = if repository.sha256 { Kind::Sha256 } else { Kind::Sha1 };
    match std::fs::metadata(&path) {
        // Its checksum would take longer than reading it; what is broken in a way that matters cannot be decoded.
        Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_INDEX_BYTES && !is_shared_elsewhere(repository) => {
            gix_index::File::at(path, kind, true, gix_index::decode::Options::default()).ok()
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(gix_index::File::from_state(State::new(kind), path)),
        _ => None,
    }
}

/// Whether a part of a split index, which is read with it, is no file.
fn is_shared_elsewhere(repository: &Repository) -> bool {
    let entries = std::fs::read_dir(&repository.git_dir).into_iter().flatten().flatten();
    let mut shared = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("sharedindex."));
    shared.any(|entry| files::check(&entry.path()).is_err())
}

/// A folder that holds files which git tracks, or folders with such files.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Folder<'a> {
    /// Something happened in it since git looked at its files.
    active: bool,
    /// When something last happened in it, in seconds.
    written: u64,
    path: &'a str,
}

/// Where the files of each folder stand among the candidates.
type Runs<'a> = HashMap<&'a str, Vec<Range<usize>>>;

/// The folders of these files, as many as can be checked in the time; the likeliest to hold changes come first.
fn folders<'a>(candidates: &[Candidate<'a>], top: &Path, end: Instant) -> (Vec<Folder<'a>>, Runs<'a>) {
    // Neighbours mostly share a folder: the map is checked once a run of them.
    let mut newest: HashMap<&str, u64> = HashMap::default();
    let mut runs = Runs::default();
    let mut start = 0;
    for run in candidates.chunk_by(|a, b| a.folder == b.folder) {
        let latest = run.iter().map(|candidate| candidate.rank).max().unwrap_or_default();
        if let Some(first) = run.first() {
            let known = newest.entry(first.folder).or_default();
            *known = latest.max(*known);
            runs.entry(first.folder).or_default().push(start..start + run.len());
        }
        start += run.len();
    }
    // A folder without files of its own has no time to be compared with: it is checked first, and counts as quiet.
    let own: Vec<&str> = newest.keys().copied().collect();
    for mut folder in own {
        while let Some((above, _)) = folder.rsplit_once('/') {
            newest.entry(above).or_insert(ACTIVE_FOLDER);
            folder = above;
        }
    }
    newest.entry("").or_insert(ACTIVE_FOLDER);
    // Where time runs out, it is the folders with the oldest files that were not checked.
    let mut checked: Vec<(u64, &str)> = newest.into_iter().map(|(folder, latest)| (latest, folder)).collect();
    checked.sort_unstable_by(|a, b| b.cmp(a));
    let (mut folders, _) = parallel_filter_map(&checked, end, |(latest, path)| {
        let written = seconds(std::fs::symlink_metadata(top.join(path)).ok()?.modified().ok()?);
        Some(Folder {
            active: written > latest + FOLDER_MARGIN_SECS,
            written,
            path,
        })
    });
    folders.sort_unstable_by(|a, b| b.cmp(a));
    (folders, runs)
}

/// The names of a folder's files.
fn names<'a>(candidates: &[Candidate<'a>], runs: Option<&Vec<Range<usize>>>) -> HashSet<&'a str> {
    let runs = runs.into_iter().flatten().filter_map(|run| candidates.get(run.clone()));
    runs.flatten()
        .map(|candidate| candidate.path.rsplit('/').next().unwrap_or_default())
        .collect()
}

/// Puts the files of folders first in which something happened since git looked.
fn prioritize(candidates: &mut [Candidate<'_>], folders: &[Folder<'_>]) {
    let active: HashSet<&str> = folders.iter().filter(|folder| folder.active).map(|folder| folder.path).collect();
    if !active.is_empty() {
        for run in candidates.chunk_by_mut(|a, b| a.folder == b.folder) {
            if run.first().is_some_and(|first| active.contains(first.folder)) {
                run.iter_mut().for_each(|candidate| candidate.rank |= ACTIVE_FOLDER);
            }
        }
    }
    // Files of one time stay in the order of the index, that of their paths.
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.rank));
}

/// Asks something of each item, in order, with a few threads, until the time is up. Returns what was found and how many
/// items were checked.
fn parallel_filter_map<T: Sync, F: Send>(items: &[T], end: Instant, check: impl Fn(&T) -> Option<F> + Sync) -> (Vec<F>, usize) {
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

/// Compares files with their entries until the time is up.
fn compare<'a>(candidates: &[Candidate<'a>], top: &Path, end: Instant) -> (Vec<Difference<'a>>, usize) {
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(difference(None, false)),
            Err(_) => return None,
        };
        let written = metadata.modified().ok()?;
        let recorded = &entry.stat;
        // The index holds the lower half of both.
        let same_size = u64::from(recorded.size) == metadata.len() & u64::from(u32::MAX);
        // Some programs write no nanoseconds.
        let since = written.duration_since(UNIX_EPOCH).unwrap_or_default();
        let same_time = u64::from(recorded.mtime.secs) == since.as_secs() & u64::from(u32::MAX)
            && (recorded.mtime.nsecs == 0 || recorded.mtime.nsecs == since.subsec_nanos());
        let fresh = entry.flags.contains(Flags::INTENT_TO_ADD);
        (conflict || fresh || !same_size || !same_time).then(|| difference(Some(written), same_size && !conflict && !fresh))
    })
}

/// Drops files that were written without a change: a copied working tree has another time in every file. Where there are
/// more of them than can be read, the newest are.
fn verify(found: &mut Vec<Difference<'_>>, top: &Path, kind: Kind, end: Instant) {
    found.sort_by(|a, b| (a.unverified, b.written).cmp(&(b.unverified, a.written)));
    let mut read = 0;
    found.retain(|difference| {
        if !difference.unverified {
            return true;
        }
        read += 1;
        if read > MAX_VERIFIED_FILES || u64::from(difference.entry.stat.size) > MAX_VERIFIED_BYTES || Instant::now() >= end {
            return false;
        }
        let path = top.join(difference.path);
        let content = if difference.entry.mode == Mode::SYMLINK {
            std::fs::read_link(path).map(|target| target.to_string_lossy().into_owned().into_bytes())
        } else {
            files::read(&path, MAX_VERIFIED_BYTES)
        };
        let hash = content
            .ok()
            .and_then(|content| gix_object::compute_hash(kind, gix_object::Kind::Blob, &content).ok());
        hash.is_some_and(|hash| hash != difference.entry.id)
    });
}

/// Files that are staged: in a folder that the index's tree cache marks, and written since the last commit or checkout.
fn staged<'a>(candidates: &[Candidate<'a>], index: &State, last_commit: Option<SystemTime>) -> Vec<Difference<'a>> {
    let (Some(tree), Some(last)) = (index.tree().filter(|tree| tree.num_entries.is_none()), last_commit) else {
        return Vec::new();
    };
    let since = last.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = (since.as_secs(), since.subsec_nanos());
    let recorded = |entry: &Entry| (u64::from(entry.stat.mtime.secs), entry.stat.mtime.nsecs.min(999_999_999));
    let recent = candidates.iter().filter(|candidate| recorded(candidate.entry) > since);
    recent
        .filter(|candidate| is_marked(tree, candidate.folder))
        .map(|candidate| Difference {
            path: candidate.path,
            entry: candidate.entry,
            written: UNIX_EPOCH.checked_add(Duration::new(recorded(candidate.entry).0, recorded(candidate.entry).1)),
            unverified: false,
            conflict: false,
        })
        .collect()
}

/// Whether something directly in a folder was staged, as the tree cache knows it. A folder that it does not hold is new.
fn is_marked(root: &Tree, folder: &str) -> bool {
    let mut tree = root;
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        match tree.children.iter().find(|child| child.name.as_slice() == part.as_bytes()) {
            Some(child) => tree = child,
            None => break,
        }
        // What lies below a folder that is as it was is so too.
        if tree.num_entries.is_some() {
            return false;
        }
    }
    tree.num_entries.is_none()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
