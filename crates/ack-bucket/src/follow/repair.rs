//! Repairs the local copy after one of its files could not be read.
//!
//! The files are compared with the published digests. If one is damaged, the version is marked, and
//! the next request fetches the damaged files again. Until then, the version is served as far as it
//! can be read. The records are built from the table's files, so if only they are damaged, they are
//! rebuilt without the network.

use std::path::PathBuf;
use std::sync::Arc;

use ack_api::remote::WaitPolicy;

use super::Remote;
use crate::cache;
use crate::fetch;
use crate::mirror;

impl Remote {
    /// Checks the files of the version that is served after its table could not be read. Returns
    /// whether one is damaged; the next request then fetches it again.
    pub fn check_table(&self) -> bool {
        let Some(folder) = self.cache.installed() else {
            return false;
        };
        if cache::is_damaged(&folder) {
            return true;
        }
        // If the files are intact, checking them again does not help.
        if self.work.lock().intact.as_ref() == Some(&folder) {
            return false;
        }
        let Ok(Some(_lock)) = self.cache.lock() else {
            return false;
        };
        let version = cache::read_version(&folder);
        if version.is_none_or(|version| self.cache.remove_damaged(Some(&folder), &version)) {
            cache::mark_damaged(&folder);
            return true;
        }
        self.work.lock().intact = Some(folder);
        false
    }

    /// Rebuilds the records after they could not be read, from the local files, or else from the
    /// bucket. A request that may not wait leaves that to the next one. Returns whether there are
    /// new records.
    pub fn repair_records(self: &Arc<Self>, wait_policy: WaitPolicy) -> bool {
        let before = self.cache.installed();
        if wait_policy == WaitPolicy::None {
            if let Some(folder) = before {
                cache::mark_damaged(&folder);
            }
            return false;
        }
        self.remake_records();
        if self.cache.installed() == before {
            self.prepare(wait_policy);
        }
        self.cache.installed() != before
    }

    /// Rebuilds the records of the version that is served if they are gone.
    pub(super) fn restore_records(&self) {
        let installed = self.cache.installed();
        let is_gone = |folder: PathBuf| {
            !mirror::database_path(&folder).is_file() && !cache::is_damaged(&folder)
        };
        if installed.is_some_and(is_gone) {
            self.remake_records();
        }
    }

    /// Rebuilds the records if the table's files are intact, and marks the version as damaged
    /// otherwise.
    fn remake_records(&self) {
        let Some(folder) = self.cache.installed() else {
            return;
        };
        let Ok(Some(_lock)) = self.cache.lock() else {
            return;
        };
        // Another process may have been faster. If several new records could not be read either,
        // rebuilding them again does not help.
        let is_other = self.cache.installed().as_ref() != Some(&folder);
        if is_other || cache::is_replaced_often(&folder) {
            return;
        }
        cache::mark_damaged(&folder);
        let Some(version) = cache::read_version(&folder) else {
            return;
        };
        if !self.cache.remove_damaged(Some(&folder), &version) {
            let name = folder.file_stem().unwrap_or_default().to_string_lossy();
            let allowed = self.cache.allowed_bytes();
            let _ = fetch::assemble(&self.address, &self.cache, &name, &version, allowed);
        }
    }
}
