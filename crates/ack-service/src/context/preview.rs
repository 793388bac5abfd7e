//! What the next session of a project would start with if one more memory were approved, for the
//! person who decides about it.
//!
//! The code that answers the session start hook chooses. But the memory is not approved, so the
//! answer must not leave: a [`SessionPreview`] tells titles and numbers of tokens, and keeps the
//! answer to itself. Only the desk asks for one (`tests/it/architecture.rs`).

use std::path::Path;

use super::brief::{Brief, LOCK_TIMEOUT, MEMORIES_AT_START, OTHERS_AT_START};
use super::choose::{Extras, Limits, choose_from};
use super::evidence::Terms;
use super::outlines::{self, Reading};
use super::signals::Signals;
use crate::engine::Service;
use crate::error::Error;
use crate::scope::Scope;
use crate::scope::resolve::Selection;
use ack_api::MemoryHit;
use ack_api::memory::Memory;
use ack_api::text;
use rustc_hash::FxHashSet as HashSet;
use serde::Serialize;

/// A folder that does not exist: a project below it is known by its name alone.
const NOWHERE: &str = "/-";

#[derive(Debug)]
pub struct SessionPreview {
    without: Brief,
    with: Brief,
    /// The ids of the memories that the ones in addition replace.
    hides: HashSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewLine {
    pub id: String,
    pub title: String,
    pub change: PreviewChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviewChange {
    Stays,
    Enters,
    /// It is still found by search.
    Leaves,
    Replaced,
}

impl SessionPreview {
    pub fn project(&self) -> &str {
        &self.with.context.project.name
    }

    /// The project's memories that the session would start with, in order; then those that leave.
    pub fn lines(&self) -> Vec<PreviewLine> {
        let before = &self.without.context.recent_memories;
        let after = &self.with.context.recent_memories;
        let is_in = |hits: &[MemoryHit], wanted: &MemoryHit| {
            hits.iter().any(|hit| hit.id == wanted.id && hit.scope == wanted.scope)
        };
        let stay = after.iter().map(|hit| {
            let stays = is_in(before, hit);
            (hit, if stays { PreviewChange::Stays } else { PreviewChange::Enters })
        });
        let leave = before.iter().filter(|hit| !is_in(after, hit)).map(|hit| {
            let is_replaced = self.hides.contains(&hit.id);
            (hit, if is_replaced { PreviewChange::Replaced } else { PreviewChange::Leaves })
        });
        let lines = stay.chain(leave).map(|(hit, change)| PreviewLine {
            id: hit.id.clone(),
            title: hit.title.clone(),
            change,
        });
        lines.collect()
    }

    pub fn tokens(&self, text: impl Fn(&Brief) -> String) -> [usize; 2] {
        [&self.without, &self.with].map(|brief| text::tokens(&text(brief)))
    }
}

impl Service {
    /// What the next session of a memory's project would start with. `memories` are those that a
    /// person approved and did not save yet, then the one that the question is about. `None` if it
    /// belongs to no project that is known here.
    pub fn session_preview(
        &self,
        scope: &Scope,
        memories: &[&Memory],
    ) -> Result<Option<SessionPreview>, Error> {
        let selection = memories.last().map(|memory| self.project_of(scope, memory));
        let Some(mut selection) = selection.transpose()?.flatten() else {
            return Ok(None);
        };
        let signals = Signals::of(&selection.current, &self.config);
        let terms = Terms::new(signals, &selection.current);
        let reading = Reading { timeout: LOCK_TIMEOUT, ..Reading::of(self) };
        let limits = Limits { own: MEMORIES_AT_START, others: OTHERS_AT_START, reading };
        let mut notes = Vec::new();
        let read = outlines::read(&mut selection, &terms.words, reading, &mut notes)?;
        let extras =
            |memories| Extras::of(&read, &scope.name, memories, &terms).unwrap_or_default();
        let before = memories.split_last().map_or(memories, |(_, before)| before);
        let (without, with) = (extras(before), extras(memories));
        let mut choose = |extras: &Extras<'_>| {
            choose_from(&selection, (&terms, &read), limits, extras, &mut notes)
        };
        let (without, after) = (choose(&without)?, choose(&with)?);
        Ok(Some(SessionPreview { without, with: after, hides: with.hides }))
    }

    /// The project that a memory belongs to: the current one with its files, another by its name.
    fn project_of(&self, scope: &Scope, memory: &Memory) -> Result<Option<Selection>, Error> {
        let is_own =
            |selection: &Selection| selection.current.rows_in(scope).contain_memory(memory);
        let mut current = self.select(None, None)?;
        current.current.add_common_rows();
        if is_own(&current) {
            return Ok(Some(current));
        }
        let project = memory.project.as_deref().filter(|project| !project.is_empty());
        let sole = || scope.manifest.projects.sole().map(|project| project.name.as_str());
        let Some(named) = project.or_else(sole) else { return Ok(None) };
        // The name comes from a memory: it must not lead to a folder that exists.
        let last = named.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut other = self.select(None, Some(&Path::new(NOWHERE).join(last)))?;
        other.current.add_common_rows();
        Ok(Some(other).filter(is_own))
    }
}
