//! How much memories that wait for review have to do with the present work, by the same reasons as
//! at the start of a session. It orders a person's queue; nothing here is shown to an agent.

use ack_api::memory::Memory;
use ack_store::outline::Outline;

use super::evidence::{Evidence, Reason, Terms};
use super::signals::Signals;
use crate::engine::Service;
use crate::scope::Scope;

/// The reasons that speak of the present work, the weightiest last.
const REASONS: [Reason; 4] =
    [Reason::NamesProject, Reason::UsesDependency, Reason::Branch, Reason::Changed];

impl Service {
    /// How much each memory has to do with the current project's changed files, branch and
    /// dependencies, from 4 to 0 for nothing. All 0 if there is no readable scope.
    pub fn nearness_to_work(&self, memories: &[(&Memory, &Scope)]) -> Vec<u32> {
        let Ok(selection) = self.select(None, None) else {
            return vec![0; memories.len()];
        };
        let current = &selection.current;
        let terms = Terms::new(Signals::of(current, &self.config), current);
        let outlines = memories.iter().map(|(memory, _)| Outline::of(memory, &*terms.words));
        let outlines: Vec<Outline> = outlines.collect();
        let is_own = |outline: &Outline, scope: &Scope| {
            let rows = current.rows_in(scope);
            rows.contain(&outline.project, &outline.alias)
        };
        let with_scope = || outlines.iter().zip(memories.iter().map(|(_, scope)| *scope));
        let has_own = with_scope().any(|(outline, scope)| is_own(outline, scope));
        let evidence = Evidence::over(&terms, outlines.iter(), has_own);
        let ranks = with_scope().map(|(outline, scope)| {
            let own = is_own(outline, scope);
            let found = |reason: &Reason| evidence.score(outline, *reason, own).is_some();
            (1..).zip(&REASONS).filter(|(_, reason)| found(reason)).map(|(rank, _)| rank).max()
        });
        ranks.map(Option::unwrap_or_default).collect()
    }
}
