//! Reasons why an approved memory may be out of date, in a few words.
//!
//! The checks, cheapest first: the day set by its author (`stale_after`), which a later decision
//! clears; its author's `status: deprecated`; a newer approved memory that contradicts it by a link;
//! and, in the current project, whether git tracks files there and all that it cites are missing
//! ([`Bounds::ANSWER`]). A decision that names a mark clears it, because a person kept the memory.

use std::sync::OnceLock;

use ack_api::memory::{Memory, StatusFilter};
use ack_api::{Contradiction, Detail, MemoryHit, text};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::answer;
use crate::engine::Service;
use crate::evidence::{Bounds, FileState, WorkTree};
use crate::open::Record;
use crate::scope::Scope;
use crate::scope::resolve::Current;

#[derive(Debug)]
pub struct Staleness {
    today: Date,
    current: Current,
    bounds: Bounds,
    tree: OnceLock<Option<WorkTree>>,
}

impl Service {
    /// The checks for a person who reviews. Without a readable scope, there is no current project.
    pub fn staleness(&self, now: Timestamp) -> Staleness {
        let current = self.select(None, None).map(|selection| selection.current);
        Staleness::new(now, &current.unwrap_or_default(), Bounds::REVIEW)
    }
}

impl Staleness {
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
        let counts = |mark: &String| !is_dismissed(memory, mark);
        let newer = contradictions.iter().filter(|other| other.is_newer()).map(contradiction_mark);
        let own = [self.expired(memory), withdrawn_mark(memory)].into_iter().flatten();
        own.chain(newer).find(counts).or_else(|| self.missing_files(memory, scope).filter(counts))
    }

    /// Adds the reasons to doubt a memory to a result: memories that contradict it, and why else it
    /// may be out of date. If a person kept the memory despite a newer one, that one is listed
    /// without its age.
    pub fn mark(&self, hit: &mut MemoryHit, record: &Record, scope: &Scope) {
        let memory = &record.memory;
        hit.stale = self.of(memory, scope, &[]);
        hit.contradicts.clone_from(&record.contradictions);
        for other in &mut hit.contradicts {
            let is_dismissed = other.is_newer() && is_dismissed(memory, &contradiction_mark(other));
            other.age = other.age.filter(|_| !is_dismissed);
        }
    }

    /// A short result with the reasons to doubt it. It names no successor, which may not be visible.
    pub fn hit(&self, record: &Record, scope: &Scope) -> MemoryHit {
        let mut hit = answer::hit(&record.memory, &scope.name, Detail::Concise);
        hit.superseded_by = None;
        self.mark(&mut hit, record, scope);
        hit
    }

    pub fn is_of_project(&self, memory: &Memory, scope: &Scope) -> bool {
        self.current.rows_in(scope).contain_memory(memory)
    }

    fn expired(&self, memory: &Memory) -> Option<String> {
        let day = memory.stale_after.filter(|day| *day < self.today)?;
        let reviewed = memory.reviewed_at.map(|at| at.to_zoned(TimeZone::UTC).date());
        let is_over = reviewed.is_none_or(|reviewed| reviewed <= day);
        is_over.then(|| format!("past {day}, the day its author set"))
    }

    fn missing_files(&self, memory: &Memory, scope: &Scope) -> Option<String> {
        if memory.files.is_empty() || !self.is_of_project(memory, scope) {
            return None;
        }
        if self.tree()?.cited(&memory.files).iter().any(|state| *state != FileState::Gone) {
            return None;
        }
        Some(match memory.files.as_slice() {
            [file] => format!("not in the working tree: {}", text::line(file, 80)),
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

pub const MARK_SEPARATOR: &str = "; ";

pub fn is_dismissed(memory: &Memory, mark: &str) -> bool {
    let mut dismissed = memory.kept_despite.iter().flat_map(|marks| marks.split(MARK_SEPARATOR));
    dismissed.any(|dismissed| dismissed == mark)
}

/// The mark of a note whose header says that it is no longer valid. The word is one of a few.
pub fn withdrawn_mark(memory: &Memory) -> Option<String> {
    let status = memory.withdrawn.as_ref()?.to_lowercase();
    let word = status.split(|c: char| !c.is_alphanumeric()).next();
    Some(format!("its author marked it {}", word.unwrap_or_default()))
}

fn contradiction_mark(newer: &Contradiction) -> String {
    format!("the newer {} contradicts it", newer.id)
}
