//! Fetches a version: its files in large parts, several at once, each file checked against its
//! digest.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::BucketError;
use crate::address::Address;
use crate::cache::{self, Cache};
use crate::client::Client;
use crate::format::{FORMAT, FileEntry, Head, LINKS, Version, hex, sha256};
use crate::mirror;

/// How many bytes one request asks for.
const PART_BYTES: u64 = 8 << 20;
/// How many requests run at once.
const MAX_CONCURRENT_REQUESTS: usize = 6;
/// How many times a file is fetched if its digest does not match.
const MAX_FETCH_ATTEMPTS: usize = 2;
/// The size of a version as a multiple of its files: the records are stored a second time.
const RECORDS_SIZE_FACTOR: u64 = 3;

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
/// [`BucketError::Damaged`] or [`BucketError::NewerFormat`].
pub fn parse_head(client: &Client, bytes: &[u8]) -> Result<Head, BucketError> {
    let head: Head = serde_json::from_slice(bytes).map_err(|error| BucketError::Damaged {
        address: client.address().to_string(),
        problem: format!("HEAD.json cannot be read: {error}"),
    })?;
    check_format(client, head.format)?;
    Ok(head)
}

fn check_format(client: &Client, found: u32) -> Result<(), BucketError> {
    if found > FORMAT {
        return Err(BucketError::NewerFormat {
            address: client.address().to_string(),
            found,
            known: FORMAT,
        });
    }
    Ok(())
}

/// Fetches a version and makes it the one that is served. The lock of the cache must be held. Once
/// the files are fetched, `in_parallel` gets their folder and runs while the records are written.
/// The folder is renamed afterwards.
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
    in_parallel: &(dyn Fn(&Path) + Sync),
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
    fetch(client, cache, version, progress)?;
    let address = client.address();
    let folder = match assemble(address, cache, &name, version, in_parallel) {
        // Files that an earlier version already had were not checked again.
        Err(_) if cache.remove_damaged(None, version) => {
            fetch(client, cache, version, progress)?;
            assemble(address, cache, &name, version, in_parallel)?
        }
        assembled => assembled?,
    };
    cache.clean();
    Ok(folder)
}

/// Builds a version from files that are already here, and serves it. The lock of the cache must be
/// held.
///
/// # Errors
/// A file is damaged or cannot be written.
pub fn assemble(
    address: &Address,
    cache: &Cache,
    name: &str,
    version: &Version,
    beside: &(dyn Fn(&Path) + Sync),
) -> Result<PathBuf, BucketError> {
    let work = cache.work_folder()?;
    for file in &version.files {
        let to = cache::file_path(work.path(), &file.path);
        cache::link(&cache.file(&file.sha256), &to)?;
    }
    mirror::tag_version(work.path(), version)?;
    let before = cache
        .installed()
        .filter(|before| !cache::is_damaged(before));
    std::thread::scope(|threads| {
        threads.spawn(|| beside(work.path()));
        mirror::update(address, before.as_deref(), work.path())
    })?;
    cache.install(work, name, version)
}

/// Fetches the missing files of a version.
fn fetch(
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
        let missing_bytes: u64 = missing.iter().map(|file| file.bytes).sum();
        here.fetched = here.total - missing_bytes;
        progress(here);
        let damaged = fetch_once(client, cache, &missing, &mut |bytes| {
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

/// A file that is being fetched.
struct PartialFile<'a> {
    entry: &'a FileEntry,
    file: File,
    path: PathBuf,
    left: u64,
    hasher: Sha256,
    /// How many bytes from the start are hashed.
    hashed: u64,
    /// Parts that arrived ahead of those: start and end.
    out_of_order: BTreeMap<u64, u64>,
    /// Whether a part had the wrong length.
    is_damaged: bool,
}

impl PartialFile<'_> {
    /// Writes a part at its position, and hashes it if it is the next one. Parts arrive nearly in
    /// order; a part that arrived early is read back when its turn comes.
    fn write_part(&mut self, range: &Range<u64>, bytes: &[u8]) -> Result<(), BucketError> {
        self.file
            .write_all_at(bytes, range.start)
            .map_err(BucketError::io("write", &self.path))?;
        let length = range.end - range.start;
        self.is_damaged |= bytes.len() as u64 != length;
        self.left = self.left.saturating_sub(length);
        if self.is_damaged {
            return Ok(());
        }
        if range.start != self.hashed {
            self.out_of_order.insert(range.start, range.end);
            return Ok(());
        }
        self.hasher.update(bytes);
        self.hashed = range.end;
        while let Some(end) = self.out_of_order.remove(&self.hashed) {
            self.hash_from_disk(end)?;
        }
        Ok(())
    }

    /// Hashes the file up to `end`, from disk.
    fn hash_from_disk(&mut self, end: u64) -> Result<(), BucketError> {
        let mut block = vec![0; 1 << 18];
        while self.hashed < end {
            let length = block
                .len()
                .min(usize::try_from(end - self.hashed).unwrap_or(usize::MAX));
            let part = block.get_mut(..length).unwrap_or_default();
            self.file
                .read_exact_at(part, self.hashed)
                .map_err(BucketError::io("read", &self.path))?;
            self.hasher.update(part);
            self.hashed += length as u64;
        }
        Ok(())
    }
}

/// Fetches files, and returns those whose digest does not match.
fn fetch_once<'a>(
    client: &Client,
    cache: &Cache,
    missing: &[&'a FileEntry],
    arrived: &mut dyn FnMut(u64),
) -> Result<Vec<&'a FileEntry>, BucketError> {
    let mut parts = Vec::new();
    let mut partial: HashMap<usize, PartialFile<'a>> = HashMap::new();
    for (number, entry) in missing.iter().enumerate() {
        let path = cache.file(&format!("{}.part", entry.sha256));
        let file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(BucketError::io("write", &path))?;
        partial.insert(
            number,
            PartialFile {
                entry,
                file,
                path,
                left: entry.bytes,
                hasher: Sha256::new(),
                hashed: 0,
                out_of_order: BTreeMap::new(),
                is_damaged: false,
            },
        );
        parts.extend(ranges(entry.bytes).map(|range| (number, entry.object.clone(), range)));
    }
    let mut damaged = Vec::new();
    client.get_ranges(parts, MAX_CONCURRENT_REQUESTS, |number, range, bytes| {
        let Some(part) = partial.get_mut(&number) else {
            return Ok(());
        };
        part.write_part(&range, &bytes)?;
        arrived(bytes.len() as u64);
        if part.left == 0
            && let Some(partial_file) = partial.remove(&number)
        {
            let entry = partial_file.entry;
            if !finish_file(cache, partial_file)? {
                damaged.push(entry);
            }
        }
        Ok(())
    })?;
    Ok(damaged)
}

/// Gives a file its name if its digest matches.
fn finish_file(cache: &Cache, partial: PartialFile<'_>) -> Result<bool, BucketError> {
    let digest = hex(&partial.hasher.finalize());
    if partial.is_damaged || partial.hashed != partial.entry.bytes || digest != partial.entry.sha256
    {
        let _ = fs::remove_file(&partial.path);
        return Ok(false);
    }
    let target = cache.file(&partial.entry.sha256);
    fs::rename(&partial.path, &target).map_err(BucketError::io("rename", &target))?;
    Ok(true)
}

fn ranges(bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let count = bytes.div_ceil(PART_BYTES).max(1);
    (0..count).map(move |number| {
        let start = number * PART_BYTES;
        start..bytes.min(start + PART_BYTES)
    })
}

/// Whether this is the file of links.
pub(crate) fn is_links_file(file: &FileEntry) -> bool {
    file.path == LINKS
}
