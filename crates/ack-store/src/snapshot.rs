//! One state of a store.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use ack_api::memory::{Overviews, Unreviewed};
use rusqlite::Connection;

use crate::decisions::{Decisions, StatusRule};
use crate::layout::Layout;
use crate::open::{FileState, Opening};

/// One state of a store, open for reading.
pub struct Snapshot<'a> {
    pub(crate) connection: &'a Connection,
    /// What the database holds.
    pub layout: Arc<Layout>,
    /// The state of the files before the snapshot began.
    pub file_state: FileState,
    /// How it was opened.
    pub opening: Opening,
    pub(crate) unreviewed: Unreviewed,
    /// People's decisions about its memories.
    pub decisions: Arc<Decisions>,
    pub(crate) overviews: Option<Overviews>,
    /// Whether overviews may be shown, by [`Self::overviews`] or by the store itself. Computed on
    /// first use.
    pub(crate) overviews_shown: Cell<Option<bool>>,
    pub(crate) path: &'a Path,
    /// Whether the whole store was scanned. Such a connection is closed, which frees its memory.
    pub(crate) scanned: Cell<bool>,
    /// If a writer has a log: another connection that sees the same state, see
    /// [`crate::parallel_scan`].
    pub(crate) second_connection: RefCell<Option<Connection>>,
}

impl Snapshot<'_> {
    /// What determines the status of a row.
    pub(crate) fn rule(&self) -> StatusRule<'_> {
        StatusRule {
            unreviewed: self.unreviewed,
            decisions: &self.decisions,
            are_notes: self.layout.profile.is_notes(),
        }
    }
}
