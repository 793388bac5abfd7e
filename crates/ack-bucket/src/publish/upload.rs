//! Uploading the files of a version.

use std::fs::{self, File};
use std::io::Read;

use super::{BuiltVersion, Publisher, Step};
use crate::BucketError;
use crate::cache;
use crate::client::WriteCondition;
use crate::fetch::Progress;
use crate::format::FileEntry;

/// Larger files are uploaded in parts of this size.
const PART_BYTES: usize = 16 << 20;

/// How many requests uploading a file of this length takes.
pub const fn upload_requests(bytes: u64) -> u64 {
    if bytes <= PART_BYTES as u64 { 1 } else { bytes.div_ceil(PART_BYTES as u64) + 2 }
}

impl Publisher {
    /// Uploads the files of a version that the bucket lacks.
    pub(super) fn upload(
        &self,
        built: &BuiltVersion,
        step: &mut dyn FnMut(Step),
    ) -> Result<(), BucketError> {
        let mut sent =
            Progress { fetched: 0, total: built.uploads.iter().map(|file| file.bytes).sum() };
        step(Step::Uploading(sent));
        for file in &built.uploads {
            self.upload_file(built, file, &mut |bytes| {
                sent.fetched += bytes;
                step(Step::Uploading(sent));
            })?;
        }
        Ok(())
    }

    fn upload_file(
        &self,
        built: &BuiltVersion,
        entry: &FileEntry,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), BucketError> {
        let path = cache::file_path(built.work.path(), &entry.path);
        let failed = BucketError::io("read", &path);
        if entry.bytes <= PART_BYTES as u64 {
            let bytes = fs::read(&path).map_err(failed)?;
            // Its name is unique, so writing it twice is harmless.
            self.client.put(&entry.object, bytes.into(), &WriteCondition::Always)?;
            sent(entry.bytes);
            return Ok(());
        }
        let mut file = File::open(&path).map_err(&failed)?;
        self.client.upload(&entry.object, PART_BYTES, |bytes| {
            let part = Read::by_ref(&mut file).take(PART_BYTES as u64);
            let mut part = part;
            let read = part.read_to_end(bytes).map_err(&failed)?;
            sent(read as u64);
            Ok(())
        })
    }
}
