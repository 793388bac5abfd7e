//! The plan of a publication: the differences between what is published and what should be.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use ack_api::memory::Memory;
use ack_store::links::Link;
use object_store::UpdateVersion;
use serde::Serialize;

use crate::BucketError;
use crate::address::Address;
use crate::format::{FileEntry, Head, Version, Withdrawn};
use crate::mirror;

/// What a publication is based on.
#[derive(Debug, Default)]
pub struct Base {
    pub(super) published: Option<Published>,
    /// The version on this machine, if the published one cannot have followed it.
    pub(super) known: Option<Version>,
    pub(super) records: BTreeMap<String, Memory>,
}

/// The version that is published now.
#[derive(Debug)]
pub(super) struct Published {
    pub head: Head,
    /// The state of the head's object.
    pub state: UpdateVersion,
    pub version: Version,
    pub folder: PathBuf,
}

/// The records and links that should be published.
pub struct DesiredState {
    /// Every memory, without the marks that reading adds.
    pub records: Vec<Memory>,
    pub links: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    pub id: String,
    pub title: String,
}

/// What publishing would do.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Plan {
    /// The version that it is based on; 0 if nothing was published yet.
    pub base: u64,
    pub added: Vec<Item>,
    pub changed: Vec<Item>,
    pub withdrawn: Vec<Item>,
    /// How many memories stay as they are.
    pub unchanged: usize,
    /// Memories that are not published because somebody withdrew them by hand.
    pub held_back: Vec<Item>,
    pub links_change: bool,
    #[serde(skip)]
    pub(super) upserts: Vec<Memory>,
    #[serde(skip)]
    pub(super) links: Vec<Link>,
    #[serde(skip)]
    pub(super) withdrawals: Vec<Withdrawn>,
    #[serde(skip)]
    pub(super) restored: Vec<String>,
    /// Whether the published version does not follow the one that this machine knows.
    #[serde(skip)]
    pub(super) is_repair: bool,
}

impl Plan {
    /// Whether nothing would change.
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.changed.is_empty()
            && self.withdrawn.is_empty()
            && !self.links_change
            && !self.is_repair
    }
}

impl Base {
    /// The number of the version; 0 if nothing was published yet.
    pub fn number(&self) -> u64 {
        self.published.as_ref().map_or(0, |published| published.head.version)
    }

    pub fn scope(&self) -> Option<&str> {
        self.published.as_ref().map(|published| published.version.scope.as_str())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.published.iter().flat_map(|published| &published.version.files)
    }

    /// The published version, and the one on this machine.
    fn versions(&self) -> impl Iterator<Item = &Version> {
        self.published.iter().map(|published| &published.version).chain(&self.known)
    }

    /// The highest number of a version that is published or on this machine.
    pub fn newest_number(&self) -> u64 {
        self.versions().map(|version| version.version).max().unwrap_or_default()
    }

    fn withdrawals(&self) -> Vec<Withdrawn> {
        let mut withdrawals: Vec<Withdrawn> = Vec::new();
        for mark in self.versions().flat_map(|version| &version.held_back) {
            if withdrawals.iter().all(|known| known.id != mark.id) {
                withdrawals.push(mark.clone());
            }
        }
        withdrawals
    }

    fn restored(&self) -> Vec<String> {
        let withheld = self.withdrawals();
        let restored = self.versions().flat_map(|version| &version.restored);
        let restored = restored.filter(|id| withheld.iter().all(|mark| mark.id != **id));
        restored.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn begin(&self) -> Plan {
        let base = self.number();
        let (withdrawals, restored) = (self.withdrawals(), self.restored());
        Plan { base, withdrawals, restored, is_repair: self.known.is_some(), ..Plan::default() }
    }

    /// Memories that were withdrawn by hand are left out, except those in `restore`.
    pub fn plan(&self, desired: DesiredState, restore: &[String]) -> Result<Plan, BucketError> {
        let mut plan = self.begin();
        restore_marks(&mut plan.withdrawals, &mut plan.restored, restore);
        let withheld: HashSet<&str> = plan.withdrawals.iter().map(|mark| &*mark.id).collect();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for record in desired.records {
            if withheld.contains(record.id.as_str()) {
                plan.held_back.push(to_item(&record));
                continue;
            }
            ids.insert(record.id.clone());
            let items = match self.records.get(&record.id) {
                Some(known) if *known == record => {
                    plan.unchanged += 1;
                    continue;
                }
                Some(_) => &mut plan.changed,
                None => &mut plan.added,
            };
            items.push(to_item(&record));
            plan.upserts.push(record);
        }
        let removed = self.records.values().filter(|known| !ids.contains(&known.id));
        plan.withdrawn = removed.map(to_item).collect();
        let between = |link: &Link| ids.contains(&link.from) && ids.contains(&link.to);
        plan.links = desired.links.into_iter().filter(between).collect();
        sort(&mut plan.links);
        plan.links_change = plan.links != self.links()?;
        Ok(plan)
    }

    /// Plans to remove memories, whatever their scope contains. Those that were removed this way
    /// before are only listed.
    pub fn plan_withdrawal(
        &self,
        address: &Address,
        ids: &[String],
        by: &str,
    ) -> Result<Plan, BucketError> {
        let mut plan = self.begin();
        for id in ids {
            let is_withdrawn = plan.withdrawals.iter().any(|mark| mark.id == *id);
            if is_withdrawn && !self.records.contains_key(id) {
                plan.held_back.push(Item { id: id.clone(), title: String::new() });
                continue;
            }
            let record = self.records.get(id).ok_or_else(|| BucketError::NotPublished {
                address: address.to_string(),
                id: ack_api::text::line(id, 100),
            })?;
            if plan.withdrawn.iter().any(|item| item.id == *id) {
                continue;
            }
            plan.withdrawn.push(to_item(record));
            plan.restored.retain(|restored| restored != id);
            plan.withdrawals.push(Withdrawn {
                id: id.clone(),
                at: ack_api::time::to_rfc3339(jiff::Timestamp::now()),
                by: by.to_owned(),
            });
        }
        let stays = |id: &String| !ids.contains(id);
        plan.unchanged = self.records.keys().filter(|id| stays(id)).count();
        plan.links = self.links()?;
        plan.links.retain(|link| stays(&link.from) && stays(&link.to));
        Ok(plan)
    }

    fn links(&self) -> Result<Vec<Link>, BucketError> {
        let mut links = match &self.published {
            Some(published) => mirror::links(&published.folder)?,
            None => Vec::new(),
        };
        sort(&mut links);
        Ok(links)
    }
}

/// Moves the marks of memories that may be published again to those that may.
pub(super) fn restore_marks(
    withdrawals: &mut Vec<Withdrawn>,
    restored: &mut Vec<String>,
    restore: &[String],
) {
    let allowed = withdrawals.extract_if(.., |mark| restore.contains(&mark.id));
    restored.extend(allowed.map(|mark| mark.id));
}

fn to_item(record: &Memory) -> Item {
    Item { id: record.id.clone(), title: record.title.clone() }
}

fn sort(links: &mut [Link]) {
    links.sort_by(|a, b| (&a.from, &a.to, &a.kind).cmp(&(&b.from, &b.to, &b.kind)));
}
