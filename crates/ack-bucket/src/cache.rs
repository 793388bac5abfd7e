//! What was fetched from a bucket, in a folder that all processes of a user share.
//!
//! ```text
//! state.json            what is known of the bucket, and when it was asked last
//! current               a link to the version that is served
//! versions/12-9f3a1c22  a version: version.json, memory.db, lance/, links.jsonl; with `damaged` if
//!                       a file of it was found damaged. Its replacement is 12-9f3a1c22.2
//! files/<sha256>        files that were fetched; those of versions are hard links to them
//! work-…                a version that is being made
//! .lock                 held by the process that fetches or publishes
//! ```
//!
//! A version is complete before it gets its name, and never changes afterwards. Lance never reuses
//! a file name, so nothing has to be invalidated. Everything here can be deleted at any time: it is
//! fetched again.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ack_sys::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::BucketError;
use crate::address::Address;
use crate::format::{self, Head, LINKS, Version};

/// How long a version is kept after it is no longer current, because a reader may still use it.
const OLD_VERSION_RETENTION: Duration = Duration::from_mins(10);
const MAX_STATE_BYTES: u64 = 1 << 20;
/// How many bytes a version may always take.
const DEFAULT_BYTES: u64 = 2 << 30;
/// It may take more if that is at most one part in this many of the free space.
const FREE_SPACE_SHARE: u64 = 4;
const VERSION_FILE: &str = "version.json";
/// A folder in which a version is made. It exists as long as the lock is held.
const WORK_PREFIX: &str = "work-";
/// How many times a damaged copy of a version is replaced within [`OLD_VERSION_RETENTION`].
const MAX_REPLACEMENTS: usize = 4;
/// The file that marks the folder of a version as damaged.
const DAMAGED_FILE: &str = "damaged";

#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// The bucket, for messages.
    address: String,
}

/// What is known about a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The bucket, for people who inspect the folder.
    pub address: String,
    /// The last `HEAD.json` that was read.
    pub head: Option<Head>,
    /// The entity tag of `head`.
    pub tag: Option<String>,
    /// When the bucket last answered, in milliseconds since 1970.
    pub asked_at: i64,
    /// Whether `asked_at` is only the time when a wrong clock was noticed.
    pub is_time_unknown: bool,
    /// When the bucket last failed to answer.
    pub failed_at: i64,
    /// How many times in a row it failed.
    pub failures: u32,
    pub problem: Option<String>,
    /// Whether retrying is pointless until somebody fixes the cause, such as a full disk.
    pub is_lasting: bool,
    /// Whether the version of `head` cannot be kept on this machine, and memories were withdrawn
    /// since the local version.
    pub is_withheld: bool,
}

impl Cache {
    /// The folder of a bucket, in the folder of a scope. Nothing is created yet.
    pub fn new(scope: &Path, address: &Address) -> Self {
        Self {
            folder: scope.join("remote").join(address.folder_name()),
            address: address.to_string(),
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The link to the version that is served.
    pub fn current(&self) -> PathBuf {
        self.folder.join("current")
    }

    /// The folder of the version that is served.
    pub fn installed(&self) -> Option<PathBuf> {
        let folder = self.folder.join(fs::read_link(self.current()).ok()?);
        folder.join(VERSION_FILE).is_file().then_some(folder)
    }

    /// How many bytes a version may take: it depends on the free space.
    pub fn allowed_bytes(&self) -> u64 {
        let free = ack_sys::disk::free_bytes(&self.folder).unwrap_or_default();
        DEFAULT_BYTES.max(free / FREE_SPACE_SHARE)
    }

    pub fn version(&self) -> Option<Version> {
        read_version(&self.installed()?)
    }

    /// Keeps what a newer version said next to the installed one, so that this machine still knows
    /// it if nothing is published now. The lock must be held.
    pub fn remember(
        &self,
        folder: &Path,
        version: &Version,
        known: &Version,
    ) -> Result<(), BucketError> {
        let mut both = version.clone();
        both.version = both.version.max(known.version);
        let marks = known.held_back.iter().filter(|mark| !version.holds_back(&mark.id));
        both.held_back.extend(marks.cloned());
        both.restored.extend(known.restored.iter().cloned());
        replace(&folder.join(VERSION_FILE), &serde_json::to_vec(&both).unwrap_or_default())
    }

    pub fn not_successor(&self, known: &Version, version: u64, problem: &str) -> BucketError {
        BucketError::NotSuccessor {
            address: self.address.clone(),
            version,
            known: known.version,
            problem: problem.to_owned(),
            path: self.folder.clone(),
        }
    }

    /// What is known about the bucket. If the file is missing or damaged, only the time when the
    /// served version was fetched is known.
    pub fn state(&self) -> State {
        let text = files::read_text(&self.folder.join("state.json"), MAX_STATE_BYTES);
        if let Some(state) = text.ok().and_then(|text| serde_json::from_str(&text).ok()) {
            return state;
        }
        let fetched = self.installed().and_then(|folder| {
            let modified = fs::metadata(folder.join(VERSION_FILE)).ok()?.modified().ok()?;
            Some(jiff::Timestamp::try_from(modified).ok()?.as_millisecond())
        });
        State {
            asked_at: fetched.unwrap_or_default(),
            is_time_unknown: fetched.is_some(),
            ..State::default()
        }
    }

    pub fn save_state(&self, state: &State) -> Result<(), BucketError> {
        make_folder(&self.folder)?;
        let text = serde_json::to_vec_pretty(state).unwrap_or_default();
        replace(&self.folder.join("state.json"), &text)
    }

    /// Creates the folder and takes its lock, which ends with the process. `None` if another
    /// process holds it.
    pub fn lock(&self) -> Result<Option<File>, BucketError> {
        make_folder(&self.folder)?;
        let path = self.folder.join(".lock");
        files::try_lock(&path).map_err(BucketError::io("lock", &path))
    }

    /// Waits for the lock as long as it `is_needed`. `None` if it is not.
    pub fn wait_for_lock(
        &self,
        timeout: Duration,
        is_needed: impl Fn() -> bool,
    ) -> Result<Option<File>, BucketError> {
        let began = Instant::now();
        while is_needed() {
            if let Some(lock) = self.lock()? {
                return Ok(Some(lock));
            }
            if began.elapsed() > timeout {
                return Err(BucketError::Busy { path: self.folder.clone() });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(None)
    }

    pub fn file(&self, sha256: &str) -> PathBuf {
        self.folder.join("files").join(sha256)
    }

    /// Creates an empty folder in which a version is made. The lock must be held.
    pub fn temporary_folder(&self) -> Result<tempfile::TempDir, BucketError> {
        make_folder(&self.folder)?;
        tempfile::Builder::new()
            .prefix(WORK_PREFIX)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .tempdir_in(&self.folder)
            .map_err(BucketError::io("make a folder in", &self.folder))
    }

    /// Makes a folder the version that is served. The lock must be held.
    pub fn install(
        &self,
        work: tempfile::TempDir,
        name: &str,
        version: &Version,
    ) -> Result<PathBuf, BucketError> {
        replace(&work.path().join(VERSION_FILE), &serde_json::to_vec(version).unwrap_or_default())?;
        let versions = self.folder.join("versions");
        make_folder(&versions)?;
        // Readers may use a damaged version until they have its replacement, and keep its files
        // open under their names.
        let mut target = versions.join(name);
        let mut number = 2;
        while target.symlink_metadata().is_ok() {
            target = versions.join(format!("{name}.{number}"));
            number += 1;
        }
        fs::rename(work.path(), &target).map_err(BucketError::io("rename", &target))?;
        // The folder was renamed.
        let _ = work.keep();
        self.set_current(&target)?;
        Ok(target)
    }

    /// Serves a version that is already installed.
    pub fn set_current(&self, version: &Path) -> Result<(), BucketError> {
        let link = self.folder.join(format!(".current-{}", std::process::id()));
        let _ = fs::remove_file(&link);
        let target = Path::new("versions").join(version.file_name().unwrap_or_default());
        std::os::unix::fs::symlink(&target, &link).map_err(BucketError::io("make", &link))?;
        fs::rename(&link, self.current()).map_err(BucketError::io("replace", &self.current()))
    }

    /// The folder of a version that was fetched earlier and is complete.
    pub fn fetched_version(&self, name: &str) -> Option<PathBuf> {
        let versions = entries(&self.folder.join("versions"));
        versions.into_iter().find(|folder| is_of(folder, name) && is_whole(folder))
    }

    /// Compares the contents of a version's files with what was published, and removes those that
    /// differ, so that they are fetched again. Returns whether there are any. The lock must be
    /// held.
    pub fn remove_damaged(&self, folder: Option<&Path>, version: &Version) -> bool {
        let mut found = false;
        for file in &version.files {
            let is_intact =
                |path: &Path| file_digest(path).is_ok_and(|digest| digest == file.sha256);
            let kept = self.file(&file.sha256);
            let is_kept_intact = !kept.exists() || is_intact(&kept);
            if !is_kept_intact {
                let _ = fs::remove_file(&kept);
            }
            // Both are the same file, except where the file system has no hard links.
            let in_version = folder.is_none_or(|folder| is_intact(&file_path(folder, &file.path)));
            found |= !is_kept_intact || !in_version;
        }
        found
    }

    /// Removes what nothing needs any more, if there are other versions than the one that is
    /// served.
    pub fn clean_if_old(&self) {
        if entries(&self.folder.join("versions")).len() > 1
            && let Ok(Some(_lock)) = self.lock()
        {
            self.clean(OLD_VERSION_RETENTION);
        }
    }

    /// How long other versions are kept once a version is served. If memories were withdrawn, their
    /// texts must not stay on this machine.
    pub fn retention(before: Option<&Version>, version: &Version) -> Duration {
        let may_withdraw = version.withdrawn > 0
            || version.restores.is_some()
            || !version.held_back.is_empty()
            || before.is_some_and(|before| before.version + 1 != version.version);
        if may_withdraw { Duration::ZERO } else { OLD_VERSION_RETENTION }
    }

    /// Removes what nothing needs any more: versions that were replaced some time ago, files that
    /// belong to no version, and what a killed process left. The lock must be held. `retention`:
    /// how long a version is kept after it was made, if it is not served.
    pub fn clean(&self, retention: Duration) {
        let current = self.installed();
        let old = |path: &Path| age(path).is_some_and(|age| age >= retention);
        for entry in entries(&self.folder.join("versions")) {
            if Some(&entry) != current.as_ref() && old(&entry) {
                let _ = fs::remove_dir_all(entry);
            }
        }
        for entry in entries(&self.folder) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(WORK_PREFIX) && old(&entry) {
                let _ = fs::remove_dir_all(entry);
            }
        }
        for entry in entries(&self.folder.join("files")) {
            if fs::metadata(&entry).is_ok_and(|it| it.nlink() < 2) && old(&entry) {
                let _ = fs::remove_file(entry);
            }
        }
    }
}

/// A name from the number of a version and a random part, so that no two publishers use the same.
pub fn version_name(head: &Head) -> String {
    let name = Path::new(&head.log).file_stem().and_then(|stem| stem.to_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let safe = name.filter(|it| !it.is_empty() && it.len() < 80 && it.chars().all(plain));
    safe.map_or_else(|| head.version.to_string(), str::to_owned)
}

pub fn read_version(folder: &Path) -> Option<Version> {
    let text = ack_sys::files::read_text(&folder.join(VERSION_FILE), 64 << 20).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether a folder contains the version of this name.
pub fn is_of(folder: &Path, name: &str) -> bool {
    folder.file_stem() == Some(name.as_ref())
}

/// Whether the files of a version exist, have the right length, and none was found damaged.
pub fn is_whole(folder: &Path) -> bool {
    let fits = |file: &format::FileEntry| {
        let metadata = fs::metadata(file_path(folder, &file.path));
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.bytes)
    };
    read_version(folder).is_some_and(|version| version.files.iter().all(fits))
        && !is_damaged(folder)
        && folder.join("memory.db").is_file()
}

/// Marks the folder of a version as damaged. It is served until it is replaced, because what can
/// still be read of it is correct.
pub fn mark_damaged(folder: &Path) {
    let _ = fs::write(folder.join(DAMAGED_FILE), "");
}

pub fn is_damaged(folder: &Path) -> bool {
    folder.join(DAMAGED_FILE).exists()
}

/// Whether damaged copies of a version were replaced so often in a short time that another
/// replacement would not help.
pub fn is_replaced_often(folder: &Path) -> bool {
    let is_replacement =
        |copy: &PathBuf| copy.extension().is_some() && copy.file_stem() == folder.file_stem();
    let is_new = |copy: &PathBuf| {
        age(&copy.join(VERSION_FILE)).is_some_and(|age| age < OLD_VERSION_RETENTION)
    };
    let copies = folder.parent().map(entries).unwrap_or_default().into_iter();
    copies.filter(is_replacement).filter(is_new).count() >= MAX_REPLACEMENTS
}

pub fn file_path(folder: &Path, path: &str) -> PathBuf {
    if path == LINKS { folder.join(path) } else { folder.join("lance").join(path) }
}

pub fn file_digest(path: &Path) -> std::io::Result<String> {
    let mut file = ack_sys::files::open(path)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 18];
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            return Ok(format::hex(&hasher.finalize()));
        }
        hasher.update(block.get(..read).unwrap_or_default());
    }
}

/// Creates a folder and its missing parents, for its owner only.
pub(crate) fn make_folder(folder: &Path) -> Result<(), BucketError> {
    files::make_private(folder).map_err(BucketError::io("make", folder))
}

/// Creates a hard link, or a copy if the file system does not support links.
pub(crate) fn link(from: &Path, to: &Path) -> Result<(), BucketError> {
    if let Some(folder) = to.parent() {
        make_folder(folder)?;
    }
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).map(drop).map_err(BucketError::io("copy", from))
}

pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), BucketError> {
    let failed = BucketError::io("write", path);
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(&failed)?;
    file.write_all(bytes).map_err(&failed)?;
    file.persist(path).map_err(|error| failed(error.error)).map(drop)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// How long ago a file was written.
fn age(path: &Path) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Some(modified.elapsed().unwrap_or_default())
}
