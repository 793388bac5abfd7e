//! The history of a publication: listing versions, rolling back, and removing old ones.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::plan::restore_marks;
use super::{Base, Publisher, SMALL_OBJECT_TIMEOUT, random_name};
use crate::BucketError;
use crate::client::ListedObject;
use crate::fetch;
use crate::format::{FORMAT, Head, Version};

/// Younger objects that belong to no version may be part of an upload in progress.
const UPLOAD_GRACE: Duration = Duration::from_hours(1);
/// Folders of a bucket that hold the objects of versions.
const FOLDERS: [&str; 4] = ["log", "manifests", "links", "memories.lance"];

#[derive(Debug, Clone, Serialize)]
pub struct VersionSummary {
    /// The version, without its files.
    #[serde(flatten)]
    pub version: Version,
    /// How many bytes its files take.
    pub bytes: u64,
    /// Whether readers see it now.
    pub is_current: bool,
}

/// What pruning removes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PrunePlan {
    /// The versions that can no longer be restored.
    pub versions: Vec<u64>,
    pub objects: usize,
    pub bytes: u64,
    /// Why the bucket could not be listed. Then only objects of old versions are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<String>,
    #[serde(skip)]
    names: Vec<String>,
}

impl PrunePlan {
    fn add(&mut self, name: String, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
        self.names.push(name);
    }
}

impl Publisher {
    /// The published versions, newest first, at most `max`.
    pub fn list(&self, max: usize) -> Result<Vec<VersionSummary>, BucketError> {
        let chain = self.version_chain(max)?;
        Ok(chain
            .into_iter()
            .enumerate()
            .map(|(position, (_, version))| VersionSummary {
                bytes: version.bytes(),
                is_current: position == 0,
                version: Version { files: Vec::new(), ..version },
            })
            .collect())
    }

    /// The versions from the current one back, with the objects that describe them. The chain ends
    /// at the first removed one.
    pub(super) fn version_chain(&self, max: usize) -> Result<Vec<(String, Version)>, BucketError> {
        let (head, _) = self.published()?;
        let mut chain = vec![(
            head.log.clone(),
            fetch::fetch_version(&self.client, &head, SMALL_OBJECT_TIMEOUT)?,
        )];
        while chain.len() < max {
            let before = chain.last().and_then(|(_, version)| version.before.clone());
            let Some(before) = before else { break };
            match self.client.get(&before, SMALL_OBJECT_TIMEOUT) {
                Ok(object) => {
                    let version = fetch::parse_version(&self.client, &object.bytes)?;
                    chain.push((before, version));
                }
                Err(BucketError::Missing { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(chain)
    }

    pub(super) fn find_version<'a>(
        &self,
        number: u64,
        chain: &'a [(String, Version)],
    ) -> Result<&'a Version, BucketError> {
        let mut versions = chain.iter().map(|(_, version)| version);
        versions
            .find(|version| version.version == number)
            .ok_or_else(|| self.no_version(number, chain))
    }

    fn no_version(&self, version: u64, chain: &[(String, Version)]) -> BucketError {
        let address = self.client.address().to_string();
        match chain.last() {
            Some((_, oldest)) if (1..oldest.version).contains(&version) => {
                BucketError::PrunedVersion { address, version, oldest: oldest.version }
            }
            _ => BucketError::NoSuchVersion { address, version },
        }
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
        let (mut held_back, restored) =
            chain.first().map_or_else(Default::default, |(_, current)| {
                (current.held_back.clone(), current.restored.clone())
            });
        let restored = restore_marks(&mut held_back, restored, restore);
        let comes_back = held_back
            .iter()
            .filter(|mark| !earlier.held_back.iter().any(|before| before.id == mark.id));
        let ids: Vec<String> = comes_back.map(|mark| mark.id.clone()).collect();
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
            let base = Base {
                head: Some((head, state)),
                version: None,
                known: None,
                folder: None,
                records: std::collections::BTreeMap::new(),
            };
            self.check_conditional_writes()?;
            let name = format!("{}-{}", version.version, random_name()?);
            self.commit_version(&base, &version, &name)?;
        }
        Ok(version)
    }

    /// Finds the versions older than a given age, except the current one, and objects that belong
    /// to no version. Nothing is removed. If the bucket may not be listed, finds only the objects
    /// of old versions.
    pub fn find_prunable(&self, min_age: Duration) -> Result<PrunePlan, BucketError> {
        let chain = self.version_chain(usize::MAX)?;
        let now = Timestamp::now();
        let is_old = |at: &str| {
            let at: Option<Timestamp> = at.parse().ok();
            at.is_some_and(|at| age(now, at) > min_age)
        };
        let mut pruned = PrunePlan::default();
        let mut needed: HashSet<&str> = HashSet::new();
        let mut of_old_versions: BTreeMap<&str, u64> = BTreeMap::new();
        for (place, (log, version)) in chain.iter().enumerate() {
            let files = version.files.iter();
            if place > 0 && is_old(&version.published_at) {
                pruned.versions.push(version.version);
                of_old_versions.insert(log, 0);
                of_old_versions.extend(files.map(|file| (file.object.as_str(), file.bytes)));
            } else {
                needed.insert(log);
                needed.extend(files.map(|file| file.object.as_str()));
            }
        }
        match self.list_all() {
            Ok(listed) => {
                for object in listed {
                    let name = object.name.as_str();
                    let is_settled = age(now, object.modified) > UPLOAD_GRACE;
                    if !needed.contains(name) && (is_settled || of_old_versions.contains_key(name))
                    {
                        pruned.add(object.name, object.bytes);
                    }
                }
            }
            Err(BucketError::Refused { reason, .. }) => {
                pruned.unlisted = Some(reason);
                for (name, bytes) in of_old_versions {
                    if !needed.contains(name) {
                        pruned.add(name.to_owned(), bytes);
                    }
                }
            }
            Err(error) => return Err(error),
        }
        // The description is removed first: a version without its files must not look restorable.
        pruned.names.sort_by_key(|name| !name.starts_with("log/"));
        Ok(pruned)
    }

    fn list_all(&self) -> Result<Vec<ListedObject>, BucketError> {
        let mut listed = Vec::new();
        for folder in FOLDERS {
            listed.extend(self.client.list(folder)?);
        }
        Ok(listed)
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
