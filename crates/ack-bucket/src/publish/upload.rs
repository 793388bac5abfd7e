//! Uploading the files of a version.

use std::fs::{self, File};
use std::io::Read;

use super::{Made, Publisher, Step};
use crate::BucketError;
use crate::cache;
use crate::client::Condition;
use crate::fetch::Progress;
use crate::format::FileEntry;

/// Larger files are uploaded in parts of this size.
const PART: usize = 16 << 20;

/// How many requests uploading a file of this length takes.
pub const fn requests(bytes: u64) -> u64 {
    if bytes <= PART as u64 {
        1
    } else {
        bytes.div_ceil(PART as u64) + 2
    }
}

impl Publisher {
    /// Uploads the files of a version that the bucket lacks.
    pub(super) fn upload(
        &self,
        made: &Made,
        step: &mut dyn FnMut(Step),
    ) -> Result<(), BucketError> {
        let mut sent = Progress {
            done: 0,
            whole: made.uploads.iter().map(|file| file.bytes).sum(),
        };
        step(Step::Uploading(sent));
        for file in &made.uploads {
            self.upload_file(made, file, &mut |bytes| {
                sent.done += bytes;
                step(Step::Uploading(sent));
            })?;
        }
        Ok(())
    }

    fn upload_file(
        &self,
        made: &Made,
        entry: &FileEntry,
        sent: &mut dyn FnMut(u64),
    ) -> Result<(), BucketError> {
        let path = cache::place(made.work.path(), &entry.path);
        let failed = BucketError::io("read", &path);
        if entry.bytes <= PART as u64 {
            let bytes = fs::read(&path).map_err(failed)?;
            // Its name is unique, so writing it twice is harmless.
            self.client
                .put(&entry.object, bytes.into(), &Condition::Always)?;
            sent(entry.bytes);
            return Ok(());
        }
        let mut file = File::open(&path).map_err(&failed)?;
        self.client.upload(&entry.object, PART, |bytes| {
            let part = Read::by_ref(&mut file).take(PART as u64);
            let mut part = part;
            let read = part.read_to_end(bytes).map_err(&failed)?;
            sent(read as u64);
            Ok(())
        })
    }
}
