//! A file of which a part has arrived. The next process continues where this one ends.
//!
//! The file on disk has the bytes at their positions, and behind them, for each part, how many of
//! its bytes have arrived, as 8 bytes each. These numbers are written after the bytes. Whatever the
//! file contains, it gets its name only if its digest is the published one.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::BucketError;
use crate::cache::Cache;
use crate::format::{FileEntry, hex};

/// How many bytes one request asks for.
const PART_BYTES: u64 = 8 << 20;
/// The length of a number on disk.
const NUMBER_BYTES: u64 = 8;

/// A file that is being fetched.
pub(super) struct PartialFile<'a> {
    /// The file.
    pub entry: &'a FileEntry,
    file: File,
    path: PathBuf,
    /// How many bytes of each part have arrived, from its start.
    arrived: Vec<u64>,
    hasher: Sha256,
    /// How many bytes from the start are hashed.
    hashed: u64,
}

impl<'a> PartialFile<'a> {
    /// Opens a file, with what has arrived of it earlier. The lock of the cache must be held.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn open(cache: &Cache, entry: &'a FileEntry) -> Result<Self, BucketError> {
        let path = cache.file(&format!("{}.part", entry.sha256));
        let failed = BucketError::io("write", &path);
        let file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(&failed)?;
        let count = entry.bytes.div_ceil(PART_BYTES);
        let length = entry.bytes.saturating_add(count * NUMBER_BYTES);
        if file.metadata().map_err(&failed)?.len() != length {
            file.set_len(0)
                .and_then(|()| file.set_len(length))
                .map_err(&failed)?;
        }
        let mut partial = Self {
            entry,
            file,
            arrived: Vec::new(),
            hasher: Sha256::new(),
            hashed: 0,
            path: path.clone(),
        };
        for number in 0..count {
            let mut bytes = [0; size_of::<u64>()];
            let place = entry.bytes + number * NUMBER_BYTES;
            partial
                .file
                .read_exact_at(&mut bytes, place)
                .map_err(&failed)?;
            let part = partial.part(number);
            let known = u64::from_le_bytes(bytes).min(part.end - part.start);
            partial.arrived.push(known);
        }
        partial.hash_ahead()?;
        Ok(partial)
    }

    fn part(&self, number: u64) -> Range<u64> {
        let start = number * PART_BYTES;
        start..self.entry.bytes.min(start + PART_BYTES)
    }

    /// The ranges that have not arrived.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let parts = (0..).zip(&self.arrived).map(|(number, arrived)| {
            let part = self.part(number);
            part.start + arrived..part.end
        });
        parts.filter(|range| !range.is_empty()).collect()
    }

    /// How many bytes have not arrived.
    pub fn missing_bytes(&self) -> u64 {
        let missing = self.missing().into_iter();
        missing.map(|range| range.end - range.start).sum()
    }

    /// Whether all bytes have arrived.
    pub fn is_complete(&self) -> bool {
        self.hashed == self.entry.bytes
    }

    /// Writes the next bytes of a part.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), BucketError> {
        let end = at + bytes.len() as u64;
        let number = at / PART_BYTES;
        let arrived = end - number * PART_BYTES;
        let place = self.entry.bytes + number * NUMBER_BYTES;
        let written = self.file.write_all_at(bytes, at);
        written
            .and_then(|()| self.file.write_all_at(&arrived.to_le_bytes(), place))
            .map_err(BucketError::io("write", &self.path))?;
        let known = usize::try_from(number).ok();
        if let Some(known) = known.and_then(|number| self.arrived.get_mut(number)) {
            *known = arrived;
        }
        if at == self.hashed {
            self.hasher.update(bytes);
            self.hashed = end;
        }
        self.hash_ahead()
    }

    /// Hashes what has arrived behind the hashed bytes, from disk. Parts arrive nearly in order, so
    /// that is seldom much.
    fn hash_ahead(&mut self) -> Result<(), BucketError> {
        let mut block = Vec::new();
        loop {
            let number = self.hashed / PART_BYTES;
            let known = usize::try_from(number).ok();
            let Some(arrived) = known.and_then(|number| self.arrived.get(number)) else {
                return Ok(());
            };
            let left = (number * PART_BYTES + arrived).saturating_sub(self.hashed);
            if left == 0 {
                return Ok(());
            }
            block.resize(usize::try_from(left.min(1 << 18)).unwrap_or_default(), 0);
            self.file
                .read_exact_at(&mut block, self.hashed)
                .map_err(BucketError::io("read", &self.path))?;
            self.hasher.update(&block);
            self.hashed += block.len() as u64;
        }
    }

    /// Gives the file its name if its digest is the published one, or removes it. Returns whether it
    /// is.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(self, cache: &Cache) -> Result<bool, BucketError> {
        let digest = hex(&self.hasher.finalize());
        if digest != self.entry.sha256 {
            let _ = fs::remove_file(&self.path);
            return Ok(false);
        }
        let failed = BucketError::io("write", &self.path);
        self.file.set_len(self.entry.bytes).map_err(&failed)?;
        let target = cache.file(&self.entry.sha256);
        fs::rename(&self.path, &target).map_err(BucketError::io("rename", &target))?;
        Ok(true)
    }
}
