//! Finds the new files of a working tree: those that git neither tracks nor ignores.
//!
//! Git reads every folder for this. Here the caller passes folders in order of activity, and they,
//! and new folders in them, are read until the time is up. Ignore rules come from the same files as
//! in git: `.gitignore`, `info/exclude` and the user's own file. Folders of generated files are
//! skipped in any case.

use std::collections::VecDeque;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::search::pattern::List;
use gix_ignore::search::{Ignore, pattern_matching_relative_path};
use gix_index::State;
use rustc_hash::FxHashMap as HashMap;

use crate::repository::{Repository, user_settings};
use ack_sys::files;

const MAX_FILES: usize = 8;
/// How many entries of new folders are checked. Some downloads and build folders are not ignored.
const MAX_NEW_ENTRIES: usize = 2_000;
/// How many folders are read even if the time is up.
const MIN_FOLDERS: usize = 8;
/// How many entries are read between two checks of the clock.
const ENTRIES_PER_CLOCK_CHECK: usize = 64;
const MAX_PATTERN_BYTES: u64 = 256 << 10;
/// A file that is older than the last commit or checkout by more than this is not current work.
const STALE_AFTER: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Names of folders with generated files, in lower case.
const GENERATED_FOLDERS: &str = "__pycache__ bower_components build coverage deriveddata dist \
    node_modules obj out pods site-packages target venv";
/// A file of this name marks its folder as a cache, an environment or another repository.
const MARKER_FILES: [&str; 3] = ["CACHEDIR.TAG", "pyvenv.cfg", ".git"];
/// Suffixes of backups, logs and temporary files.
const JUNK_SUFFIXES: [&str; 8] = ["~", ".bak", ".log", ".orig", ".pyc", ".rej", ".swp", ".tmp"];

/// Finds new files in the given folders, which hold tracked files, and in new folders below them,
/// until the time is up. The newest files come first. Each has its path from the top of the working
/// tree, and when it was written.
pub fn find<'a>(
    index: &State,
    repository: &Repository,
    home: Option<&Path>,
    folders: impl Iterator<Item = &'a str>,
    end: Instant,
) -> Vec<(String, SystemTime)> {
    let log = std::fs::metadata(repository.git_dir.join("logs/HEAD"));
    let last_commit = log.and_then(|metadata| metadata.modified()).ok();
    let mut search = UntrackedSearch {
        index,
        top: &repository.work_tree,
        rules: IgnoreRules::new(repository, home),
        oldest: last_commit.and_then(|last| last.checked_sub(STALE_AFTER)),
        end,
        entries: MAX_NEW_ENTRIES,
        found: Vec::new(),
    };
    for (number, folder) in folders.enumerate() {
        // On a busy machine the time may be up before anything was read.
        let is_time_up = || number >= MIN_FOLDERS && Instant::now() >= end;
        if is_time_up() {
            break;
        }
        if search.rules.is_ignored_folder(folder) {
            continue;
        }
        let mut new = VecDeque::from(search.read(folder, false));
        // Breadth-first: current work is rarely deep in a new folder.
        while let Some(below) = new.pop_front()
            && search.entries > 0
            && !is_time_up()
        {
            new.extend(search.read(&below, true));
        }
    }
    let mut found = search.found;
    found.sort_by(|(a, written_a), (b, written_b)| written_b.cmp(written_a).then_with(|| a.cmp(b)));
    found.truncate(MAX_FILES);
    found
}

struct UntrackedSearch<'a> {
    index: &'a State,
    top: &'a Path,
    rules: IgnoreRules<'a>,
    oldest: Option<SystemTime>,
    end: Instant,
    entries: usize,
    found: Vec<(String, SystemTime)>,
}

impl UntrackedSearch<'_> {
    /// Collects new files, and returns new folders; none if a file marks this new folder.
    fn read(&mut self, folder: &str, is_new: bool) -> Vec<String> {
        let (known, mut folders) = (self.found.len(), Vec::new());
        let entries = std::fs::read_dir(self.top.join(folder));
        for (number, entry) in entries.into_iter().flatten().flatten().enumerate() {
            let is_clock_check = number % ENTRIES_PER_CLOCK_CHECK == ENTRIES_PER_CLOCK_CHECK - 1;
            if is_clock_check && Instant::now() >= self.end || is_new && self.entries == 0 {
                break;
            }
            self.entries -= usize::from(is_new);
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_new && MARKER_FILES.contains(&name) {
                self.found.truncate(known);
                return Vec::new();
            }
            if name.starts_with('.') {
                continue;
            }
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && self.is_new_folder(name, &path) => folders.push(path),
                Ok(kind) if kind.is_file() => self.add_file(folder, &entry, path),
                _ => {}
            }
        }
        folders
    }

    fn is_new_folder(&mut self, name: &str, path: &str) -> bool {
        let name = name.to_lowercase();
        !GENERATED_FOLDERS.split(' ').any(|known| known == name)
            && !self.index.path_is_directory(path.into())
            && !self.rules.is_ignored_folder(path)
    }

    fn add_file(&mut self, folder: &str, entry: &DirEntry, path: String) {
        let is_tracked = self.index.entry_index_by_path(path.as_str().into()).is_ok();
        let is_junk = JUNK_SUFFIXES.iter().any(|end| path.ends_with(end));
        if is_tracked || is_junk || self.rules.ignores(folder, &path, false) {
            return;
        }
        let written = entry.metadata().and_then(|metadata| metadata.modified());
        if let Ok(written) = written
            && self.oldest.is_none_or(|oldest| written >= oldest)
        {
            self.found.push((path, written));
        }
    }
}

struct IgnoreRules<'a> {
    top: &'a Path,
    case: Case,
    /// The rules of the repository and its user, highest precedence first.
    global: Vec<List<Ignore>>,
    folders: HashMap<String, FolderRules>,
}

struct FolderRules {
    patterns: Option<List<Ignore>>,
    ignored: bool,
}

impl<'a> IgnoreRules<'a> {
    fn new(repository: &'a Repository, home: Option<&Path>) -> Self {
        let exclude = repository.common_dir.join("info/exclude");
        let global = [Some(exclude), excludes_file(repository, home)];
        Self {
            top: &repository.work_tree,
            case: if repository.ignore_case { Case::Fold } else { Case::Sensitive },
            global: global.into_iter().flatten().filter_map(|path| patterns(&path, None)).collect(),
            folders: HashMap::default(),
        }
    }

    fn is_ignored_folder(&mut self, folder: &str) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return known.ignored;
        }
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        let ignored = !folder.is_empty()
            && (self.is_ignored_folder(above) || self.ignores(above, folder, true));
        let file = self.top.join(folder).join(".gitignore");
        // The rules inside an ignored folder do not count.
        let patterns = if ignored { None } else { patterns(&file, Some(self.top)) };
        self.folders.insert(folder.to_owned(), FolderRules { patterns, ignored });
        ignored
    }

    /// The nearest file with a matching rule decides. The folder itself is not ignored.
    fn ignores(&mut self, folder: &str, path: &str, is_folder: bool) -> bool {
        // This reads the rules of all parent folders.
        self.is_ignored_folder(folder);
        let name = path.rfind('/').map(|slash| slash + 1);
        let decision = |list: &List<Ignore>| {
            let (path, is_folder) = (path.into(), Some(is_folder));
            let found = pattern_matching_relative_path(list, path, name, is_folder, self.case)?;
            Some(!found.pattern.is_negative())
        };
        let ends = std::iter::successors(Some(folder), |folder| match folder.rsplit_once('/') {
            Some((above, _)) => Some(above),
            None => (!folder.is_empty()).then_some(""),
        });
        let nearest = ends.filter_map(|folder| self.folders.get(folder)?.patterns.as_ref());
        nearest.chain(&self.global).find_map(decision).unwrap_or(false)
    }
}

/// The rules of an ignore file. Those of a `.gitignore` apply to its folder and below.
fn patterns(file: &Path, top: Option<&Path>) -> Option<List<Ignore>> {
    let metadata = std::fs::symlink_metadata(file).ok()?;
    // Like git, this skips a `.gitignore` that is a symbolic link.
    if top.is_some() && !metadata.is_file() {
        return None;
    }
    let content = files::read(file, MAX_PATTERN_BYTES).ok()?;
    List::from_bytes(&content, file.to_owned(), top, Ignore::default()).ok()
}

/// The user's ignore file: `core.excludesFile`, or git's default.
fn excludes_file(repository: &Repository, home: Option<&Path>) -> Option<PathBuf> {
    let path = repository.excludes_file.clone().or_else(|| {
        let path = user_settings(home).find_map(|config| config.string("core.excludesFile"));
        path.map(|path| PathBuf::from(path.to_string()))
    });
    match path {
        Some(path) => Some(files::expand_home(&path, home)),
        None => home.map(|home| home.join(".config/git/ignore")),
    }
}
