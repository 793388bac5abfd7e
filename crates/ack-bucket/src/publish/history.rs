//! The history of a publication: listing versions, rolling back, and removing old ones.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ack_lance::records;
use jiff::Timestamp;
use object_store::UpdateVersion;
use serde::Serialize;

use super::plan::restore_marks;
use super::{Publisher, random_name};
use crate::BucketError;
use crate::fetch;
use crate::format::{FORMAT, Head, Version};
use crate::mirror;

/// Younger objects that belong to no version may be part of an upload in progress.
const UPLOAD_GRACE: Duration = Duration::from_hours(1);
/// Folders of a bucket that hold the objects of versions.
const FOLDERS: [&str; 4] = ["log", "manifests", "links", "memories.lance"];

#[derive(Debug, Clone, Serialize)]
pub struct VersionSummary {
    /// The version, without its files.
    #[serde(flatten)]
    pub version: Version,
    pub bytes: u64,
    pub is_current: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PrunePlan {
    /// The versions that can no longer be restored.
    pub versions: Vec<u64>,
    pub objects: usize,
    pub bytes: u64,
    #[serde(skip)]
    names: Vec<String>,
}

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
    /// The published versions, newest first, at most `max`.
    pub fn list(&self, max: usize) -> Result<Vec<VersionSummary>, BucketError> {
        let chain = self.version_chain(max)?.into_iter().enumerate();
        let summaries = chain.map(|(position, (_, version))| VersionSummary {
            bytes: version.bytes(),
            is_current: position == 0,
            version: Version { files: Vec::new(), ..version },
        });
        Ok(summaries.collect())
    }

    /// What is published now, with the state of its object.
    fn published(&self) -> Result<(Head, UpdateVersion), BucketError> {
        let address = self.client.address().to_string();
        self.head()?.ok_or(BucketError::NothingPublished { address })
    }

    /// The versions from the current one back, with the objects that describe them. The chain ends
    /// at the first removed one.
    fn version_chain(&self, max: usize) -> Result<Vec<(String, Version)>, BucketError> {
        let (head, _) = self.published()?;
        let current = fetch::fetch_version(&self.client, &head)?;
        let mut before = current.before.clone();
        let mut chain = vec![(head.log, current)];
        while chain.len() < max
            && let Some(log) = before
        {
            let version = match self.client.get(&log) {
                Ok(bytes) => fetch::parse_version(&self.client, &bytes)?,
                Err(BucketError::Missing { .. }) => break,
                Err(error) => return Err(error),
            };
            before = version.before.clone();
            chain.push((log, version));
        }
        Ok(chain)
    }

    fn find_version<'a>(
        &self,
        version: u64,
        chain: &'a [(String, Version)],
    ) -> Result<&'a Version, BucketError> {
        if let Some((_, found)) = chain.iter().find(|(_, it)| it.version == version) {
            return Ok(found);
        }
        let address = self.client.address().to_string();
        Err(match chain.last() {
            Some((_, oldest)) if (1..oldest.version).contains(&version) => {
                BucketError::PrunedVersion { address, version, oldest: oldest.version }
            }
            _ => BucketError::NoSuchVersion { address, version },
        })
    }

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
        let folder = self.cache.temporary_folder()?;
        fetch::link_files(&self.cache, version, folder.path())?;
        Ok(records::fingerprints(&mirror::table_folder(folder.path()))?)
    }

    /// Publishes the content of an earlier version as a new version. Memories that were withdrawn
    /// by hand since then do not come back unless they are named.
    pub fn roll_back(
        &self,
        number: u64,
        by: &str,
        restore: &[String],
        write: bool,
    ) -> Result<Version, BucketError> {
        let (head, state) = self.published()?;
        let chain = self.version_chain(usize::MAX)?;
        let earlier = self.find_version(number, &chain)?;
        let current = chain.first().map_or(earlier, |(_, current)| current);
        let (mut held_back, mut restored) = (current.held_back.clone(), current.restored.clone());
        restore_marks(&mut held_back, &mut restored, restore);
        let come_back = held_back.iter().map(|mark| &mark.id).filter(|id| !earlier.holds_back(id));
        let ids: Vec<String> = come_back.cloned().collect();
        if !ids.is_empty() {
            return Err(BucketError::RestoresWithdrawn { version: number, ids });
        }
        let version = Version {
            format: FORMAT,
            version: head.version + 1,
            published_at: ack_api::time::to_rfc3339(Timestamp::now()),
            by: by.to_owned(),
            added: 0,
            changed: 0,
            withdrawn: 0,
            before: Some(head.log.clone()),
            restores: Some(number),
            held_back,
            restored,
            ..earlier.clone()
        };
        if write {
            self.check_conditional_writes()?;
            let name = format!("{}-{}", version.version, random_name()?);
            self.commit_version(Some((&head, &state)), &version, &name)?;
        }
        Ok(version)
    }

    /// Finds the versions older than a given age, except the current one, and objects that belong
    /// to no version. Nothing is removed.
    pub fn find_prunable(&self, min_age: Duration) -> Result<PrunePlan, BucketError> {
        let chain = self.version_chain(usize::MAX)?;
        let now = Timestamp::now();
        let is_old = |at: &str| at.parse().is_ok_and(|at| age(now, at) > min_age);
        let mut pruned = PrunePlan::default();
        let (mut needed, mut of_old_versions) = (HashSet::new(), HashSet::new());
        for (place, (log, version)) in chain.iter().enumerate() {
            let objects = version.files.iter().map(|file| &file.object).chain([log]);
            if place > 0 && is_old(&version.published_at) {
                pruned.versions.push(version.version);
                of_old_versions.extend(objects);
            } else {
                needed.extend(objects);
            }
        }
        for folder in FOLDERS {
            for object in self.client.list(folder)? {
                let is_settled = age(now, object.modified) > UPLOAD_GRACE;
                if !needed.contains(&object.name)
                    && (is_settled || of_old_versions.contains(&object.name))
                {
                    pruned.objects += 1;
                    pruned.bytes += object.bytes;
                    pruned.names.push(object.name);
                }
            }
        }
        // The description is removed first: a version without its files must not look restorable.
        pruned.names.sort_by_key(|name| !name.starts_with("log/"));
        Ok(pruned)
    }

    /// Removes what [`Publisher::find_prunable`] found.
    pub fn remove(&self, pruned: &PrunePlan) -> Result<(), BucketError> {
        self.client.delete(&pruned.names)
    }

    /// The head, for display.
    pub fn current(&self) -> Result<Option<Head>, BucketError> {
        Ok(self.head()?.map(|(head, _)| head))
    }
}

fn age(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}
