//! What going back to an earlier version changes for readers.

use std::collections::HashMap;

use ack_lance::records;
use serde::Serialize;

use super::Publisher;
use crate::BucketError;
use crate::fetch;
use crate::format::Version;
use crate::mirror;

/// How many memories a rollback changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RollbackChanges {
    /// Memories that readers do not have now.
    pub come_back: usize,
    /// Memories that readers have now and then do not.
    pub go_away: usize,
    /// Memories that get their earlier contents.
    pub change: usize,
}

impl Publisher {
    /// Compares an earlier version with the current one. Fetches the files of both that are not in
    /// the cache.
    pub fn rollback_changes(&self, number: u64) -> Result<RollbackChanges, BucketError> {
        let chain = self.version_chain(usize::MAX)?;
        let earlier = self.find_version(number, &chain)?;
        let current = chain.first().map_or(earlier, |(_, current)| current);
        let (mut now, then) = (self.contents(current)?, self.contents(earlier)?);
        let mut changes = RollbackChanges::default();
        for (id, contents) in then {
            match now.remove(&id) {
                None => changes.come_back += 1,
                Some(present) if present != contents => changes.change += 1,
                Some(_) => {}
            }
        }
        changes.go_away = now.len();
        Ok(changes)
    }

    /// The ids of a version's memories, each with the hash of its contents.
    fn contents(&self, version: &Version) -> Result<HashMap<String, u64>, BucketError> {
        let _lock = self.lock()?;
        fetch::fetch(&self.client, &self.cache, version, &mut |_| {})?;
        let folder = self.cache.work_folder()?;
        fetch::link_files(&self.cache, version, folder.path())?;
        Ok(records::fingerprints(&mirror::table_folder(folder.path()))?)
    }
}
