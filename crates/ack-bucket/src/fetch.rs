//! Fetches a version: its files in large parts, several at once, each file checked against its
//! digest. What has arrived is kept if the process ends, and the next one continues there.

mod partial;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::partial::PartialFile;
use crate::BucketError;
use crate::address::Address;
use crate::cache::{self, Cache};
use crate::client::Client;
use crate::format::{FORMAT, FileEntry, Head, LINKS, Version, sha256};
use crate::mirror;

/// How many requests run at once.
const MAX_CONCURRENT_REQUESTS: usize = 6;
/// How many times a file is fetched if its digest does not match.
const MAX_FETCH_ATTEMPTS: usize = 2;
/// The size of a version as a multiple of its files: the records are stored a second time.
const RECORDS_SIZE_FACTOR: u64 = 3;

/// How many bytes of records one byte of a version's files may become. Notes compress to a quarter
/// or less of their size, hardly to a hundredth.
const MAX_EXPANSION: u64 = 100;
/// What the records of a small version may take all the same, in bytes.
const MIN_EXPANDED_BYTES: u64 = 8 << 20;

/// The progress of a fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are fetched.
    pub fetched: u64,
    /// Bytes of the whole version.
    pub total: u64,
}

/// Reads the version that a head names.
///
/// # Errors
/// It is missing, or does not match the head.
pub fn fetch_version(
    client: &Client,
    head: &Head,
    within: Duration,
) -> Result<Version, BucketError> {
    let damaged = |problem: String| BucketError::Damaged {
        address: client.address().to_string(),
        problem,
    };
    check_format(client, head.format)?;
    let object = client.get(&head.log, within)?;
    if sha256(&object.bytes) != head.sha256 {
        return Err(damaged(format!("`{}` is not what was published", head.log)));
    }
    parse_version(client, &object.bytes).and_then(|version| {
        if version.version == head.version {
            Ok(version)
        } else {
            Err(damaged(format!("`{}` is of another version", head.log)))
        }
    })
}

/// Decodes the description of a version.
///
/// # Errors
/// [`BucketError::Damaged`].
pub fn parse_version(client: &Client, bytes: &[u8]) -> Result<Version, BucketError> {
    let damaged = |problem: String| BucketError::Damaged {
        address: client.address().to_string(),
        problem,
    };
    let version: Version = serde_json::from_slice(bytes)
        .map_err(|error| damaged(format!("a version cannot be read: {error}")))?;
    check_format(client, version.format)?;
    match version.problem() {
        Some(problem) => Err(damaged(problem)),
        None => Ok(version),
    }
}

/// Decodes `HEAD.json`.
///
/// # Errors
/// [`BucketError::Damaged`] or [`BucketError::OtherFormat`].
pub fn parse_head(client: &Client, bytes: &[u8]) -> Result<Head, BucketError> {
    let head: Head = serde_json::from_slice(bytes).map_err(|error| BucketError::Damaged {
        address: client.address().to_string(),
        problem: format!("HEAD.json cannot be read: {error}"),
    })?;
    check_format(client, head.format)?;
    Ok(head)
}

fn check_format(client: &Client, found: u32) -> Result<(), BucketError> {
    if found != FORMAT {
        return Err(BucketError::OtherFormat {
            address: client.address().to_string(),
            found,
            known: FORMAT,
        });
    }
    Ok(())
}

/// Fetches a version and makes it the one that is served. The lock of the cache must be held.
/// `on_fetched` runs once the files are fetched, before the records are written.
///
/// # Errors
/// It cannot be fetched, or is damaged. The previous version is still served.
pub fn install(
    client: &Client,
    cache: &Cache,
    head: &Head,
    version: &Version,
    allowed: u64,
    progress: &mut dyn FnMut(Progress),
    on_fetched: &mut dyn FnMut(),
) -> Result<PathBuf, BucketError> {
    let name = cache::version_name(head.version, &head.log);
    if let Some(folder) = cache.fetched_version(&name) {
        cache.set_current(&folder)?;
        return Ok(folder);
    }
    let needed = version.bytes().saturating_mul(RECORDS_SIZE_FACTOR);
    if needed > allowed {
        return Err(BucketError::TooLarge {
            version: version.version,
            needed,
            allowed,
        });
    }
    let retention = Cache::retention(cache.version().as_ref(), version);
    fetch(client, cache, version, progress)?;
    on_fetched();
    let address = client.address();
    let folder = match assemble(address, cache, &name, version, allowed) {
        // Files that an earlier version already had were not checked again.
        Err(_) if cache.remove_damaged(None, version) => {
            fetch(client, cache, version, progress)?;
            on_fetched();
            assemble(address, cache, &name, version, allowed)?
        }
        assembled => assembled?,
    };
    cache.clean(retention);
    Ok(folder)
}

/// Builds a version from files that are already here, and serves it. The lock of the cache must be
/// held. `allowed`: how many bytes it may take on this machine.
///
/// # Errors
/// A file is damaged or cannot be written.
pub fn assemble(
    address: &Address,
    cache: &Cache,
    name: &str,
    version: &Version,
    allowed: u64,
) -> Result<PathBuf, BucketError> {
    let work = cache.work_folder()?;
    link_files(cache, version, work.path())?;
    let before = cache
        .installed()
        .filter(|before| !cache::is_damaged(before));
    let limit = allowed.saturating_sub(version.bytes());
    let limit = limit.min(
        version
            .bytes()
            .saturating_mul(MAX_EXPANSION)
            .max(MIN_EXPANDED_BYTES),
    );
    mirror::update(address, before.as_deref(), work.path(), limit)?;
    cache.install(work, name, version)
}

/// Links the files of a version to a folder. The lock of the cache must be held.
///
/// # Errors
/// A file is missing or cannot be written.
pub fn link_files(cache: &Cache, version: &Version, folder: &Path) -> Result<(), BucketError> {
    for file in &version.files {
        let to = cache::file_path(folder, &file.path);
        cache::link(&cache.file(&file.sha256), &to)?;
    }
    mirror::tag_version(folder, version)
}

/// Fetches the missing files of a version. The lock of the cache must be held.
///
/// # Errors
/// A file cannot be fetched or written, or is damaged.
pub fn fetch(
    client: &Client,
    cache: &Cache,
    version: &Version,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BucketError> {
    cache::make_folder(&cache.folder().join("files"))?;
    let mut here = Progress {
        fetched: 0,
        total: version.bytes(),
    };
    for attempt in 0..MAX_FETCH_ATTEMPTS {
        let missing: Vec<&FileEntry> = version
            .files
            .iter()
            .filter(|file| {
                let path = cache.file(&file.sha256);
                !fs::metadata(&path).is_ok_and(|metadata| metadata.len() == file.bytes)
            })
            .collect();
        let mut partial = Vec::with_capacity(missing.len());
        let mut missing_bytes = 0;
        for entry in missing {
            let file = PartialFile::open(cache, entry)?;
            missing_bytes += file.missing_bytes();
            partial.push(Some(file));
        }
        here.fetched = here.total.saturating_sub(missing_bytes);
        progress(here);
        let damaged = fetch_once(client, partial, cache, &mut |bytes| {
            here.fetched += bytes;
            progress(here);
        })?;
        match damaged.first() {
            None => return Ok(()),
            Some(file) if attempt + 1 == MAX_FETCH_ATTEMPTS => {
                return Err(BucketError::Damaged {
                    address: client.address().to_string(),
                    problem: format!("`{}` is not what was published", file.object),
                });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Fetches files, and returns those whose digest does not match.
fn fetch_once<'a>(
    client: &Client,
    mut partial: Vec<Option<PartialFile<'a>>>,
    cache: &Cache,
    arrived: &mut dyn FnMut(u64),
) -> Result<Vec<&'a FileEntry>, BucketError> {
    let mut damaged = Vec::new();
    let mut finish = |slot: &mut Option<PartialFile<'a>>| -> Result<(), BucketError> {
        if let Some(file) = slot.take_if(|file| file.is_complete()) {
            let entry = file.entry;
            if !file.finish(cache)? {
                damaged.push(entry);
            }
        }
        Ok(())
    };
    let mut ranges = Vec::new();
    for (number, slot) in partial.iter_mut().enumerate() {
        finish(slot)?;
        let missing = slot.iter().flat_map(|file| {
            let object = &file.entry.object;
            file.missing()
                .into_iter()
                .map(move |range| (number, object.clone(), range))
        });
        ranges.extend(missing);
    }
    client.get_ranges(ranges, MAX_CONCURRENT_REQUESTS, |number, at, bytes| {
        let Some(slot) = partial.get_mut(number) else {
            return Ok(());
        };
        if let Some(file) = slot.as_mut() {
            file.write(at, &bytes)?;
            arrived(bytes.len() as u64);
        }
        finish(slot)
    })?;
    Ok(damaged)
}

/// Whether this is the file of links.
pub(crate) fn is_links_file(file: &FileEntry) -> bool {
    file.path == LINKS
}
