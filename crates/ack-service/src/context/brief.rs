//! The memories that a session starts with, for the hook.

use std::time::Duration;

use rustc_hash::FxHashSet as HashSet;

use super::choose::{ChosenMemories, Limits, choose};
use super::select;
use super::signals::Signals;
use crate::engine::Service;
use crate::error::Error;
use crate::scope::resolve::Selection;
use ack_api::memory::StatusFilter;
use ack_api::queue::Flow;
use ack_api::{ContextResponse, Note};

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
    /// The memories, as in an answer of `get_context`.
    pub context: ContextResponse,
    pub served: usize,
    /// How many memories wait for review in all of them.
    pub waiting: u64,
    /// Since when the oldest of these waits.
    pub oldest_waiting: Option<jiff::Timestamp>,
    /// How many memories recently entered and left the review queue of the project's scope.
    pub flow: Flow,
    /// Whether some come from a store without a status, whose notes count as approved without
    /// review.
    pub unreviewed: bool,
    /// Ids of shown memories that several of the searched scopes contain.
    pub shared_ids: HashSet<String>,
}

impl Service {
    /// What a session starts with: like [`Service::get_context`], but without an index.
    pub fn session_brief(&self, request: &BriefRequest) -> Result<Brief, Error> {
        let mut notes = Vec::new();
        let mut selection = select(self, request.project_path.as_deref(), &mut notes)?;
        let signals = Signals::of(&selection.current, &self.config);
        let limits = Limits {
            own: request.own,
            others: request.others,
            sessions: request.sessions,
            timeout: LOCK_TIMEOUT,
            wait_policy: self.wait_policy,
            now: (self.config.clock)(),
        };
        let choice = choose(&mut selection, signals, limits, None, &mut notes)?;
        Ok(Brief::of(choice, &selection, notes))
    }
}

impl Brief {
    pub(super) fn of(choice: ChosenMemories, selection: &Selection, notes: Vec<Note>) -> Self {
        Self {
            unreviewed: choice.unreviewed,
            served: choice.served,
            waiting: choice.waiting,
            oldest_waiting: choice.oldest_waiting,
            flow: choice.flow,
            shared_ids: choice.shared_ids,
            context: ContextResponse {
                project: super::project_info(&selection.current),
                recent_memories: choice.own,
                recent_sessions: choice.sessions,
                cross_project_learnings: choice.others,
                pending: choice.pending,
                searched: selection.searched(StatusFilter::Approved),
                notes,
            },
        }
    }
}
