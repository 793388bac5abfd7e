//! Whether what a memory cites is still in the project's working tree, in words.
//!
//! Only the project that the process runs for has a working tree here. Memories of other projects
//! get no result.

use ack_api::memory::Memory;
use ack_api::text;

use super::choice::count_text;
use crate::curate::Candidate;
use ack_service::Service;
use ack_service::evidence::{Bounds, FileState, WorkTree};

/// What the working tree says about a memory: a line for each file it cites. `None` if the memory belongs to another project, or cites nothing.
pub fn evidence(service: &Service, candidate: &Candidate) -> Option<Vec<String>> {
    let current = service.select(None, None).ok()?.current;
    let memory = candidate.memory();
    let rows = current.rows_in(&candidate.scope);
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    if !rows.contain(&name(&memory.project), &name(&memory.project_alias)) {
        return None;
    }
    let Some(tree) = WorkTree::of(&current, Bounds::REVIEW) else {
        return displaced_memories(service, candidate).map(|line| vec![line]);
    };
    let lines: Vec<String> = files(&tree, memory)
        .into_iter()
        .chain(displaced_memories(service, candidate))
        .collect();
    Some(lines).filter(|lines| !lines.is_empty())
}

/// The memories that a session of the project would no longer start with.
fn displaced_memories(service: &Service, candidate: &Candidate) -> Option<String> {
    let memory = candidate.memory();
    if memory.status.is_served() {
        return None;
    }
    let displaced = service.pushed_out(&candidate.scope.name, memory).ok()??;
    let displaced: Vec<String> = displaced
        .iter()
        .map(|hit| format!("{}: {}", hit.id, text::line(&hit.title, 80)))
        .collect();
    (!displaced.is_empty()).then(|| {
        format!(
            "a session starts with it in place of {}",
            displaced.join("; and of ")
        )
    })
}

fn files(tree: &WorkTree, memory: &Memory) -> Vec<String> {
    let written_at = memory.updated_at.or(memory.created_at);
    let cited = tree.cited(&memory.files);
    let commits = written_at.and_then(|written_at| tree.commits_since(&memory.files, written_at));
    let lines = cited.into_iter().enumerate().map(|(position, file)| {
        let commits = commits.as_ref().and_then(|commits| commits.get(position));
        let state = match (file.state, commits) {
            (FileState::Gone, _) => "gone".to_owned(),
            (FileState::Outside, _) => "outside the project, not checked".to_owned(),
            (FileState::Unknown, _) => "unknown".to_owned(),
            (FileState::There, None) => "there".to_owned(),
            (FileState::There, Some(0)) => "there, unchanged since".to_owned(),
            (FileState::There, Some(count)) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                format!(
                    "there, changed in {} since",
                    count_text(count, "commit", "commits")
                )
            }
        };
        format!("{}: {state}", text::line(&file.entry, 200))
    });
    lines.collect()
}
