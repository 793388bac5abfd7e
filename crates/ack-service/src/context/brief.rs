//! The memories that a session starts with, for the hook.

use std::time::Duration;

use rustc_hash::FxHashSet as HashSet;

use super::choose::{Limits, choose};
use super::outlines::Reading;
use super::select;
use super::signals::Signals;
use crate::engine::Service;
use crate::error::Error;
use ack_api::ContextResponse;
use ack_api::queue::Flow;

pub const MEMORIES_AT_START: usize = 6;
pub const OTHERS_AT_START: usize = 3;
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_millis(400);

#[derive(Debug, Clone, Default)]
pub struct BriefRequest {
    /// The project's folder. Default: the current project's.
    pub project_path: Option<String>,
    pub own: usize,
    pub others: usize,
    pub sessions: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Brief {
    pub context: ContextResponse,
    /// Why there are none of other projects, if there could be.
    pub(super) no_others: Option<&'static str>,
    /// How many memories the scopes could serve.
    pub served: usize,
    /// How many memories wait for review in all of them.
    pub waiting: u64,
    /// Since when the oldest of these waits.
    pub oldest_waiting: Option<jiff::Timestamp>,
    /// How many memories entered and left the review queue recently. As old as cached outlines are.
    pub flow: Flow,
    /// Whether some count as approved without review, because their store keeps no status.
    pub unreviewed: bool,
    /// Ids of shown memories that several of the searched scopes contain.
    pub shared_ids: HashSet<String>,
}

impl Service {
    /// What a session starts with: like [`Service::get_context`], but without an index.
    pub fn session_brief(&self, request: &BriefRequest) -> Result<Brief, Error> {
        let mut notes = Vec::new();
        let mut selection = select(self, request.project_path.as_deref(), &mut notes, true)?;
        let signals = Signals::of(&selection.current, &self.config);
        let limits = Limits {
            own: request.own,
            others: request.others,
            reading: Reading {
                sessions: request.sessions,
                timeout: LOCK_TIMEOUT,
                cache: None,
                ..Reading::of(self)
            },
        };
        let mut brief = choose(&mut selection, signals, limits, &mut notes)?;
        brief.context.notes = notes;
        Ok(brief)
    }
}
