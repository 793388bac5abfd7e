//! What flags ask the service for.

use ack_api::ContextRequest;
use ack_api::memory::StatusFilter;

use super::args::{ContextArgs, ShownStatuses, StatusArg};

pub(super) const fn status(argument: StatusArg) -> StatusFilter {
    match argument {
        StatusArg::Approved => StatusFilter::Approved,
        StatusArg::Staging => StatusFilter::Staging,
        StatusArg::All => StatusFilter::All,
    }
}

/// The status from `--status` or `--all`.
pub(super) fn chosen_status(shown: ShownStatuses) -> Option<StatusFilter> {
    let status_flag = shown.status.map(status);
    status_flag.or(shown.all.then_some(StatusFilter::All))
}

pub(super) fn context_request(args: &ContextArgs) -> ContextRequest {
    ContextRequest {
        project_path: None,
        include_cross_project: args.own_only.then_some(false),
        max_memories: args.max_memories,
        max_tokens: args.max_tokens,
        focus: (!args.focus.is_empty()).then(|| args.focus.join(" ")),
        by_agent: false,
    }
}
