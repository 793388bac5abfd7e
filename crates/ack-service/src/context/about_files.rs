//! The memories about files that are about to be edited.
//!
//! Only certain matches count: an approved memory of the project itself whose file list names the
//! file, its folder, or a glob that matches it. A memory that only mentions a similar word is not
//! shown.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use aho_corasick::AhoCorasick;

use super::files::{Naming, ProjectFile, ProjectRoots};
use super::outlines;
use super::signals::LASTING_TYPES;
use crate::engine::Service;
use crate::error::Error;
use crate::evidence::Bounds;
use crate::open::Record;
use crate::scope::Scope;
use crate::service_state::serves_unreviewed;
use crate::shown::Shown;
use crate::stale::Staleness;
use ack_api::MemoryHit;
use ack_api::memory::{StatusFilter, fold_name};
use ack_api::source::RowKey;
use ack_store::Access;
use ack_store::outline::FindWords;

const LOCK_TIMEOUT: Duration = Duration::from_millis(50);
const READ_FACTOR: usize = 3;
/// How many candidates to check per shown memory, including those that newer ones replace.
const CHECK_FACTOR: usize = 20;

/// Memories that nobody asked for, so each of them certainly fits.
#[derive(Debug, Clone, Default)]
pub struct Certain {
    pub memories: Vec<MemoryHit>,
    /// Whether some count as approved without review, because their store keeps no status.
    pub unreviewed: bool,
}

impl Service {
    /// At most `max` memories about files that are about to be edited, in the project of a folder,
    /// or else in the current one. Skips scopes that cannot be read.
    pub fn about_files(
        &self,
        folder: Option<&str>,
        files: &[String],
        max: usize,
    ) -> Result<Certain, Error> {
        let mut notes = Vec::new();
        let mut selection = super::select(self, folder, &mut notes, true)?;
        let roots = ProjectRoots::of(&selection.current);
        let files = files.iter().filter_map(|path| roots.file_at(path));
        let finder = FileFinder::new(files.collect());
        let mut certain = Certain::default();
        if finder.files.is_empty() {
            return Ok(certain);
        }
        let read =
            outlines::read_scopes(&mut selection, self.wait_policy, &mut notes, |scope, own| {
                scope.store.read(Access::QuickScan, LOCK_TIMEOUT, |snapshot| {
                    let has_status = snapshot.layout.has_status();
                    let mut found = snapshot.outlines_by_files(StatusFilter::Approved, &finder)?;
                    found.retain(|outline| own.contain(&outline.project, &outline.alias));
                    Ok((Arc::clone(scope), has_status, found))
                })
            })?;
        let mut matches = Vec::new();
        for (scope, has_status, outlines) in &read {
            for outline in outlines {
                let named = outline.matches.anywhere;
                let naming = NAMINGS.into_iter().find(|it| named & (1 << *it as u32) != 0);
                matches.extend(naming.map(|naming| (naming, scope, has_status, outline)));
            }
        }
        // The most exact, then lasting ones, then the newest.
        matches.sort_by_key(|&(naming, scope, _, outline)| {
            let is_lasting = outline.matches.type_or_tags & IS_LASTING != 0;
            (naming, !is_lasting, Reverse(outline.created), &scope.name, &outline.id)
        });
        let staleness = Staleness::new((self.config.clock)(), &selection.current, Bounds::ANSWER);
        let mut shown = Shown::default();
        let mut rest = max * READ_FACTOR;
        for (naming, scope, has_status, outline) in matches.into_iter().take(max * CHECK_FACTOR) {
            if rest == 0 || certain.memories.len() >= max {
                break;
            }
            let found = record(scope, outline.key, LOCK_TIMEOUT);
            // In the meantime, the row number may have been reused for another memory.
            let Some(found) = found.filter(|found| found.memory.id == outline.id) else {
                continue;
            };
            rest -= 1;
            let why = match naming {
                Naming::Path | Naming::FileName => None,
                Naming::Folder => Some("about its folder"),
                Naming::Glob => Some("about files of this kind"),
            };
            shown.add_to(&mut certain.memories, 0, &found.memory, || {
                certain.unreviewed |= !has_status && serves_unreviewed(scope);
                MemoryHit { why: why.map(str::to_owned), ..staleness.hit(&found, scope) }
            });
        }
        Ok(certain)
    }
}

/// A record, unless a newer one replaces it or it may not be shown.
pub(super) fn record(scope: &Scope, key: RowKey, timeout: Duration) -> Option<Record> {
    let found = scope.store.read(Access::Rows, timeout, |snapshot| {
        let Some(memory) = snapshot.memory_in_force(key, StatusFilter::Approved)? else {
            return Ok(None);
        };
        let contradictions = snapshot.contradictions(&memory.id, StatusFilter::Approved)?;
        Ok(Some(Record { memory, contradictions }))
    });
    found.ok()?
}

/// How a list may name a file, each with a bit at its place here.
const NAMINGS: [Naming; 4] = [Naming::Path, Naming::FileName, Naming::Folder, Naming::Glob];
const IS_LASTING: u128 = 1 << 4;

struct FileFinder {
    files: Vec<ProjectFile>,
    /// Names of the files and their folders. A list that contains none of them, and no glob, names
    /// none of the files. `None` if one has letters that a list may write in several ways.
    names: Option<AhoCorasick>,
}

impl FileFinder {
    fn new(files: Vec<ProjectFile>) -> Self {
        let names = files.iter().flat_map(|file| file.path().split('/'));
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let names = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&names)
            .ok()
            .filter(|_| names.iter().all(|name| name.is_ascii()));
        Self { files, names }
    }
}

impl FindWords for FileFinder {
    fn in_text(&self, text: &[u8]) -> u128 {
        // Types and tags are short.
        let label = str::from_utf8(text).unwrap_or_default();
        let is_lasting = text.len() < 200
            && label
                .split(['"', ',', '[', ']', '|'])
                .any(|label| LASTING_TYPES.contains(&fold_name(label).as_str()));
        if is_lasting { IS_LASTING } else { 0 }
    }

    fn in_files(&self, list: &[u8], entries: &dyn Fn() -> Vec<String>) -> u128 {
        let may_name = |names: &AhoCorasick| names.is_match(list);
        if !list.contains(&b'*') && !self.names.as_ref().is_none_or(may_name) {
            return 0;
        }
        let entries = entries();
        let pairs =
            entries.iter().flat_map(|entry| self.files.iter().map(|file| file.named_by(entry)));
        pairs.flatten().min().map_or(0, |naming| 1 << naming as u32)
    }
}
