//! The memories a session starts with, for its hook.

use std::time::Duration;

use rustc_hash::FxHashSet as HashSet;

use super::choose::{Limits, choose, rehearse};
use super::folder;
use super::signals::Signals;
use crate::service::engine::Service;
use crate::service::error::Error;
use ack_api::memory::{Memory, StatusFilter};
use ack_api::queue::Flow;
use ack_api::{ContextRequest, ContextResponse, MemoryHit};

/// How many of its own memories a session starts with.
pub const AT_START: usize = 6;
/// A session's start waits no longer than this for a store that is locked.
const LOCK_TIMEOUT: Duration = Duration::from_millis(400);

/// What to choose.
#[derive(Debug, Clone, Default)]
pub struct BriefRequest {
    /// The project's folder. Default: the one the process runs for.
    pub project_path: Option<String>,
    /// Most memories of the project itself.
    pub own: usize,
    /// Most memories that others learned.
    pub others: usize,
    /// Whether recent sessions are wanted.
    pub sessions: bool,
}

/// What a session starts with.
#[derive(Debug, Clone, Default)]
pub struct Brief {
    /// The memories, as `get_context` answers.
    pub context: ContextResponse,
    /// How many memories the scopes searched would serve.
    pub served: usize,
    /// How many wait for review in all of them.
    pub waiting: u64,
    /// What came into the review queue of the project's scope and left it lately.
    pub flow: Flow,
    /// Some of these memories are from a store that keeps no status, whose notes count as approved
    /// unreviewed.
    pub unreviewed: bool,
    /// Ids of the memories shown that more than one of the scopes searched holds.
    pub shared_ids: HashSet<String>,
}

/// Chooses what a session starts with.
///
/// # Errors
/// No scope at all, an invalid folder, or no store that can be read.
pub fn run(service: &Service, request: &BriefRequest) -> Result<Brief, Error> {
    let mut notes = Vec::new();
    let asked = ContextRequest {
        project_path: request.project_path.clone(),
        ..ContextRequest::default()
    };
    let folder = folder(service, &asked, &mut notes)?;
    let mut selection = service.select(None, Some(&folder))?;
    let signals = Signals::of(&selection.current, &service.config);
    let limits = Limits {
        own: request.own,
        others: request.others,
        sessions: request.sessions,
        timeout: LOCK_TIMEOUT,
        patience: service.patience,
        now: (service.config.clock)(),
    };
    let choice = choose(&mut selection, signals, limits, None, &mut notes)?;
    Ok(Brief {
        unreviewed: choice.unreviewed,
        served: choice.served,
        waiting: choice.waiting,
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
    })
}

/// What a session of the project that the process runs for would not start with any more, if a
/// memory of a scope were approved. `None` if it would not start with that one.
///
/// # Errors
/// No scope at all, or no store that can be read.
pub fn pushed_out(
    service: &Service,
    scope: &str,
    memory: &Memory,
) -> Result<Option<Vec<MemoryHit>>, Error> {
    let mut selection = service.select(None, None)?;
    let signals = Signals::of(&selection.current, &service.config);
    let limits = Limits {
        own: AT_START,
        others: 0,
        sessions: false,
        timeout: LOCK_TIMEOUT,
        patience: service.patience,
        now: (service.config.clock)(),
    };
    let kept = &service.outlines;
    let rehearsed = rehearse(&mut selection, signals, limits, kept, (scope, memory))?;
    let [mut now, then] = rehearsed;
    let is_in = |hits: &[MemoryHit], scope: &str, id: &str| {
        hits.iter().any(|hit| hit.id == id && hit.scope == scope)
    };
    if !is_in(&then, scope, &memory.id) {
        return Ok(None);
    }
    now.retain(|hit| !is_in(&then, &hit.scope, &hit.id));
    Ok(Some(now))
}
