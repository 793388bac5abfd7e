//! Moves the links of merged memories: a link to a duplicate becomes a link to the memory that was
//! kept.
//!
//! The store is not changed. Whenever links are read, the decision log tells which memory was
//! merged into which. So a merge has no effect if it was undone or if its memory has changed since.

use std::collections::HashSet;

use super::Link;
use crate::{Snapshot, StoreError};
use ack_api::memory::StatusFilter;

/// The longest chain of merges that is followed, and the most memories that were merged into one.
/// In a longer chain, which may be a cycle, every memory stands for itself.
const MAX_MERGED: usize = 256;

impl Snapshot<'_> {
    /// The memory that replaces this one, at the end of the chain of merges. As with successors, a
    /// missing or hidden target does not count, and in a cycle every memory stands for itself.
    pub(super) fn merge_target(
        &self,
        id: &str,
        filter: StatusFilter,
    ) -> Result<String, StoreError> {
        let mut last = id.to_owned();
        let mut chain = HashSet::new();
        while let Some(into) = self.merged_into(&last, filter)? {
            if into == id || chain.len() == MAX_MERGED || !chain.insert(last) {
                return Ok(id.to_owned());
            }
            last = into;
        }
        Ok(last)
    }

    /// The memory that this one was merged into, if that may be shown.
    fn merged_into(&self, id: &str, filter: StatusFilter) -> Result<Option<String>, StoreError> {
        let Some(into) = self.decisions.merged_into(id) else {
            return Ok(None);
        };
        // The decision must be about the memory's current content.
        if !self.curated(id)?.is_some_and(|merged| merged.is_decided) {
            return Ok(None);
        }
        let target = self.by_id(&into)?;
        let is_shown = target.is_some_and(|target| filter.allows(target.status));
        Ok(is_shown.then_some(into))
    }

    /// The memories that were merged into this one.
    pub(super) fn merge_sources(
        &self,
        id: &str,
        filter: StatusFilter,
    ) -> Result<Vec<String>, StoreError> {
        let mut found: Vec<String> = Vec::new();
        let mut ends = vec![id.to_owned()];
        while let Some(end) = ends.pop()
            && found.len() < MAX_MERGED
        {
            for merged in self.decisions.replaced_by(&end) {
                if merged != id
                    && !found.contains(merged)
                    && self.merge_target(merged, filter)? == id
                {
                    found.push(merged.clone());
                    ends.push(merged.clone());
                }
            }
        }
        Ok(found)
    }

    /// A link between the memories that replace its ends. `near` is the end that becomes `asked`.
    /// `None` if both ends are the same memory now.
    pub(super) fn resolve_ends(
        &self,
        link: Link,
        (near, asked): (&str, &str),
        filter: StatusFilter,
    ) -> Result<Option<Link>, StoreError> {
        if self.decisions.is_empty() || link.is_own() {
            return Ok(Some(link));
        }
        let end = |id: &str| {
            if id == near {
                Ok(asked.to_owned())
            } else {
                self.merge_target(id, filter)
            }
        };
        let moved = Link {
            from: end(&link.from)?,
            to: end(&link.to)?,
            ..link
        };
        Ok((moved.from != moved.to).then_some(moved))
    }
}
