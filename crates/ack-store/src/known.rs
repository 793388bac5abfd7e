//! What takes a scan of the store to find out, kept until the store changes.

use std::sync::Arc;

use ack_api::Counts;
use ack_api::queue::Flow;
use ack_api::source::RowKey;
use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::open::FileState;
use crate::{Snapshot, StoreError};

#[derive(Debug, Default)]
pub(crate) struct Known {
    state: Option<FileState>,
    pub overviews_shown: Option<bool>,
    pub counts: Option<Counts>,
    pub counts_by_id: Option<Counts>,
    /// Memories in staging with the day until which each is snoozed, which may be past.
    pub snoozed: Option<Arc<[(String, Date)]>>,
    /// With the start of the period that it is about.
    pub flow: Option<(Timestamp, Flow)>,
    pub successions: Option<Arc<Successions>>,
}

/// The rows whose id is stored in another form than the one that is shown, by the latter.
pub(crate) type AlteredIds = FxHashMap<String, Vec<RowKey>>;

/// The memories that name each memory as their successor in the store, by the successor's id.
pub(crate) type Successions = FxHashMap<String, Vec<String>>;

impl Snapshot<'_> {
    pub(crate) fn with_known<T>(&self, look: impl FnOnce(&mut Known) -> T) -> T {
        let nothing = Mutex::default();
        let mut known = self.known.unwrap_or(&nothing).lock();
        if known.state.as_ref() != Some(&self.file_state) {
            *known = Known { state: Some(self.file_state.clone()), ..Known::default() };
        }
        look(&mut known)
    }

    /// What `slot` knows, or else what `read` finds.
    pub(crate) fn known_or<T: Clone>(
        &self,
        slot: fn(&mut Known) -> &mut Option<T>,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(value) = self.with_known(|known| slot(known).clone()) {
            return Ok(value);
        }
        let value = read()?;
        self.with_known(|known| *slot(known) = Some(value.clone()));
        Ok(value)
    }
}
