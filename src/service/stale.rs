//! Reasons why an approved memory may be out of date, in a few words.
//!
//! There are three checks, cheapest first: the day set by its author (`stale_after`); a newer
//! approved memory that contradicts it by a link; and, for memories of the current project, whether
//! all the files it cites are missing from the working tree. The tree counts only if git tracks
//! files there, and the check has limits ([`Bounds::ANSWER`]). A decision after the author's day
//! clears that mark. A decision that names a mark clears that one, because a person kept the
//! memory.

use std::sync::OnceLock;

use ack_api::MemoryHit;
use ack_api::memory::{Memory, StatusFilter};
use ack_api::text;
use ack_store::links::Contradiction;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::evidence::{Bounds, FileState, WorkTree};
use crate::scope::Scope;
use crate::scope::resolve::Current;
use crate::service::engine::Service;

/// What memories are checked against.
#[derive(Debug)]
pub struct Staleness {
    today: Date,
    current: Current,
    bounds: Bounds,
    tree: OnceLock<Option<WorkTree>>,
}

impl Service {
    /// The checks for a person who reviews. Without a readable scope, there is no current project.
    pub(crate) fn staleness(&self, now: Timestamp) -> Staleness {
        let selection = self.select(None, None);
        let current = selection.map(|selection| selection.current);
        Staleness::new(now, &current.unwrap_or_default(), Bounds::REVIEW)
    }
}

impl Staleness {
    /// Checks against a day and a project.
    pub fn new(now: Timestamp, current: &Current, bounds: Bounds) -> Self {
        Self {
            today: now.to_zoned(TimeZone::UTC).date(),
            current: current.clone(),
            bounds,
            tree: OnceLock::new(),
        }
    }

    /// Why an approved memory may be out of date; `None` if there is no reason.
    pub fn of(
        &self,
        memory: &Memory,
        scope: &Scope,
        contradictions: &[Contradiction],
    ) -> Option<String> {
        if !StatusFilter::Approved.allows(memory.status) {
            return None;
        }
        let counts = |mark: &String| !is_kept(memory, mark);
        let marks = self.past(memory).filter(counts);
        let marks = marks.or_else(|| newer(contradictions).filter(counts));
        marks.or_else(|| self.gone(memory, scope).filter(counts))
    }

    /// Whether a memory belongs to the project with the working tree here.
    pub fn is_of_project(&self, memory: &Memory, scope: &Scope) -> bool {
        let project = memory.project.as_deref().unwrap_or_default();
        let alias = memory.project_alias.as_deref().unwrap_or_default();
        self.current.rows_in(scope).hold(project, alias)
    }

    fn past(&self, memory: &Memory) -> Option<String> {
        let day = memory.stale_after.filter(|day| *day < self.today)?;
        let reviewed = memory
            .reviewed_at
            .map(|at| at.to_zoned(TimeZone::UTC).date());
        if reviewed.is_some_and(|reviewed| reviewed > day) {
            return None;
        }
        Some(format!("past {day}, the day its author set"))
    }

    fn gone(&self, memory: &Memory, scope: &Scope) -> Option<String> {
        if memory.files.is_empty() || !self.is_of_project(memory, scope) {
            return None;
        }
        let cited = self.tree()?.cited(&memory.files, None);
        if !cited.iter().all(|file| file.state == FileState::Gone) {
            return None;
        }
        Some(match cited.as_slice() {
            [file] => format!("not in the working tree: {}", text::line(&file.entry, 80)),
            files => format!("none of its {} files is in the working tree", files.len()),
        })
    }

    /// The working tree of the current project, if git tracks files there.
    pub fn tree(&self) -> Option<&WorkTree> {
        let open = || {
            let repository = self.current.repository.as_ref()?;
            let has_files = repository.git_dir.join("index").is_file();
            has_files.then(|| WorkTree::of(&self.current, self.bounds))?
        };
        self.tree.get_or_init(open).as_ref()
    }
}

/// Separates the marks that a person has dismissed.
pub const BETWEEN: &str = "; ";

/// Whether a person kept a memory despite a mark.
pub fn is_kept(memory: &Memory, mark: &str) -> bool {
    let mut kept = memory
        .kept_despite
        .iter()
        .flat_map(|kept| kept.split(BETWEEN));
    kept.any(|kept| kept == mark)
}

/// The mark of a memory that a newer one contradicts.
fn newer(contradictions: &[Contradiction]) -> Option<String> {
    let newer = contradictions.iter().find(|other| other.is_newer)?;
    Some(MemoryHit::contradicted_by(&newer.id))
}
