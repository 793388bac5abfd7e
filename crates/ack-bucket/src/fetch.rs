//! Fetches a version: several files at once, each checked against its digest. What has arrived of
//! a file is kept if the process ends, and the next one continues there.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::BucketError;
use crate::address::Address;
use crate::cache::{self, Cache};
use crate::client::Client;
use crate::format::{FORMAT, FileEntry, Head, Version, sha256};
use crate::mirror;

const MAX_CONCURRENT_FILES: usize = 6;
/// The size of a version as a multiple of its files: the records are stored a second time.
const RECORDS_SIZE_FACTOR: u64 = 3;

/// How many bytes of records one byte of a version's files may become. Notes compress to a quarter
/// or less of their size, hardly to a hundredth.
const MAX_EXPANSION: u64 = 100;
/// What the records of a small version may take all the same, in bytes.
const MIN_EXPANDED_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub fetched: u64,
    /// Bytes of the whole version.
    pub total: u64,
}

pub fn fetch_version(client: &Client, head: &Head) -> Result<Version, BucketError> {
    let damaged =
        |what: &str| Err(BucketError::damaged(client.address(), format!("`{}` {what}", head.log)));
    let bytes = client.get(&head.log)?;
    if sha256(&bytes) != head.sha256 {
        return damaged("is not what was published");
    }
    let version = parse_version(client, &bytes)?;
    if version.version != head.version {
        return damaged("is of another version");
    }
    Ok(version)
}

pub fn parse_version(client: &Client, bytes: &[u8]) -> Result<Version, BucketError> {
    let version = parse(client, "a version", bytes, |version: &Version| version.format)?;
    match version.problem() {
        Some(problem) => Err(BucketError::damaged(client.address(), problem)),
        None => Ok(version),
    }
}

pub fn parse_head(client: &Client, bytes: &[u8]) -> Result<Head, BucketError> {
    parse(client, "HEAD.json", bytes, |head: &Head| head.format)
}

fn parse<T: DeserializeOwned>(
    client: &Client,
    name: &str,
    bytes: &[u8],
    format: fn(&T) -> u32,
) -> Result<T, BucketError> {
    let parsed = serde_json::from_slice(bytes).map_err(|error| {
        BucketError::damaged(client.address(), format!("{name} cannot be read: {error}"))
    })?;
    match format(&parsed) {
        FORMAT => Ok(parsed),
        found => {
            let address = client.address().to_string();
            Err(BucketError::OtherFormat { address, found, known: FORMAT })
        }
    }
}

/// Fetches a version and makes it the one that is served. The lock of the cache must be held.
pub fn install(
    client: &Client,
    cache: &Cache,
    head: &Head,
    version: &Version,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, BucketError> {
    let name = cache::version_name(head);
    if let Some(folder) = cache.fetched_version(&name) {
        cache.set_current(&folder)?;
        return Ok(folder);
    }
    let allowed = cache.allowed_bytes();
    let needed = version.bytes().saturating_mul(RECORDS_SIZE_FACTOR);
    if needed > allowed {
        return Err(BucketError::TooLarge { version: version.version, needed, allowed });
    }
    let retention = Cache::retention(cache.version().as_ref(), version);
    fetch(client, cache, version, progress)?;
    let address = client.address();
    let folder = match assemble(address, cache, &name, version, allowed) {
        // Files that an earlier version already had were not checked again.
        Err(_) if cache.remove_damaged(None, version) => {
            fetch(client, cache, version, progress)?;
            assemble(address, cache, &name, version, allowed)?
        }
        assembled => assembled?,
    };
    cache.clean(retention);
    Ok(folder)
}

/// Builds a version from files that are already here, and serves it. The lock of the cache must be
/// held. `allowed`: how many bytes it may take on this machine.
pub fn assemble(
    address: &Address,
    cache: &Cache,
    name: &str,
    version: &Version,
    allowed: u64,
) -> Result<PathBuf, BucketError> {
    let work = cache.temporary_folder()?;
    link_files(cache, version, work.path())?;
    let before = cache.installed().filter(|before| !cache::is_damaged(before));
    let limit = allowed.saturating_sub(version.bytes());
    let limit = limit.min(version.bytes().saturating_mul(MAX_EXPANSION).max(MIN_EXPANDED_BYTES));
    mirror::update(address, before.as_deref(), work.path(), limit)?;
    cache.install(work, name, version)
}

/// Links the files of a version to a folder. The lock of the cache must be held.
pub fn link_files(cache: &Cache, version: &Version, folder: &Path) -> Result<(), BucketError> {
    for file in &version.files {
        cache::link(&cache.file(&file.sha256), &cache::file_path(folder, &file.path))?;
    }
    mirror::tag_version(folder, version)
}

/// Fetches the missing files of a version. The lock of the cache must be held.
pub fn fetch(
    client: &Client,
    cache: &Cache,
    version: &Version,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BucketError> {
    cache::make_folder(&cache.folder().join("files"))?;
    let mut missing: Vec<&FileEntry> = version.files.iter().collect();
    missing.retain(|file| {
        let metadata = fs::metadata(cache.file(&file.sha256));
        !metadata.is_ok_and(|metadata| metadata.len() == file.bytes)
    });
    let missing_bytes: u64 = missing.iter().map(|file| file.bytes).sum();
    let total = version.bytes();
    let mut here = Progress { fetched: total.saturating_sub(missing_bytes), total };
    progress(here);
    let threads = missing.len().min(MAX_CONCURRENT_FILES);
    let next = &Mutex::new(missing.into_iter());
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let fetching: Vec<_> = (0..threads)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || fetch_each(client, cache, next, &sender))
            })
            .collect();
        drop(sender);
        for bytes in receiver {
            here.fetched = here.fetched.saturating_add(bytes).min(total);
            progress(here);
        }
        fetching.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// Fetches one file after the other, until there are no more or one fails.
fn fetch_each<'a>(
    client: &Client,
    cache: &Cache,
    files: &Mutex<impl Iterator<Item = &'a FileEntry>>,
    arrived: &Sender<u64>,
) -> Result<(), BucketError> {
    loop {
        let next = files.lock().next();
        let Some(file) = next else { return Ok(()) };
        // What arrived in an earlier process may be damaged.
        if !fetch_file(client, cache, file, arrived)? && !fetch_file(client, cache, file, arrived)?
        {
            let problem = format!("`{}` is not what was published", file.object);
            return Err(BucketError::damaged(client.address(), problem));
        }
    }
}

/// Fetches what is missing of a file, and gives it its name if its digest is the published one.
/// Returns whether it is; a damaged file is removed.
fn fetch_file(
    client: &Client,
    cache: &Cache,
    entry: &FileEntry,
    arrived: &Sender<u64>,
) -> Result<bool, BucketError> {
    let path = cache.file(&format!("{}.part", entry.sha256));
    let failed = BucketError::io("write", &path);
    let mut file =
        File::options().create(true).append(true).mode(0o600).open(&path).map_err(&failed)?;
    let here = file.metadata().map_err(&failed)?.len();
    // The receiver is gone if the caller has failed, and then progress no longer matters.
    let _ = arrived.send(here);
    client.read_from(&entry.object, here, entry.bytes, |bytes| {
        file.write_all(bytes).map_err(&failed)?;
        let _ = arrived.send(bytes.len() as u64);
        Ok(())
    })?;
    if cache::file_digest(&path).map_err(&failed)? != entry.sha256 {
        fs::remove_file(&path).map_err(&failed)?;
        return Ok(false);
    }
    let target = cache.file(&entry.sha256);
    fs::rename(&path, &target).map_err(BucketError::io("rename", &target))?;
    Ok(true)
}
