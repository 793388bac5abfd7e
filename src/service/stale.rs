//! Approved is not for ever: what speaks against a memory that was approved, in a few words.
//!
//! Three things are looked at, the cheapest first: the day that its author set (`stale_after`), a
//! newer approved memory that contradicts it by a link, and, for memories of the current project,
//! whether the files it cites are all missing in the working tree. The tree counts only if git
//! tracks files there, and is looked at within bounds ([`Bounds::ANSWER`]). A decision after the day
//! of the author lifts that mark, and one that names a mark lifts that one: a person kept the memory.

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

/// What a memory is compared with.
#[derive(Debug)]
pub struct Staleness {
    today: Date,
    current: Current,
    bounds: Bounds,
    tree: OnceLock<Option<WorkTree>>,
}

impl Service {
    /// What memories are compared with for a person who reviews. Without a scope that can be read,
    /// no project is current.
    pub(crate) fn staleness(&self, now: Timestamp) -> Staleness {
        let selection = self.select(None, None);
        let current = selection.map(|selection| selection.current);
        Staleness::new(now, &current.unwrap_or_default(), Bounds::REVIEW)
    }
}

impl Staleness {
    /// Compares with a day and a project.
    pub fn new(now: Timestamp, current: &Current, bounds: Bounds) -> Self {
        Self {
            today: now.to_zoned(TimeZone::UTC).date(),
            current: current.clone(),
            bounds,
            tree: OnceLock::new(),
        }
    }

    /// Why an approved memory may be out of date; `None` if nothing says so.
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

    /// Whether a memory is of the project that has a working tree here.
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

/// What stands between two marks that a person decided against.
pub const BETWEEN: &str = "; ";

/// Whether a person kept a memory in spite of a mark.
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
