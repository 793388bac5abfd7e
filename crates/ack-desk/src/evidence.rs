//! Whether what a memory cites is still in the project's working tree, in words.
//!
//! Only the project that the process runs for has a working tree here. Memories of other projects
//! get no result.

use std::sync::Arc;

use ack_api::memory::Memory;
use ack_api::text;
use serde::Serialize;

use super::choice::count_text;
use crate::curate::Candidate;
use ack_service::Service;
use ack_service::context::brief::{Brief, MEMORIES_AT_START};
use ack_service::context::preview::{PreviewChange, PreviewLine};
use ack_service::evidence::{Bounds, FileState, WorkTree};

/// A line for each cited file. `None` if the memory is another project's, or cites nothing.
pub fn evidence(service: &Service, candidate: &Candidate) -> Option<Vec<String>> {
    let current = service.select(None, None).ok()?.current;
    let memory = candidate.memory();
    if !current.rows_in(&candidate.scope).contain_memory(memory) {
        return None;
    }
    let lines = files(&WorkTree::of(&current, Bounds::REVIEW)?, memory);
    Some(lines).filter(|lines| !lines.is_empty())
}

/// What approving a memory changes about the next session of its project.
#[derive(Debug, Serialize)]
pub struct NextSession {
    pub project: String,
    pub lines: Vec<PreviewLine>,
    /// What it means, in a sentence or two.
    pub says: String,
}

impl NextSession {
    /// `held` are memories of its scope that were approved and are not saved yet. `text` makes the
    /// text of a session. `None` if agents see the memory already, or if its project is not known
    /// here.
    pub fn of(
        service: &Service,
        candidate: &Candidate,
        held: &[Arc<Candidate>],
        text: impl Fn(&Brief) -> String,
    ) -> Option<Self> {
        let memory = candidate.memory();
        if memory.status.is_served() {
            return None;
        }
        let held = held.iter().map(|held| held.memory());
        let memories: Vec<&Memory> = held.chain([memory]).collect();
        let preview = service.session_preview(&candidate.scope, &memories).ok()??;
        let lines = preview.lines();
        let says = says(&lines, preview.tokens(text));
        Some(Self { project: preview.project().to_owned(), lines, says })
    }
}

fn says(lines: &[PreviewLine], [before, after]: [usize; 2]) -> String {
    let has = |change| lines.iter().any(|line| line.change == change);
    let tokens = format!("Session start: {before} → {after} tokens.");
    match lines.len() {
        _ if has(PreviewChange::Leaves) && has(PreviewChange::Enters) => {
            format!("Still found by search. {tokens}")
        }
        _ if has(PreviewChange::Enters) => tokens,
        MEMORIES_AT_START.. => "Nothing: six other memories come first.".to_owned(),
        _ => "Nothing: those that it starts with say it already.".to_owned(),
    }
}

fn files(tree: &WorkTree, memory: &Memory) -> Vec<String> {
    let written_at = memory.updated_at.or(memory.created_at);
    let cited = tree.cited(&memory.files);
    let commits = written_at.and_then(|written_at| tree.commits_since(&memory.files, written_at));
    let lines = memory.files.iter().zip(cited).enumerate().map(|(position, (entry, state))| {
        let commits = commits.as_ref().and_then(|commits| commits.get(position));
        let state = match (state, commits) {
            (FileState::Gone, _) => "gone".to_owned(),
            (FileState::Outside, _) => "outside the project, not checked".to_owned(),
            (FileState::Unknown, _) => "unknown".to_owned(),
            (FileState::There, None) => "there".to_owned(),
            (FileState::There, Some(0)) => "there, unchanged since".to_owned(),
            (FileState::There, Some(count)) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                format!("there, changed in {} since", count_text(count, "commit", "commits"))
            }
        };
        format!("{}: {state}", text::line(entry, 200))
    });
    lines.collect()
}
